/* Canonical forms of queries, forms and multipart bodies. Pairs of a query or a form are
 * decoded once into one block, sorted by name where that changes nothing for the reader,
 * and written out. Multipart bodies are written part by part: headers sorted, contents as
 * they are. */
#include "core/form.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/status.h"

/* A text in canonical form: "3:abc". */
static enum hpx_status put_text(struct hpx_buffer *out, struct hpx_span text)
{
	char length[24];
	int n = snprintf(length, sizeof(length), "%zu:", text.len);

	enum hpx_status status = hpx_buffer_append(out, hpx_span(length, (size_t)n));
	return status == HPX_OK ? hpx_buffer_append(out, text) : status;
}

/* ---- pairs ---- */

struct form_pair {
	struct hpx_span name;
	struct hpx_span value; /* ptr NULL where there was no '=' */
};

struct form {
	struct form_pair *pairs;
	size_t count;
	char *decoded; /* as long as the text: decoding only shortens */
	size_t decoded_len;
};

enum hpx_status hpx_form_decode(struct hpx_span text, char *out, size_t *ret_len)
{
	size_t len = 0;

	for (size_t i = 0; i < text.len; i++, len++) {
		out[len] = text.ptr[i] == '+' ? ' ' : text.ptr[i];
		if (text.ptr[i] != '%')
			continue;
		if (text.len - i < 3 || !hpx_hex_decode(hpx_span(text.ptr + i + 1, 2), out + len, 1))
			return HPX_INVALID;
		i += 2;
	}
	*ret_len = len;
	return HPX_OK;
}

static enum hpx_status decode(struct form *form, struct hpx_span text, struct hpx_span *ret_text)
{
	char *out = form->decoded + form->decoded_len;
	size_t len = 0;

	enum hpx_status status = hpx_form_decode(text, out, &len);
	if (status != HPX_OK)
		return status;
	form->decoded_len += len;
	HPX_ASSERT(len <= text.len);
	*ret_text = hpx_span(out, len);
	return HPX_OK;
}

static enum hpx_status add_pair(struct form *form, struct hpx_span text)
{
	struct form_pair *pair = &form->pairs[form->count++];
	size_t cut = hpx_span_index(text, '=');

	enum hpx_status status = decode(form, hpx_span_first(text, cut), &pair->name);
	if (status == HPX_OK && cut < text.len)
		status = decode(form, hpx_span_skip(text, cut + 1), &pair->value);
	return status;
}

static size_t count_pairs(struct hpx_span text)
{
	struct hpx_span item;
	size_t count = 0;

	while (hpx_span_split(&text, '&', &item))
		count += item.len > 0;
	return count;
}

static enum hpx_status read_form(struct hpx_span text, struct form *form)
{
	struct hpx_span item;
	size_t count = count_pairs(text);

	if (count > HPX_FORM_PAIRS_MAX)
		return HPX_TOO_LARGE;
	form->pairs = calloc(count + 1, sizeof(*form->pairs));
	form->decoded = malloc(text.len + 1);
	if (form->pairs == NULL || form->decoded == NULL)
		return HPX_NOMEM;
	enum hpx_status status = HPX_OK;
	while (status == HPX_OK && hpx_span_split(&text, '&', &item))
		if (item.len > 0)
			status = add_pair(form, item);
	HPX_ASSERT(form->count <= count);
	return status;
}

static int compare_names(const void *a, const void *b)
{
	return hpx_span_cmp(((const struct form_pair *)a)->name, ((const struct form_pair *)b)->name);
}

/* Sorts the pairs if that loses nothing: among pairs of one name the order
 * may mean something, and then so may the order of all. */
static enum hpx_status sort_distinct(struct form *form)
{
	struct form_pair *sorted = calloc(form->count + 1, sizeof(*sorted));
	size_t same = 0;

	if (sorted == NULL)
		return HPX_NOMEM;
	memcpy(sorted, form->pairs, form->count * sizeof(*sorted));
	qsort(sorted, form->count, sizeof(*sorted), compare_names);
	for (size_t i = 1; i < form->count; i++)
		same += hpx_span_eq(sorted[i - 1].name, sorted[i].name);
	if (same == 0)
		memcpy(form->pairs, sorted, form->count * sizeof(*sorted));
	free(sorted);
	return HPX_OK;
}

static enum hpx_status write_pair(const struct form_pair *pair, struct hpx_buffer *out)
{
	enum hpx_status status = put_text(out, pair->name);

	if (status != HPX_OK)
		return status;
	if (pair->value.ptr == NULL)
		return hpx_buffer_byte(out, ';');
	status = hpx_buffer_byte(out, '=');
	return status == HPX_OK ? put_text(out, pair->value) : status;
}

enum hpx_status hpx_form_canonical(struct hpx_span text, struct hpx_buffer *out)
{
	struct form form = { .pairs = NULL };
	size_t len = out->len;

	enum hpx_status status = read_form(text, &form);
	if (status == HPX_OK)
		status = sort_distinct(&form);
	for (size_t i = 0; i < form.count && status == HPX_OK; i++)
		status = write_pair(&form.pairs[i], out);
	if (status != HPX_OK)
		out->len = len;
	free(form.decoded);
	free(form.pairs);
	return status;
}

/* ---- the boundary of a multipart body: RFC 2046 §5.1.1 ---- */

/* The delimiter "--boundary", as it stands at the beginning of a line. */
struct multipart_boundary {
	char line[2 + HPX_MULTIPART_BOUNDARY_MAX];
	size_t len;
};

/* A delimiter line in a body. */
struct multipart_delimiter {
	size_t at;  /* of its first dash; what precedes ends in CRLF */
	size_t end; /* behind its own CRLF */
	bool last;
	bool padded; /* white space behind the boundary, which not all readers take */
};

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

