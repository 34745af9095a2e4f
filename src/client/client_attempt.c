/* One attempt and its answer. The attempt is a transfer of egress/, as for jobs: on a
 * fresh connection that is closed afterwards, so that libcurl never sends again by
 * itself, and with the proof whether a byte left. HTTP/1.1 only: in HTTP/2 libcurl
 * sends a request again by itself when its stream is refused, and one request per
 * connection gains nothing from HTTP/2. */
#include "base/clock.h"
#include "base/crash_point.h"
#include "base/status.h"
#include "client/client.h"
#include "egress/transfer.h"
#include "http/field.h"

struct attempt_progress {
	struct hapax_client *client;
	struct hpx_transfer *transfer;
	bool sent;
};

/* All of the request was handed to the socket. */
static void note_sent(struct attempt_progress *progress)
{
	const struct hpx_egress_request *request = progress->transfer->request;
	curl_off_t body_bytes = 0;
	long head_bytes = 0;

	if (progress->sent || progress->transfer->state == HPX_TRANSFER_CONNECTING)
		return;
	curl_easy_getinfo(progress->transfer->easy, CURLINFO_REQUEST_SIZE, &head_bytes);
	curl_easy_getinfo(progress->transfer->easy, CURLINFO_SIZE_UPLOAD_T, &body_bytes);
	if (head_bytes == 0 || (size_t)body_bytes < request->body.len)
		return;
	progress->sent = true;
	HPX_CRASH_POINT(call_sent);
}

/* Called at least once a second. */
static int on_progress(void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
		       curl_off_t up)
{
	struct attempt_progress *progress = user;

	note_sent(progress);
	if (!atomic_load(&progress->client->interrupted))
		return hpx_transfer_on_progress(progress->transfer, down_total, down, up_total, up);
	progress->transfer->abort_reason = "interrupted";
	return 1;
}

/* Other than for jobs, the proxies of the environment are used, as people expect of a
 * client. Their answer to CONNECT is not taken for the API's. */
static CURLcode set_up(struct attempt_progress *progress)
{
	CURL *easy = progress->transfer->easy;
	CURLcode code = curl_easy_setopt(easy, CURLOPT_PROXY, NULL);

	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_XFERINFODATA, progress);
	return code;
}

static void fill_request(const struct hapax_call *call, struct hpx_span headers,
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
		/* The boot clock also counts the time in which the machine sleeps;
		 * libcurl's clock does not. */
		.send_until_ms = hpx_clock_boot_ms() + options->timeout_ms,
		.answer_bytes_max = options->answer_bytes_max,
		.ca_file = options->ca_file,
	};
	hpx_egress_request_reset(request);
}

enum hpx_status hpx_attempt_check(const struct hapax_call *call, struct hpx_span headers,
				  struct hpx_egress_request *request)
{
	fill_request(call, headers, request);
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
	struct attempt_progress progress = { .client = call->client };
	const char *problem = "";

	HPX_ASSERT(call->sent && call->sending);
	fill_request(call, headers, request);
	progress.transfer = hpx_transfer_new(request, &problem);
	if (progress.transfer == NULL) {
		hpx_egress_request_set_problem(request, "%s", problem);
		return;
	}
	CURLcode code = set_up(&progress);
	if (code == CURLE_OK)
		code = curl_easy_perform(progress.transfer->easy);
	note_sent(&progress);
	hide_proxy(progress.transfer);
	hpx_transfer_end(progress.transfer, code);
}

/* ---- the answer ---- */

const struct hapax_outcome *hapax_call_outcome(const struct hapax_call *call)
{
	return call != NULL ? &call->outcome : NULL;
}

/* The lines of an answer were written by hpx_answer_take: "Name: value", with a NUL
 * for the CR. */
const char *hapax_call_answer_header(const struct hapax_call *call, const char *name)
{
	if (call == NULL || name == NULL)
		return NULL;
	struct hpx_span lines = hpx_buffer_span(&call->values_in);
	struct hpx_field_line line;

	return hpx_field_line_find(lines, hpx_span_of(name), &line) ? line.value.ptr : NULL;
}

static struct hpx_span field_of(const struct hapax_call *call, const char *name)
{
	return hpx_span_of(hapax_call_answer_header(call, name));
}

bool hpx_answer_take(struct hapax_call *call, struct hpx_egress_request *request)
{
	HPX_ASSERT(request->end == HPX_EGRESS_ANSWERED);
	hpx_buffer_done(&call->headers_in);
	hpx_buffer_done(&call->values_in);
	hpx_buffer_done(&call->body_in);
	call->status = request->status;
	call->headers_in = request->headers_in;
	call->body_in = request->body_in;
	call->body_kept = !request->body_dropped;
	request->headers_in = (struct hpx_buffer){ .max = 0 };
	request->body_in = (struct hpx_buffer){ .max = 0 };
	call->headers_in.max++;
	hpx_buffer_init(&call->values_in, call->headers_in.max);
	if (hpx_buffer_byte(&call->headers_in, '\0') != HPX_OK ||
	    hpx_buffer_append(&call->values_in, hpx_buffer_span(&call->headers_in)) != HPX_OK)
		return false;
	for (size_t i = 0; i < call->values_in.len; i++)
		if (call->values_in.ptr[i] == '\r')
			call->values_in.ptr[i] = '\0';
	return true;
}

struct hpx_retry_facts hpx_answer_facts(const struct hapax_call *call,
					const struct hpx_egress_request *request)
{
	struct hpx_retry_facts facts = { .reached = HPX_REACHED_ANSWER, .retry_after_s = -1 };

	if (request->end != HPX_EGRESS_ANSWERED) {
		facts.reached = request->end == HPX_EGRESS_NOT_SENT ? HPX_REACHED_NOBODY :
								      HPX_REACHED_SILENCE;
		return facts;
	}
	facts.status = call->status;
	facts.replayed = hpx_span_eq(field_of(call, "Idempotent-Replayed"), HPX_SPAN("true"));
	facts.operation = hapax_call_answer_header(call, "Hapax-Operation") != NULL;
	if (request->retry_after_ms >= 0)
		facts.retry_after_s = request->retry_after_ms / 1000;
	if (call->body_kept)
		hpx_retry_read_body(field_of(call, "Content-Type"),
				    hpx_buffer_span(&call->body_in), &facts);
	return facts;
}

void hpx_answer_outcome(struct hapax_call *call)
{
	struct hapax_outcome *outcome = &call->outcome;

	outcome->size = sizeof(*outcome);
	outcome->doubt = call->doubt;
	outcome->attempts = call->attempts;
	outcome->id = call->id;
	outcome->key = call->key;
	outcome->status = call->headers_in.ptr != NULL ? call->status : 0;
	outcome->headers = call->headers_in.ptr != NULL ? call->headers_in.ptr : "";
	outcome->body = call->body_in.ptr != NULL ? call->body_in.ptr : "";
	outcome->body_len = call->body_in.len;
	outcome->body_kept = call->body_kept;
	outcome->reason = call->reason;
}
