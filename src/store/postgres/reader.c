/* Readers, and what they answer: one operation, lists and counts for people, waiting
 * requests, what people removed. Each has its own connection, opened when it is first needed, and again
 * after it was lost; a database that is away is asked once a second. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/span.h"
#include "store/postgres/outbox.h"

#define RETRY_MS 1000

enum hpx_status hpx_pg_reader_open(struct hpx_store *store, struct hpx_store_reader **ret_reader)
{
	struct hpx_pg_reader *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return HPX_NOMEM;
	r->base.store = store;
	*ret_reader = &r->base;
	return HPX_OK;
}

void hpx_pg_reader_close(struct hpx_store_reader *reader)
{
	struct hpx_pg_reader *r = (struct hpx_pg_reader *)reader;

	hpx_pg_close(&r->db);
	free(r->last);
	free(r);
}

static enum hpx_status connect_reader(struct hpx_pg_reader *r, char *problem)
{
	struct hpx_pg_store *s = hpx_pg_of(r->base.store);
	enum hpx_status status;

	if (r->db.conn != NULL && PQstatus(r->db.conn) == CONNECTION_OK)
		return HPX_OK;
	hpx_pg_close(&r->db);
	if (r->failed_ms != 0 && hpx_clock_boot_ms() - r->failed_ms < RETRY_MS)
		return HPX_UNAVAILABLE;
	r->connections++;
	status = hpx_pg_connect(s->url, HPX_PG_READER, &r->db, problem);
	if (status == HPX_OK)
		status = hpx_pg_prepare(&r->db, HPX_PG_READER, problem);
	if (status != HPX_OK)
		hpx_pg_close(&r->db);
	r->failed_ms = status == HPX_OK ? 0 : hpx_clock_boot_ms();
	return status;
}

static enum hpx_status ask_once(struct hpx_pg_reader *r, enum hpx_pg_statement statement,
				const struct hpx_pg_params *params, PGresult **ret_result)
{
	char problem[HPX_STORE_PROBLEM_SIZE];
	enum hpx_status status = connect_reader(r, problem);

	if (status != HPX_OK)
		return status;
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&r->db, problem);
	hpx_pg_send(&pipe, statement, params);
	PGresult *result = hpx_pg_take(&pipe);
	status = hpx_pg_end(&pipe);
	if (status != HPX_OK || result == NULL) {
		PQclear(result);
		return status != HPX_OK ? status : HPX_IO;
	}
	*ret_result = result;
	return HPX_OK;
}

/* A connection that was lost while it was idle shows only when it is used. */
enum hpx_status hpx_pg_ask(struct hpx_store_reader *reader, enum hpx_pg_statement statement,
			   const struct hpx_pg_params *params, PGresult **ret_result)
{
	struct hpx_pg_reader *r = (struct hpx_pg_reader *)reader;
	bool was_open = r->db.conn != NULL;
	enum hpx_status status = ask_once(r, statement, params, ret_result);

	if (status == HPX_UNAVAILABLE && was_open)
		status = ask_once(r, statement, params, ret_result);
	return status;
}

static enum hpx_status read_entry(const PGresult *result, struct hpx_arena *arena,
				  struct hpx_entry *entry, struct hpx_answer **answer)
{
	struct hpx_pg_row row;
	enum hpx_status status;

	*answer = NULL;
	hpx_pg_row_read(result, 0, &row);
	entry->record = row.found.record;
	entry->readable = row.found.readable;
	status = hpx_pg_description_read(result, 0, arena, &entry->description);
	if (status != HPX_OK || !entry->readable)
		return status;
	/* An attempt after the first may still have the answer of one before it. */
	if (entry->record.state == HPX_STATE_COMPLETED || entry->record.kept)
		status = hpx_pg_answer_read(result, 0, HPX_PG_ANSWER_COLUMN, &entry->record, answer);
	if (status != HPX_CORRUPT)
		return status;
	entry->readable = false;
	return HPX_OK;
}

