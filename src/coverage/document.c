/* Documents: the reader of JSON with its lines, the index of members, and the ways
 * from one value to another. */
#include "coverage/document.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/status.h"

/* Strings of YAML are never longer than the text, but for what aliases copy by place. */
#define ARENA_BYTES_MAX (4 * HPX_DOCUMENT_BYTES_MAX)

/* Mappings that are merged into each other, one after the other. */
#define MERGES_MAX 8

static const struct hpx_json_limits document_limits = {
	.depth_max = HPX_DOCUMENT_DEPTH_MAX,
	.digits_max = 1000,
	.exponent_max = 100000,
	.members_max = HPX_DOCUMENT_VALUES_MAX,
};

static bool ends_with(struct hpx_span text, struct hpx_span end)
{
	return text.len >= end.len &&
	       hpx_span_ieq(hpx_span_skip(text, text.len - end.len), end);
}

enum hpx_document_syntax hpx_document_syntax(struct hpx_span path, struct hpx_span text)
{
	if (ends_with(path, HPX_SPAN(".json")) || ends_with(path, HPX_SPAN(".har")))
		return HPX_DOCUMENT_JSON;
	if (ends_with(path, HPX_SPAN(".yaml")) || ends_with(path, HPX_SPAN(".yml")))
		return HPX_DOCUMENT_YAML;
	for (size_t i = 0; i < text.len; i++)
		if (strchr(" \t\r\n", text.ptr[i]) == NULL)
			return text.ptr[i] == '{' ? HPX_DOCUMENT_JSON : HPX_DOCUMENT_YAML;
	return HPX_DOCUMENT_YAML;
}

/* ---- JSON ---- */

static unsigned count_lines(struct hpx_span text)
{
	unsigned lines = 0;

	for (size_t i = 0; i < text.len; i++)
		lines += text.ptr[i] == '\n';
	return lines;
}

static bool lies_within(struct hpx_span part, struct hpx_span text)
{
	return part.ptr >= text.ptr && part.ptr < text.ptr + text.len;
}

/* Where a node stands: its name, or its value where the name had escapes; NULL where
 * both had. */
static const char *place_of(const struct hpx_json_node *node, struct hpx_span text)
{
	if (node->name.ptr != NULL && lies_within(node->name, text))
		return node->name.ptr;
	return node->text.ptr != NULL && lies_within(node->text, text) ? node->text.ptr : NULL;
}

/* Nodes stand in the order of the text, so that one pass over both is enough. */
static enum hpx_status number_lines(struct hpx_document *document, struct hpx_span text)
{
	const struct hpx_json_tree *tree = &document->tree;
	struct hpx_span rest = text;
	unsigned line = 1;

	document->lines = calloc(tree->count, sizeof(*document->lines));
	if (document->lines == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < tree->count; i++) {
		const char *place = place_of(&tree->nodes[i], text);
		if (place != NULL && place >= rest.ptr) {
			size_t passed = (size_t)(place - rest.ptr);
			line += count_lines(hpx_span_first(rest, passed));
			rest = hpx_span_skip(rest, passed);
		}
		document->lines[i] = line;
	}
	return HPX_OK;
}

static enum hpx_status read_json(struct hpx_document *document,
				 struct hpx_document_mistake *ret_mistake)
{
	struct hpx_span text = hpx_buffer_span(&document->text);
	struct hpx_json_mistake mistake = { 0, "" };

	if (hpx_span_starts(text, HPX_SPAN("\xef\xbb\xbf")))
		text = hpx_span_skip(text, 3);
	enum hpx_status status =
		hpx_json_tree_read_document(text, &document_limits, &mistake, &document->tree);
	if (status == HPX_INVALID) {
		ret_mistake->line = 1 + count_lines(hpx_span_first(text, mistake.at));
		snprintf(ret_mistake->reason, sizeof(ret_mistake->reason), "%s", mistake.reason);
	}
	return status == HPX_OK ? number_lines(document, text) : status;
}

/* ---- the index of members ---- */

