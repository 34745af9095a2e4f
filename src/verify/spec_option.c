/* The table of what a description can say, and the readers of its values: the
 * file, the flags and --help come from the table. */
#include <stdio.h>
#include <stdlib.h>

#include "base/address.h"
#include "config/suggestion.h"
#include "config/unit.h"
#include "core/json.h"
#include "http/field.h"
#include "http/octet.h"
#include "verify/row.h"
#include "verify/spec.h"
#include "verify/spec_read.h"

#define AT(member) .offset = offsetof(struct hpx_verify_spec, member)
#define LIST(member, counter) \
	.offset = offsetof(struct hpx_verify_spec, member), \
	.count = offsetof(struct hpx_verify_spec, counter)
#define MAIN(member) \
	.offset = offsetof(struct hpx_verify_spec, requests[HPX_REQUEST_main].member)

#define SECOND 1000u
#define HOUR (3600 * SECOND)

const struct hpx_verify_option hpx_verify_options[] = {
	{ "url", NULL, "URL", "What is verified: its host is the only one that is asked.",
	  HPX_VERIFY_URL, .offset = 0 },
	{ "key_header", "key-header", "NAME", "The header of the key (Idempotency-Key).",
	  HPX_VERIFY_NAME, AT(key_header) },
	{ "method", "X,request", "METHOD", "The method (POST).", HPX_VERIFY_METHOD,
	  MAIN(method) },
	{ "headers", "H,header", "LINE...",
	  "A header line; {{env:NAME}} keeps a secret out of files and reports.",
	  HPX_VERIFY_LINES, MAIN(headers),
	  .count = offsetof(struct hpx_verify_spec, requests[HPX_REQUEST_main].header_count) },
	{ "body", "d,data", "BODY",
	  "The body, or @FILE; {{uuid}}, {{n}} and {{key}} differ for each operation.",
	  HPX_VERIFY_BODY, MAIN(body) },
	{ "other_body", "other-body", "BODY",
	  "A body that must not pass under the same key (or one number is changed).",
	  HPX_VERIFY_BODY, AT(other_body) },
	{ "number", "number", "POINTER", "The number in the body that may be changed.",
	  HPX_VERIFY_POINTER, AT(number) },
	{ "resource", "resource", "POINTER", "Where an answer names what was created: /id.",
	  HPX_VERIFY_POINTER, AT(resource) },
	{ "effects.get", "effects", "PATH", "A GET by which effects are counted.",
	  HPX_VERIFY_PATH, AT(effects_path) },
	{ "effects.count", "effects-count", "POINTER",
	  "Where its answer has their number, or their list (the whole answer).",
	  HPX_VERIFY_POINTER, AT(effects_count) },
	{ "second_tenant", "second-tenant", "LINE...",
	  "A header line of another caller's, in place of the first one's.", HPX_VERIFY_LINES,
	  LIST(tenant_headers, tenant_header_count) },
	{ "dialect", "dialect", "NAME", "auto, ietf or stripe (auto: found out).",
	  HPX_VERIFY_DIALECT, AT(dialect) },
	{ "skip", "skip", "ROW...", "A row that does not apply.", HPX_VERIFY_ROWS,
	  LIST(skip, skip_count) },
	{ "only", "only", "ROW...", "Judges this row alone.", HPX_VERIFY_ROWS,
	  LIST(only, only_count) },
	{ "limits.requests", "requests", "N", "At most so many requests (5000).",
	  HPX_VERIFY_COUNT, AT(requests_max), .min = 1, .max = 1000000 },
	{ "limits.time", "time", "DURATION", "Nothing is sent after so long (5m).",
	  HPX_VERIFY_DURATION, AT(time_max_ms), .min = SECOND, .max = 24 * HOUR },
	{ "limits.concurrency", "concurrency", "N", "At most so many at once (100).",
	  HPX_VERIFY_COUNT, AT(concurrency_max), .min = 1, .max = 1000 },
	{ "limits.timeout", "timeout", "DURATION", "For one answer (30s).",
	  HPX_VERIFY_DURATION, AT(answer_timeout_ms), .min = 10, .max = HOUR },
	{ "limits.settle", "settle", "DURATION",
	  "For a definite answer, over retries, and for a start (60s).", HPX_VERIFY_DURATION,
	  AT(settle_ms), .min = 10, .max = HOUR },
	{ "crash.kill", "crash-cmd", "CMD", "Kills the server under test, by /bin/sh.",
	  HPX_VERIFY_TEXT, AT(crash_cmd) },
	{ "crash.start", "start-cmd", "CMD", "Starts it again; may stay in the foreground.",
	  HPX_VERIFY_TEXT, AT(start_cmd) },
	{ "crash.times", "crashes", "N", "How often it is killed (10).", HPX_VERIFY_COUNT,
	  AT(crashes), .min = 1, .max = 1000 },
	{ "seed", "seed", "N", "For the moments of crashes; a run says which it used.",
	  HPX_VERIFY_COUNT, AT(seed), .min = 0, .max = INT64_MAX },
	{ "cacert", "cacert", "FILE", "Certificates to trust, in place of the system's.",
	  HPX_VERIFY_FILE, AT(ca_file) },
	{ "insecure", "insecure", NULL, "Checks no certificate.", HPX_VERIFY_SWITCH,
	  AT(insecure) },
};

