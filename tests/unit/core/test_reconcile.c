/* Shows what each ruling leads to: what settles at once, that "not applied"
 * counts only late and twice in a row, what ends the row, when the next
 * question is asked, and when a person is called. */
#include "../test.h"

#include "core/json.h"
#include "core/number.h"
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

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define APPLIED HPX_RULING_APPLIED
#define DECLINED HPX_RULING_DECLINED
#define NOT_APPLIED HPX_RULING_NOT_APPLIED
#define NOT_YET HPX_RULING_NOT_YET
#define UNCLEAR HPX_RULING_UNCLEAR

static const unsigned applied_statuses[] = { 201, 299, 410 };
static const unsigned declined_statuses[] = { 402, 422 };
static const unsigned not_applied_statuses[] = { 404, 410 };
static const unsigned not_yet_statuses[] = { 202, 503 };
static const struct hpx_span applied_values[] = { HPX_SPAN_INIT("succeeded"), HPX_SPAN_INIT("1"),
						  HPX_SPAN_INIT("true"), HPX_SPAN_INIT("both") };
static const struct hpx_span declined_values[] = { HPX_SPAN_INIT("failed"), HPX_SPAN_INIT("-2.50"),
						   HPX_SPAN_INIT("false"), HPX_SPAN_INIT("both"), HPX_SPAN_INIT("zur\xc3\xbc"
														"ck") };
static const struct hpx_span not_applied_values[] = { HPX_SPAN_INIT("not_found"), HPX_SPAN_INIT("0"),
						      HPX_SPAN_INIT("null"), HPX_SPAN_INIT("both"), HPX_SPAN_INIT("") };
static const struct hpx_span not_yet_values[] = { HPX_SPAN_INIT("pending"), HPX_SPAN_INIT("1e3") };

#define SIGNS(name) \
	{ \
		name##_statuses, COUNT(name##_statuses), name##_values, COUNT(name##_values) \
	}
static const struct hpx_ruling_mapping with_pointer = { HPX_SPAN_INIT("/data/status"),
							{ SIGNS(applied), SIGNS(declined), SIGNS(not_applied), SIGNS(not_yet) } };
static const struct hpx_ruling_mapping statuses_only = { { NULL, 0 },
							 { SIGNS(applied), SIGNS(declined), SIGNS(not_applied), SIGNS(not_yet) } };
static const struct hpx_ruling_mapping nothing = { HPX_SPAN_INIT("/data/status"), { { 0 } } };

static void expect(enum hpx_ruling got, enum hpx_ruling want, unsigned status, const char *body)
{
	if (got != want)
		fail_msg("%u %s: got %s, want %s", status, body, hpx_ruling_name(got),
			 hpx_ruling_name(want));
}

#define AT(value) "{\"data\":{\"status\":" value "}}"

static void answers(void **state)
{
	static const struct {
		unsigned status;
		const char *body;
		enum hpx_ruling with_pointer;
		enum hpx_ruling statuses_only;
	} rows[] = {
		/* A status that is listed decides, whatever the body says. */
		{ 201, AT("\"failed\""), APPLIED, APPLIED },
		{ 299, "", APPLIED, APPLIED },
		{ 402, AT("\"succeeded\""), DECLINED, DECLINED },
		{ 422, "", DECLINED, DECLINED },
		{ 404, AT("\"succeeded\""), NOT_APPLIED, NOT_APPLIED },
		{ 202, AT("\"succeeded\""), NOT_YET, NOT_YET },
		{ 503, "", NOT_YET, NOT_YET },
		/* One that is not: the body of a 2xx, where there is a pointer. */
		{ 200, AT("\"succeeded\""), APPLIED, UNCLEAR },
		{ 200, AT("\"failed\""), DECLINED, UNCLEAR },
		{ 200, AT("\"not_found\""), NOT_APPLIED, UNCLEAR },
		{ 200, AT("\"pending\""), NOT_YET, UNCLEAR },
		{ 200, AT("\"other\""), UNCLEAR, UNCLEAR },
		{ 200, "", UNCLEAR, UNCLEAR },
		{ 298, AT("\"succeeded\""), APPLIED, UNCLEAR },
		/* The body of no other: an error page may hold anything. */
		{ 199, AT("\"succeeded\""), UNCLEAR, UNCLEAR },
		{ 300, AT("\"succeeded\""), UNCLEAR, UNCLEAR },
		{ 400, AT("\"not_found\""), UNCLEAR, UNCLEAR },
		{ 500, AT("\"not_found\""), UNCLEAR, UNCLEAR },
		{ 0, AT("\"succeeded\""), UNCLEAR, UNCLEAR },
		/* Listed twice. */
		{ 410, AT("\"succeeded\""), UNCLEAR, UNCLEAR },
	};
	enum hpx_ruling got;
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_span body = hpx_span_of(rows[i].body);
		assert_status(hpx_ruling_of_answer(&with_pointer, rows[i].status, body, &got), HPX_OK);
		expect(got, rows[i].with_pointer, rows[i].status, rows[i].body);
		assert_status(hpx_ruling_of_answer(&statuses_only, rows[i].status, body, &got), HPX_OK);
		expect(got, rows[i].statuses_only, rows[i].status, rows[i].body);
		assert_status(hpx_ruling_of_answer(&nothing, rows[i].status, body, &got), HPX_OK);
		expect(got, UNCLEAR, rows[i].status, rows[i].body);
	}
}

