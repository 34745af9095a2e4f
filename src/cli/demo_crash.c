/* The crash in the middle of a payment, and how its outcome is settled: hapax
 * does not guess. A person looks into the API's own books and says so. */
#include "cli/demo_story.h"

#include <stdio.h>

#define TRIES 5
#define WAIT_MS 10000

/* What stands between the client and the API dies. */
static void crash(struct hpx_demo_stage *stage, struct hpx_demo_side *side)
{
	if (side->guarded)
		hpx_demo_child_kill(&stage->hapax);
	else
		hpx_demo_network_cut(&side->network);
}

static enum hpx_status repair(struct hpx_demo_stage *stage, struct hpx_demo_side *side)
{
	return side->guarded ? hpx_demo_child_start(&stage->hapax) : HPX_OK;
}

/* The payment is made, its answer is held back, and then the crash: in the
 * middle, however fast or slow the machine is. */
static enum hpx_status pay_and_crash(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
				     struct hpx_demo_payer *payer)
{
	uint64_t before = hpx_demo_ledger_count(&side->api.ledger);

	hpx_demo_api_hold(&side->api, true);
	enum hpx_status status = hpx_demo_payer_start(payer);
	if (status == HPX_OK) {
		status = hpx_demo_ledger_wait(&side->api.ledger, before + 1, WAIT_MS);
		crash(stage, side);
		hpx_demo_payer_join(payer);
	}
	hpx_demo_api_hold(&side->api, false);
	return status;
}

bool hpx_demo_crash(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
		    const struct hpx_demo_step *step, char saw[HPX_DEMO_SAW_SIZE])
{
	struct hpx_demo_payer payer = { .port = side->network.server.port,
					.order = &step->order,
					.tries = 1 };
	struct hpx_demo_reply reply;
	char first[64], second[64];

	if (pay_and_crash(stage, side, &payer) != HPX_OK || repair(stage, side) != HPX_OK)
		return false;
	hpx_demo_pay_until(side->network.server.port, &step->order, TRIES, &reply);
	hpx_demo_reply_print(&payer.reply, first, sizeof(first));
	hpx_demo_reply_print(&reply, second, sizeof(second));
	snprintf(saw, HPX_DEMO_SAW_SIZE, "%s; retry: %s", first, second);
	if (payer.reply.status == HPX_OK)
		return false;
	return side->guarded ? strcmp(reply.problem, "idempotency_outcome_unknown") == 0 : reply.code == 201;
}

/* Runs `hapax keys …` on the demo's store and shows both. */
static bool show_keys(struct hpx_demo_stage *stage, const struct hpx_demo_report *report,
		      const char *shown, const char *const *more, size_t count)
{
	const char *arguments[16] = { "keys", more[0], "--store", stage->store_url };
	struct hpx_buffer out;

	for (size_t i = 1; i < count; i++)
		arguments[3 + i] = more[i];
	hpx_buffer_init(&out, 16384);
	hpx_demo_report_command(report, shown);
	int code = hpx_demo_run(arguments, &out);
	hpx_demo_report_output(hpx_buffer_span(&out));
	hpx_buffer_done(&out);
	return code == 0;
}

/* The API's own word, as `curl -i` would have written it. */
static bool save_answer(const struct hpx_demo_message *answer, const char *path)
{
	size_t head = 0;
	struct hpx_span bytes = hpx_buffer_span(&answer->bytes);
	FILE *file = fopen(path, "wxe");

	if (file == NULL)
		return false;
	while (head + 4 <= bytes.len && memcmp(bytes.ptr + head, "\r\n\r\n", 4) != 0)
		head++;
	fwrite(bytes.ptr, 1, head + 4, file);
	fwrite(answer->body.ptr, 1, answer->body.len, file);
	return fclose(file) == 0;
}

static bool ask_api(struct hpx_demo_stage *stage, const char *operation, const char *path)
{
	struct hpx_demo_message answer;
	char target[256];

	snprintf(target, sizeof(target), "/payments?operation=%s", operation);
	hpx_demo_message_init(&answer);
	bool found = hpx_demo_get(stage->with.api.server.port, target, &answer) == HPX_OK &&
		     answer.head.status == 200 && save_answer(&answer, path);
	hpx_demo_message_done(&answer);
	return found;
}

static bool resolve(struct hpx_demo_stage *stage, const struct hpx_demo_report *report,
		    const char *operation, const char *answer_path)
{
	const char *const arguments[] = { "resolve", operation, "--applied", "--response",
					  answer_path, "--reason", "the ledger has it" };
	char shown[256];

	snprintf(shown, sizeof(shown),
		 "hapax keys resolve %.12s --applied \\\n"
		 "         --response answer.http --reason \"the ledger has it\"",
		 operation);
	return show_keys(stage, report, shown, arguments, 7);
}

bool hpx_demo_crash_settle(struct hpx_demo_stage *stage, const struct hpx_demo_report *report,
			   const struct hpx_demo_step *step)
{
	const char *const list[] = { "ls", "--state", "unknown" };
	struct hpx_demo_reply reply;
	char answer_path[PATH_MAX], text[128];

	snprintf(answer_path, sizeof(answer_path), "%s/answer.http", stage->folder);
	hpx_demo_report_tell("Nobody but the API can know what became of it, so hapax sends\n"
			     "nothing again and says so. A person finds it on the list:");
	bool right = show_keys(stage, report, "hapax keys ls --state unknown", list, 3);

	hpx_demo_pay(stage->with.network.server.port, &step->order, &reply);
	hpx_demo_report_tell("and asks the API, which was given the reference with the payment:");
	hpx_demo_report_command(report, "curl -i \"$API/payments?operation=$REFERENCE\" "
					"> answer.http");
	right = right && ask_api(stage, reply.operation, answer_path) &&
		resolve(stage, report, reply.operation, answer_path);

	hpx_demo_pay_until(stage->with.network.server.port, &step->order, TRIES, &reply);
	hpx_demo_reply_print(&reply, text, sizeof(text));
	hpx_demo_report_tell("From now on every retry gets the settled answer:");
	struct hpx_demo_sum sum = { 0, 0 };
	if (hpx_demo_ledger_sum(&stage->with.api.ledger, hpx_span_of(step->order.order), &sum) !=
	    HPX_OK)
		return false;
	hpx_demo_report_side(report, stage->with.name, text,
			     &(struct hpx_demo_sum){ 1, step->order.cents }, &sum);
	return right && reply.code == 200 && reply.replayed && reply.payment[0] != '\0';
}
