/* The one mover of records. The table says which move is allowed from which
 * state and where it leads; the functions below it fill in what a move
 * changes besides the state. The invariants R1 to R7 stand in the header. */
#include "core/record.h"

#include "base/status.h"

/* One more than the state, so that what is not named is not allowed. */
#define TO(state) (HPX_STATE_##state + 1)
/* The move changes nothing: it was made before, by the same lease. */
#define SAME 255u

static const unsigned char to_state[HPX_STATE_COUNT][HPX_MOVE_COUNT] = {
	[HPX_STATE_NONE] = {
		[HPX_MOVE_RESERVE] = TO(IN_PROGRESS),
		[HPX_MOVE_ACCEPT] = TO(PENDING),
		[HPX_MOVE_RESTORE] = TO(COMPLETED),
	},
	[HPX_STATE_IN_PROGRESS] = {
		[HPX_MOVE_COMPLETE] = TO(COMPLETED),
		[HPX_MOVE_FAIL] = TO(FAILED_RETRYABLE),
		[HPX_MOVE_RELEASE] = TO(NONE),
		[HPX_MOVE_LOSE] = TO(UNKNOWN),
		[HPX_MOVE_RENEW] = TO(IN_PROGRESS),
		[HPX_MOVE_ADVANCE] = TO(IN_PROGRESS),
		[HPX_MOVE_CONCLUDE] = TO(FAILED_RETRYABLE),
		[HPX_MOVE_SWEEP] = TO(UNKNOWN),
		[HPX_MOVE_FORGET] = TO(NONE),
	},
	[HPX_STATE_FAILED_RETRYABLE] = {
		[HPX_MOVE_RESERVE] = TO(IN_PROGRESS),
		[HPX_MOVE_ACCEPT] = TO(PENDING),
		[HPX_MOVE_APPLY] = TO(COMPLETED),
		[HPX_MOVE_FORGET] = TO(NONE),
		[HPX_MOVE_EXTEND] = TO(FAILED_RETRYABLE),
	},
	[HPX_STATE_COMPLETED] = {
		[HPX_MOVE_COMPLETE] = SAME,
		[HPX_MOVE_CONCLUDE] = SAME,
		[HPX_MOVE_FORGET] = TO(NONE),
		[HPX_MOVE_EXTEND] = TO(COMPLETED),
	},
	[HPX_STATE_UNKNOWN] = {
		[HPX_MOVE_COMPLETE] = TO(COMPLETED),
		[HPX_MOVE_FAIL] = TO(FAILED_RETRYABLE),
		[HPX_MOVE_RELEASE] = TO(NONE),
		[HPX_MOVE_LOSE] = SAME,
		[HPX_MOVE_ADVANCE] = TO(UNKNOWN),
		[HPX_MOVE_CONCLUDE] = TO(FAILED_RETRYABLE),
		[HPX_MOVE_APPLY] = TO(COMPLETED),
		[HPX_MOVE_UNAPPLY] = TO(FAILED_RETRYABLE),
		[HPX_MOVE_REQUEUE] = TO(PENDING),
		[HPX_MOVE_FORGET] = TO(NONE),
	},
	[HPX_STATE_PENDING] = {
		[HPX_MOVE_COMPLETE] = TO(COMPLETED),
		[HPX_MOVE_LOSE] = TO(UNKNOWN),
		[HPX_MOVE_REQUEUE] = SAME,
		[HPX_MOVE_ABANDON] = TO(COMPLETED),
		[HPX_MOVE_FORGET] = TO(NONE),
	},
};

static const bool matches_token[HPX_MOVE_COUNT] = {
#define X(name, text, token) [HPX_MOVE_##name] = token,
	HPX_MOVE_LIST(X)
#undef X
};

const char *hpx_state_name(enum hpx_state state)
{
	switch (state) {
#define X(name, number, text) \
	case HPX_STATE_##name: \
		return text;
		HPX_STATE_LIST(X)
#undef X
	case HPX_STATE_COUNT:
		break;
	}
	return "?";
}

enum hpx_state hpx_state_by_name(struct hpx_span name)
{
	for (int state = 0; state < HPX_STATE_COUNT; state++)
		if (hpx_span_eq(name, hpx_span_of(hpx_state_name((enum hpx_state)state))))
			return (enum hpx_state)state;
	return HPX_STATE_COUNT;
}

const char *hpx_move_name(enum hpx_move move)
{
	static const char *const names[] = {
#define X(name, text, token) text,
		HPX_MOVE_LIST(X)
#undef X
	};
	HPX_ASSERT(move < HPX_MOVE_COUNT);
	return names[move];
}

