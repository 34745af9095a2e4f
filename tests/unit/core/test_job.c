/* Shows that a delivery moves as the diagram of core/job.h says and in no other
 * way: every state × move × token, against a table written down here; J1 to J4
 * over the windows of honours_keys and the budgets; and what every answer of a
 * target means. */
#include "../test.h"

#include "core/job.h"

#define NOW 1000000
#define LEASE_NOW 500
#define HOUR 3600000

static const struct hpx_token mine = { { 1 } };
static const struct hpx_token other = { { 2 } };
static const struct hpx_token nobody;

/* In that state, as the usual way leads there: attempt 2, the first sending was
 * answered with "not now", so that nothing is unsure but what was lost. */
static struct hpx_delivery delivery_in(enum hpx_job_state state)
{
	struct hpx_delivery d = { .number = 7,
				  .mark = { { 9 } },
				  .state = state,
				  .attempt = 2,
				  .token = mine,
				  .created_ms = NOW - 10,
				  .due_ms = NOW,
				  .lease_until_ms = LEASE_NOW,
				  .first_sent_ms = NOW - 5 };

	if (state == HPX_JOB_QUEUED || state == HPX_JOB_DISCARDED)
		d.token = nobody;
	if (state == HPX_JOB_UNKNOWN)
		d.unsure = true;
	return d;
}

static struct hpx_job_args args_by(struct hpx_token token)
{
	return (struct hpx_job_args){
		.now = { .wall_ms = NOW, .lease_ms = LEASE_NOW },
		.token = token,
		.owner = 4,
		.lease_ms = 30,
		.attempts_max = 5,
		.delay_ms = 100,
	};
}

/* What each move leads to: Q queued, S sending, D done, U unknown, X dead,
 * - discarded; "." no move at all, "=" the same again. Columns: the moves in
 * the order of HPX_JOB_MOVE_LIST; the claim's lease is lost. */
static const struct {
	enum hpx_job_state from;
	const char *to;
} diagram[] = {
	/* claim, deliver, postpone, lose, reject, sweep, apply, unapply, decline,
	 * retry, discard, requeue */
	{ HPX_JOB_QUEUED, "S.....D...-=" },
	{ HPX_JOB_SENDING, ".DQUXU.....=" },
	{ HPX_JOB_DONE, ".=.........." },
	{ HPX_JOB_UNKNOWN, ".D.=X.DQX.-Q" },
	{ HPX_JOB_DEAD, "....=.D..Q-Q" },
	{ HPX_JOB_DISCARDED, "..........=Q" },
};

static char letter_of(enum hpx_job_state state)
{
	return "?QSDUX-"[state];
}

static const bool needs_token[HPX_JOB_MOVE_COUNT] = {
	[HPX_JOB_MOVE_DELIVER] = true,
	[HPX_JOB_MOVE_POSTPONE] = true,
	[HPX_JOB_MOVE_LOSE] = true,
	[HPX_JOB_MOVE_REJECT] = true,
};

static void check_move(size_t row, enum hpx_job_move move, struct hpx_token token)
{
	struct hpx_delivery before = delivery_in(diagram[row].from);
	struct hpx_delivery d = before;
	struct hpx_job_args args = args_by(token);
	enum hpx_status status = hpx_job_move(&d, move, &args);
	char want = diagram[row].to[move];
	char got = status == HPX_OK ? letter_of(d.state) : '.';
	bool own = hpx_token_eq(&before.token, &token) && !hpx_token_is_void(&token);

	if (needs_token[move] && !own) {
		assert_status(status, HPX_STALE);
		want = '.';
	}
	if (move == HPX_JOB_MOVE_CLAIM && hpx_token_is_void(&token))
		want = '.';
	if (want == '=' || want == '.')
		assert_memory_equal(&d, &before, sizeof(d));
	if (want == '=')
		want = letter_of(before.state);
	if (got != want)
		fail_msg("%s by %s (%s token): got %c, want %c", hpx_job_state_name(before.state),
			 hpx_job_move_name(move), own ? "own" : "other", got, want);
	if (status == HPX_OK)
		assert_true(hpx_job_valid(&d));
}

