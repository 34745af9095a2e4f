/* Reconstructed answers: the body out of the provider's object, and header lines with
 * values of it. A provider's text is foreign: what would break a header line is refused
 * here, whatever the configuration allows. */
#include "core/reconstruct.h"

#include "base/arena.h"
#include "base/status.h"
#include "core/json.h"

/* A value within a header. */
#define VALUE_BYTES_MAX 4096
#define SCRATCH_BYTES_MAX (64 * 1024)

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* Printable ASCII, and bytes beyond it. */
static bool is_value(struct hpx_span text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f)
			return false;
	return true;
}

/* "Name: value" in two; the value's ptr is NULL where there is none. */
static void split_line(struct hpx_span line, struct hpx_span *ret_name, struct hpx_span *ret_value)
{
	size_t colon = hpx_span_index(line, ':');

	*ret_name = hpx_span_first(line, colon);
	*ret_value = colon < line.len ? hpx_span_trim(hpx_span_skip(line, colon + 1)) :
					(struct hpx_span){ NULL, 0 };
}

/* The next piece of a value: text, or the pointer between { and }. A { that nothing
 * closes is text. False at the end. */
static bool next_piece(struct hpx_span *rest, struct hpx_span *ret_piece, bool *ret_pointer)
{
	size_t open = hpx_span_index(*rest, '{');
	size_t close = hpx_span_index(*rest, '}');

	if (rest->len == 0)
		return false;
	*ret_pointer = open == 0 && close < rest->len;
	if (*ret_pointer) {
		*ret_piece = hpx_span_skip(hpx_span_first(*rest, close), 1);
		*rest = hpx_span_skip(*rest, close + 1);
		return true;
	}
	*ret_piece = hpx_span_first(*rest, open > 0 ? open : rest->len);
	*rest = hpx_span_skip(*rest, ret_piece->len);
	return true;
}

bool hpx_answer_header_valid(struct hpx_span line)
{
	struct hpx_span name, value, piece;
	bool pointer;

	split_line(line, &name, &value);
	for (size_t i = 0; i < name.len; i++)
		if (!is_name_byte(name.ptr[i]))
			return false;
	if (name.len == 0 || !is_value(value))
		return false;
	while (next_piece(&value, &piece, &pointer))
		if (pointer && (piece.len == 0 || !hpx_json_pointer_valid(piece)))
			return false;
	return true;
}

/* ---- the body ---- */

static enum hpx_status write_body(const struct hpx_answer_rule *rule,
				  const struct hpx_provider_object *object, struct hpx_buffer *body)
{
	if (hpx_span_eq(rule->body, HPX_SPAN(HPX_ANSWER_WHOLE)))
		return hpx_buffer_append(body, object->text);
	return hpx_json_select(object->text, &hpx_json_limits_default, rule->body, body);
}

/* ---- the header lines ---- */

static enum hpx_status append_scalar(const struct hpx_provider_object *object, struct hpx_span pointer,
				     struct hpx_arena *arena, struct hpx_buffer *out)
{
	struct hpx_json_scalar scalar;
	enum hpx_status status =
		hpx_json_lookup(object->text, pointer, VALUE_BYTES_MAX, arena, &scalar);

	if (status != HPX_OK)
		return status;
	return is_value(scalar.text) ? hpx_buffer_append(out, scalar.text) : HPX_INVALID;
}

static enum hpx_status append_value(const struct hpx_provider_object *object, struct hpx_span value,
				    struct hpx_arena *arena, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;
	struct hpx_span piece;
	bool pointer;

	while (status == HPX_OK && next_piece(&value, &piece, &pointer))
		status = pointer ? append_scalar(object, piece, arena, out) :
				   hpx_buffer_append(out, piece);
	return status;
}

static enum hpx_status append_copied(const struct hpx_provider_object *object, struct hpx_span name,
				     struct hpx_buffer *out)
{
	struct hpx_span value = object->header != NULL ? object->header(object->user, name) :
							 (struct hpx_span){ NULL, 0 };

	if (value.ptr == NULL)
		return HPX_NOT_FOUND;
	return is_value(value) ? hpx_buffer_append(out, value) : HPX_INVALID;
}

static enum hpx_status write_line(const struct hpx_provider_object *object, struct hpx_span line,
				  struct hpx_arena *arena, struct hpx_buffer *out)
{
	size_t len = out->len;
	struct hpx_span name, value;

	split_line(line, &name, &value);
	enum hpx_status status = hpx_buffer_printf(out, "%.*s: ", HPX_SPAN_ARG(name));
	if (status == HPX_OK)
		status = value.ptr != NULL ? append_value(object, value, arena, out) :
					     append_copied(object, name, out);
	/* The provider does not send such a header: the answer has none either. */
	if (status == HPX_NOT_FOUND && value.ptr == NULL) {
		out->len = len;
		return HPX_OK;
	}
	return status == HPX_OK ? hpx_buffer_text(out, "\r\n") : status;
}

static bool names_content_type(const struct hpx_answer_rule *rule)
{
	struct hpx_span name, value;

	for (size_t i = 0; i < rule->header_count; i++) {
		split_line(rule->headers[i], &name, &value);
		if (hpx_span_ieq(name, HPX_SPAN("Content-Type")))
			return true;
	}
	return false;
}

/* What the provider's text is, where all of it is the body; of a part, JSON. */
static enum hpx_status write_content_type(const struct hpx_answer_rule *rule,
					  const struct hpx_provider_object *object, struct hpx_buffer *out)
{
	bool whole = hpx_span_eq(rule->body, HPX_SPAN(HPX_ANSWER_WHOLE));
	struct hpx_span type = whole && object->content_type.ptr != NULL && is_value(object->content_type) ?
				       object->content_type :
				       HPX_SPAN("application/json");

	return hpx_buffer_printf(out, "Content-Type: %.*s\r\n", HPX_SPAN_ARG(type));
}

static enum hpx_status write_headers(const struct hpx_answer_rule *rule,
				     const struct hpx_provider_object *object, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;
	struct hpx_arena arena;

	hpx_arena_init(&arena, SCRATCH_BYTES_MAX);
	if (!names_content_type(rule))
		status = write_content_type(rule, object, out);
	for (size_t i = 0; i < rule->header_count && status == HPX_OK; i++)
		status = write_line(object, rule->headers[i], &arena, out);
	hpx_arena_done(&arena);
	return status == HPX_OK ? hpx_buffer_text(out, HPX_RECONSTRUCTED ": true\r\n") : status;
}

enum hpx_status hpx_reconstruct(const struct hpx_answer_rule *rule,
				const struct hpx_provider_object *object,
				struct hpx_buffer *headers, struct hpx_buffer *body)
{
	HPX_ASSERT(rule->status >= 200 && rule->status <= 299);
	enum hpx_status status = write_body(rule, object, body);

	return status == HPX_OK ? write_headers(rule, object, headers) : status;
}