static size_t hash_member(uint32_t parent, struct hpx_span name)
{
	uint64_t hash = 0xcbf29ce484222325u ^ parent;

	for (size_t i = 0; i < name.len; i++)
		hash = (hash ^ (unsigned char)name.ptr[i]) * 0x100000001b3u;
	return (size_t)(hash ^ hash >> 29);
}

/* The slot of that member, or the free one where it would be. */
static uint32_t *find_slot(const struct hpx_document *document, uint32_t parent,
			   struct hpx_span name)
{
	const struct hpx_json_node *nodes = document->tree.nodes;
	size_t at = hash_member(parent, name) & document->slot_mask;

	while (document->slots[at] != HPX_JSON_NONE) {
		const struct hpx_json_node *node = &nodes[document->slots[at]];
		if (node->parent == parent && hpx_span_eq(node->name, name))
			break;
		at = (at + 1) & document->slot_mask;
	}
	return &document->slots[at];
}

static enum hpx_status make_slots(struct hpx_document *document)
{
	size_t room = 16;

	while (room < 2 * document->tree.count)
		room *= 2;
	document->slots = malloc(room * sizeof(*document->slots));
	if (document->slots == NULL)
		return HPX_NOMEM;
	memset(document->slots, 0xff, room * sizeof(*document->slots));
	document->slot_mask = room - 1;
	return HPX_OK;
}

static enum hpx_status index_members(struct hpx_document *document,
				     struct hpx_document_mistake *ret_mistake)
{
	const struct hpx_json_tree *tree = &document->tree;
	enum hpx_status status = make_slots(document);

	for (uint32_t i = 1; i < tree->count && status == HPX_OK; i++) {
		const struct hpx_json_node *node = &tree->nodes[i];
		if (tree->nodes[node->parent].kind != HPX_JSON_OBJECT)
			continue;
		uint32_t *slot = find_slot(document, node->parent, node->name);
		if (*slot != HPX_JSON_NONE) {
			ret_mistake->line = document->lines[i];
			snprintf(ret_mistake->reason, sizeof(ret_mistake->reason),
				 "\"%.*s\" is given twice; the first is on line %u",
				 HPX_SPAN_ARG(hpx_span_first(node->name, 60)),
				 document->lines[*slot]);
			status = HPX_INVALID;
		}
		*slot = i;
	}
	return status;
}

/* ---- the whole document ---- */

enum hpx_status hpx_document_read(struct hpx_span path, struct hpx_buffer *text,
				  struct hpx_document *ret_document,
				  struct hpx_document_mistake *ret_mistake)
{
	struct hpx_document document = { .path = path, .text = *text };
	struct hpx_span bytes = hpx_buffer_span(text);

	hpx_buffer_init(text, 0);
	hpx_arena_init(&document.arena, ARENA_BYTES_MAX);
	enum hpx_status status = HPX_TOO_LARGE;
	if (bytes.len <= HPX_DOCUMENT_BYTES_MAX)
		status = hpx_document_syntax(path, bytes) == HPX_DOCUMENT_JSON ?
				 read_json(&document, ret_mistake) :
				 hpx_document_read_yaml(&document, ret_mistake);
	if (status == HPX_OK)
		status = index_members(&document, ret_mistake);
	HPX_ASSERT(status != HPX_OK || document.tree.count > 0);
	if (status == HPX_OK)
		*ret_document = document;
	else
		hpx_document_done(&document);
	return status;
}

void hpx_document_done(struct hpx_document *document)
{
	hpx_json_tree_done(&document->tree);
	free(document->lines);
	free(document->slots);
	hpx_arena_done(&document->arena);
	hpx_buffer_done(&document->text);
}

/* ---- values ---- */

static const struct hpx_json_node *node_of(struct hpx_value_at value)
{
	HPX_ASSERT(value.document != NULL && value.node < value.document->tree.count);
	return &value.document->tree.nodes[value.node];
}

static struct hpx_value_at at_node(const struct hpx_document *document, uint32_t node)
{
	return node == HPX_JSON_NONE ? hpx_value_none() : (struct hpx_value_at){ document, node };
}