/* J1, J2. */
static void the_diagram_holds(void **state)
{
	const struct hpx_token tokens[] = { mine, other, nobody };
	(void)state;
	assert_int_equal(sizeof(diagram) / sizeof(diagram[0]), HPX_JOB_STATE_COUNT - 1);
	for (size_t i = 0; i < sizeof(diagram) / sizeof(diagram[0]); i++) {
		assert_int_equal(strlen(diagram[i].to), HPX_JOB_MOVE_COUNT);
		for (int m = 0; m < HPX_JOB_MOVE_COUNT; m++)
			for (size_t t = 0; t < sizeof(tokens) / sizeof(tokens[0]); t++)
				check_move(i, (enum hpx_job_move)m, tokens[t]);
	}
}

static void a_claim_is_written_down_whole(void **state)
{
	struct hpx_delivery d = delivery_in(HPX_JOB_QUEUED);
	struct hpx_job_args args = args_by(other);
	(void)state;
	args.honours_keys_ms = HOUR;
	assert_status(hpx_job_move(&d, HPX_JOB_MOVE_CLAIM, &args), HPX_OK);
	assert_int_equal(d.attempt, 3);
	assert_true(hpx_token_eq(&d.token, &other));
	assert_int_equal(d.owner, 4);
	assert_int_equal(d.lease_until_ms, LEASE_NOW + 30);
	assert_int_equal(d.first_sent_ms, NOW);
	assert_int_equal(d.resend_until_ms, NOW + HOUR);
	assert_false(d.unsure);
	/* Nobody else gets it. */
	assert_status(hpx_job_move(&d, HPX_JOB_MOVE_CLAIM, &args), HPX_REFUSED);
}

static void what_is_due(void **state)
{
	static const struct {
		int64_t due_ms;
		bool want;
	} rows[] = {
		{ 0, true },
		{ NOW, true },
		{ NOW + 1, false },
		{ NOW + HPX_JOB_AHEAD_MAX_MS, false },
		{ NOW + HPX_JOB_AHEAD_MAX_MS + 1, true },
	};
	struct hpx_moment now = { .wall_ms = NOW };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_delivery d = delivery_in(HPX_JOB_QUEUED);
		struct hpx_job_args args = args_by(mine);
		d.due_ms = rows[i].due_ms;
		assert_int_equal(hpx_job_due(&d, &now), rows[i].want);
		assert_status(hpx_job_move(&d, HPX_JOB_MOVE_CLAIM, &args),
			      rows[i].want ? HPX_OK : HPX_REFUSED);
		d = delivery_in(HPX_JOB_UNKNOWN);
		d.due_ms = rows[i].due_ms;
		assert_false(hpx_job_due(&d, &now));
	}
}

/* A target that says "in a week" is not asked again at once. */
static void what_is_put_off_is_not_due_now(void **state)
{
	static const int64_t delays[] = { 1, 49 * (int64_t)HOUR, 7 * 24 * (int64_t)HOUR,
					  HPX_JOB_AHEAD_MAX_MS, HPX_JOB_AHEAD_MAX_MS + 1,
					  INT64_MAX };
	struct hpx_moment now = { .wall_ms = NOW };
	(void)state;
	for (size_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
		struct hpx_delivery d = delivery_in(HPX_JOB_SENDING);
		struct hpx_job_args args = args_by(mine);
		args.delay_ms = delays[i];
		assert_status(hpx_job_move(&d, HPX_JOB_MOVE_POSTPONE, &args), HPX_OK);
		if (hpx_job_due(&d, &now))
			fail_msg("put off by %lld, due at %lld: is due at %d",
				 (long long)delays[i], (long long)d.due_ms, NOW);
	}
}

static void a_live_claim_is_not_swept(void **state)
{
	struct hpx_delivery d = delivery_in(HPX_JOB_SENDING);
	struct hpx_job_args args = args_by(nobody);
	(void)state;
	args.now.lease_ms = LEASE_NOW - 1;
	assert_status(hpx_job_move(&d, HPX_JOB_MOVE_SWEEP, &args), HPX_REFUSED);
	args.owner_dead = true;
	assert_status(hpx_job_move(&d, HPX_JOB_MOVE_SWEEP, &args), HPX_OK);
	assert_int_equal(d.state, HPX_JOB_UNKNOWN);
	assert_true(d.unsure);
	/* Whoever held it may still tell what was answered. */
	args = args_by(mine);
	assert_status(hpx_job_move(&d, HPX_JOB_MOVE_DELIVER, &args), HPX_OK);
	assert_int_equal(d.state, HPX_JOB_DONE);
}

