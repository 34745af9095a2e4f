/* The leases of the server's own attempts: in memory, keyed by token and id. No row is
 * written for them or for their renewals, because nobody outlives the server's
 * process to need them: whoever takes the server's lock next treats every attempt of a
 * server as lost.
 *
 * A lease is entered before its reservation is written, and leaves once the end of its
 * attempt is committed. A commit that failed, or was reported as failed, leaves it
 * here: the sweeper looks at the row and drops a lease that no row has. The committer's
 * thread writes; readers look at any time. */
#include <stdlib.h>

#include "store/sqlite/driver.h"

#define ROOM_MIN 64

struct hpx_sqlite_held {
	struct hpx_token token; /* void: the place is free */
	struct hpx_operation_id id;
	int64_t until_ms;   /* lease clock */
	int64_t generation; /* 0: the attempt is an aside row */
	int64_t number;
};

enum hpx_status hpx_sqlite_leases_init(struct hpx_sqlite_leases *leases)
{
	return pthread_mutex_init(&leases->mutex, NULL) == 0 ? HPX_OK : HPX_NOMEM;
}

void hpx_sqlite_leases_done(struct hpx_sqlite_leases *leases)
{
	free(leases->held);
	free(leases->ended);
	pthread_mutex_destroy(&leases->mutex);
}

