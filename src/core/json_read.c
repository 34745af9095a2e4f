/* Reads RFC 8259 into a tree: one pass, one explicit stack of the containers
 * that are open. Everything is bounded by the limits and the text's length. */
#include <stdio.h>
#include <stdlib.h>

#include "core/json_pointer.h"
#include "core/json_string.h"
#include "core/json_tree.h"
#include "core/number.h"

/* A container that is open, and what of the ignore list goes on below it. */
struct frame {
	uint64_t set;
	uint32_t node;
	uint32_t last;
	uint32_t count;
};

struct reader {
	struct hpx_span rest;
	const struct hpx_json_limits *limits;
	struct hpx_json_pointers pointers;
	struct hpx_json_tree tree;
	size_t text_len;
	size_t decoded_len;
	struct frame *frames;
	size_t frames_cap;
	size_t depth;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void skip_space(struct reader *r)
{
	while (r->rest.len > 0 && is_space(r->rest.ptr[0]))
		r->rest = hpx_span_skip(r->rest, 1);
}

static bool take(struct reader *r, char c)
{
	if (r->rest.len == 0 || r->rest.ptr[0] != c)
		return false;
	r->rest = hpx_span_skip(r->rest, 1);
	return true;
}

static struct frame *top(struct reader *r)
{
	return r->depth > 0 ? &r->frames[r->depth - 1] : NULL;
}

/* More room in an array that doubles up to `max` places. */
static enum hpx_status grow(void **array, size_t *cap, size_t max, size_t size)
{
	if (*cap >= max)
		return HPX_INVALID;
	size_t more = *cap > max / 2 ? max : *cap * 2;
	if (more == 0)
		more = max < 16 ? max : 16;
	void *moved = reallocarray(*array, more, size);
	if (moved == NULL)
		return HPX_NOMEM;
	*array = moved;
	*cap = more;
	return HPX_OK;
}

/* A node behind the others of the open container. */
static enum hpx_status add_node(struct reader *r, struct hpx_span name, uint32_t *ret_node)
{
	struct hpx_json_tree *tree = &r->tree;
	struct frame *frame = top(r);
	/* The root is neither a member nor an element. */
	size_t max = r->limits->members_max < UINT32_MAX - 1 ? r->limits->members_max + 1 :
							       UINT32_MAX - 1;

	if (tree->count == tree->cap) {
		void *nodes = tree->nodes;
		enum hpx_status status = grow(&nodes, &tree->cap, max, sizeof(*tree->nodes));
		if (status != HPX_OK)
			return status;
		tree->nodes = nodes;
	}
	uint32_t at = (uint32_t)tree->count++;
	tree->nodes[at] = (struct hpx_json_node){ .name = name,
						  .parent = frame ? frame->node : HPX_JSON_NONE,
						  .next = HPX_JSON_NONE,
						  .first = HPX_JSON_NONE };
	if (frame != NULL && frame->last == HPX_JSON_NONE)
		tree->nodes[frame->node].first = at;
	else if (frame != NULL)
		tree->nodes[frame->last].next = at;
	if (frame != NULL) {
		frame->last = at;
		frame->count++;
	}
	*ret_node = at;
	return HPX_OK;
}

static enum hpx_status read_string(struct reader *r, struct hpx_span *ret_text)
{
	struct hpx_span inside;
	bool escaped;

	if (r->rest.len == 0 || r->rest.ptr[0] != '"')
		return HPX_INVALID;
	enum hpx_status status = hpx_json_string_read(&r->rest, &inside, &escaped);
	if (status != HPX_OK)
		return status;
	if (escaped) {
		/* Decoded strings are never longer than written ones, so that
		 * one block as long as the text holds all of them. */
		if (r->tree.decoded == NULL)
			r->tree.decoded = malloc(r->text_len);
		if (r->tree.decoded == NULL)
			return HPX_NOMEM;
		char *out = r->tree.decoded + r->decoded_len;
		inside = hpx_span(out, hpx_json_string_decode(inside, out));
		r->decoded_len += inside.len;
	}
	*ret_text = inside;
	return HPX_OK;
}

static enum hpx_status read_number(struct reader *r, struct hpx_span *ret_text)
{
	struct hpx_number number;
	struct hpx_span from = r->rest;

	enum hpx_status status = hpx_number_read(&r->rest, &number);
	if (status != HPX_OK)
		return status;
	if (hpx_number_digits(&number) > r->limits->digits_max ||
	    llabs(hpx_number_exponent(&number)) > (long long)r->limits->exponent_max)
		return HPX_INVALID;
	*ret_text = hpx_span_first(from, from.len - r->rest.len);
	return HPX_OK;
}

static enum hpx_status read_literal(struct reader *r, struct hpx_span *ret_text)
{
	static const struct hpx_span literals[] = {
		HPX_SPAN_INIT("null"), HPX_SPAN_INIT("true"), HPX_SPAN_INIT("false")
	};

