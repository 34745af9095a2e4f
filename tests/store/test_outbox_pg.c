/* Shows what the outbox promises on PostgreSQL, where many share it: workers
 * that claim at the same time never get the same job and never wait for each
 * other; a row that somebody holds delays what needs it and nothing else; a
 * commit that was not heard of is found again by its token. */
#include "claims.h"

#include <pthread.h>

#include "store/committer.h"

#define HOUR_MS 3600000

/* ---- the way of an accepted operation ---- */

static void the_jobs_answer_is_the_operations(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(accept_job(f, 1, A, &mail), "created");
	assert_string_equal(state_of(f, 1), "pending");
	assert_string_equal(accept_job(f, 1, B, &mail), "pending");
	assert_string_equal(accept_job(f, 1, A, &mail), "created"); /* its own, once more */
	struct hpx_job_entry *jobs = claim(f, 10, 0, CLAIM);
	assert_int_equal(length_of(jobs), 1);
	assert_span(jobs->job.body, "hello");
	assert_span(jobs->job.headers, "Content-Type: text/plain\r\n");
	struct hpx_token token = token_of(CLAIM);
	assert_true(hpx_token_eq(&jobs->delivery.token, &token));
	int64_t number = jobs->delivery.number;
	hpx_job_entry_free(jobs);
	assert_int_equal(claim_some(f, 10, CLAIM_AGAIN), 0);
	assert_status(turn(f, number, HPX_JOB_MOVE_DELIVER, CLAIM_AGAIN), HPX_STALE);
	assert_status(turn(f, number, HPX_JOB_MOVE_DELIVER, CLAIM), HPX_OK);
	assert_status(turn(f, number, HPX_JOB_MOVE_DELIVER, CLAIM), HPX_OK);
	assert_string_equal(state_of(f, 1), "completed");
	assert_string_equal(body_of(f, 1), "sent");
	assert_string_equal(job_state(f, 1), "done");
	assert_string_equal(delivery_of(f, 1).provider_id, "m-1");
	assert_string_equal(events_of(f, 1), "job_delivered completed");
	assert_string_equal(accept_job(f, 1, B, &mail), "replay");
	assert_status(turn(f, 12345, HPX_JOB_MOVE_RETRY, 0), HPX_NOT_FOUND);
}

static void a_header_that_is_no_text_is_refused(void **state)
{
	struct fixture *f = *state;
	struct hpx_job job = mail;

	job.headers = HPX_SPAN("X: \xe9\r\n");
	assert_string_equal(accept_job(f, 1, A, &job), hpx_status_name(HPX_INVALID));
	assert_string_equal(state_of(f, 1), "none");
}

/* Two gateways accept the same key: the one that loses leaves no job. */
static void an_operation_accepted_twice_has_one_job(void **state)
{
	struct fixture *f = *state, other;
	struct hpx_ask asks[] = { ask_of(f->store, 1, BODY, A), ask_of(f->store, 2, BODY, A) };
	struct hpx_policy async = *policy();
	struct hpx_store_op ops[2], *batch[] = { &ops[0], &ops[1] };

	other_open(&other, f);
	async.deliver = HPX_DELIVER_ASYNC;
	assert_string_equal(accept_job(&other, 1, B, &mail), "created");
	for (unsigned i = 0; i < 2; i++) {
		ops[i] = op_of(HPX_VERB_RESERVE, i + 1, A);
		ops[i].reserve.ask = &asks[i];
		ops[i].reserve.policy = &async;
		ops[i].reserve.job = &mail;
	}
	assert_status(hpx_store_run(f->store, batch, 2, NULL), HPX_OK);
	assert_int_equal(ops[0].decision.kind, HPX_DECISION_PENDING);
	assert_int_equal(ops[1].decision.kind, HPX_DECISION_EXECUTE);
	assert_int_equal(claim_some(f, 10, CLAIM), 2);
	other_close(&other);
}

