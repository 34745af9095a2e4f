/* `hapax check`: prints the mistakes of a configuration and what it does. It also prints
 * the reference and the sample, which are made from the table of options. */
#include <stdlib.h>

#include "base/status.h"
#include "cli/cli.h"
#include "config/option_parse.h"
#include "coverage/coverage.h"
#include "gateway/tenant.h"
#include "http/problem.h"

#define OUTPUT_BYTES_MAX ((size_t)4 << 20)

/* The options of a route that the summary shows beside its pattern. */
static const char *const columns[] = { "key", "scope", "server_error", "concurrent",
				       "deliver", "retention" };

#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))

static void print_column(const struct hpx_route *route, size_t column,
			 char out[HPX_UNIT_SIZE])
{
	char path[HPX_OPTION_PATH_SIZE];

	snprintf(path, sizeof(path), "defaults.%s", columns[column]);
	const struct hpx_option *option = hpx_option_find(&hpx_config_options, hpx_span_of(path));
	HPX_ASSERT(option != NULL);
	hpx_value_print(option, route, out);
}

/* The n-th route, the defaults last, as requests are matched. */
static const struct hpx_route *route_at(const struct hpx_settings *settings, size_t n)
{
	HPX_ASSERT(n <= settings->route_count);
	return n < settings->route_count ? &settings->routes[n] : &settings->fallback;
}

/* `observe: true` at the top holds for every route, as in the gateway. */
static bool is_observed(const struct hpx_settings *settings, const struct hpx_route *route)
{
	return settings->observe || route->observe;
}

/* The widths of a table of routes, so that every column is as wide as its longest text. */
struct route_columns {
	int route;
	int column[COLUMN_COUNT];
};

static const char observed_note[] = "  observe: guards nothing";

static void widen(int *width, size_t len)
{
	if ((int)len > *width)
		*width = (int)len;
}

/* Returns how many terminal columns the table takes. */
static size_t measure(const struct hpx_settings *settings, struct route_columns *table)
{
	size_t whole, note = 0;
	char text[HPX_UNIT_SIZE];

	*table = (struct route_columns){ .route = (int)strlen("defaults") };
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		widen(&table->column[i], strlen(columns[i]));
	for (size_t n = 0; n <= settings->route_count; n++) {
		const struct hpx_route *route = route_at(settings, n);

		widen(&table->route, route->pattern.len);
		for (size_t i = 0; i < COLUMN_COUNT; i++) {
			print_column(route, i, text);
			widen(&table->column[i], strlen(text));
		}
		if (is_observed(settings, route))
			note = sizeof(observed_note) - 1;
	}
	whole = 2 + (size_t)table->route + note;
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		whole += 2 + (size_t)table->column[i];
	return whole;
}

/* A route that only observes says so at the end of its line, because the columns before
 * do not hold there. */
static enum hpx_status print_route(const struct hpx_route *route, bool observed,
				   const struct route_columns *table, struct hpx_buffer *out)
{
	enum hpx_status status =
		hpx_buffer_printf(out, "  %-*.*s", table->route, HPX_SPAN_ARG(route->pattern));
	char text[HPX_UNIT_SIZE];

	for (size_t i = 0; i < COLUMN_COUNT && status == HPX_OK; i++) {
		bool last = i + 1 == COLUMN_COUNT && !observed;

		print_column(route, i, text);
		status = hpx_buffer_printf(out, "  %-*s", last ? 0 : table->column[i], text);
	}
	if (status == HPX_OK && observed)
		status = hpx_buffer_text(out, observed_note);
	return status == HPX_OK ? hpx_buffer_byte(out, '\n') : status;
}

static enum hpx_status print_table(const struct hpx_settings *settings, const struct route_columns *table,
				   struct hpx_buffer *out)
{
	enum hpx_status status = hpx_buffer_printf(out, "ok\n  %-*s", table->route, "route");

	for (size_t i = 0; i < COLUMN_COUNT && status == HPX_OK; i++)
		status = i + 1 < COLUMN_COUNT ?
				 hpx_buffer_printf(out, "  %-*s", table->column[i], columns[i]) :
				 hpx_buffer_printf(out, "  %s\n", columns[i]);
	for (size_t n = 0; n <= settings->route_count && status == HPX_OK; n++) {
		const struct hpx_route *route = route_at(settings, n);
		status = print_route(route, is_observed(settings, route), table, out);
	}
	return status;
}

/* For a terminal that is narrower than the table: "POST /payments: key required, scope
 * path, …", which can be broken between words. */
