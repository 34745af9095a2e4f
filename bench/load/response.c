/* A head with a length, then so many bytes. Answers without a length, which none
 * of the measured systems gives, are broken. */
#include "response.h"

#include <string.h>

#include "base/span.h"

void response_begin(struct response *response)
{
	response->head_len = 0;
	response->body_left = 0;
	response->status = 0;
	response->close = false;
}

static bool read_field(struct response *response, struct hpx_span line, bool *sized)
{
	size_t colon = hpx_span_index(line, ':');
	struct hpx_span name = hpx_span_first(line, colon);
	struct hpx_span value;

	if (colon == line.len)
		return false;
	value = hpx_span_trim(hpx_span_skip(line, colon + 1));
	if (hpx_span_ieq(name, HPX_SPAN("content-length"))) {
		*sized = true;
		return hpx_span_u64(value, UINT32_MAX, &response->body_left);
	}
	if (hpx_span_ieq(name, HPX_SPAN("connection")))
		response->close = hpx_span_ieq(value, HPX_SPAN("close"));
	return true;
}

/* "HTTP/1.1 201 Created" and the fields, each line with its CR. */
static bool read_head(struct response *response, struct hpx_span head)
{
	struct hpx_span line;
	uint64_t status;
	bool sized = false;

	if (!hpx_span_split(&head, '\n', &line) || line.len < 12 ||
	    !hpx_span_u64(hpx_span(line.ptr + 9, 3), 999, &status))
		return false;
	while (hpx_span_split(&head, '\n', &line) && line.len > 1) {
		if (!read_field(response, hpx_span_first(line, line.len - 1), &sized))
			return false;
	}
	response->status = (unsigned)status;
	return sized && status >= 200;
}

enum response_state response_take(struct response *response, const char *bytes, size_t len)
{
	if (response->status == 0) {
		size_t before = response->head_len;
		size_t room = RESPONSE_HEAD_MAX - before;
		size_t taken = len < room ? len : room;
		const char *end;
		size_t head;

		memcpy(response->head + before, bytes, taken);
		end = memmem(response->head, before + taken, "\r\n\r\n", 4);
		response->head_len += taken;
		if (end == NULL)
			return taken < len || response->head_len == RESPONSE_HEAD_MAX ?
				       RESPONSE_BROKEN :
				       RESPONSE_MORE;
		head = (size_t)(end - response->head) + 4;
		if (!read_head(response, hpx_span(response->head, head)))
			return RESPONSE_BROKEN;
		bytes += head - before;
		len -= head - before;
	}
	if (len > response->body_left)
		return RESPONSE_BROKEN;
	response->body_left -= len;
	return response->body_left == 0 ? RESPONSE_DONE : RESPONSE_MORE;
}
