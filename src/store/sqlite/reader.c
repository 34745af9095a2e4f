/* Readers: each its own read-only connection, which sees what is committed
 * and waits for no write. Transactions are short: a reader that lingers keeps
 * the log from being emptied. */
#include <stdlib.h>

#include "store/sqlite/driver.h"

/* Only recovery after a crash and the end of a checkpoint ever lock readers. */
#define BUSY_READER_MS 1000

enum hpx_status hpx_sqlite_reader_db(struct hpx_store_reader *reader,
				     struct hpx_sqlite_db **ret_db)
{
	struct hpx_sqlite_reader *r = (struct hpx_sqlite_reader *)reader;
	struct hpx_sqlite_store *s = hpx_sqlite_of(reader->store);
	unsigned reopened = atomic_load(&s->reopened);
	char problem[HPX_STORE_PROBLEM_SIZE];
	enum hpx_status status;

	if (r->db.handle != NULL && r->reopened == reopened) {
		*ret_db = &r->db;
		return HPX_OK;
	}
	hpx_sqlite_db_close(&r->db);
	r->last.begun = false;
	status = hpx_sqlite_connect(s->path, SQLITE_OPEN_READONLY, NULL, BUSY_READER_MS, &r->db,
				    problem);
	if (status != HPX_OK)
		return status;
	r->reopened = reopened;
	*ret_db = &r->db;
	return HPX_OK;
}

enum hpx_status hpx_sqlite_reader_open(struct hpx_store *store, struct hpx_store_reader **ret_reader)
{
	struct hpx_sqlite_reader *r = calloc(1, sizeof(*r));
	struct hpx_sqlite_db *db;
	enum hpx_status status;

	if (r == NULL)
		return HPX_NOMEM;
	r->base.store = store;
	status = hpx_sqlite_reader_db(&r->base, &db);
	if (status != HPX_OK) {
		free(r);
		return status;
	}
	*ret_reader = &r->base;
	return HPX_OK;
}

void hpx_sqlite_reader_close(struct hpx_store_reader *reader)
{
	struct hpx_sqlite_reader *r = (struct hpx_sqlite_reader *)reader;

	hpx_sqlite_db_close(&r->db);
	free(r);
}

enum hpx_status hpx_sqlite_end_read(struct hpx_sqlite_db *db, enum hpx_status status)
{
	enum hpx_status ended = HPX_OK;

	if (!sqlite3_get_autocommit(db->handle))
		ended = hpx_sqlite_do(db, HPX_SQL_COMMIT);
	return status != HPX_OK ? status : ended;
}

static enum hpx_status peek_row(struct hpx_sqlite_db *db, struct hpx_store *store,
				const struct hpx_ask *ask, const struct hpx_policy *policy,
				struct hpx_decision *decision, struct hpx_answer **replay)
{
	struct hpx_sqlite_want want = { .answer = replay };
	struct hpx_sqlite_row row;
	struct hpx_moment now;
	enum hpx_status status = hpx_sqlite_generations_refresh(db);

	if (status == HPX_OK)
		status = hpx_sqlite_row_find(hpx_sqlite_of(store), db, &ask->id, &want, &row);
	if (status != HPX_OK)
		return status;
	now = hpx_store_moment(store);
	if (!row.found.exists || !hpx_change_peek(&row.found, ask, policy, &now, decision))
		return HPX_NOT_FOUND;
	if (decision->kind != HPX_DECISION_REPLAY) {
		hpx_answer_free(*replay);
		*replay = NULL;
	}
	return HPX_OK;
}

enum hpx_status hpx_sqlite_peek(struct hpx_store_reader *reader, const struct hpx_ask *ask,
				const struct hpx_policy *policy, struct hpx_decision *ret_decision,
				struct hpx_answer **ret_replay)
{
	struct hpx_decision decision;
	struct hpx_answer *replay = NULL;
	struct hpx_sqlite_db *db;
	enum hpx_status status;

	if (!hpx_sqlite_filter_hint(hpx_sqlite_of(reader->store), &ask->id))
		return HPX_NOT_FOUND;
	status = hpx_sqlite_reader_db(reader, &db);
	if (status == HPX_OK)
		status = hpx_sqlite_do(db, HPX_SQL_BEGIN_READ);
	if (status != HPX_OK)
		return status;
	status = hpx_sqlite_end_read(db, peek_row(db, reader->store, ask, policy, &decision,
						  &replay));
	if (status != HPX_OK) {
		hpx_answer_free(replay);
		return status;
	}
	*ret_decision = decision;
	*ret_replay = replay;
	return HPX_OK;
}

static enum hpx_status find_row(struct hpx_sqlite_store *s, struct hpx_sqlite_db *db,
				const struct hpx_operation_id *id, struct hpx_arena *arena,
				struct hpx_entry *entry, struct hpx_answer **answer)
{
	struct hpx_sqlite_want want = { .arena = arena, .description = &entry->description, .answer = answer };
	struct hpx_sqlite_row row;
	enum hpx_status status = hpx_sqlite_generations_refresh(db);

	if (status == HPX_OK)
		status = hpx_sqlite_row_find(s, db, id, &want, &row);
	if (status != HPX_OK)
		return status;
	if (!row.found.exists)
		return HPX_NOT_FOUND;
	entry->record = row.found.record;
	entry->readable = row.found.readable;
	return HPX_OK;
}

enum hpx_status hpx_sqlite_find(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
				struct hpx_arena *arena, struct hpx_entry *ret_entry,
				struct hpx_answer **ret_answer)
{
	struct hpx_answer *answer = NULL;
	struct hpx_entry entry;
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);

	if (status == HPX_OK)
		status = hpx_sqlite_do(db, HPX_SQL_BEGIN_READ);
	if (status != HPX_OK)
		return status;
	status = hpx_sqlite_end_read(db, find_row(hpx_sqlite_of(reader->store), db, id, arena, &entry, &answer));
	if (status == HPX_OK)
		*ret_entry = entry;
	if (status == HPX_OK && ret_answer != NULL)
		*ret_answer = answer;
	else
		hpx_answer_free(answer);
	return status;
}

enum hpx_status hpx_sqlite_recipe(struct hpx_store_reader *reader, const struct hpx_recipe_id *id,
				  struct hpx_arena *arena, struct hpx_span *ret_text)
{
	struct hpx_sqlite_statement stmt;
	struct hpx_span text = { NULL, 0 };
	struct hpx_sqlite_db *db;
	enum hpx_status status = hpx_sqlite_reader_db(reader, &db);
	bool found;

	if (status != HPX_OK)
		return status;
	stmt = hpx_sqlite_statement(db, HPX_SQL_RECIPE);
	hpx_sqlite_bind_blob(&stmt, id->bytes, sizeof(id->bytes));
	found = hpx_sqlite_next(&stmt);
	if (found)
		text = hpx_arena_dup(arena, hpx_sqlite_bytes(&stmt, 0));
	status = hpx_sqlite_end(&stmt);
	if (status != HPX_OK || !found)
		return status != HPX_OK ? status : HPX_NOT_FOUND;
	if (text.ptr == NULL)
		return HPX_NOMEM;
	*ret_text = text;
	return HPX_OK;
}

/* ---- removals ---- */

/* What people removed, read from the history of events, for the caches. One writer at a
 * time appends events, so their numbers are in the order of the commits: every event
 * behind the last one that was read is new, and none can appear before it. A number is
 * given again only when the whole history was cleared: then the event that was read
 * last is not there any more, and the removals since then cannot be told. */

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
