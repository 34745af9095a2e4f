/* Shows that the reconciler asks about what nobody knows, settles it by the
 * rules, and leaves to a person what nobody can be asked about. */
#include "scene.h"

#include "base/clock.h"
#include "worker/probe_call.h"

static void begin_unknown(struct scene *scene, unsigned key, int route)
{
	scene_begin(scene, 0, key, route);
	scene_lose(scene, 0, key);
}

static void test_settles_by_the_probe(void **state)
{
	struct scene *scene = *state;
	const struct {
		struct provider_reply reply;
		enum hpx_state ends;
		unsigned status;
		size_t questions;
	} rows[] = {
		{ { .status = 200 }, HPX_STATE_COMPLETED, 0, 1 },
		{ { .status = 201, .body = "{\"state\":\"declined\"}" }, HPX_STATE_COMPLETED, 402, 1 },
		{ { .status = 404, .always = true }, HPX_STATE_FAILED_RETRYABLE, 0, 2 },
	};
	char line[512], want[512], reference[HPX_REFERENCE_SIZE], field[256];

	scene_reconcile(scene);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct provider_reply reply = rows[i].reply;
		size_t before = provider_count(&scene->provider);
		reply.path = "/ask";
		provider_will(&scene->provider, reply);
		begin_unknown(scene, i, ROUTE_PROBED);
		scene_await_state(scene, 0, i, rows[i].ends);
		scene_await_reconciled(scene, HPX_RECONCILED_resolved, i + 1);
		struct hpx_record record = scene_operation(scene, 0, i).record;
		assert_int_equal(record.status, rows[i].status);
		assert_int_equal(provider_count(&scene->provider) - before, rows[i].questions);
		hpx_reference_print(&record.id, &record.mark, reference);
		snprintf(want, sizeof(want), "GET /ask?operation=%s", reference);
		provider_line(&scene->provider, before, line);
		assert_string_equal(line, want);
		provider_field(&scene->provider, before, "X-Probe", field);
		assert_string_equal(field, "secret");
	}
}

/* "Not applied" counts twice in a row only. */
static void test_starts_the_row_again(void **state)
{
	struct scene *scene = *state;
	const unsigned answers[] = { 404, 500, 404, 404 };

	for (size_t i = 0; i < 4; i++)
		provider_will(&scene->provider,
			      (struct provider_reply){ .path = "/ask", .status = answers[i] });
	begin_unknown(scene, 1, ROUTE_PROBED);
	scene_reconcile(scene);
	scene_await_state(scene, 0, 1, HPX_STATE_FAILED_RETRYABLE);
	assert_int_equal(provider_count(&scene->provider), 4);
}

/* The last two tries are not spent before their answers can count. */
static void test_does_not_ask_too_early(void **state)
{
	struct scene *scene = *state;

	scene->routes[ROUTE_PROBED].reconcile.rule.settle_after_ms = 3600000;
	scene->routes[ROUTE_PROBED].reconcile.rule.tries_max = 2;
	begin_unknown(scene, 1, ROUTE_PROBED);
	uint64_t runs = scene_runs(scene);
	scene_reconcile(scene);
	scene_await_runs(scene, runs + 1);
	/* Taken after it, and asked. */
	begin_unknown(scene, 2, ROUTE_BY_KEY);
	scene_await_state(scene, 0, 2, HPX_STATE_COMPLETED);
	assert_int_equal(provider_count_of(&scene->provider, "GET /ask?operation"), 0);
	assert_false(scene_operation(scene, 0, 1).person);
}

static void test_spends_its_budget(void **state)
{
	struct scene *scene = *state;

	provider_will(&scene->provider,
		      (struct provider_reply){ .path = "/ask", .status = 500, .always = true });
	begin_unknown(scene, 1, ROUTE_PROBED);
	scene_reconcile(scene);
	scene_await_person(scene, 0, 1);
	scene_await_reconciled(scene, HPX_RECONCILED_failed, 1);
	assert_int_equal(provider_count(&scene->provider), 5);
	assert_int_equal(hpx_counter_read(&scene->service.counters.reconciled[HPX_RECONCILED_scheduled]), 4);
}

static void test_leaves_it_to_a_person(void **state)
{
	struct scene *scene = *state;

	begin_unknown(scene, 1, ROUTE_SILENT);
	scene_reconcile(scene);
	scene_await_person(scene, 0, 1);
	scene_await_reconciled(scene, HPX_RECONCILED_failed, 1);
	/* Who knows may still say so. */
	scene_say(scene, 0, 1, HPX_RULING_APPLIED);
	scene_await_state(scene, 0, 1, HPX_STATE_COMPLETED);
	assert_int_equal(provider_count(&scene->provider), 0);
}

