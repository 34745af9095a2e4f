/* Shows what the outbox promises on every store that keeps one: jobs are claimed
 * in order, once, and by nobody else; what was sent and not heard of is sent
 * again only under a key that is honoured; an operation ends with the job that
 * answers for it. */
#include "delivery.h"

enum { A = 1,
       B = 2,
       C = 3 };
#define BODY 1
#define HOUR_MS 3600000

/* ---- claims ---- */

static void claims_come_in_order_and_within_their_room(void **state)
{
	static const char *const names[] = { "a", "b", "c" };
	struct fixture *f = *state;

	for (unsigned i = 0; i < 3; i++) {
		reserve(f, i, BODY, A);
		assert_status(owe(f, i, A, names[i]), HPX_OK);
		advance(f, 10);
	}
	assert_string_equal(claim_names(f, 0), "");
	assert_string_equal(claim_names(f, 2), "a b");
	assert_string_equal(claim_names(f, 2), "c");
	assert_string_equal(claim_names(f, 2), "");
}

static void another_targets_jobs_are_not_taken(void **state)
{
	struct fixture *f = *state;
	struct hpx_claim claims[2] = { claim_of(5, 0), claim_of(5, 0) };
	struct hpx_store_op op = op_of(HPX_VERB_CLAIM, 0, 0);

	accept_later(f, 1, A);
	claims[0].target = HPX_SPAN("printer");
	op.claim.claims = claims;
	op.claim.claim_count = 1;
	assert_status(run_op(f, &op), HPX_OK);
	assert_null(op.claim.jobs);
	op.claim.claim_count = 2;
	assert_status(run_op(f, &op), HPX_OK);
	assert_non_null(op.claim.jobs);
	assert_span(op.claim.jobs->job.path, "/send");
	assert_span(op.claim.jobs->job.headers, "Content-Type: text/plain\r\n");
	assert_span(op.claim.jobs->job.body, "hello");
	hpx_job_entry_free(op.claim.jobs);
}

static void an_operations_jobs_go_one_after_the_other(void **state)
{
	struct fixture *f = *state;
	struct hpx_delivery d;

	reserve(f, 1, BODY, A);
	owe(f, 1, A, "first");
	owe(f, 1, A, "second");
	owe(f, 1, A, "third");
	d = claim_one(f, 0);
	assert_string_equal(claim_names(f, 5), "");
	assert_status(end_job(f, &d, HPX_JOB_MOVE_POSTPONE), HPX_OK);
	d = claim_one(f, 0);
	assert_status(end_job(f, &d, HPX_JOB_MOVE_REJECT), HPX_OK);
	assert_string_equal(jobs_of(f, 1), "first=dead second=queued third=queued");
	assert_string_equal(claim_names(f, 5), "");
	assert_status(person_moves(f, d.number, HPX_JOB_MOVE_DISCARD, false), HPX_OK);
	d = claim_one(f, 0);
	assert_status(end_job(f, &d, HPX_JOB_MOVE_DELIVER), HPX_OK);
	assert_string_equal(claim_names(f, 5), "third");
}

/* Ops of one batch see each other. */
static void two_claims_of_one_batch_share_nothing(void **state)
{
	struct fixture *f = *state;
	struct hpx_claim wanted = claim_of(2, 0);
	struct hpx_store_op ops[3], *batch[3];
	struct accept accept;

	for (unsigned key = 0; key < 3; key++)
		accept_later(f, key, A);
	accept_init(&accept, f, 3, A);
	batch[0] = &accept.op;
	for (unsigned i = 1; i < 3; i++) {
		ops[i] = op_of(HPX_VERB_CLAIM, 0, 0);
		ops[i].claim.claims = &wanted;
		ops[i].claim.claim_count = 1;
		batch[i] = &ops[i];
	}
	assert_status(hpx_store_run(f->store, batch, 3, NULL), HPX_OK);
	for (const struct hpx_job_entry *a = ops[1].claim.jobs; a != NULL; a = a->next)
		for (const struct hpx_job_entry *b = ops[2].claim.jobs; b != NULL; b = b->next)
			assert_int_not_equal(a->delivery.number, b->delivery.number);
	assert_non_null(ops[1].claim.jobs);
	assert_non_null(ops[2].claim.jobs);
	hpx_job_entry_free(ops[1].claim.jobs);
	hpx_job_entry_free(ops[2].claim.jobs);
	assert_string_equal(claim_names(f, 5), "");
}

