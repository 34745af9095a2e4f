/* A look at jobs and at the operations whose answers they bring, and the way
 * back: what the rules made of them, written in the same transaction.
 *
 * An operation's row is locked before its job's, and none is waited for. Only
 * a job that answers needs its operation's row: an application may hold that
 * one for as long as its transaction lasts, and the other jobs it owes go out
 * meanwhile. */
#include "store/postgres/outbox.h"

#include <stdlib.h>

#include "base/status.h"

enum hpx_status hpx_pg_outbox_init(struct hpx_pg_outbox *outbox, size_t max)
{
	enum hpx_status status;

	*outbox = (struct hpx_pg_outbox){ .max = max };
	outbox->item = calloc(max + 1, sizeof(*outbox->item));
	if (outbox->item == NULL)
		return HPX_NOMEM;
	/* A job's move, and its operation's. */
	status = hpx_pg_batch_init(&outbox->batch, max, 2 * max);
	if (status != HPX_OK)
		free(outbox->item);
	return status;
}

void hpx_pg_outbox_done(struct hpx_pg_outbox *outbox)
{
	for (size_t i = 0; i < outbox->count; i++)
		hpx_job_entry_free(outbox->item[i].entry);
	hpx_pg_batch_done(&outbox->batch);
	PQclear(outbox->operations);
	free(outbox->item);
}

static struct hpx_pg_item *add(struct hpx_pg_outbox *outbox)
{
	static const struct hpx_pg_item none = { .row = -1,
						 .found = { .evidence = HPX_RULING_UNCLEAR } };

	if (outbox->count == outbox->max)
		return NULL;
	outbox->item[outbox->count] = none;
	return &outbox->item[outbox->count++];
}

void hpx_pg_outbox_add_job(struct hpx_pg_outbox *outbox, int64_t number)
{
	struct hpx_pg_item *item = add(outbox);

	if (item != NULL)
		item->number = number;
}

void hpx_pg_outbox_add_operation(struct hpx_pg_outbox *outbox, const struct hpx_operation_id *id)
{
	struct hpx_pg_item *item = add(outbox);

	if (item != NULL)
		item->id = *id;
}

/* ---- asking ---- */

/* The two arrays that every statement of a look takes. */
struct names {
	struct hpx_pg_columns jobs;
	struct hpx_pg_columns operations;
	struct hpx_pg_params numbers; /* $1: jobs */
	struct hpx_pg_params both;    /* $1: jobs, $2: operations */
};

static enum hpx_status names_init(struct names *names, const struct hpx_pg_outbox *outbox)
{
	static const enum hpx_pg_type number_type = HPX_PG_INT8, id_type = HPX_PG_UUID;
	struct hpx_pg_params ids;
	enum hpx_status status;

	hpx_pg_columns_init(&names->jobs, &number_type, 1);
	hpx_pg_columns_init(&names->operations, &id_type, 1);
	for (size_t i = 0; i < outbox->count; i++) {
		const struct hpx_pg_item *item = &outbox->item[i];
		if (item->number != 0)
			hpx_pg_put_int(&names->jobs, item->number);
		else
			hpx_pg_put_id(&names->operations, &item->id);
	}
	status = hpx_pg_columns_param(&names->jobs, &names->numbers);
	if (status == HPX_OK)
		status = hpx_pg_columns_param(&names->operations, &ids);
	if (status != HPX_OK)
		return status;
	names->both = names->numbers;
	hpx_pg_add_bytes(&names->both, hpx_span(ids.value[0], (size_t)ids.length[0]));
	return HPX_OK;
}

static void names_done(struct names *names)
{
	hpx_pg_columns_done(&names->jobs);
	hpx_pg_columns_done(&names->operations);
}

static void send_look(struct hpx_pg_pipe *pipe, const struct names *names, bool begins, bool bodies)
{
	struct hpx_pg_params read = names->numbers;

	hpx_pg_add_int8(&read, bodies);
	if (begins)
		hpx_pg_send(pipe, HPX_PG_BEGIN, NULL);
	hpx_pg_send(pipe, HPX_PG_LOCK_OPERATIONS, &names->both);
	hpx_pg_send(pipe, HPX_PG_LOCK_JOBS, &names->numbers);
	hpx_pg_send(pipe, HPX_PG_READ_JOBS, &read);
	hpx_pg_send(pipe, HPX_PG_READ_OPERATIONS, &names->both);
	hpx_pg_send(pipe, HPX_PG_CLOCK, NULL);
}

/* ---- taking ---- */

static struct hpx_pg_item *item_of(struct hpx_pg_outbox *outbox, const PGresult *result, int row)
{
	int64_t number = 0;

	hpx_pg_int(result, row, 0, 1, INT64_MAX, &number);
	for (size_t i = 0; number != 0 && i < outbox->count; i++)
		if (outbox->item[i].number == number)
			return &outbox->item[i];
	return NULL;
}

