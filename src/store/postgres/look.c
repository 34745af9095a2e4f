/* What the database says of the batch's operations, in one round trip:
 *
 *   LOCK   the rows that will certainly be written; one that somebody else has
 *          locked is skipped, never waited for;
 *   READ   all rows, with their renewals. Each statement of a READ COMMITTED
 *          transaction sees what is committed when it begins, so this shows
 *          the rows as they were locked;
 *   CLOCK  the time after the locks: no decision is older than its row.
 *
 * And the rows that the fast path found where it would have inserted (INSERT_ABSENT). */
#include "store/postgres/driver.h"

#define TIME_MAX (INT64_MAX / 4)

/* Answers are large: so many at a time are held twice. */
#define ANSWERS_AT_ONCE 16

static bool is_to_lock(const struct hpx_pg_pending_row *pending)
{
	return pending->to_lock;
}

static bool is_to_read(const struct hpx_pg_pending_row *pending)
{
	return pending->to_read;
}

static bool is_to_load(const struct hpx_pg_pending_row *pending)
{
	return pending->to_load;
}

static bool any(const struct hpx_pg_batch *batch, bool (*wanted)(const struct hpx_pg_pending_row *))
{
	for (size_t i = 0; i < batch->pending_count; i++)
		if (wanted(&batch->pending[i]))
			return true;
	return false;
}

static void take_locks(struct hpx_pg_pipe *pipe, struct hpx_pg_batch *batch)
{
	PGresult *result = hpx_pg_take(pipe);
	struct hpx_operation_id id;

	for (int row = 0; result != NULL && row < PQntuples(result); row++) {
		struct hpx_pg_pending_row *pending =
			hpx_pg_id_read(result, row, &id) ? hpx_pg_batch_find(batch, &id) : NULL;
		if (pending != NULL)
			pending->locked = true;
	}
	PQclear(result);
}

static void take_row(const PGresult *result, int row, struct hpx_pg_batch *batch)
{
	struct hpx_operation_id id;
	struct hpx_pg_pending_row *pending =
		hpx_pg_id_read(result, row, &id) ? hpx_pg_batch_find(batch, &id) : NULL;
	struct hpx_pg_row read;

	if (pending == NULL)
		return;
	hpx_pg_row_read(result, row, &read);
	pending->stored = true;
	pending->found = read.found;
	pending->renewed = read.renewed;
}

static void take_rows(struct hpx_pg_pipe *pipe, struct hpx_pg_batch *batch)
{
	PGresult *result = hpx_pg_take(pipe);

	if (result == NULL)
		return;
	for (size_t i = 0; i < batch->pending_count; i++)
		if (batch->pending[i].to_read) {
			batch->pending[i].stored = false;
			batch->pending[i].found = (struct hpx_found){ .exists = false };
		}
	for (int row = 0; row < PQntuples(result); row++)
		take_row(result, row, batch);
	PQclear(result);
}

/* Both clocks are the database's, so that all gateways judge alike. */
void hpx_pg_take_time(struct hpx_pg_store *s, struct hpx_pg_pipe *pipe, struct hpx_moment *ret_now)
{
	PGresult *result = hpx_pg_take(pipe);
	int64_t clock_ms = 0;

	if (result == NULL)
		return;
	if (PQntuples(result) != 1 || !hpx_pg_int(result, 0, 0, 0, TIME_MAX, &clock_ms))
		pipe->status = HPX_CORRUPT;
	*ret_now = (struct hpx_moment){
		.wall_ms = clock_ms + atomic_load(&s->base.wall_shift_ms),
		.lease_ms = clock_ms + atomic_load(&s->base.lease_shift_ms),
	};
	PQclear(result);
}

static void clear_marks(struct hpx_pg_batch *batch)
{
	for (size_t i = 0; i < batch->pending_count; i++)
		batch->pending[i].to_lock = batch->pending[i].to_read = false;
}

enum hpx_status hpx_pg_look(struct hpx_pg_store *s, struct hpx_pg_batch *batch,
			    struct hpx_pg_look *look, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	bool locks = any(batch, is_to_lock);
	bool begins = locks && !look->begun;

	if (begins)
		hpx_pg_send(&pipe, HPX_PG_BEGIN, NULL);
	if (locks)
		hpx_pg_send_ids(&pipe, HPX_PG_LOCK, batch, is_to_lock);
	hpx_pg_send_ids(&pipe, HPX_PG_READ, batch, is_to_read);
	hpx_pg_send(&pipe, HPX_PG_CLOCK, NULL);
	if (begins)
		PQclear(hpx_pg_take(&pipe));
	if (locks)
		take_locks(&pipe, batch);
	take_rows(&pipe, batch);
	hpx_pg_take_time(s, &pipe, &look->now);
	look->begun |= begins;
	clear_marks(batch);
	return hpx_pg_end(&pipe);
}

