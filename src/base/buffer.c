/* The bounded buffer: every byte that is collected goes through reserve(), which calls
 * hpx_buffer_grow where there is no room yet. */
#include "base/buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/recycle.h"
#include "base/span.h"
#include "base/status.h"

void hpx_buffer_init(struct hpx_buffer *buffer, size_t max)
{
	*buffer = (struct hpx_buffer){ .max = max };
}

void hpx_buffer_done(struct hpx_buffer *buffer)
{
	free(buffer->ptr);
	*buffer = (struct hpx_buffer){ .max = buffer->max };
}

void hpx_buffer_recycle(struct hpx_buffer *buffer, size_t max)
{
	if (!HPX_RECYCLES || buffer->cap > HPX_RECYCLED_BYTES_MAX || buffer->cap > max)
		hpx_buffer_done(buffer);
	buffer->len = 0;
	buffer->max = max;
}

enum hpx_status hpx_buffer_grow(struct hpx_buffer *buffer, size_t more)
{
	HPX_ASSERT(buffer->len <= buffer->cap && buffer->len <= buffer->max);
	if (more > buffer->max - buffer->len)
		return HPX_TOO_LARGE;
	size_t need = buffer->len + more;
	if (need <= buffer->cap)
		return HPX_OK;

	size_t cap = buffer->cap ? buffer->cap : 256;
	while (cap < need)
		cap = cap > buffer->max / 2 ? buffer->max : cap * 2;
	char *ptr = realloc(buffer->ptr, cap);
	if (ptr == NULL)
		return HPX_NOMEM;
	buffer->ptr = ptr;
	buffer->cap = cap;
	return HPX_OK;
}

enum hpx_status hpx_buffer_append(struct hpx_buffer *buffer, struct hpx_span s)
{
	if (s.len == 0)
		return HPX_OK;
	enum hpx_status status = hpx_buffer_reserve(buffer, s.len);
	if (status != HPX_OK)
		return status;
	memcpy(buffer->ptr + buffer->len, s.ptr, s.len);
	buffer->len += s.len;
	return HPX_OK;
}

enum hpx_status hpx_buffer_text(struct hpx_buffer *buffer, const char *text)
{
	return hpx_buffer_append(buffer, hpx_span_of(text));
}

enum hpx_status hpx_buffer_printf(struct hpx_buffer *buffer, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0)
		return HPX_INVALID;

	/* One byte more for the terminator that vsnprintf insists on; it is
	 * written but does not count. */
	enum hpx_status status = hpx_buffer_reserve(buffer, (size_t)n + 1);
	if (status != HPX_OK)
		return status;
	va_start(args, format);
	vsnprintf(buffer->ptr + buffer->len, (size_t)n + 1, format, args);
	va_end(args);
	buffer->len += (size_t)n;
	return HPX_OK;
}

void hpx_buffer_consume(struct hpx_buffer *buffer, size_t n)
{
	HPX_ASSERT(n <= buffer->len);
	if (n == 0)
		return;
	memmove(buffer->ptr, buffer->ptr + n, buffer->len - n);
	buffer->len -= n;
}

/* ---- files ---- */

static enum hpx_status read_descriptor(struct hpx_buffer *out, int fd, unsigned *ret_mode)
{
	struct stat about;
	char piece[4096];
	enum hpx_status status = HPX_OK;
	ssize_t n = 1;

	if (fstat(fd, &about) != 0)
		return HPX_IO;
	if (!S_ISREG(about.st_mode))
		return HPX_INVALID;
	while (status == HPX_OK && n != 0) {
		n = read(fd, piece, sizeof(piece));
		if (n > 0)
			status = hpx_buffer_append(out, hpx_span(piece, (size_t)n));
		else if (n < 0 && errno != EINTR)
			status = HPX_IO;
	}
	explicit_bzero(piece, sizeof(piece));
	*ret_mode = about.st_mode;
	return status;
}

enum hpx_status hpx_buffer_read_file(struct hpx_buffer *out, const char *path,
				     unsigned *ret_mode)
{
	/* A pipe must not hold up the caller. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t len = out->len;
	unsigned mode = 0;

	if (fd < 0)
		return HPX_IO;
	enum hpx_status status = read_descriptor(out, fd, &mode);
	int error = errno;
	close(fd);
	errno = error;
	if (status != HPX_OK) {
		out->len = len;
		return status;
	}
	*ret_mode = mode;
	return HPX_OK;
}
