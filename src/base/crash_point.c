/* Dying on purpose, in test builds only. */
#include "base/crash_point.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/span.h"

static const struct {
	const char *name;
	const char *text;
} points[] = {
#define X(name, text) { #name, text },
	HPX_CRASH_POINT_LIST(X)
#undef X
};

const char *hpx_crash_point_name(enum hpx_crash_point point)
{
	return points[point].name;
}

const char *hpx_crash_point_text(enum hpx_crash_point point)
{
	return points[point].text;
}

#ifdef HPX_STEPS
static atomic_ulong passed[HPX_CRASH_POINT_COUNT];

/* Whether `variable` names this point at this passing ("name" or "name:n"). */
static bool is_named(const char *variable, enum hpx_crash_point point, unsigned long count)
{
	struct hpx_span rest = hpx_span_of(getenv(variable));
	struct hpx_span name;
	uint64_t wanted = 1;

	if (rest.len == 0 || !hpx_span_split(&rest, ':', &name))
		return false;
	if (rest.ptr != NULL && !hpx_span_u64(rest, UINT32_MAX, &wanted))
		return false;
	return hpx_span_eq(name, hpx_span_of(points[point].name)) && wanted == count;
}

/* How often a point is passed before a test's own request is anybody's guess. */
static bool has_begun(void)
{
	const char *path = getenv("HAPAX_STEPS_FROM");

	return path == NULL || access(path, F_OK) == 0;
}

void hpx_crash_point_reached(enum hpx_crash_point point)
{
	if (!has_begun())
		return;
	unsigned long count = atomic_fetch_add(&passed[point], 1) + 1;

	/* raise(), not kill(): sent to this very thread, the signal takes
	 * effect before the call returns, whatever the others do. */
	if (is_named("HAPAX_CRASH_AT", point, count))
		raise(SIGKILL);
	if (is_named("HAPAX_STOP_AT", point, count))
		raise(SIGSTOP);
}
#endif
