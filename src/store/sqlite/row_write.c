/* A change to one operation, written: the rows of operation, response, lease
 * and event that it concerns. Always inside the batch's transaction. */
#include "store/sqlite/driver.h"

/* An event is for people; whatever somebody typed is cut to what one reads. */
#define ACTOR_BYTES_MAX 128
#define REASON_BYTES_MAX 1024

static enum hpx_status by_seq(struct hpx_sqlite_db *db, enum hpx_sql sql, int64_t seq)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, sql);

	hpx_sqlite_bind_int(&stmt, seq);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status insert(struct hpx_sqlite_db *db, const struct hpx_change *change,
			      const struct hpx_description *description)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_INSERT);

	hpx_sqlite_record_bind(&stmt, &change->record);
	hpx_sqlite_description_bind(&stmt, description);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status update(struct hpx_sqlite_db *db, int64_t seq,
			      const struct hpx_change *change)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_UPDATE);

	hpx_sqlite_record_bind(&stmt, &change->record);
	hpx_sqlite_bind_int(&stmt, seq);
	return hpx_sqlite_finish(&stmt);
}

/* An expired key used again: nothing of the old operation stays. */
static enum hpx_status replace(struct hpx_sqlite_db *db, int64_t seq,
			       const struct hpx_change *change,
			       const struct hpx_description *description)
{
	enum hpx_status status = by_seq(db, HPX_SQL_REMOVE_ANSWER, seq);
	struct hpx_sqlite_statement stmt;

	if (status == HPX_OK)
		status = update(db, seq, change);
	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_statement(db, HPX_SQL_DESCRIBE);
	hpx_sqlite_description_bind(&stmt, description);
	hpx_sqlite_bind_int(&stmt, seq);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status put_lease(struct hpx_sqlite_db *db, int64_t seq,
				 const struct hpx_record *record)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_LEASE);

	hpx_sqlite_bind_int(&stmt, seq);
	hpx_sqlite_bind_blob(&stmt, record->token.bytes, sizeof(record->token.bytes));
	hpx_sqlite_bind_int(&stmt, record->lease_until_ms);
	return hpx_sqlite_finish(&stmt);
}

enum hpx_status hpx_sqlite_answer_put(struct hpx_sqlite_db *db, int64_t seq,
				      const struct hpx_change *change)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_ANSWER);
	struct hpx_span headers = change->answer->headers;
	struct hpx_span body = hpx_change_body(change);

	hpx_sqlite_bind_int(&stmt, seq);
	hpx_sqlite_bind_blob(&stmt, headers.ptr, headers.len);
	hpx_sqlite_bind_blob(&stmt, body.ptr, body.len);
	hpx_sqlite_bind_int(&stmt, hpx_sqlite_answer_crc(&change->record.id, headers, body));
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status put_point_data(struct hpx_sqlite_db *db, int64_t seq, struct hpx_span data)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_POINT_DATA);

	hpx_sqlite_bind_blob(&stmt, data.ptr, data.len);
	hpx_sqlite_bind_int(&stmt, seq);
	return hpx_sqlite_finish(&stmt);
}

enum hpx_status hpx_sqlite_event_put(struct hpx_sqlite_db *db, const struct hpx_sqlite_event *event,
				     const struct hpx_store_op *op)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_EVENT);
	struct hpx_span reason = op->reason.len != 0 ? op->reason : event->reason;

	hpx_sqlite_bind_blob(&stmt, event->id->bytes, sizeof(event->id->bytes));
	hpx_sqlite_bind_int(&stmt, event->at_ms);
	hpx_sqlite_bind_int(&stmt, event->attempt);
	hpx_sqlite_bind_text(&stmt, hpx_span_of(event->what));
	hpx_sqlite_bind_text(&stmt, hpx_span_first(op->actor, ACTOR_BYTES_MAX));
	hpx_sqlite_bind_text(&stmt, hpx_span_first(reason, REASON_BYTES_MAX));
	hpx_sqlite_bind_int(&stmt, event->status);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status put_event(struct hpx_sqlite_db *db, const struct hpx_change *change,
				 const struct hpx_store_op *op)
{
	const struct hpx_record *after = &change->record;
	struct hpx_sqlite_event event = { &after->id, change->at_ms, after->attempt,
					  change->event, change->reason, after->status };

	return hpx_sqlite_event_put(db, &event, op);
}