const size_t hpx_verify_option_count =
	sizeof(hpx_verify_options) / sizeof(hpx_verify_options[0]);
_Static_assert(sizeof(hpx_verify_options) / sizeof(hpx_verify_options[0]) <=
		       HPX_VERIFY_OPTION_MAX,
	       "the flags have a place for each");

#define OF_REQUEST(member) .offset = offsetof(struct hpx_verify_request, member)

const struct hpx_verify_option hpx_verify_request_options[] = {
	{ "method", NULL, NULL, NULL, HPX_VERIFY_METHOD, OF_REQUEST(method) },
	{ "path", NULL, NULL, NULL, HPX_VERIFY_PATH, OF_REQUEST(path) },
	{ "headers", NULL, NULL, NULL, HPX_VERIFY_LINES, OF_REQUEST(headers),
	  .count = offsetof(struct hpx_verify_request, header_count) },
	{ "body", NULL, NULL, NULL, HPX_VERIFY_BODY, OF_REQUEST(body) },
};
_Static_assert(sizeof(hpx_verify_request_options) / sizeof(hpx_verify_request_options[0]) ==
		       HPX_VERIFY_REQUEST_OPTION_COUNT,
	       "as the header says");

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

/* ---- URLs and paths ---- */

#define AUTHORITY_MAX 300

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
			return refuse_url(ret_reason, "write a path (/) behind the host");
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

/* How much of a given value is said again. */
#define SHOWN_MAX 80

/* What a value needs, in one place. */
struct value {
	struct hpx_spec_reading *reading;
	const struct hpx_verify_option *option;
	const struct hpx_spec_given *given;
	void *member;
	void *base;
};

static struct hpx_span text_of(const struct value *value)
{
	return value->given->items[0];
}

static enum hpx_status refuse(const struct value *value, const char *problem)
{
	hpx_spec_remark(value->reading, value->given, "%s", problem);
	return HPX_OK;
}

/* What was given, and what it should be. */
static enum hpx_status refuse_given(const struct value *value, const char *problem)
{
	hpx_spec_remark(value->reading, value->given, "\"%.*s\" %s",
			HPX_SPAN_ARG(hpx_span_first(text_of(value), SHOWN_MAX)), problem);
	return HPX_OK;
}

static enum hpx_status put_text(const struct value *value, struct hpx_span text)
{
	struct hpx_span copy = hpx_arena_dup(&value->reading->spec->arena, text);

	if (copy.ptr == NULL)
		return HPX_NOMEM;
	*(struct hpx_span *)value->member = copy;
	return HPX_OK;
}

/* ---- one value ---- */

