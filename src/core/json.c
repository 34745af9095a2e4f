/* Canonical form, written from a tree whose objects are in order; RFC 6901 pointers, cut
 * into tokens once and compared token by token; and lookups, which go down the tree one
 * level at a time by the same steps that an ignore list is followed by. */
#include "core/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "core/number.h"

/* Depth: more than any API nests, little enough for one small stack. Digits:
 * far beyond any amount. Members: a body of 1 MiB of ordinary members has
 * fewer, and 48 bytes each stay within 6 MiB. */
const struct hpx_json_limits hpx_json_limits_default = {
	.depth_max = 256,
	.digits_max = 1024,
	.exponent_max = 1000000,
	.members_max = 131072,
};

static enum hpx_status write_scalar(const struct hpx_json_node *node, struct hpx_buffer *out)
{
	struct hpx_span text = node->text;
	struct hpx_number number;

	if (node->kind == HPX_JSON_STRING)
		return hpx_json_string_write(text, out);
	if (node->kind == HPX_JSON_LITERAL)
		return hpx_buffer_append(out, text);
	enum hpx_status status = hpx_number_read(&text, &number);
	return status == HPX_OK ? hpx_number_write(&number, out) : status;
}

static enum hpx_status write_opening(const struct hpx_json_tree *tree, uint32_t at, bool named,
				     struct hpx_buffer *out)
{
	const struct hpx_json_node *node = &tree->nodes[at];
	enum hpx_status status = HPX_OK;

	if (named && tree->nodes[node->parent].kind == HPX_JSON_OBJECT) {
		status = hpx_json_string_write(node->name, out);
		if (status == HPX_OK)
			status = hpx_buffer_byte(out, ':');
	}
	if (status != HPX_OK)
		return status;
	if (node->kind == HPX_JSON_OBJECT)
		return hpx_buffer_byte(out, '{');
	if (node->kind == HPX_JSON_ARRAY)
		return hpx_buffer_byte(out, '[');
	return write_scalar(node, out);
}

static enum hpx_status write_closing(const struct hpx_json_node *node, struct hpx_buffer *out)
{
	if (node->kind == HPX_JSON_OBJECT)
		return hpx_buffer_byte(out, '}');
	if (node->kind == HPX_JSON_ARRAY)
		return hpx_buffer_byte(out, ']');
	return HPX_OK;
}

/* `at`, or the first behind it that counts. */
static uint32_t skip_ignored(const struct hpx_json_tree *tree, uint32_t at)
{
	while (at != HPX_JSON_NONE && tree->nodes[at].ignored)
		at = tree->nodes[at].next;
	return at;
}

/* Closes `at` and every container up to `root` that ends with it; what follows then is
 * in `*ret_next`, HPX_JSON_NONE at the end of `root`. */
static enum hpx_status write_ends(const struct hpx_json_tree *tree, uint32_t root, uint32_t at,
				  struct hpx_buffer *out, uint32_t *ret_next)
{
	enum hpx_status status = write_closing(&tree->nodes[at], out);
	uint32_t next = HPX_JSON_NONE;

	while (at != root && next == HPX_JSON_NONE && status == HPX_OK) {
		next = skip_ignored(tree, tree->nodes[at].next);
		at = tree->nodes[at].parent;
		if (next == HPX_JSON_NONE)
			status = write_closing(&tree->nodes[at], out);
	}
	if (status == HPX_OK && next != HPX_JSON_NONE)
		status = hpx_buffer_byte(out, ',');
	*ret_next = next;
	return status;
}

/* The value at `root`, without its own name; nothing where it is ignored. */
static enum hpx_status write_value(const struct hpx_json_tree *tree, uint32_t root,
				   struct hpx_buffer *out)
{
	uint32_t at = tree->nodes[root].ignored ? HPX_JSON_NONE : root;
	enum hpx_status status = HPX_OK;

	while (at != HPX_JSON_NONE && status == HPX_OK) {
		uint32_t below = skip_ignored(tree, tree->nodes[at].first);
		status = write_opening(tree, at, at != root, out);
		if (below != HPX_JSON_NONE)
			at = below;
		else if (status == HPX_OK)
			status = write_ends(tree, root, at, out, &at);
	}
	return status;
}

enum hpx_status hpx_json_canonical(struct hpx_span text, const struct hpx_json_limits *limits,
				   const struct hpx_span *ignore, size_t ignore_count,
				   struct hpx_buffer *out)
{
	struct hpx_json_tree tree;
	size_t len = out->len;

	enum hpx_status status = hpx_json_tree_read(text, limits, ignore, ignore_count, &tree);
	if (status != HPX_OK)
		return status;
	status = write_value(&tree, 0, out);
	hpx_json_tree_done(&tree);
	if (status != HPX_OK)
		out->len = len;
	return status;
}

