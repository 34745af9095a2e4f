/* Multipart bodies part by part: headers sorted, contents as they are. */
#include "core/form_text.h"
#include "core/multipart_boundary.h"

struct header {
	struct hpx_span name;
	struct hpx_span value;
};

struct part {
	struct header headers[HPX_MULTIPART_HEADERS_MAX];
	size_t count;
	struct hpx_span content;
};

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static int compare_names(struct hpx_span a, struct hpx_span b)
{
	size_t n = a.len < b.len ? a.len : b.len;

	for (size_t i = 0; i < n; i++)
		if (lower(a.ptr[i]) != lower(b.ptr[i]))
			return (unsigned char)lower(a.ptr[i]) < (unsigned char)lower(b.ptr[i]) ? -1 : 1;
	return (a.len > b.len) - (a.len < b.len);
}

static bool is_name_byte(char c)
{
	return c > 0x20 && c < 0x7f && c != ':';
}

/* Puts the header at its place by name, behind others of the same name. */
static enum hpx_status add_header(struct part *part, struct hpx_span line)
{
	size_t colon = hpx_span_index(line, ':');
	size_t at = part->count;

	if (colon == 0 || colon == line.len || part->count == HPX_MULTIPART_HEADERS_MAX)
		return HPX_INVALID;
	for (size_t i = 0; i < colon; i++)
		if (!is_name_byte(line.ptr[i]))
			return HPX_INVALID;
	struct header header = { hpx_span_first(line, colon),
				 hpx_span_trim(hpx_span_skip(line, colon + 1)) };
	for (; at > 0 && compare_names(part->headers[at - 1].name, header.name) > 0; at--)
		part->headers[at] = part->headers[at - 1];
	part->headers[at] = header;
	part->count++;
	return HPX_OK;
}

/* The line up to CRLF, which is taken too; false where there is none, or a CR
 * or LF stands alone. */
static bool take_line(struct hpx_span *rest, struct hpx_span *ret_line)
{
	size_t at = hpx_span_index(*rest, '\n');

	if (at == rest->len || at == 0 || rest->ptr[at - 1] != '\r')
		return false;
	*ret_line = hpx_span_first(*rest, at - 1);
	*rest = hpx_span_skip(*rest, at + 1);
	return hpx_span_index(*ret_line, '\r') == ret_line->len;
}

/* `text` runs from one delimiter line to the CRLF before the next: headers,
 * an empty line, content. Without content, that CRLF is the empty line. */
static enum hpx_status read_part(struct hpx_span text, struct part *part)
{
	struct hpx_span line;
	enum hpx_status status = HPX_OK;

	part->count = 0;
	while (status == HPX_OK && text.len > 0) {
		if (!take_line(&text, &line))
			return HPX_INVALID;
		if (line.len == 0)
			break;
		status = add_header(part, line);
	}
	part->content = text;
	return status;
}

static enum hpx_status write_lower(struct hpx_span name, struct hpx_buffer *out)
{
	enum hpx_status status = hpx_form_text(out, name);

	if (status == HPX_OK)
		for (size_t i = out->len - name.len; i < out->len; i++)
			out->ptr[i] = lower(out->ptr[i]);
	return status;
}

static enum hpx_status write_part(const struct part *part, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < part->count && status == HPX_OK; i++) {
		status = write_lower(part->headers[i].name, out);
		if (status == HPX_OK)
			status = hpx_buffer_byte(out, '=');
		if (status == HPX_OK)
			status = hpx_form_text(out, part->headers[i].value);
	}
	if (status == HPX_OK)
		status = hpx_buffer_byte(out, ';');
	return status == HPX_OK ? hpx_form_text(out, part->content) : status;
}

/* The parts between the first delimiter, which is `*here`, and the last, which
 * it is afterwards. */
static enum hpx_status write_parts(const struct hpx_multipart_boundary *boundary,
				   struct hpx_span body, struct hpx_multipart_delimiter *here,
				   struct hpx_buffer *out)
{
	struct hpx_multipart_delimiter next;
	struct part part;
	enum hpx_status status = HPX_OK;

	while (status == HPX_OK && !here->last) {
		status = hpx_multipart_boundary_find(boundary, body, here->end, &next);
		/* Between two delimiters stands at least the CRLF of the next. */
		if (status == HPX_OK && next.at < here->end + 2)
			status = HPX_INVALID;
		if (status == HPX_OK)
			status = read_part(hpx_span(body.ptr + here->end, next.at - 2 - here->end),
					   &part);
		if (status == HPX_OK)
			status = write_part(&part, out);
		if (status == HPX_OK) {
			next.padded = next.padded || here->padded;
			*here = next;
		}
	}
	return status;
}

static enum hpx_status write_whole(const struct hpx_multipart_boundary *boundary,
				   struct hpx_span body, struct hpx_buffer *out)
{
	struct hpx_multipart_delimiter here;

	enum hpx_status status = hpx_multipart_boundary_find(boundary, body, 0, &here);
	if (status == HPX_OK)
		status = hpx_form_text(out, hpx_span_first(body, here.at));
	if (status == HPX_OK)
		status = write_parts(boundary, body, &here, out);
	if (status == HPX_OK && here.padded)
		status = HPX_INVALID;
	if (status == HPX_OK)
		status = hpx_buffer_byte(out, '.');
	return status == HPX_OK ? hpx_form_text(out, hpx_span_skip(body, here.end)) : status;
}

static enum hpx_status write_parts_only(const struct hpx_multipart_boundary *boundary,
					struct hpx_span body, struct hpx_buffer *out)
{
	struct hpx_multipart_delimiter here;

	enum hpx_status status = hpx_multipart_boundary_find(boundary, body, 0, &here);
	return status == HPX_OK ? write_parts(boundary, body, &here, out) : status;
}

enum hpx_status hpx_multipart_canonical(enum hpx_multipart_extent extent,
					struct hpx_span content_type, struct hpx_span body,
					struct hpx_buffer *out)
{
	struct hpx_multipart_boundary boundary;
	size_t len = out->len;

	enum hpx_status status = hpx_multipart_boundary_read(content_type, &boundary);
	if (status == HPX_OK)
		status = extent == HPX_MULTIPART_WHOLE ? write_whole(&boundary, body, out) :
							 write_parts_only(&boundary, body, out);
	if (status != HPX_OK)
		out->len = len;
	return status == HPX_NOT_FOUND ? HPX_INVALID : status;
}
