/* `hapax call`: curl for requests that change something. libhapax-client does the work;
 * here are the arguments, the call that they describe, and the signals that end it. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/status.h"
#include "base/unit.h"
#include "cli/call.h"
#include "core/json_tree.h"

#define ATTEMPTS_MAX 1000000
/* The most that libhapax-client takes. */
#define BODY_MAX ((size_t)64 << 20)
#define NAME_MAX_LEN 256

int hpx_cli_call_complain(int code, const char *format, ...)
{
	va_list args;

	fputs("hapax call: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return code;
}

/* ---- from the arguments to a call: its headers, its body and its key ---- */

/* The exit code for a result of the library; prints the problem. */
static int judge(enum hapax_result result, const char *problem)
{
	if (result == HAPAX_OK)
		return HPX_EXIT_OK;
	return hpx_cli_call_complain(result == HAPAX_INVALID ? HPX_EXIT_USAGE : HPX_EXIT_FAILED, "%s",
				     problem);
}

static int give_line(struct hapax_call *call, const char *line)
{
	struct hpx_span name = hpx_span_first(hpx_span_of(line),
					      hpx_span_index(hpx_span_of(line), ':'));
	char text[NAME_MAX_LEN + 1];
	char problem[HAPAX_PROBLEM_SIZE];

	if (line[name.len] != ':' || name.len > NAME_MAX_LEN)
		return hpx_cli_call_complain(HPX_EXIT_USAGE,
					     "-H needs \"Name: value\", or @FILE with one a line");
	memcpy(text, name.ptr, name.len);
	text[name.len] = '\0';
	enum hapax_result result = hapax_call_header(call, text, line + name.len + 1, problem);
	return judge(result, problem);
}

int hpx_cli_call_give_headers(struct hpx_call_command *command, struct hapax_call *call)
{
	const char *const *lines = command->flags.headers;
	char problem[HAPAX_PROBLEM_SIZE];
	int code = HPX_EXIT_OK;

	for (size_t i = 0; lines[i] != NULL && code == HPX_EXIT_OK; i++) {
		if (lines[i][0] != '@')
			code = give_line(call, lines[i]);
		else
			code = judge(hapax_call_header_file(call, lines[i] + 1, problem), problem);
	}
	return code;
}

static int read_stream(FILE *stream, const char *name, struct hpx_buffer *body)
{
	size_t got = 1;
	enum hpx_status status = HPX_OK;

	while (got > 0 && status == HPX_OK) {
		char piece[65536];

		got = fread(piece, 1, sizeof(piece), stream);
		status = hpx_buffer_append(body, hpx_span(piece, got));
	}
	if (status == HPX_TOO_LARGE)
		return hpx_cli_call_complain(HPX_EXIT_USAGE, "%s is larger than 64 MiB", name);
	if (status != HPX_OK || ferror(stream))
		return hpx_cli_call_complain(HPX_EXIT_FAILED, "%s: %s", name,
					     status != HPX_OK ? hpx_status_text(status) :
								strerror(errno));
	return HPX_EXIT_OK;
}

static int read_body(const char *data, struct hpx_buffer *body)
{
	if (data[0] != '@')
		return hpx_buffer_text(body, data) == HPX_OK ?
			       HPX_EXIT_OK :
			       hpx_cli_call_complain(HPX_EXIT_FAILED, "there is no memory left");
	if (strcmp(data, "@-") == 0)
		return read_stream(stdin, "standard input", body);
	FILE *stream = fopen(data + 1, "re");
	if (stream == NULL)
		return hpx_cli_call_complain(HPX_EXIT_USAGE, "%s: %s", data + 1, strerror(errno));
	int code = read_stream(stream, data + 1, body);
	fclose(stream);
	return code;
}

static bool is_json(struct hpx_span body)
{
	struct hpx_json_tree tree;

	if (hpx_json_tree_read(body, &hpx_json_limits_default, NULL, 0, &tree) != HPX_OK)
		return false;
	hpx_json_tree_done(&tree);
	return true;
}

static bool is_type_line(struct hpx_span line)
{
	return hpx_span_istarts(line, HPX_SPAN("content-type:"));
}

/* The library has read the file already: a file that cannot be read now has no type. */
static bool file_says_type(const char *path)
{
	FILE *stream = fopen(path, "re");
	char line[256];
	bool whole = true; /* `line` has the beginning of a line */
	bool says = false;

	while (stream != NULL && !says && fgets(line, sizeof(line), stream) != NULL) {
		says = whole && is_type_line(hpx_span_of(line));
		whole = strchr(line, '\n') != NULL;
	}
	if (stream != NULL)
		fclose(stream);
	return says;
}

static bool says_type(const struct hpx_call_flags *flags)
{
	for (size_t i = 0; flags->headers[i] != NULL; i++) {
		const char *given = flags->headers[i];

		if (given[0] == '@' ? file_says_type(given + 1) : is_type_line(hpx_span_of(given)))
			return true;
	}
	return false;
}

static int give_body(struct hpx_call_command *command, struct hapax_call *call)
{
	char problem[HAPAX_PROBLEM_SIZE];
	struct hpx_buffer body;

	if (command->flags.data == NULL)
		return HPX_EXIT_OK;
	hpx_buffer_init(&body, BODY_MAX);
	int code = read_body(command->flags.data, &body);
	if (code == HPX_EXIT_OK && !says_type(&command->flags) && is_json(hpx_buffer_span(&body)))
		code = judge(hapax_call_header(call, "Content-Type", "application/json", problem),
			     problem);
	if (code == HPX_EXIT_OK)
		code = judge(hapax_call_body(call, body.ptr, body.len, problem), problem);
	hpx_buffer_done(&body);
	return code;
}

static int make_call(struct hpx_call_command *command, const char *method, const char *url,
		     struct hapax_call **ret_call)
{
	char problem[HAPAX_PROBLEM_SIZE];

	enum hapax_result result = hapax_call_new(command->client, method, url, ret_call, problem);
	int code = judge(result, problem);
	if (code == HPX_EXIT_OK)
		code = hpx_cli_call_give_headers(command, *ret_call);
	if (code == HPX_EXIT_OK)
		code = give_body(command, *ret_call);
	if (code == HPX_EXIT_OK && command->flags.key != NULL)
		code = judge(hapax_call_key(*ret_call, command->flags.key, problem), problem);
	return code;
}

/* ---- the client and the signals that end it ---- */

/* The client that a signal interrupts: a signal handler sees only globals. */
static _Atomic(struct hapax_client *) running;
static atomic_bool stopped;

static void on_signal(int number)
{
	(void)number;
	atomic_store(&stopped, true);
	hapax_client_interrupt(atomic_load(&running));
}

/* A second signal ends the process at once: the journal has everything. */
static void watch_signals(struct hapax_client *client)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	HPX_ASSERT(atomic_load(&running) == NULL);
	atomic_store(&running, client);
	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* A pipe whose reader is gone is a write that fails. */
	signal(SIGPIPE, SIG_IGN);
}

