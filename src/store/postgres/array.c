/* The binary form of an array: dimensions (1), whether there are nulls, the
 * element's type, its length, its lower bound (1), then each element with its
 * length before it, all of them big endian. */
#include "store/postgres/array.h"

#include "base/span.h"
#include "base/status.h"

/* Far below PostgreSQL's own bound of 1 GiB for a message. */
#define ARRAY_BYTES_MAX ((size_t)768 << 20)
#define HEADER_BYTES 20

static void store_u32(char *out, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		out[i] = (char)(value >> (24 - 8 * i));
}

static void append(struct hpx_pg_array *array, struct hpx_span bytes)
{
	if (array->status == HPX_OK)
		array->status = hpx_buffer_append(&array->bytes, bytes);
}

static void append_u32(struct hpx_pg_array *array, uint32_t value)
{
	char bytes[4];

	store_u32(bytes, value);
	append(array, hpx_span(bytes, sizeof(bytes)));
}

void hpx_pg_columns_init(struct hpx_pg_columns *columns, const enum hpx_pg_type *types, int count)
{
	static const char header[HEADER_BYTES];

	HPX_ASSERT(count <= HPX_PG_PARAMS_MAX);
	columns->count = count;
	columns->next = 0;
	for (int i = 0; i < count; i++) {
		struct hpx_pg_array *array = &columns->array[i];
		*array = (struct hpx_pg_array){ .type = types[i] };
		hpx_buffer_init(&array->bytes, ARRAY_BYTES_MAX);
		append(array, hpx_span(header, sizeof(header)));
	}
}

void hpx_pg_columns_done(struct hpx_pg_columns *columns)
{
	for (int i = 0; i < columns->count; i++)
		hpx_buffer_done(&columns->array[i].bytes);
}

static struct hpx_pg_array *next_column(struct hpx_pg_columns *columns)
{
	struct hpx_pg_array *array = &columns->array[columns->next];

	HPX_ASSERT(columns->next < columns->count);
	columns->next = (columns->next + 1) % columns->count;
	array->count++;
	return array;
}

void hpx_pg_put_bytes(struct hpx_pg_columns *columns, struct hpx_span bytes)
{
	struct hpx_pg_array *array = next_column(columns);

	if (bytes.len > ARRAY_BYTES_MAX)
		array->status = HPX_TOO_LARGE;
	append_u32(array, (uint32_t)bytes.len);
	append(array, bytes);
}

void hpx_pg_put_text(struct hpx_pg_columns *columns, struct hpx_span text)
{
	struct hpx_pg_array *array = next_column(columns);
	size_t at = 0;

	if (text.len > ARRAY_BYTES_MAX)
		array->status = HPX_TOO_LARGE;
	append_u32(array, (uint32_t)text.len);
	if (text.len > 0 && hpx_utf8_valid(text) && memchr(text.ptr, '\0', text.len) == NULL) {
		append(array, text);
		return;
	}
	while (at < text.len && array->status == HPX_OK) {
		size_t len = hpx_utf8_sequence(hpx_span_skip(text, at));
		bool good = len > 0 && text.ptr[at] != '\0';
		append(array, good ? hpx_span(text.ptr + at, len) : HPX_SPAN("?"));
		at += good ? len : 1;
	}
}

static size_t width_of(enum hpx_pg_type type)
{
	switch (type) {
	case HPX_PG_BOOL:
		return 1;
	case HPX_PG_INT2:
		return 2;
	case HPX_PG_INT4:
		return 4;
	default:
		HPX_ASSERT(type == HPX_PG_INT8);
		return 8;
	}
}

void hpx_pg_put_int(struct hpx_pg_columns *columns, int64_t value)
{
	struct hpx_pg_array *array = next_column(columns);
	size_t width = width_of(array->type);
	char bytes[8];

	for (size_t i = 0; i < width; i++)
		bytes[i] = (char)((uint64_t)value >> (8 * (width - 1 - i)));
	append_u32(array, (uint32_t)width);
	append(array, hpx_span(bytes, width));
}

void hpx_pg_put_null(struct hpx_pg_columns *columns)
{
	struct hpx_pg_array *array = next_column(columns);

	array->has_null = true;
	append_u32(array, UINT32_MAX);
}

uint32_t hpx_pg_columns_rows(const struct hpx_pg_columns *columns)
{
	return columns->array[0].count;
}

size_t hpx_pg_columns_bytes(const struct hpx_pg_columns *columns)
{
	size_t bytes = 0;

	for (int i = 0; i < columns->count; i++)
		bytes += columns->array[i].bytes.len;
	return bytes;
}

enum hpx_status hpx_pg_columns_param(struct hpx_pg_columns *columns, struct hpx_pg_params *params)
{
	HPX_ASSERT(columns->next == 0); /* whole rows only */
	params->count = 0;
	for (int i = 0; i < columns->count; i++) {
		struct hpx_pg_array *array = &columns->array[i];
		HPX_ASSERT(array->count == columns->array[0].count);
		char *header = array->bytes.ptr;
		if (array->status != HPX_OK)
			return array->status;
		store_u32(header, 1);
		store_u32(header + 4, array->has_null);
		store_u32(header + 8, (uint32_t)array->type);
		store_u32(header + 12, array->count);
		store_u32(header + 16, 1);
		hpx_pg_add_bytes(params, hpx_buffer_span(&array->bytes));
	}
	return HPX_OK;
}
