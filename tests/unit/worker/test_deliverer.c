/* Shows that the deliverer sends each job once under its own key, sends again
 * only what it may, gives up when it should, and lets no target hold up
 * another. */
#include "scene.h"

#include <arpa/inet.h>
#include <unistd.h>

#include "base/clock.h"

static void test_delivers(void **state)
{
	struct scene *scene = *state;
	char field[256], line[512], key[HPX_JOB_KEY_SIZE], reference[HPX_REFERENCE_SIZE];

	provider_will(&scene->provider, (struct provider_reply){
						.path = "/plain/pay", .status = 201, .headers = "X-Kept: yes\r\nSet-Cookie: a=b\r\nDate: today\r\nLocation: /p/7\r\n", .body = "{\"id\":\"p-7\"}" });
	int64_t number = scene_accept(scene, 1, PLAIN, "/pay?x=1");
	scene_deliver(scene);
	scene_await_state(scene, 0, 1, HPX_STATE_COMPLETED);

	struct hpx_delivery job = scene_job(scene, number);
	assert_string_equal(hpx_job_state_name(job.state), "done");
	assert_string_equal(job.provider_id, "p-7");
	struct scene_operation operation = scene_operation(scene, 0, 1);
	assert_int_equal(operation.record.status, 201);
	assert_true(operation.record.kept);
	assert_string_equal(operation.body, "{\"id\":\"p-7\"}");
	assert_string_equal(operation.headers, "X-Kept: yes\r\nLocation: /p/7\r\n");

	hpx_reference_print(&job.operation, &job.mark, reference);
	hpx_job_key(&job.operation, &job.mark, HPX_SPAN(SCENE_JOB), key);
	provider_line(&scene->provider, 0, line);
	assert_string_equal(line, "POST /plain/pay?x=1");
	const struct {
		const char *name;
		const char *value;
	} fields[] = {
		{ "Idempotency-Key", key },
		{ "Hapax-Operation", reference },
		{ "Hapax-Attempt", "1" },
		{ "Authorization", "Bearer secret" },
		{ "Content-Type", "application/json" },
		{ "Host", scene->provider.url + strlen("http://") },
	};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		provider_field(&scene->provider, 0, fields[i].name, field);
		assert_string_equal(field, fields[i].value);
	}
	assert_string_equal(scene->provider.seen[0].body, "{\"amount\":1}");
}

/* What an answer makes of the operation that waits for it. */
static void test_answers(void **state)
{
	struct scene *scene = *state;
	static char large[1000];
	const struct {
		const char *path;
		struct provider_reply reply;
		bool kept;
		const char *headers;
	} rows[] = {
		{ "/a", { .status = 404, .body = "no" }, true, "" },
		{ "/b", { .status = 200, .body = large, .headers = "X-A: b\r\nLocation: /l\r\n" }, false, "Location: /l\r\n" },
		{ "/c", { .status = 200, .headers = "Content-Type: text/event-stream; a=b\r\n" }, false, "" },
	};

	memset(large, 'x', sizeof(large) - 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct provider_reply reply = rows[i].reply;
		char path[32];
		snprintf(path, sizeof(path), "/plain%s", rows[i].path);
		reply.path = path;
		provider_will(&scene->provider, reply);
		scene_accept(scene, (unsigned)i, PLAIN, rows[i].path);
		if (scene->deliverer == NULL)
			scene_deliver(scene);
		scene_await_state(scene, 0, (unsigned)i, HPX_STATE_COMPLETED);
		struct scene_operation operation = scene_operation(scene, 0, (unsigned)i);
		assert_int_equal(operation.record.status, reply.status);
		assert_int_equal(operation.record.kept, rows[i].kept);
		assert_string_equal(operation.headers, rows[i].headers);
	}
}