/* Tokens are random: they are their own hash. */
static size_t place_of(const struct hpx_sqlite_leases *leases, const struct hpx_token *token)
{
	uint64_t hash;

	memcpy(&hash, token->bytes, sizeof(hash));
	return (size_t)(hash * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (leases->room - 1);
}

/* Its place, or the free one where it would be. */
static struct hpx_sqlite_held *look(const struct hpx_sqlite_leases *leases,
				    const struct hpx_token *token, const struct hpx_operation_id *id)
{
	size_t at = place_of(leases, token);

	HPX_ASSERT(leases->count < leases->room);
	while (!hpx_token_is_void(&leases->held[at].token) &&
	       !(hpx_token_eq(&leases->held[at].token, token) &&
		 hpx_operation_id_eq(&leases->held[at].id, id)))
		at = (at + 1) & (leases->room - 1);
	return &leases->held[at];
}

static bool grow(struct hpx_sqlite_leases *leases)
{
	struct hpx_sqlite_leases larger = { .room = leases->room != 0 ? 2 * leases->room : ROOM_MIN };

	if (leases->room != 0 && leases->count < leases->room / 2)
		return true;
	larger.held = calloc(larger.room, sizeof(*larger.held));
	if (larger.held == NULL)
		return false;
	for (size_t i = 0; i < leases->room; i++)
		if (!hpx_token_is_void(&leases->held[i].token))
			*look(&larger, &leases->held[i].token, &leases->held[i].id) = leases->held[i];
	free(leases->held);
	leases->held = larger.held;
	leases->room = larger.room;
	return true;
}

enum hpx_status hpx_sqlite_lease_hold(struct hpx_sqlite_leases *leases,
				      const struct hpx_record *record, int64_t generation,
				      int64_t number)
{
	enum hpx_status status = HPX_NOMEM;

	HPX_ASSERT(!hpx_token_is_void(&record->token));
	pthread_mutex_lock(&leases->mutex);
	if (grow(leases)) {
		struct hpx_sqlite_held *held = look(leases, &record->token, &record->id);
		leases->count += hpx_token_is_void(&held->token);
		*held = (struct hpx_sqlite_held){ record->token, record->id, record->lease_until_ms,
						  generation, number };
		status = HPX_OK;
	}
	pthread_mutex_unlock(&leases->mutex);
	return status;
}

int64_t hpx_sqlite_lease_until(struct hpx_sqlite_leases *leases, const struct hpx_token *token,
			       const struct hpx_operation_id *id)
{
	int64_t until_ms = 0;

	pthread_mutex_lock(&leases->mutex);
	if (leases->count > 0 && !hpx_token_is_void(token)) {
		const struct hpx_sqlite_held *held = look(leases, token, id);
		until_ms = hpx_token_is_void(&held->token) ? 0 : held->until_ms;
	}
	pthread_mutex_unlock(&leases->mutex);
	return until_ms;
}

/* Those behind a gap that belong before it move up. */
static void drop(struct hpx_sqlite_leases *leases, const struct hpx_token *token,
		 const struct hpx_operation_id *id)
{
	struct hpx_sqlite_held *held, moved;
	size_t at;

	if (leases->count == 0 || hpx_token_is_void(token))
		return;
	held = look(leases, token, id);
	if (hpx_token_is_void(&held->token))
		return;
	*held = (struct hpx_sqlite_held){ .until_ms = 0 };
	leases->count--;
	at = (size_t)(held - leases->held);
	for (at = (at + 1) & (leases->room - 1); !hpx_token_is_void(&leases->held[at].token);
	     at = (at + 1) & (leases->room - 1)) {
		moved = leases->held[at];
		leases->held[at] = (struct hpx_sqlite_held){ .until_ms = 0 };
		*look(leases, &moved.token, &moved.id) = moved;
	}
}

void hpx_sqlite_lease_drop(struct hpx_sqlite_leases *leases, const struct hpx_token *token,
			   const struct hpx_operation_id *id)
{
	pthread_mutex_lock(&leases->mutex);
	drop(leases, token, id);
	pthread_mutex_unlock(&leases->mutex);
}

/* ---- ends, which count once they are committed ---- */

/* Without the memory to remember it, the sweeper finds out later. */
void hpx_sqlite_lease_end(struct hpx_sqlite_leases *leases, const struct hpx_token *token,
			  const struct hpx_operation_id *id)
{
	if (leases->ended_count == leases->ended_room) {
		size_t room = leases->ended_room != 0 ? 2 * leases->ended_room : ROOM_MIN;
		struct hpx_sqlite_due_lease *grown = reallocarray(leases->ended, room, sizeof(*grown));
		if (grown == NULL)
			return;
		leases->ended = grown;
		leases->ended_room = room;
	}
	leases->ended[leases->ended_count++] = (struct hpx_sqlite_due_lease){ *token, *id };
}

void hpx_sqlite_leases_commit(struct hpx_sqlite_leases *leases, bool committed)
{
	pthread_mutex_lock(&leases->mutex);
	for (size_t i = 0; i < leases->ended_count && committed; i++)
		drop(leases, &leases->ended[i].token, &leases->ended[i].id);
	pthread_mutex_unlock(&leases->mutex);
	leases->ended_count = 0;
}

/* ---- for the sweeper and for generations ---- */

size_t hpx_sqlite_leases_due(struct hpx_sqlite_leases *leases, int64_t now_ms,
			     struct hpx_sqlite_due_lease *due, size_t max)
{
	size_t count = 0;

	pthread_mutex_lock(&leases->mutex);
	for (size_t i = 0; i < leases->room && count < max; i++)
		if (!hpx_token_is_void(&leases->held[i].token) && leases->held[i].until_ms <= now_ms)
			due[count++] = (struct hpx_sqlite_due_lease){ leases->held[i].token,
								      leases->held[i].id };
	pthread_mutex_unlock(&leases->mutex);
	return count;
}

int64_t hpx_sqlite_leases_least(struct hpx_sqlite_leases *leases, int64_t generation)
{
	int64_t least = INT64_MAX;

	pthread_mutex_lock(&leases->mutex);
	for (size_t i = 0; i < leases->room; i++) {
		const struct hpx_sqlite_held *held = &leases->held[i];
		if (!hpx_token_is_void(&held->token) && held->generation == generation &&
		    held->number < least)
			least = held->number;
	}
	pthread_mutex_unlock(&leases->mutex);
	return least;
}

uint64_t hpx_sqlite_leases_plain(struct hpx_sqlite_leases *leases)
{
	uint64_t count = 0;

	pthread_mutex_lock(&leases->mutex);
	for (size_t i = 0; i < leases->room; i++)
		count += !hpx_token_is_void(&leases->held[i].token) && leases->held[i].generation != 0;
	pthread_mutex_unlock(&leases->mutex);
	return count;
}
