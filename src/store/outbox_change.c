/* Jobs and rulings: what follows for the job, and from the job for the
 * operation whose answer it brings. */
#include "store/outbox_change.h"

#include "base/status.h"

#define PROBLEM_HEADERS HPX_SPAN_INIT("Content-Type: application/problem+json\r\n")

const struct hpx_answer hpx_answer_abandoned = {
	.status = 408,
	.kept = true,
	.headers = PROBLEM_HEADERS,
	.body = HPX_SPAN_INIT("{\"type\":\"/.hapax/problems/not_delivered\",\"title\":\"The request was "
			      "not delivered in time\",\"status\":408,\"code\":\"not_delivered\","
			      "\"executed\":\"no\",\"retry\":\"never\"}\n"),
};

const struct hpx_answer hpx_answer_declined = {
	.status = 402,
	.kept = true,
	.headers = PROBLEM_HEADERS,
	.body = HPX_SPAN_INIT("{\"type\":\"/.hapax/problems/declined\",\"title\":\"The request was "
			      "declined\",\"status\":402,\"code\":\"declined\","
			      "\"executed\":\"yes\",\"retry\":\"never\"}\n"),
};

/* ---- the operation follows its job ---- */

static bool is_followed(const struct hpx_outbox_found *found)
{
	const struct hpx_record *record = &found->operation.record;

	return found->delivery.answers && found->operation.exists && found->operation.readable &&
	       hpx_mark_eq(&record->mark, &found->delivery.mark) &&
	       (record->state == HPX_STATE_PENDING || record->state == HPX_STATE_UNKNOWN);
}

static enum hpx_move move_of_operation(const struct hpx_outbox_found *found,
				       const struct hpx_delivery *after, enum hpx_job_move move)
{
	bool unknown = found->operation.record.state == HPX_STATE_UNKNOWN;

	switch (after->state) {
	case HPX_JOB_DONE:
		return HPX_MOVE_COMPLETE;
	case HPX_JOB_UNKNOWN:
		return unknown ? HPX_MOVE_COUNT : HPX_MOVE_LOSE;
	case HPX_JOB_QUEUED:
		return unknown ? HPX_MOVE_REQUEUE : HPX_MOVE_COUNT;
	case HPX_JOB_DEAD:
		return move == HPX_JOB_MOVE_DECLINE ? HPX_MOVE_COMPLETE : HPX_MOVE_COUNT;
	case HPX_JOB_DISCARDED:
		return unknown ? HPX_MOVE_COUNT : HPX_MOVE_ABANDON;
	default:
		return HPX_MOVE_COUNT;
	}
}

/* That it happened, where nobody knows what was said: the record keeps the status that
 * was seen, if any. */
static const struct hpx_answer happened = { .status = 0, .kept = false };

static const struct hpx_answer *answer_of(enum hpx_move move, enum hpx_job_move job_move,
					  const struct hpx_answer *given)
{
	if (move == HPX_MOVE_ABANDON)
		return &hpx_answer_abandoned;
	if (given != NULL)
		return given;
	return job_move == HPX_JOB_MOVE_DECLINE ? &hpx_answer_declined : &happened;
}

static void follow(const struct hpx_outbox_found *found, const struct hpx_delivery *after,
		   enum hpx_job_move job_move, const struct hpx_answer *given,
		   const struct hpx_moment *now, struct hpx_outbox_change *change)
{
	enum hpx_move move;

	if (!is_followed(found))
		return;
	move = move_of_operation(found, after, job_move);
	if (move == HPX_MOVE_COUNT)
		return;
	const struct hpx_answer *answer = answer_of(move, job_move, given);
	bool ends = move == HPX_MOVE_COMPLETE ||
		    (move == HPX_MOVE_ABANDON && !found->delivery.unsure);
	struct hpx_move_args args = {
		.now = *now,
		.token = found->operation.record.token,
		.status = ends ? answer->status : after->status,
		.kept = answer->kept,
		.force = true,
		.sent = found->delivery.unsure,
		.error = ends || after->status != 0 ? HPX_LAST_ERROR_NONE : HPX_LAST_ERROR_DELIVERY_LOST,
	};
	change->operation = (struct hpx_change){ .write = HPX_WRITE_UPDATE,
						 .record = found->operation.record,
						 .at_ms = now->wall_ms };
	if (hpx_record_move(&change->operation.record, move, &args) != HPX_OK)
		return;
	change->write_operation = true;
	change->operation.event = hpx_move_name(move);
	if (change->operation.record.state == HPX_STATE_COMPLETED &&
	    (answer->kept || answer->headers.len > 0))
		change->operation.answer = answer;
}

