/* The verbs about jobs that are due, one job, and one unknown: found, judged by
 * store/outbox, written. Always inside the batch's transaction. What only lacks
 * memory is the op's own trouble, as long as nothing of it was written. */
#include "store/sqlite/driver.h"

/* Whatever the submitter asks for: one op must not hold the writer for long. */
#define CLAIM_MAX 1000
/* Descriptions of one operation: a path and a handful of names. */
#define LANE_BYTES_MAX ((size_t)1 << 20)

static enum hpx_status own_trouble(enum hpx_status status, struct hpx_store_op *op)
{
	if (status != HPX_NOMEM)
		return status;
	op->status = HPX_NOMEM;
	return HPX_OK;
}

/* ---- CLAIM ---- */

/* A commit that was reported as failed may have taken them. */
static enum hpx_status recognise(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_JOBS_CLAIMED);
	struct hpx_job_entry **tail = &op->claim.jobs;
	unsigned room = CLAIM_MAX;
	enum hpx_status status;

	hpx_sqlite_bind_int(&stmt, hpx_store_moment(&s->base).lease_ms);
	hpx_sqlite_bind_blob(&stmt, op->token.bytes, sizeof(op->token.bytes));
	status = hpx_sqlite_deliveries(&s->writer, &stmt, &room, &tail);
	op->claim.count = CLAIM_MAX - room;
	return status;
}

/* Due jobs of one target between two times, oldest first. */
static enum hpx_status collect_due(struct hpx_sqlite_db *db, struct hpx_span target,
				   int64_t from_ms, int64_t until_ms, unsigned *room,
				   struct hpx_job_entry ***tail)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_JOBS_DUE);

	hpx_sqlite_bind_text(&stmt, target);
	hpx_sqlite_bind_int(&stmt, from_ms);
	hpx_sqlite_bind_int(&stmt, until_ms);
	return hpx_sqlite_deliveries(db, &stmt, room, tail);
}

/* The rule of hpx_job_due, by the index: what is due, and what lies so far
 * ahead that the clock was set back. */
static enum hpx_status collect_jobs(struct hpx_sqlite_db *db, const struct hpx_claim *claim,
				    int64_t wall_ms, struct hpx_job_entry **ret_jobs)
{
	struct hpx_job_entry **tail = ret_jobs;
	unsigned room = claim->room < CLAIM_MAX ? claim->room : CLAIM_MAX;
	enum hpx_status status = collect_due(db, claim->target, 0, wall_ms, &room, &tail);

	if (status == HPX_OK)
		status = collect_due(db, claim->target, wall_ms + HPX_JOB_AHEAD_MAX_MS + 1,
				     INT64_MAX, &room, &tail);
	return status;
}

/* Gives the entry back where it is to be sent now. */
static enum hpx_status claim_job(struct hpx_sqlite_store *s, const struct hpx_claim *claim,
				 struct hpx_job_entry *entry, const struct hpx_moment *now,
				 struct hpx_store_op *op)
{
	struct hpx_outbox_change change;
	struct hpx_sqlite_outbox_rows rows;
	struct hpx_token token = op->token;
	enum hpx_status status = hpx_sqlite_outbox_rows_of_job(s, entry, &rows);

	if (hpx_token_is_void(&token))
		hpx_token_make(&token);
	if (status == HPX_OK && hpx_outbox_claim(&rows.found, claim, &token, s->base.owner, now,
						 &change)) {
		status = hpx_sqlite_outbox_rows_write(s, &rows, &change, now->wall_ms, op);
		entry->delivery = change.delivery;
	}
	if (status == HPX_OK && entry->delivery.state == HPX_JOB_SENDING) {
		struct hpx_job_entry **at = &op->claim.jobs;
		while (*at != NULL)
			at = &(*at)->next;
		*at = entry;
		op->claim.count++;
		rows.entry = NULL;
	}
	hpx_sqlite_outbox_rows_free(&rows);
	return status;
}

