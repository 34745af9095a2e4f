/* The flaky network: one exchange per connection. The request is passed on without the
 * network's own header, by the transfer that jobs are delivered with (egress/), and its
 * answer is brought back, or lost. */
#include "base/status.h"
#include "cli/demo.h"
#include "egress/transfer.h"
#include "http/field.h"
#include "http/write.h"

#define CONNECT_TIMEOUT_MS 1000
/* Longer than the API ever takes: giving up is the client's business. */
#define ANSWER_TIMEOUT_MS 30000

/* Sends the request once, on this thread. `request->end` has the result. */
static void fetch(struct hpx_egress_request *request)
{
	const char *problem;

	request->connect_timeout_ms = CONNECT_TIMEOUT_MS;
	request->timeout_ms = ANSWER_TIMEOUT_MS;
	request->answer_bytes_max = HPX_DEMO_BODY_MAX;
	hpx_egress_request_reset(request);
	if (hpx_egress_request_check(request) != HPX_OK)
		return;
	struct hpx_transfer *transfer = hpx_transfer_new(request, &problem);
	if (transfer != NULL)
		hpx_transfer_end(transfer, curl_easy_perform(transfer->easy));
}

void hpx_demo_get(uint16_t port, const char *target, struct hpx_egress_request *ret_request)
{
	char url[512];
	int len = snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", port, target);

	HPX_ASSERT(len > 0 && (size_t)len < sizeof(url));
	*ret_request = (struct hpx_egress_request){ .url = url, .method = "GET" };
	fetch(ret_request);
	ret_request->url = NULL;
}

/* Fields that every hop decides anew. */
static bool is_of_the_hop(const struct hpx_http_head *head, struct hpx_span name)
{
	return hpx_field_is_hop(head, name) || hpx_span_ieq(name, HPX_SPAN("Content-Length")) ||
	       hpx_span_ieq(name, HPX_SPAN("Expect")) ||
	       hpx_span_ieq(name, HPX_SPAN(HPX_DEMO_NETWORK_FIELD));
}

static enum hpx_status copy_request_fields(const struct hpx_http_head *head,
					   struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < head->field_count && status == HPX_OK; i++)
		if (!is_of_the_hop(head, head->fields[i].name))
			status = hpx_write_field(out, head->fields[i].name, head->fields[i].value);
	return status;
}

static enum hpx_status copy_answer(const struct hpx_egress_request *from,
				   struct hpx_demo_answer *answer)
{
	static const struct hpx_http_head none;
	struct hpx_span rest = hpx_buffer_span(&from->headers_in);
	enum hpx_status status = HPX_OK;
	struct hpx_field_line line;

	while (status == HPX_OK && hpx_field_line_next(&rest, &line))
		if (!is_of_the_hop(&none, line.name))
			status = hpx_write_field(&answer->fields, line.name, line.value);
	return status == HPX_OK ? hpx_buffer_append(&answer->body, hpx_buffer_span(&from->body_in)) :
				  status;
}

static bool loses_answer(const struct hpx_demo_request *request)
{
	return hpx_span_eq(hpx_field_value(&request->head, HPX_SPAN(HPX_DEMO_NETWORK_FIELD)),
			   HPX_SPAN(HPX_DEMO_LOSE_ANSWER));
}

/* Every failure looks to the caller as a network's does: the connection is closed. */
static void pass_on(void *user, struct hpx_demo_request *request, struct hpx_demo_answer *answer)
{
	const struct hpx_demo_network *network = user;
	struct hpx_span url = hpx_arena_printf(&request->arena, "http://127.0.0.1:%u%.*s",
					       network->to_port,
					       HPX_SPAN_ARG(request->head.target));
	struct hpx_span method = hpx_arena_dup(&request->arena, request->head.method);
	struct hpx_buffer headers;

	if (url.ptr == NULL || method.ptr == NULL)
		return;
	hpx_buffer_init(&headers, HPX_EGRESS_HEAD_BYTES_MAX);
	struct hpx_egress_request out = { .url = url.ptr,
					  .method = method.ptr,
					  .body = hpx_buffer_span(&request->body) };
	if (copy_request_fields(&request->head, &headers) == HPX_OK) {
		out.headers = hpx_buffer_span(&headers);
		fetch(&out);
	}
	if (out.end == HPX_EGRESS_ANSWERED && !loses_answer(request) &&
	    copy_answer(&out, answer) == HPX_OK)
		answer->status = out.status;
	hpx_egress_request_done(&out);
	hpx_buffer_done(&headers);
}

enum hpx_status hpx_demo_network_start(struct hpx_demo_network *network, uint16_t port,
				       uint16_t to_port)
{
	network->to_port = to_port;
	network->server = (struct hpx_demo_server){ .handle = pass_on, .user = network };
	return hpx_demo_server_start(&network->server, port);
}
