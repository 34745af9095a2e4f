/* Reading a body: one piece at a time, never a copy. */
#include "base/assert.h"
#include "http/chunk.h"
#include "http/message.h"

static enum hpx_http_progress read_length(struct hpx_http_reader *reader,
					  struct hpx_span bytes, struct hpx_span *ret_data,
					  size_t *ret_used)
{
	struct hpx_span data = bytes;

	if (data.len > reader->remaining)
		data.len = (size_t)reader->remaining;
	reader->remaining -= data.len;
	*ret_data = data;
	*ret_used = data.len;
	return reader->remaining == 0 ? HPX_HTTP_DONE : HPX_HTTP_MORE;
}

enum hpx_http_progress hpx_http_read_body(struct hpx_http_reader *reader,
					  struct hpx_span bytes, struct hpx_span *ret_data,
					  size_t *ret_used)
{
	if (reader->error != HPX_HTTP_ERROR_NONE)
		return HPX_HTTP_BAD;
	HPX_ASSERT(reader->head_done);

	switch (reader->framing) {
	case HPX_FRAMING_NONE:
	case HPX_FRAMING_LENGTH:
		return read_length(reader, bytes, ret_data, ret_used);
	case HPX_FRAMING_CHUNKED:
		return hpx_chunk_read(reader, bytes, ret_data, ret_used);
	case HPX_FRAMING_CLOSE:
	case HPX_FRAMING_TUNNEL:
		break;
	}
	*ret_data = bytes;
	*ret_used = bytes.len;
	return HPX_HTTP_MORE;
}

static bool is_whole(const struct hpx_http_reader *reader)
{
	if (!reader->head_done)
		return false;
	if (reader->framing == HPX_FRAMING_CHUNKED)
		return hpx_chunk_done(reader);
	return reader->remaining == 0;
}

enum hpx_http_progress hpx_http_read_end(struct hpx_http_reader *reader)
{
	if (reader->error != HPX_HTTP_ERROR_NONE)
		return HPX_HTTP_BAD;
	if (is_whole(reader))
		return HPX_HTTP_DONE;
	reader->error = HPX_HTTP_ERROR_INCOMPLETE;
	return HPX_HTTP_BAD;
}
