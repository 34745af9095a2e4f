/* The story: five accidents, each told, made to happen without and with hapax, and judged
 * by the ledgers. What the client believes is shown; what the ledger holds decides. */
#include <stdio.h>

#include "base/status.h"
#include "cli/demo.h"
#include "http/write.h"

#define STORM 50
#define SAW_SIZE 160
/* Until the API has made a payment. */
#define WAIT_MS 10000

struct step {
	const char *title;
	const char *text;
	struct hpx_demo_order order;
	/* Makes the accident happen on one side and writes what the client saw. True: the
	 * client was told the right thing. */
	bool (*act)(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
		    const struct step *step, char saw[SAW_SIZE]);
	/* The rest of the step, after both sides; may be NULL. */
	bool (*settle)(struct hpx_demo_stage *stage, const struct hpx_demo_report *report,
		       const struct step *step);
};

static void print_reply(const struct hpx_demo_reply *reply, char *out, size_t size)
{
	if (!reply->answered)
		snprintf(out, size, "no answer");
	else if (reply->problem[0] != '\0')
		snprintf(out, size, "%u %s", reply->code, reply->problem);
	else
		snprintf(out, size, "%u %s%s", reply->code, reply->payment,
			 reply->replayed ? " (replayed)" : "");
}

static bool is_paid(const struct hpx_demo_reply *reply)
{
	return reply->answered && reply->code == 201 && reply->payment[0] != '\0';
}

static void set_payers(struct hpx_demo_payer *payers, unsigned count,
		       struct hapax_client *client, const struct hpx_demo_side *side,
		       const struct hpx_demo_order *order)
{
	for (unsigned i = 0; i < count; i++)
		payers[i] = (struct hpx_demo_payer){ .client = client,
						     .port = side->network.server.port,
						     .order = order };
}

/* Threads start within a millisecond of each other and a payment takes a hundred times
 * that, so all of them are under way together. */
static bool pay_at_once(struct hpx_demo_payer *payers, unsigned count)
{
	unsigned started = 0;

	while (started < count && hpx_demo_payer_start(&payers[started]) == HPX_OK)
		started++;
	for (unsigned i = 0; i < started; i++)
		hpx_demo_payer_join(&payers[i]);
	return started == count;
}

/* How many payers were told of the same payment as the first. */
static unsigned count_alike(const struct hpx_demo_payer *payers, unsigned count)
{
	unsigned alike = 0;

	for (unsigned i = 0; i < count; i++)
		if (is_paid(&payers[i].reply) &&
		    strcmp(payers[i].reply.payment, payers[0].reply.payment) == 0)
			alike++;
	return alike;
}

static bool double_click(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
			 const struct step *step, char saw[SAW_SIZE])
{
	struct hpx_demo_payer clicks[2];
	char first[64], second[64];

	set_payers(clicks, 2, stage->client, side, &step->order);
	if (!pay_at_once(clicks, 2))
		return false;
	print_reply(&clicks[0].reply, first, sizeof(first));
	print_reply(&clicks[1].reply, second, sizeof(second));
	snprintf(saw, SAW_SIZE, "%s, %s", first, second);
	return !side->guarded || count_alike(clicks, 2) == 2;
}

static bool lost_answer(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
			const struct step *step, char saw[SAW_SIZE])
{
	struct hpx_demo_order again = step->order;
	struct hpx_demo_reply lost, reply;
	char first[64], second[64];

	hpx_demo_pay(stage->one_shot, side->network.server.port, &step->order, &lost);
	again.lose_answer = false;
	hpx_demo_pay(stage->client, side->network.server.port, &again, &reply);
	print_reply(&lost, first, sizeof(first));
	print_reply(&reply, second, sizeof(second));
	snprintf(saw, SAW_SIZE, "%s; retry: %s", first, second);
	return !lost.answered && is_paid(&reply) && reply.replayed == side->guarded;
}

static bool retry_storm(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
			const struct step *step, char saw[SAW_SIZE])
{
	struct hpx_demo_payer payers[STORM];
	unsigned paid = 0;

	set_payers(payers, STORM, stage->client, side, &step->order);
	if (!pay_at_once(payers, STORM))
		return false;
	for (unsigned i = 0; i < STORM; i++)
		paid += is_paid(&payers[i].reply);
	unsigned alike = count_alike(payers, STORM);
	if (alike == STORM)
		snprintf(saw, SAW_SIZE, "%u times 201 %s", paid,
			 payers[0].reply.payment);
	else
		snprintf(saw, SAW_SIZE, "%u times 201, for different payments", paid);
	return paid == STORM && (alike == STORM) == side->guarded;
}

