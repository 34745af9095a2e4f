/* The maintenance thread: runs each task when its time has come.
 *
 *  1. A task runs to its end before the next one: tasks share no lock.
 *  2. Every write is one operation among others in the committer's queue, and a
 *     small one: no request waits for a long delete.
 *  3. A change (low space, a held expiry, waiting jobs, failed checkpoints) is
 *     logged once when it begins and once when it ends. */
#include "worker/maintenance.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/log.h"
#include "base/status.h"
#include "base/thread.h"

#define SWEEP_BATCH 64
#define CHECKPOINT_EVERY_MS 200
/* Counting a large table takes its time: it gets at most a two-hundredth of it. */
#define SURVEY_EVERY_MS 1000
#define SURVEY_SHARE 200

/* Where more has expired than one batch, the reaper takes a fifth of the time:
 * requests that wait for a commit hardly notice. A reaper that is behind for this
 * long has more to do than that, and goes as fast as it can. */
#define REAP_PAUSE 4
#define REAP_PATIENCE_MS (10 * 60 * 1000)
/* While space is low new keys are refused until something was deleted: expired
 * operations are looked for this often, whatever reap.every says, and deleted in
 * larger batches, because there are no new keys that would wait for them. */
#define REAP_HURRIED_MS 100
#define REAP_HURRIED_BATCH 1000

/* A job has been due for so long and is not sent: no target of its name is
 * configured (claims name theirs), or no worker runs at all. */
#define JOBS_WAIT_S 900

/* When each task is due, on the boot clock. */
struct schedule {
	int64_t sweep_ms;
	int64_t reap_ms;
	int64_t reaped_ms;      /* when the last reap ended */
	int64_t reap_behind_ms; /* since when there is more than a batch; 0: there is not */
	int64_t checkpoint_ms;
	int64_t survey_ms;
};

/* What was logged last, so that only changes are. */
struct logged {
	bool checkpoint_failed;
	int space; /* enum hpx_space */
	bool expiry_held;
	bool jobs_wait;
};

/* Of the settings. */
struct intervals {
	int64_t sweep_every_ms;
	int64_t reap_every_ms;
	unsigned reap_batch;
};

struct hpx_maintenance {
	struct hpx_service *service;
	struct hpx_thread thread;
	struct intervals next; /* under the thread's lock */
	/* The thread's own. */
	struct intervals intervals;
	struct schedule due;
	struct logged logged;
	struct hpx_store_reader *reader;
};

/* ---- sweep ---- */

/* An attempt whose lease is lost (its process paused or gone, its renewals not
 * stored) does not stay in progress for ever. Nor does a job whose claim is lost
 * stay on its way: the job is sent again where its target honours keys, and is
 * unknown elsewhere. Whether there may be more. */
static bool sweep_batch(struct hpx_service *service, enum hpx_verb verb, struct hpx_span reason)
{
	struct hpx_touched touched[SWEEP_BATCH];
	struct hpx_op_sweep sweep = { .limit = SWEEP_BATCH, .touched = touched };
	struct hpx_store_op op = { .verb = verb, .actor = HPX_SPAN("sweeper"), .reason = reason };
	struct hpx_op_sweep *result = verb == HPX_VERB_SWEEP ? &op.sweep : &op.sweep_jobs;

	*result = sweep;
	hpx_committer_submit_wait(service->committer, &op);
	if (op.status != HPX_OK)
		return false;
	HPX_ASSERT(result->count <= SWEEP_BATCH);
	for (unsigned i = 0; i < result->count; i++)
		hpx_service_log_lost(verb, &touched[i]);
	if (verb == HPX_VERB_SWEEP)
		hpx_counter_add(&service->counters.leases_lost, result->count);
	return result->more || result->count == SWEEP_BATCH;
}

static void sweep(struct hpx_service *service)
{
	while (sweep_batch(service, HPX_VERB_SWEEP, HPX_SPAN("the lease was lost")))
		;
	if (!hpx_store_can(service->store, HPX_STORE_OUTBOX))
		return; /* the store has no outbox */
	while (sweep_batch(service, HPX_VERB_SWEEP_JOBS, HPX_SPAN("the claim's lease was lost")))
		;
}

/* ---- reap ---- */