static void what_was_not_executed_is_queued_anew(void **state)
{
	struct fixture *f = *state;
	struct hpx_job second = mail;

	accept_job(f, 1, A, &mail);
	claim_some(f, 1, CLAIM);
	assert_status(turn(f, delivery_of(f, 1).number, HPX_JOB_MOVE_LOSE, CLAIM), HPX_OK);
	assert_string_equal(state_of(f, 1), "unknown");
	assert_status(resolve(f, 1, A, false), HPX_OK);
	assert_string_equal(state_of(f, 1), "failed_retryable");
	assert_string_equal(job_state(f, 1), "discarded");
	second.body = HPX_SPAN("again");
	assert_string_equal(accept_job(f, 1, B, &second), "retried");
	assert_string_equal(state_of(f, 1), "pending");
	struct hpx_delivery d = delivery_of(f, 1);
	assert_int_equal(d.state, HPX_JOB_QUEUED);
	assert_int_equal(d.budget, 1);
	assert_false(d.unsure);
	struct hpx_job_entry *jobs = claim(f, 1, 0, CLAIM_AGAIN);
	assert_span(jobs->job.body, "again");
	hpx_job_entry_free(jobs);
}

static void a_person_ends_the_job_with_its_operation(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op forget = op_of(HPX_VERB_FORGET, 1, A);

	forget.forget.force = true;
	accept_job(f, 1, A, &mail);
	claim_some(f, 1, CLAIM);
	/* It is being sent right now. */
	assert_status(run_op(f, &forget), HPX_REFUSED);
	assert_status(turn(f, delivery_of(f, 1).number, HPX_JOB_MOVE_POSTPONE, CLAIM), HPX_OK);
	assert_status(run_op(f, &forget), HPX_OK);
	assert_string_equal(state_of(f, 1), "none");
	assert_string_equal(job_state(f, 1), "discarded");
}

static enum hpx_status force(struct fixture *f, int64_t number, enum hpx_job_move move)
{
	struct hpx_job_update update = { .number = number, .move = move, .force = true };
	struct hpx_store_op op = op_of(HPX_VERB_JOB, 0, 0);

	op.job.update = &update;
	run_op(f, &op);
	assert_null(op.job.after);
	return op.status;
}

/* A row that breaks no CHECK and is no job: a person removes it, by force only, and nothing
 * that it names is touched. */
static void a_job_that_cannot_be_read_is_removed_by_force(void **state)
{
	struct fixture *f = *state;
	PGconn *conn = cluster_connect();
	PGresult *left;
	int64_t number;

	accept_job(f, 1, A, &mail);
	accept_job(f, 2, A, &mail);
	number = delivery_of(f, 1).number;
	cluster_sql("INSERT INTO hapax.reconcile (id, rest, job, mark, sent, tries, in_a_row, first_said, ask_at, "
		    "evidence, person, upstream, lane) SELECT operation, rest, id, mark, 0, 0, 0, 0, 0, 0, true, '', 'x' "
		    "FROM hapax.job ORDER BY id LIMIT 1");
	cluster_sql("UPDATE hapax.job SET due = -5 WHERE id = (SELECT min(id) FROM hapax.job)");
	assert_status(turn(f, number, HPX_JOB_MOVE_RETRY, 0), HPX_CORRUPT);
	assert_status(turn(f, number, HPX_JOB_MOVE_DISCARD, 0), HPX_CORRUPT);
	assert_status(force(f, number, HPX_JOB_MOVE_RETRY), HPX_CORRUPT);
	assert_status(force(f, number, HPX_JOB_MOVE_DISCARD), HPX_OK);
	assert_status(force(f, number, HPX_JOB_MOVE_DISCARD), HPX_NOT_FOUND);
	left = cluster_ask(conn, "SELECT (SELECT count(*) FROM hapax.job), (SELECT count(*) FROM hapax.reconcile)");
	assert_string_equal(PQgetvalue(left, 0, 0), "1");
	assert_string_equal(PQgetvalue(left, 0, 1), "0");
	assert_string_equal(state_of(f, 1), "pending");
	assert_string_equal(events_of(f, 1), "");
	assert_int_equal(claim_some(f, 5, CLAIM), 1);
	PQclear(left);
	PQfinish(conn);
}

/* ---- many workers ---- */

#define WORKERS 4
#define JOBS 200

struct worker {
	struct fixture f;
	unsigned taken[JOBS + 1];
	unsigned count;
};

