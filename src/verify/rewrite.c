/* Rewriting JSON as text. core's reader has found the text to be JSON, so this scanner
 * need only tell strings from what stands between them. */
#include "verify/rewrite.h"

#include "base/status.h"
#include "core/json.h"

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct hpx_span trim(struct hpx_span s)
{
	while (s.len > 0 && is_space(s.ptr[0]))
		s = hpx_span_skip(s, 1);
	while (s.len > 0 && is_space(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

/* The place behind the string that begins at `at`. */
static size_t behind_string(struct hpx_span body, size_t at)
{
	for (at++; at < body.len && body.ptr[at] != '"'; at++)
		at += body.ptr[at] == '\\' ? 1 : 0;
	return at < body.len ? at + 1 : body.len;
}

static enum hpx_status is_object(struct hpx_span body)
{
	struct hpx_json_tree tree;

	enum hpx_status status =
		hpx_json_tree_read(body, &hpx_json_limits_default, NULL, 0, &tree);
	if (status != HPX_OK)
		return status == HPX_NOMEM ? status : HPX_NOT_FOUND;
	bool object = tree.nodes[0].kind == HPX_JSON_OBJECT;
	hpx_json_tree_done(&tree);
	return object ? HPX_OK : HPX_NOT_FOUND;
}

/* The next member off the front of what stands between the outer brackets. */
static struct hpx_span take_member(struct hpx_span *inside)
{
	size_t at = 0;
	unsigned depth = 0;

	while (at < inside->len && (depth > 0 || inside->ptr[at] != ',')) {
		char c = inside->ptr[at];

		depth += c == '{' || c == '[' ? 1 : 0;
		depth -= c == '}' || c == ']' ? 1 : 0;
		at = c == '"' ? behind_string(*inside, at) : at + 1;
	}
	struct hpx_span member = trim(hpx_span_first(*inside, at));
	*inside = hpx_span_skip(*inside, at < inside->len ? at + 1 : at);
	return member;
}

enum hpx_status hpx_rewrite_order(struct hpx_span body, struct hpx_arena *arena,
				  struct hpx_span *ret_body)
{
	enum hpx_status status = is_object(body);
	size_t members = 0;

	if (status != HPX_OK)
		return status;
	body = trim(body);
	char *out = hpx_arena_alloc(arena, body.len);
	if (out == NULL)
		return HPX_NOMEM;
	/* Members are written from the end to the front; the result is never longer. */
	struct hpx_span inside = hpx_span(body.ptr + 1, body.len - 2);
	size_t at = body.len;
	out[--at] = '}';
	while (inside.len > 0) {
		struct hpx_span member = take_member(&inside);

		if (members++ > 0)
			out[--at] = ',';
		HPX_ASSERT(at > member.len);
		at -= member.len;
		memcpy(out + at, member.ptr, member.len);
	}
	out[--at] = '{';
	*ret_body = hpx_span(out + at, body.len - at);
	return members >= 2 ? HPX_OK : HPX_NOT_FOUND;
}

enum hpx_status hpx_rewrite_space(struct hpx_span body, struct hpx_arena *arena,
				  struct hpx_span *ret_body)
{
	enum hpx_status status = is_object(body);
	size_t len = 0;

	if (status != HPX_OK)
		return status;
	/* At most two bytes more for each byte. */
	char *out = hpx_arena_alloc(arena, body.len * 3);
	if (out == NULL)
		return HPX_NOMEM;
	for (size_t at = 0; at < body.len;) {
		char c = body.ptr[at];
		size_t next = c == '"' ? behind_string(body, at) : at + 1;

		if (c == '}' || c == ']' || c == ':')
			out[len++] = ' ';
		memcpy(out + len, body.ptr + at, next - at);
		len += next - at;
		at = next;
		if (c == '{' || c == '[' || c == ',')
			out[len++] = '\n';
		if (c == '{' || c == '[' || c == ',' || c == ':')
			out[len++] = c == ':' ? ' ' : '\t';
	}
	HPX_ASSERT(len <= body.len * 3);
	*ret_body = hpx_span(out, len);
	return HPX_OK;
}

enum hpx_status hpx_rewrite_pad(struct hpx_span body, size_t bytes, struct hpx_arena *arena,
				struct hpx_span *ret_body)
{
	struct hpx_json_tree tree;

	enum hpx_status status =
		hpx_json_tree_read(body, &hpx_json_limits_default, NULL, 0, &tree);
	if (status != HPX_OK)
		return status == HPX_NOMEM ? status : HPX_NOT_FOUND;
	hpx_json_tree_done(&tree);
	size_t len = body.len > bytes ? body.len : bytes;
	char *out = hpx_arena_alloc(arena, len);
	if (out == NULL)
		return HPX_NOMEM;
	memset(out, ' ', len);
	memcpy(out, body.ptr, body.len);
	*ret_body = hpx_span(out, len);
	return HPX_OK;
}

/* The first number in the text is not the first in the sorted tree. */
static uint32_t first_number(const struct hpx_json_tree *tree)
{
	uint32_t found = HPX_JSON_NONE;

	for (uint32_t i = 0; i < tree->count; i++)
		if (tree->nodes[i].kind == HPX_JSON_NUMBER &&
		    (found == HPX_JSON_NONE ||
		     tree->nodes[i].text.ptr < tree->nodes[found].text.ptr))
			found = i;
	return found;
}

enum hpx_status hpx_rewrite_find(struct hpx_span body, struct hpx_span pointer,
				 struct hpx_span *ret_number)
{
	struct hpx_json_pointers pointers;
	struct hpx_json_tree tree;
	uint32_t at = HPX_JSON_NONE;

	enum hpx_status status =
		hpx_json_tree_read(body, &hpx_json_limits_default, NULL, 0, &tree);
	if (status != HPX_OK)
		return status == HPX_NOMEM ? status : HPX_NOT_FOUND;
	if (pointer.len == 0) {
		at = first_number(&tree);
	} else {
		status = hpx_json_pointers_init(&pointers, &pointer, 1);
		if (status == HPX_OK)
			at = hpx_json_tree_at(&tree, &pointers, 0);
		hpx_json_pointers_done(&pointers);
	}
	if (status == HPX_OK && (at == HPX_JSON_NONE || tree.nodes[at].kind != HPX_JSON_NUMBER))
		status = HPX_NOT_FOUND;
	/* A number is never escaped: its text lies in the body. */
	if (status == HPX_OK)
		*ret_number = tree.nodes[at].text;
	hpx_json_tree_done(&tree);
	return status;
}

enum hpx_status hpx_rewrite_replace(struct hpx_span body, struct hpx_span part,
				    struct hpx_span text, struct hpx_arena *arena,
				    struct hpx_span *ret_body)
{
	size_t before = (size_t)(part.ptr - body.ptr);
	size_t after = body.len - before - part.len;
	char *out = hpx_arena_alloc(arena, before + text.len + after);

	HPX_ASSERT(part.ptr >= body.ptr && before + part.len <= body.len);
	if (out == NULL)
		return HPX_NOMEM;
	memcpy(out, body.ptr, before);
	memcpy(out + before, text.ptr, text.len);
	memcpy(out + before + text.len, part.ptr + part.len, after);
	*ret_body = hpx_span(out, before + text.len + after);
	return HPX_OK;
}

/* Changes the last digit before an exponent: one more, or one less for a 9. */
static enum hpx_status change_digit(struct hpx_span body, struct hpx_span number,
				    struct hpx_arena *arena, struct hpx_span *ret_body)
{
	size_t last = 0;

	while (last + 1 < number.len && number.ptr[last + 1] != 'e' && number.ptr[last + 1] != 'E')
		last++;
	HPX_ASSERT(number.ptr[last] >= '0' && number.ptr[last] <= '9');
	char digit = number.ptr[last] == '9' ? '8' : (char)(number.ptr[last] + 1);
	return hpx_rewrite_replace(body, hpx_span(number.ptr + last, 1), hpx_span(&digit, 1), arena,
				   ret_body);
}

/* The first value of a form body that is all digits. */
static enum hpx_status find_in_form(struct hpx_span body, struct hpx_span *ret_number)
{
	struct hpx_span pair;
	uint64_t value;

	while (hpx_span_split(&body, '&', &pair)) {
		size_t equals = hpx_span_index(pair, '=');
		if (equals == pair.len)
			return HPX_NOT_FOUND;
		*ret_number = hpx_span_skip(pair, equals + 1);
		if (hpx_span_u64(*ret_number, UINT64_MAX, &value))
			return HPX_OK;
	}
	return HPX_NOT_FOUND;
}

static enum hpx_status add_member(struct hpx_span body, struct hpx_arena *arena,
				  struct hpx_span *ret_body)
{
	static const char more[] = "{\"hapax_verify\":1";
	struct hpx_span inside = trim(body);

	inside = trim(hpx_span(inside.ptr + 1, inside.len - 2));
	struct hpx_span made = hpx_arena_printf(arena, "%s%s%.*s}", more,
						inside.len > 0 ? "," : "", HPX_SPAN_ARG(inside));
	if (made.ptr == NULL)
		return HPX_NOMEM;
	*ret_body = made;
	return HPX_OK;
}

enum hpx_status hpx_rewrite_other(struct hpx_span body, struct hpx_span pointer,
				  struct hpx_arena *arena, struct hpx_span *ret_body)
{
	struct hpx_span number;

	enum hpx_status status = hpx_rewrite_find(body, pointer, &number);
	if (status == HPX_NOT_FOUND && is_object(body) == HPX_OK)
		return add_member(body, arena, ret_body);
	if (status == HPX_NOT_FOUND)
		status = find_in_form(body, &number);
	return status == HPX_OK ? change_digit(body, number, arena, ret_body) : status;
}
