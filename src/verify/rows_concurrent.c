/* Concurrency: two, ten, a hundred at the same moment; retries while the first
 * runs, and retries that go away; requests that the client cuts off. */
#include "verify/row_check.h"

#include "base/status.h"

/* ---- at the same moment ---- */

#define BATCH_MAX 100
#define OTHER_KEYS 10
/* How many exchanges of a batch are cited; room is left for those that stand out. */
#define CITED 4

/* The answers of a batch, counted. */
struct answer_counts {
	const struct hpx_verify_exchange *done; /* the first 2xx that is no "in progress" */
	size_t answers;
	size_t in_progress;
	size_t put_off; /* 429, 503, refused connections */
	size_t lost;
	bool differs; /* a 2xx that differs from `done` is among them */
};

/* Whether both are a 202, and name different resources. */
static bool names_another(struct hpx_check *check, const struct hpx_verify_exchange *done,
			  const struct hpx_verify_exchange *exchange)
{
	if (done == NULL || done->status != 202 || exchange->status != 202 ||
	    check->notes->resources_alike)
		return false;
	struct hpx_span one = hpx_verify_resource(check->run, done);
	struct hpx_span other = hpx_verify_resource(check->run, exchange);
	return one.len > 0 && other.len > 0 && !hpx_span_eq(one, other);
}

/* False: the answer is neither `done` nor a sign of waiting. */
static bool count_answer(struct hpx_check *check, const struct hpx_verify_exchange *exchange,
			 struct answer_counts *counts)
{
	if (exchange->end == HPX_EXCHANGE_REFUSED || exchange->status == 429 ||
	    exchange->status == 503) {
		counts->put_off++;
	} else if (exchange->end != HPX_EXCHANGE_ANSWERED) {
		counts->lost++;
	} else if (hpx_check_is_2xx(exchange) &&
		   (counts->done == NULL || hpx_check_same_answer(counts->done, exchange))) {
		counts->done = counts->done != NULL ? counts->done : exchange;
		counts->answers++;
	} else if (hpx_check_is_in_progress(check, exchange) &&
		   !names_another(check, counts->done, exchange)) {
		counts->in_progress++;
	} else {
		hpx_check_cite(check, exchange);
		counts->differs = hpx_check_is_2xx(exchange);
		if (counts->done != NULL)
			return hpx_check_same(check, counts->done, exchange, "one of the concurrent requests");
		return hpx_check_broken(check, "one of the concurrent requests (#%u) was answered %s",
					exchange->number, hpx_check_describe(check, exchange));
	}
	return true;
}

/* Answers come first, so that a 202 "in progress" is never taken for one. */
static bool count_answers(struct hpx_check *check, const struct hpx_verify_exchange *const *exchanges,
			  size_t count, struct answer_counts *counts)
{
	for (size_t i = 0; i < count && counts->done == NULL; i++)
		if (hpx_check_is_2xx(exchanges[i]) && exchanges[i]->status != 202)
			counts->done = exchanges[i];
	for (size_t i = 0; i < count; i++)
		if (!count_answer(check, exchanges[i], counts))
			return false;
	return true;
}

/* Each operation has one effect. */
static bool one_effect_each(struct hpx_check *check, struct hpx_verify_op *const *ops, size_t count)
{
	if (!hpx_check_counts_per_op(check))
		return hpx_check_effects(check, ops[0], count);
	for (size_t i = 0; i < count; i++)
		if (!hpx_check_effects(check, ops[i], 1))
			return false;
	return true;
}

/* A retry of each operation gets an answer; of the first, the answer of the batch. */
static bool settle_all(struct hpx_check *check, struct hpx_verify_op *const *ops, size_t count,
		       const struct answer_counts *counts)
{
	for (size_t i = 0; i < count; i++) {
		const struct hpx_verify_exchange *settled = hpx_check_settle(
			check, &(struct hpx_verify_variant){ .op = ops[i] });

		if (settled == NULL)
			return false;
		if (i == 0 && counts->done != NULL &&
		    !hpx_check_same(check, counts->done, settled, "the retry afterwards"))
			return false;
	}
	return true;
}

/* The first operation is the one that is repeated; the others have keys of their own. */
struct request_batch {
	struct hpx_verify_op *ops[OTHER_KEYS + 1];
	size_t other_count;
	const struct hpx_verify_exchange *exchanges[BATCH_MAX]; /* of the first operation */
	size_t count;
};

