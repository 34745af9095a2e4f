/* The stage of the demo: the folder, the ports and hapax's process; every part is started
 * in order and stopped in the reverse. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/demo.h"
#include "store/store.h"

#define READY_TIMEOUT_MS 10000
#define RUN_TIMEOUT_MS 10000
#define ARGUMENTS_MAX 16
#define POLL_MS 20
/* Attempts of a client that wants a definite answer. */
#define ATTEMPTS 5

/* ---- hapax, in processes of their own ----
 * Between fork and exec only calls that are safe there are made: other threads may hold
 * locks. */

/* In the child: a process group of its own, because Ctrl-C is the demo's to handle; no
 * blocked signals; and a death signal for when the demo ends in whatever way. */
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

	for (size_t i = 0; arguments[i] != NULL; i++) {
		HPX_ASSERT(i < ARGUMENTS_MAX);
		argv[i + 1] = arguments[i];
	}
	pid_t pid = fork();
	if (pid == 0)
		become((char *const *)argv, output);
	return pid;
}

/* Whether the child runs; reaps it where it does not. */
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
	struct hpx_egress_request answer;

	hpx_demo_get(child->admin_port, "/readyz", &answer);
	bool ready = answer.end == HPX_EGRESS_ANSWERED && answer.status == 200;
	hpx_egress_request_done(&answer);
	return ready;
}

static enum hpx_status launch(struct hpx_demo_stage *stage)
{
	const char *const arguments[] = { "serve", "--config", stage->config_path, NULL };
	struct hpx_demo_child *child = &stage->hapax;
	enum hpx_status status = HPX_OK;
	int log = open(stage->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (log < 0)
		return HPX_IO;
	pthread_mutex_lock(&child->lock);
	HPX_ASSERT(child->pid == 0);
	if (child->ended)
		status = HPX_CLOSED;
	else
		child->pid = spawn(arguments, log);
	if (child->pid < 0) {
		child->pid = 0;
		status = HPX_NOMEM;
	}
	pthread_mutex_unlock(&child->lock);
	close(log);
	return status;
}

enum hpx_status hpx_demo_hapax_start(struct hpx_demo_stage *stage)
{
	int64_t deadline_ms = hpx_clock_boot_ms() + READY_TIMEOUT_MS;
	enum hpx_status status = launch(stage);

