/* The payments API: one request per connection; the money moves first, the
 * answer takes a little longer, as it does with banks. */
#include "cli/demo_api.h"

#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <time.h>

#include "cli/demo_wire.h"
#include "http/field.h"
#include "http/problem.h"
#include "http/target.h"
#include "http/write.h"

#define READ_TIMEOUT_MS 5000
/* Long enough that a second click arrives while the first is under way. */
#define BANK_MS 120
#define HOLD_MAX_S 20
#define CENTS_MAX 100000000
#define CURRENCY "EUR"

struct answer {
	unsigned status;
	const char *media_type;
	uint64_t created; /* the payment's number: Location; 0: none */
	struct hpx_buffer body;
};

static void refuse(struct answer *answer, unsigned status, const char *why)
{
	answer->status = status;
	answer->body.len = 0;
	/* Room is made for any sentence of this file when the body is set up. */
	hpx_buffer_printf(&answer->body, "{\"error\":\"%s\"}\n", why);
}

static enum hpx_status print_payment(const struct hpx_demo_payment *payment,
				     struct hpx_buffer *out)
{
	return hpx_buffer_printf(out,
				 "{\"id\":\"pay_%" PRIu64 "\",\"order\":\"%.*s\",\"amount\":%" PRIu64
				 ",\"currency\":\"" CURRENCY "\",\"status\":\"succeeded\"}\n",
				 payment->number, HPX_SPAN_ARG(payment->order), payment->cents);
}

/* What may stand in a line of the ledger and in JSON as it is. */
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
static bool parse_order(json_t *root, struct hpx_demo_payment *ret_payment)
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

/* A key is shown in the ledger without the quotes of its header. */
static struct hpx_span plain_or_dash(struct hpx_span text)
{
	if (text.len >= 2 && text.ptr[0] == '"' && text.ptr[text.len - 1] == '"')
		text = hpx_span(text.ptr + 1, text.len - 2);
	return is_plain(text, 255) ? text : HPX_SPAN("-");
}

/* The middle of a payment: the bank is slow, and while the story holds the
 * API, it does not answer at all. */
static void take_time(struct hpx_demo_api *api)
{
	struct timespec until;

	poll(NULL, 0, BANK_MS);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += HOLD_MAX_S;
	pthread_mutex_lock(&api->lock);
	int error = 0;
	while (api->held && error == 0)
		error = pthread_cond_timedwait(&api->released, &api->lock, &until);
	pthread_mutex_unlock(&api->lock);
}

static void pay(struct hpx_demo_api *api, const struct hpx_demo_message *request,
		struct answer *answer)
{
	struct hpx_demo_payment payment = {
		.key = plain_or_dash(hpx_field_value(&request->head, HPX_SPAN("Idempotency-Key"))),
		.operation = plain_or_dash(
			hpx_field_value(&request->head, HPX_SPAN("Hapax-Operation"))),
	};
	json_t *root = json_loadb(request->body.len ? request->body.ptr : "", request->body.len,
				  JSON_REJECT_DUPLICATES, NULL);

	if (root == NULL || !parse_order(root, &payment)) {
		refuse(answer, 400, "send an object with amount (whole cents) and, as you like, currency (EUR) and order (a word)");
	} else if (hpx_demo_ledger_append(&api->ledger, &payment) != HPX_OK ||
		   print_payment(&payment, &answer->body) != HPX_OK) {
		refuse(answer, 500, "the ledger cannot be written");
	} else {
		answer->status = 201;
		answer->created = payment.number;
		take_time(api);
	}
	json_decref(root);
}

static bool is_wanted(const struct hpx_demo_payment *payment, const struct hpx_target *target)
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

static void look(struct hpx_demo_api *api, const struct hpx_target *target,
		 struct answer *answer)
{
	struct hpx_demo_payment payment;
	struct hpx_buffer text;

	hpx_buffer_init(&text, HPX_DEMO_LEDGER_BYTES_MAX + 4096);
	refuse(answer, 404, "no such payment");
	if (hpx_demo_ledger_read(&api->ledger, &text) != HPX_OK)
		refuse(answer, 500, "the ledger cannot be read");
	struct hpx_span rest = hpx_buffer_span(&text);
	while (answer->status == 404 && hpx_demo_ledger_next(&rest, &payment)) {
		if (!is_wanted(&payment, target))
			continue;
		answer->body.len = 0;
		if (print_payment(&payment, &answer->body) == HPX_OK)
			answer->status = 200;
		else
			refuse(answer, 500, "the payment does not fit");
	}
	hpx_buffer_done(&text);
}

