/* The canonical form, written from a tree whose objects are in order. */
#include "core/json.h"

#include "core/json_string.h"
#include "core/json_tree.h"
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

static enum hpx_status write_opening(const struct hpx_json_tree *tree, uint32_t at,
				     struct hpx_buffer *out)
{
	const struct hpx_json_node *node = &tree->nodes[at];
	enum hpx_status status = HPX_OK;

	if (node->parent != HPX_JSON_NONE &&
	    tree->nodes[node->parent].kind == HPX_JSON_OBJECT) {
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

/* Closes `at` and every container that ends with it; what follows then is in
 * `*ret_next`, HPX_JSON_NONE at the end of the document. */
static enum hpx_status write_ends(const struct hpx_json_tree *tree, uint32_t at,
				  struct hpx_buffer *out, uint32_t *ret_next)
{
	enum hpx_status status = HPX_OK;
	uint32_t next = HPX_JSON_NONE;

	while (at != HPX_JSON_NONE && next == HPX_JSON_NONE && status == HPX_OK) {
		status = write_closing(&tree->nodes[at], out);
		next = skip_ignored(tree, tree->nodes[at].next);
		at = tree->nodes[at].parent;
	}
	if (status == HPX_OK && next != HPX_JSON_NONE)
		status = hpx_buffer_byte(out, ',');
	*ret_next = next;
	return status;
}

static enum hpx_status write_tree(const struct hpx_json_tree *tree, struct hpx_buffer *out)
{
	uint32_t at = skip_ignored(tree, 0);
	enum hpx_status status = HPX_OK;

	while (at != HPX_JSON_NONE && status == HPX_OK) {
		uint32_t below = skip_ignored(tree, tree->nodes[at].first);
		status = write_opening(tree, at, out);
		if (below != HPX_JSON_NONE)
			at = below;
		else if (status == HPX_OK)
			status = write_ends(tree, at, out, &at);
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
	status = write_tree(&tree, out);
	hpx_json_tree_done(&tree);
	if (status != HPX_OK)
		out->len = len;
	return status;
}