static bool changed_amount(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
			   const struct step *step, char saw[SAW_SIZE])
{
	struct hpx_demo_order changed = step->order;
	struct hpx_demo_reply reply, refused;
	char first[64], second[64];

	changed.cents *= 10;
	hpx_demo_pay(stage->client, side->network.server.port, &step->order, &reply);
	hpx_demo_pay(stage->client, side->network.server.port, &changed, &refused);
	print_reply(&reply, first, sizeof(first));
	print_reply(&refused, second, sizeof(second));
	snprintf(saw, SAW_SIZE, "%s, then %s", first, second);
	return is_paid(&reply) &&
	       (side->guarded ? refused.code == 422 : is_paid(&refused));
}

/* ---- the crash in the middle of a payment ----
 * hapax does not guess how it ended. A person looks into the API's own books and settles
 * the outcome. */

/* The proxy between the client and the API dies. */
static void crash(struct hpx_demo_stage *stage, struct hpx_demo_side *side)
{
	if (side->guarded)
		hpx_demo_hapax_kill(stage);
	else
		hpx_demo_server_cut(&side->network.server);
}

static enum hpx_status repair(struct hpx_demo_stage *stage, struct hpx_demo_side *side)
{
	return side->guarded ? hpx_demo_hapax_start(stage) : HPX_OK;
}

/* The payment is made, its answer is held back, and then the crash comes: in the middle,
 * however fast or slow the machine is. */
static enum hpx_status pay_and_crash(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
				     struct hpx_demo_payer *payer)
{
	uint64_t before = hpx_demo_api_payments(&side->api);

	hpx_demo_api_hold(&side->api, true);
	enum hpx_status status = hpx_demo_payer_start(payer);
	if (status == HPX_OK) {
		status = hpx_demo_api_wait(&side->api, before, WAIT_MS);
		crash(stage, side);
		hpx_demo_payer_join(payer);
	}
	hpx_demo_api_hold(&side->api, false);
	return status;
}

static bool crash_in_the_middle(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
				const struct step *step, char saw[SAW_SIZE])
{
	struct hpx_demo_payer payer;
	struct hpx_demo_reply reply;
	char first[64], second[64];

	set_payers(&payer, 1, stage->one_shot, side, &step->order);
	if (pay_and_crash(stage, side, &payer) != HPX_OK || repair(stage, side) != HPX_OK)
		return false;
	hpx_demo_pay(stage->client, side->network.server.port, &step->order, &reply);
	print_reply(&payer.reply, first, sizeof(first));
	print_reply(&reply, second, sizeof(second));
	snprintf(saw, SAW_SIZE, "%s; retry: %s", first, second);
	if (payer.reply.answered)
		return false;
	return side->guarded ? strcmp(reply.problem, "idempotency_outcome_unknown") == 0 :
			       reply.code == 201;
}

/* Runs `hapax keys …` on the demo's store and shows the command and its output. */
static bool show_keys(struct hpx_demo_stage *stage, const struct hpx_demo_report *report,
		      const char *shown, const char *const *more, size_t count)
{
	const char *arguments[16] = { "keys", more[0], "--store", stage->store_url };
	struct hpx_buffer out;

	HPX_ASSERT(count >= 1 && 3 + count < sizeof(arguments) / sizeof(arguments[0]));
	for (size_t i = 1; i < count; i++)
		arguments[3 + i] = more[i];
	hpx_buffer_init(&out, 16384);
	hpx_demo_report_command(report, shown);
	int code = hpx_demo_run(arguments, &out);
	hpx_demo_report_output(hpx_buffer_span(&out));
	hpx_buffer_done(&out);
	return code == 0;
}

/* The API's answer, as `curl -i` would have written it. */
static bool save_answer(const struct hpx_egress_request *answer, const char *path)
{
	FILE *file = fopen(path, "wxe");

	if (file == NULL)
		return false;
	fprintf(file, "HTTP/1.1 %u %s\r\n%.*s\r\n%.*s", answer->status,
		hpx_reason_phrase(answer->status),
		HPX_SPAN_ARG(hpx_buffer_span(&answer->headers_in)),
		HPX_SPAN_ARG(hpx_buffer_span(&answer->body_in)));
	return fclose(file) == 0;
}