static void *work_main(void *user)
{
	struct worker *w = user;
	struct hpx_claim wanted = claim_for(7, 0);
	bool any = true;

	while (any) {
		struct hpx_store_op op = claim_op(&wanted, 0);
		struct hpx_store_op *batch = &op;
		op.token = (struct hpx_token){ { 0 } };
		if (hpx_store_run(w->f.store, &batch, 1, NULL) != HPX_OK)
			break;
		any = op.claim.jobs != NULL;
		for (const struct hpx_job_entry *e = op.claim.jobs; e != NULL; e = e->next, w->count++)
			if (e->delivery.number <= JOBS)
				w->taken[e->delivery.number]++;
		hpx_job_entry_free(op.claim.jobs);
	}
	return NULL;
}

static void workers_share_the_jobs(void **state)
{
	struct fixture *f = *state;
	static struct worker workers[WORKERS];
	pthread_t threads[WORKERS];
	unsigned all = 0;

	memset(workers, 0, sizeof(workers));
	for (unsigned key = 0; key < JOBS; key++)
		accept_job(f, key, A, &mail);
	for (size_t i = 0; i < WORKERS; i++) {
		other_open(&workers[i].f, f);
		assert_int_equal(pthread_create(&threads[i], NULL, work_main, &workers[i]), 0);
	}
	for (size_t i = 0; i < WORKERS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned n = 1; n <= JOBS; n++) {
		unsigned taken = 0;
		for (size_t i = 0; i < WORKERS; i++)
			taken += workers[i].taken[n];
		if (taken > 1)
			fail_msg("job %u was claimed %u times", n, taken);
	}
	for (size_t i = 0; i < WORKERS; i++) {
		all += workers[i].count;
		other_close(&workers[i].f);
	}
	/* A worker that found nothing, while the last ones were held, has gone. */
	all += claim_some(f, JOBS, CLAIM);
	assert_int_equal(all, JOBS);
}

static void room_is_kept_and_the_order_too(void **state)
{
	struct fixture *f = *state;
	PGconn *app = cluster_connect();
	struct hpx_job_entry *jobs;

	reserve(f, 1, BODY, A);
	enqueue(app, 1, A, "first");
	enqueue(app, 1, A, "second");
	for (unsigned key = 2; key < 6; key++)
		accept_job(f, key, A, &mail);
	assert_int_equal(claim_some(f, 3, CLAIM), 3);
	assert_int_equal(claim_some(f, 9, CLAIM_AGAIN), 2);
	jobs = claim(f, 9, 0, 23);
	assert_null(jobs);
	int64_t first = delivery_of(f, 1).number - 1; /* newest first: this is the second's */
	assert_status(turn(f, first, HPX_JOB_MOVE_DELIVER, CLAIM), HPX_OK);
	jobs = claim(f, 9, 0, 24);
	assert_int_equal(length_of(jobs), 1);
	assert_span(jobs->job.name, "second");
	hpx_job_entry_free(jobs);
	PQfinish(app);
}

/* ---- rows that somebody holds ---- */

static void a_held_operation_delays_only_what_needs_it(void **state)
{
	struct fixture *f = *state;
	PGconn *app = cluster_connect();

	accept_job(f, 1, A, &mail);
	reserve(f, 2, BODY, A);
	enqueue(app, 2, A, "mail");
	assert_int_equal(claim_some(f, 9, CLAIM), 2);
	int64_t answering = delivery_of(f, 1).number, other = delivery_of(f, 2).number;
	PQclear(cluster_ask(app, "BEGIN"));
	PQclear(cluster_ask(app, "SELECT 1 FROM hapax.operation FOR UPDATE"));
	assert_status(turn(f, answering, HPX_JOB_MOVE_DELIVER, CLAIM), HPX_BUSY);
	assert_status(rule(f, 1, A, 0, HPX_RULING_APPLIED), HPX_BUSY);
	assert_status(turn(f, other, HPX_JOB_MOVE_DELIVER, CLAIM), HPX_OK);
	advance(f, LEASE_MS + 1);
	assert_int_equal(sweep_jobs(f), 0);
	PQclear(cluster_ask(app, "COMMIT"));
	assert_status(turn(f, answering, HPX_JOB_MOVE_DELIVER, CLAIM), HPX_OK);
	assert_string_equal(state_of(f, 1), "completed");
	PQfinish(app);
}

