/* What follows from what is given: defaults, what a named request takes from
 * the main one, and the rules between values. */
#include "core/json_tree.h"
#include "verify/reading.h"
#include "verify/template.h"

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

enum hpx_status hpx_spec_complete(struct hpx_spec_reading *reading)
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
