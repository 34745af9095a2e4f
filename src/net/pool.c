/* The pool of idle connections; see pool.h. */
#include "net/pool.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/clock.h"

static void unlink_idle(struct hpx_conn *conn)
{
	struct hpx_pool *pool = conn->pool;

	*(conn->newer != NULL ? &conn->newer->older : &pool->newest) = conn->older;
	*(conn->older != NULL ? &conn->older->newer : &pool->oldest) = conn->newer;
	conn->newer = NULL;
	conn->older = NULL;
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

static void on_stray_data(void *user, struct hpx_span bytes)
{
	(void)bytes;
	drop_idle(user);
}

static void on_idle_end(void *user, enum hpx_status status)
{
	(void)status;
	drop_idle(user);
}

static const struct hpx_transport_events idle_events = { on_stray_data, on_idle_end, NULL };

/* How long a connection may be idle at most; never the whole time that the
 * upstream names, since it starts to count before we do. */
static uint64_t idle_limit(const struct hpx_conn *conn, uint64_t limit_ms)
{
	return conn->usable_ms < limit_ms ? conn->usable_ms : limit_ms;
}

static uint64_t idle_for(const struct hpx_conn *conn, int64_t now_ms)
{
	return now_ms > conn->idle_since_ms ? (uint64_t)(now_ms - conn->idle_since_ms) : 0;
}

static void sweep(uv_timer_t *timer)
{
	struct hpx_pool *pool = timer->data;
	int64_t now_ms = hpx_clock_boot_ms();
	uint64_t next_ms = pool->idle_max_ms;
	struct hpx_conn *newer;

	for (struct hpx_conn *conn = pool->oldest; conn != NULL; conn = newer) {
		uint64_t limit = idle_limit(conn, pool->idle_max_ms);
		uint64_t idle = idle_for(conn, now_ms);
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
	while (pool->oldest != NULL)
		drop_idle(pool->oldest);
	uv_close((uv_handle_t *)&pool->sweep, on_done);
}

struct hpx_conn *hpx_pool_take(struct hpx_pool *pool, uint64_t idle_max_ms)
{
	int64_t now_ms = hpx_clock_boot_ms();
	struct hpx_conn *older;

	for (struct hpx_conn *conn = pool->newest; conn != NULL; conn = older) {
		older = conn->older;
		if (idle_for(conn, now_ms) >= idle_limit(conn, idle_max_ms))
			continue;
		if (hpx_transport_is_stale(conn->transport)) {
			drop_idle(conn);
			continue;
		}
		unlink_idle(conn);
		return conn;
	}
	return NULL;
}

void hpx_pool_enter(struct hpx_pool *pool)
{
	if (pool->open >= pool->open_max && pool->oldest != NULL)
		drop_idle(pool->oldest);
	pool->open++;
}

void hpx_pool_leave(struct hpx_pool *pool)
{
	HPX_ASSERT(pool->open > 0);
	pool->open--;
}

struct hpx_conn *hpx_pool_adopt(struct hpx_pool *pool, struct hpx_transport *transport)
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
	return conn;
}

void hpx_pool_keep(struct hpx_conn *conn)
{
	struct hpx_pool *pool = conn->pool;

	if (pool->idle_max == 0 || idle_limit(conn, pool->idle_max_ms) == 0) {
		hpx_conn_close(conn);
		return;
	}
	if (pool->idle >= pool->idle_max)
		drop_idle(pool->oldest);
	conn->idle_since_ms = hpx_clock_boot_ms();
	conn->older = pool->newest;
	*(pool->newest != NULL ? &pool->newest->newer : &pool->oldest) = conn;
	pool->newest = conn;
	pool->idle++;
	hpx_transport_attach(conn->transport, &idle_events, conn);
	hpx_transport_read_start(conn->transport);
	if (!uv_is_active((uv_handle_t *)&pool->sweep))
		uv_timer_start(&pool->sweep, sweep, idle_limit(conn, pool->idle_max_ms), 0);
}
