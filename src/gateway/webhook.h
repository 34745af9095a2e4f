/* POST /.hapax/webhooks/<name>: a provider says, unasked, what became of an
 * operation or of a job.
 *
 * Whatever a message says, hearing it twice is harmless: applied and declined
 * settle what is unknown, and nothing that is settled moves again; of two that
 * say not applied, the second counts only if it was signed at least
 * `settle_after` later. So no message's id has to be remembered.
 *
 * The answer decides whether the sender tries again for days. 200 for all that
 * was understood, also for what concerns nobody here or can no longer change
 * anything: sending it again would not help. 503 only where the store could
 * not be told. What comes before the operation is unknown is kept as evidence,
 * so nothing comes too early: a reference is durable before anything leaves
 * that could name it. */
#ifndef HPX_GATEWAY_WEBHOOK_H
#define HPX_GATEWAY_WEBHOOK_H

#include "gateway/request.h"

/* X(name) — the name is the metric's label. */
#define HPX_HOOK_LIST(X) \
	X(settled) /* the unknown is settled by it */ \
	X(kept)    /* as evidence, or as the first of two */ \
	X(ignored) /* it says nothing, or of nothing that is open here */ \
	X(missing) \
	X(malformed) \
	X(too_old) \
	X(wrong) /* its signature */ \
	X(rate_limited) \
	X(too_large) \
	X(unavailable) /* the store could not be told; it may come again */

enum hpx_hook_result {
#define X(name) HPX_HOOK_##name,
	HPX_HOOK_LIST(X)
#undef X
		HPX_HOOK_COUNT
};
const char *hpx_hook_result_name(enum hpx_hook_result result);

/* What is kept of each webhook, by its place in settings->webhooks. */
struct hpx_hooks;
struct hpx_hooks *hpx_hooks_new(size_t count);
void hpx_hooks_free(struct hpx_hooks *hooks);
uint64_t hpx_hooks_count(const struct hpx_hooks *hooks, size_t place,
			 enum hpx_hook_result result);

/* Whether there is one of that name; then its message is read next. */
bool hpx_hook_find(struct hpx_request *request, struct hpx_span name);
void hpx_hook_count(struct hpx_request *request, enum hpx_hook_result result);

/* What a ruling came to, from what was known before and the store's move. */
enum hpx_hook_result hpx_hook_result_of(enum hpx_reconcile_move move, enum hpx_ruling ruling,
					bool unknown, bool under_way);

#endif
