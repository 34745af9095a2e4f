/* `hapax verify`: the flags and the description, what --list and --dry-run print,
 * and a run with its signals, progress and reports. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/span.h"
#include "base/unit.h"
#include "verify/row.h"
#include "verify/verify_report.h"
#include "verify/verify_request.h"

_Static_assert(HPX_VERIFY_REPEAT_MAX == HPX_CLI_REPEAT_MAX, "one list of values for a flag");

#define REPORT_BYTES_MAX ((size_t)256 << 10)

/* Which reports are wanted; NULL: not this one. */
struct verify_output {
	const char *json;
	const char *junit; /* a file */
	const char *log;   /* a file */
	const char *all;
};

static int complain(const char *what, const char *cause, int code)
{
	fprintf(stderr, "hapax verify: %s%s\n", what, cause);
	return code;
}

/* ---- --list and --dry-run ---- */

#define BODY_SHOWN 2048

static const char *weight_of(const struct hpx_row *row)
{
	return row->weight == HPX_ROW_REQUIRED ? "required" : "advised";
}

static int print_list(void)
{
	for (size_t i = 0; i < hpx_row_count; i++)
		printf("%-18s %-9s %s\n", hpx_rows[i].name, weight_of(&hpx_rows[i]),
		       hpx_rows[i].title);
	return hpx_cli_write(HPX_SPAN(""), stdout);
}

static int print_json_list(void)
{
	struct hpx_buffer text;
	struct hpx_json_writer json;

	hpx_cli_json_init(&json, &text);
	hpx_json_begin_array(&json, NULL);
	for (size_t i = 0; i < hpx_row_count; i++) {
		hpx_json_begin_object(&json, NULL);
		hpx_json_put_text(&json, "name", hpx_rows[i].name);
		hpx_json_put_text(&json, "weight", weight_of(&hpx_rows[i]));
		hpx_json_put_text(&json, "title", hpx_rows[i].title);
		hpx_json_put_text(&json, "why", hpx_rows[i].why);
		hpx_json_put_text(&json, "sends", hpx_rows[i].sends);
		hpx_json_end_object(&json);
	}
	hpx_json_end_array(&json);
	return hpx_cli_json_print(&json, "verify", "the list cannot be printed");
}

/* Indented, and harmless on a terminal. */
static void print_indented(struct hpx_span text)
{
	struct hpx_span line, character;
	bool printable;

	while (hpx_span_line(&text, &line)) {
		printf("    ");
		while (hpx_utf8_next(&line, &character, &printable)) {
			printable = printable || character.ptr[0] == '\t';
			fwrite(printable ? character.ptr : "?", 1, printable ? character.len : 1, stdout);
		}
		putchar('\n');
	}
}

static enum hpx_status print_request(struct hpx_verify *run,
				     enum hpx_verify_request_name name)
{
	const struct hpx_verify_variant variant = { .op = hpx_verify_op_draft(run, name) };
	struct hpx_verify_request_bytes request;

	if (variant.op == NULL)
		return HPX_NOMEM;
	enum hpx_status status = hpx_verify_request_build(hpx_verify_spec_of(run), &variant,
							  hpx_verify_arena(run), &request);
	if (status != HPX_OK)
		return status;
	printf("\n  %s: %s\n\n", hpx_verify_request_name_text(name), hpx_verify_request_name_about(name));
	print_indented(request.shown_head);
	if (request.body.len > 0)
		putchar('\n');
	print_indented(hpx_span_first(request.body, BODY_SHOWN));
	if (request.body.len > BODY_SHOWN)
		printf("    … %zu bytes in all\n", request.body.len);
	return HPX_OK;
}

