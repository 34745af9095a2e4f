/* Unknown outcomes: which of them are due to be asked about, CLAIM_UNKNOWN and ESCALATE,
 * which take those, and RULE, which stores what somebody said. Who may ask is decided
 * by the lock of the row that the question is about. */
#include "store/postgres/outbox.h"

#include <stdlib.h>

/* Rulings in one transaction. */
#define RULINGS_AT_ONCE 64

/* ---- what is due ---- */

enum hpx_status hpx_pg_lanes(struct hpx_store_reader *reader, struct hpx_arena *arena,
			     struct hpx_lane_due **ret_lanes, size_t *ret_count)
{
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result = NULL;
	struct hpx_lane_due *lanes;
	size_t count = 0;
	enum hpx_status status;

	hpx_pg_add_bytes(&params, hpx_span_of(hpx_pg_of(reader->store)->upstream_name));
	status = hpx_pg_ask(reader, HPX_PG_LANES, &params, &result);
	if (status != HPX_OK)
		return status;
	lanes = hpx_arena_alloc(arena, ((size_t)PQntuples(result) + 1) * sizeof(*lanes));
	if (lanes == NULL)
		status = HPX_NOMEM;
	for (int row = 0; status == HPX_OK && row < PQntuples(result); row++) {
		struct hpx_lane_due *lane = &lanes[count];
		lane->name = hpx_arena_dup(arena, hpx_pg_bytes(result, row, 0));
		if (lane->name.ptr == NULL)
			status = HPX_NOMEM;
		if (hpx_pg_int(result, row, 1, 1, INT64_MAX, &lane->at_ms))
			count++;
	}
	PQclear(result);
	if (status == HPX_OK) {
		*ret_lanes = lanes;
		*ret_count = count;
	}
	return status;
}

enum hpx_status hpx_pg_due(struct hpx_store_reader *reader, struct hpx_span lane, int64_t from_ms,
			   struct hpx_due *due, size_t max, size_t *ret_count)
{
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result = NULL;
	size_t count = 0;
	enum hpx_status status;

	hpx_pg_add_bytes(&params, lane);
	hpx_pg_add_int8(&params, atomic_load(&reader->store->wall_shift_ms));
	hpx_pg_add_int8(&params, from_ms);
	hpx_pg_add_int8(&params, (int64_t)max);
	hpx_pg_add_bytes(&params, hpx_span_of(hpx_pg_of(reader->store)->upstream_name));
	status = hpx_pg_ask(reader, HPX_PG_QUESTIONS_DUE, &params, &result);
	if (status != HPX_OK)
		return status;
	for (int row = 0; row < PQntuples(result) && count < max; row++) {
		int64_t evidence = 0;
		due[count] = (struct hpx_due){ .number = 0 };
		if (hpx_pg_id_read(result, row, &due[count].id) &&
		    hpx_pg_int(result, row, 2, 0, INT64_MAX, &due[count].number) &&
		    hpx_pg_int(result, row, 3, 0, 2, &evidence) &&
		    hpx_pg_int(result, row, 4, 1, INT64_MAX, &due[count].at_ms) &&
		    hpx_pg_fixed(result, row, 5, due[count].mark.bytes,
				 sizeof(due[count].mark.bytes)))
			due[count++].evidence = evidence != 0;
	}
	PQclear(result);
	*ret_count = count;
	return HPX_OK;
}

/* ---- CLAIM_UNKNOWN and ESCALATE: those that a reader found ---- */

static bool is_readable(const struct hpx_pg_item *item)
{
	return item->number != 0 ? item->found.job_readable : item->found.operation.readable;
}

static bool is_unknown(const struct hpx_pg_item *item)
{
	const struct hpx_outbox_found *found = &item->found;

	return item->number != 0 ? found->job_exists && found->delivery.state == HPX_JOB_UNKNOWN :
				   found->operation.exists &&
					   found->operation.record.state == HPX_STATE_UNKNOWN;
}