enum hpx_status hpx_sqlite_row_remove(struct hpx_sqlite_db *db, int64_t seq)
{
	enum hpx_status status = by_seq(db, HPX_SQL_REMOVE_ANSWER, seq);

	if (status == HPX_OK)
		status = by_seq(db, HPX_SQL_REMOVE_LEASE, seq);
	if (status == HPX_OK)
		status = by_seq(db, HPX_SQL_REMOVE_QUESTION, seq);
	if (status == HPX_OK)
		status = by_seq(db, HPX_SQL_REMOVE, seq);
	return status;
}

/* What was asked about one that was unknown, or said of another reference. */
static bool ends_questions(const struct hpx_sqlite_row *row, const struct hpx_change *change)
{
	return change->write == HPX_WRITE_REPLACE ||
	       (row->found.record.state == HPX_STATE_UNKNOWN &&
		change->record.state != HPX_STATE_UNKNOWN);
}

/* Whoever lost the outcome, and however: a question is due from now on. */
static bool begins_question(const struct hpx_sqlite_row *row, const struct hpx_change *change)
{
	return change->write == HPX_WRITE_UPDATE && change->record.state == HPX_STATE_UNKNOWN &&
	       row->found.record.state != HPX_STATE_UNKNOWN;
}

enum hpx_status hpx_sqlite_question_begin(struct hpx_sqlite_db *db,
					  const struct hpx_operation_id *id)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_BEGIN_QUESTION);

	hpx_sqlite_bind_blob(&stmt, id->bytes, sizeof(id->bytes));
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status write_rows(struct hpx_sqlite_db *db, const struct hpx_sqlite_row *row,
				  const struct hpx_change *change, const struct hpx_store_op *op)
{
	bool anew = change->write == HPX_WRITE_INSERT || change->write == HPX_WRITE_REPLACE;
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(!anew || op->verb == HPX_VERB_RESERVE); /* only a reservation has a description */
	HPX_ASSERT(change->write == HPX_WRITE_NOTHING ||
		   row->found.exists == (change->write != HPX_WRITE_INSERT));
	switch (change->write) {
	case HPX_WRITE_NOTHING:
		return HPX_OK;
	case HPX_WRITE_INSERT:
		return insert(db, change, op->reserve.description);
	case HPX_WRITE_LEASE:
		return put_lease(db, row->seq, &change->record);
	case HPX_WRITE_REMOVE:
		return hpx_sqlite_row_remove(db, row->seq);
	case HPX_WRITE_REPLACE:
		status = replace(db, row->seq, change, op->reserve.description);
		break;
	case HPX_WRITE_UPDATE:
		status = update(db, row->seq, change);
		break;
	}
	/* The record holds the later end itself now. */
	if (status == HPX_OK && row->renewed)
		status = by_seq(db, HPX_SQL_REMOVE_LEASE, row->seq);
	if (status == HPX_OK && ends_questions(row, change))
		status = by_seq(db, HPX_SQL_REMOVE_QUESTION, row->seq);
	if (status == HPX_OK && change->write == HPX_WRITE_UPDATE &&
	    change->record.attempt != row->found.record.attempt)
		status = by_seq(db, HPX_SQL_REMOVE_DECLINED, row->seq);
	if (status == HPX_OK && begins_question(row, change))
		status = hpx_sqlite_question_begin(db, &change->record.id);
	if (status == HPX_OK && change->answer != NULL)
		status = hpx_sqlite_answer_put(db, row->seq, change);
	if (status == HPX_OK && change->data != NULL)
		status = put_point_data(db, row->seq, *change->data);
	return status;
}

enum hpx_status hpx_sqlite_change_write(struct hpx_sqlite_db *db, const struct hpx_sqlite_row *row,
					const struct hpx_change *change,
					const struct hpx_store_op *op)
{
	enum hpx_status status = write_rows(db, row, change, op);

	if (status == HPX_OK && change->event != NULL)
		status = put_event(db, change, op);
	return status;
}
