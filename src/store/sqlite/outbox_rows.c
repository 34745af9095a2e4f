/* The rows that an op of the outbox is about: a job, its operation, and what is known
 * of the questions asked about it. They are read here, and written as the rules say.
 * Always inside the batch's transaction. */
#include "store/sqlite/driver.h"

/* ---- columns and jobs ---- */

/* Between columns and jobs. A row is hostile until its lengths, types and
 * invariants are found right; one that is not counts as unknown, and is never
 * sent. */

/* The columns of HPX_SQL_JOB, in order. */
enum {
	COLUMN_NUMBER,
	COLUMN_OPERATION,
	COLUMN_MARK,
	COLUMN_STATE,
	COLUMN_ANSWERS,
	COLUMN_UNSURE,
	COLUMN_ATTEMPT,
	COLUMN_BUDGET,
	COLUMN_STATUS,
	COLUMN_TOKEN,
	COLUMN_OWNER,
	COLUMN_CREATED,
	COLUMN_CHANGED,
	COLUMN_DUE,
	COLUMN_LEASE_UNTIL,
	COLUMN_FIRST_SENT,
	COLUMN_RESEND_UNTIL,
	COLUMN_PROVIDER_ID,
	COLUMN_NAME,
	COLUMN_TARGET,
	COLUMN_METHOD,
	COLUMN_PATH,
	COLUMN_BODY_CRC,
	COLUMN_CRC,
	COLUMN_HEADERS,
	COLUMN_BODY,
	COLUMN_WHOLE,
};

uint32_t hpx_sqlite_job_crc(const struct hpx_delivery *delivery, const struct hpx_job *job,
			    uint32_t body_crc)
{
	const int64_t numbers[] = { delivery->number, delivery->state, delivery->answers, delivery->unsure,
				    delivery->attempt, delivery->budget, delivery->status,
				    (int64_t)delivery->owner, delivery->created_ms,
				    delivery->changed_ms, delivery->due_ms, delivery->lease_until_ms,
				    delivery->first_sent_ms, delivery->resend_until_ms, body_crc };
	struct hpx_sqlite_crc crc;

	hpx_sqlite_crc_init(&crc);
	hpx_sqlite_crc_fixed(&crc, delivery->operation.bytes, sizeof(delivery->operation.bytes));
	hpx_sqlite_crc_fixed(&crc, delivery->mark.bytes, sizeof(delivery->mark.bytes));
	hpx_sqlite_crc_fixed(&crc, delivery->token.bytes, sizeof(delivery->token.bytes));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		hpx_sqlite_crc_int(&crc, numbers[i]);
	hpx_sqlite_crc_span(&crc, hpx_span_of(delivery->provider_id));
	hpx_sqlite_crc_span(&crc, job->name);
	hpx_sqlite_crc_span(&crc, job->target);
	hpx_sqlite_crc_span(&crc, job->method);
	hpx_sqlite_crc_span(&crc, job->path);
	return hpx_sqlite_crc_end(&crc);
}

static bool read_names(struct hpx_sqlite_statement *stmt, struct hpx_delivery *d)
{
	struct hpx_span provider_id = hpx_sqlite_bytes(stmt, COLUMN_PROVIDER_ID);
	bool ok = hpx_sqlite_fixed(stmt, COLUMN_OPERATION, d->operation.bytes,
				   sizeof(d->operation.bytes));

	ok &= hpx_sqlite_fixed(stmt, COLUMN_MARK, d->mark.bytes, sizeof(d->mark.bytes));
	ok &= hpx_sqlite_fixed(stmt, COLUMN_TOKEN, d->token.bytes, sizeof(d->token.bytes));
	if (provider_id.ptr == NULL || provider_id.len >= sizeof(d->provider_id) ||
	    memchr(provider_id.ptr, '\0', provider_id.len) != NULL)
		return false;
	memcpy(d->provider_id, provider_id.ptr, provider_id.len);
	return ok;
}

