/* One transfer by libcurl: see transfer.h. In this order: reading the answer, what
 * libcurl is told to do and not to do, and the transfer's life from its start to
 * its result. */
#include "egress/transfer.h"

#include <openssl/ssl.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "http/field.h"
#include "http/retry_after.h"

static const struct hpx_http_limits limits = {
	.head_bytes_max = HPX_EGRESS_HEAD_BYTES_MAX,
	.fields_max = HPX_HTTP_FIELDS_MAX,
};

static void expect_head(struct hpx_transfer *transfer)
{
	transfer->head.len = 0;
	hpx_http_reader_response(&transfer->reader, &limits,
				 hpx_span_of(transfer->request->method));
}

static void answer_init(struct hpx_transfer *transfer)
{
	hpx_buffer_init(&transfer->head, HPX_EGRESS_HEAD_BYTES_MAX);
	expect_head(transfer);
}

static void answer_done(struct hpx_transfer *transfer)
{
	hpx_buffer_done(&transfer->head);
}

/* libcurl treats a TLS connection that was cut off like one that was closed. So the
 * closing alert is looked for here. */
static void note_tls_closing(struct hpx_transfer *transfer)
{
	struct curl_tlssessioninfo *tls = NULL;

	if (transfer->framing != HPX_FRAMING_CLOSE ||
	    curl_easy_getinfo(transfer->easy, CURLINFO_TLS_SSL_PTR, &tls) != CURLE_OK)
		return;
	if (tls != NULL && tls->backend == CURLSSLBACKEND_OPENSSL && tls->internals != NULL &&
	    (SSL_get_shutdown(tls->internals) & SSL_RECEIVED_SHUTDOWN))
		transfer->closing_alert = true;
}

static bool is_tls(const struct hpx_transfer *transfer)
{
	return hpx_span_istarts(hpx_span_of(transfer->request->url), HPX_SPAN("https:"));
}

/* With a known length, libcurl may still fail after the body is complete: it could
 * not send all of the request, or ran out of time doing so. A body that ends with
 * the connection is complete only if the connection was closed in good order, as far
 * as TLS can tell (RFC 9112 §8). */
static bool is_answer_whole(const struct hpx_transfer *transfer, CURLcode code)
{
	if (transfer->state != HPX_TRANSFER_ANSWERING)
		return false;
	switch (transfer->framing) {
	case HPX_FRAMING_NONE:
		return true;
	case HPX_FRAMING_LENGTH:
		return transfer->body_bytes == transfer->length;
	case HPX_FRAMING_CHUNKED:
		return code == CURLE_OK;
	case HPX_FRAMING_CLOSE:
		return code == CURLE_OK && (!is_tls(transfer) || transfer->closing_alert);
	case HPX_FRAMING_TUNNEL:
		break;
	}
	return false;
}

static enum hpx_status keep_field(struct hpx_buffer *lines, const struct hpx_field *field)
{
	enum hpx_status status = hpx_buffer_append(lines, field->name);

	if (status == HPX_OK)
		status = hpx_buffer_text(lines, ": ");
	if (status == HPX_OK)
		status = hpx_buffer_append(lines, field->value);
	return status == HPX_OK ? hpx_buffer_text(lines, "\r\n") : status;
}

static int64_t retry_after_ms(const struct hpx_http_head *head)
{
	struct hpx_span value = hpx_field_value(head, HPX_SPAN("retry-after"));
	uint32_t seconds;

	if (value.ptr == NULL ||
	    hpx_retry_after_parse(value, hpx_clock_wall_ms(), &seconds) != HPX_OK)
		return -1;
	return (int64_t)seconds * 1000;
}

static bool take_head(struct hpx_transfer *transfer, const struct hpx_http_head *head)
{
	struct hpx_egress_request *request = transfer->request;

	for (size_t i = 0; i < head->field_count; i++)
		if (keep_field(&request->headers_in, &head->fields[i]) != HPX_OK) {
			transfer->abort_reason = "no memory for the answer's fields";
			return false;
		}
	request->status = head->status;
	request->retry_after_ms = retry_after_ms(head);
	transfer->framing = head->framing;
	transfer->length = head->content_length;
	HPX_ASSERT(transfer->state != HPX_TRANSFER_ANSWERING);
	transfer->state = HPX_TRANSFER_ANSWERING;
	hpx_buffer_done(&transfer->head);
	return true;
}

/* A 1xx is no final answer; a 101 was not asked for. */
static bool take_any_head(struct hpx_transfer *transfer, const struct hpx_http_head *head)
{
	if (head->status == 101) {
		transfer->abort_reason = "the answer switches to another protocol";
		return false;
	}
	if (head->status >= 200)
		return take_head(transfer, head);
	expect_head(transfer);
	return true;
}

static bool read_head(struct hpx_transfer *transfer, struct hpx_arena *arena)
{
	struct hpx_http_head head;
	size_t used;

	switch (hpx_http_read_head(&transfer->reader, hpx_buffer_span(&transfer->head), arena,
				   &head, &used)) {
	case HPX_HTTP_MORE:
		return true;
	case HPX_HTTP_DONE:
		return take_any_head(transfer, &head);
	case HPX_HTTP_BAD:
		break;
	}
	transfer->abort_reason = "the head of the answer is malformed";
	return false;
}

