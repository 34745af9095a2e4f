/* The fast path: the two writes of nearly every request, without reading the row
 * beforehand.
 *
 * A reservation of a new key is an INSERT, and the unique index tells whether the key
 * is new. A completion knows its row from the reservation: it is an UPDATE that finds
 * the row only as its attempt left it. What is written is still what the rules say, of
 * no record and of the record believed. Where the row turns out to be another, nothing
 * was written, and the slow path (batch.c) reads it. */
#include "store/sqlite/driver.h"

/* HPX_NOT_FOUND: nothing was written. */
static enum hpx_status finish_one(struct hpx_sqlite_db *db, struct hpx_sqlite_statement *stmt)
{
	enum hpx_status status = hpx_sqlite_finish(stmt);

	if (status == HPX_OK && sqlite3_changes64(db->handle) != 1)
		status = HPX_NOT_FOUND;
	return status;
}

static enum hpx_status reserve(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	static const struct hpx_found none;
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct hpx_change change;

	HPX_ASSERT(op->verb == HPX_VERB_RESERVE);
	hpx_change_make(&none, op, &now, atomic_load(&s->base.space_low), &change);
	if (op->status != HPX_OK || change.write != HPX_WRITE_INSERT || change.job != NULL)
		return HPX_NOT_FOUND;
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_INSERT_ABSENT);
	hpx_sqlite_record_bind(&stmt, &change.record);
	hpx_sqlite_description_bind(&stmt, op->reserve.description);
	enum hpx_status status = finish_one(&s->writer, &stmt);
	if (status == HPX_OK)
		op->reserve.row = sqlite3_last_insert_rowid(s->writer.handle);
	return status;
}

/* What COMPLETE changes of a record (core/record), where it is still the
 * believed one: the first attempt, with nothing of it committed by the
 * application, and never renewed. */
static enum hpx_status update(struct hpx_sqlite_db *db, const struct hpx_store_op *op,
			      const struct hpx_record *record)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_COMPLETE_BELIEVED);

	hpx_sqlite_bind_int(&stmt, op->complete.row);
	hpx_sqlite_bind_blob(&stmt, record->id.bytes, sizeof(record->id.bytes));
	hpx_sqlite_bind_blob(&stmt, record->token.bytes, sizeof(record->token.bytes));
	hpx_sqlite_bind_int(&stmt, record->changed_ms);
	hpx_sqlite_bind_int(&stmt, record->expires_ms);
	hpx_sqlite_bind_int(&stmt, record->status);
	hpx_sqlite_bind_int(&stmt, record->kept);
	return finish_one(db, &stmt);
}

static enum hpx_status complete(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	struct hpx_found believed = { .exists = true, .readable = true, .record = *op->complete.believed };
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct hpx_change change;

	HPX_ASSERT(op->verb == HPX_VERB_COMPLETE && op->complete.row != 0);
	hpx_change_make(&believed, op, &now, false, &change);
	if (op->status != HPX_OK || change.write != HPX_WRITE_UPDATE || change.event != NULL)
		return HPX_NOT_FOUND;
	enum hpx_status status = update(&s->writer, op, &change.record);
	if (status == HPX_OK && change.answer != NULL)
		status = hpx_sqlite_answer_put(&s->writer, op->complete.row, &change);
	return status;
}

enum hpx_status hpx_sqlite_fast_path(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	if (op->verb == HPX_VERB_RESERVE && op->reserve.ask != NULL && op->reserve.job == NULL && !op->reserve.look)
		return reserve(s, op);
	if (op->verb == HPX_VERB_COMPLETE && op->complete.believed != NULL && op->complete.row != 0 &&
	    op->complete.believed->state == HPX_STATE_IN_PROGRESS)
		return complete(s, op);
	return HPX_NOT_FOUND;
}
