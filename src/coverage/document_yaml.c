/* From libyaml's events to the tree of a document, with a stack of open mappings and
 * lists: no recursion. An alias stands for a copy of what it names; their number and the
 * values that they copy are bounded, and an alias inside what it names is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/status.h"
#include "coverage/document.h"

#define ANCHORS_MAX 1000

struct yaml_frame {
	uint32_t node;
	uint32_t last;
	struct hpx_span name; /* read, its value has not come yet */
	unsigned name_line;
	size_t anchor; /* of this container; ANCHORS_MAX: none */
};

struct yaml_anchor {
	struct hpx_span name;
	uint32_t node;
	uint32_t end; /* behind its last node; 0: it is still open */
};

struct yaml_reader {
	struct hpx_document *document;
	struct hpx_document_mistake *mistake;
	size_t cap;
	struct yaml_frame frames[HPX_DOCUMENT_DEPTH_MAX];
	size_t depth;
	struct yaml_anchor anchors[ANCHORS_MAX];
	size_t anchor_count;
	size_t aliases;
	size_t alias_values;
	bool root_done;
	enum hpx_status status;
};

static bool refuse(struct yaml_reader *r, yaml_mark_t mark, const char *reason)
{
	r->mistake->line = (unsigned)mark.line + 1;
	snprintf(r->mistake->reason, sizeof(r->mistake->reason), "%s", reason);
	r->status = HPX_INVALID;
	return false;
}

static bool out_of_memory(struct yaml_reader *r)
{
	r->status = HPX_NOMEM;
	return false;
}

static struct yaml_frame *top(struct yaml_reader *r)
{
	return r->depth > 0 ? &r->frames[r->depth - 1] : NULL;
}

static bool make_room(struct yaml_reader *r, size_t more)
{
	struct hpx_json_tree *tree = &r->document->tree;
	size_t cap = r->cap > 0 ? r->cap : 256;

	while (cap < tree->count + more)
		cap *= 2;
	if (cap == r->cap)
		return true;
	struct hpx_json_node *nodes = reallocarray(tree->nodes, cap, sizeof(*nodes));
	if (nodes == NULL)
		return out_of_memory(r);
	tree->nodes = nodes;
	uint32_t *lines = reallocarray(r->document->lines, cap, sizeof(*lines));
	if (lines == NULL)
		return out_of_memory(r);
	r->document->lines = lines;
	tree->cap = r->cap = cap;
	return true;
}

static bool wants_name(struct yaml_reader *r)
{
	struct yaml_frame *frame = top(r);

	return frame != NULL && frame->name.ptr == NULL &&
	       r->document->tree.nodes[frame->node].kind == HPX_JSON_OBJECT;
}

/* Ties a node that stands at the end of the array to the open container. */
static void link_node(struct yaml_reader *r, uint32_t at)
{
	struct hpx_json_node *nodes = r->document->tree.nodes;
	struct yaml_frame *frame = top(r);

	nodes[at].parent = frame != NULL ? frame->node : HPX_JSON_NONE;
	nodes[at].next = HPX_JSON_NONE;
	if (frame == NULL)
		return;
	nodes[at].name = frame->name;
	if (frame->name.ptr != NULL)
		r->document->lines[at] = frame->name_line;
	frame->name = hpx_span(NULL, 0);
	if (frame->last == HPX_JSON_NONE)
		nodes[frame->node].first = at;
	else
		nodes[frame->last].next = at;
	frame->last = at;
}

/* The next node, in its place; false where there can be none. */
static bool add(struct yaml_reader *r, enum hpx_json_kind kind, yaml_mark_t mark, uint32_t *ret_at)
{
	struct hpx_json_tree *tree = &r->document->tree;

	if (tree->count >= HPX_DOCUMENT_VALUES_MAX)
		return refuse(r, mark, "too many values");
	if (!make_room(r, 1))
		return false;
	uint32_t at = (uint32_t)tree->count++;
	tree->nodes[at] = (struct hpx_json_node){ .kind = kind, .first = HPX_JSON_NONE };
	r->document->lines[at] = (unsigned)mark.line + 1;
	link_node(r, at);
	*ret_at = at;
	return true;
}

/* ---- anchors and aliases ---- */