/* The usual mapping: 200 applied, 404 not applied, all else unclear. */
static void every_status(void **state)
{
	static const unsigned ok[] = { 200 }, gone[] = { 404 };
	static const struct hpx_ruling_mapping mapping = { { NULL, 0 },
							   { [APPLIED] = { ok, 1, NULL, 0 }, [NOT_APPLIED] = { gone, 1, NULL, 0 } } };
	enum hpx_ruling got;
	(void)state;
	for (unsigned status = 0; status < 1000; status++) {
		assert_status(hpx_ruling_of_answer(&mapping, status, HPX_SPAN("{}"), &got), HPX_OK);
		expect(got, status == 200 ? APPLIED : status == 404 ? NOT_APPLIED :
								      UNCLEAR,
		       status, "{}");
	}
}

static void bodies(void **state)
{
	static const struct {
		const char *body;
		enum hpx_ruling want;
	} rows[] = {
		/* Strings, byte by byte, however they are written. */
		{ AT("\"succeeded\""), APPLIED },
		{ AT("\"suc\\u0063eeded\""), APPLIED },
		{ AT("\"zur\xc3\xbc"
		     "ck\""),
		  DECLINED },
		{ AT("\"zur\\u00fcck\""), DECLINED },
		{ AT("\"Succeeded\""), UNCLEAR },
		{ AT("\"succeeded \""), UNCLEAR },
		{ AT("\"succeede\""), UNCLEAR },
		{ AT("\"\""), NOT_APPLIED },
		/* Numbers, by their value; as strings, by their bytes. */
		{ AT("1"), APPLIED },
		{ AT("1.0"), APPLIED },
		{ AT("10e-1"), APPLIED },
		{ AT("1.0000000000000000000000001"), UNCLEAR },
		{ AT("-1"), UNCLEAR },
		{ AT("-2.5"), DECLINED },
		{ AT("-25e-1"), DECLINED },
		{ AT("2.5"), UNCLEAR },
		{ AT("0"), NOT_APPLIED },
		{ AT("-0.0"), NOT_APPLIED },
		{ AT("1000"), NOT_YET },
		{ AT("\"1\""), APPLIED },
		{ AT("\"1.0\""), UNCLEAR },
		{ AT("\"-2.5\""), UNCLEAR },
		/* The three names. */
		{ AT("true"), APPLIED },
		{ AT("false"), DECLINED },
		{ AT("null"), NOT_APPLIED },
		/* Listed for two rulings. */
		{ AT("\"both\""), UNCLEAR },
		/* No value, or no JSON. */
		{ AT("[]"), UNCLEAR },
		{ AT("{}"), UNCLEAR },
		{ AT("[\"succeeded\"]"), UNCLEAR },
		{ "{\"data\":{}}", UNCLEAR },
		{ "{\"data\":\"succeeded\"}", UNCLEAR },
		{ "{\"status\":\"succeeded\"}", UNCLEAR },
		{ "{}", UNCLEAR },
		{ "[]", UNCLEAR },
		{ "", UNCLEAR },
		{ "succeeded", UNCLEAR },
		{ "\"succeeded\"", UNCLEAR },
		{ AT("\"succeeded\"") "x", UNCLEAR },
		{ "{\"data\":{\"status\":\"succeeded\",\"status\":\"failed\"}}", UNCLEAR },
		{ "{\"data\":{\"status\":\"succeeded\"}", UNCLEAR },
		{ AT("\"\xff\""), UNCLEAR },
	};
	enum hpx_ruling got;
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_span body = hpx_span_of(rows[i].body);
		assert_status(hpx_ruling_of_body(&with_pointer, body, &got), HPX_OK);
		expect(got, rows[i].want, 0, rows[i].body);
		assert_status(hpx_ruling_of_body(&statuses_only, body, &got), HPX_OK);
		expect(got, UNCLEAR, 0, rows[i].body);
	}
}

