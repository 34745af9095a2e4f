/* What is unknown: whom to ask next, what was said, and what nobody can be
 * asked about. A question belongs to whoever holds the row it is about. */
#include "store/postgres/outbox.h"

/* ---- UNSETTLED ---- */

static int64_t limit_of(const struct hpx_store_op *op)
{
	return op->limit < HPX_PG_ITEMS_MAX ? (int64_t)op->limit : HPX_PG_ITEMS_MAX;
}

static enum hpx_status list_unsettled(struct hpx_pg_store *s, struct hpx_store_op *op,
				      struct hpx_pg_outbox *outbox, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_operation_id id;
	int64_t number = 0;
	PGresult *result;

	hpx_pg_add_int8(&params, atomic_load(&s->base.wall_shift_ms));
	hpx_pg_add_int8(&params, limit_of(op));
	hpx_pg_send(&pipe, HPX_PG_UNSETTLED_JOBS, &params);
	hpx_pg_send(&pipe, HPX_PG_UNSETTLED_OPERATIONS, &params);
	result = hpx_pg_take(&pipe);
	for (int row = 0; result != NULL && row < PQntuples(result); row++)
		if (hpx_pg_int(result, row, 0, 1, INT64_MAX, &number))
			hpx_pg_outbox_add_job(outbox, number);
	PQclear(result);
	result = hpx_pg_take(&pipe);
	for (int row = 0; result != NULL && row < PQntuples(result); row++)
		if (hpx_pg_id_read(result, row, &id))
			hpx_pg_outbox_add_operation(outbox, &id);
	PQclear(result);
	return hpx_pg_end(&pipe);
}

static bool is_unknown(const struct hpx_pg_item *item)
{
	const struct hpx_outbox_found *found = &item->found;

	if (item->number != 0)
		return found->job_exists && found->job_readable &&
		       found->delivery.state == HPX_JOB_UNKNOWN;
	return found->operation.exists && found->operation.readable &&
	       found->operation.record.state == HPX_STATE_UNKNOWN;
}

static bool is_ours(struct hpx_pg_outbox *outbox, const struct hpx_pg_item *item)
{
	/* A job's operation may be held: nothing of it is written. */
	return item->number != 0 ? item->locked : !hpx_pg_outbox_is_held(outbox, item);
}

static void read_description(const struct hpx_pg_outbox *outbox, const struct hpx_pg_item *item,
			     struct hpx_description *d)
{
	struct hpx_span *const fields[] = { &d->tenant, &d->scope, &d->key,
					    &d->method, &d->path, &d->route };

	for (int i = 0; i < (int)(sizeof(fields) / sizeof(fields[0])); i++)
		*fields[i] = hpx_pg_bytes(outbox->operations, item->row,
					  HPX_PG_DESCRIPTION_COLUMN + i);
}

/* The operation's part: of a job whose operation is gone, or was used anew, only
 * the reference. */
static void describe_operation(const struct hpx_pg_outbox *outbox, const struct hpx_pg_item *item,
			       struct hpx_unsettled *unsettled)
{
	const struct hpx_outbox_found *found = &item->found;

	if (found->operation.exists &&
	    (item->number == 0 ||
	     hpx_mark_eq(&found->operation.record.mark, &found->delivery.mark))) {
		unsettled->record = found->operation.record;
		read_description(outbox, item, &unsettled->description);
	} else {
		unsettled->record = (struct hpx_record){ .id = found->delivery.operation,
							 .mark = found->delivery.mark };
	}
}

static struct hpx_unsettled *make_unsettled(const struct hpx_pg_outbox *outbox,
					    struct hpx_pg_item *item)
{
	struct hpx_outbox_found *found = &item->found;
	struct hpx_unsettled made = { .evidence = found->evidence,
				      .scheduled = found->scheduled &&
						   found->reconcile.ask_at_ms != 0 };

	/* Nothing was sent after it became unknown. */
	if (found->reconcile.sent_ms == 0)
		found->reconcile.sent_ms = item->number != 0 ? found->delivery.changed_ms :
							       found->operation.record.changed_ms;
	made.reconcile = found->reconcile;
	describe_operation(outbox, item, &made);
	if (item->number != 0) {
		made.delivery = found->delivery;
		made.job_name = item->entry->job.name;
		made.target = item->entry->job.target;
	}
	return hpx_unsettled_new(&made);
}

/* Nobody else gets it before the lease is over. */
static void put_off(struct hpx_pg_outbox *outbox, struct hpx_pg_item *item,
		    const struct hpx_store_op *op)
{
	item->change = (struct hpx_outbox_change){ .write_reconcile = true,
						   .reconcile = item->found.reconcile,
						   .evidence = item->found.evidence };
	item->change.reconcile.ask_at_ms = outbox->look.now.wall_ms + op->lease_ms;
	hpx_pg_outbox_take(outbox, item, op);
}

static enum hpx_status take_unsettled(struct hpx_pg_outbox *outbox, struct hpx_store_op *op,
				      struct hpx_unsettled **tail)
{
	for (size_t i = 0; i < outbox->count; i++) {
		struct hpx_pg_item *item = &outbox->item[i];
		if (!is_unknown(item) || !is_ours(outbox, item) || item->found.person ||
		    item->found.reconcile.ask_at_ms > outbox->look.now.wall_ms)
			continue;
		*tail = make_unsettled(outbox, item);
		if (*tail == NULL)
			return HPX_NOMEM;
		tail = &(*tail)->next;
		put_off(outbox, item, op);
		op->count++;
	}
	return HPX_OK;
}

