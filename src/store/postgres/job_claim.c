/* CLAIM: due jobs begin to be sent. The rows are taken by one statement that
 * skips what other claims hold, so any number of workers share the work and
 * none waits; the claims are written with the commit. Two round trips, however
 * many jobs.
 *
 * A claim of what may not be sent any more changes its operation too, if the
 * job answers. That is rare, and costs another look, in which the operation's
 * row is locked as well. */
#include "store/postgres/outbox.h"

/* Beyond every time that a row can hold, with the clock added to it. */
#define EVER_MS (INT64_MAX / 4)

struct claiming {
	struct hpx_pg_store *s;
	struct hpx_store_op *op;
	struct hpx_token token; /* of all claims of this op */
	struct hpx_pg_outbox outbox;
	bool again; /* a commit that was not heard of took them */
	char *problem;
};

static size_t room_of(const struct hpx_store_op *op)
{
	size_t room = 0;

	for (size_t i = 0; i < op->claim.claim_count && room < HPX_PG_ITEMS_MAX; i++)
		room += op->claim.claims[i].room;
	return room < HPX_PG_ITEMS_MAX ? room : HPX_PG_ITEMS_MAX;
}

/* ---- asking ---- */

/* The time from which, and until which, a job is due. */
static void add_window(struct claiming *c, struct hpx_pg_params *params, int64_t from_ms,
		       int64_t until_ms)
{
	int64_t shift_ms = atomic_load(&c->s->base.wall_shift_ms);

	hpx_pg_add_int8(params, from_ms + shift_ms);
	hpx_pg_add_int8(params, until_ms + shift_ms);
}

/* What is due, and what is due so late that the clock must have been set back:
 * the same statement over two windows. */
static void send_windows(struct claiming *c, struct hpx_pg_pipe *pipe, struct hpx_pg_columns *columns)
{
	struct hpx_pg_params params = { .count = 0 };
	enum hpx_status status = hpx_pg_columns_param(columns, &params);

	if (status != HPX_OK && pipe->status == HPX_OK)
		pipe->status = status;
	struct hpx_pg_params ahead = params;
	add_window(c, &params, -EVER_MS, 0);
	add_window(c, &ahead, HPX_JOB_AHEAD_MAX_MS, EVER_MS);
	hpx_pg_send(pipe, HPX_PG_CLAIM, &params);
	hpx_pg_send(pipe, HPX_PG_CLAIM, &ahead);
}

static void send_claims(struct claiming *c, struct hpx_pg_pipe *pipe)
{
	static const enum hpx_pg_type types[] = { HPX_PG_TEXT, HPX_PG_INT8 };
	struct hpx_pg_columns columns;

	hpx_pg_columns_init(&columns, types, 2);
	for (size_t i = 0; i < c->op->claim.claim_count; i++) {
		hpx_pg_put_text(&columns, c->op->claim.claims[i].target);
		hpx_pg_put_int(&columns, c->op->claim.claims[i].room);
	}
	send_windows(c, pipe, &columns);
	hpx_pg_columns_done(&columns);
}

static void send_recognise(struct claiming *c, struct hpx_pg_pipe *pipe)
{
	struct hpx_pg_params params = { .count = 0 };

	hpx_pg_add_bytes(&params, hpx_span(c->token.bytes, sizeof(c->token.bytes)));
	hpx_pg_add_int8(&params, atomic_load(&c->s->base.lease_shift_ms));
	hpx_pg_send(pipe, HPX_PG_CLAIMED, &params);
}

/* ---- taking ---- */

static const struct hpx_claim *claim_of(const struct claiming *c, const struct hpx_job_entry *entry)
{
	for (size_t i = 0; i < c->op->claim.claim_count; i++)
		if (hpx_span_eq(c->op->claim.claims[i].target, entry->job.target))
			return &c->op->claim.claims[i];
	return NULL;
}

static unsigned taken_for(const struct claiming *c, const struct hpx_claim *claim)
{
	unsigned count = 0;

	for (size_t i = 0; i < c->outbox.count; i++)
		count += claim_of(c, c->outbox.item[i].entry) == claim;
	return count;
}

/* Takes the entry over, or frees it where there is no room for it. */
static void take_entry(struct claiming *c, struct hpx_job_entry *entry)
{
	const struct hpx_claim *claim = claim_of(c, entry);
	size_t count = c->outbox.count;

	if (claim == NULL || (!c->again && taken_for(c, claim) >= claim->room) ||
	    count == c->outbox.max) {
		hpx_job_entry_free(entry);
		return;
	}
	hpx_pg_outbox_add_job(&c->outbox, entry->delivery.number);
	struct hpx_pg_item *item = &c->outbox.item[count];
	item->entry = entry;
	item->id = entry->delivery.operation;
	item->locked = true;
	item->found.job_exists = true;
	item->found.job_readable = entry->readable;
	item->found.delivery = entry->delivery;
}