static bool add_byte(struct multipart_boundary *boundary, char c)
{
	if (!is_boundary_byte(c) || boundary->len == sizeof(boundary->line))
		return false;
	boundary->line[boundary->len++] = c;
	return true;
}

/* The quoted or bare value at the front of `*rest`, added to the delimiter
 * where there is one to add it to; moves `*rest` behind the value. */
static bool read_value(struct hpx_span *rest, struct multipart_boundary *boundary)
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
static bool read_parameter(struct hpx_span *rest, struct multipart_boundary *boundary)
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

static enum hpx_status read_boundary(struct hpx_span content_type,
				     struct multipart_boundary *ret_boundary)
{
	struct multipart_boundary boundary = { .line = "--", .len = 2 };
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
				     struct multipart_delimiter *delimiter)
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

/* The next delimiter at or behind `from`, which is 0 or follows a line's end.
 * HPX_NOT_FOUND: none. HPX_INVALID: a line that begins with the boundary and
 * goes on, which some readers take for a delimiter and others do not. */
static enum hpx_status find_delimiter(const struct multipart_boundary *boundary,
				      struct hpx_span body, size_t from,
				      struct multipart_delimiter *ret_delimiter)
{
	for (;;) {
		const char *hit = body.len > from ?
					  memmem(body.ptr + from, body.len - from, boundary->line, boundary->len) :
					  NULL;
		if (hit == NULL)
			return HPX_NOT_FOUND;
		size_t at = (size_t)(hit - body.ptr);
		if (at == 0 || (at >= 2 && memcmp(hit - 2, "\r\n", 2) == 0)) {
			struct multipart_delimiter delimiter = { .at = at };
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

/* ---- multipart bodies ---- */

struct part_header {
	struct hpx_span name;
	struct hpx_span value;
};

struct multipart_part {
	struct part_header headers[HPX_MULTIPART_HEADERS_MAX];
	size_t count;
	struct hpx_span content;
};

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static int compare_header_names(struct hpx_span a, struct hpx_span b)
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
static enum hpx_status add_header(struct multipart_part *part, struct hpx_span line)
{
	size_t colon = hpx_span_index(line, ':');
	size_t at = part->count;

	if (colon == 0 || colon == line.len || part->count == HPX_MULTIPART_HEADERS_MAX)
		return HPX_INVALID;
	for (size_t i = 0; i < colon; i++)
		if (!is_name_byte(line.ptr[i]))
			return HPX_INVALID;
	struct part_header header = { hpx_span_first(line, colon),
				      hpx_span_trim(hpx_span_skip(line, colon + 1)) };
	for (; at > 0 && compare_header_names(part->headers[at - 1].name, header.name) > 0; at--)
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
static enum hpx_status read_part(struct hpx_span text, struct multipart_part *part)
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
	enum hpx_status status = put_text(out, name);

	if (status == HPX_OK)
		for (size_t i = out->len - name.len; i < out->len; i++)
			out->ptr[i] = lower(out->ptr[i]);
	return status;
}

static enum hpx_status write_part(const struct multipart_part *part, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < part->count && status == HPX_OK; i++) {
		status = write_lower(part->headers[i].name, out);
		if (status == HPX_OK)
			status = hpx_buffer_byte(out, '=');
		if (status == HPX_OK)
			status = put_text(out, part->headers[i].value);
	}
	if (status == HPX_OK)
		status = hpx_buffer_byte(out, ';');
	return status == HPX_OK ? put_text(out, part->content) : status;
}

/* The parts between the first delimiter, which is `*here`, and the last, which
 * it is afterwards. */
static enum hpx_status write_parts(const struct multipart_boundary *boundary,
				   struct hpx_span body, struct multipart_delimiter *here,
				   struct hpx_buffer *out)
{
	struct multipart_delimiter next;
	struct multipart_part part;
	enum hpx_status status = HPX_OK;

	while (status == HPX_OK && !here->last) {
		status = find_delimiter(boundary, body, here->end, &next);
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

static enum hpx_status write_whole(const struct multipart_boundary *boundary,
				   struct hpx_span body, struct hpx_buffer *out)
{
	struct multipart_delimiter here;

	enum hpx_status status = find_delimiter(boundary, body, 0, &here);
	if (status == HPX_OK)
		status = put_text(out, hpx_span_first(body, here.at));
	if (status == HPX_OK)
		status = write_parts(boundary, body, &here, out);
	if (status == HPX_OK && here.padded)
		status = HPX_INVALID;
	if (status == HPX_OK)
		status = hpx_buffer_byte(out, '.');
	return status == HPX_OK ? put_text(out, hpx_span_skip(body, here.end)) : status;
}

static enum hpx_status write_parts_only(const struct multipart_boundary *boundary,
					struct hpx_span body, struct hpx_buffer *out)
{
	struct multipart_delimiter here;

	enum hpx_status status = find_delimiter(boundary, body, 0, &here);
	return status == HPX_OK ? write_parts(boundary, body, &here, out) : status;
}

enum hpx_status hpx_multipart_canonical(enum hpx_multipart_extent extent,
					struct hpx_span content_type, struct hpx_span body,
					struct hpx_buffer *out)
{
	struct multipart_boundary boundary;
	size_t len = out->len;

	enum hpx_status status = read_boundary(content_type, &boundary);
	if (status == HPX_OK)
		status = extent == HPX_MULTIPART_WHOLE ? write_whole(&boundary, body, out) :
							 write_parts_only(&boundary, body, out);
	if (status != HPX_OK)
		out->len = len;
	return status == HPX_NOT_FOUND ? HPX_INVALID : status;
}
