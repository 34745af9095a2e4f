/* What a batch writes of the outbox: accepted jobs beside their operations,
 * deliveries that moved, and what is known of questions. */
#include "base/span.h"
#include "store/postgres/outbox.h"

/* Bodies go out in parts of about this size. */
#define BODY_BYTES_AT_ONCE (4 << 20)

static void put_id(struct hpx_pg_columns *columns, const struct hpx_operation_id *id)
{
	hpx_pg_put_bytes(columns, hpx_span(id->bytes, sizeof(id->bytes)));
}

static void put_token(struct hpx_pg_columns *columns, const struct hpx_token *token)
{
	hpx_pg_put_bytes(columns, hpx_span(token->bytes, sizeof(token->bytes)));
}

static void put_mark(struct hpx_pg_columns *columns, const struct hpx_mark *mark)
{
	hpx_pg_put_bytes(columns, hpx_span(mark->bytes, sizeof(mark->bytes)));
}

/* ---- accepted with their operations ---- */

static const enum hpx_pg_type accepted_types[] = {
	HPX_PG_BYTEA,
	HPX_PG_BYTEA,
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

static void put_accepted(struct hpx_pg_columns *columns, const struct hpx_pg_pending_row *pending)
{
	const struct hpx_job *job = pending->job;

	put_id(columns, &pending->id);
	put_mark(columns, &pending->found.record.mark);
	hpx_pg_put_text(columns, job->name);
	hpx_pg_put_text(columns, job->target);
	hpx_pg_put_text(columns, job->method);
	hpx_pg_put_text(columns, job->path);
	hpx_pg_put_text(columns, job->headers);
	hpx_pg_put_bytes(columns, job->body);
	hpx_pg_put_int(columns, pending->found.record.changed_ms);
}

static void send_accepted(struct hpx_pg_pipe *pipe, const struct hpx_pg_batch *batch)
{
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, accepted_types, ACCEPTED_COLUMNS);
	for (size_t i = 0; i < batch->pending_count; i++) {
		const struct hpx_pg_pending_row *pending = &batch->pending[i];
		if (pending->job == NULL || !pending->found.exists)
			continue;
		put_accepted(&columns, pending);
		if (hpx_pg_columns_bytes(&columns) < BODY_BYTES_AT_ONCE)
			continue;
		hpx_pg_send_columns(pipe, HPX_PG_PUT_JOBS, &columns);
		hpx_pg_flush(pipe);
		hpx_pg_columns_init(&columns, accepted_types, ACCEPTED_COLUMNS);
	}
	hpx_pg_send_columns(pipe, HPX_PG_PUT_JOBS, &columns);
}

/* ---- deliveries that moved ---- */

static const enum hpx_pg_type delivery_types[] = {
	HPX_PG_INT8,
	HPX_PG_INT2,
	HPX_PG_BOOL,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT4,
	HPX_PG_BYTEA,
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
	put_token(columns, &d->token);
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
	hpx_pg_send_columns(pipe, HPX_PG_UPDATE_JOBS, &columns);
}

/* ---- questions ---- */

static const enum hpx_pg_type question_types[] = {
	HPX_PG_BYTEA,
	HPX_PG_INT8,
	HPX_PG_BYTEA,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT8,
	HPX_PG_INT2,
	HPX_PG_BOOL,
};
#define QUESTION_COLUMNS 10

static void put_question(struct hpx_pg_columns *columns, const struct hpx_pg_item *item)
{
	const struct hpx_reconcile *asked = &item->change.reconcile;

	put_id(columns, &item->id);
	hpx_pg_put_int(columns, item->number);
	put_mark(columns, item->number != 0 ? &item->found.delivery.mark :
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
	hpx_pg_send_columns(pipe, HPX_PG_PUT_QUESTIONS, &columns);
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
	send_questions(pipe, batch);
}
