/* Lost leases: of attempts that ran out of time, and of those whose process is gone.
 * Each sweep takes a bounded number; a row that cannot be read is skipped, since it
 * counts as unknown already and must not be lost.
 *
 * Whose attempts are looked at:
 *  1. the server's own, in its memory: by the server alone;
 *  2. those of applications, in hapax_lease: by whoever sweeps;
 *  3. those that a dead server left: by whoever holds the server's lock without having
 *     made them. They are plain rows without an answer in generations that are marked,
 *     and aside rows in progress. */
#include <stdlib.h>
#include <unistd.h>

#include "store/sqlite/driver.h"

/* Whatever the submitter asks for: one op must not hold the writer for long. */
#define LIMIT_MAX 1000

struct lost_rows {
	struct hpx_sqlite_row *row;
	size_t count;
	size_t max;
};

static enum hpx_status rows_init(struct lost_rows *rows, unsigned limit)
{
	rows->count = 0;
	rows->max = limit < LIMIT_MAX ? limit : LIMIT_MAX;
	rows->row = calloc(rows->max != 0 ? rows->max : 1, sizeof(*rows->row));
	return rows->row != NULL ? HPX_OK : HPX_NOMEM;
}

/* ---- one attempt ---- */

static enum hpx_status lose(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
			    bool owner_dead, const struct hpx_moment *now, struct hpx_store_op *op)
{
	struct hpx_op_sweep *sweep = &op->sweep;
	struct hpx_change change;
	enum hpx_status status;

	HPX_ASSERT(sweep->count < LIMIT_MAX);
	if (!hpx_change_sweep(&row->found.record, owner_dead, now, &change))
		return HPX_OK;
	status = hpx_sqlite_change_write(s, row, &change, op);
	if (status != HPX_OK)
		return status;
	if (sweep->touched != NULL)
		sweep->touched[sweep->count] =
			(struct hpx_touched){ row->found.record.id, change.record.state };
	sweep->count++;
	return HPX_OK;
}

/* Whether the row is still that attempt, under way. */
static enum hpx_status find_attempt(struct hpx_sqlite_store *s, const struct hpx_sqlite_due_lease *due,
				    struct hpx_sqlite_row *row, bool *ret_under_way)
{
	enum hpx_status status = hpx_sqlite_row_find(s, &s->writer, &due->id, NULL, row);

	*ret_under_way = status == HPX_OK && row->found.exists && row->found.readable &&
			 row->found.record.state == HPX_STATE_IN_PROGRESS &&
			 hpx_token_eq(&row->found.record.token, &due->token);
	return status == HPX_CORRUPT || status == HPX_UNAVAILABLE ? HPX_OK : status;
}

/* ---- leases in the server's memory ---- */

static enum hpx_status sweep_held(struct hpx_sqlite_store *s, const struct hpx_sqlite_due_lease *due,
				  const struct hpx_moment *now, struct hpx_store_op *op)
{
	struct hpx_sqlite_row row;
	bool under_way;
	enum hpx_status status = find_attempt(s, due, &row, &under_way);
	const struct hpx_record *record = &row.found.record;

	if (status != HPX_OK)
		return status;
	if (!under_way) {
		hpx_sqlite_lease_drop(&s->leases, &due->token, &due->id);
		return HPX_OK;
	}
	/* An application may have renewed it. */
	if (!hpx_record_lease_lost(record, now))
		return hpx_sqlite_lease_hold(&s->leases, record,
					     row.place == HPX_SQLITE_PLAIN ? row.generation : 0, row.number);
	return lose(s, &row, false, now, op);
}

static enum hpx_status sweep_memory(struct hpx_sqlite_store *s, const struct hpx_moment *now,
				    size_t limit, struct hpx_store_op *op)
{
	struct hpx_sqlite_due_lease *due;
	enum hpx_status status = HPX_OK;
	size_t count;

	if (!s->serve || limit == 0)
		return HPX_OK;
	due = calloc(limit, sizeof(*due));
	if (due == NULL)
		return HPX_NOMEM;
	count = hpx_sqlite_leases_due(&s->leases, now->lease_ms, due, limit);
	for (size_t i = 0; i < count && status == HPX_OK; i++)
		status = sweep_held(s, &due[i], now, op);
	free(due);
	return status;
}

