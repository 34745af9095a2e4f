/* The list of operations that a gateway has seen: method and path template, with how many
 * requests had a key. Each event loop has a list of its own, which only that loop writes;
 * /api/v1/coverage adds them up without a lock. */
#include <stdlib.h>

#include "base/json_writer.h"
#include "base/status.h"
#include "gateway/gateway.h"
#include "gateway/meter.h"
#include "http/path_template.h"

_Static_assert((HPX_METER_SEEN_SLOTS & (HPX_METER_SEEN_SLOTS - 1)) == 0, "slots are masked");
_Static_assert(HPX_METER_SEEN < HPX_METER_SEEN_SLOTS, "there is always a free slot");
_Static_assert(HPX_PATH_TEMPLATE_MAX < HPX_METER_PATH_SIZE, "a template fits");

/* ---- counting ---- */

static size_t hash_of(struct hpx_span method, struct hpx_span path)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < method.len; i++)
		hash = (hash ^ (unsigned char)method.ptr[i]) * 16777619u;
	for (size_t i = 0; i < path.len; i++)
		hash = (hash ^ (unsigned char)path.ptr[i]) * 16777619u;
	return (hash ^ hash >> 15) & (HPX_METER_SEEN_SLOTS - 1);
}

static bool is_row(const struct hpx_meter_seen *row, struct hpx_span method, struct hpx_span path)
{
	return hpx_span_eq(hpx_span_of(row->path), path) && hpx_span_eq(hpx_span_of(row->method), method);
}

static struct hpx_meter_seen *new_row(struct hpx_meter *meter, struct hpx_span method,
				      struct hpx_span path)
{
	if (meter->seen_count == HPX_METER_SEEN)
		return NULL;
	struct hpx_meter_seen *row = &meter->seen[meter->seen_count++];
	memcpy(row->method, method.ptr, method.len);
	row->method[method.len] = '\0';
	memcpy(row->path, path.ptr, path.len);
	row->path[path.len] = '\0';
	atomic_store_explicit(&row->ready, true, memory_order_release);
	return row;
}

/* NULL: the list is full, or the method is too long for it. */
static struct hpx_meter_seen *find_row(struct hpx_meter *meter, struct hpx_span method,
				       struct hpx_span path)
{
	size_t at = hash_of(method, path);

	if (method.len >= HPX_METER_METHOD_SIZE || path.len >= HPX_METER_PATH_SIZE)
		return NULL;
	for (; meter->seen_slots[at] != 0; at = (at + 1) & (HPX_METER_SEEN_SLOTS - 1)) {
		struct hpx_meter_seen *row = &meter->seen[meter->seen_slots[at] - 1];
		if (is_row(row, method, path))
			return row;
	}
	struct hpx_meter_seen *row = new_row(meter, method, path);
	if (row != NULL)
		meter->seen_slots[at] = (uint16_t)meter->seen_count;
	return row;
}

/* The path of a route that says every segment, by which operators correct what a template
 * would be guessed as; otherwise the guess. */
static struct hpx_span template_of(const struct hpx_route *route, struct hpx_span path,
				   char out[HPX_PATH_TEMPLATE_MAX])
{
	bool whole = route->segment_count > 0 &&
		     route->segments[route->segment_count - 1].kind != HPX_SEGMENT_REST;
	struct hpx_span pattern = hpx_span_skip(route->pattern, hpx_span_index(route->pattern, '/'));

	return whole && pattern.len > 0 && pattern.len < HPX_METER_PATH_SIZE ?
		       pattern :
		       hpx_path_template(path, out);
}

void hpx_meter_see(struct hpx_meter *meter, const struct hpx_route *route, struct hpx_span method,
		   struct hpx_span path, bool keyed)
{
	char out[HPX_PATH_TEMPLATE_MAX];
	struct hpx_meter_seen *row = find_row(meter, method, template_of(route, path, out));

	if (row == NULL)
		hpx_counter_add(&meter->seen_others, 1);
	else
		hpx_counter_add(keyed ? &row->keyed : &row->unkeyed, 1);
}

/* ---- the page ---- */

static int compare_rows(const void *a, const void *b)
{
	const struct hpx_meter_seen *const *left = a, *const *right = b;
	int order = strcmp((*left)->path, (*right)->path);

	return order != 0 ? order : strcmp((*left)->method, (*right)->method);
}

static size_t collect(struct hpx_gateway *gateway, const struct hpx_meter_seen **rows)
{
	size_t count = 0;

	for (unsigned s = 0; s < gateway->shard_count; s++)
		for (size_t i = 0; i < HPX_METER_SEEN; i++) {
			struct hpx_meter_seen *row = &gateway->shards[s].meter.seen[i];
			if (!atomic_load_explicit(&row->ready, memory_order_acquire))
				break;
			rows[count++] = row;
		}
	return count;
}

/* The rows of one operation, one for each loop that saw it. Returns how many. */
static size_t put_operation(struct hpx_json_writer *json, const struct hpx_meter_seen **rows,
			    size_t count)
{
	uint64_t keyed = 0, unkeyed = 0;
	size_t n = 0;

	for (; n < count && compare_rows(&rows[n], &rows[0]) == 0; n++) {
		keyed += hpx_counter_read(&rows[n]->keyed);
		unkeyed += hpx_counter_read(&rows[n]->unkeyed);
	}
	hpx_json_begin_object(json, NULL);
	hpx_json_put_text(json, "method", rows[0]->method);
	hpx_json_put_text(json, "path", rows[0]->path);
	hpx_json_put_number(json, "keyed", keyed);
	hpx_json_put_number(json, "unkeyed", unkeyed);
	hpx_json_end_object(json);
	HPX_ASSERT(n > 0);
	return n;
}

static void put_operations(struct hpx_gateway *gateway, const struct hpx_meter_seen **rows,
			   struct hpx_json_writer *json)
{
	size_t count = collect(gateway, rows);

	if (count > 0)
		qsort(rows, count, sizeof(const struct hpx_meter_seen *), compare_rows);
	hpx_json_begin_array(json, "operations");
	for (size_t at = 0; at < count;)
		at += put_operation(json, rows + at, count - at);
	hpx_json_end_array(json);
}

enum hpx_status hpx_gateway_coverage(struct hpx_gateway *gateway, struct hpx_buffer *out)
{
	const struct hpx_meter_seen **rows =
		calloc((size_t)gateway->shard_count * HPX_METER_SEEN + 1, sizeof(*rows));
	struct hpx_json_writer json;
	uint64_t others = 0;

	if (rows == NULL)
		return HPX_NOMEM;
	hpx_json_writer_init(&json, out);
	hpx_json_begin_object(&json, NULL);
	put_operations(gateway, rows, &json);
	for (unsigned s = 0; s < gateway->shard_count; s++)
		others += hpx_counter_read(&gateway->shards[s].meter.seen_others);
	hpx_json_put_number(&json, "left_out", others);
	hpx_json_end_object(&json);
	free(rows);
	return hpx_json_writer_finish(&json);
}