static enum hpx_status read_url(const struct value *value)
{
	struct hpx_spec_reading *reading = value->reading;
	struct hpx_verify_spec *spec = reading->spec;
	char problem[HPX_TEMPLATE_PROBLEM_SIZE];
	const char *reason;

	if (hpx_verify_url_parse(text_of(value), &reading->url, &reason) != HPX_OK)
		return refuse(value, reason);
	if (hpx_template_check(reading->url.path, HPX_TEMPLATE_PATH, problem) != HPX_OK)
		return refuse(value, problem);
	reading->has_url = true;
	spec->tls = reading->url.tls;
	spec->port = reading->url.port;
	spec->host = hpx_arena_dup(&spec->arena, hpx_span_of(reading->url.host));
	spec->requests[HPX_REQUEST_main].path = hpx_arena_dup(&spec->arena, reading->url.path);
	return spec->host.ptr != NULL && spec->requests[HPX_REQUEST_main].path.ptr != NULL ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status read_path(const struct value *value)
{
	struct hpx_spec_reading *reading = value->reading;
	char problem[HPX_TEMPLATE_PROBLEM_SIZE];
	struct hpx_span path;
	const char *reason;

	/* Without a URL that was said already, and nothing can be compared. */
	if (!reading->has_url)
		return HPX_OK;
	if (hpx_verify_path_parse(text_of(value), &reading->url, &path, &reason) != HPX_OK)
		return refuse_given(value, reason);
	if (hpx_template_check(path, HPX_TEMPLATE_PATH, problem) != HPX_OK)
		return refuse(value, problem);
	return put_text(value, path);
}

static enum hpx_status read_method(const struct value *value)
{
	if (!hpx_is_token(text_of(value)) || hpx_span_ieq(text_of(value), HPX_SPAN("CONNECT")))
		return refuse_given(value, "is no method that can be sent; POST, PUT, PATCH, DELETE");
	return put_text(value, text_of(value));
}

static enum hpx_status read_body(const struct value *value)
{
	struct hpx_span text = text_of(value);
	char problem[HPX_TEMPLATE_PROBLEM_SIZE];
	const char *reason;

	if (text.len > 0 && text.ptr[0] == '@') {
		struct hpx_span folder = value->given->by_flag ? HPX_SPAN("") : value->reading->folder;
		enum hpx_status status =
			hpx_spec_file(folder, hpx_span_skip(text, 1), HPX_VERIFY_BODY_MAX,
				      &value->reading->spec->arena, &text, &reason);
		if (status == HPX_INVALID)
			return refuse_given(value, reason);
		if (status != HPX_OK)
			return status;
	}
	if (hpx_template_check(text, HPX_TEMPLATE_BODY, problem) != HPX_OK)
		return refuse(value, problem);
	return put_text(value, text);
}

static enum hpx_status read_pointer(const struct value *value)
{
	struct hpx_span text = text_of(value);

	if (hpx_json_pointer_valid(text))
		return put_text(value, text);
	if (text.ptr[0] == '/')
		return refuse_given(value, "is no JSON pointer: \"~\" is written ~0 there");
	hpx_spec_remark(value->reading, value->given,
			"\"%.*s\" is no JSON pointer; write \"/%.*s\" for the member of that name",
			HPX_SPAN_ARG(hpx_span_first(text, SHOWN_MAX)),
			HPX_SPAN_ARG(hpx_span_first(text, SHOWN_MAX)));
	return HPX_OK;
}

static enum hpx_status read_name(const struct value *value)
{
	if (!hpx_is_token(text_of(value)))
		return refuse_given(value, "is no name of a header");
	return put_text(value, text_of(value));
}

static enum hpx_status read_text(const struct value *value)
{
	struct hpx_span text = text_of(value);

	if (text.len == 0 || hpx_span_index(text, '\0') < text.len)
		return refuse(value, "is empty");
	return put_text(value, text);
}

static enum hpx_status read_file_name(const struct value *value)
{
	struct hpx_span text = text_of(value), folder = value->reading->folder;

