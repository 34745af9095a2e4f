/* Reports for people and programs: text with a bar for each tag, JSON, routes to paste
 * into the configuration, and the baseline. SARIF is coverage_sarif.c. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/json_writer.h"
#include "base/status.h"
#include "coverage/coverage.h"

#define BAR_CELLS 20

/* Text of a document, harmless on a terminal. */
static enum hpx_status print_safely(struct hpx_buffer *out, struct hpx_span text)
{
	struct hpx_span character;
	enum hpx_status status = HPX_OK;
	bool printable;

	while (status == HPX_OK && hpx_utf8_next(&text, &character, &printable))
		status = printable ? hpx_buffer_append(out, character) : hpx_buffer_byte(out, '?');
	return status;
}

static enum hpx_status print_place(struct hpx_buffer *out, struct hpx_source_place place)
{
	if (place.file.ptr == NULL)
		return HPX_OK;
	enum hpx_status status = print_safely(out, place.file);
	return status == HPX_OK && place.line > 0 ? hpx_buffer_printf(out, ":%u", place.line) : status;
}

/* ---- counts ---- */

struct tag_count {
	struct hpx_span tag;
	size_t first;   /* the operation that it was first seen at */
	size_t needing; /* operations that need a key */
	size_t covered; /* of those */
	size_t safe;
};

static void count_operation(struct tag_count *count, const struct hpx_covered_operation *operation)
{
	bool needs = hpx_coverage_needs_key(operation);

	count->needing += needs;
	count->covered += needs && hpx_coverage_is_covered(operation);
	count->safe += !needs;
}

static struct tag_count count_all(const struct hpx_coverage *coverage)
{
	struct tag_count all = { .tag = HPX_SPAN("total") };

	for (size_t i = 0; i < coverage->operation_count; i++)
		count_operation(&all, &coverage->operations[i]);
	HPX_ASSERT(all.covered <= all.needing);
	return all;
}

/* In the order in which tags come first; each tag is looked for among those before. */
static struct tag_count *count_tags(const struct hpx_coverage *coverage, size_t *ret_count)
{
	struct tag_count *tags = calloc(coverage->operation_count + 1, sizeof(*tags));
	size_t count = 0;

	for (size_t i = 0; tags != NULL && i < coverage->operation_count; i++) {
		struct hpx_span tag = coverage->operations[i].tag;
		size_t at = 0;
		while (at < count && !hpx_span_eq(tags[at].tag, tag))
			at++;
		if (at == count)
			tags[count++] = (struct tag_count){ .tag = tag, .first = i };
		count_operation(&tags[at], &coverage->operations[i]);
	}
	*ret_count = count;
	return tags;
}

/* ---- text ---- */

static unsigned percent_of(const struct tag_count *count)
{
	return count->needing > 0 ? (unsigned)(100 * count->covered / count->needing) : 100;
}

/* "payments      ████████░░░░  3 of 4, 75 %; 2 safe by design" */
static enum hpx_status print_bar(struct hpx_buffer *out, const struct tag_count *count, size_t width)
{
	struct hpx_span name = count->tag.len > 0 ? count->tag : HPX_SPAN("(no tag)");
	size_t full = count->needing > 0 ? BAR_CELLS * count->covered / count->needing : BAR_CELLS;
	enum hpx_status status = print_safely(out, name);

	for (size_t i = name.len; i < width && status == HPX_OK; i++)
		status = hpx_buffer_byte(out, ' ');
	if (status == HPX_OK)
		status = hpx_buffer_text(out, "  ");
	for (size_t i = 0; i < BAR_CELLS && status == HPX_OK; i++)
		status = hpx_buffer_text(out, i < full ? "█" : "░");
	if (status == HPX_OK)
		status = hpx_buffer_printf(out, "  %zu of %zu, %u %%", count->covered, count->needing,
					   percent_of(count));
	if (status == HPX_OK && count->safe > 0)
		status = hpx_buffer_printf(out, "; %zu safe by design", count->safe);
	return status == HPX_OK ? hpx_buffer_byte(out, '\n') : status;
}

