/* Reading a description: the file and the flags by the table of options, then what
 * follows from the values (rules between them, what a named request takes from the main
 * one). */
#include "verify/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/status.h"
#include "config/suggestion.h"
#include "core/json_tree.h"
#include "http/field.h"
#include "verify/spec_read.h"

#define SPEC_BYTES_MAX ((size_t)512 << 20)
#define SCRATCH_BYTES_MAX ((size_t)32 << 20)
#define FILE_BYTES_MAX ((size_t)1 << 20)
#define FILE_PATH_SIZE 4096
/* A body with its variables filled in. */
#define FILLED_MAX (HPX_VERIFY_BODY_MAX * 2)

/* ---- header lines ---- */

bool hpx_spec_header(struct hpx_span *lines, size_t *count, struct hpx_span line)
{
	struct hpx_span name = hpx_verify_line_name(line);

	HPX_ASSERT(*count <= HPX_VERIFY_HEADERS_MAX);
	for (size_t i = 0; i < *count; i++) {
		if (!hpx_span_ieq(name, hpx_verify_line_name(lines[i])))
			continue;
		lines[i] = line;
		return true;
	}
	if (*count == HPX_VERIFY_HEADERS_MAX)
		return false;
	lines[(*count)++] = line;
	return true;
}

/* ---- files ---- */

static enum hpx_status read_open(int fd, size_t bytes_max, struct hpx_buffer *bytes,
				 const char **ret_reason)
{
	struct stat about;

	*ret_reason = "is no file that can be read";
	/* A pipe or a device could keep a run waiting for ever. */
	if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
		return HPX_INVALID;
	hpx_buffer_init(bytes, bytes_max);
	for (;;) {
		char piece[16384];
		ssize_t n = read(fd, piece, sizeof(piece));

		if (n == 0)
			return HPX_OK;
		if (n < 0 && errno == EINTR)
			continue;
		enum hpx_status status = n < 0 ? HPX_INVALID : hpx_buffer_append(bytes, hpx_span(piece, (size_t)n));
		if (status == HPX_TOO_LARGE)
			*ret_reason = "is too large a file (16 MiB for a body, 1 MiB for a "
				      "description)";
		if (status != HPX_OK)
			return status == HPX_NOMEM ? status : HPX_INVALID;
	}
}

enum hpx_status hpx_spec_file(struct hpx_span folder, struct hpx_span path, size_t bytes_max,
			      struct hpx_arena *arena, struct hpx_span *ret_bytes,
			      const char **ret_reason)
{
	bool below = folder.len > 0 && path.len > 0 && path.ptr[0] != '/';
	struct hpx_buffer bytes = { 0 };
	char name[FILE_PATH_SIZE];

	*ret_reason = "names a file that cannot be opened";
	if (hpx_span_index(path, '\0') < path.len)
		return HPX_INVALID;
	snprintf(name, sizeof(name), "%.*s%s%.*s", HPX_SPAN_ARG(below ? folder : HPX_SPAN("")),
		 below ? "/" : "", HPX_SPAN_ARG(path));
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return HPX_INVALID;
	enum hpx_status status = read_open(fd, bytes_max, &bytes, ret_reason);
	close(fd);
	if (status == HPX_OK) {
		*ret_bytes = hpx_arena_dup(arena, hpx_buffer_span(&bytes));
		status = ret_bytes->ptr != NULL ? HPX_OK : HPX_NOMEM;
	}
	hpx_buffer_done(&bytes);
	return status;
}

/* ---- rules between values ---- */

static const struct hpx_given *given_of(const struct hpx_spec_context *context, const char *path)
{
	const struct hpx_option *option = hpx_option_find(&hpx_verify_options, hpx_span_of(path));

	HPX_ASSERT(option != NULL);
	return &context->given.at[hpx_option_index(&hpx_verify_options, option)];
}

/* At the option, by the name that it was given by. None where its value was
 * refused: one mistake is one remark. */
static void remark(struct hpx_spec_context *context, enum hpx_config_severity severity,
		   const char *path, const char *message)
{
	const struct hpx_given *given = given_of(context, path);
	char name[HPX_OPTION_PATH_SIZE];

	if (given->wrong)
		return;
	if (given->given && given->line == 0)
		hpx_option_flag_name(hpx_option_find(&hpx_verify_options, hpx_span_of(path)), name);
	else
		snprintf(name, sizeof(name), "%s", path);
	hpx_config_remark(context->report, severity, given->line, given->column,
			  hpx_span_of(name), "%s", message);
}

