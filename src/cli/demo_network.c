/* One exchange per connection: the request is read whole, written again
 * without the network's own header, and its answer brought back, or lost. */
#include "cli/demo_network.h"

#include <unistd.h>

#include "cli/demo_wire.h"
#include "http/field.h"
#include "http/write.h"

#define CONNECT_TIMEOUT_MS 1000
#define READ_TIMEOUT_MS 5000
/* Longer than the API ever takes: giving up is the client's business. */
#define ANSWER_TIMEOUT_MS 30000
#define MESSAGE_MAX (HPX_DEMO_BODY_MAX + (size_t)64 * 1024)

/* Everything but what this hop decides anew. */
static enum hpx_status copy_fields(const struct hpx_http_head *head, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < head->field_count && status == HPX_OK; i++) {
		struct hpx_span name = head->fields[i].name;

		if (hpx_field_is_hop(head, name) || hpx_span_ieq(name, HPX_SPAN("Content-Length")) ||
		    hpx_span_ieq(name, HPX_SPAN(HPX_DEMO_NETWORK_FIELD)))
			continue;
		status = hpx_write_field(out, name, head->fields[i].value);
	}
	return status;
}

static enum hpx_status print_rest(const struct hpx_demo_message *message,
				  struct hpx_buffer *out)
{
	enum hpx_status status = copy_fields(&message->head, out);

	if (status == HPX_OK)
		status = hpx_write_field_u64(out, "Content-Length", message->body.len);
	if (status == HPX_OK)
		status = hpx_write_field_text(out, "Connection", "close");
	if (status == HPX_OK)
		status = hpx_write_head_end(out);
	if (status == HPX_OK)
		status = hpx_buffer_append(out, hpx_buffer_span(&message->body));
	return status;
}

static enum hpx_status print_request(const struct hpx_demo_message *message,
				     struct hpx_buffer *out)
{
	struct hpx_span path = message->head.target;
	size_t mark = hpx_span_index(path, '?');
	struct hpx_span query = { NULL, 0 };

	if (mark < path.len)
		query = hpx_span_skip(path, mark + 1);
	enum hpx_status status = hpx_write_request_line(out, message->head.method,
							hpx_span_first(path, mark), query);
	return status == HPX_OK ? print_rest(message, out) : status;
}

static enum hpx_status print_response(const struct hpx_demo_message *message,
				      struct hpx_buffer *out)
{
	enum hpx_status status =
		hpx_write_status_line(out, message->head.status, message->head.reason);

	return status == HPX_OK ? print_rest(message, out) : status;
}

/* Sends the request on and reads the answer; both lie in `out` afterwards. */
static enum hpx_status exchange(struct hpx_demo_network *network,
				const struct hpx_demo_message *request,
				struct hpx_demo_message *response, struct hpx_buffer *out)
{
	int fd;
	enum hpx_status status = print_request(request, out);

	if (status == HPX_OK)
		status = hpx_demo_connect(network->to_port, CONNECT_TIMEOUT_MS, &fd);
	if (status != HPX_OK)
		return status;
	status = hpx_demo_send(fd, hpx_buffer_span(out), READ_TIMEOUT_MS);
	if (status == HPX_OK)
		status = hpx_demo_read_response(fd, request->head.method, ANSWER_TIMEOUT_MS,
						response);
	close(fd);
	out->len = 0;
	return status == HPX_OK ? print_response(response, out) : status;
}

static bool loses_answer(const struct hpx_demo_message *request)
{
	return hpx_span_eq(
		hpx_field_value(&request->head, HPX_SPAN(HPX_DEMO_NETWORK_FIELD)),
		HPX_SPAN(HPX_DEMO_LOSE_ANSWER));
}

/* Whatever goes wrong here, the caller sees what a network shows: a closed
 * connection. */
static void serve(void *user, int fd)
{
	struct hpx_demo_network *network = user;
	struct hpx_demo_message request, response;
	struct hpx_buffer out;

	hpx_demo_message_init(&request);
	hpx_demo_message_init(&response);
	hpx_buffer_init(&out, MESSAGE_MAX);
	if (hpx_demo_read_request(fd, READ_TIMEOUT_MS, &request) == HPX_OK &&
	    exchange(network, &request, &response, &out) == HPX_OK && !loses_answer(&request))
		(void)hpx_demo_send(fd, hpx_buffer_span(&out), READ_TIMEOUT_MS);
	hpx_buffer_done(&out);
	hpx_demo_message_done(&response);
	hpx_demo_message_done(&request);
}

enum hpx_status hpx_demo_network_start(struct hpx_demo_network *network, uint16_t port,
				       uint16_t to_port)
{
	network->to_port = to_port;
	return hpx_demo_server_start(&network->server, port, serve, network);
}

void hpx_demo_network_cut(struct hpx_demo_network *network)
{
	hpx_demo_server_cut(&network->server);
}

void hpx_demo_network_stop(struct hpx_demo_network *network)
{
	hpx_demo_server_stop(&network->server);
}
