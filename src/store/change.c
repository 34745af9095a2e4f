/* From an op and a record to what must be written: the part of every driver
 * that does not depend on how it stores things. */
#include "store/change.h"

#include "base/status.h"

/* Where not even the retention of a broken record can be read. */
#define RETENTION_MENDED_MS ((int64_t)24 * 60 * 60 * 1000)

const struct hpx_operation_id *hpx_op_id(const struct hpx_store_op *op)
{
	return op->verb == HPX_VERB_RESERVE ? &op->reserve.ask->id : &op->id;
}

const struct hpx_description *hpx_op_description(const struct hpx_store_op *op)
{
	HPX_ASSERT(op->verb == HPX_VERB_RESERVE || op->verb == HPX_VERB_RESTORE); /* no other makes a record */
	return op->verb == HPX_VERB_RESERVE ? op->reserve.description : NULL;
}

const struct hpx_job *hpx_op_job(const struct hpx_store_op *op)
{
	return op->verb == HPX_VERB_RESERVE ? op->reserve.job :
	       op->verb == HPX_VERB_ENQUEUE ? op->enqueue.job :
					      NULL;
}

/* What retries get; NULL where the op brings no answer. */
static const struct hpx_answer *answer_of(const struct hpx_store_op *op)
{
	return op->verb == HPX_VERB_COMPLETE ? op->complete.answer :
	       op->verb == HPX_VERB_RESOLVE  ? op->resolve.answer :
					       NULL;
}

static bool is_forced(const struct hpx_store_op *op)
{
	return op->verb == HPX_VERB_RESOLVE ? op->resolve.force :
	       op->verb == HPX_VERB_FORGET  ? op->forget.force :
					      false;
}

static void decide_unreadable(const struct hpx_record *record, struct hpx_decision *decision)
{
	*decision = (struct hpx_decision){ .kind = HPX_DECISION_UNKNOWN, .record = *record };
	decision->record.state = HPX_STATE_UNKNOWN;
}

static void decide(const struct hpx_found *found, const struct hpx_ask *ask,
		   const struct hpx_policy *policy, const struct hpx_moment *now,
		   struct hpx_decision *decision)
{
	if (found->exists && !found->readable)
		decide_unreadable(&found->record, decision);
	else
		hpx_decide(found->exists ? &found->record : NULL, ask, policy, now, decision);
}

void hpx_decision_lose_answer(struct hpx_decision *decision)
{
	decision->kind = HPX_DECISION_UNKNOWN;
	decision->write = false;
}

bool hpx_change_peek(const struct hpx_found *found, const struct hpx_ask *ask,
		     const struct hpx_policy *policy, const struct hpx_moment *now,
		     struct hpx_decision *ret_decision)
{
	struct hpx_decision decision;

	decide(found, ask, policy, now, &decision);
	if (decision.write || decision.kind == HPX_DECISION_EXECUTE ||
	    decision.kind == HPX_DECISION_EXECUTE_AGAIN)
		return false;
	*ret_decision = decision;
	return true;
}

static void make_reserve(const struct hpx_found *found, struct hpx_store_op *op,
			 const struct hpx_moment *now, bool space_low, struct hpx_change *change)
{
	struct hpx_decision *decision = &op->decision;

	HPX_ASSERT(op->verb == HPX_VERB_RESERVE);
	decide(found, op->reserve.ask, op->reserve.policy, now, decision);
	if (!decision->write)
		return;
	bool begins = decision->kind == HPX_DECISION_EXECUTE ||
		      decision->kind == HPX_DECISION_EXECUTE_AGAIN;
	if (begins && op->reserve.look) {
		op->status = HPX_NOT_FOUND;
		*decision = (struct hpx_decision){ .kind = HPX_DECISION_COUNT };
		return;
	}
	if (begins && space_low) {
		op->status = HPX_FULL;
		*decision = (struct hpx_decision){ .kind = HPX_DECISION_COUNT };
		return;
	}
	change->record = decision->record;
	change->job = begins ? op->reserve.job : NULL;
	change->route_key = begins ? op->reserve.route_key : NULL;
	if (!found->exists) {
		change->write = HPX_WRITE_INSERT;
		return;
	}
	bool anew = decision->kind == HPX_DECISION_EXECUTE;
	change->write = anew ? HPX_WRITE_REPLACE : HPX_WRITE_UPDATE;
	change->event = hpx_move_name(begins ? HPX_MOVE_RESERVE : HPX_MOVE_SWEEP);
	if (anew)
		change->reason = decision->after_expiry ?
					 HPX_SPAN("executed again: the key's operation had happened and expired") :
					 HPX_SPAN("the key had expired and is used again");
	else if (!begins || found->record.state == HPX_STATE_IN_PROGRESS)
		change->reason = HPX_SPAN("the lease ran out");
}

