/* Writes lines of text on a thread of its own: to standard output, or to a file that can be
 * opened anew. Whoever adds lines never waits for the disk or for the reader of a pipe: what
 * does not fit into the bounded memory is dropped and counted. Whole lines only are taken,
 * written and dropped. */
#ifndef HPX_BASE_LOG_WRITER_H
#define HPX_BASE_LOG_WRITER_H

#include "base/span.h"
#include "base/status.h"

/* No added line may be longer: what a pipe takes in one piece (PIPE_BUF) has room for
 * several, so that lines of several writers never mix. */
#define HPX_LOG_LINE_MAX 2048
#define HPX_LOG_WRITER_PROBLEM_SIZE 512

struct hpx_log_writer;

/* `path` NULL: standard output. `name` begins the events that the writer itself logs
 * ("access_log": access_log_dropped); static. Where the file cannot be opened, `problem` has
 * a sentence. */
enum hpx_status hpx_log_writer_start(const char *name, const char *path,
				     struct hpx_log_writer **ret_writer,
				     char problem[HPX_LOG_WRITER_PROBLEM_SIZE]);
/* Adds `count` lines, each with its newline. From any thread; never waits. */
void hpx_log_writer_add(struct hpx_log_writer *writer, struct hpx_span lines, size_t count);
/* Opens the destination anew: after a rotation, or another one. Done by the writer's thread.
 * Where that fails, it is logged, and the old one stays. HPX_NOMEM: nothing changes. */
enum hpx_status hpx_log_writer_reopen(struct hpx_log_writer *writer, const char *path);
/* Lines that were dropped since the start; from any thread. */
uint64_t hpx_log_writer_dropped(const struct hpx_log_writer *writer);
/* Writes what is left, within two seconds, and ends. A thread that hangs in the file system
 * is left behind, with its memory. */
void hpx_log_writer_stop(struct hpx_log_writer *writer);

#endif
