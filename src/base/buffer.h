/* Bytes that grow up to a maximum given when the buffer is made. Reaching it
 * is HPX_TOO_LARGE and leaves the buffer as it was; it never grows past it. */
#ifndef HPX_BASE_BUFFER_H
#define HPX_BASE_BUFFER_H

#include "base/span.h"
#include "base/status.h"

struct hpx_buffer {
	char *ptr;
	size_t len;
	size_t cap;
	size_t max;
};

void hpx_buffer_init(struct hpx_buffer *buffer, size_t max);
void hpx_buffer_done(struct hpx_buffer *buffer);

/* Empties it and sets its bound anew; a small allocation is kept for the next use
 * (recycle.h). Bytes behind `len` are never read. */
void hpx_buffer_recycle(struct hpx_buffer *buffer, size_t max);

static inline struct hpx_span hpx_buffer_span(const struct hpx_buffer *buffer)
{
	return hpx_span(buffer->ptr, buffer->len);
}

enum hpx_status hpx_buffer_grow(struct hpx_buffer *buffer, size_t more);
/* Makes room for `more` bytes behind what is there: afterwards
 * ptr + len .. ptr + len + more may be written and `len` be raised. */
static inline enum hpx_status hpx_buffer_reserve(struct hpx_buffer *buffer, size_t more)
{
	if (more <= buffer->cap - buffer->len && more <= buffer->max - buffer->len)
		return HPX_OK;
	return hpx_buffer_grow(buffer, more);
}

enum hpx_status hpx_buffer_append(struct hpx_buffer *buffer, struct hpx_span s);
static inline enum hpx_status hpx_buffer_byte(struct hpx_buffer *buffer, char c)
{
	if (buffer->len >= buffer->cap || buffer->len >= buffer->max)
		return hpx_buffer_append(buffer, hpx_span(&c, 1));
	buffer->ptr[buffer->len++] = c;
	return HPX_OK;
}
enum hpx_status hpx_buffer_text(struct hpx_buffer *buffer, const char *text);
enum hpx_status hpx_buffer_printf(struct hpx_buffer *buffer, const char *format,
				  ...) __attribute__((format(printf, 2, 3)));

/* Drops the first `n` bytes (n <= len). */
void hpx_buffer_consume(struct hpx_buffer *buffer, size_t n);

/* Appends the whole of a regular file; `*ret_mode` is its mode (st_mode). HPX_TOO_LARGE:
 * beyond the buffer's maximum. HPX_INVALID: no regular file. HPX_IO: errno says why. After
 * any of them `out` is as it was. */
enum hpx_status hpx_buffer_read_file(struct hpx_buffer *out, const char *path,
				     unsigned *ret_mode);

#endif