static bool read_small(struct hpx_sqlite_statement *stmt, struct hpx_delivery *d)
{
	int64_t state = 0, answers = 0, unsure = 0, attempt = 0, budget = 0, status = 0;
	bool ok = hpx_sqlite_int(stmt, COLUMN_STATE, HPX_JOB_QUEUED, HPX_JOB_STATE_COUNT - 1,
				 &state);

	ok &= hpx_sqlite_int(stmt, COLUMN_ANSWERS, 0, 1, &answers);
	ok &= hpx_sqlite_int(stmt, COLUMN_UNSURE, 0, 1, &unsure);
	ok &= hpx_sqlite_int(stmt, COLUMN_ATTEMPT, 0, UINT32_MAX, &attempt);
	ok &= hpx_sqlite_int(stmt, COLUMN_BUDGET, 0, UINT32_MAX, &budget);
	ok &= hpx_sqlite_int(stmt, COLUMN_STATUS, 0, 999, &status);
	d->state = (enum hpx_job_state)state;
	d->answers = answers == 1;
	d->unsure = unsure == 1;
	d->attempt = (uint32_t)attempt;
	d->budget = (uint32_t)budget;
	d->status = (uint32_t)status;
	return ok;
}

static bool read_times(struct hpx_sqlite_statement *stmt, struct hpx_delivery *d)
{
	int64_t owner = 0;
	bool ok = hpx_sqlite_int(stmt, COLUMN_OWNER, INT64_MIN, INT64_MAX, &owner);

	d->owner = (uint64_t)owner;
	ok &= hpx_sqlite_time(stmt, COLUMN_CREATED, 0, &d->created_ms);
	ok &= hpx_sqlite_time(stmt, COLUMN_CHANGED, 0, &d->changed_ms);
	ok &= hpx_sqlite_time(stmt, COLUMN_DUE, 0, &d->due_ms);
	ok &= hpx_sqlite_time(stmt, COLUMN_LEASE_UNTIL, -HPX_SQLITE_TIME_MAX, &d->lease_until_ms);
	ok &= hpx_sqlite_time(stmt, COLUMN_FIRST_SENT, 0, &d->first_sent_ms);
	ok &= hpx_sqlite_time(stmt, COLUMN_RESEND_UNTIL, 0, &d->resend_until_ms);
	return ok;
}

static struct hpx_span or_empty(struct hpx_span bytes)
{
	return bytes.len == 0 ? HPX_SPAN("") : bytes;
}

uint32_t hpx_sqlite_job_body_crc(const struct hpx_operation_id *operation, const struct hpx_job *job)
{
	return hpx_sqlite_bytes_crc(operation, or_empty(job->headers), or_empty(job->body));
}

/* Headers and body are looked at where they were read at all. */
static bool read_checks(struct hpx_sqlite_statement *stmt, const struct hpx_delivery *d,
			const struct hpx_job *job, uint32_t *ret_body_crc)
{
	bool whole = sqlite3_column_int64(stmt->handle, COLUMN_WHOLE) == 1;
	int64_t body_crc = 0, crc = 0;

	if (!hpx_sqlite_int(stmt, COLUMN_BODY_CRC, 0, UINT32_MAX, &body_crc) ||
	    !hpx_sqlite_int(stmt, COLUMN_CRC, 0, UINT32_MAX, &crc))
		return false;
	*ret_body_crc = (uint32_t)body_crc;
	return crc == hpx_sqlite_job_crc(d, job, *ret_body_crc) &&
	       (!whole || body_crc == hpx_sqlite_job_body_crc(&d->operation, job));
}

struct hpx_job_entry *hpx_sqlite_delivery_read(struct hpx_sqlite_statement *stmt)
{
	struct hpx_delivery delivery = { .number = sqlite3_column_int64(stmt->handle, COLUMN_NUMBER) };
	struct hpx_job job = {
		.name = hpx_sqlite_bytes(stmt, COLUMN_NAME),
		.target = hpx_sqlite_bytes(stmt, COLUMN_TARGET),
		.method = hpx_sqlite_bytes(stmt, COLUMN_METHOD),
		.path = hpx_sqlite_bytes(stmt, COLUMN_PATH),
		.headers = hpx_sqlite_bytes(stmt, COLUMN_HEADERS),
		.body = hpx_sqlite_bytes(stmt, COLUMN_BODY),
	};
	bool ok = delivery.number > 0 && hpx_job_fault(&job) == NULL;
	struct hpx_job_entry *entry;
	uint32_t body_crc = 0;

