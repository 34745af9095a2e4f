/* The one mover of deliveries. The table says which move is allowed from which
 * state; where more than the state decides, target_of says so. The invariants
 * J1 to J4 stand in the header. */
#include "core/job.h"

#include "base/bytes.h"
#include "base/status.h"

/* One more than the state: 0, where the table names nothing, means "not allowed". */
#define TO(state) (HPX_JOB_##state + 1)
/* The move changes nothing: it was made before, by the same claim. */
#define SAME 255u

static const unsigned char to_state[HPX_JOB_STATE_COUNT][HPX_JOB_MOVE_COUNT] = {
	[HPX_JOB_QUEUED] = {
		[HPX_JOB_MOVE_CLAIM] = TO(SENDING),
		[HPX_JOB_MOVE_APPLY] = TO(DONE),
		[HPX_JOB_MOVE_DISCARD] = TO(DISCARDED),
		[HPX_JOB_MOVE_REQUEUE] = SAME,
	},
	[HPX_JOB_SENDING] = {
		[HPX_JOB_MOVE_DELIVER] = TO(DONE),
		[HPX_JOB_MOVE_POSTPONE] = TO(QUEUED),
		[HPX_JOB_MOVE_LOSE] = TO(UNKNOWN),
		[HPX_JOB_MOVE_REJECT] = TO(DEAD),
		[HPX_JOB_MOVE_SWEEP] = TO(UNKNOWN),
		[HPX_JOB_MOVE_REQUEUE] = SAME,
	},
	[HPX_JOB_DONE] = {
		[HPX_JOB_MOVE_DELIVER] = SAME,
	},
	[HPX_JOB_UNKNOWN] = {
		[HPX_JOB_MOVE_DELIVER] = TO(DONE),
		[HPX_JOB_MOVE_LOSE] = SAME,
		[HPX_JOB_MOVE_REJECT] = TO(DEAD),
		[HPX_JOB_MOVE_APPLY] = TO(DONE),
		[HPX_JOB_MOVE_UNAPPLY] = TO(QUEUED),
		[HPX_JOB_MOVE_DECLINE] = TO(DEAD),
		[HPX_JOB_MOVE_RETRY] = TO(QUEUED),
		[HPX_JOB_MOVE_DISCARD] = TO(DISCARDED),
		[HPX_JOB_MOVE_REQUEUE] = TO(QUEUED),
	},
	[HPX_JOB_DEAD] = {
		[HPX_JOB_MOVE_REJECT] = SAME,
		[HPX_JOB_MOVE_APPLY] = TO(DONE),
		[HPX_JOB_MOVE_RETRY] = TO(QUEUED),
		[HPX_JOB_MOVE_DISCARD] = TO(DISCARDED),
		[HPX_JOB_MOVE_REQUEUE] = TO(QUEUED),
	},
	[HPX_JOB_DISCARDED] = {
		[HPX_JOB_MOVE_DISCARD] = SAME,
		[HPX_JOB_MOVE_REQUEUE] = TO(QUEUED),
	},
};

static const bool matches_token[HPX_JOB_MOVE_COUNT] = {
#define X(name, text, token) [HPX_JOB_MOVE_##name] = token,
	HPX_JOB_MOVE_LIST(X)
#undef X
};

const char *hpx_job_state_name(enum hpx_job_state state)
{
	switch (state) {
#define X(name, number, text) \
	case HPX_JOB_##name: \
		return text;
		HPX_JOB_STATE_LIST(X)
#undef X
	case HPX_JOB_STATE_COUNT:
		break;
	}
	return "?";
}

enum hpx_job_state hpx_job_state_by_name(struct hpx_span name)
{
	for (int state = HPX_JOB_QUEUED; state < HPX_JOB_STATE_COUNT; state++)
		if (hpx_span_eq(name, hpx_span_of(hpx_job_state_name((enum hpx_job_state)state))))
			return (enum hpx_job_state)state;
	return HPX_JOB_STATE_COUNT;
}

