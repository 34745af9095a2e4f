/* What the database says of the batch's operations, in one round trip:
 *
 *   LOCK   the rows that will certainly be written; one that somebody else has
 *          locked is skipped, never waited for;
 *   READ   all rows, with their renewals. Each statement of a READ COMMITTED
 *          transaction sees what is committed when it begins, so this shows
 *          the rows as they were locked;
 *   CLOCK  the time after the locks: no decision is older than its row.
 *
 * And what the short way met where it would have inserted (INSERT_ABSENT). */
#include "store/postgres/driver.h"

#define TIME_MAX (INT64_MAX / 4)

/* Answers are large: so many at a time are held twice. */
#define ANSWERS_AT_ONCE 16

static bool is_to_lock(const struct hpx_pg_slot *slot)
{
	return slot->to_lock;
}

static bool is_to_read(const struct hpx_pg_slot *slot)
{
	return slot->to_read;
}

static bool is_to_load(const struct hpx_pg_slot *slot)
{
	return slot->to_load;
}

static bool any(const struct hpx_pg_batch *batch, bool (*wanted)(const struct hpx_pg_slot *))
{
	for (size_t i = 0; i < batch->slot_count; i++)
		if (wanted(&batch->slot[i]))
			return true;
	return false;
}

static void take_locks(struct hpx_pg_pipe *pipe, struct hpx_pg_batch *batch)
{
	PGresult *result = hpx_pg_take(pipe);
	struct hpx_operation_id id;

	for (int row = 0; result != NULL && row < PQntuples(result); row++) {
		struct hpx_pg_slot *slot =
			hpx_pg_id_read(result, row, &id) ? hpx_pg_batch_find(batch, &id) : NULL;
		if (slot != NULL)
			slot->locked = true;
	}
	PQclear(result);
}

static void take_row(const PGresult *result, int row, struct hpx_pg_batch *batch)
{
	struct hpx_operation_id id;
	struct hpx_pg_slot *slot =
		hpx_pg_id_read(result, row, &id) ? hpx_pg_batch_find(batch, &id) : NULL;
	struct hpx_pg_row read;

	if (slot == NULL)
		return;
	hpx_pg_row_read(result, row, &read);
	slot->stored = true;
	slot->found = read.found;
	slot->renewed = read.renewed;
}

static void take_rows(struct hpx_pg_pipe *pipe, struct hpx_pg_batch *batch)
{
	PGresult *result = hpx_pg_take(pipe);

	if (result == NULL)
		return;
	for (size_t i = 0; i < batch->slot_count; i++)
		if (batch->slot[i].to_read) {
			batch->slot[i].stored = false;
			batch->slot[i].found = (struct hpx_found){ .exists = false };
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
	for (size_t i = 0; i < batch->slot_count; i++)
		batch->slot[i].to_lock = batch->slot[i].to_read = false;
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
	struct hpx_pg_slot *slot =
		hpx_pg_id_read(result, row, &id) ? hpx_pg_batch_find(batch, &id) : NULL;

	if (slot == NULL || slot->kept != NULL)
		return;
	slot->kept_status =
		hpx_pg_answer_read(result, row, 1, &slot->found.record, &slot->kept);
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
	struct hpx_pg_batch part = { .slot = batch->slot + *from };
	size_t count = 0;

	while (*from + part.slot_count < batch->slot_count && count < ANSWERS_AT_ONCE)
		count += batch->slot[*from + part.slot_count++].to_load;
	*from += part.slot_count;
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

	for (size_t i = 0; i < batch->slot_count; i++)
		/* Of an answer that is not kept there may be nothing, and that
		 * is whole. */
		if (batch->slot[i].to_load && batch->slot[i].found.record.kept)
			batch->slot[i].kept_status = HPX_CORRUPT;
	while (from < batch->slot_count && status == HPX_OK)
		status = load_some(s, batch, &from, problem);
	return status;
}

/* ---- what the short way met ---- */

enum {
	COLUMN_AT = HPX_PG_DESCRIPTION_COLUMN, /* behind the record's */
	COLUMN_INSERTED,
	COLUMN_HEADERS,
	COLUMN_BODY,
	COLUMN_DIGEST,
};

/* As hpx_pg_look_answers() would find it. False: it was left out, or there is
 * no memory for it. */
static bool read_answer(const PGresult *result, int row, struct hpx_pg_slot *slot)
{
	if (!slot->found.readable || slot->found.record.state != HPX_STATE_COMPLETED)
		return true;
	slot->kept_status = slot->found.record.kept ? HPX_CORRUPT : HPX_OK;
	if (PQgetisnull(result, row, COLUMN_DIGEST))
		return true;
	if (PQgetisnull(result, row, COLUMN_HEADERS) || PQgetisnull(result, row, COLUMN_BODY))
		return false;
	slot->kept_status = hpx_pg_answer_read(result, row, COLUMN_HEADERS,
					       &slot->found.record, &slot->kept);
	return slot->kept_status == HPX_OK || slot->kept_status == HPX_CORRUPT;
}

bool hpx_pg_absent_read(const PGresult *result, int row, struct hpx_pg_absent *ret_absent)
{
	struct hpx_pg_slot *seen = &ret_absent->seen;
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
