/* REAP: what has expired goes. Aside rows by their index, a bounded number at a time; a
 * generation as a whole, once everything in it has expired:
 *
 *  1. Its rows are judged in order, a bounded number at a time. Each must be readable,
 *     answered and expired, or have an aside row over it, which holds all there is to
 *     know. One that is not keeps the generation.
 *  2. One transaction marks it dead and drops its index and filter: look-ups leave it out
 *     from then on, and every key of it is new.
 *  3. Its rows go in order, in small batches, and the tables with the last of them.
 *
 * Only the holder of the server's lock does this; hapax_tidy takes it where there is no
 * server. Besides: pending operations whose time is over, finished jobs, old events. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "store/sqlite/driver.h"

/* Whatever the submitter asks for: one op must not hold the writer for long. */
#define LIMIT_MAX 1000
/* A REAP of large answers goes through all of their pages, and ends in the middle. */
#define REAP_MS_MAX 50
#define REAP_ROWS 50
/* Rows that one REAP judges. */
#define WALK_ROWS 2000
/* A generation with a row that nobody can read is looked at again. */
#define WALK_AGAIN_MS ((int64_t)60 * 60 * 1000)
/* Old events that one REAP deletes besides: small rows in a row, and one
 * operation can leave many, so that they need a faster pace than records. */
#define EVENTS_MAX 5000

static unsigned bounded(unsigned limit)
{
	return limit < LIMIT_MAX ? limit : LIMIT_MAX;
}

/* ---- aside rows ---- */

struct expired_rows {
	struct hpx_sqlite_row *row;
	size_t count;
	size_t max;
};

/* Collects first and writes later: a statement that walks an index must not
 * see the index change under it. */
static enum hpx_status collect(struct hpx_sqlite_store *s, enum hpx_sql sql, const struct hpx_moment *now,
			       bool (*wanted)(const struct hpx_record *, const struct hpx_moment *),
			       struct expired_rows *rows)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, sql);
	enum hpx_status read = HPX_OK, status;

	rows->count = 0;
	hpx_sqlite_bind_int(&stmt, now->wall_ms);
	while (read == HPX_OK && rows->count < rows->max && hpx_sqlite_next(&stmt)) {
		struct hpx_sqlite_row *row = &rows->row[rows->count];
		read = hpx_sqlite_aside_read(s, &stmt, NULL, row);
		rows->count += row->found.readable && wanted(&row->found.record, now);
	}
	status = hpx_sqlite_end(&stmt);
	return status != HPX_OK ? status : read;
}

static enum hpx_status reap_aside(struct hpx_sqlite_store *s, struct expired_rows *rows,
				  const struct hpx_moment *now, struct hpx_store_op *op)
{
	enum hpx_status status = collect(s, HPX_SQL_EXPIRED, now, hpx_record_expired, rows);
	int64_t until_ms = hpx_clock_boot_ms() + REAP_MS_MAX;
	size_t i = 0;

	while (i < rows->count && status == HPX_OK && (i == 0 || hpx_clock_boot_ms() < until_ms))
		status = hpx_sqlite_row_remove(s, &rows->row[i++]);
	op->reap.count += (unsigned)i;
	op->reap.more = i == rows->max || i < rows->count;
	return status;
}

static enum hpx_status abandon(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
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

static enum hpx_status reap_overdue(struct hpx_sqlite_store *s, struct expired_rows *rows,
				    const struct hpx_moment *now, struct hpx_store_op *op)
{
	enum hpx_status status = collect(s, HPX_SQL_OVERDUE, now, hpx_record_overdue, rows);

	for (size_t i = 0; i < rows->count && status == HPX_OK; i++)
		status = abandon(s, &rows->row[i], now, op);
	return status;
}

/* ---- 1. the rows of a generation, judged ---- */

static enum hpx_status has_aside(struct hpx_sqlite_db *db, int64_t generation, int64_t number,
				 bool *ret_has)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_HAS_COPY);

	hpx_sqlite_bind_int(&stmt, generation);
	hpx_sqlite_bind_int(&stmt, number);
	*ret_has = hpx_sqlite_next(&stmt);
	return hpx_sqlite_end(&stmt);
}

/* Whether the walk may go on behind this row; if not, it waits. */
static enum hpx_status judge_row(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g,
				 const struct hpx_sqlite_row *row, const struct hpx_moment *now,
				 bool *ret_passes)
{
	const struct hpx_record *record = &row->found.record;
	bool whole = row->found.readable && row->answered;
	enum hpx_status status;

	*ret_passes = whole && hpx_record_expired(record, now);
	if (*ret_passes)
		return HPX_OK;
	status = has_aside(&s->writer, row->generation, row->number, ret_passes);
	if (!*ret_passes)
		g->walk_at_ms = whole ? record->expires_ms : now->wall_ms + WALK_AGAIN_MS;
	return status;
}

