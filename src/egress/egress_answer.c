/* Reading the answer. libcurl finds the lines and cuts the body out of its
 * chunks; what the head means is judged by the one strict reader (http/), so
 * that an answer in which two readers might see different ends counts as none. */
#include "egress/transfer.h"

#include <openssl/ssl.h>

#include "base/clock.h"
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

void hpx_transfer_answer_init(struct hpx_transfer *transfer)
{
	hpx_buffer_init(&transfer->head, HPX_EGRESS_HEAD_BYTES_MAX);
	expect_head(transfer);
}

void hpx_transfer_answer_done(struct hpx_transfer *transfer)
{
	hpx_buffer_done(&transfer->head);
}

/* libcurl takes a TLS connection that was cut off for one that was closed. */
void hpx_transfer_answer_note_closing(struct hpx_transfer *transfer)
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

/* Where the body's end is known from its length, libcurl may still fail behind
 * it: it could not send all of the request, or ran out of time doing so. A
 * body that ends with the connection is whole only if that was closed in good
 * order, as far as one can know (RFC 9112 §8). */
bool hpx_transfer_answer_is_whole(const struct hpx_transfer *transfer, CURLcode code)
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
			transfer->trouble = "no memory for the answer's fields";
			return false;
		}
	request->status = head->status;
	request->retry_after_ms = retry_after_ms(head);
	transfer->framing = head->framing;
	transfer->length = head->content_length;
	transfer->state = HPX_TRANSFER_ANSWERING;
	hpx_buffer_done(&transfer->head);
	return true;
}

/* A 1xx answer is none; 101 is one that nobody asked for. */
static bool judge_head(struct hpx_transfer *transfer, const struct hpx_http_head *head)
{
	if (head->status == 101) {
		transfer->trouble = "the answer switches to another protocol";
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
		return judge_head(transfer, &head);
	case HPX_HTTP_BAD:
		break;
	}
	transfer->trouble = "the head of the answer is malformed";
	return false;
}

size_t hpx_transfer_answer_on_line(char *bytes, size_t size, size_t count, void *user)
{
	struct hpx_transfer *transfer = user;
	struct hpx_arena arena;

	/* Behind the body: a trailer, which is dropped. */
	if (transfer->state == HPX_TRANSFER_ANSWERING)
		return size * count;
	if (hpx_buffer_append(&transfer->head, hpx_span(bytes, size * count)) != HPX_OK) {
		transfer->trouble = "the head of the answer is too large";
		return 0;
	}
	hpx_arena_init(&arena, HPX_HTTP_FIELDS_MAX * 2 * sizeof(struct hpx_field));
	bool ok = read_head(transfer, &arena);
	hpx_arena_done(&arena);
	return ok ? size * count : 0;
}

/* A body that cannot be kept is read on, because its end is what tells a
 * complete answer from half a one. */
size_t hpx_transfer_answer_on_data(char *bytes, size_t size, size_t count, void *user)
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
