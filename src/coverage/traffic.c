/* Which operation a request belongs to. Each method and template is looked for once among
 * the operations that are known, and found by a hash from then on, so that a long log costs
 * no more than its lines. */
#include "coverage/traffic.h"

#include <stdlib.h>

#include "base/status.h"
#include "coverage/key_name.h"
#include "http/method.h"
#include "http/path_template.h"

#define TEMPLATES_MAX 65536
#define SLOTS (2 * TEMPLATES_MAX)
#define EXAMPLE_MAX 200

struct traffic_entry {
	struct hpx_span method;
	struct hpx_span template;
	size_t operation;
};

struct hpx_traffic_index {
	struct hpx_coverage *coverage;
	struct traffic_entry *entries;
	uint32_t *slots; /* numbers of entries, from 1; 0: free */
	size_t count;
};

struct hpx_traffic_index *hpx_traffic_index_new(struct hpx_coverage *coverage)
{
	struct hpx_traffic_index *index = calloc(1, sizeof(*index));

	if (index == NULL)
		return NULL;
	index->coverage = coverage;
	index->entries = calloc(TEMPLATES_MAX, sizeof(*index->entries));
	index->slots = calloc(SLOTS, sizeof(*index->slots));
	if (index->entries != NULL && index->slots != NULL)
		return index;
	hpx_traffic_index_free(index);
	return NULL;
}

void hpx_traffic_index_free(struct hpx_traffic_index *index)
{
	if (index == NULL)
		return;
	free(index->entries);
	free(index->slots);
	free(index);
}

struct hpx_coverage *hpx_traffic_coverage(const struct hpx_traffic_index *index)
{
	return index->coverage;
}

bool hpx_traffic_is_key(const struct hpx_coverage *coverage, struct hpx_span name)
{
	return hpx_key_mark_of(name) == HPX_MARK_STRONG ||
	       (coverage->settings != NULL && hpx_span_ieq(name, coverage->settings->key_header));
}

static struct hpx_span path_of(struct hpx_span target)
{
	static const struct hpx_span scheme = HPX_SPAN_INIT("://");

	target = hpx_span_first(target, hpx_span_index(target, '#'));
	for (size_t i = 0; i + scheme.len <= target.len && target.ptr[0] != '/'; i++)
		if (hpx_span_starts(hpx_span_skip(target, i), scheme)) {
			target = hpx_span_skip(target, i + scheme.len);
			size_t slash = hpx_span_index(target, '/');
			return slash < target.len ? hpx_span_skip(target, slash) : HPX_SPAN("/");
		}
	return target;
}

/* ---- the operation ---- */

/* The template with fewest {…}: "/users/me" before "/users/{id}". */
static size_t rank_of(struct hpx_span template)
{
	size_t braces = 0;

	for (size_t i = 0; i < template.len; i++)
		braces += template.ptr[i] == '{' || template.ptr[i] == '*';
	return braces;
}

static size_t find_known(const struct hpx_coverage *coverage, struct hpx_span method,
			 struct hpx_span path)
{
	size_t found = SIZE_MAX, best = SIZE_MAX;

	for (size_t i = 0; i < coverage->operation_count; i++) {
		const struct hpx_covered_operation *operation = &coverage->operations[i];
		if (!hpx_span_eq(operation->method, method) ||
		    !hpx_path_matches(operation->path, path) || rank_of(operation->path) >= best)
			continue;
		found = i;
		best = rank_of(operation->path);
	}
	return found;
}

static struct hpx_span corrected(const struct hpx_coverage *coverage, struct hpx_span path,
				 struct hpx_span template)
{
	for (size_t i = 0; i < coverage->template_count; i++)
		if (hpx_path_matches(coverage->templates[i], path))
			return coverage->templates[i];
	return template;
}

static size_t add_seen(struct hpx_coverage *coverage, struct hpx_span method,
		       struct hpx_span template)
{
	struct hpx_covered_operation *operation = hpx_coverage_add(coverage);

	if (operation == NULL)
		return SIZE_MAX;
	operation->method = method;
	operation->path = template;
	operation->tag = HPX_SPAN("(traffic)");
	operation->key.reason = HPX_SPAN("seen, and in no description");
	if (hpx_method_kind(method) == HPX_METHOD_IDEMPOTENT)
		operation->key.class = HPX_CLASS_SAFE;
	return coverage->operation_count - 1;
}

static size_t find_operation(struct hpx_coverage *coverage, struct hpx_span method,
			     struct hpx_span path, struct hpx_span template)
{
	size_t known = find_known(coverage, method, path);

	return known != SIZE_MAX ? known :
				   add_seen(coverage, method, corrected(coverage, path, template));
}

/* ---- the index ---- */

