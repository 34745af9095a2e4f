/* One line, one write(2). */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"

#define LINE_MAX_BYTES 1024

/* The only process-wide variable: what a person asked to see. */
static _Atomic int lowest_level = HPX_LOG_INFO;

void hpx_log_set_level(enum hpx_log_level level)
{
	atomic_store(&lowest_level, (int)level);
}

void hpx_log(enum hpx_log_level level, const char *event, const char *format, ...)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };
	char line[LINE_MAX_BYTES];
	char when[HPX_RFC3339_SIZE];

	if ((int)level < atomic_load_explicit(&lowest_level, memory_order_relaxed))
		return;
	hpx_clock_rfc3339(hpx_clock_wall_ms(), when);
	int n = snprintf(line, sizeof(line), "time=%s level=%s event=%s ", when,
			 names[level], event);

	HPX_ASSERT(n > 0 && n < LINE_MAX_BYTES);
	va_list args;
	va_start(args, format);
	int more = vsnprintf(line + n, sizeof(line) - (size_t)n, format, args);
	va_end(args);
	if (more > 0)
		n += more;
	if (n > LINE_MAX_BYTES - 1)
		n = LINE_MAX_BYTES - 1;
	for (int i = 0; i < n; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[n++] = '\n';
	/* Nobody is left to tell when standard error is gone. */
	ssize_t ignored = write(STDERR_FILENO, line, (size_t)n);
	(void)ignored;
}
