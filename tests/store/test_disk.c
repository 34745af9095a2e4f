/* Shows that the n-th read, write, truncation or sync of the disk may fail,
 * done or not done, and still every operation is executed once and its answer
 * is stored, in this process and for the next; and what expired leaves behind
 * what it should, once. */
#include "client.h"
#include "disk.h"
#include "store/sqlite/driver.h"

#include <sqlite3.h>

static const struct {
	const char *name;
	struct disk_plan plan;
} plans[] = {
	{ "write, I/O error", { DISK_WRITE, SQLITE_IOERR_WRITE, DISK_UNDONE, 0, 1 } },
	{ "write, I/O error although done", { DISK_WRITE, SQLITE_IOERR_WRITE, DISK_DONE, 0, 1 } },
	{ "write, disk full", { DISK_WRITE, SQLITE_FULL, DISK_UNDONE, 0, 1 } },
	{ "write, disk full three times", { DISK_WRITE, SQLITE_FULL, DISK_UNDONE, 0, 3 } },
	{ "write, disk full half way", { DISK_WRITE, SQLITE_FULL, DISK_HALF_DONE, 0, 1 } },
	{ "write, I/O error half way", { DISK_WRITE, SQLITE_IOERR_WRITE, DISK_HALF_DONE, 0, 1 } },
	{ "sync", { DISK_SYNC, SQLITE_IOERR_FSYNC, DISK_UNDONE, 0, 1 } },
	{ "sync, although done", { DISK_SYNC, SQLITE_IOERR_FSYNC, DISK_DONE, 0, 1 } },
	{ "sync, three times", { DISK_SYNC, SQLITE_IOERR_FSYNC, DISK_UNDONE, 0, 3 } },
	{ "read", { DISK_READ, SQLITE_IOERR_READ, DISK_UNDONE, 0, 1 } },
	{ "truncate", { DISK_TRUNCATE, SQLITE_IOERR_TRUNCATE, DISK_UNDONE, 0, 1 } },
};

static void start_afresh(struct fixture *f)
{
	fixture_close(f);
	fixture_folder_remove(f->folder);
	fixture_folder(f->folder, sizeof(f->folder));
	snprintf(f->path, sizeof(f->path), "%s/hapax.db", f->folder);
	snprintf(f->url, sizeof(f->url), "sqlite:%s", f->path);
	fixture_open(f);
	hpx_arena_done(&f->arena);
}

static bool run_with(struct fixture *f, const struct disk_plan *plan, const char *name)
{
	struct hpx_committer_options options = { .store = f->store, .probe_ms = 5 };
	struct client client = { .f = f };
	bool fired;

	disk_arm(plan);
	assert_status(hpx_committer_start(&options, &client.committer), HPX_OK);
	client_run(&client);
	hpx_committer_stop(client.committer, 1000);
	hpx_committer_free(client.committer);
	fired = disk_disarm();
	client_check(&client, name, plan->nth);
	/* And so finds it the next process. */
	fixture_reopen(f);
	client_check(&client, name, plan->nth);
	return fired;
}

static void the_nth_call_of_the_disk_fails(void **state)
{
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		struct disk_plan plan = plans[i].plan;
		bool fired = true;

		for (plan.nth = 1; fired; plan.nth++) {
			start_afresh(*state);
			fired = run_with(*state, &plan, plans[i].name);
		}
		print_message("%s: %u calls\n", plans[i].name, plan.nth - 2);
	}
}

/* Opening may fail, with a sentence; what was there is there afterwards. */
static void the_nth_call_fails_while_opening(void **state)
{
	struct fixture *f = *state;
	char problem[HPX_STORE_PROBLEM_SIZE];

	reserve(f, 1, 1, 1);
	complete(f, 1, 1, "there");
	reserve(f, 2, 1, 2);
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		struct disk_plan plan = plans[i].plan;
		bool fired = true;

		for (plan.nth = 1; fired; plan.nth++) {
			struct hpx_store_options options = fixture_options(f);
			struct hpx_store *store = NULL;
			fixture_close(f);
			disk_arm(&plan);
			enum hpx_status status = hpx_store_open(&options, &store, problem);
			fired = disk_disarm();
			if (status != HPX_OK)
				assert_string_not_equal(problem, "");
			hpx_store_close(store);
			fixture_open(f);
			assert_string_equal(body_of(f, 1), "there");
			assert_string_equal(state_of(f, 2), "unknown");
			hpx_arena_done(&f->arena);
		}
	}
}

