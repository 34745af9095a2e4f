/* Hash table of operations, lists of events and recipes, all on the heap. */
#include "store/memory/memory.h"

#include <stdlib.h>

#include "base/status.h"

void hpx_memory_table_init(struct hpx_memory_table *table)
{
	memset(table, 0, sizeof(*table));
	table->events_end = &table->events;
}

static struct hpx_memory_row **bucket_of(struct hpx_memory_table *table,
					 const struct hpx_operation_id *id)
{
	return &table->bucket[(id->bytes[0] | (unsigned)id->bytes[1] << 8) % HPX_MEMORY_BUCKETS];
}

static void free_row(struct hpx_memory_row *row)
{
	hpx_answer_free(row->answer);
	free(row->text);
	free(row->data);
	free(row);
}

void hpx_memory_table_done(struct hpx_memory_table *table)
{
	for (size_t i = 0; i < HPX_MEMORY_BUCKETS; i++)
		while (table->bucket[i] != NULL) {
			struct hpx_memory_row *row = table->bucket[i];
			table->bucket[i] = row->next;
			free_row(row);
		}
	while (table->events != NULL) {
		struct hpx_memory_event *event = table->events;
		table->events = event->next;
		free(event);
	}
	while (table->recipes != NULL) {
		struct hpx_memory_recipe *recipe = table->recipes;
		table->recipes = recipe->next;
		free(recipe);
	}
	while (table->jobs != NULL) {
		struct hpx_memory_job *job = table->jobs;
		table->jobs = job->next;
		free(job);
	}
}

struct hpx_memory_row *hpx_memory_row_find(struct hpx_memory_table *table,
					   const struct hpx_operation_id *id)
{
	struct hpx_memory_row *row = *bucket_of(table, id);

	while (row != NULL && !hpx_operation_id_eq(&row->record.id, id))
		row = row->next;
	return row;
}

struct hpx_memory_row *hpx_memory_row_add(struct hpx_memory_table *table,
					  const struct hpx_operation_id *id)
{
	struct hpx_memory_row **bucket = bucket_of(table, id);
	struct hpx_memory_row *row = calloc(1, sizeof(*row));

	if (row == NULL)
		return NULL;
	row->record.id = *id;
	row->seq = ++table->seq;
	row->next = *bucket;
	*bucket = row;
	return row;
}

void hpx_memory_row_remove(struct hpx_memory_table *table, struct hpx_memory_row *row)
{
	struct hpx_memory_row **at = bucket_of(table, &row->record.id);

	while (*at != row) {
		HPX_ASSERT(*at != NULL); /* the row is in its bucket */
		at = &(*at)->next;
	}
	*at = row->next;
	free_row(row);
}

static struct hpx_span put(char **at, struct hpx_span text)
{
	struct hpx_span copy = hpx_span(*at, text.len);

	if (text.len != 0)
		memcpy(*at, text.ptr, text.len);
	*at += text.len;
	return copy;
}

enum hpx_status hpx_memory_row_describe(struct hpx_memory_row *row,
					const struct hpx_description *d)
{
	char *text = malloc(1 + d->tenant.len + d->scope.len + d->key.len + d->method.len +
			    d->path.len + d->route.len);
	char *at = text;

	if (text == NULL)
		return HPX_NOMEM;
	row->description.tenant = put(&at, d->tenant);
	row->description.scope = put(&at, d->scope);
	row->description.key = put(&at, d->key);
	row->description.method = put(&at, d->method);
	row->description.path = put(&at, d->path);
	row->description.route = put(&at, d->route);
	free(row->text);
	row->text = text;
	return HPX_OK;
}

enum hpx_status hpx_memory_event_add(struct hpx_memory_table *table,
				     const struct hpx_operation_id *id,
				     const struct hpx_event *event)
{
	struct hpx_memory_event *copy =
		malloc(sizeof(*copy) + event->what.len + event->actor.len + event->reason.len);
	char *at;

	if (copy == NULL)
		return HPX_NOMEM;
	at = copy->text;
	copy->next = NULL;
	copy->id = *id;
	copy->event = *event;
	copy->event.what = put(&at, event->what);
	copy->event.actor = put(&at, event->actor);
	copy->event.reason = put(&at, event->reason);
	*table->events_end = copy;
	table->events_end = &copy->next;
	return HPX_OK;
}

