/* RFC 2046 §5.1.1: the boundary parameter and the delimiter lines. */
#include "core/multipart_boundary.h"

static bool is_boundary_byte(char c)
{
	return c >= 0x20 && c <= 0x7e;
}

/* RFC 9110 §5.6.2: what an unquoted parameter is made of. Some clients leave
 * the quotes out around ':', '/', '=' and '?', which no reader minds. */
static bool is_token_byte(char c)
{
	return c > 0x20 && c < 0x7f && strchr("\"(),;<>@[\\]{}", c) == NULL;
}

static bool add_byte(struct hpx_multipart_boundary *boundary, char c)
{
	if (!is_boundary_byte(c) || boundary->len == sizeof(boundary->line))
		return false;
	boundary->line[boundary->len++] = c;
	return true;
}

/* The quoted or bare value at the front of `*rest`, added to the delimiter
 * where there is one to add it to; moves `*rest` behind the value. */
static bool read_value(struct hpx_span *rest, struct hpx_multipart_boundary *boundary)
{
	bool quoted = rest->len > 0 && rest->ptr[0] == '"';
	size_t i = quoted;

	for (; i < rest->len; i++) {
		char c = rest->ptr[i];
		if (quoted ? c == '"' : !is_token_byte(c))
			break;
		if (quoted && c == '\\' && ++i < rest->len)
			c = rest->ptr[i];
		if (boundary != NULL && !add_byte(boundary, c))
			return false;
	}
	if (i > rest->len || (quoted && i == rest->len))
		return false;
	*rest = hpx_span_skip(*rest, quoted ? i + 1 : i);
	return true;
}

/* One ";name=value" from the front of `*rest`. */
static bool read_parameter(struct hpx_span *rest, struct hpx_multipart_boundary *boundary)
{
	struct hpx_span at = hpx_span_trim(hpx_span_skip(*rest, 1));
	size_t name_len = 0;

	/* Nothing between two semicolons, or behind the last. */
	if (at.len == 0 || at.ptr[0] == ';') {
		*rest = at;
		return true;
	}
	while (name_len < at.len && is_token_byte(at.ptr[name_len]) && at.ptr[name_len] != '=')
		name_len++;
	if (name_len == 0 || name_len == at.len || at.ptr[name_len] != '=')
		return false;
	bool wanted = hpx_span_ieq(hpx_span_first(at, name_len), HPX_SPAN("boundary"));
	if (wanted && boundary->len > 2)
		return false;
	at = hpx_span_skip(at, name_len + 1);
	if (!read_value(&at, wanted ? boundary : NULL))
		return false;
	*rest = hpx_span_trim(at);
	return true;
}

enum hpx_status hpx_multipart_boundary_read(struct hpx_span content_type,
					    struct hpx_multipart_boundary *ret_boundary)
{
	struct hpx_multipart_boundary boundary = { .line = "--", .len = 2 };
	struct hpx_span rest = hpx_span_skip(content_type, hpx_span_index(content_type, ';'));

	while (rest.len > 0)
		if (rest.ptr[0] != ';' || !read_parameter(&rest, &boundary))
			return HPX_INVALID;
	if (boundary.len == 2 || boundary.line[boundary.len - 1] == ' ')
		return HPX_INVALID;
	*ret_boundary = boundary;
	return HPX_OK;
}

/* The rest of a delimiter line: "--" on the last, padding, and its end. */
static enum hpx_status read_line_end(struct hpx_span body, size_t at,
				     struct hpx_multipart_delimiter *delimiter)
{
	delimiter->last = hpx_span_starts(hpx_span_skip(body, at), HPX_SPAN("--"));
	if (delimiter->last)
		at += 2;
	size_t boundary_end = at;
	while (at < body.len && (body.ptr[at] == ' ' || body.ptr[at] == '\t'))
		at++;
	delimiter->padded = at > boundary_end;
	if (hpx_span_starts(hpx_span_skip(body, at), HPX_SPAN("\r\n")))
		delimiter->end = at + 2;
	else if (delimiter->last && at == body.len)
		delimiter->end = at;
	else
		return HPX_INVALID;
	return HPX_OK;
}

enum hpx_status hpx_multipart_boundary_find(const struct hpx_multipart_boundary *boundary,
					    struct hpx_span body, size_t from,
					    struct hpx_multipart_delimiter *ret_delimiter)
{
	for (;;) {
		const char *hit = body.len > from ?
					  memmem(body.ptr + from, body.len - from, boundary->line, boundary->len) :
					  NULL;
		if (hit == NULL)
			return HPX_NOT_FOUND;
		size_t at = (size_t)(hit - body.ptr);
		if (at == 0 || (at >= 2 && memcmp(hit - 2, "\r\n", 2) == 0)) {
			struct hpx_multipart_delimiter delimiter = { .at = at };
			enum hpx_status status =
				read_line_end(body, at + boundary->len, &delimiter);
			if (status == HPX_OK)
				*ret_delimiter = delimiter;
			return status;
		}
		/* A lone LF before it: some readers take that for a line's end. */
		if (hit[-1] == '\n')
			return HPX_INVALID;
		from = at + 1;
	}
}