/* More than go into one transaction, with everything else that a batch may hold
 * between them. */
static void turns_of_one_batch_are_each_judged(void **state)
{
	enum { JOBS = 70,
	       TWICE = 3,
	       STRANGER = 5,
	       OPS = JOBS + 5 };
	struct fixture *f = *state;
	static const struct hpx_answer sent = { .status = 201, .kept = true, .body = HPX_SPAN_INIT("sent") };
	struct hpx_job_update turns[OPS] = { { 0 } };
	struct hpx_store_op ops[OPS], *batch[OPS];
	struct accept accept;
	size_t count = 0;

	for (unsigned key = 0; key < JOBS; key++)
		assert_string_equal(accept_later(f, key, A), "created");
	struct hpx_job_entry *jobs = claim(f, JOBS, 0);
	for (const struct hpx_job_entry *job = jobs; job != NULL; job = job->next, count++) {
		ops[count] = op_of(HPX_VERB_JOB, 0, 0);
		ops[count].token = job->delivery.token;
		turns[count] = (struct hpx_job_update){ .number = job->delivery.number,
							.move = HPX_JOB_MOVE_DELIVER,
							.attempts_max = ATTEMPTS_MAX,
							.answer = &sent,
							.status = sent.status };
	}
	assert_int_equal(count, JOBS);
	/* Another token's turn; the same turn again, and one that comes too late; a
	 * job that is not there, and no turn at all. */
	ops[STRANGER].token.bytes[0] ^= 1;
	for (size_t i = JOBS; i < OPS; i++) {
		ops[i] = ops[TWICE];
		turns[i] = turns[TWICE];
	}
	turns[JOBS + 1].move = HPX_JOB_MOVE_POSTPONE;
	turns[JOBS + 1].answer = NULL;
	turns[JOBS + 2].number = INT64_MAX;
	for (size_t i = 0; i < OPS; i++) {
		ops[i].job.update = i == JOBS + 3 ? NULL : &turns[i];
		batch[i] = &ops[i];
	}
	/* And a new operation among them. */
	accept_init(&accept, f, JOBS, A);
	batch[OPS - 1] = batch[1];
	batch[1] = &accept.op;
	assert_status(hpx_store_run(f->store, batch, OPS, NULL), HPX_OK);
	for (size_t i = 0; i < JOBS; i++) {
		assert_status(ops[i].status, i == STRANGER ? HPX_STALE : HPX_OK);
		assert_string_equal(job_state(f, turns[i].number), i == STRANGER ? "sending" : "done");
		if (i != STRANGER)
			assert_int_equal(ops[i].job.after->delivery.number, turns[i].number);
	}
	assert_status(ops[JOBS].status, HPX_OK);
	assert_status(ops[JOBS + 1].status, HPX_REFUSED);
	assert_status(ops[JOBS + 2].status, HPX_NOT_FOUND);
	assert_status(ops[JOBS + 3].status, HPX_MISUSE);
	assert_status(accept.op.status, HPX_OK);
	for (size_t i = 0; i < OPS - 1; i++)
		hpx_job_entry_free(ops[i].job.after);
	hpx_job_entry_free(jobs);
	count = 0;
	for (unsigned key = 0; key < JOBS; key++)
		count += strcmp(state_of(f, key), "completed") == 0;
	assert_int_equal(count, JOBS - 1);
	assert_string_equal(claim_names(f, 9), "answer");
}

static void what_is_postponed_waits_its_time(void **state)
{
	struct fixture *f = *state;
	struct hpx_job_update later = { .move = HPX_JOB_MOVE_POSTPONE, .attempts_max = 3, .delay_ms = 5000, .status = 429 };
	struct hpx_delivery d;

	accept_later(f, 1, A);
	d = claim_one(f, 0);
	later.number = d.number;
	assert_status(turn_job(f, &later, &d.token), HPX_OK);
	assert_int_equal(job_of(f, d.number).status, 429);
	assert_string_equal(claim_names(f, 5), "");
	advance(f, 5000);
	assert_int_equal(claim_one(f, 0).attempt, 2);
}

/* ---- lost claims ---- */