	ok &= read_names(stmt, &delivery);
	ok &= read_small(stmt, &delivery);
	ok &= read_times(stmt, &delivery);
	ok = ok && hpx_job_valid(&delivery) && read_checks(stmt, &delivery, &job, &body_crc);
	if (!ok)
		delivery.state = HPX_JOB_UNKNOWN;
	entry = hpx_job_entry_new(&delivery, &job);
	if (entry != NULL) {
		entry->readable = ok;
		entry->body_check = body_crc;
	}
	return entry;
}

static enum hpx_status put_unreadable(struct hpx_sqlite_db *db, int64_t number)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_UNREADABLE);

	hpx_sqlite_bind_int(&stmt, number);
	return hpx_sqlite_finish(&stmt);
}

/* Collects first, and others write later: a statement that walks an index must not see
 * the index change under it. */
enum hpx_status hpx_sqlite_deliveries(struct hpx_sqlite_db *db, struct hpx_sqlite_statement *stmt,
				      unsigned *room, struct hpx_job_entry ***tail)
{
	enum hpx_status status = HPX_OK, end;

	while (status == HPX_OK && *room > 0 && hpx_sqlite_next(stmt)) {
		struct hpx_job_entry *entry = hpx_sqlite_delivery_read(stmt);
		if (entry == NULL) {
			status = HPX_NOMEM;
		} else if (!entry->readable) {
			status = put_unreadable(db, entry->delivery.number);
			hpx_job_entry_free(entry);
		} else {
			**tail = entry;
			*tail = &entry->next;
			--*room;
		}
	}
	end = hpx_sqlite_end(stmt);
	return end == HPX_OK ? status : end;
}

/* A row is changed here only. */
static enum hpx_status update(struct hpx_sqlite_db *db, const struct hpx_delivery *delivery,
			      const struct hpx_job_entry *entry)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_UPDATE_JOB);

	hpx_sqlite_bind_int(&stmt, delivery->number);
	hpx_sqlite_bind_int(&stmt, delivery->state);
	hpx_sqlite_bind_int(&stmt, delivery->unsure);
	hpx_sqlite_bind_int(&stmt, delivery->attempt);
	hpx_sqlite_bind_int(&stmt, delivery->budget);
	hpx_sqlite_bind_int(&stmt, delivery->status);
	hpx_sqlite_bind_blob(&stmt, delivery->token.bytes, sizeof(delivery->token.bytes));
	hpx_sqlite_bind_int(&stmt, (int64_t)delivery->owner);
	hpx_sqlite_bind_int(&stmt, delivery->changed_ms);
	hpx_sqlite_bind_int(&stmt, delivery->due_ms);
	hpx_sqlite_bind_int(&stmt, delivery->lease_until_ms);
	hpx_sqlite_bind_int(&stmt, delivery->first_sent_ms);
	hpx_sqlite_bind_int(&stmt, delivery->resend_until_ms);
	hpx_sqlite_bind_text(&stmt, hpx_span_of(delivery->provider_id));
	hpx_sqlite_bind_int(&stmt, hpx_sqlite_job_crc(delivery, &entry->job, entry->body_check));
	return hpx_sqlite_finish(&stmt);
}

void hpx_sqlite_job_bind(struct hpx_sqlite_statement *stmt, const struct hpx_operation_id *operation,
			 const struct hpx_mark *mark, const struct hpx_job *job)
{
	hpx_sqlite_bind_blob(stmt, operation->bytes, sizeof(operation->bytes));
	hpx_sqlite_bind_blob(stmt, mark->bytes, sizeof(mark->bytes));
	hpx_sqlite_bind_text(stmt, job->name);
	hpx_sqlite_bind_text(stmt, job->target);
	hpx_sqlite_bind_text(stmt, job->method);
	hpx_sqlite_bind_text(stmt, job->path);
	hpx_sqlite_bind_text(stmt, job->headers);
	hpx_sqlite_bind_blob(stmt, job->body.ptr, job->body.len);
}