	for (size_t i = 0; i < sizeof(literals) / sizeof(literals[0]); i++) {
		if (!hpx_span_starts(r->rest, literals[i]))
			continue;
		r->rest = hpx_span_skip(r->rest, literals[i].len);
		*ret_text = literals[i];
		return HPX_OK;
	}
	return HPX_INVALID;
}

/* The name and colon before a member's value. */
static enum hpx_status read_name(struct reader *r, struct hpx_span *ret_name)
{
	skip_space(r);
	enum hpx_status status = read_string(r, ret_name);
	if (status != HPX_OK)
		return status;
	skip_space(r);
	return take(r, ':') ? HPX_OK : HPX_INVALID;
}

static enum hpx_status open_container(struct reader *r, uint32_t node,
				      uint64_t set)
{
	if (r->depth == r->frames_cap) {
		void *frames = r->frames;
		enum hpx_status status = grow(&frames, &r->frames_cap, r->limits->depth_max,
					      sizeof(*r->frames));
		if (status != HPX_OK)
			return status;
		r->frames = frames;
	}
	r->frames[r->depth++] = (struct frame){ set, node, HPX_JSON_NONE, 0 };
	return HPX_OK;
}

/* Whether the ignore list names this new node, and what goes on below it. */
static uint64_t follow(struct reader *r, const struct frame *frame,
		       struct hpx_span name, bool *ret_ignored)
{
	char index[16];

	*ret_ignored = false;
	if (frame->set == 0)
		return 0;
	if (r->tree.nodes[frame->node].kind == HPX_JSON_ARRAY) {
		int n = snprintf(index, sizeof(index), "%u", (unsigned)(frame->count - 1));
		name = hpx_span(index, (size_t)n);
	}
	return hpx_json_pointers_step(&r->pointers, frame->set, r->depth - 1, name,
				      ret_ignored);
}

static enum hpx_status fill(struct reader *r, uint32_t at, uint64_t set)
{
	struct hpx_json_node *node = &r->tree.nodes[at];
	char c = r->rest.len > 0 ? r->rest.ptr[0] : '\0';

	if (take(r, '{') || take(r, '[')) {
		node->kind = c == '{' ? HPX_JSON_OBJECT : HPX_JSON_ARRAY;
		return open_container(r, at, set);
	}
	if (c == '"') {
		node->kind = HPX_JSON_STRING;
		return read_string(r, &node->text);
	}
	if (c == '-' || (c >= '0' && c <= '9')) {
		node->kind = HPX_JSON_NUMBER;
		return read_number(r, &node->text);
	}
	node->kind = HPX_JSON_LITERAL;
	return read_literal(r, &node->text);
}

/* One value with its name, if it is a member; of a container, the opening. */
static enum hpx_status read_value(struct reader *r)
{
	struct frame *frame = top(r);
	struct hpx_span name = { NULL, 0 };
	uint64_t set = r->pointers.all;
	bool ignored = r->pointers.whole;
	uint32_t node;

	enum hpx_status status = HPX_OK;
	if (frame != NULL && r->tree.nodes[frame->node].kind == HPX_JSON_OBJECT)
		status = read_name(r, &name);
	if (status != HPX_OK)
		return status;
	status = add_node(r, name, &node);
	if (status != HPX_OK)
		return status;
	if (frame != NULL)
		set = follow(r, frame, name, &ignored);
	r->tree.nodes[node].ignored = ignored;
	skip_space(r);
	return fill(r, node, set);
}

/* After a value or an opening: closes what ends here, up to the place where
 * the next value begins (`*ret_more`) or the end of the document. */
static enum hpx_status read_closings(struct reader *r, bool *ret_more)
{
	for (struct frame *frame = top(r); frame != NULL; frame = top(r)) {
		bool object = r->tree.nodes[frame->node].kind == HPX_JSON_OBJECT;
		skip_space(r);
		if (take(r, object ? '}' : ']')) {
			r->depth--;
			if (object && hpx_json_tree_sort(&r->tree, frame->node) != HPX_OK)
				return HPX_INVALID;
			continue;
		}
		/* Before the first there is no comma. */
		if (frame->count > 0 && !take(r, ','))
			return HPX_INVALID;
		*ret_more = true;
		return HPX_OK;
	}
	skip_space(r);
	*ret_more = false;
	return r->rest.len == 0 ? HPX_OK : HPX_INVALID;
}

enum hpx_status hpx_json_tree_read(struct hpx_span text, const struct hpx_json_limits *limits,
				   const struct hpx_span *ignore, size_t ignore_count,
				   struct hpx_json_tree *ret_tree)
{
	struct reader r = { .rest = text, .limits = limits, .text_len = text.len };
	bool more = true;

	if (text.len >= UINT32_MAX)
		return HPX_TOO_LARGE;
	enum hpx_status status = hpx_json_pointers_init(&r.pointers, ignore, ignore_count);
	skip_space(&r);
	while (status == HPX_OK && more) {
		status = read_value(&r);
		if (status == HPX_OK)
			status = read_closings(&r, &more);
	}
	free(r.frames);
	hpx_json_pointers_done(&r.pointers);
	if (status == HPX_OK)
		*ret_tree = r.tree;
	else
		hpx_json_tree_done(&r.tree);
	return status;
}

void hpx_json_tree_done(struct hpx_json_tree *tree)
{
	free(tree->nodes);
	free(tree->decoded);
	*tree = (struct hpx_json_tree){ .nodes = NULL };
}
