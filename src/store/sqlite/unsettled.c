/* Questions about outcomes that nobody knows: which are due, found by a reader,
 * outside the write path; and, inside the batch's transaction, CLAIM_UNKNOWN and
 * ESCALATE, which take those that a reader found. */
#include <stdlib.h>

#include "store/sqlite/driver.h"

/* Whatever the submitter asks for: one op must not hold the writer for long. */
#define TAKEN_MAX 1000
/* Descriptions of one operation: a path and a handful of names. */
#define DESCRIPTION_BYTES_MAX ((size_t)1 << 20)

/* ---- what is due ---- */

/* The first lane behind `after`; an empty name where there is none. */
static enum hpx_status next_lane(struct hpx_sqlite_db *db, struct hpx_span after,
				 struct hpx_arena *arena, struct hpx_lane_due *ret_lane)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_NEXT_LANE);
	enum hpx_status read = HPX_OK, status;

	*ret_lane = (struct hpx_lane_due){ .at_ms = 0 };
	hpx_sqlite_bind_text(&stmt, after);
	if (hpx_sqlite_next(&stmt)) {
		ret_lane->at_ms = sqlite3_column_int64(stmt.handle, 1);
		ret_lane->name = hpx_arena_dup(arena,
					       hpx_span((const char *)sqlite3_column_text(stmt.handle, 0),
							(size_t)sqlite3_column_bytes(stmt.handle, 0)));
		read = ret_lane->name.ptr != NULL ? HPX_OK : HPX_NOMEM;
	}
	status = hpx_sqlite_end(&stmt);
	return status != HPX_OK ? status : read;
}

enum hpx_status hpx_sqlite_lanes(struct hpx_store_reader *reader, struct hpx_arena *arena,
				 struct hpx_lane_due **ret_lanes, size_t *ret_count)
{
	struct hpx_lane_due *lanes = NULL, lane = { .name = HPX_SPAN("") };
	size_t count = 0, room = 0;
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);

	while (status == HPX_OK) {
		status = next_lane(db, lane.name, arena, &lane);
		if (status != HPX_OK || lane.name.len == 0)
			break;
		if (count == room) {
			size_t more = room != 0 ? 2 * room : 16;
			struct hpx_lane_due *grown = hpx_arena_alloc(arena, more * sizeof(*grown));
			if (grown == NULL)
				return HPX_NOMEM;
			if (count > 0)
				memcpy(grown, lanes, count * sizeof(*grown));
			lanes = grown;
			room = more;
		}
		lanes[count++] = lane;
	}
	if (status == HPX_OK) {
		*ret_lanes = lanes;
		*ret_count = count;
	}
	return status;
}

enum hpx_status hpx_sqlite_due(struct hpx_store_reader *reader, struct hpx_span lane,
			       int64_t from_ms, struct hpx_due *due, size_t max,
			       size_t *ret_count)
{
	struct hpx_sqlite_statement stmt;
	struct hpx_sqlite_db *db;
	size_t count = 0;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);

	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_statement(db, HPX_SQL_QUESTIONS_DUE);
	hpx_sqlite_bind_text(&stmt, lane);
	hpx_sqlite_bind_int(&stmt, hpx_store_moment(reader->store).wall_ms);
	hpx_sqlite_bind_int(&stmt, from_ms);
	hpx_sqlite_bind_int(&stmt, (int64_t)max);
	while (count < max && hpx_sqlite_next(&stmt)) {
		due[count] = (struct hpx_due){
			.number = sqlite3_column_int64(stmt.handle, 1),
			.evidence = sqlite3_column_int64(stmt.handle, 2) != 0,
			.at_ms = sqlite3_column_int64(stmt.handle, 3),
		};
		if (hpx_sqlite_fixed(&stmt, 0, due[count].id.bytes, sizeof(due[count].id.bytes)) &&
		    hpx_sqlite_fixed(&stmt, 4, due[count].mark.bytes, sizeof(due[count].mark.bytes)))
			count++;
	}
	status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK)
		*ret_count = count;
	return status;
}

/* ---- CLAIM_UNKNOWN ---- */

static enum hpx_status read_description(struct hpx_sqlite_store *s, const struct hpx_operation_id *id,
					struct hpx_arena *arena,
					struct hpx_description *ret_description)
{
	struct hpx_sqlite_want want = { .arena = arena, .description = ret_description };
	struct hpx_sqlite_row row;

	return hpx_sqlite_row_find(s, &s->writer, id, &want, &row);
}

static void describe(const struct hpx_sqlite_outbox_rows *rows, struct hpx_unsettled *unsettled)
{
	const struct hpx_outbox_found *found = &rows->found;

	unsettled->record = found->operation.record;
	unsettled->reconcile = found->reconcile;
	unsettled->evidence = found->evidence;
	unsettled->scheduled = found->scheduled && found->reconcile.sent_ms != 0;
	if (unsettled->reconcile.sent_ms == 0)
		unsettled->reconcile.sent_ms = found->job_exists ? found->delivery.changed_ms :
								   found->operation.record.changed_ms;
	if (!found->job_exists)
		return;
	unsettled->delivery = found->delivery;
	unsettled->job_name = rows->entry->job.name;
	unsettled->target = rows->entry->job.target;
	/* Its operation may be gone, or used anew. */
	if (!found->operation.exists ||
	    !hpx_mark_eq(&found->operation.record.mark, &found->delivery.mark))
		unsettled->record = (struct hpx_record){ .id = found->delivery.operation,
							 .mark = found->delivery.mark };
}