const char *hpx_job_move_name(enum hpx_job_move move)
{
	static const char *const names[] = {
#define X(name, text, token) text,
		HPX_JOB_MOVE_LIST(X)
#undef X
	};
	HPX_ASSERT(move < HPX_JOB_MOVE_COUNT);
	return names[move];
}

bool hpx_job_due(const struct hpx_delivery *delivery, const struct hpx_moment *now)
{
	return delivery->state == HPX_JOB_QUEUED &&
	       (delivery->due_ms <= now->wall_ms ||
		delivery->due_ms - now->wall_ms > HPX_JOB_AHEAD_MAX_MS);
}

/* Bounded, because a time further ahead counts as a clock that was set back, and would
 * be due at once. */
static int64_t due_after(const struct hpx_moment *now, int64_t delay_ms)
{
	return now->wall_ms + (delay_ms < HPX_JOB_AHEAD_MAX_MS ? delay_ms : HPX_JOB_AHEAD_MAX_MS);
}

static bool lease_lost(const struct hpx_delivery *delivery, const struct hpx_moment *now)
{
	return delivery->state == HPX_JOB_SENDING && delivery->lease_until_ms <= now->lease_ms;
}

/* J3. A wall clock that is held, or was set back behind the first sending, does not
 * tell how long the target still remembers. */
static bool may_resend(const struct hpx_delivery *delivery, const struct hpx_moment *now)
{
	return !now->hold_expiry && delivery->resend_until_ms != 0 &&
	       now->wall_ms >= delivery->first_sent_ms &&
	       now->wall_ms < delivery->resend_until_ms;
}

/* The sweeper knows no budget: whoever claims the job next checks it. */
static bool has_budget(const struct hpx_delivery *delivery, const struct hpx_job_args *args)
{
	return args->attempts_max == 0 ||
	       delivery->attempt - delivery->budget < args->attempts_max;
}

/* J3, J4: the state after a sending that may have happened, or that a 409 answered. */
static unsigned target_of_lost(const struct hpx_delivery *delivery,
			       const struct hpx_job_args *args)
{
	return has_budget(delivery, args) && may_resend(delivery, &args->now) ? TO(QUEUED) :
										TO(UNKNOWN);
}

static bool may_still_run(const struct hpx_delivery *delivery, const struct hpx_job_args *args)
{
	return delivery->state == HPX_JOB_SENDING && delivery->unsure && args->status == 409;
}

static unsigned target_of_claim(const struct hpx_delivery *delivery,
				const struct hpx_job_args *args)
{
	bool honoured = args->honours_keys_ms > 0 &&
			args->now.wall_ms - delivery->first_sent_ms < args->honours_keys_ms;

	if (delivery->unsure && !(honoured && may_resend(delivery, &args->now)))
		return TO(UNKNOWN);
	if (has_budget(delivery, args))
		return TO(SENDING);
	return delivery->unsure ? TO(UNKNOWN) : TO(DEAD);
}

static unsigned target_of(const struct hpx_delivery *delivery, enum hpx_job_move move,
			  const struct hpx_job_args *args)
{
	unsigned to = to_state[delivery->state][move];

	switch (move) {
	case HPX_JOB_MOVE_CLAIM:
		return to == TO(SENDING) ? target_of_claim(delivery, args) : to;
	case HPX_JOB_MOVE_POSTPONE:
		if (to != TO(QUEUED) || args->unsent || has_budget(delivery, args))
			return to;
		return delivery->unsure ? TO(UNKNOWN) : TO(DEAD);
	case HPX_JOB_MOVE_LOSE:
	case HPX_JOB_MOVE_SWEEP:
		return to == TO(UNKNOWN) ? target_of_lost(delivery, args) : to;
	case HPX_JOB_MOVE_DELIVER:
	case HPX_JOB_MOVE_REJECT:
		return may_still_run(delivery, args) ? target_of_lost(delivery, args) : to;
	default:
		return to;
	}
}

/* Whether the job was sent and is believed not to have happened. The next sending then
 * counts as the first. An unsure job is sent again only while the target knows the
 * key. */
static bool would_be_a_second(const struct hpx_delivery *delivery)
{
	return delivery->attempt > 0 && !delivery->unsure;
}

