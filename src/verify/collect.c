/* What is given: in the tree of the file, and by flags. Names are checked here,
 * values later, so that their order in the file does not matter. */
#include <stdio.h>

#include "config/suggestion.h"
#include "verify/spec_read.h"

#define PATH_SIZE 160

static const char *const groups[] = { "effects", "limits", "crash", "requests" };

static bool is_list(enum hpx_verify_kind kind)
{
	return kind == HPX_VERIFY_LINES || kind == HPX_VERIFY_ROWS;
}

static void refuse(struct hpx_spec_reading *reading, const struct hpx_yaml_node *node,
		   struct hpx_span path, const char *problem)
{
	hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, node->line, node->column, path,
			  "%s", problem);
}

/* ---- values ---- */

static const char *shape_problem(const struct hpx_verify_option *option,
				 const struct hpx_yaml_node *node)
{
	if (node->kind == HPX_YAML_SCALAR && node->empty)
		return "has no value; give one, or leave the line out";
	if (is_list(option->kind))
		return node->kind == HPX_YAML_LIST ? NULL :
		       option->kind == HPX_VERIFY_LINES ?
						     "must be a list, as [\"Name: value\"]" :
						     "must be a list of names, as [retry, expiry]";
	if (option->kind == HPX_VERIFY_BODY && node->kind != HPX_YAML_SCALAR)
		return "must be text, as it is sent: JSON stands in quotes, or in a file as "
		       "\"@FILE\"";
	return node->kind == HPX_YAML_SCALAR ? NULL : "must be a single value";
}

/* NULL: no memory, or (with a remark) a list of something else. */
static struct hpx_span *items_of(struct hpx_spec_reading *reading, size_t index,
				 struct hpx_span path, size_t *ret_count)
{
	const struct hpx_yaml_node *nodes = reading->tree.nodes;
	size_t end = nodes[index].end, count = 0;
	struct hpx_span *items =
		hpx_arena_zalloc(reading->scratch, end - index + 1, sizeof(*items));

	if (items != NULL && nodes[index].kind == HPX_YAML_SCALAR)
		items[count++] = nodes[index].text;
	for (size_t i = index + 1; items != NULL && i < end; i = nodes[i].end) {
		if (nodes[i].kind != HPX_YAML_SCALAR) {
			refuse(reading, &nodes[i], path, "is a list of single values");
			*ret_count = 0;
			return items;
		}
		items[count++] = nodes[i].text;
	}
	*ret_count = count;
	return items;
}

static enum hpx_status take(struct hpx_spec_reading *reading, size_t index,
			    struct hpx_span path, const struct hpx_verify_option *option,
			    struct hpx_spec_given *given)
{
	const struct hpx_yaml_node *node = &reading->tree.nodes[index];
	const char *problem = shape_problem(option, node);

	if (problem != NULL) {
		refuse(reading, node, path, problem);
		return HPX_OK;
	}
	given->name = hpx_arena_dup(reading->scratch, path);
	given->line = node->value_line;
	given->column = node->value_column;
	given->items = items_of(reading, index, path, &given->count);
	return given->items != NULL && given->name.ptr != NULL ? HPX_OK : HPX_NOMEM;
}

/* ---- names ---- */

static void refuse_unknown(struct hpx_spec_reading *reading, const struct hpx_yaml_node *node,
			   struct hpx_span path, const struct hpx_suggestion *suggestion)
{
	if (suggestion->word.ptr != NULL)
		hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, node->line, node->column,
				  path, "there is no such member; did you mean \"%.*s\"?",
				  HPX_SPAN_ARG(suggestion->word));
	else
		refuse(reading, node, path, "there is no such member; `hapax verify --help` "
					    "and its reference list them");
}

static enum hpx_status take_option(struct hpx_spec_reading *reading, size_t index,
				   struct hpx_span path)
{
	struct hpx_suggestion suggestion = { 0 };

	for (size_t i = 0; i < hpx_verify_option_count; i++) {
		struct hpx_span name = hpx_span_of(hpx_verify_options[i].path);

		if (hpx_span_eq(path, name))
			return take(reading, index, path, &hpx_verify_options[i],
				    &reading->in_file[i]);
		hpx_suggestion_consider(&suggestion, path, name);
	}
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		hpx_suggestion_consider(&suggestion, path, hpx_span_of(groups[i]));
	refuse_unknown(reading, &reading->tree.nodes[index], path, &suggestion);
	return HPX_OK;
}

static struct hpx_span join(struct hpx_span a, struct hpx_span b, char out[PATH_SIZE])
{
	snprintf(out, PATH_SIZE, "%.*s.%.*s", HPX_SPAN_ARG(a), HPX_SPAN_ARG(b));
	return hpx_span_of(out);
}

static enum hpx_status take_request_member(struct hpx_spec_reading *reading, size_t index,
					   struct hpx_span path,
					   enum hpx_verify_request_name name)
{
	struct hpx_span member = reading->tree.nodes[index].name;
	struct hpx_suggestion suggestion = { 0 };