/* ---- what expired operations leave behind ---- */

#define DAY_MS ((int64_t)RETENTION_MS)
#define TOMBSTONE_MS (30 * DAY_MS)

/* Every second key has a tombstone. One of each was executed at its second attempt. */
enum { FIRST = 1,
       RETRIED = 9,
       FAILED = 11,
       KEYS = 12 };

static bool is_buried(unsigned key)
{
	return key % 2 == 0 && key < FAILED;
}

static const char *ask(struct fixture *f, unsigned key, unsigned token)
{
	struct hpx_policy by = *policy();
	struct hpx_ask asked = ask_of(f->store, key, 1, token);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, token);

	by.tombstone_ms = is_buried(key) ? TOMBSTONE_MS : 0;
	by.expired = HPX_EXPIRED_REFUSE;
	op.reserve.ask = &asked;
	op.reserve.policy = &by;
	assert_status(run_op(f, &op), HPX_OK);
	hpx_answer_free(op.reserve.replay);
	return hpx_decision_name(op.decision.kind);
}

/* With the history on and small generations, at a time so much later. */
static void open_keeping(struct fixture *f, int64_t later_ms)
{
	struct hpx_store_options options = fixture_options(f);

	fixture_close(f);
	options.history_retention_ms = 400 * DAY_MS;
	assert_status(hpx_store_open(&options, &f->store, NULL), HPX_OK);
	assert_status(hpx_store_reader_open(f->store, &f->reader), HPX_OK);
	hpx_sqlite_of(f->store)->generation_operations = 3;
	advance(f, later_ms);
}

static void finish_keys(struct fixture *f)
{
	for (unsigned key = FIRST; key < KEYS; key++) {
		assert_string_equal(ask(f, key, 1), "created");
		if (key >= RETRIED)
			assert_status(act(f, HPX_VERB_FAIL, key, 1), HPX_OK);
		if (key >= RETRIED && key < FAILED)
			assert_string_equal(ask(f, key, 2), "retried");
		if (key < FAILED)
			assert_status(complete(f, key, key < RETRIED ? 1 : 2, "done"), HPX_OK);
	}
}

/* As the reaper does, which comes again after a failure. */
static void reap_somehow(struct fixture *f)
{
	struct hpx_committer_options options = { .store = f->store, .probe_ms = 5 };
	struct hpx_committer *committer;
	bool more = true;

	assert_status(hpx_committer_start(&options, &committer), HPX_OK);
	for (unsigned i = 0; i < 500 && more; i++) {
		struct hpx_store_op op = op_of(HPX_VERB_REAP, 0, 0);
		op.reap.limit = 4;
		hpx_committer_submit_wait(committer, &op);
		more = op.status != HPX_OK || op.reap.more || op.reap.count > 0;
		if (op.status == HPX_OK)
			continue;
		/* Taken once the store is there again. */
		op = op_of(HPX_VERB_RECIPE, 0, 0);
		op.recipe.text = HPX_SPAN("text");
		hpx_committer_submit_wait(committer, &op);
	}
	hpx_committer_stop(committer, 1000);
	hpx_committer_free(committer);
	assert_false(more);
}

