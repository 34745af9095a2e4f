/* The names of what is counted, and counting duplicates by tenant within a
 * fixed table. */
#include "gateway/meter.h"

const char *hpx_observed_name(enum hpx_observed observed)
{
	static const char *const names[] = {
#define X(name) #name,
		HPX_OBSERVED_LIST(X)
#undef X
	};
	return names[observed];
}

const char *hpx_async_name(enum hpx_async async)
{
	static const char *const names[] = {
#define X(name) #name,
		HPX_ASYNC_LIST(X)
#undef X
	};
	return names[async];
}

const char *hpx_queued_name(enum hpx_queued queued)
{
	static const char *const names[] = {
#define X(name) #name,
		HPX_QUEUED_LIST(X)
#undef X
	};
	return names[queued];
}

void hpx_meter_duplicate(struct hpx_meter *meter, struct hpx_span tenant)
{
	struct hpx_span name = hpx_span_first(tenant, HPX_METER_TENANT_SIZE - 1);

	for (size_t i = 0; i < HPX_METER_TENANTS; i++) {
		struct hpx_meter_tenant *row = &meter->tenants[i];
		if (!atomic_load_explicit(&row->ready, memory_order_relaxed)) {
			memcpy(row->name, name.ptr, name.len);
			row->name[name.len] = '\0';
			atomic_store_explicit(&row->ready, true, memory_order_release);
		} else if (!hpx_span_eq(hpx_span_of(row->name), name)) {
			continue;
		}
		hpx_counter_add(&row->duplicates, 1);
		return;
	}
	hpx_counter_add(&meter->other_tenants, 1);
}
