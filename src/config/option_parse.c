/* Reads a mapping of the YAML tree option by option, each value into its member.
 * The tree is flat, so this is a loop with a stack of the open groups. */
#include "config/option_parse.h"

#include <stdio.h>

#include "base/status.h"
#include "config/profile.h"

/* {name: value} as "name value"; ptr NULL, with the problem unset: out of memory. */
static struct hpx_span pair_of(const struct hpx_option_parser *parser, size_t index,
			       const char **ret_problem)
{
	const struct hpx_yaml_node *nodes = parser->tree->nodes;
	const struct hpx_yaml_node *member = &nodes[index + 1];

	if (nodes[index].kind != HPX_YAML_MAPPING || nodes[index].end != index + 2 ||
	    member->kind != HPX_YAML_SCALAR) {
		*ret_problem = "is a list of mappings with one member each";
		return hpx_span(NULL, 0);
	}
	return hpx_arena_printf(parser->scratch, "%.*s %.*s", HPX_SPAN_ARG(member->name),
				HPX_SPAN_ARG(member->text));
}

/* The texts of a value: one, or the elements of a list. Where the shape is
 * wrong, NULL and a problem. */
static const struct hpx_span *items_of(const struct hpx_option_parser *parser, size_t index,
				       bool pairs, size_t *ret_count, const char **ret_problem)
{
	const struct hpx_yaml_node *nodes = parser->tree->nodes;
	size_t end = nodes[index].end;
	struct hpx_span *items;
	size_t count = 0;

	*ret_problem = NULL;
	if (nodes[index].kind == HPX_YAML_SCALAR) {
		*ret_count = 1;
		return &nodes[index].text;
	}
	items = hpx_arena_zalloc(parser->scratch, end - index, sizeof(*items));
	for (size_t i = index + 1; i < end && items != NULL; i = nodes[i].end) {
		if (!pairs && nodes[i].kind != HPX_YAML_SCALAR) {
			*ret_problem = "is a list of single values";
			return NULL;
		}
		items[count] = pairs ? pair_of(parser, i, ret_problem) : nodes[i].text;
		if (items[count++].ptr == NULL)
			return NULL;
	}
	*ret_count = count;
	return items;
}

/* What is wrong with the shape of an option's value; NULL: nothing. */
static const char *shape_problem(const struct hpx_option *option,
				 const struct hpx_yaml_node *node)
{
	bool list = hpx_option_kind_is_list(option->kind);
	bool mapping = node->kind == HPX_YAML_MAPPING;

	if (node->kind == HPX_YAML_SCALAR && node->empty)
		return "has no value; give one, or leave the line out for the default";
	if (list ? node->kind == HPX_YAML_LIST : node->kind == HPX_YAML_SCALAR)
		return NULL;
	if (option->kind == HPX_OPTION_FILES && node->kind == HPX_YAML_SCALAR)
		return NULL;
	if (list)
		return mapping ? "must be a list, not a mapping" :
				 "must be a list, not a single value";
	return mapping ? "must be a single value, not a mapping" :
			 "must be a single value, not a list";
}

/* Reads a value into its member. HPX_INVALID: `problem` says what is wrong. */
static enum hpx_status parse_value(const struct hpx_option_parser *parser, size_t index,
				   const struct hpx_option *option, void *base,
				   char problem[HPX_VALUE_PROBLEM_SIZE])
{
	const char *shape = shape_problem(option, &parser->tree->nodes[index]);
	const struct hpx_span *items = NULL;
	size_t count = 0;

	if (shape == NULL) {
		items = items_of(parser, index, option->pairs, &count, &shape);
		if (items == NULL && shape == NULL)
			return HPX_NOMEM;
	}
	/* Examples of the other kinds are those of the reference. */
	if (shape != NULL && option->read != NULL && option->example != NULL)
		return hpx_value_refuse(problem, "%s; write e.g. %s", shape, option->example);
	if (shape != NULL)
		return hpx_value_refuse(problem, "%s", shape);
	return hpx_value_read(option, items, count, parser->values, base, problem);
}