/* A route that keeps no more than the status. */
static void test_keeps_status_only(void **state)
{
	struct scene *scene = *state;

	scene->routes[ROUTE_SILENT].pattern = HPX_SPAN("POST /async");
	scene->routes[ROUTE_SILENT].policy.deliver = HPX_DELIVER_ASYNC;
	scene->routes[ROUTE_SILENT].policy.keep = HPX_KEEP_STATUS;
	scene_accept(scene, 1, PLAIN, "/pay");
	scene_deliver(scene);
	scene_await_state(scene, 0, 1, HPX_STATE_COMPLETED);
	assert_false(scene_operation(scene, 0, 1).record.kept);
	assert_string_equal(scene_operation(scene, 0, 1).body, "");
}

/* One job, one answer again and again: how it ends, and after how many. */
static void test_ends(void **state)
{
	struct scene *scene = *state;
	const struct {
		int target;
		unsigned status;
		const char *headers;
		enum hpx_job_state ends;
		size_t sendings;
		enum hpx_job_result result;
	} rows[] = {
		{ PLAIN, 400, NULL, HPX_JOB_DEAD, 1, HPX_JOB_RESULT_rejected },
		{ PLAIN, 301, "Location: http://x/\r\n", HPX_JOB_DEAD, 1, HPX_JOB_RESULT_rejected },
		{ PLAIN, 429, NULL, HPX_JOB_DEAD, 3, HPX_JOB_RESULT_dead },
		{ PLAIN, 401, NULL, HPX_JOB_DEAD, 3, HPX_JOB_RESULT_dead },
		{ PLAIN, 503, "Retry-After: 0\r\n", HPX_JOB_DEAD, 3, HPX_JOB_RESULT_dead },
		{ PLAIN, 503, NULL, HPX_JOB_UNKNOWN, 1, HPX_JOB_RESULT_lost },
		{ PLAIN, 500, NULL, HPX_JOB_UNKNOWN, 1, HPX_JOB_RESULT_lost },
		{ PLAIN, 0, NULL, HPX_JOB_UNKNOWN, 1, HPX_JOB_RESULT_lost },
		{ BANK, 500, NULL, HPX_JOB_UNKNOWN, 3, HPX_JOB_RESULT_lost },
		{ BANK, 0, NULL, HPX_JOB_UNKNOWN, 3, HPX_JOB_RESULT_lost },
		{ BANK, 200, NULL, HPX_JOB_DONE, 1, HPX_JOB_RESULT_delivered },
	};

	scene_deliver(scene);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *folder = rows[i].target == PLAIN ? "/plain" : "/bank";
		char path[32], whole[64], line[96];
		snprintf(path, sizeof(path), "/row-%zu.", i);
		snprintf(whole, sizeof(whole), "%s%s", folder, path);
		snprintf(line, sizeof(line), "POST %s", whole);
		provider_will(&scene->provider, (struct provider_reply){
							.path = whole, .status = rows[i].status, .headers = rows[i].headers, .always = true });
		uint64_t before = hpx_counter_read(
			&scene->target_counters[rows[i].target].results[rows[i].result]);
		int64_t number = scene_enqueue(scene, (unsigned)i, rows[i].target, path);
		scene_await_job(scene, number, rows[i].ends);
		scene_await_result(scene, rows[i].target, rows[i].result, before + 1);
		assert_int_equal(provider_count_of(&scene->provider, line), rows[i].sendings);
		/* The path of a reply lives as long as this row. */
		pthread_mutex_lock(&scene->provider.lock);
		scene->provider.reply_count = 0;
		pthread_mutex_unlock(&scene->provider.lock);
	}
}

static void test_sends_again_with_the_same_key(void **state)
{
	struct scene *scene = *state;
	char first[256], second[256];

	provider_will(&scene->provider, (struct provider_reply){ .path = "/bank", .status = 500 });
	int64_t number = scene_accept(scene, 1, BANK, "/pay");
	scene_deliver(scene);
	scene_await_state(scene, 0, 1, HPX_STATE_COMPLETED);
	assert_int_equal(scene_job(scene, number).attempt, 2);
	provider_field(&scene->provider, 0, "Idempotency-Key", first);
	provider_field(&scene->provider, 1, "Idempotency-Key", second);
	assert_string_equal(first, second);
	provider_field(&scene->provider, 1, "Hapax-Attempt", second);
	assert_string_equal(second, "2");
}