static void test_uses_evidence(void **state)
{
	struct scene *scene = *state;

	/* Also where nobody can be asked. */
	for (unsigned key = 0; key < 2; key++) {
		scene_begin(scene, 0, key, key == 0 ? ROUTE_PROBED : ROUTE_SILENT);
		scene_say(scene, 0, key, key == 0 ? HPX_RULING_APPLIED : HPX_RULING_DECLINED);
		scene_lose(scene, 0, key);
	}
	scene_reconcile(scene);
	scene_await_state(scene, 0, 0, HPX_STATE_COMPLETED);
	scene_await_state(scene, 0, 1, HPX_STATE_COMPLETED);
	assert_int_equal(scene_operation(scene, 0, 0).record.status, 0);
	assert_int_equal(scene_operation(scene, 0, 1).record.status, 402);
	assert_int_equal(provider_count(&scene->provider), 0);
}

static void test_asks_by_a_key_of_one_only(void **state)
{
	struct scene *scene = *state;
	char line[512];

	begin_unknown(scene, 1, ROUTE_BY_KEY);
	scene_reconcile(scene);
	scene_await_state(scene, 0, 1, HPX_STATE_COMPLETED);
	provider_line(&scene->provider, 0, line);
	assert_string_equal(line, "GET /ask/k%2F1");

	/* Another tenant has the same key: whose answer would it be? */
	scene_begin(scene, 1, 2, ROUTE_SILENT);
	begin_unknown(scene, 2, ROUTE_BY_KEY);
	scene_await_person(scene, 0, 2);
	assert_int_equal(provider_count(&scene->provider), 1);
}

/* Another tenant takes the key while the probe is under way: whatever the service found, it
 * may be of the other. */
static void test_believes_no_answer_about_a_key_of_two(void **state)
{
	struct scene *scene = *state;

	provider_hold(&scene->provider, "/ask");
	begin_unknown(scene, 1, ROUTE_BY_KEY);
	scene_reconcile(scene);
	provider_wait(&scene->provider, 1);
	scene_begin(scene, 1, 1, ROUTE_SILENT);
	provider_release(&scene->provider);
	scene_await_person(scene, 0, 1);
	assert_int_equal(scene_operation(scene, 0, 1).record.state, HPX_STATE_UNKNOWN);
	assert_int_equal(provider_count(&scene->provider), 1);
}

/* ---- jobs ---- */

static struct hpx_reconcile_settings probe_of_target(struct scene *scene, struct hpx_span get)
{
	struct hpx_reconcile_settings settings = scene->routes[ROUTE_PROBED].reconcile;

	settings.probe.get = get;
	return settings;
}

static void test_settles_a_job(void **state)
{
	struct scene *scene = *state;
	char line[512];

	scene->targets[PLAIN].reconcile = probe_of_target(scene, HPX_SPAN("/pays/{provider_id}"));
	provider_will(&scene->provider, (struct provider_reply){
						.path = "/plain", .status = 500, .body = "{\"id\":\"p 7\"}" });
	int64_t number = scene_accept(scene, 1, PLAIN, "/pay");
	scene_deliver(scene);
	scene_await_job(scene, number, HPX_JOB_UNKNOWN);
	scene_reconcile(scene);
	scene_await_job(scene, number, HPX_JOB_DONE);
	scene_await_state(scene, 0, 1, HPX_STATE_COMPLETED);
	assert_false(scene_operation(scene, 0, 1).record.kept);
	assert_int_equal(provider_count(&scene->provider), 2);
	provider_line(&scene->provider, 1, line);
	assert_string_equal(line, "GET /pays/p7");
}

/* Proved, twice: nothing happened. Then it is sent again, under its key. */
static void test_sends_again_what_was_not_applied(void **state)
{
	struct scene *scene = *state;
	char first[256], line[512], want[512];

	scene->targets[PLAIN].reconcile = probe_of_target(scene, HPX_SPAN("/pays?key={key}"));
	provider_will(&scene->provider, (struct provider_reply){ .path = "/plain", .status = 0 });
	provider_will(&scene->provider,
		      (struct provider_reply){ .path = "/pays", .status = 404, .always = true });
	int64_t number = scene_accept(scene, 1, PLAIN, "/pay");
	scene_deliver(scene);
	scene_reconcile(scene);
	scene_await_job(scene, number, HPX_JOB_DONE);
	scene_await_state(scene, 0, 1, HPX_STATE_COMPLETED);
	assert_int_equal(provider_count_of(&scene->provider, "GET /pays"), 2);
	assert_int_equal(provider_count_of(&scene->provider, "POST /plain"), 2);
	provider_field(&scene->provider, 0, "Idempotency-Key", first);
	snprintf(want, sizeof(want), "GET /pays?key=%s", first);
	provider_line(&scene->provider, 1, line);
	assert_string_equal(line, want);
}

/* ---- many, and the end ---- */

