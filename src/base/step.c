/* Dying on purpose, in test builds only. */
#include "base/step.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/span.h"

static const struct {
	const char *name;
	const char *text;
} steps[] = {
#define X(name, text) { #name, text },
	HPX_STEP_LIST(X)
#undef X
};

const char *hpx_step_name(enum hpx_step step)
{
	return steps[step].name;
}

const char *hpx_step_text(enum hpx_step step)
{
	return steps[step].text;
}

#ifdef HPX_STEPS
static atomic_ulong passed[HPX_STEP_COUNT];

/* Whether `variable` names this step at this passing ("name" or "name:n"). */
static bool is_named(const char *variable, enum hpx_step step, unsigned long count)
{
	struct hpx_span rest = hpx_span_of(getenv(variable));
	struct hpx_span name;
	uint64_t wanted = 1;

	if (rest.len == 0 || !hpx_span_split(&rest, ':', &name))
		return false;
	if (rest.ptr != NULL && !hpx_span_u64(rest, UINT32_MAX, &wanted))
		return false;
	return hpx_span_eq(name, hpx_span_of(steps[step].name)) && wanted == count;
}

/* How often a step is passed before a test's own request is anybody's guess. */
static bool has_begun(void)
{
	const char *path = getenv("HAPAX_STEPS_FROM");

	return path == NULL || access(path, F_OK) == 0;
}

void hpx_step_reached(enum hpx_step step)
{
	if (!has_begun())
		return;
	unsigned long count = atomic_fetch_add(&passed[step], 1) + 1;

	/* raise(), not kill(): sent to this very thread, the signal takes
	 * effect before the call returns, whatever the others do. */
	if (is_named("HAPAX_CRASH_AT", step, count))
		raise(SIGKILL);
	if (is_named("HAPAX_STOP_AT", step, count))
		raise(SIGSTOP);
}
#endif
