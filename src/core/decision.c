/* The decision, in this order: expiry, then whose reservation it is, then
 * the fingerprint (but of a record whose request nobody knows), then the state. And the
 * words for a route's choices, as the configuration and the published policy spell them. */
#include "core/decision.h"

#include "base/status.h"

/* ---- the policy's words ---- */

const char *hpx_key_rule_name(enum hpx_key_rule rule)
{
	static const char *const names[] = { "required", "optional", "ignore" };

	HPX_ASSERT(rule <= HPX_KEY_IGNORE);
	return names[rule];
}

const char *hpx_scope_rule_name(enum hpx_scope_rule rule)
{
	static const char *const names[] = { "path", "route", "tenant" };

	HPX_ASSERT(rule <= HPX_SCOPE_TENANT);
	return names[rule];
}

const char *hpx_server_error_name(enum hpx_server_error choice)
{
	static const char *const names[] = { "retry", "replay", "unknown" };

	HPX_ASSERT(choice <= HPX_SERVER_ERROR_UNKNOWN);
	return names[choice];
}

const char *hpx_on_lost_name(enum hpx_on_lost choice)
{
	static const char *const names[] = { "unknown", "resume" };

	HPX_ASSERT(choice <= HPX_ON_LOST_RESUME);
	return names[choice];
}

const char *hpx_completes_name(enum hpx_completes choice)
{
	static const char *const names[] = { "upstream", "application" };

	HPX_ASSERT(choice <= HPX_COMPLETES_APPLICATION);
	return names[choice];
}

const char *hpx_concurrent_name(enum hpx_concurrent choice)
{
	static const char *const names[] = { "conflict", "wait", "accepted" };

	HPX_ASSERT(choice <= HPX_CONCURRENT_ACCEPTED);
	return names[choice];
}

const char *hpx_keep_name(enum hpx_keep choice)
{
	static const char *const names[] = { "answer", "status" };

	HPX_ASSERT(choice <= HPX_KEEP_STATUS);
	return names[choice];
}

const char *hpx_expired_name(enum hpx_expired choice)
{
	static const char *const names[] = { "execute", "refuse" };

	HPX_ASSERT(choice <= HPX_EXPIRED_REFUSE);
	return names[choice];
}

const char *hpx_deliver_name(enum hpx_deliver choice)
{
	static const char *const names[] = { "now", "async" };

	HPX_ASSERT(choice <= HPX_DELIVER_ASYNC);
	return names[choice];
}

/* ---- the decision ---- */

const char *hpx_decision_name(enum hpx_decision_kind kind)
{
	static const char *const names[] = {
#define X(name, text) text,
		HPX_DECISION_LIST(X)
#undef X
	};
	HPX_ASSERT(kind < HPX_DECISION_COUNT);
	return names[kind];
}

/* What becomes of a lost attempt, by the route's options, as the record keeps it. The
 * attempt of a job can be neither resumed nor voided by a retry. */
static enum hpx_when_lost when_lost(const struct hpx_policy *policy)
{
	if (policy->deliver == HPX_DELIVER_ASYNC)
		return HPX_WHEN_LOST_UNKNOWN;
	if (policy->completes == HPX_COMPLETES_APPLICATION)
		return HPX_WHEN_LOST_VOID;
	return policy->on_lost == HPX_ON_LOST_RESUME ? HPX_WHEN_LOST_RESUME :
						       HPX_WHEN_LOST_UNKNOWN;
}

static void reserve(struct hpx_decision *decision, const struct hpx_ask *ask,
		    const struct hpx_policy *policy, const struct hpx_moment *now)
{
	struct hpx_move_args args = {
		.now = *now,
		.token = ask->token,
		.owner = ask->owner,
		.lease_ms = policy->lease_ms,
		.retention_ms = policy->retention_ms,
		.tombstone_ms = policy->tombstone_ms,
		.when_lost = when_lost(policy),
	};
	bool again = decision->record.state == HPX_STATE_FAILED_RETRYABLE;
	enum hpx_move move = policy->deliver == HPX_DELIVER_ASYNC ? HPX_MOVE_ACCEPT :
								    HPX_MOVE_RESERVE;

	enum hpx_status moved = hpx_record_move(&decision->record, move, &args);
	HPX_ASSERT(moved == HPX_OK);
	decision->kind = again ? HPX_DECISION_EXECUTE_AGAIN : HPX_DECISION_EXECUTE;
	decision->write = true;
}

static void reserve_anew(struct hpx_decision *decision, const struct hpx_ask *ask,
			 const struct hpx_policy *policy, const struct hpx_moment *now)
{
	decision->record = (struct hpx_record){ .id = ask->id, .recipe = ask->recipe };
	memcpy(decision->record.tenant, ask->tenant, sizeof(ask->tenant));
	memcpy(decision->record.fingerprint, ask->fingerprint, sizeof(ask->fingerprint));
	reserve(decision, ask, policy, now);
}