static size_t on_head_line(char *bytes, size_t size, size_t count, void *user)
{
	struct hpx_transfer *transfer = user;
	struct hpx_arena arena;

	/* A line after the body is a trailer, which is dropped. */
	if (transfer->state == HPX_TRANSFER_ANSWERING)
		return size * count;
	if (hpx_buffer_append(&transfer->head, hpx_span(bytes, size * count)) != HPX_OK) {
		transfer->abort_reason = "the head of the answer is too large";
		return 0;
	}
	hpx_arena_init(&arena, HPX_HTTP_FIELDS_MAX * 2 * sizeof(struct hpx_field));
	bool ok = read_head(transfer, &arena);
	hpx_arena_done(&arena);
	return ok ? size * count : 0;
}

/* A body that cannot be kept is read on, because only its end tells a complete answer
 * from half of one. */
static size_t on_body_data(char *bytes, size_t size, size_t count, void *user)
{
	struct hpx_transfer *transfer = user;
	struct hpx_egress_request *request = transfer->request;
	struct hpx_span data = hpx_span(bytes, size * count);

	transfer->body_bytes += data.len;
	if (!request->body_dropped && hpx_buffer_append(&request->body_in, data) != HPX_OK) {
		hpx_buffer_done(&request->body_in);
		request->body_dropped = true;
	}
	return data.len;
}

static bool is_too_late(const struct hpx_egress_request *request)
{
	return request->send_until_ms > 0 && hpx_clock_boot_ms() > request->send_until_ms;
}

/* The connection is ready, TLS included; the request follows at once. */
static int on_ready(void *user, char *peer_ip, char *local_ip, int peer_port,
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
		transfer->abort_reason = "it would have been sent a second time";
		return CURL_PREREQFUNC_ABORT;
	}
	if (is_too_late(transfer->request)) {
		transfer->abort_reason = "the connection came too late";
		return CURL_PREREQFUNC_ABORT;
	}
	transfer->state = HPX_TRANSFER_SENDING;
	transfer->request->sent_ms = hpx_clock_boot_ms();
	return CURL_PREREQFUNC_OK;
}

/* A time that is a little late is on the safe side: settle_after counts from the last
 * byte sent. */
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

/* libcurl calls this whenever it has done something, the last time while it still has
 * the connection. */
int hpx_transfer_on_progress(void *user, curl_off_t down_total, curl_off_t down,
			     curl_off_t up_total, curl_off_t up)
{
	(void)down_total;
	(void)down;
	(void)up_total;
	(void)up;
	note_sent(user);
	note_tls_closing(user);
	return 0;
}

struct option {
	CURLoption name;
	long value;
};

static const struct option always[] = {
	{ CURLOPT_NOSIGNAL, 1 },
	{ CURLOPT_FOLLOWLOCATION, 0 },
	{ CURLOPT_NETRC, CURL_NETRC_IGNORED },
	{ CURLOPT_DISALLOW_USERNAME_IN_URL, 1 },
	{ CURLOPT_PATH_AS_IS, 1 },
	{ CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1 },
	{ CURLOPT_HTTP09_ALLOWED, 0 },
	{ CURLOPT_HTTP_CONTENT_DECODING, 0 },
	{ CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 },
	{ CURLOPT_SSL_VERIFYPEER, 1 },
	{ CURLOPT_SSL_VERIFYHOST, 2 },
	{ CURLOPT_NOPROGRESS, 0 },
	/* A look-up that takes too long is left to end by itself: waiting for it
	 * would hold up every other request of the engine. */
	{ CURLOPT_QUICK_EXIT, 1 },
};

/* Without `reuse`. libcurl sends a second time only where a kept-alive connection gave
 * no byte, so a new connection makes sure that it never does. */
static const struct option send_once[] = {
	{ CURLOPT_FRESH_CONNECT, 1 },
	{ CURLOPT_FORBID_REUSE, 1 },
};

static CURLcode set_all(CURL *easy, const struct option *options, size_t count)
{
	CURLcode code = CURLE_OK;

	for (size_t i = 0; i < count && code == CURLE_OK; i++)
		code = curl_easy_setopt(easy, options[i].name, options[i].value);
	return code;
}

/* The first failure stays in `code`. */
#define SET(option, value) \
	do { \
		if (code == CURLE_OK) \
			code = curl_easy_setopt(easy, option, value); \
	} while (0)

static CURLcode set_connection(CURL *easy, const struct hpx_egress_request *request)
{
	CURLcode code = set_all(easy, always, sizeof(always) / sizeof(always[0]));

	if (code == CURLE_OK && !request->reuse)
		code = set_all(easy, send_once, sizeof(send_once) / sizeof(send_once[0]));
	SET(CURLOPT_URL, request->url);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	/* An empty name also switches off the proxies of the environment. */
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)request->connect_timeout_ms);
	SET(CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
	if (request->ca_file != NULL) {
		SET(CURLOPT_CAINFO, request->ca_file);
		SET(CURLOPT_CAPATH, NULL);
	}
	return code;
}

