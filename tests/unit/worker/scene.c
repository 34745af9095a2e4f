/* See scene.h. */
#include "scene.h"

#include <dirent.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

#define HOUR_MS 3600000

static const unsigned applied[] = { 200 };
static const unsigned not_applied[] = { 404 };
static const struct hpx_span declined[] = { HPX_SPAN_INIT("declined") };

/* ---- the store tells ---- */

static enum hpx_status after_run(void *user, enum hpx_store_point point)
{
	struct scene *scene = user;
	bool broken;

	pthread_mutex_lock(&scene->lock);
	broken = scene->broken && point == HPX_STORE_RUN_BEFORE;
	if (point == HPX_STORE_RUN_AFTER)
		scene->runs++;
	pthread_cond_broadcast(&scene->ran);
	pthread_mutex_unlock(&scene->lock);
	return broken ? HPX_IO : HPX_OK;
}

void scene_break_store(struct scene *scene, bool broken)
{
	pthread_mutex_lock(&scene->lock);
	scene->broken = broken;
	pthread_mutex_unlock(&scene->lock);
}

/* Looks at once, after every run of the store, and now and then. */
static bool await(struct scene *scene, bool (*is_so)(struct scene *scene, const void *what),
		  const void *what)
{
	int64_t until_ms = hpx_clock_boot_ms() + TEST_PATIENCE_MS;

	while (!is_so(scene, what)) {
		if (hpx_clock_boot_ms() > until_ms)
			return false;
		pthread_mutex_lock(&scene->lock);
		hpx_cond_wait_until(&scene->ran, &scene->lock, hpx_clock_boot_ms() + 5);
		pthread_mutex_unlock(&scene->lock);
	}
	return true;
}

/* ---- the settings ---- */

static struct hpx_reconcile_settings probe_of(const char *url, struct hpx_span get)
{
	return (struct hpx_reconcile_settings){
		.given = true,
		.rule = { .confirm_after_ms = 1, .tries_max = 5, .backoff = { 1, 1 } },
		.probe = {
			.given = true,
			.caller = { .url = url, .headers = HPX_SPAN("X-Probe: secret\r\n"), .connect_timeout_ms = 10000, .timeout_ms = 30000 },
			.get = get,
			.concurrency = 16,
			.per_second = 10000,
			.mapping = {
				.pointer = HPX_SPAN("/state"),
				.signs = { [HPX_RULING_APPLIED] = { .statuses = applied, .status_count = 1 },
					   [HPX_RULING_NOT_APPLIED] = { .statuses = not_applied, .status_count = 1 },
					   [HPX_RULING_DECLINED] = { .values = declined, .value_count = 1 } },
			},
		},
	};
}

static struct hpx_job_target target_of(const char *name, const char *url, int64_t honours_keys_ms)
{
	return (struct hpx_job_target){
		.server_error = HPX_SERVER_ERROR_UNKNOWN,
		.name = hpx_span_of(name),
		.caller = { .url = url, .headers = HPX_SPAN("Authorization: Bearer secret\r\n"), .connect_timeout_ms = 10000, .timeout_ms = 30000 },
		.key_header = HPX_SPAN("Idempotency-Key"),
		.concurrency = 4,
		.attempts_max = 3,
		.backoff = { 1, 1 },
		.retry_after_max_ms = 60000,
		.honours_keys_ms = honours_keys_ms,
		.provider_id = HPX_SPAN("/id"),
	};
}

static void make_settings(struct scene *scene)
{
	const char *url = scene->provider.url;

	scene->settings = hpx_settings_new();
	assert_non_null(scene->settings);
	snprintf(scene->urls[PLAIN], sizeof(scene->urls[PLAIN]), "%s/plain", url);
	snprintf(scene->urls[BANK], sizeof(scene->urls[BANK]), "%s/bank", url);
	scene->targets[PLAIN] = target_of("plain", scene->urls[PLAIN], 0);
	scene->targets[BANK] = target_of("bank", scene->urls[BANK], HOUR_MS);
	scene->routes[ROUTE_PROBED].pattern = HPX_SPAN("POST /probed");
	scene->routes[ROUTE_PROBED].reconcile = probe_of(url, HPX_SPAN("/ask?operation={operation}"));
	scene->routes[ROUTE_BY_KEY].pattern = HPX_SPAN("POST /by-key");
	scene->routes[ROUTE_BY_KEY].reconcile = probe_of(url, HPX_SPAN("/ask/{key}"));
	scene->routes[ROUTE_SILENT].pattern = HPX_SPAN("POST /silent");
	scene->settings->targets = scene->targets;
	scene->settings->target_count = TARGET_COUNT;
	scene->settings->routes = scene->routes;
	scene->settings->route_count = ROUTE_COUNT;
	scene->settings->deliveries_max = 16;
	scene->settings->response_body_bytes_max = 512;
	scene->settings->sweep_every_ms = 10;
	scene->settings->reap_every_ms = 10;
	scene->settings->reap_batch = 100;
	scene->service.counters.targets = scene->target_counters;
}