struct time_flag {
	const char *name;
	const char *text;
	int64_t *ret_ms;
};

static int read_times(const struct time_flag *times, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t ms;

		if (times[i].text == NULL)
			continue;
		if (!hpx_duration_parse(hpx_span_of(times[i].text), &ms) || ms == 0)
			return hpx_cli_call_complain(HPX_EXIT_USAGE,
						     "--%s needs a time above zero, as 200ms, 30s or 5m",
						     times[i].name);
		*times[i].ret_ms = (int64_t)ms;
	}
	return HPX_EXIT_OK;
}

static int read_options(struct hpx_call_command *command, struct hapax_client_options *options)
{
	const struct hpx_call_flags *flags = &command->flags;
	uint64_t attempts = 0;
	const struct time_flag times[] = {
		{ "budget", flags->budget, &options->budget_ms },
		{ "timeout", flags->timeout, &options->timeout_ms },
		{ "connect-timeout", flags->connect_timeout, &options->connect_timeout_ms },
		{ "backoff", flags->backoff, &options->backoff_ms },
		{ "backoff-max", flags->backoff_max, &options->backoff_max_ms },
		{ "remembered", flags->remembered, &options->remembered_ms },
	};

	if (flags->attempts != NULL &&
	    (!hpx_span_u64(hpx_span_of(flags->attempts), ATTEMPTS_MAX, &attempts) || attempts == 0))
		return hpx_cli_call_complain(HPX_EXIT_USAGE, "--attempts needs a number from 1 to %d",
					     ATTEMPTS_MAX);
	/* Checked here, because libcurl would report it once for each attempt. */
	if (flags->ca_file != NULL && access(flags->ca_file, R_OK) != 0)
		return hpx_cli_call_complain(HPX_EXIT_USAGE, "--cacert %s: %s", flags->ca_file,
					     strerror(errno));
	options->attempts_max = (unsigned)attempts;
	options->key_header = flags->key_header;
	options->key_bare = flags->bare_key != NULL;
	options->ca_file = flags->ca_file;
	options->journal = command->journal[0] != '\0' ? command->journal : NULL;
	options->confirm = 1;
	options->observe = hpx_cli_call_observe;
	options->user = command;
	return read_times(times, sizeof(times) / sizeof(times[0]));
}

