/* Counts and jobs for people; operation_list.c beside it has the operations. */
#include <stdio.h>
#include <stdlib.h>

#include "store/sqlite/driver.h"

static enum hpx_status read_count(struct hpx_sqlite_statement *stmt, uint64_t *count)
{
	if (hpx_sqlite_next(stmt))
		*count += (uint64_t)sqlite3_column_int64(stmt->handle, 0);
	return hpx_sqlite_end(stmt);
}

/* Rows of a generation, as they count: those under an aside row count there. A closed
 * one is not read. */
static enum hpx_status count_rows(struct hpx_sqlite_db *db, struct hpx_sqlite_generation *g,
				  uint64_t *rows)
{
	struct hpx_sqlite_statement stmt;
	uint64_t count = (uint64_t)g->operations, covered = 0;
	enum hpx_status status = HPX_OK;

	if (g->state == HPX_GENERATION_OPEN) {
		count = 0;
		stmt = hpx_sqlite_generation_statement(db, g, HPX_GENERATION_SQL_ROWS);
		status = read_count(&stmt, &count);
	}
	if (status == HPX_OK) {
		stmt = hpx_sqlite_statement(db, HPX_SQL_COPIES);
		hpx_sqlite_bind_int(&stmt, g->number);
		status = read_count(&stmt, &covered);
	}
	covered += (uint64_t)g->moved;
	*rows += count > covered ? count - covered : 0;
	return status;
}

static enum hpx_status count_under_way(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				       struct hpx_sqlite_generation *g, uint64_t *under_way)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_COUNT_LEASES);
	enum hpx_status status;

	hpx_sqlite_bind_int(&stmt, g->number);
	status = read_count(&stmt, under_way);
	if (status != HPX_OK || s->serve || !g->marked)
		return status;
	stmt = hpx_sqlite_generation_statement(db, g, HPX_GENERATION_SQL_COUNT_UNANSWERED);
	hpx_sqlite_bind_int(&stmt, g->number);
	hpx_sqlite_bind_int(&stmt, g->settled);
	return read_count(&stmt, under_way);
}

/* Plain rows are completed, or in progress: of those the server knows its own, and
 * whoever else asks counts them. */
static enum hpx_status count_plain(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				   struct hpx_store_stats *stats)
{
	uint64_t rows = 0, under_way = s->serve ? hpx_sqlite_leases_plain(&s->leases) : 0;
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < db->generation_count && status == HPX_OK; i++) {
		struct hpx_sqlite_generation *g = &db->generations[i];
		if (g->state == HPX_GENERATION_DEAD)
			continue;
		status = count_rows(db, g, &rows);
		if (status == HPX_OK)
			status = count_under_way(s, db, g, &under_way);
	}
	stats->operations[HPX_STATE_IN_PROGRESS] += under_way;
	stats->operations[HPX_STATE_COMPLETED] += rows > under_way ? rows - under_way : 0;
	return status;
}

/* Counted through the partial indexes, so that no row is read: what expires is
 * failed_retryable, completed or pending, and nothing else. */
static enum hpx_status count_aside(struct hpx_sqlite_db *db, struct hpx_store_stats *stats)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_COUNTS);

	if (hpx_sqlite_next(&stmt)) {
		uint64_t failed = (uint64_t)sqlite3_column_int64(stmt.handle, 1);
		uint64_t expiring = (uint64_t)sqlite3_column_int64(stmt.handle, 2);
		uint64_t pending = (uint64_t)sqlite3_column_int64(stmt.handle, 5);
		uint64_t others = failed + pending;
		stats->operations[HPX_STATE_IN_PROGRESS] =
			(uint64_t)sqlite3_column_int64(stmt.handle, 0);
		stats->operations[HPX_STATE_FAILED_RETRYABLE] = failed;
		stats->operations[HPX_STATE_COMPLETED] = expiring > others ? expiring - others : 0;
		stats->operations[HPX_STATE_UNKNOWN] =
			(uint64_t)sqlite3_column_int64(stmt.handle, 3);
		stats->operations[HPX_STATE_PENDING] = pending;
		stats->oldest_unknown_ms = sqlite3_column_int64(stmt.handle, 4);
	}
	return hpx_sqlite_end(&stmt);
}

static enum hpx_status count_jobs(struct hpx_sqlite_db *db, struct hpx_store_stats *stats)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_JOB_COUNTS);

	if (hpx_sqlite_next(&stmt)) {
		int64_t oldest_ms = sqlite3_column_int64(stmt.handle, 7);
		for (int state = HPX_JOB_QUEUED; state < HPX_JOB_STATE_COUNT; state++)
			stats->jobs[state] = (uint64_t)sqlite3_column_int64(stmt.handle, state - 1);
		stats->oldest_queued_ms = sqlite3_column_int64(stmt.handle, 6);
		if (oldest_ms != 0 &&
		    (stats->oldest_unknown_ms == 0 || oldest_ms < stats->oldest_unknown_ms))
			stats->oldest_unknown_ms = oldest_ms;
		stats->dead_operations = (uint64_t)sqlite3_column_int64(stmt.handle, 8);
		stats->dead_jobs = stats->jobs[HPX_JOB_DEAD] +
				   (uint64_t)sqlite3_column_int64(stmt.handle, 9);
	}
	return hpx_sqlite_end(&stmt);
}