/* Deletes a batch of what has expired; whether there may be more. */
static bool reap_batch(struct hpx_service *service, unsigned limit)
{
	struct hpx_store_op op = { .verb = HPX_VERB_REAP,
				   .reap.limit = limit,
				   .actor = HPX_SPAN("reaper") };

	hpx_committer_submit_wait(service->committer, &op);
	if (op.status != HPX_OK)
		return false;
	hpx_counter_add(&service->counters.reaped, op.reap.count);
	if (op.reap.count > 0)
		HPX_CRASH_POINT(reap_done);
	return op.reap.more || op.reap.count >= limit;
}

static void reap(struct hpx_maintenance *m, int64_t now_ms)
{
	struct schedule *due = &m->due;
	bool hurried = atomic_load(&m->service->store->space_low);
	unsigned limit = m->intervals.reap_batch;
	bool more = reap_batch(m->service, hurried && limit < REAP_HURRIED_BATCH ?
						   REAP_HURRIED_BATCH :
						   limit);
	int64_t after_ms = hpx_clock_boot_ms();

	due->reaped_ms = after_ms;
	if (!more) {
		due->reap_behind_ms = 0;
		due->reap_ms = after_ms + m->intervals.reap_every_ms;
		return;
	}
	if (due->reap_behind_ms == 0)
		due->reap_behind_ms = now_ms;
	due->reap_ms = after_ms + 1;
	if (!hurried && now_ms - due->reap_behind_ms < REAP_PATIENCE_MS)
		due->reap_ms += REAP_PAUSE * (after_ms - now_ms);
}

static bool is_reap_due(const struct hpx_maintenance *m, int64_t now_ms)
{
	return now_ms >= m->due.reap_ms || (atomic_load(&m->service->store->space_low) &&
					    now_ms - m->due.reaped_ms >= REAP_HURRIED_MS);
}

/* ---- checkpoints ---- */

/* Keeps writes cheap, beside the committer and never in its way. */
static void checkpoint(struct hpx_maintenance *m)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	enum hpx_status status = hpx_store_maintain(m->service->store, problem);
	bool failed = status != HPX_OK && status != HPX_BUSY;

	if (failed && !m->logged.checkpoint_failed)
		hpx_log(HPX_LOG_WARN, "checkpoint_failed", "problem=%s reason=\"%s\"",
			hpx_status_name(status), problem);
	m->logged.checkpoint_failed = failed;
}

/* ---- survey ---- */

static void log_space(const struct hpx_store_space *space, int state)
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

	HPX_ASSERT(state >= 0 && (size_t)state < sizeof(reasons) / sizeof(reasons[0]));
	hpx_log(low ? HPX_LOG_ERROR : HPX_LOG_INFO, low ? "space_low" : "space_enough",
		"disk_bytes=%llu file_bytes=%llu log_bytes=%llu wanted_bytes=%llu reason=\"%s\"",
		(unsigned long long)atomic_load(&space->disk_bytes),
		(unsigned long long)atomic_load(&space->file_bytes),
		(unsigned long long)atomic_load(&space->log_bytes),
		(unsigned long long)atomic_load(&space->wanted_bytes), reasons[state]);
}

static void log_changes(struct hpx_store *store, struct logged *logged)
{
	int space = atomic_load(&store->space.state);
	bool held = atomic_load(&store->expiry_held);

	if (space != logged->space)
		log_space(&store->space, space);
	if (held && !logged->expiry_held)
		hpx_log(HPX_LOG_ERROR, "expiry_held",
			"reason=\"the wall clock was set: nothing expires until a person says that it "
			"is right\" see=\"hapax keys accept-clock\"");
	else if (!held && logged->expiry_held)
		hpx_log(HPX_LOG_INFO, "expiry_goes_on", "reason=\"the clock was accepted\"");
	logged->space = space;
	logged->expiry_held = held;
}

static uint64_t age_s(int64_t since_ms)
{
	int64_t age_ms = since_ms != 0 ? hpx_clock_wall_ms() - since_ms : 0;

	return age_ms > 0 ? (uint64_t)age_ms / 1000 : 0;
}

static void count_jobs(const struct hpx_store_stats *stats, struct hpx_service_counters *counters,
		       struct logged *logged)
{
	uint64_t waiting_s = age_s(stats->oldest_queued_ms);
	bool wait = waiting_s > JOBS_WAIT_S;

