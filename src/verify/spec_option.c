/* The table of the options of a description, and the readers of values that no
 * other table has: URLs, header lines, bodies, rows. The file, the flags and --help
 * come from the table. */
#include <stdarg.h>
#include <stdio.h>

#include "base/address.h"
#include "base/status.h"
#include "config/suggestion.h"
#include "core/json.h"
#include "http/field.h"
#include "http/octet.h"
#include "verify/row.h"
#include "verify/spec_read.h"

#define AUTHORITY_MAX 300

/* ---- URLs and paths ---- */

static enum hpx_status refuse_url(const char **ret_reason, const char *reason)
{
	*ret_reason = reason;
	return HPX_INVALID;
}

static enum hpx_status parse_scheme(struct hpx_span *rest, bool *ret_tls,
				    const char **ret_reason)
{
	struct hpx_span plain = HPX_SPAN("http://"), tls = HPX_SPAN("https://");

	*ret_tls = hpx_span_istarts(*rest, tls);
	if (!*ret_tls && !hpx_span_istarts(*rest, plain))
		return refuse_url(ret_reason, "a URL begins with http:// or https://");
	*rest = hpx_span_skip(*rest, *ret_tls ? tls.len : plain.len);
	return HPX_OK;
}

static bool has_port(struct hpx_span authority)
{
	size_t bracket = hpx_span_index(authority, ']');
	struct hpx_span rest = bracket < authority.len ? hpx_span_skip(authority, bracket) : authority;

	return hpx_span_index(rest, ':') < rest.len;
}

static enum hpx_status parse_authority(struct hpx_span authority, struct hpx_verify_url *url,
				       const char **ret_reason)
{
	struct hpx_address address;
	char text[AUTHORITY_MAX];

	if (hpx_span_index(authority, '@') < authority.len)
		return refuse_url(ret_reason, "credentials do not stand in the URL; give them as a "
					      "header, as -H 'Authorization: Bearer {{env:TOKEN}}'");
	if (authority.len == 0 || authority.len > sizeof(text) - 8 ||
	    hpx_span_starts(authority, HPX_SPAN("unix:")))
		return refuse_url(ret_reason, "there is no host in the URL");
	snprintf(text, sizeof(text), "%.*s%s", HPX_SPAN_ARG(authority),
		 has_port(authority) ? "" : url->tls ? ":443" :
						       ":80");
	enum hpx_status status = hpx_address_parse(hpx_span_of(text), &address, ret_reason);
	if (status != HPX_OK)
		return status;
	if (address.port == 0)
		return refuse_url(ret_reason, "nobody listens on port 0");
	memcpy(url->host, address.host, sizeof(url->host));
	url->port = address.port;
	return HPX_OK;
}

static enum hpx_status check_path(struct hpx_span path, const char **ret_reason)
{
	if (hpx_span_index(path, '#') < path.len)
		return refuse_url(ret_reason, "a fragment (#…) is never sent; leave it out");
	if (!hpx_octet_all(path, HPX_OCTET_TARGET))
		return refuse_url(ret_reason, "the path has a space or another byte that must be "
					      "percent-encoded");
	return HPX_OK;
}

/* Where the path begins: "https://host?x=1" has none before its query. */
static size_t authority_end(struct hpx_span rest)
{
	size_t i = 0;

	while (i < rest.len && rest.ptr[i] != '/' && rest.ptr[i] != '?' && rest.ptr[i] != '#')
		i++;
	return i;
}

enum hpx_status hpx_verify_url_parse(struct hpx_span text, struct hpx_verify_url *ret_url,
				     const char **ret_reason)
{
	struct hpx_verify_url url = { .path = HPX_SPAN("/") };
	enum hpx_status status = parse_scheme(&text, &url.tls, ret_reason);

	if (status != HPX_OK)
		return status;
	size_t end = authority_end(text);
	status = parse_authority(hpx_span_first(text, end), &url, ret_reason);
	if (status == HPX_OK && end < text.len) {
		url.path = hpx_span_skip(text, end);
		if (url.path.ptr[0] != '/')
			return refuse_url(ret_reason, "write a path (/) after the host");
		status = check_path(url.path, ret_reason);
	}
	if (status == HPX_OK)
		*ret_url = url;
	return status;
}

