/* The memory driver's readers: copies out of the table, under its mutex. */
#include <stdlib.h>

#include "store/memory/memory.h"

enum hpx_status hpx_memory_answer_copy(const struct hpx_memory_row *row,
				       struct hpx_answer **ret_answer)
{
	struct hpx_answer *answer = hpx_answer_new(row->record.status, row->answer->kept,
						   row->answer->headers, row->answer->body);

	if (answer == NULL)
		return HPX_NOMEM;
	*ret_answer = answer;
	return HPX_OK;
}

struct hpx_found hpx_memory_found(const struct hpx_memory_row *row)
{
	struct hpx_found found = { .exists = row != NULL, .readable = true };

	if (row != NULL)
		found.record = row->record;
	return found;
}

enum hpx_status hpx_memory_reader_open(struct hpx_store *store,
				       struct hpx_store_reader **ret_reader)
{
	struct hpx_store_reader *reader = calloc(1, sizeof(*reader));

	if (reader == NULL)
		return HPX_NOMEM;
	reader->store = store;
	*ret_reader = reader;
	return HPX_OK;
}

void hpx_memory_reader_close(struct hpx_store_reader *reader)
{
	free(reader);
}

static enum hpx_status peek_row(struct hpx_memory_store *m, const struct hpx_ask *ask,
				const struct hpx_policy *policy, struct hpx_decision *decision,
				struct hpx_answer **replay)
{
	struct hpx_memory_row *row = hpx_memory_row_find(&m->table, &ask->id);
	struct hpx_found found = hpx_memory_found(row);
	struct hpx_moment now = hpx_store_moment(&m->base);

	if (row == NULL || !hpx_change_peek(&found, ask, policy, &now, decision))
		return HPX_NOT_FOUND;
	if (decision->kind != HPX_DECISION_REPLAY || row->answer == NULL)
		return HPX_OK;
	return hpx_memory_answer_copy(row, replay);
}

enum hpx_status hpx_memory_peek(struct hpx_store_reader *reader, const struct hpx_ask *ask,
				const struct hpx_policy *policy,
				struct hpx_decision *ret_decision,
				struct hpx_answer **ret_replay)
{
	struct hpx_memory_store *m = hpx_memory_of(reader->store);
	struct hpx_decision decision;
	struct hpx_answer *replay = NULL;
	enum hpx_status status;

	pthread_mutex_lock(&m->mutex);
	status = peek_row(m, ask, policy, &decision, &replay);
	pthread_mutex_unlock(&m->mutex);
	if (status == HPX_OK) {
		*ret_decision = decision;
		*ret_replay = replay;
	}
	return status;
}

static enum hpx_status copy_entry(const struct hpx_memory_row *row, struct hpx_arena *arena,
				  struct hpx_entry *ret_entry)
{
	const struct hpx_description *from = &row->description;
	struct hpx_description d = {
		.tenant = hpx_arena_dup(arena, from->tenant),
		.scope = hpx_arena_dup(arena, from->scope),
		.key = hpx_arena_dup(arena, from->key),
		.method = hpx_arena_dup(arena, from->method),
		.path = hpx_arena_dup(arena, from->path),
		.route = hpx_arena_dup(arena, from->route),
	};

	if (!d.tenant.ptr || !d.scope.ptr || !d.key.ptr || !d.method.ptr || !d.path.ptr ||
	    !d.route.ptr)
		return HPX_NOMEM;
	*ret_entry = (struct hpx_entry){ row->record, d, true };
	return HPX_OK;
}

enum hpx_status hpx_memory_find(struct hpx_store_reader *reader,
				const struct hpx_operation_id *id, struct hpx_arena *arena,
				struct hpx_entry *ret_entry, struct hpx_answer **ret_answer)
{
	struct hpx_memory_store *m = hpx_memory_of(reader->store);
	struct hpx_answer *answer = NULL;
	enum hpx_status status = HPX_NOT_FOUND;

	pthread_mutex_lock(&m->mutex);
	struct hpx_memory_row *row = hpx_memory_row_find(&m->table, id);
	if (row != NULL)
		status = copy_entry(row, arena, ret_entry);
	if (status == HPX_OK && ret_answer != NULL && row->answer != NULL)
		status = hpx_memory_answer_copy(row, &answer);
	pthread_mutex_unlock(&m->mutex);
	if (status == HPX_OK && ret_answer != NULL)
		*ret_answer = answer;
	return status;
}

/* All of them, unsorted; NULL when out of memory. */
static struct hpx_memory_row **all_rows(struct hpx_memory_store *m, size_t *ret_count)
{
	struct hpx_memory_row **rows;
	size_t count = 0;

	for (size_t i = 0; i < HPX_MEMORY_BUCKETS; i++)
		for (struct hpx_memory_row *row = m->table.bucket[i]; row; row = row->next)
			count++;
	rows = calloc(count + 1, sizeof(struct hpx_memory_row *));
	*ret_count = 0;
	if (rows == NULL)
		return NULL;
	for (size_t i = 0; i < HPX_MEMORY_BUCKETS; i++)
		for (struct hpx_memory_row *row = m->table.bucket[i]; row; row = row->next)
			rows[(*ret_count)++] = row;
	return rows;
}

