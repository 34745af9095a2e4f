/* What people removed, read from the history of events, for the caches. One writer at a
 * time appends events, so their numbers are in the order of the commits: every event
 * behind the last one that was read is new, and none can appear before it. A number is
 * given again only when the whole history was cleared: then the event that was read
 * last is not there any more, and the removals since then cannot be told. */
#include "store/sqlite/driver.h"

static enum hpx_status read_newest(struct hpx_sqlite_db *db, struct hpx_sqlite_last_event *last)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_NEWEST_EVENT);
	struct hpx_sqlite_last_event newest = { .begun = true };

	if (hpx_sqlite_next(&stmt)) {
		struct hpx_span id = hpx_sqlite_bytes(&stmt, 1);
		newest.seq = sqlite3_column_int64(stmt.handle, 0);
		newest.at_ms = sqlite3_column_int64(stmt.handle, 2);
		if (id.ptr != NULL && id.len == sizeof(newest.id.bytes))
			memcpy(newest.id.bytes, id.ptr, id.len);
	}
	enum hpx_status status = hpx_sqlite_end(&stmt);
	if (status == HPX_OK)
		*last = newest;
	return status;
}

/* Whether the event last seen is still where it was. */
static enum hpx_status is_there(struct hpx_sqlite_db *db, const struct hpx_sqlite_last_event *last,
				bool *ret_there)
{
	struct hpx_sqlite_statement stmt;

	if (!last->begun || last->seq == 0) {
		*ret_there = last->begun;
		return HPX_OK;
	}
	stmt = hpx_sqlite_statement(db, HPX_SQL_SAME_EVENT);
	hpx_sqlite_bind_int(&stmt, last->seq);
	hpx_sqlite_bind_blob(&stmt, last->id.bytes, sizeof(last->id.bytes));
	hpx_sqlite_bind_int(&stmt, last->at_ms);
	*ret_there = hpx_sqlite_next(&stmt);
	return hpx_sqlite_end(&stmt);
}

static enum hpx_status read_ids(struct hpx_sqlite_db *db, int64_t after,
				struct hpx_removals *removals)
{
	struct hpx_sqlite_statement stmt = hpx_sqlite_statement(db, HPX_SQL_REMOVALS);

	hpx_sqlite_bind_int(&stmt, after);
	hpx_sqlite_bind_int(&stmt, HPX_REMOVALS_MAX + 1);
	while (hpx_sqlite_next(&stmt)) {
		struct hpx_span id = hpx_sqlite_bytes(&stmt, 0);
		if (removals->count == HPX_REMOVALS_MAX || id.ptr == NULL ||
		    id.len != sizeof(removals->ids[0].bytes)) {
			removals->all = true;
			break;
		}
		memcpy(removals->ids[removals->count++].bytes, id.ptr, id.len);
	}
	return hpx_sqlite_end(&stmt);
}

static enum hpx_status read_removals(struct hpx_sqlite_db *db, struct hpx_sqlite_last_event *last,
				     struct hpx_removals *removals)
{
	bool there = false;
	enum hpx_status status = is_there(db, last, &there);

	removals->all = !there;
	removals->count = 0;
	if (status == HPX_OK && there)
		status = read_ids(db, last->seq, removals);
	if (status == HPX_OK)
		status = read_newest(db, last);
	return status;
}

enum hpx_status hpx_sqlite_removals(struct hpx_store_reader *reader,
				    struct hpx_removals *ret_removals)
{
	struct hpx_sqlite_reader *r = (struct hpx_sqlite_reader *)reader;
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);

	if (status == HPX_OK)
		status = hpx_sqlite_do(db, HPX_SQL_BEGIN_READ);
	if (status != HPX_OK)
		return status;
	status = hpx_sqlite_end_read(db, read_removals(db, &r->last, ret_removals));
	/* It may have been read and not told. */
	if (status != HPX_OK)
		r->last.begun = false;
	return status;
}
