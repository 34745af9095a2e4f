/* The counters of the gateway, one set per event loop. Only the loop writes its set;
 * /metrics reads it without a lock. */
#ifndef HPX_GATEWAY_METER_H
#define HPX_GATEWAY_METER_H

#include "base/metric.h"
#include "core/decision.h"
#include "http/problem.h"
#include "net/connection_slot.h"
#include "settings/settings.h"

/* Tenants with a row of their own; the others share one row, so that no caller can
 * make the metrics grow. */
#define HPX_METER_TENANTS 64
#define HPX_METER_TENANT_SIZE 48
#define HPX_METER_ROUTES 256
/* Of statuses: 1xx to 5xx. */
#define HPX_METER_CLASSES 5

/* hapax_limited_total{limit}: what a request or connection was refused for; the rates
 * first, in the order of HPX_RATE_LIST. */
#define HPX_LIMITED_LIST(X) \
	X(new_keys) \
	X(replays) \
	X(status_reads) \
	X(key_requests) \
	X(peer_new_keys) \
	X(active_keys) \
	X(stored) \
	X(share_connections) \
	X(share_bodies) \
	X(share_waiters) \
	X(share_tunnels)

enum hpx_limited {
#define X(name) HPX_LIMITED_##name,
	HPX_LIMITED_LIST(X)
#undef X
		HPX_LIMITED_COUNT
};

struct hpx_meter_tenant {
	atomic_bool ready; /* the name is written and stays */
	char name[HPX_METER_TENANT_SIZE];
	struct hpx_counter duplicates;
	struct hpx_counter mismatches;
	struct hpx_counter limited[HPX_LIMITED_COUNT];
};

/* State-changing operations that were seen, by method and path template (/api/v1/coverage).
 * Past the last row they are only counted, so that no caller can make the list grow. */
#define HPX_METER_SEEN 512
#define HPX_METER_SEEN_SLOTS 1024
#define HPX_METER_METHOD_SIZE 16
#define HPX_METER_PATH_SIZE 256

struct hpx_meter_seen {
	atomic_bool ready; /* method and path are written and stay */
	char method[HPX_METER_METHOD_SIZE];
	char path[HPX_METER_PATH_SIZE];
	struct hpx_counter keyed;
	struct hpx_counter unkeyed;
};

/* hapax_observed_total{route,would}: what would have happened to an observed request. */
#define HPX_OBSERVED_LIST(X) \
	X(created) \
	X(replay) \
	X(in_progress) \
	X(mismatch) \
	X(key_missing) \
	X(key_invalid) \
	X(too_old) \
	X(key_personal) /* an address or a card number in the key; counted beside the rest */ \
	X(unauthenticated) \
	X(bad_request)

enum hpx_observed {
#define X(name) HPX_OBSERVED_##name,
	HPX_OBSERVED_LIST(X)
#undef X
		HPX_OBSERVED_COUNT
};

/* hapax_async_total{result}: requests on routes with `deliver: async`. */
#define HPX_ASYNC_LIST(X) \
	X(accepted) /* a new operation and its job are durable */ \
	X(pending)  /* answered with 202, the first time or again */ \
	X(in_doubt) /* the store did not answer: 503, the operation may be durable */ \
	X(observed) /* passed on instead */

enum hpx_async {
#define X(name) HPX_ASYNC_##name,
	HPX_ASYNC_LIST(X)
#undef X
		HPX_ASYNC_COUNT
};

/* hapax_upstream_queue_total{result}: requests that found no free connection slot. */
#define HPX_QUEUED_LIST(X) \
	X(granted)   /* waited, and got a slot */ \
	X(timed_out) /* waited for timeouts.queue */ \
	X(full)      /* the queue was full */ \
	X(left)      /* the client went away, or the process ended */

enum hpx_queued {
#define X(name) HPX_QUEUED_##name,
	HPX_QUEUED_LIST(X)
#undef X
		HPX_QUEUED_COUNT
};

