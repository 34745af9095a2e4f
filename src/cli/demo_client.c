/* One request per connection, and the loop that every careful client has: no
 * definite answer, then the same key again. */
#include "cli/demo_client.h"

#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/demo_network.h"
#include "http/field.h"
#include "http/write.h"

#define CONNECT_TIMEOUT_MS 1000
#define SEND_TIMEOUT_MS 2000
#define ANSWER_TIMEOUT_MS 15000
#define BACKOFF_MS 100
#define RETRY_AFTER_MAX_S 2
#define REQUEST_MAX 4096

static enum hpx_status print_payment(const struct hpx_demo_order *order, struct hpx_buffer *out)
{
	char body[256], key[128];
	int n = snprintf(body, sizeof(body), "{\"order\":\"%s\",\"amount\":%" PRIu64 ",\"currency\":\"EUR\"}",
			 order->order, order->cents);
	enum hpx_status status = hpx_write_request_line(
		out, HPX_SPAN("POST"), HPX_SPAN("/payments"), (struct hpx_span){ NULL, 0 });

	snprintf(key, sizeof(key), "\"%s\"", order->key);
	if (n < 0 || (size_t)n >= sizeof(body))
		return HPX_TOO_LARGE;
	if (status == HPX_OK)
		status = hpx_write_field_text(out, "Host", "localhost");
	if (status == HPX_OK)
		status = hpx_write_field_text(out, "Idempotency-Key", key);
	if (status == HPX_OK)
		status = hpx_write_field_text(out, "Content-Type", "application/json");
	if (status == HPX_OK && order->lose_answer)
		status = hpx_write_field_text(out, HPX_DEMO_NETWORK_FIELD, HPX_DEMO_LOSE_ANSWER);
	if (status == HPX_OK)
		status = hpx_write_field_u64(out, "Content-Length", (uint64_t)n);
	if (status == HPX_OK)
		status = hpx_write_head_end(out);
	if (status == HPX_OK)
		status = hpx_buffer_text(out, body);
	return status;
}

static enum hpx_status exchange(uint16_t port, struct hpx_span method, struct hpx_span request,
				struct hpx_demo_message *response)
{
	int fd;
	enum hpx_status status = hpx_demo_connect(port, CONNECT_TIMEOUT_MS, &fd);

	if (status != HPX_OK)
		return status;
	status = hpx_demo_send(fd, request, SEND_TIMEOUT_MS);
	if (status == HPX_OK)
		status = hpx_demo_read_response(fd, method, ANSWER_TIMEOUT_MS, response);
	close(fd);
	return status;
}

static void copy_member(json_t *root, const char *name, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(root, name));

	snprintf(out, size, "%s", text ? text : "");
}

static void fill_reply(const struct hpx_demo_message *response, struct hpx_demo_reply *reply)
{
	struct hpx_span operation = hpx_field_value(&response->head, HPX_SPAN("Hapax-Operation"));
	struct hpx_span replayed =
		hpx_field_value(&response->head, HPX_SPAN("Idempotent-Replayed"));
	json_t *root = json_loadb(response->body.len ? response->body.ptr : "",
				  response->body.len, 0, NULL);

	reply->code = response->head.status;
	reply->replayed = hpx_span_eq(replayed, HPX_SPAN("true"));
	snprintf(reply->operation, sizeof(reply->operation), "%.*s", HPX_SPAN_ARG(operation));
	copy_member(root, "id", reply->payment, sizeof(reply->payment));
	copy_member(root, "code", reply->problem, sizeof(reply->problem));
	json_decref(root);
}

/* Also gives how long the answer asks to wait, in seconds. */
static void pay_once(uint16_t port, const struct hpx_demo_order *order,
		     struct hpx_demo_reply *reply, uint64_t *ret_wait_s)
{
	struct hpx_demo_message response;
	struct hpx_buffer request;

	hpx_demo_message_init(&response);
	hpx_buffer_init(&request, REQUEST_MAX);
	reply->tries++;
	reply->status = print_payment(order, &request);
	if (reply->status == HPX_OK)
		reply->status =
			exchange(port, HPX_SPAN("POST"), hpx_buffer_span(&request), &response);
	if (reply->status == HPX_OK) {
		fill_reply(&response, reply);
		if (!hpx_span_u64(hpx_field_value(&response.head, HPX_SPAN("Retry-After")),
				  RETRY_AFTER_MAX_S, ret_wait_s))
			*ret_wait_s = 0;
	}
	hpx_buffer_done(&request);
	hpx_demo_message_done(&response);
}

void hpx_demo_pay(uint16_t port, const struct hpx_demo_order *order,
		  struct hpx_demo_reply *ret_reply)
{
	hpx_demo_pay_until(port, order, 1, ret_reply);
}

static bool is_definite(const struct hpx_demo_reply *reply)
{
	if (reply->status != HPX_OK || reply->code >= 500)
		return false;
	return strcmp(reply->problem, "idempotency_key_in_progress") != 0;
}

void hpx_demo_pay_until(uint16_t port, const struct hpx_demo_order *order, unsigned tries,
			struct hpx_demo_reply *ret_reply)
{
	struct hpx_demo_order again = *order;
	struct hpx_demo_reply reply = { 0 };

	for (;;) {
		uint64_t wait_s = 0;

		pay_once(port, &again, &reply, &wait_s);
		if (is_definite(&reply) || reply.tries == tries)
			break;
		again.lose_answer = false;
		poll(NULL, 0, wait_s > 0 ? (int)wait_s * 1000 : BACKOFF_MS);
	}
	*ret_reply = reply;
}

static void *run_payer(void *arg)
{
	struct hpx_demo_payer *payer = arg;

	hpx_demo_pay_until(payer->port, payer->order, payer->tries, &payer->reply);
	return NULL;
}

enum hpx_status hpx_demo_payer_start(struct hpx_demo_payer *payer)
{
	return pthread_create(&payer->thread, NULL, run_payer, payer) == 0 ? HPX_OK : HPX_NOMEM;
}

void hpx_demo_payer_join(struct hpx_demo_payer *payer)
{
	pthread_join(payer->thread, NULL);
}

/* Threads start within a millisecond of each other and a payment takes a
 * hundred times that, so all of them are under way together. */
enum hpx_status hpx_demo_pay_at_once(struct hpx_demo_payer *payers, unsigned count)
{
	enum hpx_status status = HPX_OK;
	unsigned started = 0;

	for (; started < count && status == HPX_OK; started++)
		status = hpx_demo_payer_start(&payers[started]);
	if (status != HPX_OK)
		started--;
	for (unsigned i = 0; i < started; i++)
		hpx_demo_payer_join(&payers[i]);
	return status;
}

enum hpx_status hpx_demo_get(uint16_t port, const char *path, struct hpx_demo_message *message)
{
	struct hpx_span target = hpx_span_of(path);
	size_t mark = hpx_span_index(target, '?');
	struct hpx_span query = { NULL, 0 };
	struct hpx_buffer request;

	if (mark < target.len)
		query = hpx_span_skip(target, mark + 1);
	hpx_buffer_init(&request, REQUEST_MAX);
	enum hpx_status status = hpx_write_request_line(&request, HPX_SPAN("GET"),
							hpx_span_first(target, mark), query);
	if (status == HPX_OK)
		status = hpx_write_field_text(&request, "Host", "localhost");
	if (status == HPX_OK)
		status = hpx_write_head_end(&request);
	if (status == HPX_OK)
		status = exchange(port, HPX_SPAN("GET"), hpx_buffer_span(&request), message);
	hpx_buffer_done(&request);
	return status;
}
