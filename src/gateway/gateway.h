/* The gateway: one process in front of one upstream. The gateway owns the shards
 * (one event loop each) and what only requests share: observed keys, the bounds on
 * connections and bodies. The store and all that belongs to it are the service's. */
#ifndef HPX_GATEWAY_GATEWAY_H
#define HPX_GATEWAY_GATEWAY_H

#include <pthread.h>

#include "gateway/meter.h"
#include "net/listener.h"
#include "net/upstream.h"
#include "service/service.h"

struct hpx_connection;
struct hpx_request;
struct hpx_observed_keys;
struct hpx_subrequests;
struct hpx_query_thread;
struct hpx_egress;
struct hpx_hooks;
struct hpx_gateway;

/* One event loop with all that is its own: no other thread touches it but
 * through the loop's inbox. */
struct hpx_shard {
	struct hpx_gateway *gateway;
	struct hpx_service *service; /* the gateway's */
	struct hpx_loop loop;
	pthread_t thread;
	struct hpx_listener *listener;
	struct hpx_upstream *upstream;
	struct hpx_store_reader *reader; /* NULL: observing without a store */
	struct hpx_settings *settings;
	uv_timer_t tick;
	struct hpx_connection *connections;
	struct hpx_request *requests; /* all that are not finished */
	struct hpx_message drain_message;
	bool made;    /* the loop exists */
	bool started; /* the thread runs */
	bool draining;
	bool abandoned; /* the drain time is over */
	uint64_t drain_deadline_ms;
	struct hpx_random_pool random; /* tokens */
	struct hpx_meter meter;
};

#define HPX_SUSPECTS_TOLD 16

/* A reload under way: the last shard that goes by the new settings posts `taken`. */
struct hpx_gateway_reload {
	atomic_uint shards_left;
	struct hpx_message *taken;
};

struct hpx_gateway {
	struct hpx_service *service; /* its store is NULL: observing without a store */
	struct hpx_observed_keys *observed_keys;
	struct hpx_query_thread *query_thread; /* NULL where there is no store */
	struct hpx_subrequests *subrequests;   /* NULL unless tenants are found out so */
	struct hpx_hooks *hooks;               /* of webhooks */
	void (*accepted)(void *user);          /* NULL: nobody delivers here */
	void *accepted_user;
	struct hpx_shard *shards;
	unsigned shard_count;
	struct hpx_upstream_state upstream_state;
	char upstream_label[512]; /* "upstream=URL name=NAME", for the log */
	uint16_t port;
	atomic_uint connections;
	atomic_size_t bodies_bytes;
	struct hpx_gateway_reload reload; /* the last one */
	/* Names of headers that were logged as unlisted credentials, hashed. */
	atomic_uint_least32_t suspects_told[HPX_SUSPECTS_TOLD];
};

struct hpx_gateway_options {
	struct hpx_service *service;
	struct hpx_egress *egress; /* for authorisation subrequests; stopped before
					    * hpx_gateway_free, and freed after */
	/* There is a new job: called on any loop's thread, must not wait. NULL:
	 * nobody delivers here. */
	void (*accepted)(void *user);
	void *accepted_user;
};

/* Opens the listeners and makes the shards; `problem` (HPX_PROBLEM_SIZE) gets
 * a sentence when it cannot. The loops run from hpx_gateway_start on. */
enum hpx_status hpx_gateway_new(const struct hpx_gateway_options *options,
				struct hpx_gateway **ret_gateway, char *problem);
enum hpx_status hpx_gateway_start(struct hpx_gateway *gateway);
/* Gives every shard the new settings; requests under way keep theirs. When the
 * last shard goes by them, `taken` is posted to the service's loop; no other
 * reload begins before that. */
void hpx_gateway_reload(struct hpx_gateway *gateway, struct hpx_settings *settings,
			struct hpx_message *taken);
/* Stops accepting; what is under way may finish within `drain_ms`, what is
 * left of it is written as unknown. Returns when all loops have ended. */
void hpx_gateway_drain(struct hpx_gateway *gateway);
void hpx_gateway_free(struct hpx_gateway *gateway);
/* The port that was really bound (for port 0); 0 for a unix socket. */
uint16_t hpx_gateway_port(const struct hpx_gateway *gateway);

/* Takes `bytes` of the memory for bodies, or refuses (the bound is reached). */
bool hpx_gateway_charge(struct hpx_gateway *gateway, size_t bytes, size_t bytes_max);
void hpx_gateway_uncharge(struct hpx_gateway *gateway, size_t bytes);

/* From any thread. The names of routes and webhooks are the service's settings'. */
void hpx_gateway_metrics(struct hpx_gateway *gateway, struct hpx_metric_page *page);

#endif