static bool set_anchor(struct yaml_reader *r, const yaml_char_t *name, uint32_t node, uint32_t end,
		       yaml_mark_t mark, size_t *ret_anchor)
{
	*ret_anchor = ANCHORS_MAX;
	if (name == NULL)
		return true;
	if (r->anchor_count == ANCHORS_MAX)
		return refuse(r, mark, "more than 1,000 anchors (&name)");
	struct hpx_span copy =
		hpx_arena_dup(&r->document->arena, hpx_span_of((const char *)name));
	if (copy.ptr == NULL)
		return out_of_memory(r);
	r->anchors[r->anchor_count] = (struct yaml_anchor){ copy, node, end };
	*ret_anchor = r->anchor_count++;
	return true;
}

/* The last one of that name counts. */
static const struct yaml_anchor *find_anchor(struct yaml_reader *r, struct hpx_span name)
{
	for (size_t i = r->anchor_count; i-- > 0;)
		if (hpx_span_eq(r->anchors[i].name, name))
			return &r->anchors[i];
	return NULL;
}

static uint32_t moved(uint32_t place, uint32_t by)
{
	return place == HPX_JSON_NONE ? place : place + by;
}

static void copy_nodes(struct yaml_reader *r, const struct yaml_anchor *anchor, yaml_mark_t mark)
{
	struct hpx_json_tree *tree = &r->document->tree;
	uint32_t to = (uint32_t)tree->count;
	uint32_t by = to - anchor->node;

	for (uint32_t i = anchor->node; i < anchor->end; i++) {
		struct hpx_json_node node = tree->nodes[i];
		node.parent = moved(node.parent, by);
		node.next = moved(node.next, by);
		node.first = moved(node.first, by);
		tree->nodes[i + by] = node;
		r->document->lines[i + by] = r->document->lines[i];
	}
	tree->count += anchor->end - anchor->node;
	r->document->lines[to] = (unsigned)mark.line + 1;
	link_node(r, to);
}

static bool take_alias(struct yaml_reader *r, const yaml_event_t *event)
{
	const struct yaml_anchor *anchor =
		find_anchor(r, hpx_span_of((const char *)event->data.alias.anchor));

	if (wants_name(r))
		return refuse(r, event->start_mark, "an alias (*name) stands for a name of a member");
	if (anchor == NULL)
		return refuse(r, event->start_mark, "an alias (*name) that nothing before it has");
	if (anchor->end == 0)
		return refuse(r, event->start_mark, "an alias (*name) inside what it names");
	size_t more = anchor->end - anchor->node;
	r->alias_values += more;
	if (++r->aliases > HPX_DOCUMENT_ALIASES_MAX || r->alias_values > HPX_DOCUMENT_ALIAS_VALUES_MAX ||
	    r->document->tree.count + more > HPX_DOCUMENT_VALUES_MAX)
		return refuse(r, event->start_mark, "its aliases (*name) stand for too much");
	if (!make_room(r, more))
		return false;
	copy_nodes(r, anchor, event->start_mark);
	return true;
}

/* ---- values ---- */

static enum hpx_json_kind kind_of(const yaml_event_t *event, struct hpx_span text)
{
	static const char *const literals[] = { "true", "false", "null", "~", "" };

	if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return HPX_JSON_STRING;
	for (size_t i = 0; i < sizeof(literals) / sizeof(literals[0]); i++)
		if (hpx_span_eq(text, hpx_span_of(literals[i])))
			return HPX_JSON_LITERAL;
	uint64_t number;
	return hpx_span_u64(text, UINT64_MAX, &number) ? HPX_JSON_NUMBER : HPX_JSON_STRING;
}

static bool take_scalar(struct yaml_reader *r, const yaml_event_t *event)
{
	struct hpx_span text = hpx_span(event->data.scalar.value, event->data.scalar.length);
	struct hpx_span copy = hpx_arena_dup(&r->document->arena, text);
	uint32_t at;
	size_t anchor;

	if (copy.ptr == NULL)
		return out_of_memory(r);
	if (wants_name(r)) {
		top(r)->name = copy;
		top(r)->name_line = (unsigned)event->start_mark.line + 1;
		return true;
	}
	if (!add(r, kind_of(event, text), event->start_mark, &at))
		return false;
	r->document->tree.nodes[at].text = copy;
	return set_anchor(r, event->data.scalar.anchor, at, at + 1, event->start_mark, &anchor);
}