static void a_held_job_is_nobodys_now(void **state)
{
	struct fixture *f = *state;
	PGconn *app = cluster_connect();

	accept_job(f, 1, A, &mail);
	accept_job(f, 2, A, &mail);
	PQclear(cluster_ask(app, "BEGIN"));
	PQclear(cluster_ask(app, "SELECT 1 FROM hapax.job WHERE id = 1 FOR UPDATE"));
	assert_int_equal(claim_some(f, 9, CLAIM), 1);
	assert_status(turn(f, 1, HPX_JOB_MOVE_DISCARD, 0), HPX_BUSY);
	PQclear(cluster_ask(app, "COMMIT"));
	assert_int_equal(claim_some(f, 9, CLAIM_AGAIN), 1);
	PQfinish(app);
}

static void a_held_job_delays_no_other_turn_of_its_batch(void **state)
{
	struct fixture *f = *state;
	PGconn *app = cluster_connect();
	struct hpx_job_update turns[3];
	struct hpx_store_op ops[3], *batch[3];

	for (unsigned key = 0; key < 3; key++)
		accept_job(f, key, A, &mail);
	assert_int_equal(claim_some(f, 9, CLAIM), 3);
	for (unsigned i = 0; i < 3; i++) {
		turns[i] = (struct hpx_job_update){ .number = delivery_of(f, i).number,
						    .move = HPX_JOB_MOVE_DELIVER,
						    .answer = &delivered,
						    .status = delivered.status,
						    .attempts_max = 3 };
		ops[i] = op_of(HPX_VERB_JOB, 0, CLAIM);
		ops[i].job.update = &turns[i];
		batch[i] = &ops[i];
	}
	PQclear(cluster_ask(app, "BEGIN"));
	PQclear(cluster_ask(app, "SELECT 1 FROM hapax.job WHERE id = 2 FOR UPDATE"));
	assert_status(hpx_store_run(f->store, batch, 3, NULL), HPX_OK);
	for (unsigned i = 0; i < 3; i++) {
		assert_status(ops[i].status, turns[i].number == 2 ? HPX_BUSY : HPX_OK);
		hpx_job_entry_free(ops[i].job.after);
	}
	PQclear(cluster_ask(app, "COMMIT"));
	assert_status(turn(f, 2, HPX_JOB_MOVE_DELIVER, CLAIM), HPX_OK);
	PQfinish(app);
}

/* A claim that ends an answering job needs its operation's row. */
static void a_claim_that_may_not_send_leaves_a_held_operation(void **state)
{
	struct fixture *f = *state;
	PGconn *app = cluster_connect();

	accept_job(f, 1, A, &mail);
	hpx_job_entry_free(claim(f, 1, HOUR_MS, CLAIM));
	assert_status(turn(f, 1, HPX_JOB_MOVE_LOSE, CLAIM), HPX_OK);
	assert_string_equal(job_state(f, 1), "queued");
	assert_string_equal(state_of(f, 1), "pending");
	advance(f, 2 * HOUR_MS);
	PQclear(cluster_ask(app, "BEGIN"));
	PQclear(cluster_ask(app, "SELECT 1 FROM hapax.operation FOR UPDATE"));
	assert_int_equal(claim_some(f, 1, CLAIM_AGAIN), 0);
	assert_string_equal(job_state(f, 1), "queued");
	PQclear(cluster_ask(app, "COMMIT"));
	assert_int_equal(claim_some(f, 1, CLAIM_AGAIN), 0);
	assert_string_equal(job_state(f, 1), "unknown");
	assert_string_equal(state_of(f, 1), "unknown");
	PQfinish(app);
}

/* ---- what is lost ---- */

static void a_lost_claim_is_found_by_anybody(void **state)
{
	struct fixture *f = *state, other;

	other_open(&other, f);
	accept_job(f, 1, A, &mail);
	accept_job(f, 2, A, &mail);
	hpx_job_entry_free(claim(f, 1, 0, CLAIM));
	hpx_job_entry_free(claim(f, 1, HOUR_MS, CLAIM_AGAIN));
	assert_int_equal(sweep_jobs(&other), 0);
	advance(&other, LEASE_MS + 1);
	assert_int_equal(sweep_jobs(&other), 2);
	assert_string_equal(job_state(f, 1), "unknown");
	assert_string_equal(state_of(f, 1), "unknown");
	assert_string_equal(events_of(f, 1), "job_lease_lost outcome_lost");
	assert_string_equal(job_state(f, 2), "queued");
	assert_string_equal(state_of(f, 2), "pending");
	other_close(&other);
}

static enum hpx_status after_the_first(void *user, enum hpx_store_point point)
{
	unsigned *left = user;