enum hpx_status hpx_pg_look_time(struct hpx_pg_store *s, struct hpx_moment *ret_now, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_moment now = { .wall_ms = 0 };
	enum hpx_status status;

	hpx_pg_send(&pipe, HPX_PG_CLOCK, NULL);
	hpx_pg_take_time(s, &pipe, &now);
	status = hpx_pg_end(&pipe);
	if (status == HPX_OK)
		*ret_now = now;
	return status;
}

/* ---- answers ---- */

static void take_answer(const PGresult *result, int row, struct hpx_pg_batch *batch)
{
	struct hpx_operation_id id;
	struct hpx_pg_pending_row *pending =
		hpx_pg_id_read(result, row, &id) ? hpx_pg_batch_find(batch, &id) : NULL;

	if (pending == NULL || pending->kept != NULL)
		return;
	pending->kept_status =
		hpx_pg_answer_read(result, row, 1, &pending->found.record, &pending->kept);
}

static void take_answers(struct hpx_pg_pipe *pipe, struct hpx_pg_batch *batch)
{
	PGresult *result = hpx_pg_take(pipe);

	for (int row = 0; result != NULL && row < PQntuples(result); row++)
		take_answer(result, row, batch);
	PQclear(result);
}

/* The next few; `*from` goes on behind them. */
static enum hpx_status load_some(struct hpx_pg_store *s, struct hpx_pg_batch *batch, size_t *from,
				 char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_batch part = { .pending = batch->pending + *from };
	size_t count = 0;

	while (*from + part.pending_count < batch->pending_count && count < ANSWERS_AT_ONCE)
		count += batch->pending[*from + part.pending_count++].to_load;
	*from += part.pending_count;
	if (count == 0)
		return HPX_OK;
	hpx_pg_send_ids(&pipe, HPX_PG_ANSWERS, &part, is_to_load);
	take_answers(&pipe, batch);
	return hpx_pg_end(&pipe);
}

enum hpx_status hpx_pg_look_answers(struct hpx_pg_store *s, struct hpx_pg_batch *batch,
				    char *problem)
{
	enum hpx_status status = HPX_OK;
	size_t from = 0;

	for (size_t i = 0; i < batch->pending_count; i++)
		/* Of an answer that is not kept there may be nothing, and that
		 * is whole. */
		if (batch->pending[i].to_load && batch->pending[i].found.record.kept)
			batch->pending[i].kept_status = HPX_CORRUPT;
	while (from < batch->pending_count && status == HPX_OK)
		status = load_some(s, batch, &from, problem);
	return status;
}

/* ---- rows that the fast path found ---- */

enum {
	COLUMN_AT = HPX_PG_DESCRIPTION_COLUMN, /* behind the record's */
	COLUMN_INSERTED,
	COLUMN_HEADERS,
	COLUMN_BODY,
	COLUMN_DIGEST,
};

/* As hpx_pg_look_answers() would find it. False: it was left out, or there is
 * no memory for it. */
static bool read_answer(const PGresult *result, int row, struct hpx_pg_pending_row *pending)
{
	if (!pending->found.readable || pending->found.record.state != HPX_STATE_COMPLETED)
		return true;
	pending->kept_status = pending->found.record.kept ? HPX_CORRUPT : HPX_OK;
	if (PQgetisnull(result, row, COLUMN_DIGEST))
		return true;
	if (PQgetisnull(result, row, COLUMN_HEADERS) || PQgetisnull(result, row, COLUMN_BODY))
		return false;
	pending->kept_status = hpx_pg_answer_read(result, row, COLUMN_HEADERS,
						  &pending->found.record, &pending->kept);
	return pending->kept_status == HPX_OK || pending->kept_status == HPX_CORRUPT;
}

bool hpx_pg_absent_read(const PGresult *result, int row, struct hpx_pg_absent *ret_absent)
{
	struct hpx_pg_pending_row *seen = &ret_absent->seen;
	struct hpx_pg_row read;
	int64_t inserted = 0;

	*ret_absent = (struct hpx_pg_absent){ .inserted = false };
	if (!hpx_pg_id_read(result, row, &ret_absent->id) ||
	    !hpx_pg_int(result, row, COLUMN_AT, -TIME_MAX, TIME_MAX, &ret_absent->at_ms) ||
	    !hpx_pg_int(result, row, COLUMN_INSERTED, 0, 1, &inserted))
		return false;
	ret_absent->inserted = inserted == 1;
	if (ret_absent->inserted)
		return true;
	hpx_pg_row_read(result, row, &read);
	seen->id = ret_absent->id;
	seen->found = read.found;
	seen->renewed = read.renewed;
	seen->stored = read_answer(result, row, seen);
	return true;
}