enum hpx_status hpx_pg_find(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
			    struct hpx_arena *arena, struct hpx_entry *ret_entry,
			    struct hpx_answer **ret_answer)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_answer *answer = NULL;
	struct hpx_entry entry;
	PGresult *result = NULL;
	enum hpx_status status;

	hpx_pg_add_id(&params, id);
	hpx_pg_add_rest(&params, id);
	status = hpx_pg_ask(reader, HPX_PG_FIND, &params, &result);
	if (status != HPX_OK)
		return status;
	status = PQntuples(result) == 1 ? read_entry(result, arena, &entry, &answer) :
					  HPX_NOT_FOUND;
	PQclear(result);
	if (status == HPX_OK)
		*ret_entry = entry;
	if (status == HPX_OK && ret_answer != NULL)
		*ret_answer = answer;
	else
		hpx_answer_free(answer);
	return status;
}

enum hpx_status hpx_pg_recipe(struct hpx_store_reader *reader, const struct hpx_recipe_id *id,
			      struct hpx_arena *arena, struct hpx_span *ret_text)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_span text = { NULL, 0 };
	PGresult *result = NULL;
	enum hpx_status status;

	hpx_pg_add_bytes(&params, hpx_span(id->bytes, sizeof(id->bytes)));
	status = hpx_pg_ask(reader, HPX_PG_RECIPE, &params, &result);
	if (status != HPX_OK)
		return status;
	status = PQntuples(result) == 1 ? HPX_OK : HPX_NOT_FOUND;
	if (status == HPX_OK) {
		text = hpx_arena_dup(arena, hpx_pg_bytes(result, 0, 0));
		status = text.ptr != NULL ? HPX_OK : HPX_NOMEM;
	}
	PQclear(result);
	if (status == HPX_OK)
		*ret_text = text;
	return status;
}

/* Those that the answer does not name are not in progress any more. */
static void mark_ended(const PGresult *result, const struct hpx_operation_id *ids, size_t count,
		       bool *ended)
{
	struct hpx_operation_id id;

	for (size_t i = 0; i < count; i++)
		ended[i] = true;
	for (int row = 0; row < PQntuples(result); row++) {
		if (!hpx_pg_id_read(result, row, &id))
			continue;
		for (size_t i = 0; i < count; i++)
			ended[i] &= !hpx_operation_id_eq(&ids[i], &id);
	}
}

enum hpx_status hpx_pg_watch(struct hpx_store_reader *reader, const struct hpx_operation_id *ids,
			     size_t count, bool *ret_ended)
{
	static const enum hpx_pg_type types[] = { HPX_PG_UUID };
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_pg_columns columns;
	PGresult *result = NULL;
	enum hpx_status status;

	hpx_pg_columns_init(&columns, types, 1);
	for (size_t i = 0; i < count; i++)
		hpx_pg_put_id(&columns, &ids[i]);
	status = hpx_pg_columns_param(&columns, &params);
	if (status == HPX_OK)
		status = hpx_pg_ask(reader, HPX_PG_WATCH, &params, &result);
	if (status == HPX_OK)
		mark_ended(result, ids, count, ret_ended);
	PQclear(result);
	hpx_pg_columns_done(&columns);
	return status;
}

/* ---- lists and counts for people ---- */

/* At how many operations a list for people looks, of each kind; by a key, up to a second
 * where they are in memory. */
#define LOOK_MAX 10000
/* At so many more than the limit first. */
#define LOOK_FIRST 200
#define LOOK_FOR_KEY_MAX 100000
/* Operations that a walk reads at a time. */
#define WALK_ROWS 2000
/* The columns behind those of HPX_PG_SQL_DESCRIPTION. */
#define SEEN_COLUMN HPX_PG_ANSWER_COLUMN

/* What is being looked for, and what was found of it. */
struct pg_list {
	struct hpx_store_reader *reader;
	const struct hpx_query *query;
	struct hpx_arena *arena;
	struct hpx_entry *entries;
	size_t count;
	struct hpx_looked looked;
};

static bool has_entry(const PGresult *result, int row)
{
	return !PQgetisnull(result, row, 0);
}

static enum hpx_status add_entries(struct pg_list *list, const PGresult *result)
{
	size_t rows = (size_t)PQntuples(result);
	struct hpx_entry *entries =
		hpx_arena_zalloc(list->arena, list->count + rows, sizeof(*entries));
	enum hpx_status status = entries != NULL ? HPX_OK : HPX_NOMEM;
	struct hpx_pg_row row;