enum hpx_status hpx_verify_path_parse(struct hpx_span text, const struct hpx_verify_url *of,
				      struct hpx_span *ret_path, const char **ret_reason)
{
	struct hpx_verify_url url = { .path = text };
	bool whole = text.len == 0 || text.ptr[0] != '/';
	enum hpx_status status = whole ? hpx_verify_url_parse(text, &url, ret_reason) : check_path(text, ret_reason);

	if (status != HPX_OK)
		return whole ? refuse_url(ret_reason, "a path begins with \"/\"") : status;
	if (whole && (url.tls != of->tls || url.port != of->port ||
		      !hpx_span_ieq(hpx_span_of(url.host), hpx_span_of(of->host))))
		return refuse_url(ret_reason, "is on another host; only the one of the URL is "
					      "ever asked, so give a path on it");
	*ret_path = url.path;
	return HPX_OK;
}

/* ---- values ---- */

/* A description with a mistake is never used, so a reader may leave half a list. */

static const struct hpx_spec_context *context_of(const struct hpx_option *option,
						 const void *base)
{
	if (option->place == HPX_PLACE_SPEC)
		return base;
	return ((const struct hpx_spec_request_context *)base)->context;
}

static enum hpx_status read_url(const struct hpx_option *option, const struct hpx_span *items,
				size_t count, struct hpx_arena *arena, void *base, char *problem)
{
	struct hpx_spec_context *context = base;
	struct hpx_verify_spec *spec = &context->spec;
	struct hpx_verify_url url;
	const char *reason;

	HPX_ASSERT(count == 1 && option->place == HPX_PLACE_SPEC);
	if (hpx_verify_url_parse(items[0], &url, &reason) != HPX_OK)
		return hpx_value_refuse(problem, "%s", reason);
	if (hpx_template_check(url.path, HPX_TEMPLATE_PATH, problem) != HPX_OK)
		return HPX_INVALID;
	spec->tls = url.tls;
	spec->port = url.port;
	spec->host = hpx_arena_dup(arena, hpx_span_of(url.host));
	spec->requests[HPX_REQUEST_main].path = hpx_arena_dup(arena, url.path);
	return spec->host.ptr != NULL && spec->requests[HPX_REQUEST_main].path.ptr != NULL ?
		       HPX_OK :
		       HPX_NOMEM;
}

static enum hpx_status read_path(const struct hpx_option *option, const struct hpx_span *items,
				 size_t count, struct hpx_arena *arena, void *base, char *problem)
{
	const struct hpx_spec_context *context = context_of(option, base);
	struct hpx_span path;
	const char *reason;

	HPX_ASSERT(count == 1);
	/* That mistake is told already, and there is no host to compare with. */
	if (!context->has_url)
		return HPX_OK;
	if (hpx_verify_path_parse(items[0], &context->url, &path, &reason) != HPX_OK)
		return hpx_value_refuse(problem, "\"%.*s\" %s", HPX_VALUE_SHOW(items[0]), reason);
	if (hpx_template_check(path, HPX_TEMPLATE_PATH, problem) != HPX_OK)
		return HPX_INVALID;
	return hpx_option_put_text(option, path, arena, base);
}

static enum hpx_status read_method(const struct hpx_option *option, const struct hpx_span *items,
				   size_t count, struct hpx_arena *arena, void *base, char *problem)
{
	HPX_ASSERT(count == 1);
	if (!hpx_is_token(items[0]) || hpx_span_ieq(items[0], HPX_SPAN("CONNECT")))
		return hpx_value_refuse(problem, "\"%.*s\" is no method that can be sent; POST, PUT, PATCH, DELETE",
					HPX_VALUE_SHOW(items[0]));
	return hpx_option_put_text(option, items[0], arena, base);
}

static enum hpx_status read_body(const struct hpx_option *option, const struct hpx_span *items,
				 size_t count, struct hpx_arena *arena, void *base, char *problem)
{
	struct hpx_span text = items[0];
	const char *reason;

	HPX_ASSERT(count == 1);
	if (hpx_span_starts(text, HPX_SPAN("@"))) {
		enum hpx_status status = hpx_spec_file(context_of(option, base)->folder,
						       hpx_span_skip(text, 1), HPX_VERIFY_BODY_MAX,
						       arena, &text, &reason);
		if (status == HPX_INVALID)
			return hpx_value_refuse(problem, "\"%.*s\" %s", HPX_VALUE_SHOW(items[0]), reason);
		if (status != HPX_OK)
			return status;
	}
	if (hpx_template_check(text, HPX_TEMPLATE_BODY, problem) != HPX_OK)
		return HPX_INVALID;
	return hpx_option_put_text(option, text, arena, base);
}

