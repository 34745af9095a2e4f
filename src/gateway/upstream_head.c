/* Which headers travel up, and which hapax adds. What was acted on is what is
 * forwarded: the normalised path, the framing that was read, the Host that was
 * matched. */
#include "gateway/upstream_head.h"

#include "gateway/field_rule.h"
#include "http/field.h"
#include "http/write.h"

struct headers {
	struct hpx_request *request;
	struct hpx_buffer *out;
	enum hpx_status status; /* the first failure stays */
};

static void add(struct headers *h, struct hpx_span name, struct hpx_span value)
{
	if (h->status == HPX_OK)
		h->status = hpx_write_field(h->out, name, value);
}

/* Fields that are written anew below, or that end here. */
static bool is_rewritten(struct hpx_span name, bool guarded)
{
	static const struct hpx_span always[] = {
		HPX_SPAN_INIT("Host"),
		HPX_SPAN_INIT("Content-Length"),
		HPX_SPAN_INIT("X-Forwarded-For"),
		HPX_SPAN_INIT("X-Forwarded-Proto"),
		HPX_SPAN_INIT("X-Forwarded-Host"),
		HPX_SPAN_INIT("Via"),
		HPX_SPAN_INIT("HTTP2-Settings"),
	};

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (hpx_span_ieq(name, always[i]))
			return true;
	return guarded && (hpx_span_ieq(name, HPX_SPAN("Accept-Encoding")) ||
			   hpx_span_ieq(name, HPX_SPAN("Expect")));
}

static bool is_dropped(const struct hpx_request *request, struct hpx_span name)
{
	return !request->head.observed && hpx_field_rule_drops(request->settings, request->head.route, name);
}

static void add_travelling(struct headers *h, bool guarded)
{
	const struct hpx_http_head *head = &h->request->head.http;

	for (size_t i = 0; i < head->field_count; i++) {
		struct hpx_span name = head->fields[i].name;
		if (!hpx_field_is_hop(head, name) && !hpx_field_is_ours(name) &&
		    !is_rewritten(name, guarded) && !is_dropped(h->request, name))
			add(h, name, head->fields[i].value);
	}
}

/* All values of a list header with one more at its end. */
static void add_appended(struct headers *h, struct hpx_span name, struct hpx_span value)
{
	struct hpx_span before = hpx_field_combined(&h->request->head.http, name, &h->request->arena);

	if (before.len == 0) {
		add(h, name, value);
		return;
	}
	struct hpx_span both = hpx_arena_printf(&h->request->arena, "%.*s, %.*s",
						HPX_SPAN_ARG(before), HPX_SPAN_ARG(value));
	if (both.ptr == NULL)
		h->status = HPX_NOMEM;
	else
		add(h, name, both);
}

/* Set where absent or where nobody vouches for the one who sent it. */
static void add_forwarded(struct headers *h, struct hpx_span name, struct hpx_span value,
			  bool trusted)
{
	struct hpx_span sent = hpx_field_value(&h->request->head.http, name);

	add(h, name, trusted && sent.len > 0 ? sent : value);
}

static void add_path(struct headers *h)
{
	struct hpx_request *request = h->request;
	const char *peer = request->head.peer;
	bool trusted = hpx_peer_trusted(request->settings, peer);

	if (request->head.host.len > 0)
		add(h, HPX_SPAN("Host"), request->head.host);
	else
		add(h, HPX_SPAN("Host"), hpx_span_of(request->settings->upstream.is_unix ? "localhost" : request->settings->upstream.host));
	if (hpx_span_eq(hpx_span_of(peer), HPX_SPAN("unix"))) {
		struct hpx_span sent = hpx_field_combined(
			&request->head.http, HPX_SPAN("X-Forwarded-For"), &request->arena);
		if (sent.len > 0)
			add(h, HPX_SPAN("X-Forwarded-For"), sent);
	} else {
		add_appended(h, HPX_SPAN("X-Forwarded-For"), hpx_span_of(peer));
	}
	add_forwarded(h, HPX_SPAN("X-Forwarded-Proto"), HPX_SPAN("http"), trusted);
	if (request->head.host.len > 0)
		add_forwarded(h, HPX_SPAN("X-Forwarded-Host"), request->head.host, trusted);
	add_appended(h, HPX_SPAN("Via"),
		     request->head.http.minor > 0 ? HPX_SPAN("1.1 hapax") : HPX_SPAN("1.0 hapax"));
}

/* What the upstream needs to fence attempts and to take part. */
static void add_operation(struct headers *h)
{
	const struct hpx_record *record = &h->request->reservation.record;
	char text[HPX_REFERENCE_SIZE], lease[HPX_LEASE_SIZE];

	hpx_reference_print(&record->id, &record->mark, text);
	add(h, HPX_SPAN("Hapax-Operation"), hpx_span_of(text));
	hpx_lease_print(&record->id, &record->token, lease);
	add(h, HPX_SPAN("Hapax-Lease"), hpx_span_of(lease));
	if (h->status == HPX_OK)
		h->status = hpx_write_field_u64(h->out, "Hapax-Attempt", record->attempt);
	if (record->point[0] != '\0')
		add(h, HPX_SPAN("Hapax-Recovery-Point"), hpx_span_of(record->point));
}

static void add_framing(struct headers *h, bool guarded)
{
	const struct hpx_http_head *head = &h->request->head.http;

	if (h->status != HPX_OK)
		return;
	if (guarded && head->framing != HPX_FRAMING_NONE)
		h->status = hpx_write_field_u64(h->out, "Content-Length", h->request->body.bytes.len);
	else if (head->framing == HPX_FRAMING_CHUNKED)
		add(h, HPX_SPAN("Transfer-Encoding"), HPX_SPAN("chunked"));
	else if (head->has_content_length)
		h->status = hpx_write_field_u64(h->out, "Content-Length", head->content_length);
}

/* Only to what is known to be no other way into HTTP: h2c never. */
static bool wants_tunnel(const struct hpx_http_head *head)
{
	return head->upgrade && hpx_field_count(head, HPX_SPAN("Upgrade")) == 1 &&
	       hpx_span_ieq(hpx_field_value(head, HPX_SPAN("Upgrade")), HPX_SPAN("websocket"));
}

enum hpx_status hpx_upstream_head_write(struct hpx_request *request, bool guarded)
{
	struct headers h = { .request = request, .out = &request->attempt.head };

	h.status = hpx_write_request_line(h.out, request->head.http.method, request->head.target.path,
					  request->head.target.query);
	add_path(&h);
	add_travelling(&h, guarded);
	if (guarded) {
		if (request->head.route->policy.reuse == HPX_REUSE_NEVER)
			add(&h, HPX_SPAN("Connection"), HPX_SPAN("close"));
		add(&h, HPX_SPAN("Accept-Encoding"), HPX_SPAN("identity"));
		add_operation(&h);
	} else if (wants_tunnel(&request->head.http)) {
		request->pass.tunnel = HPX_TUNNEL_ASKED;
		add(&h, HPX_SPAN("Connection"), HPX_SPAN("Upgrade"));
		add(&h, HPX_SPAN("Upgrade"), hpx_field_value(&request->head.http, HPX_SPAN("Upgrade")));
	}
	add_framing(&h, guarded);
	return h.status == HPX_OK ? hpx_write_head_end(h.out) : h.status;
}