static void a_lost_claim_is_unknown_where_keys_are_not_honoured(void **state)
{
	struct fixture *f = *state;
	struct hpx_delivery d;

	accept_later(f, 1, A);
	d = claim_one(f, 0);
	assert_int_equal(sweep_jobs(f), 0);
	advance(f, LEASE_MS);
	assert_int_equal(sweep_jobs(f), 1);
	assert_string_equal(job_state(f, d.number), "unknown");
	assert_string_equal(state_of(f, 1), "unknown");
	assert_string_equal(claim_names(f, 5), "");
	assert_string_equal(events_of(f, 1), "job_lease_lost outcome_lost");
	/* The worker was only slow, and knows what became of it. */
	assert_status(end_job(f, &d, HPX_JOB_MOVE_DELIVER), HPX_OK);
	assert_string_equal(state_of(f, 1), "completed");
	assert_string_equal(body_of(f, 1), "sent");
}

/* Whoever waits for it is woken by that, and the log says which it was. */
static void a_lost_claim_is_named(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op op = op_of(HPX_VERB_SWEEP_JOBS, 0, 0);
	struct hpx_touched touched[4];
	struct hpx_operation_id want = id_of(1);

	accept_later(f, 1, A);
	claim_one(f, 0);
	advance(f, LEASE_MS);
	memset(touched, 0xa5, sizeof(touched));
	op.sweep_jobs.limit = 4;
	op.sweep_jobs.touched = touched;
	assert_status(run_op(f, &op), HPX_OK);
	assert_int_equal(op.sweep_jobs.count, 1);
	assert_memory_equal(touched[0].id.bytes, want.bytes, sizeof(want.bytes));
}

static void a_lost_claim_is_sent_again_where_they_are(void **state)
{
	struct fixture *f = *state;
	struct hpx_delivery d, again;

	accept_later(f, 1, A);
	d = claim_one(f, HOUR_MS);
	advance(f, LEASE_MS);
	assert_int_equal(sweep_jobs(f), 1);
	assert_string_equal(jobs_of(f, 1), "answer=queued");
	assert_string_equal(state_of(f, 1), "pending");
	assert_status(end_job(f, &d, HPX_JOB_MOVE_DELIVER), HPX_STALE);
	again = claim_one(f, HOUR_MS);
	assert_int_equal(again.number, d.number);
	assert_int_equal(again.first_sent_ms, d.first_sent_ms);
	assert_int_equal(again.attempt, 2);
	/* Past the time of the first sending it is nobody's to send. */
	advance(f, HOUR_MS);
	assert_int_equal(sweep_jobs(f), 1);
	assert_string_equal(job_state(f, d.number), "unknown");
}

static void a_resend_that_comes_too_late_is_unknown(void **state)
{
	struct fixture *f = *state;
	struct hpx_delivery d;

	accept_later(f, 1, A);
	d = claim_one(f, HOUR_MS);
	assert_status(end_job(f, &d, HPX_JOB_MOVE_LOSE), HPX_OK);
	assert_string_equal(job_state(f, d.number), "queued");
	advance(f, HOUR_MS);
	assert_string_equal(claim_names(f, 5), "");
	assert_string_equal(job_state(f, d.number), "unknown");
	assert_string_equal(state_of(f, 1), "unknown");
}

/* A worker that dies of a job must not do so for ever. */
static void a_job_that_kills_its_worker_ends(void **state)
{
	struct fixture *f = *state;
	int64_t number = 0;

	accept_later(f, 1, A);
	for (unsigned i = 0; i < ATTEMPTS_MAX; i++) {
		number = claim_one(f, HOUR_MS).number;
		advance(f, LEASE_MS);
		assert_int_equal(sweep_jobs(f), 1);
	}
	assert_string_equal(claim_names(f, 5), "");
	assert_string_equal(job_state(f, number), "unknown");
}

/* ---- the way of an accepted operation ---- */

