/* Shows that coalescing the writes of a commit changes their number and nothing
 * else: the log reads as it was written, what fails is told by the commit it
 * belongs to and never written later, and a process that dies at any write or
 * sync leaves whole what was acknowledged. */
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "disk.h"
#include "fixture.h"
#include "store/sqlite/driver.h"

#define BATCH 30
#define BODY_BYTES 3000

/* ---- the log as a file ---- */

#define MODEL_BYTES (512 << 10)
#define MODEL_STEPS 4000

/* What the file must hold. It lies far behind what SQLite wrote itself. */
struct model {
	unsigned char bytes[MODEL_BYTES];
	sqlite3_int64 size;
};
#define MODEL_AT (1 << 20)

static unsigned chance(unsigned *seed, unsigned below)
{
	*seed = *seed * 1103515245u + 12345u;
	return (*seed >> 8) % below;
}

static struct hpx_sqlite_db *writer_of(struct fixture *f)
{
	return &hpx_sqlite_of(f->store)->writer;
}

static sqlite3_file *log_of(struct fixture *f)
{
	sqlite3_file *file = NULL;

	sqlite3_file_control(writer_of(f)->handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
	assert_non_null(file);
	return file;
}

static void model_write(struct model *model, sqlite3_file *file, int at, int len, unsigned *seed)
{
	unsigned char bytes[80 << 10];

	assert_in_range(len, 0, sizeof(bytes));
	for (int i = 0; i < len; i++)
		bytes[i] = (unsigned char)chance(seed, 256);
	assert_int_equal(file->pMethods->xWrite(file, bytes, len, MODEL_AT + at), SQLITE_OK);
	memcpy(model->bytes + at, bytes, (size_t)len);
	if (at + len > model->size)
		model->size = at + len;
	/* SQLite's buffers are its own again once xWrite returns. */
	memset(bytes, 0xee, (size_t)len);
}

static void model_read(const struct model *model, sqlite3_file *file, int at, int len)
{
	static unsigned char bytes[MODEL_BYTES];

	if (at + len > model->size)
		return;
	assert_int_equal(file->pMethods->xRead(file, bytes, len, MODEL_AT + at), SQLITE_OK);
	assert_memory_equal(bytes, model->bytes + at, (size_t)len);
}

static void model_cut(struct model *model, sqlite3_file *file, int size)
{
	if (size > model->size)
		return;
	assert_int_equal(file->pMethods->xTruncate(file, MODEL_AT + size), SQLITE_OK);
	memset(model->bytes + size, 0, (size_t)(model->size - size));
	model->size = size;
}

/* Mostly as SQLite writes: a frame's header, then its page, and so on. */
static void model_step(struct model *model, struct fixture *f, unsigned *seed, int *next)
{
	sqlite3_file *file = log_of(f);
	sqlite3_int64 size = -1;
	int len = chance(seed, 2) ? 24 : chance(seed, 50) ? 4096 :
							    66000;

	if (chance(seed, 20) == 0 || *next + len > MODEL_BYTES)
		*next = (int)chance(seed, MODEL_BYTES - (80 << 10));
	switch (chance(seed, 40)) {
	case 0:
		model_read(model, file, (int)chance(seed, MODEL_BYTES / 2), 5000);
		return;
	case 1:
		assert_int_equal(file->pMethods->xFileSize(file, &size), SQLITE_OK);
		if (model->size > 0)
			assert_int_equal(size, MODEL_AT + model->size);
		return;
	case 2:
		model_cut(model, file, (int)chance(seed, MODEL_BYTES));
		return;
	case 3:
		assert_int_equal(file->pMethods->xSync(file, SQLITE_SYNC_NORMAL), SQLITE_OK);
		hpx_sqlite_wal_begin(writer_of(f));
		return;
	case 4:
		assert_status(hpx_sqlite_wal_end(writer_of(f), HPX_OK), HPX_OK);
		if (chance(seed, 4) != 0)
			hpx_sqlite_wal_begin(writer_of(f));
		return;
	default:
		model_write(model, file, *next, len, seed);
		*next += len;
	}
}

static void the_log_reads_as_it_was_written(void **state)
{
	static struct model model;
	struct fixture *f = *state;

	reserve(f, 1, 1, 1);
	for (unsigned seed = 1; seed <= 10; seed++) {
		unsigned luck = seed;
		int next = 0;

		memset(&model, 0, sizeof(model));
		assert_int_equal(log_of(f)->pMethods->xTruncate(log_of(f), MODEL_AT), SQLITE_OK);
		hpx_sqlite_wal_begin(writer_of(f));
		for (int i = 0; i < MODEL_STEPS; i++)
			model_step(&model, f, &luck, &next);
		model_read(&model, log_of(f), 0, (int)model.size);
	}
	assert_int_equal(log_of(f)->pMethods->xTruncate(log_of(f), MODEL_AT), SQLITE_OK);
}

static void set_bytes(sqlite3_file *file, int at, int len, char byte)
{
	char bytes[4096];

	memset(bytes, byte, sizeof(bytes));
	assert_int_equal(file->pMethods->xWrite(file, bytes, len, MODEL_AT + at), SQLITE_OK);
}

static char byte_at(sqlite3_file *file, int at)
{
	char byte = 0;

	assert_int_equal(file->pMethods->xRead(file, &byte, 1, MODEL_AT + at), SQLITE_OK);
	return byte;
}

/* Who notices first that a coalesced write fails. */
enum notices { BY_SYNC,
	       BY_READ,
	       BY_SIZE,
	       BY_CUT,
	       BY_FAR_WRITE,
	       BY_FULL_BUFFER,
	       BY_COUNT };

static int ask(sqlite3_file *file, enum notices by)
{
	static const char bytes[64 << 10];
	sqlite3_int64 size;
	char byte;

	switch (by) {
	case BY_SYNC:
		return file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
	case BY_READ:
		return file->pMethods->xRead(file, &byte, 1, MODEL_AT);
	case BY_SIZE:
		return file->pMethods->xFileSize(file, &size);
	case BY_CUT:
		return file->pMethods->xTruncate(file, MODEL_AT + 8192);
	case BY_FAR_WRITE:
		return file->pMethods->xWrite(file, bytes, 1, MODEL_AT + 6000);
	default:
		return file->pMethods->xWrite(file, bytes, sizeof(bytes), MODEL_AT + 4096);
	}
}

static void a_failed_write_is_told_at_once_and_never_made_up_for(void **state)
{
	static const struct disk_plan full = { DISK_WRITE, SQLITE_FULL, DISK_UNDONE, 1, 1 };
	struct fixture *f = *state;
	sqlite3_file *file;

	reserve(f, 1, 1, 1);
	file = log_of(f);
	for (enum notices by = 0; by < BY_COUNT; by++) {
		set_bytes(file, 0, 4096, 'a');
		set_bytes(file, 4096, 4096, 'a');
		hpx_sqlite_wal_begin(writer_of(f));
		set_bytes(file, 0, 4096, 'b');
		disk_arm(&full);
		assert_int_equal(ask(file, by), SQLITE_FULL);
		assert_true(disk_disarm());
		/* Nothing of it comes later, and the next is written as ever. */
		assert_int_equal(ask(file, BY_SYNC), SQLITE_OK);
		assert_int_equal(byte_at(file, 0), 'a');
		set_bytes(file, 4000, 96, 'c');
		assert_int_equal(byte_at(file, 3999), 'a');
		assert_int_equal(byte_at(file, 4000), 'c');
	}
	assert_int_equal(file->pMethods->xTruncate(file, MODEL_AT), SQLITE_OK);
}

static void what_a_failed_commit_left_is_dropped(void **state)
{
	static const struct disk_plan count = { DISK_WRITE, SQLITE_OK, DISK_UNDONE, DISK_NEVER, 1 };
	struct fixture *f = *state;
	sqlite3_file *file;

	reserve(f, 1, 1, 1);
	file = log_of(f);
	set_bytes(file, 0, 4096, 'a');
	hpx_sqlite_wal_begin(writer_of(f));
	disk_arm(&count);
	set_bytes(file, 0, 4096, 'b');
	assert_status(hpx_sqlite_wal_end(writer_of(f), HPX_FULL), HPX_FULL);
	assert_int_equal(ask(file, BY_SYNC), SQLITE_OK);
	assert_int_equal(disk_calls(), 0);
	assert_int_equal(byte_at(file, 0), 'a');
	/* And outside of a commit nothing is held back. */
	set_bytes(file, 0, 24, 'c');
	assert_int_equal(disk_calls(), 1);
	disk_disarm();
	assert_int_equal(file->pMethods->xTruncate(file, MODEL_AT), SQLITE_OK);
}

/* ---- the store on it ---- */

struct batch {
	struct hpx_store_op ops[BATCH];
	struct hpx_store_op *list[BATCH];
	struct hpx_ask asks[BATCH];
	struct hpx_answer answer;
};

/* Ids as hashes are: each on a page of its own, once there are many. */
static unsigned key_of(unsigned batch, unsigned i)
{
	return batch * 1000 + i;
}

static enum hpx_status run_batch(struct fixture *f, enum hpx_verb verb, unsigned number,
				 unsigned count)
{
	static char body[BODY_BYTES + 1];
	static struct batch batch;
	char problem[HPX_STORE_PROBLEM_SIZE] = "";

	memset(body, 'a' + (int)number % 26, BODY_BYTES);
	batch.answer = (struct hpx_answer){ .status = 201, .kept = true, .headers = HPX_SPAN("X: y\r\n"), .body = hpx_span_of(body) };
	for (unsigned i = 0; i < count; i++) {
		batch.asks[i] = ask_of(f->store, key_of(number, i), 1, 1);
		batch.ops[i] = op_of(verb, key_of(number, i), 1);
		if (verb == HPX_VERB_RESERVE)
			batch.ops[i].reserve.ask = &batch.asks[i];
		op_answers(&batch.ops[i], &batch.answer);
		batch.list[i] = &batch.ops[i];
	}
	return hpx_store_run(f->store, batch.list, count, problem);
}

static void assert_batch(struct fixture *f, unsigned number, unsigned count)
{
	char body[BODY_BYTES + 1];

	memset(body, 'a' + (int)number % 26, BODY_BYTES);
	body[BODY_BYTES] = '\0';
	for (unsigned i = 0; i < count; i++) {
		assert_string_equal(state_of(f, key_of(number, i)), "completed");
		assert_string_equal(body_of(f, key_of(number, i)), body);
		hpx_arena_done(&f->arena);
	}
}

static void assert_sound(struct fixture *f)
{
	sqlite3 *handle = NULL;
	sqlite3_stmt *stmt = NULL;

	assert_int_equal(sqlite3_open_v2(f->path, &handle, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(handle, "PRAGMA integrity_check", -1, &stmt, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(stmt, 0), "ok");
	sqlite3_finalize(stmt);
	sqlite3_close(handle);
}

static void a_commit_is_few_writes(void **state)
{
	static const struct disk_plan count = { DISK_WRITE, SQLITE_OK, DISK_UNDONE, DISK_NEVER, 1 };
	struct fixture *f = *state;
	int64_t before;
	unsigned frames;

	assert_status(run_batch(f, HPX_VERB_RESERVE, 1, BATCH), HPX_OK);
	before = hpx_sqlite_of(f->store)->wal_bytes;
	disk_arm(&count);
	assert_status(run_batch(f, HPX_VERB_COMPLETE, 1, BATCH), HPX_OK);
	frames = (unsigned)((hpx_sqlite_of(f->store)->wal_bytes - before) / HPX_SQLITE_FRAME_BYTES);
	assert_in_range(frames, BATCH, 10 * BATCH);
	/* 15 frames in 64 KiB; without gathering, two writes for each frame. */
	assert_in_range(disk_calls(), 1, frames / 15 + 2);
	disk_disarm();
	assert_batch(f, 1, BATCH);
}

/* How a store is set up for the tests of failures. */
static const struct {
	const char *name;
	const char *pragma; /* for the writer */
	bool powersafe;
	unsigned stride; /* every n-th write or sync fails in its turn */
} setups[] = {
	{ "as it is", "SELECT 1", true, 1 },
	{ "pages leave the cache early", "PRAGMA cache_size = 12", true, 5 },
	{ "the log in whole sectors", "SELECT 1", false, 1 },
	{ "both", "PRAGMA cache_size = 12", false, 5 },
};
#define SETUPS (sizeof(setups) / sizeof(setups[0]))

static void open_as(struct fixture *f, size_t setup)
{
	disk_powersafe(setups[setup].powersafe);
	fixture_open(f);
	assert_int_equal(sqlite3_exec(writer_of(f)->handle, setups[setup].pragma, NULL, NULL, NULL),
			 SQLITE_OK);
}

/* A full disk in the middle of a commit, then a smaller transaction in the same
 * place of the log, then the first again. */
static bool fill_at(struct fixture *f, size_t setup, const struct disk_plan *plan)
{
	enum hpx_status status;
	bool fired;

	fixture_afresh(f);
	fixture_close(f);
	open_as(f, setup);
	assert_status(run_batch(f, HPX_VERB_RESERVE, 1, BATCH), HPX_OK);
	assert_status(run_batch(f, HPX_VERB_RESERVE, 2, 3), HPX_OK);
	disk_arm(plan);
	status = run_batch(f, HPX_VERB_COMPLETE, 1, BATCH);
	fired = disk_disarm();
	assert_status(status, fired ? HPX_FULL : HPX_OK);
	assert_string_equal(state_of(f, key_of(1, 0)), fired ? "in_progress" : "completed");
	assert_status(run_batch(f, HPX_VERB_COMPLETE, 2, 3), HPX_OK);
	assert_batch(f, 2, 3);
	if (fired)
		assert_status(run_batch(f, HPX_VERB_COMPLETE, 1, BATCH), HPX_OK);
	assert_batch(f, 1, BATCH);
	assert_sound(f);
	fixture_reopen(f);
	assert_batch(f, 1, BATCH);
	assert_batch(f, 2, 3);
	return fired;
}

static void a_disk_that_is_full_in_the_middle_costs_that_commit_only(void **state)
{
	for (size_t i = 0; i < SETUPS; i++) {
		struct disk_plan plan = { DISK_WRITE, SQLITE_FULL, DISK_UNDONE, 1, 1 };
		struct disk_plan torn = { DISK_WRITE, SQLITE_FULL, DISK_HALF_DONE, 1, 1 };

		for (; fill_at(*state, i, &plan); plan.nth += setups[i].stride) {
			torn.nth = plan.nth;
			assert_true(fill_at(*state, i, &torn));
		}
		print_message("%s: up to write %u\n", setups[i].name, plan.nth);
		/* That many there must be, or nothing was shown. */
		assert_in_range(plan.nth, 3, 10000);
	}
	disk_powersafe(true);
}

/* ---- and a process that dies on it ---- */

#define DEATH_BATCHES 2

/* Runs in the child; `acked` is shared with the parent. */
static void run_and_die(struct fixture *f, size_t setup, const struct disk_plan *plan,
			unsigned *acked)
{
	open_as(f, setup);
	disk_arm(plan);
	for (unsigned number = 1; number <= DEATH_BATCHES; number++) {
		if (run_batch(f, HPX_VERB_RESERVE, number, BATCH) != HPX_OK)
			_exit(1);
		*acked = 2 * number - 1;
		if (run_batch(f, HPX_VERB_COMPLETE, number, BATCH) != HPX_OK)
			_exit(1);
		*acked = 2 * number;
	}
	_exit(0);
}

/* What was acknowledged is there; of what was not, all or nothing. */
static void judge(struct fixture *f, unsigned acked)
{
	for (unsigned number = 1; number <= DEATH_BATCHES; number++) {
		const char *first = state_of(f, key_of(number, 0));

		if (acked >= 2 * number)
			assert_string_equal(first, "completed");
		else if (acked == 2 * number - 1)
			assert_string_not_equal(first, "none");
		else if (acked < 2 * number - 2)
			assert_string_equal(first, "none");
		for (unsigned i = 1; i < BATCH; i++)
			assert_string_equal(state_of(f, key_of(number, i)), first);
		if (strcmp(first, "completed") == 0)
			assert_batch(f, number, BATCH);
	}
	hpx_arena_done(&f->arena);
}

/* Whether it died. */
static bool die_at(struct fixture *f, size_t setup, const struct disk_plan *plan, unsigned *acked)
{
	int status = 0;
	pid_t child;

	fixture_afresh(f);
	fixture_close(f);
	*acked = 0;
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		run_and_die(f, setup, plan, acked);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFSIGNALED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	fixture_open(f);
	judge(f, *acked);
	assert_sound(f);
	return WIFSIGNALED(status);
}

static void whoever_dies_at_a_write_or_sync_keeps_what_was_acknowledged(void **state)
{
	static const struct {
		const char *name;
		struct disk_plan plan;
	} deaths[] = {
		{ "before a write", { DISK_WRITE, DISK_DIES, DISK_UNDONE, 0, 1 } },
		{ "within a write", { DISK_WRITE, DISK_DIES, DISK_HALF_DONE, 0, 1 } },
		{ "before a sync", { DISK_SYNC, DISK_DIES, DISK_UNDONE, 0, 1 } },
		{ "after a sync", { DISK_SYNC, DISK_DIES, DISK_DONE, 0, 1 } },
	};
	unsigned *acked = mmap(NULL, sizeof(*acked), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(acked, MAP_FAILED);
	for (size_t i = 0; i < SETUPS * sizeof(deaths) / sizeof(deaths[0]); i++) {
		struct disk_plan plan = deaths[i / SETUPS].plan;
		unsigned stride = plan.call == DISK_SYNC ? 1 : setups[i % SETUPS].stride;

		for (plan.nth = 1; die_at(*state, i % SETUPS, &plan, acked); plan.nth += stride)
			;
		print_message("%s, %s: up to number %u\n", deaths[i / SETUPS].name,
			      setups[i % SETUPS].name, plan.nth);
		assert_in_range(plan.nth, 2 * DEATH_BATCHES, 10000);
	}
	disk_powersafe(true);
	munmap(acked, sizeof(*acked));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_SQLITE(the_log_reads_as_it_was_written),
		ON_SQLITE(a_failed_write_is_told_at_once_and_never_made_up_for),
		ON_SQLITE(what_a_failed_commit_left_is_dropped),
		ON_SQLITE(a_commit_is_few_writes),
		ON_SQLITE(a_disk_that_is_full_in_the_middle_costs_that_commit_only),
		ON_SQLITE(whoever_dies_at_a_write_or_sync_keeps_what_was_acknowledged),
	};
	disk_register();
	return cmocka_run_group_tests_name("wal_coalescing", tests, NULL, NULL);
}