static bool is_ours(struct hpx_pg_outbox *outbox, const struct hpx_pg_item *item)
{
	/* A job's operation may be held: nothing of it is written. */
	return item->number != 0 ? item->locked || !item->found.job_exists :
				   !hpx_pg_outbox_is_held(outbox, item);
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
						   found->reconcile.sent_ms != 0 };

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
static void put_off(struct hpx_pg_outbox *outbox, struct hpx_pg_item *item, int64_t lease_ms,
		    const struct hpx_store_op *op)
{
	item->change = (struct hpx_outbox_change){ .write_reconcile = true,
						   .reconcile = item->found.reconcile,
						   .evidence = item->found.evidence };
	item->change.reconcile.ask_at_ms = outbox->look.now.wall_ms + lease_ms;
	hpx_pg_outbox_take(outbox, item, op);
}

/* What cannot be read is a person's: it must not stand for ever at the head of
 * its lane. */
static void leave(struct hpx_pg_outbox *outbox, struct hpx_pg_item *item,
		  const struct hpx_store_op *op)
{
	item->change = (struct hpx_outbox_change){ .write_reconcile = true,
						   .reconcile = item->found.reconcile,
						   .evidence = item->found.evidence,
						   .person = true };
	hpx_pg_outbox_take(outbox, item, op);
}

static bool is_due(const struct hpx_pg_item *item, const struct hpx_moment *now)
{
	return item->found.scheduled && !item->found.person &&
	       item->found.reconcile.ask_at_ms > 0 &&
	       item->found.reconcile.ask_at_ms <= now->wall_ms;
}

/* What the op is about, and where its results go. */
static struct hpx_op_due *due_of(struct hpx_store_op *op)
{
	HPX_ASSERT(op->verb == HPX_VERB_CLAIM_UNKNOWN || op->verb == HPX_VERB_ESCALATE);
	return op->verb == HPX_VERB_ESCALATE ? &op->escalate : &op->claim_unknown;
}

/* Whether it is taken. */
static enum hpx_status take_one(struct hpx_pg_outbox *outbox, struct hpx_pg_item *item,
				const struct hpx_due *due, struct hpx_store_op *op,
				struct hpx_unsettled ***tail)
{
	if (op->verb == HPX_VERB_ESCALATE) {
		if (!hpx_outbox_escalate(&item->found, &item->change))
			return HPX_OK;
		hpx_pg_outbox_take(outbox, item, op);
	} else {
		**tail = make_unsettled(outbox, item);
		if (**tail == NULL)
			return HPX_NOMEM;
		*tail = &(**tail)->next;
		put_off(outbox, item, due->lease_ms, op);
	}
	due_of(op)->count++;
	return HPX_OK;
}

/* `*ret_over`: there are questions about nothing that is unknown. */
static enum hpx_status take_due(struct hpx_pg_outbox *outbox, struct hpx_store_op *op,
				struct hpx_unsettled **tail, bool *ret_over)
{
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(outbox->count <= due_of(op)->due_count);
	for (size_t i = 0; i < outbox->count && status == HPX_OK; i++) {
		struct hpx_pg_item *item = &outbox->item[i];
		if (!is_ours(outbox, item))
			continue;
		if (is_unknown(item) && !is_readable(item))
			leave(outbox, item, op);
		else if (!is_unknown(item) || !item->found.scheduled)
			*ret_over = true;
		else if (is_due(item, &outbox->look.now))
			status = take_one(outbox, item, &due_of(op)->due[i], op, &tail);
	}
	return status;
}

/* In a transaction of its own; those that are about something stay. */
static enum hpx_status end_questions(struct hpx_pg_store *s, const struct hpx_op_due *about,
				     char *problem)
{
	static const enum hpx_pg_type types[] = { HPX_PG_UUID, HPX_PG_INT8 };
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, 2);
	for (size_t i = 0; i < about->due_count && i < HPX_PG_ITEMS_MAX; i++) {
		hpx_pg_put_id(&columns, &about->due[i].id);
		hpx_pg_put_int(&columns, about->due[i].number);
	}
	hpx_pg_send_columns(&pipe, HPX_PG_END_QUESTIONS, &columns, NULL);
	PQclear(hpx_pg_take(&pipe));
	return hpx_pg_end(&pipe);
}

