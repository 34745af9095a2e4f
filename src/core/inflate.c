/* zlib within a bound: the output grows only as far as its buffer may. */
#include "core/inflate.h"

#include <limits.h>

#define ZLIB_CONST /* next_in is const then */
#include <zlib.h>

#define STEP_BYTES 16384

/* inflateInit2's window bits: the largest window, and which wrapper. */
#define WRAP_GZIP (15 + 16)
#define WRAP_ZLIB 15
#define WRAP_NONE (-15)

static enum hpx_status step(z_stream *stream, struct hpx_buffer *out, int *ret_code)
{
	size_t room = out->max - out->len;

	room = room < STEP_BYTES ? room : STEP_BYTES;
	/* A full buffer is asked for one byte more, which tells a stream that
	 * ends here from one that goes on. */
	Bytef spare;
	enum hpx_status status = hpx_buffer_reserve(out, room);
	if (status != HPX_OK)
		return status;
	stream->next_out = room > 0 ? (Bytef *)out->ptr + out->len : &spare;
	stream->avail_out = room > 0 ? (uInt)room : 1;
	*ret_code = inflate(stream, Z_NO_FLUSH);
	if (room == 0)
		return stream->avail_out == 0 ? HPX_TOO_LARGE : HPX_OK;
	out->len += room - stream->avail_out;
	return HPX_OK;
}

static enum hpx_status run(z_stream *stream, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;
	int code = Z_OK;

	while (status == HPX_OK && code == Z_OK)
		status = step(stream, out, &code);
	if (status != HPX_OK)
		return status;
	if (code == Z_MEM_ERROR)
		return HPX_NOMEM;
	return code == Z_STREAM_END && stream->avail_in == 0 ? HPX_OK : HPX_INVALID;
}

static enum hpx_status inflate_wrapped(int wrap, struct hpx_span body, struct hpx_buffer *out)
{
	z_stream stream = { .next_in = (const Bytef *)body.ptr };
	size_t len = out->len;

	if (body.len > UINT_MAX)
		return HPX_TOO_LARGE;
	stream.avail_in = (uInt)body.len;
	if (inflateInit2(&stream, wrap) != Z_OK)
		return HPX_NOMEM;
	enum hpx_status status = run(&stream, out);
	inflateEnd(&stream);
	if (status != HPX_OK)
		out->len = len;
	return status;
}

enum hpx_status hpx_inflate(struct hpx_span coding, struct hpx_span body, struct hpx_buffer *out)
{
	if (hpx_span_ieq(coding, HPX_SPAN("gzip")) || hpx_span_ieq(coding, HPX_SPAN("x-gzip")))
		return inflate_wrapped(WRAP_GZIP, body, out);
	if (!hpx_span_ieq(coding, HPX_SPAN("deflate")))
		return HPX_UNSUPPORTED;
	/* RFC 9110 §8.4.1.2: some senders leave the wrapper out. */
	enum hpx_status status = inflate_wrapped(WRAP_ZLIB, body, out);
	if (status == HPX_INVALID)
		status = inflate_wrapped(WRAP_NONE, body, out);
	return status;
}