static enum hpx_status parse_option(const struct hpx_option_parser *parser, size_t index,
				    struct hpx_span path, const struct hpx_option *option,
				    const struct hpx_option_sink *sinks)
{
	const struct hpx_yaml_node *node = &parser->tree->nodes[index];
	const struct hpx_option_sink *sink = &sinks[option->place];
	char problem[HPX_VALUE_PROBLEM_SIZE];

	HPX_ASSERT(sink->base != NULL && sink->given != NULL);
	if (parser->overridden != NULL &&
	    parser->overridden->at[hpx_option_index(parser->table, option)].given)
		return HPX_OK;
	enum hpx_status status = parse_value(parser, index, option, sink->base, problem);
	sink->given->at[hpx_option_index(parser->table, option)] = (struct hpx_given){
		true, node->line, node->column, status == HPX_INVALID
	};
	if (status != HPX_INVALID)
		return status;
	hpx_config_remark(parser->report, HPX_CONFIG_MISTAKE, node->value_line,
			  node->value_column, path, "%s", problem);
	return HPX_OK;
}

static void refuse_unknown(const struct hpx_option_parser *parser,
			   const struct hpx_yaml_node *node, struct hpx_span path)
{
	char suggestion[HPX_OPTION_PATH_SIZE];

	hpx_option_suggest(parser->table, path, suggestion);
	/* {from:header}: to YAML the whole is a name. */
	if (node->empty && memchr(node->name.ptr, ':', node->name.len) != NULL)
		hpx_config_remark(parser->report, HPX_CONFIG_MISTAKE, node->line, node->column, path,
				  "is no option; a space is missing after the colon");
	else if (suggestion[0] == '\0')
		hpx_config_remark(parser->report, HPX_CONFIG_MISTAKE, node->line,
				  node->column, path, "is no option%s%s",
				  parser->table->listed_by != NULL ? "; " : "",
				  parser->table->listed_by != NULL ? parser->table->listed_by : "");
	else
		hpx_config_remark(parser->report, HPX_CONFIG_MISTAKE, node->line,
				  node->column, path, "is no option; did you mean %s?",
				  suggestion);
}

/* A path is made of names, and a name with a dot could be an option of another
 * section, whose member lies in another struct. True: the name has one, or a bracket. */
static bool refuse_dotted(const struct hpx_option_parser *parser,
			  const struct hpx_yaml_node *node, struct hpx_span path)
{
	size_t dot = hpx_span_index(node->name, '.');
	struct hpx_span rest = hpx_span_skip(node->name, dot < node->name.len ? dot + 1 : dot);

	if (dot < node->name.len)
		hpx_config_remark(parser->report, HPX_CONFIG_MISTAKE, node->line, node->column,
				  path, "a name has no dot; write %.*s: {%.*s: ...}",
				  HPX_VALUE_SHOW(hpx_span_first(node->name, dot)),
				  HPX_VALUE_SHOW(hpx_span_first(rest, hpx_span_index(rest, '.'))));
	else if (hpx_span_index(node->name, '[') < node->name.len)
		refuse_unknown(parser, node, path);
	else
		return false;
	return true;
}

/* One node of the tree. `*ret_enter`: go on with the nodes in it. */
static enum hpx_status parse_node(const struct hpx_option_parser *parser, size_t index,
				  struct hpx_span path, const struct hpx_option_sink *sinks,
				  bool *ret_enter)
{
	const struct hpx_yaml_node *node = &parser->tree->nodes[index];
	const struct hpx_option *option = hpx_option_find(parser->table, path);

	*ret_enter = false;
	if (refuse_dotted(parser, node, path))
		return HPX_OK;
	bool collection = hpx_option_is_collection(parser->table, path);
	/* `listen` is both: one value, or a list of mappings. */
	if (option != NULL && !(collection && node->kind != HPX_YAML_SCALAR))
		return parse_option(parser, index, path, option, sinks);
	if (collection)
		return HPX_OK;
	if (!hpx_option_is_group(parser->table, path)) {
		refuse_unknown(parser, node, path);
		return HPX_OK;
	}
	/* A group whose options are all commented out is an empty value. */
	if (node->kind == HPX_YAML_SCALAR && node->empty)
		return HPX_OK;
	if (node->kind != HPX_YAML_MAPPING)
		hpx_config_remark(parser->report, HPX_CONFIG_MISTAKE, node->line,
				  node->column, path,
				  "must be a mapping of options, not %s",
				  hpx_yaml_kind_words(node->kind));
	*ret_enter = node->kind == HPX_YAML_MAPPING;
	return HPX_OK;
}

