/* Starting and stopping the workers, in the order that loses nothing. */
#include "worker/workers.h"

#include "base/status.h"
#include "worker/deliverer.h"
#include "worker/maintenance.h"
#include "worker/reconciler.h"

enum hpx_status hpx_workers_start(struct hpx_workers *workers, struct hpx_service *service,
				  bool external)
{
	HPX_ASSERT(service->store != NULL && workers->maintenance == NULL && !workers->stopped);
	enum hpx_status status = hpx_maintenance_start(service, &workers->maintenance);

	/* A store in memory has no outbox. */
	if (!external || !hpx_store_can(service->store, HPX_STORE_OUTBOX))
		return status;
	if (status == HPX_OK && service->settings->target_count > 0)
		status = hpx_deliverer_start(service, 0, &workers->deliverer);
	if (status == HPX_OK)
		status = hpx_reconciler_start(service, 0, &workers->reconciler);
	return status;
}

void hpx_workers_reload(struct hpx_workers *workers, struct hpx_settings *settings)
{
	if (workers->maintenance != NULL)
		hpx_maintenance_reload(workers->maintenance, settings);
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

void hpx_workers_stop_claiming(struct hpx_workers *workers)
{
	hpx_deliverer_stop_claiming(workers->deliverer);
}

void hpx_workers_stop(struct hpx_workers *workers, int64_t grace_ms)
{
	if (workers->stopped)
		return;
	workers->stopped = true;
	hpx_workers_stop_claiming(workers); /* the reconciler may end a probe first */
	hpx_reconciler_stop(workers->reconciler);
	hpx_deliverer_stop(workers->deliverer, grace_ms);
}

void hpx_workers_done(struct hpx_workers *workers)
{
	HPX_ASSERT(workers->stopped);
	hpx_maintenance_stop(workers->maintenance);
	hpx_deliverer_free(workers->deliverer);
	hpx_reconciler_free(workers->reconciler);
}
