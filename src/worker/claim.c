/* How much is claimed: for each target as much as it has free slots, as its
 * breaker lets through, and as all targets together may have under way. */
#include "worker/claim.h"

#include "base/clock.h"

/* A lease is as long as a sending can take, plus twice the time for the name,
 * the connection and the store: the first half holds the claim's way back and
 * the connection, so that the first byte leaves within it; behind the answer
 * there is time left to store it. */
int64_t hpx_lane_lease_ms(const struct hpx_lane *lane)
{
	const struct hpx_caller *caller = &lane->target->caller;

	return 2 * (caller->connect_timeout_ms + HPX_CLAIM_STORE_MS) + caller->timeout_ms;
}

/* Looks only: that a request is the breaker's probe is said when there is one. */
static unsigned let_through(const struct hpx_lane *lane, int64_t now_ms)
{
	unsigned concurrency = lane->target->concurrency;

	if (lane->under_way >= concurrency)
		return 0;
	if (lane->breaker.state != HPX_BREAKER_CLOSED)
		return hpx_breaker_ready_ms(&lane->breaker) <= now_ms ? 1 : 0;
	return concurrency - lane->under_way;
}

/* One slot stays for every other target that has none. */
static unsigned idle_lanes(const struct hpx_deliverer *d)
{
	unsigned count = 0;

	for (size_t i = 0; i < d->lane_count; i++)
		count += d->lanes[i].under_way == 0;
	return count;
}

/* What the store has not taken yet stays in memory: there is a bound to that. */
static unsigned remaining(const struct hpx_deliverer *d)
{
	unsigned slots = d->sendings_max - d->under_way;
	unsigned unstored_max = 2 * d->sendings_max;
	unsigned unstored = d->alive < unstored_max ? unstored_max - d->alive : 0;

	return slots < unstored ? slots : unstored;
}

size_t hpx_claim_plan(struct hpx_deliverer *d)
{
	int64_t now_ms = hpx_clock_boot_ms();
	unsigned left = remaining(d);
	unsigned idle = idle_lanes(d);
	size_t count = 0;

	for (size_t i = 0; i < d->lane_count; i++) {
		const struct hpx_lane *lane = &d->lanes[i];
		unsigned others = idle - (lane->under_way == 0 && idle > 0);
		unsigned room = let_through(lane, now_ms);
		unsigned most = left > others ? left - others : 0;

		if (lane->under_way == 0) {
			idle = others;
			if (most == 0 && left > 0)
				most = 1;
		}
		if (room > most)
			room = most;
		if (room == 0)
			continue;
		left -= room;
		d->claims[count++] = (struct hpx_claim){
			.target = lane->target->name,
			.room = room,
			.lease_ms = hpx_lane_lease_ms(lane),
			.honours_keys_ms = lane->target->honours_keys_ms,
			.attempts_max = lane->target->attempts_max,
		};
	}
	return count;
}
