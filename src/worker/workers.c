/* Starting and stopping the workers, in the order that loses nothing. */
#include "worker/workers.h"

#include "base/assert.h"
#include "worker/deliverer.h"
#include "worker/reconciler.h"
#include "worker/maintenance.h"

static enum hpx_status start_worker(struct hpx_workers *workers, struct hpx_service *service)
{
	struct hpx_worker_options options = {
		.store = service->store,
		.committer = service->committer,
		.sweep_every_ms = service->settings->sweep_every_ms,
		.reap_every_ms = service->settings->reap_every_ms,
		.reap_batch = service->settings->reap_batch,
		.counters = &service->counters,
	};

	return hpx_worker_start(&options, &workers->worker);
}

static enum hpx_status start_outside(struct hpx_workers *workers, struct hpx_service *service)
{
	struct hpx_deliverer_options deliver = { .store = service->store,
						 .committer = service->committer,
						 .settings = service->settings,
						 .counters = &service->counters };
	struct hpx_reconciler_options reconcile = { .store = service->store,
						    .committer = service->committer,
						    .settings = service->settings,
						    .counters = &service->counters };
	enum hpx_status status = HPX_OK;

	if (service->settings->target_count > 0)
		status = hpx_deliverer_start(&deliver, &workers->deliverer);
	return status == HPX_OK ? hpx_reconciler_start(&reconcile, &workers->reconciler) : status;
}

enum hpx_status hpx_workers_start(struct hpx_workers *workers, struct hpx_service *service,
				  bool outside)
{
	HPX_ASSERT(service->store != NULL && workers->worker == NULL);
	enum hpx_status status = start_worker(workers, service);

	/* A store in memory has no outbox. */
	if (status != HPX_OK || !outside || !hpx_store_can(service->store, HPX_STORE_OUTBOX))
		return status;
	return start_outside(workers, service);
}

void hpx_workers_reload(struct hpx_workers *workers, struct hpx_settings *settings)
{
	if (workers->worker != NULL)
		hpx_worker_configure(workers->worker, settings->sweep_every_ms,
				     settings->reap_every_ms, settings->reap_batch);
	if (workers->deliverer != NULL)
		hpx_deliverer_reload(workers->deliverer, settings);
	if (workers->reconciler != NULL)
		hpx_reconciler_reload(workers->reconciler, settings);
}

void hpx_workers_wake(void *user)
{
	struct hpx_workers *workers = user;

	if (workers->deliverer != NULL)
		hpx_deliverer_wake(workers->deliverer);
}

void hpx_workers_stop(struct hpx_workers *workers, int64_t grace_ms)
{
	if (workers->stopped)
		return;
	workers->stopped = true;
	hpx_reconciler_stop(workers->reconciler);
	hpx_deliverer_stop(workers->deliverer, grace_ms);
}

void hpx_workers_done(struct hpx_workers *workers)
{
	HPX_ASSERT(workers->stopped);
	hpx_worker_stop(workers->worker);
	hpx_deliverer_free(workers->deliverer);
	hpx_reconciler_free(workers->reconciler);
}
