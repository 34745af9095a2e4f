/* The service: what every hapax process that works owns, whether it takes
 * requests (`hapax serve`) or not (`hapax work`): the settings, the store, the
 * committer, the waitlist, the cache, the counters, and the main loop with the
 * signals and the admin listener. The gateway and the workers borrow all of it.
 *
 * The life of a process, all of it on the main thread:
 *
 *   hpx_service_open ─▶ hpx_service_listen ─▶ hpx_service_run ─▶
 *   hpx_service_stop_writing ─▶ hpx_service_close
 *
 * Between these calls the process starts and ends its own parts. A part that
 * submits to the committer ends only after hpx_service_stop_writing, when every
 * operation that was submitted has come back. */
#ifndef HPX_SERVICE_SERVICE_H
#define HPX_SERVICE_SERVICE_H

#include <pthread.h>

#include "base/metric.h"
#include "core/job.h"
#include "core/record.h"
#include "net/loop.h"
#include "settings/settings.h"
#include "store/cache.h"
#include "store/committer.h"

struct hpx_admin;
struct hpx_config_report;
struct hpx_tls;
struct hpx_tracer;

/* The TLS contexts (tls_watch.c). The pointers stay for the life of the process. */
struct hpx_service_tls {
	struct hpx_tls *upstream;   /* NULL: it is reached without TLS; like the others */
	struct hpx_tls *admin;      /* … */
	struct hpx_tls **listeners; /* one for each of the settings' */
	/* The main thread's own. */
	uint64_t *stamps; /* of the files: those that are used, those that were last seen */
	uv_timer_t watch;
	struct hpx_counter reloads;
	struct hpx_counter reload_failures;
};

/* ---- counters ---- */

/* How one delivery of a job ended: hapax_jobs_total{target,result}. */
#define HPX_JOB_RESULT_LIST(X) \
	X(delivered) \
	X(postponed) /* nothing happened; the job is sent again */ \
	X(lost)      /* the outcome is unknown; sent again where the target honours keys */ \
	X(rejected)  /* refused for good: a dead letter */ \
	X(dead)      /* the attempts are used up: a dead letter */

enum hpx_job_result {
#define X(name) HPX_JOB_RESULT_##name,
	HPX_JOB_RESULT_LIST(X)
#undef X
		HPX_JOB_RESULT_COUNT
};

/* hapax_reconcile_total{result} */
#define HPX_RECONCILED_LIST(X) \
	X(scheduled) /* probed again later */ \
	X(resolved) \
	X(failed) /* left to a person */

enum hpx_reconciled {
#define X(name) HPX_RECONCILED_##name,
	HPX_RECONCILED_LIST(X)
#undef X
		HPX_RECONCILED_COUNT
};

struct hpx_target_counters {
	struct hpx_counter results[HPX_JOB_RESULT_COUNT];
};

/* The counters of a process apart from its event loops. The workers write them;
 * /metrics reads them without a lock. */
struct hpx_service_counters {
	struct hpx_target_counters *targets; /* one for each target of the settings, in their order */
	struct hpx_counter reconciled[HPX_RECONCILED_COUNT];
	struct hpx_counter probes_under_way; /* sent, and not answered yet */
	struct hpx_counter leases_lost;
	/* Attempts that did not end well. lease_lost is the above. Loops write both. */
	struct hpx_counter attempt_errors[HPX_LAST_ERROR_COUNT];
	struct hpx_counter reaped;
	/* What the last survey of the store counted. */
	struct hpx_counter operations[HPX_STATE_COUNT];
	struct hpx_counter oldest_unknown_s;
	struct hpx_counter updates_hot;
	struct hpx_counter updates_moved;
	struct hpx_counter jobs[HPX_JOB_STATE_COUNT];
	struct hpx_counter dead_operations; /* hapax_dead{kind="operation"} */
	struct hpx_counter dead_jobs;       /* hapax_dead{kind="job"} */
	struct hpx_counter oldest_queued_s; /* how long the oldest queued job has been due */
};

/* ---- the service ---- */

/* What the process itself adds. Every function gets `user`. */
struct hpx_service_options {
	struct hpx_settings *settings; /* the reference is taken over, on failure too */
	/* The process has a gateway: recipes are stored, a waitlist and a cache are
	 * made, and where the settings only observe, no store is needed. */
	bool takes_requests;
	bool has_admin; /* the admin listener, where the settings have an address for it */
	void *user;
	/* Nothing new is begun from here on; does not wait. Before the event draining. May be
	 * NULL. */
	void (*stop_taking)(void *user);
	/* Ends what is under way, at the latest at that time of the boot clock. On a
	 * thread of its own, where the system has one. */
	void (*drain)(void *user, int64_t until_ms);
	/* SIGHUP: reads the configuration again. NULL: there are mistakes, which the
	 * function has logged. Without the function, SIGHUP ends the process. */
	struct hpx_settings *(*load)(void *user);
	/* The new settings come into force; posts `taken` to service->loop when every
	 * part of the process goes by them. */
	void (*reload)(void *user, struct hpx_settings *settings, struct hpx_message *taken);
	/* SIGHUP, whether or not a configuration is read again: opens log files anew. May be
	 * NULL. */
	void (*reopen_logs)(void *user);
	/* Adds metrics to the page, before those of the service; may be NULL. */
	void (*print_metrics)(void *user, struct hpx_metric_page *page);
	/* The page /api/v1/coverage, as JSON; NULL: there is none. */
	enum hpx_status (*print_coverage)(void *user, struct hpx_buffer *out);
};