/* ---- leases in the file ---- */

static enum hpx_status sweep_lease(struct hpx_sqlite_store *s, const struct hpx_sqlite_due_lease *due,
				   bool owner_dead, const struct hpx_moment *now, struct hpx_store_op *op)
{
	struct hpx_sqlite_row row;
	bool under_way;
	enum hpx_status status = find_attempt(s, due, &row, &under_way);

	if (status != HPX_OK)
		return status;
	if (under_way && (owner_dead || hpx_record_lease_lost(&row.found.record, now)))
		return lose(s, &row, owner_dead, now, op);
	/* It counts for nothing any more: the attempt has ended, or is a server's, which
	 * goes by its memory. */
	return hpx_sqlite_lease_remove(&s->writer, &due->token, &due->id);
}

/* Collects first and writes later: a statement that walks an index must not
 * see the index change under it. */
static enum hpx_status sweep_file(struct hpx_sqlite_store *s, int64_t until_ms, bool owner_dead,
				  const struct hpx_moment *now, size_t limit, struct hpx_store_op *op)
{
	struct hpx_sqlite_due_lease *due = calloc(limit + 1, sizeof(*due));
	struct hpx_sqlite_statement stmt;
	enum hpx_status status;
	size_t count = 0;

	if (due == NULL)
		return HPX_NOMEM;
	stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_LEASES_DUE);
	hpx_sqlite_bind_int(&stmt, until_ms);
	hpx_sqlite_bind_int(&stmt, (int64_t)limit);
	while (count < limit && hpx_sqlite_next(&stmt))
		if (hpx_sqlite_fixed(&stmt, 0, due[count].token.bytes, sizeof(due->token.bytes)) &&
		    hpx_sqlite_fixed(&stmt, 1, due[count].id.bytes, sizeof(due->id.bytes)))
			count++;
	status = hpx_sqlite_end(&stmt);
	for (size_t i = 0; i < count && status == HPX_OK; i++)
		status = sweep_lease(s, &due[i], owner_dead, now, op);
	free(due);
	return status;
}

/* ---- what a dead server left ---- */

static enum hpx_status collect_aside(struct hpx_sqlite_store *s, bool all, struct lost_rows *rows)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_ORPHANED);
	enum hpx_status read = HPX_OK, status;

	hpx_sqlite_bind_int(&stmt, (int64_t)s->base.owner);
	hpx_sqlite_bind_int(&stmt, all);
	hpx_sqlite_bind_int(&stmt, (int64_t)(rows->max - rows->count));
	while (read == HPX_OK && rows->count < rows->max && hpx_sqlite_next(&stmt)) {
		struct hpx_sqlite_row *row = &rows->row[rows->count];
		read = hpx_sqlite_aside_read(s, &stmt, NULL, row);
		rows->count += row->found.readable;
	}
	status = hpx_sqlite_end(&stmt);
	return status != HPX_OK ? status : read;
}

static enum hpx_status collect_plain(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g,
				     struct lost_rows *rows)
{
	struct hpx_sqlite_statement stmt =
		hpx_sqlite_generation_statement(&s->writer, g, HPX_GENERATION_SQL_UNANSWERED);
	enum hpx_status read = HPX_OK, status;

	hpx_sqlite_bind_int(&stmt, g->number);
	hpx_sqlite_bind_int(&stmt, g->settled);
	hpx_sqlite_bind_int(&stmt, (int64_t)(rows->max - rows->count));
	while (read == HPX_OK && rows->count < rows->max && hpx_sqlite_next(&stmt)) {
		struct hpx_sqlite_row *row = &rows->row[rows->count];
		read = hpx_sqlite_plain_read(s, &stmt, g, NULL, row);
		rows->count += row->found.readable && row->found.record.owner != s->base.owner;
	}
	status = hpx_sqlite_end(&stmt);
	return status != HPX_OK ? status : read;
}

/* As a look-up finds it: a damaged row may lie over it, or its index may have lost
 * it. */