static void the_jobs_answer_is_the_operations(void **state)
{
	struct fixture *f = *state;
	struct hpx_job_update turn = { .move = HPX_JOB_MOVE_DELIVER, .status = 201, .provider_id = HPX_SPAN("msg_7") };
	struct hpx_answer answer = { .status = 201, .kept = true, .headers = HPX_SPAN("A: b\r\n"), .body = HPX_SPAN("sent") };
	struct hpx_delivery d;

	assert_string_equal(accept_later(f, 1, A), "created");
	assert_string_equal(accept_later(f, 1, A), "created"); /* its own, once more */
	assert_string_equal(accept_later(f, 1, B), "pending");
	d = claim_one(f, 0);
	assert_true(d.answers);
	turn.number = d.number;
	turn.answer = &answer;
	assert_status(turn_job(f, &turn, &d.token), HPX_OK);
	assert_status(turn_job(f, &turn, &d.token), HPX_OK); /* the same again */
	assert_string_equal(state_of(f, 1), "completed");
	assert_int_equal(record_of(f, 1).status, 201);
	assert_string_equal(body_of(f, 1), "sent");
	assert_string_equal(accept_later(f, 1, B), "replay");
	assert_string_equal(job_of(f, d.number).provider_id, "msg_7");
	assert_string_equal(events_of(f, 1), "job_delivered completed");
	advance(f, RETENTION_MS);
	reap(f);
	assert_string_equal(state_of(f, 1), "none");
	assert_string_equal(jobs_of(f, 1), "answer=done"); /* jobs outlive it */
}

struct failing {
	enum hpx_store_point point;
	bool failed;
};

static enum hpx_status fail_once(void *user, enum hpx_store_point point)
{
	struct failing *failing = user;

	if (failing->failed || point != failing->point)
		return HPX_OK;
	failing->failed = true;
	return HPX_IO;
}

/* Either both are there or neither; who asks again finds out by the token. */
static void an_operation_and_its_job_are_one_write(void **state)
{
	static const enum hpx_store_point points[] = { HPX_STORE_RUN_BEFORE, HPX_STORE_RUN_AFTER };
	struct fixture *f = *state;

	for (unsigned key = 0; key < 2; key++) {
		struct failing failing = { .point = points[key] };
		struct accept accept;
		struct hpx_store_op *op = &accept.op;
		bool kept = points[key] == HPX_STORE_RUN_AFTER;

		f->store->fault = fail_once;
		f->store->fault_user = &failing;
		accept_init(&accept, f, key, A);
		assert_status(hpx_store_run(f->store, &op, 1, NULL), HPX_IO);
		f->store->fault = NULL;
		assert_status(hpx_store_recover(f->store, NULL), HPX_OK);
		assert_string_equal(state_of(f, key), kept ? "pending" : "none");
		assert_string_equal(jobs_of(f, key), kept ? "answer=queued" : "");
		assert_string_equal(accept_later(f, key, A), "created");
		assert_string_equal(jobs_of(f, key), "answer=queued");
	}
	assert_string_equal(claim_names(f, 5), "answer answer");
}

/* A claim whose commit was not heard of is found again by the op's token. */
static void an_unheard_claim_is_found_again(void **state)
{
	struct fixture *f = *state;
	struct failing failing = { .point = HPX_STORE_RUN_AFTER };
	struct hpx_claim wanted = claim_of(5, 0);
	struct hpx_store_op op = op_of(HPX_VERB_CLAIM, 0, C), *batch = &op;

	accept_later(f, 1, A);
	op.claim.claims = &wanted;
	op.claim.claim_count = 1;
	f->store->fault = fail_once;
	f->store->fault_user = &failing;
	assert_status(hpx_store_run(f->store, &batch, 1, NULL), HPX_IO);
	f->store->fault = NULL;
	assert_status(hpx_store_recover(f->store, NULL), HPX_OK);
	assert_string_equal(jobs_of(f, 1), "answer=sending");
	accept_later(f, 2, A);
	assert_status(run_op(f, &op), HPX_OK);
	assert_non_null(op.claim.jobs);
	assert_null(op.claim.jobs->next);
	assert_status(end_job(f, &op.claim.jobs->delivery, HPX_JOB_MOVE_DELIVER), HPX_OK);
	hpx_job_entry_free(op.claim.jobs);
	assert_string_equal(state_of(f, 1), "completed");
}