/* From where the last one ended; `*ret_end`: all have passed. */
static enum hpx_status walk(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g,
			    const struct hpx_moment *now, bool *ret_end)
{
	struct hpx_sqlite_statement stmt =
		hpx_sqlite_generation_statement(&s->writer, g, HPX_GENERATION_SQL_WALK);
	enum hpx_status read = HPX_OK, status;
	unsigned count = 0;
	bool passes = true;

	HPX_ASSERT(g->state == HPX_GENERATION_CLOSED && !g->marked);
	g->walk_at_ms = 0;
	hpx_sqlite_bind_int(&stmt, g->walked);
	hpx_sqlite_bind_int(&stmt, WALK_ROWS);
	while (read == HPX_OK && passes && hpx_sqlite_next(&stmt)) {
		struct hpx_sqlite_row row;
		read = hpx_sqlite_plain_read(s, &stmt, g, NULL, &row);
		if (read == HPX_OK)
			read = judge_row(s, g, &row, now, &passes);
		if (read == HPX_OK && passes)
			g->walked = row.number;
		count++;
	}
	status = hpx_sqlite_end(&stmt);
	*ret_end = passes && count < WALK_ROWS;
	return status != HPX_OK ? status : read;
}

/* ---- 2. marked dead ---- */

static enum hpx_status exec(struct hpx_sqlite_db *db, const char *sql, int64_t number)
{
	char text[256];
	bool whole = hpx_sqlite_number_sql(sql, number, text, sizeof(text));

	HPX_ASSERT(whole);
	return hpx_sqlite_status(sqlite3_exec(db->handle, text, NULL, NULL, NULL));
}

/* None of them may be in the way of a DROP. */
static void finalize_statements(struct hpx_sqlite_generation *g)
{
	for (int i = 0; i < HPX_GENERATION_SQL_COUNT; i++) {
		sqlite3_finalize(g->statements[i]);
		g->statements[i] = NULL;
	}
}

static enum hpx_status by_number(struct hpx_sqlite_db *db, enum hpx_sql sql, int64_t number)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, sql);

	hpx_sqlite_bind_int(&stmt, number);
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status mark_dead(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g)
{
	enum hpx_status status;

	HPX_ASSERT(g->state == HPX_GENERATION_CLOSED && !g->marked);
	g->state = HPX_GENERATION_DEAD;
	status = hpx_sqlite_generation_put(&s->writer, g);
	if (status == HPX_OK)
		status = by_number(&s->writer, HPX_SQL_REMOVE_FILTER, g->number);
	if (status == HPX_OK)
		status = by_number(&s->writer, HPX_SQL_REMOVE_FILTER_PARTS, g->number);
	finalize_statements(g);
	if (status == HPX_OK)
		status = exec(&s->writer, "DROP INDEX hapax_id_#", g->number);
	HPX_CRASH_POINT(generation_dead);
	return status;
}

/* ---- 3. removed ---- */

static enum hpx_status delete_rows(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g,
				   enum hpx_generation_sql sql, unsigned limit, unsigned *ret_count)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_generation_statement(&s->writer, g, sql);
	enum hpx_status status;

	hpx_sqlite_bind_int(&stmt, limit);
	status = hpx_sqlite_finish(&stmt);
	*ret_count = status == HPX_OK ? (unsigned)sqlite3_changes64(s->writer.handle) : 0;
	return status;
}

/* The list in memory loses it too. */
static enum hpx_status drop_tables(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g)
{
	struct hpx_sqlite_db *db = &s->writer;
	int64_t number = g->number;
	size_t at = (size_t)(g - db->generations);
	enum hpx_status status;

	finalize_statements(g);
	status = exec(db, "DROP TABLE hapax_operation_#; DROP TABLE hapax_answer_#", number);
	if (status == HPX_OK)
		status = hpx_sqlite_generation_put(db, g);
	if (status == HPX_OK)
		status = by_number(db, HPX_SQL_REMOVE_GENERATION, number);
	if (status == HPX_OK) {
		memmove(g, g + 1, (db->generation_count - at - 1) * sizeof(*g));
		db->generation_count--;
	}
	HPX_CRASH_POINT(generation_dropped);
	return status;
}

