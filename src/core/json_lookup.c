/* Down the tree one level at a time, by the same steps that an ignore list is
 * followed by. */
#include "core/json_lookup.h"

#include <stdio.h>

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
	uint64_t set = pointers->all & (uint64_t)1 << which;
	uint32_t at = 0;
	bool ends = false;

	if (set == 0)
		return HPX_JSON_NONE;
	for (size_t depth = 0; at != HPX_JSON_NONE && !ends; depth++)
		at = child_on_the_way(tree, at, pointers, set, depth, &ends);
	return at;
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
	struct hpx_json_pointers pointers;
	struct hpx_json_tree tree;

	enum hpx_status status = hpx_json_tree_read(body, &hpx_json_limits_default, NULL, 0, &tree);
	if (status != HPX_OK)
		return status == HPX_NOMEM ? status : HPX_INVALID;
	status = hpx_json_pointers_init(&pointers, &pointer, 1);
	if (status == HPX_OK) {
		uint32_t at = pointers.whole ? 0 : hpx_json_tree_at(&tree, &pointers, 0);
		status = at == HPX_JSON_NONE ? HPX_NOT_FOUND :
					       copy_scalar(&tree.nodes[at], text_max, arena, ret_scalar);
	}
	hpx_json_pointers_done(&pointers);
	hpx_json_tree_done(&tree);
	return status;
}
