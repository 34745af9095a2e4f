/* The steps of the story as a table, and the loop that plays it. What the
 * client believes is shown; what the ledger holds decides. */
#include "cli/demo_story.h"

#include <stdio.h>

#define STORM 50
#define TRIES 5

void hpx_demo_reply_print(const struct hpx_demo_reply *reply, char *out, size_t size)
{
	if (reply->status != HPX_OK)
		snprintf(out, size, "no answer");
	else if (reply->problem[0] != '\0')
		snprintf(out, size, "%u %s", reply->code, reply->problem);
	else
		snprintf(out, size, "%u %s%s", reply->code, reply->payment,
			 reply->replayed ? " (replayed)" : "");
}

static bool is_paid(const struct hpx_demo_reply *reply)
{
	return reply->status == HPX_OK && reply->code == 201 && reply->payment[0] != '\0';
}

static void set_payers(struct hpx_demo_payer *payers, unsigned count, uint16_t port,
		       const struct hpx_demo_order *order)
{
	for (unsigned i = 0; i < count; i++)
		payers[i] = (struct hpx_demo_payer){ .port = port, .order = order, .tries = TRIES };
}

/* How many of them were told of the same payment as the first. */
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
			 const struct hpx_demo_step *step, char saw[HPX_DEMO_SAW_SIZE])
{
	struct hpx_demo_payer clicks[2];
	char first[64], second[64];

	(void)stage;
	set_payers(clicks, 2, side->network.server.port, &step->order);
	if (hpx_demo_pay_at_once(clicks, 2) != HPX_OK)
		return false;
	hpx_demo_reply_print(&clicks[0].reply, first, sizeof(first));
	hpx_demo_reply_print(&clicks[1].reply, second, sizeof(second));
	snprintf(saw, HPX_DEMO_SAW_SIZE, "%s, %s", first, second);
	return !side->guarded || count_alike(clicks, 2) == 2;
}

static bool lost_answer(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
			const struct hpx_demo_step *step, char saw[HPX_DEMO_SAW_SIZE])
{
	struct hpx_demo_order again = step->order;
	struct hpx_demo_reply lost, reply;
	char first[64], second[64];

	(void)stage;
	hpx_demo_pay(side->network.server.port, &step->order, &lost);
	again.lose_answer = false;
	hpx_demo_pay_until(side->network.server.port, &again, TRIES, &reply);
	hpx_demo_reply_print(&lost, first, sizeof(first));
	hpx_demo_reply_print(&reply, second, sizeof(second));
	snprintf(saw, HPX_DEMO_SAW_SIZE, "%s; retry: %s", first, second);
	return lost.status != HPX_OK && is_paid(&reply) && reply.replayed == side->guarded;
}

static bool retry_storm(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
			const struct hpx_demo_step *step, char saw[HPX_DEMO_SAW_SIZE])
{
	struct hpx_demo_payer payers[STORM];
	unsigned paid = 0;

	(void)stage;
	set_payers(payers, STORM, side->network.server.port, &step->order);
	if (hpx_demo_pay_at_once(payers, STORM) != HPX_OK)
		return false;
	for (unsigned i = 0; i < STORM; i++)
		paid += is_paid(&payers[i].reply);
	unsigned alike = count_alike(payers, STORM);
	if (alike == STORM)
		snprintf(saw, HPX_DEMO_SAW_SIZE, "%u times 201 %s", paid,
			 payers[0].reply.payment);
	else
		snprintf(saw, HPX_DEMO_SAW_SIZE, "%u times 201, for different payments", paid);
	return paid == STORM && (alike == STORM) == side->guarded;
}

static bool changed_amount(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
			   const struct hpx_demo_step *step, char saw[HPX_DEMO_SAW_SIZE])
{
	struct hpx_demo_order changed = step->order;
	struct hpx_demo_reply reply, refused;
	char first[64], second[64];

	(void)stage;
	changed.cents *= 10;
	hpx_demo_pay_until(side->network.server.port, &step->order, TRIES, &reply);
	hpx_demo_pay_until(side->network.server.port, &changed, TRIES, &refused);
	hpx_demo_reply_print(&reply, first, sizeof(first));
	hpx_demo_reply_print(&refused, second, sizeof(second));
	snprintf(saw, HPX_DEMO_SAW_SIZE, "%s, then %s", first, second);
	return is_paid(&reply) &&
	       (side->guarded ? refused.code == 422 : is_paid(&refused));
}

static const struct hpx_demo_step steps[] = {
	{ .title = "A double click",
	  .tells = "Two clicks on \"pay 20.00\": the same POST /payments twice at once,\n"
		   "with one Idempotency-Key.",
	  .order = { .key = "click-1", .order = "double-click", .cents = 2000 },
	  .act = double_click },
	{ .title = "A lost answer",
	  .tells = "35.00 are paid, but the network loses the answer. The client cannot\n"
		   "know, so it sends the same request again.",
	  .order = { .key = "lost-1", .order = "lost-answer", .cents = 3500, .lose_answer = true },
	  .act = lost_answer },
	{ .title = "A retry storm",
	  .tells = "A client in panic sends one payment of 12.50 fifty times at once.",
	  .order = { .key = "storm-1", .order = "retry-storm", .cents = 1250 },
	  .act = retry_storm },
	{ .title = "A changed amount",
	  .tells = "A bug: 40.00 are paid, then 400.00 under the same key.",
	  .order = { .key = "changed-1", .order = "changed-amount", .cents = 4000 },
	  .act = changed_amount },
	{ .title = "A crash in the middle",
	  .tells = "99.00 are being paid when the proxy between client and API dies:\n"
		   "without hapax a plain one, with hapax hapax itself, by kill -9.\n"
		   "It is started again, and the client retries.",
	  .order = { .key = "crash-1", .order = "crash", .cents = 9900 },
	  .act = hpx_demo_crash,
	  .settle = hpx_demo_crash_settle },
};

/* Plays one side; true where what the client was told is right. */
static bool play_side(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
		      const struct hpx_demo_step *step, const struct hpx_demo_report *report,
		      struct hpx_demo_sum *ret_sum)
{
	struct hpx_demo_sum intended = { 1, step->order.cents };
	char saw[HPX_DEMO_SAW_SIZE] = "nothing: the step could not be played";
	bool told = step->act(stage, side, step, saw);

	if (hpx_demo_ledger_sum(&side->api.ledger, hpx_span_of(step->order.order), ret_sum) !=
	    HPX_OK) {
		hpx_demo_report_trouble(report, "the ledger cannot be read");
		return false;
	}
	hpx_demo_report_side(report, side->name, saw, &intended, ret_sum);
	if (!told)
		hpx_demo_report_trouble(report, "that is not what should have been answered");
	return told;
}

/* Right is: once with hapax; and without it more than once, for otherwise the
 * accident did not happen and the step shows nothing. */
static void play(struct hpx_demo_stage *stage, const struct hpx_demo_step *step,
		 struct hpx_demo_report *report)
{
	struct hpx_demo_result *result = &report->results[report->count++];
	bool right = true;

	*result = (struct hpx_demo_result){ .title = step->title,
					    .intended = { 1, step->order.cents } };
	hpx_demo_report_title(report, report->count, step->title);
	hpx_demo_report_tell(step->tells);
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