static void test_heeds_retry_after(void **state)
{
	struct scene *scene = *state;

	provider_will(&scene->provider, (struct provider_reply){
						.path = "/plain", .status = 429, .headers = "Retry-After: 30\r\n" });
	provider_will(&scene->provider, (struct provider_reply){
						.path = "/bank", .status = 429, .headers = "Retry-After: 3600\r\n" });
	int64_t before_ms = hpx_clock_wall_ms();
	int64_t asked = scene_accept(scene, 1, PLAIN, "/pay");
	int64_t bounded = scene_accept(scene, 2, BANK, "/pay");
	scene_deliver(scene);
	scene_await_result(scene, PLAIN, HPX_JOB_RESULT_postponed, 1);
	scene_await_result(scene, BANK, HPX_JOB_RESULT_postponed, 1);
	int64_t after_ms = hpx_clock_wall_ms();
	assert_in_range(scene_job(scene, asked).due_ms, before_ms + 30000, after_ms + 30000);
	assert_in_range(scene_job(scene, bounded).due_ms, before_ms + 60000,
			after_ms + 60000);
}

static void test_poison_holds_up_nobody(void **state)
{
	struct scene *scene = *state;

	scene->targets[PLAIN].concurrency = 1;
	provider_will(&scene->provider, (struct provider_reply){
						.path = "/plain/poison", .status = 400, .always = true });
	int64_t poison = scene_enqueue(scene, 1, PLAIN, "/poison");
	int64_t good = scene_enqueue(scene, 2, PLAIN, "/good");
	scene_deliver(scene);
	scene_await_job(scene, good, HPX_JOB_DONE);
	scene_await_job(scene, poison, HPX_JOB_DEAD);
}

static void test_slow_target_holds_up_nobody(void **state)
{
	struct scene *scene = *state;

	/* More than all slots together. */
	scene->targets[PLAIN].concurrency = 100;
	scene->settings->deliveries_max = 4;
	provider_hold(&scene->provider, "/plain");
	for (unsigned key = 0; key < 10; key++)
		scene_enqueue(scene, key, PLAIN, "/slow");
	scene_deliver(scene);
	provider_wait(&scene->provider, 3);
	for (unsigned key = 10; key < 15; key++)
		scene_enqueue(scene, key, BANK, "/fast");
	scene_await_result(scene, BANK, HPX_JOB_RESULT_delivered, 5);
	assert_int_equal(provider_count_of(&scene->provider, "POST /plain"), 3);
	provider_release(&scene->provider);
	scene_await_result(scene, PLAIN, HPX_JOB_RESULT_delivered, 10);
}

/* Slots are filled, and never more than there are. */
static void test_keeps_to_its_concurrency(void **state)
{
	struct scene *scene = *state;

	provider_hold(&scene->provider, "/plain");
	for (unsigned key = 0; key < 40; key++)
		scene_enqueue(scene, key, PLAIN, "/pay");
	scene_deliver(scene);
	provider_wait(&scene->provider, 4);
	scene_await_runs(scene, scene_runs(scene) + 5);
	assert_int_equal(provider_count(&scene->provider), 4);
	unsigned sending = 0;
	for (int64_t number = 1; number <= 40; number++)
		sending += scene_job(scene, number).state == HPX_JOB_SENDING;
	assert_int_equal(sending, 4);
	provider_release(&scene->provider);
	scene_await_result(scene, PLAIN, HPX_JOB_RESULT_delivered, 40);
	assert_int_equal(scene->provider.running_most, 4);
}

static void test_keeps_the_order_of_an_operation(void **state)
{
	struct scene *scene = *state;

	provider_hold(&scene->provider, "/plain/first");
	int64_t first = scene_enqueue(scene, 1, PLAIN, "/first");
	int64_t second = scene_enqueue(scene, 1, PLAIN, "/second");
	int64_t other = scene_enqueue(scene, 2, PLAIN, "/other");
	scene_deliver(scene);
	scene_await_job(scene, other, HPX_JOB_DONE);
	scene_await_runs(scene, scene_runs(scene) + 3);
	assert_int_equal(scene_job(scene, second).attempt, 0);
	provider_release(&scene->provider);
	scene_await_job(scene, second, HPX_JOB_DONE);
	scene_await_job(scene, first, HPX_JOB_DONE);
}