const char *hpx_last_error_name(enum hpx_last_error error)
{
	static const char *const names[] = {
#define X(name, text) text,
		HPX_LAST_ERROR_LIST(X)
#undef X
	};
	HPX_ASSERT(error < HPX_LAST_ERROR_COUNT);
	return names[error];
}

enum hpx_last_error hpx_last_error_by_name(struct hpx_span name)
{
	for (int error = 0; error < HPX_LAST_ERROR_COUNT; error++)
		if (hpx_span_eq(name, hpx_span_of(hpx_last_error_name((enum hpx_last_error)error))))
			return (enum hpx_last_error)error;
	return HPX_LAST_ERROR_OTHER;
}

enum hpx_last_error hpx_last_error_of_status(uint32_t status)
{
	switch (status) {
#define STATUS(number) \
	case number: \
		return HPX_LAST_ERROR_STATUS_##number;
		STATUS(401)
		STATUS(403)
		STATUS(407)
		STATUS(408)
		STATUS(421)
		STATUS(425)
		STATUS(429)
		STATUS(500)
		STATUS(501)
		STATUS(502)
		STATUS(503)
		STATUS(504)
#undef STATUS
	default:
		return status >= 500 && status < 600 ? HPX_LAST_ERROR_STATUS_5XX :
						       HPX_LAST_ERROR_STATUS_OTHER;
	}
}

bool hpx_point_valid(struct hpx_span point)
{
	if (point.len == 0 || point.len >= HPX_POINT_SIZE)
		return false;
	for (size_t i = 0; i < point.len; i++)
		if (point.ptr[i] <= ' ' || point.ptr[i] > '~')
			return false;
	return true;
}

bool hpx_record_expired(const struct hpx_record *record, const struct hpx_moment *now)
{
	return record->state != HPX_STATE_PENDING && record->expires_ms != 0 &&
	       record->expires_ms <= now->wall_ms && !now->hold_expiry;
}

/* Nothing happened of one that failed: there is nothing to be known. */
int64_t hpx_record_end_ms(const struct hpx_record *record)
{
	return record->expires_ms + (record->state == HPX_STATE_COMPLETED ? record->tombstone_ms : 0);
}

bool hpx_record_overdue(const struct hpx_record *record, const struct hpx_moment *now)
{
	return record->state == HPX_STATE_PENDING && record->expires_ms <= now->wall_ms &&
	       !now->hold_expiry;
}

bool hpx_record_lease_lost(const struct hpx_record *record, const struct hpx_moment *now)
{
	return record->state == HPX_STATE_IN_PROGRESS && record->lease_until_ms <= now->lease_ms;
}

/* R4: at least now + retention, and never earlier than it already was. */
static void expire_not_before(struct hpx_record *record, int64_t expires_ms)
{
	if (expires_ms > record->expires_ms)
		record->expires_ms = expires_ms;
}

static void set_expiry(struct hpx_record *record, const struct hpx_move_args *args)
{
	int64_t retention_ms = args->retention_ms > record->retention_ms ? args->retention_ms :
									   record->retention_ms;

	expire_not_before(record, args->now.wall_ms + retention_ms);
}

/* The first attempt's token is kept as its mark alone: once it is not the
 * current one, it stands nowhere. */
static enum hpx_status begin_attempt(struct hpx_record *record, const struct hpx_move_args *args)
{
	HPX_ASSERT(record->state == HPX_STATE_NONE || record->state == HPX_STATE_FAILED_RETRYABLE); /* R1 */
	HPX_ASSERT(!hpx_token_is_void(&args->token));
	if (record->state == HPX_STATE_NONE) {
		enum hpx_status status = hpx_mark_make(&args->token, &record->mark);

		if (status != HPX_OK)
			return status;
		record->attempt = 0;
		record->created_ms = args->now.wall_ms;
	}
	/* The number comes from a row, which can have any. */
	if (record->attempt < UINT32_MAX)
		record->attempt++;
	record->token = args->token;
	record->owner = args->owner;
	record->status = 0;
	record->kept = false;
	record->expires_ms = 0;
	record->retention_ms = args->retention_ms;
	record->tombstone_ms = args->tombstone_ms;
	record->lease_until_ms = args->now.lease_ms + args->lease_ms;
	record->when_lost = args->when_lost;
	record->advanced = false; /* of this attempt; the point stays */
	return HPX_OK;
}