static enum hpx_status run_due(struct hpx_pg_store *s, struct hpx_store_op *op,
			       struct hpx_pg_outbox *outbox, char *problem)
{
	struct hpx_unsettled *found = NULL;
	bool over = false;
	enum hpx_status status = hpx_pg_outbox_look(s, outbox, false, problem);

	if (status == HPX_OK)
		status = take_due(outbox, op, &found, &over);
	status = status == HPX_OK ? hpx_pg_outbox_commit(s, outbox, problem) :
				    hpx_pg_undo(s, status);
	if (status == HPX_OK)
		due_of(op)->unsettled = found;
	else
		hpx_unsettled_free(found);
	return status == HPX_OK && over ? end_questions(s, due_of(op), problem) : status;
}

enum hpx_status hpx_pg_take_due(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	const struct hpx_op_due *about = due_of(op);
	size_t count = about->due_count < HPX_PG_ITEMS_MAX ? about->due_count : HPX_PG_ITEMS_MAX;
	struct hpx_pg_outbox outbox;
	enum hpx_status status;

	if (count == 0)
		return HPX_OK;
	status = hpx_pg_outbox_init(&outbox, count);
	if (status != HPX_OK)
		return status;
	for (size_t i = 0; i < count; i++)
		if (about->due[i].number != 0)
			hpx_pg_outbox_add_job(&outbox, about->due[i].number);
		else
			hpx_pg_outbox_add_operation(&outbox, &about->due[i].id);
	status = run_due(s, op, &outbox, problem);
	hpx_pg_outbox_done(&outbox);
	return status;
}

/* ---- RULE: many in one transaction ---- */

struct rulings {
	struct hpx_store_op *op[RULINGS_AT_ONCE]; /* of the item with that number */
	int64_t number[RULINGS_AT_ONCE];          /* the job's that it is decided by, 0: none */
	bool decided[RULINGS_AT_ONCE];
	size_t count;
	struct hpx_pg_outbox outbox;
};

/* What is said of an operation is said of the job that brings its answer, as
 * long as that one speaks for it; else of the operation itself. */
static void choose_ruled_row(struct hpx_pg_outbox *outbox, struct hpx_pg_item *item, int64_t number)
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

static void decide_rule(struct hpx_pg_outbox *outbox, struct hpx_pg_item *item,
			struct hpx_store_op *op)
{
	const struct hpx_outbox_change *change = &item->change;

	if (hpx_pg_outbox_is_held(outbox, item)) {
		op->status = HPX_BUSY;
		return;
	}
	choose_ruled_row(outbox, item, op->rule.update->number);
	hpx_outbox_rule(&item->found, op, &outbox->look.now, &item->change);
	if (op->status != HPX_OK)
		return;
	if (change->write_job || change->write_operation || change->write_reconcile)
		hpx_pg_outbox_take(outbox, item, op);
	op->decision.record = change->write_operation ? change->operation.record :
							item->found.operation.record;
}

/* What is said next of the same operation has to see what this makes of it. */
static bool is_taken(const struct rulings *rulings, const struct hpx_operation_id *id)
{
	for (size_t i = 0; i < rulings->count; i++)
		if (hpx_operation_id_eq(&rulings->op[i]->id, id))
			return true;
	return false;
}

static void choose(struct rulings *rulings, struct hpx_store_op **ops, size_t count,
		   const bool *todo)
{
	for (size_t i = 0; i < count && rulings->count < RULINGS_AT_ONCE; i++) {
		if (!todo[i] || is_taken(rulings, &ops[i]->id))
			continue;
		rulings->number[rulings->count] = ops[i]->rule.update->number;
		rulings->op[rulings->count++] = ops[i];
	}
}

static void note_answering(struct rulings *rulings, const PGresult *result)
{
	struct hpx_operation_id id;
	int64_t number = 0;

	for (int row = 0; row < PQntuples(result); row++) {
		if (!hpx_pg_id_read(result, row, &id) ||
		    !hpx_pg_int(result, row, 2, 1, INT64_MAX, &number))
			continue;
		for (size_t i = 0; i < rulings->count; i++)
			if (rulings->number[i] == 0 &&
			    hpx_operation_id_eq(&rulings->op[i]->id, &id))
				rulings->number[i] = number;
	}
}

