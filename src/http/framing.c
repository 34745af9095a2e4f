/* The rules that decide where a message ends. One pass notes the fields that
 * matter, then each rule looks at the notes. Where two servers could read a
 * message differently, it is refused, never mended: a second Content-Length
 * even if equal, a list in it, any Transfer-Encoding but one `chunked`. */
#include "http/framing.h"

#include "http/target.h"

/* Browsers send two. Bounded because each header is later held against each
 * option. */
#define CONNECTION_OPTIONS_MAX 16

#define LENGTH_MAX ((uint64_t)INT64_MAX)

struct notes {
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
};

/* What this reader goes by: had these been dropped on the way, the next server
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

static void note_connection(struct notes *notes, struct hpx_span list, bool response)
{
	struct hpx_span option;

	while (notes->options <= CONNECTION_OPTIONS_MAX &&
	       hpx_span_split(&list, ',', &option)) {
		option = hpx_span_trim(option);
		notes->options++;
		if (hpx_span_ieq(option, HPX_SPAN("close")))
			notes->close = true;
		else if (hpx_span_ieq(option, HPX_SPAN("keep-alive")))
			notes->keep_alive = true;
		else if (hpx_span_ieq(option, HPX_SPAN("upgrade")))
			notes->names_upgrade = true;
		else if (is_needed(option, response))
			notes->names_needed = true;
	}
}

static void note_expect(struct notes *notes, struct hpx_span value)
{
	if (hpx_span_ieq(value, HPX_SPAN("100-continue")))
		notes->expects_continue = true;
	else
		notes->expects_other = true;
}

static void note(size_t *count, struct hpx_span *noted, const struct hpx_field *field,
		 struct hpx_span name)
{
	if (!hpx_span_ieq(field->name, name))
		return;
	++*count;
	*noted = field->value;
}

/* The length of a name rules out most fields before any byte is compared. */
static void note_field(struct notes *notes, const struct hpx_field *field, bool response)
{
	switch (field->name.len) {
	case sizeof("Host") - 1:
		note(&notes->hosts, &notes->host, field, HPX_SPAN("host"));
		break;
	case sizeof("Expect") - 1:
		if (hpx_span_ieq(field->name, HPX_SPAN("expect")))
			note_expect(notes, field->value);
		break;
	case sizeof("Upgrade") - 1:
		if (hpx_span_ieq(field->name, HPX_SPAN("upgrade")))
			notes->has_upgrade = true;
		break;
	case sizeof("Connection") - 1:
		if (hpx_span_ieq(field->name, HPX_SPAN("connection")))
			note_connection(notes, field->value, response);
		break;
	case sizeof("Content-Length") - 1:
		note(&notes->lengths, &notes->length, field, HPX_SPAN("content-length"));
		break;
	case sizeof("Transfer-Encoding") - 1:
		note(&notes->encodings, &notes->encoding, field,
		     HPX_SPAN("transfer-encoding"));
		break;
	default:
		break;
	}
}

/* RFC 9112 §6.1, §6.2: whether the lengths are such that only one reading
 * exists, body or no body. */
static enum hpx_http_error judge_lengths(const struct notes *notes,
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
static enum hpx_http_framing framing_by_length(const struct notes *notes,
					       enum hpx_http_framing plain)
{
	if (notes->encodings == 1)
		return HPX_FRAMING_CHUNKED;
	return notes->lengths == 1 ? HPX_FRAMING_LENGTH : plain;
}

static enum hpx_http_framing response_framing(const struct hpx_http_reader *reader,
					      const struct notes *notes,
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
static bool host_is_good(const struct notes *notes, unsigned minor)
{
	if (notes->hosts == 0)
		return minor == 0;
	return notes->hosts == 1 && hpx_host_valid(notes->host);
}

/* RFC 9110 §10.1.1: on HTTP/1.0 an expectation does not count. */
static enum hpx_http_error judge_request(const struct notes *notes,
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
static bool is_kept_alive(const struct notes *notes, const struct hpx_http_head *head)
{
	if (notes->close || head->framing == HPX_FRAMING_CLOSE ||
	    head->framing == HPX_FRAMING_TUNNEL)
		return false;
	return head->minor == 1 || notes->keep_alive;
}

enum hpx_http_error hpx_framing_judge(const struct hpx_http_reader *reader,
				      struct hpx_http_head *head)
{
	struct notes notes = { 0 };

	for (size_t i = 0; i < head->field_count; i++)
		note_field(&notes, &head->fields[i], reader->response);

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
	/* RFC 9110 §7.8: HTTP/1.0 has no Upgrade. */
	head->upgrade = head->minor == 1 && notes.names_upgrade && notes.has_upgrade;
	return HPX_HTTP_ERROR_NONE;
}
