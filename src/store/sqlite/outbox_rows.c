/* What an op of the outbox is about: a job, its operation, and what was asked
 * about it; read, and written as the rules say. Always inside the batch's
 * transaction. */
#include "store/sqlite/driver.h"

void hpx_sqlite_subject_free(struct hpx_sqlite_subject *subject)
{
	hpx_job_entry_free(subject->entry);
	subject->entry = NULL;
}

static enum hpx_status read_job(struct hpx_sqlite_call *call, struct hpx_job_entry **ret_entry)
{
	struct hpx_job_entry *entry = NULL;
	bool there = hpx_sqlite_next(call);
	enum hpx_status status;

	if (there)
		entry = hpx_sqlite_delivery_read(call);
	status = hpx_sqlite_end(call);
	if (status == HPX_OK && there && entry == NULL)
		return HPX_NOMEM;
	if (status == HPX_OK)
		*ret_entry = entry;
	else
		hpx_job_entry_free(entry);
	return status;
}

static enum hpx_status find_job(struct hpx_sqlite_db *db, int64_t number,
				struct hpx_job_entry **ret_entry)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, HPX_SQL_JOB_NUMBERED);

	hpx_sqlite_bind_int(&call, number);
	return read_job(&call, ret_entry);
}

static enum hpx_status find_answering(struct hpx_sqlite_db *db, const struct hpx_record *record,
				      struct hpx_job_entry **ret_entry)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, HPX_SQL_JOB_ANSWERING);

	hpx_sqlite_bind_blob(&call, record->id.bytes, sizeof(record->id.bytes));
	hpx_sqlite_bind_blob(&call, record->mark.bytes, sizeof(record->mark.bytes));
	return read_job(&call, ret_entry);
}

/* Numbers that make no sense are none: the question is asked from the start. */
static bool read_reconcile(struct hpx_sqlite_call *call, struct hpx_outbox_found *found)
{
	static const enum hpx_ruling rulings[] = { HPX_RULING_UNCLEAR, HPX_RULING_APPLIED,
						   HPX_RULING_DECLINED };
	int64_t tries = 0, in_a_row = 0, evidence = 0, person = 0;
	struct hpx_reconcile r = { .sent_ms = 0 };
	bool ok = hpx_sqlite_time(call, 0, 0, &r.sent_ms);

	ok &= hpx_sqlite_int(call, 1, 0, UINT32_MAX, &tries);
	ok &= hpx_sqlite_int(call, 2, 0, UINT32_MAX, &in_a_row);
	ok &= hpx_sqlite_time(call, 3, 0, &r.first_not_applied_ms);
	ok &= hpx_sqlite_time(call, 4, 0, &r.ask_at_ms);
	ok &= hpx_sqlite_int(call, 5, 0, 2, &evidence);
	ok &= hpx_sqlite_int(call, 6, 0, 1, &person);
	if (!ok)
		return false;
	r.tries = (uint32_t)tries;
	r.not_applied_in_a_row = (uint32_t)in_a_row;
	found->reconcile = r;
	found->evidence = rulings[evidence];
	found->person = person == 1;
	return true;
}

static enum hpx_status find_reconcile(struct hpx_sqlite_db *db, struct hpx_sqlite_subject *subject)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, HPX_SQL_RECONCILE);
	struct hpx_outbox_found *found = &subject->found;
	const struct hpx_record *record = &found->operation.record;
	bool job = found->job_exists;
	const struct hpx_operation_id *id = job ? &found->delivery.operation : &record->id;
	const struct hpx_mark *mark = job ? &found->delivery.mark : &record->mark;

	hpx_sqlite_bind_blob(&call, id->bytes, sizeof(id->bytes));
	hpx_sqlite_bind_int(&call, job ? found->delivery.number : 0);
	hpx_sqlite_bind_blob(&call, mark->bytes, sizeof(mark->bytes));
	if (hpx_sqlite_next(&call))
		found->scheduled = read_reconcile(&call, found);
	return hpx_sqlite_end(&call);
}

static void take_entry(struct hpx_sqlite_subject *subject, struct hpx_job_entry *entry)
{
	subject->entry = entry;
	subject->found.job_exists = entry != NULL;
	if (entry == NULL)
		return;
	subject->found.job_readable = entry->readable;
	subject->found.delivery = entry->delivery;
}

