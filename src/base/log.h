/* Log lines for people and their programs: one line per event, on standard error. Only the
 * shell (gateway, worker, cli) logs, once, where it decides. Never a client's key, a
 * credential, a query or a body. */
#ifndef HPX_BASE_LOG_H
#define HPX_BASE_LOG_H

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

#endif