/* "" is the whole document. */
static enum hpx_status read_pointer(const struct hpx_option *option, const struct hpx_span *items,
				    size_t count, struct hpx_arena *arena, void *base, char *problem)
{
	HPX_ASSERT(count == 1);
	if (hpx_json_pointer_valid(items[0]))
		return hpx_option_put_text(option, items[0], arena, base);
	if (items[0].ptr[0] == '/')
		return hpx_value_refuse(problem, "\"%.*s\" is no JSON pointer: \"~\" is written ~0 there",
					HPX_VALUE_SHOW(items[0]));
	return hpx_value_refuse(problem, "\"%.*s\" is no JSON pointer; write \"/%.*s\" for the member of that name",
				HPX_VALUE_SHOW(items[0]), HPX_VALUE_SHOW(items[0]));
}

static enum hpx_status read_text(const struct hpx_option *option, const struct hpx_span *items,
				 size_t count, struct hpx_arena *arena, void *base, char *problem)
{
	HPX_ASSERT(count == 1);
	if (items[0].len == 0 || hpx_span_index(items[0], '\0') < items[0].len)
		return hpx_value_refuse(problem, "is empty");
	return hpx_option_put_text(option, items[0], arena, base);
}

/* Beside the description, where it stands in one. */
static enum hpx_status read_file_name(const struct hpx_option *option,
				      const struct hpx_span *items, size_t count,
				      struct hpx_arena *arena, void *base, char *problem)
{
	struct hpx_span folder = context_of(option, base)->folder;
	struct hpx_span path = items[0];

	if (folder.len > 0 && path.len > 0 && path.ptr[0] != '/')
		path = hpx_arena_printf(arena, "%.*s/%.*s", HPX_SPAN_ARG(folder), HPX_SPAN_ARG(path));
	return path.ptr != NULL ? read_text(option, &path, count, arena, base, problem) : HPX_NOMEM;
}

/* ---- lists of values ---- */