	if (status == HPX_OK && list->count > 0)
		memcpy(entries, list->entries, list->count * sizeof(*entries));
	for (int i = 0; i < (int)rows && status == HPX_OK; i++) {
		if (!has_entry(result, i))
			continue;
		struct hpx_entry *entry = &entries[list->count++];
		hpx_pg_row_read(result, i, &row);
		entry->record = row.found.record;
		entry->readable = row.found.readable;
		status = hpx_pg_description_read(result, i, list->arena, &entry->description);
	}
	list->entries = entries;
	return status;
}

static void add_wanted(struct hpx_pg_params *params, const struct hpx_query *query, int state)
{
	hpx_pg_add_int8(params, state);
	hpx_pg_add_bytes(params, query->key);
	hpx_pg_add_bytes(params, query->tenant);
	hpx_pg_add_bytes(params, query->route);
	hpx_pg_add_int8(params, query->since_ms);
}

static void add_error(struct hpx_pg_params *params, const struct hpx_query *query)
{
	bool any = query->error == HPX_LAST_ERROR_NONE;

	hpx_pg_add_bytes(params, any ? hpx_span(NULL, 0) : hpx_span_of(hpx_last_error_name(query->error)));
}

/* What one source was looked through for: everything of it, or back to a time. */
static void note_looked(struct pg_list *list, const PGresult *result, int64_t look_max, size_t found)
{
	struct hpx_looked *looked = &list->looked;
	int64_t seen = 0, total = 0, oldest_ms = 0;
	int last = PQntuples(result) - 1;

	hpx_pg_int(result, last, SEEN_COLUMN, 0, INT64_MAX, &seen);
	hpx_pg_int(result, last, SEEN_COLUMN + 1, 0, INT64_MAX, &total);
	hpx_pg_int(result, last, SEEN_COLUMN + 2, 0, INT64_MAX, &oldest_ms);
	bool full = found >= list->query->limit;
	looked->operations += (uint64_t)(full ? seen : total);
	if (!full && total < look_max)
		return;
	looked->all = false;
	if (full)
		oldest_ms = list->entries[list->count - 1].record.changed_ms;
	if (oldest_ms > looked->back_to_ms)
		looked->back_to_ms = oldest_ms;
}

/* Times of the queues are the database's own: a clock that a test has set forward is
 * behind them. */
static enum hpx_status ask_source(struct pg_list *list, enum hpx_pg_statement source,
				  enum hpx_state state, int64_t look_max, PGresult **ret_result)
{
	int64_t shift_ms = atomic_load(&list->reader->store->wall_shift_ms);
	struct hpx_pg_params params = { .count = 0 };

	add_wanted(&params, list->query, (int)state);
	hpx_pg_add_int8(&params, list->query->limit);
	hpx_pg_add_int8(&params, look_max);
	hpx_pg_add_int8(&params, list->query->since_ms - (shift_ms > 0 ? shift_ms : 0));
	add_error(&params, list->query);
	enum hpx_status status = hpx_pg_ask(list->reader, source, &params, ret_result);
	if (status != HPX_OK || PQntuples(*ret_result) > 0)
		return status;
	PQclear(*ret_result);
	return HPX_IO;
}

/* Whether nothing more would be found by looking further. */
static bool is_enough(const struct pg_list *list, const PGresult *result, int64_t look_max)
{
	int64_t total = 0;

	hpx_pg_int(result, 0, SEEN_COLUMN + 1, 0, INT64_MAX, &total);
	return total < look_max || (size_t)PQntuples(result) >= list->query->limit;
}

/* The newest of one source: mostly among the first few. */
static enum hpx_status list_source(struct pg_list *list, enum hpx_pg_statement source,
				   enum hpx_state state)
{
	int64_t most = list->query->key.ptr != NULL ? LOOK_FOR_KEY_MAX : LOOK_MAX;
	int64_t look_max = LOOK_FIRST + list->query->limit;
	size_t before = list->count;
	PGresult *result = NULL;
	enum hpx_status status = ask_source(list, source, state, look_max, &result);

	if (status == HPX_OK && !is_enough(list, result, look_max)) {
		PQclear(result);
		look_max = most > look_max ? most : look_max;
		status = ask_source(list, source, state, look_max, &result);
	}
	if (status != HPX_OK)
		return status;
	status = add_entries(list, result);
	if (status == HPX_OK)
		note_looked(list, result, look_max, list->count - before);
	PQclear(result);
	return status;
}