/* One member: the pointer as its name, and the value that it leads to. */
static enum hpx_status write_selected(const struct hpx_json_tree *tree, uint32_t at,
				      struct hpx_span pointer, bool first, struct hpx_buffer *out)
{
	enum hpx_status status = first ? HPX_OK : hpx_buffer_byte(out, ',');

	if (status == HPX_OK)
		status = hpx_json_string_write(pointer, out);
	if (status == HPX_OK)
		status = hpx_buffer_byte(out, ':');
	return status == HPX_OK ? write_value(tree, at, out) : status;
}

static enum hpx_status write_selection(const struct hpx_json_tree *tree, const struct hpx_span *only,
				       size_t count, struct hpx_buffer *out)
{
	struct hpx_json_pointers pointers;
	enum hpx_status status = hpx_json_pointers_init(&pointers, only, count);
	bool first = true;

	if (status == HPX_OK)
		status = hpx_buffer_byte(out, '{');
	for (size_t i = 0; i < count && status == HPX_OK; i++) {
		uint32_t at = only[i].len == 0 ? 0 : hpx_json_tree_at(tree, &pointers, i);
		if (at == HPX_JSON_NONE)
			continue;
		status = write_selected(tree, at, only[i], first, out);
		first = false;
	}
	hpx_json_pointers_done(&pointers);
	return status == HPX_OK ? hpx_buffer_byte(out, '}') : status;
}

enum hpx_status hpx_json_canonical_only(struct hpx_span text, const struct hpx_json_limits *limits,
					const struct hpx_span *only, size_t only_count,
					struct hpx_buffer *out)
{
	struct hpx_json_tree tree;
	size_t len = out->len;

	enum hpx_status status = hpx_json_tree_read(text, limits, NULL, 0, &tree);
	if (status != HPX_OK)
		return status;
	status = write_selection(&tree, only, only_count, out);
	hpx_json_tree_done(&tree);
	if (status != HPX_OK)
		out->len = len;
	return status;
}

/* ---- pointers ---- */

bool hpx_json_pointer_valid(struct hpx_span pointer)
{
	if (pointer.len > 0 && pointer.ptr[0] != '/')
		return false;
	for (size_t i = 0; i < pointer.len; i++) {
		if (pointer.ptr[i] != '~')
			continue;
		i++;
		if (i == pointer.len || (pointer.ptr[i] != '0' && pointer.ptr[i] != '1'))
			return false;
	}
	return true;
}

static size_t count_tokens(struct hpx_span pointer)
{
	size_t count = 0;

	for (size_t i = 0; i < pointer.len; i++)
		count += pointer.ptr[i] == '/';
	return count;
}

/* Returns how many tokens were put at `tokens`. */
static size_t cut_tokens(struct hpx_span pointer, struct hpx_span *tokens)
{
	size_t count = 0;

	if (pointer.len == 0 || !hpx_json_pointer_valid(pointer))
		return 0;
	struct hpx_span rest = hpx_span_skip(pointer, 1);
	while (hpx_span_split(&rest, '/', &tokens[count]))
		count++;
	return count;
}

enum hpx_status hpx_json_pointers_init(struct hpx_json_pointers *pointers,
				       const struct hpx_span *ignore, size_t ignore_count)
{
	size_t total = 1;
	size_t at = 0;

	*pointers = (struct hpx_json_pointers){ .all = 0 };
	if (ignore_count > HPX_JSON_IGNORE_MAX)
		return HPX_MISUSE;
	if (ignore_count == 0)
		return HPX_OK;
	for (size_t i = 0; i < ignore_count; i++)
		total += count_tokens(ignore[i]);
	pointers->tokens = calloc(total, sizeof(*pointers->tokens));
	if (pointers->tokens == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < ignore_count; i++) {
		size_t count = cut_tokens(ignore[i], pointers->tokens + at);
		pointers->first[i] = at;
		at += count;
		pointers->first[i + 1] = at;
		if (count > 0)
			pointers->all |= (uint64_t)1 << i;
		else if (ignore[i].len == 0)
			pointers->whole = true;
	}
	HPX_ASSERT(at < total);
	return HPX_OK;
}

void hpx_json_pointers_done(struct hpx_json_pointers *pointers)
{
	free(pointers->tokens);
	pointers->tokens = NULL;
}

/* ~1 is '/', ~0 is '~'; the token is known to be well formed. */
static bool token_is(struct hpx_span token, struct hpx_span name)
{
	size_t at = 0;

	for (size_t i = 0; i < token.len; i++, at++) {
		char c = token.ptr[i];
		if (c == '~')
			c = token.ptr[++i] == '1' ? '/' : '~';
		if (at == name.len || name.ptr[at] != c)
			return false;
	}
	return at == name.len;
}