static void need(struct hpx_spec_context *context, const char *path, const char *other,
		 const char *problem)
{
	if (given_of(context, path)->given && !given_of(context, other)->given)
		remark(context, HPX_CONFIG_MISTAKE, path, problem);
}

static bool has_text(struct hpx_span text, struct hpx_span part)
{
	for (size_t i = 0; i + part.len <= text.len; i++)
		if (hpx_span_starts(hpx_span_skip(text, i), part))
			return true;
	return false;
}

static void check_rules(struct hpx_spec_context *context)
{
	const struct hpx_verify_spec *spec = &context->spec;

	if (!given_of(context, "url")->given)
		remark(context, HPX_CONFIG_MISTAKE, "url",
		       "is missing; say what is verified: hapax verify URL, or url in the file");
	need(context, "effects.count", "effects.get",
	     "needs the GET whose answer it points into (effects.get, --effects)");
	need(context, "crash.kill", "crash.start",
	     "needs a way to start the server again (crash.start, --start-cmd)");
	need(context, "crash.start", "crash.kill",
	     "is for crashes alone (crash.kill, --crash-cmd)");
	if (spec->insecure && context->has_url && !spec->tls)
		remark(context, HPX_CONFIG_NOTE, "insecure", "means nothing without https");
	if (spec->insecure && spec->tls)
		remark(context, HPX_CONFIG_WARNING, "insecure",
		       "certificates are not checked: anybody on the way can read the "
		       "credentials that are sent");
	if (hpx_dialects[spec->dialect].key_header == NULL &&
	    !has_text(spec->requests[HPX_REQUEST_main].body, HPX_SPAN("{{key}}")))
		remark(context, HPX_CONFIG_MISTAKE, "dialect",
		       "has the key in the body, and the body has no {{key}}: write "
		       "\"idempotency_key\": \"{{key}}\"");
	if (spec->other_body.len > 0 &&
	    hpx_span_eq(spec->other_body, spec->requests[HPX_REQUEST_main].body))
		remark(context, HPX_CONFIG_MISTAKE, "other_body",
		       "is the same as the body; it must mean something else");
}

/* ---- named requests ---- */

static bool inherit_headers(struct hpx_verify_request *request,
			    const struct hpx_verify_request *main)
{
	struct hpx_verify_request own = *request;

	memcpy(request->headers, main->headers, sizeof(request->headers));
	request->header_count = main->header_count;
	for (size_t i = 0; i < own.header_count; i++)
		if (!hpx_spec_header(request->headers, &request->header_count, own.headers[i]))
			return false;
	return true;
}

/* A request takes from the main one what it does not say itself. `get` and `delete`
 * have methods of their own, and no body. */
static void inherit(struct hpx_spec_context *context, enum hpx_verify_request_name name)
{
	const struct hpx_verify_request *main = &context->spec.requests[HPX_REQUEST_main];
	struct hpx_verify_request *request = &context->spec.requests[name];
	const struct hpx_yaml_node *node = context->request_nodes[name];
	bool reads = name == HPX_REQUEST_get, deletes = name == HPX_REQUEST_delete;

	HPX_ASSERT(name != HPX_REQUEST_main && node != NULL);
	request->given = true;
	if (request->method.ptr == NULL)
		request->method = reads ? HPX_SPAN("GET") : deletes ? HPX_SPAN("DELETE") :
								      main->method;
	if (request->body.ptr == NULL)
		request->body = reads || deletes ? HPX_SPAN("") : main->body;
	if (request->path.ptr == NULL && deletes)
		hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line, node->column,
				  HPX_SPAN("requests.delete"),
				  "needs a path: say what may be deleted");
	if (request->path.ptr == NULL)
		request->path = main->path;
	if (!inherit_headers(request, main))
		hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line, node->column,
				  HPX_SPAN("requests"),
				  "has more than 64 header lines with those of the main request");
}

/* ---- Content-Type ---- */

static bool has_header(const struct hpx_verify_request *request, struct hpx_span name)
{
	for (size_t i = 0; i < request->header_count; i++)
		if (hpx_span_ieq(hpx_verify_line_name(request->headers[i]), name))
			return true;
	return false;
}

