/* See call.h. */
#include "call.h"

#include "http/field.h"
#include "net/upstream_exchange.h"

#define LONG_MS 60000

struct hpx_upstream_options call_options(const struct hpx_address *address)
{
	return (struct hpx_upstream_options){
		.address = *address,
		.connect_timeout_ms = LONG_MS,
		.send_timeout_ms = LONG_MS,
		.first_byte_timeout_ms = LONG_MS,
		.idle_timeout_ms = LONG_MS,
		.whole_timeout_ms = LONG_MS,
		.reuse_idle_ms = LONG_MS,
		.pool_idle_ms = LONG_MS,
		.pool_max = 4,
		.slots = { .max = 4, .pass_max = 4, .tunnel_max = 4, .queue_max = 4 },
		.resolve_ttl_ms = LONG_MS,
		.limits = { .head_bytes_max = 16384, .fields_max = 64 },
	};
}

void call_set(struct call *call, const char *method, const char *head, bool guarded)
{
	call->request.method = hpx_span_of(method);
	call->request.head = hpx_span_of(head);
	call->request.body = HPX_SPAN("");
	call->request.guarded = guarded;
}

struct call call_post(struct hpx_loop *loop)
{
	struct call call = { .loop = loop, .in_pattern = true };

	call_set(&call, "POST", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n", true);
	call.request.body = HPX_SPAN("{}");
	return call;
}

/* Every callback comes through here: none after the last, none from inside a
 * call; then what the test wants done. */
static void note(struct call *call, char event)
{
	assert_false(call->in_call);
	assert_false(call->done);
	if (call->extra != NULL)
		call->extra(call, event);
	if (call->cancel_in == event) {
		hpx_exchange_cancel(call->exchange);
		call->done = true;
	}
}

static bool on_ready(void *user)
{
	struct call *call = user;

	call->ready++;
	assert_false(hpx_exchange_any_byte_left(call->exchange));
	note(call, 'r');
	return !call->refuse_ready;
}

static void on_sent(void *user)
{
	struct call *call = user;

	call->sent = true;
	note(call, 's');
}

static void on_writable(void *user)
{
	struct call *call = user;

	call->writable++;
	note(call, 'w');
}

static void on_informational(void *user, const struct hpx_http_head *head)
{
	struct call *call = user;

	assert_in_range(head->status, 100, 199);
	call->informational++;
	note(call, 'i');
}

static void on_head(void *user, const struct hpx_http_head *head)
{
	struct call *call = user;
	struct hpx_span x = hpx_field_value(head, HPX_SPAN("X"));

	assert_false(call->has_head);
	call->has_head = true;
	call->status = head->status;
	call->framing = head->framing;
	snprintf(call->field_x, sizeof(call->field_x), "%.*s", HPX_SPAN_ARG(x));
	note(call, 'h');
}

static void on_data(void *user, struct hpx_span bytes)
{
	struct call *call = user;

	assert_true(call->has_head);
	assert_true(bytes.len > 0);
	for (size_t i = 0; i < bytes.len; i++, call->body_len++) {
		if (call->body_len < sizeof(call->body) - 1)
			call->body[call->body_len] = bytes.ptr[i];
		if ((unsigned char)bytes.ptr[i] != call->body_len % 251)
			call->in_pattern = false;
	}
	note(call, 'd');
}

static void on_end(void *user)
{
	struct call *call = user;

	note(call, 'e');
	call->done = true;
	call->ended = true;
}

static void on_failed(void *user, const struct hpx_exchange_failure *failure)
{
	struct call *call = user;

	note(call, 'f');
	assert_non_null(failure->reason);
	assert_int_equal(failure->timed_out, failure->status == HPX_TIMEOUT);
	assert_int_equal(failure->head_seen, call->has_head);
	call->done = true;
	call->failed = true;
	call->failure = *failure;
}

static const struct hpx_exchange_events call_events = {
	.on_ready = on_ready,
	.on_sent = on_sent,
	.on_writable = on_writable,
	.on_informational = on_informational,
	.on_head = on_head,
	.on_data = on_data,
	.on_end = on_end,
	.on_failed = on_failed,
};

void call_start(struct call *call, struct hpx_upstream *upstream)
{
	if (call->slot.state != HPX_SLOT_HELD)
		assert_true(hpx_slot_take(hpx_upstream_slots(upstream), &call->slot,
					  call->request.guarded ? HPX_SLOT_GUARDED : HPX_SLOT_PASS));
	call->request.slot = &call->slot;
	call->in_call = true;
	assert_status(hpx_exchange_start(upstream, &call->request, &call_events, call,
					 &call->exchange),
		      HPX_OK);
	call->in_call = false;
}

void call_run(struct call *call, struct hpx_upstream *upstream)
{
	call_start(call, upstream);
	run_until(call->loop, &call->done);
}

void call_assert_ended(const struct call *call, unsigned status, const char *body,
		       const char *file, int line)
{
	if (call->failed)
		print_error("failed: %s (%s), want an answer\n",
			    hpx_status_name(call->failure.status), call->failure.reason);
	else if (call->status != status || strcmp(call->body, body) != 0)
		print_error("got %u \"%s\", want %u \"%s\"\n", call->status, call->body, status,
			    body);
	else if (call->ended)
		return;
	_fail(file, line);
}

void call_assert_failed(const struct call *call, enum hpx_status status, bool any_byte_left,
			const char *file, int line)
{
	const struct hpx_exchange_failure *failure = &call->failure;

	if (call->failed && failure->status == status &&
	    failure->any_byte_left == any_byte_left)
		return;
	if (call->failed)
		print_error("got %s, a byte %s (%s); want %s, a byte %s\n",
			    hpx_status_name(failure->status),
			    failure->any_byte_left ? "left" : "did not leave", failure->reason,
			    hpx_status_name(status), any_byte_left ? "left" : "did not leave");
	else
		print_error("got %u \"%s\", want a failure\n", call->status, call->body);
	_fail(file, line);
}

void call_settle(struct hpx_loop *loop, const struct hpx_upstream *upstream, unsigned open,
		 unsigned idle)
{
	const struct hpx_pool *pool = &upstream->pool;

	for (;;) {
		if (pool->open == open && pool->idle == idle)
			return;
		/* Nothing more can happen: say what there is. */
		if (uv_run(&loop->uv, UV_RUN_ONCE) == 0)
			break;
	}
	fail_msg("%u connections, %u idle; want %u, %u", pool->open, pool->idle, open, idle);
}
