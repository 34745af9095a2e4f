/* Shows what each ruling leads to: what settles at once, that "not applied"
 * counts only late and twice in a row, what ends the row, when the next
 * question is asked, and when a person is called. */
#include "../test.h"

#include "core/reconcile.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define YES HPX_RULING_APPLIED
#define DECLINED HPX_RULING_DECLINED
#define NO HPX_RULING_NOT_APPLIED
#define NOT_YET HPX_RULING_NOT_YET
#define UNCLEAR HPX_RULING_UNCLEAR
#define SETTLE_YES HPX_RECONCILE_SETTLE_APPLIED
#define SETTLE_DECLINED HPX_RECONCILE_SETTLE_DECLINED
#define SETTLE_NO HPX_RECONCILE_SETTLE_NOT_APPLIED
#define AGAIN HPX_RECONCILE_ASK_AGAIN
#define STAY HPX_RECONCILE_STAY
#define PERSON HPX_RECONCILE_A_PERSON

/* Sent at 10 000; from 11 000 on "not applied" counts. */
#define SENT 10000
#define RULE \
	{ \
		.settle_after_ms = 1000, .confirm_after_ms = 100, .tries_max = 10, \
		.backoff = { 10, 1000 }, .retry_after_max_ms = 5000 \
	}
static const struct hpx_reconcile_rule rule = RULE;

struct event {
	enum hpx_ruling ruling;
	int64_t about_ms;
	enum hpx_reconcile_move move;
	uint32_t row; /* not applied in a row, afterwards */
	bool unasked;
};

static void play(struct hpx_reconcile *reconcile, const struct hpx_reconcile_rule *by,
		 const char *what, const struct event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct hpx_received_ruling received = { events[i].ruling, events[i].about_ms, !events[i].unasked, 0 };
		uint32_t tries = reconcile->tries;
		enum hpx_reconcile_move move =
			hpx_reconcile_judge(reconcile, &received, by, events[i].about_ms + 1, 0);
		if (move != events[i].move)
			fail_msg("%s, event %zu: got %s, want %s", what, i, hpx_reconcile_name(move),
				 hpx_reconcile_name(events[i].move));
		if (reconcile->not_applied_in_a_row != events[i].row)
			fail_msg("%s, event %zu: row of %u, want %u", what, i,
				 reconcile->not_applied_in_a_row, events[i].row);
		assert_int_equal(reconcile->tries, tries + !events[i].unasked);
	}
}

