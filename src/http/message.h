/* HTTP/1.1 messages over spans: the one strict reader, for requests and
 * responses alike. Incremental over whatever bytes arrive, linear, bounded,
 * no leniency switch (RFC 9112). It holds no bytes itself: the caller keeps
 * the head's bytes in one place until the message is done. */
#ifndef HPX_HTTP_MESSAGE_H
#define HPX_HTTP_MESSAGE_H

#include "base/arena.h"
#include "base/span.h"
#include "base/status.h"

#define HPX_HTTP_FIELDS_MAX 128

struct hpx_field {
	struct hpx_span name;   /* as sent */
	struct hpx_span value;  /* without OWS at its ends */
};

/* How the body's end is found (RFC 9112 §6.3). */
enum hpx_http_framing {
	HPX_FRAMING_NONE,      /* no body */
	HPX_FRAMING_LENGTH,
	HPX_FRAMING_CHUNKED,
	HPX_FRAMING_CLOSE,     /* responses only: until the connection ends */
	HPX_FRAMING_TUNNEL,    /* 101, or 2xx to CONNECT: not HTTP any more */
};

struct hpx_http_head {
	/* Requests. */
	struct hpx_span method;
	struct hpx_span target;      /* as sent */
	/* Responses. */
	unsigned status;
	struct hpx_span reason;
	/* Both. */
	unsigned minor;              /* 0 or 1 of HTTP/1.x */
	const struct hpx_field *fields;
	size_t field_count;
	enum hpx_http_framing framing;
	uint64_t content_length;     /* with HPX_FRAMING_LENGTH */
	bool has_content_length;     /* also on HEAD and 304 answers */
	bool keep_alive;             /* version and Connection taken together */
	bool expect_continue;        /* Expect: 100-continue on HTTP/1.1 */
	bool upgrade;                /* Connection names Upgrade and Upgrade is there */
};

/* Why a message is refused: X(name, status to answer with, sentence). */
#define HPX_HTTP_ERROR_LIST(X)                                                \
	X(NONE, 0, "")                                                        \
	X(REQUEST_LINE, 400, "the request line is malformed")                 \
	X(STATUS_LINE, 502, "the status line is malformed")                   \
	X(VERSION, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here")         \
	X(METHOD, 400, "the method is not a token")                           \
	X(TARGET, 400, "the request target has bytes that are not allowed")   \
	X(LINE_END, 400, "a line does not end with CR LF")                    \
	X(FIELD_NAME, 400, "a header name is empty or not a token")           \
	X(FIELD_SPACE, 400, "white space before the colon of a header")       \
	X(FIELD_VALUE, 400, "a control byte in a header value")               \
	X(FIELD_FOLDED, 400, "a folded header line")                          \
	X(HEAD_TOO_LARGE, 431, "the request head is too large")               \
	X(TOO_MANY_FIELDS, 431, "too many header lines")                      \
	X(CONTENT_LENGTH, 400, "Content-Length is not one number")            \
	X(LENGTH_AND_ENCODING, 400, "both Content-Length and Transfer-Encoding") \
	X(TRANSFER_ENCODING, 400, "a Transfer-Encoding other than chunked")   \
	X(HOST, 400, "Host is missing, repeated or malformed")                \
	X(EXPECT, 417, "an expectation other than 100-continue")              \
	X(CONNECTION, 400, "Connection names a header that must travel")      \
	X(CHUNK, 400, "a chunk is malformed")                                 \
	X(TRAILER, 400, "the trailer is malformed or too large")

enum hpx_http_error {
#define X(name, status, text) HPX_HTTP_ERROR_##name,
	HPX_HTTP_ERROR_LIST(X)
#undef X
};

unsigned hpx_http_error_status(enum hpx_http_error error);
const char *hpx_http_error_text(enum hpx_http_error error);
const char *hpx_http_error_name(enum hpx_http_error error);

enum hpx_http_progress { HPX_HTTP_MORE, HPX_HTTP_DONE, HPX_HTTP_BAD };

struct hpx_http_limits {
	size_t head_bytes_max;     /* request line + fields, each message */
	size_t fields_max;         /* <= HPX_HTTP_FIELDS_MAX */
};

/* One message's reader. Set up with one of the init functions; to be set up
 * again for the next message on the connection. */
struct hpx_http_reader {
	bool response;
	bool head_request;         /* response to HEAD: no body follows */
	bool connect_request;
	struct hpx_http_limits limits;
	enum hpx_http_error error;
	size_t scanned;            /* head bytes already looked at */
	/* Body. */
	int chunk_state;
	enum hpx_http_framing framing;
	uint64_t remaining;        /* of the body or of the current chunk */
	uint64_t chunk_size;
	size_t line_bytes;         /* of the chunk line or trailer so far */
	unsigned chunk_digits;
};

void hpx_http_reader_request(struct hpx_http_reader *reader,
			     const struct hpx_http_limits *limits);
void hpx_http_reader_response(struct hpx_http_reader *reader,
			      const struct hpx_http_limits *limits,
			      struct hpx_span request_method);

/* Looks for a whole head at the front of `bytes`: all that has come of this
 * message so far, starting with its first byte (one leading CRLF before a
 * request line is skipped, RFC 9112 §2.2). MORE: call again with more bytes
 * (scanning goes on where it stopped; what is already wrong is said at once,
 * a head beyond its bound too). DONE: `*ret_head` is filled, its spans point
 * into `bytes`, its fields array is from `arena`, `*ret_used` says how many
 * bytes the head took. BAD: reader->error says why (memory: HEAD_TOO_LARGE). */
enum hpx_http_progress hpx_http_read_head(struct hpx_http_reader *reader,
					  struct hpx_span bytes, struct hpx_arena *arena,
					  struct hpx_http_head *ret_head, size_t *ret_used);

/* After a DONE head: takes body bytes from the front of `bytes`. Each call
 * uses `*ret_used` bytes and gives one piece of the body in `*ret_data`
 * (pointing into `bytes`, possibly empty). MORE: call again with what is left,
 * or with new bytes when all were used. DONE: the body ends here (the rest
 * belongs to the next message). Chunk extensions and trailers are read,
 * bounded and dropped. */
enum hpx_http_progress hpx_http_read_body(struct hpx_http_reader *reader,
					  struct hpx_span bytes, struct hpx_span *ret_data,
					  size_t *ret_used);

/* The connection ended. DONE where that is a proper end of this body
 * (HPX_FRAMING_CLOSE), otherwise BAD: the message is incomplete. */
enum hpx_http_progress hpx_http_read_end(struct hpx_http_reader *reader);

#endif