/* Each mistake of a list is told, as far as the message holds them. */
static void add_problem(char *problem, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void add_problem(char *problem, const char *format, ...)
{
	size_t len = strlen(problem);
	va_list args;

	if (len > 0 && len + 2 < HPX_VALUE_PROBLEM_SIZE)
		len += (size_t)snprintf(problem + len, HPX_VALUE_PROBLEM_SIZE - len, "; ");
	va_start(args, format);
	vsnprintf(problem + len, HPX_VALUE_PROBLEM_SIZE - len, format, args);
	va_end(args);
}

/* Headers that hapax writes itself, or that would change where a message ends. */
static bool is_reserved(struct hpx_span name, struct hpx_span key_header)
{
	static const struct hpx_span names[] = {
		HPX_SPAN_INIT("Host"),
		HPX_SPAN_INIT("Content-Length"),
		HPX_SPAN_INIT("Connection"),
		HPX_SPAN_INIT("Transfer-Encoding"),
		HPX_SPAN_INIT("Expect"),
		HPX_SPAN_INIT("Upgrade"),
		HPX_SPAN_INIT("TE"),
		HPX_SPAN_INIT("Trailer"),
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (hpx_span_ieq(name, names[i]))
			return true;
	return hpx_span_ieq(name, key_header);
}

/* NULL: the line is good. */
static const char *line_problem(struct hpx_span line, struct hpx_span key_header,
				char buffer[HPX_TEMPLATE_PROBLEM_SIZE])
{
	struct hpx_span name = hpx_verify_line_name(line);

	if (name.len == line.len)
		return "a header line is \"Name: value\"; this one has no colon";
	if (!hpx_is_token(name))
		return "a header line is \"Name: value\"; what stands before the colon is no name";
	if (!hpx_octet_all(line, HPX_OCTET_VALUE))
		return "a header line has no control bytes";
	if (is_reserved(name, key_header))
		return "hapax writes Host, the key, the length and what concerns the "
		       "connection itself; leave that line out";
	if (hpx_template_check(line, HPX_TEMPLATE_HEADER, buffer) != HPX_OK)
		return buffer;
	return NULL;
}

/* The line is named by its header only, where it has one: the rest may be a secret. */
static void refuse_line(char *problem, struct hpx_span line, const char *reason)
{
	struct hpx_span name = hpx_verify_line_name(line);

	if (name.len < line.len && hpx_is_token(name))
		add_problem(problem, "\"%.*s\": %s", HPX_SPAN_ARG(hpx_span_first(name, 40)), reason);
	else
		add_problem(problem, "%s", reason);
}

static size_t *count_member(const struct hpx_option *option, void *base)
{
	return (size_t *)(void *)((char *)base + option->companion_offset);
}

/* Lines are added to those that are there: a flag changes the file's line by line. */
static enum hpx_status read_lines(const struct hpx_option *option, const struct hpx_span *items,
				  size_t count, struct hpx_arena *arena, void *base, char *problem)
{
	struct hpx_span key_header = context_of(option, base)->spec.key_header;
	char buffer[HPX_TEMPLATE_PROBLEM_SIZE];

	problem[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		struct hpx_span line = hpx_span_trim(items[i]);
		const char *reason = line_problem(line, key_header, buffer);

		if (reason != NULL) {
			refuse_line(problem, line, reason);
			continue;
		}
		line = hpx_arena_dup(arena, line);
		if (line.ptr == NULL)
			return HPX_NOMEM;
		if (!hpx_spec_header(hpx_option_member(option, base), count_member(option, base), line))
			return hpx_value_refuse(problem, "has more than 64 lines");
	}
	return problem[0] == '\0' ? HPX_OK : HPX_INVALID;
}

static void refuse_row(char *problem, struct hpx_span name)
{
	struct hpx_suggestion suggestion = { 0 };

	for (size_t i = 0; i < hpx_row_count; i++)
		hpx_suggestion_consider(&suggestion, name, hpx_span_of(hpx_rows[i].name));
	if (suggestion.word.ptr != NULL)
		add_problem(problem, "there is no row \"%.*s\"; did you mean \"%.*s\"?",
			    HPX_VALUE_SHOW(name), HPX_SPAN_ARG(suggestion.word));
	else
		add_problem(problem, "there is no row \"%.*s\"; `hapax verify --list` names them",
			    HPX_VALUE_SHOW(name));
}

static enum hpx_status read_rows(const struct hpx_option *option, const struct hpx_span *items,
				 size_t count, struct hpx_arena *arena, void *base, char *problem)
{
	struct hpx_span *rows = hpx_option_member(option, base);
	size_t known = 0;

	problem[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		if (hpx_row_by_name(items[i]) == NULL) {
			refuse_row(problem, items[i]);
			continue;
		}
		if (known == HPX_VERIFY_HEADERS_MAX)
			return hpx_value_refuse(problem, "has more than 64 rows");
		rows[known] = hpx_arena_dup(arena, items[i]);
		if (rows[known++].ptr == NULL)
			return HPX_NOMEM;
	}
	*count_member(option, base) = known;
	return problem[0] == '\0' ? HPX_OK : HPX_INVALID;
}

/* ---- the table ---- */

#define AT(member) \
	.place = HPX_PLACE_SPEC, .offset = offsetof(struct hpx_spec_context, spec.member), \
	.width = sizeof(((struct hpx_spec_context *)0)->spec.member)
#define MAIN(member) AT(requests[HPX_REQUEST_main].member)
#define OF_REQUEST(member) \
	.place = HPX_PLACE_REQUEST, .offset = offsetof(struct hpx_spec_request_context, request.member), \
	.width = sizeof(((struct hpx_spec_request_context *)0)->request.member)
#define COUNTED_BY(member) .companion_offset = offsetof(struct hpx_spec_context, spec.member)
#define RANGE(least, most) .min = least, .max = most
#define READ_BY(reader) .kind = HPX_OPTION_CUSTOM, .read = reader
#define LIST_BY(reader) .kind = HPX_OPTION_CUSTOM_LIST, .read = reader
#define FLAG(name, value_name) .flag = name, .flag_value = value_name

#define SECOND 1000u
#define HOUR (3600 * SECOND)

const struct hpx_dialect_traits hpx_dialects[HPX_DIALECT_COUNT] = {
	[HPX_DIALECT_AUTO] = { "auto", "Idempotency-Key", .refuses_missing = true,
			       .executes_missing = true, .mismatch_422 = true, .mismatch_400 = true },
	[HPX_DIALECT_IETF] = { "ietf", "Idempotency-Key", .strings = true, .refuses_missing = true,
			       .mismatch_422 = true },
	[HPX_DIALECT_STRIPE] = { "stripe", "Idempotency-Key", .executes_missing = true,
				 .mismatch_400 = true, .stores_errors = true, .marks_replays = true },
	[HPX_DIALECT_PAYPAL] = { "paypal", "PayPal-Request-Id", .refuses_missing = true,
				 .executes_missing = true, .mismatch_422 = true },
	[HPX_DIALECT_SQUARE] = { "square", NULL, .refuses_missing = true, .executes_missing = true,
				 .mismatch_400 = true },
};

static const char *const dialects[] = { [HPX_DIALECT_AUTO] = "auto",
					[HPX_DIALECT_IETF] = "ietf",
					[HPX_DIALECT_STRIPE] = "stripe",
					[HPX_DIALECT_PAYPAL] = "paypal",
					[HPX_DIALECT_SQUARE] = "square",
					NULL };

static const char line_example[] = "[\"Name: value\"]";
static const char body_example[] = "JSON in quotes, '{\"amount\": 5}', or \"@FILE\"";

static const struct hpx_option rows[] = {
	{ "url", READ_BY(read_url), .place = HPX_PLACE_SPEC, FLAG(NULL, "URL"),
	  .text = "The URL that is verified; no other host is asked." },
	{ "key_header", HPX_OPTION_TOKEN, AT(key_header), FLAG("key-header", "NAME"),
	  .default_value = "Idempotency-Key",
	  .text = "The name of the key's header (Idempotency-Key, or the dialect's)." },
	{ "method", READ_BY(read_method), MAIN(method), FLAG("X,request", "METHOD"),
	  .default_value = "POST", .text = "The method (POST)." },
	{ "headers", LIST_BY(read_lines), MAIN(headers), FLAG("H,header", "LINE..."),
	  COUNTED_BY(requests[HPX_REQUEST_main].header_count), .example = line_example,
	  .text = "A header line; {{env:NAME}} keeps a secret out of files and reports." },
	{ "body", READ_BY(read_body), MAIN(body), FLAG("d,data", "BODY"), .example = body_example,
	  .text = "The body, or @FILE; {{uuid}}, {{n}} and {{key}} differ for each operation." },
	{ "other_body", READ_BY(read_body), AT(other_body), FLAG("other-body", "BODY"),
	  .example = body_example,
	  .text = "Another body, which the API must refuse under the same key (default: one number is changed)." },
	{ "number", READ_BY(read_pointer), AT(number), FLAG("number", "POINTER"),
	  .text = "Which number of the body may be changed (default: the first)." },
	{ "resource", READ_BY(read_pointer), AT(resource), FLAG("resource", "POINTER"),
	  .text = "Where an answer has the id of what was created: /id." },
	{ "effects.get", READ_BY(read_path), AT(effects_path), FLAG("effects", "PATH"),
	  .text = "A path to GET that lists or counts the effects." },
	{ "effects.count", READ_BY(read_pointer), AT(effects_count), FLAG("effects-count", "POINTER"),
	  .text = "Where that answer has the number or the list (default: the whole answer)." },
	{ "second_tenant", LIST_BY(read_lines), AT(tenant_headers), COUNTED_BY(tenant_header_count),
	  FLAG("second-tenant", "LINE..."), .example = line_example,
	  .text = "A header line of another tenant, in place of the first one's." },
	{ "dialect", HPX_OPTION_CHOICE, AT(dialect), FLAG("dialect", "NAME"), .choices = dialects,
	  .default_value = "auto", .text = "auto, ietf, stripe, paypal or square; auto finds out which of the first two (auto)." },
	{ "skip", LIST_BY(read_rows), AT(skip), COUNTED_BY(skip_count), FLAG("skip", "ROW..."),
	  .example = "[retry, expiry]", .text = "Leaves this row out." },
	{ "only", LIST_BY(read_rows), AT(only), COUNTED_BY(only_count), FLAG("only", "ROW..."),
	  .example = "[retry, expiry]", .text = "Runs only this row." },
	{ "limits.requests", HPX_OPTION_COUNT, AT(requests_max), RANGE(1, 1000000),
	  FLAG("requests", "N"), .default_value = "5000",
	  .text = "The most requests that a run sends (5000)." },
	{ "limits.time", HPX_OPTION_DURATION, AT(time_max_ms), RANGE(SECOND, 24 * HOUR),
	  FLAG("time", "DURATION"), .default_value = "5m",
	  .text = "The time after which nothing is sent (5m)." },
	{ "limits.concurrency", HPX_OPTION_COUNT, AT(concurrency_max), RANGE(1, 1000),
	  FLAG("concurrency", "N"), .default_value = "100",
	  .text = "The most requests at the same time (100)." },
	{ "limits.timeout", HPX_OPTION_DURATION, AT(answer_timeout_ms), RANGE(10, HOUR),
	  FLAG("timeout", "DURATION"), .default_value = "30s", .text = "The longest wait for one answer (30s)." },
	{ "limits.settle", HPX_OPTION_DURATION, AT(settle_ms), RANGE(10, HOUR),
	  FLAG("settle", "DURATION"), .default_value = "60s",
	  .text = "The longest wait for a definite answer over all retries, and for a server to start (60s)." },
	{ "crash.kill", READ_BY(read_text), AT(crash_cmd), FLAG("crash-cmd", "CMD"),
	  .text = "A shell command that kills the server under test." },
	{ "crash.start", READ_BY(read_text), AT(start_cmd), FLAG("start-cmd", "CMD"),
	  .text = "A shell command that starts the server again; may stay in the foreground." },
	{ "crash.times", HPX_OPTION_COUNT, AT(crashes), RANGE(1, 1000), FLAG("crashes", "N"),
	  .default_value = "10", .text = "How often the server is killed (10)." },
	{ "seed", HPX_OPTION_COUNT, AT(seed), RANGE(0, INT64_MAX), FLAG("seed", "N"),
	  .text = "Decides the moments of crashes. The report names it (default: random)." },
	{ "cacert", READ_BY(read_file_name), AT(ca_file), FLAG("cacert", "FILE"),
	  .text = "Certificates to trust instead of the system's." },
	{ "insecure", HPX_OPTION_BOOL, AT(insecure), FLAG("insecure", NULL),
	  .text = "Does not check certificates." },

	/* In each of `requests`. */
	{ "method", READ_BY(read_method), OF_REQUEST(method) },
	{ "path", READ_BY(read_path), OF_REQUEST(path) },
	{ "headers", LIST_BY(read_lines), OF_REQUEST(headers), .example = line_example,
	  .companion_offset = offsetof(struct hpx_spec_request_context, request.header_count) },
	{ "body", READ_BY(read_body), OF_REQUEST(body), .example = body_example },
};
_Static_assert(sizeof(rows) / sizeof(rows[0]) <= HPX_VERIFY_OPTION_MAX,
	       "the flags have a place for each");

static const struct hpx_option_section sections[] = {
	{ HPX_SPAN_INIT("requests"), HPX_SPAN_INIT("requests."), HPX_SECTION_MAP,
	  HPX_PLACE_BIT(HPX_PLACE_REQUEST) },
	{ HPX_SPAN_INIT(""), HPX_SPAN_INIT(""), HPX_SECTION_ROOT, HPX_PLACE_BIT(HPX_PLACE_SPEC) },
};

const struct hpx_option_table hpx_verify_options = {
	.rows = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.sections = sections,
	.section_count = sizeof(sections) / sizeof(sections[0]),
	.listed_by = "`hapax verify --help` and its reference list them",
};

const char *hpx_verify_request_name_text(enum hpx_verify_request_name name)
{
	static const char *const words[] = {
#define X(name, about) #name,
		HPX_VERIFY_REQUEST_LIST(X)
#undef X
	};

	return words[name];
}

const char *hpx_verify_request_name_about(enum hpx_verify_request_name name)
{
	static const char *const words[] = {
#define X(name, about) about,
		HPX_VERIFY_REQUEST_LIST(X)
#undef X
	};

	return words[name];
}