/* Every fifth request is one of the other operations. */
static void send_batch(struct hpx_check *check, struct request_batch *batch, size_t count)
{
	struct hpx_verify_variant variants[BATCH_MAX];
	const struct hpx_verify_exchange *exchanges[BATCH_MAX];
	size_t next_other = 1;
	size_t sent = 0;

	HPX_ASSERT(count <= BATCH_MAX && batch->other_count <= OTHER_KEYS && batch->count == 0);
	for (size_t i = 0; i < count; i++) {
		bool is_other = i % 5 == 4 && next_other <= batch->other_count;

		variants[i] = (struct hpx_verify_variant){ .op = batch->ops[is_other ? next_other++ : 0] };
	}
	hpx_verify_send_concurrently(check->run, variants, count, exchanges, &sent);
	for (size_t i = 0; i < sent; i++)
		if (variants[i].op == batch->ops[0])
			batch->exchanges[batch->count++] = exchanges[i];
	for (size_t i = 0; i < batch->count && i < CITED; i++)
		hpx_check_cite(check, batch->exchanges[i]);
}

static bool is_done_twice(struct hpx_check *check, const struct request_batch *batch)
{
	if (!hpx_check_counts_per_op(check))
		return hpx_check_effects_exceed(check, batch->ops[0], batch->other_count + 1);
	for (size_t i = 0; i <= batch->other_count; i++)
		if (hpx_check_effects_exceed(check, batch->ops[i], 1))
			return true;
	return false;
}

/* What a broken row means depends on what was seen. */
static void explain_batch(struct hpx_check *check, const struct request_batch *batch,
			  const struct answer_counts *counts, const char *twice)
{
	if (is_done_twice(check, batch))
		check->result->why = twice;
	else if (counts->differs && !hpx_verify_counts_effects(check->run))
		check->result->why = "One request got two different answers of success, as if it was executed twice; effects were not counted.";
	else if (counts->differs)
		hpx_check_blame(check, HPX_GUARANTEE_REPLAY,
				"Two callers are told of two different things, and only one was made.");
	else
		hpx_check_blame(check, HPX_GUARANTEE_STUCK,
				"It is made once, but one of those who asked for it is told something else, and does not know what became of it.");
}

static void check_batch(struct hpx_check *check, size_t count, size_t other_count, const char *twice)
{
	struct request_batch batch = { .other_count = other_count };
	struct answer_counts counts = { 0 };

	for (size_t i = other_count + 1; i-- > 0;) {
		batch.ops[i] = hpx_check_op_new(check, HPX_REQUEST_main);
		if (batch.ops[i] == NULL)
			return;
	}
	send_batch(check, &batch, count);
	if (batch.count < 2) {
		const char *over = hpx_verify_stop_reason(check->run);
		hpx_check_undecided(check, "%s", over != NULL ? over : "the bound on concurrency is below two");
		return;
	}
	if (count_answers(check, batch.exchanges, batch.count, &counts) &&
	    settle_all(check, batch.ops, other_count + 1, &counts) &&
	    one_effect_each(check, batch.ops, other_count + 1))
		hpx_check_holds(check, "of %zu at once %zu got the answer, %zu \"in progress\", %zu were put off, %zu got no answer; %s",
				batch.count, counts.answers, counts.in_progress, counts.put_off,
				counts.lost, hpx_check_describe_effects(check, batch.ops[0]));
	else if (check->result->verdict == HPX_ROW_BROKEN)
		explain_batch(check, &batch, &counts, twice);
}

void hpx_row_at_once_2(struct hpx_check *check)
{
	hpx_check_expect(check, "one effect; both get its answer, or one is told that it is in progress");
	check_batch(check, 2, 0, "A double click pays twice.");
}

void hpx_row_at_once_10(struct hpx_check *check)
{
	hpx_check_expect(check, "one effect; all get its answer, or are told that it is in progress");
	check_batch(check, 10, 0, "An impatient client, or two, pays more than once.");
}

void hpx_row_at_once_100(struct hpx_check *check)
{
	hpx_check_expect(check, "one effect for each key; all get its answer, or are told that it is in progress");
	check_batch(check, BATCH_MAX, OTHER_KEYS,
		    "A retry storm after an outage pays as often as it was retried.");
}

/* ---- while the first runs ---- */

/* The time after which the first request counts as running, and between retries: longer
 * than a claim that was meant in seconds and made in milliseconds. */
#define PAUSE_MS 150
#define RETRIES_MAX 24

struct slow {
	struct hpx_verify_op *op;
	struct hpx_inflight *inflight;
	unsigned retries;
	unsigned conflicts;
};