static enum hpx_status claim_target(struct hpx_sqlite_store *s, const struct hpx_claim *claim,
				    struct hpx_store_op *op)
{
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct hpx_job_entry *jobs = NULL;
	enum hpx_status status = own_trouble(collect_jobs(&s->writer, claim, now.wall_ms, &jobs),
					     op);

	while (status == HPX_OK && op->status == HPX_OK && jobs != NULL) {
		struct hpx_job_entry *entry = jobs;
		HPX_ASSERT(entry->readable);
		jobs = entry->next;
		entry->next = NULL;
		status = claim_job(s, claim, entry, &now, op);
	}
	hpx_job_entry_free(jobs);
	return status;
}

enum hpx_status hpx_sqlite_claim(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(op->verb == HPX_VERB_CLAIM);
	if (!hpx_token_is_void(&op->token))
		status = own_trouble(recognise(s, op), op);
	if (op->claim.jobs != NULL) {
		op->status = HPX_OK;
		return status;
	}
	for (size_t i = 0; i < op->claim.claim_count && status == HPX_OK && op->status == HPX_OK; i++)
		status = claim_target(s, &op->claim.claims[i], op);
	/* What an earlier target gave is claimed, and is to be sent. */
	if (op->claim.jobs != NULL)
		op->status = HPX_OK;
	return status;
}

/* ---- JOB, RULE ---- */

static void show_after(const struct hpx_sqlite_outbox_rows *rows,
		       const struct hpx_outbox_change *change, struct hpx_store_op *op)
{
	op->decision.record = change->write_operation ? change->operation.record :
							rows->found.operation.record;
}

enum hpx_status hpx_sqlite_job_update(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct hpx_outbox_change change;
	struct hpx_sqlite_outbox_rows rows;
	bool shaped = true;
	enum hpx_status status;

	HPX_ASSERT(op->verb == HPX_VERB_JOB);
	if (op->job.update == NULL || op->job.update->number <= 0) {
		op->status = HPX_MISUSE;
		return HPX_OK;
	}
	status = own_trouble(hpx_sqlite_outbox_rows_find(s, NULL, op->job.update->number, &rows),
			     op);
	if (status == HPX_OK && op->status == HPX_OK) {
		hpx_outbox_update(&rows.found, op, &now, &change);
		if (op->status == HPX_OK && change.remove_job)
			status = hpx_sqlite_job_shaped(&s->writer, op->job.update->number, &shaped);
		if (status == HPX_OK && !shaped)
			op->status = HPX_INVALID;
		if (status == HPX_OK && op->status == HPX_OK)
			status = hpx_sqlite_outbox_rows_write(s, &rows, &change,
							      now.wall_ms, op);
		if (op->status == HPX_OK && !change.remove_job) {
			rows.entry->delivery = change.delivery;
			op->job.after = rows.entry;
			rows.entry = NULL;
			show_after(&rows, &change, op);
		}
	}
	hpx_sqlite_outbox_rows_free(&rows);
	return status;
}

enum hpx_status hpx_sqlite_put_lane(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	const struct hpx_lane_settings *lane = op->lane.settings;
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_PUT_LANE);

	HPX_ASSERT(op->verb == HPX_VERB_LANE);
	hpx_sqlite_bind_text(&stmt, lane->name);
	hpx_sqlite_bind_int(&stmt, lane->settle_after_ms);
	hpx_sqlite_bind_int(&stmt, lane->confirm_after_ms);
	hpx_sqlite_bind_int(&stmt, lane->matched_by_key ? hpx_store_moment(&s->base).wall_ms + HPX_KEYED_LATER_MS : 0);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status read_lane(struct hpx_sqlite_db *db, struct hpx_span name,
				 struct hpx_reconcile_rule *rule)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_LANE);

	*rule = (struct hpx_reconcile_rule){ .settle_after_ms = 0 };
	hpx_sqlite_bind_text(&stmt, name);
	if (hpx_sqlite_next(&stmt) &&
	    hpx_sqlite_time(&stmt, 0, 0, &rule->settle_after_ms) &&
	    !hpx_sqlite_time(&stmt, 1, 0, &rule->confirm_after_ms))
		rule->settle_after_ms = 0;
	return hpx_sqlite_end(&stmt);
}