/* R7: all that is known is the reference, and that it happened. */
static void begin_restored(struct hpx_record *record, const struct hpx_move_args *args)
{
	HPX_ASSERT(record->state == HPX_STATE_NONE && !args->kept);
	record->mark = args->mark;
	record->token = (struct hpx_token){ { 0 } };
	record->recipe = hpx_recipe_unknown();
	record->attempt = 1;
	record->created_ms = args->now.wall_ms;
	record->retention_ms = args->retention_ms;
	record->tombstone_ms = args->tombstone_ms;
}

static void advance(struct hpx_record *record, struct hpx_span point)
{
	HPX_ASSERT(point.len < sizeof(record->point));
	record->advanced = true;
	if (point.len == 0)
		return;
	memset(record->point, 0, sizeof(record->point));
	memcpy(record->point, point.ptr, point.len);
}

/* R6. Rulings say what became of the attempt, not what happened to it. */
static enum hpx_last_error error_of(const struct hpx_record *record, enum hpx_move move,
				    const struct hpx_move_args *args)
{
	if (record->state != HPX_STATE_FAILED_RETRYABLE && record->state != HPX_STATE_UNKNOWN)
		return record->last_error;
	if (args->error != HPX_LAST_ERROR_NONE)
		return args->error;
	switch (move) {
	case HPX_MOVE_UNAPPLY:
		return record->last_error;
	case HPX_MOVE_SWEEP:
		return HPX_LAST_ERROR_LEASE_LOST;
	case HPX_MOVE_CONCLUDE:
		return HPX_LAST_ERROR_NOT_COMMITTED;
	default:
		if (args->status != 0)
			return hpx_last_error_of_status(args->status);
		return move == HPX_MOVE_FAIL || move == HPX_MOVE_RELEASE ? HPX_LAST_ERROR_NOT_EXECUTED :
		       move == HPX_MOVE_ABANDON                          ? HPX_LAST_ERROR_DELIVERY_LOST :
									   HPX_LAST_ERROR_OUTCOME_UNKNOWN;
	}
}

/* What every record of that state keeps, whatever move led there. */
static void enter(struct hpx_record *record, enum hpx_state state,
		  const struct hpx_move_args *args)
{
	HPX_ASSERT(record->state != HPX_STATE_COMPLETED || state == HPX_STATE_NONE); /* R3 */
	record->state = state;
	record->changed_ms = args->now.wall_ms;
	if (args->status != 0)
		record->status = args->status;
	switch (state) {
	case HPX_STATE_COMPLETED:
		/* Settled without an answer: a failure that was seen on the way is not what
		 * the operation came to. */
		if (args->status == 0 && record->status >= 400)
			record->status = 0;
		record->kept = args->kept;
		set_expiry(record, args);
		break;
	case HPX_STATE_FAILED_RETRYABLE:
		record->token = (struct hpx_token){ { 0 } }; /* R5 */
		set_expiry(record, args);
		break;
	case HPX_STATE_PENDING:
		set_expiry(record, args);
		break;
	case HPX_STATE_UNKNOWN:
		record->expires_ms = 0;
		break;
	default:
		break;
	}
}

/* What the attempt committed stays committed: it is resumed, or a person looks
 * at it. */
static unsigned target_of_advanced(const struct hpx_record *record)
{
	if (record->when_lost != HPX_WHEN_LOST_UNKNOWN)
		return TO(FAILED_RETRYABLE);
	return record->state == HPX_STATE_UNKNOWN ? SAME : TO(UNKNOWN);
}

/* Release leaves nothing of a first attempt; a later one falls back to
 * failed_retryable, because the record tells of the attempts before it. */
static unsigned target_of(const struct hpx_record *record, enum hpx_move move,
			  const struct hpx_move_args *args)
{
	unsigned to = to_state[record->state][move];

	switch (move) {
	case HPX_MOVE_FAIL:
	case HPX_MOVE_RELEASE:
		if (to != 0 && record->advanced)
			return target_of_advanced(record);
		return to == TO(NONE) && record->attempt > 1 ? TO(FAILED_RETRYABLE) : to;
	case HPX_MOVE_LOSE:
	case HPX_MOVE_SWEEP:
		/* A pending one was lost outside, where nothing is void. */
		if (to == TO(UNKNOWN) && record->state == HPX_STATE_IN_PROGRESS &&
		    record->when_lost != HPX_WHEN_LOST_UNKNOWN)
			return TO(FAILED_RETRYABLE);
		return to;
	case HPX_MOVE_ABANDON:
		return to == TO(COMPLETED) && args->sent ? TO(UNKNOWN) : to;
	default:
		return to;
	}
}