static enum hpx_move move_of(const struct hpx_store_op *op)
{
	switch (op->verb) {
	case HPX_VERB_COMPLETE:
		return HPX_MOVE_COMPLETE;
	case HPX_VERB_FAIL:
		return HPX_MOVE_FAIL;
	case HPX_VERB_RELEASE:
		return HPX_MOVE_RELEASE;
	case HPX_VERB_MARK_UNKNOWN:
		return HPX_MOVE_LOSE;
	case HPX_VERB_RENEW:
		return HPX_MOVE_RENEW;
	case HPX_VERB_CONCLUDE:
		return HPX_MOVE_CONCLUDE;
	case HPX_VERB_ADVANCE:
	case HPX_VERB_ENQUEUE:
	case HPX_VERB_PROVIDER_ID:
		return HPX_MOVE_ADVANCE;
	case HPX_VERB_EXTEND:
		return HPX_MOVE_EXTEND;
	case HPX_VERB_RESOLVE:
		return op->resolve.applied ? HPX_MOVE_APPLY : HPX_MOVE_UNAPPLY;
	default:
		HPX_ASSERT(op->verb == HPX_VERB_FORGET);
		return HPX_MOVE_FORGET;
	}
}

/* What was seen and what went wrong, where the attempt brings no answer. */
static struct hpx_op_end end_of(const struct hpx_store_op *op)
{
	const struct hpx_answer *answer = answer_of(op);

	switch (op->verb) {
	case HPX_VERB_FAIL:
		return op->fail;
	case HPX_VERB_RELEASE:
		return op->release;
	case HPX_VERB_MARK_UNKNOWN:
		return op->mark_unknown;
	case HPX_VERB_CONCLUDE:
		return op->conclude.end;
	default:
		return (struct hpx_op_end){ .status_seen = answer != NULL ? answer->status : 0 };
	}
}

static struct hpx_move_args args_of(const struct hpx_store_op *op, enum hpx_move move,
				    const struct hpx_moment *now)
{
	struct hpx_op_end end = end_of(op);
	struct hpx_move_args args = {
		.now = *now,
		.token = op->token,
		.status = end.status_seen,
		.error = end.error,
		.force = is_forced(op),
	};

	if (op->verb == HPX_VERB_RENEW)
		args.lease_ms = op->renew.lease_ms;
	if (op->verb == HPX_VERB_ADVANCE)
		args.point = op->advance.point;
	if (op->verb == HPX_VERB_COMPLETE)
		args.retention_ms = op->complete.retention_ms;
	if (op->verb == HPX_VERB_EXTEND)
		args.until_ms = op->extend.until_ms;
	if (answer_of(op) != NULL && (move == HPX_MOVE_COMPLETE || move == HPX_MOVE_APPLY))
		args.kept = answer_of(op)->kept;
	return args;
}

/* The way of a first attempt that simply went well (reserve, complete) or
 * left nothing (release) is told by the row itself; everything else leaves an
 * event, so that the hot path writes none. */
static bool leaves_event(const struct hpx_record *before, enum hpx_move move)
{
	bool first = before->state == HPX_STATE_IN_PROGRESS && before->attempt == 1;

	if (move == HPX_MOVE_COMPLETE || move == HPX_MOVE_RELEASE)
		return !first || (move == HPX_MOVE_RELEASE && before->advanced);
	return true;
}

