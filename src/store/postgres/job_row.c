/* Between columns and jobs: what is read, and what a batch writes of the outbox: accepted
 * jobs beside their operations, deliveries that moved, and what is known of questions. As
 * with operations, a row is hostile until it is found to make a delivery; one that does
 * not counts as unknown. */
#include "base/span.h"
#include "store/postgres/outbox.h"

/* The columns of HPX_PG_SQL_JOB, in order, and the body. */
enum {
	COLUMN_NUMBER,
	COLUMN_OPERATION,
	COLUMN_REST,
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
	COLUMN_HEADERS,
	COLUMN_BODY,
	COLUMN_COUNT
};
_Static_assert(COLUMN_COUNT == HPX_PG_JOB_QUESTION_COLUMN, "columns follow each other");

/* As for records: sums of two times never overflow. */
#define TIME_MAX (INT64_MAX / 4)

static bool read_names(const PGresult *result, int row, struct hpx_delivery *d)
{
	bool ok = hpx_pg_int(result, row, COLUMN_NUMBER, 1, INT64_MAX, &d->number);

	ok &= hpx_pg_fixed(result, row, COLUMN_OPERATION, d->operation.bytes, HPX_PG_HALF);
	ok &= hpx_pg_fixed(result, row, COLUMN_REST, d->operation.bytes + HPX_PG_HALF, HPX_PG_HALF);
	ok &= hpx_pg_fixed(result, row, COLUMN_MARK, d->mark.bytes, sizeof(d->mark.bytes));
	ok &= hpx_pg_fixed(result, row, COLUMN_TOKEN, d->token.bytes, sizeof(d->token.bytes));
	return ok;
}

static bool read_count(const PGresult *result, int row, int column, uint32_t max,
		       uint32_t *ret_count)
{
	int64_t value = 0;
	bool ok = hpx_pg_int(result, row, column, 0, max, &value);

	*ret_count = (uint32_t)value;
	return ok;
}

static bool read_mark(const PGresult *result, int row, int column, bool *ret_mark)
{
	uint32_t value = 0;
	bool ok = read_count(result, row, column, 1, &value);

	*ret_mark = value == 1;
	return ok;
}

static bool read_small(const PGresult *result, int row, struct hpx_delivery *d)
{
	struct hpx_span provider_id = hpx_pg_bytes(result, row, COLUMN_PROVIDER_ID);
	int64_t state = 0;
	bool ok = hpx_pg_int(result, row, COLUMN_STATE, HPX_JOB_QUEUED, HPX_JOB_STATE_COUNT - 1,
			     &state);

	d->state = ok ? (enum hpx_job_state)state : HPX_JOB_UNKNOWN;
	ok &= read_mark(result, row, COLUMN_ANSWERS, &d->answers);
	ok &= read_mark(result, row, COLUMN_UNSURE, &d->unsure);
	ok &= read_count(result, row, COLUMN_ATTEMPT, UINT32_MAX, &d->attempt);
	ok &= read_count(result, row, COLUMN_BUDGET, UINT32_MAX, &d->budget);
	ok &= read_count(result, row, COLUMN_STATUS, 999, &d->status);
	if (provider_id.ptr == NULL || provider_id.len >= sizeof(d->provider_id))
		return false;
	memcpy(d->provider_id, provider_id.ptr, provider_id.len);
	return ok;
}

static bool read_times(const PGresult *result, int row, struct hpx_delivery *d)
{
	int64_t owner = 0;
	bool ok = hpx_pg_int(result, row, COLUMN_OWNER, INT64_MIN, INT64_MAX, &owner);

	d->owner = (uint64_t)owner;
	ok &= hpx_pg_int(result, row, COLUMN_CREATED, 0, TIME_MAX, &d->created_ms);
	ok &= hpx_pg_int(result, row, COLUMN_CHANGED, 0, TIME_MAX, &d->changed_ms);
	ok &= hpx_pg_int(result, row, COLUMN_DUE, 0, TIME_MAX, &d->due_ms);
	ok &= hpx_pg_int(result, row, COLUMN_LEASE_UNTIL, -TIME_MAX, TIME_MAX,
			 &d->lease_until_ms);
	ok &= hpx_pg_int(result, row, COLUMN_FIRST_SENT, 0, TIME_MAX, &d->first_sent_ms);
	ok &= hpx_pg_int(result, row, COLUMN_RESEND_UNTIL, 0, TIME_MAX, &d->resend_until_ms);
	return ok;
}

struct hpx_job_entry *hpx_pg_job_read(const PGresult *result, int row)
{
	struct hpx_delivery d = { .number = 0 };
	struct hpx_job job = {
		.name = hpx_pg_bytes(result, row, COLUMN_NAME),
		.target = hpx_pg_bytes(result, row, COLUMN_TARGET),
		.method = hpx_pg_bytes(result, row, COLUMN_METHOD),
		.path = hpx_pg_bytes(result, row, COLUMN_PATH),
		.headers = hpx_pg_bytes(result, row, COLUMN_HEADERS),
		.body = hpx_pg_bytes(result, row, COLUMN_BODY),
	};
	struct hpx_job_entry *entry;
	bool ok = read_names(result, row, &d);

