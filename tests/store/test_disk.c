/* Shows that the n-th read, write, truncation or sync of the disk may fail,
 * done or not done, and still every operation is executed once and its answer
 * is stored, in this process and for the next. */
#include "client.h"
#include "disk.h"

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
		ON_SQLITE(a_reader_that_cannot_read_does_not_say_absent),
	};
	disk_register();
	return cmocka_run_group_tests_name("disk", tests, NULL, NULL);
}
