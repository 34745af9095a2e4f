/* Heads and chunk framing, written. Every part is checked as strictly as the
 * reader checks it, so that nothing smuggled is ever emitted: HPX_INVALID.
 * HPX_TOO_LARGE at the buffer's bound. Either leaves the buffer as it was. */
#ifndef HPX_HTTP_WRITE_H
#define HPX_HTTP_WRITE_H

#include "base/buffer.h"
#include "http/message.h"

/* `path` begins with '/', or is "*"; `query` is without its '?', ptr NULL
 * where there is none. */
enum hpx_status hpx_write_request_line(struct hpx_buffer *buffer, struct hpx_span method,
				       struct hpx_span path, struct hpx_span query);
/* HTTP/1.1 always (RFC 9112 §2.3); the reason may be empty. */
enum hpx_status hpx_write_status_line(struct hpx_buffer *buffer, unsigned status,
				      struct hpx_span reason);

/* The name is a token, the value without control bytes. */
enum hpx_status hpx_write_field(struct hpx_buffer *buffer, struct hpx_span name,
				struct hpx_span value);
enum hpx_status hpx_write_field_text(struct hpx_buffer *buffer, const char *name,
				     const char *value);
enum hpx_status hpx_write_field_u64(struct hpx_buffer *buffer, const char *name,
				    uint64_t value);
/* The same where the name is a literal, which needs no check. */
#define HPX_WRITE_FIELD(buffer, name, value) \
	hpx_write_after(buffer, HPX_SPAN("" name ": "), value)
#define HPX_WRITE_FIELD_U64(buffer, name, value) \
	hpx_write_u64_after(buffer, HPX_SPAN("" name ": "), value)
/* `before` is a literal, "Name: ". */
enum hpx_status hpx_write_after(struct hpx_buffer *buffer, struct hpx_span before,
				struct hpx_span value);
enum hpx_status hpx_write_u64_after(struct hpx_buffer *buffer, struct hpx_span before,
				    uint64_t value);
/* A field of a head as it came. In a head that a reader made the field is proved, and
 * is copied as it is, but for the blanks around its value. */
enum hpx_status hpx_write_read_field(struct hpx_buffer *buffer, const struct hpx_http_head *head,
				     size_t number);
enum hpx_status hpx_write_head_end(struct hpx_buffer *buffer);

/* "Not Found" for 404; "" for a number without a registered phrase. */
const char *hpx_reason_phrase(unsigned status);

/* A piece of a body in chunked framing, without copying the bytes. */
struct hpx_chunk {
	char size[20];
	struct hpx_span pieces[3];
};
void hpx_chunk_frame(struct hpx_span bytes, struct hpx_chunk *ret_chunk);

#endif
