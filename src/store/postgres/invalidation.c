/* What people removed, from the history. An event carries the time at which its
 * row was judged, and is seen when its transaction has committed, later and in
 * any order. So each query looks back over more time than such a
 * transaction can last, and what the one before it did not see is new.
 *
 * How long one can last: behind its look at the clock, a FORGET or RESOLVE runs
 * at most eight statements (the answer or its job, four removals or a row and its
 * answer, the event, the mark, the commit), each of at most ten seconds
 * (statement_timeout, which the wait for a standby is part of), with two pauses of
 * at most five (idle_in_transaction_session_timeout): 90 seconds. A clock that is
 * set ahead between two queries moves the second one's view no further than the
 * first one's. What somebody deletes by SQL of their own leaves no event, and no
 * node hears of it before the answer expires or the gateway is started again.
 *
 * A new connection may be to another server, which may never have had what this
 * one told: it begins anew. */
#include <stdlib.h>

#include "store/postgres/driver.h"

#define LOOK_BACK_MS 120000

/* What the last answer held, in order. */
struct hpx_pg_last_removals {
	unsigned connection; /* the one it came by; 0: none */
	int64_t now_ms;      /* the database's clock then */
	size_t count;
	int64_t seq[HPX_REMOVALS_MAX];
};

static bool was_reported(const struct hpx_pg_last_removals *last, int64_t seq, size_t *from)
{
	while (*from < last->count && last->seq[*from] < seq)
		(*from)++;
	return *from < last->count && last->seq[*from] == seq;
}

static bool read_row(const PGresult *result, int row, int64_t *ret_seq,
		     struct hpx_operation_id *ret_id)
{
	return hpx_pg_int(result, row, 1, INT64_MIN, INT64_MAX, ret_seq) &&
	       hpx_pg_fixed(result, row, 2, ret_id->bytes, sizeof(ret_id->bytes));
}

/* Both lists are in order: what is only in the new one. */
static void compare(const PGresult *result, const struct hpx_pg_last_removals *before,
		    struct hpx_pg_last_removals *after, struct hpx_removals *removals)
{
	size_t from = 0;

	for (int row = 0; row < PQntuples(result); row++) {
		struct hpx_operation_id id;
		int64_t seq;
		if (PQgetisnull(result, row, 1))
			return; /* no event at all */
		if (after->count == HPX_REMOVALS_MAX || !read_row(result, row, &seq, &id)) {
			removals->all = true;
			return;
		}
		after->seq[after->count++] = seq;
		if (!was_reported(before, seq, &from))
			removals->ids[removals->count++] = id;
	}
}

static enum hpx_status take(struct hpx_pg_reader *r, const PGresult *result,
			    struct hpx_removals *removals)
{
	struct hpx_pg_last_removals *after = calloc(1, sizeof(*after));

	if (after == NULL)
		return HPX_NOMEM;
	if (PQntuples(result) < 1 ||
	    !hpx_pg_int(result, 0, 0, 0, INT64_MAX / 4, &after->now_ms)) {
		free(after);
		return HPX_CORRUPT;
	}
	after->connection = r->connections;
	removals->all = r->last->connection != after->connection;
	removals->count = 0;
	compare(result, r->last, after, removals);
	free(r->last);
	r->last = after;
	return HPX_OK;
}

enum hpx_status hpx_pg_removals(struct hpx_store_reader *reader,
				struct hpx_removals *ret_removals)
{
	struct hpx_pg_reader *r = (struct hpx_pg_reader *)reader;
	struct hpx_pg_params params = { .count = 0 };
	PGresult *result = NULL;
	enum hpx_status status;

	if (r->last == NULL)
		r->last = calloc(1, sizeof(*r->last));
	if (r->last == NULL)
		return HPX_NOMEM;
	hpx_pg_add_int8(&params, r->last->connection != 0 ? r->last->now_ms : INT64_MAX);
	hpx_pg_add_int8(&params, LOOK_BACK_MS);
	hpx_pg_add_int8(&params, HPX_REMOVALS_MAX + 1);
	status = hpx_pg_ask(reader, HPX_PG_REMOVALS, &params, &result);
	if (status == HPX_OK)
		status = take(r, result, ret_removals);
	PQclear(result);
	return status;
}