/* J3: a first sending at NOW was lost; when may there be another? */
static const struct {
	int64_t honours_ms; /* when it was first sent */
	int64_t later_ms;   /* when it is looked at again */
	bool held;
	int64_t now_honours_ms; /* what the target honours by then */
	char lost;              /* what losing it then makes of it */
	char claimed;           /* what the next claim makes of it */
} windows[] = {
	{ 0, 1, false, 0, 'U', 'U' },
	{ 0, 1, false, HOUR, 'U', 'U' },
	{ HOUR, 1, false, HOUR, 'Q', 'S' },
	{ HOUR, HOUR - 1, false, HOUR, 'Q', 'S' },
	{ HOUR, HOUR, false, HOUR, 'U', 'U' },
	{ HOUR, HOUR + 1, false, HOUR, 'U', 'U' },
	{ HOUR, HOUR, false, 2 * HOUR, 'U', 'U' },     /* said later: too late */
	{ HOUR, HOUR / 2, false, HOUR / 2, 'Q', 'U' }, /* honoured for less by now */
	{ HOUR, 1, false, 0, 'Q', 'U' },               /* not honoured any more */
	{ HOUR, -1, false, HOUR, 'U', 'U' },           /* the clock was set back */
	{ HOUR, 1, true, HOUR, 'U', 'U' },             /* the clock is not trusted */
};

static struct hpx_delivery sent_once(int64_t honours_ms)
{
	struct hpx_delivery d = delivery_in(HPX_JOB_QUEUED);
	struct hpx_job_args args = args_by(mine);

	d.attempt = 0;
	d.first_sent_ms = 0;
	args.honours_keys_ms = honours_ms;
	assert_status(hpx_job_move(&d, HPX_JOB_MOVE_CLAIM, &args), HPX_OK);
	assert_int_equal(d.state, HPX_JOB_SENDING);
	return d;
}

static void check_letter(size_t row, const char *what, enum hpx_job_state got, char want)
{
	if (letter_of(got) != want)
		fail_msg("row %zu, %s: got %c, want %c", row, what, letter_of(got), want);
}

static void a_lost_sending_is_repeated_only_within_honours_keys(void **state)
{
	static const enum hpx_job_move ways[] = { HPX_JOB_MOVE_LOSE, HPX_JOB_MOVE_SWEEP };
	(void)state;
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		for (size_t w = 0; w < 2; w++) {
			struct hpx_delivery d = sent_once(windows[i].honours_ms);
			struct hpx_job_args args = args_by(mine);
			args.now.wall_ms += windows[i].later_ms;
			args.now.lease_ms += 30;
			args.now.hold_expiry = windows[i].held;
			if (ways[w] == HPX_JOB_MOVE_SWEEP)
				args.attempts_max = 0;
			assert_status(hpx_job_move(&d, ways[w], &args), HPX_OK);
			check_letter(i, hpx_job_move_name(ways[w]), d.state, windows[i].lost);
			assert_true(d.unsure);
		}
	}
}

static void a_claim_past_the_time_makes_it_unknown(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		struct hpx_delivery d = sent_once(windows[i].honours_ms);
		struct hpx_job_args args = args_by(mine);
		if (windows[i].honours_ms == 0)
			continue; /* never queued again */
		args.delay_ms = -10;
		assert_status(hpx_job_move(&d, HPX_JOB_MOVE_LOSE, &args), HPX_OK);
		assert_int_equal(d.state, HPX_JOB_QUEUED);
		args = args_by(other);
		args.now.wall_ms += windows[i].later_ms;
		args.now.hold_expiry = windows[i].held;
		args.honours_keys_ms = windows[i].now_honours_ms;
		assert_status(hpx_job_move(&d, HPX_JOB_MOVE_CLAIM, &args), HPX_OK);
		check_letter(i, "claim", d.state, windows[i].claimed);
		/* The first sending counts, whatever came after it. */
		assert_int_equal(d.first_sent_ms, NOW);
		assert_int_equal(d.resend_until_ms, NOW + windows[i].honours_ms);
		assert_int_equal(d.attempt, windows[i].claimed == 'S' ? 2 : 1);
	}
}

