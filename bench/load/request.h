/* The bytes of a request: made once for each connection; then only the number in
 * its key changes. */
#ifndef BENCH_REQUEST_H
#define BENCH_REQUEST_H

#include "plan.h"

#define KEY_DIGITS 12

struct request {
	char *bytes;
	size_t len;
	char *digits; /* the number in the key; NULL: it has no key */
};

/* False when out of memory. */
bool request_make(struct request *request, const struct plan *plan, unsigned caller);
void request_free(struct request *request);
void request_number(struct request *request, uint64_t number);

#endif
