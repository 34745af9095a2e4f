/* From libyaml's events to the flat tree, with a stack of open mappings and lists:
 * no recursion, whatever the file looks like. */
#include "config/yaml.h"

#include "base/status.h"
#include "config/yaml_syntax.h"

/* A mapping or list whose end has not come yet. */
struct open {
	size_t node;
	size_t members;
	struct hpx_span name; /* read, its value has not come yet */
	unsigned line;
	unsigned column;
};

struct builder {
	struct hpx_span text;
	struct hpx_arena *arena;
	struct hpx_config_report *report;
	struct hpx_yaml tree;
	size_t room;
	struct open open[HPX_YAML_DEPTH_MAX];
	size_t depth;
	bool root_done;
	enum hpx_status status; /* HPX_OK or HPX_NOMEM */
};

static void refuse(struct builder *builder, yaml_mark_t mark, const char *message)
{
	hpx_config_remark(builder->report, HPX_CONFIG_MISTAKE, (unsigned)mark.line + 1,
			  (unsigned)mark.column + 1, HPX_SPAN(""), "%s", message);
}

static struct open *top(struct builder *builder)
{
	return builder->depth > 0 ? &builder->open[builder->depth - 1] : NULL;
}

static bool wants_name(struct builder *builder)
{
	struct open *open = top(builder);

	return open != NULL && open->name.ptr == NULL &&
	       builder->tree.nodes[open->node].kind == HPX_YAML_MAPPING;
}

/* Doubles the array; the old ones stay in the arena, and are together no larger. */
static bool make_room(struct builder *builder)
{
	if (builder->tree.count < builder->room)
		return true;
	size_t room = builder->room ? 2 * builder->room : 64;
	struct hpx_yaml_node *nodes =
		hpx_arena_zalloc(builder->arena, room, sizeof(*nodes));
	if (nodes == NULL)
		return false;
	if (builder->tree.count > 0)
		memcpy(nodes, builder->tree.nodes, builder->tree.count * sizeof(*nodes));
	builder->tree.nodes = nodes;
	builder->room = room;
	return true;
}

/* The next node, in its place; NULL where there can be none. */
static struct hpx_yaml_node *add(struct builder *builder, enum hpx_yaml_kind kind,
				 yaml_mark_t mark)
{
	struct open *open = top(builder);

	if (builder->tree.count == HPX_YAML_NODES_MAX) {
		refuse(builder, mark,
		       "the file has too many values; the rest was not read");
		return NULL;
	}
	if (!make_room(builder)) {
		builder->status = HPX_NOMEM;
		return NULL;
	}
	struct hpx_yaml_node *node = &builder->tree.nodes[builder->tree.count++];
	*node = (struct hpx_yaml_node){
		.kind = kind,
		.line = (unsigned)mark.line + 1,
		.column = (unsigned)mark.column + 1,
		.value_line = (unsigned)mark.line + 1,
		.value_column = (unsigned)mark.column + 1,
		.end = builder->tree.count,
	};
	if (open != NULL && open->name.ptr != NULL) {
		node->name = open->name;
		node->line = open->line;
		node->column = open->column;
		open->name = (struct hpx_span){ NULL, 0 };
	}
	return node;
}

static void check_twice(struct builder *builder, struct open *open, struct hpx_span name,
			yaml_mark_t mark)
{
	const struct hpx_yaml_node *nodes = builder->tree.nodes;

	for (size_t i = open->node + 1; i < builder->tree.count; i = nodes[i].end) {
		if (!hpx_span_eq(nodes[i].name, name))
			continue;
		hpx_config_remark(builder->report, HPX_CONFIG_MISTAKE,
				  (unsigned)mark.line + 1, (unsigned)mark.column + 1, name,
				  "is given twice; the first is on line %u", nodes[i].line);
		return;
	}
}

/* False: reading ends here. */
static bool take_name(struct builder *builder, struct hpx_span name, yaml_mark_t mark)
{
	struct open *open = top(builder);

	HPX_ASSERT(open->name.ptr == NULL);
	if (open->members++ == HPX_YAML_MEMBERS_MAX) {
		refuse(builder, mark,
		       "more than 64 options in one place; the rest was not read");
		return false;
	}
	check_twice(builder, open, name, mark);
	open->name = hpx_arena_dup(builder->arena, name);
	open->line = (unsigned)mark.line + 1;
	open->column = (unsigned)mark.column + 1;
	if (open->name.ptr == NULL)
		builder->status = HPX_NOMEM;
	return open->name.ptr != NULL;
}

static bool is_empty(const yaml_event_t *event, struct hpx_span text)
{
	return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (text.len == 0 || hpx_span_eq(text, HPX_SPAN("~")) ||
		hpx_span_ieq(text, HPX_SPAN("null")));
}

static bool take_scalar(struct builder *builder, const yaml_event_t *event)
{
	struct hpx_span text =
		hpx_span(event->data.scalar.value, event->data.scalar.length);
	struct hpx_yaml_node *node;

	if (wants_name(builder))
		return take_name(builder, text, event->start_mark);
	node = add(builder, HPX_YAML_SCALAR, event->start_mark);
	if (node == NULL)
		return false;
	node->empty = is_empty(event, text);
	node->text = hpx_arena_dup(builder->arena, text);
	if (node->text.ptr == NULL)
		builder->status = HPX_NOMEM;
	return node->text.ptr != NULL;
}

