/* `hapax coverage`: the flags, the files, and which report. What is read and judged is
 * src/coverage/. */
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "cli/cli.h"
#include "coverage/coverage.h"
#include "coverage/traffic.h"

#define OUTPUT_BYTES_MAX ((size_t)512 << 20)
#define BASELINE_BYTES_MAX ((size_t)16 << 20)
#define FILES_MAX 1000
#define ADMIN_BYTES_MAX ((size_t)32 << 20)

struct coverage_flags {
	const char *config;
	const char *admin;
	const char *traffic[HPX_CLI_REPEAT_MAX + 1];
	const char *templates[HPX_CLI_REPEAT_MAX + 1];
	const char *baseline;
	const char *critical[HPX_CLI_REPEAT_MAX + 1];
	const char *json;
	const char *sarif;
	const char *routes;
	const char *print_baseline;
};

static void complain(const char *file, unsigned line, const char *reason)
{
	if (line > 0)
		fprintf(stderr, "hapax coverage: %s:%u: %s\n", file, line, reason);
	else
		fprintf(stderr, "hapax coverage: %s: %s\n", file, reason);
}

static void read_files(struct hpx_coverage *coverage, char **files, int count)
{
	for (int i = 0; i < count; i++) {
		const struct hpx_document *document =
			hpx_library_open(&coverage->library, hpx_span_of(files[i]));
		if (document != NULL)
			hpx_coverage_read_api(coverage, document);
	}
}

static size_t count_values(const char *const *values)
{
	size_t count = 0;

	while (values[count] != NULL)
		count++;
	return count;
}

/* ---- a running gateway ---- */

static void read_admin(struct hpx_traffic_index *index, const char *admin)
{
	struct hpx_library *library = &hpx_traffic_coverage(index)->library;
	struct hpx_buffer page;

	hpx_buffer_init(&page, ADMIN_BYTES_MAX);
	const char *problem = hpx_cli_fetch(admin, "/api/v1/coverage", &page);
	if (problem == NULL && hpx_traffic_read_gateway(index, hpx_buffer_span(&page)) != HPX_OK)
		problem = "is no admin listener of hapax serve";
	if (problem != NULL)
		hpx_library_error(library, hpx_span_of(admin), 0, problem);
	hpx_buffer_done(&page);
}

static void read_traffic(struct hpx_coverage *coverage, const struct coverage_flags *flags)
{
	struct hpx_traffic_index *index;

	if (flags->traffic[0] == NULL && flags->admin == NULL)
		return;
	index = hpx_traffic_index_new(coverage);
	if (index == NULL) {
		coverage->full = true;
		return;
	}
	for (size_t i = 0; flags->traffic[i] != NULL; i++)
		hpx_traffic_read_file(index, hpx_span_of(flags->traffic[i]));
	if (flags->admin != NULL)
		read_admin(index, flags->admin);
	hpx_traffic_index_free(index);
}

/* NULL, after every remark: the configuration cannot be read. */
static struct hpx_settings *load_config(const char *path)
{
	struct hpx_config_flags flags = { .without_secrets = true };

	hpx_config_flags_set(&flags, "config", path);
	return hpx_cli_load(&flags);
}

static void print_errors(const struct hpx_library *library)
{
	for (size_t i = 0; i < library->error_count; i++)
		complain(library->errors[i].path.ptr, library->errors[i].line,
			 library->errors[i].reason.ptr);
}

/* False, after a message: the baseline cannot be read. */
static bool mark_baseline(struct hpx_coverage *coverage, const char *path, size_t *ret_stale)
{
	struct hpx_buffer text, stale;
	unsigned line = 0;

	hpx_buffer_init(&stale, OUTPUT_BYTES_MAX);
	enum hpx_status status = hpx_library_load(hpx_span_of(path), BASELINE_BYTES_MAX, &text);
	if (status == HPX_OK)
		status = hpx_coverage_mark_known(coverage, hpx_buffer_span(&text), &stale, ret_stale,
						 &line);
	if (status == HPX_INVALID)
		complain(path, line, "is no entry: METHOD PATH RULE, as --print-baseline writes it");
	else if (status != HPX_OK)
		complain(path, 0, hpx_status_text(status));
	if (stale.len > 0)
		fprintf(stderr,
			"hapax coverage: %s lists gaps that are closed; remove these "
			"lines:\n%.*s",
			path,
			HPX_SPAN_ARG(hpx_buffer_span(&stale)));
	hpx_buffer_done(&text);
	hpx_buffer_done(&stale);
	return status == HPX_OK;
}

static enum hpx_status print_report(const struct hpx_coverage *coverage,
				    const struct coverage_flags *flags, size_t stale,
				    struct hpx_buffer *out)
{
	if (flags->print_baseline != NULL)
		return hpx_coverage_print_baseline(coverage, out);
	if (flags->routes != NULL)
		return hpx_coverage_print_routes(coverage, out);
	if (flags->sarif != NULL)
		return hpx_coverage_print_sarif(coverage, out);
	if (flags->json != NULL)
		return hpx_coverage_print_json(coverage, stale, out);
	return hpx_coverage_print_text(coverage, out);
}

