/* The chunked coding, reading side (RFC 9112 §7.1). */
#ifndef HPX_HTTP_CHUNK_H
#define HPX_HTTP_CHUNK_H

#include "http/message.h"

/* As hpx_http_read_body, for HPX_FRAMING_CHUNKED. */
enum hpx_http_progress hpx_chunk_read(struct hpx_http_reader *reader, struct hpx_span bytes,
				      struct hpx_span *ret_data, size_t *ret_used);

bool hpx_chunk_done(const struct hpx_http_reader *reader);

#endif