static void check_told_once(struct fixture *f, const char *name, unsigned nth)
{
	struct hpx_history_query query = { .until_ms = INT64_MAX / 4, .limit = 100, .look_max = 1000 };
	struct hpx_history found;
	unsigned times[KEYS] = { 0 };

	assert_status(hpx_store_history(f->reader, &query, &f->arena, &found), HPX_OK);
	for (size_t i = 0; i < found.count; i++)
		for (unsigned key = FIRST; key < KEYS; key++) {
			struct hpx_operation_id id = id_of(key);
			times[key] += memcmp(found.entries[i].id.bytes, id.bytes, sizeof(id.bytes)) == 0;
		}
	for (unsigned key = FIRST; key < KEYS; key++)
		if (times[key] != 1)
			fail_msg("%s %u: key %u is told %u times", name, nth, key, times[key]);
	assert_int_equal(found.count, KEYS - FIRST);
}

static void check_left(struct fixture *f, const char *name, unsigned nth)
{
	for (unsigned key = FIRST; key < KEYS; key++) {
		const char *state = state_of(f, key);
		if (strcmp(state, is_buried(key) ? "completed" : "none") != 0)
			fail_msg("%s %u: key %u is %s", name, nth, key, state);
		if (is_buried(key))
			assert_string_equal(ask(f, key, 3), "expired");
	}
	check_told_once(f, name, nth);
}

/* False: there were fewer calls than that. `later_ms`: what the disk fails at is the
 * reaping of answers, or that of tombstones. */
static bool reap_with(struct fixture *f, const struct disk_plan *plan, const char *name, int64_t later_ms)
{
	bool fired;

	start_afresh(f);
	open_keeping(f, 0);
	finish_keys(f);
	advance(f, RETENTION_MS + 1);
	if (later_ms > 0) {
		reap_somehow(f);
		advance(f, later_ms);
	}
	disk_arm(plan);
	reap_somehow(f);
	fired = disk_disarm();
	if (later_ms == 0) {
		check_left(f, name, plan->nth);
		open_keeping(f, RETENTION_MS + 1);
		check_left(f, name, plan->nth);
		advance(f, TOMBSTONE_MS + RETENTION_MS);
		reap_somehow(f);
	}
	check_told_once(f, name, plan->nth);
	open_keeping(f, RETENTION_MS + TOMBSTONE_MS + RETENTION_MS + 1);
	check_told_once(f, name, plan->nth);
	for (unsigned key = FIRST; key < KEYS; key++)
		assert_string_equal(state_of(f, key), "none");
	return fired;
}

static void the_nth_call_fails_while_reaping(void **state)
{
	static const int64_t later[] = { 0, TOMBSTONE_MS + RETENTION_MS };

	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]) * 2; i++) {
		struct disk_plan plan = plans[i / 2].plan;
		bool fired = true;

		for (plan.nth = 1; fired; plan.nth++)
			fired = reap_with(*state, &plan, plans[i / 2].name, later[i % 2]);
		print_message("%s, reaping %s: %u calls\n", plans[i / 2].name,
			      i % 2 == 0 ? "answers" : "tombstones", plan.nth - 2);
	}
}

/* A reader that meets a bad disk says so; it never says "absent". */
static void a_reader_that_cannot_read_does_not_say_absent(void **state)
{
	struct fixture *f = *state;
	struct disk_plan plan = { DISK_READ, SQLITE_IOERR_READ, DISK_UNDONE, 1, 1000000 };
	struct hpx_ask ask = ask_of(f->store, 1, 1, 2);
	struct hpx_decision decision;
	struct hpx_answer *replay = NULL;

	reserve(f, 1, 1, 1);
	complete(f, 1, 1, "there");
	fixture_reopen(f);
	disk_arm(&plan);
	assert_status(hpx_store_peek(f->reader, &ask, policy(), &decision, &replay), HPX_IO);
	assert_true(disk_disarm());
	assert_status(hpx_store_peek(f->reader, &ask, policy(), &decision, &replay), HPX_OK);
	assert_non_null(replay);
	assert_span(replay->body, "there");
	hpx_answer_free(replay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(the_nth_call_of_the_disk_fails),
		ON_SQLITE(the_nth_call_fails_while_opening),
		ON_SQLITE(the_nth_call_fails_while_reaping),
		ON_SQLITE(a_reader_that_cannot_read_does_not_say_absent),
	};
	disk_register();
	return cmocka_run_group_tests_name("disk", tests, NULL, NULL);
}