	return point == HPX_STORE_RUN_AFTER && *left > 0 && (*left)-- > 0 ? HPX_IO : HPX_OK;
}

/* The commit was not heard of: the claim's token finds what it took. */
static void an_unheard_claim_is_recognised(void **state)
{
	struct fixture *f = *state;
	struct hpx_claim wanted = claim_for(2, 0);
	struct hpx_store_op op = claim_op(&wanted, CLAIM), *batch = &op;
	unsigned faults = 1;

	for (unsigned key = 0; key < 5; key++)
		accept_job(f, key, A, &mail);
	f->store->fault = after_the_first;
	f->store->fault_user = &faults;
	assert_status(hpx_store_run(f->store, &batch, 1, NULL), HPX_IO);
	assert_null(op.claim.jobs);
	assert_status(run_op(f, &op), HPX_OK);
	assert_int_equal(length_of(op.claim.jobs), 2);
	hpx_job_entry_free(op.claim.jobs);
	assert_int_equal(claim_some(f, 9, CLAIM_AGAIN), 3);
	f->store->fault = NULL;
}

static void an_unheard_delivery_is_recognised(void **state)
{
	struct fixture *f = *state;
	struct hpx_job_update what = { .number = 1, .move = HPX_JOB_MOVE_DELIVER, .answer = &delivered };
	struct hpx_store_op op = op_of(HPX_VERB_JOB, 0, CLAIM), *batch = &op;
	unsigned faults = 1;

	accept_job(f, 1, A, &mail);
	claim_some(f, 1, CLAIM);
	op.job.update = &what;
	f->store->fault = after_the_first;
	f->store->fault_user = &faults;
	assert_status(hpx_store_run(f->store, &batch, 1, NULL), HPX_IO);
	assert_status(run_op(f, &op), HPX_OK);
	assert_int_equal(op.job.after->delivery.state, HPX_JOB_DONE);
	hpx_job_entry_free(op.job.after);
	assert_string_equal(events_of(f, 1), "job_delivered completed");
	f->store->fault = NULL;
}

#define CUT \
	"SELECT pg_terminate_backend(pid) FROM pg_stat_activity " \
	"WHERE application_name = 'hapax'"

/* Nothing is lost and nothing is taken twice, whatever is under way when the
 * connection ends. */
static void a_cut_connection_loses_and_repeats_nothing(void **state)
{
	struct fixture *f = *state;
	struct hpx_committer *committer;
	struct hpx_committer_options options = { .store = f->store, .probe_ms = 5 };
	struct hpx_claim wanted = claim_for(1, 0);

	for (unsigned key = 0; key < 5; key++)
		accept_job(f, key, A, &mail);
	assert_status(hpx_committer_start(&options, &committer), HPX_OK);
	for (unsigned i = 0; i < 5; i++) {
		struct hpx_store_op op = claim_op(&wanted, 100 + i);
		struct hpx_store_op end = op_of(HPX_VERB_JOB, 0, 100 + i);
		struct hpx_job_update what = { .move = HPX_JOB_MOVE_DELIVER, .answer = &delivered };
		cluster_sql(CUT);
		hpx_committer_submit_wait(committer, &op);
		assert_status(op.status, HPX_OK);
		assert_int_equal(length_of(op.claim.jobs), 1);
		what.number = op.claim.jobs->delivery.number;
		hpx_job_entry_free(op.claim.jobs);
		end.job.update = &what;
		cluster_sql(CUT);
		hpx_committer_submit_wait(committer, &end);
		assert_status(end.status, HPX_OK);
		hpx_job_entry_free(end.job.after);
	}
	hpx_committer_stop(committer, 1000);
	hpx_committer_free(committer);
	for (unsigned key = 0; key < 5; key++)
		assert_string_equal(state_of(f, key), "completed");
}

/* ---- what nobody knows ---- */

