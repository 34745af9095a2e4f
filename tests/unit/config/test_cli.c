/* Shows what `hapax check` and `hapax version` print and exit with, and how
 * arguments are read: --help, wrong flags, operands between flags. */
#include "config_test.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"

#define ARGUMENTS_MAX 8
#define OUTPUT_MAX 65536

/* Runs a command with its two streams in files; what it wrote comes back. */
struct run {
	int exit_code;
	char out[OUTPUT_MAX];
	char err[OUTPUT_MAX];
};

static void take(FILE *stream, FILE *file, int saved, char *text)
{
	fflush(stream);
	rewind(file);
	text[fread(text, 1, OUTPUT_MAX - 1, file)] = '\0';
	fclose(file);
	dup2(saved, fileno(stream));
	close(saved);
}

static void run(int (*command)(int argc, char **argv), const char *const *arguments,
		struct run *result)
{
	char copies[ARGUMENTS_MAX][128];
	char *argv[ARGUMENTS_MAX + 1];
	int argc = 0;
	FILE *out = tmpfile();
	FILE *err = tmpfile();

	assert_non_null(out);
	assert_non_null(err);
	for (; arguments[argc] != NULL; argc++) {
		snprintf(copies[argc], sizeof(copies[argc]), "%s", arguments[argc]);
		argv[argc] = copies[argc];
	}
	argv[argc] = NULL;
	fflush(stdout);
	int saved_out = dup(STDOUT_FILENO);
	int saved_err = dup(STDERR_FILENO);
	dup2(fileno(out), STDOUT_FILENO);
	dup2(fileno(err), STDERR_FILENO);
	result->exit_code = command(argc, argv);
	take(stdout, out, saved_out, result->out);
	take(stderr, err, saved_err, result->err);
}

struct row {
	int (*command)(int argc, char **argv);
	const char *arguments[ARGUMENTS_MAX];
	int exit_code;
	const char *out; /* a part of it */
	const char *err;
};

static void check_rows(const struct row *rows, size_t count)
{
	static struct run result;

	for (size_t i = 0; i < count; i++) {
		run(rows[i].command, rows[i].arguments, &result);
		if (result.exit_code != rows[i].exit_code ||
		    strstr(result.out, rows[i].out) == NULL ||
		    strstr(result.err, rows[i].err) == NULL)
			fail_msg("row %zu (%s %s): got %d\n%s---\n%swant %d\n%s---\n%s", i,
				 rows[i].arguments[0],
				 rows[i].arguments[1] ? rows[i].arguments[1] : "",
				 result.exit_code, result.out, result.err,
				 rows[i].exit_code, rows[i].out, rows[i].err);
	}
}

static void version_says_what_it_is(void **state)
{
	static const struct row rows[] = {
		{ hpx_cli_version, { "version" }, 0, "hapax " HPX_VERSION "\n", "" },
		{ hpx_cli_version, { "version", "--verbose" }, 0, "\n  SQLite                3.", "" },
		{ hpx_cli_version, { "version", "--help" }, 0, "Usage: hapax version", "" },
		{ hpx_cli_version,
		  { "version", "x" },
		  2,
		  "",
		  "\"x\" is one argument too many" },
#ifdef HPX_STEPS
		{ hpx_cli_version, { "version", "--steps" }, 0, "request_read\t", "" },
#else
		{ hpx_cli_version,
		  { "version", "--steps" },
		  1,
		  "",
		  "this build has no steps" },
#endif
	};
	(void)state;
	check_rows(rows, COUNT(rows));
}

static void wrong_flags_are_explained(void **state)
{
	static const struct row rows[] = {
		{ hpx_cli_check, { "check", "--help" }, 0, "  --upstream URL ", "" },
		{ hpx_cli_check, { "check", "-h" }, 0, "Usage: hapax check", "" },
		{ hpx_cli_check,
		  { "check", "--confg", "f" },
		  2,
		  "",
		  "hapax check: unknown flag --confg; did you mean --config?\nUsage: hapax "
		  "check" },
		{ hpx_cli_check,
		  { "check", "-c", "f" },
		  2,
		  "",
		  "unknown flag -c; `hapax check --help` lists them" },
		{ hpx_cli_check,
		  { "check", "--config" },
		  2,
		  "",
		  "--config needs a value: --config FILE" },
		{ hpx_cli_check, { "check", "--json=1" }, 2, "", "--json takes no value" },
		{ hpx_cli_check,
		  { "check", "--json", "--json" },
		  2,
		  "",
		  "--json is given twice" },
		{ hpx_cli_check,
		  { "check", "b.yaml" },
		  2,
		  "",
		  "hapax check: \"b.yaml\" is one argument too many; a configuration is given "
		  "as --config b.yaml\nUsage: hapax check" },
		{ hpx_cli_check, { "check", "--json", "b.yml" }, 2, "", "as --config b.yml\n" },
		/* Another name, but the file is there. */
		{ hpx_cli_check, { "check", "meson.build" }, 2, "", "as --config meson.build\n" },
		{ hpx_cli_check, { "check", "src" }, 2, "", "\"src\" is one argument too many\n" },
		{ hpx_cli_check,
		  { "check", "--config", "a.yaml", "b.yaml" },
		  2,
		  "",
		  "\"b.yaml\" is one argument too many\n" },
		{ hpx_cli_version,
		  { "version", "b.yaml" },
		  2,
		  "",
		  "\"b.yaml\" is one argument too many\n" },
	};
	(void)state;
	check_rows(rows, COUNT(rows));
}

