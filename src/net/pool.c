/* The pool of connections to an upstream, and which idle one is used again: see
 * pool.h for the states and invariants. */
#include "net/pool.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"

/* No more connections than this are opened only because the others were not silent
 * long enough: an upstream may hold a thread for each connection, and have none left
 * for a new one. */
#define OPEN_FOR_SILENCE_MAX 2
#define WATCHED_AT_ONCE_MAX 4
/* No server closes an idle connection sooner, with or without a 408. */
#define IDLE_408_MIN_US (1000 * 1000)
/* How long what the poll of this turn saw may count. */
#define POLL_TRUST_US 2000

static void check_counts(const struct hpx_pool *pool)
{
	HPX_ASSERT(pool->idle <= pool->open);
	HPX_ASSERT((pool->idle == 0) == (pool->newest == NULL));
	HPX_ASSERT((pool->newest == NULL) == (pool->oldest == NULL));
}

static void unlink_idle(struct hpx_conn *conn)
{
	struct hpx_pool *pool = conn->pool;

	*(conn->newer != NULL ? &conn->newer->older : &pool->newest) = conn->older;
	*(conn->older != NULL ? &conn->older->newer : &pool->oldest) = conn->newer;
	conn->newer = NULL;
	conn->older = NULL;
	HPX_ASSERT(pool->idle > 0);
	pool->idle--;
}

void hpx_conn_close(struct hpx_conn *conn)
{
	hpx_transport_close(conn->transport);
	hpx_pool_leave(conn->pool);
	free(conn);
}

static void drop_idle(struct hpx_conn *conn)
{
	unlink_idle(conn);
	hpx_conn_close(conn);
}

static void drop_all_idle(struct hpx_pool *pool)
{
	while (pool->oldest != NULL)
		drop_idle(pool->oldest);
}

void hpx_pool_refresh(struct hpx_pool *pool)
{
	if (pool->state == NULL)
		return;
	/* The connections that were kept only to be watched are not needed any more. */
	bool watched = hpx_upstream_is_watched(pool->state);
	if (watched && pool->watching)
		drop_all_idle(pool);
	pool->watching = !watched;
	uint64_t strays = atomic_load_explicit(&pool->state->strays, memory_order_relaxed);
	if (strays == pool->strays_seen)
		return;
	pool->strays_seen = strays;
	drop_all_idle(pool);
}

void hpx_pool_move(struct hpx_pool *pool, uint64_t endpoint)
{
	pool->endpoint = endpoint;
	drop_all_idle(pool);
}

void hpx_pool_stray(struct hpx_pool *pool)
{
	if (pool->state != NULL)
		hpx_upstream_note_stray(pool->state, pool->quarantine_ms);
	hpx_pool_refresh(pool);
	drop_all_idle(pool);
}

static uint64_t idle_us(const struct hpx_conn *conn, int64_t now_us)
{
	return now_us > conn->idle_since_us ? (uint64_t)(now_us - conn->idle_since_us) : 0;
}

/* RFC 9110 §15.5.9: a server that is about to close an idle connection may say so
 * with a 408. A second answer to the last request does not come that late. */
static bool is_idle_408(const struct hpx_conn *conn, struct hpx_span bytes)
{
	return (hpx_span_starts(bytes, HPX_SPAN("HTTP/1.1 408 ")) ||
		hpx_span_starts(bytes, HPX_SPAN("HTTP/1.0 408 "))) &&
	       idle_us(conn, hpx_loop_boot_us(conn->pool->loop)) >= IDLE_408_MIN_US;
}

static void on_stray_data(void *user, struct hpx_span bytes)
{
	struct hpx_conn *conn = user;

	if (is_idle_408(conn, bytes))
		drop_idle(conn);
	else
		hpx_pool_stray(conn->pool);
}

static void on_idle_end(void *user, enum hpx_status status)
{
	(void)status;
	drop_idle(user);
}

static const struct hpx_transport_events idle_events = { on_stray_data, on_idle_end, NULL };

/* How long a connection may be idle at most. */
static uint64_t idle_limit(const struct hpx_conn *conn, uint64_t limit_ms)
{
	return conn->usable_ms < limit_ms ? conn->usable_ms : limit_ms;
}

