#include "store/history_list.h"

#include <stdlib.h>

#include "base/status.h"

void hpx_history_list_init(struct hpx_history_list *list, const struct hpx_history_query *query,
			   struct hpx_arena *arena)
{
	*list = (struct hpx_history_list){ .query = query, .arena = arena };
}

void hpx_history_of_record(const struct hpx_record *record, const struct hpx_description *description,
			   struct hpx_history_entry *ret_entry)
{
	*ret_entry = (struct hpx_history_entry){
		.id = record->id,
		.mark = record->mark,
		.state = record->state,
		.attempt = record->attempt,
		.status = record->status,
		.created_ms = record->created_ms,
		.changed_ms = record->changed_ms,
		.expires_ms = record->expires_ms,
		.description = *description,
	};
}

static bool is_wanted(const struct hpx_history_query *query, const struct hpx_history_entry *entry)
{
	if (entry->created_ms < query->since_ms || entry->created_ms >= query->until_ms)
		return false;
	if (query->status_max != 0 &&
	    (entry->status < query->status_min || entry->status > query->status_max))
		return false;
	if (query->tenant.ptr != NULL && !hpx_span_eq(query->tenant, entry->description.tenant))
		return false;
	if (query->state != HPX_STATE_NONE && query->state != entry->state)
		return false;
	return query->key.ptr == NULL || hpx_span_eq(query->key, entry->description.key) ||
	       (query->key_hashed.ptr != NULL &&
		hpx_span_eq(query->key_hashed, entry->description.key));
}

/* Newest first. */
static int by_time(const void *a, const void *b)
{
	const struct hpx_history_entry *x = a, *y = b;

	if (x->created_ms != y->created_ms)
		return x->created_ms < y->created_ms ? 1 : -1;
	return memcmp(x->id.bytes, y->id.bytes, sizeof(x->id.bytes));
}

/* One more than the limit, so that it can be told that there are more. */
static void cut(struct hpx_history_list *list)
{
	struct hpx_history *found = &list->found;

	if (found->count > 1)
		qsort(found->entries, found->count, sizeof(*found->entries), by_time);
	if (found->count > list->query->limit + 1)
		found->count = list->query->limit + 1;
}

static enum hpx_status make_room(struct hpx_history_list *list)
{
	struct hpx_history *found = &list->found;
	struct hpx_history_entry *entries;
	size_t room = list->room != 0 ? 2 * list->room : 64;

	if (found->count < list->room)
		return HPX_OK;
	if (found->count > 2 * (list->query->limit + 1)) {
		cut(list);
		return HPX_OK;
	}
	entries = hpx_arena_zalloc(list->arena, room, sizeof(*entries));
	if (entries == NULL)
		return HPX_NOMEM;
	if (found->count > 0)
		memcpy(entries, found->entries, found->count * sizeof(*entries));
	found->entries = entries;
	list->room = room;
	return HPX_OK;
}

static enum hpx_status keep_texts(struct hpx_arena *arena, struct hpx_description *d)
{
	struct hpx_span *const texts[] = { &d->tenant, &d->scope, &d->key,
					   &d->method, &d->path, &d->route };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		*texts[i] = hpx_arena_dup(arena, *texts[i]);
		if (texts[i]->ptr == NULL)
			return HPX_NOMEM;
	}
	return HPX_OK;
}

enum hpx_status hpx_history_take(struct hpx_history_list *list, const struct hpx_history_entry *entry)
{
	struct hpx_history *found = &list->found;
	enum hpx_status status;

	found->looked++;
	if (entry->expires_ms == 0)
		found->reached_ms = entry->created_ms;
	if (!is_wanted(list->query, entry))
		return HPX_OK;
	status = make_room(list);
	if (status != HPX_OK)
		return status;
	found->entries[found->count] = *entry;
	status = keep_texts(list->arena, &found->entries[found->count].description);
	if (status != HPX_OK)
		return status;
	found->count++;
	list->reaped += entry->expires_ms == 0;
	return HPX_OK;
}

bool hpx_history_looks_on(struct hpx_history_list *list)
{
	list->found.cut = list->found.cut || list->found.looked >= list->query->look_max;
	return !list->found.cut;
}

bool hpx_history_reads_on(struct hpx_history_list *list)
{
	/* Those behind so many are older than all of them. */
	if (list->reaped > list->query->limit)
		return false;
	if (list->looked_before_reaped == 0)
		list->looked_before_reaped = list->found.looked + 1;
	list->found.cut_reaped = list->found.looked + 1 - list->looked_before_reaped >= list->query->look_max;
	return !list->found.cut_reaped;
}

void hpx_history_list_end(struct hpx_history_list *list, struct hpx_history *ret_history)
{
	cut(list);
	list->found.more = list->found.count > list->query->limit;
	if (list->found.more)
		list->found.count = list->query->limit;
	*ret_history = list->found;
}