static bool begin(struct yaml_reader *r, enum hpx_json_kind kind, const yaml_char_t *anchor,
		  yaml_mark_t mark)
{
	struct yaml_frame frame = { .last = HPX_JSON_NONE };

	if (wants_name(r))
		return refuse(r, mark, "the name of a member is a list or a mapping");
	if (r->depth == HPX_DOCUMENT_DEPTH_MAX)
		return refuse(r, mark, "nested too deep");
	if (!add(r, kind, mark, &frame.node) ||
	    !set_anchor(r, anchor, frame.node, 0, mark, &frame.anchor))
		return false;
	r->frames[r->depth++] = frame;
	return true;
}

static bool end(struct yaml_reader *r)
{
	struct yaml_frame *frame = top(r);

	HPX_ASSERT(frame != NULL && frame->node < r->document->tree.count);
	if (frame->anchor < ANCHORS_MAX)
		r->anchors[frame->anchor].end = (uint32_t)r->document->tree.count;
	r->depth--;
	return true;
}

/* False: nothing more is to be read, or a mistake. */
static bool take(struct yaml_reader *r, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_STREAM_END_EVENT:
		return false;
	case YAML_DOCUMENT_START_EVENT:
		return r->root_done ? refuse(r, event->start_mark, "a second document (---) begins") :
				      true;
	case YAML_DOCUMENT_END_EVENT:
		r->root_done = true;
		return true;
	case YAML_ALIAS_EVENT:
		return take_alias(r, event);
	case YAML_SCALAR_EVENT:
		return take_scalar(r, event);
	case YAML_MAPPING_START_EVENT:
		return begin(r, HPX_JSON_OBJECT, event->data.mapping_start.anchor,
			     event->start_mark);
	case YAML_SEQUENCE_START_EVENT:
		return begin(r, HPX_JSON_ARRAY, event->data.sequence_start.anchor,
			     event->start_mark);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		return end(r);
	default:
		return true;
	}
}

/* libyaml says only the offset of a byte that is no text. */
static yaml_mark_t mark_of(struct hpx_span text, const yaml_parser_t *parser)
{
	yaml_mark_t mark = parser->problem_mark;

	if (parser->error != YAML_READER_ERROR)
		return mark;
	mark.line = 0;
	for (size_t i = 0; i < parser->problem_offset && i < text.len; i++)
		mark.line += text.ptr[i] == '\n';
	return mark;
}

static void refuse_syntax(struct yaml_reader *r, const yaml_parser_t *parser)
{
	if (parser->error == YAML_MEMORY_ERROR) {
		r->status = HPX_NOMEM;
		return;
	}
	r->mistake->line =
		(unsigned)mark_of(hpx_buffer_span(&r->document->text), parser).line + 1;
	snprintf(r->mistake->reason, sizeof(r->mistake->reason), "this is not YAML: %s%s%s",
		 parser->context ? parser->context : "", parser->context ? ", " : "",
		 parser->problem ? parser->problem : "malformed");
	r->status = HPX_INVALID;
}

static void read_events(struct yaml_reader *r, yaml_parser_t *parser)
{
	yaml_event_t event;
	bool more = true;

	while (more) {
		if (!yaml_parser_parse(parser, &event)) {
			refuse_syntax(r, parser);
			return;
		}
		more = take(r, &event);
		yaml_event_delete(&event);
	}
}

enum hpx_status hpx_document_read_yaml(struct hpx_document *document,
				       struct hpx_document_mistake *ret_mistake)
{
	struct hpx_span text = hpx_buffer_span(&document->text);
	struct yaml_reader *r = calloc(1, sizeof(*r));
	yaml_parser_t parser;

	if (r == NULL)
		return HPX_NOMEM;
	r->document = document;
	r->mistake = ret_mistake;
	if (!yaml_parser_initialize(&parser)) {
		free(r);
		return HPX_NOMEM;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *)(text.len > 0 ? text.ptr : ""),
				     text.len);
	read_events(r, &parser);
	yaml_parser_delete(&parser);
	if (r->status == HPX_OK && document->tree.count == 0)
		refuse(r, (yaml_mark_t){ .line = 0 }, "the file is empty");
	enum hpx_status status = r->status;
	free(r);
	return status;
}
