/* How a test's jobs are owed, claimed and ended. */
#include "delivery.h"

#define BODY 1

static struct hpx_job job_named(const char *name)
{
	return (struct hpx_job){ .name = hpx_span_of(name),
				 .target = HPX_SPAN("mailer"),
				 .method = HPX_SPAN("POST"),
				 .path = HPX_SPAN("/send"),
				 .headers = HPX_SPAN("Content-Type: text/plain\r\n"),
				 .body = HPX_SPAN("hello") };
}

void accept_init(struct accept *accept, struct fixture *f, unsigned key, unsigned token)
{
	static struct hpx_job job;

	job = job_named("answer");
	accept->policy = *policy();
	accept->policy.deliver = HPX_DELIVER_ASYNC;
	accept->ask = ask_of(f->store, key, BODY, token);
	accept->op = op_of(HPX_VERB_RESERVE, key, token);
	accept->op.reserve.ask = &accept->ask;
	accept->op.reserve.policy = &accept->policy;
	accept->op.reserve.job = &job;
}

const char *accept_later(struct fixture *f, unsigned key, unsigned token)
{
	struct accept accept;

	accept_init(&accept, f, key, token);
	if (run_op(f, &accept.op) != HPX_OK)
		return hpx_status_name(accept.op.status);
	hpx_answer_free(accept.op.reserve.replay);
	return hpx_decision_name(accept.op.decision.kind);
}

enum hpx_status owe(struct fixture *f, unsigned key, unsigned token, const char *name)
{
	struct hpx_store_op op = op_of(HPX_VERB_ENQUEUE, key, token);
	struct hpx_job job = job_named(name);

	op.enqueue.job = &job;
	return run_op(f, &op);
}

struct hpx_claim claim_of(unsigned room, int64_t honours_keys_ms)
{
	return (struct hpx_claim){ .target = HPX_SPAN("mailer"),
				   .room = room,
				   .lease_ms = LEASE_MS,
				   .honours_keys_ms = honours_keys_ms,
				   .attempts_max = ATTEMPTS_MAX };
}

struct hpx_job_entry *claim(struct fixture *f, unsigned room, int64_t honours_keys_ms)
{
	struct hpx_claim wanted = claim_of(room, honours_keys_ms);
	struct hpx_store_op op = op_of(HPX_VERB_CLAIM, 0, 0);

	op.claim.claims = &wanted;
	op.claim.claim_count = 1;
	assert_status(run_op(f, &op), HPX_OK);
	return op.claim.jobs;
}

struct hpx_delivery claim_one(struct fixture *f, int64_t honours_keys_ms)
{
	struct hpx_job_entry *jobs = claim(f, 1, honours_keys_ms);
	struct hpx_delivery delivery;

	assert_non_null(jobs);
	assert_null(jobs->next);
	assert_int_equal(jobs->delivery.state, HPX_JOB_SENDING);
	delivery = jobs->delivery;
	hpx_job_entry_free(jobs);
	return delivery;
}

static const char *joined(struct fixture *f, const struct hpx_job_entry *jobs)
{
	struct hpx_span text = HPX_SPAN("");

	for (; jobs != NULL; jobs = jobs->next)
		text = hpx_arena_printf(&f->arena, "%.*s%s%.*s", HPX_SPAN_ARG(text),
					text.len > 0 ? " " : "", HPX_SPAN_ARG(jobs->job.name));
	return text.ptr;
}

const char *claim_names(struct fixture *f, unsigned room)
{
	struct hpx_job_entry *jobs = claim(f, room, 0);
	const char *names = joined(f, jobs);

	hpx_job_entry_free(jobs);
	return names;
}

enum hpx_status turn_job(struct fixture *f, const struct hpx_job_update *turn,
			 const struct hpx_token *token)
{
	struct hpx_store_op op = op_of(HPX_VERB_JOB, 0, 0);
	enum hpx_status status;

	op.job.update = turn;
	op.token = *token;
	status = run_op(f, &op);
	if (status == HPX_OK)
		assert_int_equal(op.job.after != NULL ? op.job.after->delivery.number : turn->number, turn->number);
	hpx_job_entry_free(op.job.after);
	return status;
}

