/* The gateway: one process in front of one upstream. The gateway owns the shards
 * (one event loop each) and what only requests share: observed keys, the bounds on
 * connections and bodies. The store and all that belongs to it are the service's. */
#ifndef HPX_GATEWAY_GATEWAY_H
#define HPX_GATEWAY_GATEWAY_H

#include <pthread.h>

#include "gateway/access_line.h"
#include "gateway/meter.h"
#include "gateway/rate_table.h"
#include "gateway/share.h"
#include "net/listener.h"
#include "net/upstream.h"
#include "service/service.h"

struct hpx_connection;
struct hpx_request;
struct hpx_observed_keys;
struct hpx_subrequests;
struct hpx_verified_callers;
struct hpx_query_thread;
struct hpx_egress;
struct hpx_log_writer;
struct hpx_webhook_states;
struct hpx_gateway;

/* One of `listen`, on one loop. */
struct hpx_shard_listener {
	struct hpx_shard *shard;
	unsigned number;               /* of settings->listeners */
	struct hpx_listener *listener; /* NULL: stopped */
};

/* Requests whose fingerprint is made by another thread, one at a time. */
struct hpx_fingerprint_queue {
	struct hpx_request *first, *last;
	bool working;
};

/* The lines of the access log that this turn has made. */
struct hpx_shard_access {
	enum hpx_access_format format; /* by the settings of the shard */
	struct hpx_buffer lines;
	size_t count;
};

/* One event loop with all that belongs to it. No other thread touches a shard but
 * through the inbox of the loop. */
struct hpx_shard {
	struct hpx_gateway *gateway;
	struct hpx_service *service; /* the gateway's */
	struct hpx_loop loop;
	pthread_t thread;
	struct hpx_shard_listener *listeners;
	size_t listener_count;
	struct hpx_upstream *upstream;
	struct hpx_store_reader *reader; /* NULL: observing without a store */
	struct hpx_op_list submitted;    /* in this turn; handed over at its end */
	struct hpx_settings *settings;   /* a reference of its own, exchanged by a reload */
	uv_timer_t tick;
	struct hpx_connection *connections;
	struct hpx_request *requests; /* all that are not finished */
	struct hpx_request *spares;   /* finished ones, for the next; by `next` */
	unsigned spare_count;
	struct hpx_buffer spare_in; /* for the next connection that has bytes to keep */
	uint64_t exhausted_log_ms;  /* no line about exhausted descriptors before it */
	struct hpx_message drain_message;
	bool made;      /* the loop exists */
	bool started;   /* the thread runs; the gateway's own */
	bool draining;  /* accepts no connection any more */
	bool abandoned; /* the drain time is over: only the last writes are waited for */
	uint64_t drain_deadline_ms;
	uint64_t proxy_log_ms;         /* no line about a refused PROXY header before */
	struct hpx_random_pool random; /* for tokens */
	struct hpx_shares tunnels;     /* of this loop's, as the slots are */
	struct hpx_fingerprint_queue fingerprints;
	struct hpx_bucket turned_away; /* for answers to connections that are too many */
	struct hpx_shard_access access;
	struct hpx_meter meter;
};

/* What the log calls the upstream. */
struct hpx_upstream_label {
	char url[300];
	char name[256];
};

/* Names of unlisted credentials that are logged, each once. */
#define HPX_SUSPECTS_LOGGED 16

/* A reload under way: the last shard that goes by the new settings posts `taken`. */
struct hpx_gateway_reload {
	atomic_uint shards_left;
	struct hpx_message *taken;
};

struct hpx_gateway {
	struct hpx_service *service; /* its store is NULL: observing without a store */
	struct hpx_observed_keys *observed_keys;
	struct hpx_query_thread *query_thread;         /* NULL where there is no store */
	struct hpx_subrequests *subrequests;           /* NULL unless a service names the tenants */
	struct hpx_verified_callers *verified_callers; /* NULL unless tokens name the tenants */
	struct hpx_webhook_states *webhooks;
	/* NULL as long as no settings had an access log. The main thread sets it. */
	_Atomic(struct hpx_log_writer *) access_writer;
	void (*accepted)(void *user); /* NULL: this process delivers no jobs */
	void *accepted_user;
	struct hpx_shard *shards;
	unsigned shard_count;
	struct hpx_committer_listener listener;
	struct hpx_upstream_state upstream_state;
	pthread_mutex_t label_lock;
	struct hpx_upstream_label upstream_label; /* under its lock */
	uint16_t *ports;                          /* one for each listener */
	size_t listener_count;
	atomic_uint connections;
	atomic_size_t bodies_bytes;
	struct hpx_caller_seed caller_seed;
	struct hpx_rate_table *rates[HPX_RATE_COUNT];
	struct hpx_shares connection_shares;
	struct hpx_shares body_shares;
	struct hpx_shares waiter_shares;
	struct hpx_gateway_reload reload; /* the last one */
	/* Names of headers that were logged as unlisted credentials, hashed. */
	atomic_uint_least32_t suspects_logged[HPX_SUSPECTS_LOGGED];
};

struct hpx_gateway_options {
	struct hpx_service *service;
	/* For authorisation subrequests and the keys of tokens; stopped before hpx_gateway_free, freed after it. */
	struct hpx_egress *egress;
	/* There is a new job. Called on the thread of any loop; must not wait. NULL: this
	 * process delivers no jobs. */
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
/* Stops accepting. Requests under way may finish within `drain_ms`; those that are
 * left then are written as unknown. Returns when all loops have ended. */
void hpx_gateway_drain(struct hpx_gateway *gateway);
void hpx_gateway_free(struct hpx_gateway *gateway);
/* Opens the file of the access log anew; on the main thread. */
void hpx_gateway_reopen_log(struct hpx_gateway *gateway);
/* The port that the n-th listener has really bound (for port 0); 0 for a unix socket. */
uint16_t hpx_gateway_port(const struct hpx_gateway *gateway, size_t n);

/* Submits an op of the shard's loop: it is handed to the committer with all others of
 * this turn. Its `done` posts its message unwoken, and the gateway wakes the loop. */
void hpx_shard_submit(struct hpx_shard *shard, struct hpx_store_op *op);

/* Takes `bytes` of the memory for bodies; false where that would exceed
 * `bytes_max`. From any thread. */
bool hpx_gateway_charge(struct hpx_gateway *gateway, size_t bytes, size_t bytes_max);
void hpx_gateway_uncharge(struct hpx_gateway *gateway, size_t bytes);

/* From any thread. The names of routes and webhooks are the service's settings'. */
void hpx_gateway_metrics(struct hpx_gateway *gateway, struct hpx_metric_page *page);
/* From any thread: the operations that were seen, as JSON. */
enum hpx_status hpx_gateway_coverage(struct hpx_gateway *gateway, struct hpx_buffer *out);

#endif