static void a_question_is_one_workers(void **state)
{
	struct fixture *f = *state, other;
	struct hpx_unsettled *list;
	struct hpx_next_question question;
	struct hpx_operation_id id = id_of(1);

	other_open(&other, f);
	reserve(f, 1, BODY, A);
	act(f, HPX_VERB_MARK_UNKNOWN, 1, A);
	accept_job(f, 2, A, &mail);
	claim_some(f, 1, CLAIM);
	assert_status(turn(f, 1, HPX_JOB_MOVE_LOSE, CLAIM), HPX_OK);
	assert_status(hpx_store_question(f->reader, &id, &question), HPX_OK);
	assert_int_equal(question.at_ms, 0);
	list = unsettled(f, 10);
	/* The job's question is its operation's. */
	assert_non_null(list);
	assert_non_null(list->next);
	assert_null(list->next->next);
	assert_int_equal(list->delivery.number, 0);
	assert_span(list->description.key, "key-1");
	assert_int_equal(list->next->delivery.number, 1);
	assert_span(list->next->job_name, "answer");
	assert_span(list->next->target, "mailer");
	assert_false(list->scheduled);
	hpx_unsettled_free(list);
	assert_status(hpx_store_question(f->reader, &id, &question), HPX_OK);
	assert_true(question.at_ms > 0);
	assert_int_equal(count_unsettled(&other), 0);
	advance(&other, LEASE_MS + 1);
	assert_int_equal(count_unsettled(&other), 2);
	other_close(&other);
}

/* Passed over, never waited for. */
static void a_held_operation_is_not_asked_about_now(void **state)
{
	struct fixture *f = *state;
	struct hpx_due due[2];
	PGconn *app = cluster_connect();
	struct hpx_unsettled *list;

	for (unsigned key = 1; key <= 2; key++) {
		reserve(f, key, BODY, A);
		act(f, HPX_VERB_MARK_UNKNOWN, key, A);
	}
	assert_int_equal(find_due(f, due, 2), 2);
	PQclear(cluster_ask(app, "BEGIN; SELECT 1 FROM hapax.operation WHERE key = 'key-1' "
				 "FOR UPDATE"));
	list = take_due(f, due, 2);
	assert_non_null(list);
	assert_null(list->next);
	assert_span(list->description.key, "key-2");
	hpx_unsettled_free(list);
	PQclear(cluster_ask(app, "COMMIT"));
	assert_int_equal(find_due(f, due, 2), 1);
	assert_int_equal(count_unsettled(f), 1);
	PQfinish(app);
}

/* Many rulings are one transaction; two about one operation keep their order. */
static void rulings_of_a_batch_share_a_transaction(void **state)
{
	enum { COUNT = 20 };
	struct fixture *f = *state;
	struct hpx_ruling_update turns[COUNT + 1];
	struct hpx_store_op ops[COUNT + 1], *list[COUNT + 1];
	PGconn *app = cluster_connect();
	char before[32];

	for (unsigned key = 0; key < COUNT; key++) {
		reserve(f, key, BODY, A);
		act(f, HPX_VERB_MARK_UNKNOWN, key, A);
	}
	for (unsigned i = 0; i <= COUNT; i++) {
		turns[i] = (struct hpx_ruling_update){ .received = {
							       .ruling = i == COUNT ? HPX_RULING_DECLINED : HPX_RULING_APPLIED } };
		ops[i] = op_of(HPX_VERB_RULE, i % COUNT, A);
		ops[i].rule.update = &turns[i];
		list[i] = &ops[i];
	}
	snprintf(before, sizeof(before), "%s",
		 ask(app, "SELECT txid_current()"));
	assert_status(hpx_store_run(f->store, list, COUNT + 1, NULL), HPX_OK);
	for (unsigned i = 0; i <= COUNT; i++)
		assert_status(ops[i].status, HPX_OK);
	assert_string_equal(hpx_reconcile_name(turns[COUNT].move), "stay");
	for (unsigned key = 0; key < COUNT; key++)
		assert_int_equal(record_of(f, key).state, HPX_STATE_COMPLETED);
	/* The rulings' one, the last one's, and the two that ask here. */
	assert_in_range(atol(ask(app, "SELECT txid_current()")) - atol(before), 1, 3);
	PQfinish(app);
}