/* ---- its life ---- */

static void open_store(struct scene *scene)
{
	char url[128], problem[HPX_STORE_PROBLEM_SIZE] = "";

	snprintf(scene->folder, sizeof(scene->folder), "%s/hapax-worker-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(scene->folder));
	snprintf(url, sizeof(url), "sqlite:%s/hapax.db", scene->folder);
	struct hpx_store_options options = { .url = hpx_span_of(url), .create = true, .serve = true, .event_retention_ms = HOUR_MS, .job_retention_ms = HOUR_MS };
	enum hpx_status status = hpx_store_open(&options, &scene->store, problem);
	if (status != HPX_OK)
		print_error("%s\n", problem);
	assert_status(status, HPX_OK);
	assert_status(hpx_store_reader_open(scene->store, &scene->reader), HPX_OK);
	scene->store->fault = after_run;
	scene->store->fault_user = scene;
}

static void remove_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[512];

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		unlink(path);
	}
	closedir(dir);
	assert_int_equal(rmdir(folder), 0);
}

int scene_setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct hpx_committer_options options = { .probe_ms = 5 };

	assert_non_null(scene);
	hpx_log_set_level(HPX_LOG_ERROR);
	pthread_mutex_init(&scene->lock, NULL);
	assert_status(hpx_cond_init(&scene->ran), HPX_OK);
	open_store(scene);
	options.store = scene->store;
	assert_status(hpx_committer_start(&options, &scene->committer), HPX_OK);
	provider_start(&scene->provider);
	make_settings(scene);
	scene->service.store = scene->store;
	scene->service.committer = scene->committer;
	scene->service.settings = scene->settings;
	*state = scene;
	return 0;
}

int scene_teardown(void **state)
{
	struct scene *scene = *state;

	provider_release(&scene->provider);
	hpx_deliverer_stop(scene->deliverer, 0);
	hpx_reconciler_stop(scene->reconciler);
	if (!scene->committer_stopped)
		hpx_committer_stop(scene->committer, 1000);
	hpx_deliverer_free(scene->deliverer);
	hpx_reconciler_free(scene->reconciler);
	hpx_committer_free(scene->committer);
	provider_stop(&scene->provider);
	hpx_store_reader_close(scene->reader);
	hpx_store_close(scene->store);
	remove_folder(scene->folder);
	hpx_settings_unref(scene->settings);
	pthread_cond_destroy(&scene->ran);
	pthread_mutex_destroy(&scene->lock);
	free(scene);
	return 0;
}

void scene_deliver_every(struct scene *scene, int64_t poll_ms)
{
	assert_status(hpx_deliverer_start(&scene->service, poll_ms, &scene->deliverer), HPX_OK);
}

void scene_deliver(struct scene *scene)
{
	scene_deliver_every(scene, 10);
}

void scene_reconcile_every(struct scene *scene, int64_t every_ms)
{
	assert_status(hpx_reconciler_start(&scene->service, every_ms, &scene->reconciler), HPX_OK);
}

void scene_reconcile(struct scene *scene)
{
	scene_reconcile_every(scene, 10);
}

/* ---- what is done to the store ---- */

static struct hpx_span text_of(unsigned number, char out[16])
{
	snprintf(out, 16, "k/%u", number);
	return hpx_span_of(out);
}

struct hpx_operation_id scene_id(unsigned tenant, unsigned key)
{
	struct hpx_operation_id id;
	char tenant_text[16], key_text[16];

	assert_status(hpx_operation_id(text_of(tenant, tenant_text), HPX_SPAN("scope"),
				       text_of(key, key_text), &id),
		      HPX_OK);
	return id;
}

static struct hpx_token token_of(unsigned tenant, unsigned key)
{
	return (struct hpx_token){ { (uint8_t)(tenant + 1), (uint8_t)key, 7 } };
}