/* Nothing listens: after two failures nobody tries, and nobody else suffers. */
static void test_breaker_opens(void **state)
{
	struct scene *scene = *state;
	struct provider gone;

	provider_start(&gone);
	provider_stop(&gone);
	scene->targets[PLAIN].caller.url = gone.url;
	scene->targets[PLAIN].concurrency = 1;
	scene->targets[PLAIN].attempts_max = 100;
	scene->targets[PLAIN].breaker = (struct hpx_breaker_rule){ 2, 3600000, 3600000, 3600000 };
	for (unsigned key = 0; key < 5; key++)
		scene_enqueue(scene, key, PLAIN, "/pay");
	scene_deliver(scene);
	scene_await_result(scene, PLAIN, HPX_JOB_RESULT_postponed, 2);
	int64_t good = scene_enqueue(scene, 9, BANK, "/pay");
	scene_await_job(scene, good, HPX_JOB_DONE);
	scene_await_runs(scene, scene_runs(scene) + 5);
	unsigned attempts = 0;
	for (int64_t number = 1; number <= 5; number++)
		attempts += scene_job(scene, number).attempt;
	assert_int_equal(attempts, 2);
}

static void test_breaker_closes(void **state)
{
	struct scene *scene = *state;

	scene->targets[BANK].attempts_max = 100;
	scene->targets[BANK].breaker = (struct hpx_breaker_rule){ 1, 1, 1, 3600000 };
	provider_will(&scene->provider, (struct provider_reply){ .path = "/bank", .status = 429 });
	provider_will(&scene->provider, (struct provider_reply){ .path = "/bank", .status = 500 });
	for (unsigned key = 0; key < 5; key++)
		scene_enqueue(scene, key, BANK, "/pay");
	scene_deliver(scene);
	scene_await_result(scene, BANK, HPX_JOB_RESULT_delivered, 5);
}

/* A header that no request can have: it would be the same next time. */
static void test_refuses_what_cannot_be_sent(void **state)
{
	struct scene *scene = *state;
	int64_t number = scene_enqueue(scene, 1, PLAIN, "/with#fragment");

	scene_deliver(scene);
	scene_await_job(scene, number, HPX_JOB_DEAD);
	assert_int_equal(provider_count(&scene->provider), 0);
}

static void test_is_woken(void **state)
{
	struct scene *scene = *state;
	scene_deliver_every(scene, 3600000);
	scene_await_runs(scene, 1);
	int64_t number = scene_accept(scene, 1, PLAIN, "/pay");
	hpx_deliverer_wake(scene->deliverer);
	scene_await_job(scene, number, HPX_JOB_DONE);
}

/* ---- stopping ---- */

static void test_stops_with_grace(void **state)
{
	struct scene *scene = *state;

	provider_hold(&scene->provider, "/plain");
	int64_t number = scene_accept(scene, 1, PLAIN, "/pay");
	scene_deliver(scene);
	provider_wait(&scene->provider, 1);
	/* It ends by the answer, long before the grace is over. */
	provider_release(&scene->provider);
	hpx_deliverer_stop(scene->deliverer, TEST_PATIENCE_MS);
	scene_await_job(scene, number, HPX_JOB_DONE);
	hpx_deliverer_free(scene->deliverer);
	scene->deliverer = NULL;
}

static void test_stops_at_once(void **state)
{
	struct scene *scene = *state;

	provider_hold(&scene->provider, "/");
	int64_t plain = scene_accept(scene, 1, PLAIN, "/pay");
	int64_t bank = scene_accept(scene, 2, BANK, "/pay");
	scene_deliver(scene);
	provider_wait(&scene->provider, 2);
	hpx_deliverer_stop(scene->deliverer, 0);
	/* Sent, and no answer: only what the target remembers is sent again. */
	scene_await_job(scene, plain, HPX_JOB_UNKNOWN);
	scene_await_job(scene, bank, HPX_JOB_QUEUED);
	assert_true(scene_job(scene, bank).unsure);
	hpx_deliverer_free(scene->deliverer);
	scene->deliverer = NULL;
}