static enum hpx_status list_newest(struct pg_list *list)
{
	static const struct {
		enum hpx_state state;
		enum hpx_pg_statement source;
	} sources[] = {
		{ HPX_STATE_COMPLETED, HPX_PG_LIST_COMPLETED },
		{ HPX_STATE_IN_PROGRESS, HPX_PG_LIST_IN_PROGRESS },
		{ HPX_STATE_UNKNOWN, HPX_PG_LIST_ASIDE },
		{ HPX_STATE_FAILED_RETRYABLE, HPX_PG_LIST_ASIDE },
		{ HPX_STATE_PENDING, HPX_PG_LIST_ASIDE },
	};
	enum hpx_state state = list->query->state;
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]) && status == HPX_OK; i++)
		if (state == HPX_STATE_COUNT || state == sources[i].state)
			status = list_source(list, sources[i].source, sources[i].state);
	if (status == HPX_OK) {
		list->looked.all &= list->count <= list->query->limit;
		hpx_entries_newest(list->entries, &list->count, list->query->limit);
	}
	return status;
}

/* By a key, whole readings: few match. */
static enum hpx_status walk_on(struct pg_list *list)
{
	struct hpx_walk *walk = list->query->walk;
	enum hpx_state state = list->query->state;
	enum hpx_status status = HPX_OK;

	while (status == HPX_OK && !walk->ended && list->count < list->query->limit) {
		int64_t room = (int64_t)(list->query->limit - list->count);
		struct hpx_pg_params params = { .count = 0 };
		PGresult *result = NULL;
		int64_t rows = 0, most = WALK_ROWS < room ? WALK_ROWS : room;

		most = list->query->key.ptr != NULL ? WALK_ROWS : most;
		add_wanted(&params, list->query, state == HPX_STATE_COUNT ? -1 : (int)state);
		hpx_pg_add_bytes(&params, hpx_span(walk->id, HPX_PG_HALF));
		hpx_pg_add_int8(&params, most);
		add_error(&params, list->query);
		status = hpx_pg_ask(list->reader, HPX_PG_WALK, &params, &result);
		if (status != HPX_OK)
			return status;
		status = PQntuples(result) > 0 ? add_entries(list, result) : HPX_IO;
		if (status == HPX_OK && hpx_pg_int(result, 0, SEEN_COLUMN, 0, INT64_MAX, &rows) && rows > 0)
			memcpy(walk->id, hpx_pg_bytes(result, 0, SEEN_COLUMN + 1).ptr, HPX_PG_HALF);
		walk->ended = rows < most;
		list->looked.operations += (uint64_t)rows;
		PQclear(result);
	}
	list->looked.all = walk->ended;
	return status;
}