static bool begin_slow(struct hpx_check *check, struct slow *slow)
{
	const struct hpx_verify_exchange *answer;

	if (!hpx_check_has_request(check, HPX_REQUEST_slow))
		return false;
	slow->op = hpx_check_op_new(check, HPX_REQUEST_slow);
	if (slow->op == NULL)
		return false;
	slow->inflight = hpx_verify_begin_retry_429(
		check->run, &(struct hpx_verify_variant){ .op = slow->op }, PAUSE_MS, &answer);
	if (slow->inflight != NULL)
		return true;
	hpx_check_cite(check, answer);
	if (hpx_verify_stop_reason(check->run) != NULL)
		return hpx_check_undecided(check, "%s", hpx_verify_stop_reason(check->run));
	return hpx_check_undecided(check, "`slow` (#%u) was answered before a retry could be sent: %s",
				   answer->number, hpx_check_describe(check, answer));
}

/* Retries for as long as the first waits for its answer. A retry that is answered by a
 * 2xx was held until the first was done, or executed: the effects and the answers tell
 * which. */
static bool retry_while_waiting(struct hpx_check *check, struct slow *slow)
{
	while (hpx_verify_is_waiting(slow->inflight) && slow->retries < RETRIES_MAX) {
		const struct hpx_verify_exchange *retry =
			hpx_check_send(check, &(struct hpx_verify_variant){ .op = slow->op });

		if (retry == NULL)
			return false;
		slow->retries++;
		if (hpx_check_is_in_progress(check, retry))
			slow->conflicts++;
		else if (!hpx_check_is_2xx(retry))
			return hpx_check_broken(check, "while the first runs, the retry (#%u) was answered %s",
						retry->number, hpx_check_describe(check, retry));
		/* Later retries are further apart: some claims are short. */
		hpx_verify_pause(check->run, PAUSE_MS + 50 * slow->retries);
	}
	return true;
}

/* The first gets its answer, and a retry afterwards the same; one effect. */
static bool end_slow(struct hpx_check *check, struct slow *slow)
{
	const struct hpx_verify_exchange *first = hpx_verify_finish(slow->inflight);

	HPX_ASSERT(slow->retries > 0);
	slow->inflight = NULL;
	hpx_check_cite(check, first);
	if (!hpx_check_is_2xx(first) && !hpx_check_is_in_progress(check, first))
		return hpx_check_undecided(check, "`slow` (#%u) does not succeed: %s", first->number,
					   hpx_check_describe(check, first));
	const struct hpx_verify_exchange *settled =
		hpx_check_settle(check, &(struct hpx_verify_variant){ .op = slow->op });
	if (settled == NULL || !hpx_check_effects(check, slow->op, 1))
		return false;
	/* A retry may have overtaken the first on the way: then the first is the one
	 * that waits. */
	if (!hpx_check_is_in_progress(check, first))
		return hpx_check_same(check, first, settled, "the retry after it");
	return true;
}

/* All answers for the key are the same. */
static bool answers_agree(struct hpx_check *check, const struct slow *slow)
{
	const struct hpx_verify_exchange *done = NULL;

	for (size_t i = 0; i < hpx_verify_exchange_count(check->run); i++) {
		const struct hpx_verify_exchange *exchange = hpx_verify_exchange_at(check->run, i);
		bool ours = exchange->row != NULL && strstr(exchange->key, slow->op->key) != NULL;

		if (!ours || !hpx_check_is_2xx(exchange) ||
		    hpx_check_is_in_progress(check, exchange))
			continue;
		if (done != NULL && !hpx_check_same(check, done, exchange, "a retry"))
			return false;
		done = exchange;
	}
	return true;
}

/* The first request is finished whatever the verdict is. */
static bool check_slow(struct hpx_check *check, struct slow *slow)
{
	if (!retry_while_waiting(check, slow)) {
		hpx_verify_finish(slow->inflight);
		return false;
	}
	if (slow->retries == 0) {
		hpx_check_cite(check, hpx_verify_finish(slow->inflight));
		return hpx_check_undecided(check, "`slow` was answered before a retry could be sent");
	}
	return end_slow(check, slow) && answers_agree(check, slow);
}

/* Broken, but no second effect was counted. */
static void explain_slow(struct hpx_check *check, const struct slow *slow)
{
	if (check->result->verdict == HPX_ROW_BROKEN && hpx_verify_counts_effects(check->run) &&
	    !hpx_check_effects_exceed(check, slow->op, 1))
		hpx_check_blame(check, HPX_GUARANTEE_STUCK,
				"It is made once, but a client that asks again while it runs is told something else, and does not know what became of it.");
}