enum hpx_status end_job(struct fixture *f, const struct hpx_delivery *claimed,
			enum hpx_job_move move)
{
	static const struct hpx_answer sent = { .status = 201,
						.kept = true,
						.headers = HPX_SPAN_INIT("A: b\r\n"),
						.body = HPX_SPAN_INIT("sent") };
	struct hpx_job_update turn = { .number = claimed->number,
				       .move = move,
				       .attempts_max = ATTEMPTS_MAX };

	if (move == HPX_JOB_MOVE_DELIVER) {
		turn.answer = &sent;
		turn.status = sent.status;
	}
	return turn_job(f, &turn, &claimed->token);
}

enum hpx_status person_moves(struct fixture *f, int64_t number, enum hpx_job_move move,
			     bool force)
{
	struct hpx_job_update turn = { .number = number, .move = move, .force = force };
	struct hpx_token nobody = { { 0 } };

	return turn_job(f, &turn, &nobody);
}

unsigned sweep_jobs(struct fixture *f)
{
	struct hpx_store_op op = op_of(HPX_VERB_SWEEP_JOBS, 0, 0);
	struct hpx_touched touched[100];

	op.sweep_jobs.limit = 100;
	op.sweep_jobs.touched = touched;
	assert_status(run_op(f, &op), HPX_OK);
	return op.sweep_jobs.count;
}

static struct hpx_job_entry *find_jobs(struct fixture *f, const struct hpx_operation_id *operation,
				       int64_t number)
{
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT, .operation = operation, .number = number, .limit = 100 };
	struct hpx_job_entry *jobs = NULL;

	assert_status(hpx_store_jobs(f->reader, &query, &jobs), HPX_OK);
	return jobs;
}

const char *job_state(struct fixture *f, int64_t number)
{
	struct hpx_job_entry *jobs = find_jobs(f, NULL, number);
	const char *name = jobs == NULL    ? "none" :
			   !jobs->readable ? "unreadable" :
					     hpx_job_state_name(jobs->delivery.state);

	hpx_job_entry_free(jobs);
	return name;
}

struct hpx_delivery job_of(struct fixture *f, int64_t number)
{
	struct hpx_job_entry *jobs = find_jobs(f, NULL, number);
	struct hpx_delivery delivery;

	assert_non_null(jobs);
	delivery = jobs->delivery;
	hpx_job_entry_free(jobs);
	return delivery;
}

const char *jobs_of(struct fixture *f, unsigned key)
{
	struct hpx_operation_id id = id_of(key);
	struct hpx_job_entry *jobs = find_jobs(f, &id, 0);
	struct hpx_span text = HPX_SPAN("");

	/* They come newest first. */
	for (const struct hpx_job_entry *e = jobs; e != NULL; e = e->next)
		text = hpx_arena_printf(&f->arena, "%.*s=%s%s%.*s", HPX_SPAN_ARG(e->job.name),
					hpx_job_state_name(e->delivery.state),
					text.len > 0 ? " " : "", HPX_SPAN_ARG(text));
	hpx_job_entry_free(jobs);
	return text.ptr;
}

const char *rule(struct fixture *f, unsigned key, unsigned first, int64_t number,
		 enum hpx_ruling ruling, bool asked)
{
	struct hpx_ruling_update turn = {
		.number = number,
		.received = { .ruling = ruling, .about_ms = INT64_MAX, .asked = asked },
		.rule = { .settle_after_ms = SETTLE_MS, .confirm_after_ms = SETTLE_MS, .tries_max = 2, .backoff = { .base_ms = 10, .cap_ms = 10 } },
	};
	struct hpx_store_op op = op_of(HPX_VERB_RULE, key, first);

	op.rule.update = &turn;
	if (run_op(f, &op) != HPX_OK)
		return hpx_status_name(op.status);
	return hpx_reconcile_name(turn.move);
}
