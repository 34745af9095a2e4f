/* The worker's thread: each duty when its time has come. */
#include "worker/maintenance.h"

#include <stdlib.h>

#include "base/thread.h"
#include "worker/duty.h"

#define MAINTAIN_EVERY_MS 200
/* Counting a large table takes its time: it gets at most a two-hundredth of it. */
#define SURVEY_EVERY_MS 1000
#define SURVEY_SHARE 200

/* Where more has expired than one batch, the reaper takes a fifth of the time:
 * whoever waits for a commit hardly notices. Who is behind for this long has
 * more to do than that, and goes as fast as it can. */
#define REAP_PAUSE 4
#define REAP_PATIENCE_MS (10 * 60 * 1000)
/* While space is low new keys are refused until something was deleted: it is
 * looked for this often, whatever reap.every says. */
#define REAP_HURRIED_MS 100

struct hpx_worker {
	struct hpx_worker_options options;
	struct hpx_store_reader *reader;
	struct hpx_survey seen;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool stopping;
};

/* When each duty is due, on the boot clock. */
struct agenda {
	int64_t sweep_ms;
	int64_t reap_ms;
	int64_t reaped_ms;      /* when it was done last */
	int64_t reap_behind_ms; /* since when there is more than a batch; 0: there is not */
	int64_t maintain_ms;
	int64_t survey_ms;
};

static void reap(const struct hpx_worker_options *options, struct agenda *due, int64_t now_ms)
{
	bool hurried = atomic_load(&options->store->space_low);
	bool more = hpx_reap(options);
	int64_t after_ms = hpx_clock_boot_ms();

	due->reaped_ms = after_ms;
	if (!more) {
		due->reap_behind_ms = 0;
		due->reap_ms = after_ms + options->reap_every_ms;
		return;
	}
	if (due->reap_behind_ms == 0)
		due->reap_behind_ms = now_ms;
	due->reap_ms = after_ms + 1;
	if (!hurried && now_ms - due->reap_behind_ms < REAP_PATIENCE_MS)
		due->reap_ms += REAP_PAUSE * (after_ms - now_ms);
}

static bool is_reap_due(const struct hpx_worker_options *options, const struct agenda *due,
			int64_t now_ms)
{
	return now_ms >= due->reap_ms || (atomic_load(&options->store->space_low) &&
					  now_ms - due->reaped_ms >= REAP_HURRIED_MS);
}

static void run_due(struct hpx_worker *worker, const struct hpx_worker_options *options,
		    struct agenda *due)
{
	int64_t now_ms = hpx_clock_boot_ms();

	if (now_ms >= due->sweep_ms) {
		hpx_sweep(options);
		hpx_sweep_jobs(options);
		due->sweep_ms = now_ms + options->sweep_every_ms;
	}
	if (is_reap_due(options, due, now_ms))
		reap(options, due, now_ms);
	if (now_ms >= due->maintain_ms) {
		hpx_maintain(options, &worker->seen);
		due->maintain_ms = now_ms + MAINTAIN_EVERY_MS;
	}
	if (now_ms >= due->survey_ms && worker->reader != NULL) {
		int64_t before_ms = hpx_clock_boot_ms();
		hpx_survey(options, worker->reader, &worker->seen);
		int64_t after_ms = hpx_clock_boot_ms();
		due->survey_ms = after_ms + SURVEY_EVERY_MS + SURVEY_SHARE * (after_ms - before_ms);
	}
}

static int64_t next_due(const struct agenda *due)
{
	int64_t next_ms = due->sweep_ms;

	if (due->reap_ms < next_ms)
		next_ms = due->reap_ms;
	if (due->maintain_ms < next_ms)
		next_ms = due->maintain_ms;
	return due->survey_ms < next_ms ? due->survey_ms : next_ms;
}

static void *run(void *user)
{
	struct hpx_worker *worker = user;
	struct agenda due = { 0 };

	pthread_mutex_lock(&worker->lock);
	while (!worker->stopping) {
		struct hpx_worker_options options = worker->options;
		pthread_mutex_unlock(&worker->lock);
		run_due(worker, &options, &due);
		pthread_mutex_lock(&worker->lock);
		if (!worker->stopping)
			hpx_cond_wait_until(&worker->changed, &worker->lock, next_due(&due));
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

static void worker_free(struct hpx_worker *worker)
{
	if (worker->reader != NULL)
		hpx_store_reader_close(worker->reader);
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}

enum hpx_status hpx_worker_start(const struct hpx_worker_options *options,
				 struct hpx_worker **ret_worker)
{
	struct hpx_worker *worker = calloc(1, sizeof(*worker));

	if (worker == NULL)
		return HPX_NOMEM;
	worker->options = *options;
	pthread_mutex_init(&worker->lock, NULL);
	enum hpx_status status = hpx_cond_init(&worker->changed);
	if (status == HPX_OK)
		status = hpx_store_reader_open(options->store, &worker->reader);
	if (status == HPX_OK)
		status = hpx_thread_start(&worker->thread, run, worker);
	if (status != HPX_OK) {
		worker_free(worker);
		return status;
	}
	*ret_worker = worker;
	return HPX_OK;
}

void hpx_worker_configure(struct hpx_worker *worker, int64_t sweep_every_ms,
			  int64_t reap_every_ms, unsigned reap_batch)
{
	pthread_mutex_lock(&worker->lock);
	worker->options.sweep_every_ms = sweep_every_ms;
	worker->options.reap_every_ms = reap_every_ms;
	worker->options.reap_batch = reap_batch;
	pthread_cond_signal(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
}

void hpx_worker_stop(struct hpx_worker *worker)
{
	if (worker == NULL)
		return;
	pthread_mutex_lock(&worker->lock);
	worker->stopping = true;
	pthread_cond_signal(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	pthread_join(worker->thread, NULL);
	worker_free(worker);
}
