/* What all loops know of one upstream; see upstream_state.h. Everything is a
 * single atomic word: a loop that reads one a moment late does what it would
 * have done a moment earlier. */
#include "net/upstream_state.h"

#include "base/clock.h"

/* Without a failure for this long, an upstream that answers is up again. */
#define STEADY_MS 1000

static void tell(struct hpx_upstream_state *state, enum hpx_upstream_news news,
		 const char *detail, int64_t ms)
{
	if (state->tell != NULL)
		state->tell(state->user, news, detail, ms);
}

bool hpx_upstream_in_quarantine(struct hpx_upstream_state *state)
{
	int64_t until_ms = atomic_load(&state->quarantine_until_ms);

	return until_ms > 0 && hpx_clock_boot_ms() < until_ms;
}

void hpx_upstream_stray(struct hpx_upstream_state *state, uint64_t quarantine_ms)
{
	bool known = hpx_upstream_in_quarantine(state);
	int64_t until_ms = hpx_clock_boot_ms() + (int64_t)quarantine_ms;

	/* The quarantine first: whoever sees the new count finds it in force. */
	atomic_store(&state->quarantine_until_ms, until_ms);
	atomic_store(&state->watched, 0);
	atomic_fetch_add(&state->strays, 1);
	if (!known)
		tell(state, HPX_UPSTREAM_STRAY, "", (int64_t)quarantine_ms);
}

void hpx_upstream_was_silent(struct hpx_upstream_state *state)
{
	if (!hpx_upstream_is_watched(state))
		atomic_fetch_add(&state->watched, 1);
}

bool hpx_upstream_is_watched(struct hpx_upstream_state *state)
{
	return atomic_load_explicit(&state->watched, memory_order_relaxed) >=
	       HPX_UPSTREAM_WATCHED_MIN;
}

void hpx_upstream_not_reached(struct hpx_upstream_state *state, const char *reason)
{
	int64_t now_ms = hpx_clock_boot_ms();

	atomic_store(&state->failed_ms, now_ms);
	if (atomic_exchange(&state->down, true))
		return;
	atomic_store(&state->down_since_ms, now_ms);
	tell(state, HPX_UPSTREAM_DOWN, reason, 0);
}

void hpx_upstream_reached(struct hpx_upstream_state *state)
{
	/* On every request's way: one relaxed load where all is well. */
	if (atomic_load_explicit(&state->down, memory_order_relaxed))
		atomic_store(&state->reached_ms, hpx_clock_boot_ms());
}

void hpx_upstream_look(struct hpx_upstream_state *state)
{
	int64_t now_ms = hpx_clock_boot_ms();
	int64_t failed_ms = atomic_load(&state->failed_ms);

	if (!atomic_load(&state->down) || atomic_load(&state->reached_ms) < failed_ms ||
	    now_ms - failed_ms < STEADY_MS)
		return;
	if (atomic_exchange(&state->down, false))
		tell(state, HPX_UPSTREAM_UP, "", now_ms - atomic_load(&state->down_since_ms));
}