enum hpx_status hpx_sqlite_stats(struct hpx_store_reader *reader,
				 struct hpx_store_stats *ret_stats)
{
	struct hpx_store_stats stats = { .oldest_unknown_ms = 0 };
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);

	if (status == HPX_OK)
		status = hpx_sqlite_do(db, HPX_SQL_BEGIN_READ);
	if (status != HPX_OK)
		return status;
	status = hpx_sqlite_generations_refresh(db);
	if (status == HPX_OK)
		status = count_aside(db, &stats);
	if (status == HPX_OK)
		status = count_plain(hpx_sqlite_of(reader->store), db, &stats);
	if (status == HPX_OK)
		status = count_jobs(db, &stats);
	status = hpx_sqlite_end_read(db, status);
	if (status != HPX_OK)
		return status;
	stats.free_bytes = hpx_sqlite_file_free_bytes(hpx_sqlite_of(reader->store)->path);
	*ret_stats = stats;
	return HPX_OK;
}

/* ---- jobs, and the next question ---- */

static struct hpx_sqlite_statement call_for(struct hpx_sqlite_db *db, const struct hpx_job_query *query)
{
	struct hpx_sqlite_statement stmt;

	if (query->operation != NULL) {
		stmt = hpx_sqlite_statement(db, HPX_SQL_JOBS_OF_OPERATION);
		hpx_sqlite_bind_blob(&stmt, query->operation->bytes,
				     sizeof(query->operation->bytes));
	} else if (query->provider_id.ptr != NULL) {
		stmt = hpx_sqlite_statement(db, HPX_SQL_JOBS_OF_PROVIDER);
		hpx_sqlite_bind_text(&stmt, query->provider_id);
	} else {
		stmt = hpx_sqlite_statement(db, query->number != 0 ? HPX_SQL_JOBS_NUMBERED :
								     HPX_SQL_JOBS);
		hpx_sqlite_bind_null(&stmt);
	}
	hpx_sqlite_bind_int(&stmt, query->state == HPX_JOB_STATE_COUNT ? 0 : (int)query->state);
	if (query->target.ptr != NULL)
		hpx_sqlite_bind_text(&stmt, query->target);
	else
		hpx_sqlite_bind_null(&stmt);
	hpx_sqlite_bind_int(&stmt, query->number);
	hpx_sqlite_bind_int(&stmt, query->before);
	if (query->provider_id.ptr != NULL)
		hpx_sqlite_bind_text(&stmt, query->provider_id);
	else
		hpx_sqlite_bind_null(&stmt);
	hpx_sqlite_bind_int(&stmt, query->limit);
	return stmt;
}

enum hpx_status hpx_sqlite_provided(struct hpx_store_reader *reader, struct hpx_span provider_id,
				    struct hpx_reference *references, size_t max, size_t *ret_count)
{
	struct hpx_sqlite_statement stmt;
	struct hpx_sqlite_db *db;
	size_t count = 0;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);

	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_statement(db, HPX_SQL_PROVIDED);
	hpx_sqlite_bind_text(&stmt, provider_id);
	hpx_sqlite_bind_int(&stmt, (int64_t)max);
	while (count < max && hpx_sqlite_next(&stmt)) {
		struct hpx_reference *r = &references[count];
		if (hpx_sqlite_fixed(&stmt, 0, r->id.bytes, sizeof(r->id.bytes)) &&
		    hpx_sqlite_fixed(&stmt, 1, r->mark.bytes, sizeof(r->mark.bytes)))
			count++;
	}
	status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK)
		*ret_count = count;
	return status;
}

static bool read_match(struct hpx_sqlite_statement *stmt, struct hpx_key_match *match)
{
	struct hpx_reference *r = &match->reference;
	struct hpx_span amount = hpx_sqlite_bytes(stmt, 2);

	if (!hpx_sqlite_fixed(stmt, 0, r->id.bytes, sizeof(r->id.bytes)) ||
	    !hpx_sqlite_fixed(stmt, 1, r->mark.bytes, sizeof(r->mark.bytes)) ||
	    amount.len > HPX_ROUTE_KEY_AMOUNT_MAX)
		return false;
	snprintf(match->amount, sizeof(match->amount), "%.*s", HPX_SPAN_ARG(amount));
	return true;
}