/* The rule of the lane that the operation, or the job that answers for it, waits in. */
static enum hpx_status find_rule(struct hpx_sqlite_store *s, const struct hpx_sqlite_outbox_rows *rows,
				 struct hpx_reconcile_rule *ret_rule)
{
	struct hpx_description description = { .route = HPX_SPAN_INIT("") };
	struct hpx_sqlite_want want = { .description = &description };
	struct hpx_span lane = HPX_SPAN("");
	struct hpx_sqlite_row row;
	struct hpx_arena arena;
	enum hpx_status status = HPX_OK;

	hpx_arena_init(&arena, LANE_BYTES_MAX);
	want.arena = &arena;
	if (rows->found.job_exists)
		lane = hpx_arena_printf(&arena, HPX_LANE_TARGET "%.*s", HPX_SPAN_ARG(rows->entry->job.target));
	if (!rows->found.job_exists && rows->found.operation.exists) {
		status = hpx_sqlite_row_find(s, &s->writer, &rows->found.operation.record.id, &want, &row);
		lane = description.route;
	}
	if (status == HPX_OK && lane.ptr == NULL)
		status = HPX_NOMEM;
	if (status == HPX_OK)
		status = read_lane(&s->writer, lane, ret_rule);
	hpx_arena_done(&arena);
	return status;
}

enum hpx_status hpx_sqlite_rule(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct hpx_outbox_change change;
	struct hpx_sqlite_outbox_rows rows;
	enum hpx_status status;

	HPX_ASSERT(op->verb == HPX_VERB_RULE);
	if (op->rule.update == NULL) {
		op->status = HPX_MISUSE;
		return HPX_OK;
	}
	status = own_trouble(hpx_sqlite_outbox_rows_find(s, &op->id, op->rule.update->number,
							 &rows),
			     op);
	if (status == HPX_OK && op->status == HPX_OK && op->rule.update->stored_rule)
		status = own_trouble(find_rule(s, &rows, &op->rule.update->rule), op);
	if (status == HPX_OK && op->status == HPX_OK) {
		hpx_outbox_rule(&rows.found, op, &now, &change);
		if (op->status == HPX_OK)
			status = hpx_sqlite_outbox_rows_write(s, &rows, &change,
							      now.wall_ms, op);
		if (op->status == HPX_OK)
			show_after(&rows, &change, op);
	}
	hpx_sqlite_outbox_rows_free(&rows);
	return status;
}

/* ---- the job follows a person's word about its operation ---- */

static bool takes_job_along(const struct hpx_sqlite_row *row, const struct hpx_store_op *op)
{
	enum hpx_state state = row->found.record.state;

	return hpx_verb_has(op->verb, HPX_TRAIT_REMOVES) &&
	       (state == HPX_STATE_PENDING || state == HPX_STATE_UNKNOWN || !row->found.readable);
}

enum hpx_status hpx_sqlite_conclude(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
				    const struct hpx_change *change, const struct hpx_moment *now,
				    struct hpx_store_op *op)
{
	struct hpx_outbox_change job_change;
	struct hpx_sqlite_outbox_rows rows;
	enum hpx_status status;

	if (change->write == HPX_WRITE_NOTHING || !takes_job_along(row, op))
		return HPX_OK;
	status = own_trouble(hpx_sqlite_outbox_rows_of_operation(s, row, &change->record,
								 &rows),
			     op);
	if (status == HPX_OK && op->status == HPX_OK)
		op->status = hpx_outbox_conclude(&rows.found, change->record.state, now,
						 &job_change);
	if (status == HPX_OK && op->status == HPX_OK)
		status = hpx_sqlite_outbox_rows_write(s, &rows, &job_change, now->wall_ms,
						      op);
	hpx_sqlite_outbox_rows_free(&rows);
	return status;
}

