/* Through the tree, from one named option to the next, and each into its
 * member. The tree is flat, so this is a loop with the open groups beside. */
#include <stdio.h>

#include "config/reading.h"
#include "config/value.h"

/* Where options go while one part of the tree is walked. */
struct target {
	void *base; /* of all but GLOBAL options */
	struct hpx_given_set *given;
};

static void refuse_value(struct hpx_parse_context *context, const struct hpx_yaml_node *node,
			 struct hpx_span path, const char *problem)
{
	hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->value_line,
			  node->value_column, path, "%s", problem);
}

static struct target target_of(struct hpx_parse_context *context, const struct hpx_option *option,
			       struct target policy)
{
	if (option->place == HPX_PLACE_GLOBAL)
		return (struct target){ context->settings, &context->global };
	return policy;
}

/* The texts of a value: one, or the elements of a list. Where the shape is
 * wrong, NULL and a problem. */
static const struct hpx_span *items_of(struct hpx_parse_context *context, size_t index,
				       size_t *ret_count, const char **ret_problem)
{
	const struct hpx_yaml_node *node = &context->tree.nodes[index];
	struct hpx_span *items;
	size_t count = 0;

	*ret_problem = NULL;
	if (node->kind == HPX_YAML_SCALAR) {
		*ret_count = 1;
		return &node->text;
	}
	items = hpx_arena_zalloc(context->scratch, node->end - index, sizeof(*items));
	for (size_t i = index + 1; i < node->end && items != NULL;
	     i = context->tree.nodes[i].end) {
		if (context->tree.nodes[i].kind != HPX_YAML_SCALAR) {
			*ret_problem = "is a list of single values";
			return NULL;
		}
		items[count++] = context->tree.nodes[i].text;
	}
	*ret_count = count;
	return items;
}

/* What is wrong with the shape of an option's value; NULL: nothing. */
static const char *shape_problem(const struct hpx_option *option,
				 const struct hpx_yaml_node *node)
{
	bool list = hpx_option_kind_is_list(option->kind);

	if (node->kind == HPX_YAML_SCALAR && node->empty)
		return "has no value; give one, or leave the line out for the default";
	if (list ? node->kind == HPX_YAML_LIST : node->kind == HPX_YAML_SCALAR)
		return NULL;
	if (list)
		return node->kind == HPX_YAML_MAPPING ? "must be a list, not a mapping" : "must be a list, not a single value";
	return node->kind == HPX_YAML_MAPPING ? "must be a single value, not a mapping" : "must be a single value, not a list";
}

/* The value into its member; what is wrong with it into `problem`. */
static enum hpx_status take_value(struct hpx_parse_context *context, size_t index,
				  const struct hpx_option *option, void *base,
				  char problem[HPX_VALUE_PROBLEM_SIZE])
{
	const char *shape = shape_problem(option, &context->tree.nodes[index]);
	const struct hpx_span *items = NULL;
	size_t count = 0;

	if (shape == NULL) {
		items = items_of(context, index, &count, &shape);
		if (items == NULL && shape == NULL)
			return HPX_NOMEM;
	}
	if (shape != NULL) {
		snprintf(problem, HPX_VALUE_PROBLEM_SIZE, "%s", shape);
		return HPX_INVALID;
	}
	return hpx_value_read(option, items, count, &context->settings->arena, base, problem);
}

static enum hpx_status take_option(struct hpx_parse_context *context, size_t index,
				   struct hpx_span path, const struct hpx_option *option,
				   struct target policy)
{
	const struct hpx_yaml_node *node = &context->tree.nodes[index];
	struct target target = target_of(context, option, policy);
	char problem[HPX_VALUE_PROBLEM_SIZE];
	enum hpx_status status = take_value(context, index, option, target.base, problem);

	target.given->at[hpx_option_index(option)] = (struct hpx_given){
		true, node->line, node->column, status == HPX_INVALID
	};
	if (status != HPX_INVALID)
		return status;
	refuse_value(context, node, path, problem);
	return HPX_OK;
}

static void refuse_unknown(struct hpx_parse_context *context, const struct hpx_yaml_node *node,
			   struct hpx_span path)
{
	char suggestion[HPX_OPTION_PATH_SIZE];

	hpx_option_suggest(path, suggestion);
	if (suggestion[0] == '\0')
		hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line,
				  node->column, path, "is no option");
	else
		hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line,
				  node->column, path, "is no option; did you mean %s?",
				  suggestion);
}

/* One node of the tree. `*ret_inside`: go on with what lies in it. */
static enum hpx_status visit(struct hpx_parse_context *context, size_t index,
			     struct hpx_span path, struct target policy, bool *ret_inside)
{
	const struct hpx_yaml_node *node = &context->tree.nodes[index];
	const struct hpx_option *option = hpx_option_find(path);

	*ret_inside = false;
	if (option != NULL)
		return take_option(context, index, path, option, policy);
	if (!hpx_option_is_group(path)) {
		refuse_unknown(context, node, path);
		return HPX_OK;
	}
	/* A group whose options are all commented out is an empty value. */
	if (node->kind == HPX_YAML_SCALAR && node->empty)
		return HPX_OK;
	if (node->kind != HPX_YAML_MAPPING)
		hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line,
				  node->column, path,
				  "must be a mapping of options, not %s",
				  hpx_yaml_kind_words(node->kind));
	*ret_inside = node->kind == HPX_YAML_MAPPING;
	return HPX_OK;
}

/* What is a list or a map of things, each with options of its own. */
static bool has_own_reader(struct hpx_span path)
{
	return hpx_span_eq(path, HPX_SPAN("routes")) ||
	       hpx_span_eq(path, HPX_SPAN("targets")) ||
	       hpx_span_eq(path, HPX_SPAN("webhooks"));
}

/* All that lies in the mapping at `index`, whose own path is `prefix`, but
 * not the routes, targets and webhooks. Paths of what is entered are kept by depth. */
enum hpx_status hpx_parse_mapping(struct hpx_parse_context *context, size_t index,
				  struct hpx_span prefix, void *base,
				  struct hpx_given_set *given)
{
	struct target policy = { base, given };
	const struct hpx_yaml_node *nodes = context->tree.nodes;
	struct {
		struct hpx_span path;
		size_t end;
	} inside[HPX_YAML_DEPTH_MAX + 1] = { { prefix, nodes[index].end } };
	size_t depth = 0;
	bool enter;

	for (size_t i = index + 1; i < nodes[index].end;) {
		while (i >= inside[depth].end)
			depth--;
		struct hpx_span path = hpx_arena_printf(
			context->scratch, "%.*s%s%.*s", HPX_SPAN_ARG(inside[depth].path),
			inside[depth].path.len > 0 ? "." : "", HPX_SPAN_ARG(nodes[i].name));
		if (path.ptr == NULL)
			return HPX_NOMEM;
		if (has_own_reader(path)) {
			i = nodes[i].end;
			continue;
		}
		enum hpx_status status = visit(context, i, path, policy, &enter);
		if (status != HPX_OK)
			return status;
		if (enter) {
			inside[++depth].path = path;
			inside[depth].end = nodes[i].end;
		}
		i = enter ? i + 1 : nodes[i].end;
	}
	return HPX_OK;
}