	ok &= read_small(result, row, &d);
	ok &= read_times(result, row, &d);
	entry = hpx_job_entry_new(&d, &job);
	if (entry != NULL)
		entry->readable = ok && hpx_job_valid(&d) && hpx_job_fault(&job) == NULL;
	return entry;
}

/* ---- questions ---- */

/* The columns of HPX_PG_SQL_QUESTION, in order. */
enum { ASKED_MARK,
       ASKED_SENT,
       ASKED_TRIES,
       ASKED_IN_A_ROW,
       ASKED_FIRST_SAID,
       ASKED_AT,
       ASKED_EVIDENCE,
       ASKED_PERSON };

/* X(ruling, number in the store). The numbers are for ever. */
#define EVIDENCE_LIST(X) \
	X(UNCLEAR, 0) \
	X(APPLIED, 1) \
	X(DECLINED, 2)

static enum hpx_ruling evidence_of(int64_t number)
{
	switch (number) {
#define X(name, value) \
	case value: \
		return HPX_RULING_##name;
		EVIDENCE_LIST(X)
#undef X
	default:
		return HPX_RULING_UNCLEAR;
	}
}

int64_t hpx_pg_evidence_number(enum hpx_ruling ruling)
{
	switch (ruling) {
#define X(name, value) \
	case HPX_RULING_##name: \
		return value;
		EVIDENCE_LIST(X)
#undef X
	default:
		return 0;
	}
}

void hpx_pg_question_read(const PGresult *result, int row, int column,
			  const struct hpx_mark *mark, struct hpx_outbox_found *found)
{
	struct hpx_reconcile asked = { .tries = 0 };
	struct hpx_mark whose;
	int64_t evidence = 0;
	bool person = false;

	if (!hpx_pg_fixed(result, row, column + ASKED_MARK, whose.bytes, sizeof(whose.bytes)) ||
	    !hpx_mark_eq(&whose, mark) ||
	    !hpx_pg_int(result, row, column + ASKED_SENT, 0, TIME_MAX, &asked.sent_ms) ||
	    !read_count(result, row, column + ASKED_TRIES, UINT32_MAX, &asked.tries) ||
	    !read_count(result, row, column + ASKED_IN_A_ROW, UINT32_MAX,
			&asked.not_applied_in_a_row) ||
	    !hpx_pg_int(result, row, column + ASKED_FIRST_SAID, 0, TIME_MAX,
			&asked.first_not_applied_ms) ||
	    !hpx_pg_int(result, row, column + ASKED_AT, 0, TIME_MAX, &asked.ask_at_ms) ||
	    !hpx_pg_int(result, row, column + ASKED_EVIDENCE, 0, 2, &evidence) ||
	    !read_mark(result, row, column + ASKED_PERSON, &person))
		return;
	found->scheduled = true;
	found->reconcile = asked;
	found->evidence = evidence_of(evidence);
	found->person = person;
}

/* ---- accepted with their operations ---- */

static const enum hpx_pg_type accepted_types[] = {
	HPX_PG_UUID,
	HPX_PG_UUID,
	HPX_PG_TEXT,
	HPX_PG_TEXT,
	HPX_PG_TEXT,
	HPX_PG_TEXT,
	HPX_PG_TEXT,
	HPX_PG_BYTEA,
	HPX_PG_INT8,
};
#define ACCEPTED_COLUMNS 9

static bool is_text(struct hpx_span bytes)
{
	return bytes.len == 0 ||
	       (hpx_utf8_valid(bytes) && memchr(bytes.ptr, '\0', bytes.len) == NULL);
}

/* The columns are text; what is sent to a target is never changed on the way. */
bool hpx_pg_job_is_text(const struct hpx_job *job)
{
	return is_text(job->name) && is_text(job->target) && is_text(job->headers);
}

static void put_accepted(struct hpx_pg_columns *columns, const struct hpx_pg_row *row)
{
	const struct hpx_job *job = row->job;

	hpx_pg_put_id(columns, &row->id);
	hpx_pg_put_mark(columns, &row->found.record.mark);
	hpx_pg_put_text(columns, job->name);
	hpx_pg_put_text(columns, job->target);
	hpx_pg_put_text(columns, job->method);
	hpx_pg_put_text(columns, job->path);
	hpx_pg_put_text(columns, job->headers);
	hpx_pg_put_bytes(columns, job->body);
	hpx_pg_put_int(columns, row->found.record.changed_ms);
}