bool hpx_memory_event_has(const struct hpx_memory_table *table, const struct hpx_record *record,
			  struct hpx_span what)
{
	for (const struct hpx_memory_event *e = table->events; e != NULL; e = e->next)
		if (hpx_operation_id_eq(&e->id, &record->id) && hpx_span_eq(e->event.what, what) &&
		    e->event.at_ms >= record->created_ms)
			return true;
	return false;
}

void hpx_memory_events_reap(struct hpx_memory_table *table, int64_t until_ms)
{
	while (table->events != NULL && table->events->event.at_ms <= until_ms) {
		struct hpx_memory_event *event = table->events;
		table->events = event->next;
		free(event);
	}
	if (table->events == NULL)
		table->events_end = &table->events;
}

const struct hpx_memory_recipe *hpx_memory_recipe_find(const struct hpx_memory_table *table,
						       const struct hpx_recipe_id *id)
{
	const struct hpx_memory_recipe *recipe = table->recipes;

	while (recipe != NULL && memcmp(recipe->id.bytes, id->bytes, sizeof(id->bytes)) != 0)
		recipe = recipe->next;
	return recipe;
}

enum hpx_status hpx_memory_recipe_add(struct hpx_memory_table *table,
				      const struct hpx_recipe_id *id, struct hpx_span text)
{
	struct hpx_memory_recipe *recipe;
	char *at;

	if (hpx_memory_recipe_find(table, id) != NULL)
		return HPX_OK;
	recipe = malloc(sizeof(*recipe) + text.len);
	if (recipe == NULL)
		return HPX_NOMEM;
	at = recipe->text;
	put(&at, text);
	recipe->id = *id;
	recipe->len = text.len;
	recipe->next = table->recipes;
	table->recipes = recipe;
	return HPX_OK;
}

enum hpx_status hpx_memory_row_save(struct hpx_memory_row *row, struct hpx_span data)
{
	char *copy = NULL;

	if (data.len != 0) {
		copy = malloc(data.len);
		if (copy == NULL)
			return HPX_NOMEM;
		memcpy(copy, data.ptr, data.len);
	}
	free(row->data);
	row->data = copy;
	row->data_len = data.len;
	return HPX_OK;
}

static bool is_same_job(const struct hpx_job *a, const struct hpx_job *b)
{
	return hpx_span_eq(a->target, b->target) && hpx_span_eq(a->method, b->method) &&
	       hpx_span_eq(a->path, b->path) && hpx_span_eq(a->headers, b->headers) &&
	       hpx_span_eq(a->body, b->body);
}

static struct hpx_memory_job *copy_job(const struct hpx_job *job)
{
	struct hpx_memory_job *copy =
		calloc(1, sizeof(*copy) + job->name.len + job->target.len + job->method.len +
				  job->path.len + job->headers.len + job->body.len);

	if (copy == NULL)
		return NULL;
	char *at = copy->bytes;
	copy->job.name = put(&at, job->name);
	copy->job.target = put(&at, job->target);
	copy->job.method = put(&at, job->method);
	copy->job.path = put(&at, job->path);
	copy->job.headers = put(&at, job->headers);
	copy->job.body = put(&at, job->body);
	return copy;
}

enum hpx_status hpx_memory_job_add(struct hpx_memory_table *table, const struct hpx_record *record,
				   const struct hpx_job *job)
{
	struct hpx_memory_job *copy;

	for (const struct hpx_memory_job *j = table->jobs; j != NULL; j = j->next)
		if (hpx_operation_id_eq(&j->operation, &record->id) &&
		    hpx_mark_eq(&j->mark, &record->mark) && hpx_span_eq(j->job.name, job->name))
			return is_same_job(&j->job, job) ? HPX_OK : HPX_CONFLICT;
	copy = copy_job(job);
	if (copy == NULL)
		return HPX_NOMEM;
	copy->operation = record->id;
	copy->mark = record->mark;
	copy->next = table->jobs;
	table->jobs = copy;
	return HPX_OK;
}