/* What was proved not to have happened begins the time anew. */
static void only_an_unsure_sending_starts_the_clock(void **state)
{
	struct hpx_delivery d = sent_once(HOUR);
	struct hpx_job_args args = args_by(mine);
	(void)state;
	assert_status(hpx_job_move(&d, HPX_JOB_MOVE_POSTPONE, &args), HPX_OK);
	assert_int_equal(d.due_ms, NOW + 100);
	args = args_by(other);
	args.now.wall_ms += 2 * HOUR;
	args.honours_keys_ms = HOUR;
	assert_status(hpx_job_move(&d, HPX_JOB_MOVE_CLAIM, &args), HPX_OK);
	assert_int_equal(d.first_sent_ms, NOW + 2 * HOUR);
	assert_int_equal(d.resend_until_ms, NOW + 3 * HOUR);
}

/* J4: attempts, the budget before a person's retry, whether one was unsure, and
 * what the end of this attempt, or the claim of another, makes of it. */
static void budgets_end_where_they_must(void **state)
{
	static const struct {
		uint32_t attempt, budget, max;
		bool unsure;
		char postponed, lost, claimed;
	} rows[] = {
		{ 1, 0, 2, false, 'Q', 'Q', 'S' },
		{ 2, 0, 2, false, 'X', 'U', 'X' },
		{ 2, 0, 2, true, 'U', 'U', 'U' },
		{ 3, 0, 2, false, 'X', 'U', 'X' },
		{ 3, 2, 2, false, 'Q', 'Q', 'S' },
		{ 4, 2, 2, false, 'X', 'U', 'X' },
		{ 1, 0, 1, false, 'X', 'U', 'X' },
		{ 9, 0, 0, false, 'Q', 'Q', 'S' },
		{ UINT32_MAX, 0, 5, false, 'X', 'U', 'X' },
		{ UINT32_MAX, UINT32_MAX, 5, false, 'Q', 'Q', 'S' },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static const enum hpx_job_move moves[] = { HPX_JOB_MOVE_POSTPONE,
							   HPX_JOB_MOVE_LOSE,
							   HPX_JOB_MOVE_CLAIM };
		const char want[] = { rows[i].postponed, rows[i].lost, rows[i].claimed };
		for (size_t m = 0; m < 3; m++) {
			struct hpx_delivery d = delivery_in(m == 2 ? HPX_JOB_QUEUED :
								     HPX_JOB_SENDING);
			struct hpx_job_args args = args_by(mine);
			d.attempt = rows[i].attempt;
			d.budget = rows[i].budget;
			d.unsure = rows[i].unsure;
			d.resend_until_ms = NOW + HOUR;
			args.attempts_max = rows[i].max;
			args.honours_keys_ms = HOUR;
			assert_status(hpx_job_move(&d, moves[m], &args), HPX_OK);
			check_letter(i, hpx_job_move_name(moves[m]), d.state, want[m]);
		}
	}
}

/* A hundred restarts between the claim and the first byte: the job was never
 * tried, and is neither dead nor older than before. */
static void what_is_given_back_untried_costs_nothing(void **state)
{
	struct hpx_delivery d = delivery_in(HPX_JOB_QUEUED);
	struct hpx_job_args claim = args_by(mine), back = args_by(mine);
	(void)state;
	d.attempt = 0;
	d.first_sent_ms = 0;
	claim.attempts_max = 1;
	claim.honours_keys_ms = HOUR;
	back.attempts_max = 1;
	back.delay_ms = 0;
	back.unsent = true;
	for (int i = 0; i < 100; i++) {
		assert_status(hpx_job_move(&d, HPX_JOB_MOVE_CLAIM, &claim), HPX_OK);
		check_letter((size_t)i, "claimed", d.state, 'S');
		assert_status(hpx_job_move(&d, HPX_JOB_MOVE_POSTPONE, &back), HPX_OK);
		check_letter((size_t)i, "given back", d.state, 'Q');
		assert_int_equal(d.attempt, 0);
		assert_int_equal(d.first_sent_ms, 0);
		/* The same again, by the commit that nobody heard of. */
		assert_status(hpx_job_move(&d, HPX_JOB_MOVE_POSTPONE, &back), HPX_STALE);
	}
	/* What was unsure before stays so, and its clock runs from there. */
	d.unsure = true;
	d.attempt = 1;
	d.first_sent_ms = NOW - 5;
	d.resend_until_ms = NOW + HOUR;
	claim.attempts_max = 2;
	assert_status(hpx_job_move(&d, HPX_JOB_MOVE_CLAIM, &claim), HPX_OK);
	assert_status(hpx_job_move(&d, HPX_JOB_MOVE_POSTPONE, &back), HPX_OK);
	check_letter(0, "unsure", d.state, 'Q');
	assert_true(d.unsure);
	assert_int_equal(d.attempt, 1);
	assert_int_equal(d.first_sent_ms, NOW - 5);
	assert_int_equal(d.resend_until_ms, NOW + HOUR);
}

