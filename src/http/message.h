/* HTTP/1.1 messages over spans: the one strict reader, for requests and
 * responses alike. Incremental over whatever bytes arrive, linear, bounded,
 * no leniency switch (RFC 9112). It holds no bytes itself: the caller keeps
 * the head's bytes in one place until the message is done. */
#ifndef HPX_HTTP_MESSAGE_H
#define HPX_HTTP_MESSAGE_H

#include "base/arena.h"
#include "base/span.h"
#include "base/status.h"
#include "http/field_name.h"
#include "http/scan.h"

#define HPX_HTTP_FIELDS_MAX 128

struct hpx_field {
	struct hpx_span name;  /* as sent */
	struct hpx_span value; /* without OWS at its ends */
};

/* How the body's end is found (RFC 9112 §6.3). */
enum hpx_http_framing {
	HPX_FRAMING_NONE, /* no body */
	HPX_FRAMING_LENGTH,
	HPX_FRAMING_CHUNKED,
	HPX_FRAMING_CLOSE,  /* responses only: until the connection ends */
	HPX_FRAMING_TUNNEL, /* 101, or 2xx to CONNECT: not HTTP any more */
};

struct hpx_http_head {
	/* Requests. */
	struct hpx_span method;
	struct hpx_span target; /* as sent */
	/* Responses. */
	unsigned status;
	struct hpx_span reason;
	/* Both. */
	unsigned minor; /* 0 or 1 of HTTP/1.x */
	const struct hpx_field *fields;
	size_t field_count;
	/* The index of the fields. A head that no reader made has none (`known` is NULL),
	 * and its fields are searched. */
	const uint8_t *known;          /* the number of each field's name: hpx_field_name */
	bool nominates;                /* Connection names more than keep-alive and upgrade */
	uint8_t first[HPX_NAME_COUNT]; /* the first field of a name, counted from 1; 0: none */
	uint64_t repeated;             /* the names that more than one field has, as bits */
	enum hpx_http_framing framing;
	uint64_t content_length; /* with HPX_FRAMING_LENGTH */
	bool has_content_length; /* also on HEAD and 304 answers */
	bool keep_alive;         /* version and Connection taken together */
	bool expect_continue;    /* Expect: 100-continue on HTTP/1.1 */
	bool upgrade;            /* Connection names Upgrade and Upgrade is there */
};

struct hpx_http_limits {
	size_t head_bytes_max; /* request line + fields, each message */
	size_t fields_max;     /* <= HPX_HTTP_FIELDS_MAX */
};

/* One message's reader. Set up with one of the init functions; to be set up
 * again for the next message on the connection. */
struct hpx_http_reader {
	bool response;
	bool head_request; /* response to HEAD: no body follows */
	bool connect_request;
	bool head_done;
	struct hpx_http_limits limits;
	enum hpx_http_error error;
	size_t scanned;       /* head bytes already looked at */
	struct hpx_scan scan; /* of the head, later of the trailer */
	/* Body. */
	enum hpx_http_framing framing;
	uint64_t remaining; /* of the body or of the current chunk */
	int chunk_state;
	size_t line_bytes; /* of the chunk line or trailer so far */
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

/* The connection ended. DONE where the body was whole or this is its proper
 * end (HPX_FRAMING_CLOSE, HPX_FRAMING_TUNNEL), otherwise BAD: INCOMPLETE. */
enum hpx_http_progress hpx_http_read_end(struct hpx_http_reader *reader);

#endif