enum hpx_status hpx_option_parse(const struct hpx_option_parser *parser, size_t index,
				 struct hpx_span prefix, const struct hpx_option_sink *sinks)
{
	const struct hpx_yaml_node *nodes = parser->tree->nodes;
	struct {
		struct hpx_span path;
		size_t end;
	} open[HPX_YAML_DEPTH_MAX + 1] = { { prefix, nodes[index].end } };
	size_t depth = 0;
	bool enter;

	HPX_ASSERT(index < parser->tree->count && nodes[index].kind == HPX_YAML_MAPPING);
	for (size_t i = index + 1; i < nodes[index].end;) {
		while (i >= open[depth].end)
			depth--;
		struct hpx_span path = hpx_arena_printf(
			parser->scratch, "%.*s%s%.*s", HPX_SPAN_ARG(open[depth].path),
			open[depth].path.len > 0 ? "." : "", HPX_SPAN_ARG(nodes[i].name));
		if (path.ptr == NULL)
			return HPX_NOMEM;
		enum hpx_status status = parse_node(parser, i, path, sinks, &enter);
		if (status != HPX_OK)
			return status;
		if (enter) {
			HPX_ASSERT(depth < HPX_YAML_DEPTH_MAX);
			open[++depth].path = path;
			open[depth].end = nodes[i].end;
		}
		i = enter ? i + 1 : nodes[i].end;
	}
	return HPX_OK;
}

enum hpx_status hpx_option_put_defaults(const struct hpx_option_parser *parser,
					enum hpx_profile profile,
					const struct hpx_option_sink *sinks)
{
	enum hpx_status status = HPX_OK;
	char problem[HPX_VALUE_PROBLEM_SIZE];

	for (size_t i = 0; i < parser->table->count && status == HPX_OK; i++) {
		const struct hpx_option *option = &parser->table->rows[i];
		const char *own = hpx_profile_default(profile, option);
		struct hpx_span text = hpx_span_of(own != NULL ? own : option->default_value);

		if (text.ptr == NULL)
			continue;
		HPX_ASSERT(sinks[option->place].base != NULL);
		status = hpx_value_read(option, &text, text.len > 0, parser->values,
					sinks[option->place].base, problem);
		HPX_ASSERT(status != HPX_INVALID);
	}
	return status;
}

void hpx_option_flag_name(const struct hpx_option *option, char out[HPX_OPTION_PATH_SIZE])
{
	const char *flag = option->flag;

	/* "H,header": the long form is what people read. */
	if (flag != NULL && flag[0] != '\0' && flag[1] == ',')
		flag += 2;
	snprintf(out, HPX_OPTION_PATH_SIZE, "%s%s", flag != NULL ? "--" : "",
		 flag != NULL ? flag : option->flag_value);
}

enum hpx_status hpx_option_parse_flag(const struct hpx_option_parser *parser,
				      const struct hpx_option *option,
				      const struct hpx_span *items, size_t count,
				      const struct hpx_option_sink *sink)
{
	char problem[HPX_VALUE_PROBLEM_SIZE];
	char name[HPX_OPTION_PATH_SIZE];
	enum hpx_status status =
		hpx_value_read(option, items, count, parser->values, sink->base, problem);

	HPX_ASSERT(count > 0);
	sink->given->at[hpx_option_index(parser->table, option)] =
		(struct hpx_given){ .given = true, .wrong = status == HPX_INVALID };
	if (status != HPX_INVALID)
		return status;
	hpx_option_flag_name(option, name);
	hpx_config_remark(parser->report, HPX_CONFIG_MISTAKE, 0, 0, hpx_span_of(name), "%s",
			  problem);
	return HPX_OK;
}
