/* Counting what is in the store, for the metrics. Counting takes time in a
 * large table, so it happens here and not when somebody asks. */
#include "worker/duty.h"

static void set(struct hpx_counter *counter, uint64_t value)
{
	atomic_store_explicit(&counter->value, value, memory_order_relaxed);
}

void hpx_survey(const struct hpx_worker_options *options, struct hpx_store_reader *reader)
{
	struct hpx_store_stats stats;

	if (hpx_store_stats(reader, &stats) != HPX_OK)
		return; /* the last figures stay; the committer reports the trouble */
	for (int state = 0; state < HPX_STATE_COUNT; state++)
		set(&options->operations[state], stats.operations[state]);
	int64_t age_ms = stats.oldest_unknown_ms ? hpx_clock_wall_ms() - stats.oldest_unknown_ms : 0;
	set(options->oldest_unknown_s, age_ms > 0 ? (uint64_t)age_ms / 1000 : 0);
}
