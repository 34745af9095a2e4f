/* Header fields: finding, combining, and which of them travel or are kept.
 * Names are told apart by length first: most comparisons end there. */
#include "http/field.h"

#include "base/span.h"
#include "base/status.h"
#include "http/octet.h"
#include "http/write.h"

bool hpx_is_token(struct hpx_span s)
{
	return s.len > 0 && hpx_octet_all(s, HPX_OCTET_TOKEN);
}

const struct hpx_field *hpx_field_find(const struct hpx_http_head *head,
				       struct hpx_span name)
{
	for (size_t i = 0; i < head->field_count; i++)
		if (hpx_span_ieq(head->fields[i].name, name))
			return &head->fields[i];
	return NULL;
}

struct hpx_span hpx_field_value(const struct hpx_http_head *head, struct hpx_span name)
{
	const struct hpx_field *field = hpx_field_find(head, name);

	return field != NULL ? field->value : (struct hpx_span){ NULL, 0 };
}

size_t hpx_field_count(const struct hpx_http_head *head, struct hpx_span name)
{
	size_t count = 0;

	for (size_t i = 0; i < head->field_count; i++)
		count += hpx_span_ieq(head->fields[i].name, name) ? 1 : 0;
	return count;
}

static size_t joined_length(const struct hpx_http_head *head, struct hpx_span name)
{
	size_t length = 0;

	for (size_t i = 0; i < head->field_count; i++)
		if (hpx_span_ieq(head->fields[i].name, name))
			length += head->fields[i].value.len + sizeof(", ") - 1;
	return length;
}

static size_t put(char *out, size_t at, struct hpx_span s)
{
	if (s.len > 0)
		memcpy(out + at, s.ptr, s.len);
	return at + s.len;
}

struct hpx_span hpx_field_combined(const struct hpx_http_head *head, struct hpx_span name,
				   struct hpx_arena *arena)
{
	size_t count = hpx_field_count(head, name);

	if (count <= 1)
		return hpx_field_value(head, name);
	char *joined = hpx_arena_alloc(arena, joined_length(head, name));
	if (joined == NULL)
		return (struct hpx_span){ NULL, 0 };
	size_t at = 0;
	for (size_t i = 0; i < head->field_count; i++) {
		if (!hpx_span_ieq(head->fields[i].name, name))
			continue;
		if (at > 0)
			at = put(joined, at, HPX_SPAN(", "));
		at = put(joined, at, head->fields[i].value);
	}
	HPX_ASSERT(at <= joined_length(head, name));
	return hpx_span(joined, at);
}

bool hpx_field_list_has(struct hpx_span list, struct hpx_span token)
{
	struct hpx_span item;

	while (hpx_span_split(&list, ',', &item))
		if (hpx_span_ieq(hpx_span_trim(item), token))
			return true;
	return false;
}

bool hpx_field_line_next(struct hpx_span *lines, struct hpx_field_line *ret_line)
{
	struct hpx_field_line line = { .whole = *lines };

	if (!hpx_span_line(lines, &line.text))
		return false;
	line.whole.len -= lines->len;
	size_t colon = hpx_span_index(line.text, ':');
	if (colon < line.text.len) {
		line.name = hpx_span_first(line.text, colon);
		line.value = hpx_span_trim(hpx_span_skip(line.text, colon + 1));
	}
	*ret_line = line;
	return true;
}

bool hpx_field_line_find(struct hpx_span lines, struct hpx_span name,
			 struct hpx_field_line *ret_line)
{
	while (hpx_field_line_next(&lines, ret_line))
		if (ret_line->name.ptr != NULL && hpx_span_ieq(ret_line->name, name))
			return true;
	return false;
}

static bool is(struct hpx_span name, const char *known)
{
	return hpx_span_ieq(name, hpx_span(known, name.len));
}