/* A command with a letter and a flag that may be repeated; prints what it got. */
static int letters(int argc, char **argv)
{
	const char *headers[HPX_CLI_REPEAT_MAX + 1] = { NULL };
	const char *out = NULL, *verbose = NULL;
	const struct hpx_cli_flag flags[] = {
		{ "H,header", "LINE...", "A header.", headers },
		{ "o,output", "FILE", "A file.", &out },
		{ "v,verbose", NULL, "A switch.", &verbose },
	};
	const struct hpx_cli_usage usage = { "hapax letters", "For a test.", flags, COUNT(flags),
					     2 };
	int rest, exit_code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &exit_code))
		return exit_code;
	for (const char **header = headers; *header != NULL; header++)
		printf("%s|", *header);
	printf("%s|%s|", out ? out : "-", verbose ? verbose : "-");
	for (int i = rest; i < argc; i++)
		printf("%s|", argv[i]);
	return HPX_EXIT_OK;
}

static void letters_and_repeated_flags_are_read(void **state)
{
	static const struct row rows[] = {
		{ letters, { "letters", "-H", "a", "x", "-Hb", "--header=c" }, 0, "a|b|c|-|-|x|", "" },
		{ letters, { "letters", "-v", "-ofile", "POST", "u" }, 0, "file|true|POST|u|", "" },
		{ letters, { "letters", "--help" }, 0, "  -H, --header LINE...    A header.\n", "" },
		{ letters, { "letters", "-o", "a", "--output", "b" }, 2, "", "--output is given twice" },
		{ letters, { "letters", "-vx" }, 2, "", "--verbose takes no value" },
		{ letters, { "letters", "-H" }, 2, "", "--header needs a value: --header LINE..." },
		{ letters, { "letters", "-q" }, 2, "", "unknown flag -q" },
		{ letters, { "letters", "--", "-q", "-v" }, 0, "-|-|-q|-v|", "" },
	};
	(void)state;
	check_rows(rows, COUNT(rows));
}

#define TENANT \
	"Authorization, X-Api-Key and other headers that are known to name a caller; " \
	"without any credential: anonymous, because 127.0.0.1:8080 is local, or 401 if " \
	"the request was forwarded"

#define QUESTION \
	"does a 500 of this service mean that it rolled back, or may it have happened? " \
	"Write server_error: retry (it rolled back; a retry runs it again) or " \
	"server_error: unknown (it may have happened; nothing runs twice)\n"

static void check_says_what_is_wrong(void **state)
{
	static const struct row rows[] = {
		{ hpx_cli_check,
		  { "check", "--upstream", "http://h:1" },
		  0,
		  "warning: defaults.server_error: is not given in defaults, for routes that "
		  "do not set it: " QUESTION "ok\n"
		  "  route     key       scope  server_error  concurrent  deliver  retention\n"
		  "  defaults  required  path   retry         conflict    now      24h\n"
		  "  tenant: " TENANT "\n",
		  "" },
		{ hpx_cli_check,
		  { "check", "--upstream=http://h:1", "--listen=[::]:8080" },
		  0,
		  "; without any credential: 401, because [::]:8080 is not local (tenant.anonymous)\n",
		  "" },
		{ hpx_cli_check,
		  { "check", "--upstream=http://h:1", "--observe", "--json" },
		  0,
		  "{\"ok\":true,\"remarks\":[],\"left_out\":0,\"tenant\":\"" TENANT
		  "\",\"routes\":[{\"match\":\"defaults\","
		  "\"key\":\"required\",\"scope\":\"path\",\"server_error\":\"retry\","
		  "\"concurrent\":\"conflict\",\"deliver\":\"now\",\"retention\":\"24h\","
		  "\"observe\":true}],"
		  "\"targets\":[],\"webhooks\":[]}\n",
		  "" },
		{ hpx_cli_check, { "check" }, 1, "upstream: is missing;", "" },
		{ hpx_cli_check,
		  { "check", "--json", "--upstream", "x" },
		  1,
		  "{\"ok\":false,\"remarks\":[{\"weight\":\"mistake\",\"option\":\"--"
		  "upstream\","
		  "\"message\":\"an upstream is http://host[:port]",
		  "" },
		{ hpx_cli_check,
		  { "check", "--config", "etc/hapax.yaml" },
		  0,
		  "\nok\n",
		  "" },
		{ hpx_cli_check,
		  { "check", "--config", "/nowhere" },
		  1,
		  "/nowhere: cannot be opened: No such file or directory\n",
		  "" },
		{ hpx_cli_check,
		  { "check", "--print-sample" },
		  0,
		  "\n#listen: 127.0.0.1:8080\n",
		  "" },
		{ hpx_cli_check, { "check", "--print-reference" }, 0, "# Options\n", "" },
	};
	(void)state;
	check_rows(rows, COUNT(rows));
}