static enum hpx_status print_list(const struct hpx_settings *settings, struct hpx_buffer *out)
{
	enum hpx_status status = hpx_buffer_text(out, "ok\n");
	char text[HPX_UNIT_SIZE];

	for (size_t n = 0; n <= settings->route_count && status == HPX_OK; n++) {
		const struct hpx_route *route = route_at(settings, n);

		status = hpx_buffer_printf(out, "  %.*s:", HPX_SPAN_ARG(route->pattern));
		for (size_t i = 0; i < COLUMN_COUNT && status == HPX_OK; i++) {
			print_column(route, i, text);
			status = hpx_buffer_printf(out, "%s %s %s", i > 0 ? "," : "", columns[i], text);
		}
		if (status == HPX_OK && is_observed(settings, route))
			status = hpx_buffer_printf(out, ";%s", observed_note + 1);
		if (status == HPX_OK)
			status = hpx_buffer_byte(out, '\n');
	}
	return status;
}

/* `width` is the terminal's; 0: the table has all the room it wants. */
static enum hpx_status print_routes(const struct hpx_settings *settings, size_t width,
				    struct hpx_buffer *out)
{
	struct route_columns table;

	if (measure(settings, &table) > width && width > 0)
		return print_list(settings, out);
	return print_table(settings, &table, out);
}

static enum hpx_status print_tenant(const struct hpx_settings *settings, struct hpx_buffer *out)
{
	enum hpx_status status = hpx_buffer_text(out, "  tenant: ");

	if (status == HPX_OK)
		status = hpx_tenant_describe(settings, out);
	return status == HPX_OK ? hpx_buffer_byte(out, '\n') : status;
}

/* External services. A URL has no credential in it, and no secret is shown. */
static enum hpx_status print_services(const struct hpx_settings *settings,
				      struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;
	char honours[HPX_UNIT_SIZE];

	for (size_t i = 0; i < settings->target_count && status == HPX_OK; i++) {
		const struct hpx_job_target *target = &settings->targets[i];
		hpx_duration_print((uint64_t)target->honours_keys_ms, honours);
		status = hpx_buffer_printf(out, "  target %.*s: %s, honours_keys %s\n",
					   HPX_SPAN_ARG(target->name), target->caller.url,
					   honours);
	}
	for (size_t i = 0; i < settings->webhook_count && status == HPX_OK; i++) {
		const struct hpx_webhook *webhook = &settings->webhooks[i];
		status = hpx_buffer_printf(
			out, "  webhook %.*s: POST /.hapax/webhooks/%.*s, %s, secrets: %zu\n",
			HPX_SPAN_ARG(webhook->name), HPX_SPAN_ARG(webhook->name),
			hpx_signature_scheme_name(webhook->signature.scheme),
			webhook->signature.key_count);
	}
	return status;
}

static void json_remark(struct hpx_json_writer *json, const struct hpx_config_remark *remark)
{
	hpx_json_begin_object(json, NULL);
	hpx_json_put_text(json, "weight", hpx_config_severity_name(remark->severity));
	if (remark->line > 0) {
		hpx_json_put_number(json, "line", remark->line);
		hpx_json_put_number(json, "column", remark->column);
	}
	hpx_json_put_string(json, "option", remark->option);
	hpx_json_put_string(json, "message", remark->message);
	hpx_json_end_object(json);
}

static void json_route(struct hpx_json_writer *json, const struct hpx_route *route, bool observed)
{
	char text[HPX_UNIT_SIZE];

	hpx_json_begin_object(json, NULL);
	hpx_json_put_string(json, "match", route->pattern);
	for (size_t i = 0; i < COLUMN_COUNT; i++) {
		print_column(route, i, text);
		hpx_json_put_text(json, columns[i], text);
	}
	hpx_json_put_bool(json, "observe", observed);
	hpx_json_end_object(json);
}

static void json_tenant(struct hpx_json_writer *json, const struct hpx_settings *settings)
{
	struct hpx_buffer text;

	hpx_buffer_init(&text, OUTPUT_BYTES_MAX);
	enum hpx_status status = hpx_tenant_describe(settings, &text);
	hpx_json_put_string(json, "tenant", hpx_buffer_span(&text));
	if (json->status == HPX_OK)
		json->status = status;
	hpx_buffer_done(&text);
}

static void json_target(struct hpx_json_writer *json, const struct hpx_job_target *target)
{
	char honours[HPX_UNIT_SIZE];

	hpx_duration_print((uint64_t)target->honours_keys_ms, honours);
	hpx_json_begin_object(json, NULL);
	hpx_json_put_string(json, "name", target->name);
	hpx_json_put_text(json, "url", target->caller.url);
	hpx_json_put_text(json, "honours_keys", honours);
	hpx_json_end_object(json);
}

