/* What the ledger says, written: with --apply it settles unknown outcomes, with --restore
 * it makes known what a restored backup lacks. */
#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "cli/operations.h"
#include "cli/reconcile.h"
#include "store/outbox_change.h"

/* The body of an answer that is made of a row, which is no larger. */
#define ANSWER_BODY_MAX ((size_t)1 << 20)
/* The time between two exports that say "not applied", where no rule says how long. */
#define CONFIRM_AFTER_MS 60000

/* ---- settling ---- */

/* The rule of the target or route, where a configuration is given. */
static const struct hpx_reconcile_rule *rule_of(const struct hpx_reconciliation *run,
						const struct hpx_ledger_match *match)
{
	const struct hpx_settings *settings = run->command.settings;
	const struct hpx_reconcile_settings *found = NULL;

	if (settings == NULL)
		return NULL;
	if (match->job != NULL) {
		const struct hpx_job_target *target =
			hpx_settings_find_target(settings, match->job->job.target);
		found = target != NULL ? &target->reconcile : NULL;
	}
	for (size_t i = 0; match->job == NULL && i < settings->route_count; i++)
		if (hpx_span_eq(settings->routes[i].pattern, match->entry.description.route))
			found = settings->routes[i].target != NULL ?
					&settings->routes[i].target->reconcile :
					&settings->routes[i].reconcile;
	return found != NULL && found->given ? &found->rule : NULL;
}

/* Whether "not applied" can count, and the rule by which it does. */
static bool can_unapply(const struct hpx_reconciliation *run, const struct hpx_ledger_match *match,
			struct hpx_reconcile_rule *ret_rule)
{
	const struct hpx_reconcile_rule *rule = rule_of(run, match);

	*ret_rule = (struct hpx_reconcile_rule){ .confirm_after_ms = CONFIRM_AFTER_MS };
	if (rule != NULL)
		*ret_rule = *rule;
	if (run->settle_after_ms > 0)
		ret_rule->settle_after_ms = run->settle_after_ms;
	return ret_rule->settle_after_ms > 0;
}

/* For the history: the export's name, and the person's reason. */
static struct hpx_span reason_of(struct hpx_reconciliation *run)
{
	const char *file = strrchr(run->ledger, '/') ? strrchr(run->ledger, '/') + 1 : run->ledger;

	return hpx_arena_printf(&run->scratch, "ledger %s: %s", file, run->command.reason);
}

/* Hands the ledger's ruling to the store. HPX_CLOSED: the store failed, and a message
 * was printed. */
static enum hpx_status write_ruling(struct hpx_reconciliation *run, const struct hpx_ledger_match *match,
				    enum hpx_ruling ruling, const struct hpx_reconcile_rule *by,
				    enum hpx_reconcile_move *ret_move)
{
	int64_t now_ms = hpx_clock_wall_ms();
	struct hpx_ruling_update update = {
		.number = match->job != NULL ? match->job->delivery.number : 0,
		.received = { .ruling = ruling,
			      .about_ms = run->to_ms < now_ms ? run->to_ms : now_ms },
		.rule = *by,
	};
	struct hpx_store_op op = {
		.verb = HPX_VERB_RULE,
		.id = *hpx_ledger_match_id(match),
		.mark = *hpx_ledger_match_mark(match),
		.rule.update = &update,
		.reason = reason_of(run),
	};

	struct hpx_buffer headers, body;
	struct hpx_answer answer;

	HPX_ASSERT(match->standing == HPX_STANDS_UNKNOWN || match->job != NULL);
	hpx_buffer_init(&headers, HPX_RECONSTRUCT_HEADERS_MAX);
	hpx_buffer_init(&body, ANSWER_BODY_MAX);
	update.answer = ruling == HPX_RULING_APPLIED ?
				hpx_ledger_match_answer(run, &headers, &body, &answer) :
				NULL;
	hpx_random(&update.random, sizeof(update.random));
	int code = hpx_operator_write(&run->command, &op);
	hpx_buffer_done(&headers);
	hpx_buffer_done(&body);
	if (code != HPX_EXIT_OK)
		return HPX_CLOSED;
	*ret_move = update.move;
	return op.status;
}

static bool is_settled(enum hpx_reconcile_move move)
{
	return move == HPX_RECONCILE_SETTLE_APPLIED || move == HPX_RECONCILE_SETTLE_DECLINED ||
	       move == HPX_RECONCILE_SETTLE_NOT_APPLIED;
}

/* With --apply. */
static int apply(struct hpx_reconciliation *run, const struct hpx_ledger_match *match,
		 enum hpx_ruling ruling, const struct hpx_reconcile_rule *by,
		 struct hpx_difference *place)
{
	enum hpx_reconcile_move move = HPX_RECONCILE_STAY;

	HPX_ASSERT(run->apply != NULL && run->command.reason != NULL);
	enum hpx_status status = write_ruling(run, match, ruling, by, &move);