static void test_slow_provider_holds_up_nobody(void **state)
{
	struct scene *scene = *state;
	char slow[96];

	snprintf(slow, sizeof(slow), "%s/slow", scene->provider.url);
	scene->routes[ROUTE_BY_KEY].reconcile.probe.caller.url = slow;
	provider_hold(&scene->provider, "/slow");
	for (unsigned key = 0; key < 40; key++)
		begin_unknown(scene, key, ROUTE_BY_KEY);
	scene_reconcile(scene);
	provider_wait(&scene->provider, 16);
	for (unsigned key = 50; key < 90; key++)
		begin_unknown(scene, key, ROUTE_PROBED);
	scene_await_reconciled(scene, HPX_RECONCILED_resolved, 40);
	assert_int_equal(provider_count_of(&scene->provider, "GET /slow"), 16);
	assert_int_equal(hpx_counter_read(&scene->service.counters.probes_under_way), 16);
	provider_release(&scene->provider);
	scene_await_reconciled(scene, HPX_RECONCILED_resolved, 80);
	assert_int_equal(hpx_counter_read(&scene->service.counters.probes_under_way), 0);
}

/* Two slots and forty questions, and an hour until the next look at all queues:
 * each answer makes room for the next question. */
static void test_a_free_slot_is_used_at_once(void **state)
{
	struct scene *scene = *state;

	scene->routes[ROUTE_PROBED].reconcile.probe.concurrency = 2;
	provider_hold(&scene->provider, "/ask");
	for (unsigned key = 0; key < 40; key++)
		begin_unknown(scene, key, ROUTE_PROBED);
	scene_reconcile_every(scene, 3600000);
	provider_wait(&scene->provider, 2);
	assert_int_equal(hpx_counter_read(&scene->service.counters.probes_under_way), 2);
	assert_int_equal(provider_count(&scene->provider), 2);
	provider_release(&scene->provider);
	scene_await_reconciled(scene, HPX_RECONCILED_resolved, 40);
	assert_int_equal(provider_count(&scene->provider), 40);
}

static void test_keeps_its_rate(void **state)
{
	struct scene *scene = *state;

	scene->routes[ROUTE_PROBED].reconcile.probe.per_second = 4;
	for (unsigned key = 0; key < 8; key++)
		begin_unknown(scene, key, ROUTE_PROBED);
	int64_t before_ms = hpx_clock_boot_ms();
	scene_reconcile(scene);
	scene_await_reconciled(scene, HPX_RECONCILED_resolved, 8);
	/* Four at once, and four more in their second. */
	assert_in_range(hpx_clock_boot_ms() - before_ms, 990, TEST_PATIENCE_MS);
	assert_int_equal(provider_count(&scene->provider), 8);
}

/* Marked in few transactions, and not looked at again. */
static void test_many_that_nobody_can_be_asked_about(void **state)
{
	struct scene *scene = *state;
	unsigned count = 2 * HPX_ESCALATE_MAX + 50;

	for (unsigned key = 0; key < count; key++)
		begin_unknown(scene, key, ROUTE_SILENT);
	uint64_t runs = scene_runs(scene);
	scene_reconcile(scene);
	scene_await_reconciled(scene, HPX_RECONCILED_failed, count);
	assert_in_range(scene_runs(scene) - runs, 3, 4);
	/* What is looked for afterwards is what is new: begun, lost, taken, ruled. */
	runs = scene_runs(scene);
	begin_unknown(scene, count, ROUTE_PROBED);
	scene_await_reconciled(scene, HPX_RECONCILED_resolved, 1);
	assert_in_range(scene_runs(scene) - runs, 4, 5);
	for (unsigned key = 0; key < count; key += 37)
		assert_true(scene_operation(scene, 0, key).person);
}

/* A question that hapax itself ended costs nothing. */
static void test_stops_while_asking(void **state)
{
	struct scene *scene = *state;

	scene->routes[ROUTE_PROBED].reconcile.rule.tries_max = 1;
	provider_hold(&scene->provider, "/ask");
	begin_unknown(scene, 1, ROUTE_PROBED);
	scene_reconcile(scene);
	provider_wait(&scene->provider, 1);
	hpx_reconciler_stop(scene->reconciler);
	hpx_reconciler_free(scene->reconciler);
	scene->reconciler = NULL;
	assert_false(scene_operation(scene, 0, 1).person);
	assert_string_equal(hpx_state_name(scene_operation(scene, 0, 1).record.state), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_settles_by_the_probe),
		SCENE_TEST(test_starts_the_row_again),
		SCENE_TEST(test_does_not_ask_too_early),
		SCENE_TEST(test_spends_its_budget),
		SCENE_TEST(test_leaves_it_to_a_person),
		SCENE_TEST(test_uses_evidence),
		SCENE_TEST(test_asks_by_a_key_of_one_only),
		SCENE_TEST(test_believes_no_answer_about_a_key_of_two),
		SCENE_TEST(test_settles_a_job),
		SCENE_TEST(test_sends_again_what_was_not_applied),
		SCENE_TEST(test_slow_provider_holds_up_nobody),
		SCENE_TEST(test_a_free_slot_is_used_at_once),
		SCENE_TEST(test_keeps_its_rate),
		SCENE_TEST(test_many_that_nobody_can_be_asked_about),
		SCENE_TEST(test_stops_while_asking),
	};

	return cmocka_run_group_tests_name("worker/reconciler", tests, NULL, NULL);
}
