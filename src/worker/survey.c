/* Counting what is in the store, for the metrics. Counting takes time in a
 * large table, so it happens here and not when somebody asks. */
#include "base/log.h"
#include "worker/duty.h"

static void tell_space(const struct hpx_store_space *space, int state)
{
	static const char *const reasons[] = {
		[HPX_SPACE_ENOUGH] = "new keys are taken again",
		[HPX_SPACE_LOW] = "the disk and the free pages inside the file together have less "
				  "than limits.free_space: new keys are refused, replays go on",
		[HPX_SPACE_LOG_LOW] = "the disk has less than a quarter of limits.free_space, "
				      "which the log needs whatever is free inside the file: new "
				      "keys are refused, replays go on",
	};
	bool low = state != HPX_SPACE_ENOUGH;

	hpx_log(low ? HPX_LOG_ERROR : HPX_LOG_INFO, low ? "space_low" : "space_enough",
		"disk_bytes=%llu file_bytes=%llu log_bytes=%llu wanted_bytes=%llu reason=\"%s\"",
		(unsigned long long)atomic_load(&space->disk_bytes),
		(unsigned long long)atomic_load(&space->file_bytes),
		(unsigned long long)atomic_load(&space->log_bytes),
		(unsigned long long)atomic_load(&space->wanted_bytes), reasons[state]);
}

/* What the store cannot say itself, once when it begins and once when it ends. */
static void tell_changes(struct hpx_store *store, struct hpx_survey *seen)
{
	int space = atomic_load(&store->space.state);
	bool held = atomic_load(&store->expiry_held);

	if (space != seen->space)
		tell_space(&store->space, space);
	if (held && !seen->expiry_held)
		hpx_log(HPX_LOG_ERROR, "expiry_held",
			"reason=\"the wall clock was set: nothing expires until a person says that it "
			"is right\" see=\"hapax keys accept-clock\"");
	else if (!held && seen->expiry_held)
		hpx_log(HPX_LOG_INFO, "expiry_goes_on", "reason=\"the clock was accepted\"");
	seen->space = space;
	seen->expiry_held = held;
}

/* Due for so long, and nobody sends it: no target of its name is configured
 * (claims name theirs), or no worker runs at all. */
#define JOBS_WAIT_S 900

static uint64_t age_s(int64_t since_ms)
{
	int64_t age_ms = since_ms != 0 ? hpx_clock_wall_ms() - since_ms : 0;

	return age_ms > 0 ? (uint64_t)age_ms / 1000 : 0;
}

static void count_jobs(const struct hpx_store_stats *stats, struct hpx_service_counters *counters,
		       struct hpx_survey *seen)
{
	uint64_t waiting_s = age_s(stats->oldest_queued_ms);
	bool wait = waiting_s > JOBS_WAIT_S;

	for (int state = 0; state < HPX_JOB_STATE_COUNT; state++)
		hpx_counter_set(&counters->jobs[state], stats->jobs[state]);
	hpx_counter_set(&counters->dead_operations, stats->dead_operations);
	hpx_counter_set(&counters->dead_jobs, stats->dead_jobs);
	hpx_counter_set(&counters->oldest_queued_s, waiting_s);
	if (wait && !seen->jobs_wait)
		hpx_log(HPX_LOG_WARN, "jobs_wait",
			"for_s=%llu reason=\"a job is due and not sent: its target is down or not "
			"configured\" see=\"hapax jobs ls --state queued\"",
			(unsigned long long)waiting_s);
	seen->jobs_wait = wait;
}

void hpx_survey(const struct hpx_worker_options *options, struct hpx_store_reader *reader,
		struct hpx_survey *seen)
{
	struct hpx_store_stats stats;

	tell_changes(options->store, seen);
	if (hpx_store_stats(reader, &stats) != HPX_OK)
		return; /* the last figures stay; the committer reports the trouble */
	for (int state = 0; state < HPX_STATE_COUNT; state++)
		hpx_counter_set(&options->counters->operations[state], stats.operations[state]);
	hpx_counter_set(&options->counters->oldest_unknown_s, age_s(stats.oldest_unknown_ms));
	count_jobs(&stats, options->counters, seen);
}