static void json_webhook(struct hpx_json_writer *json, const struct hpx_webhook *webhook)
{
	hpx_json_begin_object(json, NULL);
	hpx_json_put_string(json, "name", webhook->name);
	hpx_json_put_text(json, "scheme", hpx_signature_scheme_name(webhook->signature.scheme));
	hpx_json_put_number(json, "secrets", webhook->signature.key_count);
	hpx_json_end_object(json);
}

/* `settings` is NULL where the configuration has a mistake: its lists are empty then. */
static enum hpx_status print_json(const struct hpx_config_report *report,
				  const struct hpx_settings *settings, struct hpx_buffer *out)
{
	struct hpx_json_writer json;

	hpx_json_writer_init(&json, out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_bool(&json, "ok", settings != NULL);
	hpx_json_begin_array(&json, "remarks");
	for (size_t i = 0; i < report->count; i++)
		json_remark(&json, &report->remarks[i]);
	hpx_json_end_array(&json);
	hpx_json_put_number(&json, "left_out", report->left_out);
	if (settings != NULL)
		json_tenant(&json, settings);
	hpx_json_begin_array(&json, "routes");
	for (size_t n = 0; settings != NULL && n <= settings->route_count; n++)
		json_route(&json, route_at(settings, n),
			   is_observed(settings, route_at(settings, n)));
	hpx_json_end_array(&json);
	hpx_json_begin_array(&json, "targets");
	for (size_t i = 0; settings != NULL && i < settings->target_count; i++)
		json_target(&json, &settings->targets[i]);
	hpx_json_end_array(&json);
	hpx_json_begin_array(&json, "webhooks");
	for (size_t i = 0; settings != NULL && i < settings->webhook_count; i++)
		json_webhook(&json, &settings->webhooks[i]);
	hpx_json_end_array(&json);
	hpx_json_end_object(&json);
	return hpx_json_writer_finish(&json);
}

/* ---- --openapi ---- */

/* Whether a finding is about description and configuration; the others are
 * `hapax coverage`'s. */
static bool is_about_routes(enum hpx_finding_rule rule)
{
	return rule == HPX_RULE_KEY_IGNORED || rule == HPX_RULE_GUARD_UNDOCUMENTED ||
	       rule == HPX_RULE_KEY_LIMIT_DIFFERS;
}

static void remark_finding(const struct hpx_coverage_finding *finding,
			   struct hpx_config_report *report)
{
	/* A line is one of the configuration; another file's stands in the text. */
	bool here = finding->rule == HPX_RULE_KEY_IGNORED;

	hpx_config_remark(report, HPX_CONFIG_WARNING, here ? finding->place.line : 0, here ? 1 : 0,
			  hpx_span_of(hpx_finding_rule_name(finding->rule)), "%.*s %.*s (%.*s:%u): %.*s",
			  HPX_SPAN_ARG(finding->method), HPX_SPAN_ARG(finding->path),
			  HPX_SPAN_ARG(finding->place.file), finding->place.line,
			  HPX_SPAN_ARG(finding->message));
}

/* Adds what the description and the settings say differently. A description that cannot be
 * read is a mistake. */
static enum hpx_status compare_openapi(const char *file, const char *config,
				       const struct hpx_settings *settings,
				       struct hpx_config_report *report)
{
	struct hpx_coverage *coverage = malloc(sizeof(*coverage));

	if (coverage == NULL)
		return HPX_NOMEM;
	hpx_coverage_init(coverage);
	coverage->settings = settings;
	coverage->config_path = hpx_span_of(config != NULL ? config : "the configuration");
	const struct hpx_document *document = hpx_library_open(&coverage->library, hpx_span_of(file));
	if (document != NULL)
		hpx_coverage_read_api(coverage, document);
	hpx_coverage_judge(coverage);
	for (size_t i = 0; i < coverage->finding_count; i++)
		if (is_about_routes(coverage->findings[i].rule))
			remark_finding(&coverage->findings[i], report);
	for (size_t i = 0; i < coverage->library.error_count; i++)
		hpx_config_remark(report, HPX_CONFIG_MISTAKE, 0, 0, HPX_SPAN("--openapi"),
				  "%.*s:%u: %.*s", HPX_SPAN_ARG(coverage->library.errors[i].path),
				  coverage->library.errors[i].line,
				  HPX_SPAN_ARG(coverage->library.errors[i].reason));
	enum hpx_status status = coverage->library.error_count > 0 ? HPX_INVALID : HPX_OK;
	hpx_coverage_done(coverage);
	free(coverage);
	return status;
}

static int check(const struct hpx_config_flags *flags, const char *openapi, bool json,
		 struct hpx_buffer *out)
{
	struct hpx_config_report report;
	struct hpx_settings *settings = NULL;
	size_t width = hpx_cli_columns();

	hpx_config_report_init(&report);
	enum hpx_status loaded = hpx_config_load(flags, &report, &settings);
	if (loaded == HPX_OK)
		hpx_config_warn_server_error(settings, true, &report);
	if (loaded == HPX_OK) {
		loaded = hpx_cli_check_tls(&settings, &report);
		hpx_config_report_sort(&report);
	}
	if (loaded == HPX_OK && openapi != NULL) {
		loaded = compare_openapi(openapi, hpx_config_path(flags), settings, &report);
		hpx_config_report_sort(&report);
		if (loaded != HPX_OK) {
			hpx_settings_unref(settings);
			settings = NULL;
		}
	}
	enum hpx_status status = loaded == HPX_INVALID ? HPX_OK : loaded;
	if (status == HPX_OK && json)
		status = print_json(&report, settings, out);
	else if (status == HPX_OK)
		status = hpx_config_report_print(&report, hpx_config_path(flags), out);
	if (status == HPX_OK && !json && settings != NULL)
		status = print_routes(settings, width, out);
	if (status == HPX_OK && !json && settings != NULL)
		status = print_tenant(settings, out);
	if (status == HPX_OK && !json && settings != NULL)
		status = print_services(settings, out);
	hpx_settings_unref(settings);
	hpx_config_report_done(&report);
	if (status != HPX_OK)
		fprintf(stderr, "hapax check: %s\n", hpx_status_text(status));
	int written = hpx_cli_write_wrapped(hpx_buffer_span(out), json ? 0 : width);
	return status == HPX_OK && loaded == HPX_OK ? written : HPX_EXIT_FAILED;
}

static int print_generated(enum hpx_status (*print)(struct hpx_buffer *out),
			   struct hpx_buffer *out)
{
	enum hpx_status status = print(out);

	if (status != HPX_OK) {
		fprintf(stderr, "hapax check: %s\n", hpx_status_text(status));
		return HPX_EXIT_FAILED;
	}
	return hpx_cli_write(hpx_buffer_span(out), stdout);
}

int hpx_cli_check(int argc, char **argv)
{
	const char *json = NULL;
	const char *reference = NULL;
	const char *sample = NULL;
	const char *problems = NULL;
	const char *openapi = NULL;
	struct hpx_config_flags config;
	struct hpx_cli_flag flags[HPX_CONFIG_FLAG_MAX + 5];
	size_t count = hpx_cli_config_flags(&config, flags);
	struct hpx_buffer out;
	int rest;
	int exit_code;

	flags[count++] = (struct hpx_cli_flag){ "json", NULL, "Prints JSON instead of text.", &json };
	flags[count++] = (struct hpx_cli_flag){
		"openapi", "FILE", "Also compares the routes with this description of the API.", &openapi
	};
	flags[count++] = (struct hpx_cli_flag){
		"print-sample", NULL,
		"Prints a configuration with every option, explained.", &sample
	};
	flags[count++] =
		(struct hpx_cli_flag){ "print-reference", NULL,
				       "Prints the reference of all options.", &reference };
	flags[count++] = (struct hpx_cli_flag){
		"print-problems", NULL, "Prints what a client should do about each of hapax's answers.", &problems
	};
	const struct hpx_cli_usage usage = {
		.synopsis = "hapax check --config FILE [--json]",
		.about = "Reads a configuration as `hapax serve` would. Prints every mistake and warning\n"
			 "with its line and column, and what each route does. Starts nothing. The exit\n"
			 "code is 1 if there is a mistake.",
		.flags = flags,
		.flag_count = count,
	};
	if (!hpx_cli_read(&usage, argc, argv, &rest, &exit_code))
		return exit_code;
	hpx_buffer_init(&out, OUTPUT_BYTES_MAX);
	if (reference != NULL)
		exit_code = print_generated(hpx_config_print_reference, &out);
	else if (problems != NULL)
		exit_code = print_generated(hpx_problem_print_reference, &out);
	else if (sample != NULL)
		exit_code = print_generated(hpx_config_print_sample, &out);
	else
		exit_code = check(&config, openapi, json != NULL, &out);
	hpx_buffer_done(&out);
	return exit_code;
}