/* A row that cannot be read hides an operation. */
static enum hpx_status find_matches(struct hpx_sqlite_db *db, const struct hpx_key_query *query,
				    struct hpx_key_matches *matches)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_KEYED);
	const size_t max = sizeof(matches->of) / sizeof(matches->of[0]);
	enum hpx_status status = HPX_OK, ended;

	hpx_sqlite_bind_blob(&stmt, query->hash, sizeof(query->hash));
	hpx_sqlite_bind_int(&stmt, (int64_t)max);
	while (status == HPX_OK && matches->count < max && hpx_sqlite_next(&stmt))
		if (read_match(&stmt, &matches->of[matches->count]))
			matches->count++;
		else
			status = HPX_CORRUPT;
	ended = hpx_sqlite_end(&stmt);
	return status != HPX_OK ? status : ended;
}

enum hpx_status hpx_sqlite_keyed(struct hpx_store_reader *reader, const struct hpx_key_query *query,
				 struct hpx_key_matches *ret_matches, int64_t *ret_since_ms)
{
	struct hpx_sqlite_statement stmt;
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);

	if (status == HPX_OK)
		status = find_matches(db, query, ret_matches);
	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_statement(db, HPX_SQL_KEYED_SINCE);
	hpx_sqlite_bind_text(&stmt, query->route);
	*ret_since_ms = hpx_sqlite_next(&stmt) ? sqlite3_column_int64(stmt.handle, 0) : 0;
	return hpx_sqlite_end(&stmt);
}

static enum hpx_status find_unkeyed(struct hpx_sqlite_statement stmt, bool *ret_any)
{
	*ret_any = hpx_sqlite_next(&stmt);
	return hpx_sqlite_end(&stmt);
}

/* Of the generations only those that were opened before: after the retention there is
 * none. */
static enum hpx_status search_unkeyed(struct hpx_sqlite_db *db, const struct hpx_key_query *query,
				      int64_t since_ms, bool *ret_any)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_UNKEYED_ASIDE);
	enum hpx_status status;

	hpx_sqlite_bind_text(&stmt, query->route);
	hpx_sqlite_bind_int(&stmt, since_ms);
	status = find_unkeyed(stmt, ret_any);
	if (status == HPX_OK)
		status = hpx_sqlite_generations_refresh(db);
	for (size_t i = 0; i < db->generation_count && status == HPX_OK && !*ret_any; i++) {
		struct hpx_sqlite_generation *g = &db->generations[i];
		if (g->state == HPX_GENERATION_DEAD || (g->readable && g->opened_ms >= since_ms))
			continue;
		stmt = hpx_sqlite_generation_statement(db, g, HPX_GENERATION_SQL_UNKEYED);
		hpx_sqlite_bind_int(&stmt, g->number);
		hpx_sqlite_bind_text(&stmt, query->route);
		hpx_sqlite_bind_int(&stmt, since_ms);
		status = find_unkeyed(stmt, ret_any);
	}
	return status;
}

/* In one transaction: what becomes aside meanwhile is in one of both. */
enum hpx_status hpx_sqlite_unkeyed(struct hpx_store_reader *reader, const struct hpx_key_query *query,
				   int64_t since_ms, bool *ret_any)
{
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);

	if (status == HPX_OK)
		status = hpx_sqlite_do(db, HPX_SQL_BEGIN_READ);
	if (status != HPX_OK)
		return status;
	return hpx_sqlite_end_read(db, search_unkeyed(db, query, since_ms, ret_any));
}

enum hpx_status hpx_sqlite_jobs(struct hpx_store_reader *reader, const struct hpx_job_query *query,
				struct hpx_job_entry **ret_jobs)
{
	struct hpx_job_entry *list = NULL, **tail = &list;
	struct hpx_sqlite_statement stmt;
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);
	bool whole = true;

	if (status != HPX_OK)
		return status;
	stmt = call_for(db, query);
	while (whole && hpx_sqlite_next(&stmt)) {
		*tail = hpx_sqlite_delivery_read(&stmt);
		whole = *tail != NULL;
		if (whole)
			tail = &(*tail)->next;
	}
	status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK && !whole)
		status = HPX_NOMEM;
	if (status == HPX_OK)
		*ret_jobs = list;
	else
		hpx_job_entry_free(list);
	return status;
}

enum hpx_status hpx_sqlite_question(struct hpx_store_reader *reader,
				    const struct hpx_operation_id *id,
				    struct hpx_next_question *ret_question)
{
	struct hpx_next_question question = { .at_ms = 0 };
	struct hpx_sqlite_statement stmt;
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);

	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_statement(db, HPX_SQL_NEXT_QUESTION);
	hpx_sqlite_bind_blob(&stmt, id->bytes, sizeof(id->bytes));
	if (hpx_sqlite_next(&stmt)) {
		question.at_ms = sqlite3_column_int64(stmt.handle, 0);
		question.person = sqlite3_column_int64(stmt.handle, 1) == 1;
	}
	status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK)
		*ret_question = question;
	return status;
}
