/* What people removed, from the history. One writer at a time appends to it, so
 * the order of its numbers is the order of the commits: whatever lies behind the
 * last event that was seen is new, and nothing can turn up before it. A number is
 * given again only when the whole history was cleared: then the event
 * last seen is not there any more, and which ones came since cannot be told. */
#include "store/sqlite/driver.h"

static enum hpx_status read_newest(struct hpx_sqlite_db *db, struct hpx_sqlite_heard *heard)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, HPX_SQL_NEWEST_EVENT);
	struct hpx_sqlite_heard newest = { .begun = true };

	if (hpx_sqlite_next(&call)) {
		struct hpx_span id = hpx_sqlite_bytes(&call, 1);
		newest.seq = sqlite3_column_int64(call.stmt, 0);
		newest.at_ms = sqlite3_column_int64(call.stmt, 2);
		if (id.ptr != NULL && id.len == sizeof(newest.id.bytes))
			memcpy(newest.id.bytes, id.ptr, id.len);
	}
	enum hpx_status status = hpx_sqlite_end(&call);
	if (status == HPX_OK)
		*heard = newest;
	return status;
}

/* Whether the event last seen is still where it was. */
static enum hpx_status is_there(struct hpx_sqlite_db *db, const struct hpx_sqlite_heard *heard,
				bool *ret_there)
{
	struct hpx_sqlite_call call;

	if (!heard->begun || heard->seq == 0) {
		*ret_there = heard->begun;
		return HPX_OK;
	}
	call = hpx_sqlite_call(db, HPX_SQL_SAME_EVENT);
	hpx_sqlite_bind_int(&call, heard->seq);
	hpx_sqlite_bind_blob(&call, heard->id.bytes, sizeof(heard->id.bytes));
	hpx_sqlite_bind_int(&call, heard->at_ms);
	*ret_there = hpx_sqlite_next(&call);
	return hpx_sqlite_end(&call);
}

static enum hpx_status read_ids(struct hpx_sqlite_db *db, int64_t after,
				struct hpx_removals *removals)
{
	struct hpx_sqlite_call call = hpx_sqlite_call(db, HPX_SQL_REMOVALS);

	hpx_sqlite_bind_int(&call, after);
	hpx_sqlite_bind_int(&call, HPX_REMOVALS_MAX + 1);
	while (hpx_sqlite_next(&call)) {
		struct hpx_span id = hpx_sqlite_bytes(&call, 0);
		if (removals->count == HPX_REMOVALS_MAX || id.ptr == NULL ||
		    id.len != sizeof(removals->ids[0].bytes)) {
			removals->all = true;
			break;
		}
		memcpy(removals->ids[removals->count++].bytes, id.ptr, id.len);
	}
	return hpx_sqlite_end(&call);
}

static enum hpx_status read_removals(struct hpx_sqlite_db *db, struct hpx_sqlite_heard *heard,
				     struct hpx_removals *removals)
{
	bool there = false;
	enum hpx_status status = is_there(db, heard, &there);

	removals->all = !there;
	removals->count = 0;
	if (status == HPX_OK && there)
		status = read_ids(db, heard->seq, removals);
	if (status == HPX_OK)
		status = read_newest(db, heard);
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
	status = hpx_sqlite_end_read(db, read_removals(db, &r->heard, ret_removals));
	/* It may have been read and not told. */
	if (status != HPX_OK)
		r->heard.begun = false;
	return status;
}