static enum hpx_status reap_dead(struct hpx_sqlite_store *s, struct hpx_sqlite_generation *g,
				 unsigned limit, struct hpx_store_op *op)
{
	int64_t until_ms = hpx_clock_boot_ms() + REAP_MS_MAX;
	unsigned rows = 1, answers = 1, done = 0;
	enum hpx_status status = HPX_OK;

	while (status == HPX_OK && rows + answers > 0 && done < limit &&
	       (done == 0 || hpx_clock_boot_ms() < until_ms)) {
		unsigned some = limit - done < REAP_ROWS ? limit - done : REAP_ROWS;
		status = delete_rows(s, g, HPX_GENERATION_SQL_REAP, some, &rows);
		if (status == HPX_OK)
			status = delete_rows(s, g, HPX_GENERATION_SQL_REAP_ANSWERS, some, &answers);
		done += rows;
		op->reap.count += rows;
	}
	HPX_CRASH_POINT(generation_reaped);
	op->reap.more = true;
	return status == HPX_OK && rows + answers == 0 ? drop_tables(s, g) : status;
}

/* ---- which generation ---- */

static bool is_due(const struct hpx_sqlite_generation *g, int64_t wall_ms)
{
	if (g->state == HPX_GENERATION_DEAD)
		return true;
	if (g->state != HPX_GENERATION_CLOSED || g->marked || !g->readable || g->expires_ms > wall_ms)
		return false;
	return g->walk_at_ms <= wall_ms;
}

/* The oldest that is due. */
static struct hpx_sqlite_generation *find_due(struct hpx_sqlite_store *s, int64_t wall_ms)
{
	for (size_t i = s->writer.generation_count; i > 0; i--)
		if (is_due(&s->writer.generations[i - 1], wall_ms))
			return &s->writer.generations[i - 1];
	return NULL;
}

static enum hpx_status reap_generation(struct hpx_sqlite_store *s, const struct hpx_moment *now,
				       unsigned limit, struct hpx_store_op *op)
{
	struct hpx_sqlite_generation *g = find_due(s, now->wall_ms);
	enum hpx_status status = HPX_OK;
	bool end = true;

	if (g == NULL || limit == 0)
		return HPX_OK;
	if (g->state == HPX_GENERATION_CLOSED) {
		status = walk(s, g, now, &end);
		if (status == HPX_OK && end)
			status = mark_dead(s, g);
		op->reap.more |= !end && g->walk_at_ms == 0;
	}
	if (status == HPX_OK && end)
		status = reap_dead(s, g, limit, op);
	return status;
}

static enum hpx_status tend_generations(struct hpx_sqlite_store *s, const struct hpx_moment *now,
					struct hpx_store_op *op)
{
	unsigned limit = bounded(op->reap.limit);
	enum hpx_status status = hpx_sqlite_generations_close_due(s);

	if (status == HPX_OK)
		status = hpx_sqlite_generations_settle(s);
	if (status == HPX_OK && !now->hold_expiry)
		status = reap_generation(s, now, limit > op->reap.count ? limit - op->reap.count : 0, op);
	return status;
}

static enum hpx_status tend_with_lock(struct hpx_sqlite_store *s, const struct hpx_moment *now,
				      struct hpx_store_op *op)
{
	enum hpx_status status;
	int fd;

	if (s->serve)
		return tend_generations(s, now, op);
	fd = hpx_sqlite_file_lock_try(s->path);
	if (fd < 0)
		return HPX_OK;
	status = tend_generations(s, now, op);
	close(fd);
	return status;
}

/* ---- the rest ---- */

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

static enum hpx_status reap_jobs(struct hpx_sqlite_store *s, int64_t wall_ms,
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

enum hpx_status hpx_sqlite_reap(struct hpx_sqlite_store *s, struct hpx_store_op *op)
{
	struct hpx_moment now = hpx_store_moment(&s->base);
	struct expired_rows rows = { .max = bounded(op->reap.limit) };
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(op->verb == HPX_VERB_REAP && !s->borrowed);
	rows.row = calloc(rows.max + 1, sizeof(*rows.row));
	if (rows.row == NULL)
		return HPX_NOMEM;
	if (!now.hold_expiry)
		status = reap_aside(s, &rows, &now, op);
	if (status == HPX_OK)
		status = tend_with_lock(s, &now, op);
	if (status == HPX_OK && !now.hold_expiry)
		status = reap_overdue(s, &rows, &now, op);
	free(rows.row);
	if (status == HPX_OK && !now.hold_expiry)
		status = reap_jobs(s, now.wall_ms, op);
	return status == HPX_OK && !now.hold_expiry ? reap_events(s, now.wall_ms) : status;
}