void hpx_sqlite_outbox_rows_free(struct hpx_sqlite_outbox_rows *rows)
{
	hpx_job_entry_free(rows->entry);
	rows->entry = NULL;
}

static enum hpx_status read_job(struct hpx_sqlite_db *db, struct hpx_sqlite_statement *stmt,
				struct hpx_job_entry **ret_entry)
{
	struct hpx_job_entry *entry = NULL;
	bool there = hpx_sqlite_next(stmt);
	enum hpx_status status;

	if (there)
		entry = hpx_sqlite_delivery_read(stmt);
	status = hpx_sqlite_end(stmt);
	if (status == HPX_OK && there && entry == NULL)
		return HPX_NOMEM;
	if (status == HPX_OK && there && !entry->readable)
		status = put_unreadable(db, entry->delivery.number);
	if (status == HPX_OK)
		*ret_entry = entry;
	else
		hpx_job_entry_free(entry);
	return status;
}

static enum hpx_status find_job(struct hpx_sqlite_db *db, int64_t number,
				struct hpx_job_entry **ret_entry)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_JOB_NUMBERED);

	hpx_sqlite_bind_int(&stmt, number);
	return read_job(db, &stmt, ret_entry);
}

static enum hpx_status find_answering(struct hpx_sqlite_db *db, const struct hpx_record *record,
				      struct hpx_job_entry **ret_entry)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_JOB_ANSWERING);

	hpx_sqlite_bind_blob(&stmt, record->id.bytes, sizeof(record->id.bytes));
	hpx_sqlite_bind_blob(&stmt, record->mark.bytes, sizeof(record->mark.bytes));
	return read_job(db, &stmt, ret_entry);
}

/* Numbers that make no sense are none: the question is asked from the start. */
static bool read_reconcile(struct hpx_sqlite_statement *stmt, struct hpx_outbox_found *found)
{
	static const enum hpx_ruling rulings[] = { HPX_RULING_UNCLEAR, HPX_RULING_APPLIED,
						   HPX_RULING_DECLINED };
	int64_t tries = 0, in_a_row = 0, evidence = 0, person = 0;
	struct hpx_reconcile r = { .sent_ms = 0 };
	bool ok = hpx_sqlite_time(stmt, 0, 0, &r.sent_ms);

	ok &= hpx_sqlite_int(stmt, 1, 0, UINT32_MAX, &tries);
	ok &= hpx_sqlite_int(stmt, 2, 0, UINT32_MAX, &in_a_row);
	ok &= hpx_sqlite_time(stmt, 3, 0, &r.first_not_applied_ms);
	ok &= hpx_sqlite_time(stmt, 4, 0, &r.ask_at_ms);
	ok &= hpx_sqlite_int(stmt, 5, 0, 2, &evidence);
	ok &= hpx_sqlite_int(stmt, 6, 0, 1, &person);
	if (!ok)
		return false;
	r.tries = (uint32_t)tries;
	r.not_applied_in_a_row = (uint32_t)in_a_row;
	found->reconcile = r;
	found->evidence = rulings[evidence];
	found->person = person == 1;
	return true;
}

static enum hpx_status find_reconcile(struct hpx_sqlite_db *db, struct hpx_sqlite_outbox_rows *rows)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_RECONCILE);
	struct hpx_outbox_found *found = &rows->found;
	const struct hpx_record *record = &found->operation.record;
	bool job = found->job_exists;
	const struct hpx_operation_id *id = job ? &found->delivery.operation : &record->id;
	const struct hpx_mark *mark = job ? &found->delivery.mark : &record->mark;

	hpx_sqlite_bind_blob(&stmt, id->bytes, sizeof(id->bytes));
	hpx_sqlite_bind_int(&stmt, job ? found->delivery.number : 0);
	hpx_sqlite_bind_blob(&stmt, mark->bytes, sizeof(mark->bytes));
	if (hpx_sqlite_next(&stmt))
		found->scheduled = read_reconcile(&stmt, found);
	return hpx_sqlite_end(&stmt);
}

