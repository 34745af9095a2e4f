/* Messages and what becomes of them, each row with the paragraph it follows.
 * test_message.c feeds every row whole, cut at each byte, and byte by byte. */
#ifndef HPX_TESTS_UNIT_HTTP_VECTORS_H
#define HPX_TESTS_UNIT_HTTP_VECTORS_H

#include "http/message.h"

/* Flags of a good row. */
#define KEEP 1   /* keep_alive */
#define EXPECT 2 /* expect_continue */
#define UPGRADE 4
#define END 8 /* the connection ends after the input */

struct vector {
	const char *rule;
	const char *method; /* the response is to this; NULL: a request */
	struct hpx_span input;
	enum hpx_http_error error; /* NONE: it is read to its end */
	enum hpx_http_framing framing;
	unsigned flags;
	const char *body;
	size_t rest; /* bytes left for the next message */
};

/* A good request, a bad one; a good response to `method`, a bad one. */
#define REQ(rule, input, framing, flags, body, rest) \
	{ \
		rule, NULL, HPX_SPAN_INIT(input), HPX_HTTP_ERROR_NONE, \
			HPX_FRAMING_##framing, flags, body, rest \
	}
#define BAD(rule, input, error) \
	{ \
		rule, NULL, HPX_SPAN_INIT(input), HPX_HTTP_ERROR_##error, \
			HPX_FRAMING_NONE, 0, "", 0 \
	}
#define RES(rule, method, input, framing, flags, body, rest) \
	{ \
		rule, method, HPX_SPAN_INIT(input), HPX_HTTP_ERROR_NONE, \
			HPX_FRAMING_##framing, flags, body, rest \
	}
#define BAD_RES(rule, input, error) \
	{ \
		rule, "POST", HPX_SPAN_INIT(input), HPX_HTTP_ERROR_##error, \
			HPX_FRAMING_NONE, 0, "", 0 \
	}

struct vector_list {
	const char *name;
	const struct vector *rows;
	size_t count;
};

/* Shape of requests, meaning of their fields, responses, chunks. */
extern const struct vector_list request_vectors;
extern const struct vector_list field_vectors;
extern const struct vector_list response_vectors;
extern const struct vector_list chunk_vectors;

#define VECTOR_LIST(name) \
	const struct vector_list name##_vectors = { #name, rows, \
						    sizeof(rows) / sizeof(rows[0]) }

#endif
