/* A small server for three pages: one request per connection, read by the
 * same strict reader. /readyz fails while starting or draining, not when the
 * store is down: other nodes' stores would be down too, and taking all of
 * them out of service helps nobody. */
#include "gateway/admin.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "http/write.h"

#define HEAD_BYTES_MAX 8192
#define PAGE_BYTES_MAX (1024 * 1024)
#define CONNECTIONS_MAX 64
#define REQUEST_MS 5000
#define LINGER_MS 1000

struct hpx_admin {
	struct hpx_loop *loop;
	struct hpx_gateway *gateway;
	struct hpx_listener *listener;
	struct hpx_address address;
	uint16_t port;
	unsigned connections;
	struct visit *visits;
};

/* One connection, one request. */
struct visit {
	struct hpx_admin *admin;
	struct hpx_transport *transport;
	struct visit *prev, *next;
	uv_timer_t timer;
	struct hpx_buffer in;
	struct hpx_arena arena;
	struct hpx_http_reader reader;
};

static void timer_closed(uv_handle_t *handle)
{
	struct visit *visit = handle->data;

	hpx_buffer_done(&visit->in);
	hpx_arena_done(&visit->arena);
	free(visit);
}

/* The transport is closed or closing; the rest goes with the timer's handle. */
static void leave(struct visit *visit)
{
	if (visit->prev != NULL)
		visit->prev->next = visit->next;
	else
		visit->admin->visits = visit->next;
	if (visit->next != NULL)
		visit->next->prev = visit->prev;
	visit->admin->connections--;
	uv_close((uv_handle_t *)&visit->timer, timer_closed);
}

static void cut(struct visit *visit)
{
	hpx_transport_close(visit->transport);
	leave(visit);
}

static void answer(struct visit *visit, unsigned status, const char *content_type,
		   struct hpx_span body)
{
	struct hpx_buffer head;

	hpx_buffer_init(&head, HEAD_BYTES_MAX);
	if (hpx_write_status_line(&head, status, hpx_span_of(hpx_reason_phrase(status))) == HPX_OK &&
	    hpx_write_field_text(&head, "Content-Type", content_type) == HPX_OK &&
	    hpx_write_field_u64(&head, "Content-Length", body.len) == HPX_OK &&
	    hpx_write_field_text(&head, "Cache-Control", "no-store") == HPX_OK &&
	    hpx_write_field_text(&head, "Connection", "close") == HPX_OK &&
	    hpx_write_head_end(&head) == HPX_OK) {
		struct hpx_span pieces[] = { hpx_buffer_span(&head), body };
		(void)hpx_transport_send(visit->transport, pieces, 2, NULL);
	}
	hpx_buffer_done(&head);
	hpx_transport_close_gently(visit->transport, LINGER_MS);
	leave(visit);
}

static void answer_text(struct visit *visit, unsigned status, const char *text)
{
	answer(visit, status, "text/plain; charset=utf-8", hpx_span_of(text));
}

static void answer_metrics(struct visit *visit)
{
	struct hpx_gateway *gateway = visit->admin->gateway;
	struct hpx_buffer body;

	hpx_buffer_init(&body, PAGE_BYTES_MAX);
	if (hpx_gateway_metrics(gateway, gateway->settings, &body) == HPX_OK)
		answer(visit, 200, "text/plain; version=0.0.4; charset=utf-8",
		       hpx_buffer_span(&body));
	else
		answer_text(visit, 500, "the metrics did not fit into memory\n");
	hpx_buffer_done(&body);
}

static void answer_ready(struct visit *visit)
{
	if (atomic_load(&visit->admin->gateway->ready))
		answer_text(visit, 200, "ready\n");
	else
		answer_text(visit, 503, "not ready: starting or draining\n");
}