/* A value that is far too long is no memory trouble, only unclear. */
static void long_values(void **state)
{
	enum { LEN = 100000 };
	char *body = malloc(LEN);
	enum hpx_ruling got = APPLIED;
	(void)state;
	assert_non_null(body);
	memset(body, 'a', LEN);
	memcpy(body, "{\"data\":{\"status\":\"", 19);
	memcpy(body + LEN - 3, "\"}}", 3);
	assert_status(hpx_ruling_of_body(&with_pointer, hpx_span(body, LEN), &got), HPX_OK);
	assert_int_equal(got, UNCLEAR);
	free(body);
}

static void lookups(void **state)
{
	static const char doc[] = "{\"id\":\"pay_1\",\"n\":12.50,\"big\":12345678901234567890.10,\"a/b\":{\"~\":true},"
				  "\"list\":[\"zero\",{\"deep\":[[\"x\"]]}],\"esc\":\"\\u00e9\\n\",\"\":\"empty\",\"none\":null,\"long\":\"123456789\"}";
	static const struct {
		const char *doc, *pointer;
		enum hpx_status status;
		enum hpx_json_kind kind;
		const char *text;
	} rows[] = {
		{ doc, "/id", HPX_OK, HPX_JSON_STRING, "pay_1" },
		{ doc, "/n", HPX_OK, HPX_JSON_NUMBER, "12.50" },
		{ doc, "/a~1b/~0", HPX_OK, HPX_JSON_LITERAL, "true" },
		{ doc, "/list/0", HPX_OK, HPX_JSON_STRING, "zero" },
		{ doc, "/list/1/deep/0/0", HPX_OK, HPX_JSON_STRING, "x" },
		{ doc, "/esc", HPX_OK, HPX_JSON_STRING, "\xc3\xa9\n" },
		{ doc, "/", HPX_OK, HPX_JSON_STRING, "empty" },
		{ doc, "/none", HPX_OK, HPX_JSON_LITERAL, "null" },
		{ "\"root\"", "", HPX_OK, HPX_JSON_STRING, "root" },
		{ " 7 ", "", HPX_OK, HPX_JSON_NUMBER, "7" },
		{ "\"\"", "", HPX_OK, HPX_JSON_STRING, "" },
		{ doc, "", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/list", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/list/2", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/list/00", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/list/-", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/id/0", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/ID", HPX_NOT_FOUND, 0, NULL },
		{ doc, "id", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/a~1b/~", HPX_NOT_FOUND, 0, NULL },
		{ "1", "/0", HPX_NOT_FOUND, 0, NULL },
		{ "[]", "/0", HPX_NOT_FOUND, 0, NULL },
		{ doc, "/big", HPX_TOO_LARGE, 0, NULL },
		{ doc, "/long", HPX_TOO_LARGE, 0, NULL },
		{ "", "/id", HPX_INVALID, 0, NULL },
		{ "{\"id\":1}}", "/id", HPX_INVALID, 0, NULL },
		{ "{\"id\":1,\"id\":2}", "/id", HPX_INVALID, 0, NULL },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_json_scalar got = { HPX_JSON_OBJECT, HPX_SPAN_INIT("untouched") };
		struct hpx_arena arena;
		hpx_arena_init(&arena, 4096);
		enum hpx_status status = hpx_json_lookup(hpx_span_of(rows[i].doc), hpx_span_of(rows[i].pointer),
							 8, &arena, &got);
		if (status != rows[i].status)
			fail_msg("%s: got %s, want %s", rows[i].pointer, hpx_status_name(status),
				 hpx_status_name(rows[i].status));
		assert_int_equal(got.kind, status == HPX_OK ? rows[i].kind : HPX_JSON_OBJECT);
		assert_span(got.text, status == HPX_OK ? rows[i].text : "untouched");
		hpx_arena_done(&arena);
	}
}

static void deep_and_full(void **state)
{
	static char body[200000];
	struct hpx_json_scalar got;
	struct hpx_arena arena;
	(void)state;
	memset(body, '[', sizeof(body));
	hpx_arena_init(&arena, 0);
	assert_status(hpx_json_lookup(hpx_span(body, sizeof(body)), HPX_SPAN("/0"), 8, &arena, &got), HPX_INVALID);
	assert_status(hpx_json_lookup(HPX_SPAN("[1]"), HPX_SPAN("/0"), 8, &arena, &got), HPX_NOMEM);
	hpx_arena_done(&arena);
}

static void amounts(void **state)
{
	static const struct {
		const char *a, *b;
		bool equal;
	} rows[] = {
		{ "10", "10.00", true },
		{ "10", "1e1", true },
		{ "10.50", "10.5", true },
		{ "+10", "10", true },
		{ "010.00", "10", true },
		{ " 10 ", "10\t", true },
		{ "0", "-0.00", true },
		{ "00", "0", true },
		{ "-5", "-5.0", true },
		{ "1000000", "1E6", true },
		{ "0.001", "1e-3", true },
		{ "0.1", "0.10000000000000000000", true },
		{ "-007.5", "-7.50", true },
		{ "00.5", "0.5", true },
		{ "12345678901234567890.01", "1234567890123456789001e-2", true },
		{ "120.5", "1.205e2", true },
		{ "0e99", "0", true },
		{ "10", "10.01", false },
		{ "5", "-5", false },
		{ "10", "100", false },
		{ "1", "0.1", false },
		{ "12345678901234567890.01", "12345678901234567890.02", false },
		{ "9007199254740993", "9007199254740992", false },
		{ "0.1", "0.10000000000000000001", false },
		{ "12", "21", false },
		{ "1.23", "12.3", false },
		/* What is no amount equals nothing, not even itself. */
		{ "", "", false },
		{ "abc", "abc", false },
		{ "1,000", "1,000", false },
		{ "1.", "1.", false },
		{ ".5", ".5", false },
		{ "--1", "--1", false },
		{ "+-1", "+-1", false },
		{ "1 0", "1 0", false },
		{ "EUR 1", "EUR 1", false },
		{ "0x10", "0x10", false },
		{ "1e", "1e", false },
		{ "+", "+", false },
		{ "NaN", "NaN", false },
		{ "-", "-", false },
		{ "1e1000001", "1e1000001", false },
		{ "1e99999999999999999999", "1e99999999999999999998", false },
		{ "1e1000000", "1e1000000", true },
		{ "1e-1000000", "10e-1000001", true },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_span a = hpx_span_of(rows[i].a), b = hpx_span_of(rows[i].b);
		if (hpx_amount_eq(a, b) != rows[i].equal || hpx_amount_eq(b, a) != rows[i].equal)
			fail_msg("%s and %s: want %s", rows[i].a, rows[i].b, rows[i].equal ? "equal" : "not equal");
	}
	assert_false(hpx_amount_eq(hpx_span(NULL, 0), hpx_span(NULL, 0)));
}

static void names(void **state)
{
	static const char *const want[] = { "applied", "declined", "not_applied", "not_yet", "unclear", "?" };
	(void)state;
	for (unsigned i = 0; i < COUNT(want); i++)
		assert_string_equal(hpx_ruling_name((enum hpx_ruling)i), want[i]);
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
		cmocka_unit_test(answers),
		cmocka_unit_test(every_status),
		cmocka_unit_test(bodies),
		cmocka_unit_test(long_values),
		cmocka_unit_test(lookups),
		cmocka_unit_test(deep_and_full),
		cmocka_unit_test(amounts),
		cmocka_unit_test(names),
	};
	return cmocka_run_group_tests_name("reconcile", tests, NULL, NULL);
}
