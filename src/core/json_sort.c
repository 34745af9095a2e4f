/* The members of an object in RFC 8785 order: a merge sort of the list they
 * already are, which needs no memory and no recursion. */
#include "core/json_string.h"
#include "core/json_tree.h"

/* Lists of 1, 2, 4, ... members wait for another of their size: 32 of them
 * are enough for every place that 32 bits can name. */
#define RUNS 32

static bool comes_first(const struct hpx_json_tree *tree, uint32_t a, uint32_t b)
{
	return hpx_json_string_cmp(tree->nodes[a].name, tree->nodes[b].name) <= 0;
}

static uint32_t merge(struct hpx_json_tree *tree, uint32_t a, uint32_t b)
{
	uint32_t head = HPX_JSON_NONE;
	uint32_t *link = &head;

	while (a != HPX_JSON_NONE && b != HPX_JSON_NONE) {
		uint32_t *from = comes_first(tree, a, b) ? &a : &b;
		*link = *from;
		link = &tree->nodes[*from].next;
		*from = *link;
	}
	*link = a != HPX_JSON_NONE ? a : b;
	return head;
}

static uint32_t sort_list(struct hpx_json_tree *tree, uint32_t list)
{
	uint32_t runs[RUNS];
	uint32_t all = HPX_JSON_NONE;
	size_t used = 0;

	while (list != HPX_JSON_NONE) {
		uint32_t one = list;
		size_t i = 0;
		list = tree->nodes[one].next;
		tree->nodes[one].next = HPX_JSON_NONE;
		for (; i < used && runs[i] != HPX_JSON_NONE; i++) {
			one = merge(tree, runs[i], one);
			runs[i] = HPX_JSON_NONE;
		}
		runs[i] = one;
		used = i == used ? used + 1 : used;
	}
	for (size_t i = 0; i < used; i++)
		all = merge(tree, runs[i], all);
	return all;
}

enum hpx_status hpx_json_tree_sort(struct hpx_json_tree *tree, uint32_t object)
{
	uint32_t at = sort_list(tree, tree->nodes[object].first);

	tree->nodes[object].first = at;
	for (; at != HPX_JSON_NONE; at = tree->nodes[at].next) {
		uint32_t next = tree->nodes[at].next;
		if (next != HPX_JSON_NONE &&
		    hpx_span_eq(tree->nodes[at].name, tree->nodes[next].name))
			return HPX_INVALID;
	}
	return HPX_OK;
}