static void sweep(uv_timer_t *timer)
{
	struct hpx_pool *pool = timer->data;
	int64_t now_us = hpx_loop_boot_us(pool->loop);
	uint64_t next_ms = pool->idle_max_ms;
	struct hpx_conn *newer;

	for (struct hpx_conn *conn = pool->oldest; conn != NULL; conn = newer) {
		uint64_t limit = idle_limit(conn, pool->idle_max_ms);
		uint64_t idle = idle_us(conn, now_us) / 1000;
		newer = conn->newer;
		if (idle >= limit)
			drop_idle(conn);
		else if (limit - idle < next_ms)
			next_ms = limit - idle;
	}
	if (pool->idle > 0)
		uv_timer_start(timer, sweep, next_ms, 0);
}

void hpx_pool_init(struct hpx_pool *pool, struct hpx_loop *loop)
{
	pool->loop = loop;
	pool->open = 0;
	pool->idle = 0;
	pool->newest = NULL;
	pool->oldest = NULL;
	uv_timer_init(&loop->uv, &pool->sweep);
	pool->sweep.data = pool;
}

void hpx_pool_done(struct hpx_pool *pool, uv_close_cb on_done)
{
	drop_all_idle(pool);
	HPX_ASSERT(pool->open == 0);
	uv_close((uv_handle_t *)&pool->sweep, on_done);
}

/* How long a connection must have been silent after its last answer. Until the
 * upstream has been watched: long enough to see a second answer. After that: as long
 * as its own answers took. Where a stray answer was taken for the last request's,
 * the true one is still to come, and must not become the next request's. */
static uint64_t silence_us(const struct hpx_pool *pool, const struct hpx_conn *conn,
			   uint64_t idle_max_ms, bool guarded)
{
	uint64_t most = HPX_UPSTREAM_SILENCE_MS * 1000ull;

	if (pool->state == NULL)
		return 0;
	/* Where no connection may be idle for that long: half of the time it may. */
	if (most > idle_max_ms * 500)
		most = idle_max_ms * 500;
	if (!hpx_upstream_is_watched(pool->state))
		return most;
	if (!guarded)
		return 0;
	return conn->slowest_us < most ? conn->slowest_us : most;
}

static struct hpx_conn *use_idle(struct hpx_conn *conn, uint64_t silent_us)
{
	struct hpx_pool *pool = conn->pool;

	if (pool->state != NULL && silent_us >= HPX_UPSTREAM_SILENCE_MS * 1000ull)
		hpx_upstream_note_silent(pool->state);
	unlink_idle(conn);
	return conn;
}

/* Whether the poll of this turn has looked at the connection while it was idle, and
 * saw nothing: an end or bytes would have been reported before the deferred calls, from
 * which connections are taken. A process that was stopped in between looks again. */
static bool was_polled(const struct hpx_conn *conn, int64_t now_us)
{
	const struct hpx_loop *loop = conn->pool->loop;

	HPX_ASSERT(conn->kept_turn <= loop->turn);
	return conn->kept_turn < loop->turn && loop->is_polled && loop->boot_us != 0 &&
	       now_us - loop->boot_us < POLL_TRUST_US;
}

/* The check right before use, unless the poll of this very turn has made it. A
 * connection that has ended is closed; one that has bytes waiting closes all idle
 * ones. */
static bool is_still_good(struct hpx_conn *conn, int64_t now_us)
{
	if (was_polled(conn, now_us) ? hpx_transport_is_open(conn->transport) :
				       !hpx_transport_is_stale(conn->transport))
		return true;
	if (hpx_transport_has_bytes(conn->transport))
		hpx_pool_stray(conn->pool);
	else
		drop_idle(conn);
	return false;
}

/* The newest connection that was silent long enough; `*ret_next` is the oldest one
 * that was not. */
static struct hpx_conn *find_idle(struct hpx_pool *pool, uint64_t idle_max_ms, bool guarded,
				  int64_t now_us, struct hpx_conn **ret_next)
{
	struct hpx_conn *older;

	for (struct hpx_conn *conn = pool->newest; conn != NULL; conn = older) {
		uint64_t silent_us = idle_us(conn, now_us);
		older = conn->older;
		if (silent_us / 1000 >= idle_limit(conn, idle_max_ms))
			continue;
		if (silent_us < silence_us(pool, conn, idle_max_ms, guarded))
			*ret_next = conn;
		else if (is_still_good(conn, now_us))
			return use_idle(conn, silent_us);
		else if (pool->oldest == NULL)
			break;
	}
	return NULL;
}