static enum hpx_status print_traffic(struct hpx_buffer *out,
				     const struct hpx_covered_operation *operation)
{
	const struct hpx_traffic_count *seen = &operation->traffic;

	if (seen->requests == 0)
		return HPX_OK;
	enum hpx_status status = hpx_buffer_printf(
		out, "            seen %" PRIu64 " times: %" PRIu64 " with a key, %" PRIu64 " without",
		seen->requests, seen->keyed, seen->unkeyed);
	if (status == HPX_OK && operation->example.len > 0) {
		status = hpx_buffer_text(out, "; as ");
		if (status == HPX_OK)
			status = print_safely(out, operation->example);
	}
	return status == HPX_OK ? hpx_buffer_byte(out, '\n') : status;
}

static enum hpx_status print_route(struct hpx_buffer *out,
				   const struct hpx_covered_operation *operation)
{
	if (operation->route == NULL)
		return HPX_OK;
	enum hpx_status status =
		hpx_buffer_printf(out, "            %s by route ", operation->guarded ? "guarded" : "not guarded");
	if (status == HPX_OK)
		status = print_safely(out, operation->route->pattern);
	return status == HPX_OK ? hpx_buffer_byte(out, '\n') : status;
}

/* "  absent    POST /v1/refunds  api.yaml:12  no key is declared" */
static enum hpx_status print_operation(struct hpx_buffer *out,
				       const struct hpx_covered_operation *operation)
{
	const struct hpx_declared_key *key = &operation->key;
	enum hpx_status status =
		hpx_buffer_printf(out, "  %-9s %-6.*s ",
				  operation->declared ? hpx_key_class_name(key->class) : "seen",
				  HPX_SPAN_ARG(operation->method));

	if (status == HPX_OK)
		status = print_safely(out, operation->path);
	if (status == HPX_OK)
		status = hpx_buffer_text(out, "  ");
	if (status == HPX_OK)
		status = print_place(out, key->place);
	if (status == HPX_OK)
		status = hpx_buffer_text(out, "  ");
	if (status == HPX_OK && key->name.len > 0)
		status = print_safely(out, key->name);
	if (status == HPX_OK && key->name.len > 0)
		status = hpx_buffer_text(out, ": ");
	if (status == HPX_OK)
		status = print_safely(out, key->reason);
	if (status == HPX_OK && key->class == HPX_CLASS_BODY)
		status = hpx_buffer_text(out, key->required ? ", required" : ", optional");
	if (status == HPX_OK)
		status = hpx_buffer_byte(out, '\n');
	if (status == HPX_OK)
		status = print_route(out, operation);
	return status == HPX_OK ? print_traffic(out, operation) : status;
}

static enum hpx_status print_tag(const struct hpx_coverage *coverage, const struct tag_count *count,
				 size_t width, struct hpx_buffer *out)
{
	enum hpx_status status = print_bar(out, count, width);

	for (size_t i = count->first; i < coverage->operation_count && status == HPX_OK; i++)
		if (hpx_span_eq(coverage->operations[i].tag, count->tag))
			status = print_operation(out, &coverage->operations[i]);
	return status == HPX_OK ? hpx_buffer_byte(out, '\n') : status;
}

/* Findings that are no gap of a single description: those stand beside their operation. */
static bool stands_alone(const struct hpx_coverage_finding *finding)
{
	return finding->rule != HPX_RULE_KEY_ABSENT && finding->rule != HPX_RULE_KEY_IN_PROSE &&
	       finding->rule != HPX_RULE_KEY_WEAK;
}

static enum hpx_status print_finding(struct hpx_buffer *out,
				     const struct hpx_coverage_finding *finding)
{
	enum hpx_status status = hpx_buffer_printf(
		out, "%s: %s: %.*s ", hpx_finding_level_name(hpx_finding_rule_level(finding->rule)),
		hpx_finding_rule_name(finding->rule), HPX_SPAN_ARG(finding->method));

	if (status == HPX_OK)
		status = print_safely(out, finding->path);
	if (status == HPX_OK)
		status = hpx_buffer_text(out, finding->place.file.ptr != NULL ? "  " : "");
	if (status == HPX_OK)
		status = print_place(out, finding->place);
	if (status == HPX_OK)
		status = hpx_buffer_text(out, "  ");
	if (status == HPX_OK)
		status = print_safely(out, finding->message);
	return status == HPX_OK ? hpx_buffer_byte(out, '\n') : status;
}

