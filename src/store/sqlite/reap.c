/* REAP: what has expired goes. Aside rows by their index, a bounded number at a time; a
 * generation as a whole, once everything in it has expired:
 *
 *  1. Its rows are judged in order, a bounded number at a time. Each must be readable,
 *     answered and expired, or have an aside row over it, which holds all there is to
 *     know. One that is not keeps the generation. What a row leaves behind is written
 *     now: a tombstone, which is the row once more without its answer, in the open
 *     generation of the tombstone's time; or else an entry of the history. With it, in
 *     the same transaction, `moved` says up to which row this was done: those rows count
 *     for nothing any more, so that a key is known by one row at any time, and an
 *     operation told by one entry. A tombstone passes when its own time is over.
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

/* What a row leaves behind when it goes. */
enum leaves { NOTHING,
	      TOMBSTONE,
	      ENTRY };

static enum leaves leaves_of(const struct hpx_sqlite_row *row, int64_t history_ms, int64_t wall_ms)
{
	if (!row->tombstone && hpx_record_end_ms(&row->found.record) > wall_ms)
		return TOMBSTONE;
	return history_ms > 0 ? ENTRY : NOTHING;
}

static enum hpx_status reap_row(struct hpx_sqlite_store *s, const struct hpx_sqlite_row *row,
				int64_t history_ms, int64_t wall_ms)
{
	enum leaves leaves = leaves_of(row, history_ms, wall_ms);
	enum hpx_status status = HPX_OK;

	if (leaves == TOMBSTONE)
		return hpx_sqlite_aside_bury(s, row);
	if (leaves == ENTRY)
		status = hpx_sqlite_history_keep(s, row, history_ms);
	return status == HPX_OK ? hpx_sqlite_row_remove(s, row) : status;
}

static enum hpx_status reap_aside(struct hpx_sqlite_store *s, struct expired_rows *rows,
				  int64_t history_ms, const struct hpx_moment *now,
				  struct hpx_store_op *op)
{
	enum hpx_status status = collect(s, HPX_SQL_EXPIRED, now, hpx_record_expired, rows);
	int64_t until_ms = hpx_clock_boot_ms() + REAP_MS_MAX;
	size_t i = 0;

	while (i < rows->count && status == HPX_OK && (i == 0 || hpx_clock_boot_ms() < until_ms))
		status = reap_row(s, &rows->row[i++], history_ms, now->wall_ms);
	op->reap.count += (unsigned)i;
	op->reap.more = i == rows->max || i < rows->count;
	if (i > 0)
		HPX_CRASH_POINT(aside_reaped);
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

/* ---- 1. the rows of a generation, judged, and what they leave behind ---- */

struct walk {
	struct hpx_sqlite_store *s;
	const struct hpx_moment *now;
	int64_t history_ms;
	struct expired_rows rows; /* those that leave something behind */
	bool full;                /* of them */
	struct hpx_sqlite_copy copy;
};

/* A tombstone goes when its own time is over, everything else when it has expired. */
static bool is_over(const struct hpx_sqlite_row *row, const struct hpx_moment *now)
{
	const struct hpx_record *record = &row->found.record;

	return row->found.readable && row->answered && hpx_record_expired(record, now) &&
	       (!row->tombstone || hpx_record_end_ms(record) <= now->wall_ms);
}

static int64_t over_at_ms(const struct hpx_sqlite_row *row, const struct hpx_moment *now)
{
	if (!row->found.readable || !row->answered)
		return now->wall_ms + WALK_AGAIN_MS;
	return row->tombstone ? hpx_record_end_ms(&row->found.record) : row->found.record.expires_ms;
}

/* Whether the walk may go on behind this row; if not, it waits. The row under an aside
 * row leaves nothing: the aside row will. */
static enum hpx_status judge_row(struct walk *walk, struct hpx_sqlite_generation *g,
				 const struct hpx_sqlite_row *row, bool *ret_passes)
{
	bool over = is_over(row, walk->now), covered = false;
	bool leaves = over && leaves_of(row, walk->history_ms, walk->now->wall_ms) != NOTHING;
	enum hpx_status status = HPX_OK;

	if (!over || leaves)
		status = hpx_sqlite_row_covered(&walk->s->writer, row->generation, row->number, &covered);
	*ret_passes = over || covered;
	if (!*ret_passes)
		g->walk_at_ms = over_at_ms(row, walk->now);
	if (status != HPX_OK || covered || !leaves)
		return status;
	walk->full = walk->rows.count == walk->rows.max;
	if (walk->full)
		*ret_passes = false;
	else
		walk->rows.row[walk->rows.count++] = *row;
	return HPX_OK;
}

/* From where the last one ended; `*ret_end`: all have passed. Collects first, since what
 * is left behind may open a generation. */
static enum hpx_status walk_rows(struct walk *walk, struct hpx_sqlite_generation *g, bool *ret_end)
{
	struct hpx_sqlite_statement stmt =
		hpx_sqlite_generation_statement(&walk->s->writer, g, HPX_GENERATION_SQL_WALK);
	enum hpx_status read = HPX_OK, status;
	unsigned count = 0;
	bool passes = true;

