/* What a test of the worker stands on: a SQLite store with its committer, a provider,
 * the settings for it, and the worker's two duties, started when wanted. Waits
 * are for what the store holds, looked at after every run of it. */
#ifndef HPX_TESTS_WORKER_SCENE_H
#define HPX_TESTS_WORKER_SCENE_H

#include "provider.h"

#include "worker/deliverer.h"
#include "worker/reconciler.h"

/* An operation as the store holds it. */
struct scene_operation {
	struct hpx_record record;
	bool person;        /* nobody is asked about it any more */
	char headers[1024]; /* of its answer */
	char body[1024];
};

/* The name of the job that scene_accept makes. */
#define SCENE_JOB "job"

/* Targets: "plain" remembers no keys, "bank" remembers them for an hour. Their
 * paths are under /plain and /bank of the same provider. */
enum { PLAIN,
       BANK,
       TARGET_COUNT };
/* Routes: with a probe by {operation}; by {key}; without any. */
enum { ROUTE_PROBED,
       ROUTE_BY_KEY,
       ROUTE_SILENT,
       ROUTE_COUNT };

struct scene {
	char folder[64];
	struct hpx_store *store;
	struct hpx_store_reader *reader;
	struct hpx_committer *committer;
	struct provider provider;
	struct hpx_settings *settings;
	struct hpx_job_target targets[TARGET_COUNT];
	struct hpx_route routes[ROUTE_COUNT];
	char urls[TARGET_COUNT][96];
	struct hpx_target_counters target_counters[TARGET_COUNT];
	struct hpx_service service; /* borrows the store, the committer and the settings */
	struct hpx_deliverer *deliverer;
	struct hpx_reconciler *reconciler;
	bool committer_stopped;
	/* Told by the store after every run. */
	pthread_mutex_t lock;
	pthread_cond_t ran;
	uint64_t runs;
	bool broken; /* it takes nothing */
};

#define SCENE_TEST(test) cmocka_unit_test_setup_teardown(test, scene_setup, scene_teardown)
int scene_setup(void **state);
int scene_teardown(void **state);

void scene_deliver(struct scene *scene);
/* The same, with so much between two claims. */
void scene_deliver_every(struct scene *scene, int64_t poll_ms);
void scene_reconcile(struct scene *scene);
/* The same, with so much between two looks at all queues. */
void scene_reconcile_every(struct scene *scene, int64_t every_ms);
void scene_break_store(struct scene *scene, bool broken);

/* An async operation with its job for that target; the job's number. Keys are
 * small numbers. */
int64_t scene_accept(struct scene *scene, unsigned key, int target, const char *path);
/* An operation under way, and a job of it that nobody waits for. */
int64_t scene_enqueue(struct scene *scene, unsigned key, int target, const char *path);
/* An operation of that route that was begun, and its outcome lost. `tenant`
 * tells two with one key apart. */
void scene_begin(struct scene *scene, unsigned tenant, unsigned key, int route);
void scene_lose(struct scene *scene, unsigned tenant, unsigned key);
/* Somebody says unasked what became of it. */
void scene_say(struct scene *scene, unsigned tenant, unsigned key, enum hpx_ruling ruling);

struct hpx_operation_id scene_id(unsigned tenant, unsigned key);
struct hpx_delivery scene_job(struct scene *scene, int64_t number);
struct scene_operation scene_operation(struct scene *scene, unsigned tenant, unsigned key);

/* Wait, and fail with both values when it does not come to that. */
void scene_await_job(struct scene *scene, int64_t number, enum hpx_job_state state);
void scene_await_state(struct scene *scene, unsigned tenant, unsigned key, enum hpx_state state);
void scene_await_person(struct scene *scene, unsigned tenant, unsigned key);
void scene_await_result(struct scene *scene, int target, enum hpx_job_result result,
			uint64_t count);
void scene_await_reconciled(struct scene *scene, enum hpx_reconciled result, uint64_t count);
void scene_await_count(struct scene *scene, const struct hpx_counter *counter, uint64_t count);
/* Until the store has run so many batches in all: looks have been made since. */
void scene_await_runs(struct scene *scene, uint64_t total);
uint64_t scene_runs(struct scene *scene);

#endif