static void take_job_locks(struct hpx_pg_pipe *pipe, struct hpx_pg_outbox *outbox)
{
	PGresult *result = hpx_pg_take(pipe);

	for (int row = 0; result != NULL && row < PQntuples(result); row++) {
		struct hpx_pg_item *item = item_of(outbox, result, row);
		if (item != NULL)
			item->locked = true;
	}
	PQclear(result);
}

static void take_job(struct hpx_pg_pipe *pipe, const PGresult *result, int row,
		     struct hpx_pg_item *item)
{
	hpx_job_entry_free(item->entry);
	item->entry = hpx_pg_job_read(result, row);
	if (item->entry == NULL) {
		pipe->status = HPX_NOMEM;
		return;
	}
	item->found.job_exists = true;
	item->found.job_readable = item->entry->readable;
	item->found.delivery = item->entry->delivery;
	item->id = item->entry->delivery.operation;
	hpx_pg_question_read(result, row, HPX_PG_JOB_QUESTION_COLUMN, &item->found.delivery.mark,
			     &item->found);
}

static void take_jobs(struct hpx_pg_pipe *pipe, struct hpx_pg_outbox *outbox)
{
	PGresult *result = hpx_pg_take(pipe);

	for (int row = 0; result != NULL && row < PQntuples(result); row++) {
		struct hpx_pg_item *item = item_of(outbox, result, row);
		if (item != NULL)
			take_job(pipe, result, row, item);
	}
	PQclear(result);
}

/* Each operation once, sorted, as the batch wants them. */
static void add_rows(struct hpx_pg_outbox *outbox, const PGresult *result)
{
	struct hpx_operation_id id;

	outbox->batch.row_count = 0;
	for (int row = 0; row < PQntuples(result) && (size_t)row < outbox->max; row++)
		if (hpx_pg_id_read(result, row, &id))
			hpx_pg_batch_add(&outbox->batch, &id);
	hpx_pg_batch_sort(&outbox->batch);
}

static void fill_row(struct hpx_pg_outbox *outbox, int at)
{
	struct hpx_pg_row read;

	hpx_pg_row_read(outbox->operations, at, &read);
	hpx_pg_batch_take(&outbox->batch, outbox->operations, at);
	for (size_t i = 0; i < outbox->count; i++) {
		struct hpx_pg_item *item = &outbox->item[i];
		if (!hpx_operation_id_eq(&item->id, &read.id))
			continue;
		item->row = at;
		item->found.operation = read.found;
		if (item->number == 0)
			hpx_pg_question_read(outbox->operations, at,
					     HPX_PG_OPERATION_QUESTION_COLUMN,
					     &read.found.record.mark, &item->found);
	}
}

static void take_operations(struct hpx_pg_outbox *outbox, const PGresult *locked)
{
	struct hpx_operation_id id;

	add_rows(outbox, outbox->operations);
	for (int at = 0; at < PQntuples(outbox->operations); at++)
		fill_row(outbox, at);
	for (int at = 0; at < PQntuples(locked); at++) {
		struct hpx_pg_row *row = hpx_pg_id_read(locked, at, &id) ?
						 hpx_pg_batch_find(&outbox->batch, &id) :
						 NULL;
		if (row != NULL)
			row->locked = true;
	}
}

static void take_look(struct hpx_pg_store *s, struct hpx_pg_pipe *pipe,
		      struct hpx_pg_outbox *outbox, bool begins)
{
	PGresult *locked;

	if (begins)
		PQclear(hpx_pg_take(pipe));
	locked = hpx_pg_take(pipe);
	take_job_locks(pipe, outbox);
	take_jobs(pipe, outbox);
	PQclear(outbox->operations);
	outbox->operations = hpx_pg_take(pipe);
	if (locked != NULL && outbox->operations != NULL)
		take_operations(outbox, locked);
	PQclear(locked);
	hpx_pg_take_time(s, pipe, &outbox->look.now);
}

enum hpx_status hpx_pg_outbox_look(struct hpx_pg_store *s, struct hpx_pg_outbox *outbox,
				   bool bodies, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	bool begins = !outbox->look.begun;
	struct names names;
	enum hpx_status status = names_init(&names, outbox);

	if (status == HPX_OK) {
		send_look(&pipe, &names, begins, bodies);
		take_look(s, &pipe, outbox, begins);
		outbox->look.begun = true;
		status = hpx_pg_end(&pipe);
	}
	names_done(&names);
	return status;
}

bool hpx_pg_outbox_is_held(struct hpx_pg_outbox *outbox, const struct hpx_pg_item *item)
{
	const struct hpx_pg_row *row = hpx_pg_batch_find(&outbox->batch, &item->id);
	bool operation_held = row != NULL && row->stored && !row->locked;

	if (item->number == 0)
		return operation_held;
	return item->found.job_exists &&
	       (!item->locked || (item->found.delivery.answers && operation_held));
}