static int open_client(struct hpx_call_command *command, bool is_new)
{
	struct hapax_client_options options = { .size = sizeof(options), .journal = NULL };
	char problem[HAPAX_PROBLEM_SIZE];

	HPX_ASSERT(command->client == NULL);
	int code = hpx_cli_call_journal_find(command, !is_new);
	if (code == HPX_EXIT_OK)
		code = read_options(command, &options);
	if (code != HPX_EXIT_OK)
		return code;
	if (hapax_client_open(&options, &command->client, problem) != HAPAX_OK)
		return hpx_cli_call_complain(HPX_EXIT_FAILED, "%s: nothing was sent", problem);
	watch_signals(command->client);
	return HPX_EXIT_OK;
}

static int send_new(struct hpx_call_command *command, const char *method, const char *url)
{
	struct hapax_call *call = NULL;
	int code = make_call(command, method, url, &call);

	if (code == HPX_EXIT_OK)
		code = hpx_cli_call_send_and_report(command, call);
	hapax_call_free(call);
	return code == HPX_CALL_NOT_BEGUN ? HPX_EXIT_FAILED : code;
}

static int run(struct hpx_call_command *command, int argc, char **argv)
{
	const struct hpx_call_flags *flags = &command->flags;
	int other = (flags->resume != NULL) + (flags->list != NULL) + (flags->forget != NULL);

	if (other > 1 || (other == 1 && argc > (flags->resume != NULL)))
		return hpx_cli_call_complain(HPX_EXIT_USAGE,
					     "--resume [ID], --list and --forget ID stand alone");
	if (other == 1 && flags->no_journal != NULL)
		return hpx_cli_call_complain(HPX_EXIT_USAGE,
					     "without a journal there is nothing to resume, "
					     "list or forget");
	if (other == 0 && argc != 2)
		return hpx_cli_call_complain(
			HPX_EXIT_USAGE,
			"needs a method and a URL: hapax call POST https://… -d @body.json");
	int code = open_client(command, other == 0);
	if (code != HPX_EXIT_OK)
		return code;
	if (flags->list != NULL)
		return hpx_cli_call_list(command);
	if (flags->forget != NULL)
		return hpx_cli_call_forget(command);
	code = hpx_cli_call_output_check(command);
	if (code != HPX_EXIT_OK)
		return code;
	if (flags->resume != NULL)
		return hpx_cli_call_resume(command, argc > 0 ? argv[0] : NULL, &stopped);
	return send_new(command, argv[0], argv[1]);
}

#define SYNOPSIS \
	"hapax call METHOD URL [FLAGS] | --resume [ID] | --list | --forget ID"
#define ABOUT \
	"Sends a POST, PUT, PATCH or DELETE with a new key, and sends it again with the\n" \
	"same key until the answer is definite. The request is written to a journal\n" \
	"before its first byte leaves. If hapax call is killed, `hapax call --resume`\n" \
	"continues. The body of the definite answer goes to standard output.\n\n" \
	"Exit codes:\n" \
	"  0  a definite 2xx or 303\n" \
	"  1  any other definite answer, or the call could not start\n" \
	"  2  called in a wrong way; nothing was sent\n" \
	"  3  not definite: it may have happened; the call is kept for --resume\n" \
	"  4  not definite: nothing has happened; the call is kept for --resume"

int hpx_cli_call(int argc, char **argv)
{
	struct hpx_call_command command = { .terminal = isatty(STDERR_FILENO) != 0 };
	const struct hpx_cli_flag flags[] = {
		{ "H,header", "LINE...",
		  "A header, \"Name: value\", or @FILE with one in each line; may be repeated. "
		  "The journal keeps no credential, and of a file only its name.",
		  command.flags.headers },
#define X(member, flag, value, text) { flag, value, text, &command.flags.member },
		HPX_CALL_FLAG_LIST(X)
#undef X
	};
	const struct hpx_cli_usage usage = { SYNOPSIS, ABOUT, flags,
					     sizeof(flags) / sizeof(flags[0]), 2 };
	int rest, code;

	if (!hpx_cli_read(&usage, argc, argv, &rest, &code))
		return code;
	code = run(&command, argc - rest, argv + rest);
	atomic_store(&running, NULL);
	hapax_client_close(command.client);
	free(command.kept);
	return code;
}
