/* HAR files: what a browser or a proxy recorded. Each request is counted; and the same body
 * that comes again shortly after, under another key, is a client that makes a key for each
 * try, so that no service can tell the retry from a second order. */
#include <stdlib.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "core/json.h"
#include "coverage/traffic.h"

/* How long after the first a request counts as another try of it. */
#define TRY_WITHIN_MS 60000
#define ENTRIES_MAX 200000
#define BODY_BYTES_MAX ((size_t)16 << 20)

/* What is compared of one request. */
struct har_entry {
	size_t operation;
	uint8_t body[HPX_SHA256_SIZE]; /* of path, query and body without its key */
	struct hpx_span key;
	int64_t wall_ms;
	uint64_t status;
	struct hpx_source_place place;
};

struct har_reader {
	struct hpx_traffic_index *index;
	struct hpx_coverage *coverage;
	struct har_entry *entries;
	size_t count;
};

/* The value of the first header, or query parameter, that is a key. */
static struct hpx_span key_in_list(const struct har_reader *r, struct hpx_value_at list)
{
	for (struct hpx_value_at one = hpx_value_first(list); hpx_value_there(one);
	     one = hpx_value_next(one))
		if (hpx_traffic_is_key(r->coverage, hpx_value_member_text(one, "name")))
			return hpx_value_member_text(one, "value");
	return hpx_span(NULL, 0);
}

/* The member of a JSON body that is a key: its name in `*ret_name`, both in the arena. */
static struct hpx_span key_in_body(struct har_reader *r, struct hpx_span body,
				   struct hpx_span *ret_name)
{
	struct hpx_json_tree tree;
	struct hpx_span key = hpx_span(NULL, 0);

	if (body.len == 0 ||
	    hpx_json_tree_read(body, &hpx_json_limits_default, NULL, 0, &tree) != HPX_OK)
		return key;
	uint32_t at = tree.nodes[0].kind == HPX_JSON_OBJECT ? tree.nodes[0].first : HPX_JSON_NONE;
	for (; at != HPX_JSON_NONE; at = tree.nodes[at].next)
		if (tree.nodes[at].kind == HPX_JSON_STRING &&
		    hpx_traffic_is_key(r->coverage, tree.nodes[at].name)) {
			key = hpx_arena_dup(&r->coverage->arena, tree.nodes[at].text);
			*ret_name = hpx_arena_printf(&r->coverage->arena, "/%.*s",
						     HPX_SPAN_ARG(tree.nodes[at].name));
			break;
		}
	hpx_json_tree_done(&tree);
	return key;
}

static void hash_entry(struct hpx_span url, struct hpx_span body, struct hpx_span pointer,
		       struct har_entry *entry)
{
	struct hpx_buffer form;
	struct hpx_sha256 hash;

	hpx_buffer_init(&form, BODY_BYTES_MAX);
	if (hpx_json_canonical(body, &hpx_json_limits_default, &pointer, pointer.ptr != NULL, &form) ==
	    HPX_OK)
		body = hpx_buffer_span(&form);
	hpx_sha256_init(&hash);
	hpx_sha256_part(&hash, url);
	hpx_sha256_part(&hash, body);
	if (hpx_sha256_done(&hash, entry->body) != HPX_OK)
		entry->key = hpx_span(NULL, 0);
	hpx_buffer_done(&form);
}

static void keep_entry(struct har_reader *r, const struct har_entry *entry)
{
	if (entry->operation == SIZE_MAX || entry->key.len == 0)
		return;
	if (r->count == ENTRIES_MAX) {
		r->coverage->full = true;
		return;
	}
	r->entries[r->count++] = *entry;
}