/* ---- one job moves ---- */

/* The move's name, but where the job went another way than the move says. */
static const char *event_of(enum hpx_job_move move, enum hpx_job_state after)
{
	if (move == HPX_JOB_MOVE_CLAIM && after == HPX_JOB_DEAD)
		return "job_budget_spent";
	if ((move == HPX_JOB_MOVE_CLAIM && after == HPX_JOB_UNKNOWN) ||
	    (move == HPX_JOB_MOVE_DELIVER && after != HPX_JOB_DONE) ||
	    (move == HPX_JOB_MOVE_REJECT && after != HPX_JOB_DEAD))
		return hpx_job_move_name(HPX_JOB_MOVE_LOSE);
	return hpx_job_move_name(move);
}

/* What was asked of it counts no more once it is unknown no more; what was said
 * of it before (evidence) once it has ended well, or by a person. */
static bool ends_questions(const struct hpx_outbox_found *found, enum hpx_job_state after)
{
	return found->scheduled && (found->delivery.state == HPX_JOB_UNKNOWN ||
				    after == HPX_JOB_DONE || after == HPX_JOB_DISCARDED);
}

/* It was said to have happened, and would now be sent again, or be a dead letter
 * that a person sends again. */
static bool is_known_to_have_happened(const struct hpx_outbox_found *found, enum hpx_job_move move,
				      enum hpx_job_state after)
{
	return found->scheduled && found->evidence == HPX_RULING_APPLIED &&
	       (move == HPX_JOB_MOVE_POSTPONE || move == HPX_JOB_MOVE_REJECT) &&
	       (after == HPX_JOB_QUEUED || after == HPX_JOB_DEAD);
}

static enum hpx_status move_job(const struct hpx_outbox_found *found, enum hpx_job_move move,
				const struct hpx_job_args *args, const struct hpx_answer *answer,
				struct hpx_outbox_change *change)
{
	enum hpx_status status;

	*change = (struct hpx_outbox_change){ .delivery = found->delivery,
					      .evidence = HPX_RULING_UNCLEAR,
					      .of_job = true };
	status = hpx_job_move(&change->delivery, move, args);
	if (status != HPX_OK)
		return status;
	if (is_known_to_have_happened(found, move, change->delivery.state) &&
	    hpx_job_move(&change->delivery, HPX_JOB_MOVE_APPLY, args) == HPX_OK)
		move = HPX_JOB_MOVE_APPLY;
	if (change->delivery.state == found->delivery.state)
		return HPX_OK;
	change->write_job = true;
	change->event = event_of(move, change->delivery.state);
	change->event_status = args->status;
	change->remove_reconcile = ends_questions(found, change->delivery.state);
	follow(found, &change->delivery, move, answer, &args->now, change);
	return HPX_OK;
}

/* The moves of drivers have verbs of their own. */
static bool is_misuse(const struct hpx_job_update *update)
{
	return update->move == HPX_JOB_MOVE_CLAIM || update->move == HPX_JOB_MOVE_SWEEP ||
	       update->move == HPX_JOB_MOVE_REQUEUE ||
	       (update->answer != NULL && update->answer->status == 0);
}

static bool is_given_up(const struct hpx_job_update *update)
{
	return update->move == HPX_JOB_MOVE_DISCARD && update->force;
}

void hpx_outbox_update(const struct hpx_outbox_found *found, struct hpx_store_op *op,
		       const struct hpx_moment *now, struct hpx_outbox_change *ret_change)
{
	const struct hpx_job_update *update = op->job.update;
	struct hpx_job_args args = {
		.now = *now,
		.token = op->token,
		.attempts_max = update->attempts_max,
		.delay_ms = update->delay_ms,
		.status = update->status,
		.provider_id = update->provider_id,
		.force = update->force,
		.unsent = update->unsent,
	};

	HPX_ASSERT(op->verb == HPX_VERB_JOB);
	*ret_change = (struct hpx_outbox_change){ .write_job = false };
	op->judged_ms = now->wall_ms;
	if (is_misuse(update))
		op->status = HPX_MISUSE;
	else if (!found->job_exists)
		op->status = HPX_NOT_FOUND;
	else if (!found->job_readable && !is_given_up(update))
		op->status = HPX_CORRUPT;
	else if (!found->job_readable)
		*ret_change = (struct hpx_outbox_change){ .delivery = found->delivery,
							  .evidence = HPX_RULING_UNCLEAR,
							  .remove_job = true };
	else
		op->status = move_job(found, update->move, &args, update->answer, ret_change);
}

