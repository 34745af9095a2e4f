/* The writer has two blocks of memory. Lines are added to one while the thread writes the
 * other; then they change places. The lock is held for a copy or for the change, never for a
 * system call that may wait.
 *
 * 1. A destination gets whole lines. Where a write ended inside a line (a full disk), the
 *    next one begins with a newline.
 * 2. A pipe, a socket and a terminal get at most PIPE_BUF bytes at once, after poll() said
 *    that there is room: such a write does not block, and is one piece for the reader.
 * 3. The writer of events does not log by hpx_log: the line would go through the very memory
 *    that was full. It writes the line itself, behind the lines that still had room. */
#include "base/log_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

/* Some 4,000 lines: a burst, or a second of a disk that hesitates. */
#define BLOCK_BYTES ((size_t)1 << 20)
/* Lines wait this long for others, so that a busy process makes few system calls … */
#define GATHER_MS 50
/* … unless there are so many. */
#define GATHER_BYTES ((size_t)64 << 10)
/* How often a full pipe is looked at for the end of the process. */
#define POLL_MS 100
/* At the end: how long the rest may take, and how long the owner waits for the thread. A
 * process has two writers, and ends within two seconds where neither gets rid of its lines. */
#define LAST_WRITES_MS 700
#define LAST_WAIT_MS 1000
/* At most one line in this time says that lines were dropped. */
#define TELL_MS 10000

_Static_assert(HPX_LOG_LINE_MAX <= PIPE_BUF, "a line is one piece for a pipe");

struct block {
	char *bytes;
	size_t len;
};

struct hpx_log_writer {
	const char *name;
	bool is_events; /* to standard error, see invariant 3 */
	struct hpx_thread thread;
	_Atomic uint64_t dropped;
	_Atomic size_t waiting; /* bytes in both blocks */
	/* Under the lock. */
	struct block filling;
	bool reopen;
	char *next_path; /* of the reopening; NULL: standard output */
	bool ended;      /* the thread does nothing any more */
	int64_t stop_ms; /* boot clock: by then the thread gives up */
	/* The thread's own. */
	struct block writing;
	char *path; /* NULL: standard output */
	int fd;
	bool is_stream;  /* written by invariant 2 */
	bool torn;       /* the last write ended inside a line */
	uint64_t told;   /* how many of the dropped lines were told of … */
	int64_t tell_ms; /* … and before when nothing more is told */
};

/* ---- the destination ---- */

/* O_NONBLOCK: a named pipe without a reader is an error and no wait. */
static int open_destination(const struct hpx_log_writer *writer, const char *path)
{
	if (writer->is_events) {
		int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
		return fd >= 0 ? fd : open("/dev/null", O_WRONLY | O_CLOEXEC); /* it was closed */
	}
	if (path == NULL)
		return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);
}

static const char *shown(const char *path)
{
	return path != NULL ? path : "stdout";
}

static void use(struct hpx_log_writer *writer, int fd, char *path)
{
	struct stat st;

	if (writer->fd >= 0)
		close(writer->fd);
	free(writer->path);
	writer->fd = fd;
	writer->path = path;
	writer->torn = false;
	writer->is_stream = fstat(fd, &st) != 0 || !S_ISREG(st.st_mode);
}

/* Takes `path` over. */
static void open_anew(struct hpx_log_writer *writer, char *path)
{
	int fd = open_destination(writer, path);

	if (fd >= 0) {
		use(writer, fd, path);
		return;
	}
	hpx_log(HPX_LOG_ERROR, "log_not_opened",
		"log=%s file=\"%s\" reason=\"%s\" effect=\"%s is written on\"", writer->name, shown(path),
		strerror(errno), shown(writer->path));
	free(path);
}

/* ---- writing ---- */

static void tell_dropped(struct hpx_log_writer *writer, const char *reason)
{
	uint64_t dropped = atomic_load(&writer->dropped);
	int64_t now_ms = hpx_clock_boot_ms();

	if (writer->is_events || dropped == writer->told || now_ms < writer->tell_ms)
		return;
	hpx_log(HPX_LOG_ERROR, "log_lines_dropped", "log=%s file=\"%s\" lines=%llu reason=\"%s\"",
		writer->name, shown(writer->path), (unsigned long long)(dropped - writer->told), reason);
	writer->told = dropped;
	writer->tell_ms = now_ms + TELL_MS;
}

/* The lines are lost. A part of the first may be out. */
static void drop(struct hpx_log_writer *writer, struct hpx_span lines, const char *reason)
{
	atomic_fetch_add(&writer->dropped, hpx_span_count(lines, '\n'));
	tell_dropped(writer, reason);
}

static bool has_no_time(struct hpx_log_writer *writer)
{
	hpx_thread_lock(&writer->thread);
	bool over = writer->thread.stopping && hpx_clock_boot_ms() >= writer->stop_ms;
	hpx_thread_unlock(&writer->thread);
	return over;
}