enum hpx_reload_state { HPX_RELOAD_NONE,
			HPX_RELOAD_STORING,   /* recipes and lanes, by the reload's thread */
			HPX_RELOAD_TAKING_UP, /* by the parts of the process */
};

#define HPX_SERVICE_SIGNALS_MAX 5

struct hpx_service {
	struct hpx_service_options options;
	struct hpx_settings *settings; /* the newest; changed by the main thread only */
	struct hpx_store *store;       /* NULL: observing without a store */
	struct hpx_committer *committer;
	struct hpx_waitlist *waitlist;             /* NULL unless it takes requests */
	struct hpx_cache *cache;                   /* NULL: no answers are kept in memory */
	struct hpx_cache_invalidator *invalidator; /* of the cache */
	struct hpx_service_counters counters;
	struct hpx_tracer *tracer; /* NULL: traces are off */
	struct hpx_service_tls tls;
	atomic_bool ready; /* neither starting nor draining */
	int64_t started_wall_ms;

	/* The main thread's own. */
	struct hpx_loop loop;
	bool has_loop;
	struct hpx_admin *admin; /* NULL: none */
	uv_signal_t signals[HPX_SERVICE_SIGNALS_MAX];
	bool draining;
	int64_t drain_since_ms;
	pthread_t drainer;
	bool has_drainer; /* false: the main thread drains */
	struct hpx_message drained;
	enum hpx_reload_state reload;
	pthread_t reloader;
	struct hpx_settings *next_settings; /* while STORING */
	enum hpx_status reload_status;      /* of the reloader */
	struct hpx_message routes_stored;
	struct hpx_message settings_taken;
};

/* A sentence for people: which part failed, and why. */
#define HPX_SERVICE_PROBLEM_SIZE 640

/* SIGPIPE, SIGUSR1 and SIGUSR2 are ignored from here on: the first thing that a
 * process does. */
void hpx_service_ignore_signals(void);
/* Opens the store, with warnings of what an operator should know, and starts the
 * committer. On an error `problem` (HPX_SERVICE_PROBLEM_SIZE) has a sentence, and
 * hpx_service_close is still due. */
enum hpx_status hpx_service_open(struct hpx_service *service,
				 const struct hpx_service_options *options, char *problem);
/* Starts the admin listener and watches the signals. */
enum hpx_status hpx_service_listen(struct hpx_service *service, char *problem);
/* Runs the main loop, ready, until a signal has come and the drain is over. */
void hpx_service_run(struct hpx_service *service);
/* Stops the committer: what is submitted later comes back with HPX_CLOSED. */
void hpx_service_stop_writing(struct hpx_service *service);
/* Closes and frees the rest. Signals are ignored afterwards. */
void hpx_service_close(struct hpx_service *service);

/* Whether the files of TLS can be used: readable, a key for each certificate, not expired.
 * What cannot is a mistake in the report; what will not be for long is a warning. */
void hpx_service_check_tls(const struct hpx_settings *settings, struct hpx_config_report *report);

/* The log line about a lost lease (HPX_VERB_SWEEP) or a job's lost claim
 * (HPX_VERB_SWEEP_JOBS). */
void hpx_service_log_lost(enum hpx_verb verb, const struct hpx_touched *touched);

#define HPX_SERVICE_ADDRESS_SIZE 320
/* "127.0.0.1:8080" with the port that was really bound. */
void hpx_service_print_address(const struct hpx_address *address, uint16_t port,
			       char out[HPX_SERVICE_ADDRESS_SIZE]);
/* The admin listener's address, or "off". */
void hpx_service_print_admin(const struct hpx_service *service,
			     char out[HPX_SERVICE_ADDRESS_SIZE]);

/* ---- inside service/ ---- */

/* Stores the recipe of every route, since a record must be able to name it, and what is
 * configured of each lane. Waits for the committer. */
enum hpx_status hpx_service_store_routes(struct hpx_service *service,
					 const struct hpx_settings *settings);
/* tls_watch.c. `problem` has HPX_SERVICE_PROBLEM_SIZE bytes. */
enum hpx_status hpx_service_open_tls(struct hpx_service *service, char *problem);
void hpx_service_close_tls(struct hpx_service *service);
/* After new settings have come into force. */
void hpx_service_reload_tls(struct hpx_service *service);
/* Looks at the files from now on. */
void hpx_service_watch_tls(struct hpx_service *service);
void hpx_service_print_tls(struct hpx_service *service, struct hpx_metric_page *page);
/* hpx_loop_done, and the watched signals are ignored from then on. */
void hpx_service_loop_done(struct hpx_service *service);

/* The admin listener (admin.c): /healthz, /readyz, /metrics and /api/v1/coverage, for machines. It runs
 * on the main loop, so that it answers when the gateway's loops are busy. `problem`
 * has HPX_PROBLEM_SIZE bytes. */
enum hpx_status hpx_admin_start(struct hpx_service *service, struct hpx_admin **ret_admin,
				char *problem);
uint16_t hpx_admin_port(const struct hpx_admin *admin);
void hpx_admin_stop(struct hpx_admin *admin);
/* The page of /metrics. */
enum hpx_status hpx_service_metrics(struct hpx_service *service, bool openmetrics,
				    struct hpx_buffer *out);

#endif