static int oldest_first(const void *a, const void *b)
{
	const struct hpx_memory_row *x = *(struct hpx_memory_row *const *)a;
	const struct hpx_memory_row *y = *(struct hpx_memory_row *const *)b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* A walk goes by the numbers of the rows. */
static enum hpx_status list_rows(const struct hpx_query *query, struct hpx_arena *arena, struct hpx_entry *entries,
				 struct hpx_memory_row **rows, size_t all, size_t *ret_count)
{
	enum hpx_status status = HPX_OK;
	struct hpx_walk *walk = query->walk;
	size_t count = 0, at = 0;

	qsort(rows, all, sizeof(struct hpx_memory_row *), oldest_first);
	for (; at < all && status == HPX_OK && (walk == NULL || count < query->limit); at++) {
		const struct hpx_memory_row *row = rows[at];
		struct hpx_entry entry = { row->record, row->description, true };
		if (walk != NULL && (int64_t)row->seq <= walk->number)
			continue;
		if (hpx_entry_matches(&entry, query))
			status = copy_entry(row, arena, &entries[count++]);
		if (walk != NULL)
			walk->number = (int64_t)row->seq;
	}
	if (walk != NULL)
		walk->ended = at == all;
	*ret_count = count;
	return status;
}

enum hpx_status hpx_memory_list(struct hpx_store_reader *reader, const struct hpx_query *query,
				struct hpx_arena *arena, struct hpx_entry **ret_entries,
				size_t *ret_count, struct hpx_looked *ret_looked)
{
	struct hpx_memory_store *m = hpx_memory_of(reader->store);
	struct hpx_memory_row **rows;
	enum hpx_status status = HPX_NOMEM;
	struct hpx_entry *entries = NULL;
	size_t all = 0, count = 0;

	pthread_mutex_lock(&m->mutex);
	rows = all_rows(m, &all);
	if (rows != NULL)
		entries = hpx_arena_zalloc(arena, all, sizeof(*entries));
	if (entries != NULL)
		status = list_rows(query, arena, entries, rows, all, &count);
	pthread_mutex_unlock(&m->mutex);
	free(rows);
	if (status != HPX_OK)
		return status;
	*ret_looked = (struct hpx_looked){ .operations = all, .all = count <= query->limit };
	if (query->walk == NULL)
		hpx_entries_newest(entries, &count, query->limit);
	else
		ret_looked->all = query->walk->ended;
	*ret_entries = entries;
	*ret_count = count;
	return HPX_OK;
}

static enum hpx_status copy_events(struct hpx_memory_store *m, const struct hpx_operation_id *id,
				   struct hpx_arena *arena, struct hpx_event **ret_events,
				   size_t *ret_count)
{
	const struct hpx_memory_event *e;
	struct hpx_event *events;
	size_t count = 0;

	for (e = m->table.events; e != NULL; e = e->next)
		count += hpx_operation_id_eq(&e->id, id);
	events = hpx_arena_zalloc(arena, count, sizeof(*events));
	if (events == NULL)
		return HPX_NOMEM;
	count = 0;
	for (e = m->table.events; e != NULL; e = e->next) {
		if (!hpx_operation_id_eq(&e->id, id))
			continue;
		events[count] = e->event;
		events[count].what = hpx_arena_dup(arena, e->event.what);
		events[count].actor = hpx_arena_dup(arena, e->event.actor);
		events[count].reason = hpx_arena_dup(arena, e->event.reason);
		if (!events[count].what.ptr || !events[count].actor.ptr || !events[count].reason.ptr)
			return HPX_NOMEM;
		count++;
	}
	*ret_events = events;
	*ret_count = count;
	return HPX_OK;
}

enum hpx_status hpx_memory_events(struct hpx_store_reader *reader,
				  const struct hpx_operation_id *id, struct hpx_arena *arena,
				  struct hpx_event **ret_events, size_t *ret_count)
{
	struct hpx_memory_store *m = hpx_memory_of(reader->store);
	enum hpx_status status;

	pthread_mutex_lock(&m->mutex);
	status = copy_events(m, id, arena, ret_events, ret_count);
	pthread_mutex_unlock(&m->mutex);
	return status;
}

enum hpx_status hpx_memory_recipe(struct hpx_store_reader *reader,
				  const struct hpx_recipe_id *id, struct hpx_arena *arena,
				  struct hpx_span *ret_text)
{
	struct hpx_memory_store *m = hpx_memory_of(reader->store);
	const struct hpx_memory_recipe *recipe;
	struct hpx_span text = { NULL, 0 };

	pthread_mutex_lock(&m->mutex);
	recipe = hpx_memory_recipe_find(&m->table, id);
	if (recipe != NULL)
		text = hpx_arena_dup(arena, hpx_span(recipe->text, recipe->len));
	pthread_mutex_unlock(&m->mutex);
	if (recipe == NULL)
		return HPX_NOT_FOUND;
	if (text.ptr == NULL)
		return HPX_NOMEM;
	*ret_text = text;
	return HPX_OK;
}

enum hpx_status hpx_memory_stats(struct hpx_store_reader *reader,
				 struct hpx_store_stats *ret_stats)
{
	struct hpx_memory_store *m = hpx_memory_of(reader->store);
	struct hpx_store_stats stats = { .free_bytes = UINT64_MAX };

	pthread_mutex_lock(&m->mutex);
	for (size_t i = 0; i < HPX_MEMORY_BUCKETS; i++)
		for (struct hpx_memory_row *row = m->table.bucket[i]; row; row = row->next) {
			stats.operations[row->record.state]++;
			if (row->record.state == HPX_STATE_UNKNOWN &&
			    (stats.oldest_unknown_ms == 0 ||
			     row->record.changed_ms < stats.oldest_unknown_ms))
				stats.oldest_unknown_ms = row->record.changed_ms;
		}
	pthread_mutex_unlock(&m->mutex);
	*ret_stats = stats;
	return HPX_OK;
}
