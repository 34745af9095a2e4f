/* Lists and counts for people. */
#include "store/sqlite/driver.h"

/* An array in an arena that doubles; what it leaves behind dies with the
 * arena. */
struct growing {
	struct hpx_arena *arena;
	void *items;
	size_t size;
	size_t count;
	size_t room;
};

static void *grow(struct growing *list)
{
	HPX_ASSERT(list->count <= list->room && list->size > 0);
	if (list->count == list->room) {
		size_t room = list->room != 0 ? 2 * list->room : 16;
		void *items = hpx_arena_zalloc(list->arena, room, list->size);
		if (items == NULL)
			return NULL;
		if (list->count != 0)
			memcpy(items, list->items, list->count * list->size);
		list->items = items;
		list->room = room;
	}
	return (char *)list->items + list->size * list->count++;
}

static enum hpx_status add_entry(struct hpx_sqlite_statement *stmt, struct growing *list)
{
	struct hpx_entry *entry = grow(list);
	struct hpx_sqlite_row row;

	if (entry == NULL)
		return HPX_NOMEM;
	hpx_sqlite_row_read(stmt, &row);
	entry->record = row.found.record;
	entry->readable = row.found.readable;
	return hpx_sqlite_description_read(stmt, list->arena, &entry->description);
}

static enum hpx_status add_event(struct hpx_sqlite_statement *stmt, struct growing *list)
{
	struct hpx_event *event = grow(list);

	if (event == NULL)
		return HPX_NOMEM;
	event->at_ms = sqlite3_column_int64(stmt->handle, 0);
	event->attempt = (uint32_t)sqlite3_column_int64(stmt->handle, 1);
	event->what = hpx_arena_dup(list->arena, hpx_sqlite_bytes(stmt, 2));
	event->actor = hpx_arena_dup(list->arena, hpx_sqlite_bytes(stmt, 3));
	event->reason = hpx_arena_dup(list->arena, hpx_sqlite_bytes(stmt, 4));
	event->status = (uint32_t)sqlite3_column_int64(stmt->handle, 5);
	return event->what.ptr && event->actor.ptr && event->reason.ptr ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status fill(struct hpx_sqlite_statement *stmt,
			    enum hpx_status (*add)(struct hpx_sqlite_statement *, struct growing *),
			    struct growing *list)
{
	enum hpx_status status = HPX_OK;
	enum hpx_status ended;

	while (status == HPX_OK && hpx_sqlite_next(stmt))
		status = add(stmt, list);
	ended = hpx_sqlite_end(stmt);
	return ended != HPX_OK ? ended : status;
}

enum hpx_status hpx_sqlite_list(struct hpx_store_reader *reader, const struct hpx_query *query,
				struct hpx_arena *arena, struct hpx_entry **ret_entries,
				size_t *ret_count)
{
	struct growing list = { .arena = arena, .size = sizeof(struct hpx_entry) };
	struct hpx_sqlite_statement stmt;
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);

	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_statement(db, HPX_SQL_LIST);
	hpx_sqlite_bind_int(&stmt, query->state == HPX_STATE_COUNT ? -1 : (int)query->state);
	if (query->key.ptr != NULL)
		hpx_sqlite_bind_text(&stmt, query->key);
	else
		hpx_sqlite_bind_null(&stmt);
	hpx_sqlite_bind_int(&stmt, query->before_ms);
	hpx_sqlite_bind_int(&stmt, query->limit);
	status = fill(&stmt, add_entry, &list);
	if (status == HPX_OK) {
		*ret_entries = list.items;
		*ret_count = list.count;
	}
	return status;
}

enum hpx_status hpx_sqlite_events(struct hpx_store_reader *reader,
				  const struct hpx_operation_id *id, struct hpx_arena *arena,
				  struct hpx_event **ret_events, size_t *ret_count)
{
	struct growing list = { .arena = arena, .size = sizeof(struct hpx_event) };
	struct hpx_sqlite_statement stmt;
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);

	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_statement(db, HPX_SQL_EVENTS);
	hpx_sqlite_bind_blob(&stmt, id->bytes, sizeof(id->bytes));
	status = fill(&stmt, add_event, &list);
	if (status == HPX_OK) {
		*ret_events = list.items;
		*ret_count = list.count;
	}
	return status;
}

/* Counted through the partial indexes, so that no row is read: what expires is
 * failed_retryable, completed or pending, and nothing else. */
static enum hpx_status count_operations(struct hpx_sqlite_db *db, struct hpx_store_stats *stats)
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
		status = count_operations(db, &stats);
	if (status == HPX_OK)
		status = count_jobs(db, &stats);
	if (status != HPX_OK)
		return status;
	stats.free_bytes = hpx_sqlite_file_free_bytes(hpx_sqlite_of(reader->store)->path);
	*ret_stats = stats;
	return HPX_OK;
}