	for (size_t i = 0; i < HPX_VERIFY_REQUEST_OPTION_COUNT; i++) {
		const struct hpx_verify_option *option = &hpx_verify_request_options[i];

		if (hpx_span_eq(member, hpx_span_of(option->path)))
			return take(reading, index, path, option, &reading->requests[name][i]);
		hpx_suggestion_consider(&suggestion, member, hpx_span_of(option->path));
	}
	refuse_unknown(reading, &reading->tree.nodes[index], path, &suggestion);
	return HPX_OK;
}

/* The main request is described at the top. */
static enum hpx_verify_request_name find_request(struct hpx_span word,
						 struct hpx_suggestion *suggestion)
{
	for (enum hpx_verify_request_name i = HPX_REQUEST_main + 1; i < HPX_REQUEST_COUNT; i++) {
		struct hpx_span name = hpx_span_of(hpx_verify_request_name_text(i));

		if (hpx_span_eq(word, name))
			return i;
		hpx_suggestion_consider(suggestion, word, name);
	}
	return HPX_REQUEST_COUNT;
}

static enum hpx_status take_request(struct hpx_spec_reading *reading, size_t index)
{
	const struct hpx_yaml_node *node = &reading->tree.nodes[index];
	struct hpx_suggestion suggestion = { 0 };
	enum hpx_verify_request_name name = find_request(node->name, &suggestion);
	enum hpx_status status = HPX_OK;
	char prefix[PATH_SIZE], path[PATH_SIZE];
	struct hpx_span whole = join(HPX_SPAN("requests"), node->name, prefix);

	if (name == HPX_REQUEST_COUNT) {
		refuse_unknown(reading, node, whole, &suggestion);
		return HPX_OK;
	}
	if (node->kind != HPX_YAML_MAPPING) {
		refuse(reading, node, whole, "must be a mapping with method, path, headers, body");
		return HPX_OK;
	}
	reading->request_nodes[name] = node;
	for (size_t i = index + 1; i < node->end && status == HPX_OK;
	     i = reading->tree.nodes[i].end)
		status = take_request_member(reading, i,
					     join(whole, reading->tree.nodes[i].name, path), name);
	return status;
}

/* And no group of options: a mapping is no value for it. */
static bool is_option(struct hpx_span name)
{
	for (size_t i = 0; i < hpx_verify_option_count; i++)
		if (hpx_span_eq(name, hpx_span_of(hpx_verify_options[i].path)))
			return true;
	return false;
}

static enum hpx_status take_member(struct hpx_spec_reading *reading, size_t index)
{
	const struct hpx_yaml_node *node = &reading->tree.nodes[index];
	bool requests = hpx_span_eq(node->name, HPX_SPAN("requests"));
	enum hpx_status status = HPX_OK;
	char path[PATH_SIZE];

	if (node->kind != HPX_YAML_MAPPING || is_option(node->name)) {
		if (!requests)
			return take_option(reading, index, node->name);
		refuse(reading, node, node->name, "must be a mapping of named requests");
		return HPX_OK;
	}
	for (size_t i = index + 1; i < node->end && status == HPX_OK;
	     i = reading->tree.nodes[i].end)
		status = requests ? take_request(reading, i) : take_option(reading, i, join(node->name, reading->tree.nodes[i].name, path));
	return status;
}

static enum hpx_status take_tree(struct hpx_spec_reading *reading)
{
	const struct hpx_yaml_node *root = reading->tree.nodes;
	enum hpx_status status = HPX_OK;

	if (reading->tree.count == 0)
		return HPX_OK;
	if (root->kind != HPX_YAML_MAPPING) {
		refuse(reading, root, HPX_SPAN(""), "a description is a mapping: url, body, …");
		return HPX_OK;
	}
	for (size_t i = 1; i < root->end && status == HPX_OK; i = reading->tree.nodes[i].end)
		status = take_member(reading, i);
	return status;
}

/* ---- flags ---- */

static enum hpx_status take_flag(struct hpx_spec_reading *reading, size_t at,
				 const char *const *values)
{
	const char *flag = hpx_verify_options[at].flag;
	struct hpx_spec_given *given = &reading->by_flag[at];
	struct hpx_span *items;
	size_t count = 0;

	while (count < HPX_VERIFY_REPEAT_MAX && values[count] != NULL)
		count++;
	if (count == 0)
		return HPX_OK;
	items = hpx_arena_zalloc(reading->scratch, count, sizeof(*items));
	if (items == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < count; i++)
		items[i] = hpx_span_of(values[i]);
	if (flag != NULL && flag[1] == ',')
		flag += 2;
	*given = (struct hpx_spec_given){ .items = items, .count = count, .by_flag = true };
	given->name = hpx_arena_printf(reading->scratch, "%s%s", flag ? "--" : "",
				       flag ? flag : "URL");
	return given->name.ptr != NULL ? HPX_OK : HPX_NOMEM;
}

enum hpx_status hpx_spec_collect(struct hpx_spec_reading *reading, struct hpx_span text,
				 const struct hpx_verify_flags *flags)
{
	enum hpx_status status =
		hpx_yaml_read(text, reading->scratch, reading->report, &reading->tree);

	if (status == HPX_OK)
		status = take_tree(reading);
	for (size_t i = 0; i < hpx_verify_option_count && status == HPX_OK; i++)
		status = take_flag(reading, i, flags->values[i]);
	return status;
}
