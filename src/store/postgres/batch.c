/* run(): a batch's way through the fast and the slow path and the verbs that have a
 * transaction of their own; the end of a transaction, and what is known when it fails.
 *
 * What needs no lock goes first, in one round trip (fast_path.c): of a batch of first
 * attempts, their answers and retries, nothing is left for the slow path (slow_path.c).
 *
 * A commit is believed only when the server said COMMIT and nothing else. A
 * WARNING with it means that the wait for the synchronous standby was
 * cancelled: the rows are readable here and gone once the standby is promoted.
 * A connection that ends before the answer leaves both possible. In all these
 * cases the store is unsure, and so it is when a connection is new: until a
 * commit without a warning has put something later into the log, no decision
 * is told that rests on what is read (what is later in the log is nowhere
 * without what came before). The tokens tell what did commit. */
#include <stdlib.h>

#include "base/crash_point.h"
#include "store/postgres/outbox.h"

/* ---- the end of a transaction ---- */

static bool is_dirty(const struct hpx_pg_batch *batch)
{
	for (size_t i = 0; i < batch->row_count; i++)
		if (hpx_pg_row_dirty(&batch->rows[i]))
			return true;
	return batch->written || batch->event_count > 0 || hpx_pg_items_dirty(batch);
}

enum hpx_status hpx_pg_undo(struct hpx_pg_store *s, enum hpx_status status)
{
	char unread[HPX_STORE_PROBLEM_SIZE];
	struct hpx_pg_pipe pipe;

	/* Not the primary any more: another connection has to find the new one. */
	if (status == HPX_READ_ONLY)
		hpx_pg_close(&s->writer);
	if (s->writer.conn == NULL || PQtransactionStatus(s->writer.conn) == PQTRANS_IDLE)
		return status;
	pipe = hpx_pg_pipe(&s->writer, unread);
	hpx_pg_send(&pipe, HPX_PG_ROLLBACK, NULL);
	PQclear(hpx_pg_take(&pipe));
	/* A connection that cannot even roll back is of no use. */
	if (hpx_pg_end(&pipe) != HPX_OK)
		hpx_pg_close(&s->writer);
	return status;
}

/* A new operation that has more than its own row to write: these rows must not
 * be written where somebody else inserted the operation first. (RESTORE's has
 * its event; else only where one batch holds an operation's beginning and its
 * end.) */
static bool insert_has_more(struct hpx_pg_batch *batch)
{
	for (size_t i = 0; i < batch->row_count; i++) {
		const struct hpx_pg_row *row = &batch->rows[i];
		if (!row->stored && row->changed && row->lease)
			return true;
	}
	for (size_t i = 0; i < batch->event_count; i++) {
		const struct hpx_pg_row *row =
			hpx_pg_batch_find(batch, &batch->event[i].record.id);
		if (row != NULL && !row->stored)
			return true;
	}
	return false;
}

/* In a round trip of its own, so that it can still be undone. */
static enum hpx_status insert_first(struct hpx_pg_store *s, struct hpx_pg_batch *batch, bool begun,
				    char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	size_t lost = 0;
	bool inserts;

	if (!begun)
		hpx_pg_send(&pipe, HPX_PG_BEGIN, NULL);
	inserts = hpx_pg_send_inserts(&pipe, batch);
	if (!begun)
		PQclear(hpx_pg_take(&pipe));
	if (inserts)
		lost = hpx_pg_take_inserts(&pipe, batch);
	if (hpx_pg_end(&pipe) == HPX_OK && lost > 0) {
		hpx_store_problem(problem, "an operation was inserted by another gateway");
		return HPX_BUSY;
	}
	return pipe.status;
}

static void take_commit(struct hpx_pg_pipe *pipe)
{
	PGresult *result = hpx_pg_take(pipe);

	if (result != NULL && strcmp(PQcmdStatus(result), "COMMIT") != 0) {
		pipe->status = HPX_IO;
		hpx_store_problem(pipe->problem, "PostgreSQL: the transaction was rolled back");
	}
	PQclear(result);
}

static enum hpx_status write_all(struct hpx_pg_store *s, struct hpx_pg_batch *batch, bool begun,
				 bool inserted, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	bool inserts = false;

	if (!begun)
		hpx_pg_send(&pipe, HPX_PG_BEGIN, NULL);
	if (!inserted)
		inserts = hpx_pg_send_inserts(&pipe, batch);
	hpx_pg_send_changes(&pipe, batch);
	if (s->unsure)
		hpx_pg_send(&pipe, HPX_PG_MARK, NULL);
	hpx_pg_send(&pipe, HPX_PG_COMMIT, NULL);
	if (!begun)
		PQclear(hpx_pg_take(&pipe));
	if (inserts)
		hpx_pg_take_inserts(&pipe, batch);
	while (pipe.status == HPX_OK && pipe.waiting > 1)
		PQclear(hpx_pg_take(&pipe));
	take_commit(&pipe);
	return hpx_pg_end(&pipe);
}

uint64_t hpx_pg_commit_begins(struct hpx_pg_store *s)
{
	return ++s->commits_begun;
}

enum hpx_status hpx_pg_believe(struct hpx_pg_store *s, uint64_t commit, enum hpx_status status,
			       char *problem)
{
	if (status == HPX_OK && s->writer.warned) {
		hpx_store_problem(problem, "PostgreSQL: the wait for the synchronous standby was "
					   "cancelled: the commit may be lost with this primary");
		status = HPX_IO;
	}
	HPX_ASSERT(commit <= s->commits_begun && commit > s->commit_sure);
	s->unsure = status != HPX_OK;
	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	s->commit_sure = commit;
	return HPX_OK;
}