static void reserve(struct scene *scene, unsigned tenant, unsigned key, struct hpx_span route,
		    const struct hpx_job *job)
{
	char text[16];
	struct hpx_ask ask = { .id = scene_id(tenant, key), .token = token_of(tenant, key), .owner = scene->store->owner };
	struct hpx_policy policy = { .retention_ms = HOUR_MS, .lease_ms = 30000, .deliver = job != NULL ? HPX_DELIVER_ASYNC : HPX_DELIVER_NOW };
	struct hpx_description description = { .key = text_of(key, text), .route = route };
	struct hpx_store_op op = { .verb = HPX_VERB_RESERVE, .id = ask.id, .reserve = { .ask = &ask, .policy = &policy, .description = &description, .job = job } };

	hpx_committer_submit_wait(scene->committer, &op);
	assert_status(op.status, HPX_OK);
	assert_string_equal(hpx_decision_name(op.decision.kind), "created");
}

static struct hpx_job job_to(struct scene *scene, int target, const char *path)
{
	return (struct hpx_job){
		.name = HPX_SPAN(SCENE_JOB),
		.target = scene->targets[target].name,
		.method = HPX_SPAN("POST"),
		.path = hpx_span_of(path),
		.headers = HPX_SPAN("Content-Type: application/json\r\nAuthorization: the client's\r\n"
				    "Idempotency-Key: the client's\r\nHost: elsewhere\r\n"),
		.body = HPX_SPAN("{\"amount\":1}"),
	};
}

/* The one that was stored last. */
static int64_t newest_job(struct scene *scene, unsigned key)
{
	struct hpx_operation_id id = scene_id(0, key);
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT, .operation = &id, .limit = 1 };
	struct hpx_job_entry *jobs = NULL;

	assert_status(hpx_store_jobs(scene->reader, &query, &jobs), HPX_OK);
	assert_non_null(jobs);
	int64_t number = jobs->delivery.number;
	hpx_job_entry_free(jobs);
	return number;
}

int64_t scene_accept(struct scene *scene, unsigned key, int target, const char *path)
{
	struct hpx_job job = job_to(scene, target, path);

	reserve(scene, 0, key, HPX_SPAN("POST /async"), &job);
	return newest_job(scene, key);
}

int64_t scene_enqueue(struct scene *scene, unsigned key, int target, const char *path)
{
	struct hpx_job job = job_to(scene, target, path);
	struct hpx_store_op op = { .verb = HPX_VERB_ENQUEUE, .id = scene_id(0, key), .token = token_of(0, key), .enqueue.job = &job };

	if (scene_operation(scene, 0, key).record.state == HPX_STATE_NONE)
		reserve(scene, 0, key, HPX_SPAN("POST /silent"), NULL);
	job.name = hpx_span_of(path);
	hpx_committer_submit_wait(scene->committer, &op);
	assert_status(op.status, HPX_OK);
	return newest_job(scene, key);
}

void scene_begin(struct scene *scene, unsigned tenant, unsigned key, int route)
{
	reserve(scene, tenant, key, scene->routes[route].pattern, NULL);
}

void scene_lose(struct scene *scene, unsigned tenant, unsigned key)
{
	struct hpx_store_op op = { .verb = HPX_VERB_MARK_UNKNOWN, .id = scene_id(tenant, key), .token = token_of(tenant, key) };

	hpx_committer_submit_wait(scene->committer, &op);
	assert_status(op.status, HPX_OK);
}

void scene_say(struct scene *scene, unsigned tenant, unsigned key, enum hpx_ruling ruling)
{
	struct hpx_ruling_update turn = { .received = { .ruling = ruling,
							.about_ms = hpx_clock_wall_ms() } };
	struct hpx_store_op op = { .verb = HPX_VERB_RULE, .id = scene_id(tenant, key), .rule.update = &turn };
	struct hpx_token first = token_of(tenant, key);

	assert_status(hpx_mark_make(&first, &op.mark), HPX_OK);

	hpx_committer_submit_wait(scene->committer, &op);
	assert_status(op.status, HPX_OK);
}

/* ---- what the store holds ---- */

struct hpx_delivery scene_job(struct scene *scene, int64_t number)
{
	struct hpx_job_query query = { .state = HPX_JOB_STATE_COUNT, .number = number, .limit = 1 };
	struct hpx_job_entry *jobs = NULL;

	assert_status(hpx_store_jobs(scene->reader, &query, &jobs), HPX_OK);
	assert_non_null(jobs);
	struct hpx_delivery delivery = jobs->delivery;
	hpx_job_entry_free(jobs);
	return delivery;
}