static void a_persons_retry_has_a_budget_of_its_own(void **state)
{
	struct hpx_delivery d = delivery_in(HPX_JOB_UNKNOWN);
	struct hpx_job_args args = args_by(nobody);
	(void)state;
	assert_status(hpx_job_move(&d, HPX_JOB_MOVE_RETRY, &args), HPX_REFUSED);
	args.force = true;
	args.delay_ms = 0;
	assert_status(hpx_job_move(&d, HPX_JOB_MOVE_RETRY, &args), HPX_OK);
	assert_int_equal(d.state, HPX_JOB_QUEUED);
	assert_int_equal(d.budget, d.attempt);
	assert_false(d.unsure);
	assert_int_equal(d.due_ms, NOW);
	assert_true(hpx_token_is_void(&d.token));
}

/* What is said to have happened is not sent as if for the first time. */
static void what_happened_is_not_sent_anew(void **state)
{
	static const struct {
		uint32_t attempt;
		bool unsure;
		char want;
	} rows[] = { { 0, false, '.' }, { 1, false, 'D' }, { 3, false, 'D' }, { 1, true, '.' } };
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_delivery d = delivery_in(HPX_JOB_QUEUED);
		struct hpx_job_args args = args_by(nobody);
		d.attempt = rows[i].attempt;
		d.unsure = rows[i].unsure;
		enum hpx_status status = hpx_job_move(&d, HPX_JOB_MOVE_APPLY, &args);
		char got = status == HPX_OK ? letter_of(d.state) : '.';
		if (got != rows[i].want)
			fail_msg("row %zu: got %c, want %c", i, got, rows[i].want);
	}
}

/* J4: a target answers 409 while it still works on the same key. */
static void a_conflict_with_an_unsure_sending_settles_nothing(void **state)
{
	static const struct {
		enum hpx_job_move move;
		bool unsure;
		uint32_t status;
		char want;
	} rows[] = {
		{ HPX_JOB_MOVE_DELIVER, true, 409, 'Q' },
		{ HPX_JOB_MOVE_REJECT, true, 409, 'Q' },
		{ HPX_JOB_MOVE_DELIVER, false, 409, 'D' },
		{ HPX_JOB_MOVE_REJECT, false, 409, 'X' },
		{ HPX_JOB_MOVE_DELIVER, true, 404, 'D' },
		{ HPX_JOB_MOVE_REJECT, true, 404, 'X' },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_delivery d = delivery_in(HPX_JOB_SENDING);
		struct hpx_job_args args = args_by(mine);
		d.unsure = rows[i].unsure;
		d.resend_until_ms = NOW + HOUR;
		args.status = rows[i].status;
		assert_status(hpx_job_move(&d, rows[i].move, &args), HPX_OK);
		check_letter(i, hpx_job_move_name(rows[i].move), d.state, rows[i].want);
		assert_int_equal(d.status, rows[i].status);
		assert_int_equal(d.unsure, rows[i].unsure);
	}
}

static void a_providers_id_is_kept_as_far_as_it_is_one(void **state)
{
	static char longer[HPX_PROVIDER_ID_SIZE + 9];
	const struct {
		const char *given, *want;
	} rows[] = {
		{ "pi_123", "pi_123" },
		{ "", "before" },
		{ " \n\t", "before" },
		{ "a b\r\n", "ab" },
	};
	struct hpx_delivery d;
	struct hpx_job_args args = args_by(mine);
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		d = delivery_in(HPX_JOB_SENDING);
		strcpy(d.provider_id, "before");
		args.provider_id = hpx_span_of(rows[i].given);
		assert_status(hpx_job_move(&d, HPX_JOB_MOVE_DELIVER, &args), HPX_OK);
		assert_string_equal(d.provider_id, rows[i].want);
	}
	memset(longer, 'x', sizeof(longer) - 1);
	d = delivery_in(HPX_JOB_SENDING);
	args.provider_id = hpx_span_of(longer);
	assert_status(hpx_job_move(&d, HPX_JOB_MOVE_DELIVER, &args), HPX_OK);
	assert_int_equal(strlen(d.provider_id), HPX_PROVIDER_ID_SIZE - 1);
}

