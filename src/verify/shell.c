/* fork, /bin/sh, and waiting with an end. Between fork and exec only calls that
 * are safe there are made. */
#include "verify/shell.h"

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

#define OUTPUT_BYTES_MAX ((off_t)1 << 20)
#define SHOWN_BYTES_MAX 240
/* How long a server has to end on SIGTERM. */
#define KIND_MS 3000
#define POLL_MS 10

void hpx_shell_init(struct hpx_shell *command)
{
	*command = (struct hpx_shell){ .output = -1 };
}

static _Noreturn void become(const char *text, int output)
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

/* In memory, appended to: it can be cut while somebody writes. */
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

	hpx_shell_init(command);
	command->output = make_output();
	if (line != NULL && command->output >= 0)
		command->pid = fork();
	if (command->pid == 0 && line != NULL && command->output >= 0)
		become(line, command->output);
	free(line);
	if (command->pid > 0)
		return HPX_OK;
	hpx_shell_end(command);
	return HPX_NOMEM;
}

bool hpx_shell_runs(struct hpx_shell *command)
{
	if (command->pid > 0 && waitpid(command->pid, &command->how, WNOHANG) == command->pid)
		command->pid = 0;
	return command->pid > 0;
}

bool hpx_shell_is_good(const struct hpx_shell *command)
{
	return command->pid == 0 && WIFEXITED(command->how) && WEXITSTATUS(command->how) == 0;
}

/* The last bytes of the output, without what a terminal would obey. */
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

	read_tail(command->output, tail);
	if (command->pid == 0 && WIFEXITED(command->how)) {
		word = "exit code";
		number = WEXITSTATUS(command->how);
	} else if (command->pid == 0) {
		word = "ended by signal";
		number = WTERMSIG(command->how);
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
		/* Of a file in memory that is ours this cannot fail; and if it did,
		 * the server under test would lack memory, not we. */
		return;
	}
}

/* Orphans are reaped where the program is their reaper: elsewhere who is, in a
 * container perhaps nobody, and a dead one counts until then. */
static bool is_there(struct hpx_shell *command, pid_t group)
{
	if (hpx_shell_runs(command))
		return true;
	while (waitpid(-group, NULL, WNOHANG) > 0)
		;
	return kill(-group, 0) == 0;
}

/* The shell may end at once on SIGTERM while the server that it waited for goes
 * on, and holds the port: the group counts. Its number stays taken while one of
 * it is there. */
static void end_group(struct hpx_shell *command)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + KIND_MS;
	pid_t group = command->pid;

	kill(-group, SIGTERM);
	while (is_there(command, group) && hpx_clock_boot_ms() < deadline_ms)
		poll(NULL, 0, POLL_MS);
	if (is_there(command, group))
		kill(-group, SIGKILL);
	while (command->pid > 0 && waitpid(command->pid, &command->how, 0) < 0 && errno == EINTR)
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