static bool begin(struct builder *builder, enum hpx_yaml_kind kind, yaml_mark_t mark)
{
	if (wants_name(builder)) {
		refuse(builder, mark,
		       "the name of an option is a single word, not a list or "
		       "mapping; the rest was not read");
		return false;
	}
	if (builder->depth == HPX_YAML_DEPTH_MAX) {
		refuse(builder, mark,
		       "nested deeper than any option; the rest was not read");
		return false;
	}
	if (add(builder, kind, mark) == NULL)
		return false;
	builder->open[builder->depth++] = (struct open){ .node = builder->tree.count - 1 };
	return true;
}

static bool end(struct builder *builder)
{
	struct open *open = top(builder);

	HPX_ASSERT(open != NULL && open->node < builder->tree.count);
	builder->tree.nodes[open->node].end = builder->tree.count;
	builder->depth--;
	return true;
}

static void check_extras(struct builder *builder, yaml_mark_t mark,
			 const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor != NULL)
		refuse(builder, mark,
		       "anchors (&name) are not used here; write the value out");
	if (tag != NULL)
		refuse(builder, mark, "tags (!name) are not used here; leave it out");
}

static bool take_value(struct builder *builder, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		check_extras(builder, event->start_mark, event->data.scalar.anchor,
			     event->data.scalar.tag);
		return take_scalar(builder, event);
	case YAML_MAPPING_START_EVENT:
		check_extras(builder, event->start_mark, event->data.mapping_start.anchor,
			     event->data.mapping_start.tag);
		return begin(builder, HPX_YAML_MAPPING, event->start_mark);
	case YAML_SEQUENCE_START_EVENT:
		check_extras(builder, event->start_mark, event->data.sequence_start.anchor,
			     event->data.sequence_start.tag);
		return begin(builder, HPX_YAML_LIST, event->start_mark);
	default:
		return end(builder);
	}
}

/* False: nothing more is to be read. */
static bool take(struct builder *builder, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_STREAM_START_EVENT:
		return true;
	case YAML_STREAM_END_EVENT:
		builder->tree.whole = true;
		return false;
	case YAML_DOCUMENT_START_EVENT:
		if (builder->root_done)
			refuse(builder, event->start_mark,
			       "a second document (---) begins; a configuration is one");
		return !builder->root_done;
	case YAML_DOCUMENT_END_EVENT:
		builder->root_done = true;
		return true;
	case YAML_ALIAS_EVENT:
		refuse(builder, event->start_mark,
		       "aliases (*name) are not used here; write the value out. "
		       "The rest was not read");
		return false;
	default:
		return take_value(builder, event);
	}
}

/* libyaml reads ahead: of a byte that is no text it says the offset only. */
static yaml_mark_t mark_of(struct hpx_span text, size_t offset)
{
	yaml_mark_t mark = { .index = offset };

	for (size_t i = 0; i < offset && i < text.len; i++) {
		mark.column = text.ptr[i] == '\n' ? 0 : mark.column + 1;
		mark.line += text.ptr[i] == '\n';
	}
	return mark;
}

static void refuse_syntax(struct builder *builder, const yaml_parser_t *parser)
{
	yaml_mark_t mark = parser->problem_mark;
	char words[HPX_YAML_WORDS_SIZE];

	if (parser->error == YAML_MEMORY_ERROR) {
		builder->status = HPX_NOMEM;
		return;
	}
	if (parser->error == YAML_READER_ERROR)
		mark = mark_of(builder->text, parser->problem_offset);
	hpx_yaml_explain(builder->text, parser, &mark, words);
	hpx_config_remark(builder->report, HPX_CONFIG_MISTAKE, (unsigned)mark.line + 1,
			  (unsigned)mark.column + 1, HPX_SPAN(""), "%s; the rest was not read", words);
}

static void read_events(struct builder *builder, yaml_parser_t *parser)
{
	yaml_event_t event;
	bool more = true;

	while (more) {
		if (!yaml_parser_parse(parser, &event)) {
			refuse_syntax(builder, parser);
			return;
		}
		more = take(builder, &event);
		yaml_event_delete(&event);
	}
}

enum hpx_status hpx_yaml_read(struct hpx_span text, struct hpx_arena *arena,
			      struct hpx_config_report *report, struct hpx_yaml *ret_tree)
{
	struct builder builder = { .text = text, .arena = arena, .report = report };
	yaml_parser_t parser;

	if (!yaml_parser_initialize(&parser))
		return HPX_NOMEM;
	yaml_parser_set_input_string(
		&parser, (const unsigned char *)(text.len > 0 ? text.ptr : ""), text.len);
	read_events(&builder, &parser);
	yaml_parser_delete(&parser);
	/* Where reading stopped early, open mappings and lists end there. */
	while (builder.depth > 0)
		end(&builder);
	if (builder.status == HPX_OK)
		*ret_tree = builder.tree;
	return builder.status;
}

size_t hpx_yaml_member(const struct hpx_yaml *tree, struct hpx_span name)
{
	for (size_t i = 1; i < tree->count; i = tree->nodes[i].end)
		if (hpx_span_eq(tree->nodes[i].name, name))
			return i;
	return 0;
}

const char *hpx_yaml_kind_words(enum hpx_yaml_kind kind)
{
	static const char *const words[] = { "a single value", "a mapping", "a list" };

	HPX_ASSERT(kind < sizeof(words) / sizeof(words[0]));
	return words[kind];
}
