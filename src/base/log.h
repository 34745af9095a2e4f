/* Log lines for people: one line per event, key=value, on standard error.
 * Only the shell (gateway, worker, cli) logs, once, where it decides. Never
 * a client's key, a credential, a query or a body. */
#ifndef HPX_BASE_LOG_H
#define HPX_BASE_LOG_H

enum hpx_log_level { HPX_LOG_DEBUG,
		     HPX_LOG_INFO,
		     HPX_LOG_WARN,
		     HPX_LOG_ERROR };

/* Lines below this level are dropped; set once, before threads start. */
void hpx_log_set_level(enum hpx_log_level level);

/* hpx_log(HPX_LOG_WARN, "lease_lost", "op=%s attempt=%u", id, n): control
 * bytes in the result are written as '?', the line is cut at 1 KiB and
 * written in one call, so that lines of several threads never mix. */
void hpx_log(enum hpx_log_level level, const char *event, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