void hpx_row_in_progress(struct hpx_check *check)
{
	struct slow slow = { 0 };

	hpx_check_expect(check, "while the first runs, a retry gets 409 or waits; afterwards the answer; one effect");
	if (!begin_slow(check, &slow))
		return;
	if (check_slow(check, &slow))
		hpx_check_holds(check, "%u retries while it ran, %u of them \"in progress\"; %s",
				slow.retries, slow.conflicts,
				hpx_check_describe_effects(check, slow.op));
	explain_slow(check, &slow);
}

void hpx_row_waiter_gone(struct hpx_check *check)
{
	struct slow slow = { 0 };

	hpx_check_expect(check, "a retry that goes away changes nothing: the next ones get 409 or wait; one effect");
	if (!begin_slow(check, &slow))
		return;
	struct hpx_inflight *waiter =
		hpx_verify_begin(check->run, &(struct hpx_verify_variant){ .op = slow.op });
	hpx_verify_pause(check->run, PAUSE_MS);
	if (waiter != NULL)
		hpx_check_cite(check, hpx_verify_abandon(waiter));
	hpx_verify_pause(check->run, PAUSE_MS);
	if (check_slow(check, &slow))
		hpx_check_holds(check, "%u retries after it, %u of them \"in progress\"; %s",
				slow.retries, slow.conflicts,
				hpx_check_describe_effects(check, slow.op));
	explain_slow(check, &slow);
}

/* ---- cut off ---- */

/* How long after the last byte the connection is reset. A reset at once may overtake
 * the request in the server, a late one finds the server at work: each shows other
 * mistakes. */
static const int64_t lingers_ms[] = { 0, 50, 250 };

/* True: the row holds so far. */
static bool check_one(struct hpx_check *check, struct hpx_verify_op *op, enum hpx_verify_cut cut,
		      int64_t linger_ms)
{
	struct hpx_verify_variant whole = { .op = op };
	struct hpx_verify_variant part = { .op = op, .cut = cut, .linger_ms = linger_ms };
	const struct hpx_verify_exchange *gone = hpx_verify_send(check->run, &part);

	hpx_check_cite(check, gone);
	if (gone->end == HPX_EXCHANGE_REFUSED || gone->end == HPX_EXCHANGE_UNSENT)
		return hpx_check_undecided(check, "it could not be sent: %s", gone->problem);
	const struct hpx_verify_exchange *settled = hpx_check_settle(check, &whole);
	if (settled == NULL)
		return false;
	const struct hpx_verify_exchange *again = hpx_check_send(check, &whole);
	return again != NULL && hpx_check_same(check, settled, again, "the next retry") &&
	       hpx_check_effects(check, op, 1);
}

static void check_cut(struct hpx_check *check, enum hpx_verify_cut cut)
{
	size_t count = cut == HPX_CUT_BEFORE_ANSWER ? 1 : sizeof(lingers_ms) / sizeof(lingers_ms[0]);
	struct hpx_verify_op *op = NULL;

	hpx_check_expect(check, "within the settle time a retry is answered by a 2xx; one effect");
	for (size_t i = 0; i < count; i++) {
		op = hpx_check_op_new(check, HPX_REQUEST_main);
		if (op == NULL)
			return;
		if (cut == HPX_CUT_HALF_BODY && op->body.len < 2) {
			hpx_check_not_applicable(check, "the request has no body to cut");
			return;
		}
		if (check_one(check, op, cut, lingers_ms[i]))
			continue;
		if (check->result->verdict == HPX_ROW_BROKEN &&
		    hpx_check_effects_exceed(check, op, 1))
			hpx_check_blame(check, HPX_GUARANTEE_ONCE,
					"The phone in the tunnel: the payment is made twice.");
		return;
	}
	hpx_check_holds(check, "%zu cut off and done; %s", count,
			hpx_check_describe_effects(check, op));
}

void hpx_row_cut_head(struct hpx_check *check)
{
	check_cut(check, HPX_CUT_HEAD);
}

void hpx_row_cut_half_body(struct hpx_check *check)
{
	check_cut(check, HPX_CUT_HALF_BODY);
}

void hpx_row_cut_whole_body(struct hpx_check *check)
{
	check_cut(check, HPX_CUT_WHOLE_BODY);
}

void hpx_row_cut_before_answer(struct hpx_check *check)
{
	check_cut(check, HPX_CUT_BEFORE_ANSWER);
}