#define STORY_MAX 12
static const struct {
	const char *what;
	struct event events[STORY_MAX];
	size_t count;
} stories[] = {
	{ "applied, at once", { { YES, SENT, SETTLE_YES, 0, false } }, 1 },
	{ "applied, unasked", { { YES, SENT, SETTLE_YES, 0, true } }, 1 },
	{ "declined, at once", { { DECLINED, SENT, SETTLE_DECLINED, 0, false } }, 1 },
	{ "declined, unasked", { { DECLINED, SENT, SETTLE_DECLINED, 0, true } }, 1 },
	{ "twice in a row", { { NO, 11000, AGAIN, 1, false }, { NO, 11100, SETTLE_NO, 2, false } }, 2 },
	{ "too early does not count at all",
	  { { NO, 10000, AGAIN, 0, false }, { NO, 10500, AGAIN, 0, false }, { NO, 10999, AGAIN, 0, false }, { NO, 11000, AGAIN, 1, false }, { NO, 11500, SETTLE_NO, 2, false } },
	  5 },
	{ "before it was sent", { { NO, 0, AGAIN, 0, false }, { NO, 9999, AGAIN, 0, false } }, 2 },
	{ "too near to the first does not count, and does not end the row",
	  { { NO, 11000, AGAIN, 1, false }, { NO, 11000, AGAIN, 1, false }, { NO, 11099, AGAIN, 1, false }, { NO, 11100, SETTLE_NO, 2, false } },
	  4 },
	{ "not yet ends the row",
	  { { NO, 11000, AGAIN, 1, false }, { NOT_YET, 12000, AGAIN, 0, false }, { NO, 13000, AGAIN, 1, false }, { NO, 14000, SETTLE_NO, 2, false } },
	  4 },
	{ "unclear ends the row",
	  { { NO, 11000, AGAIN, 1, false }, { UNCLEAR, 12000, AGAIN, 0, false }, { NO, 13000, AGAIN, 1, false }, { UNCLEAR, 13500, AGAIN, 0, false }, { NO, 14000, AGAIN, 1, false }, { NO, 15000, SETTLE_NO, 2, false } },
	  6 },
	{ "a row that was ended forgets its first moment",
	  { { NO, 11000, AGAIN, 1, false }, { UNCLEAR, 12000, AGAIN, 0, false }, { NO, 13000, AGAIN, 1, false }, { NO, 13050, AGAIN, 1, false }, { NO, 13100, SETTLE_NO, 2, false } },
	  5 },
	{ "an old one that comes late does not end the row",
	  { { NO, 11000, AGAIN, 1, false }, { NO, 10500, STAY, 1, true }, { NO, 11100, SETTLE_NO, 2, false } },
	  3 },
	{ "applied in the midst of a row", { { NO, 11000, AGAIN, 1, false }, { YES, 11050, SETTLE_YES, 1, false } }, 2 },
	{ "declined in the midst of a row", { { NO, 11000, AGAIN, 1, false }, { DECLINED, 11050, SETTLE_DECLINED, 1, false } }, 2 },
	{ "a webhook and a probe", { { NO, 11000, STAY, 1, true }, { NO, 11200, SETTLE_NO, 2, false } }, 2 },
	{ "two webhooks", { { NO, 11000, STAY, 1, true }, { NO, 11200, SETTLE_NO, 2, true } }, 2 },
	{ "one webhook twice", { { NO, 11000, STAY, 1, true }, { NO, 11000, STAY, 1, true } }, 2 },
	{ "an early webhook", { { NO, 10999, STAY, 0, true }, { NO, 12000, AGAIN, 1, false } }, 2 },
	{ "a webhook ends the row too",
	  { { NO, 11000, AGAIN, 1, false }, { NOT_YET, 11050, STAY, 0, true }, { NO, 12000, AGAIN, 1, false } },
	  3 },
	{ "the budget ends",
	  { { UNCLEAR, 1, AGAIN, 0, false }, { UNCLEAR, 2, AGAIN, 0, false }, { NOT_YET, 3, AGAIN, 0, false }, { UNCLEAR, 4, AGAIN, 0, false }, { NO, 5, AGAIN, 0, false }, { NO, 6, AGAIN, 0, false }, { NOT_YET, 7, AGAIN, 0, false }, { UNCLEAR, 8, AGAIN, 0, false }, { UNCLEAR, 9, AGAIN, 0, false }, { UNCLEAR, 10, PERSON, 0, false }, { UNCLEAR, 11, PERSON, 0, false }, { YES, 12, SETTLE_YES, 0, true } },
	  12 },
};

static void rulings(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(stories); i++) {
		struct hpx_reconcile reconcile = { .sent_ms = SENT };
		play(&reconcile, &rule, stories[i].what, stories[i].events, stories[i].count);
	}
}

/* Every row of four answers, each after settle_after and far from the others:
 * settled as "not applied" exactly where two of them follow each other before
 * anything else settles. */
static void all_rows_of_four(void **state)
{
	static const enum hpx_ruling all[] = { YES, DECLINED, NO, NOT_YET, UNCLEAR };
	(void)state;
	for (size_t n = 0; n < 5 * 5 * 5 * 5; n++) {
		struct hpx_reconcile reconcile = { .sent_ms = SENT };
		enum hpx_ruling before = UNCLEAR;
		size_t rest = n;

		for (int64_t i = 0; i < 4; i++, rest /= 5) {
			enum hpx_ruling ruling = all[rest % 5];
			struct hpx_received_ruling received = { ruling, 20000 + i * 1000, true, 0 };
			enum hpx_reconcile_move want = ruling == YES                ? SETTLE_YES :
						       ruling == DECLINED           ? SETTLE_DECLINED :
						       ruling == NO && before == NO ? SETTLE_NO :
										      AGAIN;
			enum hpx_reconcile_move got =
				hpx_reconcile_judge(&reconcile, &received, &rule, received.about_ms, 0);
			if (got != want)
				fail_msg("row %zu at %d: got %s, want %s", n, (int)i,
					 hpx_reconcile_name(got), hpx_reconcile_name(want));
			if (got != AGAIN)
				break;
			before = ruling;
		}
	}
}