static const char *const provider_id_event = "provider_id";

/* A job owed is a part of the work that is committed, like a phase; only the
 * phase is something to tell people of. */
static void make_advance(const struct hpx_store_op *op, struct hpx_change *change)
{
	change->write = HPX_WRITE_UPDATE;
	change->job = hpx_op_job(op);
	if (op->verb == HPX_VERB_ENQUEUE)
		return;
	if (op->verb == HPX_VERB_PROVIDER_ID) {
		change->provider_id = &op->provider_id.text;
		change->event = provider_id_event;
		change->reason = op->provider_id.text;
		return;
	}
	HPX_ASSERT(op->verb == HPX_VERB_ADVANCE);
	change->data = &op->advance.data;
	change->event = hpx_move_name(HPX_MOVE_ADVANCE);
	change->reason = op->advance.point;
}

/* The same move again by the same lease; or the application's own answer was
 * there first. */
static void tell_already(const struct hpx_record *before, struct hpx_store_op *op)
{
	bool already = before->state == HPX_STATE_COMPLETED;

	if (op->verb == HPX_VERB_COMPLETE)
		op->complete.already = already;
	else if (op->verb == HPX_VERB_CONCLUDE)
		op->conclude.already = already;
}

static void make_move(const struct hpx_record *before, struct hpx_store_op *op,
		      const struct hpx_moment *now, struct hpx_change *change)
{
	enum hpx_move move = move_of(op);
	struct hpx_move_args args = args_of(op, move, now);
	const struct hpx_answer *answer = answer_of(op);

	HPX_ASSERT(!hpx_verb_has(op->verb, HPX_TRAIT_ASKS | HPX_TRAIT_OUTBOX));
	change->record = *before;
	op->status = hpx_record_move(&change->record, move, &args);
	if (op->status != HPX_OK)
		return;
	op->decision.record = change->record;
	if (move == HPX_MOVE_RENEW) {
		change->write = HPX_WRITE_LEASE;
		return;
	}
	if (move == HPX_MOVE_ADVANCE) {
		make_advance(op, change);
		return;
	}
	if (move == HPX_MOVE_EXTEND) {
		if (change->record.expires_ms != before->expires_ms) {
			change->write = HPX_WRITE_UPDATE;
			change->event = hpx_move_name(move);
		}
		return;
	}
	if (change->record.state == before->state) {
		tell_already(before, op);
		return;
	}
	change->write = change->record.state == HPX_STATE_NONE ? HPX_WRITE_REMOVE :
								 HPX_WRITE_UPDATE;
	/* Of an answer that is not kept, the headers may tell where it is. */
	if (change->record.state == HPX_STATE_COMPLETED && answer != NULL &&
	    (answer->kept || answer->headers.len > 0))
		change->answer = answer;
	if (leaves_event(before, move))
		change->event = hpx_move_name(move);
}

/* What a person settles must be a whole record again: a token that was never
 * given out, the reference that the person named, and what could be read. */
static void mend(const struct hpx_store_op *op, const struct hpx_moment *now,
		 struct hpx_record *record)
{
	record->id = op->id;
	record->state = HPX_STATE_UNKNOWN;
	record->token = (struct hpx_token){ { 0 } };
	if (hpx_mark_is_void(&record->mark))
		record->mark = op->mark;
	if (hpx_mark_is_void(&record->mark))
		hpx_random(record->mark.bytes, sizeof(record->mark.bytes));
	if (record->attempt == 0)
		record->attempt = 1;
	if (record->created_ms <= 0)
		record->created_ms = now->wall_ms;
	if (record->retention_ms <= 0)
		record->retention_ms = RETENTION_MENDED_MS;
	record->expires_ms = 0;
	record->kept = false;
}

/* A row that cannot be read: only a person's word, by force, moves it. */
static void make_unreadable(const struct hpx_found *found, struct hpx_store_op *op,
			    const struct hpx_moment *now, struct hpx_change *change)
{
	struct hpx_record record = found->record;

	if (!is_forced(op)) {
		op->status = HPX_CORRUPT;
		return;
	}
	mend(op, now, &record);
	make_move(&record, op, now, change);
}