/* ---- what an application leaves ---- */

/* What belongs to an operation besides its row: the jobs and the recovery point's data
 * that an application leaves, and the job of an operation that is delivered later.
 * Always inside the batch's transaction. */

static enum hpx_status compare(struct hpx_sqlite_db *db, const struct hpx_record *record,
			       const struct hpx_job *job, bool *ret_same)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_SAME_JOB);
	enum hpx_status status;
	bool same;

	hpx_sqlite_job_bind(&stmt, &record->id, &record->mark, job);
	same = hpx_sqlite_next(&stmt);
	status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK)
		*ret_same = same;
	return status;
}

static enum hpx_status find_named(struct hpx_sqlite_db *db, const struct hpx_record *record,
				  struct hpx_span name, struct hpx_job_entry **ret_entry)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_JOB_NAMED);
	struct hpx_job_entry *entry = NULL;
	enum hpx_status status;

	hpx_sqlite_bind_blob(&stmt, record->id.bytes, sizeof(record->id.bytes));
	hpx_sqlite_bind_blob(&stmt, record->mark.bytes, sizeof(record->mark.bytes));
	hpx_sqlite_bind_text(&stmt, name);
	if (hpx_sqlite_next(&stmt))
		entry = hpx_sqlite_delivery_read(&stmt);
	status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK && entry == NULL)
		status = HPX_NOMEM;
	if (status == HPX_OK)
		*ret_entry = entry;
	else
		hpx_job_entry_free(entry);
	return status;
}

/* The check of the row is written by the move that follows. */
static enum hpx_status replace(struct hpx_sqlite_db *db, const struct hpx_record *record,
			       const struct hpx_job *job, struct hpx_sqlite_outbox_rows *rows)
{
	struct hpx_sqlite_statement stmt;
	struct hpx_job_entry *entry = hpx_job_entry_new(&rows->entry->delivery, job);

	if (entry == NULL)
		return HPX_NOMEM;
	entry->body_check = hpx_sqlite_job_body_crc(&record->id, job);
	hpx_job_entry_free(rows->entry);
	rows->entry = entry;
	stmt = hpx_sqlite_statement(db, HPX_SQL_REPLACE_JOB);
	hpx_sqlite_job_bind(&stmt, &record->id, &record->mark, job);
	hpx_sqlite_bind_int(&stmt, entry->body_check);
	return hpx_sqlite_finish(&stmt);
}

/* Executed again: the job is there from the attempt before, and has another
 * attempt's request to deliver. */
static enum hpx_status requeue(struct hpx_sqlite_store *s, const struct hpx_change *change,
			       const struct hpx_moment *now, struct hpx_store_op *op)
{
	struct hpx_outbox_change job_change = { .write_job = false };
	struct hpx_sqlite_outbox_rows rows = { .entry = NULL };
	struct hpx_job_entry *entry = NULL;
	enum hpx_status status = find_named(&s->writer, &change->record, change->job->name, &entry);

	if (status == HPX_OK)
		status = hpx_sqlite_outbox_rows_of_job(s, entry, &rows);
	if (status == HPX_OK)
		op->status = rows.found.delivery.answers ?
				     hpx_outbox_requeue(&rows.found, now, &job_change) :
				     HPX_CONFLICT;
	if (status == HPX_OK && op->status == HPX_OK && job_change.write_job)
		status = replace(&s->writer, &change->record, change->job, &rows);
	if (status == HPX_OK && op->status == HPX_OK)
		status = hpx_sqlite_outbox_rows_write(s, &rows, &job_change, now->wall_ms, op);
	hpx_sqlite_outbox_rows_free(&rows);
	return status;
}

