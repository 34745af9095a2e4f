/* Names and texts of the results, from the one list; and what happens when we are wrong:
 * say where, and stop. */
#include "base/status.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* How long the line about a failed assertion waits for room. */
#define LAST_LINE_MS 1000

const char *hpx_status_name(enum hpx_status status)
{
	switch (status) {
#define X(name, text) \
	case HPX_##name: \
		return #name;
		HPX_STATUS_LIST(X)
#undef X
	}
	return "?";
}

const char *hpx_status_text(enum hpx_status status)
{
	switch (status) {
#define X(name, text) \
	case HPX_##name: \
		return text;
		HPX_STATUS_LIST(X)
#undef X
	}
	return "unknown status";
}

static _Atomic(void (*)(void)) before_abort;

void hpx_before_abort(void (*run)(void))
{
	atomic_store(&before_abort, run);
}

_Noreturn void hpx_assert_failed(const char *cond, const char *file, int line)
{
	void (*run)(void) = atomic_load(&before_abort);

	if (run != NULL)
		run();
	/* A full pipe that nobody reads must not keep a process that is wrong alive. */
	struct pollfd stderr_room = { .fd = STDERR_FILENO, .events = POLLOUT };
	if (poll(&stderr_room, 1, LAST_LINE_MS) > 0)
		dprintf(STDERR_FILENO, "level=fatal event=assert file=%s line=%d cond=\"%s\"\n",
			file, line, cond);
	abort();
}