static void what_is_settled_is_asked_anew_when_lost_again(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_stats stats;

	reserve(f, 1, BODY, A);
	act(f, HPX_VERB_MARK_UNKNOWN, 1, A);
	assert_status(rule(f, 1, B, 0, HPX_RULING_UNCLEAR), HPX_STALE);
	assert_status(rule(f, 1, A, 0, HPX_RULING_UNCLEAR), HPX_OK);
	assert_string_equal(events_of(f, 1), "outcome_lost left_to_a_person");
	assert_int_equal(count_unsettled(f), 0);
	assert_status(hpx_store_stats(f->reader, &stats), HPX_OK);
	assert_int_equal(stats.dead_operations, 1);
	assert_status(resolve(f, 1, A, false), HPX_OK);
	reserve(f, 1, BODY, B);
	act(f, HPX_VERB_MARK_UNKNOWN, 1, B);
	assert_int_equal(count_unsettled(f), 1);
	assert_status(rule(f, 1, A, 0, HPX_RULING_DECLINED), HPX_OK);
	assert_string_equal(state_of(f, 1), "completed");
	assert_int_equal(record_of(f, 1).status, 402);
}

static void a_ruling_on_the_operation_settles_its_job(void **state)
{
	struct fixture *f = *state;

	accept_job(f, 1, A, &mail);
	assert_status(rule(f, 1, A, 0, HPX_RULING_APPLIED), HPX_OK);
	assert_string_equal(events_of(f, 1), "evidence");
	assert_int_equal(unask(f, 1, 1), 0);
	claim_some(f, 1, CLAIM);
	assert_status(turn(f, 1, HPX_JOB_MOVE_LOSE, CLAIM), HPX_OK);
	struct hpx_unsettled *list = unsettled(f, 1);
	assert_int_equal(list->evidence, HPX_RULING_APPLIED);
	hpx_unsettled_free(list);
	advance(f, LEASE_MS + 1);
	/* What was said settles it, whoever can be asked. */
	assert_int_equal(unask(f, 1, 1), 0);
	assert_status(rule(f, 1, A, 0, HPX_RULING_APPLIED), HPX_OK);
	assert_string_equal(job_state(f, 1), "done");
	assert_string_equal(state_of(f, 1), "completed");
	PGconn *app = cluster_connect();
	assert_string_equal(ask(app, "SELECT count(*) FROM hapax.reconcile"), "0");
	PQfinish(app);
}

/* ---- its time is over ---- */

static void what_was_not_delivered_in_time_is_abandoned(void **state)
{
	struct fixture *f = *state;

	accept_job(f, 1, A, &mail);
	claim_some(f, 1, CLAIM);
	accept_job(f, 2, A, &mail);
	advance(f, RETENTION_MS + 1);
	reap(f);
	assert_string_equal(state_of(f, 1), "unknown");
	assert_string_equal(job_state(f, 1), "sending");
	assert_string_equal(state_of(f, 2), "completed");
	assert_int_equal(record_of(f, 2).status, 408);
	assert_string_equal(job_state(f, 2), "discarded");
	assert_string_equal(accept_job(f, 2, B, &mail), "replay");
}

static void finished_jobs_go_after_their_time(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_options options = fixture_options(f);
	PGconn *app = cluster_connect();

	fixture_close(f);
	options.job_retention_ms = HOUR_MS;
	assert_status(hpx_store_open(&options, &f->store, NULL), HPX_OK);
	assert_status(hpx_store_reader_open(f->store, &f->reader), HPX_OK);
	accept_job(f, 1, A, &mail);
	reserve(f, 2, BODY, A);
	enqueue(app, 2, A, "mail");
	accept_job(f, 3, A, &mail);
	claim_some(f, 9, CLAIM);
	turn(f, 1, HPX_JOB_MOVE_DELIVER, CLAIM);
	turn(f, 2, HPX_JOB_MOVE_DELIVER, CLAIM);
	reap(f);
	assert_string_equal(ask(app, "SELECT string_agg(id::text, ' ' ORDER BY id) FROM hapax.job"),
			    "1 2 3");
	advance(f, 2 * HOUR_MS);
	reap(f);
	/* Another attempt of the second's operation may owe it again. */
	assert_string_equal(ask(app, "SELECT string_agg(id::text, ' ' ORDER BY id) FROM hapax.job"),
			    "2 3");
	PQfinish(app);
}

