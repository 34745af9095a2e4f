/* Routes with `deliver: async`: a request becomes a job, and is answered while the
 * job is under way. */
#include "gateway/steps.h"

#include "base/status.h"
#include "gateway/caller_field.h"
#include "http/field.h"
#include "http/write.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

bool hpx_async_is(const struct hpx_request *request)
{
	return request->head.route->policy.deliver == HPX_DELIVER_ASYNC;
}

static bool is_among(struct hpx_span name, const struct hpx_span *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (hpx_span_ieq(name, list[i]))
			return true;
	return false;
}

static bool is_describing(struct hpx_span name)
{
	static const struct hpx_span names[] = {
		HPX_SPAN_INIT("Content-Type"),
		HPX_SPAN_INIT("Content-Language"),
		HPX_SPAN_INIT("Content-Encoding"),
		HPX_SPAN_INIT("Accept"),
		HPX_SPAN_INIT("Accept-Language"),
		HPX_SPAN_INIT("traceparent"),
		HPX_SPAN_INIT("tracestate"),
	};

	return is_among(name, names, COUNT(names));
}

static bool names_caller(struct hpx_span name)
{
	const char *twin = NULL;
	enum hpx_caller_field kind = hpx_caller_field_of(name, &twin);

	return kind != HPX_CALLER_NONE && kind != HPX_CALLER_HARMLESS;
}

/* Headers that a route's fingerprint may name and that a job never holds:
 * credentials, forwarding headers, and headers of the connection or of the
 * deliverer. */
static bool is_secret_or_ours(const struct hpx_settings *settings, const struct hpx_route *route,
			      const struct hpx_http_head *head, struct hpx_span name)
{
	static const struct hpx_span names[] = {
		HPX_SPAN_INIT("Cookie"),
		HPX_SPAN_INIT("Host"),
		HPX_SPAN_INIT("Forwarded"),
		HPX_SPAN_INIT("Via"),
		HPX_SPAN_INIT("Expect"),
		HPX_SPAN_INIT("Content-Length"),
		HPX_SPAN_INIT("Accept-Encoding"),
		HPX_SPAN_INIT("Idempotency-Key"),
		HPX_SPAN_INIT("Prefer"),
	};

	for (size_t i = 0; i < route->key_from.count; i++)
		if (hpx_span_ieq(name, route->key_from.at[i].name))
			return true;
	return is_among(name, names, COUNT(names)) || hpx_span_ieq(name, settings->key_header) ||
	       (settings->tenant.name.len > 0 && hpx_span_ieq(name, settings->tenant.name)) ||
	       names_caller(name) || hpx_span_istarts(name, HPX_SPAN("Proxy-")) ||
	       hpx_span_istarts(name, HPX_SPAN("X-Forwarded-")) || hpx_field_is_ours(name) ||
	       hpx_field_is_hop(head, name);
}

enum hpx_status hpx_async_headers(const struct hpx_settings *settings,
				  const struct hpx_route *route, const struct hpx_http_head *head,
				  struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < head->field_count && status == HPX_OK; i++) {
		struct hpx_span name = head->fields[i].name;
		if ((is_describing(name) ||
		     is_among(name, hpx_method_override, HPX_METHOD_OVERRIDE_COUNT) ||
		     is_among(name, route->recipe.headers, route->recipe.header_count)) &&
		    !is_secret_or_ours(settings, route, head, name))
			status = hpx_write_field(out, name, head->fields[i].value);
	}
	return status;
}

enum hpx_status hpx_async_make_job(struct hpx_request *request, const char **ret_reason)
{
	const struct hpx_target *target = &request->head.target;
	struct hpx_span path = target->path;

	HPX_ASSERT(request->body.whole && request->attempt.exchange == NULL);
	if (target->query.ptr != NULL)
		path = hpx_arena_printf(&request->arena, "%.*s?%.*s", HPX_SPAN_ARG(target->path),
					HPX_SPAN_ARG(target->query));
	/* Nothing goes upstream, so the buffer for its head is free. */
	request->attempt.head.len = 0;
	if (path.ptr == NULL || hpx_async_headers(request->settings, request->head.route, &request->head.http, &request->attempt.head) != HPX_OK ||
	    hpx_request_trace_job(request, &request->attempt.head) != HPX_OK)
		return HPX_NOMEM;
	request->reservation.job = (struct hpx_job){
		.name = HPX_SPAN("request"),
		.target = request->head.route->target_name,
		.method = request->head.http.method,
		.path = path,
		.headers = hpx_buffer_span(&request->attempt.head),
		.body = hpx_buffer_span(&request->body.bytes),
	};
	*ret_reason = hpx_job_fault(&request->reservation.job);
	return *ret_reason == NULL ? HPX_OK : HPX_INVALID;
}

void hpx_async_wake(struct hpx_gateway *gateway)
{
	if (gateway->accepted != NULL)
		gateway->accepted(gateway->accepted_user);
}

enum hpx_next hpx_async_accepted(struct hpx_request *request)
{
	HPX_ASSERT(request->reservation.record.state == HPX_STATE_PENDING);
	HPX_CRASH_POINT(async_accepted);
	hpx_counter_add(&request->shard->meter.async[HPX_ASYNC_accepted], 1);
	hpx_async_wake(request->shard->gateway);
	/* Whoever waits looks again as any retry does, not as the one that
	 * made the reservation. */
	hpx_token_make(&request->identity.ask.token);
	return hpx_async_pending(request);
}

enum hpx_next hpx_async_pending(struct hpx_request *request)
{
	int64_t wait_ms = hpx_wait_preferred(request, request->head.route->policy.wait_ms);

	if (wait_ms > 0)
		return hpx_wait_for(request, wait_ms);
	return HPX_NEXT_WAIT_OVER;
}