static bool guarded_move_holds(const struct hpx_record *record, enum hpx_move move,
			       const struct hpx_move_args *args)
{
	if (move == HPX_MOVE_SWEEP)
		return args->owner_dead || hpx_record_lease_lost(record, &args->now);
	if (move == HPX_MOVE_FORGET && record->state != HPX_STATE_COMPLETED &&
	    record->state != HPX_STATE_FAILED_RETRYABLE)
		return args->force;
	/* Of one that only the application completes, or that goes on from its
	 * recovery point, what others saw happen is no more than a part. */
	if (move == HPX_MOVE_APPLY && record->state == HPX_STATE_FAILED_RETRYABLE)
		return args->force && record->when_lost == HPX_WHEN_LOST_UNKNOWN;
	/* Only the holder of a token can be answered for later. */
	if (move == HPX_MOVE_REQUEUE)
		return !hpx_token_is_void(&record->token);
	if (move == HPX_MOVE_ABANDON)
		return args->force || hpx_record_overdue(record, &args->now);
	if (move == HPX_MOVE_ADVANCE)
		return args->point.len == 0 || hpx_point_valid(args->point);
	/* What has expired may be gone at any moment, and its answer with it. */
	if (move == HPX_MOVE_EXTEND)
		return !hpx_record_expired(record, &args->now);
	if (move == HPX_MOVE_RESTORE)
		return !hpx_mark_is_void(&args->mark);
	return true;
}

enum hpx_status hpx_record_move(struct hpx_record *record, enum hpx_move move,
				const struct hpx_move_args *args)
{
	HPX_ASSERT(record->state < HPX_STATE_COUNT && move < HPX_MOVE_COUNT);

	if (matches_token[move] &&
	    (record->state == HPX_STATE_NONE || hpx_token_is_void(&args->token) ||
	     !hpx_token_eq(&record->token, &args->token)))
		return HPX_STALE; /* R2 */

	unsigned to = target_of(record, move, args);
	if (to == SAME)
		return HPX_OK;
	if (to == 0 || !guarded_move_holds(record, move, args))
		return HPX_REFUSED;

	if (move == HPX_MOVE_RESERVE || move == HPX_MOVE_ACCEPT) {
		enum hpx_status status = begin_attempt(record, args);

		if (status != HPX_OK)
			return status;
	}
	if (move == HPX_MOVE_RENEW) {
		int64_t until_ms = args->now.lease_ms + args->lease_ms;
		if (until_ms > record->lease_until_ms)
			record->lease_until_ms = until_ms;
		return HPX_OK;
	}
	if (move == HPX_MOVE_ADVANCE) {
		advance(record, args->point);
		return HPX_OK;
	}
	if (move == HPX_MOVE_EXTEND) {
		expire_not_before(record, args->until_ms);
		return HPX_OK;
	}
	if (move == HPX_MOVE_RESTORE)
		begin_restored(record, args);
	enter(record, (enum hpx_state)(to - 1), args);
	record->last_error = error_of(record, move, args);
	HPX_ASSERT(record->state == HPX_STATE_NONE || hpx_record_valid(record));
	return HPX_OK;
}

bool hpx_record_valid(const struct hpx_record *record)
{
	bool has_token = !hpx_token_is_void(&record->token);

	if (record->attempt == 0 || hpx_mark_is_void(&record->mark) ||
	    record->retention_ms < 0 || record->tombstone_ms < 0 ||
	    (unsigned)record->when_lost >= HPX_WHEN_LOST_COUNT ||
	    (unsigned)record->last_error >= HPX_LAST_ERROR_COUNT)
		return false;
	if (record->point[0] != '\0' && !hpx_point_valid(hpx_span_of(record->point)))
		return false;
	if (hpx_recipe_is_unknown(&record->recipe) && (record->state != HPX_STATE_COMPLETED || record->kept))
		return false; /* R7 */
	switch (record->state) {
	case HPX_STATE_IN_PROGRESS:
		return has_token && record->expires_ms == 0 && !record->kept;
	case HPX_STATE_UNKNOWN:
		return record->expires_ms == 0 && !record->kept;
	case HPX_STATE_FAILED_RETRYABLE:
		return !has_token && record->expires_ms > 0 && !record->kept;
	case HPX_STATE_COMPLETED:
		return record->expires_ms > 0 && (record->status != 0 || !record->kept);
	case HPX_STATE_PENDING:
		return has_token && record->expires_ms > 0 && !record->kept;
	case HPX_STATE_NONE:
	case HPX_STATE_COUNT:
		break;
	}
	return false;
}
