/* Reading a body: one piece at a time, never a copy.
 *
 * A chunked body (RFC 9112 §7.1) is a line with the size and extensions, the data, and
 * after the last chunk a trailer. Extensions follow the whole grammar of §7.1.1, because
 * what is skipped loosely is where two servers come to differ about the line's end. Then
 * extensions and trailer are dropped. */
#include "base/bytes.h"
#include "base/status.h"
#include "http/message.h"
#include "http/octet.h"

#define CHUNK_LINE_MAX 4096
#define TRAILER_MAX 8192
/* 16 digits are 64 bits: the size cannot overflow. */
#define CHUNK_DIGITS_MAX 16

/* ---- chunks ---- */

enum chunk_state {
	SIZE,
	EXTENSION, /* white space was seen: only ';' may follow */
	NAME_BEGIN,
	NAME,
	NAME_END, /* white space after a name: ';' or '=' */
	VALUE_BEGIN,
	VALUE,
	QUOTED,
	QUOTED_PAIR,
	QUOTED_END,
	LINE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILER,
	DONE,
	REFUSED,
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* What may follow a size or a whole extension. */
static enum chunk_state after_part(char c)
{
	if (c == '\r')
		return LINE_LF;
	if (c == ';')
		return NAME_BEGIN;
	return is_blank(c) ? EXTENSION : REFUSED;
}

static enum chunk_state size_step(struct hpx_http_reader *reader, char c)
{
	int digit = hpx_hex_digit(c);

	if (digit < 0)
		return reader->chunk_digits > 0 ? after_part(c) : REFUSED;
	if (reader->chunk_digits == CHUNK_DIGITS_MAX)
		return REFUSED;
	reader->chunk_digits++;
	reader->remaining = reader->remaining * 16 + (uint64_t)digit;
	return SIZE;
}

static enum chunk_state name_step(enum chunk_state state, char c)
{
	if (state == NAME_BEGIN) {
		if (is_blank(c))
			return NAME_BEGIN;
		return hpx_octet_is(c, HPX_OCTET_TOKEN) ? NAME : REFUSED;
	}
	if (c == '=')
		return VALUE_BEGIN;
	if (c == ';')
		return NAME_BEGIN;
	if (is_blank(c))
		return NAME_END;
	if (state == NAME_END)
		return REFUSED;
	if (c == '\r')
		return LINE_LF;
	return hpx_octet_is(c, HPX_OCTET_TOKEN) ? NAME : REFUSED;
}

static enum chunk_state value_step(enum chunk_state state, char c)
{
	if (hpx_octet_is(c, HPX_OCTET_TOKEN))
		return VALUE;
	if (state == VALUE)
		return after_part(c);
	if (is_blank(c))
		return VALUE_BEGIN;
	return c == '"' ? QUOTED : REFUSED;
}

static enum chunk_state quoted_step(enum chunk_state state, char c)
{
	if (!hpx_octet_is(c, HPX_OCTET_VALUE))
		return REFUSED;
	if (state == QUOTED_PAIR)
		return QUOTED;
	if (c == '"')
		return QUOTED_END;
	return c == '\\' ? QUOTED_PAIR : QUOTED;
}

static enum chunk_state extension_step(char c)
{
	if (c == ';')
		return NAME_BEGIN;
	return is_blank(c) ? EXTENSION : REFUSED;
}

static enum chunk_state line_end_step(struct hpx_http_reader *reader, char c)
{
	if (c != '\n')
		return REFUSED;
	reader->line_bytes = 0;
	reader->chunk_digits = 0;
	if (reader->remaining > 0)
		return DATA;
	hpx_scan_trailer(&reader->scan, reader->limits.fields_max);
	return TRAILER;
}

static enum chunk_state step(struct hpx_http_reader *reader, char c)
{
	enum chunk_state state = (enum chunk_state)reader->chunk_state;