/* ---- writing ---- */

static void note_event(struct hpx_pg_outbox *outbox, const struct hpx_pg_item *item,
		       const struct hpx_store_op *op)
{
	struct hpx_pg_batch *batch = &outbox->batch;
	const struct hpx_outbox_change *change = &item->change;
	struct hpx_record at = { .id = item->id,
				 .changed_ms = outbox->look.now.wall_ms,
				 .attempt = item->found.operation.record.attempt,
				 .status = change->event_status };

	if (item->number != 0)
		at.attempt = change->write_job ? change->delivery.attempt :
						 item->found.delivery.attempt;
	HPX_ASSERT(batch->event_count < batch->event_max);
	batch->event[batch->event_count++] = (struct hpx_pg_event){
		.record = at,
		.op = op,
		.what = change->event,
		.reason = item->entry != NULL ? item->entry->job.name : HPX_SPAN(""),
	};
}

void hpx_pg_outbox_take(struct hpx_pg_outbox *outbox, struct hpx_pg_item *item,
			const struct hpx_store_op *op)
{
	const struct hpx_outbox_change *change = &item->change;

	item->changed = true;
	if (change->write_job && item->entry != NULL)
		item->entry->delivery = change->delivery;
	if (change->event != NULL)
		note_event(outbox, item, op);
	if (change->write_operation)
		hpx_pg_row_change(&outbox->batch, hpx_pg_batch_find(&outbox->batch, &item->id),
				  &change->operation, op);
}

enum hpx_status hpx_pg_outbox_commit(struct hpx_pg_store *s, struct hpx_pg_outbox *outbox,
				     char *problem)
{
	outbox->batch.item = outbox->item;
	outbox->batch.item_count = outbox->count;
	return hpx_pg_commit(s, &outbox->batch, &outbox->look, problem);
}

/* ---- RESOLVE and FORGET ----
 *
 * The job whose answer the operation waited for ends in the same transaction. An operation
 * without such a job takes the slow path like every other op. */

/* The job whose answer is the operation's; 0: there is none, or the operation is
 * completed. Read without a lock. */
static enum hpx_status find_answering(struct hpx_pg_store *s, const struct hpx_operation_id *id,
				      int64_t *ret_number, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_params params = { .count = 0 };
	int64_t number = 0;
	PGresult *result;
	enum hpx_status status;

	hpx_pg_add_id(&params, id);
	hpx_pg_send(&pipe, HPX_PG_ANSWERING, &params);
	result = hpx_pg_take(&pipe);
	if (result != NULL && PQntuples(result) > 0)
		hpx_pg_int(result, 0, 0, 1, INT64_MAX, &number);
	PQclear(result);
	status = hpx_pg_end(&pipe);
	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	*ret_number = number;
	return HPX_OK;
}

static void decide_settle(struct hpx_pg_outbox *outbox, struct hpx_store_op *op)
{
	struct hpx_pg_item *item = outbox->item;
	struct hpx_change operation;

	hpx_change_make(&item->found.operation, op, &outbox->look.now, false, &operation);
	if (op->status != HPX_OK || operation.write == HPX_WRITE_NOTHING)
		return;
	op->status = hpx_outbox_conclude(&item->found, operation.record.state, &outbox->look.now,
					 &item->change);
	if (op->status != HPX_OK)
		return;
	item->change.write_operation = true;
	item->change.operation = operation;
	hpx_pg_outbox_take(outbox, item, op);
}

static enum hpx_status run_settle(struct hpx_pg_store *s, struct hpx_store_op *op,
				  struct hpx_pg_outbox *outbox, char *problem)
{
	enum hpx_status status = hpx_pg_outbox_look(s, outbox, false, problem);
	const struct hpx_outbox_found *found = &outbox->item->found;

	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	/* Another reference's, or gone: it was used again meanwhile. */
	if (hpx_pg_outbox_is_held(outbox, outbox->item) || !found->job_exists ||
	    !found->operation.exists ||
	    !hpx_mark_eq(&found->operation.record.mark, &found->delivery.mark))
		op->status = HPX_BUSY;
	else
		decide_settle(outbox, op);
	return hpx_pg_outbox_commit(s, outbox, problem);
}

enum hpx_status hpx_pg_settle(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	struct hpx_pg_outbox outbox;
	int64_t number = 0;
	enum hpx_status status;

	HPX_ASSERT(hpx_verb_has(op->verb, HPX_TRAIT_REMOVES));
	status = find_answering(s, &op->id, &number, problem);
	if (status == HPX_OK && number == 0)
		return hpx_pg_run_row(s, op, problem);
	if (status == HPX_OK)
		status = hpx_pg_outbox_init(&outbox, 1);
	if (status != HPX_OK)
		return status;
	hpx_pg_outbox_add_job(&outbox, number);
	status = run_settle(s, op, &outbox, problem);
	hpx_pg_outbox_done(&outbox);
	return status;
}