static void take_rows(struct claiming *c, struct hpx_pg_pipe *pipe, bool wanted)
{
	PGresult *result = hpx_pg_take(pipe);

	for (int row = 0; wanted && result != NULL && row < PQntuples(result); row++) {
		struct hpx_job_entry *entry = hpx_pg_job_read(result, row);
		if (entry != NULL)
			take_entry(c, entry);
		else
			pipe->status = HPX_NOMEM;
	}
	PQclear(result);
}

static enum hpx_status look(struct claiming *c)
{
	struct hpx_pg_pipe pipe = hpx_pg_pipe(&c->s->writer, c->problem);

	hpx_pg_send(&pipe, HPX_PG_BEGIN, NULL);
	send_recognise(c, &pipe);
	send_claims(c, &pipe);
	hpx_pg_send(&pipe, HPX_PG_CLOCK, NULL);
	PQclear(hpx_pg_take(&pipe));
	c->again = true;
	take_rows(c, &pipe, true);
	c->again = c->outbox.count > 0;
	take_rows(c, &pipe, !c->again);
	take_rows(c, &pipe, !c->again);
	hpx_pg_take_time(c->s, &pipe, &c->outbox.look.now);
	c->outbox.look.begun = true;
	return hpx_pg_end(&pipe);
}

/* ---- deciding ---- */

static bool decide(struct claiming *c, struct hpx_pg_item *item)
{
	return hpx_outbox_claim(&item->found, claim_of(c, item->entry), &c->token,
				c->s->base.owner, &c->outbox.look.now, &item->change);
}

static bool ends(const struct hpx_pg_item *item)
{
	return item->change.delivery.state != HPX_JOB_SENDING;
}

/* Whether a claim ends a job whose operation was not looked at yet. */
static bool wants_closer_look(struct claiming *c)
{
	for (size_t i = 0; i < c->outbox.count; i++) {
		struct hpx_pg_item *item = &c->outbox.item[i];
		if (item->found.delivery.answers && decide(c, item) && ends(item))
			return true;
	}
	return false;
}

static void decide_all(struct claiming *c)
{
	for (size_t i = 0; i < c->outbox.count; i++) {
		struct hpx_pg_item *item = &c->outbox.item[i];
		if (!item->locked || !decide(c, item) ||
		    (ends(item) && hpx_pg_outbox_is_held(&c->outbox, item)))
			continue;
		hpx_pg_outbox_take(&c->outbox, item, c->op);
	}
}

static void give(struct claiming *c)
{
	struct hpx_job_entry **tail = &c->op->claim.jobs;

	for (size_t i = 0; i < c->outbox.count; i++) {
		struct hpx_pg_item *item = &c->outbox.item[i];
		if (!c->again && (!item->changed || ends(item)))
			continue;
		*tail = item->entry;
		tail = &item->entry->next;
		item->entry = NULL;
	}
}

static enum hpx_status run(struct claiming *c)
{
	enum hpx_status status = look(c);

	if (status == HPX_OK && !c->again && wants_closer_look(c))
		status = hpx_pg_outbox_look(c->s, &c->outbox, true, c->problem);
	if (status != HPX_OK)
		return hpx_pg_undo(c->s, status);
	if (!c->again)
		decide_all(c);
	status = hpx_pg_outbox_commit(c->s, &c->outbox, c->problem);
	if (status == HPX_OK)
		give(c);
	return status;
}

/* The token is the op's, where its submitter made one: run again after a commit
 * that was not heard of, the op finds by it what it took. */
enum hpx_status hpx_pg_claim(struct hpx_pg_store *s, struct hpx_store_op *op, char *problem)
{
	struct claiming c = { .s = s, .op = op, .token = op->token, .problem = problem };
	size_t room = room_of(op);
	enum hpx_status status;

	HPX_ASSERT(op->verb == HPX_VERB_CLAIM);
	if (room == 0)
		return HPX_OK;
	if (hpx_token_is_void(&c.token))
		hpx_token_make(&c.token);
	status = hpx_pg_outbox_init(&c.outbox, room);
	if (status != HPX_OK)
		return status;
	status = run(&c);
	hpx_pg_outbox_done(&c.outbox);
	return status;
}