/* Checked with the variables filled in: {"n": {{n}}} is no JSON before. */
static bool is_json(struct hpx_span body)
{
	const struct hpx_template_values sample = {
		.uuid = HPX_SPAN("00000000-0000-4000-8000-000000000000"),
		.n = HPX_SPAN("1"),
		.key = HPX_SPAN("00000000-0000-4000-8000-000000000000"),
	};
	struct hpx_json_tree tree;
	struct hpx_buffer filled;

	hpx_buffer_init(&filled, FILLED_MAX);
	bool json = hpx_template_fill(body, HPX_TEMPLATE_BODY, &sample, &filled) == HPX_OK &&
		    hpx_json_tree_read(hpx_buffer_span(&filled), &hpx_json_limits_default, NULL,
				       0, &tree) == HPX_OK;
	if (json)
		hpx_json_tree_done(&tree);
	hpx_buffer_done(&filled);
	return json;
}

static void add_content_type(struct hpx_verify_request *request)
{
	if (request->body.len > 0 && !has_header(request, HPX_SPAN("Content-Type")) &&
	    request->header_count < HPX_VERIFY_HEADERS_MAX && is_json(request->body))
		request->headers[request->header_count++] =
			HPX_SPAN("Content-Type: application/json");
}

static void complete(struct hpx_spec_context *context)
{
	struct hpx_verify_spec *spec = &context->spec;
	struct hpx_verify_request *main = &spec->requests[HPX_REQUEST_main];

	main->given = true;
	if (main->body.ptr == NULL)
		main->body = HPX_SPAN("");
	/* A file with a syntax error lacks what stands behind it. */
	if (context->tree.whole)
		check_rules(context);
	for (size_t i = HPX_REQUEST_main + 1; i < HPX_REQUEST_COUNT; i++)
		if (context->request_nodes[i] != NULL)
			inherit(context, (enum hpx_verify_request_name)i);
	for (size_t i = 0; i < HPX_REQUEST_COUNT; i++)
		add_content_type(&spec->requests[i]);
}

/* ---- the file ---- */

static struct hpx_option_parser parser_of(struct hpx_spec_context *context)
{
	return (struct hpx_option_parser){
		.table = &hpx_verify_options,
		.tree = &context->tree,
		.report = context->report,
		.scratch = context->scratch,
		.values = &context->spec.arena,
	};
}

static void refuse_node(struct hpx_spec_context *context, const struct hpx_yaml_node *node,
			struct hpx_span path, const char *problem)
{
	hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line, node->column, path,
			  "%s", problem);
}

/* The main request is described at the top, not in `requests`. */
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

static void refuse_request(struct hpx_spec_context *context, const struct hpx_yaml_node *node,
			   struct hpx_span path, const struct hpx_suggestion *suggestion)
{
	if (suggestion->word.ptr != NULL)
		hpx_config_remark(context->report, HPX_CONFIG_MISTAKE, node->line, node->column,
				  path, "there is no such request; did you mean \"%.*s\"?",
				  HPX_SPAN_ARG(suggestion->word));
	else
		refuse_node(context, node, path,
			    "there is no such request; the reference of hapax verify lists them");
}

static enum hpx_status parse_request(struct hpx_spec_context *context, size_t index)
{
	const struct hpx_yaml_node *node = &context->tree.nodes[index];
	const struct hpx_option_parser parser = parser_of(context);
	struct hpx_spec_request_context one = { .context = context };
	const struct hpx_option_sink sinks[HPX_SPEC_PLACES] = {
		[HPX_PLACE_SPEC] = { NULL, NULL },
		[HPX_PLACE_REQUEST] = { &one, &one.given },
	};
	struct hpx_suggestion suggestion = { 0 };
	enum hpx_verify_request_name name = find_request(node->name, &suggestion);
	struct hpx_span path = hpx_arena_printf(context->scratch, "requests.%.*s",
						HPX_SPAN_ARG(node->name));

	if (path.ptr == NULL)
		return HPX_NOMEM;
	if (name == HPX_REQUEST_COUNT) {
		refuse_request(context, node, path, &suggestion);
		return HPX_OK;
	}
	if (node->kind != HPX_YAML_MAPPING) {
		refuse_node(context, node, path, "must be a mapping with method, path, headers, body");
		return HPX_OK;
	}
	enum hpx_status status = hpx_option_parse(&parser, index, path, sinks);
	context->request_nodes[name] = node;
	context->spec.requests[name] = one.request;
	return status;
}

static enum hpx_status parse_requests(struct hpx_spec_context *context)
{
	size_t index = hpx_yaml_member(&context->tree, HPX_SPAN("requests"));
	const struct hpx_yaml_node *node = &context->tree.nodes[index];
	enum hpx_status status = HPX_OK;

