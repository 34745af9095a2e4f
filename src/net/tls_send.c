/* Records on their way out of a TLS transport: what is sent is encrypted one record at a
 * time, and waits in `queue` while the plain transport is full. Invariants 1 and 2 of
 * tls_transport.h live here. */
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/status.h"
#include "net/tls_transport.h"

#define RECORD_HEAD_BYTES 5

/* A send failed. Where the plain transport is broken too, its end comes by
 * on_below_end, behind the bytes that the peer had sent. */
static void break_off(struct tls_transport *t)
{
	ERR_clear_error();
	if (t->base.phase < HPX_TRANSPORT_BREAKING)
		t->base.phase = HPX_TRANSPORT_BREAKING;
	if (t->below == NULL || !hpx_transport_is_sendable(t->below))
		return;
	hpx_transport_read_stop(&t->base);
	hpx_loop_later(t->base.loop, &t->later);
}

/* Encrypts and sends one record. The bytes are counted as accepted where they are on
 * their way, or may be. */
static bool send_record(struct tls_transport *t, struct hpx_span bytes)
{
	uint64_t taken = hpx_transport_taken(t->below);

	HPX_ASSERT(bytes.len > 0 && bytes.len <= HPX_TLS_RECORD_BYTES);
	t->record_begin = t->below->accepted;
	ERR_clear_error();
	int n = SSL_write(t->ssl, bytes.ptr, (int)bytes.len);
	bool good = n == (int)bytes.len;
	t->record_end = t->below->accepted;
	if (good || hpx_transport_taken(t->below) > taken) {
		t->base.accepted += bytes.len;
		t->record_bytes = bytes.len;
	}
	return good;
}

static bool is_below_full(const struct tls_transport *t)
{
	return hpx_transport_pending(t->below) > 0;
}

static void send_shutdown(struct tls_transport *t)
{
	if (t->shut_sent || t->below == NULL)
		return;
	t->shut_sent = true;
	if (t->phase == TLS_OPEN) {
		ERR_clear_error();
		(void)SSL_shutdown(t->ssl);
		ERR_clear_error();
	}
	hpx_transport_shutdown(t->below);
}

static size_t queued_bytes(const struct tls_transport *t)
{
	return t->queue.len - t->queue_at;
}

/* Goes on with the bytes that wait, as far as the socket takes them. */
void hpx_tls_flush(struct tls_transport *t)
{
	while (queued_bytes(t) > 0 && !is_below_full(t)) {
		struct hpx_span rest = hpx_span_skip(hpx_buffer_span(&t->queue), t->queue_at);
		struct hpx_span part = hpx_span_first(rest, HPX_TLS_RECORD_BYTES);
		t->queue_at += part.len;
		t->base.accepted -= part.len; /* send_record counts it again */
		if (!send_record(t, part)) {
			break_off(t);
			return;
		}
	}
	if (queued_bytes(t) > 0 || is_below_full(t))
		return;
	t->queue_at = 0;
	hpx_buffer_recycle(&t->queue, HPX_TLS_QUEUE_BYTES_MAX);
	if (t->shut)
		send_shutdown(t);
	if (t->owes_drain) {
		t->owes_drain = false;
		hpx_transport_emit_drain(&t->base);
	}
}

/* A place in the pieces of one send. */
struct cursor {
	const struct hpx_span *pieces;
	size_t count;
	size_t skip; /* of the first piece */
};

static struct hpx_span take_part(struct cursor *at, size_t max)
{
	struct hpx_span part = HPX_SPAN("");

	/* An empty piece may point nowhere. */
	if (at->pieces->len > 0)
		part = hpx_span_first(hpx_span_skip(*at->pieces, at->skip), max);
	at->skip += part.len;
	if (at->skip == at->pieces->len) {
		at->pieces++;
		at->count--;
		at->skip = 0;
	}
	return part;
}

/* The bytes of the next record. Small pieces (a head and a body) are joined; a piece that
 * fills the record, or is the last one, is used where it lies. */
static struct hpx_span next_record(struct tls_transport *t, struct cursor *at)
{
	char *record = t->base.loop->tls_buffer + HPX_TLS_PLAIN_BYTES;
	size_t len = 0;

	while (at->count > 0 && len < HPX_TLS_RECORD_BYTES) {
		bool last = at->count == 1;
		struct hpx_span part = take_part(at, HPX_TLS_RECORD_BYTES - len);
		if (len == 0 && (part.len == HPX_TLS_RECORD_BYTES || last))
			return part;
		if (part.len > 0)
			memcpy(record + len, part.ptr, part.len);
		len += part.len;
	}
	return hpx_span(record, len);
}

static enum hpx_status queue_rest(struct tls_transport *t, struct cursor *at)
{
	while (at->count > 0) {
		struct hpx_span part = take_part(at, SIZE_MAX);
		enum hpx_status status =
			part.len > 0 ? hpx_buffer_append(&t->queue, part) : HPX_OK;
		if (status != HPX_OK)
			return HPX_NOMEM;
		t->base.accepted += part.len;
	}
	return HPX_OK;
}

enum hpx_status hpx_tls_send(struct hpx_transport *transport, const struct hpx_span *pieces,
			     size_t count)
{
	struct tls_transport *t = hpx_tls_of(transport);
	struct cursor at = { pieces, count, 0 };

	while (at.count > 0 && t->phase == TLS_OPEN && queued_bytes(t) == 0 && !is_below_full(t)) {
		struct hpx_span record = next_record(t, &at);
		if (record.len > 0 && !send_record(t, record)) {
			break_off(t);
			return HPX_IO;
		}
	}
	enum hpx_status status = queue_rest(t, &at);
	if (status != HPX_OK)
		break_off(t);
	t->owes_drain = t->owes_drain || hpx_tls_pending(transport) > 0;
	return status;
}

/* Bytes of the last record that the socket has not taken. */
static size_t record_left(const struct tls_transport *t)
{
	if (t->below == NULL)
		return 0;
	uint64_t taken = hpx_transport_taken(t->below);
	if (taken >= t->record_end)
		return 0;
	uint64_t inside = taken > t->record_begin ? taken - t->record_begin : 0;
	if (inside <= RECORD_HEAD_BYTES)
		return t->record_bytes;
	size_t out = (size_t)(inside - RECORD_HEAD_BYTES);
	return out < t->record_bytes ? t->record_bytes - out : 1;
}

size_t hpx_tls_pending(const struct hpx_transport *transport)
{
	const struct tls_transport *t = (const struct tls_transport *)transport;

	return queued_bytes(t) + record_left(t);
}

void hpx_tls_shutdown(struct hpx_transport *transport)
{
	struct tls_transport *t = hpx_tls_of(transport);

	t->shut = true;
	if (queued_bytes(t) == 0)
		send_shutdown(t);
}