/* Waits until a stream has room. False: the time is over. */
static bool wait_for_room(struct hpx_log_writer *writer)
{
	struct pollfd one = { .fd = writer->fd, .events = POLLOUT };

	while (poll(&one, 1, POLL_MS) == 0) {
		if (has_no_time(writer))
			return false;
		tell_dropped(writer, "nobody reads it");
	}
	return true;
}

/* The next piece: all of it; of a stream, as many whole lines as PIPE_BUF has room for. */
static struct hpx_span next_piece(const struct hpx_log_writer *writer, struct hpx_span lines)
{
	if (!writer->is_stream || lines.len <= PIPE_BUF)
		return lines;
	size_t len = PIPE_BUF;
	while (len > 0 && lines.ptr[len - 1] != '\n')
		len--;
	return hpx_span_first(lines, len > 0 ? len : PIPE_BUF);
}

/* How much was written; -1: errno says why not. `goes_on`: the piece is the rest of the line
 * that the last write ended in. */
static ssize_t write_some(struct hpx_log_writer *writer, struct hpx_span piece, bool goes_on)
{
	ssize_t n;

	if (writer->is_stream && !wait_for_room(writer)) {
		errno = ETIMEDOUT;
		return -1;
	}
	if (writer->torn && !goes_on && write(writer->fd, "\n", 1) != 1)
		return -1;
	n = write(writer->fd, piece.ptr, piece.len);
	if (n > 0)
		writer->torn = piece.ptr[n - 1] != '\n';
	return n;
}

/* False: lines were dropped. */
static bool write_out(struct hpx_log_writer *writer, struct hpx_span lines)
{
	bool goes_on = false;

	while (lines.len > 0) {
		struct hpx_span piece = next_piece(writer, lines);
		ssize_t n = write_some(writer, piece, goes_on);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0) {
			drop(writer, lines, n < 0 ? strerror(errno) : "it takes nothing");
			return false;
		}
		goes_on = (size_t)n < piece.len;
		lines = hpx_span_skip(lines, (size_t)n);
	}
	return true;
}

/* Of the event log: tells of the lines that were dropped up to here. */
static void tell_gap(struct hpx_log_writer *writer, uint64_t dropped)
{
	char line[HPX_LOG_LINE_MAX];

	if (!writer->is_events || dropped == writer->told)
		return;
	size_t len = hpx_log_print(line, HPX_LOG_ERROR, "log_lines_dropped",
				   "log=events file=stderr lines=%llu reason=\"it did not take them in time\"",
				   (unsigned long long)(dropped - writer->told));
	if (write_out(writer, hpx_span(line, len)))
		writer->told = dropped;
}

/* ---- the thread ---- */

/* With the lock held: waits until there is something to do. False: the end. */
static bool wait_for_work(struct hpx_log_writer *writer)
{
	struct hpx_thread *thread = &writer->thread;

	while (!thread->stopping && !writer->reopen && writer->filling.len == 0)
		hpx_thread_wait(thread, INT64_MAX);
	int64_t until_ms = hpx_clock_boot_ms() + (writer->is_events ? 0 : GATHER_MS);
	while (!thread->stopping && !writer->reopen && writer->filling.len < GATHER_BYTES &&
	       hpx_clock_boot_ms() < until_ms)
		hpx_thread_wait(thread, until_ms);
	return !thread->stopping || writer->reopen || writer->filling.len > 0;
}

static void *run(void *user)
{
	struct hpx_log_writer *writer = user;
	struct hpx_thread *thread = &writer->thread;

	hpx_thread_lock(thread);
	while (wait_for_work(writer)) {
		struct block full = writer->filling;
		bool reopen = writer->reopen;
		char *path = writer->next_path;
		uint64_t dropped = atomic_load(&writer->dropped);

		writer->filling = writer->writing;
		writer->writing = full;
		writer->reopen = false;
		writer->next_path = NULL;
		hpx_thread_unlock(thread);
		/* What came before the wish to reopen belongs to the old file, as far as
		 * anybody can tell: a rotation loses and doubles nothing. */
		if (write_out(writer, hpx_span(full.bytes, full.len)))
			tell_gap(writer, dropped);
		writer->writing.len = 0;
		atomic_fetch_sub(&writer->waiting, full.len);
		if (reopen)
			open_anew(writer, path);
		tell_dropped(writer, "more came than could be written");
		hpx_thread_lock(thread);
	}
	writer->ended = true;
	hpx_thread_wake(thread);
	hpx_thread_unlock(thread);
	return NULL;
}

/* ---- for the owner ---- */

static void free_writer(struct hpx_log_writer *writer)
{
	if (writer->fd >= 0)
		close(writer->fd);
	free(writer->filling.bytes);
	free(writer->writing.bytes);
	free(writer->path);
	free(writer->next_path);
	free(writer);
}

