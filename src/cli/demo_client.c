/* The demo's client: payments by libhapax-client. The library sends a payment again with
 * the same key until its outcome is definite; with one attempt only, the story shows what
 * a lost answer looks like. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "base/status.h"
#include "cli/demo.h"

#define CONNECT_TIMEOUT_MS 1000
#define ANSWER_TIMEOUT_MS 15000
#define BACKOFF_MS 100
/* Longer than hapax asks to wait while a request is in progress, shorter than where an
 * outcome is unknown: the client then gives up at once, and the story goes on. */
#define BUDGET_MS 15000

enum hpx_status hpx_demo_client_open(unsigned attempts, struct hapax_client **ret_client)
{
	const struct hapax_client_options options = {
		.size = sizeof(options),
		.budget_ms = BUDGET_MS,
		.attempts_max = attempts,
		.backoff_ms = BACKOFF_MS,
		.backoff_max_ms = BACKOFF_MS,
		.connect_timeout_ms = CONNECT_TIMEOUT_MS,
		.timeout_ms = ANSWER_TIMEOUT_MS,
	};

	return hapax_client_open(&options, ret_client, NULL) == HAPAX_OK ? HPX_OK : HPX_UNAVAILABLE;
}

static enum hapax_result fill_call(struct hapax_call *call, const struct hpx_demo_order *order)
{
	char body[256];
	int n = snprintf(body, sizeof(body),
			 "{\"order\":\"%s\",\"amount\":%" PRIu64 ",\"currency\":\"EUR\"}",
			 order->order, order->cents);

	/* Orders are the story's own. */
	HPX_ASSERT(n > 0 && (size_t)n < sizeof(body));
	enum hapax_result result = hapax_call_key(call, order->key, NULL);
	if (result == HAPAX_OK)
		result = hapax_call_header(call, "Content-Type", "application/json", NULL);
	if (result == HAPAX_OK && order->lose_answer)
		result = hapax_call_header(call, HPX_DEMO_NETWORK_FIELD, HPX_DEMO_LOSE_ANSWER, NULL);
	if (result == HAPAX_OK)
		result = hapax_call_body(call, body, (size_t)n, NULL);
	return result;
}

/* NULL is "". */
static void copy_text(const char *text, char *out, size_t size)
{
	snprintf(out, size, "%s", text != NULL ? text : "");
}

static void read_reply(const struct hapax_call *call, struct hpx_demo_reply *reply)
{
	const struct hapax_outcome *outcome = hapax_call_outcome(call);
	const char *replayed = hapax_call_answer_header(call, "Idempotent-Replayed");
	json_t *root = json_loadb(outcome->body, outcome->body_len, 0, NULL);

	reply->answered = outcome->status != 0;
	reply->code = outcome->status;
	reply->replayed = replayed != NULL && strcmp(replayed, "true") == 0;
	copy_text(hapax_call_answer_header(call, "Hapax-Operation"), reply->operation,
		  sizeof(reply->operation));
	copy_text(json_string_value(json_object_get(root, "id")), reply->payment,
		  sizeof(reply->payment));
	copy_text(json_string_value(json_object_get(root, "code")), reply->problem,
		  sizeof(reply->problem));
	json_decref(root);
}

void hpx_demo_pay(struct hapax_client *client, uint16_t port, const struct hpx_demo_order *order,
		  struct hpx_demo_reply *ret_reply)
{
	struct hpx_demo_reply reply = { .answered = false };
	struct hapax_call *call = NULL;
	char url[64];

	snprintf(url, sizeof(url), "http://127.0.0.1:%u/payments", port);
	if (hapax_call_new(client, "POST", url, &call, NULL) == HAPAX_OK &&
	    fill_call(call, order) == HAPAX_OK && hapax_call_send(call, NULL) == HAPAX_OK)
		read_reply(call, &reply);
	hapax_call_free(call);
	*ret_reply = reply;
}

static void *run_payer(void *arg)
{
	struct hpx_demo_payer *payer = arg;

	hpx_demo_pay(payer->client, payer->port, payer->order, &payer->reply);
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
