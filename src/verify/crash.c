/* Killing the server under test and starting it again, by the shell commands
 * of the description. Between fork and exec only async-signal-safe functions
 * are called. */
#include "verify/run_state.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"

/* ---- shell commands ---- */

#define OUTPUT_BYTES_MAX ((off_t)1 << 20)
#define SHOWN_BYTES_MAX 240
/* How long a server may take to end after SIGTERM. */
#define KIND_MS 3000
#define END_POLL_MS 10

void hpx_shell_init(struct hpx_shell *command)
{
	*command = (struct hpx_shell){ .output = -1 };
}

static _Noreturn void exec_shell(const char *text, int output)
{
	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	int nothing = open("/dev/null", O_RDONLY);
	if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
	    dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0)
		execl("/bin/sh", "sh", "-c", text, (char *)NULL);
	_exit(127);
}

/* A file in memory, in append mode: it can be truncated while the server writes. */
static int make_output(void)
{
	int fd = memfd_create("output", MFD_CLOEXEC);

	if (fd >= 0)
		fcntl(fd, F_SETFL, O_APPEND);
	return fd;
}

enum hpx_status hpx_shell_start(struct hpx_shell *command, struct hpx_span text)
{
	char *line = strndup(text.ptr, text.len);

	HPX_ASSERT(text.len > 0);
	hpx_shell_init(command);
	command->output = make_output();
	if (line != NULL && command->output >= 0)
		command->pid = fork();
	if (command->pid == 0 && line != NULL && command->output >= 0)
		exec_shell(line, command->output);
	free(line);
	if (command->pid > 0)
		return HPX_OK;
	hpx_shell_end(command);
	return HPX_NOMEM;
}

bool hpx_shell_runs(struct hpx_shell *command)
{
	if (command->pid > 0 && waitpid(command->pid, &command->wait_status, WNOHANG) == command->pid)
		command->pid = 0;
	return command->pid > 0;
}

bool hpx_shell_is_good(const struct hpx_shell *command)
{
	return command->pid == 0 && WIFEXITED(command->wait_status) && WEXITSTATUS(command->wait_status) == 0;
}

/* The last bytes of the output, without control characters. */
static void read_tail(int fd, char out[SHOWN_BYTES_MAX + 1])
{
	struct stat about;
	off_t from = 0;

	out[0] = '\0';
	if (fd < 0 || fstat(fd, &about) != 0)
		return;
	if (about.st_size > SHOWN_BYTES_MAX)
		from = about.st_size - SHOWN_BYTES_MAX;
	ssize_t n = pread(fd, out, SHOWN_BYTES_MAX, from);
	if (n < 0)
		n = 0;
	while (n > 0 && out[n - 1] == '\n')
		n--;
	for (ssize_t i = 0; i < n; i++)
		if ((unsigned char)out[i] < 0x20 || out[i] == 0x7f)
			out[i] = out[i] == '\n' ? '|' : '?';
	out[n] = '\0';
}

void hpx_shell_explain(const struct hpx_shell *command, char *out, size_t size)
{
	char tail[SHOWN_BYTES_MAX + 1];
	const char *word = "still running";
	int number = 0;

	HPX_ASSERT(size > 0);
	read_tail(command->output, tail);
	if (command->pid == 0 && WIFEXITED(command->wait_status)) {
		word = "exit code";
		number = WEXITSTATUS(command->wait_status);
	} else if (command->pid == 0) {
		word = "ended by signal";
		number = WTERMSIG(command->wait_status);
	}
	if (command->pid == 0)
		snprintf(out, size, "%s %d%s%s", word, number, tail[0] ? ": " : "", tail);
	else
		snprintf(out, size, "%s%s%s", word, tail[0] ? ": " : "", tail);
}

void hpx_shell_trim(struct hpx_shell *command)
{
	struct stat about;

	if (command->output >= 0 && fstat(command->output, &about) == 0 &&
	    about.st_size > OUTPUT_BYTES_MAX && ftruncate(command->output, 0) != 0) {
		/* Truncating a file in memory of our own does not fail; if it did, the
		 * server under test would run out of memory, not we. */
		return;
	}
}

/* Orphaned processes of the group are reaped here where the program is a subreaper.
 * Elsewhere init reaps them, in a container perhaps nobody, and a dead process counts
 * as alive until then. */
static bool group_exists(struct hpx_shell *command, pid_t group)
{
	if (hpx_shell_runs(command))
		return true;
	while (waitpid(-group, NULL, WNOHANG) > 0)
		;
	return kill(-group, 0) == 0;
}

/* The shell may end at once on SIGTERM while the server that it started goes on and
 * holds the port, so the whole process group is waited for. The group's number is not
 * reused while one of its processes exists. */
static void end_group(struct hpx_shell *command)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + KIND_MS;
	pid_t group = command->pid;

	HPX_ASSERT(group > 0);
	kill(-group, SIGTERM);
	while (group_exists(command, group) && hpx_clock_boot_ms() < deadline_ms)
		poll(NULL, 0, END_POLL_MS);
	if (group_exists(command, group))
		kill(-group, SIGKILL);
	while (command->pid > 0 && waitpid(command->pid, &command->wait_status, 0) < 0 && errno == EINTR)
		;
}

