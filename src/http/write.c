/* Writing heads: check all parts, then append them as one. */
#include "http/write.h"

#include <stdio.h>

#include "base/status.h"
#include "http/field.h"
#include "http/octet.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* All parts or none: room for their sum is made first. */
static enum hpx_status append_all(struct hpx_buffer *buffer, const struct hpx_span *parts,
				  size_t count)
{
	size_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		if (parts[i].len > buffer->max - sum)
			return HPX_TOO_LARGE;
		sum += parts[i].len;
	}
	enum hpx_status status = hpx_buffer_reserve(buffer, sum);
	for (size_t i = 0; i < count && status == HPX_OK; i++) {
		if (parts[i].len > 0)
			memcpy(buffer->ptr + buffer->len, parts[i].ptr, parts[i].len);
		buffer->len += parts[i].len;
	}
	HPX_ASSERT(buffer->len <= buffer->max);
	return status;
}

static bool is_path(struct hpx_span path)
{
	if (hpx_span_eq(path, HPX_SPAN("*")))
		return true;
	return path.len > 0 && path.ptr[0] == '/' &&
	       hpx_octet_all(path, HPX_OCTET_TARGET) &&
	       hpx_span_index(path, '?') == path.len;
}

enum hpx_status hpx_write_request_line(struct hpx_buffer *buffer, struct hpx_span method,
				       struct hpx_span path, struct hpx_span query)
{
	const struct hpx_span parts[] = {
		method,
		HPX_SPAN(" "),
		path,
		query.ptr != NULL ? HPX_SPAN("?") : HPX_SPAN(""),
		query,
		HPX_SPAN(" HTTP/1.1\r\n"),
	};

	if (!hpx_is_token(method) || !is_path(path) ||
	    !hpx_octet_all(query, HPX_OCTET_TARGET))
		return HPX_INVALID;
	return append_all(buffer, parts, COUNT(parts));
}

enum hpx_status hpx_write_status_line(struct hpx_buffer *buffer, unsigned status,
				      struct hpx_span reason)
{
	char code[HPX_DECIMAL_SIZE];

	if (status < 100 || status > 999 || !hpx_octet_all(reason, HPX_OCTET_VALUE))
		return HPX_INVALID;
	const struct hpx_span parts[] = {
		HPX_SPAN("HTTP/1.1 "),
		hpx_decimal(status, code),
		HPX_SPAN(" "),
		reason,
		HPX_SPAN("\r\n"),
	};
	return append_all(buffer, parts, COUNT(parts));
}

enum hpx_status hpx_write_field(struct hpx_buffer *buffer, struct hpx_span name,
				struct hpx_span value)
{
	const struct hpx_span parts[] = { name, HPX_SPAN(": "), value, HPX_SPAN("\r\n") };

	if (!hpx_is_token(name) || !hpx_octet_all(value, HPX_OCTET_VALUE))
		return HPX_INVALID;
	return append_all(buffer, parts, COUNT(parts));
}

enum hpx_status hpx_write_field_text(struct hpx_buffer *buffer, const char *name,
				     const char *value)
{
	return hpx_write_field(buffer, hpx_span_of(name), hpx_span_of(value));
}

enum hpx_status hpx_write_field_u64(struct hpx_buffer *buffer, const char *name,
				    uint64_t value)
{
	char digits[HPX_DECIMAL_SIZE];

	return hpx_write_field(buffer, hpx_span_of(name), hpx_decimal(value, digits));
}

/* Checked already, or not in need of a check. */
static enum hpx_status append_line(struct hpx_buffer *buffer, struct hpx_span before,
				   struct hpx_span value)
{
	if (value.len > buffer->max)
		return HPX_TOO_LARGE;
	enum hpx_status status = hpx_buffer_reserve(buffer, before.len + value.len + 2);
	if (status != HPX_OK)
		return status;
	char *at = buffer->ptr + buffer->len;
	memcpy(at, before.ptr, before.len);
	if (value.len > 0)
		memcpy(at + before.len, value.ptr, value.len);
	at[before.len + value.len] = '\r';
	at[before.len + value.len + 1] = '\n';
	buffer->len += before.len + value.len + 2;
	return HPX_OK;
}

enum hpx_status hpx_write_after(struct hpx_buffer *buffer, struct hpx_span before,
				struct hpx_span value)
{
	return hpx_octet_all(value, HPX_OCTET_VALUE) ? append_line(buffer, before, value) :
						       HPX_INVALID;
}

