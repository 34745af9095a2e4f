/* Shows that in every order of the steps of two attempts, a sweeper and a
 * person, at most one lease is alive and what is completed stays as it is.
 *
 * A: an attempt reserves, completes, and declares itself lost (as a paused
 * process that comes back would do, in any order with the others).
 * B: a second attempt reserves and completes. S: the lease runs out and the
 * sweeper comes by. U: a person says that it was not applied. R: a provider's
 * export says that it happened, by A's reference.
 *
 * And that what somebody has seen happen is never executed again, where expired keys are
 * refused by a tombstone and the history is on. C: an attempt reserves, and ends as not
 * executed. W: the provider says of whatever is there that it was applied. X: everything
 * expires, and the reaper comes by. */
#include "cluster.h"
#include "delivery.h"

enum { BODY = 1,
       A = 100,
       B = 200 };

struct race {
	struct fixture *f;
	unsigned key;
	unsigned steps[128]; /* of each actor, so far */
	char holder;         /* who was told to execute last */
	bool completed;
	bool restored; /* without an answer */
	bool happened; /* it was completed, or W was heard */
	char answer[8];
};

static void note_reserve(struct race *race, char who, const char *before, const char *decision)
{
	bool executes = strcmp(decision, "created") == 0 || strcmp(decision, "retried") == 0;

	if (!executes)
		return;
	race->holder = who;
	/* Guarantee 2: none after completed or unknown, none beside another. */
	assert_false(race->completed);
	assert_true(strcmp(before, "none") == 0 || strcmp(before, "failed_retryable") == 0);
}

static void note_complete(struct race *race, char who, enum hpx_status status)
{
	if (status != HPX_OK)
		return;
	/* Guarantee 6: whoever is not the last to be told to execute is stale. */
	assert_int_equal(who, race->holder);
	if (!race->completed)
		snprintf(race->answer, sizeof(race->answer), "%c", who);
	race->completed = true;
}

static void attempt_step(struct race *race, char who)
{
	unsigned token = (who == 'A' ? A : B) + race->key * 1000;
	const char *before = state_of(race->f, race->key);
	char body[2] = { who, '\0' };

	switch (race->steps[(int)who]++) {
	case 0:
		note_reserve(race, who, before, reserve(race->f, race->key, BODY, token));
		break;
	case 1:
		note_complete(race, who, complete(race->f, race->key, token, body));
		break;
	default:
		act(race->f, HPX_VERB_MARK_UNKNOWN, race->key, token);
		break;
	}
}

/* Only what nobody has is restored: an attempt under way, and what became of it, stays. */
static void restore_step(struct race *race)
{
	struct hpx_store_op op = op_of(HPX_VERB_RESTORE, race->key, A + race->key * 1000);
	bool none = strcmp(state_of(race->f, race->key), "none") == 0;

	op.restore.retention_ms = RETENTION_MS;
	enum hpx_status status = run_op(race->f, &op);
	if (none || !race->completed)
		assert_status(status, none ? HPX_OK : HPX_REFUSED);
	race->restored |= none;
	race->completed |= none;
}

static void take_step(struct race *race, char who)
{
	switch (who) {
	case 'R':
		restore_step(race);
		break;
	case 'S':
		advance(race->f, LEASE_MS + 1);
		sweep(race->f);
		break;
	case 'U': {
		/* By whatever reference the record has now. */
		unsigned first = A + race->key * 1000;
		if (resolve(race->f, race->key, first, false) == HPX_STALE)
			resolve(race->f, race->key, B + race->key * 1000, false);
		break;
	}
	default:
		attempt_step(race, who);
		break;
	}
	if (race->completed) {
		assert_string_equal(state_of(race->f, race->key), "completed");
		if (race->restored)
			assert_null(body_of(race->f, race->key));
		else
			assert_string_equal(body_of(race->f, race->key), race->answer);
	}
}

/* The next order of the letters, as in a dictionary; false after the last. */
static bool next_order(char *order, size_t len)
{
	size_t i = len - 1;
	size_t j = len - 1;

	while (i > 0 && order[i - 1] >= order[i])
		i--;
	if (i == 0)
		return false;
	while (order[j] <= order[i - 1])
		j--;
	char c = order[i - 1];
	order[i - 1] = order[j];
	order[j] = c;
	for (j = len - 1; i < j; i++, j--) {
		c = order[i];
		order[i] = order[j];
		order[j] = c;
	}
	return true;
}

static void run_orders(struct fixture *f, char *order, void (*take)(struct race *, char))
{
	unsigned key = 1;
	size_t len = strlen(order);

	do {
		struct race race = { .f = f, .key = key++ };
		for (size_t i = 0; i < len; i++)
			take(&race, order[i]);
		hpx_arena_done(&f->arena);
	} while (next_order(order, len));
	print_message("%u orders\n", key - 1);
}

static void every_order_of_two_attempts_a_sweeper_and_a_person(void **state)
{
	char order[] = "AAABBSU";

	run_orders(*state, order, take_step);
}

static void every_order_with_two_sweeps(void **state)
{
	char order[] = "AABBSSU";

	run_orders(*state, order, take_step);
}

/* ---- what somebody has seen ---- */

static const char *reserve_buried(struct race *race, unsigned token)
{
	struct hpx_policy buried = *policy();
	struct hpx_ask asked = ask_of(race->f->store, race->key, BODY, token);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, race->key, token);

	buried.tombstone_ms = 30 * (int64_t)RETENTION_MS;
	buried.expired = HPX_EXPIRED_REFUSE;
	op.reserve.ask = &asked;
	op.reserve.policy = &buried;
	assert_status(run_op(race->f, &op), HPX_OK);
	const char *name = hpx_decision_name(op.decision.kind);
	hpx_store_op_drop(&op);
	return name;
}

