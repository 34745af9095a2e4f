/* Shows that a job whose worker is gone does not stay on its way: what its
 * target remembers is queued again, the rest is unknown, and both are counted. */
#include "scene.h"

#include "worker/maintenance.h"

/* As a worker that dies leaves them: claimed, and nothing more. */
static void claim_all(struct scene *scene)
{
	const struct hpx_claim claims[] = {
		{ .target = scene->targets[PLAIN].name, .room = 10, .lease_ms = 1000, .attempts_max = 3 },
		{ .target = scene->targets[BANK].name, .room = 10, .lease_ms = 1000, .honours_keys_ms = 3600000, .attempts_max = 3 },
	};
	struct hpx_store_op op = { .verb = HPX_VERB_CLAIM, .claim.claims = claims, .claim.claim_count = 2 };

	hpx_token_make(&op.token);
	hpx_committer_submit_wait(scene->committer, &op);
	assert_status(op.status, HPX_OK);
	hpx_job_entry_free(op.claim.jobs);
}

static void test_lost_claims(void **state)
{
	struct scene *scene = *state;
	int64_t plain = scene_accept(scene, 1, PLAIN, "/pay");
	int64_t bank = scene_accept(scene, 2, BANK, "/pay");

	claim_all(scene);
	assert_string_equal(hpx_job_state_name(scene_job(scene, plain).state), "sending");
	atomic_store(&scene->store->lease_shift_ms, 2000);
	struct hpx_maintenance *maintenance = NULL;
	assert_status(hpx_maintenance_start(&scene->service, &maintenance), HPX_OK);
	scene_await_job(scene, plain, HPX_JOB_UNKNOWN);
	scene_await_job(scene, bank, HPX_JOB_QUEUED);
	scene_await_count(scene, &scene->service.counters.jobs[HPX_JOB_UNKNOWN], 1);
	scene_await_count(scene, &scene->service.counters.jobs[HPX_JOB_QUEUED], 1);
	hpx_maintenance_stop(maintenance);
	assert_true(scene_job(scene, bank).unsure);
	assert_string_equal(hpx_state_name(scene_operation(scene, 0, 1).record.state), "unknown");
	assert_string_equal(hpx_state_name(scene_operation(scene, 0, 2).record.state), "pending");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_lost_claims),
	};

	return cmocka_run_group_tests_name("worker/maintenance", tests, NULL, NULL);
}