static void take_entry(struct hpx_sqlite_outbox_rows *rows, struct hpx_job_entry *entry)
{
	rows->entry = entry;
	rows->found.job_exists = entry != NULL;
	if (entry == NULL)
		return;
	rows->found.job_readable = entry->readable;
	rows->found.delivery = entry->delivery;
}

static void rows_init(struct hpx_sqlite_outbox_rows *rows)
{
	*rows = (struct hpx_sqlite_outbox_rows){ .found = { .evidence = HPX_RULING_UNCLEAR } };
}

enum hpx_status hpx_sqlite_outbox_rows_of_job(struct hpx_sqlite_store *s, struct hpx_job_entry *entry,
					      struct hpx_sqlite_outbox_rows *ret_rows)
{
	enum hpx_status status;

	rows_init(ret_rows);
	take_entry(ret_rows, entry);
	status = hpx_sqlite_row_find(s, &s->writer, &entry->delivery.operation, NULL, &ret_rows->row);
	ret_rows->found.operation = ret_rows->row.found;
	return status == HPX_OK ? find_reconcile(&s->writer, ret_rows) : status;
}

enum hpx_status hpx_sqlite_outbox_rows_of_operation(struct hpx_sqlite_store *s,
						    const struct hpx_sqlite_row *row,
						    const struct hpx_record *record,
						    struct hpx_sqlite_outbox_rows *ret_rows)
{
	struct hpx_job_entry *entry = NULL;
	enum hpx_status status;

	rows_init(ret_rows);
	ret_rows->row = *row;
	ret_rows->found.operation = row->found;
	status = find_answering(&s->writer, record, &entry);
	take_entry(ret_rows, entry);
	return status == HPX_OK ? find_reconcile(&s->writer, ret_rows) : status;
}

static enum hpx_status find_operation(struct hpx_sqlite_store *s, const struct hpx_operation_id *id,
				      struct hpx_sqlite_outbox_rows *rows)
{
	struct hpx_sqlite_row row;
	enum hpx_status status = hpx_sqlite_row_find(s, &s->writer, id, NULL, &row);

	if (status == HPX_OK && row.found.exists)
		status = hpx_sqlite_outbox_rows_of_operation(s, &row, &row.found.record, rows);
	if (status != HPX_OK || !rows->found.job_exists ||
	    hpx_outbox_speaks_for(&rows->found.delivery, &row.found))
		return status;
	/* The job has ended, and speaks for its operation no more. */
	hpx_sqlite_outbox_rows_free(rows);
	rows_init(rows);
	rows->row = row;
	rows->found.operation = row.found;
	return find_reconcile(&s->writer, rows);
}

enum hpx_status hpx_sqlite_outbox_rows_find(struct hpx_sqlite_store *s,
					    const struct hpx_operation_id *operation, int64_t number,
					    struct hpx_sqlite_outbox_rows *ret_rows)
{
	struct hpx_job_entry *entry = NULL;
	enum hpx_status status;

	rows_init(ret_rows);
	if (number == 0)
		return find_operation(s, operation, ret_rows);
	status = find_job(&s->writer, number, &entry);
	if (status != HPX_OK || entry == NULL)
		return status;
	return hpx_sqlite_outbox_rows_of_job(s, entry, ret_rows);
}

static void bind_rows(struct hpx_sqlite_statement *stmt, const struct hpx_sqlite_outbox_rows *rows,
		      bool of_job)
{
	const struct hpx_operation_id *id = of_job ? &rows->found.delivery.operation :
						     &rows->found.operation.record.id;

	hpx_sqlite_bind_blob(stmt, id->bytes, sizeof(id->bytes));
	hpx_sqlite_bind_int(stmt, of_job ? rows->found.delivery.number : 0);
}

