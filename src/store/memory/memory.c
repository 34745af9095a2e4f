/* The memory driver: a table under one mutex. An op that runs out of memory
 * says so in its own status and has changed nothing: with no transaction to
 * roll back, each change makes room first and moves second. */
#include "store/memory/memory.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"

#define PARTED_MS 60000

/* As in the SQLite driver: parted clocks hold expiry until a person says so. */
static void check_clock(struct hpx_memory_store *m)
{
	struct hpx_moment now = hpx_store_moment(&m->base);
	int64_t off_ms = now.wall_ms - now.lease_ms - m->ahead_ms;

	if (off_ms > PARTED_MS || off_ms < -PARTED_MS)
		atomic_store(&m->base.expiry_held, true);
}

static void accept_clock(struct hpx_memory_store *m)
{
	struct hpx_moment now = hpx_store_moment(&m->base);

	m->ahead_ms = now.wall_ms - now.lease_ms;
	atomic_store(&m->base.expiry_held, false);
}

static enum hpx_status memory_open(const struct hpx_store_options *options,
				   struct hpx_store **ret_store, char *problem)
{
	struct hpx_memory_store *m = calloc(1, sizeof(*m));

	(void)problem;
	if (m == NULL)
		return HPX_NOMEM;
	if (pthread_mutex_init(&m->mutex, NULL) != 0) {
		free(m);
		return HPX_NOMEM;
	}
	hpx_store_init(&m->base, &hpx_store_memory_driver);
	snprintf(m->base.description, sizeof(m->base.description), "memory:");
	hpx_memory_table_init(&m->table);
	m->event_retention_ms = options->event_retention_ms;
	accept_clock(m);
	*ret_store = &m->base;
	return HPX_OK;
}

static void memory_close(struct hpx_store *store)
{
	struct hpx_memory_store *m = hpx_memory_of(store);

	hpx_memory_table_done(&m->table);
	pthread_mutex_destroy(&m->mutex);
	free(m);
}

static enum hpx_status add_event(struct hpx_memory_store *m, const struct hpx_change *change,
				 const struct hpx_store_op *op)
{
	struct hpx_event event = {
		.at_ms = change->at_ms,
		.attempt = change->record.attempt,
		.what = hpx_span_of(change->event),
		.actor = op->actor,
		.reason = op->reason.len != 0 ? op->reason : change->reason,
		.status = change->record.status,
	};

	if (change->event == NULL ||
	    (change->event_once && hpx_memory_event_has(&m->table, &change->record, event.what)))
		return HPX_OK;
	return hpx_memory_event_add(&m->table, &change->record.id, &event);
}

static enum hpx_status put_row(struct hpx_memory_store *m, struct hpx_memory_row *row,
			       const struct hpx_change *change, const struct hpx_store_op *op)
{
	static const struct hpx_description nothing;
	bool anew = change->write == HPX_WRITE_INSERT || change->write == HPX_WRITE_REPLACE;
	struct hpx_answer *answer = NULL;
	enum hpx_status status = HPX_OK;

	if (change->answer != NULL) {
		answer = hpx_answer_new(change->record.status, change->answer->kept,
					change->answer->headers, hpx_change_body(change));
		if (answer == NULL)
			return HPX_NOMEM;
	}
	if (anew) {
		const struct hpx_description *description = hpx_op_description(op);
		status = hpx_memory_row_describe(row, description != NULL ? description : &nothing);
	}
	if (status == HPX_OK)
		status = add_event(m, change, op);
	if (status != HPX_OK) {
		hpx_answer_free(answer);
		return status;
	}
	if (anew || answer != NULL) {
		hpx_answer_free(row->answer);
		row->answer = answer;
	}
	if (change->record.point[0] == '\0')
		hpx_memory_row_save(row, HPX_SPAN(""));
	row->record = change->record;
	return HPX_OK;
}

static enum hpx_status write_change(struct hpx_memory_store *m, struct hpx_memory_row *row,
				    const struct hpx_change *change, const struct hpx_store_op *op)
{
	enum hpx_status status;

	HPX_ASSERT(change->write == HPX_WRITE_NOTHING || (row == NULL) == (change->write == HPX_WRITE_INSERT));
	switch (change->write) {
	case HPX_WRITE_NOTHING:
		return add_event(m, change, op);
	case HPX_WRITE_REMOVE:
		status = add_event(m, change, op);
		if (status == HPX_OK)
			hpx_memory_row_remove(&m->table, row);
		return status;
	case HPX_WRITE_INSERT:
		row = hpx_memory_row_add(&m->table, &change->record.id);
		if (row == NULL)
			return HPX_NOMEM;
		status = put_row(m, row, change, op);
		if (status != HPX_OK)
			hpx_memory_row_remove(&m->table, row);
		return status;
	default:
		return put_row(m, row, change, op);
	}
}

static enum hpx_status read_point(const struct hpx_memory_row *row, struct hpx_store_op *op)
{
	HPX_ASSERT(op->verb == HPX_VERB_READ_POINT && row != NULL);
	hpx_buffer_init(&op->read_point.data, HPX_POINT_DATA_MAX);
	return hpx_buffer_append(&op->read_point.data, hpx_span(row->data, row->data_len));
}