bool hpx_outbox_sweep(const struct hpx_outbox_found *found, bool owner_dead,
		      const struct hpx_moment *now, struct hpx_outbox_change *ret_change)
{
	struct hpx_job_args args = { .now = *now, .owner_dead = owner_dead };

	return found->job_exists && found->job_readable &&
	       move_job(found, HPX_JOB_MOVE_SWEEP, &args, NULL, ret_change) == HPX_OK;
}

bool hpx_outbox_claim(const struct hpx_outbox_found *found, const struct hpx_claim *claim,
		      const struct hpx_token *token, uint64_t owner, const struct hpx_moment *now,
		      struct hpx_outbox_change *ret_change)
{
	struct hpx_job_args args = {
		.now = *now,
		.token = *token,
		.owner = owner,
		.lease_ms = claim->lease_ms,
		.honours_keys_ms = claim->honours_keys_ms,
		.attempts_max = claim->attempts_max,
	};

	if (!found->job_exists || !found->job_readable ||
	    move_job(found, HPX_JOB_MOVE_CLAIM, &args, NULL, ret_change) != HPX_OK)
		return false;
	/* The plain way is told by the row itself. */
	if (ret_change->delivery.state == HPX_JOB_SENDING)
		ret_change->event = NULL;
	return true;
}

/* ---- rulings ---- */

bool hpx_outbox_speaks_for(const struct hpx_delivery *delivery, const struct hpx_found *operation)
{
	switch (delivery->state) {
	case HPX_JOB_QUEUED:
	case HPX_JOB_SENDING:
	case HPX_JOB_UNKNOWN:
		return delivery->answers;
	case HPX_JOB_DEAD:
		return delivery->answers && operation->record.state == HPX_STATE_PENDING;
	default:
		return false;
	}
}

static const char *const evidence_event = "evidence";

static const char *const person_event = "left_to_a_person";

const char *hpx_outbox_ruled_event(enum hpx_reconcile_move move)
{
	return move == HPX_RECONCILE_SETTLE_APPLIED  ? "ruled_applied" :
	       move == HPX_RECONCILE_SETTLE_DECLINED ? "ruled_declined" :
						       "ruled_not_applied";
}

/* An operation whose answer a job brings is settled through that job. */
static bool is_about_job(const struct hpx_outbox_found *found, int64_t number)
{
	return number != 0 || (found->job_exists &&
			       hpx_outbox_speaks_for(&found->delivery, &found->operation));
}

/* Whether there is what the op is about, and it is the one that is meant. */
static enum hpx_status check_reference(const struct hpx_outbox_found *found, bool about_job,
				       const struct hpx_mark *reference)
{
	bool exists = about_job ? found->job_exists : found->operation.exists;
	bool readable = about_job ? found->job_readable : found->operation.readable;
	const struct hpx_mark *mark = about_job ? &found->delivery.mark :
						  &found->operation.record.mark;

	if (!exists)
		return HPX_NOT_FOUND;
	if (!readable)
		return HPX_CORRUPT;
	return hpx_mark_eq(mark, reference) ? HPX_OK : HPX_STALE;
}

static void keep_evidence(const struct hpx_outbox_found *found, const struct hpx_received_ruling *received,
			  struct hpx_outbox_change *change)
{
	bool settles = received->ruling == HPX_RULING_APPLIED ||
		       received->ruling == HPX_RULING_DECLINED;

	if (!settles || (found->scheduled && found->evidence == received->ruling))
		return;
	change->write_reconcile = true;
	change->reconcile = found->reconcile;
	change->evidence = received->ruling;
	change->person = found->person;
	change->event = evidence_event;
}

static enum hpx_settlement settlement_of_evidence(const struct hpx_received_ruling *received)
{
	return received->ruling == HPX_RULING_APPLIED || received->ruling == HPX_RULING_DECLINED ?
		       HPX_SETTLEMENT_KEPT :
		       HPX_SETTLEMENT_IGNORED;
}