static void the_budget(void **state)
{
	static const struct {
		uint32_t max, tries;
		enum hpx_ruling ruling;
		enum hpx_reconcile_move asked, unasked;
	} rows[] = {
		{ 1, 0, UNCLEAR, PERSON, STAY },
		{ 2, 0, UNCLEAR, AGAIN, STAY },
		{ 2, 1, UNCLEAR, PERSON, STAY },
		{ 0, 0, NOT_YET, PERSON, STAY },
		{ 3, 1, NOT_YET, AGAIN, STAY },
		{ 3, 2, NO, PERSON, STAY },
		{ 3, UINT32_MAX, NO, PERSON, STAY },
		{ UINT32_MAX, UINT32_MAX, NO, PERSON, STAY },
		{ 1, 0, YES, SETTLE_YES, SETTLE_YES },
		{ 1, 9, DECLINED, SETTLE_DECLINED, SETTLE_DECLINED },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_reconcile_rule by = RULE;
		by.tries_max = rows[i].max;
		for (int asked = 0; asked < 2; asked++) {
			struct hpx_reconcile reconcile = { .sent_ms = SENT, .tries = rows[i].tries };
			struct hpx_received_ruling received = { rows[i].ruling, 20000, asked, 0 };
			enum hpx_reconcile_move got = hpx_reconcile_judge(&reconcile, &received, &by, 20000, 0);
			enum hpx_reconcile_move want = asked ? rows[i].asked : rows[i].unasked;
			if (got != want)
				fail_msg("row %zu: got %s, want %s", i, hpx_reconcile_name(got),
					 hpx_reconcile_name(want));
		}
	}
	/* The second of a row may be the last try. */
	struct hpx_reconcile last = { .sent_ms = SENT, .tries = 9, .not_applied_in_a_row = 1, .first_not_applied_ms = 11000 };
	struct hpx_received_ruling no = { NO, 20000, true, 0 };
	assert_int_equal(hpx_reconcile_judge(&last, &no, &rule, 20000, 0), SETTLE_NO);
	assert_int_equal(last.first_not_applied_ms, 11000);
}

static void the_next_question(void **state)
{
	static const struct {
		const char *what;
		uint32_t tries; /* before this one */
		enum hpx_ruling ruling;
		int64_t about_ms, now_ms;
		int64_t retry_after_ms;
		uint64_t random;
		int64_t want;
	} rows[] = {
		{ "backoff", 0, UNCLEAR, 20000, 20005, 0, UINT64_MAX, 20015 },
		{ "from now, not from the question", 0, UNCLEAR, 20000, 30000, 0, UINT64_MAX, 30010 },
		{ "it grows", 3, NOT_YET, 20000, 20000, 0, UINT64_MAX, 20080 },
		{ "jitter", 3, NOT_YET, 20000, 20000, 0, UINT64_MAX / 2, 20040 },
		{ "Retry-After", 3, NOT_YET, 20000, 20000, 700, UINT64_MAX, 20700 },
		{ "a shorter Retry-After", 3, NOT_YET, 20000, 20000, 70, UINT64_MAX, 20080 },
		{ "a Retry-After beyond its bound", 3, NOT_YET, 20000, 20000, 5001, 0, 25000 },
		{ "early, with tries to spare", 0, NO, 10000, 10000, 0, UINT64_MAX, 10010 },
		{ "early, three left", 6, NO, 10000, 10000, 0, 0, 10000 },
		{ "early, two left: kept", 7, NO, 10000, 10000, 0, 0, 11000 },
		{ "early, one left: kept", 8, UNCLEAR, 10000, 10000, 0, 0, 11000 },
		{ "late, one left", 8, UNCLEAR, 20000, 20000, 0, 0, 20000 },
		{ "after the first that counts", 0, NO, 11000, 11000, 0, 0, 11100 },
		{ "after the first, by backoff", 6, NO, 11000, 11000, 0, UINT64_MAX, 11640 },
		{ "the first was asked long ago", 0, NO, 11000, 15000, 0, 0, 15000 },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_reconcile reconcile = { .sent_ms = SENT, .tries = rows[i].tries, .ask_at_ms = 7 };
		struct hpx_received_ruling received = { rows[i].ruling, rows[i].about_ms, true, rows[i].retry_after_ms };
		assert_int_equal(hpx_reconcile_judge(&reconcile, &received, &rule, rows[i].now_ms,
						     rows[i].random),
				 AGAIN);
		if (reconcile.ask_at_ms != rows[i].want)
			fail_msg("%s: got %lld, want %lld", rows[i].what, (long long)reconcile.ask_at_ms,
				 (long long)rows[i].want);
		/* Unasked, the plan stays. */
		reconcile.ask_at_ms = 7;
		received.asked = false;
		hpx_reconcile_judge(&reconcile, &received, &rule, rows[i].now_ms, rows[i].random);
		assert_int_equal(reconcile.ask_at_ms, 7);
	}
}

