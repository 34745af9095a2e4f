/* POST /.hapax/webhooks/<name>: a provider says, unasked, what became of an operation
 * or of a job.
 *
 * Hearing a message twice is harmless. "Applied" and "declined" settle an unknown
 * outcome, and a settled one never moves again. Of two messages that say "not
 * applied", the second counts only if it was signed at least `settle_after` later. So
 * no id of a message has to be remembered.
 *
 * The answer decides whether the sender tries again for days. 200 means that the
 * message was understood, even if it concerns no operation here or changes nothing
 * any more: sending it again would not help. 503 is given only where the store could not
 * be told. A message that comes before the outcome is unknown is kept as evidence, so
 * no message comes too early: a reference is durable before anything leaves that
 * could name it. */
#ifndef HPX_GATEWAY_WEBHOOK_H
#define HPX_GATEWAY_WEBHOOK_H

#include "gateway/request.h"

/* X(name) — the name is the metric's label. */
#define HPX_WEBHOOK_LIST(X) \
	X(settled)        /* it settled an unknown outcome */ \
	X(kept)           /* kept as evidence, or as the first of two */ \
	X(ignored)        /* no ruling, or nothing open that it is about */ \
	X(ambiguous)      /* its key need not be of one operation only */ \
	X(amount_differs) /* the operation that has its key is of another amount */ \
	X(missing) \
	X(malformed) \
	X(too_old) \
	X(wrong) /* the signature */ \
	X(rate_limited) \
	X(too_large) \
	X(unavailable) /* the store could not be told; the sender tries again */

enum hpx_webhook_result {
#define X(name) HPX_WEBHOOK_##name,
	HPX_WEBHOOK_LIST(X)
#undef X
		HPX_WEBHOOK_COUNT
};
const char *hpx_webhook_result_name(enum hpx_webhook_result result);

/* Counters and rate of each webhook, by its index in settings->webhooks. */
struct hpx_webhook_states;
struct hpx_webhook_states *hpx_webhook_states_new(size_t count);
void hpx_webhook_states_free(struct hpx_webhook_states *states);
uint64_t hpx_webhook_states_count(const struct hpx_webhook_states *states, size_t place,
				  enum hpx_webhook_result result);

/* Whether there is a webhook of that name; then its message is read next. */
bool hpx_webhook_find(struct hpx_request *request, struct hpx_span name);
void hpx_webhook_count(struct hpx_request *request, enum hpx_webhook_result result);

/* The result of a ruling, from the state before and the store's move. */
enum hpx_webhook_result hpx_webhook_result_of(enum hpx_reconcile_move move, enum hpx_ruling ruling,
					      bool unknown, bool under_way);

#endif
