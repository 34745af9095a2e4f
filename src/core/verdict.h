/* What a probe's answer or a webhook's body says of an operation: a ruling, by
 * a mapping that the route or the webhook describes. What follows from it is
 * core/reconcile.h. */
#ifndef HPX_CORE_VERDICT_H
#define HPX_CORE_VERDICT_H

#include "base/span.h"
#include "base/status.h"

/* X(name, text) — the text is for the configuration, log lines and metrics. */
#define HPX_RULING_LIST(X) \
	X(APPLIED, "applied") \
	X(DECLINED, "declined")       /* executed, and the answer is no */ \
	X(NOT_APPLIED, "not_applied") /* never heard of it */ \
	X(NOT_YET, "not_yet")         /* it is being worked on */ \
	X(UNCLEAR, "unclear")         /* says nothing: counts as not yet */

enum hpx_ruling {
#define X(name, text) HPX_RULING_##name,
	HPX_RULING_LIST(X)
#undef X
		HPX_RULING_COUNT
};

const char *hpx_ruling_name(enum hpx_ruling ruling);

/* Which statuses and which values mean one ruling. */
struct hpx_ruling_signs {
	const unsigned *statuses;
	size_t status_count;
	const struct hpx_span *values;
	size_t value_count;
};

/* UNCLEAR is what remains and has no signs. A status or value among the signs
 * of two rulings is UNCLEAR: a guess could repeat a payment. */
struct hpx_ruling_mapping {
	struct hpx_span pointer; /* RFC 6901, to the value; ptr NULL: no value counts */
	struct hpx_ruling_signs signs[HPX_RULING_UNCLEAR];
};

/* A probe's answer: a status that is listed decides; else, with a pointer, a
 * 2xx is judged by its body. Only HPX_OK or HPX_NOMEM. */
enum hpx_status hpx_ruling_of_answer(const struct hpx_ruling_mapping *mapping, unsigned status,
				     struct hpx_span body, enum hpx_ruling *ret_ruling);

/* A webhook's body: by the value at the pointer. A string is compared byte by
 * byte, a number by its exact decimal value, true, false and null by name; an
 * array, an object, nothing there, or no JSON at all is UNCLEAR. */
enum hpx_status hpx_ruling_of_body(const struct hpx_ruling_mapping *mapping,
				   struct hpx_span body, enum hpx_ruling *ret_ruling);

#endif