/* Of an operation that failed nothing happened: its key is as good as new. */
static void decide_expired(struct hpx_decision *decision, const struct hpx_record *record,
			   const struct hpx_ask *ask, const struct hpx_policy *policy,
			   const struct hpx_moment *now)
{
	bool happened = record->state == HPX_STATE_COMPLETED;

	if (happened && policy->expired == HPX_EXPIRED_REFUSE) {
		decision->kind = HPX_DECISION_EXPIRED;
		decision->record = *record;
		return;
	}
	reserve_anew(decision, ask, policy, now);
	decision->after_expiry = happened;
}

/* Whether the upstream, which is trusted to recognise a lost attempt by its key, has
 * forgotten the key by now. Another attempt could then happen twice. */
static bool forgotten_upstream(const struct hpx_record *record, const struct hpx_policy *policy,
			       const struct hpx_moment *now)
{
	return record->when_lost == HPX_WHEN_LOST_RESUME && !policy->fenced &&
	       policy->honours_keys_ms > 0 &&
	       now->wall_ms - record->created_ms >= policy->honours_keys_ms;
}

static void reserve_again(struct hpx_decision *decision, const struct hpx_ask *ask,
			  const struct hpx_policy *policy, const struct hpx_moment *now)
{
	if (forgotten_upstream(&decision->record, policy, now))
		decision->kind = HPX_DECISION_UNKNOWN;
	else
		reserve(decision, ask, policy, now);
}

/* A lost lease: the record says what becomes of the operation. Where it says another
 * attempt, this request is that attempt. */
static void lose(struct hpx_decision *decision, const struct hpx_ask *ask,
		 const struct hpx_policy *policy, const struct hpx_moment *now)
{
	struct hpx_move_args args = { .now = *now };

	enum hpx_status moved = hpx_record_move(&decision->record, HPX_MOVE_SWEEP, &args);
	HPX_ASSERT(moved == HPX_OK);
	decision->kind = HPX_DECISION_UNKNOWN;
	decision->write = true;
	decision->lost = true;
	if (decision->record.state == HPX_STATE_FAILED_RETRYABLE)
		reserve_again(decision, ask, policy, now);
}

static void by_state(struct hpx_decision *decision, const struct hpx_ask *ask,
		     const struct hpx_policy *policy, const struct hpx_moment *now)
{
	switch (decision->record.state) {
	case HPX_STATE_IN_PROGRESS:
		if (hpx_record_lease_lost(&decision->record, now))
			lose(decision, ask, policy, now);
		else
			decision->kind = HPX_DECISION_IN_PROGRESS;
		return;
	case HPX_STATE_FAILED_RETRYABLE:
		reserve_again(decision, ask, policy, now);
		return;
	case HPX_STATE_COMPLETED:
		decision->kind = HPX_DECISION_REPLAY;
		return;
	case HPX_STATE_PENDING:
		decision->kind = HPX_DECISION_PENDING;
		return;
	default:
		decision->kind = HPX_DECISION_UNKNOWN;
		return;
	}
}

static bool is_own_reservation(const struct hpx_record *record, const struct hpx_ask *ask)
{
	return (record->state == HPX_STATE_IN_PROGRESS || record->state == HPX_STATE_PENDING) &&
	       hpx_token_eq(&record->token, &ask->token);
}

void hpx_decide(const struct hpx_record *record, const struct hpx_ask *ask,
		const struct hpx_policy *policy, const struct hpx_moment *now,
		struct hpx_decision *ret_decision)
{
	struct hpx_decision decision = { .kind = HPX_DECISION_UNKNOWN };

	if (record == NULL || record->state == HPX_STATE_NONE) {
		reserve_anew(&decision, ask, policy, now);
		*ret_decision = decision;
		return;
	}
	if (hpx_record_expired(record, now)) {
		decide_expired(&decision, record, ask, policy, now);
		*ret_decision = decision;
		return;
	}
	decision.record = *record;
	if (!hpx_record_valid(record))
		decision.kind = HPX_DECISION_UNKNOWN;
	else if (is_own_reservation(record, ask))
		decision.kind = record->attempt > 1 ? HPX_DECISION_EXECUTE_AGAIN :
						      HPX_DECISION_EXECUTE;
	else if (hpx_recipe_is_unknown(&record->recipe))
		by_state(&decision, ask, policy, now);
	else if (memcmp(record->recipe.bytes, ask->recipe.bytes, sizeof(ask->recipe.bytes)) != 0)
		decision.kind = HPX_DECISION_REFINGERPRINT;
	else if (memcmp(record->fingerprint, ask->fingerprint, sizeof(ask->fingerprint)) != 0)
		decision.kind = HPX_DECISION_MISMATCH;
	else
		by_state(&decision, ask, policy, now);
	HPX_ASSERT(decision.write || decision.record.state == record->state);
	*ret_decision = decision;
}