static enum hpx_status print_findings(const struct hpx_coverage *coverage, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;
	bool any = false;

	for (size_t i = 0; i < coverage->finding_count && status == HPX_OK; i++)
		if (stands_alone(&coverage->findings[i])) {
			status = print_finding(out, &coverage->findings[i]);
			any = true;
		}
	return status == HPX_OK && any ? hpx_buffer_byte(out, '\n') : status;
}

/* Of each level: how many findings do not count, because they are known or not critical. */
static enum hpx_status print_sum(const struct hpx_coverage *coverage, struct hpx_buffer *out)
{
	size_t known = 0, ignored = 0;

	for (size_t i = 0; i < coverage->finding_count; i++) {
		const struct hpx_coverage_finding *finding = &coverage->findings[i];
		bool error = hpx_finding_rule_level(finding->rule) == HPX_FINDING_ERROR;
		known += error && finding->known;
		ignored += error && !finding->known && finding->ignored;
	}
	enum hpx_status status = hpx_buffer_printf(out, "gaps: %zu", hpx_coverage_gaps(coverage));
	if (status == HPX_OK && known > 0)
		status = hpx_buffer_printf(out, "; in the baseline: %zu", known);
	if (status == HPX_OK && ignored > 0)
		status = hpx_buffer_printf(out, "; not critical: %zu", ignored);
	return status == HPX_OK ? hpx_buffer_byte(out, '\n') : status;
}

enum hpx_status hpx_coverage_print_text(const struct hpx_coverage *coverage, struct hpx_buffer *out)
{
	struct tag_count all = count_all(coverage);
	size_t width = all.tag.len, count;
	struct tag_count *tags = count_tags(coverage, &count);
	enum hpx_status status = tags != NULL ? HPX_OK : HPX_NOMEM;

	for (size_t i = 0; i < count; i++)
		if (tags[i].tag.len > width && tags[i].tag.len <= 40)
			width = tags[i].tag.len;
	for (size_t i = 0; i < count && status == HPX_OK; i++)
		status = print_tag(coverage, &tags[i], width, out);
	if (status == HPX_OK)
		status = print_findings(coverage, out);
	if (status == HPX_OK)
		status = print_bar(out, &all, width);
	if (status == HPX_OK)
		status = print_sum(coverage, out);
	free(tags);
	return status;
}

/* ---- JSON ---- */

static void put_place(struct hpx_json_writer *json, struct hpx_source_place place)
{
	if (place.file.ptr == NULL)
		return;
	hpx_json_put_string(json, "file", place.file);
	hpx_json_put_number(json, "line", place.line);
}

static void put_key(struct hpx_json_writer *json, const struct hpx_declared_key *key)
{
	hpx_json_begin_object(json, "key");
	hpx_json_put_text(json, "where", hpx_key_where_name(key->where));
	if (key->name.len > 0)
		hpx_json_put_string(json, "name", key->name);
	hpx_json_put_bool(json, "required", key->required);
	if (key->bytes_max > 0)
		hpx_json_put_number(json, "max_length", key->bytes_max);
	put_place(json, key->place);
	hpx_json_put_string(json, "reason", key->reason);
	hpx_json_end_object(json);
}