	if (index == 0 || (node->kind == HPX_YAML_SCALAR && node->empty))
		return HPX_OK;
	if (node->kind != HPX_YAML_MAPPING) {
		refuse_node(context, node, node->name, "must be a mapping of named requests");
		return HPX_OK;
	}
	for (size_t i = index + 1; i < node->end && status == HPX_OK; i = context->tree.nodes[i].end)
		status = parse_request(context, i);
	return status;
}

static enum hpx_status parse_file(struct hpx_spec_context *context,
				  const struct hpx_given_set *overridden)
{
	const struct hpx_yaml_node *root = context->tree.nodes;
	struct hpx_option_parser parser = parser_of(context);
	const struct hpx_option_sink sinks[HPX_SPEC_PLACES] = {
		[HPX_PLACE_SPEC] = { context, &context->given },
		[HPX_PLACE_REQUEST] = { NULL, NULL },
	};

	if (context->tree.count == 0)
		return HPX_OK;
	if (root->kind != HPX_YAML_MAPPING) {
		refuse_node(context, root, HPX_SPAN(""), "a description is a mapping: url, body, …");
		return HPX_OK;
	}
	parser.overridden = overridden;
	enum hpx_status status = hpx_option_parse(&parser, 0, HPX_SPAN(""), sinks);
	return status == HPX_OK ? parse_requests(context) : status;
}

/* ---- the flags ---- */

static enum hpx_status parse_flag(struct hpx_spec_context *context,
				  const struct hpx_option *option, const char *const *values)
{
	const struct hpx_option_parser parser = parser_of(context);
	const struct hpx_option_sink sink = { context, &context->given };
	struct hpx_span items[HPX_VERIFY_REPEAT_MAX];
	size_t count = 0;

	for (; count < HPX_VERIFY_REPEAT_MAX && values[count] != NULL; count++)
		items[count] = hpx_span_of(values[count]);
	return count > 0 ? hpx_option_parse_flag(&parser, option, items, count, &sink) : HPX_OK;
}

static enum hpx_status parse_flags(struct hpx_spec_context *context,
				   const struct hpx_verify_flags *flags)
{
	enum hpx_status status = HPX_OK;

	/* Files that flags name are relative to the working directory. */
	context->folder = HPX_SPAN("");
	for (size_t i = 0; i < hpx_verify_options.count && status == HPX_OK; i++)
		status = parse_flag(context, &hpx_verify_options.rows[i], flags->values[i]);
	return status;
}

/* A flag wins, but for header lines: those of the file stay, except the ones that a
 * flag replaces by name. */
static void mark_overridden(const struct hpx_verify_flags *flags, struct hpx_given_set *ret_set)
{
	for (size_t i = 0; i < hpx_verify_options.count; i++) {
		const char *name = hpx_verify_options.rows[i].name;
		bool adds = strcmp(name, "headers") == 0 || strcmp(name, "second_tenant") == 0;

		ret_set->at[i].given = flags->values[i][0] != NULL && !adds;
	}
}

/* ---- the whole description ---- */

/* The text of an option before options are read; ptr NULL: not given. */
static struct hpx_span text_of(const struct hpx_spec_context *context,
			       const struct hpx_verify_flags *flags, const char *name)
{
	const struct hpx_option *option = hpx_option_find(&hpx_verify_options, hpx_span_of(name));
	const char *flag = flags->values[hpx_option_index(&hpx_verify_options, option)][0];
	size_t index = hpx_yaml_member(&context->tree, hpx_span_of(name));

	if (flag != NULL)
		return hpx_span_of(flag);
	return index > 0 ? context->tree.nodes[index].text : hpx_span(NULL, 0);
}

/* Where the key is in the body, no header is the key's, and the usual name is as good. */
static struct hpx_span header_of_dialect(struct hpx_span name)
{
	for (size_t i = 0; i < HPX_DIALECT_COUNT; i++)
		if (hpx_span_eq(name, hpx_span_of(hpx_dialects[i].name)) &&
		    hpx_dialects[i].key_header != NULL)
			return hpx_span_of(hpx_dialects[i].key_header);
	return hpx_span_of(hpx_dialects[HPX_DIALECT_AUTO].key_header);
}

/* Paths are compared with the URL, and header lines with the key's header: both are
 * looked at before anything else. Whether they are right is said in their turn. */