static void run_one(struct hpx_memory_store *m, struct hpx_store_op *op)
{
	struct hpx_memory_row *row = hpx_memory_row_find(&m->table, hpx_op_id(op));
	struct hpx_found found = hpx_memory_found(row);
	struct hpx_moment now = hpx_store_moment(&m->base);
	struct hpx_change change;

	hpx_change_make(&found, op, &now, atomic_load(&m->base.space_low), &change);
	if (op->status != HPX_OK)
		return;
	if (op->verb == HPX_VERB_RESERVE && op->decision.kind == HPX_DECISION_REPLAY &&
	    row->answer != NULL)
		op->status = hpx_memory_answer_copy(row, &op->reserve.replay);
	if (op->verb == HPX_VERB_READ_POINT)
		op->status = read_point(row, op);
	if (op->status == HPX_OK && change.job != NULL)
		op->status = hpx_memory_job_add(&m->table, &change.record, change.job);
	if (op->status == HPX_OK && change.data != NULL)
		op->status = hpx_memory_row_save(row, *change.data);
	if (op->status == HPX_OK)
		op->status = write_change(m, row, &change, op);
}

static void run_sweep(struct hpx_memory_store *m, struct hpx_store_op *op)
{
	struct hpx_op_sweep *sweep = &op->sweep;
	struct hpx_moment now = hpx_store_moment(&m->base);
	struct hpx_change change;

	HPX_ASSERT(op->verb == HPX_VERB_SWEEP);

	for (size_t i = 0; i < HPX_MEMORY_BUCKETS; i++)
		for (struct hpx_memory_row *row = m->table.bucket[i]; row != NULL; row = row->next) {
			if (sweep->count >= sweep->limit)
				return;
			if (!hpx_change_sweep(&row->record, false, &now, &change))
				continue;
			op->status = write_change(m, row, &change, op);
			if (op->status != HPX_OK)
				return;
			if (sweep->touched != NULL)
				sweep->touched[sweep->count] = (struct hpx_touched){ row->record.id, row->record.state };
			sweep->count++;
		}
}

static void run_reap(struct hpx_memory_store *m, struct hpx_store_op *op)
{
	struct hpx_moment now = hpx_store_moment(&m->base);
	struct hpx_memory_row *row, *next;

	HPX_ASSERT(op->verb == HPX_VERB_REAP);

	if (now.hold_expiry)
		return;
	for (size_t i = 0; i < HPX_MEMORY_BUCKETS; i++)
		for (row = m->table.bucket[i]; row != NULL && op->reap.count < op->reap.limit; row = next) {
			next = row->next;
			if (!hpx_record_expired(&row->record, &now))
				continue;
			if (hpx_record_end_ms(&row->record) > now.wall_ms) {
				hpx_answer_free(row->answer);
				row->answer = NULL;
				row->record.kept = false;
				continue;
			}
			hpx_memory_row_remove(&m->table, row);
			op->reap.count++;
		}
	if (m->event_retention_ms > 0)
		hpx_memory_events_reap(&m->table, now.wall_ms - m->event_retention_ms);
}

static void run_op(struct hpx_memory_store *m, struct hpx_store_op *op)
{
	switch (op->verb) {
	case HPX_VERB_SWEEP:
		run_sweep(m, op);
		break;
	case HPX_VERB_REAP:
		run_reap(m, op);
		break;
	case HPX_VERB_RECIPE:
		op->status = hpx_memory_recipe_add(&m->table, &op->recipe.id, op->recipe.text);
		break;
	case HPX_VERB_ACCEPT_CLOCK:
		accept_clock(m);
		break;
	default:
		run_one(m, op);
		break;
	}
}

static enum hpx_status memory_run(struct hpx_store *store, struct hpx_store_op **ops, size_t count,
				  char *problem)
{
	struct hpx_memory_store *m = hpx_memory_of(store);

	(void)problem;
	pthread_mutex_lock(&m->mutex);
	check_clock(m);
	for (size_t i = 0; i < count; i++)
		run_op(m, ops[i]);
	pthread_mutex_unlock(&m->mutex);
	return HPX_OK;
}

static enum hpx_status memory_recover(struct hpx_store *store, char *problem)
{
	(void)store;
	(void)problem;
	return HPX_OK;
}

static enum hpx_status memory_maintain(struct hpx_store *store, char *problem)
{
	struct hpx_memory_store *m = hpx_memory_of(store);

	(void)problem;
	pthread_mutex_lock(&m->mutex);
	check_clock(m);
	pthread_mutex_unlock(&m->mutex);
	return HPX_OK;
}

const struct hpx_store_driver hpx_store_memory_driver = {
	.open = memory_open,
	.close = memory_close,
	.run = memory_run,
	.recover = memory_recover,
	.maintain = memory_maintain,
	.reader_open = hpx_memory_reader_open,
	.reader_close = hpx_memory_reader_close,
	.peek = hpx_memory_peek,
	.find = hpx_memory_find,
	.list = hpx_memory_list,
	.events = hpx_memory_events,
	.recipe = hpx_memory_recipe,
	.stats = hpx_memory_stats,
};
