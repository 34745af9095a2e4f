/* One request and what came of it, as it is kept for the report. Bodies longer
 * than HPX_EXCHANGE_KEPT are cut for the log (whole ones are compared by their
 * hash); credentials are never kept. */
#ifndef HPX_VERIFY_EXCHANGE_H
#define HPX_VERIFY_EXCHANGE_H

#include "base/bytes.h"
#include "http/message.h"

#define HPX_EXCHANGE_KEPT 8192

/* Where the client goes away. */
enum hpx_verify_cut {
	HPX_CUT_NONE,
	HPX_CUT_HEAD, /* behind the head */
	HPX_CUT_HALF_BODY,
	HPX_CUT_WHOLE_BODY,    /* at once behind the last byte */
	HPX_CUT_BEFORE_ANSWER, /* when the answer begins to come, unread */
};

enum hpx_verify_exchange_end {
	HPX_EXCHANGE_ANSWERED,
	HPX_EXCHANGE_CUT,     /* as was asked */
	HPX_EXCHANGE_REFUSED, /* no connection, or no TLS: nothing was sent */
	HPX_EXCHANGE_LOST,    /* no whole answer came: closed, reset, nonsense */
	HPX_EXCHANGE_TIMEOUT,
	HPX_EXCHANGE_UNSENT, /* a bound of the run was reached, or the run was stopped */
};

struct hpx_verify_exchange {
	unsigned number; /* 1, 2, 3 … in the order of sending */
	const char *row; /* that sent it */
	enum hpx_verify_exchange_end end;
	enum hpx_verify_cut cut;
	int64_t began_ms; /* since the run began */
	int64_t took_ms;
	char problem[160]; /* for people, where there is no answer */
	/* Sent. */
	struct hpx_span request_head; /* without credentials */
	struct hpx_span request_body; /* kept part */
	size_t request_body_bytes;
	char key[300]; /* as sent, for people; may be cut */
	/* Came; zero unless ANSWERED. */
	unsigned status;
	const struct hpx_field *fields;
	size_t field_count;
	struct hpx_span body; /* whole up to the bound of one answer while its row runs;
				      * later its kept part */
	size_t body_bytes;
	uint8_t body_hash[HPX_SHA256_SIZE];
};

/* The value of an answer's field, ptr NULL where there is none. The first one. */
struct hpx_span hpx_verify_exchange_field(const struct hpx_verify_exchange *exchange, struct hpx_span name);

#endif