static int report(struct hpx_coverage *coverage, const struct coverage_flags *flags)
{
	struct hpx_buffer out;
	size_t stale = 0;
	bool readable = true;

	hpx_coverage_judge(coverage);
	hpx_coverage_mark_critical(coverage, flags->critical);
	if (flags->baseline != NULL)
		readable = mark_baseline(coverage, flags->baseline, &stale);
	hpx_buffer_init(&out, OUTPUT_BYTES_MAX);
	enum hpx_status status = print_report(coverage, flags, stale, &out);
	int written = HPX_EXIT_USAGE;
	/* "0 of 0, 100 %" would say that all is well where nothing could be read. */
	bool empty = coverage->operation_count == 0 && coverage->library.error_count > 0 &&
		     flags->json == NULL && flags->sarif == NULL;
	if (status == HPX_OK)
		written = empty ? HPX_EXIT_OK : hpx_cli_write(hpx_buffer_span(&out), stdout);
	else
		fprintf(stderr, "hapax coverage: %s\n", hpx_status_text(status));
	hpx_buffer_done(&out);
	print_errors(&coverage->library);
	if (coverage->full)
		fprintf(stderr, "hapax coverage: a limit was reached; the report is "
				"incomplete\n");
	if (written != HPX_EXIT_OK || !readable || coverage->full || coverage->library.error_count > 0)
		return HPX_EXIT_USAGE;
	/* What is printed to be kept or pasted is no judgement. */
	if (flags->print_baseline != NULL || flags->routes != NULL)
		return HPX_EXIT_OK;
	return hpx_coverage_gaps(coverage) + stale > 0 ? HPX_EXIT_FAILED : HPX_EXIT_OK;
}

static void set_templates(struct hpx_coverage *coverage, const struct coverage_flags *flags,
			  struct hpx_span spans[HPX_CLI_REPEAT_MAX])
{
	coverage->template_count = count_values(flags->templates);
	for (size_t i = 0; i < coverage->template_count; i++)
		spans[i] = hpx_span_of(flags->templates[i]);
	coverage->templates = spans;
}

static int run_with(const struct coverage_flags *flags, const struct hpx_settings *settings,
		    char **files, int count)
{
	struct hpx_coverage *coverage = malloc(sizeof(*coverage));
	struct hpx_span templates[HPX_CLI_REPEAT_MAX];

	if (coverage == NULL) {
		fprintf(stderr, "hapax coverage: out of memory\n");
		return HPX_EXIT_USAGE;
	}
	hpx_coverage_init(coverage);
	coverage->settings = settings;
	coverage->config_path = hpx_span_of(flags->config);
	set_templates(coverage, flags, templates);
	read_files(coverage, files, count);
	read_traffic(coverage, flags);
	int code = report(coverage, flags);
	hpx_coverage_done(coverage);
	free(coverage);
	return code;
}

static int run(const struct coverage_flags *flags, char **files, int count)
{
	struct hpx_settings *settings = NULL;

	if (flags->config != NULL) {
		settings = load_config(flags->config);
		if (settings == NULL)
			return HPX_EXIT_USAGE;
	}
	int code = run_with(flags, settings, files, count);
	hpx_settings_unref(settings);
	return code;
}

int hpx_cli_coverage(int argc, char **argv)
{
	struct coverage_flags given = { .baseline = NULL };
	const struct hpx_cli_flag flags[] = {
		{ "config", "FILE", "Compares with this configuration of hapax.", &given.config },
		{ "admin", "URL", "Counts what a running gateway has seen, from its admin listener.",
		  &given.admin },
		{ "traffic", "FILE...",
		  "Counts the requests of a HAR file (.har) or an access log: the combined format, "
		  "or JSON lines. May be repeated.",
		  given.traffic },
		{ "template", "PATH...",
		  "Corrects the paths of traffic: \"/shops/{shop}/orders\". May be repeated.",
		  given.templates },
		{ "critical", "PATTERN...",
		  "Only operations that match fail, like \"POST /payments*\" or \"/v1/refunds\"; "
		  "* stands for anything. May be repeated.",
		  given.critical },
		{ "baseline", "FILE",
		  "Gaps that are listed there do not fail; entries whose gap is closed do.",
		  &given.baseline },
		{ "print-baseline", NULL, "Prints the gaps as a baseline.", &given.print_baseline },
		{ "json", NULL, "Prints JSON instead of text.", &given.json },
		{ "sarif", NULL, "Prints SARIF 2.1.0, which code hosts show at the line.",
		  &given.sarif },
		{ "routes", NULL, "Prints `routes:` to paste into the configuration.",
		  &given.routes },
	};
	const struct hpx_cli_usage usage = {
		.synopsis = "hapax coverage [FILES...] [--config FILE] [--traffic FILE...]",
		.about = "Says for every state-changing operation of an API whether a retry can be told\n"
			 "from a new request, and how it knows: from OpenAPI 3 and Swagger 2.0, in JSON\n"
			 "or YAML, from hapax's configuration, and from traffic. The exit code is 1 if\n"
			 "there are gaps, 2 if a file cannot be read.",
		.flags = flags,
		.flag_count = sizeof(flags) / sizeof(flags[0]),
		.operands_max = FILES_MAX,
	};
	int rest;
	int exit_code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &exit_code))
		return exit_code;
	if (rest == argc && given.traffic[0] == NULL && given.admin == NULL) {
		fprintf(stderr, "hapax coverage: nothing to read: give the description of an API, "
				"--traffic or --admin\n");
		return HPX_EXIT_USAGE;
	}
	return run(&given, argv + rest, argc - rest);
}
