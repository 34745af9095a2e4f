/* Lists and counts for people. */
#include "store/postgres/driver.h"

static enum hpx_status read_entries(const PGresult *result, struct hpx_arena *arena,
				    struct hpx_entry *entries)
{
	enum hpx_status status = HPX_OK;
	struct hpx_pg_row row;

	for (int i = 0; i < PQntuples(result) && status == HPX_OK; i++) {
		hpx_pg_row_read(result, i, &row);
		entries[i].record = row.found.record;
		entries[i].readable = row.found.readable;
		status = hpx_pg_description_read(result, i, arena, &entries[i].description);
	}
	return status;
}

enum hpx_status hpx_pg_list(struct hpx_store_reader *reader, const struct hpx_query *query,
			    struct hpx_arena *arena, struct hpx_entry **ret_entries,
			    size_t *ret_count)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_entry *entries;
	PGresult *result = NULL;
	enum hpx_status status;

	hpx_pg_add_int8(&params, query->state == HPX_STATE_COUNT ? -1 : (int)query->state);
	hpx_pg_add_bytes(&params, query->key);
	hpx_pg_add_int8(&params, query->before_ms);
	hpx_pg_add_int8(&params, query->limit);
	status = hpx_pg_ask(reader, HPX_PG_LIST, &params, &result);
	if (status != HPX_OK)
		return status;
	entries = hpx_arena_zalloc(arena, (size_t)PQntuples(result), sizeof(*entries));
	status = entries != NULL ? read_entries(result, arena, entries) : HPX_NOMEM;
	if (status == HPX_OK) {
		*ret_entries = entries;
		*ret_count = (size_t)PQntuples(result);
	}
	PQclear(result);
	return status;
}

static enum hpx_status read_event(const PGresult *result, int row, struct hpx_arena *arena,
				  struct hpx_event *event)
{
	int64_t value = 0;

	hpx_pg_int(result, row, 0, 0, INT64_MAX, &event->at_ms);
	if (hpx_pg_int(result, row, 1, 0, UINT32_MAX, &value))
		event->attempt = (uint32_t)value;
	event->what = hpx_arena_dup(arena, hpx_pg_bytes(result, row, 2));
	event->actor = hpx_arena_dup(arena, hpx_pg_bytes(result, row, 3));
	event->reason = hpx_arena_dup(arena, hpx_pg_bytes(result, row, 4));
	value = 0;
	if (hpx_pg_int(result, row, 5, 0, 999, &value))
		event->status = (uint32_t)value;
	return event->what.ptr && event->actor.ptr && event->reason.ptr ? HPX_OK : HPX_NOMEM;
}

enum hpx_status hpx_pg_events(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
			      struct hpx_arena *arena, struct hpx_event **ret_events,
			      size_t *ret_count)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_event *events;
	PGresult *result = NULL;
	enum hpx_status status;

	hpx_pg_add_bytes(&params, hpx_span(id->bytes, sizeof(id->bytes)));
	status = hpx_pg_ask(reader, HPX_PG_EVENTS, &params, &result);
	if (status != HPX_OK)
		return status;
	events = hpx_arena_zalloc(arena, (size_t)PQntuples(result), sizeof(*events));
	if (events == NULL)
		status = HPX_NOMEM;
	for (int row = 0; row < PQntuples(result) && status == HPX_OK; row++)
		status = read_event(result, row, arena, &events[row]);
	if (status == HPX_OK) {
		*ret_events = events;
		*ret_count = (size_t)PQntuples(result);
	}
	PQclear(result);
	return status;
}

static uint64_t count_at(const PGresult *result, int column)
{
	int64_t value = 0;

	hpx_pg_int(result, 0, column, 0, INT64_MAX, &value);
	return (uint64_t)value;
}

/* Counted through the partial indexes: what has a time to end is failed_retryable,
 * pending or completed, and nothing else. */
static void read_counts(const PGresult *result, struct hpx_store_stats *stats)
{
	uint64_t failed = count_at(result, 1);
	uint64_t ending = count_at(result, 2);
	uint64_t pending = count_at(result, 5);

	stats->operations[HPX_STATE_IN_PROGRESS] = count_at(result, 0);
	stats->operations[HPX_STATE_FAILED_RETRYABLE] = failed;
	stats->operations[HPX_STATE_COMPLETED] =
		ending > failed + pending ? ending - failed - pending : 0;
	stats->operations[HPX_STATE_UNKNOWN] = count_at(result, 3);
	stats->oldest_unknown_ms = (int64_t)count_at(result, 4);
	stats->operations[HPX_STATE_PENDING] = pending;
}

enum hpx_status hpx_pg_stats(struct hpx_store_reader *reader, struct hpx_store_stats *ret_stats)
{
	struct hpx_store_stats stats = { .free_bytes = UINT64_MAX };
	PGresult *result = NULL;
	enum hpx_status status = hpx_pg_ask(reader, HPX_PG_COUNTS, NULL, &result);

	if (status != HPX_OK)
		return status;
	if (PQntuples(result) == 1)
		read_counts(result, &stats);
	PQclear(result);
	status = hpx_pg_count_jobs(reader, &stats);
	if (status == HPX_OK)
		*ret_stats = stats;
	return status;
}
