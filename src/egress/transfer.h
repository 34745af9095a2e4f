/* One transfer: a request under way by libcurl. Used by the engine, and by the client
 * library for its blocking calls. A transfer belongs to one thread. Its state moves
 * only forward:
 *
 *   CONNECTING ──▶ SENDING ──▶ ANSWERING
 *
 *   CONNECTING   libcurl looks up, connects, shakes hands: no byte of the request
 *                has left
 *   SENDING      on_ready has allowed libcurl to send: bytes may have left
 *   ANSWERING    the head of the final answer has been read (take_head)
 *
 * 1. The result is NOT_SENT exactly in CONNECTING; sent_ms is not set then.
 * 2. The result is ANSWERED only in ANSWERING, when the body is complete too.
 * 3. Without `reuse`, CONNECTING is left once: libcurl's second try is refused. */
#ifndef HPX_EGRESS_TRANSFER_H
#define HPX_EGRESS_TRANSFER_H

#include <curl/curl.h>

#include "egress/egress.h"
#include "http/message.h"

enum hpx_transfer_state {
	HPX_TRANSFER_CONNECTING,
	HPX_TRANSFER_SENDING,
	HPX_TRANSFER_ANSWERING,
};

struct hpx_transfer {
	struct hpx_transfer *next;
	struct hpx_transfer *prev;
	struct hpx_egress_request *request;
	enum hpx_transfer_state state;
	CURL *easy;
	struct curl_slist *lines;
	curl_off_t sent_bytes;    /* at the last note_sent */
	const char *abort_reason; /* why we end the transfer ourselves; NULL: we do not */

	/* The answer. */
	struct hpx_http_reader reader;
	struct hpx_buffer head; /* the bytes of the head, until it is complete */
	enum hpx_http_framing framing;
	uint64_t length;     /* with HPX_FRAMING_LENGTH */
	uint64_t body_bytes; /* so far, kept or not */
	bool closing_alert;  /* TLS was closed, not cut off */

	char error[CURL_ERROR_SIZE];
};

/* Makes a transfer, ready for curl_multi_add_handle or curl_easy_perform; the easy
 * handle's private pointer is the transfer. NULL: `*ret_problem` says why. */
struct hpx_transfer *hpx_transfer_new(struct hpx_egress_request *request,
				      const char **ret_problem);
/* Fills the request's result and frees the transfer, whose handle must not belong to
 * a multi handle any more. The caller calls `done`. */
void hpx_transfer_end(struct hpx_transfer *transfer, CURLcode code);

/* libcurl's progress callback; `user` is the transfer. For a caller that puts its
 * own in front. */
int hpx_transfer_on_progress(void *user, curl_off_t down_total, curl_off_t down,
			     curl_off_t up_total, curl_off_t up);

/* egress_request.c: the fields of a request that was checked, and those that the
 * engine adds; NULL when there is no memory. */
struct curl_slist *hpx_egress_request_lines(const struct hpx_egress_request *request);

#endif