static bool ask_api(struct hpx_demo_stage *stage, const char *operation, const char *path)
{
	struct hpx_egress_request answer;
	char target[256];

	snprintf(target, sizeof(target), "/payments?operation=%s", operation);
	hpx_demo_get(stage->with.api.server.port, target, &answer);
	bool found = answer.end == HPX_EGRESS_ANSWERED && answer.status == 200 &&
		     save_answer(&answer, path);
	hpx_egress_request_done(&answer);
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

static bool settle_crash(struct hpx_demo_stage *stage, const struct hpx_demo_report *report,
			 const struct step *step)
{
	const char *const list[] = { "ls", "--state", "unknown" };
	struct hpx_demo_reply reply;
	char answer_path[PATH_MAX], text[128];

	snprintf(answer_path, sizeof(answer_path), "%s/answer.http", stage->folder);
	hpx_demo_report_text("Only the API can know what became of it, so hapax sends nothing again,\n"
			     "and says so. A person finds the payment on the list");
	bool right = show_keys(stage, report, "hapax keys ls --state unknown", list, 3);

	hpx_demo_pay(stage->one_shot, stage->with.network.server.port, &step->order, &reply);
	hpx_demo_report_text("and asks the API, which got the reference with the payment:");
	hpx_demo_report_command(report, "curl -i \"$API/payments?operation=$REFERENCE\" "
					"> answer.http");
	right = right && ask_api(stage, reply.operation, answer_path) &&
		resolve(stage, report, reply.operation, answer_path);

	hpx_demo_pay(stage->client, stage->with.network.server.port, &step->order, &reply);
	print_reply(&reply, text, sizeof(text));
	hpx_demo_report_text("From now on every retry gets the settled answer:");
	struct hpx_demo_sum sum = { 0, 0 };
	if (hpx_demo_api_sum(&stage->with.api, step->order.order, &sum) != HPX_OK)
		return false;
	hpx_demo_report_side(report, stage->with.name, text,
			     &(struct hpx_demo_sum){ 1, step->order.cents }, &sum);
	return right && reply.code == 200 && reply.replayed && reply.payment[0] != '\0';
}

/* ---- the steps ---- */

static const struct step steps[] = {
	{ .title = "A double click",
	  .text = "Two clicks on \"pay 20.00\": the same POST /payments twice at once,\n"
		  "with one Idempotency-Key.",
	  .order = { .key = "click-1", .order = "double-click", .cents = 2000 },
	  .act = double_click },
	{ .title = "A lost answer",
	  .text = "35.00 are paid, but the network loses the answer. The client cannot\n"
		  "know, so it sends the same request again.",
	  .order = { .key = "lost-1", .order = "lost-answer", .cents = 3500, .lose_answer = true },
	  .act = lost_answer },
	{ .title = "A retry storm",
	  .text = "A client in panic sends one payment of 12.50 fifty times at once.",
	  .order = { .key = "storm-1", .order = "retry-storm", .cents = 1250 },
	  .act = retry_storm },
	{ .title = "A changed amount",
	  .text = "A bug: 40.00 are paid, then 400.00 under the same key.",
	  .order = { .key = "changed-1", .order = "changed-amount", .cents = 4000 },
	  .act = changed_amount },
	{ .title = "A crash in the middle",
	  .text = "99.00 are being paid when the proxy between client and API dies (with\n"
		  "hapax, that is hapax itself: kill -9). It is started again, and the\n"
		  "client retries.",
	  .order = { .key = "crash-1", .order = "crash", .cents = 9900 },
	  .act = crash_in_the_middle,
	  .settle = settle_crash },
};

/* Plays one side; true where the client was told the right thing. */
static bool play_side(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
		      const struct step *step, const struct hpx_demo_report *report,
		      struct hpx_demo_sum *ret_sum)
{
	struct hpx_demo_sum intended = { 1, step->order.cents };
	char saw[SAW_SIZE] = "nothing: the step could not be played";
	bool right = step->act(stage, side, step, saw);

	if (hpx_demo_api_sum(&side->api, step->order.order, ret_sum) != HPX_OK) {
		hpx_demo_report_trouble(report, "the ledger cannot be read");
		return false;
	}
	hpx_demo_report_side(report, side->name, saw, &intended, ret_sum);
	if (!right)
		hpx_demo_report_trouble(report, "that is not what should have been answered");
	return right;
}

/* A step is right where the ledger has one payment with hapax, and several without it:
 * otherwise the accident did not happen and the step shows nothing. */
static void play(struct hpx_demo_stage *stage, const struct step *step,
		 struct hpx_demo_report *report)
{
	struct hpx_demo_result *result = &report->results[report->count++];
	bool right = true;

	HPX_ASSERT(report->count <= HPX_DEMO_STEPS_MAX);
	*result = (struct hpx_demo_result){ .title = step->title,
					    .intended = { 1, step->order.cents } };
	hpx_demo_report_title(report, report->count, step->title);
	hpx_demo_report_text(step->text);
	right &= play_side(stage, &stage->without, step, report, &result->without);
	right &= play_side(stage, &stage->with, step, report, &result->with);
	if (step->settle != NULL)
		right &= step->settle(stage, report, step);
	result->right = right && result->without.payments > 1 && result->with.payments == 1 &&
			result->with.cents == step->order.cents;
}

void hpx_demo_story(struct hpx_demo_stage *stage, struct hpx_demo_report *report)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		play(stage, &steps[i], report);
}