/* Whether anybody listened. */
static bool hear_applied(struct race *race)
{
	struct hpx_record record = record_of(race->f, race->key);
	struct hpx_ruling_update update = { .received = { .ruling = HPX_RULING_APPLIED } };
	struct hpx_store_op op = op_of(HPX_VERB_RULE, race->key, 0);

	op.mark = record.mark;
	op.rule.update = &update;
	return run_op(race->f, &op) == HPX_OK && update.settlement != HPX_SETTLEMENT_IGNORED;
}

static void attempt_buried(struct race *race, char who)
{
	unsigned token = (who == 'C' ? A : B) + race->key * 1000;
	const char *decision;

	if (race->steps[(int)who]++ == 0) {
		decision = reserve_buried(race, token);
		if (race->happened && (strcmp(decision, "created") == 0 || strcmp(decision, "retried") == 0))
			fail_msg("it had happened, and is executed again: %s", events_of(race->f, race->key));
	} else if (who == 'C') {
		act(race->f, HPX_VERB_FAIL, race->key, token);
	} else {
		race->happened |= complete(race->f, race->key, token, "B") == HPX_OK;
	}
}

static void take_seen_step(struct race *race, char who)
{
	switch (who) {
	case 'S':
		advance(race->f, LEASE_MS + 1);
		sweep(race->f);
		break;
	case 'W':
		if (strcmp(state_of(race->f, race->key), "none") != 0)
			race->happened |= hear_applied(race);
		break;
	case 'X':
		advance(race->f, RETENTION_MS + 1);
		reap_all(race->f);
		break;
	default:
		attempt_buried(race, who);
		break;
	}
}

static void run_seen_orders(struct fixture *f, char *order)
{
	struct hpx_store_options options = fixture_options(f);
	char problem[HPX_STORE_PROBLEM_SIZE];

	fixture_close(f);
	options.history_retention_ms = 4000 * (int64_t)RETENTION_MS;
	assert_status(hpx_store_open(&options, &f->store, problem), HPX_OK);
	assert_status(hpx_store_reader_open(f->store, &f->reader), HPX_OK);
	run_orders(f, order, take_seen_step);
}

static void every_order_of_what_was_seen_and_expires(void **state)
{
	char order[] = "BBCCWX";

	run_seen_orders(*state, order);
}

static void every_order_of_what_was_seen_is_lost_and_expires(void **state)
{
	char order[] = "BCCSWX";

	run_seen_orders(*state, order);
}

static void every_order_with_what_an_export_says(void **state)
{
	char order[] = "AABBRSU";

	run_orders(*state, order, take_step);
}

/* Mistake 3: a waiter's timeout deletes somebody else's claim. A waiter was
 * never given the lease, so its token is nobody's. */
static void who_was_not_reserved_releases_nothing(void **state)
{
	static const enum hpx_verb verbs[] = { HPX_VERB_FAIL, HPX_VERB_RELEASE, HPX_VERB_MARK_UNKNOWN,
					       HPX_VERB_RENEW };
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	assert_string_equal(reserve(f, 1, BODY, B), "in_progress");
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		assert_status(act(f, verbs[i], 1, B), HPX_STALE);
	assert_string_equal(state_of(f, 1), "in_progress");
}

/* Somebody has inserted the key, or is about to remove it, and has not committed: nobody
 * knows yet what there is to be restored over. */
static void what_somebody_else_is_writing_is_not_restored_over(void **state)
{
	struct fixture *f = *state;
	PGconn *other = cluster_connect();
	struct hpx_store_op op = op_of(HPX_VERB_RESTORE, 1, A);
	char id[2 * HPX_OPERATION_ID_SIZE + 1], insert[512];

	op.restore.retention_ms = RETENTION_MS;
	bring_to(f, 2, HPX_STATE_UNKNOWN, B);
	hpx_hex_encode(id_of(1).bytes, HPX_OPERATION_ID_SIZE, id);
	snprintf(insert, sizeof(insert),
		 "INSERT INTO hapax.operation SELECT (jsonb_populate_record(o, jsonb_build_object('id', "
		 "'%.32s'::uuid, 'rest', '%s'::uuid))).* FROM hapax.operation o",
		 id, id + 32);
	PQclear(cluster_ask(other, "BEGIN"));
	PQclear(cluster_ask(other, insert));
	assert_status(run_op(f, &op), HPX_BUSY);
	PQclear(cluster_ask(other, "COMMIT"));
	assert_status(run_op(f, &op), HPX_REFUSED);
	assert_string_equal(state_of(f, 1), "unknown");
	PQclear(cluster_ask(other, "BEGIN"));
	PQclear(cluster_ask(other, "DELETE FROM hapax.operation"));
	assert_status(run_op(f, &op), HPX_BUSY);
	PQclear(cluster_ask(other, "COMMIT"));
	assert_status(run_op(f, &op), HPX_OK);
	assert_string_equal(events_of(f, 1), "restored");
	PQfinish(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_EVERY_DRIVER(every_order_of_two_attempts_a_sweeper_and_a_person),
		ON_EVERY_DRIVER(every_order_with_two_sweeps),
		ON_EVERY_DRIVER(every_order_with_what_an_export_says),
		ON_OUTBOXES(every_order_of_what_was_seen_and_expires),
		ON_OUTBOXES(every_order_of_what_was_seen_is_lost_and_expires),
		ON_EVERY_DRIVER(who_was_not_reserved_releases_nothing),
		ON_POSTGRES(what_somebody_else_is_writing_is_not_restored_over),
	};
	return run_on_drivers("race", tests);
}