	if (value->given->by_flag || folder.len == 0 || text.len == 0 || text.ptr[0] == '/')
		return read_text(value);
	struct hpx_span path = hpx_arena_printf(&value->reading->spec->arena, "%.*s/%.*s",
						HPX_SPAN_ARG(folder), HPX_SPAN_ARG(text));
	*(struct hpx_span *)value->member = path;
	return path.ptr != NULL ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status read_dialect(const struct value *value)
{
	static const struct hpx_span words[] = { [HPX_DIALECT_AUTO] = HPX_SPAN_INIT("auto"),
						 [HPX_DIALECT_IETF] = HPX_SPAN_INIT("ietf"),
						 [HPX_DIALECT_STRIPE] = HPX_SPAN_INIT("stripe") };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!hpx_span_eq(text_of(value), words[i]))
			continue;
		*(enum hpx_dialect *)value->member = (enum hpx_dialect)i;
		return HPX_OK;
	}
	return refuse_given(value, "is no dialect; there are auto, ietf and stripe");
}

static enum hpx_status read_count(const struct value *value)
{
	const struct hpx_verify_option *option = value->option;
	uint64_t number;

	if (!hpx_span_u64(text_of(value), option->max, &number) || number < option->min) {
		hpx_spec_remark(value->reading, value->given,
				"\"%.*s\" is not a whole number from %llu to %llu",
				HPX_SPAN_ARG(hpx_span_first(text_of(value), SHOWN_MAX)),
				(unsigned long long)option->min, (unsigned long long)option->max);
		return HPX_OK;
	}
	*(uint64_t *)value->member = number;
	return HPX_OK;
}

static enum hpx_status read_duration(const struct value *value)
{
	const struct hpx_verify_option *option = value->option;
	char min[HPX_UNIT_SIZE], max[HPX_UNIT_SIZE];
	uint64_t ms;

	if (!hpx_duration_parse(text_of(value), &ms) || ms < option->min || ms > option->max) {
		hpx_duration_print(option->min, min);
		hpx_duration_print(option->max, max);
		hpx_spec_remark(value->reading, value->given,
				"\"%.*s\" is not a duration from %s to %s, as 500ms, 30s or 5m",
				HPX_SPAN_ARG(hpx_span_first(text_of(value), SHOWN_MAX)), min, max);
		return HPX_OK;
	}
	*(uint64_t *)value->member = ms;
	return HPX_OK;
}

static enum hpx_status read_switch(const struct value *value)
{
	bool on = hpx_span_eq(text_of(value), HPX_SPAN("true")) ||
		  hpx_span_eq(text_of(value), HPX_SPAN("yes"));

	if (!on && !hpx_span_eq(text_of(value), HPX_SPAN("false")) &&
	    !hpx_span_eq(text_of(value), HPX_SPAN("no")))
		return refuse_given(value, "is neither true nor false");
	*(bool *)value->member = on;
	return HPX_OK;
}

/* ---- lists ---- */

/* What hapax writes itself, or what would change where a message ends. */
static bool is_ours(struct hpx_span name, struct hpx_span key_header)
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
static const char *line_problem(const struct value *value, struct hpx_span line,
				char problem[HPX_TEMPLATE_PROBLEM_SIZE])
{
	struct hpx_span name = hpx_spec_header_name(line);

	if (name.len == line.len)
		return "a header line is \"Name: value\"; this one has no colon";
	if (!hpx_is_token(name))
		return "a header line is \"Name: value\"; what stands before the colon is no name";
	if (!hpx_octet_all(line, HPX_OCTET_VALUE))
		return "a header line has no control bytes";
	if (is_ours(name, value->reading->spec->key_header))
		return "hapax writes Host, the key, the length and what concerns the "
		       "connection itself; leave that line out";
	if (hpx_template_check(line, HPX_TEMPLATE_HEADER, problem) != HPX_OK)
		return problem;
	return NULL;
}