enum hpx_status hpx_pg_list(struct hpx_store_reader *reader, const struct hpx_query *query,
			    struct hpx_arena *arena, struct hpx_entry **ret_entries,
			    size_t *ret_count, struct hpx_looked *ret_looked)
{
	struct pg_list list = { .reader = reader, .query = query, .arena = arena, .looked = { .all = true } };
	enum hpx_status status = query->walk != NULL ? walk_on(&list) : list_newest(&list);

	if (status != HPX_OK)
		return status;
	*ret_entries = list.entries;
	*ret_count = list.count;
	*ret_looked = list.looked;
	return HPX_OK;
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

	hpx_pg_add_id(&params, id);
	hpx_pg_add_rest(&params, id);
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

/* What is neither aside nor under way is completed. */
static void read_counts(const PGresult *result, struct hpx_store_stats *stats)
{
	uint64_t elsewhere = 0, rows = count_at(result, 5);

	stats->operations[HPX_STATE_FAILED_RETRYABLE] = count_at(result, 0);
	stats->operations[HPX_STATE_UNKNOWN] = count_at(result, 1);
	stats->operations[HPX_STATE_PENDING] = count_at(result, 2);
	stats->oldest_unknown_ms = (int64_t)count_at(result, 3);
	stats->operations[HPX_STATE_IN_PROGRESS] = count_at(result, 4);
	for (int i = 0; i < HPX_STATE_COUNT; i++)
		elsewhere += stats->operations[i];
	stats->operations[HPX_STATE_COMPLETED] = rows > elsewhere ? rows - elsewhere : 0;
	stats->updates_hot = count_at(result, 7);
	stats->updates_moved = count_at(result, 6) - stats->updates_hot;
}

/* The narrowest index. */
static enum hpx_pg_statement statement_of(const struct hpx_job_query *query)
{
	if (query->number != 0)
		return HPX_PG_LIST_JOBS_BY_NUMBER;
	if (query->operation != NULL)
		return HPX_PG_LIST_JOBS_BY_OPERATION;
	if (query->provider_id.ptr != NULL)
		return HPX_PG_LIST_JOBS_BY_PROVIDER;
	return HPX_PG_LIST_JOBS;
}

/* Whatever is not text is nobody's name. */
static bool is_text(struct hpx_span name)
{
	return name.len == 0 ||
	       (hpx_utf8_valid(name) && memchr(name.ptr, '\0', name.len) == NULL);
}

static void add_query(struct hpx_pg_params *params, const struct hpx_job_query *query)
{
	static const struct hpx_span any = { NULL, 0 };

	hpx_pg_add_int8(params, query->state == HPX_JOB_STATE_COUNT ? -1 : (int)query->state);
	hpx_pg_add_bytes(params, query->target);
	hpx_pg_add_bytes(params, query->operation == NULL ? any :
							    hpx_span(query->operation->bytes, HPX_PG_HALF));
	hpx_pg_add_bytes(params, query->provider_id);
	hpx_pg_add_int8(params, query->number);
	hpx_pg_add_int8(params, query->before);
	hpx_pg_add_int8(params, query->limit);
}

enum hpx_status hpx_pg_provided(struct hpx_store_reader *reader, struct hpx_span provider_id,
				struct hpx_reference *references, size_t max, size_t *ret_count)
{
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result = NULL;
	size_t count = 0;
	enum hpx_status status;

	hpx_pg_add_bytes(&params, provider_id);
	hpx_pg_add_int8(&params, (int64_t)max);
	status = hpx_pg_ask(reader, HPX_PG_PROVIDED, &params, &result);
	if (status != HPX_OK)
		return status;
	for (int row = 0; row < PQntuples(result) && count < max; row++) {
		struct hpx_reference *r = &references[count];
		if (hpx_pg_id_read(result, row, &r->id) &&
		    hpx_pg_fixed(result, row, 2, r->mark.bytes, sizeof(r->mark.bytes)))
			count++;
	}
	PQclear(result);
	*ret_count = count;
	return HPX_OK;
}

static bool read_match(const PGresult *result, int row, struct hpx_key_match *match)
{
	struct hpx_reference *r = &match->reference;
	struct hpx_span amount = hpx_pg_bytes(result, row, 3);

	if (!hpx_pg_id_read(result, row, &r->id) ||
	    !hpx_pg_fixed(result, row, 2, r->mark.bytes, sizeof(r->mark.bytes)) ||
	    amount.len > HPX_ROUTE_KEY_AMOUNT_MAX)
		return false;
	snprintf(match->amount, sizeof(match->amount), "%.*s", HPX_SPAN_ARG(amount));
	return true;
}

/* A row that cannot be read hides an operation. */
static enum hpx_status find_matches(struct hpx_store_reader *reader, const struct hpx_key_query *query,
				    struct hpx_key_matches *matches)
{
	const size_t max = sizeof(matches->of) / sizeof(matches->of[0]);
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result = NULL;
	enum hpx_status status;

	hpx_pg_add_bytes(&params, hpx_span(query->hash, sizeof(query->hash)));
	hpx_pg_add_int8(&params, (int64_t)max);
	status = hpx_pg_ask(reader, HPX_PG_KEYED, &params, &result);
	if (status != HPX_OK)
		return status;
	for (int row = 0; row < PQntuples(result) && status == HPX_OK && matches->count < max; row++)
		if (read_match(result, row, &matches->of[matches->count]))
			matches->count++;
		else
			status = HPX_CORRUPT;
	PQclear(result);
	return status;
}

enum hpx_status hpx_pg_keyed(struct hpx_store_reader *reader, const struct hpx_key_query *query,
			     struct hpx_key_matches *ret_matches, int64_t *ret_since_ms)
{
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result = NULL;
	enum hpx_status status = find_matches(reader, query, ret_matches);

	hpx_pg_add_bytes(&params, query->upstream);
	hpx_pg_add_bytes(&params, query->route);
	if (status == HPX_OK)
		status = hpx_pg_ask(reader, HPX_PG_KEYED_SINCE, &params, &result);
	if (status == HPX_OK && PQntuples(result) == 1 &&
	    !hpx_pg_int(result, 0, 0, 0, INT64_MAX / 4, ret_since_ms))
		status = HPX_CORRUPT;
	PQclear(result);
	return status;
}

enum hpx_status hpx_pg_unkeyed(struct hpx_store_reader *reader, const struct hpx_key_query *query,
			       int64_t since_ms, bool *ret_any)
{
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result = NULL;
	int64_t any = 1;
	enum hpx_status status;

	hpx_pg_add_bytes(&params, query->upstream);
	hpx_pg_add_bytes(&params, query->route);
	hpx_pg_add_int8(&params, since_ms);
	hpx_pg_add_int8(&params, query->retention_ms);
	hpx_pg_add_int8(&params, atomic_load(&reader->store->wall_shift_ms));
	status = hpx_pg_ask(reader, HPX_PG_UNKEYED, &params, &result);
	if (status == HPX_OK && (PQntuples(result) != 1 || !hpx_pg_int(result, 0, 0, 0, 1, &any)))
		status = HPX_CORRUPT;
	PQclear(result);
	*ret_any = any != 0;
	return status;
}

enum hpx_status hpx_pg_jobs(struct hpx_store_reader *reader, const struct hpx_job_query *query,
			    struct hpx_job_entry **ret_jobs)
{
	struct hpx_pg_params params = { .count = 0 };
	struct hpx_job_entry *jobs = NULL, **tail = &jobs;
	PGresult *result = NULL;
	enum hpx_status status;

	if (!is_text(query->target) || !is_text(query->provider_id)) {
		*ret_jobs = NULL;
		return HPX_OK;
	}
	add_query(&params, query);
	status = hpx_pg_ask(reader, statement_of(query), &params, &result);
	if (status != HPX_OK)
		return status;
	for (int row = 0; row < PQntuples(result) && status == HPX_OK; row++) {
		*tail = hpx_pg_job_read(result, row);
		if (*tail == NULL)
			status = HPX_NOMEM;
		else
			tail = &(*tail)->next;
	}
	PQclear(result);
	if (status == HPX_OK)
		*ret_jobs = jobs;
	else
		hpx_job_entry_free(jobs);
	return status;
}

enum hpx_status hpx_pg_question(struct hpx_store_reader *reader, const struct hpx_operation_id *id,
				struct hpx_next_question *ret_question)
{
	struct hpx_next_question question = { .at_ms = 0 };
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result = NULL;
	int64_t person = 0;
	enum hpx_status status;

	hpx_pg_add_id(&params, id);
	status = hpx_pg_ask(reader, HPX_PG_NEXT_QUESTION, &params, &result);
	if (status != HPX_OK)
		return status;
	/* No row, or NULLs: nothing is scheduled. */
	if (PQntuples(result) == 1 && hpx_pg_int(result, 0, 1, 0, 1, &person))
		hpx_pg_int(result, 0, 0, 0, INT64_MAX / 4, &question.at_ms);
	PQclear(result);
	question.person = person == 1;
	*ret_question = question;
	return HPX_OK;
}

static enum hpx_status count_jobs(struct hpx_store_reader *reader, struct hpx_store_stats *stats)
{
	PGresult *result = NULL;
	enum hpx_status status = hpx_pg_ask(reader, HPX_PG_COUNT_JOBS, NULL, &result);
	int column = 0;

	if (status != HPX_OK)
		return status;
	if (PQntuples(result) == 1) {
		for (int state = HPX_JOB_QUEUED; state < HPX_JOB_STATE_COUNT; state++)
			stats->jobs[state] = count_at(result, column++);
		stats->oldest_queued_ms = (int64_t)count_at(result, column++);
		int64_t lost_ms = (int64_t)count_at(result, column++);
		if (lost_ms != 0 &&
		    (stats->oldest_unknown_ms == 0 || lost_ms < stats->oldest_unknown_ms))
			stats->oldest_unknown_ms = lost_ms;
		stats->dead_operations = count_at(result, column++);
		stats->dead_jobs = count_at(result, column) + stats->jobs[HPX_JOB_DEAD];
	}
	PQclear(result);
	return HPX_OK;
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
	status = count_jobs(reader, &stats);
	if (status == HPX_OK)
		*ret_stats = stats;
	return status;
}

/* ---- what people removed, from the history ----
 *
 * An event carries the time at which its
 * row was judged, and is seen when its transaction has committed, later and in
 * any order. So each query looks back over more time than such a
 * transaction can last, and what the one before it did not see is new.
 *
 * How long one can last: behind its look at the clock, a FORGET or RESOLVE runs
 * at most eight statements (the answer or its job, four removals or a row and its
 * answer, the event, the mark, the commit), each of at most ten seconds
 * (statement_timeout, which the wait for a standby is part of), with two pauses of
 * at most five (idle_in_transaction_session_timeout): 90 seconds. A clock that is
 * set ahead between two queries moves the second one's view no further than the
 * first one's. What somebody deletes by SQL of their own leaves no event, and no
 * node hears of it before the answer expires or the gateway is started again.
 *
 * A new connection may be to another server, which may never have had what this
 * one told: it begins anew. */
#define LOOK_BACK_MS 120000

/* What the last answer held, in order. */
struct hpx_pg_last_removals {
	unsigned connection; /* the one it came by; 0: none */
	int64_t now_ms;      /* the database's clock then */
	size_t count;
	int64_t seq[HPX_REMOVALS_MAX];
};

static bool was_reported(const struct hpx_pg_last_removals *last, int64_t seq, size_t *from)
{
	while (*from < last->count && last->seq[*from] < seq)
		(*from)++;
	return *from < last->count && last->seq[*from] == seq;
}

static bool read_row(const PGresult *result, int row, int64_t *ret_seq,
		     struct hpx_operation_id *ret_id)
{
	return hpx_pg_int(result, row, 1, INT64_MIN, INT64_MAX, ret_seq) &&
	       hpx_pg_fixed(result, row, 2, ret_id->bytes, HPX_PG_HALF) &&
	       hpx_pg_fixed(result, row, 3, ret_id->bytes + HPX_PG_HALF, HPX_PG_HALF);
}

/* Both lists are in order: what is only in the new one. */
static void compare(const PGresult *result, const struct hpx_pg_last_removals *before,
		    struct hpx_pg_last_removals *after, struct hpx_removals *removals)
{
	size_t from = 0;

	for (int row = 0; row < PQntuples(result); row++) {
		struct hpx_operation_id id;
		int64_t seq;
		if (PQgetisnull(result, row, 1))
			return; /* no event at all */
		if (after->count == HPX_REMOVALS_MAX || !read_row(result, row, &seq, &id)) {
			removals->all = true;
			return;
		}
		after->seq[after->count++] = seq;
		if (!was_reported(before, seq, &from))
			removals->ids[removals->count++] = id;
	}
}

static enum hpx_status take(struct hpx_pg_reader *r, const PGresult *result,
			    struct hpx_removals *removals)
{
	struct hpx_pg_last_removals *after = calloc(1, sizeof(*after));

	if (after == NULL)
		return HPX_NOMEM;
	if (PQntuples(result) < 1 ||
	    !hpx_pg_int(result, 0, 0, 0, INT64_MAX / 4, &after->now_ms)) {
		free(after);
		return HPX_CORRUPT;
	}
	after->connection = r->connections;
	removals->all = r->last->connection != after->connection;
	removals->count = 0;
	compare(result, r->last, after, removals);
	free(r->last);
	r->last = after;
	return HPX_OK;
}

enum hpx_status hpx_pg_removals(struct hpx_store_reader *reader,
				struct hpx_removals *ret_removals)
{
	struct hpx_pg_reader *r = (struct hpx_pg_reader *)reader;
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result = NULL;
	enum hpx_status status;

	if (r->last == NULL)
		r->last = calloc(1, sizeof(*r->last));
	if (r->last == NULL)
		return HPX_NOMEM;
	hpx_pg_add_int8(&params, r->last->connection != 0 ? r->last->now_ms : INT64_MAX);
	hpx_pg_add_int8(&params, LOOK_BACK_MS);
	hpx_pg_add_int8(&params, HPX_REMOVALS_MAX + 1);
	status = hpx_pg_ask(reader, HPX_PG_REMOVALS, &params, &result);
	if (status == HPX_OK)
		status = take(r, result, ret_removals);
	PQclear(result);
	return status;
}
