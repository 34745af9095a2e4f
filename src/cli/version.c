/* `hapax version`: the version, the libraries, the schemas and the build; and, in a build for
 * crash tests, the steps where the program can be made to die. */
#include "cli/cli.h"

#include <curl/curl.h>
#include <gnu/libc-version.h>
#include <jansson.h>
#include <libpq-fe.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <uv.h>
#include <yaml.h>
#include <zlib.h>

#include "base/crash_point.h"
#include "client/journal.h"
#include "store/store.h"

/* ---- what this program is made of ---- */

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED "address"
#elif defined(__SANITIZE_THREAD__)
#define SANITIZED "thread"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED "address"
#elif __has_feature(thread_sanitizer)
#define SANITIZED "thread"
#endif
#endif
#ifndef SANITIZED
#define SANITIZED "no"
#endif

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

#ifdef __OPTIMIZE__
#define OPTIMIZED "yes"
#else
#define OPTIMIZED "no"
#endif

#if defined(__SSP_ALL__)
#define STACK_PROTECTOR "all"
#elif defined(__SSP_STRONG__)
#define STACK_PROTECTOR "strong"
#elif defined(__SSP__)
#define STACK_PROTECTOR "yes"
#else
#define STACK_PROTECTOR "no"
#endif

/* A macro's value as text. */
#define QUOTE(word) #word
#define TEXT_OF(macro) QUOTE(macro)
#ifdef _FORTIFY_SOURCE
#define FORTIFIED TEXT_OF(_FORTIFY_SOURCE)
#else
#define FORTIFIED "no"
#endif

#ifdef __PIE__
#define POSITION_INDEPENDENT "yes"
#else
#define POSITION_INDEPENDENT "no"
#endif

#ifdef __CET__
#define BRANCH_TARGETS "marked"
#else
#define BRANCH_TARGETS "not marked"
#endif

#ifdef HPX_STEPS
#define CRASH_STEPS "yes"
#else
#define CRASH_STEPS "no"
#endif

static const struct {
	const char *name;
	const char *value;
} build_facts[] = {
	{ "compiler", COMPILER },
	{ "optimized", OPTIMIZED },
	{ "sanitizer", SANITIZED },
	{ "crash_steps", CRASH_STEPS },
	{ "stack_protector", STACK_PROTECTOR },
	{ "fortify_source", FORTIFIED },
	{ "position_independent", POSITION_INDEPENDENT },
	{ "branch_targets", BRANCH_TARGETS },
};

/* libpq says 150014 for 15.14. */
static const char *libpq_version(char text[static 32])
{
	int number = PQlibVersion();

	snprintf(text, 32, "%d.%d", number / 10000, number % 10000);
	return text;
}

/* A report is written once, as text or as JSON. */
struct report {
	bool json;
	struct hpx_json_writer writer;
	struct hpx_buffer text;
};

static void begin_part(struct report *report, const char *name, const char *title)
{
	if (report->json)
		hpx_json_begin_object(&report->writer, name);
	else
		printf("\n%s\n", title);
}

static void end_part(struct report *report)
{
	if (report->json)
		hpx_json_end_object(&report->writer);
}

static void put(struct report *report, const char *name, const char *value)
{
	if (report->json)
		hpx_json_put_text(&report->writer, name, value);
	else
		printf("  %-22s%s\n", name, value);
}

static void put_schema(void *user, const char *name, unsigned number)
{
	struct report *report = user;

	if (report->json)
		hpx_json_put_number(&report->writer, name, number);
	else
		printf("  %-22s%u\n", name, number);
}

/* Those that the program runs with, which a distribution renews without building hapax
 * again. */
static void report_libraries(struct report *report)
{
	const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
	char pq[32];

	begin_part(report, "libraries", "Libraries that it runs with");
	put(report, "libuv", uv_version_string());
	put(report, "OpenSSL", OpenSSL_version(OPENSSL_VERSION_STRING));
	put(report, "SQLite", sqlite3_libversion());
	put(report, "libpq", libpq_version(pq));
	put(report, "libcurl", curl->version);
	put(report, "zlib", zlibVersion());
	put(report, "Jansson", jansson_version_str());
	put(report, "libyaml", yaml_get_version_string());
	put(report, "libc", gnu_get_libc_version());
	end_part(report);
}

static void report_all(struct report *report)
{
	report_libraries(report);
	begin_part(report, "schemas", "Schemas that it reads and writes");
	hpx_store_each_schema(put_schema, report);
	put_schema(report, "journal", HPX_JOURNAL_SCHEMA);
	end_part(report);
	begin_part(report, "build", "How it was built");
	for (size_t i = 0; i < sizeof(build_facts) / sizeof(build_facts[0]); i++)
		put(report, build_facts[i].name, build_facts[i].value);
	end_part(report);
}

static int print_version(bool verbose, bool json)
{
	struct report report = { .json = json };

	if (!json) {
		printf("hapax %s\n", HPX_VERSION);
		if (verbose)
			report_all(&report);
		return HPX_EXIT_OK;
	}
	hpx_cli_json_init(&report.writer, &report.text);
	hpx_json_begin_object(&report.writer, NULL);
	hpx_json_put_text(&report.writer, "version", HPX_VERSION);
	if (verbose)
		report_all(&report);
	hpx_json_end_object(&report.writer);
	return hpx_cli_json_print(&report.writer, "version", "it cannot be printed");
}

#ifdef HPX_STEPS
#define STEPS_TEXT "Lists the steps where HAPAX_CRASH_AT and HAPAX_STOP_AT work."

static int print_steps(void)
{
	for (int i = 0; i < HPX_CRASH_POINT_COUNT; i++)
		printf("%s\t%s\n", hpx_crash_point_name((enum hpx_crash_point)i),
		       hpx_crash_point_text((enum hpx_crash_point)i));
	return HPX_EXIT_OK;
}
#else
#define STEPS_TEXT NULL

static int print_steps(void)
{
	fprintf(stderr,
		"hapax version: this build has no steps (meson setup -Dsteps=true)\n");
	return HPX_EXIT_FAILED;
}
#endif

int hpx_cli_version(int argc, char **argv)
{
	const char *verbose = NULL;
	const char *json = NULL;
	const char *steps = NULL;
	const struct hpx_cli_flag flags[] = {
		{ "verbose", NULL, "Also the libraries, the schemas, and how it was built.", &verbose },
		{ "json", NULL, "Prints JSON instead of text.", &json },
		{ "steps", NULL, STEPS_TEXT, &steps },
	};
	const struct hpx_cli_usage usage = {
		.synopsis = "hapax version [--verbose] [--json]",
		.about = "Prints the version.",
		.flags = flags,
		.flag_count = sizeof(flags) / sizeof(flags[0]),
	};
	int rest;
	int exit_code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &exit_code))
		return exit_code;
	return steps != NULL ? print_steps() :
			       print_version(verbose != NULL, json != NULL);
}
