/* Crashes of the server: one series of rounds for three rows. In each round one
 * operation is answered and seven are in flight when the server is killed, at a moment
 * that the seed decides. The server is started again, and each operation is retried
 * until it is settled. */
#include <inttypes.h>

#include "base/status.h"
#include "verify/row_check.h"

#define OPERATIONS 8
/* The server is killed within this time after the requests were sent: some have not
 * been read yet, some are answered already. */
#define KILL_WITHIN_MS 60

struct crash_op {
	struct hpx_verify_op *op;
	struct hpx_inflight *inflight;
	const struct hpx_verify_exchange *seen; /* the client's exchange before the crash */
	const struct hpx_verify_exchange *settled;
	unsigned sent; /* retries until then */
	bool doubt;    /* the API says that the outcome is unknown */
};

struct crash_series {
	struct hpx_check checks[HPX_CRASH_ROWS];
	uint64_t rounds;
	uint64_t operations;
	uint64_t seen;
	uint64_t doubts;
};

/* The first verdict counts: later ones may follow from it. */
static bool still_holds(const struct crash_series *series, size_t which)
{
	return series->checks[which].result->verdict == HPX_ROW_HOLDS;
}

static bool fail_all(struct crash_series *series, const char *problem)
{
	for (size_t i = 0; i < HPX_CRASH_ROWS; i++)
		if (still_holds(series, i))
			hpx_check_undecided(&series->checks[i], "%s", problem);
	return false;
}

static bool begin_all(struct crash_series *series, struct crash_op *operations)
{
	struct hpx_verify *run = series->checks[0].run;

	for (size_t i = 0; i < OPERATIONS; i++) {
		operations[i] = (struct crash_op){ .op =
							   hpx_verify_op_new(run, HPX_REQUEST_main) };
		if (operations[i].op == NULL) {
			const char *over = hpx_verify_stop_reason(run);
			return fail_all(series, over != NULL ? over : "out of memory");
		}
	}
	/* One operation is answered before the others are sent: however slow the API
	 * is, there is an answer that can be lost. */
	operations[0].seen = hpx_verify_send_retry_429(
		run, &(struct hpx_verify_variant){ .op = operations[0].op });
	for (size_t i = 1; i < OPERATIONS; i++)
		operations[i].inflight = hpx_verify_begin(
			run, &(struct hpx_verify_variant){ .op = operations[i].op });
	return true;
}

/* Every request in flight ends, one way or another, before the start. */
static bool crash_and_start(struct crash_series *series, struct crash_op *operations)
{
	struct hpx_verify *run = series->checks[0].run;
	char problem[HPX_VERIFY_PROBLEM_SIZE] = "";

	hpx_verify_pause(run, (int64_t)(hpx_verify_random(run) % (KILL_WITHIN_MS + 1)));
	enum hpx_status status = hpx_verify_crash(run, problem);
	for (size_t i = 0; i < OPERATIONS; i++) {
		if (operations[i].inflight != NULL)
			operations[i].seen = hpx_verify_finish(operations[i].inflight);
		series->seen += hpx_check_is_2xx(operations[i].seen) ? 1 : 0;
	}
	if (status == HPX_OK)
		status = hpx_verify_start_again(run, problem);
	return status == HPX_OK || fail_all(series, problem);
}

/* ---- the three rows ---- */

/* By turns, so that an operation that is stuck takes no time from the others. */
static void settle_all(struct crash_series *series, struct crash_op *operations)
{
	struct hpx_verify_settling all[OPERATIONS] = { 0 };

	for (size_t i = 0; i < OPERATIONS; i++)
		all[i].variant.op = operations[i].op;
	hpx_verify_settle_all(series->checks[0].run, all, OPERATIONS);
	for (size_t i = 0; i < OPERATIONS; i++) {
		operations[i].settled = all[i].last;
		operations[i].sent = all[i].sent;
	}
}

static void check_settled(struct crash_series *series, struct crash_op *operation)
{
	struct hpx_check *check = &series->checks[HPX_CRASH_SETTLED];

	HPX_ASSERT(operation->settled != NULL && operation->seen != NULL);
	operation->doubt = operation->settled->status == 409 &&
			   hpx_span_eq(hpx_check_problem_code(check, operation->settled),
				       HPX_SPAN("idempotency_outcome_unknown"));
	series->doubts += operation->doubt ? 1 : 0;
	if (hpx_check_is_2xx(operation->settled) || operation->doubt ||
	    !still_holds(series, HPX_CRASH_SETTLED))
		return;
	hpx_check_cite(check, operation->seen);
	hpx_check_cite(check, operation->settled);
	hpx_check_verdict(check,
			  operation->settled->end == HPX_EXCHANGE_UNSENT ? HPX_ROW_UNDECIDED :
									   HPX_ROW_BROKEN,
			  "round %" PRIu64 ": #%u before the crash; after %u retries still %s",
			  series->rounds, operation->seen->number, operation->sent,
			  hpx_check_describe(check, operation->settled));
}

static void check_kept(struct crash_series *series, const struct crash_op *operation,
		       uint64_t effects)
{
	struct hpx_check *check = &series->checks[HPX_CRASH_KEPT];
	const struct hpx_verify_exchange *seen = operation->seen;

	if (!hpx_check_is_2xx(seen) || !still_holds(series, HPX_CRASH_KEPT))
		return;
	bool apart = hpx_verify_counts_effects(check->run) && hpx_check_counts_per_op(check);
	if (hpx_check_same_answer(seen, operation->settled) && (!apart || effects > 0))
		return;
	hpx_check_cite(check, seen);
	hpx_check_cite(check, operation->settled);
	hpx_check_broken(check, "round %" PRIu64 ": before the crash #%u was answered %s; afterwards #%u got %s%s",
			 series->rounds, seen->number, hpx_check_describe(check, seen),
			 operation->settled->number, hpx_check_describe(check, operation->settled),
			 apart && effects == 0 ? "; its effect is gone" : "");
}