uint64_t hpx_json_pointers_step(const struct hpx_json_pointers *pointers,
				uint64_t set, size_t depth,
				struct hpx_span name, bool *ret_named)
{
	uint64_t below = 0;
	bool named = false;

	for (; set != 0; set &= set - 1) {
		size_t i = (size_t)__builtin_ctzll(set);
		size_t at = pointers->first[i] + depth;
		HPX_ASSERT(at < pointers->first[i + 1]);
		if (!token_is(pointers->tokens[at], name))
			continue;
		if (at + 1 == pointers->first[i + 1])
			named = true;
		else
			below |= set & -set;
	}
	*ret_named = named;
	return below;
}

/* ---- lookups ---- */

/* The child of `parent` at which the pointer ends (`*ret_ends`) or goes on. */
static uint32_t child_on_the_way(const struct hpx_json_tree *tree, uint32_t parent,
				 const struct hpx_json_pointers *pointers, uint64_t set,
				 size_t depth, bool *ret_ends)
{
	bool array = tree->nodes[parent].kind == HPX_JSON_ARRAY;
	uint32_t at = tree->nodes[parent].first;
	char index[16];

	for (unsigned i = 0; at != HPX_JSON_NONE; at = tree->nodes[at].next, i++) {
		struct hpx_span name = tree->nodes[at].name;
		if (array)
			name = hpx_span(index, (size_t)snprintf(index, sizeof(index), "%u", i));
		uint64_t below = hpx_json_pointers_step(pointers, set, depth, name, ret_ends);
		if (*ret_ends || below != 0)
			return at;
	}
	return HPX_JSON_NONE;
}

uint32_t hpx_json_tree_at(const struct hpx_json_tree *tree,
			  const struct hpx_json_pointers *pointers, size_t which)
{
	HPX_ASSERT(which < HPX_JSON_IGNORE_MAX);
	uint64_t set = pointers->all & (uint64_t)1 << which;
	uint32_t at = 0;
	bool ends = false;

	if (set == 0)
		return HPX_JSON_NONE;
	for (size_t depth = 0; at != HPX_JSON_NONE && !ends; depth++)
		at = child_on_the_way(tree, at, pointers, set, depth, &ends);
	return at;
}

/* The node that the one pointer leads to, HPX_JSON_NONE where it leads nowhere. */
static enum hpx_status find_node(const struct hpx_json_tree *tree, struct hpx_span pointer,
				 uint32_t *ret_at)
{
	struct hpx_json_pointers pointers;
	enum hpx_status status = hpx_json_pointers_init(&pointers, &pointer, 1);

	if (status == HPX_OK)
		*ret_at = pointers.whole ? 0 : hpx_json_tree_at(tree, &pointers, 0);
	hpx_json_pointers_done(&pointers);
	return status;
}

enum hpx_status hpx_json_select(struct hpx_span text, const struct hpx_json_limits *limits,
				struct hpx_span pointer, struct hpx_buffer *out)
{
	struct hpx_json_tree tree;
	size_t len = out->len;
	uint32_t at;

	enum hpx_status status = hpx_json_tree_read(text, limits, NULL, 0, &tree);
	if (status != HPX_OK)
		return status;
	status = find_node(&tree, pointer, &at);
	if (status == HPX_OK)
		status = at != HPX_JSON_NONE ? write_value(&tree, at, out) : HPX_NOT_FOUND;
	hpx_json_tree_done(&tree);
	if (status != HPX_OK)
		out->len = len;
	return status;
}

static enum hpx_status copy_scalar(const struct hpx_json_node *node, size_t text_max,
				   struct hpx_arena *arena, struct hpx_json_scalar *ret_scalar)
{
	if (node->kind == HPX_JSON_ARRAY || node->kind == HPX_JSON_OBJECT)
		return HPX_NOT_FOUND;
	if (node->text.len > text_max)
		return HPX_TOO_LARGE;
	struct hpx_span text = hpx_arena_dup(arena, node->text);
	if (text.ptr == NULL)
		return HPX_NOMEM;
	*ret_scalar = (struct hpx_json_scalar){ node->kind, text };
	return HPX_OK;
}

enum hpx_status hpx_json_lookup(struct hpx_span body, struct hpx_span pointer, size_t text_max,
				struct hpx_arena *arena, struct hpx_json_scalar *ret_scalar)
{
	struct hpx_json_tree tree;
	uint32_t at;

	enum hpx_status status = hpx_json_tree_read(body, &hpx_json_limits_default, NULL, 0, &tree);
	if (status != HPX_OK)
		return status == HPX_NOMEM ? status : HPX_INVALID;
	status = find_node(&tree, pointer, &at);
	if (status == HPX_OK)
		status = at == HPX_JSON_NONE ? HPX_NOT_FOUND :
					       copy_scalar(&tree.nodes[at], text_max, arena, ret_scalar);
	hpx_json_tree_done(&tree);
	return status;
}