const char *hpx_settlement_name(enum hpx_settlement settlement)
{
	static const char *const names[] = {
#define X(name, text) text,
		HPX_SETTLEMENT_LIST(X)
#undef X
	};

	return (unsigned)settlement < HPX_SETTLEMENT_COUNT ? names[settlement] : "?";
}

static bool is_unknown(const struct hpx_outbox_found *found, bool about_job)
{
	return about_job ? found->delivery.state == HPX_JOB_UNKNOWN :
			   found->operation.record.state == HPX_STATE_UNKNOWN;
}

/* Not what failed: what is said of it is said of an attempt that is over, and
 * would be believed of the next. */
static bool may_become_unknown(const struct hpx_outbox_found *found, bool about_job)
{
	enum hpx_state state = found->operation.record.state;

	if (about_job)
		return found->delivery.state == HPX_JOB_QUEUED ||
		       found->delivery.state == HPX_JOB_SENDING;
	return state == HPX_STATE_IN_PROGRESS || state == HPX_STATE_PENDING;
}

static enum hpx_job_move job_move_of(enum hpx_reconcile_move move)
{
	return move == HPX_RECONCILE_SETTLE_APPLIED  ? HPX_JOB_MOVE_APPLY :
	       move == HPX_RECONCILE_SETTLE_DECLINED ? HPX_JOB_MOVE_DECLINE :
						       HPX_JOB_MOVE_UNAPPLY;
}

static enum hpx_status settle_operation(const struct hpx_outbox_found *found,
					struct hpx_store_op *op, const struct hpx_moment *now,
					struct hpx_outbox_change *change)
{
	enum hpx_reconcile_move settled = op->rule.update->move;
	bool unapply = settled == HPX_RECONCILE_SETTLE_NOT_APPLIED;
	enum hpx_move move = unapply ? HPX_MOVE_UNAPPLY : HPX_MOVE_APPLY;
	const struct hpx_answer *answer = op->rule.update->answer != NULL ? op->rule.update->answer :
					  settled == HPX_RECONCILE_SETTLE_DECLINED ?
									    &hpx_answer_declined :
									    &happened;
	struct hpx_move_args args = { .now = *now, .status = unapply ? 0 : answer->status, .kept = answer->kept, .force = true };

	change->operation = (struct hpx_change){ .write = HPX_WRITE_UPDATE,
						 .record = found->operation.record,
						 .at_ms = now->wall_ms,
						 .event = hpx_outbox_ruled_event(settled) };
	if (hpx_record_move(&change->operation.record, move, &args) != HPX_OK)
		return HPX_REFUSED;
	change->write_operation = true;
	change->remove_reconcile = found->scheduled;
	if (!unapply && (answer->kept || answer->headers.len > 0))
		change->operation.answer = answer;
	return HPX_OK;
}

static bool is_settled(enum hpx_reconcile_move move)
{
	return move == HPX_RECONCILE_SETTLE_APPLIED || move == HPX_RECONCILE_SETTLE_DECLINED ||
	       move == HPX_RECONCILE_SETTLE_NOT_APPLIED;
}

static bool lacks_rule(const struct hpx_ruling_update *ruling)
{
	return ruling->stored_rule && ruling->received.ruling == HPX_RULING_NOT_APPLIED &&
	       ruling->rule.settle_after_ms <= 0;
}

static enum hpx_settlement settlement_of(const struct hpx_ruling_update *ruling,
					 const struct hpx_reconcile *before,
					 const struct hpx_reconcile *after)
{
	if (is_settled(ruling->move))
		return HPX_SETTLEMENT_SETTLED;
	return ruling->received.ruling == HPX_RULING_NOT_APPLIED &&
			       after->not_applied_in_a_row == before->not_applied_in_a_row ?
		       HPX_SETTLEMENT_TOO_EARLY :
		       HPX_SETTLEMENT_KEPT;
}

static void rule_unknown(const struct hpx_outbox_found *found, struct hpx_store_op *op,
			 bool about_job, const struct hpx_moment *now,
			 struct hpx_outbox_change *change)
{
	struct hpx_ruling_update *ruling = op->rule.update;
	struct hpx_reconcile reconcile = found->reconcile;
	struct hpx_job_args args = { .now = *now };

