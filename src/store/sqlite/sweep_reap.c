/* Verbs about many operations: lost leases and expired records. Each takes a
 * bounded number, found through a partial index; a row that cannot be read is
 * skipped, since it counts as unknown already and must not be lost. */
#include <stdlib.h>

#include "base/clock.h"
#include "store/sqlite/driver.h"

/* Whatever the submitter asks for: one op must not hold the writer for long. */
#define LIMIT_MAX 1000
/* A REAP of large answers goes through all of their pages, and ends in the middle. */
#define REAP_MS_MAX 50
/* Old events that one REAP deletes besides: small rows in a row, and one
 * operation can leave many, so that they need a faster pace than records. */
#define EVENTS_MAX 5000

struct rows {
	struct hpx_sqlite_row *row;
	size_t count;
	size_t max;
};

static enum hpx_status rows_init(struct rows *rows, unsigned limit)
{
	rows->count = 0;
	rows->max = limit < LIMIT_MAX ? limit : LIMIT_MAX;
	rows->row = calloc(rows->max != 0 ? rows->max : 1, sizeof(*rows->row));
	return rows->row != NULL ? HPX_OK : HPX_NOMEM;
}

/* Collects first and writes later: a statement that walks an index must not
 * see the index change under it. `wanted` may be NULL: all that are readable. */
static enum hpx_status collect(struct hpx_sqlite_statement *stmt, const struct hpx_moment *now,
			       bool (*wanted)(const struct hpx_record *, const struct hpx_moment *),
			       struct rows *rows)
{
	while (rows->count < rows->max && hpx_sqlite_next(stmt)) {
		struct hpx_sqlite_row *row = &rows->row[rows->count];
		hpx_sqlite_row_read(stmt, row);
		if (row->found.readable && (wanted == NULL || wanted(&row->found.record, now)))
			rows->count++;
	}
	return hpx_sqlite_end(stmt);
}

static enum hpx_status sweep_rows(struct hpx_sqlite_store *s, const struct rows *rows,
				  struct hpx_store_op *op, bool owners_dead,
				  const struct hpx_moment *now)
{
	struct hpx_op_sweep *sweep = &op->sweep;
	enum hpx_status status = HPX_OK;
	struct hpx_change change;

	HPX_ASSERT(rows->count <= rows->max && rows->max <= LIMIT_MAX);
	for (size_t i = 0; i < rows->count && status == HPX_OK; i++) {
		const struct hpx_record *record = &rows->row[i].found.record;
		if (!hpx_change_sweep(record, owners_dead, now, &change))
			continue;
		status = hpx_sqlite_change_write(&s->writer, &rows->row[i], &change, op);
		if (status != HPX_OK)
			break;
		if (sweep->touched != NULL)
			sweep->touched[sweep->count] = (struct hpx_touched){ record->id, change.record.state };
		sweep->count++;
	}
	return status;
}

enum hpx_status hpx_sqlite_sweep(struct hpx_sqlite_store *s, struct hpx_store_op *op,
				 enum hpx_sqlite_lost lost)
{
	bool owners_dead = lost != HPX_SQLITE_RAN_OUT;
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct hpx_sqlite_statement stmt;
	struct rows rows;
	enum hpx_status status = rows_init(&rows, op->sweep.limit);

	HPX_ASSERT(op->verb == HPX_VERB_SWEEP);
	if (status != HPX_OK)
		return status;
	if (owners_dead) {
		stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_ORPHANED);
		hpx_sqlite_bind_int(&stmt, (int64_t)s->base.owner);
		hpx_sqlite_bind_int(&stmt, lost == HPX_SQLITE_REBOOTED);
		status = collect(&stmt, &now, NULL, &rows);
	} else {
		stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_LOST);
		hpx_sqlite_bind_int(&stmt, now.lease_ms);
		status = collect(&stmt, &now, hpx_record_lease_lost, &rows);
	}
	if (status == HPX_OK)
		status = sweep_rows(s, &rows, op, owners_dead, &now);
	free(rows.row);
	return status;
}

static enum hpx_status reap_events(struct hpx_sqlite_store *s, int64_t wall_ms)
{
	struct hpx_sqlite_statement stmt;

	if (s->event_retention_ms <= 0)
		return HPX_OK;
	stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_REAP_EVENTS);
	hpx_sqlite_bind_int(&stmt, wall_ms - s->event_retention_ms);
	hpx_sqlite_bind_int(&stmt, EVENTS_MAX);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status reap_expired(struct hpx_sqlite_store *s, struct rows *rows,
				    const struct hpx_moment *now, struct hpx_store_op *op)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_EXPIRED);
	enum hpx_status status;

	hpx_sqlite_bind_int(&stmt, now->wall_ms);
	status = collect(&stmt, now, hpx_record_expired, rows);
	int64_t until_ms = hpx_clock_boot_ms() + REAP_MS_MAX;
	size_t i = 0;
	while (i < rows->count && status == HPX_OK && (i == 0 || hpx_clock_boot_ms() < until_ms))
		status = hpx_sqlite_row_remove(&s->writer, rows->row[i++].seq);
	op->reap.count += (unsigned)i;
	op->reap.more = i == rows->max || i < rows->count;
	return status;
}