static enum hpx_status run_unsettled(struct hpx_pg_store *s, struct hpx_store_op *op,
				     struct hpx_pg_outbox *outbox, char *problem)
{
	struct hpx_unsettled *found = NULL;
	enum hpx_status status = list_unsettled(s, op, outbox, problem);

	if (status == HPX_OK && outbox->count == 0)
		return HPX_OK;
	if (status == HPX_OK)
		status = hpx_pg_outbox_look(s, outbox, false, problem);
	if (status == HPX_OK)
		status = take_unsettled(outbox, op, &found);
	status = status == HPX_OK ? hpx_pg_outbox_commit(s, outbox, problem) :
				    hpx_pg_undo(s, status);
	if (status == HPX_OK)
		op->unsettled = found;
	else
		hpx_unsettled_free(found);
	return status;
}

enum hpx_status hpx_pg_unsettled(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	struct hpx_pg_outbox outbox;
	enum hpx_status status;

	if (op->lease_ms <= 0) {
		op->status = HPX_MISUSE;
		return HPX_OK;
	}
	status = hpx_pg_outbox_init(&outbox, (size_t)limit_of(op));
	if (status != HPX_OK)
		return status;
	status = run_unsettled(s, op, &outbox, problem);
	hpx_pg_outbox_done(&outbox);
	return status;
}

/* ---- RULE and UNASK: about one ---- */

/* What is said of an operation is said of the job that brings its answer, as
 * long as that one speaks for it; else of the operation itself. */
static void choose_subject(struct hpx_pg_outbox *outbox, struct hpx_pg_item *item, int64_t number)
{
	struct hpx_outbox_found *found = &item->found;

	if (number != 0 || !found->job_exists ||
	    hpx_outbox_speaks_for(&found->delivery, &found->operation))
		return;
	*found = (struct hpx_outbox_found){ .operation = found->operation,
					    .evidence = HPX_RULING_UNCLEAR };
	item->number = 0;
	if (item->row >= 0)
		hpx_pg_question_read(outbox->operations, item->row,
				     HPX_PG_OPERATION_QUESTION_COLUMN,
				     &found->operation.record.mark, found);
}

static void decide_rule(struct hpx_pg_outbox *outbox, struct hpx_store_op *op)
{
	struct hpx_pg_item *item = outbox->item;
	const struct hpx_outbox_change *change = &item->change;

	choose_subject(outbox, item, op->ruling->number);
	hpx_outbox_rule(&item->found, op, &outbox->look.now, &item->change);
	if (op->status != HPX_OK)
		return;
	if (change->write_job || change->write_operation || change->write_reconcile)
		hpx_pg_outbox_take(outbox, item, op);
	if (change->write_operation)
		op->decision.record = change->operation.record;
	else
		op->decision.record = item->found.operation.record;
}

static void decide_unask(struct hpx_pg_outbox *outbox, struct hpx_store_op *op)
{
	struct hpx_pg_item *item = outbox->item;

	choose_subject(outbox, item, op->number);
	hpx_outbox_unask(&item->found, op, &outbox->look.now, &item->change);
	if (op->status == HPX_OK && item->change.write_reconcile)
		hpx_pg_outbox_take(outbox, item, op);
}

typedef void decide_fn(struct hpx_pg_outbox *outbox, struct hpx_store_op *op);

static enum hpx_status look_and_decide(struct hpx_pg_store *s, struct hpx_store_op *op,
				       struct hpx_pg_outbox *outbox, decide_fn *decide,
				       char *problem)
{
	enum hpx_status status = hpx_pg_outbox_look(s, outbox, false, problem);

	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	if (hpx_pg_outbox_is_held(outbox, outbox->item))
		op->status = HPX_BUSY;
	else
		decide(outbox, op);
	return hpx_pg_outbox_commit(s, outbox, problem);
}

static enum hpx_status run_one(struct hpx_pg_store *s, struct hpx_store_op *op, int64_t number,
			       decide_fn *decide, char *problem)
{
	struct hpx_pg_outbox outbox;
	enum hpx_status status = HPX_OK;

	if (number == 0)
		status = hpx_pg_answering(s, &op->id, &number, problem);
	if (status == HPX_OK)
		status = hpx_pg_outbox_init(&outbox, 1);
	if (status != HPX_OK)
		return status;
	if (number != 0)
		hpx_pg_outbox_add_job(&outbox, number);
	else
		hpx_pg_outbox_add_operation(&outbox, &op->id);
	status = look_and_decide(s, op, &outbox, decide, problem);
	hpx_pg_outbox_done(&outbox);
	return status;
}

enum hpx_status hpx_pg_rule(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	if (op->ruling == NULL) {
		op->status = HPX_MISUSE;
		return HPX_OK;
	}
	return run_one(s, op, op->ruling->number, decide_rule, problem);
}

enum hpx_status hpx_pg_unask(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	return run_one(s, op, op->number, decide_unask, problem);
}