	if (lacks_rule(ruling)) {
		op->status = HPX_UNSUPPORTED;
		return;
	}
	/* Nothing was sent after it became unknown. */
	if (reconcile.sent_ms == 0)
		reconcile.sent_ms = about_job ? found->delivery.changed_ms :
						found->operation.record.changed_ms;
	ruling->move = hpx_reconcile_judge(&reconcile, &ruling->received, &ruling->rule,
					   now->wall_ms, ruling->random);
	ruling->settlement = settlement_of(ruling, &found->reconcile, &reconcile);
	if (!is_settled(ruling->move)) {
		bool spent = ruling->move == HPX_RECONCILE_A_PERSON;
		change->write_reconcile = true;
		change->reconcile = reconcile;
		change->evidence = found->evidence;
		change->person = found->person || spent;
		change->event = spent && !found->person ? person_event : NULL;
	} else if (about_job) {
		op->status = move_job(found, job_move_of(ruling->move), &args, ruling->answer,
				      change);
	} else {
		op->status = settle_operation(found, op, now, change);
	}
}

/* Somebody has seen that it happened: of this attempt, "not executed" is never believed
 * any more, and its end is at worst unknown, which the evidence then settles. */
static void note_happened(const struct hpx_outbox_found *found, const struct hpx_moment *now,
			  struct hpx_outbox_change *change)
{
	const struct hpx_record *record = &found->operation.record;
	struct hpx_move_args args = { .now = *now, .token = record->token };

	if (record->state != HPX_STATE_IN_PROGRESS || record->advanced)
		return;
	change->operation = (struct hpx_change){ .write = HPX_WRITE_UPDATE, .record = *record, .at_ms = now->wall_ms };
	change->write_operation = hpx_record_move(&change->operation.record, HPX_MOVE_ADVANCE, &args) == HPX_OK;
}

/* Dead letters, too, turn out to have arrived, and what is to be sent or
 * executed again because it was thought not to have happened: false where that
 * is not what it is. */
static bool rule_happened(const struct hpx_outbox_found *found, struct hpx_store_op *op,
			  bool about_job, const struct hpx_moment *now,
			  struct hpx_outbox_change *change)
{
	struct hpx_outbox_change before = *change;
	struct hpx_job_args args = { .now = *now };
	enum hpx_status status;

	if (op->rule.update->received.ruling != HPX_RULING_APPLIED)
		return false;
	op->rule.update->move = HPX_RECONCILE_SETTLE_APPLIED;
	status = about_job ? move_job(found, HPX_JOB_MOVE_APPLY, &args, op->rule.update->answer, change) :
			     settle_operation(found, op, now, change);
	if (status == HPX_OK) {
		op->rule.update->settlement = HPX_SETTLEMENT_SETTLED;
		return true;
	}
	op->rule.update->move = HPX_RECONCILE_STAY;
	*change = before;
	return false;
}

void hpx_outbox_rule(const struct hpx_outbox_found *found, struct hpx_store_op *op,
		     const struct hpx_moment *now, struct hpx_outbox_change *ret_change)
{
	bool about_job = is_about_job(found, op->rule.update->number);

	HPX_ASSERT(op->verb == HPX_VERB_RULE);

	*ret_change = (struct hpx_outbox_change){ .evidence = HPX_RULING_UNCLEAR,
						  .delivery = found->delivery,
						  .of_job = about_job };
	op->judged_ms = now->wall_ms;
	op->rule.update->move = HPX_RECONCILE_STAY;
	op->rule.update->settlement = HPX_SETTLEMENT_IGNORED;
	/* Whoever has no configuration speaks of this moment, by the store's clock. */
	if (op->rule.update->stored_rule)
		op->rule.update->received.about_ms = now->wall_ms;
	op->status = check_reference(found, about_job, &op->mark);
	if (op->rule.update->answer != NULL && op->rule.update->answer->status == 0)
		op->status = HPX_MISUSE;
	if (op->status != HPX_OK)
		return;
	if (is_unknown(found, about_job))
		rule_unknown(found, op, about_job, now, ret_change);
	else if (!rule_happened(found, op, about_job, now, ret_change) &&
		 may_become_unknown(found, about_job)) {
		keep_evidence(found, &op->rule.update->received, ret_change);
		if (!about_job && ret_change->evidence == HPX_RULING_APPLIED)
			note_happened(found, now, ret_change);
		op->rule.update->settlement = settlement_of_evidence(&op->rule.update->received);
	}
}