static enum hpx_status reap_overdue(struct hpx_sqlite_store *s, struct rows *rows,
				    const struct hpx_moment *now, struct hpx_store_op *op)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_OVERDUE);
	enum hpx_status status;

	rows->count = 0;
	hpx_sqlite_bind_int(&stmt, now->wall_ms);
	status = collect(&stmt, now, hpx_record_overdue, rows);
	for (size_t i = 0; i < rows->count && status == HPX_OK; i++)
		status = hpx_sqlite_abandon(s, &rows->row[i], now, op);
	return status;
}

enum hpx_status hpx_sqlite_reap(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct rows rows;
	enum hpx_status status;

	HPX_ASSERT(op->verb == HPX_VERB_REAP);
	if (now.hold_expiry)
		return HPX_OK;
	status = rows_init(&rows, op->reap.limit);
	if (status != HPX_OK)
		return status;
	status = reap_expired(s, &rows, &now, op);
	if (status == HPX_OK)
		status = reap_overdue(s, &rows, &now, op);
	free(rows.row);
	if (status == HPX_OK)
		status = hpx_sqlite_reap_jobs(s, now.wall_ms, op);
	return status == HPX_OK ? reap_events(s, now.wall_ms) : status;
}

/* One transaction's worth; `*ret_count` tells whether there may be more. `touched`
 * has room for LIMIT_MAX, or is NULL. */
static enum hpx_status sweep_some(struct hpx_sqlite_store *s, enum hpx_verb verb,
				  enum hpx_sqlite_lost lost, struct hpx_touched *touched,
				  unsigned *ret_count)
{
	struct hpx_op_sweep about = { .limit = LIMIT_MAX, .touched = touched };
	struct hpx_store_op op = { .verb = verb, .actor = HPX_SPAN("start") };
	enum hpx_status status;

	if (verb == HPX_VERB_SWEEP) {
		op.sweep = about;
		status = hpx_sqlite_sweep(s, &op, lost);
		*ret_count = op.sweep.count;
	} else {
		op.sweep_jobs = about;
		status = hpx_sqlite_sweep_jobs(s, &op, lost);
		*ret_count = op.sweep_jobs.count;
	}
	return status;
}

static enum hpx_status commit_some(struct hpx_sqlite_store *s, enum hpx_verb verb,
				   enum hpx_sqlite_lost lost, struct hpx_touched *touched,
				   unsigned *ret_count)
{
	enum hpx_status status = hpx_sqlite_do(&s->writer, HPX_SQL_BEGIN_WRITE);

	if (status != HPX_OK)
		return status;
	status = sweep_some(s, verb, lost, touched, ret_count);
	if (status == HPX_OK)
		status = hpx_sqlite_do(&s->writer, HPX_SQL_COMMIT);
	if (status != HPX_OK && !sqlite3_get_autocommit(s->writer.handle))
		hpx_sqlite_do(&s->writer, HPX_SQL_ROLLBACK);
	return status;
}

static void tell_lost(struct hpx_sqlite_store *s, enum hpx_verb verb,
		      const struct hpx_touched *touched, unsigned count)
{
	hpx_counter_add(&s->base.lost_at_open, count);
	for (unsigned i = 0; i < count && s->lost != NULL; i++)
		s->lost(s->lost_user, verb, &touched[i]);
}

static enum hpx_status commit_all(struct hpx_sqlite_store *s, enum hpx_verb verb,
				  enum hpx_sqlite_lost lost)
{
	struct hpx_touched *touched = calloc(LIMIT_MAX, sizeof(*touched));
	enum hpx_status status = touched != NULL ? HPX_OK : HPX_NOMEM;
	unsigned count = LIMIT_MAX;

	while (status == HPX_OK && count == LIMIT_MAX) {
		status = commit_some(s, verb, lost, touched, &count);
		if (status == HPX_OK)
			tell_lost(s, verb, touched, count);
	}
	free(touched);
	return status;
}

enum hpx_status hpx_sqlite_sweep_dead(struct hpx_sqlite_store *s, enum hpx_sqlite_lost lost)
{
	enum hpx_status status = commit_all(s, HPX_VERB_SWEEP, lost);

	/* Whoever claimed a job is as dead as its server: only one has workers. */
	return status == HPX_OK ? commit_all(s, HPX_VERB_SWEEP_JOBS, lost) : status;
}

enum hpx_status hpx_sqlite_settle_boot(struct hpx_sqlite_store *s)
{
	bool rebooted = false;
	enum hpx_status status = hpx_sqlite_clock_rebooted(s, &rebooted);
	unsigned count = rebooted ? LIMIT_MAX : 0;

	while (status == HPX_OK && count == LIMIT_MAX)
		status = sweep_some(s, HPX_VERB_SWEEP, HPX_SQLITE_REBOOTED, NULL, &count);
	/* Also where the clocks were never compared: the next boot is to be noticed. */
	if (status == HPX_OK)
		status = hpx_sqlite_clock_check(s, &s->writer, true);
	return status;
}
