/* Reading a head: scan until it is whole, cut it into spans, judge it. What the fields
 * decide about the message itself (where its body ends, whom it is for, whether the
 * connection goes on: RFC 9112 §3.2, §6, §9) is judged on a head whose shape is proved.
 * One pass notes the fields that matter, then each rule looks at the notes. Where two
 * servers could read a message differently, it is refused, never mended: a second
 * Content-Length even if equal, a list in it, any Transfer-Encoding but one `chunked`. */
#include "base/status.h"
#include "http/message.h"
#include "http/target.h"

/* Browsers send two. Bounded because each header is later held against each
 * option. */
#define CONNECTION_OPTIONS_MAX 16

#define LENGTH_MAX ((uint64_t)INT64_MAX)

/* ---- the framing ---- */

struct framing_notes {
	size_t hosts;
	size_t lengths;
	size_t encodings;
	size_t options;
	struct hpx_span host;
	struct hpx_span length;
	struct hpx_span encoding;
	bool close;
	bool keep_alive;
	bool names_upgrade; /* in Connection */
	bool has_upgrade;   /* the field itself */
	bool expects_continue;
	bool expects_other;
	bool names_needed; /* Connection names what must travel */
	bool nominates;    /* Connection names more than keep-alive and upgrade */
};

/* The fields that this reader goes by: had they been dropped on the way, the next server
 * would read another message. (Which other names must travel depends on what is
 * configured, and is not the reader's business.) A server may name its
 * Transfer-Encoding, some do; it never travels anyhow. */
static bool is_needed(struct hpx_span option, bool response)
{
	if (hpx_span_ieq(option, HPX_SPAN("transfer-encoding")))
		return !response;
	return hpx_span_istarts(option, HPX_SPAN("content-")) ||
	       hpx_span_ieq(option, HPX_SPAN("host")) || hpx_span_ieq(option, HPX_SPAN("expect"));
}

static void note_connection(struct framing_notes *notes, struct hpx_span list, bool response)
{
	struct hpx_span option;

	while (notes->options <= CONNECTION_OPTIONS_MAX &&
	       hpx_span_split(&list, ',', &option)) {
		option = hpx_span_trim(option);
		notes->options++;
		if (hpx_span_ieq(option, HPX_SPAN("keep-alive"))) {
			notes->keep_alive = true;
			continue;
		}
		if (hpx_span_ieq(option, HPX_SPAN("upgrade"))) {
			notes->names_upgrade = true;
			continue;
		}
		notes->nominates = true;
		if (hpx_span_ieq(option, HPX_SPAN("close")))
			notes->close = true;
		else if (is_needed(option, response))
			notes->names_needed = true;
	}
}

static void note_expect(struct framing_notes *notes, struct hpx_span value)
{
	if (hpx_span_ieq(value, HPX_SPAN("100-continue")))
		notes->expects_continue = true;
	else
		notes->expects_other = true;
}

static void note(size_t *count, struct hpx_span *noted, const struct hpx_field *field)
{
	++*count;
	*noted = field->value;
}

static void note_field(struct framing_notes *notes, enum hpx_field_name known,
		       const struct hpx_field *field, bool response)
{
	switch (known) {
	case HPX_NAME_HOST:
		note(&notes->hosts, &notes->host, field);
		break;
	case HPX_NAME_EXPECT:
		note_expect(notes, field->value);
		break;
	case HPX_NAME_UPGRADE:
		notes->has_upgrade = true;
		break;
	case HPX_NAME_CONNECTION:
		note_connection(notes, field->value, response);
		break;
	case HPX_NAME_CONTENT_LENGTH:
		note(&notes->lengths, &notes->length, field);
		break;
	case HPX_NAME_TRANSFER_ENCODING:
		note(&notes->encodings, &notes->encoding, field);
		break;
	default:
		break;
	}
}

/* RFC 9112 §6.1, §6.2: whether the lengths are such that only one reading
 * exists, body or no body. */
static enum hpx_http_error judge_lengths(const struct framing_notes *notes,
					 struct hpx_http_head *head)
{
	if (notes->lengths > 0 && notes->encodings > 0)
		return HPX_HTTP_ERROR_LENGTH_AND_ENCODING;
	if (notes->encodings > 1)
		return HPX_HTTP_ERROR_TRANSFER_ENCODING;
	if (notes->encodings == 1 &&
	    (head->minor == 0 || !hpx_span_ieq(notes->encoding, HPX_SPAN("chunked"))))
		return HPX_HTTP_ERROR_TRANSFER_ENCODING;
	if (notes->lengths > 1)
		return HPX_HTTP_ERROR_CONTENT_LENGTH;
	if (notes->lengths == 1 &&
	    !hpx_span_u64(notes->length, LENGTH_MAX, &head->content_length))
		return HPX_HTTP_ERROR_CONTENT_LENGTH;
	head->has_content_length = notes->lengths == 1;
	return HPX_HTTP_ERROR_NONE;
}

