/* From a request to an attempt: who asks, for what, and whether this request is
 * the one that does it. */
#ifndef PAYMENTS_ADMISSION_H
#define PAYMENTS_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "http.h"
#include "payment.h"

/* The merchant whose credential this is, or NULL: then the answer is 401. */
const char *admission_merchant(const struct http_message *request, struct http_answer *ret_answer);

/* Reads {"customer": …, "amount": …, "currency": …}; false: the answer is 400.
 * A request that cannot be meant is refused before its key is reserved, so that
 * the client can correct it and keep the key. */
bool admission_order(const struct http_message *request, struct payment_order *ret_order,
		     struct http_answer *ret_answer);

/* What follows says true where this request is to be executed. Otherwise the
 * answer is set: the stored one, or why there is none. */

/* Straight from a client: its Idempotency-Key is reserved here. */
bool admission_by_key(struct hapax *hapax, const struct http_message *request,
		      const char *merchant, int64_t lease_ms,
		      struct payment_attempt *ret_attempt, struct http_answer *ret_answer);

/* Through the gateway, which has reserved the key: it sends the lease along. */
bool admission_by_lease(struct db *db, const struct http_message *request,
			struct payment_attempt *ret_attempt, struct http_answer *ret_answer);

#endif