struct scene_operation scene_operation(struct scene *scene, unsigned tenant, unsigned key)
{
	struct hpx_operation_id id = scene_id(tenant, key);
	struct scene_operation operation = { .record = { .state = HPX_STATE_NONE } };
	struct hpx_next_question question;
	struct hpx_answer *answer = NULL;
	struct hpx_arena arena;
	struct hpx_entry entry;

	hpx_arena_init(&arena, 1 << 20);
	if (hpx_store_find(scene->reader, &id, &arena, &entry, &answer) == HPX_OK)
		operation.record = entry.record;
	if (answer != NULL) {
		snprintf(operation.headers, sizeof(operation.headers), "%.*s",
			 HPX_SPAN_ARG(answer->headers));
		snprintf(operation.body, sizeof(operation.body), "%.*s", HPX_SPAN_ARG(answer->body));
	}
	if (hpx_store_question(scene->reader, &id, &question) == HPX_OK)
		operation.person = question.person;
	hpx_answer_free(answer);
	hpx_arena_done(&arena);
	return operation;
}

struct wanted {
	unsigned tenant, key;
	int64_t number;
	enum hpx_job_state job_state;
	enum hpx_state state;
	const struct hpx_counter *counter;
	uint64_t count;
};

static bool job_is(struct scene *scene, const void *what)
{
	const struct wanted *wanted = what;

	return scene_job(scene, wanted->number).state == wanted->job_state;
}

void scene_await_job(struct scene *scene, int64_t number, enum hpx_job_state state)
{
	struct wanted wanted = { .number = number, .job_state = state };

	if (!await(scene, job_is, &wanted))
		fail_msg("job %lld is %s, want %s", (long long)number,
			 hpx_job_state_name(scene_job(scene, number).state),
			 hpx_job_state_name(state));
}

static bool operation_is(struct scene *scene, const void *what)
{
	const struct wanted *wanted = what;

	return scene_operation(scene, wanted->tenant, wanted->key).record.state == wanted->state;
}

void scene_await_state(struct scene *scene, unsigned tenant, unsigned key, enum hpx_state state)
{
	struct wanted wanted = { .tenant = tenant, .key = key, .state = state };

	if (!await(scene, operation_is, &wanted))
		fail_msg("it is %s, want %s",
			 hpx_state_name(scene_operation(scene, tenant, key).record.state),
			 hpx_state_name(state));
}

static bool is_a_persons(struct scene *scene, const void *what)
{
	const struct wanted *wanted = what;

	return scene_operation(scene, wanted->tenant, wanted->key).person;
}

void scene_await_person(struct scene *scene, unsigned tenant, unsigned key)
{
	struct wanted wanted = { .tenant = tenant, .key = key };

	if (!await(scene, is_a_persons, &wanted))
		fail_msg("somebody is still asked about it, want a person");
}

static bool counts(struct scene *scene, const void *what)
{
	const struct wanted *wanted = what;

	(void)scene;
	return hpx_counter_read(wanted->counter) >= wanted->count;
}

void scene_await_count(struct scene *scene, const struct hpx_counter *counter, uint64_t count)
{
	struct wanted wanted = { .counter = counter, .count = count };

	if (!await(scene, counts, &wanted))
		fail_msg("counted %llu, want %llu", (unsigned long long)hpx_counter_read(counter),
			 (unsigned long long)count);
}

void scene_await_result(struct scene *scene, int target, enum hpx_job_result result,
			uint64_t count)
{
	scene_await_count(scene, &scene->target_counters[target].results[result], count);
}

void scene_await_reconciled(struct scene *scene, enum hpx_reconciled result, uint64_t count)
{
	scene_await_count(scene, &scene->service.counters.reconciled[result], count);
}

uint64_t scene_runs(struct scene *scene)
{
	pthread_mutex_lock(&scene->lock);
	uint64_t runs = scene->runs;
	pthread_mutex_unlock(&scene->lock);
	return runs;
}

void scene_await_runs(struct scene *scene, uint64_t total)
{
	int64_t until_ms = hpx_clock_boot_ms() + TEST_PATIENCE_MS;

	pthread_mutex_lock(&scene->lock);
	while (scene->runs < total && hpx_clock_boot_ms() < until_ms)
		hpx_cond_wait_until(&scene->ran, &scene->lock, until_ms);
	uint64_t runs = scene->runs;
	pthread_mutex_unlock(&scene->lock);
	if (runs < total)
		fail_msg("the store ran %llu times, want %llu", (unsigned long long)runs,
			 (unsigned long long)total);
}