/* RFC 9112 §6.3, in its order; `plain` is what no length at all means. */
static enum hpx_http_framing framing_by_length(const struct framing_notes *notes,
					       enum hpx_http_framing plain)
{
	if (notes->encodings == 1)
		return HPX_FRAMING_CHUNKED;
	return notes->lengths == 1 ? HPX_FRAMING_LENGTH : plain;
}

static enum hpx_http_framing response_framing(const struct hpx_http_reader *reader,
					      const struct framing_notes *notes,
					      const struct hpx_http_head *head)
{
	if (head->status == 101)
		return HPX_FRAMING_TUNNEL;
	if (reader->head_request || head->status < 200 || head->status == 204 ||
	    head->status == 304)
		return HPX_FRAMING_NONE;
	if (reader->connect_request && head->status < 300)
		return HPX_FRAMING_TUNNEL;
	return framing_by_length(notes, HPX_FRAMING_CLOSE);
}

/* RFC 9112 §3.2: HTTP/1.0 may lack Host; nobody may repeat it. */
static bool host_is_good(const struct framing_notes *notes, unsigned minor)
{
	if (notes->hosts == 0)
		return minor == 0;
	return notes->hosts == 1 && hpx_host_valid(notes->host);
}

/* RFC 9110 §10.1.1: on HTTP/1.0 an expectation does not count. */
static enum hpx_http_error judge_request(const struct framing_notes *notes,
					 struct hpx_http_head *head)
{
	if (!host_is_good(notes, head->minor))
		return HPX_HTTP_ERROR_HOST;
	if (head->minor == 1 && notes->expects_other)
		return HPX_HTTP_ERROR_EXPECT;
	head->expect_continue = head->minor == 1 && notes->expects_continue;
	head->framing = hpx_span_eq(head->method, HPX_SPAN("CONNECT")) ? HPX_FRAMING_NONE : framing_by_length(notes, HPX_FRAMING_NONE);
	return HPX_HTTP_ERROR_NONE;
}

/* RFC 9112 §9.3; `close` wins, and a body that ends with the connection, or
 * a tunnel, leaves nothing to keep. */
static bool is_kept_alive(const struct framing_notes *notes, const struct hpx_http_head *head)
{
	if (notes->close || head->framing == HPX_FRAMING_CLOSE ||
	    head->framing == HPX_FRAMING_TUNNEL)
		return false;
	return head->minor == 1 || notes->keep_alive;
}

static enum hpx_http_error judge_framing(const struct hpx_http_reader *reader,
					 struct hpx_http_head *head)
{
	struct framing_notes notes = { 0 };

	for (size_t i = 0; i < head->field_count; i++)
		note_field(&notes, (enum hpx_field_name)head->known[i], &head->fields[i],
			   reader->response);

	enum hpx_http_error error = judge_lengths(&notes, head);
	if (error != HPX_HTTP_ERROR_NONE)
		return error;
	if (notes.names_needed || notes.options > CONNECTION_OPTIONS_MAX)
		return HPX_HTTP_ERROR_CONNECTION;
	if (reader->response) {
		head->framing = response_framing(reader, &notes, head);
	} else {
		error = judge_request(&notes, head);
		if (error != HPX_HTTP_ERROR_NONE)
			return error;
	}
	head->keep_alive = is_kept_alive(&notes, head);
	head->nominates = notes.nominates;
	/* RFC 9110 §7.8: HTTP/1.0 has no Upgrade. */
	head->upgrade = head->minor == 1 && notes.names_upgrade && notes.has_upgrade;
	return HPX_HTTP_ERROR_NONE;
}

/* ---- the reader ---- */

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

	HPX_ASSERT(end + 2 <= rest->len);
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

/* Fields are found once, here: whoever asks for a name that has a number looks into the
 * index. */
static uint8_t index_field(struct hpx_http_head *head, size_t number, struct hpx_span name)
{
	enum hpx_field_name known = hpx_field_name_of(name);

	if (known != HPX_NAME_OTHER && head->first[known] == 0)
		head->first[known] = (uint8_t)(number + 1);
	else if (known != HPX_NAME_OTHER)
		head->repeated |= (uint64_t)1 << known;
	return (uint8_t)known;
}

_Static_assert(HPX_HTTP_FIELDS_MAX < UINT8_MAX, "a field's number + 1 is one byte");

static bool cut_fields(size_t count, struct hpx_span rest, struct hpx_arena *arena,
		       struct hpx_http_head *head)
{
	HPX_ASSERT(count <= HPX_HTTP_FIELDS_MAX);
	struct hpx_field *fields = hpx_arena_alloc(arena, count * (sizeof(*fields) + 1));
	if (fields == NULL)
		return false;
	uint8_t *known = (uint8_t *)(fields + count);
	for (size_t i = 0; i < count; i++) {
		struct hpx_span line = take_line(&rest);
		fields[i].name = take_until(&line, ':');
		fields[i].value = hpx_span_trim(line);
		known[i] = index_field(head, i, fields[i].name);
	}
	head->fields = fields;
	head->field_count = count;
	head->known = known;
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
	return judge_framing(reader, head);
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
