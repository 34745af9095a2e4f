/* How a test accepts, claims and settles deliveries. */
#include "claims.h"

const struct hpx_job mail = {
	.name = HPX_SPAN_INIT("answer"),
	.target = HPX_SPAN_INIT("mailer"),
	.method = HPX_SPAN_INIT("POST"),
	.path = HPX_SPAN_INIT("/send"),
	.headers = HPX_SPAN_INIT("Content-Type: text/plain\r\n"),
	.body = HPX_SPAN_INIT("hello"),
};

const struct hpx_answer delivered = { .status = 201,
				      .kept = true,
				      .headers = HPX_SPAN_INIT("A: b\r\n"),
				      .body = HPX_SPAN_INIT("sent") };

const char *accept_job(struct fixture *f, unsigned key, unsigned token,
		       const struct hpx_job *job)
{
	struct hpx_policy async = *policy();
	struct hpx_ask ask = ask_of(f->store, key, BODY, token);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, token);

	async.deliver = HPX_DELIVER_ASYNC;
	op.reserve.ask = &ask;
	op.reserve.policy = &async;
	op.reserve.job = job;
	if (run_op(f, &op) != HPX_OK)
		return hpx_status_name(op.status);
	hpx_answer_free(op.reserve.replay);
	return hpx_decision_name(op.decision.kind);
}

struct hpx_claim claim_for(unsigned room, int64_t honours_keys_ms)
{
	return (struct hpx_claim){ .target = HPX_SPAN("mailer"),
				   .room = room,
				   .lease_ms = LEASE_MS,
				   .honours_keys_ms = honours_keys_ms,
				   .attempts_max = 3 };
}

struct hpx_store_op claim_op(const struct hpx_claim *claim, unsigned token)
{
	struct hpx_store_op op = op_of(HPX_VERB_CLAIM, 0, token);

	op.claim.claims = claim;
	op.claim.claim_count = 1;
	return op;
}

/* The jobs are the caller's to free. */
struct hpx_job_entry *claim(struct fixture *f, unsigned room, int64_t honours_keys_ms,
			    unsigned token)
{
	struct hpx_claim wanted = claim_for(room, honours_keys_ms);
	struct hpx_store_op op = claim_op(&wanted, token);

	assert_status(run_op(f, &op), HPX_OK);
	return op.claim.jobs;
}

unsigned length_of(const struct hpx_job_entry *jobs)
{
	unsigned count = 0;

	for (; jobs != NULL; jobs = jobs->next)
		count++;
	return count;
}

/* How many there were; dropped. */
unsigned claim_some(struct fixture *f, unsigned room, unsigned token)
{
	struct hpx_job_entry *jobs = claim(f, room, 0, token);
	unsigned count = length_of(jobs);

	hpx_job_entry_free(jobs);
	return count;
}

enum hpx_status turn(struct fixture *f, int64_t number, enum hpx_job_move move,
		     unsigned token)
{
	struct hpx_job_update what = { .number = number, .move = move, .attempts_max = 3, .provider_id = HPX_SPAN("m-1") };
	struct hpx_store_op op = op_of(HPX_VERB_JOB, 0, token);

	if (move == HPX_JOB_MOVE_DELIVER) {
		what.answer = &delivered;
		what.status = delivered.status;
	}
	op.job.update = &what;
	enum hpx_status status = run_op(f, &op);
	hpx_job_entry_free(op.job.after);
	return status;
}

unsigned sweep_jobs(struct fixture *f)
{
	struct hpx_store_op op = op_of(HPX_VERB_SWEEP_JOBS, 0, 0);

	op.sweep_jobs.limit = 100;
	assert_status(run_op(f, &op), HPX_OK);
	return op.sweep_jobs.count;
}

struct hpx_delivery delivery_of(struct fixture *f, unsigned key)
{
	struct hpx_operation_id id = id_of(key);
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT, .operation = &id, .limit = 1 };
	struct hpx_job_entry *jobs = NULL;

	assert_status(hpx_store_jobs(f->reader, &query, &jobs), HPX_OK);
	assert_non_null(jobs);
	assert_true(jobs->readable);
	struct hpx_delivery delivery = jobs->delivery;
	hpx_job_entry_free(jobs);
	return delivery;
}

const char *job_state(struct fixture *f, unsigned key)
{
	return hpx_job_state_name(delivery_of(f, key).state);
}

enum hpx_status rule(struct fixture *f, unsigned key, unsigned first, int64_t number,
		     enum hpx_ruling ruling)
{
	struct hpx_ruling_update what = {
		.number = number,
		.received = { .ruling = ruling, .asked = true },
		.rule = { .tries_max = 1, .backoff = { .base_ms = 1000, .cap_ms = 1000 } },
	};
	struct hpx_store_op op = op_of(HPX_VERB_RULE, key, first);

	op.rule.update = &what;
	return run_op(f, &op);
}

void other_open(struct fixture *other, const struct fixture *f)
{
	*other = (struct fixture){ .store = NULL };
	memcpy(other->url, f->url, sizeof(f->url));
	hpx_arena_init(&other->arena, 16 << 20);
	fixture_open(other);
}

void other_close(struct fixture *other)
{
	fixture_close(other);
	hpx_arena_done(&other->arena);
}

/* A job of an operation that an application works on. */
void enqueue(PGconn *app, unsigned key, unsigned token, const char *name)
{
	assert_string_equal(state_after(app, "SELECT hapax.enqueue('%s', '%s', 'mailer', 'POST', "
					     "'/send', '', 'x')",
					lease_of(key, token_of(token)), name),
			    "00000");
}

unsigned count_jobs(struct fixture *f, const struct hpx_job_query *query)
{
	struct hpx_job_entry *jobs = NULL;

	assert_status(hpx_store_jobs(f->reader, query, &jobs), HPX_OK);
	unsigned count = length_of(jobs);
	hpx_job_entry_free(jobs);
	return count;
}
