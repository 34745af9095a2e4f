/* How libcurl is set up for one request: everything that it would do by itself
 * and that could send a request elsewhere, twice or in the clear is off. */
#include "egress/transfer.h"

#include "egress/egress_request.h"

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
	/* A look-up that takes too long is left to end by itself: to wait for
	 * it would hold up every other request of the engine. */
	{ CURLOPT_QUICK_EXIT, 1 },
};

/* Kept-alive connections are looked for and left behind only where sending
 * twice does no harm. On a fresh connection libcurl never sends again: it does
 * so only where a connection was reused and gave no byte. */
static const struct option once[] = {
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
		code = set_all(easy, once, sizeof(once) / sizeof(once[0]));
	SET(CURLOPT_URL, request->url);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	/* An empty name: also none of those in the environment. */
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)request->connect_timeout_ms);
	SET(CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
	if (request->ca_file != NULL) {
		SET(CURLOPT_CAINFO, request->ca_file);
		SET(CURLOPT_CAPATH, NULL);
	}
	return code;
}

/* A method that usually has a body says that it is empty (RFC 9110 §8.6). */
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
	SET(CURLOPT_PREREQFUNCTION, hpx_transfer_on_ready);
	SET(CURLOPT_PREREQDATA, transfer);
	SET(CURLOPT_XFERINFOFUNCTION, hpx_transfer_on_progress);
	SET(CURLOPT_XFERINFODATA, transfer);
	SET(CURLOPT_HEADERFUNCTION, hpx_transfer_answer_on_line);
	SET(CURLOPT_HEADERDATA, transfer);
	SET(CURLOPT_WRITEFUNCTION, hpx_transfer_answer_on_data);
	SET(CURLOPT_WRITEDATA, transfer);
	return code;
}

CURLcode hpx_transfer_setup(struct hpx_transfer *transfer)
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