static bool copy_path(const char *path, char **ret_copy)
{
	*ret_copy = path != NULL ? strdup(path) : NULL;
	return path == NULL || *ret_copy != NULL;
}

static enum hpx_status start(struct hpx_log_writer *writer, const char *path, char *problem)
{
	char *copy;
	int fd;

	writer->filling.bytes = malloc(BLOCK_BYTES);
	writer->writing.bytes = malloc(BLOCK_BYTES);
	if (writer->filling.bytes == NULL || writer->writing.bytes == NULL || !copy_path(path, &copy))
		return HPX_NOMEM;
	fd = open_destination(writer, path);
	if (fd < 0) {
		snprintf(problem, HPX_LOG_WRITER_PROBLEM_SIZE, "%s cannot be opened for writing: %s",
			 shown(path), strerror(errno));
		free(copy);
		return HPX_IO;
	}
	use(writer, fd, copy);
	enum hpx_status status = hpx_thread_init(&writer->thread);
	if (status != HPX_OK)
		return status;
	status = hpx_thread_run(&writer->thread, run, writer);
	if (status != HPX_OK)
		hpx_thread_done(&writer->thread);
	return status;
}

static enum hpx_status new_writer(const char *name, const char *path, bool is_events,
				  struct hpx_log_writer **ret_writer, char *problem)
{
	struct hpx_log_writer *writer = calloc(1, sizeof(*writer));

	snprintf(problem, HPX_LOG_WRITER_PROBLEM_SIZE, "%s", hpx_status_text(HPX_NOMEM));
	if (writer == NULL)
		return HPX_NOMEM;
	writer->name = name;
	writer->is_events = is_events;
	writer->fd = -1;
	enum hpx_status status = start(writer, path, problem);
	if (status != HPX_OK) {
		free_writer(writer);
		return status;
	}
	*ret_writer = writer;
	return HPX_OK;
}

enum hpx_status hpx_log_writer_start(const char *name, const char *path,
				     struct hpx_log_writer **ret_writer,
				     char problem[HPX_LOG_WRITER_PROBLEM_SIZE])
{
	return new_writer(name, path, false, ret_writer, problem);
}

enum hpx_status hpx_log_writer_start_events(struct hpx_log_writer **ret_writer)
{
	char problem[HPX_LOG_WRITER_PROBLEM_SIZE];

	return new_writer("events", NULL, true, ret_writer, problem);
}

void hpx_log_writer_add(struct hpx_log_writer *writer, struct hpx_span lines, size_t count)
{
	hpx_thread_lock(&writer->thread);
	struct block *filling = &writer->filling;
	size_t before = filling->len;
	if (lines.len <= BLOCK_BYTES - before) {
		memcpy(filling->bytes + before, lines.ptr, lines.len);
		filling->len += lines.len;
		atomic_fetch_add(&writer->waiting, lines.len);
	} else {
		atomic_fetch_add(&writer->dropped, count);
	}
	bool wake = before == 0 || (before < GATHER_BYTES && filling->len >= GATHER_BYTES);
	hpx_thread_unlock(&writer->thread);
	if (wake)
		hpx_thread_wake(&writer->thread);
}

enum hpx_status hpx_log_writer_reopen(struct hpx_log_writer *writer, const char *path)
{
	char *copy;

	if (!copy_path(path, &copy))
		return HPX_NOMEM;
	hpx_thread_lock(&writer->thread);
	free(writer->next_path);
	writer->next_path = copy;
	writer->reopen = true;
	hpx_thread_wake(&writer->thread);
	hpx_thread_unlock(&writer->thread);
	return HPX_OK;
}

uint64_t hpx_log_writer_dropped(const struct hpx_log_writer *writer)
{
	return atomic_load_explicit(&writer->dropped, memory_order_relaxed);
}

bool hpx_log_writer_idle(const struct hpx_log_writer *writer)
{
	return atomic_load(&writer->waiting) == 0;
}

void hpx_log_writer_stop(struct hpx_log_writer *writer)
{
	if (writer == NULL)
		return;
	struct hpx_thread *thread = &writer->thread;
	int64_t now_ms = hpx_clock_boot_ms();
	hpx_thread_lock(thread);
	thread->stopping = true;
	writer->stop_ms = now_ms + LAST_WRITES_MS;
	hpx_thread_wake(thread);
	while (!writer->ended && hpx_clock_boot_ms() < now_ms + LAST_WAIT_MS)
		hpx_thread_wait(thread, now_ms + LAST_WAIT_MS);
	bool ended = writer->ended;
	hpx_thread_unlock(thread);
	if (!ended && writer->is_events)
		return; /* nobody can be told */
	if (!ended) {
		hpx_log(HPX_LOG_ERROR, "log_lines_dropped",
			"log=%s reason=\"the file system does not take them, and the process ends\"",
			writer->name);
		return;
	}
	hpx_thread_stop(thread);
	hpx_thread_done(thread);
	free_writer(writer);
}
