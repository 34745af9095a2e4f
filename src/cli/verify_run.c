/* A run of `hapax verify`: signals, progress, reports. */
#include "cli/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "verify/report.h"

struct judgement {
	const struct hpx_verify_output *output;
	struct hpx_verify *run;
	int stop_fd;
	FILE *junit; /* opened before the run: five minutes are not to be lost */
	FILE *log;
	size_t judged; /* rows so far */
	bool shows_progress;
};

static int complain(const char *what, const char *cause, int code)
{
	fprintf(stderr, "hapax verify: %s%s\n", what, cause);
	return code;
}

static void clear_line(const struct judgement *v)
{
	if (v->shows_progress)
		fprintf(stderr, "\r\033[K");
}

/* One line, written over again. */
static void tell(void *user, const struct hpx_row *row, const struct hpx_row_result *row_result)
{
	struct judgement *v = user;

	v->judged += row_result != NULL;
	if (!v->shows_progress || row_result != NULL)
		return;
	fprintf(stderr, "\r\033[K%zu/%zu %s", v->judged + 1, hpx_row_count, row->name);
}

/* Ctrl-C, or a terminal that is closed, ends the run, not the program: a server that was started is ended,
 * and what was found so far is told. */
static int heed_signals(struct judgement *v)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	/* So that a server whose shell ended first is seen to end. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	v->stop_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (v->stop_fd < 0)
		return complain("no signalfd: ", strerror(errno), HPX_VERIFY_FAILED);
	hpx_verify_stop_on(v->run, v->stop_fd);
	return HPX_VERIFY_HOLDS;
}

/* A server that is not there is a finding; a host that is not, a mistake. */
static int reach(struct judgement *v)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE];
	enum hpx_status status = hpx_verify_open(v->run, problem);

	if (status == HPX_OK || status == HPX_UNAVAILABLE)
		return HPX_VERIFY_HOLDS;
	return complain(problem, "; nothing was sent", HPX_VERIFY_MISTAKEN);
}

/* ---- reports ---- */

/* Bodies may be nobody else's business: the log is its owner's. */
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

static int open_files(struct judgement *v)
{
	if (v->output->junit != NULL)
		v->junit = open_file(v->output->junit, 0666);
	if (v->output->log != NULL)
		v->log = open_file(v->output->log, 0600);
	bool all = (v->output->junit == NULL || v->junit != NULL) &&
		   (v->output->log == NULL || v->log != NULL);
	return all ? HPX_VERIFY_HOLDS : HPX_VERIFY_MISTAKEN;
}

static int close_file(FILE **file, const char *path, enum hpx_status status)
{
	bool written = fclose(*file) == 0 && status == HPX_OK;

	*file = NULL;
	return written ? HPX_VERIFY_HOLDS : complain("cannot be written: ", path, HPX_VERIFY_FAILED);
}

static int write_files(struct judgement *v, const struct hpx_verify_result *result)
{
	int code = HPX_VERIFY_HOLDS;

	if (v->junit != NULL)
		code = close_file(&v->junit, v->output->junit,
				  hpx_report_junit(v->run, result, v->junit));
	if (v->log != NULL && code == HPX_VERIFY_HOLDS)
		code = close_file(&v->log, v->output->log, hpx_report_log(v->run, v->log));
	return code;
}

static bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && (no == NULL || *no == '\0');
}

static int report(struct judgement *v, const struct hpx_verify_result *result)
{
	int code = write_files(v, result);

	if (v->output->json == NULL)
		hpx_report_table(v->run, result, wants_colour(), v->output->all != NULL, stdout);
	else if (hpx_report_json(v->run, result, stdout) != HPX_OK)
		return complain("the report cannot be written", "", HPX_VERIFY_FAILED);
	if (fflush(stdout) != 0)
		return complain("the report cannot be written: ", strerror(errno),
				HPX_VERIFY_FAILED);
	return code != HPX_VERIFY_HOLDS || !result->holds ? HPX_VERIFY_FAILED : HPX_VERIFY_HOLDS;
}

/* A run that was stopped found nothing out about the rest. */
static bool was_stopped(const struct judgement *v)
{
	struct signalfd_siginfo signal;

	return read(v->stop_fd, &signal, sizeof(signal)) == (ssize_t)sizeof(signal);
}

static int check(struct judgement *v)
{
	struct hpx_verify_result result;
	int code = heed_signals(v);

	if (code == HPX_VERIFY_HOLDS)
		code = open_files(v);
	if (code == HPX_VERIFY_HOLDS)
		code = reach(v);
	if (code != HPX_VERIFY_HOLDS)
		return code;
	v->shows_progress = isatty(STDERR_FILENO);
	enum hpx_status status = hpx_verify_run(v->run, tell, v, &result);
	clear_line(v);
	if (status != HPX_OK)
		return complain("the run failed: ", hpx_status_text(status), HPX_VERIFY_FAILED);
	code = report(v, &result);
	hpx_verify_result_done(&result);
	if (was_stopped(v))
		code = complain("the run was stopped", "", HPX_VERIFY_FAILED);
	return code;
}

int hpx_verify_judge(const struct hpx_verify_spec *spec, const struct hpx_verify_output *output)
{
	struct judgement v = { .output = output, .stop_fd = -1 };

	enum hpx_status status = hpx_verify_new(spec, &v.run);
	if (status != HPX_OK)
		return complain("a run cannot be made: ", hpx_status_text(status),
				HPX_VERIFY_FAILED);
	int code = check(&v);
	hpx_verify_free(v.run);
	if (v.junit != NULL)
		fclose(v.junit);
	if (v.log != NULL)
		fclose(v.log);
	if (v.stop_fd >= 0)
		close(v.stop_fd);
	return code;
}