struct hpx_value_at hpx_document_root(const struct hpx_document *document)
{
	return at_node(document, 0);
}

bool hpx_value_is(struct hpx_value_at value, enum hpx_json_kind kind)
{
	return hpx_value_there(value) && node_of(value)->kind == kind;
}

static struct hpx_value_at own_member(struct hpx_value_at object, struct hpx_span name)
{
	if (!hpx_value_is(object, HPX_JSON_OBJECT))
		return hpx_value_none();
	return at_node(object.document, *find_slot(object.document, object.node, name));
}

struct hpx_value_at hpx_value_member(struct hpx_value_at object, struct hpx_span name)
{
	struct hpx_value_at found = own_member(object, name);

	/* YAML's merge: the members of another mapping, where this has none of its own. */
	for (int hops = 0; !hpx_value_there(found) && hops < MERGES_MAX; hops++) {
		object = own_member(object, HPX_SPAN("<<"));
		found = own_member(object, name);
		for (struct hpx_value_at one = hpx_value_first(object);
		     hpx_value_is(object, HPX_JSON_ARRAY) && hpx_value_there(one) &&
		     !hpx_value_there(found);
		     one = hpx_value_next(one))
			found = own_member(one, name);
	}
	return found;
}

struct hpx_value_at hpx_value_first(struct hpx_value_at container)
{
	return hpx_value_there(container) ?
		       at_node(container.document, node_of(container)->first) :
		       hpx_value_none();
}

struct hpx_value_at hpx_value_next(struct hpx_value_at value)
{
	return at_node(value.document, node_of(value)->next);
}

static struct hpx_value_at element(struct hpx_value_at list, struct hpx_span token)
{
	struct hpx_value_at at = hpx_value_first(list);
	uint64_t index;

	if (!hpx_span_u64(token, HPX_DOCUMENT_VALUES_MAX, &index))
		return hpx_value_none();
	for (; index > 0 && hpx_value_there(at); index--)
		at = hpx_value_next(at);
	return at;
}

/* A token without ~0 and ~1, in `out`. */
static struct hpx_span unescape(struct hpx_span token, char *out, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < token.len && len < size; i++) {
		char c = token.ptr[i];
		if (c == '~' && i + 1 < token.len)
			c = token.ptr[++i] == '1' ? '/' : '~';
		out[len++] = c;
	}
	return hpx_span(out, len);
}

struct hpx_value_at hpx_value_follow(struct hpx_value_at from, struct hpx_span pointer)
{
	struct hpx_span token;
	char name[512];

	if (pointer.len > 0 && pointer.ptr[0] != '/')
		return hpx_value_none();
	if (pointer.len > 0)
		pointer = hpx_span_skip(pointer, 1);
	else
		return from;
	while (hpx_value_there(from) && hpx_span_split(&pointer, '/', &token)) {
		token = unescape(token, name, sizeof(name));
		from = hpx_value_is(from, HPX_JSON_ARRAY) ? element(from, token) :
							    hpx_value_member(from, token);
	}
	return from;
}

struct hpx_span hpx_value_name(struct hpx_value_at value)
{
	return hpx_value_there(value) ? node_of(value)->name : hpx_span(NULL, 0);
}

struct hpx_span hpx_value_text(struct hpx_value_at value)
{
	if (!hpx_value_there(value) || hpx_value_is(value, HPX_JSON_OBJECT) ||
	    hpx_value_is(value, HPX_JSON_ARRAY))
		return hpx_span(NULL, 0);
	return node_of(value)->text;
}

struct hpx_span hpx_value_member_text(struct hpx_value_at object, const char *name)
{
	return hpx_value_text(hpx_value_member(object, hpx_span_of(name)));
}

bool hpx_value_true(struct hpx_value_at value)
{
	return hpx_value_is(value, HPX_JSON_LITERAL) &&
	       hpx_span_eq(node_of(value)->text, HPX_SPAN("true"));
}

unsigned hpx_value_line(struct hpx_value_at value)
{
	return hpx_value_there(value) ? value.document->lines[value.node] : 0;
}