static void the_first_question(void **state)
{
	struct hpx_reconcile_rule two = RULE;
	struct hpx_reconcile reconcile = { .sent_ms = SENT };
	(void)state;
	assert_int_equal(hpx_reconcile_first_ms(&reconcile, &rule, 10100, UINT64_MAX), 10110);
	two.tries_max = 2;
	assert_int_equal(hpx_reconcile_first_ms(&reconcile, &two, 10100, UINT64_MAX), 11000);
	assert_int_equal(hpx_reconcile_first_ms(&reconcile, &two, 12000, UINT64_MAX), 12010);
}

/* A sender whose clock runs ahead cannot shorten the wait, and no distance
 * asked for still means a later moment. */
static void clocks(void **state)
{
	struct hpx_reconcile reconcile = { .sent_ms = SENT };
	struct hpx_received_ruling ahead = { NO, 99999, true, 0 };
	struct hpx_reconcile_rule no_distance = RULE;
	(void)state;
	assert_int_equal(hpx_reconcile_judge(&reconcile, &ahead, &rule, 10999, 0), AGAIN);
	assert_int_equal(reconcile.not_applied_in_a_row, 0);
	assert_int_equal(hpx_reconcile_judge(&reconcile, &ahead, &rule, 11000, 0), AGAIN);
	assert_int_equal(reconcile.first_not_applied_ms, 11000);
	no_distance.confirm_after_ms = 0;
	assert_int_equal(hpx_reconcile_judge(&reconcile, &ahead, &no_distance, 11000, 0), AGAIN);
	assert_int_equal(reconcile.ask_at_ms, 11001);
	assert_int_equal(hpx_reconcile_judge(&reconcile, &ahead, &no_distance, 11001, 0), SETTLE_NO);
}

/* Times from a damaged row do not overflow, and never settle early. */
static void the_ends_of_the_scale(void **state)
{
	static const int64_t times[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX };
	struct hpx_reconcile_rule by = RULE;
	(void)state;
	for (size_t n = 0; n < 7 * 7 * 7 * 7; n++) {
		struct hpx_reconcile reconcile = { .sent_ms = times[n % 7] };
		struct hpx_received_ruling received = { NO, times[n / 7 % 7], true, times[n / 49 % 7] };
		by.settle_after_ms = by.confirm_after_ms = times[n / 343];
		assert_int_equal(hpx_reconcile_judge(&reconcile, &received, &by, times[n / 7 % 7],
						     UINT64_MAX),
				 AGAIN);
	}
	assert_string_equal(hpx_reconcile_name(HPX_RECONCILE_COUNT), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rulings),
		cmocka_unit_test(all_rows_of_four),
		cmocka_unit_test(the_budget),
		cmocka_unit_test(the_next_question),
		cmocka_unit_test(the_first_question),
		cmocka_unit_test(clocks),
		cmocka_unit_test(the_ends_of_the_scale),
	};
	return cmocka_run_group_tests_name("reconcile", tests, NULL, NULL);
}