static void answer_request(struct visit *visit, const struct hpx_http_head *head)
{
	struct hpx_span path = hpx_span_first(head->target, hpx_span_index(head->target, '?'));

	if (!hpx_span_eq(head->method, HPX_SPAN("GET")))
		answer_text(visit, 405, "GET only\n");
	else if (hpx_span_eq(path, HPX_SPAN("/healthz")))
		answer_text(visit, 200, "ok\n");
	else if (hpx_span_eq(path, HPX_SPAN("/readyz")))
		answer_ready(visit);
	else if (hpx_span_eq(path, HPX_SPAN("/metrics")))
		answer_metrics(visit);
	else
		answer_text(visit, 404, "here are /healthz, /readyz and /metrics\n");
}

static void on_data(void *user, struct hpx_span bytes)
{
	struct visit *visit = user;
	struct hpx_http_head head;
	size_t used;

	if (hpx_buffer_append(&visit->in, bytes) != HPX_OK) {
		answer_text(visit, 431, "the request head is too large\n");
		return;
	}
	switch (hpx_http_read_head(&visit->reader, hpx_buffer_span(&visit->in), &visit->arena, &head,
				   &used)) {
	case HPX_HTTP_MORE:
		return;
	case HPX_HTTP_DONE:
		answer_request(visit, &head);
		return;
	case HPX_HTTP_BAD:
		answer_text(visit, 400, "the request is malformed\n");
		return;
	}
}

static void on_end(void *user, enum hpx_status status)
{
	(void)status;
	cut(user);
}

static void on_timer(uv_timer_t *timer)
{
	cut(timer->data);
}

static const struct hpx_transport_events events = { .on_data = on_data, .on_end = on_end };

static void on_accept(void *user, struct hpx_transport *transport)
{
	struct hpx_admin *admin = user;
	struct hpx_http_limits limits = { .head_bytes_max = HEAD_BYTES_MAX, .fields_max = 64 };
	struct visit *visit =
		admin->connections < CONNECTIONS_MAX ? calloc(1, sizeof(*visit)) : NULL;

	if (visit == NULL) {
		hpx_transport_close(transport);
		return;
	}
	visit->admin = admin;
	visit->transport = transport;
	visit->next = admin->visits;
	if (visit->next != NULL)
		visit->next->prev = visit;
	admin->visits = visit;
	admin->connections++;
	hpx_buffer_init(&visit->in, HEAD_BYTES_MAX + HPX_LOOP_READ_BYTES);
	hpx_arena_init(&visit->arena, 4 * HEAD_BYTES_MAX);
	hpx_http_reader_request(&visit->reader, &limits);
	uv_timer_init(&admin->loop->uv, &visit->timer);
	visit->timer.data = visit;
	uv_timer_start(&visit->timer, on_timer, REQUEST_MS, 0);
	hpx_transport_attach(transport, &events, visit);
	hpx_transport_read_start(transport);
}

enum hpx_status hpx_admin_start(struct hpx_loop *loop, struct hpx_gateway *gateway,
				struct hpx_admin **ret_admin, char *problem)
{
	struct hpx_admin *admin = calloc(1, sizeof(*admin));
	int fd = -1;

	if (admin == NULL)
		return HPX_NOMEM;
	admin->loop = loop;
	admin->gateway = gateway;
	admin->address = gateway->settings->admin;
	enum hpx_status status = hpx_listener_probe(&admin->address, problem);
	if (status == HPX_OK)
		status = hpx_listener_open(&admin->address, &fd, problem);
	if (status == HPX_OK) {
		admin->port = hpx_listener_port(fd);
		status = hpx_listener_start(loop, fd, on_accept, admin, &admin->listener);
	}
	if (status != HPX_OK) {
		free(admin);
		return status;
	}
	*ret_admin = admin;
	return HPX_OK;
}

uint16_t hpx_admin_port(const struct hpx_admin *admin)
{
	return admin->port;
}

void hpx_admin_stop(struct hpx_admin *admin)
{
	hpx_listener_stop(admin->listener);
	hpx_listener_unlink(&admin->address);
	while (admin->visits != NULL)
		cut(admin->visits);
	free(admin);
}
