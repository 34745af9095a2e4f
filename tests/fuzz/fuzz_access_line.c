/* Any bytes in the texts of a line of the access log: in every format it is one line, within
 * its bound, without control bytes (but those of the colours); as JSON, Jansson reads it. */
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/bytes.h"
#include "base/log_writer.h"
#include "base/status.h"
#include "gateway/access_line.h"
#include "http/trace_context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Cuts a piece off the front: its first byte is its length. */
static struct hpx_span take(struct hpx_span *rest)
{
	size_t len = rest->len > 0 ? (unsigned char)rest->ptr[0] : 0;
	struct hpx_span piece;

	*rest = hpx_span_skip(*rest, rest->len > 0 ? 1 : 0);
	piece = hpx_span_first(*rest, len < rest->len ? len : rest->len);
	*rest = hpx_span_skip(*rest, piece.len);
	return piece;
}

static void check_line(struct hpx_span line, enum hpx_access_format format)
{
	HPX_ASSERT(line.len > 0 && line.len <= HPX_LOG_LINE_MAX && line.ptr[line.len - 1] == '\n');
	for (size_t i = 0; i + 1 < line.len; i++) {
		unsigned char byte = (unsigned char)line.ptr[i];
		bool colour = format == HPX_ACCESS_COLOURED && byte == 0x1b;
		HPX_ASSERT(colour || (byte >= 0x20 && byte != 0x7f));
	}
	if (format == HPX_ACCESS_JSON) {
		json_t *value = json_loadb(line.ptr, line.len, JSON_REJECT_DUPLICATES, NULL);
		HPX_ASSERT(value != NULL);
		json_decref(value);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hpx_span rest = hpx_span(data, size);
	struct hpx_access_line line = {
		.wall_ms = 1763453553250,
		.method = take(&rest),
		.route = take(&rest),
		.peer = hpx_span_first(take(&rest), 47),
		.status = (unsigned)(size % 1000),
		.did = (enum hpx_did)(size % HPX_DID_COUNT),
		.whole_us = size,
		.queue_us = HPX_ACCESS_NO_TIME,
		.reserve_us = HPX_ACCESS_NO_TIME,
		.upstream_us = HPX_ACCESS_NO_TIME,
		.complete_us = HPX_ACCESS_NO_TIME,
	};
	char trace[2 * HPX_TRACE_ID_SIZE + 1] = "";
	struct hpx_trace_context context;
	struct hpx_buffer out;

	if (hpx_traceparent_read(take(&rest), &context))
		hpx_hex_encode(context.trace_id, sizeof(context.trace_id), trace);
	line.trace = hpx_span_of(trace);
	hpx_buffer_init(&out, HPX_LOG_LINE_MAX);
	for (int f = HPX_ACCESS_TEXT; f <= HPX_ACCESS_COLOURED; f++) {
		out.len = 0;
		HPX_ASSERT(hpx_access_line_print(&line, (enum hpx_access_format)f, &out) == HPX_OK);
		check_line(hpx_buffer_span(&out), (enum hpx_access_format)f);
	}
	hpx_buffer_done(&out);
	return 0;
}
