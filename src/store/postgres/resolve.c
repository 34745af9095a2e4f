/* RESOLVE and FORGET: a person settles or removes an operation. The job whose answer
 * the operation waited for ends in the same transaction. An operation without such a
 * job takes the slow path like every other op. */
#include "store/postgres/outbox.h"

enum hpx_status hpx_pg_answering(struct hpx_pg_store *s, const struct hpx_operation_id *id,
				 int64_t *ret_number, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_params params = { .count = 0 };
	int64_t number = 0;
	PGresult *result;
	enum hpx_status status;

	hpx_pg_add_bytes(&params, hpx_span(id->bytes, sizeof(id->bytes)));
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

static void decide(struct hpx_pg_outbox *outbox, struct hpx_store_op *op)
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

static enum hpx_status run(struct hpx_pg_store *s, struct hpx_store_op *op,
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
		decide(outbox, op);
	return hpx_pg_outbox_commit(s, outbox, problem);
}

enum hpx_status hpx_pg_settle(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	struct hpx_pg_outbox outbox;
	int64_t number = 0;
	enum hpx_status status;

	HPX_ASSERT(hpx_verb_has(op->verb, HPX_TRAIT_REMOVES));
	status = hpx_pg_answering(s, &op->id, &number, problem);
	if (status == HPX_OK && number == 0)
		return hpx_pg_run_row(s, op, problem);
	if (status == HPX_OK)
		status = hpx_pg_outbox_init(&outbox, 1);
	if (status != HPX_OK)
		return status;
	hpx_pg_outbox_add_job(&outbox, number);
	status = run(s, op, &outbox, problem);
	hpx_pg_outbox_done(&outbox);
	return status;
}