static void subject_init(struct hpx_sqlite_subject *subject)
{
	*subject = (struct hpx_sqlite_subject){ .found = { .evidence = HPX_RULING_UNCLEAR } };
}

enum hpx_status hpx_sqlite_subject_of_job(struct hpx_sqlite_db *db, struct hpx_job_entry *entry,
					  struct hpx_sqlite_subject *ret_subject)
{
	enum hpx_status status;

	subject_init(ret_subject);
	take_entry(ret_subject, entry);
	status = hpx_sqlite_row_find(db, &entry->delivery.operation, &ret_subject->row);
	ret_subject->found.operation = ret_subject->row.found;
	return status == HPX_OK ? find_reconcile(db, ret_subject) : status;
}

enum hpx_status hpx_sqlite_subject_of_operation(struct hpx_sqlite_db *db,
						const struct hpx_sqlite_row *row,
						const struct hpx_record *record,
						struct hpx_sqlite_subject *ret_subject)
{
	struct hpx_job_entry *entry = NULL;
	enum hpx_status status;

	subject_init(ret_subject);
	ret_subject->row = *row;
	ret_subject->found.operation = row->found;
	status = find_answering(db, record, &entry);
	take_entry(ret_subject, entry);
	return status == HPX_OK ? find_reconcile(db, ret_subject) : status;
}

static enum hpx_status find_operation(struct hpx_sqlite_db *db, const struct hpx_operation_id *id,
				      struct hpx_sqlite_subject *subject)
{
	struct hpx_sqlite_row row;
	enum hpx_status status = hpx_sqlite_row_find(db, id, &row);

	if (status == HPX_OK && row.found.exists)
		status = hpx_sqlite_subject_of_operation(db, &row, &row.found.record, subject);
	if (status != HPX_OK || !subject->found.job_exists ||
	    hpx_outbox_speaks_for(&subject->found.delivery, &row.found))
		return status;
	/* The job has ended, and speaks for its operation no more. */
	hpx_sqlite_subject_free(subject);
	subject_init(subject);
	subject->row = row;
	subject->found.operation = row.found;
	return find_reconcile(db, subject);
}

enum hpx_status hpx_sqlite_subject_find(struct hpx_sqlite_db *db,
					const struct hpx_operation_id *operation, int64_t number,
					struct hpx_sqlite_subject *ret_subject)
{
	struct hpx_job_entry *entry = NULL;
	enum hpx_status status;

	subject_init(ret_subject);
	if (number == 0)
		return find_operation(db, operation, ret_subject);
	status = find_job(db, number, &entry);
	if (status != HPX_OK || entry == NULL)
		return status;
	return hpx_sqlite_subject_of_job(db, entry, ret_subject);
}

static void bind_subject(struct hpx_sqlite_call *call, const struct hpx_sqlite_subject *subject,
			 bool of_job)
{
	const struct hpx_operation_id *id = of_job ? &subject->found.delivery.operation :
						     &subject->found.operation.record.id;

	hpx_sqlite_bind_blob(call, id->bytes, sizeof(id->bytes));
	hpx_sqlite_bind_int(call, of_job ? subject->found.delivery.number : 0);
}

enum hpx_status hpx_sqlite_reconcile_put(struct hpx_sqlite_db *db,
					 const struct hpx_sqlite_subject *subject, bool of_job,
					 const struct hpx_reconcile *reconcile,
					 enum hpx_ruling evidence, bool person)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, HPX_SQL_PUT_RECONCILE);
	const struct hpx_mark *mark = of_job ? &subject->found.delivery.mark :
					       &subject->found.operation.record.mark;

	bind_subject(&call, subject, of_job);
	hpx_sqlite_bind_blob(&call, mark->bytes, sizeof(mark->bytes));
	hpx_sqlite_bind_int(&call, reconcile->sent_ms);
	hpx_sqlite_bind_int(&call, reconcile->tries);
	hpx_sqlite_bind_int(&call, reconcile->not_applied_in_a_row);
	hpx_sqlite_bind_int(&call, reconcile->first_not_applied_ms);
	hpx_sqlite_bind_int(&call, reconcile->ask_at_ms);
	hpx_sqlite_bind_int(&call, evidence == HPX_RULING_APPLIED  ? 1 :
				   evidence == HPX_RULING_DECLINED ? 2 :
								     0);
	hpx_sqlite_bind_int(&call, person);
	return hpx_sqlite_finish(&call);
}

