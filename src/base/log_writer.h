/* Writes lines of text on a thread of its own: the access log to standard output or to a file
 * that can be opened anew, events to standard error. Whoever adds lines never waits for the
 * disk or for the reader of a pipe: what does not fit into the bounded memory is dropped and
 * counted. Whole lines only are taken, written and dropped. */
#ifndef HPX_BASE_LOG_WRITER_H
#define HPX_BASE_LOG_WRITER_H

#include "base/log.h"
#include "base/span.h"
#include "base/status.h"

#define HPX_LOG_WRITER_PROBLEM_SIZE 512

struct hpx_log_writer;

/* `path` NULL: standard output. `name` begins the events that the writer itself logs
 * ("access_log": access_log_dropped); static. Where the file cannot be opened, `problem` has
 * a sentence. */
enum hpx_status hpx_log_writer_start(const char *name, const char *path,
				     struct hpx_log_writer **ret_writer,
				     char problem[HPX_LOG_WRITER_PROBLEM_SIZE]);
/* The writer of hpx_log: to standard error, every line at once. It tells of the lines that it
 * dropped in its own log, where they are missing. */
enum hpx_status hpx_log_writer_start_events(struct hpx_log_writer **ret_writer);
/* Adds `count` lines, each with its newline; a line longer than PIPE_BUF may mix with those of
 * others. From any thread; never waits. */
void hpx_log_writer_add(struct hpx_log_writer *writer, struct hpx_span lines, size_t count);
/* Opens the destination anew: after a rotation, or another one. Done by the writer's thread.
 * Where that fails, it is logged, and the old one stays. HPX_NOMEM: nothing changes. */
enum hpx_status hpx_log_writer_reopen(struct hpx_log_writer *writer, const char *path);
/* Lines that were dropped since the start; from any thread. */
uint64_t hpx_log_writer_dropped(const struct hpx_log_writer *writer);
/* Whether nothing waits to be written; from any thread, without a lock. */
bool hpx_log_writer_idle(const struct hpx_log_writer *writer);
/* Writes what is left, within a second, and ends. A thread that hangs in the file system
 * is left behind, with its memory. */
void hpx_log_writer_stop(struct hpx_log_writer *writer);

#endif
