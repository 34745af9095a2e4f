/* The lower half of the message reader: why a message is refused, how far a reader has
 * come, and the shape of a head, byte by byte: start line, header lines, empty line.
 *
 * The scanner remembers where in the grammar it is, so bytes may come in any portions
 * and each is looked at once; the first byte that cannot belong to any head is refused
 * there and then. The scanner finds no meaning: lengths, Host and the like are judged
 * over the whole head (message_head.c). */
#ifndef HPX_HTTP_SCAN_H
#define HPX_HTTP_SCAN_H

#include "base/span.h"

/* X(name, status to answer a client with, sentence). What a status says here
 * is meant for requests; a refused response is the caller's business. */
#define HPX_HTTP_ERROR_LIST(X) \
	X(NONE, 0, "") \
	X(REQUEST_LINE, 400, "the request line is malformed") \
	X(STATUS_LINE, 502, "the status line is malformed") \
	X(VERSION, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here") \
	X(METHOD, 400, "the method is not a token") \
	X(TARGET, 400, "the request target has bytes that are not allowed") \
	X(LINE_END, 400, "a line does not end with CR LF") \
	X(FIELD_NAME, 400, "a header name is empty or not a token") \
	X(FIELD_SPACE, 400, "white space before the colon of a header") \
	X(FIELD_VALUE, 400, "a control byte in a header value") \
	X(FIELD_FOLDED, 400, "a folded header line") \
	X(HEAD_TOO_LARGE, 431, "the request head is too large") \
	X(TOO_MANY_FIELDS, 431, "too many header lines") \
	X(CONTENT_LENGTH, 400, "Content-Length is not one number") \
	X(LENGTH_AND_ENCODING, 400, "both Content-Length and Transfer-Encoding") \
	X(TRANSFER_ENCODING, 400, "a Transfer-Encoding other than chunked") \
	X(HOST, 400, "Host is missing, repeated or malformed") \
	X(EXPECT, 417, "an expectation other than 100-continue") \
	X(CONNECTION, 400, "Connection names a header that must travel, or too many") \
	X(CHUNK, 400, "a chunk is malformed") \
	X(TRAILER, 400, "the trailer is malformed or too large") \
	X(INCOMPLETE, 400, "the connection ended before the message did")

enum hpx_http_error {
#define X(name, status, text) HPX_HTTP_ERROR_##name,
	HPX_HTTP_ERROR_LIST(X)
#undef X
};

unsigned hpx_http_error_status(enum hpx_http_error error);
const char *hpx_http_error_text(enum hpx_http_error error);

enum hpx_http_progress { HPX_HTTP_MORE,
			 HPX_HTTP_DONE,
			 HPX_HTTP_BAD };

/* ---- the scanner ---- */

/* What may come next. */
enum hpx_scan_state {
	HPX_SCAN_BEGIN, /* a request line, or one empty line before it */
	HPX_SCAN_BEGIN_LF,
	HPX_SCAN_METHOD_BEGIN,
	HPX_SCAN_METHOD,
	HPX_SCAN_TARGET_BEGIN,
	HPX_SCAN_TARGET,
	HPX_SCAN_VERSION,
	HPX_SCAN_STATUS,
	HPX_SCAN_STATUS_END,
	HPX_SCAN_REASON,
	HPX_SCAN_LINE_LF,
	HPX_SCAN_FIELD_BEGIN,
	HPX_SCAN_NAME,
	HPX_SCAN_VALUE,
	HPX_SCAN_END_LF,
	HPX_SCAN_DONE,
	HPX_SCAN_STATES
};

struct hpx_scan {
	enum hpx_scan_state state;
	bool response;
	unsigned matched; /* bytes of "HTTP/1.1", or digits of the status code */
	unsigned version; /* 10 and 11 once it is read */
	unsigned status;
	size_t field_count;
	size_t fields_max;
};

void hpx_scan_request(struct hpx_scan *scan, size_t fields_max);
void hpx_scan_response(struct hpx_scan *scan, size_t fields_max);
/* Header lines alone, for the trailer of a chunked body. */
void hpx_scan_trailer(struct hpx_scan *scan, size_t fields_max);

/* Goes on with `bytes`. DONE: the empty line ended at `*ret_used`. MORE: all
 * were used. BAD: `*ret_error`. */
enum hpx_http_progress hpx_scan_run(struct hpx_scan *scan, struct hpx_span bytes,
				    size_t *ret_used, enum hpx_http_error *ret_error);

#endif
