/* Reading a description: the file, its values, then what follows from them
 * (defaults, what a named request takes from the main one, and the rules
 * between values). */
#include "verify/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "core/json_tree.h"
#include "verify/spec_read.h"

#define SPEC_BYTES_MAX ((size_t)512 << 20)
#define SCRATCH_BYTES_MAX ((size_t)32 << 20)
#define FILE_BYTES_MAX ((size_t)1 << 20)
#define MESSAGE_SIZE 400
#define FILE_PATH_SIZE 4096

void hpx_spec_remark(struct hpx_spec_reading *reading, const struct hpx_spec_given *given,
		     const char *format, ...)
{
	char message[MESSAGE_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, given->line, given->column,
			  given->name, "%s", message);
}

/* ---- header lines ---- */

struct hpx_span hpx_spec_header_name(struct hpx_span line)
{
	return hpx_span_first(line, hpx_span_index(line, ':'));
}

bool hpx_spec_header(struct hpx_span *lines, size_t *count, struct hpx_span line)
{
	struct hpx_span name = hpx_spec_header_name(line);

	for (size_t i = 0; i < *count; i++) {
		if (!hpx_span_ieq(name, hpx_spec_header_name(lines[i])))
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

/* ---- what follows from the values ---- */

#define FILLED_MAX (HPX_VERIFY_BODY_MAX * 2)

/* Of the tables, by the path of the option. */
static const struct hpx_spec_given *given_of(const struct hpx_spec_reading *reading,
					     const char *path)
{
	static const struct hpx_spec_given none;

	for (size_t i = 0; i < hpx_verify_option_count; i++) {
		if (!hpx_span_eq(hpx_span_of(path), hpx_span_of(hpx_verify_options[i].path)))
			continue;
		return reading->by_flag[i].count > 0 ? &reading->by_flag[i] : &reading->in_file[i];
	}
	return &none;
}

static void need(struct hpx_spec_reading *reading, const char *path, const char *other,
		 const char *problem)
{
	const struct hpx_spec_given *given = given_of(reading, path);

	if (given->count > 0 && given_of(reading, other)->count == 0)
		hpx_spec_remark(reading, given, "%s", problem);
}

static void check_rules(struct hpx_spec_reading *reading)
{
	const struct hpx_verify_spec *spec = reading->spec;

	if (given_of(reading, "url")->count == 0)
		hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, 0, 0, HPX_SPAN("url"),
				  "is missing; say what is verified: hapax verify URL, or url in "
				  "the file");
	need(reading, "effects.count", "effects.get",
	     "needs the GET whose answer it points into (effects.get, --effects)");
	need(reading, "crash.kill", "crash.start",
	     "needs a way to start the server again (crash.start, --start-cmd)");
	need(reading, "crash.start", "crash.kill",
	     "is for crashes alone (crash.kill, --crash-cmd)");
	if (spec->insecure && reading->has_url && !spec->tls)
		hpx_config_remark(reading->report, HPX_CONFIG_NOTE, 0, 0, HPX_SPAN("insecure"),
				  "means nothing without https");
	if (spec->insecure && spec->tls)
		hpx_config_remark(reading->report, HPX_CONFIG_WARNING, 0, 0,
				  HPX_SPAN("insecure"),
				  "certificates are not checked: anybody on the way can read the "
				  "credentials that are sent");
	if (spec->other_body.len > 0 &&
	    hpx_span_eq(spec->other_body, spec->requests[HPX_REQUEST_main].body))
		hpx_spec_remark(reading, given_of(reading, "other_body"),
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

/* What is not given is the main request's; but what only reads or deletes has
 * a method of its own and no body. */
static void inherit(struct hpx_spec_reading *reading, enum hpx_verify_request_name name)
{
	const struct hpx_verify_request *main = &reading->spec->requests[HPX_REQUEST_main];
	struct hpx_verify_request *request = &reading->spec->requests[name];
	const struct hpx_yaml_node *node = reading->request_nodes[name];
	bool reads = name == HPX_REQUEST_get, deletes = name == HPX_REQUEST_delete;

	request->given = true;
	if (request->method.ptr == NULL)
		request->method = reads ? HPX_SPAN("GET") : deletes ? HPX_SPAN("DELETE") :
								      main->method;
	if (request->body.ptr == NULL)
		request->body = reads || deletes ? HPX_SPAN("") : main->body;
	if (request->path.ptr == NULL && deletes)
		hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, node->line, node->column,
				  HPX_SPAN("requests.delete"),
				  "needs a path: what may be deleted is yours to say");
	if (request->path.ptr == NULL)
		request->path = main->path;
	if (!inherit_headers(request, main))
		hpx_config_remark(reading->report, HPX_CONFIG_MISTAKE, node->line, node->column,
				  hpx_span_of(hpx_verify_request_name_text(name)),
				  "has more than 64 header lines with those of the main request");
}

/* ---- Content-Type ---- */

static bool has_header(const struct hpx_verify_request *request, struct hpx_span name)
{
	for (size_t i = 0; i < request->header_count; i++)
		if (hpx_span_ieq(hpx_spec_header_name(request->headers[i]), name))
			return true;
	return false;
}

/* Judged with its variables filled in: {"n": {{n}}} is no JSON before. */
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

static enum hpx_status complete(struct hpx_spec_reading *reading)
{
	struct hpx_verify_spec *spec = reading->spec;
	struct hpx_verify_request *main = &spec->requests[HPX_REQUEST_main];

	main->given = true;
	if (main->method.ptr == NULL)
		main->method = HPX_SPAN("POST");
	if (main->body.ptr == NULL)
		main->body = HPX_SPAN("");
	/* Half a file lacks what stands behind its mistake. */
	if (reading->tree.whole)
		check_rules(reading);
	for (size_t i = HPX_REQUEST_main + 1; i < HPX_REQUEST_COUNT; i++)
		if (reading->request_nodes[i] != NULL)
			inherit(reading, (enum hpx_verify_request_name)i);
	for (size_t i = 0; i < HPX_REQUEST_COUNT; i++)
		add_content_type(&spec->requests[i]);
	return HPX_OK;
}

/* ---- the whole ---- */

static void set_defaults(struct hpx_verify_spec *spec)
{
	uint32_t seed;

	*spec = (struct hpx_verify_spec){
		.key_header = HPX_SPAN("Idempotency-Key"),
		.requests_max = 5000,
		.time_max_ms = 5 * 60 * 1000,
		.concurrency_max = 100,
		.answer_timeout_ms = 30 * 1000,
		.settle_ms = 60 * 1000,
		.crashes = 10,
	};
	hpx_arena_init(&spec->arena, SPEC_BYTES_MAX);
	hpx_random(&seed, sizeof(seed));
	spec->seed = seed;
}

static bool merges(enum hpx_verify_kind kind)
{
	return kind == HPX_VERIFY_LINES;
}

static enum hpx_status read_values(struct hpx_spec_reading *reading)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < hpx_verify_option_count && status == HPX_OK; i++) {
		const struct hpx_verify_option *option = &hpx_verify_options[i];
		bool flag = reading->by_flag[i].count > 0;

		if (!flag || merges(option->kind))
			status = hpx_spec_value(reading, option, &reading->in_file[i],
						reading->spec);
		if (status == HPX_OK)
			status = hpx_spec_value(reading, option, &reading->by_flag[i],
						reading->spec);
	}
	for (size_t i = 0; i < HPX_REQUEST_COUNT; i++)
		for (size_t j = 0; j < HPX_VERIFY_REQUEST_OPTION_COUNT && status == HPX_OK; j++)
			status = hpx_spec_value(reading, &hpx_verify_request_options[j],
						&reading->requests[i][j],
						&reading->spec->requests[i]);
	return status;
}

enum hpx_status hpx_verify_spec_read(struct hpx_span text, struct hpx_span folder,
				     const struct hpx_verify_flags *flags,
				     struct hpx_config_report *report,
				     struct hpx_verify_spec *ret_spec)
{
	struct hpx_arena scratch;
	struct hpx_spec_reading reading = { .spec = ret_spec,
					    .report = report,
					    .scratch = &scratch,
					    .folder = folder };

	set_defaults(ret_spec);
	hpx_arena_init(&scratch, SCRATCH_BYTES_MAX);
	enum hpx_status status = hpx_spec_collect(&reading, text, flags);
	if (status == HPX_OK)
		status = read_values(&reading);
	if (status == HPX_OK)
		status = complete(&reading);
	hpx_config_report_sort(report);
	hpx_arena_done(&scratch);
	if (status == HPX_OK && report->mistakes > 0)
		status = HPX_INVALID;
	return status;
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
		set_defaults(ret_spec);
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