/* A listener that nobody serves: connections are made, and TLS never ends. */
static int listen_mute(char *url, size_t size)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	snprintf(url, size, "https://127.0.0.1:%u", ntohs(address.sin_port));
	return fd;
}

/* Stopped again and again between the claim and the first byte: that is not
 * what a budget is for. */
static void test_stops_cost_no_attempt(void **state)
{
	struct scene *scene = *state;
	char url[64];
	int fd = listen_mute(url, sizeof(url));

	scene->targets[PLAIN].caller.url = url;
	scene->targets[PLAIN].attempts_max = 1;
	int64_t number = scene_accept(scene, 1, PLAIN, "/pay");
	for (int i = 0; i < 3; i++) {
		scene_deliver(scene);
		scene_await_job(scene, number, HPX_JOB_SENDING);
		hpx_deliverer_stop(scene->deliverer, 0);
		scene_await_job(scene, number, HPX_JOB_QUEUED);
		hpx_deliverer_free(scene->deliverer);
		scene->deliverer = NULL;
		assert_int_equal(scene_job(scene, number).attempt, 0);
	}
	close(fd);
}

/* The store is gone: what was under way is left to the sweeper. */
static void test_stops_without_a_store(void **state)
{
	struct scene *scene = *state;

	provider_hold(&scene->provider, "/plain");
	int64_t number = scene_accept(scene, 1, PLAIN, "/pay");
	scene_deliver(scene);
	provider_wait(&scene->provider, 1);
	scene_break_store(scene, true);
	hpx_deliverer_stop(scene->deliverer, 0);
	hpx_committer_stop(scene->committer, 0);
	scene->committer_stopped = true;
	hpx_deliverer_free(scene->deliverer);
	scene->deliverer = NULL;
	assert_string_equal(hpx_job_state_name(scene_job(scene, number).state), "sending");
}

/* The store fails for a while: nothing is lost, nothing is sent twice. */
static void test_survives_a_broken_store(void **state)
{
	struct scene *scene = *state;

	provider_hold(&scene->provider, "/plain");
	int64_t number = scene_accept(scene, 1, PLAIN, "/pay");
	scene_deliver(scene);
	provider_wait(&scene->provider, 1);
	scene_break_store(scene, true);
	provider_release(&scene->provider);
	/* The answer is there, and cannot be stored yet. */
	while (hpx_committer_healthy(scene->committer)) {
		pthread_mutex_lock(&scene->lock);
		pthread_cond_wait(&scene->ran, &scene->lock);
		pthread_mutex_unlock(&scene->lock);
	}
	scene_break_store(scene, false);
	scene_await_job(scene, number, HPX_JOB_DONE);
	assert_int_equal(provider_count(&scene->provider), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_delivers),
		SCENE_TEST(test_answers),
		SCENE_TEST(test_keeps_status_only),
		SCENE_TEST(test_ends),
		SCENE_TEST(test_sends_again_with_the_same_key),
		SCENE_TEST(test_heeds_retry_after),
		SCENE_TEST(test_poison_holds_up_nobody),
		SCENE_TEST(test_slow_target_holds_up_nobody),
		SCENE_TEST(test_keeps_to_its_concurrency),
		SCENE_TEST(test_keeps_the_order_of_an_operation),
		SCENE_TEST(test_breaker_opens),
		SCENE_TEST(test_breaker_closes),
		SCENE_TEST(test_refuses_what_cannot_be_sent),
		SCENE_TEST(test_is_woken),
		SCENE_TEST(test_stops_with_grace),
		SCENE_TEST(test_stops_at_once),
		SCENE_TEST(test_stops_cost_no_attempt),
		SCENE_TEST(test_stops_without_a_store),
		SCENE_TEST(test_survives_a_broken_store),
	};

	return cmocka_run_group_tests_name("worker/deliverer", tests, NULL, NULL);
}