static enum hpx_status lose_orphan(struct hpx_sqlite_store *s, const struct hpx_record *orphan,
				   const struct hpx_moment *now, struct hpx_store_op *op)
{
	struct hpx_sqlite_due_lease attempt = { orphan->token, orphan->id };
	struct hpx_sqlite_row row;
	bool under_way;
	enum hpx_status status = find_attempt(s, &attempt, &row, &under_way);

	return status == HPX_OK && under_way ? lose(s, &row, true, now, op) : status;
}

static enum hpx_status sweep_orphans(struct hpx_sqlite_store *s, bool all, const struct hpx_moment *now,
				     size_t limit, struct hpx_store_op *op)
{
	struct hpx_sqlite_db *db = &s->writer;
	struct lost_rows rows;
	enum hpx_status status = rows_init(&rows, (unsigned)limit);

	if (status != HPX_OK)
		return status;
	status = collect_aside(s, all, &rows);
	for (size_t i = 0; i < db->generation_count && status == HPX_OK; i++)
		if (db->generations[i].marked && db->generations[i].state != HPX_GENERATION_DEAD)
			status = collect_plain(s, &db->generations[i], &rows);
	for (size_t i = 0; i < rows.count && status == HPX_OK; i++)
		status = lose_orphan(s, &rows.row[i].found.record, now, op);
	free(rows.row);
	if (status == HPX_OK && all && op->sweep.count < limit)
		status = sweep_file(s, INT64_MAX, true, now, limit - op->sweep.count, op);
	return status;
}

/* Without a server, whoever sweeps takes its lock for that; no server can begin an
 * attempt before this transaction has ended. */
static enum hpx_status sweep_for_server(struct hpx_sqlite_store *s, const struct hpx_moment *now,
					size_t limit, struct hpx_store_op *op)
{
	enum hpx_status status;
	int fd;

	if (s->serve || s->borrowed || limit == 0)
		return HPX_OK;
	fd = hpx_sqlite_file_lock_try(s->path);
	if (fd < 0)
		return HPX_OK;
	status = sweep_orphans(s, false, now, limit, op);
	close(fd);
	return status;
}

enum hpx_status hpx_sqlite_sweep(struct hpx_sqlite_store *s, struct hpx_store_op *op,
				 enum hpx_sqlite_lost lost)
{
	struct hpx_moment now = hpx_store_moment(&s->base);
	size_t limit = op->sweep.limit < LIMIT_MAX ? op->sweep.limit : LIMIT_MAX;
	enum hpx_status status;

	HPX_ASSERT(op->verb == HPX_VERB_SWEEP);
	if (lost != HPX_SQLITE_RAN_OUT)
		return sweep_orphans(s, lost == HPX_SQLITE_REBOOTED, &now, limit, op);
	status = sweep_memory(s, &now, limit, op);
	if (status == HPX_OK && op->sweep.count < limit)
		status = sweep_file(s, now.lease_ms, false, &now, limit - op->sweep.count, op);
	if (status == HPX_OK)
		status = sweep_for_server(s, &now, limit - op->sweep.count, op);
	return status;
}

/* ---- claims of jobs ---- */

static unsigned bounded(unsigned limit)
{
	return limit < LIMIT_MAX ? limit : LIMIT_MAX;
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
	struct hpx_job_entry *jobs = NULL, **tail = &jobs;
	unsigned room = bounded(op->sweep_jobs.limit);
	enum hpx_status status = hpx_sqlite_deliveries(&s->writer, &stmt, &room, &tail);

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

/* ---- at start, and in a new boot ---- */

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
	status = hpx_sqlite_generations_refresh(&s->writer);
	if (status == HPX_OK)
		status = sweep_some(s, verb, lost, touched, ret_count);
	/* All that were under way are lost now: the next start need not look there. */
	if (status == HPX_OK && verb == HPX_VERB_SWEEP && *ret_count < LIMIT_MAX)
		status = hpx_sqlite_generations_note(s);
	if (status == HPX_OK)
		status = hpx_sqlite_do(&s->writer, HPX_SQL_COMMIT);
	if (status == HPX_OK)
		return HPX_OK;
	hpx_sqlite_generations_forget(&s->writer);
	if (!sqlite3_get_autocommit(s->writer.handle))
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
