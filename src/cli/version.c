/* `hapax version`: the version, the libraries, and, in a build for crash tests, the steps
 * where the program can be made to die. */
#include "cli/cli.h"

#include <jansson.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <uv.h>
#include <yaml.h>
#include <zlib.h>

#include "base/crash_point.h"

static int print_version(bool verbose)
{
	printf("hapax %s\n", HPX_VERSION);
	if (verbose)
		printf("libuv %s\nSQLite %s\n%s\nzlib %s\nlibyaml %s\nJansson %s\n",
		       uv_version_string(), sqlite3_libversion(),
		       OpenSSL_version(OPENSSL_VERSION), zlibVersion(),
		       yaml_get_version_string(), jansson_version_str());
	return HPX_EXIT_OK;
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
	const char *steps = NULL;
	const struct hpx_cli_flag flags[] = {
		{ "verbose", NULL, "Also prints the libraries and their versions.", &verbose },
		{ "steps", NULL, STEPS_TEXT, &steps },
	};
	const struct hpx_cli_usage usage = {
		.synopsis = "hapax version [--verbose]",
		.about = "Prints the version.",
		.flags = flags,
		.flag_count = sizeof(flags) / sizeof(flags[0]),
	};
	int rest;
	int exit_code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &exit_code))
		return exit_code;
	return steps != NULL ? print_steps() : print_version(verbose != NULL);
}
