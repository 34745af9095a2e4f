/* The end of a batch's transaction, and what is known when it fails.
 *
 * A commit is believed only when the server said COMMIT and nothing else. A
 * WARNING with it means that the wait for the synchronous standby was
 * cancelled: the rows are readable here and gone once the standby is promoted.
 * A connection that ends before the answer leaves both possible. In all these
 * cases the store is unsure, and so it is when a connection is new: until a
 * commit without a warning has put something later into the log, no decision
 * is told that rests on what is read (what is later in the log is nowhere
 * without what came before). The tokens tell what did commit. */
#include "base/crash_point.h"
#include "store/postgres/driver.h"

static bool is_dirty(const struct hpx_pg_batch *batch)
{
	for (size_t i = 0; i < batch->pending_count; i++)
		if (hpx_pg_pending_row_dirty(&batch->pending[i]))
			return true;
	return batch->event_count > 0 || hpx_pg_items_dirty(batch);
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
 * be written where somebody else inserted the operation first. (Only where one
 * batch holds an operation's beginning and its end.) */
static bool insert_has_more(struct hpx_pg_batch *batch)
{
	for (size_t i = 0; i < batch->pending_count; i++) {
		const struct hpx_pg_pending_row *pending = &batch->pending[i];
		if (!pending->stored && pending->changed && (pending->answer != NULL || pending->lease))
			return true;
	}
	for (size_t i = 0; i < batch->event_count; i++) {
		const struct hpx_pg_pending_row *pending =
			hpx_pg_batch_find(batch, &batch->event[i].record.id);
		if (pending != NULL && !pending->stored)
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

void hpx_pg_take_commit(struct hpx_pg_pipe *pipe)
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
	hpx_pg_take_commit(&pipe);
	return hpx_pg_end(&pipe);
}

enum hpx_status hpx_pg_believe(struct hpx_pg_store *s, enum hpx_status status, char *problem)
{
	if (status == HPX_OK && s->writer.warned) {
		hpx_store_problem(problem, "PostgreSQL: the wait for the synchronous standby was "
					   "cancelled: the commit may be lost with this primary");
		status = HPX_IO;
	}
	s->unsure = status != HPX_OK;
	return status == HPX_OK ? HPX_OK : hpx_pg_undo(s, status);
}

enum hpx_status hpx_pg_commit_call(struct hpx_pg_store *s, enum hpx_pg_statement statement,
				   const struct hpx_pg_params *params, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);

	hpx_pg_send(&pipe, statement, params);
	if (s->unsure)
		hpx_pg_send(&pipe, HPX_PG_MARK, NULL);
	hpx_pg_send(&pipe, HPX_PG_COMMIT, NULL);
	while (pipe.status == HPX_OK && pipe.waiting > 1)
		PQclear(hpx_pg_take(&pipe));
	hpx_pg_take_commit(&pipe);
	return hpx_pg_believe(s, hpx_pg_end(&pipe), problem);
}

enum hpx_status hpx_pg_commit(struct hpx_pg_store *s, struct hpx_pg_batch *batch,
			      const struct hpx_pg_look *look, char *problem)
{
	bool begun = look->begun;
	bool inserted = false;
	enum hpx_status status;

	if (!is_dirty(batch) && !s->unsure)
		/* Nothing was written: no log to wait for. */
		return hpx_pg_undo(s, HPX_OK);
	HPX_ASSERT(batch->pending_count <= batch->pending_max);
	if (insert_has_more(batch)) {
		status = insert_first(s, batch, begun, problem);
		if (status != HPX_OK)
			return hpx_pg_undo(s, status);
		begun = inserted = true;
	}
	HPX_CRASH_POINT(batch_written);
	status = hpx_pg_believe(s, write_all(s, batch, begun, inserted, problem), problem);
	if (status == HPX_OK)
		HPX_CRASH_POINT(batch_committed);
	return status;
}