void hpx_shell_end(struct hpx_shell *command)
{
	if (hpx_shell_runs(command))
		end_group(command);
	if (command->output >= 0)
		close(command->output);
	hpx_shell_init(command);
}

/* ---- crash and start ---- */

#define POLL_MS 20

static bool never(void *user)
{
	return user != NULL;
}

/* Waits for the command's end. HPX_TIMEOUT: it still runs. */
static enum hpx_status await_end(struct hpx_verify *run, struct hpx_shell *command)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + (int64_t)run->spec->settle_ms;

	while (hpx_shell_runs(command)) {
		if (hpx_clock_boot_ms() >= deadline_ms || run->stopped)
			return HPX_TIMEOUT;
		hpx_verify_poll(run, never, NULL, POLL_MS);
	}
	return HPX_OK;
}

enum hpx_status hpx_verify_crash(struct hpx_verify *run, char problem[HPX_VERIFY_PROBLEM_SIZE])
{
	char how[HPX_VERIFY_PROBLEM_SIZE - 64];
	struct hpx_shell command;
	enum hpx_status status = hpx_shell_start(&command, run->spec->crash_cmd);

	if (status != HPX_OK) {
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE, "the crash command cannot be run");
		return status;
	}
	status = await_end(run, &command);
	if (status != HPX_OK || !hpx_shell_is_good(&command)) {
		hpx_shell_explain(&command, how, sizeof(how));
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE, "the crash command failed: %s", how);
		status = status != HPX_OK ? status : HPX_UNAVAILABLE;
	}
	hpx_shell_end(&command);
	return status;
}

/* Not counted as a request: the connection is closed at once. */
static bool takes_connections(struct hpx_verify *run)
{
	struct hpx_verify_host again = run->host;
	char problem[HPX_VERIFY_PROBLEM_SIZE];

	if (again.address_size == 0)
		return hpx_verify_open(run, problem) == HPX_OK;
	return hpx_verify_host_try(&again, (int64_t)run->spec->answer_timeout_ms, problem) ==
	       HPX_OK;
}

/* The request that shows that the server is up: one that only reads, by the
 * description. A GET of the main request's path might do something. False: there is
 * none. */
static bool choose_probe(struct hpx_verify *run, struct hpx_verify_variant *ret_probe)
{
	static const struct hpx_span no_key;
	bool counts = hpx_verify_counts_effects(run);

	if (!counts && !run->spec->requests[HPX_REQUEST_get].given)
		return false;
	*ret_probe = (struct hpx_verify_variant){ .key_values = &no_key };
	ret_probe->op =
		hpx_verify_op_draft(run, counts ? HPX_REQUEST_main : HPX_REQUEST_get);
	if (ret_probe->op == NULL || !counts)
		return ret_probe->op != NULL;
	ret_probe->method = HPX_SPAN("GET");
	ret_probe->path = hpx_verify_op_path(run, ret_probe->op, run->spec->effects_path);
	ret_probe->body = HPX_SPAN("");
	ret_probe->content_type = HPX_SPAN("");
	return ret_probe->path.ptr != NULL;
}

/* A 5xx means that the server is not up yet. */
static bool answers_probe(struct hpx_verify *run, const struct hpx_verify_variant *probe)
{
	const struct hpx_verify_exchange *exchange = hpx_verify_send(run, probe);

	return exchange->end == HPX_EXCHANGE_ANSWERED && exchange->status < 500;
}

static enum hpx_status refuse(struct hpx_verify *run, char *problem, const char *what)
{
	char how[HPX_VERIFY_PROBLEM_SIZE - 128];

	hpx_shell_explain(&run->server, how, sizeof(how));
	snprintf(problem, HPX_VERIFY_PROBLEM_SIZE, "%s; the start command: %s", what, how);
	return HPX_UNAVAILABLE;
}

static enum hpx_status await_server(struct hpx_verify *run, char *problem)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + (int64_t)run->spec->settle_ms;
	struct hpx_verify_variant probe;
	bool has_probe = choose_probe(run, &probe);

	for (;;) {
		if (!hpx_shell_runs(&run->server) && !hpx_shell_is_good(&run->server))
			return refuse(run, problem, "the server did not start");
		bool listens = takes_connections(run);
		if (listens && (!has_probe || answers_probe(run, &probe)))
			return HPX_OK;
		if (hpx_verify_stop_reason(run) != NULL)
			return refuse(run, problem, hpx_verify_stop_reason(run));
		if (hpx_clock_boot_ms() >= deadline_ms)
			return refuse(run, problem,
				      listens ? "the server did not answer a GET in time" :
						"the server took no connection in time");
		hpx_verify_pause(run, POLL_MS);
	}
}

enum hpx_status hpx_verify_start_again(struct hpx_verify *run,
				       char problem[HPX_VERIFY_PROBLEM_SIZE])
{
	/* A server of an earlier start, still in the foreground, would hold the port. */
	hpx_shell_end(&run->server);
	HPX_ASSERT(run->server.pid == 0);
	enum hpx_status status = hpx_shell_start(&run->server, run->spec->start_cmd);
	if (status != HPX_OK) {
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE, "the start command cannot be run");
		return status;
	}
	return await_server(run, problem);
}