static void look_ahead(struct hpx_spec_context *context, const struct hpx_verify_flags *flags)
{
	struct hpx_span key_header = text_of(context, flags, "key_header");
	const char *reason;

	context->has_url = hpx_verify_url_parse(text_of(context, flags, "url"), &context->url,
						&reason) == HPX_OK;
	if (hpx_is_token(key_header))
		context->spec.key_header = key_header;
	else if (key_header.ptr == NULL)
		context->spec.key_header = header_of_dialect(text_of(context, flags, "dialect"));
}

static void init_spec(struct hpx_verify_spec *spec)
{
	uint32_t seed;

	*spec = (struct hpx_verify_spec){ .tls = false };
	hpx_arena_init(&spec->arena, SPEC_BYTES_MAX);
	hpx_random(&seed, sizeof(seed));
	spec->seed = seed;
}

static enum hpx_status read_all(struct hpx_spec_context *context, struct hpx_span text,
				const struct hpx_verify_flags *flags)
{
	const struct hpx_option_parser parser = parser_of(context);
	const struct hpx_option_sink sinks[HPX_SPEC_PLACES] = { [HPX_PLACE_SPEC] = { context, NULL } };
	struct hpx_given_set overridden = { 0 };
	enum hpx_status status =
		hpx_yaml_read(text, context->scratch, context->report, &context->tree);

	if (status == HPX_OK)
		status = hpx_option_put_defaults(&parser, HPX_PROFILE_IETF, sinks);
	if (status != HPX_OK)
		return status;
	look_ahead(context, flags);
	mark_overridden(flags, &overridden);
	status = parse_file(context, &overridden);
	if (status == HPX_OK)
		status = parse_flags(context, flags);
	if (status == HPX_OK)
		complete(context);
	return status;
}

enum hpx_status hpx_verify_spec_read(struct hpx_span text, struct hpx_span folder,
				     const struct hpx_verify_flags *flags,
				     struct hpx_config_report *report,
				     struct hpx_verify_spec *ret_spec)
{
	struct hpx_arena scratch;
	struct hpx_spec_context context = { .report = report, .scratch = &scratch, .folder = folder };

	init_spec(&context.spec);
	hpx_arena_init(&scratch, SCRATCH_BYTES_MAX);
	enum hpx_status status = read_all(&context, text, flags);
	hpx_config_report_sort(report);
	hpx_arena_done(&scratch);
	*ret_spec = context.spec;
	return status == HPX_OK && report->mistakes > 0 ? HPX_INVALID : status;
}

static struct hpx_span folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == path)
		return HPX_SPAN("/");
	return slash != NULL ? hpx_span(path, (size_t)(slash - path)) : HPX_SPAN("");
}

enum hpx_status hpx_verify_spec_load(const char *path, const struct hpx_verify_flags *flags,
				     struct hpx_config_report *report,
				     struct hpx_verify_spec *ret_spec)
{
	struct hpx_span text = HPX_SPAN("");
	enum hpx_status status = HPX_OK;
	struct hpx_arena arena;
	const char *reason;

	hpx_arena_init(&arena, FILE_BYTES_MAX * 2);
	if (path != NULL)
		status = hpx_spec_file(HPX_SPAN(""), hpx_span_of(path), FILE_BYTES_MAX, &arena,
				       &text, &reason);
	if (status == HPX_OK)
		status = hpx_verify_spec_read(text, path ? folder_of(path) : HPX_SPAN(""), flags,
					      report, ret_spec);
	else
		init_spec(ret_spec);
	if (status == HPX_INVALID && report->mistakes == 0)
		hpx_config_remark(report, HPX_CONFIG_MISTAKE, 0, 0, HPX_SPAN("--file"),
				  "\"%s\" %s", path, reason);
	hpx_arena_done(&arena);
	return status;
}

void hpx_verify_spec_done(struct hpx_verify_spec *spec)
{
	hpx_arena_done(&spec->arena);
}

void hpx_verify_authority(const struct hpx_verify_spec *spec, char out[HPX_VERIFY_AUTHORITY_SIZE])
{
	bool v6 = hpx_span_index(spec->host, ':') < spec->host.len;
	char port[8] = "";

	if (spec->port != (spec->tls ? 443 : 80))
		snprintf(port, sizeof(port), ":%u", spec->port);
	snprintf(out, HPX_VERIFY_AUTHORITY_SIZE, "%s%.*s%s%s", v6 ? "[" : "",
		 HPX_SPAN_ARG(spec->host), v6 ? "]" : "", port);
}