static void put_operation(struct hpx_json_writer *json,
			  const struct hpx_covered_operation *operation)
{
	hpx_json_begin_object(json, NULL);
	hpx_json_put_string(json, "method", operation->method);
	hpx_json_put_string(json, "path", operation->path);
	hpx_json_put_string(json, "tag", operation->tag);
	hpx_json_put_text(json, "class",
			  operation->declared ? hpx_key_class_name(operation->key.class) : "seen");
	hpx_json_put_bool(json, "covered", hpx_coverage_is_covered(operation));
	put_place(json, operation->place);
	if (operation->declared)
		put_key(json, &operation->key);
	if (operation->route != NULL) {
		hpx_json_put_string(json, "route", operation->route->pattern);
		hpx_json_put_bool(json, "guarded", operation->guarded);
	}
	if (operation->traffic.requests > 0) {
		hpx_json_begin_object(json, "traffic");
		hpx_json_put_number(json, "requests", operation->traffic.requests);
		hpx_json_put_number(json, "keyed", operation->traffic.keyed);
		hpx_json_put_number(json, "unkeyed", operation->traffic.unkeyed);
		hpx_json_put_string(json, "example", operation->example);
		hpx_json_end_object(json);
	}
	hpx_json_end_object(json);
}

static void put_finding(struct hpx_json_writer *json, const struct hpx_coverage_finding *finding)
{
	hpx_json_begin_object(json, NULL);
	hpx_json_put_text(json, "rule", hpx_finding_rule_name(finding->rule));
	hpx_json_put_text(json, "level",
			  hpx_finding_level_name(hpx_finding_rule_level(finding->rule)));
	hpx_json_put_string(json, "method", finding->method);
	hpx_json_put_string(json, "path", finding->path);
	put_place(json, finding->place);
	hpx_json_put_string(json, "message", finding->message);
	hpx_json_put_bool(json, "known", finding->known);
	hpx_json_put_bool(json, "critical", !finding->ignored);
	hpx_json_end_object(json);
}

static void put_errors(struct hpx_json_writer *json, const struct hpx_library *library)
{
	hpx_json_begin_array(json, "errors");
	for (size_t i = 0; i < library->error_count; i++) {
		hpx_json_begin_object(json, NULL);
		hpx_json_put_string(json, "file", library->errors[i].path);
		hpx_json_put_number(json, "line", library->errors[i].line);
		hpx_json_put_string(json, "message", library->errors[i].reason);
		hpx_json_end_object(json);
	}
	hpx_json_end_array(json);
}

static void put_counts(struct hpx_json_writer *json, const char *name, const struct tag_count *count)
{
	hpx_json_begin_object(json, name);
	if (name == NULL)
		hpx_json_put_string(json, "tag", count->tag);
	hpx_json_put_number(json, "needing", count->needing);
	hpx_json_put_number(json, "covered", count->covered);
	hpx_json_put_number(json, "safe", count->safe);
	hpx_json_end_object(json);
}

static void put_tags(struct hpx_json_writer *json, const struct hpx_coverage *coverage)
{
	size_t count;
	struct tag_count *tags = count_tags(coverage, &count);

	if (tags == NULL)
		json->status = HPX_NOMEM;
	hpx_json_begin_array(json, "tags");
	for (size_t i = 0; i < count; i++)
		put_counts(json, NULL, &tags[i]);
	hpx_json_end_array(json);
	free(tags);
}

enum hpx_status hpx_coverage_print_json(const struct hpx_coverage *coverage, size_t stale,
					struct hpx_buffer *out)
{
	struct tag_count all = count_all(coverage);
	struct hpx_json_writer json;

	hpx_json_writer_init(&json, out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_number(&json, "gaps", hpx_coverage_gaps(coverage));
	hpx_json_put_number(&json, "stale", stale);
	put_counts(&json, "total", &all);
	put_tags(&json, coverage);
	hpx_json_begin_array(&json, "operations");
	for (size_t i = 0; i < coverage->operation_count; i++)
		put_operation(&json, &coverage->operations[i]);
	hpx_json_end_array(&json);
	hpx_json_begin_array(&json, "findings");
	for (size_t i = 0; i < coverage->finding_count; i++)
		put_finding(&json, &coverage->findings[i]);
	hpx_json_end_array(&json);
	put_errors(&json, &coverage->library);
	hpx_json_end_object(&json);
	return hpx_json_writer_finish(&json);
}

/* ---- to paste, and to keep ---- */

/* A route of hapax has whole segments in braces, with plain names. */
static bool is_route_path(struct hpx_span path)
{
	struct hpx_arena arena;
	struct hpx_route route = { .method = { NULL, 0 } };
	const char *reason;

	hpx_arena_init(&arena, 1 << 16);
	struct hpx_span text = hpx_arena_printf(&arena, "POST %.*s", HPX_SPAN_ARG(path));
	bool good = text.ptr != NULL && hpx_span_index(path, '"') == path.len &&
		    hpx_span_index(path, '\\') == path.len &&
		    hpx_route_parse(text, &arena, &route, &reason) == HPX_OK;
	hpx_arena_done(&arena);
	return good;
}

/* `key_from`, where the description has the key elsewhere than in Idempotency-Key. */
static enum hpx_status print_key_from(struct hpx_buffer *out, const struct hpx_declared_key *key)
{
	bool usual = key->where == HPX_WHERE_HEADER &&
		     hpx_span_ieq(key->name, HPX_SPAN("Idempotency-Key"));
	bool pointer = key->name.len > 0 && key->name.ptr[0] == '/';