	switch (state) {
	case SIZE:
		return size_step(reader, c);
	case EXTENSION:
		return extension_step(c);
	case NAME_BEGIN:
	case NAME:
	case NAME_END:
		return name_step(state, c);
	case VALUE_BEGIN:
	case VALUE:
		return value_step(state, c);
	case QUOTED:
	case QUOTED_PAIR:
		return quoted_step(state, c);
	case QUOTED_END:
		return after_part(c);
	case LINE_LF:
		return line_end_step(reader, c);
	case DATA_CR:
		return c == '\r' ? DATA_LF : REFUSED;
	case DATA_LF:
		return c == '\n' ? SIZE : REFUSED;
	case DATA:
	case TRAILER:
	case DONE:
	case REFUSED:
		break;
	}
	return REFUSED;
}

static enum hpx_http_progress bad(struct hpx_http_reader *reader, enum hpx_http_error error)
{
	reader->error = error;
	reader->chunk_state = REFUSED;
	return HPX_HTTP_BAD;
}

/* One byte of a chunk's line, or of the line end behind its data. */
static enum hpx_http_progress line_byte(struct hpx_http_reader *reader, char c)
{
	if (reader->line_bytes == CHUNK_LINE_MAX)
		return bad(reader, HPX_HTTP_ERROR_CHUNK);
	reader->line_bytes++;

	enum chunk_state next = step(reader, c);
	if (next == REFUSED)
		return bad(reader, HPX_HTTP_ERROR_CHUNK);
	if (next == SIZE && reader->chunk_state == DATA_LF)
		reader->line_bytes = 0;
	reader->chunk_state = (int)next;
	return HPX_HTTP_MORE;
}

static struct hpx_span take_data(struct hpx_http_reader *reader, struct hpx_span bytes)
{
	struct hpx_span data = bytes;

	HPX_ASSERT(reader->chunk_state == DATA && reader->remaining > 0);
	if (data.len > reader->remaining)
		data.len = (size_t)reader->remaining;
	reader->remaining -= data.len;
	if (reader->remaining == 0)
		reader->chunk_state = DATA_CR;
	return data;
}

static enum hpx_http_progress read_trailer(struct hpx_http_reader *reader,
					   struct hpx_span bytes, size_t *ret_used)
{
	HPX_ASSERT(reader->line_bytes < TRAILER_MAX);
	struct hpx_span bounded = hpx_span_first(bytes, TRAILER_MAX - reader->line_bytes);
	enum hpx_http_error error;
	enum hpx_http_progress progress =
		hpx_scan_run(&reader->scan, bounded, ret_used, &error);

	if (progress == HPX_HTTP_BAD)
		return bad(reader, HPX_HTTP_ERROR_TRAILER);
	reader->line_bytes += *ret_used;
	if (progress == HPX_HTTP_DONE)
		reader->chunk_state = DONE;
	else if (reader->line_bytes == TRAILER_MAX)
		return bad(reader, HPX_HTTP_ERROR_TRAILER);
	return progress;
}

static bool chunks_done(const struct hpx_http_reader *reader)
{
	return reader->chunk_state == DONE;
}

static enum hpx_http_progress read_chunks(struct hpx_http_reader *reader, struct hpx_span bytes,
					  struct hpx_span *ret_data, size_t *ret_used)
{
	struct hpx_span data = { bytes.ptr, 0 };
	size_t at = 0;

	while (at < bytes.len && data.len == 0 && !chunks_done(reader)) {
		size_t used = 1;
		enum hpx_http_progress progress = HPX_HTTP_MORE;
		if (reader->chunk_state == DATA) {
			data = take_data(reader, hpx_span_skip(bytes, at));
			used = data.len;
		} else if (reader->chunk_state == TRAILER) {
			progress = read_trailer(reader, hpx_span_skip(bytes, at), &used);
		} else {
			progress = line_byte(reader, bytes.ptr[at]);
		}
		if (progress == HPX_HTTP_BAD)
			return HPX_HTTP_BAD;
		at += used;
	}
	*ret_data = data;
	*ret_used = at;
	return chunks_done(reader) ? HPX_HTTP_DONE : HPX_HTTP_MORE;
}

/* ---- any body ---- */

static enum hpx_http_progress read_length(struct hpx_http_reader *reader,
					  struct hpx_span bytes, struct hpx_span *ret_data,
					  size_t *ret_used)
{
	struct hpx_span data = bytes;

	HPX_ASSERT(reader->framing == HPX_FRAMING_LENGTH || reader->remaining == 0);
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
		return read_chunks(reader, bytes, ret_data, ret_used);
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
		return chunks_done(reader);
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