/* Runs `hapax check` on a file with this text. */
static void check_text(const char *text, const char *flag, struct run *result)
{
	char path[] = "/tmp/hpx_test_cli_XXXXXX";
	int fd = mkstemp(path);
	const char *arguments[] = { "check", "--config", path, flag, NULL };

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	run(hpx_cli_check, arguments, result);
	unlink(path);
}

/* Every guarded route that leaves it unsaid, and the defaults. */
static void check_asks_what_a_500_means(void **state)
{
	static const struct {
		const char *text; /* behind the routes /a (given) and /b (not) */
		bool asks_b;
		bool asks_defaults;
	} rows[] = {
		{ "", true, true },
		{ "    server_error: unknown\n", false, true },
		{ "    key: ignore\n", false, true },
		{ "    observe: yes\n", false, true },
		{ "    completes: application\n", false, true },
		{ "defaults: {server_error: retry}\n", false, false },
		{ "defaults: {key: ignore}\n    ", false, false },
		{ "profile: stripe\n", false, false },
		{ "observe: yes\n", false, false },
	};
	static struct run result;
	char text[400];
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		snprintf(text, sizeof(text), "%s%s",
			 "upstream: http://h:1\nstore: sqlite:/s\nroutes:\n"
			 "  - match: POST /a\n    server_error: retry\n  - match: POST /b\n",
			 rows[i].text);
		check_text(text, NULL, &result);
		assert_int_equal(result.exit_code, 0);
		bool b = strstr(result.out, ":6:5: warning: routes[].server_error: is not given for "
					    "POST /b: " QUESTION) != NULL;
		bool defaults = strstr(result.out, "warning: defaults.server_error: is not given") != NULL;
		if (b != rows[i].asks_b || defaults != rows[i].asks_defaults ||
		    strstr(result.out, "POST /a: ") != NULL)
			fail_msg("row %zu: %s", i, result.out);
	}
}

#define OBSERVED "24h        observe: guards nothing\n"
#define GUARDED "24h\n"

static void check_shows_what_is_only_observed(void **state)
{
	static const struct {
		const char *text; /* of the file, with two routes */
		const char *a;
		const char *b;
		const char *defaults;
	} rows[] = {
		{ "", GUARDED, GUARDED, GUARDED },
		{ "    observe: true\n", GUARDED, OBSERVED, GUARDED },
		{ "defaults: {observe: true}\n", OBSERVED, OBSERVED, OBSERVED },
		{ "    observe: false\ndefaults: {observe: true}\n", OBSERVED, GUARDED, OBSERVED },
		{ "    observe: false\nobserve: true\n", OBSERVED, OBSERVED, OBSERVED },
	};
	static struct run result;
	char text[400];
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *const want[] = { rows[i].a, rows[i].b, rows[i].defaults };
		snprintf(text, sizeof(text), "%s%s",
			 "upstream: http://h:1\nstore: sqlite:/s\nroutes:\n"
			 "  - match: POST /a\n    server_error: retry\n"
			 "  - match: POST /b\n    server_error: retry\n",
			 rows[i].text);
		check_text(text, NULL, &result);
		assert_int_equal(result.exit_code, 0);
		const char *line = strstr(result.out, "ok\n");
		assert_non_null(line);
		line = strchr(line + 3, '\n') + 1;
		for (size_t n = 0; n < COUNT(want); n++) {
			const char *end = strstr(line, "24h");
			if (end == NULL || strncmp(end, want[n], strlen(want[n])) != 0)
				fail_msg("row %zu, line %zu: got\n%swant %s", i, n, result.out,
					 want[n]);
			line = strchr(line, '\n') + 1;
		}
		check_text(text, "--json", &result);
		for (size_t n = 0; n < COUNT(want); n++) {
			const char *member = strstr(n == 0 ? result.out : line, "\"observe\":");
			assert_non_null(member);
			line = member + strlen("\"observe\":");
			if ((*line == 't') != (want[n][3] == ' '))
				fail_msg("row %zu, route %zu: got\n%swant %s", i, n, result.out,
					 want[n]);
		}
	}
}