static void send_accepted(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, accepted_types, ACCEPTED_COLUMNS);
	for (size_t i = 0; i < batch->row_count; i++) {
		const struct hpx_pg_row *row = &batch->rows[i];
		if (row->job == NULL || !row->found.exists)
			continue;
		put_accepted(&columns, row);
		if (hpx_pg_columns_bytes(&columns) < HPX_PG_BYTES_AT_ONCE)
			continue;
		hpx_pg_send_columns(pipe, HPX_PG_PUT_JOBS, &columns, NULL);
		hpx_pg_flush(pipe);
		hpx_pg_columns_init(&columns, accepted_types, ACCEPTED_COLUMNS);
	}
	hpx_pg_send_columns(pipe, HPX_PG_PUT_JOBS, &columns, NULL);
}

/* ---- deliveries that moved ---- */

static const enum hpx_pg_type delivery_types[] = {
	HPX_PG_INT8,
	HPX_PG_INT2,
	HPX_PG_BOOL,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT4,
	HPX_PG_UUID,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_TEXT,
};
#define DELIVERY_COLUMNS 14

static void put_delivery(struct hpx_pg_columns *columns, const struct hpx_delivery *d)
{
	hpx_pg_put_int(columns, d->number);
	hpx_pg_put_int(columns, d->state);
	hpx_pg_put_int(columns, d->unsure);
	hpx_pg_put_int(columns, d->attempt);
	hpx_pg_put_int(columns, d->budget);
	hpx_pg_put_int(columns, d->status);
	hpx_pg_put_token(columns, &d->token);
	hpx_pg_put_int(columns, (int64_t)d->owner);
	hpx_pg_put_int(columns, d->changed_ms);
	hpx_pg_put_int(columns, d->due_ms);
	hpx_pg_put_int(columns, d->lease_until_ms);
	hpx_pg_put_int(columns, d->first_sent_ms);
	hpx_pg_put_int(columns, d->resend_until_ms);
	hpx_pg_put_text(columns, hpx_span_of(d->provider_id));
}

static void send_deliveries(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, delivery_types, DELIVERY_COLUMNS);
	for (size_t i = 0; i < batch->item_count; i++)
		if (batch->item[i].changed && batch->item[i].change.write_job)
			put_delivery(&columns, &batch->item[i].change.delivery);
	hpx_pg_send_columns(pipe, HPX_PG_UPDATE_JOBS, &columns, NULL);
}

static void send_removed(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	static const enum hpx_pg_type number_type = HPX_PG_INT8;
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, &number_type, 1);
	for (size_t i = 0; i < batch->item_count; i++)
		if (batch->item[i].changed && batch->item[i].change.remove_job)
			hpx_pg_put_int(&columns, batch->item[i].number);
	hpx_pg_send_columns(pipe, HPX_PG_REMOVE_JOBS, &columns, NULL);
}

/* ---- questions ---- */

static const enum hpx_pg_type question_types[] = {
	HPX_PG_UUID,
	HPX_PG_UUID,
	HPX_PG_INT8,
	HPX_PG_UUID,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT2,
	HPX_PG_BOOL,
};
#define QUESTION_COLUMNS 11

static void put_question(struct hpx_pg_columns *columns, const struct hpx_pg_item *item)
{
	const struct hpx_reconcile *asked = &item->change.reconcile;

	hpx_pg_put_id(columns, &item->id);
	hpx_pg_put_rest(columns, &item->id);
	hpx_pg_put_int(columns, item->number);
	hpx_pg_put_mark(columns, item->number != 0 ? &item->found.delivery.mark :
						     &item->found.operation.record.mark);
	hpx_pg_put_int(columns, asked->sent_ms);
	hpx_pg_put_int(columns, asked->tries);
	hpx_pg_put_int(columns, asked->not_applied_in_a_row);
	hpx_pg_put_int(columns, asked->first_not_applied_ms);
	hpx_pg_put_int(columns, asked->ask_at_ms);
	hpx_pg_put_int(columns, hpx_pg_evidence_number(item->change.evidence));
	hpx_pg_put_int(columns, item->change.person);
}

static void send_questions(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, question_types, QUESTION_COLUMNS);
	for (size_t i = 0; i < batch->item_count; i++)
		if (batch->item[i].changed && batch->item[i].change.write_reconcile)
			put_question(&columns, &batch->item[i]);
	hpx_pg_send_columns(pipe, HPX_PG_PUT_QUESTIONS, &columns, NULL);
}

bool hpx_pg_items_dirty(const struct hpx_pg_batch *batch)
{
	for (size_t i = 0; i < batch->item_count; i++)
		if (batch->item[i].changed)
			return true;
	return false;
}

/* A question that is settled needs no statement: the trigger of its operation or job ends it. */
void hpx_pg_send_items(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	send_accepted(pipe, batch);
	send_deliveries(pipe, batch);
	send_removed(pipe, batch);
	send_questions(pipe, batch);
}
