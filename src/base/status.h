/* What every file may need: results as one list, asserts that stay on, and the way from
 * a member back to its struct. */
#ifndef HPX_BASE_STATUS_H
#define HPX_BASE_STATUS_H

#include <stddef.h>

/* The one list of results. A function that can fail returns one of these and
 * leaves its `ret_` arguments untouched unless it returns HPX_OK. What went
 * wrong in the world is a status; what is wrong in our own code is an assert. */
#define HPX_STATUS_LIST(X) \
	X(OK, "ok") \
	X(NOMEM, "out of memory") \
	X(TOO_LARGE, "larger than its bound") \
	X(INVALID, "malformed") \
	X(NOT_FOUND, "not found") \
	X(STALE, "the lease is no longer this attempt's") \
	X(REFUSED, "not allowed in this state") \
	X(CONFLICT, "differs from what is stored under this name") \
	X(BUSY, "in use by another process") \
	X(FULL, "no space left") \
	X(READ_ONLY, "read-only") \
	X(IO, "input/output error") \
	X(CORRUPT, "cannot be read") \
	X(UNAVAILABLE, "cannot be reached") \
	X(TIMEOUT, "took too long") \
	X(CLOSED, "closed") \
	X(UNSUPPORTED, "not supported") \
	X(MISUSE, "called in a way its contract forbids")

enum hpx_status {
#define X(name, text) HPX_##name,
	HPX_STATUS_LIST(X)
#undef X
};

/* The name ("TOO_LARGE") and the text ("larger than its bound"). */
const char *hpx_status_name(enum hpx_status status);
const char *hpx_status_text(enum hpx_status status);

/* An assert that stays on: for what only a mistake of ours can make false.
 * Nothing that came from a socket, a file or a row may reach it unchecked. */
#define HPX_ASSERT(cond) \
	((cond) ? (void)0 : hpx_assert_failed(#cond, __FILE__, __LINE__))

_Noreturn void hpx_assert_failed(const char *cond, const char *file, int line);
/* Called once before the process ends by an assert: the log writes what waits. NULL: nothing. */
void hpx_before_abort(void (*run)(void));

/* From a member back to the struct that embeds it. */
#define HPX_CONTAINER(member_ptr, type, member) \
	((type *)((char *)(member_ptr)-offsetof(type, member)))

#endif