/* A method that usually has a body sends Content-Length: 0 without one (RFC 9110 §8.6). */
static bool has_length(struct hpx_span method)
{
	return hpx_span_eq(method, HPX_SPAN("POST")) || hpx_span_eq(method, HPX_SPAN("PUT")) ||
	       hpx_span_eq(method, HPX_SPAN("PATCH"));
}

static CURLcode set_message(CURL *easy, const struct hpx_egress_request *request)
{
	struct hpx_span method = hpx_span_of(request->method);
	CURLcode code = CURLE_OK;

	if (hpx_span_eq(method, HPX_SPAN("HEAD"))) {
		SET(CURLOPT_NOBODY, 1L);
		return code;
	}
	if (request->body.len > 0 || has_length(method)) {
		SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
		SET(CURLOPT_POSTFIELDS, request->body.len > 0 ? request->body.ptr : "");
	}
	SET(CURLOPT_CUSTOMREQUEST, request->method);
	return code;
}

static CURLcode set_callbacks(CURL *easy, struct hpx_transfer *transfer)
{
	CURLcode code = CURLE_OK;

	SET(CURLOPT_PRIVATE, transfer);
	SET(CURLOPT_ERRORBUFFER, transfer->error);
	SET(CURLOPT_PREREQFUNCTION, on_ready);
	SET(CURLOPT_PREREQDATA, transfer);
	SET(CURLOPT_XFERINFOFUNCTION, hpx_transfer_on_progress);
	SET(CURLOPT_XFERINFODATA, transfer);
	SET(CURLOPT_HEADERFUNCTION, on_head_line);
	SET(CURLOPT_HEADERDATA, transfer);
	SET(CURLOPT_WRITEFUNCTION, on_body_data);
	SET(CURLOPT_WRITEDATA, transfer);
	return code;
}

static CURLcode set_up(struct hpx_transfer *transfer)
{
	CURL *easy = transfer->easy;
	CURLcode code = set_connection(easy, transfer->request);

	if (code == CURLE_OK)
		code = set_message(easy, transfer->request);
	if (code == CURLE_OK)
		code = set_callbacks(easy, transfer);
	transfer->lines = hpx_egress_request_lines(transfer->request);
	if (transfer->lines == NULL)
		return CURLE_OUT_OF_MEMORY;
	SET(CURLOPT_HTTPHEADER, transfer->lines);
	SET(CURLOPT_USERAGENT, "hapax/" HPX_VERSION);
	return code;
}

static void transfer_free(struct hpx_transfer *transfer)
{
	answer_done(transfer);
	curl_easy_cleanup(transfer->easy);
	curl_slist_free_all(transfer->lines);
	free(transfer);
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
	answer_init(transfer);
	transfer->easy = curl_easy_init();
	CURLcode code = transfer->easy == NULL ? CURLE_OUT_OF_MEMORY : set_up(transfer);
	if (code == CURLE_OK)
		return transfer;
	*ret_problem = curl_easy_strerror(code);
	transfer_free(transfer);
	return NULL;
}

static enum hpx_egress_end end_of(const struct hpx_transfer *transfer, CURLcode code)
{
	if (transfer->state == HPX_TRANSFER_CONNECTING)
		return HPX_EGRESS_NOT_SENT;
	return is_answer_whole(transfer, code) ? HPX_EGRESS_ANSWERED : HPX_EGRESS_NO_ANSWER;
}

static const char *reason(const struct hpx_transfer *transfer, CURLcode code)
{
	if (transfer->abort_reason != NULL)
		return transfer->abort_reason;
	if (code == CURLE_OK)
		return "the connection ended before the answer did";
	return transfer->error[0] != '\0' ? transfer->error : curl_easy_strerror(code);
}

/* An incomplete answer is not handed out: it must not be taken for a complete one.
 * Only the text for people has its status. */
static void forget_answer(struct hpx_transfer *transfer, CURLcode code)
{
	struct hpx_egress_request *request = transfer->request;

	if (transfer->state == HPX_TRANSFER_ANSWERING)
		hpx_egress_request_set_problem(request, "incomplete answer (%u): %s", request->status,
					       reason(transfer, code));
	else
		hpx_egress_request_set_problem(request, "%s", reason(transfer, code));
	hpx_egress_request_done(request);
	request->status = 0;
	request->body_dropped = false;
	request->retry_after_ms = -1;
}

void hpx_transfer_end(struct hpx_transfer *transfer, CURLcode code)
{
	struct hpx_egress_request *request = transfer->request;

	note_sent(transfer);
	request->end = end_of(transfer, code);
	HPX_ASSERT(request->end != HPX_EGRESS_NOT_SENT || request->sent_ms < 0);
	if (request->end != HPX_EGRESS_ANSWERED)
		forget_answer(transfer, code);
	transfer_free(transfer);
}