static void read_entry(struct har_reader *r, struct hpx_value_at value)
{
	struct hpx_value_at request = hpx_value_member(value, HPX_SPAN("request"));
	struct hpx_span body = hpx_value_text(hpx_value_follow(request, HPX_SPAN("/postData/text")));
	struct hpx_span url = hpx_value_member_text(request, "url");
	struct hpx_span pointer = hpx_span(NULL, 0);
	struct har_entry entry = {
		.key = key_in_list(r, hpx_value_member(request, HPX_SPAN("headers"))),
		.place = { value.document->path, hpx_value_line(value) },
	};

	if (entry.key.len == 0)
		entry.key = key_in_list(r, hpx_value_member(request, HPX_SPAN("queryString")));
	if (entry.key.len == 0)
		entry.key = key_in_body(r, body, &pointer);
	const struct hpx_seen_request seen = {
		.method = hpx_value_member_text(request, "method"),
		.target = url,
		.keyed = entry.key.len > 0 ? HPX_KEYED_YES : HPX_KEYED_NO,
		.count = 1,
	};
	entry.operation = hpx_traffic_count(r->index, &seen);
	if (!hpx_clock_parse_rfc3339(hpx_value_member_text(value, "startedDateTime"), &entry.wall_ms))
		return;
	hpx_span_u64(hpx_value_text(hpx_value_follow(value, HPX_SPAN("/response/status"))), 999,
		     &entry.status);
	hash_entry(hpx_span_first(url, hpx_span_index(url, '?')), body, pointer, &entry);
	keep_entry(r, &entry);
}

/* ---- a key per try ---- */

static int compare_entries(const void *a, const void *b)
{
	const struct har_entry *left = a, *right = b;
	int order = left->operation < right->operation ? -1 : left->operation > right->operation;

	if (order == 0)
		order = memcmp(left->body, right->body, sizeof(left->body));
	if (order == 0)
		order = left->wall_ms < right->wall_ms ? -1 : left->wall_ms > right->wall_ms;
	return order;
}

/* Whether a client had a reason to send it again. */
static bool has_failed(uint64_t status)
{
	return status < 200 || status >= 500 || status == 408 || status == 425 || status == 429;
}

static void compare_tries(struct har_reader *r, const struct har_entry *first,
			  const struct har_entry *second)
{
	int64_t later_ms = second->wall_ms - first->wall_ms;

	if (first->operation != second->operation ||
	    memcmp(first->body, second->body, sizeof(first->body)) != 0 || later_ms > TRY_WITHIN_MS ||
	    hpx_span_eq(first->key, second->key))
		return;
	hpx_coverage_find(r->coverage,
			  has_failed(first->status) ? HPX_RULE_KEY_PER_TRY : HPX_RULE_BODY_REPEATED,
			  &r->coverage->operations[first->operation], second->place,
			  "the same body as on line %u, %lld ms later under another key; the first was "
			  "answered with %llu",
			  first->place.line, (long long)later_ms, (unsigned long long)first->status);
}

void hpx_traffic_read_har(struct hpx_traffic_index *index, const struct hpx_document *document)
{
	struct hpx_value_at list =
		hpx_value_follow(hpx_document_root(document), HPX_SPAN("/log/entries"));
	struct hpx_coverage *coverage = hpx_traffic_coverage(index);
	struct har_reader r = { .index = index, .coverage = coverage };

	if (!hpx_value_is(list, HPX_JSON_ARRAY)) {
		hpx_library_error(&coverage->library, document->path, 1,
				  "is no HAR file: log.entries is not there");
		return;
	}
	r.entries = calloc(ENTRIES_MAX, sizeof(*r.entries));
	if (r.entries == NULL) {
		coverage->full = true;
		return;
	}
	for (struct hpx_value_at one = hpx_value_first(list); hpx_value_there(one);
	     one = hpx_value_next(one))
		read_entry(&r, one);
	qsort(r.entries, r.count, sizeof(*r.entries), compare_entries);
	for (size_t i = 1; i < r.count; i++)
		compare_tries(&r, &r.entries[i - 1], &r.entries[i]);
	free(r.entries);
}