static void print_bounds(const struct hpx_verify_spec *spec)
{
	char time[HPX_UNIT_SIZE], timeout[HPX_UNIT_SIZE], settle[HPX_UNIT_SIZE];

	hpx_duration_print(spec->time_max_ms, time);
	hpx_duration_print(spec->answer_timeout_ms, timeout);
	hpx_duration_print(spec->settle_ms, settle);
	printf("\nBounds: at most %" PRIu64 " requests, nothing sent after %s, %" PRIu64
	       " at once; %s for one answer, %s for a definite one.\n",
	       spec->requests_max, time, spec->concurrency_max, timeout, settle);
	printf("{{uuid}} and {{key}} are made anew for each operation; {{n}} counts up from a "
	       "number\nthat differs from run to run.\n");
	if (spec->crash_cmd.len > 0)
		printf("The server is killed up to %" PRIu64 " times (seed %" PRIu64
		       ") by:\n    %.*s\nand started again by:\n    %.*s\n",
		       spec->crashes, spec->seed, HPX_SPAN_ARG(spec->crash_cmd),
		       HPX_SPAN_ARG(spec->start_cmd));
}

static void print_rows(const struct hpx_verify_spec *spec)
{
	printf("\nRows, and what each sends (those that the description has nothing for send "
	       "nothing):\n\n");
	for (size_t i = 0; i < hpx_row_count; i++)
		printf("  %-18s %s\n", hpx_rows[i].name,
		       hpx_row_is_left_out(&hpx_rows[i], spec) ? "(left out)" : hpx_rows[i].sends);
}

static enum hpx_status print_effects(struct hpx_verify *run, const struct hpx_verify_spec *spec)
{
	const struct hpx_verify_op *op = hpx_verify_op_draft(run, HPX_REQUEST_main);
	struct hpx_span path = { NULL, 0 };

	if (op != NULL)
		path = hpx_verify_op_path(run, op, spec->effects_path);
	if (path.ptr == NULL)
		return HPX_NOMEM;
	printf("\n  effects are counted by:\n\n    GET %.*s\n", HPX_SPAN_ARG(path));
	return HPX_OK;
}

static enum hpx_status print_requests(struct hpx_verify *run, const struct hpx_verify_spec *spec)
{
	enum hpx_status status = HPX_OK;

	printf("Requests would go to %.*s port %u%s and nowhere else.\n",
	       HPX_SPAN_ARG(spec->host), spec->port, spec->tls ? " over TLS" : "");
	for (size_t i = 0; i < HPX_REQUEST_COUNT && status == HPX_OK; i++)
		if (spec->requests[i].given)
			status = print_request(run, (enum hpx_verify_request_name)i);
	return status == HPX_OK && hpx_verify_counts_effects(run) ? print_effects(run, spec) : status;
}

static enum hpx_status print_plan(const struct hpx_verify_spec *spec)
{
	struct hpx_verify *run;
	enum hpx_status status = hpx_verify_new(spec, &run);

	if (status != HPX_OK)
		return status;
	status = print_requests(run, spec);
	hpx_verify_free(run);
	print_rows(spec);
	print_bounds(spec);
	return status;
}

/* ---- the run ---- */

struct verify_session {
	const struct verify_output *output;
	struct hpx_verify *run;
	int stop_fd;
	FILE *junit; /* opened before the run, so that a wrong path does not cost a run of five minutes */
	FILE *log;
	size_t judged; /* rows so far */
	bool shows_progress;
};

static void clear_line(const struct verify_session *v)
{
	if (v->shows_progress)
		fprintf(stderr, "\r\033[K");
}

/* Progress: one line that is overwritten. */
static void show_progress(void *user, const struct hpx_row *row, const struct hpx_row_result *row_result)
{
	struct verify_session *v = user;

	v->judged += row_result != NULL;
	if (!v->shows_progress || row_result != NULL)
		return;
	fprintf(stderr, "\r\033[K%zu/%zu %s", v->judged + 1, hpx_row_count, row->name);
}

/* Ctrl-C, or a terminal that is closed, ends the run, not the program: a server that
 * was started is ended, and the results so far are reported. */
static int catch_signals(struct verify_session *v)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	/* Processes of a start command become children of hapax when their shell ends,
	 * so that their end is noticed. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	v->stop_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (v->stop_fd < 0)
		return complain("no signalfd: ", strerror(errno), HPX_EXIT_FAILED);
	hpx_verify_stop_on(v->run, v->stop_fd);
	return HPX_EXIT_OK;
}

/* A server that accepts no connection is a result of the run; a host that does not
 * exist is a mistake in the description. */