/* The jobs whose answers are the operations', where there are any. */
static enum hpx_status find_answering(struct hpx_pg_store *s, struct rulings *rulings,
				      char *problem)
{
	static const enum hpx_pg_type type = HPX_PG_UUID;
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_columns columns;
	PGresult *result;
	enum hpx_status status;
	bool any = false;

	hpx_pg_columns_init(&columns, &type, 1);
	for (size_t i = 0; i < rulings->count; i++) {
		if (rulings->number[i] != 0)
			continue;
		hpx_pg_put_id(&columns, &rulings->op[i]->id);
		any = true;
	}
	if (!any) {
		hpx_pg_columns_done(&columns);
		return HPX_OK;
	}
	hpx_pg_send_columns(&pipe, HPX_PG_ANSWERING_ALL, &columns, NULL);
	result = hpx_pg_take(&pipe);
	if (result != NULL)
		note_answering(rulings, result);
	PQclear(result);
	status = hpx_pg_end(&pipe);
	return status == HPX_OK ? HPX_OK : hpx_pg_undo(s, status);
}

static enum hpx_status run_rulings(struct hpx_pg_store *s, struct rulings *rulings, char *problem)
{
	struct hpx_pg_outbox *outbox = &rulings->outbox;
	enum hpx_status status = find_answering(s, rulings, problem);

	if (status != HPX_OK)
		return status;
	for (size_t i = 0; i < rulings->count; i++)
		if (rulings->number[i] != 0)
			hpx_pg_outbox_add_job(outbox, rulings->number[i]);
		else
			hpx_pg_outbox_add_operation(outbox, &rulings->op[i]->id);
	status = hpx_pg_outbox_look(s, outbox, false, problem);
	if (status != HPX_OK)
		return hpx_pg_undo(s, status);
	for (size_t i = 0; i < outbox->count; i++) {
		struct hpx_pg_item *item = &outbox->item[i];
		const struct hpx_pg_row *row = hpx_pg_batch_find(&outbox->batch, &item->id);
		if (row != NULL && hpx_pg_row_dirty(row))
			continue;
		decide_rule(outbox, item, rulings->op[i]);
		rulings->decided[i] = true;
	}
	return hpx_pg_outbox_commit(s, outbox, problem);
}

/* The first of them is settled in any case. */
static enum hpx_status run_some(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
				bool *todo, size_t *left, char *problem)
{
	struct rulings rulings = { .count = 0 };
	enum hpx_status status = hpx_pg_outbox_init(&rulings.outbox, RULINGS_AT_ONCE);

	if (status != HPX_OK)
		return status;
	choose(&rulings, ops, count, todo);
	status = run_rulings(s, &rulings, problem);
	for (size_t i = 0, next = 0; status == HPX_OK && i < count && next < rulings.count; i++) {
		if (rulings.op[next] != ops[i])
			continue;
		todo[i] = !rulings.decided[next];
		*left -= rulings.decided[next++];
	}
	hpx_pg_outbox_done(&rulings.outbox);
	return status;
}

static bool is_sound(struct hpx_store_op *op)
{
	if (op->rule.update == NULL)
		op->status = HPX_MISUSE;
	return op->status == HPX_OK;
}

enum hpx_status hpx_pg_rules(struct hpx_pg_store *s, struct hpx_store_op **ops, size_t count,
			     char *problem)
{
	bool *todo = calloc(count, sizeof(*todo));
	enum hpx_status status = todo != NULL ? HPX_OK : HPX_NOMEM;
	size_t left = 0;

	for (size_t i = 0; i < count && status == HPX_OK; i++) {
		todo[i] = ops[i] != NULL && ops[i]->verb == HPX_VERB_RULE && is_sound(ops[i]);
		left += todo[i];
	}
	while (left > 0 && status == HPX_OK)
		status = run_some(s, ops, count, todo, &left, problem);
	free(todo);
	return status;
}