enum hpx_status hpx_sqlite_reconcile_put(struct hpx_sqlite_db *db,
					 const struct hpx_sqlite_outbox_rows *rows, bool of_job,
					 const struct hpx_reconcile *reconcile,
					 enum hpx_ruling evidence, bool person)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_RECONCILE);
	const struct hpx_mark *mark = of_job ? &rows->found.delivery.mark :
					       &rows->found.operation.record.mark;

	bind_rows(&stmt, rows, of_job);
	hpx_sqlite_bind_blob(&stmt, mark->bytes, sizeof(mark->bytes));
	hpx_sqlite_bind_int(&stmt, reconcile->sent_ms);
	hpx_sqlite_bind_int(&stmt, reconcile->tries);
	hpx_sqlite_bind_int(&stmt, reconcile->not_applied_in_a_row);
	hpx_sqlite_bind_int(&stmt, reconcile->first_not_applied_ms);
	hpx_sqlite_bind_int(&stmt, reconcile->ask_at_ms);
	hpx_sqlite_bind_int(&stmt, evidence == HPX_RULING_APPLIED  ? 1 :
				   evidence == HPX_RULING_DECLINED ? 2 :
								     0);
	hpx_sqlite_bind_int(&stmt, person);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status of_rows(struct hpx_sqlite_db *db, enum hpx_sql sql,
			       const struct hpx_sqlite_outbox_rows *rows, bool of_job)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, sql);

	bind_rows(&stmt, rows, of_job);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status begin_job_question(struct hpx_sqlite_db *db, int64_t number)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_BEGIN_JOB_QUESTION);

	hpx_sqlite_bind_int(&stmt, number);
	return hpx_sqlite_finish(&stmt);
}

/* On its way, or lost: what becomes of it becomes of its operation. */
static bool is_open(enum hpx_job_state state)
{
	return state == HPX_JOB_QUEUED || state == HPX_JOB_SENDING || state == HPX_JOB_UNKNOWN;
}

/* A job that is lost is asked about; one that ends leaves the question to its
 * operation, and one that goes out again takes it back. */
static enum hpx_status move_question(struct hpx_sqlite_db *db,
				     const struct hpx_sqlite_outbox_rows *rows,
				     const struct hpx_outbox_change *change)
{
	const struct hpx_delivery *before = &rows->found.delivery;
	const struct hpx_delivery *after = &change->delivery;
	bool spoke = is_open(before->state), speaks = is_open(after->state);

	if (after->state == HPX_JOB_UNKNOWN && before->state != HPX_JOB_UNKNOWN)
		return begin_job_question(db, after->number);
	if (!after->answers || spoke == speaks || !rows->found.operation.exists ||
	    !hpx_mark_eq(&rows->found.operation.record.mark, &after->mark))
		return HPX_OK;
	return speaks ? of_rows(db, HPX_SQL_END_QUESTION, rows, false) :
			hpx_sqlite_question_begin(db, &after->operation);
}

/* An event is the operation's; which of its jobs it is about, the reason says. */
static enum hpx_status put_event(struct hpx_sqlite_db *db, const struct hpx_sqlite_outbox_rows *rows,
				 const struct hpx_outbox_change *change, int64_t at_ms,
				 const struct hpx_store_op *op)
{
	const struct hpx_record *record = &rows->found.operation.record;
	struct hpx_sqlite_event event = { .id = &record->id, .at_ms = at_ms, .attempt = record->attempt, .what = change->event, .status = change->event_status };

	HPX_ASSERT(!change->of_job || rows->entry != NULL);
	if (change->of_job) {
		event.id = &change->delivery.operation;
		event.attempt = change->delivery.attempt;
		event.reason = rows->entry->job.name;
	} else if (change->evidence != HPX_RULING_UNCLEAR) {
		event.reason = hpx_span_of(hpx_ruling_name(change->evidence));
	}
	return hpx_sqlite_event_put(db, &event, op);
}

static enum hpx_status of_number(struct hpx_sqlite_db *db, enum hpx_sql sql, int64_t number)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, sql);

	hpx_sqlite_bind_int(&stmt, number);
	return hpx_sqlite_finish(&stmt);
}