static size_t hash_of(struct hpx_span method, struct hpx_span template)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < method.len; i++)
		hash = (hash ^ (unsigned char)method.ptr[i]) * 0x100000001b3u;
	for (size_t i = 0; i < template.len; i++)
		hash = (hash ^ (unsigned char)template.ptr[i]) * 0x100000001b3u;
	return (size_t)(hash ^ hash >> 31) & (SLOTS - 1);
}

static uint32_t *find_slot(struct hpx_traffic_index *index, struct hpx_span method,
			   struct hpx_span template)
{
	size_t at = hash_of(method, template);

	for (; index->slots[at] != 0; at = (at + 1) & (SLOTS - 1)) {
		const struct traffic_entry *entry = &index->entries[index->slots[at] - 1];
		if (hpx_span_eq(entry->method, method) && hpx_span_eq(entry->template, template))
			break;
	}
	return &index->slots[at];
}

/* The entry of a method and a template, made where there is none yet; NULL: no room. */
static const struct traffic_entry *entry_of(struct hpx_traffic_index *index, struct hpx_span method,
					    struct hpx_span path, struct hpx_span template)
{
	struct hpx_coverage *coverage = index->coverage;
	uint32_t *slot = find_slot(index, method, template);

	if (*slot != 0)
		return &index->entries[*slot - 1];
	struct traffic_entry entry = { hpx_arena_dup(&coverage->arena, method),
				       hpx_arena_dup(&coverage->arena, template), SIZE_MAX };
	if (index->count == TEMPLATES_MAX || entry.method.ptr == NULL || entry.template.ptr == NULL) {
		coverage->full = true;
		return NULL;
	}
	entry.operation = find_operation(coverage, entry.method, path, entry.template);
	if (entry.operation == SIZE_MAX)
		return NULL;
	index->entries[index->count++] = entry;
	*slot = (uint32_t)index->count;
	return &index->entries[index->count - 1];
}

static void keep_example(struct hpx_coverage *coverage, struct hpx_covered_operation *operation,
			 struct hpx_span path)
{
	if (operation->example.ptr != NULL)
		return;
	path = hpx_span_first(path, hpx_span_index(path, '?'));
	struct hpx_span copy = hpx_arena_dup(&coverage->arena, hpx_span_first(path, EXAMPLE_MAX));
	if (copy.ptr != NULL)
		operation->example = copy;
}

size_t hpx_traffic_count(struct hpx_traffic_index *index, const struct hpx_seen_request *seen)
{
	enum hpx_method_kind kind = hpx_method_kind(seen->method);
	struct hpx_span path = path_of(seen->target);
	char template[HPX_PATH_TEMPLATE_MAX];

	if ((kind != HPX_METHOD_NEITHER && kind != HPX_METHOD_IDEMPOTENT) || path.len == 0 ||
	    path.ptr[0] != '/')
		return SIZE_MAX;
	const struct traffic_entry *entry =
		entry_of(index, seen->method, path, hpx_path_template(path, template));
	if (entry == NULL)
		return SIZE_MAX;
	struct hpx_covered_operation *operation = &index->coverage->operations[entry->operation];
	operation->traffic.requests += seen->count;
	operation->traffic.keyed += seen->keyed == HPX_KEYED_YES ? seen->count : 0;
	operation->traffic.unkeyed += seen->keyed == HPX_KEYED_NO ? seen->count : 0;
	keep_example(index->coverage, operation, path);
	return entry->operation;
}

/* ---- a running gateway ---- */

static uint64_t number_of(struct hpx_value_at row, const char *name)
{
	uint64_t number = 0;

	return hpx_span_u64(hpx_value_member_text(row, name), UINT64_MAX / 4, &number) ? number : 0;
}

static void count_row(struct hpx_traffic_index *index, struct hpx_value_at row)
{
	struct hpx_seen_request seen = { .method = hpx_value_member_text(row, "method"),
					 .target = hpx_value_member_text(row, "path"),
					 .keyed = HPX_KEYED_YES,
					 .count = number_of(row, "keyed") };

	if (seen.count > 0)
		hpx_traffic_count(index, &seen);
	seen.keyed = HPX_KEYED_NO;
	seen.count = number_of(row, "unkeyed");
	if (seen.count > 0)
		hpx_traffic_count(index, &seen);
}

enum hpx_status hpx_traffic_read_gateway(struct hpx_traffic_index *index, struct hpx_span text)
{
	const struct hpx_document *document =
		hpx_library_add(&index->coverage->library, HPX_SPAN("gateway.json"), text);
	if (document == NULL)
		return HPX_INVALID;
	struct hpx_value_at rows =
		hpx_value_member(hpx_document_root(document), HPX_SPAN("operations"));

	if (!hpx_value_is(rows, HPX_JSON_ARRAY))
		return HPX_INVALID;
	for (struct hpx_value_at row = hpx_value_first(rows); hpx_value_there(row);
	     row = hpx_value_next(row))
		count_row(index, row);
	return HPX_OK;
}