/* Each length leads to the names that have it, so is() compares whole names. */
static bool is_hop_name(struct hpx_span name)
{
	switch (name.len) {
	case 2:
		return is(name, "te");
	case 7:
		return is(name, "trailer") || is(name, "upgrade");
	case 10:
		return is(name, "connection") || is(name, "keep-alive");
	case 16:
		return is(name, "proxy-connection");
	case 17:
		return is(name, "transfer-encoding");
	case 18:
		return is(name, "proxy-authenticate");
	case 19:
		return is(name, "proxy-authorization");
	default:
		return false;
	}
}

bool hpx_field_is_hop(const struct hpx_http_head *head, struct hpx_span name)
{
	if (is_hop_name(name))
		return true;
	for (size_t i = 0; i < head->field_count; i++)
		if (hpx_span_ieq(head->fields[i].name, HPX_SPAN("connection")) &&
		    hpx_field_list_has(head->fields[i].value, name))
			return true;
	return false;
}

bool hpx_field_is_ours(struct hpx_span name)
{
	return hpx_span_istarts(name, HPX_SPAN("hapax-")) ||
	       hpx_span_istarts(name, HPX_SPAN("hapax_"));
}

/* Fields of one delivery of an answer, not of the answer. */
static bool is_of_delivery(struct hpx_span name)
{
	switch (name.len) {
	case 3:
		return is(name, "age") || is(name, "via");
	case 4:
		return is(name, "date");
	case 7:
		return is(name, "alt-svc");
	case 9:
		return is(name, "ratelimit");
	case 10:
		return is(name, "set-cookie");
	case 13:
		return is(name, "server-timing");
	case 14:
		return is(name, "content-length");
	case 15:
		return is(name, "clear-site-data");
	case 19:
		return is(name, "authentication-info");
	default:
		return false;
	}
}

/* Fields that a replay sets, or leaves out, itself. */
static bool is_set_by_hapax(struct hpx_span name)
{
	return hpx_field_is_ours(name) || hpx_span_ieq(name, HPX_SPAN("idempotent-replayed")) ||
	       hpx_span_ieq(name, HPX_SPAN("idempotency-expires"));
}

bool hpx_field_name_is_kept(struct hpx_span name)
{
	return !is_hop_name(name) && !is_of_delivery(name) && !is_set_by_hapax(name) &&
	       !hpx_span_istarts(name, HPX_SPAN("proxy-")) &&
	       !hpx_span_istarts(name, HPX_SPAN("ratelimit-"));
}

bool hpx_field_is_kept(const struct hpx_http_head *head, struct hpx_span name)
{
	return hpx_field_name_is_kept(name) && !hpx_field_is_hop(head, name);
}

/* ---- lines that an application gives ---- */

/* A line that is left out is checked all the same: what cannot stand in a head
 * is a mistake wherever it stands. */
static enum hpx_status keep(const struct hpx_field_line *line, struct hpx_buffer *out)
{
	if (!hpx_is_token(line->name) || !hpx_octet_all(line->value, HPX_OCTET_VALUE))
		return HPX_INVALID;
	return hpx_field_name_is_kept(line->name) ? hpx_write_field(out, line->name, line->value) :
						    HPX_OK;
}

/* A CR is part of a line's end only with the LF behind it. */
static bool ends_with_bare_cr(struct hpx_span lines)
{
	return lines.len > 0 && lines.ptr[lines.len - 1] == '\r';
}

enum hpx_status hpx_field_lines_keep(struct hpx_span lines, struct hpx_buffer *out)
{
	size_t before = out->len;
	enum hpx_status status = HPX_OK;
	struct hpx_field_line line;

	if (!hpx_utf8_valid(lines) || ends_with_bare_cr(lines))
		return HPX_INVALID;
	while (status == HPX_OK && hpx_field_line_next(&lines, &line))
		if (line.text.len > 0)
			status = keep(&line, out);
	if (status != HPX_OK)
		out->len = before;
	return status;
}
