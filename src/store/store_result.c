/* The heap blocks that a store gives its callers: stored answers, jobs, and
 * operations or jobs whose outcome is unknown. Each is one block, with the bytes
 * that its spans point to behind it. And what a job must be to be stored: the same
 * on every store, and the same that the SQL functions for applications check. */
#include <stdlib.h>

#include "store/store.h"

/* ---- answers ---- */

static char *put(char *at, struct hpx_span bytes, struct hpx_span *ret_copy)
{
	if (bytes.len != 0)
		memcpy(at, bytes.ptr, bytes.len);
	*ret_copy = hpx_span(at, bytes.len);
	return at + bytes.len;
}

struct hpx_answer *hpx_answer_new(uint32_t status, bool kept, struct hpx_span headers,
				  struct hpx_span body)
{
	struct hpx_answer *answer;

	if (headers.len > SIZE_MAX / 4 || body.len > SIZE_MAX / 4)
		return NULL;
	answer = malloc(sizeof(*answer) + headers.len + body.len);
	if (answer == NULL)
		return NULL;
	answer->status = status;
	answer->kept = kept;
	put(put((char *)(answer + 1), headers, &answer->headers), body, &answer->body);
	return answer;
}

void hpx_answer_free(struct hpx_answer *answer)
{
	free(answer);
}

/* ---- jobs ---- */

#define NAME_BYTES_MAX 255
#define METHOD_BYTES_MAX 32
#define PATH_BYTES_MAX 8192
#define HEADER_BYTES_MAX 65536
#define BODY_BYTES_MAX ((size_t)16 << 20)

static bool is_method(struct hpx_span method)
{
	if (method.len == 0 || method.len > METHOD_BYTES_MAX)
		return false;
	for (size_t i = 0; i < method.len; i++)
		if (method.ptr[i] < 'A' || method.ptr[i] > 'Z')
			return false;
	return true;
}

/* A path and nothing else: where it goes is the target's to say. */
static bool is_path(struct hpx_span path)
{
	if (path.len == 0 || path.len > PATH_BYTES_MAX || path.ptr[0] != '/')
		return false;
	for (size_t i = 0; i < path.len; i++)
		if (path.ptr[i] <= ' ' || path.ptr[i] > '~')
			return false;
	return true;
}

static bool is_name(struct hpx_span name)
{
	return name.len > 0 && name.len <= NAME_BYTES_MAX &&
	       memchr(name.ptr, '\0', name.len) == NULL;
}

const char *hpx_job_fault(const struct hpx_job *job)
{
	if (!is_name(job->name))
		return "a job's name is 1 to 255 bytes";
	if (!is_name(job->target))
		return "a job's target is named in the configuration, by 1 to 255 bytes";
	if (!is_method(job->method))
		return "a job's method is 1 to 32 capital letters";
	if (!is_path(job->path))
		return "a job's path begins with '/' and is visible ASCII, at most 8192 bytes";
	if (job->headers.len > HEADER_BYTES_MAX)
		return "a job's headers are at most 64 KiB";
	if (job->body.len > BODY_BYTES_MAX)
		return "a job's body is at most 16 MiB";
	return NULL;
}

struct hpx_job_entry *hpx_job_entry_new(const struct hpx_delivery *delivery,
					const struct hpx_job *job)
{
	size_t size = sizeof(struct hpx_job_entry) + job->name.len + job->target.len +
		      job->method.len + job->path.len + job->headers.len + job->body.len;
	struct hpx_job_entry *entry = malloc(size);
	char *at;

	if (entry == NULL)
		return NULL;
	*entry = (struct hpx_job_entry){ .delivery = *delivery, .readable = true };
	at = put(entry->bytes, job->name, &entry->job.name);
	at = put(at, job->target, &entry->job.target);
	at = put(at, job->method, &entry->job.method);
	at = put(at, job->path, &entry->job.path);
	at = put(at, job->headers, &entry->job.headers);
	put(at, job->body, &entry->job.body);
	return entry;
}

void hpx_job_entry_free(struct hpx_job_entry *list)
{
	while (list != NULL) {
		struct hpx_job_entry *next = list->next;
		free(list);
		list = next;
	}
}

/* ---- unknown outcomes ---- */

struct hpx_unsettled *hpx_unsettled_new(const struct hpx_unsettled *from)
{
	const struct hpx_description *d = &from->description;
	size_t size = sizeof(*from) + d->tenant.len + d->scope.len + d->key.len + d->method.len +
		      d->path.len + d->route.len + from->job_name.len + from->target.len;
	struct hpx_unsettled *copy = malloc(size);
	char *at;

	if (copy == NULL)
		return NULL;
	*copy = *from;
	copy->next = NULL;
	at = put(copy->bytes, d->tenant, &copy->description.tenant);
	at = put(at, d->scope, &copy->description.scope);
	at = put(at, d->key, &copy->description.key);
	at = put(at, d->method, &copy->description.method);
	at = put(at, d->path, &copy->description.path);
	at = put(at, d->route, &copy->description.route);
	at = put(at, from->job_name, &copy->job_name);
	put(at, from->target, &copy->target);
	return copy;
}

void hpx_unsettled_free(struct hpx_unsettled *list)
{
	while (list != NULL) {
		struct hpx_unsettled *next = list->next;
		free(list);
		list = next;
	}
}

/* ---- lists ---- */

bool hpx_entry_matches(const struct hpx_entry *entry, const struct hpx_query *query)
{
	enum hpx_state state = entry->readable ? entry->record.state : HPX_STATE_UNKNOWN;
	const struct hpx_description *d = &entry->description;

	return (query->state == HPX_STATE_COUNT || query->state == state) &&
	       (query->key.ptr == NULL || hpx_span_eq(query->key, d->key) ||
		hpx_span_eq(query->key_hash, d->key)) &&
	       (query->tenant.ptr == NULL || hpx_span_eq(query->tenant, d->tenant)) &&
	       (query->route.ptr == NULL || hpx_span_eq(query->route, d->route)) &&
	       (query->error == HPX_LAST_ERROR_NONE || query->error == entry->record.last_error) &&
	       entry->record.created_ms >= query->since_ms;
}

static int compare_changed(const void *a, const void *b)
{
	const struct hpx_record *first = &((const struct hpx_entry *)a)->record;
	const struct hpx_record *second = &((const struct hpx_entry *)b)->record;

	if (first->changed_ms != second->changed_ms)
		return first->changed_ms < second->changed_ms ? 1 : -1;
	if (first->created_ms != second->created_ms)
		return first->created_ms < second->created_ms ? 1 : -1;
	return memcmp(first->id.bytes, second->id.bytes, sizeof(first->id.bytes));
}

void hpx_entries_newest(struct hpx_entry *entries, size_t *count, unsigned limit)
{
	size_t kept = 0;

	if (*count > 1)
		qsort(entries, *count, sizeof(*entries), compare_changed);
	for (size_t i = 0; i < *count && kept < limit; i++) {
		bool again = kept > 0 && hpx_operation_id_eq(&entries[i].record.id,
							     &entries[kept - 1].record.id);
		if (!again)
			entries[kept++] = entries[i];
	}
	*count = kept;
}
