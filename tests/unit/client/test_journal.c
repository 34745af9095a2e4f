/* Shows that the journal gives a call back as it was written down, without its
 * credentials; that one entry is one caller's at a time; and that whatever write,
 * sync or truncation was the last one before the process was gone, the next one
 * finds an entry that can be trusted, or none that was ever acknowledged. */
#include "folder.h"

#include <sqlite3.h>

#include "../../store/disk.h"
#include "client/journal.h"

static char folder[64];
static char path[128];
static char problem[HAPAX_PROBLEM_SIZE];

#define assert_result(call, want) \
	do { \
		enum hapax_result got_ = (call); \
		if (got_ != (want)) \
			fail_msg("%s: got %d (\"%s\"), want %d", #call, got_, problem, (want)); \
	} while (0)

static int set_up(void **state)
{
	(void)state;
	folder_make(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/calls.db", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	folder_remove(folder);
	return 0;
}

static struct hapax_client *client_new(void)
{
	struct hapax_client *client = NULL;

	assert_result(hapax_client_open(NULL, &client, problem), HAPAX_OK);
	return client;
}

static const char body[] = "\0binary\xff";

static struct hapax_call *call_new(struct hapax_client *client)
{
	struct hapax_call *call = NULL;

	assert_result(hapax_call_new(client, "POST", "http://h/p?q=1", &call, problem), HAPAX_OK);
	assert_result(hapax_call_key(call, "key-1", problem), HAPAX_OK);
	assert_result(hapax_call_header(call, "X-A", "one", problem), HAPAX_OK);
	assert_result(hapax_call_header(call, "Authorization", "Bearer s3cr3t", problem), HAPAX_OK);
	assert_result(hapax_call_header(call, "X-B", "", problem), HAPAX_OK);
	assert_result(hapax_call_body(call, body, sizeof(body), problem), HAPAX_OK);
	call->sending = true;
	call->attempts = 1;
	call->first_ms = 42;
	return call;
}

static void same_request(const struct hapax_call *call)
{
	assert_string_equal(call->method, "POST");
	assert_string_equal(call->url, "http://h/p?q=1");
	assert_string_equal(call->key, "key-1");
	assert_string_equal(call->key_header, "Idempotency-Key");
	assert_int_equal(call->body_len, sizeof(body));
	assert_memory_equal(call->body, body, sizeof(body));
	assert_int_equal(call->field_count, 3);
	assert_string_equal(call->fields[0].value, "one");
	assert_string_equal(call->fields[1].name, "Authorization");
	assert_true(call->fields[1].secret);
	assert_null(call->fields[1].value);
	assert_string_equal(call->fields[2].value, "");
}

static void given_back_as_it_was(void **state)
{
	struct hapax_client *client = client_new();
	struct hapax_call *call = call_new(client);
	struct hapax_call *again = hpx_call_empty(client);
	struct hpx_journal *journal = NULL;

	(void)state;
	assert_result(hpx_journal_open(path, &journal, problem), HAPAX_OK);
	assert_result(hpx_journal_add(journal, call, problem), HAPAX_OK);
	hapax_call_free(call);
	assert_result(hpx_journal_load(journal, 1, again, problem), HAPAX_OK);
	same_request(again);
	assert_int_equal(again->attempts, 1);
	assert_int_equal(again->first_ms, 42);
	assert_int_equal(again->remembered_ms, 86400000);
	/* Whoever was sending it is gone. */
	assert_true(again->doubt);
	hapax_call_free(again);
	hpx_journal_close(journal);
	hapax_client_close(client);
}

static void one_claimer(void **state)
{
	struct hapax_client *client = client_new();
	struct hapax_call *call = call_new(client);
	struct hapax_call *first = hpx_call_empty(client), *second = hpx_call_empty(client);
	struct hpx_journal *journal = NULL, *other = NULL;

	(void)state;
	assert_result(hpx_journal_open(path, &journal, problem), HAPAX_OK);
	assert_result(hpx_journal_open(path, &other, problem), HAPAX_OK);
	assert_result(hpx_journal_add(journal, call, problem), HAPAX_OK);
	assert_result(hpx_journal_load(other, 1, first, problem), HAPAX_BUSY);
	assert_result(hpx_journal_load(journal, 1, first, problem), HAPAX_BUSY);
	assert_result(hpx_journal_forget(other, 1, problem), HAPAX_BUSY);
	hapax_call_free(call);
	assert_result(hpx_journal_load(other, 1, first, problem), HAPAX_OK);
	assert_result(hpx_journal_load(journal, 1, second, problem), HAPAX_BUSY);
	hapax_call_free(first);
	assert_result(hpx_journal_forget(journal, 1, problem), HAPAX_OK);
	assert_result(hpx_journal_load(journal, 1, second, problem), HAPAX_INVALID);
	hapax_call_free(second);
	hpx_journal_close(other);
	hpx_journal_close(journal);
	hapax_client_close(client);
}

/* Rows that somebody else has been at. */
static const char *const damages[] = {
	"UPDATE call SET method = 'POST POST POST'",
	"UPDATE call SET key = ''",
	"UPDATE call SET key = printf('%.*c', 256, 'x')",
	"UPDATE call SET url = ''",
	"UPDATE call SET key_header = x''",
	"UPDATE field SET salt = x'00' WHERE value IS NULL",
	"UPDATE field SET digest = NULL WHERE value IS NULL",
	("WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 300) "
	 "INSERT INTO field (call, place, name, value) SELECT 1, i, 'X', 'x' FROM n"),
};

static void damage(const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static void damaged_rows_are_refused(void **state)
{
	struct hapax_client *client = client_new();

	(void)state;
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct hapax_call *call = call_new(client), *again = hpx_call_empty(client);
		struct hpx_journal *journal = NULL;

		assert_result(hpx_journal_open(path, &journal, problem), HAPAX_OK);
		assert_result(hpx_journal_add(journal, call, problem), HAPAX_OK);
		hapax_call_free(call);
		damage(damages[i]);
		assert_result(hpx_journal_load(journal, 1, again, problem), HAPAX_UNAVAILABLE);
		hapax_call_free(again);
		hpx_journal_close(journal);
		folder_empty(folder);
	}
	hapax_client_close(client);
}

/* How far the process got, by what it was told. */
enum told { TOLD_NOTHING,
	    TOLD_WRITTEN,
	    TOLD_LOST,
	    TOLD_SENDING_AGAIN,
	    TOLD_DONE };

static enum told live(struct hapax_client *client)
{
	struct hpx_journal *journal = NULL;
	struct hapax_call *call = call_new(client);
	enum told told = TOLD_NOTHING;

	if (hpx_journal_open(path, &journal, problem) == HAPAX_OK &&
	    hpx_journal_add(journal, call, problem) == HAPAX_OK)
		told = TOLD_WRITTEN;
	call->sending = false;
	call->doubt = true;
	if (told == TOLD_WRITTEN && hpx_journal_update(journal, call, problem) == HAPAX_OK)
		told = TOLD_LOST;
	call->sending = true;
	call->attempts = 2;
	if (told == TOLD_LOST && hpx_journal_update(journal, call, problem) == HAPAX_OK)
		told = TOLD_SENDING_AGAIN;
	call->sending = false;
	call->doubt = false;
	call->status = 201;
	call->state = HAPAX_ENTRY_DONE;
	if (told == TOLD_SENDING_AGAIN && hpx_journal_update(journal, call, problem) == HAPAX_OK)
		told = TOLD_DONE;
	hapax_call_free(call);
	hpx_journal_close(journal);
	return told;
}

static void check_next_process(struct hapax_client *client, enum told told, const char *name,
			       unsigned nth)
{
	struct hapax_call *call = hpx_call_empty(client);
	struct hpx_journal *journal = NULL;

	assert_result(hpx_journal_open(path, &journal, problem), HAPAX_OK);
	enum hapax_result result = hpx_journal_load(journal, 1, call, problem);
	if (told == TOLD_NOTHING && result == HAPAX_INVALID) {
		hapax_call_free(call);
		hpx_journal_close(journal);
		return;
	}
	if (result != HAPAX_OK)
		fail_msg("%s %u: told %d, and it cannot be read: %s", name, nth, told, problem);
	bool done = call->state == HAPAX_ENTRY_DONE;
	if (told == TOLD_DONE ? !done : (done && told != TOLD_SENDING_AGAIN))
		fail_msg("%s %u: told %d, got the state %d", name, nth, told, call->state);
	if (!done)
		same_request(call);
	if (!done && !call->doubt)
		fail_msg("%s %u: told %d, and there is no doubt", name, nth, told);
	hapax_call_free(call);
	hpx_journal_close(journal);
}

static const struct {
	const char *name;
	struct disk_plan plan;
} plans[] = {
	/* From there on nothing more reaches the disk: the process is gone. */
	{ "gone before write", { DISK_WRITE, SQLITE_IOERR_WRITE, DISK_UNDONE, 0, UINT32_MAX / 2 } },
	{ "gone before sync", { DISK_SYNC, SQLITE_IOERR_FSYNC, DISK_UNDONE, 0, UINT32_MAX / 2 } },
	{ "gone before truncation",
	  { DISK_TRUNCATE, SQLITE_IOERR_TRUNCATE, DISK_UNDONE, 0, UINT32_MAX / 2 } },
	/* Trouble that passes. */
	{ "write", { DISK_WRITE, SQLITE_IOERR_WRITE, DISK_UNDONE, 0, 1 } },
	{ "write, although done", { DISK_WRITE, SQLITE_IOERR_WRITE, DISK_DONE, 0, 1 } },
	{ "full", { DISK_WRITE, SQLITE_FULL, DISK_UNDONE, 0, 1 } },
	{ "sync", { DISK_SYNC, SQLITE_IOERR_FSYNC, DISK_UNDONE, 0, 1 } },
	{ "sync, although done", { DISK_SYNC, SQLITE_IOERR_FSYNC, DISK_DONE, 0, 1 } },
	{ "truncation, although done", { DISK_TRUNCATE, SQLITE_IOERR_TRUNCATE, DISK_DONE, 0, 1 } },
};

static void the_last_write_of_all(void **state)
{
	struct hapax_client *client = client_new();
	unsigned runs = 0;

	(void)state;
	disk_register();
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		struct disk_plan plan = plans[i].plan;
		bool fired = true;

		for (plan.nth = 1; fired; plan.nth++, runs++) {
			disk_arm(&plan);
			enum told told = live(client);
			fired = disk_disarm();
			check_next_process(client, told, plans[i].name, plan.nth);
			if (!fired)
				assert_int_equal(told, TOLD_DONE);
			folder_empty(folder);
		}
	}
	print_message("%u ways to fail\n", runs);
	assert_true(runs > 60);
	hapax_client_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(given_back_as_it_was, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_claimer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damaged_rows_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_last_write_of_all, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
