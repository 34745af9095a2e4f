/* The demo's payments API, which knows nothing of idempotency keys: every POST /payments
 * that it receives is a payment, with a line in its ledger.
 *
 *   POST /payments {"amount":2000,"currency":"EUR"}  201, Location
 *   GET  /payments/pay_1                             200
 *   GET  /payments?operation=REFERENCE               200: the payment made for it
 *   GET  /ledger                                     200, text
 *
 * The money moves first, the answer takes a little longer, as it does with banks. The
 * ledger is a file that every question is answered from: nothing else decides. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "cli/demo.h"
#include "http/field.h"
#include "http/target.h"
#include "http/write.h"

#define LEDGER_BYTES_MAX ((size_t)1024 * 1024)
#define LINE_BYTES_MAX 1024
/* Long enough that a second click arrives while the first is under way. */
#define BANK_MS 120
#define HOLD_MAX_MS 20000
#define CENTS_MAX 100000000
#define CURRENCY "EUR"

/* ---- the ledger: lines of tab-separated columns, each written in one call ---- */

/* A line of the ledger. None of the texts holds a tab or a line end; absent is "-". */
struct payment {
	uint64_t number; /* 1, 2, 3 …: given by append */
	struct hpx_span order;
	uint64_t cents;
	struct hpx_span key;
	struct hpx_span operation; /* the Hapax-Operation it came with */
};

static enum hpx_status append_locked(struct hpx_demo_api *api, struct payment *payment)
{
	char line[LINE_BYTES_MAX];
	int n = snprintf(line, sizeof(line), "pay_%" PRIu64 "\t%.*s\t%" PRIu64 "\t%.*s\t%.*s\n",
			 api->payments + 1, HPX_SPAN_ARG(payment->order), payment->cents,
			 HPX_SPAN_ARG(payment->key), HPX_SPAN_ARG(payment->operation));

	if (n < 0 || (size_t)n >= sizeof(line))
		return HPX_TOO_LARGE;
	HPX_ASSERT(api->ledger_bytes <= LEDGER_BYTES_MAX);
	if (api->ledger_bytes + (size_t)n > LEDGER_BYTES_MAX)
		return HPX_FULL;
	if (write(api->ledger_fd, line, (size_t)n) != n)
		return HPX_IO;
	api->ledger_bytes += (size_t)n;
	payment->number = ++api->payments;
	pthread_cond_broadcast(&api->changed);
	return HPX_OK;
}

static enum hpx_status append(struct hpx_demo_api *api, struct payment *payment)
{
	pthread_mutex_lock(&api->lock);
	enum hpx_status status = append_locked(api, payment);
	pthread_mutex_unlock(&api->lock);
	return status;
}

/* The whole file. */
static enum hpx_status read_ledger(const struct hpx_demo_api *api, struct hpx_buffer *out)
{
	off_t at = 0;

	for (;;) {
		enum hpx_status status = hpx_buffer_reserve(out, 4096);
		if (status != HPX_OK)
			return status;
		ssize_t n = pread(api->ledger_fd, out->ptr + out->len, 4096, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return HPX_IO;
		if (n == 0)
			return HPX_OK;
		out->len += (size_t)n;
		at += n;
	}
}

static bool parse_line(struct hpx_span line, struct payment *ret_payment)
{
	struct payment payment = { 0 };
	struct hpx_span prefix = HPX_SPAN("pay_");
	struct hpx_span id, cents;

	if (!hpx_span_split(&line, '\t', &id) ||
	    !hpx_span_split(&line, '\t', &payment.order) ||
	    !hpx_span_split(&line, '\t', &cents) ||
	    !hpx_span_split(&line, '\t', &payment.key) ||
	    !hpx_span_split(&line, '\t', &payment.operation) || line.ptr != NULL)
		return false;
	if (!hpx_span_starts(id, prefix) ||
	    !hpx_span_u64(hpx_span_skip(id, prefix.len), UINT64_MAX, &payment.number) ||
	    !hpx_span_u64(cents, UINT64_MAX, &payment.cents))
		return false;
	*ret_payment = payment;
	return true;
}

/* Takes the next payment off `*text`; false at its end. */
static bool next_payment(struct hpx_span *text, struct payment *ret_payment)
{
	struct hpx_span line;

	while (hpx_span_split(text, '\n', &line))
		if (parse_line(line, ret_payment))
			return true;
	return false;
}

enum hpx_status hpx_demo_api_sum(const struct hpx_demo_api *api, const char *order,
				 struct hpx_demo_sum *ret_sum)
{
	struct hpx_demo_sum sum = { 0, 0 };
	struct hpx_buffer text;
	struct payment payment;

