/* A store of any driver for one test, and fast paths to act on it. Keys,
 * bodies and tokens are small numbers, so that a row of test data fits on a
 * line. */
#ifndef HPX_TESTS_STORE_FIXTURE_H
#define HPX_TESTS_STORE_FIXTURE_H

#include "../unit/test.h"

#include "base/arena.h"
#include "store/store.h"

#define LEASE_MS 30000
#define RETENTION_MS 86400000

struct fixture {
	char folder[64];
	char path[96];
	char url[160];
	struct hpx_store *store;
	struct hpx_store_reader *reader;
	struct hpx_arena arena;
};

/* One cmocka entry per driver. */
#define ON_MEMORY(test) \
	{ \
#test " (memory)", test, fixture_setup, fixture_teardown, (void *)"memory" \
	}
#define ON_SQLITE(test) \
	{ \
#test " (sqlite)", test, fixture_setup, fixture_teardown, (void *)"sqlite" \
	}
#define ON_POSTGRES(test) \
	{ \
#test " (postgres)", test, fixture_setup, fixture_teardown, (void *)"postgres" \
	}
#define ON_EVERY_DRIVER(test) ON_MEMORY(test), ON_SQLITE(test), ON_POSTGRES(test)
/* Drivers of one process: they go by its clocks, and can be looked into. */
#define ON_LOCAL_DRIVERS(test) ON_MEMORY(test), ON_SQLITE(test)

/* Runs the tests of a program, those on PostgreSQL if it is installed. */
#define run_on_drivers(name, tests) fixture_run(name, tests, sizeof(tests) / sizeof((tests)[0]))
int fixture_run(const char *name, const struct CMUnitTest *tests, size_t count);

int fixture_setup(void **state);
int fixture_teardown(void **state);

/* In a folder of its own in memory (or $TMPDIR): a test must not wait for the
 * machine's disk. */
void fixture_folder(char *folder, size_t size);
void fixture_folder_remove(const char *folder);

struct hpx_store_options fixture_options(const struct fixture *f);
/* As a process that dies would leave it, and another would find it. */
void fixture_close(struct fixture *f);
void fixture_open(struct fixture *f);
void fixture_reopen(struct fixture *f);
/* An empty store in its place. */
void fixture_afresh(struct fixture *f);
bool fixture_is_sqlite(const struct fixture *f);
bool fixture_is_postgres(const struct fixture *f);
/* Rows of hapax_TABLE in the file, or of hapax.TABLE. */
long fixture_count(const struct fixture *f, const char *table);
/* The clock that leases go by, as the test's process sees it. */
int64_t fixture_lease_ms(const struct fixture *f);

struct hpx_operation_id id_of(unsigned key);
struct hpx_token token_of(unsigned token);
/* Of an operation whose first attempt had that token. */
struct hpx_mark mark_of(unsigned token);
const struct hpx_policy *policy(void);
struct hpx_ask ask_of(const struct hpx_store *store, unsigned key, unsigned body, unsigned token);

/* An op ready to be run or submitted. RESERVE needs an ask beside it. */
struct hpx_store_op op_of(enum hpx_verb verb, unsigned key, unsigned token);
/* For rows of many verbs: only the verbs that take an answer, or force, get it. */
void op_answers(struct hpx_store_op *op, const struct hpx_answer *answer);
void op_forces(struct hpx_store_op *op, bool force);

/* Runs it alone; fails the test where the run fails. */
enum hpx_status run_op(struct fixture *f, struct hpx_store_op *op);
/* Statements on a SQLite file, beside whoever has it open. */
void raw_sql(const char *path, const char *sql);
/* The decision's name, or the status' where it is not OK. */
const char *reserve(struct fixture *f, unsigned key, unsigned body, unsigned token);
enum hpx_status act(struct fixture *f, enum hpx_verb verb, unsigned key, unsigned token);
enum hpx_status complete(struct fixture *f, unsigned key, unsigned token, const char *body);
enum hpx_status resolve(struct fixture *f, unsigned key, unsigned first, bool applied);
/* A first attempt with request body 1, taken to that state. */
void bring_to(struct fixture *f, unsigned key, enum hpx_state state, unsigned token);
unsigned sweep(struct fixture *f);
unsigned reap(struct fixture *f);
/* Until nothing more is reaped; on SQLite a generation goes once it was closed. */
void reap_all(struct fixture *f);
/* Time passes, on both clocks. */
void advance(struct fixture *f, int64_t ms);

/* The state's name; "none" where there is no record, "unreadable". */
const char *state_of(struct fixture *f, unsigned key);
struct hpx_record record_of(struct fixture *f, unsigned key);
/* The events' names, joined by spaces. */
const char *events_of(struct fixture *f, unsigned key);
/* The stored answer's body; NULL where none is kept. */
const char *body_of(struct fixture *f, unsigned key);

/* How many became a person's. */
unsigned unask(struct fixture *f, unsigned key, int64_t number);
/* What a reader finds to be due, over all lanes; and those of it that the store
 * gives, with a lease of LEASE_MS. The caller frees them. */
size_t find_due(struct fixture *f, struct hpx_due *due, size_t max);
struct hpx_unsettled *take_due(struct fixture *f, const struct hpx_due *due, size_t count);
/* Both. */
struct hpx_unsettled *unsettled(struct fixture *f, unsigned limit);
unsigned count_unsettled(struct fixture *f);

#endif