static bool guarded_move_holds(const struct hpx_delivery *delivery, enum hpx_job_move move,
			       const struct hpx_job_args *args)
{
	switch (move) {
	case HPX_JOB_MOVE_CLAIM:
		return hpx_job_due(delivery, &args->now) && !hpx_token_is_void(&args->token);
	case HPX_JOB_MOVE_SWEEP:
		return args->owner_dead || lease_lost(delivery, &args->now);
	case HPX_JOB_MOVE_RETRY:
		return delivery->state == HPX_JOB_DEAD || args->force;
	case HPX_JOB_MOVE_APPLY:
		return delivery->state != HPX_JOB_QUEUED || would_be_a_second(delivery);
	default:
		return true;
	}
}

bool hpx_provider_id_valid(struct hpx_span id)
{
	for (size_t i = 0; i < id.len; i++)
		if (id.ptr[i] <= ' ' || id.ptr[i] > '~')
			return false;
	return id.len > 0 && id.len < HPX_PROVIDER_ID_SIZE;
}

/* Keeps the visible ASCII of the id. An id without any is none. */
static void keep_provider_id(struct hpx_delivery *delivery, struct hpx_span id)
{
	char kept[HPX_PROVIDER_ID_SIZE] = "";
	size_t len = 0;

	for (size_t i = 0; i < id.len && len < sizeof(kept) - 1; i++)
		if (id.ptr[i] > ' ' && id.ptr[i] <= '~')
			kept[len++] = id.ptr[i];
	if (len > 0)
		memcpy(delivery->provider_id, kept, sizeof(kept));
}

/* Undoes the claim: the job is queued as before. */
static void take_back(struct hpx_delivery *delivery)
{
	HPX_ASSERT(delivery->state == HPX_JOB_QUEUED);
	if (delivery->attempt > delivery->budget)
		delivery->attempt--;
	if (delivery->attempt == 0) {
		delivery->first_sent_ms = 0;
		delivery->resend_until_ms = 0;
	}
}

static void begin_sending(struct hpx_delivery *delivery, const struct hpx_job_args *args)
{
	HPX_ASSERT(delivery->state == HPX_JOB_QUEUED && !hpx_token_is_void(&args->token)); /* J1 */
	if (delivery->attempt < UINT32_MAX)
		delivery->attempt++;
	delivery->token = args->token;
	delivery->owner = args->owner;
	delivery->lease_until_ms = args->now.lease_ms + args->lease_ms;
	if (delivery->first_sent_ms == 0 || !delivery->unsure) {
		delivery->first_sent_ms = args->now.wall_ms;
		delivery->resend_until_ms = args->honours_keys_ms > 0 ?
						    args->now.wall_ms + args->honours_keys_ms :
						    0;
	}
}

static void enter(struct hpx_delivery *delivery, enum hpx_job_move move,
		  enum hpx_job_state state, const struct hpx_job_args *args)
{
	bool lost = move == HPX_JOB_MOVE_LOSE || move == HPX_JOB_MOVE_SWEEP;

	HPX_ASSERT(state != HPX_JOB_SENDING || move == HPX_JOB_MOVE_CLAIM); /* J1 */
	delivery->state = state;
	delivery->changed_ms = args->now.wall_ms;
	if (args->status != 0)
		delivery->status = args->status;
	keep_provider_id(delivery, args->provider_id);
	if (lost)
		delivery->unsure = true;
	if (move == HPX_JOB_MOVE_POSTPONE && args->unsent)
		take_back(delivery);
	if (state == HPX_JOB_QUEUED || state == HPX_JOB_DISCARDED)
		delivery->token = (struct hpx_token){ { 0 } };
	if (state == HPX_JOB_QUEUED)
		delivery->due_ms = due_after(&args->now, args->delay_ms);
	/* After these moves it is certain, or a person says, that nothing happened. */
	if (move == HPX_JOB_MOVE_UNAPPLY || move == HPX_JOB_MOVE_RETRY ||
	    move == HPX_JOB_MOVE_REQUEUE)
		delivery->unsure = false;
	if (move == HPX_JOB_MOVE_RETRY || move == HPX_JOB_MOVE_REQUEUE)
		delivery->budget = delivery->attempt;
}