	HPX_ASSERT(g->state == HPX_GENERATION_CLOSED && !g->marked);
	g->walk_at_ms = 0;
	hpx_sqlite_bind_int(&stmt, g->walked > g->moved ? g->walked : g->moved);
	hpx_sqlite_bind_int(&stmt, WALK_ROWS);
	while (read == HPX_OK && passes && hpx_sqlite_next(&stmt)) {
		struct hpx_sqlite_row row;
		read = hpx_sqlite_plain_read(walk->s, &stmt, g, NULL, &row);
		if (read == HPX_OK)
			read = judge_row(walk, g, &row, &passes);
		if (read == HPX_OK && passes)
			g->walked = row.number;
		count++;
	}
	status = hpx_sqlite_end(&stmt);
	*ret_end = passes && count < WALK_ROWS;
	return status != HPX_OK ? status : read;
}

/* The operation's row as it is, and an answer that says no more than that it happened. */
static enum hpx_status write_tombstone(struct walk *walk, const struct hpx_sqlite_row *row)
{
	const struct hpx_record *record = &row->found.record;
	struct hpx_sqlite_store *s = walk->s;
	struct hpx_record buried = *record;
	struct hpx_sqlite_generation *to = NULL;
	struct hpx_sqlite_statement stmt;
	int64_t number = 0;
	enum hpx_status status =
		hpx_sqlite_generation_for(s, hpx_record_end_ms(record) - walk->now->wall_ms, &to);

	if (status == HPX_OK && record->created_ms < to->oldest_ms) {
		to->oldest_ms = record->created_ms;
		status = hpx_sqlite_generation_put(&s->writer, to);
	}
	if (status == HPX_OK)
		status = hpx_sqlite_plain_copy(s, &walk->copy, row, to, &number);
	/* It is there already: then as what it is. */
	if (status == HPX_NOT_FOUND)
		return HPX_OK;
	if (status == HPX_OK)
		status = hpx_sqlite_route_key_move(&s->writer, row, to->number, number);
	if (status != HPX_OK)
		return status;
	buried.kept = false;
	stmt = hpx_sqlite_generation_statement(&s->writer, to, HPX_GENERATION_SQL_BURY);
	hpx_sqlite_bind_int(&stmt, number);
	hpx_sqlite_bind_int(&stmt, record->changed_ms);
	hpx_sqlite_bind_int(&stmt, record->expires_ms);
	hpx_sqlite_bind_int(&stmt, record->status);
	hpx_sqlite_bind_int(&stmt, hpx_sqlite_answer_crc(&buried, true, HPX_SPAN(""), HPX_SPAN("")));
	return hpx_sqlite_finish(&stmt);
}

static enum hpx_status write_left(struct walk *walk, const struct hpx_sqlite_row *row)
{
	if (leaves_of(row, walk->history_ms, walk->now->wall_ms) == TOMBSTONE)
		return write_tombstone(walk, row);
	return hpx_sqlite_history_keep(walk->s, row, walk->history_ms);
}

/* A generation that is opened for tombstones moves the list: the one that is walked is
 * looked for again. */
static enum hpx_status leave_behind(struct walk *walk, int64_t generation)
{
	struct hpx_sqlite_generation *g;
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < walk->rows.count && status == HPX_OK; i++)
		status = write_left(walk, &walk->rows.row[i]);
	hpx_sqlite_copy_done(&walk->copy);
	if (status != HPX_OK || walk->rows.count == 0)
		return status;
	g = hpx_sqlite_generation_find(&walk->s->writer, generation);
	HPX_ASSERT(g != NULL && g->walked > g->moved);
	g->moved = g->walked;
	status = hpx_sqlite_generation_put(&walk->s->writer, g);
	HPX_CRASH_POINT(expired_moved);
	return status;
}

/* Whether the generation has passed to its end. */
static enum hpx_status walk_on(struct walk *walk, int64_t generation, bool *ret_end)
{
	struct hpx_sqlite_generation *g = hpx_sqlite_generation_find(&walk->s->writer, generation);
	enum hpx_status status = walk_rows(walk, g, ret_end);

	return status == HPX_OK ? leave_behind(walk, generation) : status;
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

static enum hpx_status delete_route_keys(struct hpx_sqlite_store *s, int64_t generation,
					 unsigned limit, unsigned *ret_count)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_REAP_ROUTE_KEYS);
	enum hpx_status status;

	hpx_sqlite_bind_int(&stmt, generation);
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
	unsigned rows = 1, answers = 1, keys = 1, done = 0;
	enum hpx_status status = HPX_OK;

	while (status == HPX_OK && rows + answers + keys > 0 && done < limit &&
	       (done == 0 || hpx_clock_boot_ms() < until_ms)) {
		unsigned some = limit - done < REAP_ROWS ? limit - done : REAP_ROWS;
		status = delete_rows(s, g, HPX_GENERATION_SQL_REAP, some, &rows);
		if (status == HPX_OK)
			status = delete_rows(s, g, HPX_GENERATION_SQL_REAP_ANSWERS, some, &answers);
		if (status == HPX_OK)
			status = delete_route_keys(s, g->number, some, &keys);
		done += rows;
		op->reap.count += rows;
	}
	HPX_CRASH_POINT(generation_reaped);
	op->reap.more = true;
	return status == HPX_OK && rows + answers + keys == 0 ? drop_tables(s, g) : status;
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

