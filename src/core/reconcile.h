/* Reconciliation of an operation whose outcome is unknown. A probe's answer or a webhook's
 * body is a ruling, by a mapping that the route or the webhook describes. What follows from a
 * ruling: settle the operation, ask again later, or leave it to a person. The rules:
 *
 *  1. APPLIED and DECLINED settle at once.
 *  2. NOT_APPLIED settles only when it was said twice in a row, about moments
 *     at least `confirm_after_ms` apart, both after `settle_after_ms` since the
 *     request's last byte was sent: the slow original may still run. One that
 *     is about an earlier moment, or too near to the first, counts for nothing.
 *  3. NOT_YET, UNCLEAR and a probe that failed (UNCLEAR) end the row.
 *  4. Every question asked spends one try of the budget; with none left and
 *     nothing settled, a person decides. What comes unasked (a webhook) spends
 *     none, and leaves the next question where it was.
 *  5. The last two tries are kept for after `settle_after_ms`, or a budget
 *     could be spent on answers that cannot count.
 *
 * Times are wall times: they outlive a restart. */
#ifndef HPX_CORE_RECONCILE_H
#define HPX_CORE_RECONCILE_H

#include "base/span.h"
#include "base/status.h"
#include "core/pacing.h"
#include "core/reconcile.h"

/* ---- rulings ---- */

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

/* ---- what follows from a ruling ---- */

struct hpx_reconcile_rule {
	int64_t settle_after_ms;
	int64_t confirm_after_ms;   /* between the two NOT_APPLIED */
	uint32_t tries_max;         /* below 2, no probe can settle NOT_APPLIED */
	struct hpx_backoff backoff; /* between tries */
	int64_t retry_after_max_ms; /* the most that an answer can ask for */
};

/* What is kept with the operation. A new one has sent_ms and zeros. */
struct hpx_reconcile {
	int64_t sent_ms;               /* the last byte of the latest attempt */
	uint32_t tries;                /* questions asked */
	uint32_t not_applied_in_a_row; /* of those that count */
	int64_t first_not_applied_ms;  /* the moment the row's first one is about */
	int64_t ask_at_ms;             /* the next question */
};

/* X(name, text) — the text is for log lines and events. */
#define HPX_RECONCILE_LIST(X) \
	X(SETTLE_APPLIED, "settle_applied") \
	X(SETTLE_DECLINED, "settle_declined") \
	X(SETTLE_NOT_APPLIED, "settle_not_applied") \
	X(ASK_AGAIN, "ask_again") /* at ask_at_ms, which is new */ \
	X(STAY, "stay")           /* it came unasked and settles nothing */ \
	X(A_PERSON, "a_person")

enum hpx_reconcile_move {
#define X(name, text) HPX_RECONCILE_##name,
	HPX_RECONCILE_LIST(X)
#undef X
		HPX_RECONCILE_COUNT
};

const char *hpx_reconcile_name(enum hpx_reconcile_move move);

/* A ruling as a probe or a webhook brought it. */
struct hpx_received_ruling {
	enum hpx_ruling ruling;
	/* The moment the ruling is about. Of a probe: when it was sent, not when
	 * it was answered, since it may have been looked up at once. Of a
	 * webhook: the time it was signed at, where its scheme has one. One
	 * that lies ahead of us counts as now. */
	int64_t about_ms;
	bool asked;             /* by a probe of ours */
	int64_t retry_after_ms; /* what the answer asked for; 0: nothing */
};

/* Judges the received ruling and moves `reconcile` on. A webhook that comes twice with
 * one time counts once; senders that sign anew when they send again must be
 * known by their event's id, or by being nearer than `confirm_after_ms`.
 * `random` is for the jitter. */
enum hpx_reconcile_move hpx_reconcile_judge(struct hpx_reconcile *reconcile,
					    const struct hpx_received_ruling *received,
					    const struct hpx_reconcile_rule *rule,
					    int64_t now_ms, uint64_t random);

/* When the first question is due: after one backoff delay from now. */
int64_t hpx_reconcile_first_ms(const struct hpx_reconcile *reconcile,
			       const struct hpx_reconcile_rule *rule, int64_t now_ms,
			       uint64_t random);

#endif