static void what_is_there_is_counted(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_stats stats;

	for (unsigned key = 0; key < 4; key++)
		accept_job(f, key, A, &mail);
	reserve(f, 5, BODY, A);
	complete(f, 5, A, "x");
	claim_some(f, 3, CLAIM);
	turn(f, 1, HPX_JOB_MOVE_DELIVER, CLAIM);
	turn(f, 2, HPX_JOB_MOVE_REJECT, CLAIM);
	assert_status(hpx_store_stats(f->reader, &stats), HPX_OK);
	assert_int_equal(stats.operations[HPX_STATE_PENDING], 3);
	assert_int_equal(stats.operations[HPX_STATE_COMPLETED], 2);
	assert_int_equal(stats.jobs[HPX_JOB_QUEUED], 1);
	assert_int_equal(stats.jobs[HPX_JOB_SENDING], 1);
	assert_int_equal(stats.jobs[HPX_JOB_DONE], 1);
	assert_int_equal(stats.jobs[HPX_JOB_DEAD], 1);
	assert_int_equal(stats.dead_jobs, 1);
	assert_true(stats.oldest_queued_ms > 0);
}

static void jobs_are_found_by_whatever_is_known(void **state)
{
	struct fixture *f = *state;
	struct hpx_operation_id id = id_of(2), unused = id_of(9);
	const struct {
		struct hpx_job_query query;
		unsigned count;
	} rows[] = {
		{ { .limit = 10 }, 3 },
		{ { .limit = 2 }, 2 },
		{ { .limit = 10, .before = 3 }, 2 },
		{ { .limit = 10, .number = 2 }, 1 },
		{ { .limit = 10, .number = 9 }, 0 },
		{ { .limit = 10, .operation = &id }, 1 },
		{ { .limit = 10, .operation = &unused }, 0 },
		{ { .limit = 10, .provider_id = HPX_SPAN("m-1") }, 1 },
		{ { .limit = 10, .provider_id = HPX_SPAN("m-2") }, 0 },
		{ { .limit = 10, .provider_id = HPX_SPAN("m-\xff") }, 0 },
		{ { .limit = 10, .target = HPX_SPAN("mailer") }, 3 },
		{ { .limit = 10, .target = HPX_SPAN("bank") }, 0 },
		{ { .limit = 10, .state = HPX_JOB_DONE }, 1 },
		{ { .limit = 10, .state = HPX_JOB_DONE, .operation = &id }, 0 },
	};

	for (unsigned key = 1; key <= 3; key++)
		accept_job(f, key, A, &mail);
	claim_some(f, 1, CLAIM);
	turn(f, 1, HPX_JOB_MOVE_DELIVER, CLAIM);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_job_query query = rows[i].query;
		if (query.state == 0)
			query.state = HPX_JOB_STATE_COUNT;
		unsigned got = count_jobs(f, &query);
		if (got != rows[i].count)
			fail_msg("row %zu: got %u, want %u", i, got, rows[i].count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_POSTGRES(the_jobs_answer_is_the_operations),
		ON_POSTGRES(a_header_that_is_no_text_is_refused),
		ON_POSTGRES(an_operation_accepted_twice_has_one_job),
		ON_POSTGRES(what_was_not_executed_is_queued_anew),
		ON_POSTGRES(a_person_ends_the_job_with_its_operation),
		ON_POSTGRES(a_job_that_cannot_be_read_is_removed_by_force),
		ON_POSTGRES(workers_share_the_jobs),
		ON_POSTGRES(room_is_kept_and_the_order_too),
		ON_POSTGRES(a_held_operation_delays_only_what_needs_it),
		ON_POSTGRES(a_held_job_is_nobodys_now),
		ON_POSTGRES(a_held_job_delays_no_other_turn_of_its_batch),
		ON_POSTGRES(a_claim_that_may_not_send_leaves_a_held_operation),
		ON_POSTGRES(a_lost_claim_is_found_by_anybody),
		ON_POSTGRES(an_unheard_claim_is_recognised),
		ON_POSTGRES(an_unheard_delivery_is_recognised),
		ON_POSTGRES(a_cut_connection_loses_and_repeats_nothing),
		ON_POSTGRES(a_question_is_one_workers),
		ON_POSTGRES(a_held_operation_is_not_asked_about_now),
		ON_POSTGRES(rulings_of_a_batch_share_a_transaction),
		ON_POSTGRES(what_is_settled_is_asked_anew_when_lost_again),
		ON_POSTGRES(a_ruling_on_the_operation_settles_its_job),
		ON_POSTGRES(what_was_not_delivered_in_time_is_abandoned),
		ON_POSTGRES(finished_jobs_go_after_their_time),
		ON_POSTGRES(what_is_there_is_counted),
		ON_POSTGRES(jobs_are_found_by_whatever_is_known),
	};
	return run_on_drivers("outbox_pg", tests);
}