	if (key->class > HPX_CLASS_BODY || usual || (key->where == HPX_WHERE_BODY && !pointer))
		return HPX_OK;
	enum hpx_status status =
		hpx_buffer_printf(out, "    key_from: [{%s: \"", hpx_key_where_name(key->where));
	if (status == HPX_OK)
		status = print_safely(out, key->name);
	return status == HPX_OK ? hpx_buffer_text(out, "\"}]\n") : status;
}

static enum hpx_status print_route_entry(struct hpx_buffer *out,
					 const struct hpx_covered_operation *operation)
{
	const struct hpx_declared_key *key = &operation->key;
	bool good = is_route_path(operation->path);
	enum hpx_status status = hpx_buffer_printf(out, "%s - match: \"%.*s ", good ? " " : "  #",
						   HPX_SPAN_ARG(operation->method));

	if (status == HPX_OK)
		status = print_safely(out, operation->path);
	if (status == HPX_OK)
		status = hpx_buffer_text(out, "\"\n");
	if (status == HPX_OK && !good)
		return hpx_buffer_text(out, "  #   a route has {x} only as a whole segment\n");
	if (status == HPX_OK)
		status = hpx_buffer_printf(out, "    key: %s\n",
					   key->class == HPX_CLASS_REQUIRED || key->required ? "required" :
											       "optional");
	if (status == HPX_OK)
		status = print_key_from(out, key);
	return status;
}

enum hpx_status hpx_coverage_print_routes(const struct hpx_coverage *coverage,
					  struct hpx_buffer *out)
{
	enum hpx_status status = hpx_buffer_text(
		out, "# `required` where the description requires a key; `optional` elsewhere,\n"
		     "# until every client sends one.\nroutes:\n");

	for (size_t i = 0; i < coverage->operation_count && status == HPX_OK; i++)
		if (hpx_coverage_needs_key(&coverage->operations[i]))
			status = print_route_entry(out, &coverage->operations[i]);
	return status;
}

static bool stands_before(const struct hpx_coverage *coverage, size_t at)
{
	const struct hpx_coverage_finding *finding = &coverage->findings[at];

	for (size_t i = 0; i < at; i++)
		if (coverage->findings[i].rule == finding->rule &&
		    hpx_span_eq(coverage->findings[i].path, finding->path) &&
		    hpx_span_eq(coverage->findings[i].method, finding->method))
			return true;
	return false;
}

enum hpx_status hpx_coverage_print_baseline(const struct hpx_coverage *coverage,
					    struct hpx_buffer *out)
{
	enum hpx_status status = hpx_buffer_text(
		out, "# Gaps that `hapax coverage --baseline` accepts. The list may only become "
		     "shorter.\n");

	for (size_t i = 0; i < coverage->finding_count && status == HPX_OK; i++) {
		const struct hpx_coverage_finding *finding = &coverage->findings[i];
		if (hpx_finding_rule_level(finding->rule) == HPX_FINDING_ERROR &&
		    !finding->ignored && !stands_before(coverage, i))
			status = hpx_buffer_printf(out, "%.*s %.*s %s\n", HPX_SPAN_ARG(finding->method),
						   HPX_SPAN_ARG(finding->path),
						   hpx_finding_rule_name(finding->rule));
	}
	return status;
}