static void make_find(const struct hpx_found *found, struct hpx_store_op *op)
{
	if (!found->exists)
		op->status = HPX_NOT_FOUND;
	else if (found->readable)
		op->decision.record = found->record;
	else
		decide_unreadable(&found->record, &op->decision);
}

/* Only the attempt that holds the lease may know what an earlier one saved. */
static void make_read_point(const struct hpx_record *record, struct hpx_store_op *op)
{
	HPX_ASSERT(op->verb == HPX_VERB_READ_POINT);
	if (record->state == HPX_STATE_NONE || hpx_token_is_void(&op->token) ||
	    !hpx_token_eq(&record->token, &op->token))
		op->status = HPX_STALE;
	else
		op->decision.record = *record;
}

/* What happened to the key is told in the operation's history; to the record, nothing did. */
static void make_note_misuse(const struct hpx_record *record, struct hpx_store_op *op,
			     struct hpx_change *change)
{
	HPX_ASSERT(op->verb == HPX_VERB_NOTE_MISUSE);
	op->decision.record = change->record = *record;
	change->event = "misused";
	change->event_once = true;
	change->reason = HPX_SPAN("the key came with another request; later times are only counted");
}

static void make_restore(const struct hpx_found *found, struct hpx_store_op *op,
			 const struct hpx_moment *now, struct hpx_change *change)
{
	const struct hpx_record *before = &found->record;
	struct hpx_move_args args = {
		.now = *now,
		.mark = op->mark,
		.status = op->restore.status_seen,
		.retention_ms = op->restore.retention_ms,
		.tombstone_ms = op->restore.tombstone_ms,
	};

	HPX_ASSERT(op->verb == HPX_VERB_RESTORE);
	if (found->exists && !hpx_record_expired(before, now)) {
		bool same = before->state == HPX_STATE_COMPLETED && hpx_mark_eq(&before->mark, &op->mark);

		op->decision.record = *before;
		op->status = same ? HPX_OK : HPX_REFUSED;
		return;
	}
	change->record = (struct hpx_record){ .id = op->id };
	op->status = hpx_record_move(&change->record, HPX_MOVE_RESTORE, &args);
	if (op->status != HPX_OK)
		return;
	op->decision.record = change->record;
	change->write = found->exists ? HPX_WRITE_REPLACE : HPX_WRITE_INSERT;
	change->event = hpx_move_name(HPX_MOVE_RESTORE);
}

/* RESOLVE, FORGET and NOTE_MISUSE name the operation by its reference. */
static enum hpx_status check_reference(const struct hpx_found *found,
				       const struct hpx_store_op *op)
{
	if (!hpx_verb_has(op->verb, HPX_TRAIT_REMOVES) && op->verb != HPX_VERB_NOTE_MISUSE)
		return HPX_OK;
	if (!found->exists)
		return HPX_NOT_FOUND;
	if (found->readable && !hpx_mark_eq(&found->record.mark, &op->mark))
		return HPX_STALE;
	return HPX_OK;
}

/* An op that no submitter may send: a completion without an answer, a lease
 * of no length, a status that is none. */