enum hpx_status hpx_pg_commit_call(struct hpx_pg_store *s, enum hpx_pg_statement statement,
				   const struct hpx_pg_params *params, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	uint64_t commit = hpx_pg_commit_begins(s);

	hpx_pg_send(&pipe, statement, params);
	if (s->unsure)
		hpx_pg_send(&pipe, HPX_PG_MARK, NULL);
	hpx_pg_send(&pipe, HPX_PG_COMMIT, NULL);
	while (pipe.status == HPX_OK && pipe.waiting > 1)
		PQclear(hpx_pg_take(&pipe));
	take_commit(&pipe);
	return hpx_pg_believe(s, commit, hpx_pg_end(&pipe), problem);
}

enum hpx_status hpx_pg_commit(struct hpx_pg_store *s, struct hpx_pg_batch *batch,
			      const struct hpx_pg_look *look, char *problem)
{
	bool begun = look->begun;
	bool inserted = false;
	uint64_t commit;
	enum hpx_status status;

	if (!is_dirty(batch) && !s->unsure)
		/* Nothing was written: no log to wait for. */
		return hpx_pg_undo(s, HPX_OK);
	HPX_ASSERT(batch->row_count <= batch->row_max);
	if (insert_has_more(batch)) {
		status = insert_first(s, batch, begun, problem);
		if (status != HPX_OK)
			return hpx_pg_undo(s, status);
		begun = inserted = true;
	}
	HPX_CRASH_POINT(batch_written);
	commit = hpx_pg_commit_begins(s);
	status = hpx_pg_believe(s, commit, write_all(s, batch, begun, inserted, problem), problem);
	if (status == HPX_OK)
		HPX_CRASH_POINT(batch_committed);
	return status;
}

/* ---- run() ---- */

/* Ops about one operation each. */
static enum hpx_status run_rows(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
				char *problem)
{
	bool *todo = calloc(count, sizeof(*todo));
	enum hpx_status status = HPX_OK;

	if (todo == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < count; i++)
		todo[i] = ops[i]->verb != HPX_VERB_JOB && ops[i]->verb != HPX_VERB_RULE;
	/* While the store is unsure, what is read must not be told, and what is
	 * written goes with a mark. */
	if (!s->unsure)
		status = hpx_pg_fast_path(s, ops, count, todo, problem);
	if (status == HPX_OK)
		status = hpx_pg_slow_path(s, ops, count, todo, problem);
	free(todo);
	/* Alone, it is the op's trouble and not the store's: somebody inserted
	 * the same operation and does not commit. */
	if (status == HPX_BUSY && count == 1 && ops[0] != NULL) {
		ops[0]->status = HPX_BUSY;
		status = HPX_OK;
	}
	return status;
}

enum hpx_status hpx_pg_run_row(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	return run_rows(s, &op, 1, problem);
}

static enum hpx_status check_clock(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	(void)s;
	(void)op;
	(void)problem;
	return HPX_OK; /* the database's clock is the one that counts */
}

/* X(verb, what runs it, in a transaction of its own) */
#define OTHER_LIST(X) \
	X(SWEEP, hpx_pg_sweep) \
	X(REAP, hpx_pg_reap) \
	X(NOTE_MISUSE, hpx_pg_note_misuse) \
	X(RECIPE, hpx_pg_put_recipe) \
	X(LANE, hpx_pg_put_lane) \
	X(ACCEPT_CLOCK, check_clock) \
	X(ADVANCE, hpx_pg_application) \
	X(ENQUEUE, hpx_pg_application) \
	X(PROVIDER_ID, hpx_pg_application) \
	X(READ_POINT, hpx_pg_application) \
	X(RESOLVE, hpx_pg_settle) \
	X(FORGET, hpx_pg_settle) \
	X(CLAIM, hpx_pg_claim) \
	X(SWEEP_JOBS, hpx_pg_sweep_jobs) \
	X(CLAIM_UNKNOWN, hpx_pg_take_due) \
	X(ESCALATE, hpx_pg_take_due)

typedef enum hpx_status run_fn(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem);

/* NULL: it goes by rows, or with other turns and rulings, in the batch's
 * transactions. */
static run_fn *runner_of(const struct hpx_store_op *op)
{
	static run_fn *const runners[HPX_VERB_COUNT] = {
#define X(verb, run) [HPX_VERB_##verb] = run,
		OTHER_LIST(X)
#undef X
	};

	if (op->verb == HPX_VERB_RULE && op->rule.update != NULL && op->rule.update->stored_rule)
		return hpx_pg_settle_by_function;
	return runners[op->verb];
}

/* Ops about many operations, those of an application and most of the outbox's
 * come between transactions of the others: they must see what those wrote. What
 * lies between two of these has no order that anybody could know of, as long as
 * ops about the same operation, and turns of the same job, keep theirs. */
enum hpx_status hpx_pg_run(struct hpx_store *store, struct hpx_store_op **ops, size_t count,
			   char *problem)
{
	struct hpx_pg_store *s = hpx_pg_of(store);
	enum hpx_status status = HPX_OK;
	size_t from = 0;

	while (from < count && status == HPX_OK) {
		size_t to = from;
		while (to < count && runner_of(ops[to]) == NULL)
			to++;
		if (to == from) {
			status = runner_of(ops[from])(s, ops[from], problem);
			from++;
			continue;
		}
		status = run_rows(s, ops + from, to - from, problem);
		if (status == HPX_OK)
			status = hpx_pg_job_updates(s, ops + from, to - from, problem);
		if (status == HPX_OK)
			status = hpx_pg_rules(s, ops + from, to - from, problem);
		from = to;
	}
	return status;
}