struct hpx_meter {
	struct hpx_counter reserved[HPX_DECISION_COUNT];
	struct hpx_counter after_expiry;                                   /* executed although the key's operation had happened */
	struct hpx_counter observed[HPX_METER_ROUTES][HPX_OBSERVED_COUNT]; /* by the route's number, as unkeyed */
	struct hpx_counter async[HPX_ASYNC_COUNT];
	struct hpx_counter problems[HPX_PROBLEM_COUNT];
	struct hpx_counter unkeyed[HPX_METER_ROUTES]; /* by the route's number; the last: the rest */
	struct hpx_counter proxy_refused;             /* connections without the PROXY header that they need */
	/* By the route's number, as unkeyed; the row behind them: hapax's own paths. */
	struct hpx_counter requests[HPX_METER_ROUTES + 1][HPX_METER_CLASSES];
	struct hpx_counter access_lost; /* lines of the access log that had no memory */
	struct hpx_counter passed;
	struct hpx_counter cache_hits;
	struct hpx_counter cache_misses;
	struct hpx_counter tenant_changed;
	struct hpx_counter anonymous; /* requests of the anonymous tenant */
	struct hpx_counter suspects;  /* requests with an unlisted credential */
	struct hpx_counter leases_renewed;
	struct hpx_counter descriptors_exhausted; /* connections closed for want of one */
	struct hpx_counter late_answers;          /* stored after the client was told 504 */
	struct hpx_counter queued[HPX_QUEUED_COUNT];
	struct hpx_counter slots_held[HPX_SLOT_KIND_COUNT]; /* of the last tick, like the next one */
	struct hpx_counter slots_queued[HPX_SLOT_KIND_COUNT];
	struct hpx_histogram queue_us; /* of requests that waited */
	struct hpx_histogram request_us[HPX_METER_ROUTES + 1];
	struct hpx_histogram upstream_us[HPX_METER_ROUTES]; /* by the route's number, as unkeyed */
	struct hpx_meter_tenant tenants[HPX_METER_TENANTS];
	struct hpx_counter other_duplicates; /* of the tenants without a row */
	struct hpx_counter other_mismatches;
	struct hpx_counter other_limited[HPX_LIMITED_COUNT]; /* and where no tenant is known */
	struct hpx_meter_seen seen[HPX_METER_SEEN];
	struct hpx_counter seen_others;
	/* The loop's own: where a row is found by its hash, from 1. */
	uint16_t seen_slots[HPX_METER_SEEN_SLOTS];
	size_t seen_count;
};

/* The row of a route; routes without a row share the last one. */
static inline size_t hpx_meter_route(const struct hpx_route *route)
{
	return route->number < HPX_METER_ROUTES ? route->number : HPX_METER_ROUTES - 1;
}

/* Counts an observed request of a route by what would have happened to it. Only the loop of
 * the meter calls this. */
static inline void hpx_meter_observe(struct hpx_meter *meter, const struct hpx_route *route,
				     enum hpx_observed observed)
{
	hpx_counter_add(&meter->observed[hpx_meter_route(route)][observed], 1);
}

/* Counts an answered request; `route` NULL: one of hapax's own paths. Only the loop of the
 * meter calls this. */
void hpx_meter_answered(struct hpx_meter *meter, const struct hpx_route *route, unsigned status,
			uint64_t whole_us);

/* The numbers of routes have a new meaning: what is counted by them begins at 0. Only the
 * loop of the meter calls this. */
void hpx_meter_forget_routes(struct hpx_meter *meter);

/* Counts a request for a known operation, by its tenant; `mismatch`: it is another
 * request than the operation's, which counts as both. Only the loop of the meter calls
 * this. */
void hpx_meter_duplicate(struct hpx_meter *meter, struct hpx_span tenant, bool mismatch);

/* Counts a refusal by a limit, at the tenant's row; an empty tenant: it is not known. Only
 * the loop of the meter calls this. */
void hpx_meter_limited(struct hpx_meter *meter, struct hpx_span tenant, enum hpx_limited limit);

/* Counts a state-changing request at its operation. Only the loop of the meter calls
 * this. */
void hpx_meter_see(struct hpx_meter *meter, const struct hpx_route *route, struct hpx_span method,
		   struct hpx_span path, bool keyed);

#endif
