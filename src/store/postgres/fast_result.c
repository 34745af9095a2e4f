/* What the short way met: rows that were not there and are now, ends that found
 * their row, and rows that were there, of which a retry is told before the commit
 * of the others. */
#include <stdlib.h>

#include "base/crash_point.h"
#include "store/postgres/fast_path.h"

#define TIME_MAX (INT64_MAX / 4)

/* `at_ms`: what the rules' time was by the database's clock. */
static void mend_times(struct hpx_pg_walk *walk, struct hpx_store_op *op, int64_t at_ms)
{
	struct hpx_record *record = &op->decision.record;
	int64_t off_ms = at_ms - walk->now.wall_ms;

	record->changed_ms += off_ms;
	op->judged_ms += off_ms;
	if (op->verb == HPX_VERB_RESERVE) {
		record->created_ms += off_ms;
		record->lease_until_ms += off_ms;
	} else {
		record->expires_ms += off_ms;
	}
}

/* The first op about it; NULL where there is none. */
static struct hpx_pg_walker *walker_of(struct hpx_pg_walk *walk, const struct hpx_operation_id *id)
{
	struct hpx_pg_walker wanted = { .id = *id };
	struct hpx_pg_walker *found =
		bsearch(&wanted, walk->walkers, walk->count, sizeof(*walk->walkers), hpx_pg_walker_order);

	if (found == NULL)
		return NULL;
	while (found > walk->walkers && hpx_pg_walker_order(found - 1, found) == 0)
		found--;
	return found;
}

static bool take_new(struct hpx_pg_walk *walk, const struct hpx_operation_id *id,
		     enum hpx_verb verb, int64_t at_ms)
{
	struct hpx_pg_walker *walker = walker_of(walk, id);

	if (walker == NULL || !hpx_pg_goes_as(walker, verb))
		return false;
	walker->there = true;
	mend_times(walk, walker->op, at_ms);
	return true;
}

/* Nothing of it rests on what this batch writes. */
static void tell(struct hpx_pg_walk *walk, struct hpx_pg_walker *walker,
		 const struct hpx_pg_slot *seen, const struct hpx_moment *now)
{
	struct hpx_change nothing;

	hpx_pg_put_back(walker->op);
	hpx_pg_decide(seen, walker->op, now, &nothing);
	walker->goes = walker->looks = false;
	walk->todo[walker->at] = false;
	hpx_store_release(&walk->s->base, &walk->ops[walker->at]);
}

/* All ops about it, or none. */
static bool take_seen(struct hpx_pg_walk *walk, const struct hpx_pg_absent *absent)
{
	struct hpx_pg_walker *first = walker_of(walk, &absent->id);
	int64_t off_ms = absent->at_ms - walk->now.wall_ms;
	struct hpx_moment now = { .wall_ms = walk->now.wall_ms + off_ms,
				  .lease_ms = walk->now.lease_ms + off_ms };
	size_t from, to;

	if (first == NULL || !first->looks)
		return false;
	from = (size_t)(first - walk->walkers);
	to = hpx_pg_walk_end(walk, from);
	for (size_t i = from; i < to; i++)
		if (!absent->seen.stored ||
		    !hpx_pg_would_only_tell(&absent->seen, walk->walkers[i].op, &now))
			return true;
	for (size_t i = from; i < to; i++)
		tell(walk, &walk->walkers[i], &absent->seen, &now);
	return true;
}

void hpx_pg_take_reservations(struct hpx_pg_walk *walk, struct hpx_pg_pipe *pipe)
{
	PGresult *result = hpx_pg_take(pipe);
	bool ok = true;

	for (int row = 0; ok && result != NULL && row < PQntuples(result); row++) {
		struct hpx_pg_absent absent;
		ok = hpx_pg_absent_read(result, row, &absent);
		if (ok && absent.inserted)
			ok = take_new(walk, &absent.id, HPX_VERB_RESERVE, absent.at_ms);
		else if (ok)
			ok = take_seen(walk, &absent);
		hpx_answer_free(absent.seen.kept);
	}
	if (!ok)
		pipe->status = HPX_CORRUPT;
	PQclear(result);
}

void hpx_pg_take_completions(struct hpx_pg_walk *walk, struct hpx_pg_pipe *pipe)
{
	PGresult *result;
	struct hpx_operation_id id;
	int64_t at_ms;

	PQclear(hpx_pg_take(pipe)); /* the locks' */
	result = hpx_pg_take(pipe);
	for (int row = 0; result != NULL && row < PQntuples(result); row++)
		if (!hpx_pg_id_read(result, row, &id) ||
		    !hpx_pg_int(result, row, 1, -TIME_MAX, TIME_MAX, &at_ms) ||
		    !take_new(walk, &id, HPX_VERB_COMPLETE, at_ms))
			pipe->status = HPX_CORRUPT;
	PQclear(result);
}

void hpx_pg_walk_settle(struct hpx_pg_walk *walk)
{
	bool any = false;

	for (size_t i = 0; i < walk->count; i++) {
		const struct hpx_pg_walker *walker = &walk->walkers[i];
		if (walker->there)
			walk->todo[walker->at] = false;
		else if (walker->goes)
			hpx_pg_put_back(walker->op);
		any |= walker->there;
	}
	if (any)
		HPX_CRASH_POINT(batch_committed);
}