static void broken_deliveries_are_found_out(void **state)
{
	struct hpx_delivery d;
	(void)state;
	for (int s = HPX_JOB_QUEUED; s < HPX_JOB_STATE_COUNT; s++) {
		d = delivery_in((enum hpx_job_state)s);
		assert_true(hpx_job_valid(&d));
		d.mark = (struct hpx_mark){ { 0 } };
		assert_false(hpx_job_valid(&d));
		d = delivery_in((enum hpx_job_state)s);
		d.budget = d.attempt + 1;
		assert_false(hpx_job_valid(&d));
	}
	d = delivery_in(HPX_JOB_QUEUED);
	d.token = mine;
	assert_false(hpx_job_valid(&d));
	d = delivery_in(HPX_JOB_SENDING);
	d.token = nobody;
	assert_false(hpx_job_valid(&d));
	d = delivery_in(HPX_JOB_SENDING);
	d.first_sent_ms = 0;
	assert_false(hpx_job_valid(&d));
	d = delivery_in(HPX_JOB_DONE);
	d.state = HPX_JOB_STATE_COUNT;
	assert_false(hpx_job_valid(&d));
	d.state = (enum hpx_job_state)0;
	assert_false(hpx_job_valid(&d));
}

static void every_job_has_a_key_of_its_own(void **state)
{
	struct hpx_operation_id a = { { 1 } }, b = { { 2 } };
	struct hpx_mark one = { { 1 } }, another = { { 2 } };
	char keys[4][HPX_JOB_KEY_SIZE], again[HPX_JOB_KEY_SIZE];
	(void)state;
	assert_status(hpx_job_key(&a, &one, HPX_SPAN("receipt"), keys[0]), HPX_OK);
	assert_status(hpx_job_key(&b, &one, HPX_SPAN("receipt"), keys[1]), HPX_OK);
	assert_status(hpx_job_key(&a, &another, HPX_SPAN("receipt"), keys[2]), HPX_OK);
	assert_status(hpx_job_key(&a, &one, HPX_SPAN("receipts"), keys[3]), HPX_OK);
	assert_status(hpx_job_key(&a, &one, HPX_SPAN("receipt"), again), HPX_OK);
	assert_string_equal(keys[0], again);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(strlen(keys[i]), HPX_JOB_KEY_SIZE - 1);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(keys[i], keys[j]);
	}
}

/* The header's sentence, status by status. */
static enum hpx_job_move judged(unsigned status, bool retry_after, bool answers,
				enum hpx_server_error server_error)
{
	enum hpx_job_move last = answers ? HPX_JOB_MOVE_DELIVER : HPX_JOB_MOVE_REJECT;
	const enum hpx_job_move of_5xx[] = { [HPX_SERVER_ERROR_RETRY] = HPX_JOB_MOVE_POSTPONE,
					     [HPX_SERVER_ERROR_REPLAY] = last,
					     [HPX_SERVER_ERROR_UNKNOWN] = HPX_JOB_MOVE_LOSE };

	switch (status) {
	case 408:
	case 425:
	case 429:
	case 401:
	case 403:
	case 407:
	case 421:
		return HPX_JOB_MOVE_POSTPONE;
	case 503:
		return retry_after ? HPX_JOB_MOVE_POSTPONE : of_5xx[server_error];
	case 502:
	case 504:
		return HPX_JOB_MOVE_LOSE;
	default:
		if (status >= 200 && status <= 299)
			return HPX_JOB_MOVE_DELIVER;
		if (status >= 300 && status <= 499)
			return last;
		return status >= 500 && status <= 599 ? of_5xx[server_error] : HPX_JOB_MOVE_LOSE;
	}
}

