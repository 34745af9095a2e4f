/* Many jobs at once: lost claims, operations whose delivery came too late, and
 * jobs that are finished and old. Each takes a bounded number, found through a
 * partial index; a row that cannot be read is skipped, since it counts as
 * unknown already. */
#include <stdlib.h>

#include "store/sqlite/driver.h"

#define LIMIT_MAX 1000

static unsigned bounded(unsigned limit)
{
	return limit < LIMIT_MAX ? limit : LIMIT_MAX;
}

/* Collects first and writes later, as sweep_reap.c does. */
static enum hpx_status collect_lost(struct hpx_sqlite_statement *stmt, unsigned limit,
				    struct hpx_job_entry **ret_jobs)
{
	struct hpx_job_entry **tail = ret_jobs;
	enum hpx_status status;
	bool whole = true;

	while (whole && limit > 0 && hpx_sqlite_next(stmt)) {
		struct hpx_job_entry *entry = hpx_sqlite_delivery_read(stmt);
		whole = entry != NULL;
		if (!whole || !entry->readable) {
			hpx_job_entry_free(entry);
			continue;
		}
		*tail = entry;
		tail = &entry->next;
		limit--;
	}
	status = hpx_sqlite_end(stmt);
	return status == HPX_OK && !whole ? HPX_NOMEM : status;
}

static enum hpx_status sweep_job(struct hpx_sqlite_store *s, struct hpx_job_entry *entry,
				 bool owner_dead, const struct hpx_moment *now,
				 struct hpx_store_op *op)
{
	struct hpx_op_sweep *sweep = &op->sweep_jobs;
	struct hpx_operation_id operation = entry->delivery.operation;
	struct hpx_outbox_change change;
	struct hpx_sqlite_outbox_rows rows;
	enum hpx_status status = hpx_sqlite_outbox_rows_of_job(s, entry, &rows);

	if (status == HPX_OK && hpx_outbox_sweep(&rows.found, owner_dead, now, &change)) {
		status = hpx_sqlite_outbox_rows_write(s, &rows, &change, now->wall_ms, op);
		if (sweep->touched != NULL)
			sweep->touched[sweep->count] = (struct hpx_touched){ .id = operation };
		sweep->count++;
	}
	hpx_sqlite_outbox_rows_free(&rows);
	return status;
}

static struct hpx_sqlite_statement call_for(struct hpx_sqlite_store *s, enum hpx_sqlite_lost lost,
					    const struct hpx_moment *now)
{
	bool ran_out = lost == HPX_SQLITE_RAN_OUT;
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, ran_out ? HPX_SQL_JOBS_LOST :
										      HPX_SQL_JOBS_ORPHANED);

	hpx_sqlite_bind_int(&stmt, ran_out ? now->lease_ms : (int64_t)s->base.owner);
	return stmt;
}

enum hpx_status hpx_sqlite_sweep_jobs(struct hpx_sqlite_store *s, struct hpx_store_op *op,
				      enum hpx_sqlite_lost lost)
{
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct hpx_sqlite_statement stmt = call_for(s, lost, &now);
	struct hpx_job_entry *jobs = NULL;
	enum hpx_status status = collect_lost(&stmt, bounded(op->sweep_jobs.limit), &jobs);

	HPX_ASSERT(op->verb == HPX_VERB_SWEEP_JOBS);
	while (status == HPX_OK && jobs != NULL) {
		struct hpx_job_entry *entry = jobs;
		jobs = entry->next;
		entry->next = NULL;
		status = sweep_job(s, entry, lost != HPX_SQLITE_RAN_OUT, &now, op);
	}
	hpx_job_entry_free(jobs);
	return status;
}

enum hpx_status hpx_sqlite_abandon(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
				   const struct hpx_moment *now, struct hpx_store_op *op)
{
	struct hpx_outbox_change change;
	struct hpx_sqlite_outbox_rows rows;
	enum hpx_status status = hpx_sqlite_outbox_rows_of_operation(s, row,
								     &row->found.record, &rows);

	HPX_ASSERT(op->verb == HPX_VERB_REAP);
	if (status == HPX_OK && hpx_outbox_abandon(&rows.found, now, &change)) {
		status = hpx_sqlite_outbox_rows_write(s, &rows, &change, now->wall_ms, op);
		op->reap.count++;
	}
	hpx_sqlite_outbox_rows_free(&rows);
	return status;
}

struct finished {
	int64_t number;
	struct hpx_operation_id operation;
};

static enum hpx_status collect_finished(struct hpx_sqlite_store *s, int64_t until_ms,
					unsigned limit, struct finished *jobs, size_t *ret_count)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_JOBS_FINISHED);
	size_t count = 0;

	hpx_sqlite_bind_int(&stmt, until_ms);
	hpx_sqlite_bind_int(&stmt, limit);
	while (count < limit && hpx_sqlite_next(&stmt)) {
		jobs[count].number = sqlite3_column_int64(stmt.handle, 0);
		if (hpx_sqlite_fixed(&stmt, 1, jobs[count].operation.bytes,
				     sizeof(jobs[count].operation.bytes)))
			count++;
	}
	*ret_count = count;
	return hpx_sqlite_end(&stmt);
}

static enum hpx_status remove_finished(struct hpx_sqlite_store *s, const struct finished *job)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_REMOVE_RECONCILE);
	enum hpx_status status;

	hpx_sqlite_bind_blob(&stmt, job->operation.bytes, sizeof(job->operation.bytes));
	hpx_sqlite_bind_int(&stmt, job->number);
	status = hpx_sqlite_finish(&stmt);
	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_REMOVE_JOB);
	hpx_sqlite_bind_int(&stmt, job->number);
	return hpx_sqlite_finish(&stmt);
}

enum hpx_status hpx_sqlite_reap_jobs(struct hpx_sqlite_store *s, int64_t wall_ms,
				     struct hpx_store_op *op)
{
	unsigned limit = bounded(op->reap.limit);
	struct finished *jobs;
	enum hpx_status status;
	size_t count = 0;

	HPX_ASSERT(op->verb == HPX_VERB_REAP);
	if (s->job_retention_ms <= 0 || limit == 0)
		return HPX_OK;
	jobs = calloc(limit, sizeof(*jobs));
	if (jobs == NULL)
		return HPX_NOMEM;
	status = collect_finished(s, wall_ms - s->job_retention_ms, limit, jobs, &count);
	for (size_t i = 0; i < count && status == HPX_OK; i++) {
		status = remove_finished(s, &jobs[i]);
		op->reap.count++;
	}
	free(jobs);
	return status;
}