enum hpx_status hpx_job_move(struct hpx_delivery *delivery, enum hpx_job_move move,
			     const struct hpx_job_args *args)
{
	HPX_ASSERT(delivery->state < HPX_JOB_STATE_COUNT && move < HPX_JOB_MOVE_COUNT);

	if (matches_token[move] && (hpx_token_is_void(&args->token) ||
				    !hpx_token_eq(&delivery->token, &args->token)))
		return HPX_STALE; /* J2 */

	unsigned to = target_of(delivery, move, args);
	if (to == SAME)
		return HPX_OK;
	if (to == 0 || !guarded_move_holds(delivery, move, args))
		return HPX_REFUSED;
	if (to == TO(SENDING))
		begin_sending(delivery, args);
	enter(delivery, move, (enum hpx_job_state)(to - 1), args);
	HPX_ASSERT(hpx_job_valid(delivery));
	return HPX_OK;
}

bool hpx_job_valid(const struct hpx_delivery *delivery)
{
	bool has_token = !hpx_token_is_void(&delivery->token);

	if (hpx_mark_is_void(&delivery->mark) || delivery->budget > delivery->attempt)
		return false;
	switch (delivery->state) {
	case HPX_JOB_QUEUED:
	case HPX_JOB_DISCARDED:
		return !has_token;
	case HPX_JOB_SENDING:
		return has_token && delivery->attempt > 0 && delivery->first_sent_ms > 0;
	case HPX_JOB_DONE:
	case HPX_JOB_UNKNOWN:
	case HPX_JOB_DEAD:
		return true;
	case HPX_JOB_STATE_COUNT:
		break;
	}
	return false;
}

enum hpx_status hpx_job_key(const struct hpx_operation_id *operation,
			    const struct hpx_mark *mark, struct hpx_span name,
			    char ret_key[HPX_JOB_KEY_SIZE])
{
	char reference[HPX_REFERENCE_SIZE];
	struct hpx_operation_id hash;
	enum hpx_status status;

	hpx_reference_print(operation, mark, reference);
	/* The same hash of length-prefixed parts that makes operation ids. */
	status = hpx_operation_id(HPX_SPAN("job"), hpx_span_of(reference), name, &hash);
	if (status != HPX_OK)
		return status;
	hpx_hex_encode(hash.bytes, sizeof(hash.bytes), ret_key);
	return HPX_OK;
}

static bool is_ours_to_mend(unsigned status)
{
	return status == 401 || status == 403 || status == 407 || status == 421;
}

/* A 5xx that nobody further on has lost an answer behind. */
static bool is_own_server_error(unsigned status)
{
	return status / 100 == 5 && status != 502 && status != 504;
}

enum hpx_job_move hpx_job_judge(enum hpx_sent sent, unsigned status, bool has_retry_after,
				bool answers, enum hpx_server_error server_error)
{
	enum hpx_job_move final = answers ? HPX_JOB_MOVE_DELIVER : HPX_JOB_MOVE_REJECT;

	if (sent == HPX_SENT_NOTHING)
		return HPX_JOB_MOVE_POSTPONE;
	if (sent == HPX_SENT_NO_ANSWER)
		return HPX_JOB_MOVE_LOSE;
	if (status / 100 == 2)
		return HPX_JOB_MOVE_DELIVER;
	if (status == 408 || status == 425 || status == 429 || is_ours_to_mend(status) ||
	    (status == 503 && has_retry_after))
		return HPX_JOB_MOVE_POSTPONE;
	if (is_own_server_error(status) && server_error == HPX_SERVER_ERROR_RETRY)
		return HPX_JOB_MOVE_POSTPONE;
	if (is_own_server_error(status) && server_error == HPX_SERVER_ERROR_REPLAY)
		return final;
	return status < 200 || status >= 500 ? HPX_JOB_MOVE_LOSE : final;
}

enum hpx_job_move hpx_job_judge_resent(enum hpx_job_move judged, unsigned status)
{
	return judged == HPX_JOB_MOVE_POSTPONE || status == 409 ? HPX_JOB_MOVE_LOSE : judged;
}