static bool is_misuse(const struct hpx_store_op *op)
{
	const struct hpx_answer *answer = answer_of(op);

	if (answer != NULL && answer->status == 0)
		return true;
	switch (op->verb) {
	case HPX_VERB_RESERVE:
		return op->reserve.ask == NULL || op->reserve.policy == NULL ||
		       hpx_token_is_void(&op->reserve.ask->token) || op->reserve.policy->retention_ms < 0 ||
		       (op->reserve.policy->deliver == HPX_DELIVER_ASYNC) != (op->reserve.job != NULL);
	case HPX_VERB_COMPLETE:
		return answer == NULL || op->complete.retention_ms < 0 ||
		       op->complete.retention_ms > HPX_EXPIRES_MAX_MS;
	case HPX_VERB_RENEW:
		return op->renew.lease_ms <= 0;
	case HPX_VERB_ENQUEUE:
		return op->enqueue.job == NULL;
	case HPX_VERB_RESTORE:
		return hpx_mark_is_void(&op->mark) || op->restore.retention_ms <= 0 ||
		       op->restore.retention_ms > HPX_EXPIRES_MAX_MS || op->restore.tombstone_ms < 0 ||
		       op->restore.tombstone_ms > HPX_EXPIRES_MAX_MS || op->restore.status_seen > 999;
	case HPX_VERB_EXTEND:
		return op->extend.until_ms <= 0 || op->extend.until_ms > HPX_EXPIRES_MAX_MS;
	default:
		return false;
	}
}

/* What an application hands over is checked here, whichever way it came. */
static enum hpx_status check_handed(const struct hpx_store_op *op)
{
	if (op->verb == HPX_VERB_ADVANCE && !hpx_point_valid(op->advance.point))
		return HPX_INVALID;
	if (op->verb == HPX_VERB_ADVANCE && op->advance.data.len > HPX_POINT_DATA_MAX)
		return HPX_TOO_LARGE;
	if (op->verb == HPX_VERB_PROVIDER_ID && !hpx_provider_id_valid(op->provider_id.text))
		return HPX_INVALID;
	if (op->verb == HPX_VERB_RESERVE && op->reserve.route_key != NULL &&
	    op->reserve.route_key->amount.len > HPX_ROUTE_KEY_AMOUNT_MAX)
		return HPX_TOO_LARGE;
	const struct hpx_job *job = hpx_op_job(op);
	if (job != NULL && hpx_job_fault(job) != NULL)
		return HPX_INVALID;
	return HPX_OK;
}

void hpx_change_make(const struct hpx_found *found, struct hpx_store_op *op,
		     const struct hpx_moment *now, bool space_low, struct hpx_change *ret_change)
{
	static const struct hpx_record none;

	*ret_change = (struct hpx_change){ .write = HPX_WRITE_NOTHING, .at_ms = now->wall_ms };
	op->judged_ms = now->wall_ms;
	/* Verbs of the outbox come here only where a driver keeps none. */
	op->status = hpx_verb_has(op->verb, HPX_TRAIT_OUTBOX) ? HPX_UNSUPPORTED :
		     is_misuse(op)                            ? HPX_MISUSE :
								check_handed(op);
	if (op->status == HPX_OK)
		op->status = check_reference(found, op);
	if (op->status != HPX_OK)
		return;
	if (op->verb == HPX_VERB_RESERVE)
		make_reserve(found, op, now, space_low, ret_change);
	else if (op->verb == HPX_VERB_FIND)
		make_find(found, op);
	else if (found->exists && !found->readable)
		make_unreadable(found, op, now, ret_change);
	else if (op->verb == HPX_VERB_RESTORE)
		make_restore(found, op, now, ret_change);
	else if (op->verb == HPX_VERB_NOTE_MISUSE)
		make_note_misuse(&found->record, op, ret_change);
	else if (op->verb == HPX_VERB_READ_POINT)
		make_read_point(found->exists ? &found->record : &none, op);
	else
		make_move(found->exists ? &found->record : &none, op, now, ret_change);
}

bool hpx_change_sweep(const struct hpx_record *record, bool owner_dead,
		      const struct hpx_moment *now, struct hpx_change *ret_change)
{
	struct hpx_move_args args = { .now = *now, .owner_dead = owner_dead };
	struct hpx_change change = { .write = HPX_WRITE_UPDATE, .record = *record };

	if (hpx_record_move(&change.record, HPX_MOVE_SWEEP, &args) != HPX_OK)
		return false;
	change.event = hpx_move_name(HPX_MOVE_SWEEP);
	change.at_ms = now->wall_ms;
	change.reason = owner_dead ? HPX_SPAN("the process that held the lease is gone") :
				     HPX_SPAN("the lease ran out");
	*ret_change = change;
	return true;
}
