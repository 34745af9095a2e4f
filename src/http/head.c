/* Reading a head: scan until it is whole, cut it into spans, judge it. */
#include "base/assert.h"
#include "http/framing.h"
#include "http/message.h"

static void init(struct hpx_http_reader *reader, const struct hpx_http_limits *limits)
{
	*reader = (struct hpx_http_reader){ .limits = *limits };
	if (reader->limits.fields_max > HPX_HTTP_FIELDS_MAX)
		reader->limits.fields_max = HPX_HTTP_FIELDS_MAX;
}

void hpx_http_reader_request(struct hpx_http_reader *reader,
			     const struct hpx_http_limits *limits)
{
	init(reader, limits);
	hpx_scan_request(&reader->scan, reader->limits.fields_max);
}

void hpx_http_reader_response(struct hpx_http_reader *reader,
			      const struct hpx_http_limits *limits,
			      struct hpx_span request_method)
{
	init(reader, limits);
	reader->response = true;
	reader->head_request = hpx_span_eq(request_method, HPX_SPAN("HEAD"));
	reader->connect_request = hpx_span_eq(request_method, HPX_SPAN("CONNECT"));
	hpx_scan_response(&reader->scan, reader->limits.fields_max);
}

static enum hpx_http_progress bad(struct hpx_http_reader *reader, enum hpx_http_error error)
{
	reader->error = error;
	return HPX_HTTP_BAD;
}

/* Takes a line off the front, without its CR LF. The scanner proved that
 * every CR in a head is followed by LF. */
static struct hpx_span take_line(struct hpx_span *rest)
{
	size_t end = hpx_span_index(*rest, '\r');
	struct hpx_span line = hpx_span_first(*rest, end);

	*rest = hpx_span_skip(*rest, end + 2);
	return line;
}

static struct hpx_span take_until(struct hpx_span *rest, char sep)
{
	struct hpx_span item = { NULL, 0 };

	hpx_span_split(rest, sep, &item);
	return item;
}

static void cut_start_line(const struct hpx_scan *scan, struct hpx_span line,
			   struct hpx_http_head *head)
{
	head->minor = scan->version - 10;
	if (scan->response) {
		take_until(&line, ' ');
		take_until(&line, ' ');
		head->status = scan->status;
		head->reason = line;
	} else {
		head->method = take_until(&line, ' ');
		head->target = take_until(&line, ' ');
	}
}

static bool cut_fields(size_t count, struct hpx_span rest, struct hpx_arena *arena,
		       struct hpx_http_head *head)
{
	struct hpx_field *fields = hpx_arena_zalloc(arena, count, sizeof(*fields));

	if (fields == NULL)
		return false;
	for (size_t i = 0; i < count; i++) {
		struct hpx_span line = take_line(&rest);
		fields[i].name = take_until(&line, ':');
		fields[i].value = hpx_span_trim(line);
	}
	head->fields = fields;
	head->field_count = count;
	return true;
}

static enum hpx_http_error cut(const struct hpx_http_reader *reader, struct hpx_span bytes,
			       struct hpx_arena *arena, struct hpx_http_head *head)
{
	if (bytes.ptr[0] == '\r')
		bytes = hpx_span_skip(bytes, 2);
	cut_start_line(&reader->scan, take_line(&bytes), head);
	if (!cut_fields(reader->scan.field_count, bytes, arena, head))
		return HPX_HTTP_ERROR_HEAD_TOO_LARGE;
	return hpx_framing_judge(reader, head);
}

static enum hpx_http_progress finish(struct hpx_http_reader *reader, struct hpx_span bytes,
				     struct hpx_arena *arena,
				     struct hpx_http_head *ret_head, size_t *ret_used)
{
	struct hpx_http_head head = { 0 };
	enum hpx_http_error error =
		cut(reader, hpx_span_first(bytes, reader->scanned), arena, &head);

	if (error != HPX_HTTP_ERROR_NONE)
		return bad(reader, error);
	reader->head_done = true;
	reader->framing = head.framing;
	reader->remaining = head.framing == HPX_FRAMING_LENGTH ? head.content_length : 0;
	*ret_head = head;
	*ret_used = reader->scanned;
	return HPX_HTTP_DONE;
}

/* Never looks past the bound, so that the verdict on a large head is the
 * same whether its bytes came together or one at a time. */
enum hpx_http_progress hpx_http_read_head(struct hpx_http_reader *reader,
					  struct hpx_span bytes, struct hpx_arena *arena,
					  struct hpx_http_head *ret_head, size_t *ret_used)
{
	enum hpx_http_error error;
	size_t used;

	if (reader->error != HPX_HTTP_ERROR_NONE)
		return HPX_HTTP_BAD;
	HPX_ASSERT(!reader->head_done && bytes.len >= reader->scanned);

	struct hpx_span fresh = hpx_span_first(bytes, reader->limits.head_bytes_max);
	if (fresh.len > 0)
		fresh = hpx_span_skip(fresh, reader->scanned);
	switch (hpx_scan_run(&reader->scan, fresh, &used, &error)) {
	case HPX_HTTP_BAD:
		return bad(reader, error);
	case HPX_HTTP_DONE:
		reader->scanned += used;
		return finish(reader, bytes, arena, ret_head, ret_used);
	case HPX_HTTP_MORE:
		reader->scanned += used;
		break;
	}
	if (reader->scanned >= reader->limits.head_bytes_max)
		return bad(reader, HPX_HTTP_ERROR_HEAD_TOO_LARGE);
	return HPX_HTTP_MORE;
}