bool hpx_outbox_escalate(const struct hpx_outbox_found *found, struct hpx_outbox_change *ret_change)
{
	if (found->person || found->evidence == HPX_RULING_APPLIED ||
	    found->evidence == HPX_RULING_DECLINED)
		return false;
	*ret_change = (struct hpx_outbox_change){ .delivery = found->delivery,
						  .reconcile = found->reconcile,
						  .evidence = found->evidence,
						  .of_job = found->job_exists,
						  .person = true,
						  .write_reconcile = true,
						  .event = person_event };
	/* Nothing was sent after it became unknown: an export of the time since then
	 * counts. */
	if (ret_change->reconcile.sent_ms == 0)
		ret_change->reconcile.sent_ms = found->job_exists ?
							found->delivery.changed_ms :
							found->operation.record.changed_ms;
	return true;
}

/* ---- the job follows its operation ---- */

enum hpx_status hpx_outbox_requeue(const struct hpx_outbox_found *found,
				   const struct hpx_moment *now,
				   struct hpx_outbox_change *ret_change)
{
	struct hpx_outbox_found alone = *found;
	struct hpx_job_args args = { .now = *now };

	*ret_change = (struct hpx_outbox_change){ .evidence = HPX_RULING_UNCLEAR };
	alone.operation.exists = false;
	if (!found->job_readable ||
	    move_job(&alone, HPX_JOB_MOVE_REQUEUE, &args, NULL, ret_change) != HPX_OK)
		return HPX_CONFLICT;
	return HPX_OK;
}

enum hpx_status hpx_outbox_conclude(const struct hpx_outbox_found *found, enum hpx_state after,
				    const struct hpx_moment *now,
				    struct hpx_outbox_change *ret_change)
{
	enum hpx_job_state state = found->delivery.state;
	bool applied = after == HPX_STATE_COMPLETED;
	struct hpx_outbox_found alone = *found;
	struct hpx_job_args args = { .now = *now };

	*ret_change = (struct hpx_outbox_change){ .evidence = HPX_RULING_UNCLEAR };
	/* One that cannot be read is never sent. */
	if (!found->job_exists || !found->job_readable)
		return HPX_OK;
	if (state == HPX_JOB_SENDING)
		return applied ? HPX_OK : HPX_REFUSED;
	if (state == HPX_JOB_DONE)
		return after == HPX_STATE_FAILED_RETRYABLE ? HPX_REFUSED : HPX_OK;
	alone.operation.exists = false;
	return move_job(&alone,
			applied && (state == HPX_JOB_UNKNOWN || state == HPX_JOB_DEAD) ?
				HPX_JOB_MOVE_APPLY :
				HPX_JOB_MOVE_DISCARD,
			&args, NULL, ret_change);
}

/* Under way, done, lost before, or not to be found: it may have happened. */
static bool may_have_been_sent(const struct hpx_outbox_found *found)
{
	enum hpx_job_state state = found->delivery.state;

	return !found->job_exists || !found->job_readable || found->delivery.unsure ||
	       state == HPX_JOB_SENDING || state == HPX_JOB_UNKNOWN || state == HPX_JOB_DONE;
}

bool hpx_outbox_abandon(const struct hpx_outbox_found *found, const struct hpx_moment *now,
			struct hpx_outbox_change *ret_change)
{
	struct hpx_move_args args = {
		.now = *now,
		.status = hpx_answer_abandoned.status,
		.kept = hpx_answer_abandoned.kept,
		.sent = may_have_been_sent(found),
	};
	struct hpx_outbox_change change = {
		.delivery = found->delivery,
		.evidence = HPX_RULING_UNCLEAR,
		.of_job = true,
		.operation = { .write = HPX_WRITE_UPDATE, .record = found->operation.record, .event = hpx_move_name(HPX_MOVE_ABANDON), .at_ms = now->wall_ms, .reason = HPX_SPAN("its retention ended before it was delivered") },
		.write_operation = true,
	};
	struct hpx_job_args discard = { .now = *now };

	if (!found->operation.exists || !found->operation.readable ||
	    hpx_record_move(&change.operation.record, HPX_MOVE_ABANDON, &args) != HPX_OK)
		return false;
	if (args.sent) {
		change.operation.record.status = 0;
	} else {
		change.operation.answer = &hpx_answer_abandoned;
		change.remove_reconcile = found->scheduled;
		change.write_job = hpx_job_move(&change.delivery, HPX_JOB_MOVE_DISCARD,
						&discard) == HPX_OK;
	}
	*ret_change = change;
	return true;
}
