/* A store as an application meets it, four ways: with a handle of its own or on
 * its own connection, on SQLite or PostgreSQL. There is always a connection of
 * the application's, with a table `payment` beside hapax's. */
#ifndef HPX_TESTS_STORE_LIBRARY_FIXTURE_H
#define HPX_TESTS_STORE_LIBRARY_FIXTURE_H

#include <libpq-fe.h>
#include <sqlite3.h>

#include "fixture.h"
#include "hapax/hapax.h"

struct library_fixture {
	bool postgres;
	bool borrowed;
	char folder[64];
	char url[160];
	sqlite3 *db; /* the application's connection; or */
	PGconn *conn;
	struct hapax *hapax; /* the one under test */
	struct hapax *own;   /* of hapax_open; the same where it is not borrowed */
};

#define OWN_SQLITE(test) \
	{ \
#test " (own) (sqlite)", test, library_setup, library_teardown, (void *)"os" \
	}
#define OWN_POSTGRES(test) \
	{ \
#test " (own) (postgres)", test, library_setup, library_teardown, (void *)"op" \
	}
#define ON_SQLITE_DB(test) \
	{ \
#test " (borrowed) (sqlite)", test, library_setup, library_teardown, (void *)"bs" \
	}
#define ON_POSTGRES_CONN(test) \
	{ \
#test " (borrowed) (postgres)", test, library_setup, library_teardown, (void *)"bp" \
	}
#define OWN(test) OWN_SQLITE(test), OWN_POSTGRES(test)
#define BORROWED(test) ON_SQLITE_DB(test), ON_POSTGRES_CONN(test)
#define EVERY_WAY(test) OWN(test), BORROWED(test)

int library_setup(void **state);
int library_teardown(void **state);
/* The handle of its own is opened anew, with this timeout. */
void library_reopen(struct library_fixture *p, int64_t timeout_ms);

/* On the application's connection; fails the test where it fails. */
void library_sql(struct library_fixture *p, const char *sql);
/* The first column of the first row, as a number. */
long library_count(struct library_fixture *p, const char *sql);
/* How many rows of hapax's table ("job") there are. */
long library_rows(struct library_fixture *p, const char *table, const char *where);
/* Time passes: every lease has run out, unless it was renewed. */
void library_expire_leases(struct library_fixture *p);
/* An operator removes the record. */
void library_forget(struct library_fixture *p, const char *reference);

/* Fails with both names, and the problem, when the result is another one; a
 * problem is there exactly where it is not HAPAX_OK. */
#define assert_result(got, want, problem) \
	library_assert_result((got), (want), (problem), __FILE__, __LINE__)
void library_assert_result(enum hapax_result got, enum hapax_result want, const char *problem,
			   const char *file, int line);

/* What a begin of this key asks for; the fingerprint is of `body`. */
struct hapax_begin begin_of(const char *key, unsigned body);
/* The verdict's name, or the result's; the operation's texts are kept, its
 * memory is not. */
const char *begin_with(struct hapax *hapax, const struct hapax_begin *begin,
		       struct hapax_operation *ret_operation);
const char *begin_key(struct hapax *hapax, const char *key, struct hapax_operation *ret_operation);
/* Asks until it may be executed, for as long as a test may take. */
void begin_until_execute(struct hapax *hapax, const struct hapax_begin *begin);
enum hapax_result complete_with(struct hapax *hapax, const char *lease, const char *body,
				char *problem);
struct hapax_job job_of(const char *name, const char *body);

#endif