/* A flipped bit of a value damages one column. */
#define JOB_SHAPE_MIN 5

enum hpx_status hpx_sqlite_job_shaped(struct hpx_sqlite_db *db, int64_t number, bool *ret_shaped)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_JOB_SHAPE);
	int64_t shape = 0;

	hpx_sqlite_bind_int(&stmt, number);
	*ret_shaped = hpx_sqlite_next(&stmt) && hpx_sqlite_int(&stmt, 0, JOB_SHAPE_MIN, INT64_MAX, &shape);
	return hpx_sqlite_end(&stmt);
}

/* Where the damage is in a column of an index, SQLite would find the row's entry missing and
 * refuse; or would leave an entry that points at no row. The indexes are made anew first. */
static enum hpx_status remove_damaged(struct hpx_sqlite_db *db, int64_t number)
{
	enum hpx_status status = hpx_sqlite_do(db, HPX_SQL_REINDEX_JOBS);

	if (status == HPX_OK)
		status = of_number(db, HPX_SQL_REMOVE_JOB_QUESTIONS, number);
	if (status == HPX_OK)
		status = of_number(db, HPX_SQL_REMOVE_UNREADABLE, number);
	return status == HPX_OK ? of_number(db, HPX_SQL_REMOVE_JOB, number) : status;
}

/* A row of questions goes with its operation's aside row. What is said of an attempt that
 * still lies in its generation is rare enough that the operation is put aside for it. */
static enum hpx_status put_aside(struct hpx_sqlite_store *s, const struct hpx_sqlite_outbox_rows *rows,
				 int64_t at_ms, const struct hpx_store_op *op)
{
	struct hpx_change same = { .write = HPX_WRITE_UPDATE, .record = rows->found.operation.record, .at_ms = at_ms };

	return hpx_sqlite_change_write(s, &rows->row, &same, op);
}

static bool is_plain_question(const struct hpx_sqlite_outbox_rows *rows,
			      const struct hpx_outbox_change *change)
{
	return change->write_reconcile && !change->of_job && !change->write_operation &&
	       rows->found.operation.exists && rows->row.place == HPX_SQLITE_PLAIN;
}

enum hpx_status hpx_sqlite_outbox_rows_write(struct hpx_sqlite_store *s,
					     const struct hpx_sqlite_outbox_rows *rows,
					     const struct hpx_outbox_change *change, int64_t at_ms,
					     const struct hpx_store_op *op)
{
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(!change->write_job || rows->found.job_exists);
	HPX_ASSERT(!change->write_operation || rows->found.operation.exists);
	if (change->remove_job)
		return remove_damaged(&s->writer, rows->found.delivery.number);
	if (change->write_job)
		status = update(&s->writer, &change->delivery, rows->entry);
	/* By a person. Only its body could not be read, which nobody needs any more. */
	if (status == HPX_OK && change->write_job && op->verb == HPX_VERB_JOB &&
	    change->delivery.state == HPX_JOB_DISCARDED)
		status = of_number(&s->writer, HPX_SQL_REMOVE_UNREADABLE, change->delivery.number);
	if (status == HPX_OK && change->remove_reconcile)
		status = of_rows(&s->writer, HPX_SQL_REMOVE_RECONCILE, rows, change->of_job);
	if (status == HPX_OK && is_plain_question(rows, change))
		status = put_aside(s, rows, at_ms, op);
	if (status == HPX_OK && change->write_reconcile)
		status = hpx_sqlite_reconcile_put(&s->writer, rows, change->of_job, &change->reconcile,
						  change->evidence, change->person);
	if (status == HPX_OK && change->event != NULL)
		status = put_event(&s->writer, rows, change, at_ms, op);
	if (status == HPX_OK && change->write_operation)
		status = hpx_sqlite_change_write(s, &rows->row, &change->operation, op);
	if (status == HPX_OK && change->write_job)
		status = move_question(&s->writer, rows, change);
	return status;
}
