/* Shows that in every order of the steps of two attempts, a sweeper and a
 * person, at most one lease is alive and what is completed stays as it is.
 *
 * A: an attempt reserves, completes, and declares itself lost (as a paused
 * process that comes back would do, in any order with the others).
 * B: a second attempt reserves and completes. S: the lease runs out and the
 * sweeper comes by. U: a person says that it was not applied. R: a provider's
 * export says that it happened, by A's reference. */
#include "fixture.h"

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

static void run_orders(struct fixture *f, char *order)
{
	unsigned key = 1;
	size_t len = strlen(order);

	do {
		struct race race = { .f = f, .key = key++ };
		for (size_t i = 0; i < len; i++)
			take_step(&race, order[i]);
		hpx_arena_done(&f->arena);
	} while (next_order(order, len));
	print_message("%u orders\n", key - 1);
}

static void every_order_of_two_attempts_a_sweeper_and_a_person(void **state)
{
	char order[] = "AAABBSU";

	run_orders(*state, order);
}

static void every_order_with_two_sweeps(void **state)
{
	char order[] = "AABBSSU";

	run_orders(*state, order);
}

static void every_order_with_what_an_export_says(void **state)
{
	char order[] = "AABBRSU";

	run_orders(*state, order);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_EVERY_DRIVER(every_order_of_two_attempts_a_sweeper_and_a_person),
		ON_EVERY_DRIVER(every_order_with_two_sweeps),
		ON_EVERY_DRIVER(every_order_with_what_an_export_says),
		ON_EVERY_DRIVER(who_was_not_reserved_releases_nothing),
	};
	return run_on_drivers("race", tests);
}