static enum hpx_status of_subject(struct hpx_sqlite_db *db, enum hpx_sql sql,
				  const struct hpx_sqlite_subject *subject, bool of_job)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, sql);

	bind_subject(&call, subject, of_job);
	return hpx_sqlite_finish(&call);
}

static enum hpx_status begin_job_question(struct hpx_sqlite_db *db, int64_t number)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, HPX_SQL_BEGIN_JOB_QUESTION);

	hpx_sqlite_bind_int(&call, number);
	return hpx_sqlite_finish(&call);
}

/* On its way, or lost: what becomes of it becomes of its operation. */
static bool is_open(enum hpx_job_state state)
{
	return state == HPX_JOB_QUEUED || state == HPX_JOB_SENDING || state == HPX_JOB_UNKNOWN;
}

/* A job that is lost is asked about; one that ends leaves the question to its
 * operation, and one that goes out again takes it back. */
static enum hpx_status move_question(struct hpx_sqlite_db *db,
				     const struct hpx_sqlite_subject *subject,
				     const struct hpx_outbox_change *change)
{
	const struct hpx_delivery *before = &subject->found.delivery;
	const struct hpx_delivery *after = &change->delivery;
	bool spoke = is_open(before->state), speaks = is_open(after->state);

	if (after->state == HPX_JOB_UNKNOWN && before->state != HPX_JOB_UNKNOWN)
		return begin_job_question(db, after->number);
	if (!after->answers || spoke == speaks || !subject->found.operation.exists ||
	    !hpx_mark_eq(&subject->found.operation.record.mark, &after->mark))
		return HPX_OK;
	return speaks ? of_subject(db, HPX_SQL_END_QUESTION, subject, false) :
			hpx_sqlite_question_begin(db, &after->operation);
}

/* An event is the operation's; which of its jobs it is about, the reason says. */
static enum hpx_status put_event(struct hpx_sqlite_db *db, const struct hpx_sqlite_subject *subject,
				 const struct hpx_outbox_change *change, int64_t at_ms,
				 const struct hpx_store_op *op)
{
	const struct hpx_record *record = &subject->found.operation.record;
	struct hpx_sqlite_event event = { .id = &record->id, .at_ms = at_ms, .attempt = record->attempt, .what = change->event, .status = change->event_status };

	if (change->of_job) {
		event.id = &change->delivery.operation;
		event.attempt = change->delivery.attempt;
		event.reason = subject->entry->job.name;
	} else if (change->evidence != HPX_RULING_UNCLEAR) {
		event.reason = hpx_span_of(hpx_ruling_name(change->evidence));
	}
	return hpx_sqlite_event_put(db, &event, op);
}

enum hpx_status hpx_sqlite_subject_write(struct hpx_sqlite_db *db,
					 const struct hpx_sqlite_subject *subject,
					 const struct hpx_outbox_change *change, int64_t at_ms,
					 const struct hpx_store_op *op)
{
	enum hpx_status status = HPX_OK;

	if (change->write_job)
		status = hpx_sqlite_delivery_update(db, &change->delivery);
	if (status == HPX_OK && change->remove_reconcile)
		status = of_subject(db, HPX_SQL_REMOVE_RECONCILE, subject, change->of_job);
	if (status == HPX_OK && change->write_reconcile)
		status = hpx_sqlite_reconcile_put(db, subject, change->of_job, &change->reconcile,
						  change->evidence, change->person);
	if (status == HPX_OK && change->event != NULL)
		status = put_event(db, subject, change, at_ms, op);
	if (status == HPX_OK && change->write_operation)
		status = hpx_sqlite_change_write(db, &subject->row, &change->operation, op);
	if (status == HPX_OK && change->write_job)
		status = move_question(db, subject, change);
	return status;
}