/* By its name only, where it has one: the rest may be a secret. */
static void refuse_line(const struct value *value, struct hpx_span line, const char *reason)
{
	struct hpx_span name = hpx_spec_header_name(line);

	if (name.len < line.len && hpx_is_token(name))
		hpx_spec_remark(value->reading, value->given, "\"%.*s\": %s",
				HPX_SPAN_ARG(hpx_span_first(name, 40)), reason);
	else
		hpx_spec_remark(value->reading, value->given, "%s", reason);
}

static enum hpx_status read_lines(const struct value *value)
{
	size_t *count = (size_t *)(void *)((char *)value->base + value->option->count);
	char problem[HPX_TEMPLATE_PROBLEM_SIZE];

	for (size_t i = 0; i < value->given->count; i++) {
		struct hpx_span line = hpx_span_trim(value->given->items[i]);
		const char *reason = line_problem(value, line, problem);

		if (reason != NULL) {
			refuse_line(value, line, reason);
			continue;
		}
		line = hpx_arena_dup(&value->reading->spec->arena, line);
		if (line.ptr == NULL)
			return HPX_NOMEM;
		if (!hpx_spec_header(value->member, count, line))
			return refuse(value, "has more than 64 lines");
	}
	return HPX_OK;
}

static void refuse_row(const struct value *value, struct hpx_span name)
{
	struct hpx_suggestion suggestion = { 0 };

	for (size_t i = 0; i < hpx_row_count; i++)
		hpx_suggestion_consider(&suggestion, name, hpx_span_of(hpx_rows[i].name));
	if (suggestion.word.ptr != NULL)
		hpx_spec_remark(value->reading, value->given,
				"there is no row \"%.*s\"; did you mean \"%.*s\"?",
				HPX_SPAN_ARG(name), HPX_SPAN_ARG(suggestion.word));
	else
		hpx_spec_remark(value->reading, value->given,
				"there is no row \"%.*s\"; `hapax verify --list` names them",
				HPX_SPAN_ARG(name));
}

static enum hpx_status read_rows(const struct value *value)
{
	size_t *count = (size_t *)(void *)((char *)value->base + value->option->count);
	struct hpx_span *rows = value->member;

	*count = 0;
	for (size_t i = 0; i < value->given->count; i++) {
		struct hpx_span name = value->given->items[i];

		if (hpx_row_by_name(name) == NULL) {
			refuse_row(value, name);
			continue;
		}
		if (*count == HPX_VERIFY_HEADERS_MAX)
			return refuse(value, "has more than 64 rows");
		rows[*count] = hpx_arena_dup(&value->reading->spec->arena, name);
		if (rows[(*count)++].ptr == NULL)
			return HPX_NOMEM;
	}
	return HPX_OK;
}

enum hpx_status hpx_spec_value(struct hpx_spec_reading *reading,
			       const struct hpx_verify_option *option,
			       const struct hpx_spec_given *given, void *base)
{
	static enum hpx_status (*const readers[])(const struct value *value) = {
		[HPX_VERIFY_URL] = read_url,
		[HPX_VERIFY_METHOD] = read_method,
		[HPX_VERIFY_LINES] = read_lines,
		[HPX_VERIFY_BODY] = read_body,
		[HPX_VERIFY_POINTER] = read_pointer,
		[HPX_VERIFY_PATH] = read_path,
		[HPX_VERIFY_ROWS] = read_rows,
		[HPX_VERIFY_DIALECT] = read_dialect,
		[HPX_VERIFY_NAME] = read_name,
		[HPX_VERIFY_COUNT] = read_count,
		[HPX_VERIFY_DURATION] = read_duration,
		[HPX_VERIFY_TEXT] = read_text,
		[HPX_VERIFY_FILE] = read_file_name,
		[HPX_VERIFY_SWITCH] = read_switch,
	};
	const struct value value = { reading, option, given, (char *)base + option->offset, base };

	return given->count > 0 ? readers[option->kind](&value) : HPX_OK;
}