static void dead_letters_wait_for_a_person(void **state)
{
	struct fixture *f = *state;
	struct hpx_delivery d;

	accept_later(f, 1, A);
	for (unsigned i = 0; i < ATTEMPTS_MAX; i++) {
		d = claim_one(f, 0);
		assert_status(end_job(f, &d, HPX_JOB_MOVE_POSTPONE), HPX_OK);
	}
	assert_string_equal(job_state(f, d.number), "dead");
	assert_string_equal(state_of(f, 1), "pending");
	assert_status(person_moves(f, d.number, HPX_JOB_MOVE_CLAIM, true), HPX_MISUSE);
	assert_status(person_moves(f, 12345, HPX_JOB_MOVE_RETRY, false), HPX_NOT_FOUND);
	assert_status(person_moves(f, d.number, HPX_JOB_MOVE_RETRY, false), HPX_OK);
	d = claim_one(f, 0);
	assert_int_equal(d.budget, ATTEMPTS_MAX);
	assert_status(end_job(f, &d, HPX_JOB_MOVE_POSTPONE), HPX_OK);
	assert_string_equal(job_state(f, d.number), "queued");
	assert_status(person_moves(f, d.number, HPX_JOB_MOVE_DISCARD, false), HPX_OK);
	assert_string_equal(job_state(f, d.number), "discarded");
	assert_string_equal(state_of(f, 1), "completed");
	assert_int_equal(record_of(f, 1).status, 408);
	assert_non_null(strstr(body_of(f, 1), "not_delivered"));
}

static void an_unknown_is_retried_only_by_force(void **state)
{
	struct fixture *f = *state;
	struct hpx_delivery d;

	accept_later(f, 1, A);
	d = claim_one(f, 0);
	end_job(f, &d, HPX_JOB_MOVE_LOSE);
	assert_status(person_moves(f, d.number, HPX_JOB_MOVE_RETRY, false), HPX_REFUSED);
	assert_status(person_moves(f, d.number, HPX_JOB_MOVE_RETRY, true), HPX_OK);
	assert_string_equal(state_of(f, 1), "pending");
	assert_int_equal(claim_one(f, 0).number, d.number);
}

/* What is not delivered in time: only what was certainly not sent has an end. */
static void what_is_overdue_is_abandoned(void **state)
{
	static const struct {
		const char *before;
		int64_t honours_ms;
		enum hpx_job_move end; /* COUNT: no claim; CLAIM: it stays claimed */
		const char *operation, *jobs;
	} rows[] = {
		{ "queued", 0, HPX_JOB_MOVE_COUNT, "completed", "answer=discarded" },
		{ "postponed", 0, HPX_JOB_MOVE_POSTPONE, "completed", "answer=discarded" },
		{ "sending", 0, HPX_JOB_MOVE_CLAIM, "unknown", "answer=sending" },
		{ "to be sent again", 99 * HOUR_MS, HPX_JOB_MOVE_LOSE, "unknown", "answer=queued" },
	};
	struct fixture *f = *state;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("%s\n", rows[i].before);
		fixture_afresh(f);
		accept_later(f, 1, A);
		if (rows[i].end != HPX_JOB_MOVE_COUNT) {
			struct hpx_delivery d = claim_one(f, rows[i].honours_ms);
			if (rows[i].end != HPX_JOB_MOVE_CLAIM)
				assert_status(end_job(f, &d, rows[i].end), HPX_OK);
		}
		advance(f, RETENTION_MS - 1000);
		reap(f);
		assert_string_equal(state_of(f, 1), "pending");
		advance(f, 1000);
		reap(f);
		assert_string_equal(state_of(f, 1), rows[i].operation);
		assert_string_equal(jobs_of(f, 1), rows[i].jobs);
		assert_string_equal(accept_later(f, 1, B),
				    strcmp(rows[i].operation, "unknown") == 0 ? "unknown" :
										"replay");
	}
}

/* What goes on after its operation was given up still answers for it. */
static void a_late_delivery_completes_what_was_given_up(void **state)
{
	struct fixture *f = *state;
	struct hpx_delivery d;

	accept_later(f, 1, A);
	d = claim_one(f, 0);
	advance(f, RETENTION_MS);
	reap(f);
	assert_string_equal(state_of(f, 1), "unknown");
	assert_status(end_job(f, &d, HPX_JOB_MOVE_DELIVER), HPX_OK);
	assert_string_equal(body_of(f, 1), "sent");
}

/* ---- a person's word about the operation ---- */