	while (status == HPX_OK && !is_ready(&stage->hapax)) {
		if (!runs(&stage->hapax))
			return HPX_CLOSED;
		if (hpx_clock_boot_ms() > deadline_ms)
			return HPX_TIMEOUT;
		poll(NULL, 0, POLL_MS);
	}
	return status;
}

/* `for_good`: it is never started again. Not a drain: nothing that the demo leaves behind
 * is of any worth. */
static void kill_child(struct hpx_demo_child *child, bool for_good)
{
	pthread_mutex_lock(&child->lock);
	if (child->pid > 0) {
		kill(child->pid, SIGKILL);
		while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	child->pid = 0;
	child->ended = child->ended || for_good;
	pthread_mutex_unlock(&child->lock);
}

void hpx_demo_hapax_kill(struct hpx_demo_stage *stage)
{
	kill_child(&stage->hapax, false);
}

/* Reads until the program closes its end of the pipe; false at the deadline. */
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

/* ---- the folder ---- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
	(void)info;
	(void)kind;
	(void)at;
	return remove(path);
}

/* Locks the folder for this demo. False: it is another user's, or a running demo has
 * it. */
static bool hold_folder(struct hpx_demo_stage *stage)
{
	struct stat info;
	int fd = open(stage->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return false;
	HPX_ASSERT(stage->folder_fd < 0);
	if (fstat(fd, &info) != 0 || info.st_uid != geteuid() || (info.st_mode & 077) != 0 ||
	    flock(fd, LOCK_EX | LOCK_NB) != 0) {
		close(fd);
		return false;
	}
	stage->folder_fd = fd;
	return true;
}

/* The folder hapax-demo, which the README names. Files that a killed demo left there are
 * removed: a reader would take its store for this one's. */
static bool take_known_folder(struct hpx_demo_stage *stage)
{
	if (mkdir(stage->folder, 0700) == 0)
		return hold_folder(stage);
	if (errno != EEXIST || !hold_folder(stage))
		return false;
	nftw(stage->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	close(stage->folder_fd);
	stage->folder_fd = -1;
	return mkdir(stage->folder, 0700) == 0 && hold_folder(stage);
}

/* `known`: the folder that the README names, unless it is taken. */
static enum hpx_status make_folder(struct hpx_demo_stage *stage, bool known)
{
	const char *tmp = getenv("TMPDIR");

	if (tmp == NULL || *tmp != '/' || strlen(tmp) > 1024)
		tmp = "/tmp";
	snprintf(stage->folder, sizeof(stage->folder), "%s/hapax-demo", tmp);
	if (!known || !take_known_folder(stage)) {
		snprintf(stage->folder, sizeof(stage->folder), "%s/hapax-demo-XXXXXX", tmp);
		if (mkdtemp(stage->folder) == NULL) {
			stage->folder[0] = '\0';
			return HPX_IO;
		}
	}
	snprintf(stage->config_path, PATH_MAX, "%s/hapax.yaml", stage->folder);
	snprintf(stage->log_path, PATH_MAX, "%s/hapax.log", stage->folder);
	snprintf(stage->store_url, PATH_MAX, HPX_STORE_FILE_URL "%s/hapax.db", stage->folder);
	return HPX_OK;
}

/* ---- the parts ---- */

/* In the order in which they are built; `built` counts them. */
enum stage_part { FOLDER,
		  CLIENT,
		  ONE_SHOT,
		  WITHOUT_API,
		  WITHOUT_NETWORK,
		  WITH_API,
		  BEHIND,
		  HAPAX,
		  WITH_NETWORK };

static enum hpx_status write_config(const struct hpx_demo_stage *stage)
{
	FILE *file = fopen(stage->config_path, "wxe");

	if (file == NULL)
		return HPX_IO;
	fprintf(file,
		"listen: 127.0.0.1:%u\n"
		"admin: 127.0.0.1:%u\n"
		"upstream: http://127.0.0.1:%u\n"
		"store: %s\n"
		"routes:\n"
		"  - match: POST /payments\n"
		"    concurrent: wait\n"
		"    server_error: unknown\n",
		stage->hapax.port, stage->hapax.admin_port, stage->behind.server.port,
		stage->store_url);
	return fclose(file) == 0 ? HPX_OK : HPX_IO;
}

/* Holds the right to the known ports: an abstract socket that one demo on this machine can
 * bind; -1 where another demo has it. hapax is killed and started again in the story:
 * between the two its port is free, and another demo would take it. */
static int hold_ports(void)
{
	static const char name[] = "\0hapax-demo";
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(at.sun_path, name, sizeof(name) - 1);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&at,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
					sizeof(name) - 1)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static enum hpx_status start_hapax(struct hpx_demo_stage *stage, bool known)
{
	stage->hapax.port = hpx_demo_port(known ? 8080 : 0);
	stage->hapax.admin_port = hpx_demo_port(known ? 8081 : 0);
	enum hpx_status status = write_config(stage);
	return status == HPX_OK ? hpx_demo_hapax_start(stage) : status;
}

static enum hpx_status build(struct hpx_demo_stage *stage, enum stage_part part, bool known)
{
	bool known_ports = stage->ports_fd >= 0;
	char ledger[PATH_MAX];

	snprintf(ledger, sizeof(ledger), "%s/ledger-%s", stage->folder,
		 part == WITHOUT_API ? "without" : "with");
	switch (part) {
	case FOLDER:
		return make_folder(stage, known);
	case CLIENT:
		return hpx_demo_client_open(ATTEMPTS, &stage->client);
	case ONE_SHOT:
		return hpx_demo_client_open(1, &stage->one_shot);
	case WITHOUT_API:
		return hpx_demo_api_start(&stage->without.api, ledger);
	case WITHOUT_NETWORK:
		return hpx_demo_network_start(&stage->without.network, known_ports ? 9000 : 0,
					      stage->without.api.server.port);
	case WITH_API:
		return hpx_demo_api_start(&stage->with.api, ledger);
	case BEHIND:
		return hpx_demo_network_start(&stage->behind, 0, stage->with.api.server.port);
	case HAPAX:
		return start_hapax(stage, known_ports);
	case WITH_NETWORK:
		return hpx_demo_network_start(&stage->with.network, known_ports ? 8082 : 0,
					      stage->hapax.port);
	}
	return HPX_MISUSE;
}

/* The end of hapax's log, before the log is removed. */
static void read_log_tail(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;

	if (fd >= 0) {
		off_t end = lseek(fd, 0, SEEK_END);
		off_t from = end > (off_t)size - 1 ? end - ((off_t)size - 1) : 0;
		n = pread(fd, out, size - 1, from);
		close(fd);
	}
	out[n > 0 ? n : 0] = '\0';
}

static void explain(const struct hpx_demo_stage *stage, enum stage_part part, enum hpx_status status,
		    char *problem, size_t problem_size)
{
	char tail[700];

	if (part == FOLDER) {
		snprintf(problem, problem_size,
			 "no folder can be made for its files (%s); set TMPDIR to one where it can",
			 strerror(errno));
	} else if (part == HAPAX) {
		read_log_tail(stage->log_path, tail, sizeof(tail));
		snprintf(problem, problem_size, "hapax serve did not start (%s); it said:\n%s",
			 hpx_status_text(status), tail);
	} else {
		snprintf(problem, problem_size, "a part of it could not be started: %s",
			 hpx_status_text(status));
	}
}

enum hpx_status hpx_demo_stage_open(struct hpx_demo_stage *stage, bool known, char *problem,
				    size_t problem_size)
{
	HPX_ASSERT(stage->built == 0);
	stage->folder_fd = -1;
	stage->ports_fd = known ? hold_ports() : -1;
	stage->without.name = "without hapax";
	stage->with.name = "with hapax";
	stage->with.guarded = true;
	pthread_mutex_init(&stage->hapax.lock, NULL);
	for (enum stage_part part = FOLDER; part <= WITH_NETWORK; part++) {
		enum hpx_status status = build(stage, part, known);
		if (status != HPX_OK) {
			explain(stage, part, status, problem, problem_size);
			hpx_demo_stage_close(stage);
			return status;
		}
		stage->built = (unsigned)part + 1;
	}
	return HPX_OK;
}

void hpx_demo_stage_sweep(struct hpx_demo_stage *stage)
{
	kill_child(&stage->hapax, true);
	if (stage->folder[0] != '\0')
		nftw(stage->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The APIs first: networks wait for their answers. */
void hpx_demo_stage_close(struct hpx_demo_stage *stage)
{
	kill_child(&stage->hapax, true);
	if (stage->built > WITHOUT_API)
		hpx_demo_api_stop(&stage->without.api);
	if (stage->built > WITH_API)
		hpx_demo_api_stop(&stage->with.api);
	if (stage->built > WITHOUT_NETWORK)
		hpx_demo_server_stop(&stage->without.network.server);
	if (stage->built > BEHIND)
		hpx_demo_server_stop(&stage->behind.server);
	if (stage->built > WITH_NETWORK)
		hpx_demo_server_stop(&stage->with.network.server);
	hapax_client_close(stage->client);
	hapax_client_close(stage->one_shot);
	hpx_demo_stage_sweep(stage);
	if (stage->folder_fd >= 0)
		close(stage->folder_fd);
	if (stage->ports_fd >= 0)
		close(stage->ports_fd);
	stage->folder_fd = stage->ports_fd = -1;
}