enum hpx_status hpx_write_u64_after(struct hpx_buffer *buffer, struct hpx_span before,
				    uint64_t value)
{
	char digits[HPX_DECIMAL_SIZE];

	return append_line(buffer, before, hpx_decimal(value, digits));
}

enum hpx_status hpx_write_read_field(struct hpx_buffer *buffer, const struct hpx_http_head *head,
				     size_t number)
{
	HPX_ASSERT(number < head->field_count);
	const struct hpx_field *field = &head->fields[number];
	struct hpx_span name = field->name;

	if (head->known == NULL)
		return hpx_write_field(buffer, name, field->value);
	/* "Name: " and the value stand together, as nearly everybody writes them. */
	if (field->value.ptr == name.ptr + name.len + 2 && name.ptr[name.len + 1] == ' ')
		return append_line(buffer, hpx_span(name.ptr, name.len + 2), field->value);
	const struct hpx_span parts[] = { name, HPX_SPAN(": "), field->value, HPX_SPAN("\r\n") };
	return append_all(buffer, parts, COUNT(parts));
}

enum hpx_status hpx_write_head_end(struct hpx_buffer *buffer)
{
	return hpx_buffer_append(buffer, HPX_SPAN("\r\n"));
}

/* Reason phrases, as registered with IANA. */
#define REASON_LIST(X) \
	X(100, "Continue") \
	X(101, "Switching Protocols") \
	X(102, "Processing") \
	X(103, "Early Hints") \
	X(200, "OK") \
	X(201, "Created") \
	X(202, "Accepted") \
	X(203, "Non-Authoritative Information") \
	X(204, "No Content") \
	X(205, "Reset Content") \
	X(206, "Partial Content") \
	X(207, "Multi-Status") \
	X(208, "Already Reported") \
	X(226, "IM Used") \
	X(300, "Multiple Choices") \
	X(301, "Moved Permanently") \
	X(302, "Found") \
	X(303, "See Other") \
	X(304, "Not Modified") \
	X(305, "Use Proxy") \
	X(307, "Temporary Redirect") \
	X(308, "Permanent Redirect") \
	X(400, "Bad Request") \
	X(401, "Unauthorized") \
	X(402, "Payment Required") \
	X(403, "Forbidden") \
	X(404, "Not Found") \
	X(405, "Method Not Allowed") \
	X(406, "Not Acceptable") \
	X(407, "Proxy Authentication Required") \
	X(408, "Request Timeout") \
	X(409, "Conflict") \
	X(410, "Gone") \
	X(411, "Length Required") \
	X(412, "Precondition Failed") \
	X(413, "Content Too Large") \
	X(414, "URI Too Long") \
	X(415, "Unsupported Media Type") \
	X(416, "Range Not Satisfiable") \
	X(417, "Expectation Failed") \
	X(421, "Misdirected Request") \
	X(422, "Unprocessable Content") \
	X(423, "Locked") \
	X(424, "Failed Dependency") \
	X(425, "Too Early") \
	X(426, "Upgrade Required") \
	X(428, "Precondition Required") \
	X(429, "Too Many Requests") \
	X(431, "Request Header Fields Too Large") \
	X(451, "Unavailable For Legal Reasons") \
	X(500, "Internal Server Error") \
	X(501, "Not Implemented") \
	X(502, "Bad Gateway") \
	X(503, "Service Unavailable") \
	X(504, "Gateway Timeout") \
	X(505, "HTTP Version Not Supported") \
	X(506, "Variant Also Negotiates") \
	X(507, "Insufficient Storage") \
	X(508, "Loop Detected") \
	X(511, "Network Authentication Required")

const char *hpx_reason_phrase(unsigned status)
{
	switch (status) {
#define X(number, phrase) \
	case number: \
		return phrase;
		REASON_LIST(X)
#undef X
	default:
		return "";
	}
}

void hpx_chunk_frame(struct hpx_span bytes, struct hpx_chunk *ret_chunk)
{
	int n = snprintf(ret_chunk->size, sizeof(ret_chunk->size), "%zx\r\n", bytes.len);

	HPX_ASSERT(bytes.len > 0); /* a chunk of nothing would end the body */
	ret_chunk->pieces[0] = hpx_span(ret_chunk->size, (size_t)n);
	ret_chunk->pieces[1] = bytes;
	ret_chunk->pieces[2] = HPX_SPAN("\r\n");
}