/* A file with external services: what check says of them, and that no secret is
 * among it. */
static void check_shows_services_and_no_secret(void **state)
{
	static const char text[] =
		"upstream: http://h:1\nstore: sqlite:/s\n"
		"targets: {mailer: {url: 'https://m/api', honours_keys: 24h, credentials: {env: "
		"HPX_TEST_SECRET}}}\n"
		"webhooks: {bank: {scheme: stripe, secret_env: HPX_TEST_SECRET, operation: /o, "
		"verdict: /v, applied: [ok]}}\n";
	static struct run result;
	(void)state;

	setenv("HPX_TEST_SECRET", "s3cret", 1);
	check_text(text, NULL, &result);
	assert_int_equal(result.exit_code, 0);
	assert_non_null(strstr(result.out, "\n  target mailer: https://m/api, honours_keys "
					   "24h\n  webhook bank: POST /.hapax/webhooks/bank, "
					   "stripe, secrets: 1\n"));
	assert_null(strstr(result.out, "s3cret"));
	check_text(text, "--json", &result);
	assert_int_equal(result.exit_code, 0);
	assert_non_null(strstr(result.out,
			       "\"targets\":[{\"name\":\"mailer\",\"url\":\"https://m/api\","
			       "\"honours_keys\":\"24h\"}],\"webhooks\":[{\"name\":\"bank\","
			       "\"scheme\":\"stripe\",\"secrets\":1}]}\n"));
	assert_null(strstr(result.out, "s3cret"));
}

static void operands_may_stand_between_flags(void **state)
{
	static const char *const rows[][ARGUMENTS_MAX] = {
		{ "x", "a", "b", "--flag", "v", "c" },
		{ "x", "--flag", "v", "a", "b", "c" },
		{ "x", "a", "--flag=v", "b", "--", "c" },
		{ "x", "--flag", "v", "--", "a", "b", "c" },
		{ "x", "a", "b", "c", "--flag", "v" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *value = NULL;
		const struct hpx_cli_flag flags[] = { { "flag", "V", "A flag.", &value } };
		const struct hpx_cli_usage usage = { "x", "x", flags, 1, 3 };
		char copies[ARGUMENTS_MAX][16];
		char *argv[ARGUMENTS_MAX + 1] = { NULL };
		int argc = 0;
		int rest = 0;
		int exit_code = 0;
		for (; argc < ARGUMENTS_MAX && rows[i][argc] != NULL; argc++) {
			snprintf(copies[argc], sizeof(copies[argc]), "%s", rows[i][argc]);
			argv[argc] = copies[argc];
		}
		assert_true(hpx_cli_read(&usage, argc, argv, &rest, &exit_code));
		assert_string_equal(value, "v");
		assert_int_equal(argc - rest, 3);
		assert_string_equal(argv[rest], "a");
		assert_string_equal(argv[rest + 1], "b");
		assert_string_equal(argv[rest + 2], "c");
	}
}

static void load_prints_every_remark(void **state)
{
	struct hpx_config_flags flags = { .value = { NULL } };
	(void)state;
	hpx_config_flags_set(&flags, "upstream", "http://h:1");
	struct hpx_settings *settings = hpx_cli_load(&flags);
	assert_non_null(settings);
	hpx_settings_unref(settings);
	hpx_config_flags_set(&flags, "upstream", NULL);
	assert_null(hpx_cli_load(&flags));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_says_what_it_is),
		cmocka_unit_test(wrong_flags_are_explained),
		cmocka_unit_test(letters_and_repeated_flags_are_read),
		cmocka_unit_test(check_says_what_is_wrong),
		cmocka_unit_test(check_asks_what_a_500_means),
		cmocka_unit_test(check_shows_what_is_only_observed),
		cmocka_unit_test(check_shows_services_and_no_secret),
		cmocka_unit_test(operands_may_stand_between_flags),
		cmocka_unit_test(load_prints_every_remark),
	};
	return cmocka_run_group_tests_name("cli", tests, NULL, NULL);
}