static enum hpx_status give(struct hpx_sqlite_store *s, const struct hpx_sqlite_outbox_rows *rows,
			    int64_t ask_at_ms, struct hpx_unsettled **ret_given)
{
	struct hpx_unsettled unsettled = { .next = NULL };
	struct hpx_unsettled *copy = NULL;
	struct hpx_reconcile reconcile;
	struct hpx_arena arena;
	enum hpx_status status = HPX_OK;

	hpx_arena_init(&arena, DESCRIPTION_BYTES_MAX);
	describe(rows, &unsettled);
	if (unsettled.record.state != HPX_STATE_NONE)
		status = read_description(s, &unsettled.record.id, &arena,
					  &unsettled.description);
	if (status == HPX_OK) {
		copy = hpx_unsettled_new(&unsettled);
		status = copy != NULL ? HPX_OK : HPX_NOMEM;
	}
	hpx_arena_done(&arena);
	if (status != HPX_OK)
		return status;
	*ret_given = copy;
	reconcile = copy->reconcile;
	reconcile.ask_at_ms = ask_at_ms;
	return hpx_sqlite_reconcile_put(&s->writer, rows, rows->found.job_exists, &reconcile,
					rows->found.evidence, rows->found.person);
}

/* Whether the question is about what was found, and that is unknown. */
static bool is_about_unknown(const struct hpx_sqlite_outbox_rows *rows, const struct hpx_due *due)
{
	const struct hpx_outbox_found *found = &rows->found;

	if (due->number != 0)
		return found->job_exists && found->delivery.state == HPX_JOB_UNKNOWN;
	return found->operation.exists && !found->job_exists &&
	       found->operation.record.state == HPX_STATE_UNKNOWN;
}

static bool is_readable(const struct hpx_outbox_found *found)
{
	return found->job_exists ? found->job_readable : found->operation.readable;
}

static enum hpx_status end_question(struct hpx_sqlite_db *db, enum hpx_sql sql,
				    const struct hpx_due *due)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, sql);

	hpx_sqlite_bind_blob(&stmt, due->id.bytes, sizeof(due->id.bytes));
	hpx_sqlite_bind_int(&stmt, due->number);
	return hpx_sqlite_finish(&stmt);
}

/* Finds one, and whether it is due still. A row that cannot be read is a
 * person's; a question about nothing is over. Neither may stand for ever at the
 * head of its lane. */
static enum hpx_status find_due(struct hpx_sqlite_store *s, const struct hpx_due *due,
				int64_t wall_ms, struct hpx_sqlite_outbox_rows *ret_rows,
				bool *ret_is_due)
{
	enum hpx_status status = hpx_sqlite_outbox_rows_find(s, &due->id, due->number,
							     ret_rows);
	const struct hpx_outbox_found *found = &ret_rows->found;

	*ret_is_due = false;
	if (status != HPX_OK)
		return status;
	if ((found->operation.exists || found->job_exists) && !is_readable(found))
		return end_question(&s->writer, HPX_SQL_LEAVE_QUESTION, due);
	if (!is_about_unknown(ret_rows, due) || !found->scheduled)
		return end_question(&s->writer, HPX_SQL_END_QUESTION, due);
	*ret_is_due = !found->person && found->reconcile.ask_at_ms > 0 &&
		      found->reconcile.ask_at_ms <= wall_ms;
	return HPX_OK;
}

enum hpx_status hpx_sqlite_claim_unknown(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct hpx_op_due *about = &op->claim_unknown;
	struct hpx_unsettled **tail = &about->unsettled;
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(op->verb == HPX_VERB_CLAIM_UNKNOWN);
	for (size_t i = 0; i < about->due_count && i < TAKEN_MAX && status == HPX_OK; i++) {
		const struct hpx_due *due = &about->due[i];
		struct hpx_sqlite_outbox_rows rows;
		bool is_due;
		status = find_due(s, due, now.wall_ms, &rows, &is_due);
		if (status == HPX_OK && is_due) {
			status = give(s, &rows, now.wall_ms + due->lease_ms, tail);
			if (*tail != NULL)
				tail = &(*tail)->next;
			about->count++;
		}
		hpx_sqlite_outbox_rows_free(&rows);
	}
	return status;
}

/* ---- ESCALATE ---- */

enum hpx_status hpx_sqlite_escalate(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	struct hpx_op_due *about = &op->escalate;
	struct hpx_moment now = hpx_store_moment(&s->base);
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(op->verb == HPX_VERB_ESCALATE);
	for (size_t i = 0; i < about->due_count && i < TAKEN_MAX && status == HPX_OK; i++) {
		struct hpx_outbox_change change;
		struct hpx_sqlite_outbox_rows rows;
		bool is_due;
		status = find_due(s, &about->due[i], now.wall_ms, &rows, &is_due);
		if (status == HPX_OK && is_due && hpx_outbox_escalate(&rows.found, &change)) {
			status = hpx_sqlite_outbox_rows_write(s, &rows, &change,
							      now.wall_ms, op);
			about->count++;
		}
		hpx_sqlite_outbox_rows_free(&rows);
	}
	return status;
}