	hpx_buffer_init(&text, LEDGER_BYTES_MAX + 4096);
	enum hpx_status status = read_ledger(api, &text);
	struct hpx_span rest = hpx_buffer_span(&text);
	while (status == HPX_OK && next_payment(&rest, &payment)) {
		if (!hpx_span_eq(payment.order, hpx_span_of(order)))
			continue;
		sum.payments++;
		sum.cents += payment.cents;
	}
	hpx_buffer_done(&text);
	if (status == HPX_OK)
		*ret_sum = sum;
	return status;
}

enum hpx_status hpx_demo_api_wait(struct hpx_demo_api *api, uint64_t before, int64_t timeout_ms)
{
	int64_t until_ms = hpx_clock_boot_ms() + timeout_ms;

	pthread_mutex_lock(&api->lock);
	HPX_ASSERT(api->payments >= before);
	while (api->payments == before && hpx_clock_boot_ms() < until_ms)
		hpx_cond_wait_until(&api->changed, &api->lock, until_ms);
	bool paid = api->payments > before;
	pthread_mutex_unlock(&api->lock);
	return paid ? HPX_OK : HPX_TIMEOUT;
}

uint64_t hpx_demo_api_payments(struct hpx_demo_api *api)
{
	pthread_mutex_lock(&api->lock);
	uint64_t payments = api->payments;
	pthread_mutex_unlock(&api->lock);
	return payments;
}

/* ---- answers ---- */

/* Begins an answer anew. */
static void respond(struct hpx_demo_answer *answer, unsigned status, const char *media_type)
{
	answer->status = status;
	answer->body.len = 0;
	answer->fields.len = 0;
	/* The answer's buffers have room for any field and sentence of this file. */
	hpx_write_field_text(&answer->fields, "Content-Type", media_type);
}

static void refuse(struct hpx_demo_answer *answer, unsigned status, const char *why)
{
	respond(answer, status, "application/json");
	hpx_buffer_printf(&answer->body, "{\"error\":\"%s\"}\n", why);
}

static void show_payment(const struct payment *payment, unsigned status,
			 struct hpx_demo_answer *answer)
{
	respond(answer, status, "application/json");
	if (hpx_buffer_printf(&answer->body,
			      "{\"id\":\"pay_%" PRIu64 "\",\"order\":\"%.*s\",\"amount\":%" PRIu64
			      ",\"currency\":\"" CURRENCY "\",\"status\":\"succeeded\"}\n",
			      payment->number, HPX_SPAN_ARG(payment->order),
			      payment->cents) != HPX_OK)
		refuse(answer, 500, "the payment does not fit");
}

/* ---- POST /payments ---- */

/* Text that can stand in a line of the ledger, and in JSON without escapes. */
static bool is_plain(struct hpx_span text, size_t max)
{
	if (text.len == 0 || text.len > max)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] <= ' ' || text.ptr[i] > '~' || text.ptr[i] == '"' ||
		    text.ptr[i] == '\\')
			return false;
	return true;
}

/* A whole number of cents; 499.0 is one, as it is to the fingerprint. */
static bool parse_amount(json_t *amount, uint64_t *ret_cents)
{
	double value = json_number_value(amount);

	if (!json_is_number(amount) || !(value >= 1 && value <= CENTS_MAX) ||
	    (double)(uint64_t)value != value)
		return false;
	*ret_cents = (uint64_t)value;
	return true;
}

/* The amount; the currency and the order's name may be left out. */
static bool parse_order(json_t *root, struct payment *ret_payment)
{
	json_t *order = json_object_get(root, "order");
	json_t *currency = json_object_get(root, "currency");

	if (!parse_amount(json_object_get(root, "amount"), &ret_payment->cents))
		return false;
	if (currency != NULL && (!json_is_string(currency) ||
				 strcmp(json_string_value(currency), CURRENCY) != 0))
		return false;
	ret_payment->order = HPX_SPAN("-");
	if (order == NULL)
		return true;
	if (!json_is_string(order))
		return false;
	ret_payment->order = hpx_span(json_string_value(order), json_string_length(order));
	return is_plain(ret_payment->order, 64);
}

/* A field as the ledger shows it: a key without the quotes of its header. */
static struct hpx_span plain_field(const struct hpx_demo_request *request, struct hpx_span name)
{
	struct hpx_span text = hpx_field_value(&request->head, name);

	if (text.len >= 2 && text.ptr[0] == '"' && text.ptr[text.len - 1] == '"')
		text = hpx_span(text.ptr + 1, text.len - 2);
	return is_plain(text, 255) ? text : HPX_SPAN("-");
}

/* The middle of a payment: the bank is slow, and while the story holds the API, it does
 * not answer at all. */
static void take_time(struct hpx_demo_api *api)
{
	int64_t until_ms = hpx_clock_boot_ms() + HOLD_MAX_MS;

	poll(NULL, 0, BANK_MS);
	pthread_mutex_lock(&api->lock);
	while (api->held && hpx_clock_boot_ms() < until_ms)
		hpx_cond_wait_until(&api->changed, &api->lock, until_ms);
	pthread_mutex_unlock(&api->lock);
}