static enum hpx_status next_number(struct hpx_sqlite_db *db, int64_t *ret_number)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_NEXT_JOB);
	bool ok = hpx_sqlite_next(&stmt) && hpx_sqlite_int(&stmt, 0, 1, INT64_MAX, ret_number);
	enum hpx_status status = hpx_sqlite_end(&stmt);

	return status == HPX_OK && !ok ? HPX_CORRUPT : status;
}

static enum hpx_status insert(struct hpx_sqlite_db *db, const struct hpx_change *change,
			      bool answers, bool *ret_new)
{
	struct hpx_sqlite_statement stmt;
	const struct hpx_job *job = change->job;
	struct hpx_delivery delivery = {
		.operation = change->record.id,
		.mark = change->record.mark,
		.state = HPX_JOB_QUEUED,
		.answers = answers,
		.created_ms = change->at_ms,
		.changed_ms = change->at_ms,
		.due_ms = change->at_ms,
	};
	uint32_t body_crc = hpx_sqlite_job_body_crc(&delivery.operation, job);
	enum hpx_status status = next_number(db, &delivery.number);

	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_statement(db, HPX_SQL_PUT_JOB);
	hpx_sqlite_job_bind(&stmt, &delivery.operation, &delivery.mark, job);
	hpx_sqlite_bind_int(&stmt, body_crc);
	hpx_sqlite_bind_int(&stmt, hpx_sqlite_job_crc(&delivery, job, body_crc));
	hpx_sqlite_bind_int(&stmt, change->at_ms);
	hpx_sqlite_bind_int(&stmt, answers);
	hpx_sqlite_bind_int(&stmt, delivery.number);
	status = hpx_sqlite_finish(&stmt);
	if (status == HPX_OK)
		*ret_new = sqlite3_changes64(db->handle) != 0;
	return status;
}

enum hpx_status hpx_sqlite_job_put(struct hpx_sqlite_store *s, const struct hpx_change *change,
				   const struct hpx_moment *now, struct hpx_store_op *op)
{
	bool answers = op->verb == HPX_VERB_RESERVE;
	bool new_one = true, same = true;
	enum hpx_status status;

	if (change->job == NULL)
		return HPX_OK;
	HPX_ASSERT(change->job == hpx_op_job(op));
	status = insert(&s->writer, change, answers, &new_one);
	if (status != HPX_OK || new_one)
		return status;
	if (answers)
		return requeue(s, change, now, op);
	status = compare(&s->writer, &change->record, change->job, &same);
	if (status == HPX_OK && !same)
		op->status = HPX_CONFLICT;
	return status;
}

/* Only an aside row has a recovery point. */
enum hpx_status hpx_sqlite_read_point(struct hpx_sqlite_db *db, const struct hpx_sqlite_row *row,
				      struct hpx_store_op *op)
{
	struct hpx_sqlite_statement stmt;
	enum hpx_status kept = HPX_OK, status;

	HPX_ASSERT(op->verb == HPX_VERB_READ_POINT);
	hpx_buffer_init(&op->read_point.data, HPX_POINT_DATA_MAX);
	if (row->place != HPX_SQLITE_ASIDE)
		return HPX_OK;
	stmt = hpx_sqlite_statement(db, HPX_SQL_POINT_DATA);
	hpx_sqlite_bind_int(&stmt, row->aside);
	if (hpx_sqlite_next(&stmt)) {
		struct hpx_span data = hpx_sqlite_bytes(&stmt, 0);
		uint32_t crc = data.ptr == NULL ? 0 :
						  hpx_sqlite_bytes_crc(&row->found.record.id, data, HPX_SPAN(""));
		kept = crc == row->point_crc ? hpx_buffer_append(&op->read_point.data, data) : HPX_CORRUPT;
	}
	status = hpx_sqlite_end(&stmt);
	if (kept != HPX_OK)
		op->status = kept;
	return status;
}
