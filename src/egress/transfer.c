/* A transfer's life: made, watched for what leaves, and judged at its end. */
#include "egress/transfer.h"

#include <stdlib.h>

#include "base/clock.h"
#include "egress/egress_request.h"

static void transfer_free(struct hpx_transfer *transfer)
{
	hpx_transfer_answer_done(transfer);
	curl_easy_cleanup(transfer->easy);
	curl_slist_free_all(transfer->lines);
	free(transfer);
}

static bool is_too_late(const struct hpx_egress_request *request)
{
	return request->send_until_ms > 0 && hpx_clock_boot_ms() > request->send_until_ms;
}

struct hpx_transfer *hpx_transfer_new(struct hpx_egress_request *request,
				      const char **ret_problem)
{
	if (is_too_late(request)) {
		*ret_problem = "its turn came too late";
		return NULL;
	}
	struct hpx_transfer *transfer = calloc(1, sizeof(*transfer));
	if (transfer == NULL) {
		*ret_problem = curl_easy_strerror(CURLE_OUT_OF_MEMORY);
		return NULL;
	}
	transfer->request = request;
	hpx_transfer_answer_init(transfer);
	transfer->easy = curl_easy_init();
	CURLcode code = transfer->easy == NULL ? CURLE_OUT_OF_MEMORY : hpx_transfer_setup(transfer);
	if (code == CURLE_OK)
		return transfer;
	*ret_problem = curl_easy_strerror(code);
	transfer_free(transfer);
	return NULL;
}

/* The connection is ready, TLS included; the request follows at once. */
int hpx_transfer_on_ready(void *user, char *peer_ip, char *local_ip, int peer_port,
			  int local_port)
{
	struct hpx_transfer *transfer = user;

	(void)peer_ip;
	(void)local_ip;
	(void)peer_port;
	(void)local_port;
	if (transfer->state != HPX_TRANSFER_CONNECTING) {
		transfer->request->resent = transfer->request->reuse;
		if (transfer->request->reuse)
			return CURL_PREREQFUNC_OK;
		transfer->trouble = "it would have been sent a second time";
		return CURL_PREREQFUNC_ABORT;
	}
	if (is_too_late(transfer->request)) {
		transfer->trouble = "the connection came too late";
		return CURL_PREREQFUNC_ABORT;
	}
	transfer->state = HPX_TRANSFER_SENDING;
	transfer->request->sent_ms = hpx_clock_boot_ms();
	return CURL_PREREQFUNC_OK;
}

/* A time that is a little late errs on the safe side: what counts from the
 * last byte sent (settle_after) is waited for. */
static void note_sent(struct hpx_transfer *transfer)
{
	curl_off_t body_bytes = 0;
	long head_bytes = 0;

	if (transfer->state == HPX_TRANSFER_CONNECTING)
		return;
	curl_easy_getinfo(transfer->easy, CURLINFO_REQUEST_SIZE, &head_bytes);
	curl_easy_getinfo(transfer->easy, CURLINFO_SIZE_UPLOAD_T, &body_bytes);
	if (head_bytes + body_bytes == transfer->sent_bytes)
		return;
	transfer->sent_bytes = head_bytes + body_bytes;
	transfer->request->sent_ms = hpx_clock_boot_ms();
}

/* Called whenever libcurl has done something, the last time while it still has
 * the connection. */
int hpx_transfer_on_progress(void *user, curl_off_t down_total, curl_off_t down,
			     curl_off_t up_total, curl_off_t up)
{
	(void)down_total;
	(void)down;
	(void)up_total;
	(void)up;
	note_sent(user);
	hpx_transfer_answer_note_closing(user);
	return 0;
}

static enum hpx_egress_end judge(const struct hpx_transfer *transfer, CURLcode code)
{
	if (transfer->state == HPX_TRANSFER_CONNECTING)
		return HPX_EGRESS_NOT_SENT;
	return hpx_transfer_answer_is_whole(transfer, code) ? HPX_EGRESS_ANSWERED : HPX_EGRESS_NO_ANSWER;
}

static const char *reason(const struct hpx_transfer *transfer, CURLcode code)
{
	if (transfer->trouble != NULL)
		return transfer->trouble;
	if (code == CURLE_OK)
		return "the connection ended before the answer did";
	return transfer->error[0] != '\0' ? transfer->error : curl_easy_strerror(code);
}

/* What came of an incomplete answer is not handed out: it must not be taken
 * for one. Its status is told to people. */
static void forget_answer(struct hpx_transfer *transfer, CURLcode code)
{
	struct hpx_egress_request *request = transfer->request;

	if (transfer->state == HPX_TRANSFER_ANSWERING)
		hpx_egress_request_blame(request, "incomplete answer (%u): %s", request->status,
					 reason(transfer, code));
	else
		hpx_egress_request_blame(request, "%s", reason(transfer, code));
	hpx_egress_request_done(request);
	request->status = 0;
	request->body_dropped = false;
	request->retry_after_ms = -1;
}

void hpx_transfer_end(struct hpx_transfer *transfer, CURLcode code)
{
	struct hpx_egress_request *request = transfer->request;

	note_sent(transfer);
	request->end = judge(transfer, code);
	if (request->end != HPX_EGRESS_ANSWERED)
		forget_answer(transfer, code);
	transfer_free(transfer);
}