static void pay(struct hpx_demo_api *api, const struct hpx_demo_request *request,
		struct hpx_demo_answer *answer)
{
	struct payment payment = { .key = plain_field(request, HPX_SPAN("Idempotency-Key")),
				   .operation = plain_field(request, HPX_SPAN("Hapax-Operation")) };
	json_t *root = json_loadb(request->body.len ? request->body.ptr : "", request->body.len,
				  JSON_REJECT_DUPLICATES, NULL);
	char location[48];

	if (root == NULL || !parse_order(root, &payment)) {
		refuse(answer, 400,
		       "send an object with amount (whole cents) and, as you like, currency (EUR) "
		       "and order (a word)");
	} else if (append(api, &payment) != HPX_OK) {
		refuse(answer, 500, "the ledger cannot be written");
	} else {
		show_payment(&payment, 201, answer);
		snprintf(location, sizeof(location), "/payments/pay_%" PRIu64, payment.number);
		hpx_write_field_text(&answer->fields, "Location", location);
		take_time(api);
	}
	json_decref(root);
}

/* ---- GET ---- */

static bool is_wanted(const struct payment *payment, const struct hpx_target *target)
{
	struct hpx_span by_operation = HPX_SPAN("operation=");
	char path[48];

	if (target->query.ptr != NULL)
		return hpx_span_starts(target->query, by_operation) &&
		       hpx_span_eq(hpx_span_skip(target->query, by_operation.len),
				   payment->operation);
	snprintf(path, sizeof(path), "/payments/pay_%" PRIu64, payment->number);
	return hpx_span_eq(target->path, hpx_span_of(path));
}

static void find_payment(struct hpx_demo_api *api, const struct hpx_target *target,
			 struct hpx_demo_answer *answer)
{
	struct payment payment;
	struct hpx_buffer text;

	hpx_buffer_init(&text, LEDGER_BYTES_MAX + 4096);
	refuse(answer, 404, "no such payment");
	if (read_ledger(api, &text) != HPX_OK)
		refuse(answer, 500, "the ledger cannot be read");
	struct hpx_span rest = hpx_buffer_span(&text);
	while (answer->status == 404 && next_payment(&rest, &payment))
		if (is_wanted(&payment, target))
			show_payment(&payment, 200, answer);
	hpx_buffer_done(&text);
}

static void handle(void *user, struct hpx_demo_request *request, struct hpx_demo_answer *answer)
{
	struct hpx_demo_api *api = user;
	bool get = hpx_span_eq(request->head.method, HPX_SPAN("GET"));
	bool post = hpx_span_eq(request->head.method, HPX_SPAN("POST"));
	struct hpx_target target;
	const char *reason;

	if (hpx_target_parse(request->head.method, request->head.target, &request->arena, &target,
			     &reason) != HPX_OK) {
		refuse(answer, 400, "malformed target");
	} else if (post && hpx_span_eq(target.path, HPX_SPAN("/payments"))) {
		pay(api, request, answer);
	} else if (get && hpx_span_eq(target.path, HPX_SPAN("/ledger"))) {
		respond(answer, 200, "text/plain; charset=utf-8");
		if (read_ledger(api, &answer->body) != HPX_OK)
			refuse(answer, 500, "the ledger cannot be read");
	} else if (get && hpx_span_starts(target.path, HPX_SPAN("/payments"))) {
		find_payment(api, &target, answer);
	} else {
		refuse(answer, 404, "try POST /payments or GET /ledger");
	}
}

/* ---- start and stop ---- */

enum hpx_status hpx_demo_api_start(struct hpx_demo_api *api, const char *ledger_path)
{
	int fd = open(ledger_path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0)
		return HPX_IO;
	*api = (struct hpx_demo_api){ .ledger_fd = fd, .server = { .handle = handle, .user = api } };
	pthread_mutex_init(&api->lock, NULL);
	enum hpx_status status = hpx_cond_init(&api->changed);
	if (status == HPX_OK)
		status = hpx_demo_server_start(&api->server, 0);
	if (status != HPX_OK)
		close(fd);
	return status;
}

void hpx_demo_api_hold(struct hpx_demo_api *api, bool held)
{
	pthread_mutex_lock(&api->lock);
	api->held = held;
	pthread_cond_broadcast(&api->changed);
	pthread_mutex_unlock(&api->lock);
}

void hpx_demo_api_stop(struct hpx_demo_api *api)
{
	hpx_demo_api_hold(api, false);
	hpx_demo_server_stop(&api->server);
	close(api->ledger_fd);
	pthread_cond_destroy(&api->changed);
	pthread_mutex_destroy(&api->lock);
}
