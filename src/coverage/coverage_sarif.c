/* SARIF 2.1.0, which code hosts show at the line of a file. Known findings are suppressed,
 * so that a host shows only new ones. */
#include "base/json_writer.h"
#include "base/status.h"
#include "coverage/coverage.h"

static void put_rules(struct hpx_json_writer *json)
{
	hpx_json_begin_array(json, "rules");
	for (int i = 0; i < HPX_RULE_COUNT; i++) {
		enum hpx_finding_rule rule = (enum hpx_finding_rule)i;
		hpx_json_begin_object(json, NULL);
		hpx_json_put_text(json, "id", hpx_finding_rule_name(rule));
		hpx_json_begin_object(json, "shortDescription");
		hpx_json_put_text(json, "text", hpx_finding_rule_title(rule));
		hpx_json_end_object(json);
		hpx_json_begin_object(json, "defaultConfiguration");
		hpx_json_put_text(json, "level", hpx_finding_level_name(hpx_finding_rule_level(rule)));
		hpx_json_end_object(json);
		hpx_json_end_object(json);
	}
	hpx_json_end_array(json);
}

static void put_tool(struct hpx_json_writer *json)
{
	hpx_json_begin_object(json, "tool");
	hpx_json_begin_object(json, "driver");
	hpx_json_put_text(json, "name", "hapax coverage");
	hpx_json_put_text(json, "version", HPX_VERSION);
	put_rules(json);
	hpx_json_end_object(json);
	hpx_json_end_object(json);
}

/* A file's path as a relative URI reference; every byte outside the plain ones is
 * escaped. */
static void put_uri(struct hpx_json_writer *json, struct hpx_span path)
{
	struct hpx_buffer uri;
	enum hpx_status status = HPX_OK;

	hpx_buffer_init(&uri, 3 * path.len + 1);
	for (size_t i = 0; i < path.len && status == HPX_OK; i++) {
		char c = path.ptr[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || (c != '\0' && strchr("/._-~", c) != NULL);
		status = plain ? hpx_buffer_byte(&uri, c) :
				 hpx_buffer_printf(&uri, "%%%02X", (unsigned char)c);
	}
	if (status != HPX_OK)
		json->status = status;
	hpx_json_put_string(json, "uri", hpx_buffer_span(&uri));
	hpx_buffer_done(&uri);
}

static void put_location(struct hpx_json_writer *json, struct hpx_source_place place)
{
	hpx_json_begin_array(json, "locations");
	hpx_json_begin_object(json, NULL);
	hpx_json_begin_object(json, "physicalLocation");
	hpx_json_begin_object(json, "artifactLocation");
	put_uri(json, place.file);
	hpx_json_end_object(json);
	if (place.line > 0) {
		hpx_json_begin_object(json, "region");
		hpx_json_put_number(json, "startLine", place.line);
		hpx_json_end_object(json);
	}
	hpx_json_end_object(json);
	hpx_json_end_object(json);
	hpx_json_end_array(json);
}

static void put_message(struct hpx_json_writer *json, const struct hpx_coverage_finding *finding)
{
	struct hpx_buffer text;

	hpx_buffer_init(&text, (size_t)1 << 20);
	enum hpx_status status =
		hpx_buffer_printf(&text, "%.*s %.*s: %.*s", HPX_SPAN_ARG(finding->method),
				  HPX_SPAN_ARG(finding->path), HPX_SPAN_ARG(finding->message));
	if (status != HPX_OK)
		json->status = status;
	hpx_json_begin_object(json, "message");
	hpx_json_put_string(json, "text", hpx_buffer_span(&text));
	hpx_json_end_object(json);
	hpx_buffer_done(&text);
}

static void put_result(struct hpx_json_writer *json, const struct hpx_coverage_finding *finding)
{
	hpx_json_begin_object(json, NULL);
	hpx_json_put_text(json, "ruleId", hpx_finding_rule_name(finding->rule));
	hpx_json_put_number(json, "ruleIndex", finding->rule);
	hpx_json_put_text(json, "level",
			  finding->ignored ?
				  "note" :
				  hpx_finding_level_name(hpx_finding_rule_level(finding->rule)));
	put_message(json, finding);
	if (finding->place.file.ptr != NULL)
		put_location(json, finding->place);
	if (finding->known) {
		hpx_json_begin_array(json, "suppressions");
		hpx_json_begin_object(json, NULL);
		hpx_json_put_text(json, "kind", "external");
		hpx_json_end_object(json);
		hpx_json_end_array(json);
	}
	hpx_json_end_object(json);
}

enum hpx_status hpx_coverage_print_sarif(const struct hpx_coverage *coverage,
					 struct hpx_buffer *out)
{
	struct hpx_json_writer json;

	hpx_json_writer_init(&json, out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_text(&json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
	hpx_json_put_text(&json, "version", "2.1.0");
	hpx_json_begin_array(&json, "runs");
	hpx_json_begin_object(&json, NULL);
	put_tool(&json);
	hpx_json_begin_array(&json, "results");
	for (size_t i = 0; i < coverage->finding_count; i++)
		put_result(&json, &coverage->findings[i]);
	hpx_json_end_array(&json);
	hpx_json_end_object(&json);
	hpx_json_end_array(&json);
	hpx_json_end_object(&json);
	HPX_ASSERT(json.depth == 0);
	return hpx_json_writer_finish(&json);
}