struct hpx_conn *hpx_pool_take(struct hpx_pool *pool, uint64_t idle_max_ms, bool guarded)
{
	struct hpx_conn *next = NULL;
	/* The clock itself: a process that was stopped in this turn must not take a
	 * connection for younger than it is. */
	int64_t now_us = hpx_clock_boot_us();

	check_counts(pool);
	hpx_pool_refresh(pool);
	if (guarded && pool->state != NULL && hpx_upstream_in_quarantine(pool->state))
		return NULL;
	struct hpx_conn *found = find_idle(pool, idle_max_ms, guarded, now_us, &next);
	if (found == NULL && pool->oldest != NULL && next != NULL &&
	    (pool->open >= OPEN_FOR_SILENCE_MAX || pool->open >= pool->open_max) &&
	    hpx_upstream_is_watched(pool->state) && is_still_good(next, now_us))
		found = use_idle(next, 0);
	return found;
}

/* The idle connection that is closed in favour of another: the oldest, which is of
 * the least use. Until the upstream has been watched the newest, because watching
 * takes old ones. */
static struct hpx_conn *least_useful(struct hpx_pool *pool)
{
	if (pool->state != NULL && !hpx_upstream_is_watched(pool->state))
		return pool->newest;
	return pool->oldest;
}

void hpx_pool_enter(struct hpx_pool *pool)
{
	if (pool->open >= pool->open_max && pool->idle > 0)
		drop_idle(least_useful(pool));
	pool->open++;
}

void hpx_pool_leave(struct hpx_pool *pool)
{
	HPX_ASSERT(pool->open > pool->idle);
	pool->open--;
}

struct hpx_conn *hpx_pool_adopt(struct hpx_pool *pool, struct hpx_transport *transport,
				uint64_t endpoint)
{
	struct hpx_conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL) {
		hpx_transport_close(transport);
		hpx_pool_leave(pool);
		return NULL;
	}
	conn->pool = pool;
	conn->transport = transport;
	conn->usable_ms = UINT64_MAX;
	conn->endpoint = endpoint;
	return conn;
}

/* The longest duration fades by an eighth with each exchange: one slow answer is
 * forgotten after some twenty quick ones. */
void hpx_conn_note_duration(struct hpx_conn *conn, uint64_t took_us)
{
	uint64_t most = HPX_UPSTREAM_SILENCE_MS * 1000ull;
	uint64_t faded_us = conn->slowest_us - conn->slowest_us / 8;

	if (took_us > most)
		took_us = most;
	conn->slowest_us = took_us > faded_us ? took_us : faded_us;
}

/* Until the upstream has been watched, only a few idle connections are kept, to watch
 * it: requests could not use more of them before their time of silence is over. */
static bool has_room(const struct hpx_pool *pool)
{
	return pool->state == NULL || hpx_upstream_is_watched(pool->state) ||
	       pool->idle < WATCHED_AT_ONCE_MAX;
}

void hpx_pool_keep(struct hpx_conn *conn)
{
	struct hpx_pool *pool = conn->pool;

	if (pool->idle_max == 0 || idle_limit(conn, pool->idle_max_ms) == 0 ||
	    conn->endpoint != pool->endpoint || !has_room(pool)) {
		hpx_conn_close(conn);
		return;
	}
	HPX_ASSERT(conn->newer == NULL && conn->older == NULL && conn != pool->newest);
	if (pool->idle >= pool->idle_max)
		drop_idle(least_useful(pool));
	conn->idle_since_us = hpx_clock_boot_us();
	conn->kept_turn = pool->loop->turn;
	conn->older = pool->newest;
	*(pool->newest != NULL ? &pool->newest->newer : &pool->oldest) = conn;
	pool->newest = conn;
	pool->idle++;
	hpx_transport_attach(conn->transport, &idle_events, conn);
	hpx_transport_read_start(conn->transport);
	check_counts(pool);
	if (!uv_is_active((uv_handle_t *)&pool->sweep))
		uv_timer_start(&pool->sweep, sweep, idle_limit(conn, pool->idle_max_ms), 0);
}
