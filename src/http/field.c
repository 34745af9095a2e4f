/* Header fields: finding, combining, and which of them travel or are kept. What a name
 * means by itself is field_name.c's. */
#include "http/field.h"

#include "base/span.h"
#include "base/status.h"
#include "http/octet.h"
#include "http/write.h"

bool hpx_is_token(struct hpx_span s)
{
	return s.len > 0 && hpx_octet_all(s, HPX_OCTET_TOKEN);
}

static const struct hpx_field *search(const struct hpx_http_head *head, struct hpx_span name)
{
	for (size_t i = 0; i < head->field_count; i++)
		if (hpx_span_ieq(head->fields[i].name, name))
			return &head->fields[i];
	return NULL;
}

const struct hpx_field *hpx_field_known(const struct hpx_http_head *head,
					enum hpx_field_name known)
{
	HPX_ASSERT(known > HPX_NAME_OTHER && known < HPX_NAME_COUNT);
	if (head->known == NULL)
		return search(head, hpx_field_name_text(known));
	return head->first[known] > 0 ? &head->fields[head->first[known] - 1] : NULL;
}

struct hpx_span hpx_field_known_value(const struct hpx_http_head *head, enum hpx_field_name known)
{
	const struct hpx_field *field = hpx_field_known(head, known);

	return field != NULL ? field->value : (struct hpx_span){ NULL, 0 };
}

size_t hpx_field_known_count(const struct hpx_http_head *head, enum hpx_field_name known)
{
	if (head->known != NULL && (head->repeated >> known & 1) == 0)
		return head->first[known] > 0 ? 1 : 0;
	return hpx_field_count(head, hpx_field_name_text(known));
}

/* The index where it can tell, otherwise the fields one by one. */
const struct hpx_field *hpx_field_find(const struct hpx_http_head *head,
				       struct hpx_span name)
{
	enum hpx_field_name known = head->known != NULL ? hpx_field_name_of(name) : HPX_NAME_OTHER;

	return known != HPX_NAME_OTHER ? hpx_field_known(head, known) : search(head, name);
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

static struct hpx_span join(const struct hpx_http_head *head, struct hpx_span name,
			    struct hpx_arena *arena)
{
	char *joined = hpx_arena_alloc(arena, joined_length(head, name));
	size_t at = 0;

	if (joined == NULL)
		return (struct hpx_span){ NULL, 0 };
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

struct hpx_span hpx_field_known_combined(const struct hpx_http_head *head,
					 enum hpx_field_name known, struct hpx_arena *arena)
{
	if (hpx_field_known_count(head, known) <= 1)
		return hpx_field_known_value(head, known);
	return join(head, hpx_field_name_text(known), arena);
}

struct hpx_span hpx_field_combined(const struct hpx_http_head *head, struct hpx_span name,
				   struct hpx_arena *arena)
{
	return hpx_field_count(head, name) <= 1 ? hpx_field_value(head, name) :
						  join(head, name, arena);
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

/* Whether this message's Connection names it. */
static bool is_nominated(const struct hpx_http_head *head, struct hpx_span name)
{
	if (head->known != NULL && !head->nominates)
		return false;
	for (size_t i = 0; i < head->field_count; i++)
		if (hpx_span_ieq(head->fields[i].name, HPX_SPAN("connection")) &&
		    hpx_field_list_has(head->fields[i].value, name))
			return true;
	return false;
}

unsigned hpx_field_traits(const struct hpx_http_head *head, const struct hpx_field *field)
{
	size_t number = (size_t)(field - head->fields);

	HPX_ASSERT(number < head->field_count);
	unsigned traits = hpx_field_known_traits(hpx_field_name_at(head, number), field->name);

	return is_nominated(head, field->name) ? traits | HPX_FIELD_HOP : traits;
}

bool hpx_field_is_hop(const struct hpx_http_head *head, struct hpx_span name)
{
	return (hpx_field_name_traits(name) & HPX_FIELD_HOP) != 0 || is_nominated(head, name);
}

bool hpx_field_is_ours(struct hpx_span name)
{
	return (hpx_field_name_traits(name) & HPX_FIELD_OURS) != 0;
}

bool hpx_field_name_is_kept(struct hpx_span name)
{
	return hpx_field_name_traits(name) == 0;
}

bool hpx_field_is_kept(const struct hpx_http_head *head, struct hpx_span name)
{
	return hpx_field_name_is_kept(name) && !is_nominated(head, name);
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