static void route(struct hpx_demo_api *api, const struct hpx_demo_message *request,
		  const struct hpx_target *target, struct answer *answer)
{
	bool get = hpx_span_eq(request->head.method, HPX_SPAN("GET"));
	bool post = hpx_span_eq(request->head.method, HPX_SPAN("POST"));

	if (post && hpx_span_eq(target->path, HPX_SPAN("/payments"))) {
		pay(api, request, answer);
	} else if (get && hpx_span_eq(target->path, HPX_SPAN("/ledger"))) {
		answer->status = 200;
		answer->media_type = "text/plain; charset=utf-8";
		if (hpx_demo_ledger_read(&api->ledger, &answer->body) != HPX_OK)
			refuse(answer, 500, "the ledger cannot be read");
	} else if (get && hpx_span_starts(target->path, HPX_SPAN("/payments"))) {
		look(api, target, answer);
	} else {
		refuse(answer, 404, "try POST /payments or GET /ledger");
	}
}

static enum hpx_status print_answer(const struct answer *answer, struct hpx_buffer *out)
{
	char location[48];
	enum hpx_status status = hpx_write_status_line(
		out, answer->status, hpx_span_of(hpx_reason_phrase(answer->status)));

	if (status == HPX_OK)
		status = hpx_write_field_text(out, "Content-Type", answer->media_type);
	if (status == HPX_OK && answer->created != 0) {
		snprintf(location, sizeof(location), "/payments/pay_%" PRIu64, answer->created);
		status = hpx_write_field_text(out, "Location", location);
	}
	if (status == HPX_OK)
		status = hpx_write_field_u64(out, "Content-Length", answer->body.len);
	if (status == HPX_OK)
		status = hpx_write_field_text(out, "Connection", "close");
	if (status == HPX_OK)
		status = hpx_write_head_end(out);
	if (status == HPX_OK)
		status = hpx_buffer_append(out, hpx_buffer_span(&answer->body));
	return status;
}

static void serve(void *user, int fd)
{
	struct hpx_demo_api *api = user;
	struct answer answer = { .media_type = "application/json" };
	struct hpx_demo_message request;
	struct hpx_target target;
	struct hpx_buffer out;
	const char *reason;

	hpx_demo_message_init(&request);
	hpx_buffer_init(&answer.body, HPX_DEMO_LEDGER_BYTES_MAX + 4096);
	hpx_buffer_init(&out, HPX_DEMO_LEDGER_BYTES_MAX + 8192);
	if (hpx_demo_read_request(fd, READ_TIMEOUT_MS, &request) == HPX_OK) {
		if (hpx_target_parse(request.head.method, request.head.target, &request.arena,
				     &target, &reason) == HPX_OK)
			route(api, &request, &target, &answer);
		else
			refuse(&answer, 400, "malformed target");
		/* A caller that has gone does not get its answer: that is the
		 * very thing the demo is about. */
		if (print_answer(&answer, &out) == HPX_OK)
			(void)hpx_demo_send(fd, hpx_buffer_span(&out), READ_TIMEOUT_MS);
	}
	hpx_buffer_done(&out);
	hpx_buffer_done(&answer.body);
	hpx_demo_message_done(&request);
}

enum hpx_status hpx_demo_api_start(struct hpx_demo_api *api, uint16_t port,
				   const char *ledger_path)
{
	enum hpx_status status = hpx_demo_ledger_open(&api->ledger, ledger_path);

	if (status != HPX_OK)
		return status;
	api->held = false;
	pthread_mutex_init(&api->lock, NULL);
	pthread_cond_init(&api->released, NULL);
	status = hpx_demo_server_start(&api->server, port, serve, api);
	if (status != HPX_OK)
		hpx_demo_ledger_close(&api->ledger);
	return status;
}

void hpx_demo_api_hold(struct hpx_demo_api *api, bool held)
{
	pthread_mutex_lock(&api->lock);
	api->held = held;
	pthread_cond_broadcast(&api->released);
	pthread_mutex_unlock(&api->lock);
}

void hpx_demo_api_stop(struct hpx_demo_api *api)
{
	hpx_demo_api_hold(api, false);
	hpx_demo_server_stop(&api->server);
	hpx_demo_ledger_close(&api->ledger);
}
