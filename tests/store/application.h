/* What the tests of the SQL functions share: asking as an application does, and
 * rows in any state. */
#ifndef HPX_TESTS_STORE_APPLICATION_H
#define HPX_TESTS_STORE_APPLICATION_H

#include "fixture.h"

#include "cluster.h"

enum { BODY = 1,
       A = 11,
       B = 12 };

const char *lease_of(unsigned key, struct hpx_token token);
/* The SQLSTATE, "00000" where all went well. */
const char *state_after(PGconn *app, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* One value as text. */
const char *ask(PGconn *app, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct situation {
	enum hpx_state state;
	enum hpx_when_lost when_lost;
	bool advanced;
	unsigned attempt;
	unsigned token; /* the one that calls */
};

/* A row in that state, written past every rule. */
void put(struct fixture *f, unsigned key, const struct situation *s);
void print_record(const struct hpx_record *r, char *out, size_t size);
struct hpx_record record_or_none(struct fixture *f, unsigned key);

#endif
