/* The HTTP client for requests to other services: deliveries of jobs, probes,
 * authorisation subrequests. One engine is one thread with any number of requests
 * under way, by libcurl. It is exact about whether anything was sent, because that
 * decides whether a payment may be repeated:
 *
 *   NOT_SENT   proved: no byte of the request was handed to a connected socket
 *              (no such host, refused, TLS failed, too late, engine stopped)
 *   NO_ANSWER  bytes may have left, and no complete answer came back (timeout,
 *              reset, half a body, nonsense)
 *   ANSWERED   a complete final answer, by the rules of http/message.h; also
 *              when it came before the request's body was wholly sent
 *
 * The client follows no redirect, keeps no cookie, uses no proxy, reads no .netrc
 * and decodes no content. HTTP/1.1 only: with several requests on one connection,
 * one reset would leave all their outcomes unknown. Not for guarded requests: those
 * go through net/upstream.h. */
#ifndef HPX_EGRESS_EGRESS_H
#define HPX_EGRESS_EGRESS_H

#include "base/buffer.h"

#define HPX_EGRESS_END_LIST(X) \
	X(NOT_SENT, "not sent") \
	X(NO_ANSWER, "no answer") \
	X(ANSWERED, "answered")

enum hpx_egress_end {
#define X(name, text) HPX_EGRESS_##name,
	HPX_EGRESS_END_LIST(X)
#undef X
};

const char *hpx_egress_end_text(enum hpx_egress_end end);

/* The limit of the request's fields together, and of the answer's head. */
#define HPX_EGRESS_HEAD_BYTES_MAX 65536
#define HPX_EGRESS_PROBLEM_SIZE 256

/* A request and its result. The submitter keeps it, and all it points to, until
 * `done`. */
struct hpx_egress_request {
	const char *url; /* http or https; no credential, no fragment */
	const char *method;
	/* "Name: value\r\n", each. Fields that frame the message or belong to the
	 * connection (Content-Length, Connection, Expect, …) are refused. */
	struct hpx_span headers;
	struct hpx_span body;
	/* The request may go out on a kept-alive connection. libcurl then sends it
	 * again by itself, up to five times, where that connection turns out to be
	 * dead before the first byte of an answer: only for a target that honours
	 * keys, or for a GET. Without `reuse` the connection is new and closed
	 * afterwards, and nothing is ever sent a second time. */
	bool reuse;
	int64_t connect_timeout_ms; /* the name's look-up, connection and TLS */
	int64_t timeout_ms;         /* of the whole transfer, once it has begun */
	/* On the boot clock: the first byte leaves by then, or not at all (the
	 * lease under which the request is sent); 0: no such time. */
	int64_t send_until_ms;
	size_t answer_bytes_max; /* of the body */
	const char *ca_file;     /* NULL: the system's */
	/* Called on the engine's thread, once for every request that was accepted.
	 * May submit others and free this one; must not block. */
	void (*done)(struct hpx_egress_request *request);
	void *user;

	/* The result, set when `done` is called. */
	enum hpx_egress_end end;
	uint32_t status;              /* 0 unless ANSWERED */
	struct hpx_buffer headers_in; /* "Name: value\r\n", each; empty unless ANSWERED */
	struct hpx_buffer body_in;    /* empty unless ANSWERED */
	/* The answer was complete, but its body was larger than answer_bytes_max
	 * (or than memory): read to its end and not kept. */
	bool body_dropped;
	/* With `reuse`: libcurl sent the request more than once. The answer is that
	 * to the last copy; an earlier copy may have arrived too. */
	bool resent;
	int64_t retry_after_ms; /* -1: none */
	int64_t sent_ms;        /* boot clock, of the last byte sent; -1: NOT_SENT */
	/* For people; empty when ANSWERED. No credential, no query. */
	char problem[HPX_EGRESS_PROBLEM_SIZE];

	struct hpx_egress_request *next; /* of the engine's queue */
};

/* Empties the result, before the request is checked or sent. */
void hpx_egress_request_reset(struct hpx_egress_request *request);
/* HPX_INVALID and HPX_TOO_LARGE fill `problem`. */
enum hpx_status hpx_egress_request_check(struct hpx_egress_request *request);
/* Sets the problem; bytes that are not printable become '?'. */
void hpx_egress_request_set_problem(struct hpx_egress_request *request, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Frees the buffers of the result; also after a submit that was refused. */
void hpx_egress_request_done(struct hpx_egress_request *request);

struct hpx_egress_options {
	unsigned running_max; /* transfers at once; other requests wait in a queue */
};

struct hpx_egress;

/* HPX_UNSUPPORTED: a libcurl that has another TLS than OpenSSL, or that blocks
 * on look-ups. */
enum hpx_status hpx_egress_start(const struct hpx_egress_options *options,
				 struct hpx_egress **ret_egress);

/* From any thread. HPX_OK: accepted, `done` will be called. Otherwise nothing
 * happened and `done` is not called: HPX_INVALID, HPX_TOO_LARGE (`problem` says
 * what is wrong with the request; a second try would end the same), HPX_CLOSED
 * (the engine is stopped). */
enum hpx_status hpx_egress_submit(struct hpx_egress *egress,
				  struct hpx_egress_request *request);

/* Accepts no more requests, ends those that have not begun, lets the transfers go on
 * for `grace_ms`, then ends them too. Afterwards every `done` has been called and the
 * thread has ended. Not from `done`. */
void hpx_egress_stop(struct hpx_egress *egress, int64_t grace_ms);

/* After stop, when no thread submits any more. NULL does nothing. */
void hpx_egress_free(struct hpx_egress *egress);

#endif