	for (int state = 0; state < HPX_JOB_STATE_COUNT; state++)
		hpx_counter_set(&counters->jobs[state], stats->jobs[state]);
	hpx_counter_set(&counters->dead_operations, stats->dead_operations);
	hpx_counter_set(&counters->dead_jobs, stats->dead_jobs);
	hpx_counter_set(&counters->oldest_queued_s, waiting_s);
	if (wait && !logged->jobs_wait)
		hpx_log(HPX_LOG_WARN, "jobs_wait",
			"for_s=%llu reason=\"a job is due and not sent: its target is down or not "
			"configured\" see=\"hapax jobs ls --state queued\"",
			(unsigned long long)waiting_s);
	logged->jobs_wait = wait;
}

/* Counts what is in the store, for the metrics. That takes time in a large table,
 * so it happens here and not when somebody asks. */
static void survey(struct hpx_maintenance *m)
{
	struct hpx_service_counters *counters = &m->service->counters;
	struct hpx_store_stats stats;

	log_changes(m->service->store, &m->logged);
	if (hpx_store_stats(m->reader, &stats) != HPX_OK)
		return; /* the last figures stay; the committer reports the trouble */
	for (int state = 0; state < HPX_STATE_COUNT; state++)
		hpx_counter_set(&counters->operations[state], stats.operations[state]);
	hpx_counter_set(&counters->oldest_unknown_s, age_s(stats.oldest_unknown_ms));
	hpx_counter_set(&counters->updates_hot, stats.updates_hot);
	hpx_counter_set(&counters->updates_moved, stats.updates_moved);
	count_jobs(&stats, counters, &m->logged);
}

/* ---- the thread ---- */

static void run_due(struct hpx_maintenance *m)
{
	struct schedule *due = &m->due;
	int64_t now_ms = hpx_clock_boot_ms();

	if (now_ms >= due->sweep_ms) {
		sweep(m->service);
		due->sweep_ms = now_ms + m->intervals.sweep_every_ms;
	}
	if (is_reap_due(m, now_ms))
		reap(m, now_ms);
	if (now_ms >= due->checkpoint_ms) {
		checkpoint(m);
		due->checkpoint_ms = now_ms + CHECKPOINT_EVERY_MS;
	}
	if (now_ms >= due->survey_ms) {
		int64_t before_ms = hpx_clock_boot_ms();
		survey(m);
		int64_t after_ms = hpx_clock_boot_ms();
		due->survey_ms = after_ms + SURVEY_EVERY_MS + SURVEY_SHARE * (after_ms - before_ms);
	}
}

static int64_t least_ms(int64_t a_ms, int64_t b_ms)
{
	return a_ms < b_ms ? a_ms : b_ms;
}

static int64_t step(void *user)
{
	struct hpx_maintenance *m = user;

	hpx_thread_lock(&m->thread);
	m->intervals = m->next;
	hpx_thread_unlock(&m->thread);
	run_due(m);
	return least_ms(least_ms(m->due.sweep_ms, m->due.reap_ms),
			least_ms(m->due.checkpoint_ms, m->due.survey_ms));
}

/* ---- start and stop ---- */

static struct intervals intervals_of(const struct hpx_settings *settings)
{
	return (struct intervals){ .sweep_every_ms = settings->sweep_every_ms,
				   .reap_every_ms = settings->reap_every_ms,
				   .reap_batch = settings->reap_batch };
}

enum hpx_status hpx_maintenance_start(struct hpx_service *service,
				      struct hpx_maintenance **ret_maintenance)
{
	struct hpx_maintenance *m = calloc(1, sizeof(*m));
	enum hpx_status status = HPX_NOMEM;

	if (m == NULL)
		return status;
	m->service = service;
	m->next = intervals_of(service->settings);
	if (hpx_thread_init(&m->thread) != HPX_OK) {
		free(m);
		return status;
	}
	status = hpx_store_reader_open(service->store, &m->reader);
	if (status == HPX_OK)
		status = hpx_thread_repeat(&m->thread, step, m);
	if (status == HPX_OK)
		*ret_maintenance = m;
	else
		hpx_maintenance_stop(m);
	return status;
}

void hpx_maintenance_reload(struct hpx_maintenance *m, const struct hpx_settings *settings)
{
	hpx_thread_lock(&m->thread);
	m->next = intervals_of(settings);
	hpx_thread_unlock(&m->thread);
	hpx_thread_hurry(&m->thread);
}

void hpx_maintenance_stop(struct hpx_maintenance *m)
{
	if (m == NULL)
		return;
	hpx_thread_stop(&m->thread);
	hpx_store_reader_close(m->reader);
	hpx_thread_done(&m->thread);
	free(m);
}