/* Two different 2xx for one key are two executions. */
static void check_once(struct crash_series *series, const struct crash_op *operation,
		       uint64_t effects, uint64_t effects_max)
{
	struct hpx_check *check = &series->checks[HPX_CRASH_ONCE];
	const struct hpx_verify_exchange *seen = operation->seen;
	const struct hpx_verify_exchange *settled = operation->settled;

	if (!still_holds(series, HPX_CRASH_ONCE))
		return;
	bool differ = hpx_check_is_2xx(seen) && hpx_check_is_2xx(settled) &&
		      !hpx_check_same_answer(seen, settled);
	if (effects <= effects_max && !differ)
		return;
	/* A count of all operations does not tell whose the second effect is. */
	if (effects > effects_max && effects_max > 1) {
		hpx_check_broken(check, "round %" PRIu64 ": %" PRIu64 " effects for %" PRIu64 " operations; they are not counted apart",
				 series->rounds, effects, effects_max);
		return;
	}
	hpx_check_cite(check, seen);
	hpx_check_cite(check, settled);
	if (effects > effects_max)
		hpx_check_broken(check, "round %" PRIu64 ": %" PRIu64 " effects for one operation; #%u: %s; afterwards #%u: %s",
				 series->rounds, effects, seen->number, hpx_check_describe(check, seen),
				 settled->number, hpx_check_describe(check, settled));
	else
		hpx_check_broken(check, "round %" PRIu64 ": two answers for one key: #%u %s, and #%u %s",
				 series->rounds, seen->number, hpx_check_describe(check, seen),
				 settled->number, hpx_check_describe(check, settled));
	if (effects <= effects_max && hpx_verify_counts_effects(check->run))
		hpx_check_blame(check, HPX_GUARANTEE_KEPT,
				"One payment was made, and its customer was told of two.");
}

/* Where effects are not counted per operation, those of the round are. */
static bool check_round(struct crash_series *series, struct crash_op *operations)
{
	struct hpx_check *check = &series->checks[0];
	bool apart = hpx_check_counts_per_op(check);
	char problem[HPX_VERIFY_PROBLEM_SIZE] = "";

	settle_all(series, operations);
	for (size_t i = 0; i < OPERATIONS; i++)
		check_settled(series, &operations[i]);
	for (size_t i = 0; i < OPERATIONS; i++) {
		uint64_t effects = 0;

		if (hpx_verify_counts_effects(check->run) &&
		    hpx_verify_effects(check->run, operations[apart ? i : 0].op, &effects,
				       problem) != HPX_OK)
			return fail_all(series, problem);
		check_kept(series, &operations[i], effects);
		check_once(series, &operations[i], effects, apart ? 1 : OPERATIONS);
	}
	series->operations += OPERATIONS;
	return true;
}

/* ---- the series ---- */

static void conclude(struct crash_series *series)
{
	if (series->seen == 0 && still_holds(series, HPX_CRASH_KEPT))
		hpx_check_undecided(&series->checks[HPX_CRASH_KEPT],
				    "no request was answered by a 2xx before a crash");
	for (size_t i = 0; i < HPX_CRASH_ROWS; i++)
		if (still_holds(series, i))
			hpx_check_holds(&series->checks[i],
					"%" PRIu64 " crashes, %" PRIu64 " operations, %" PRIu64
					" answers seen before a crash, %" PRIu64 " said to be in doubt",
					series->rounds, series->operations, series->seen,
					series->doubts);
}

static void run_series(struct hpx_check *check)
{
	static const char *const expected[] = {
		[HPX_CRASH_ONCE] = "no operation has two effects, or two different answers",
		[HPX_CRASH_KEPT] = "an answer that was seen before a crash is also the answer after it",
		[HPX_CRASH_SETTLED] = "each operation is settled by retries, or said to be in doubt",
	};
	struct crash_series series = { 0 };
	struct crash_op operations[OPERATIONS];
	uint64_t crashes = hpx_verify_spec_of(check->run)->crashes;

	for (size_t i = 0; i < HPX_CRASH_ROWS; i++) {
		series.checks[i] = (struct hpx_check){ .run = check->run,
						       .result = &check->notes->crash[i],
						       .notes = check->notes };
		check->notes->crash[i] = (struct hpx_row_result){ .verdict = HPX_ROW_HOLDS,
								  .tried = true };
		hpx_check_expect(&series.checks[i], "%s", expected[i]);
	}
	while (series.rounds < crashes) {
		series.rounds++;
		if (!begin_all(&series, operations) ||
		    !crash_and_start(&series, operations) ||
		    !check_round(&series, operations))
			break;
	}
	conclude(&series);
	check->notes->crashed = true;
}

static void check_crash(struct hpx_check *check, size_t which)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(check->run);

	if (spec->crash_cmd.len == 0 || spec->start_cmd.len == 0) {
		hpx_check_not_applicable(check, "the description has no commands to crash and start the server");
		return;
	}
	if (!check->notes->crashed)
		run_series(check);
	HPX_ASSERT(check->notes->crashed && which < HPX_CRASH_ROWS);
	*check->result = check->notes->crash[which];
}

void hpx_row_crash_once(struct hpx_check *check)
{
	check_crash(check, HPX_CRASH_ONCE);
}

void hpx_row_crash_kept(struct hpx_check *check)
{
	check_crash(check, HPX_CRASH_KEPT);
}

void hpx_row_crash_settled(struct hpx_check *check)
{
	check_crash(check, HPX_CRASH_SETTLED);
}