static void a_person_settles_the_job_with_its_operation(void **state)
{
	static const struct {
		bool applied;
		const char *operation, *jobs, *again;
	} rows[] = {
		{ true, "completed", "answer=done", "replay" },
		{ false, "failed_retryable", "answer=discarded", "retried" },
	};
	struct fixture *f = *state;

	for (unsigned key = 0; key < 2; key++) {
		struct hpx_delivery d;
		accept_later(f, key, A);
		d = claim_one(f, 0);
		assert_status(end_job(f, &d, HPX_JOB_MOVE_LOSE), HPX_OK);
		assert_status(resolve(f, key, A, rows[key].applied), HPX_OK);
		assert_string_equal(state_of(f, key), rows[key].operation);
		assert_string_equal(jobs_of(f, key), rows[key].jobs);
		assert_string_equal(accept_later(f, key, B), rows[key].again);
	}
	assert_string_equal(jobs_of(f, 1), "answer=queued");
	assert_string_equal(state_of(f, 1), "pending");
	assert_int_equal(claim_one(f, 0).budget, 1);
}

static void what_is_being_sent_is_not_forgotten(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op forget = op_of(HPX_VERB_FORGET, 1, A);
	struct hpx_delivery d;

	forget.forget.force = true;
	accept_later(f, 1, A);
	d = claim_one(f, 0);
	assert_status(run_op(f, &forget), HPX_REFUSED);
	assert_status(end_job(f, &d, HPX_JOB_MOVE_POSTPONE), HPX_OK);
	assert_status(run_op(f, &forget), HPX_OK);
	assert_string_equal(state_of(f, 1), "none");
	assert_string_equal(jobs_of(f, 1), "answer=discarded");
	/* The key used again is another operation, with a job of its own. */
	assert_string_equal(accept_later(f, 1, B), "created");
	assert_string_equal(jobs_of(f, 1), "answer=discarded answer=queued");
}

/* ---- what remains ---- */

static void finished_jobs_go_after_their_time(void **state)
{
	struct fixture *f = *state;
	struct hpx_delivery done, unknown;

	reserve(f, 1, BODY, A);
	owe(f, 1, A, "first");
	done = claim_one(f, 0);
	end_job(f, &done, HPX_JOB_MOVE_DELIVER);
	act(f, HPX_VERB_MARK_UNKNOWN, 1, A);
	accept_later(f, 2, A);
	unknown = claim_one(f, 0);
	end_job(f, &unknown, HPX_JOB_MOVE_LOSE);
	advance(f, 3 * (int64_t)RETENTION_MS);
	reap(f);
	/* Its operation could still be resumed, and ask for it again. */
	assert_string_equal(job_state(f, done.number), "done");
	assert_string_equal(job_state(f, unknown.number), "unknown");
	assert_status(resolve(f, 1, A, true), HPX_OK);
	reap(f);
	assert_string_equal(job_state(f, done.number), "none");
	assert_string_equal(job_state(f, unknown.number), "unknown");
}

static void what_is_there_is_counted(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_stats stats;
	struct hpx_delivery d;

	for (unsigned key = 1; key <= 5; key++)
		accept_later(f, key, A);
	d = claim_one(f, 0);
	end_job(f, &d, HPX_JOB_MOVE_DELIVER);
	d = claim_one(f, 0);
	end_job(f, &d, HPX_JOB_MOVE_LOSE);
	assert_int_equal(unask(f, 2, d.number), 1);
	d = claim_one(f, 0);
	end_job(f, &d, HPX_JOB_MOVE_REJECT);
	claim_one(f, 0);
	assert_status(hpx_store_stats(f->reader, &stats), HPX_OK);
	assert_int_equal(stats.operations[HPX_STATE_COMPLETED], 1);
	assert_int_equal(stats.operations[HPX_STATE_PENDING], 3);
	assert_int_equal(stats.operations[HPX_STATE_UNKNOWN], 1);
	assert_int_equal(stats.jobs[HPX_JOB_QUEUED], 1);
	assert_int_equal(stats.jobs[HPX_JOB_SENDING], 1);
	assert_int_equal(stats.jobs[HPX_JOB_DONE], 1);
	assert_int_equal(stats.jobs[HPX_JOB_UNKNOWN], 1);
	assert_int_equal(stats.jobs[HPX_JOB_DEAD], 1);
	assert_int_equal(stats.jobs[HPX_JOB_DISCARDED], 0);
	assert_int_equal(stats.dead_jobs, 2);
	assert_int_equal(stats.dead_operations, 1);
	assert_true(stats.oldest_queued_ms > 0);
	assert_true(stats.oldest_unknown_ms > 0);
}

