/* fork, exec of /proc/self/exe, and waiting with an end. Between fork and exec
 * only calls that are safe there are made: other threads hold locks. */
#include "cli/demo_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/demo_client.h"

#define READY_TIMEOUT_MS 10000
#define RUN_TIMEOUT_MS 10000
#define ARGUMENTS_MAX 16
#define POLL_MS 20

/* In the child: its own process group (Ctrl-C is for the demo to handle), no
 * blocked signals, and it dies with the demo whatever happens to that. */
static _Noreturn void become(char *const *argv, int output)
{
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0)
		execv("/proc/self/exe", argv);
	_exit(127);
}

static pid_t spawn(const char *const *arguments, int output)
{
	const char *argv[ARGUMENTS_MAX + 2] = { "hapax" };

	for (size_t i = 0; i < ARGUMENTS_MAX && arguments[i] != NULL; i++)
		argv[i + 1] = arguments[i];
	pid_t pid = fork();
	if (pid == 0)
		become((char *const *)argv, output);
	return pid;
}

void hpx_demo_child_init(struct hpx_demo_child *child)
{
	child->pid = 0;
	child->ended = false;
	pthread_mutex_init(&child->lock, NULL);
}

/* Whether it still runs; takes note of its end. */
static bool runs(struct hpx_demo_child *child)
{
	pthread_mutex_lock(&child->lock);
	if (child->pid > 0 && waitpid(child->pid, NULL, WNOHANG) == child->pid)
		child->pid = 0;
	bool running = child->pid > 0;
	pthread_mutex_unlock(&child->lock);
	return running;
}

static bool is_ready(const struct hpx_demo_child *child)
{
	struct hpx_demo_message answer;

	hpx_demo_message_init(&answer);
	bool ready = hpx_demo_get(child->admin_port, "/readyz", &answer) == HPX_OK &&
		     answer.head.status == 200;
	hpx_demo_message_done(&answer);
	return ready;
}

static enum hpx_status launch(struct hpx_demo_child *child)
{
	const char *const arguments[] = { "serve", "--config", child->config_path, NULL };
	enum hpx_status status = HPX_OK;
	int log = open(child->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (log < 0)
		return HPX_IO;
	pthread_mutex_lock(&child->lock);
	if (child->ended)
		status = HPX_CLOSED;
	else
		child->pid = spawn(arguments, log);
	if (child->pid < 0)
		status = HPX_NOMEM;
	pthread_mutex_unlock(&child->lock);
	close(log);
	return status;
}

enum hpx_status hpx_demo_child_start(struct hpx_demo_child *child)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + READY_TIMEOUT_MS;
	enum hpx_status status = launch(child);

	while (status == HPX_OK && !is_ready(child)) {
		if (!runs(child))
			return HPX_CLOSED;
		if (hpx_clock_boot_ms() > deadline_ms)
			return HPX_TIMEOUT;
		poll(NULL, 0, POLL_MS);
	}
	return status;
}

static void kill_locked(struct hpx_demo_child *child)
{
	if (child->pid > 0) {
		kill(child->pid, SIGKILL);
		while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	child->pid = 0;
}

void hpx_demo_child_kill(struct hpx_demo_child *child)
{
	pthread_mutex_lock(&child->lock);
	kill_locked(child);
	pthread_mutex_unlock(&child->lock);
}

/* Not a drain: nothing that the demo leaves behind is of any worth. */
void hpx_demo_child_end(struct hpx_demo_child *child)
{
	pthread_mutex_lock(&child->lock);
	child->ended = true;
	kill_locked(child);
	pthread_mutex_unlock(&child->lock);
}

/* Until the program closes its end; false at the deadline. */
static bool collect(int fd, int64_t deadline_ms, struct hpx_buffer *out)
{
	for (;;) {
		int64_t left_ms = deadline_ms - hpx_clock_boot_ms();
		struct pollfd p = { .fd = fd, .events = POLLIN };
		char piece[1024];

		if (left_ms <= 0)
			return false;
		if (poll(&p, 1, (int)left_ms) <= 0)
			continue;
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n == 0)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0 && hpx_buffer_append(out, hpx_span(piece, (size_t)n)) != HPX_OK)
			return false;
	}
}

int hpx_demo_run(const char *const *arguments, struct hpx_buffer *out)
{
	int ends[2], how = 0;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	pid_t pid = spawn(arguments, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return -1;
	}
	bool whole = collect(ends[0], hpx_clock_boot_ms() + RUN_TIMEOUT_MS, out);
	close(ends[0]);
	if (!whole)
		kill(pid, SIGKILL);
	while (waitpid(pid, &how, 0) < 0 && errno == EINTR)
		;
	return whole && WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}
