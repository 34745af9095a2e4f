/* One attempt, by the transfer that jobs are delivered with (egress/): a fresh
 * connection that is closed behind it, so that libcurl never sends again by
 * itself, and the proof whether a byte left. HTTP/1.1 only: in HTTP/2 libcurl
 * does send again by itself, where a stream is refused, and with one request on
 * a connection there is nothing to be had for that. */
#include "base/clock.h"
#include "base/crash_point.h"
#include "client/client.h"
#include "egress/transfer.h"

struct watch {
	struct hapax_client *client;
	struct hpx_transfer *transfer;
	bool sent;
};

/* All of the request was handed to the socket. */
static void note_sent(struct watch *watch)
{
	const struct hpx_egress_request *request = watch->transfer->request;
	curl_off_t body_bytes = 0;
	long head_bytes = 0;

	if (watch->sent || watch->transfer->state == HPX_TRANSFER_CONNECTING)
		return;
	curl_easy_getinfo(watch->transfer->easy, CURLINFO_REQUEST_SIZE, &head_bytes);
	curl_easy_getinfo(watch->transfer->easy, CURLINFO_SIZE_UPLOAD_T, &body_bytes);
	if (head_bytes == 0 || (size_t)body_bytes < request->body.len)
		return;
	watch->sent = true;
	HPX_CRASH_POINT(call_sent);
}

/* Called at least once a second. */
static int on_progress(void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
		       curl_off_t up)
{
	struct watch *watch = user;

	note_sent(watch);
	if (!atomic_load(&watch->client->interrupted))
		return hpx_transfer_on_progress(watch->transfer, down_total, down, up_total, up);
	watch->transfer->abort_reason = "interrupted";
	return 1;
}

/* What is other than for jobs: the proxies of the environment are asked, as
 * whoever runs a client expects, and their answer to CONNECT is not taken for
 * the API's. */
static CURLcode set_up(struct watch *watch)
{
	CURL *easy = watch->transfer->easy;
	CURLcode code = curl_easy_setopt(easy, CURLOPT_PROXY, NULL);

	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_XFERINFODATA, watch);
	return code;
}

static void fill(const struct hapax_call *call, struct hpx_span headers,
		 struct hpx_egress_request *request)
{
	const struct hapax_client_options *options = &call->client->options;

	*request = (struct hpx_egress_request){
		.url = call->url,
		.method = call->method,
		.headers = headers,
		.body = hpx_span(call->body, call->body_len),
		.connect_timeout_ms = options->connect_timeout_ms,
		.timeout_ms = options->timeout_ms,
		/* A machine that slept meanwhile does not go on where it was: the
		 * boot clock counts that, libcurl's does not. */
		.send_until_ms = hpx_clock_boot_ms() + options->timeout_ms,
		.answer_bytes_max = options->answer_bytes_max,
		.ca_file = options->ca_file,
	};
	hpx_egress_request_reset(request);
}

enum hpx_status hpx_attempt_check(const struct hapax_call *call, struct hpx_span headers,
				  struct hpx_egress_request *request)
{
	fill(call, headers, request);
	return hpx_egress_request_check(request);
}

/* libcurl quotes a proxy that it does not understand, password and all. */
static void hide_proxy(struct hpx_transfer *transfer)
{
	if (hpx_span_starts(hpx_span_of(transfer->error), HPX_SPAN("Unsupported proxy")))
		transfer->abort_reason = "the proxy that the environment names cannot be used";
}

void hpx_attempt_run(struct hapax_call *call, struct hpx_span headers,
		     struct hpx_egress_request *request)
{
	struct watch watch = { .client = call->client };
	const char *problem = "";

	fill(call, headers, request);
	watch.transfer = hpx_transfer_new(request, &problem);
	if (watch.transfer == NULL) {
		hpx_egress_request_set_problem(request, "%s", problem);
		return;
	}
	CURLcode code = set_up(&watch);
	if (code == CURLE_OK)
		code = curl_easy_perform(watch.transfer->easy);
	note_sent(&watch);
	hide_proxy(watch.transfer);
	hpx_transfer_end(watch.transfer, code);
}
