/* Log lines for people and their programs: one line per event, on standard error. Only the
 * shell (gateway, worker, cli) logs, once, where it decides. Never a client's key, a
 * credential, a query or a body.
 *
 * A caller writes its line itself until hpx_log_start_writer. From then on a thread writes,
 * and a caller never waits for standard error. */
#ifndef HPX_BASE_LOG_H
#define HPX_BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/status.h"

/* The longest line of any log, with its newline. A pipe takes it in one piece (PIPE_BUF), so
 * that lines of several writers never mix. */
#define HPX_LOG_LINE_MAX 2304

enum hpx_log_level { HPX_LOG_DEBUG,
		     HPX_LOG_INFO,
		     HPX_LOG_WARN,
		     HPX_LOG_ERROR };

enum hpx_log_format { HPX_LOG_TEXT, /* name=value */
		      HPX_LOG_JSON };

/* Lines below this level are dropped. From any thread, like the next. */
void hpx_log_set_level(enum hpx_log_level level);
void hpx_log_set_format(enum hpx_log_format format);

/* hpx_log(HPX_LOG_WARN, "lease_lost", "op=%s attempt=%u reason=\"%s\"", id, n, why): the
 * format is a list of fields, a value with blanks in quotes. Control bytes in a value are
 * written as '?', quotes are escaped; the values are cut at 1 KiB together, and the line is
 * written in one call, so that lines of several threads never mix. */
void hpx_log(enum hpx_log_level level, const char *event, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Lines for a person, as they are: each with its newline. */
void hpx_log_lines(struct hpx_span lines);
/* The line that hpx_log would write, at any level. Returns its length. */
size_t hpx_log_print(char out[HPX_LOG_LINE_MAX], enum hpx_log_level level, const char *event,
		     const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Why a process does not start: "PROGRAM: PROBLEM", for a person; with HPX_LOG_JSON an event
 * "not_started". */
void hpx_log_not_started(const char *program, const char *problem);

/* Starts the thread. Where standard error takes nothing, up to 2 MiB of lines wait, and the
 * rest is dropped and counted. The main thread starts and stops it. */
enum hpx_status hpx_log_start_writer(void);
/* Writes what waits, within a second, and ends the thread; nothing where there is none. Lines
 * that come later are written by their callers. */
void hpx_log_stop_writer(void);
/* Lines that the thread has dropped; from any thread. */
uint64_t hpx_log_dropped(void);

#endif