	if (status == HPX_CLOSED)
		return HPX_EXIT_FAILED;
	if (status != HPX_OK)
		return hpx_reconciliation_note(run, HPX_GROUP_UNKNOWN, place, match,
					       "they say %s; not settled: %s", hpx_ruling_name(ruling),
					       hpx_status_text(status));
	place->settled = is_settled(move);
	if (place->settled)
		return hpx_reconciliation_note(run, HPX_GROUP_UNKNOWN, place, match,
					       "settled: %s", hpx_ruling_name(ruling));
	return hpx_reconciliation_note(run, HPX_GROUP_UNKNOWN, place, match,
				       "they say %s; it settles when a later export says so again, both "
				       "after settle_after",
				       hpx_ruling_name(ruling));
}

int hpx_reconciliation_settle(struct hpx_reconciliation *run, const struct hpx_ledger_match *match,
			      enum hpx_ruling ruling, uint64_t line, struct hpx_span name)
{
	struct hpx_difference place = { .line = line, .name = name };
	struct hpx_reconcile_rule by;
	bool unapply = ruling == HPX_RULING_NOT_APPLIED;

	if (!can_unapply(run, match, &by) && unapply)
		return hpx_reconciliation_note(
			run, HPX_GROUP_UNKNOWN, &place, match,
			"they say not_applied; give --settle-after, or --config with "
			"reconcile.settle_after, to let it count");
	if (unapply && run->to == NULL)
		return hpx_reconciliation_note(run, HPX_GROUP_UNKNOWN, &place, match,
					       "they say not_applied; give --to, the time up "
					       "to which that holds, to let it count");
	if (run->apply == NULL)
		return hpx_reconciliation_note(run, HPX_GROUP_UNKNOWN, &place, match,
					       "they say %s; --apply settles it%s",
					       hpx_ruling_name(ruling),
					       unapply ? " when two exports say so" : "");
	return apply(run, match, ruling, &by, &place);
}

/* ---- restoring ----
 * A store that was restored from a backup does not know what was executed since. The
 * ledger does: with --restore, each of its rows becomes a record, so that a retry learns
 * that it happened instead of executing it again. */

/* "declined" was executed too, and the client was told so. */
static uint32_t status_of(enum hpx_ruling ruling)
{
	return ruling == HPX_RULING_DECLINED ? hpx_answer_declined.status : 0;
}

static const char *why_not_restored(const struct hpx_store_op *op, const struct hpx_ledger_match *match)
{
	if (op->status != HPX_REFUSED)
		return hpx_status_text(op->status);
	if (op->verb == HPX_VERB_RESTORE)
		return "the key stands for another operation here";
	if (match->entry.record.when_lost != HPX_WHEN_LOST_UNKNOWN)
		return "what they have may be a part of it, and only its application can tell";
	return "it has changed meanwhile";
}

static int write_restored(struct hpx_reconciliation *run, struct hpx_store_op *op,
			  struct hpx_difference *place, const struct hpx_ledger_match *match)
{
	HPX_ASSERT(run->restore != NULL && run->command.reason != NULL);
	op->reason = reason_of(run);
	int code = hpx_operator_write(&run->command, op);
	if (code != HPX_EXIT_OK)
		return code;
	place->settled = op->status == HPX_OK;
	if (place->settled)
		return hpx_reconciliation_note(run, HPX_GROUP_THEY_ONLY, place, match,
					       "restored: a retry learns that it happened");
	return hpx_reconciliation_note(run, HPX_GROUP_THEY_ONLY, place, match, "not restored: %s",
				       why_not_restored(op, match));
}

int hpx_reconciliation_restore(struct hpx_reconciliation *run, struct hpx_difference place,
			       enum hpx_ruling ruling)
{
	struct hpx_store_op op = { .verb = HPX_VERB_RESTORE,
				   .restore = { .status_seen = status_of(ruling),
						.retention_ms = run->retention_ms,
						.tombstone_ms = run->tombstone_ms } };
	bool parsed = hpx_reference_parse(place.name, &op.id, &op.mark);

	HPX_ASSERT(parsed); /* it was looked for by its reference */
	return write_restored(run, &op, &place, NULL);
}

bool hpx_reconciliation_can_complete(const struct hpx_reconciliation *run, const struct hpx_ledger_match *match)
{
	return run->restore != NULL && match->has_entry && match->entry.readable &&
	       match->entry.record.state == HPX_STATE_FAILED_RETRYABLE;
}

int hpx_reconciliation_complete(struct hpx_reconciliation *run, const struct hpx_ledger_match *match,
				struct hpx_difference place, enum hpx_ruling ruling)
{
	struct hpx_store_op op = { .verb = HPX_VERB_RESOLVE,
				   .id = *hpx_ledger_match_id(match),
				   .mark = *hpx_ledger_match_mark(match),
				   .resolve = { .applied = true,
						.force = true,
						.answer = ruling == HPX_RULING_DECLINED ? &hpx_answer_declined : NULL } };

	return write_restored(run, &op, &place, match);
}
