/* What a page of another origin may read of an answer (the CORS part of the
 * Fetch standard), over header lines: "Name: value", each with CR LF behind it.
 *
 * 1. Only a listed origin is ever named, never whatever was sent.
 * 2. An answer names one origin: the asker's. What a stored answer said to whoever
 *    asked first is replaced or dropped.
 * 3. Every answer says Vary: Origin, the one that names nobody too; otherwise a
 *    cache could give one asker the answer of another. */
#ifndef HPX_HTTP_CORS_H
#define HPX_HTTP_CORS_H

#include "base/buffer.h"
#include "http/message.h"

struct hpx_cors {
	const struct hpx_span *origins; /* as browsers write them; "*" alone: any */
	size_t origin_count;            /* 0: hapax says nothing about it */
	bool credentials;
};

/* Whose answer it is. */
enum hpx_cors_answer {
	HPX_CORS_OWN,    /* hapax's */
	HPX_CORS_REPLAY, /* stored: its headers were meant for whoever asked first */
	HPX_CORS_FIRST,  /* the upstream's to this very request: who may read it is
			   * the application's word, and stands */
};

static inline bool hpx_cors_is_on(const struct hpx_cors *cors)
{
	return cors->origin_count > 0;
}

/* The request's Origin; ptr NULL where there is none, or more than one. */
struct hpx_span hpx_cors_origin(const struct hpx_http_head *head);

/* What Access-Control-Allow-Origin says to this origin; ptr NULL: nothing. */
struct hpx_span hpx_cors_allowed(const struct hpx_cors *cors, struct hpx_span origin);

/* Appends the answer's `lines` as this origin gets them: with what hapax says
 * of who may read, the names of its headers in Access-Control-Expose-Headers,
 * and Origin in Vary, each merged with what is there. Without `cors`, as they
 * are. A failure leaves the buffer as it was. */
enum hpx_status hpx_cors_write(const struct hpx_cors *cors, enum hpx_cors_answer answer,
			       struct hpx_span origin, struct hpx_span lines,
			       struct hpx_buffer *out);

/* Appends what a preflight is told besides that: the methods; the headers that
 * hapax reads itself, and those of `asked` (Access-Control-Request-Headers)
 * that a browser may set at all; and for how long this holds. */
enum hpx_status hpx_cors_write_preflight(struct hpx_span methods, struct hpx_span key_header,
					 struct hpx_span asked, struct hpx_buffer *out);

/* Whether a browser could send exactly this as Origin, "null" included: scheme, host,
 * and the port where it is not the scheme's own (RFC 6454 §6.2). What a browser never
 * sends would never match. `*ret_reason` says what is wrong and what would be right, as
 * a sentence about the text. */
bool hpx_origin_valid(struct hpx_span text, const char **ret_reason);

#endif