static int find_host(struct verify_session *v)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE];
	enum hpx_status status = hpx_verify_open(v->run, problem);

	if (status == HPX_OK || status == HPX_UNAVAILABLE)
		return HPX_EXIT_OK;
	return complain(problem, "; nothing was sent", HPX_EXIT_USAGE);
}

/* The log may hold bodies that are nobody else's business: only its owner may read it. */
static FILE *open_file(const char *path, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (file == NULL) {
		fprintf(stderr, "hapax verify: %s: %s\n", path, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	return file;
}

static int open_files(struct verify_session *v)
{
	if (v->output->junit != NULL)
		v->junit = open_file(v->output->junit, 0666);
	if (v->output->log != NULL)
		v->log = open_file(v->output->log, 0600);
	bool all = (v->output->junit == NULL || v->junit != NULL) &&
		   (v->output->log == NULL || v->log != NULL);
	return all ? HPX_EXIT_OK : HPX_EXIT_USAGE;
}

static int close_file(FILE **file, const char *path, enum hpx_status status)
{
	bool written = fclose(*file) == 0 && status == HPX_OK;

	*file = NULL;
	return written ? HPX_EXIT_OK : complain("cannot be written: ", path, HPX_EXIT_FAILED);
}

static int write_files(struct verify_session *v, const struct hpx_verify_result *result)
{
	int code = HPX_EXIT_OK;

	if (v->junit != NULL)
		code = close_file(&v->junit, v->output->junit,
				  hpx_report_junit(v->run, result, v->junit));
	if (v->log != NULL && code == HPX_EXIT_OK)
		code = close_file(&v->log, v->output->log, hpx_report_log(v->run, v->log));
	return code;
}

static bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && (no == NULL || *no == '\0');
}

static int report(struct verify_session *v, const struct hpx_verify_result *result)
{
	int code = write_files(v, result);

	if (v->output->json == NULL)
		hpx_report_table(v->run, result, wants_colour(), v->output->all != NULL, stdout);
	else if (hpx_report_json(v->run, result, stdout) != HPX_OK)
		return complain("the report cannot be written", "", HPX_EXIT_FAILED);
	if (fflush(stdout) != 0)
		return complain("the report cannot be written: ", strerror(errno),
				HPX_EXIT_FAILED);
	return code != HPX_EXIT_OK || !result->holds ? HPX_EXIT_FAILED : HPX_EXIT_OK;
}

/* A stopped run says nothing about the remaining rows. */
static bool was_stopped(const struct verify_session *v)
{
	struct signalfd_siginfo signal;

	return read(v->stop_fd, &signal, sizeof(signal)) == (ssize_t)sizeof(signal);
}

static int try_rows(struct verify_session *v)
{
	struct hpx_verify_result result;
	int code = catch_signals(v);

	if (code == HPX_EXIT_OK)
		code = open_files(v);
	if (code == HPX_EXIT_OK)
		code = find_host(v);
	if (code != HPX_EXIT_OK)
		return code;
	v->shows_progress = isatty(STDERR_FILENO);
	enum hpx_status status = hpx_verify_run(v->run, show_progress, v, &result);
	clear_line(v);
	if (status != HPX_OK)
		return complain("the run failed: ", hpx_status_text(status), HPX_EXIT_FAILED);
	code = report(v, &result);
	hpx_verify_result_done(&result);
	if (was_stopped(v))
		code = complain("the run was stopped", "", HPX_EXIT_FAILED);
	return code;
}

static int run_rows(const struct hpx_verify_spec *spec, const struct verify_output *output)
{
	struct verify_session v = { .output = output, .stop_fd = -1 };

	enum hpx_status status = hpx_verify_new(spec, &v.run);
	if (status != HPX_OK)
		return complain("a run cannot be made: ", hpx_status_text(status),
				HPX_EXIT_FAILED);
	int code = try_rows(&v);
	hpx_verify_free(v.run);
	if (v.junit != NULL)
		fclose(v.junit);
	if (v.log != NULL)
		fclose(v.log);
	if (v.stop_fd >= 0)
		close(v.stop_fd);
	return code;
}

/* ---- the command ---- */

struct verify_command {
	struct hpx_verify_flags options;
	const char *file, *dry_run, *list;
	struct verify_output output;
	struct hpx_verify_spec spec;
};

static size_t list_flags(struct verify_command *v, struct hpx_cli_flag flags[HPX_CLI_FLAGS_MAX])
{
	const struct hpx_cli_flag own[] = {
		{ "file", "FILE", "A description in YAML; it can have more requests than flags can.",
		  &v->file },
		{ "dry-run", NULL, "Shows what would be sent; opens no connection.",
		  &v->dry_run },
		{ "list", NULL, "Lists the rows.", &v->list },
		{ "json", NULL, "Prints the report, or the list, as JSON.", &v->output.json },
		{ "junit", "FILE", "Writes JUnit's XML, for CI.", &v->output.junit },
		{ "log", "FILE", "Writes every request and answer, one JSON object a line.", &v->output.log },
		{ "all", NULL, "Explains every row, not only the broken ones.", &v->output.all },
	};
	size_t count = 0;

	for (size_t i = 0; i < hpx_verify_options.count; i++) {
		const struct hpx_option *option = &hpx_verify_options.rows[i];

		if (option->flag != NULL)
			flags[count++] = (struct hpx_cli_flag){ option->flag, option->flag_value,
								option->text,
								v->options.values[i] };
	}
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		flags[count++] = own[i];
	return count;
}

/* ---- the description ---- */

static int load(struct verify_command *v)
{
	struct hpx_config_report report;
	struct hpx_buffer text;

	hpx_config_report_init(&report);
	hpx_buffer_init(&text, REPORT_BYTES_MAX);
	enum hpx_status status =
		hpx_verify_spec_load(v->file, &v->options, &report, &v->spec);
	hpx_config_report_print(&report, v->file, &text);
	hpx_cli_write(hpx_buffer_span(&text), stderr);
	hpx_buffer_done(&text);
	hpx_config_report_done(&report);
	if (status == HPX_OK)
		return HPX_EXIT_OK;
	if (status == HPX_INVALID)
		return complain("nothing was sent; `hapax verify --help` shows how it is called",
				"", HPX_EXIT_USAGE);
	return complain("the description cannot be read: ", hpx_status_text(status),
			HPX_EXIT_FAILED);
}

static int plan(const struct verify_command *v)
{
	enum hpx_status status = print_plan(&v->spec);

	if (status == HPX_OK)
		return HPX_EXIT_OK;
	return complain("the plan cannot be made: ", hpx_status_text(status), HPX_EXIT_FAILED);
}

static int verify(struct verify_command *v)
{
	int code = load(v);

	if (code == HPX_EXIT_OK)
		code = v->dry_run != NULL ? plan(v) : run_rows(&v->spec, &v->output);
	hpx_verify_spec_done(&v->spec);
	return code;
}

int hpx_cli_verify(int argc, char **argv)
{
	struct verify_command v = { .file = NULL };
	struct hpx_cli_flag flags[HPX_CLI_FLAGS_MAX];
	const struct hpx_cli_usage usage = {
		.synopsis = "hapax verify URL -d BODY [FLAGS], or hapax verify --file FILE",
		.about = "Tests an API that claims idempotency, from outside. Sends real requests (use a\n"
			 "test server and test credentials), retries them, repeats them at the same\n"
			 "moment, cuts them off, and says row by row what holds. The exit code is 0 if\n"
			 "every required row holds, 1 if not, 2 if the description is wrong.",
		.flags = flags,
		.flag_count = list_flags(&v, flags),
		.operands_max = 1,
	};
	int rest, code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &code))
		return code;
	if (v.list != NULL)
		return v.output.json != NULL ? print_json_list() : print_list();
	/* The URL is the first row of the table. */
	if (rest < argc)
		v.options.values[0][0] = argv[rest];
	return verify(&v);
}