static unsigned count_jobs(struct fixture *f, const struct hpx_job_query *query)
{
	struct hpx_job_entry *jobs = NULL;
	unsigned count = 0;

	assert_status(hpx_store_jobs(f->reader, query, &jobs), HPX_OK);
	for (const struct hpx_job_entry *e = jobs; e != NULL; e = e->next)
		count++;
	hpx_job_entry_free(jobs);
	return count;
}

static void jobs_are_found_by_whatever_is_known(void **state)
{
	struct fixture *f = *state;
	struct hpx_operation_id id = id_of(2);
	struct hpx_job_update turn = { .move = HPX_JOB_MOVE_DELIVER, .status = 200, .provider_id = HPX_SPAN("msg_1") };
	struct hpx_job_query any = { .state = HPX_JOB_STATE_COUNT, .limit = 10 }, query;
	struct hpx_delivery d;

	for (unsigned key = 1; key <= 3; key++)
		accept_later(f, key, A);
	d = claim_one(f, 0);
	turn.number = d.number;
	assert_status(turn_job(f, &turn, &d.token), HPX_OK);
	assert_int_equal(count_jobs(f, &any), 3);
	query = any;
	query.limit = 2;
	assert_int_equal(count_jobs(f, &query), 2);
	query = any;
	query.state = HPX_JOB_QUEUED;
	assert_int_equal(count_jobs(f, &query), 2);
	query = any;
	query.target = HPX_SPAN("printer");
	assert_int_equal(count_jobs(f, &query), 0);
	query = any;
	query.operation = &id;
	assert_int_equal(count_jobs(f, &query), 1);
	query.provider_id = HPX_SPAN("msg_1");
	assert_int_equal(count_jobs(f, &query), 0); /* another operation's */
	query.operation = NULL;
	assert_int_equal(count_jobs(f, &query), 1);
	query.provider_id = HPX_SPAN("");
	assert_int_equal(count_jobs(f, &query), 0);
	query = any;
	query.before = d.number + 1;
	assert_int_equal(count_jobs(f, &query), 1);
}

static void memory_keeps_no_outbox(void **state)
{
	static const enum hpx_verb verbs[] = { HPX_VERB_CLAIM, HPX_VERB_JOB, HPX_VERB_SWEEP_JOBS,
					       HPX_VERB_CLAIM_UNKNOWN, HPX_VERB_RULE, HPX_VERB_ESCALATE };
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT, .limit = 1 };
	struct hpx_job_entry *jobs = NULL;
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		assert_status(act(f, verbs[i], 1, A), HPX_UNSUPPORTED);
	assert_status(hpx_store_jobs(f->reader, &query, &jobs), HPX_UNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_OUTBOXES(claims_come_in_order_and_within_their_room),
		ON_OUTBOXES(another_targets_jobs_are_not_taken),
		ON_OUTBOXES(an_operations_jobs_go_one_after_the_other),
		ON_OUTBOXES(two_claims_of_one_batch_share_nothing),
		ON_OUTBOXES(turns_of_one_batch_are_each_judged),
		ON_OUTBOXES(what_is_postponed_waits_its_time),
		ON_OUTBOXES(a_lost_claim_is_unknown_where_keys_are_not_honoured),
		ON_OUTBOXES(a_lost_claim_is_named),
		ON_OUTBOXES(a_lost_claim_is_sent_again_where_they_are),
		ON_OUTBOXES(a_resend_that_comes_too_late_is_unknown),
		ON_OUTBOXES(a_job_that_kills_its_worker_ends),
		ON_OUTBOXES(the_jobs_answer_is_the_operations),
		ON_OUTBOXES(an_operation_and_its_job_are_one_write),
		ON_OUTBOXES(an_unheard_claim_is_found_again),
		ON_OUTBOXES(dead_letters_wait_for_a_person),
		ON_OUTBOXES(an_unknown_is_retried_only_by_force),
		ON_OUTBOXES(what_is_overdue_is_abandoned),
		ON_OUTBOXES(a_late_delivery_completes_what_was_given_up),
		ON_OUTBOXES(a_person_settles_the_job_with_its_operation),
		ON_OUTBOXES(what_is_being_sent_is_not_forgotten),
		ON_OUTBOXES(finished_jobs_go_after_their_time),
		ON_OUTBOXES(what_is_there_is_counted),
		ON_OUTBOXES(jobs_are_found_by_whatever_is_known),
		ON_MEMORY(memory_keeps_no_outbox),
	};
	return run_on_drivers("outbox", tests);
}
