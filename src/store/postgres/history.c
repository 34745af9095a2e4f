/* What is left of finished operations, for people: hapax.history, where the reaper and
 * whoever uses an expired key again leave an entry of the operation that goes, in the
 * transaction in which it goes. An operation that is there is its own entry. How long
 * entries stay is in the database, so that whoever reaps, and hapax.begin, know it. */
#include "store/history_list.h"
#include "store/postgres/driver.h"

#define TIME_MAX (INT64_MAX / 4)

enum hpx_status hpx_pg_history_settle(struct hpx_pg_store *s, char *problem)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&s->writer, problem);
	struct hpx_pg_params params = { .count = 0 };

	hpx_pg_add_int8(&params, s->history_retention_ms);
	hpx_pg_send(&pipe, HPX_PG_PUT_HISTORY_RULE, &params);
	PQclear(hpx_pg_take(&pipe));
	return hpx_pg_end(&pipe);
}

/* The columns of HPX_PG_HISTORY. */
enum {
	COLUMN_MARK = 2,
	COLUMN_CREATED,
	COLUMN_CHANGED,
	COLUMN_EXPIRES,
	COLUMN_ATTEMPT,
	COLUMN_STATUS,
	COLUMN_STATE,
	COLUMN_TEXTS,
};

static bool read_entry(const PGresult *result, int row, struct hpx_history_entry *entry)
{
	struct hpx_description *d = &entry->description;
	struct hpx_span *const texts[] = { &d->tenant, &d->key, &d->method, &d->path, &d->route };
	int64_t attempt = 0, status = 0, state = 0;
	bool ok;

	*entry = (struct hpx_history_entry){ .expires_ms = 0 };
	ok = hpx_pg_id_read(result, row, &entry->id);
	ok &= hpx_pg_fixed(result, row, COLUMN_MARK, entry->mark.bytes, sizeof(entry->mark.bytes));
	ok &= hpx_pg_int(result, row, COLUMN_CREATED, 0, TIME_MAX, &entry->created_ms);
	ok &= hpx_pg_int(result, row, COLUMN_CHANGED, 0, TIME_MAX, &entry->changed_ms);
	ok &= hpx_pg_int(result, row, COLUMN_EXPIRES, 0, TIME_MAX, &entry->expires_ms);
	ok &= hpx_pg_int(result, row, COLUMN_ATTEMPT, 1, UINT32_MAX, &attempt);
	ok &= hpx_pg_int(result, row, COLUMN_STATUS, 0, 999, &status);
	ok &= hpx_pg_int(result, row, COLUMN_STATE, HPX_STATE_IN_PROGRESS, HPX_STATE_COUNT - 1, &state);
	entry->attempt = (uint32_t)attempt;
	entry->status = (uint32_t)status;
	entry->state = (enum hpx_state)state;
	d->scope = HPX_SPAN("");
	for (int i = 0; i < (int)(sizeof(texts) / sizeof(texts[0])); i++) {
		*texts[i] = hpx_pg_bytes(result, row, COLUMN_TEXTS + i);
		ok &= texts[i]->ptr != NULL;
	}
	return ok;
}

/* The rows of operations come first, then the entries, newest first. */
static enum hpx_status take_rows(const PGresult *result, struct hpx_history_list *list)
{
	struct hpx_history_entry entry;
	enum hpx_status status = HPX_OK;

	for (int row = 1; row < PQntuples(result) && status == HPX_OK; row++) {
		if (!read_entry(result, row, &entry))
			continue;
		if (entry.expires_ms == 0 && !hpx_history_reads_on(list))
			break;
		status = hpx_history_take(list, &entry);
	}
	return status;
}

enum hpx_status hpx_pg_history(struct hpx_store_reader *reader, const struct hpx_history_query *query,
			       struct hpx_arena *arena, struct hpx_history *ret_history)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_history_list list;
	PGresult *result = NULL;
	int64_t due = 0;
	enum hpx_status status;

	hpx_history_list_init(&list, query, arena);
	hpx_pg_add_int8(&params, query->since_ms);
	hpx_pg_add_int8(&params, query->until_ms);
	hpx_pg_add_int8(&params, (int64_t)query->look_max);
	status = hpx_pg_ask(reader, HPX_PG_HISTORY, &params, &result);
	if (status != HPX_OK)
		return status;
	if (PQntuples(result) < 1 ||
	    !hpx_pg_int(result, 0, COLUMN_CREATED, 0, TIME_MAX, &list.found.retention_ms) ||
	    !hpx_pg_int(result, 0, COLUMN_CHANGED, 0, INT64_MAX, &due))
		status = HPX_CORRUPT;
	list.found.cut = (size_t)due >= query->look_max;
	if (status == HPX_OK)
		status = take_rows(result, &list);
	PQclear(result);
	if (status == HPX_OK)
		hpx_history_list_end(&list, ret_history);
	return status;
}