static void every_answer_means_one_thing(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits < 12; bits++) {
		bool retry_after = bits & 1, answers = bits & 2;
		enum hpx_server_error server_error = bits / 4;
		for (unsigned status = 0; status < 1000; status++) {
			enum hpx_job_move got = hpx_job_judge(HPX_SENT_ANSWERED, status,
							      retry_after, answers, server_error);
			enum hpx_job_move want = judged(status, retry_after, answers, server_error);
			if (got != want)
				fail_msg("%u retry_after=%d answers=%d server_error=%s: got %s, want %s",
					 status, retry_after, answers,
					 hpx_server_error_name(server_error), hpx_job_move_name(got),
					 hpx_job_move_name(want));
			assert_int_equal(hpx_job_judge(HPX_SENT_NOTHING, status, retry_after,
						       answers, server_error),
					 HPX_JOB_MOVE_POSTPONE);
			assert_int_equal(hpx_job_judge(HPX_SENT_NO_ANSWER, status, retry_after,
						       answers, server_error),
					 HPX_JOB_MOVE_LOSE);
		}
	}
}

/* The first copy may be what the second one's 409 is about. */
static void an_answer_to_a_second_copy_settles_only_what_it_says(void **state)
{
	static const struct {
		enum hpx_job_move judged;
		unsigned status;
		enum hpx_job_move want;
	} rows[] = {
		{ HPX_JOB_MOVE_DELIVER, 201, HPX_JOB_MOVE_DELIVER },
		{ HPX_JOB_MOVE_DELIVER, 422, HPX_JOB_MOVE_DELIVER },
		{ HPX_JOB_MOVE_DELIVER, 409, HPX_JOB_MOVE_LOSE },
		{ HPX_JOB_MOVE_REJECT, 404, HPX_JOB_MOVE_REJECT },
		{ HPX_JOB_MOVE_REJECT, 409, HPX_JOB_MOVE_LOSE },
		{ HPX_JOB_MOVE_POSTPONE, 429, HPX_JOB_MOVE_LOSE },
		{ HPX_JOB_MOVE_POSTPONE, 503, HPX_JOB_MOVE_LOSE },
		{ HPX_JOB_MOVE_LOSE, 500, HPX_JOB_MOVE_LOSE },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum hpx_job_move got = hpx_job_judge_resent(rows[i].judged, rows[i].status);
		if (got != rows[i].want)
			fail_msg("%s %u: got %s, want %s", hpx_job_move_name(rows[i].judged),
				 rows[i].status, hpx_job_move_name(got),
				 hpx_job_move_name(rows[i].want));
	}
}

static void states_have_names(void **state)
{
	(void)state;
	for (int s = HPX_JOB_QUEUED; s < HPX_JOB_STATE_COUNT; s++) {
		const char *name = hpx_job_state_name((enum hpx_job_state)s);
		assert_int_equal(hpx_job_state_by_name(hpx_span_of(name)), s);
	}
	assert_int_equal(hpx_job_state_by_name(HPX_SPAN("failed")), HPX_JOB_STATE_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_diagram_holds),
		cmocka_unit_test(a_claim_is_written_down_whole),
		cmocka_unit_test(what_is_due),
		cmocka_unit_test(what_is_put_off_is_not_due_now),
		cmocka_unit_test(a_live_claim_is_not_swept),
		cmocka_unit_test(a_lost_sending_is_repeated_only_within_honours_keys),
		cmocka_unit_test(a_claim_past_the_time_makes_it_unknown),
		cmocka_unit_test(only_an_unsure_sending_starts_the_clock),
		cmocka_unit_test(budgets_end_where_they_must),
		cmocka_unit_test(what_is_given_back_untried_costs_nothing),
		cmocka_unit_test(a_persons_retry_has_a_budget_of_its_own),
		cmocka_unit_test(what_happened_is_not_sent_anew),
		cmocka_unit_test(a_conflict_with_an_unsure_sending_settles_nothing),
		cmocka_unit_test(a_providers_id_is_kept_as_far_as_it_is_one),
		cmocka_unit_test(broken_deliveries_are_found_out),
		cmocka_unit_test(every_job_has_a_key_of_its_own),
		cmocka_unit_test(every_answer_means_one_thing),
		cmocka_unit_test(an_answer_to_a_second_copy_settles_only_what_it_says),
		cmocka_unit_test(states_have_names),
	};
	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