static enum hpx_status reap_generation(struct walk *walk, unsigned limit, struct hpx_store_op *op)
{
	struct hpx_sqlite_store *s = walk->s;
	struct hpx_sqlite_generation *g = find_due(s, walk->now->wall_ms);
	enum hpx_status status = HPX_OK;
	bool end = true;

	if (g == NULL || limit == 0)
		return HPX_OK;
	walk->rows.count = 0;
	if (walk->rows.max > limit)
		walk->rows.max = limit;
	if (g->state == HPX_GENERATION_CLOSED) {
		int64_t number = g->number;
		status = walk_on(walk, number, &end);
		g = hpx_sqlite_generation_find(&s->writer, number);
		if (status == HPX_OK && end)
			status = mark_dead(s, g);
		op->reap.more |= !end && g->walk_at_ms == 0;
	}
	if (status == HPX_OK && end)
		status = reap_dead(s, g, limit, op);
	return status;
}

static enum hpx_status tend_generations(struct walk *walk, struct hpx_store_op *op)
{
	unsigned limit = bounded(op->reap.limit);
	enum hpx_status status = hpx_sqlite_generations_close_due(walk->s);

	if (status == HPX_OK)
		status = hpx_sqlite_generations_settle(walk->s);
	if (status == HPX_OK && !walk->now->hold_expiry)
		status = reap_generation(walk, limit > op->reap.count ? limit - op->reap.count : 0, op);
	return status;
}

static enum hpx_status tend_with_lock(struct walk *walk, struct hpx_store_op *op)
{
	enum hpx_status status;
	int fd;

	if (walk->s->serve)
		return tend_generations(walk, op);
	fd = hpx_sqlite_file_lock_try(walk->s->path);
	if (fd < 0)
		return HPX_OK;
	status = tend_generations(walk, op);
	close(fd);
	return status;
}

/* ---- the rest ---- */

static enum hpx_status remove_finished(struct hpx_sqlite_store *s, const struct hpx_delivery *job)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_REMOVE_RECONCILE);
	enum hpx_status status;

	hpx_sqlite_bind_blob(&stmt, job->operation.bytes, sizeof(job->operation.bytes));
	hpx_sqlite_bind_int(&stmt, job->number);
	status = hpx_sqlite_finish(&stmt);
	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_REMOVE_UNREADABLE);
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
	struct hpx_job_entry *jobs = NULL, **tail = &jobs;
	unsigned room = bounded(op->reap.limit);
	struct hpx_sqlite_statement stmt;
	enum hpx_status status;

	HPX_ASSERT(op->verb == HPX_VERB_REAP);
	if (s->job_retention_ms <= 0 || room == 0)
		return HPX_OK;
	stmt = hpx_sqlite_statement(&s->writer, HPX_SQL_JOBS_FINISHED);
	hpx_sqlite_bind_int(&stmt, wall_ms - s->job_retention_ms);
	status = hpx_sqlite_deliveries(&s->writer, &stmt, &room, &tail);
	for (const struct hpx_job_entry *job = jobs; job != NULL && status == HPX_OK; job = job->next) {
		status = remove_finished(s, &job->delivery);
		op->reap.count++;
	}
	hpx_job_entry_free(jobs);
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
	struct walk walk = { .s = s, .now = &now };
	enum hpx_status status = hpx_sqlite_history_rule(&s->writer, &walk.history_ms);

	HPX_ASSERT(op->verb == HPX_VERB_REAP && !s->borrowed);
	if (status != HPX_OK)
		return status;
	rows.row = calloc(rows.max + 1, sizeof(*rows.row));
	if (rows.row == NULL)
		return HPX_NOMEM;
	if (!now.hold_expiry)
		status = reap_aside(s, &rows, walk.history_ms, &now, op);
	walk.rows = rows;
	if (status == HPX_OK)
		status = tend_with_lock(&walk, op);
	if (status == HPX_OK && !now.hold_expiry)
		status = reap_overdue(s, &rows, &now, op);
	free(rows.row);
	if (status == HPX_OK && !now.hold_expiry)
		status = reap_jobs(s, now.wall_ms, op);
	if (status == HPX_OK && !now.hold_expiry)
		status = hpx_sqlite_history_reap(s, now.wall_ms);
	return status == HPX_OK && !now.hold_expiry ? reap_events(s, now.wall_ms) : status;
}
