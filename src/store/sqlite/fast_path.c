/* The fast path: the two writes of nearly every request, without reading the row
 * beforehand.
 *
 * A reservation of a new key is an INSERT into the open generation, whose unique index
 * tells whether the key is new there; that there is no aside row is a condition of the
 * same statement, and the other generations are asked by filter or index before. A
 * completion knows its row from the reservation: it is an INSERT of the answer that
 * finds the row only as its attempt left it. What is written is still what the rules
 * say, of no record and of the record believed. Where the row turns out to be another,
 * nothing was written, and the slow path (batch.c) reads it. */
#include "store/sqlite/driver.h"

/* Where a reservation was written, in one number. */
#define ROW_BITS 32

static enum hpx_status has(struct hpx_sqlite_db *db, struct hpx_sqlite_generation *g,
			   const struct hpx_operation_id *id, bool *ret_has)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_generation_statement(db, g, HPX_GENERATION_SQL_HAS);

	hpx_sqlite_bind_blob(&stmt, id->bytes, HPX_SQLITE_ID_BYTES);
	*ret_has = hpx_sqlite_next(&stmt);
	return hpx_sqlite_end(&stmt);
}

/* HPX_NOT_FOUND: one of the other generations has it, or cannot be read or
 * believed where it would be: the slow path tells. */
static enum hpx_status check_others(struct hpx_sqlite_store *s, const struct hpx_sqlite_generation *open,
				    const struct hpx_operation_id *id)
{
	struct hpx_sqlite_db *db = &s->writer;
	enum hpx_status status = HPX_OK;
	bool there = false;
	size_t at = 0;

	for (size_t i = 0; i < db->generation_count && status == HPX_OK && !there; i++) {
		struct hpx_sqlite_generation *g = &db->generations[i];
		if (g == open || g->state == HPX_GENERATION_DEAD || !hpx_sqlite_filter_may_have(s, db, g, id, &at))
			continue;
		status = has(db, g, id, &there);
		there |= !hpx_sqlite_miss_counts(s, g->number);
	}
	return there || status == HPX_CORRUPT ? HPX_NOT_FOUND : status;
}

static enum hpx_status reserve(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	static const struct hpx_found none;
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct hpx_sqlite_generation *g = NULL;
	struct hpx_change change;
	enum hpx_status status;
	int64_t number = 0;

	HPX_ASSERT(op->verb == HPX_VERB_RESERVE);
	if (atomic_load(&s->damaged))
		return HPX_NOT_FOUND;
	hpx_change_make(&none, op, &now, atomic_load(&s->base.space_low), &change);
	if (op->status != HPX_OK || change.write != HPX_WRITE_INSERT || change.job != NULL ||
	    change.record.state != HPX_STATE_IN_PROGRESS)
		return HPX_NOT_FOUND;
	status = hpx_sqlite_generation_for(s, change.record.retention_ms, &g);
	if (status == HPX_OK && g == NULL)
		return HPX_NOT_FOUND;
	if (status == HPX_OK)
		status = check_others(s, g, &change.record.id);
	if (status == HPX_OK)
		status = hpx_sqlite_plain_insert(s, g, &change.record, op->reserve.description, &number);
	if (status == HPX_OK && change.route_key != NULL)
		status = hpx_sqlite_route_key_put(&s->writer, g->number, number, &change.record, change.route_key);
	if (status == HPX_OK)
		op->reserve.row = g->number << ROW_BITS | number;
	return status;
}

static enum hpx_status complete(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	const struct hpx_record *before = op->complete.believed;
	struct hpx_found believed = { .exists = true, .readable = true, .record = *before };
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct hpx_sqlite_generation *g =
		hpx_sqlite_generation_find(&s->writer, op->complete.row >> ROW_BITS);
	struct hpx_change change;
	enum hpx_status status;

	HPX_ASSERT(op->verb == HPX_VERB_COMPLETE && op->complete.row != 0);
	if (g == NULL || g->state == HPX_GENERATION_DEAD || before->attempt != 1 || before->advanced ||
	    before->point[0] != '\0')
		return HPX_NOT_FOUND;
	hpx_change_make(&believed, op, &now, false, &change);
	if (op->status != HPX_OK || change.write != HPX_WRITE_UPDATE || change.event != NULL ||
	    change.record.expires_ms - change.record.changed_ms > g->class_ms)
		return HPX_NOT_FOUND;
	status = hpx_sqlite_plain_complete(s, g, op->complete.row & UINT32_MAX, &change);
	if (status == HPX_OK && before->owner == s->base.owner)
		hpx_sqlite_lease_end(&s->leases, &before->token, &before->id);
	else if (status == HPX_OK)
		status = hpx_sqlite_lease_remove(&s->writer, &before->token, &before->id);
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
