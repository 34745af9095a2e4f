/* The TLS transport: OpenSSL between the user and a plain transport.
 *
 *   received   below ─▶ on_below_data ─▶ `in` ─▶ SSL_read ─▶ loop->tls_buffer ─▶ on_data
 *   sent       send ─▶ SSL_write, one record ─▶ below            (`queue`: while below is full)
 *
 * 1. No more than one record is on its way out: the next is made when the socket has
 *    taken all of the last. Bytes that wait are not encrypted yet, so they have not left.
 * 2. A byte has left when the socket took the first encrypted byte of its record. (A peer
 *    can use a record only when it has the whole of it: this errs towards yes.)
 * 3. An end of stream without close_notify is a broken connection: somebody in between can
 *    forge the end of a TCP stream.
 * 4. `in` is used up, or kept in `held`, before on_below_data returns. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/buffer.h"
#include "base/status.h"
#include "net/tls.h"
#include "net/transport_driver.h"

/* The most bytes in a record (RFC 8446 §5.1). */
#define RECORD_BYTES 16384
#define RECORD_HEAD_BYTES 5
/* One read's worth, and a record whose beginning came before it. */
#define PLAIN_BYTES (HPX_LOOP_READ_BYTES + 2 * RECORD_BYTES)
#define HELD_BYTES_MAX ((size_t)2 * HPX_LOOP_READ_BYTES)
/* The user bounds what it sends; this bounds a user that does not. */
#define QUEUE_BYTES_MAX ((size_t)2 << 30)
/* Messages of the handshake protocol after the handshake (tickets, new keys), beside one
 * for this many bytes: more of them only make work. */
#define LATE_MESSAGES_MAX 32
#define LATE_MESSAGE_BYTES 65536
/* How long a failed handshake's alert may take to reach the peer. */
#define ALERT_STALL_MS 2000

enum tls_phase { TLS_HANDSHAKE,
		 TLS_OPEN,
		 TLS_FAILED };

struct tls_transport {
	struct hpx_transport base;
	struct hpx_transport *below; /* NULL once it is closed */
	struct hpx_tls *tls;
	SSL *ssl;
	enum tls_phase phase;
	struct hpx_span in;      /* received, not yet decrypted; during a call only */
	struct hpx_buffer held;  /* the same, while nobody reads */
	struct hpx_buffer queue; /* sent by the user, not yet encrypted: from queue_at on */
	size_t queue_at;
	size_t record_bytes;      /* of the user's, in the last record */
	uint64_t record_begin;    /* where the record lies in what was given to `below` */
	uint64_t record_end;      /* … */
	enum hpx_status read_end; /* found while nobody reads: CLOSED or IO; OK: none */
	uint64_t bytes_in;
	unsigned late_messages;
	int alert; /* of the peer; -1: none */
	bool owes_drain;
	bool shut; /* the user sends no more */
	bool shut_sent;
	bool has_stray; /* is_stale found bytes */
	struct hpx_later later;
	hpx_tls_done *on_done; /* NULL: a server's, or called already */
	void *done_user;
	char *names; /* of the peer's certificate; NULL: not asked for yet */
	struct hpx_certificate certificate;
};

static struct tls_transport *tls_of(struct hpx_transport *transport)
{
	return (struct tls_transport *)transport;
}

/* ---- OpenSSL's way to the plain transport ---- */

static int bio_read(BIO *bio, char *out, int size)
{
	struct tls_transport *t = BIO_get_data(bio);
	struct hpx_span part = hpx_span_first(t->in, (size_t)size);

	BIO_clear_retry_flags(bio);
	if (part.len == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(out, part.ptr, part.len);
	t->in = hpx_span_skip(t->in, part.len);
	return (int)part.len;
}

/* The plain transport takes everything, or is broken. */
static int bio_write(BIO *bio, const char *bytes, int size)
{
	struct tls_transport *t = BIO_get_data(bio);
	struct hpx_span piece = hpx_span(bytes, (size_t)size);

	BIO_clear_retry_flags(bio);
	if (t->below == NULL || hpx_transport_send(t->below, &piece, 1, NULL) != HPX_OK)
		return -1;
	return size;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method;

static void make_bio_method(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "hapax transport");

	if (method == NULL || BIO_meth_set_read(method, bio_read) != 1 ||
	    BIO_meth_set_write(method, bio_write) != 1 ||
	    BIO_meth_set_ctrl(method, bio_control) != 1) {
		BIO_meth_free(method);
		return;
	}
	bio_method = method;
}

static BIO *bio_new(struct tls_transport *t)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_bio_method);
	BIO *bio = bio_method != NULL ? BIO_new(bio_method) : NULL;
	if (bio == NULL)
		return NULL;
	BIO_set_data(bio, t);
	BIO_set_init(bio, 1);
	return bio;
}

/* ---- what OpenSSL tells ---- */

/* Called for every step of the handshake protocol, and for alerts. */
void hpx_tls_on_progress(const SSL *ssl, int where, int code)
{
	struct tls_transport *t = SSL_get_app_data(ssl);

	if (t == NULL)
		return;
	if ((where & SSL_CB_READ_ALERT) == SSL_CB_READ_ALERT)
		t->alert = code & 0xff;
	else if ((where & SSL_CB_LOOP) != 0 && t->phase == TLS_OPEN)
		t->late_messages++;
}

int hpx_tls_on_session(SSL *ssl, SSL_SESSION *session)
{
	struct tls_transport *t = SSL_get_app_data(ssl);

	return t != NULL && hpx_tls_keep_session(t->tls, ssl, session);
}

static bool is_flooded(const struct tls_transport *t)
{
	return t->late_messages > LATE_MESSAGES_MAX + t->bytes_in / LATE_MESSAGE_BYTES;
}

/* ---- how a handshake failed ---- */

struct failure {
	enum hpx_tls_result result;
	const char *reason; /* of a client, about the upstream */
};

static struct failure failure_of_certificate(long code)
{
	static const char *const untrusted =
		"the upstream's certificate is not vouched for by a trusted authority (upstream_tls.ca)";

	switch (code) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return (struct failure){ HPX_TLS_RESULT_certificate_refused,
					 "the upstream's certificate has expired" };
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return (struct failure){ HPX_TLS_RESULT_certificate_refused,
					 "the upstream's certificate is not valid yet" };
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		return (struct failure){
			HPX_TLS_RESULT_certificate_refused,
			"the upstream's certificate is for another name (upstream_tls.name)"
		};
	default:
		return (struct failure){ HPX_TLS_RESULT_certificate_refused, untrusted };
	}
}

/* An alert of the peer, before our side was done. */
static struct failure failure_of_alert(int alert)
{
	switch (alert) {
	case SSL_AD_PROTOCOL_VERSION:
		return (struct failure){ HPX_TLS_RESULT_no_common_version,
					 "the upstream speaks no version of TLS that is allowed here" };
	case SSL_AD_HANDSHAKE_FAILURE:
	case SSL_AD_INSUFFICIENT_SECURITY:
	case SSL_AD_NO_APPLICATION_PROTOCOL:
		return (struct failure){ HPX_TLS_RESULT_no_common_parameter,
					 "the upstream and hapax have no way of TLS in common" };
	default:
		return (struct failure){ HPX_TLS_RESULT_refused,
					 "the upstream refused the TLS handshake" };
	}
}

static struct failure failure_of_reason(int reason)
{
	switch (reason) {
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_HTTP_REQUEST:
	case SSL_R_HTTPS_PROXY_REQUEST:
	case SSL_R_UNKNOWN_PROTOCOL:
	case SSL_R_UNEXPECTED_MESSAGE:
	case SSL_R_BAD_RECORD_TYPE:
	case SSL_R_RECORD_LENGTH_MISMATCH:
	case SSL_R_PACKET_LENGTH_TOO_LONG:
		return (struct failure){ HPX_TLS_RESULT_not_tls,
					 "the upstream does not speak TLS there" };
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_VERSION_TOO_LOW:
	case SSL_R_WRONG_SSL_VERSION:
		return (struct failure){ HPX_TLS_RESULT_no_common_version,
					 "the upstream speaks no version of TLS that is allowed here" };
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
	case SSL_R_NO_SUITABLE_KEY_SHARE:
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_NO_APPLICATION_PROTOCOL:
		return (struct failure){ HPX_TLS_RESULT_no_common_parameter,
					 "the upstream and hapax have no way of TLS in common" };
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
		return (struct failure){ HPX_TLS_RESULT_certificate_missing,
					 "the upstream showed no certificate" };
	default:
		return (struct failure){ HPX_TLS_RESULT_failed, "the TLS handshake failed" };
	}
}

static struct failure failure_of(const struct tls_transport *t)
{
	unsigned long code = ERR_peek_error();
	long verified = SSL_get_verify_result(t->ssl);

	if (t->alert >= 0)
		return failure_of_alert(t->alert);
	if (ERR_GET_LIB(code) == ERR_LIB_SSL &&
	    ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
		return failure_of_certificate(verified);
	if (t->below == NULL || !hpx_transport_is_sendable(t->below))
		return (struct failure){ HPX_TLS_RESULT_closed,
					 "the upstream broke the TLS handshake off" };
	return failure_of_reason(ERR_GET_REASON(code));
}

/* ---- handshake ---- */

/* The transport is of no more use. The alert, if there is one, is on its way. */
static void fail(struct tls_transport *t, struct failure failure)
{
	hpx_tls_done *on_done = t->on_done;
	bool handshake = t->phase == TLS_HANDSHAKE;

	ERR_clear_error();
	t->phase = TLS_FAILED;
	t->in = HPX_SPAN("");
	if (handshake) {
		hpx_tls_note(t->tls, failure.result);
		if (hpx_tls_side(t->tls) == HPX_TLS_CLIENT)
			hpx_tls_drop_session(t->tls);
	}
	if (on_done == NULL) {
		hpx_transport_emit_end(&t->base, HPX_IO);
		return;
	}
	t->on_done = NULL;
	t->base.phase = HPX_TRANSPORT_BROKEN;
	on_done(t->done_user, HPX_UNAVAILABLE, failure.reason);
}

static bool has_wrong_protocol(const struct tls_transport *t)
{
	const unsigned char *name;
	unsigned len;

	SSL_get0_alpn_selected(t->ssl, &name, &len);
	return len > 0 && !hpx_span_eq(hpx_span((const char *)name, len), HPX_SPAN("http/1.1"));
}

static void flush_queue(struct tls_transport *t);

static void finish_handshake(struct tls_transport *t)
{
	hpx_tls_done *on_done = t->on_done;

	if (has_wrong_protocol(t)) {
		fail(t, (struct failure){ HPX_TLS_RESULT_no_common_parameter,
					  "the upstream chose a protocol that hapax did not offer" });
		return;
	}
	t->phase = TLS_OPEN;
	hpx_tls_note(t->tls, SSL_session_reused(t->ssl) ? HPX_TLS_RESULT_resumed :
							  HPX_TLS_RESULT_done);
	if (!t->base.reading)
		hpx_transport_read_stop(t->below);
	if (on_done != NULL) {
		t->on_done = NULL;
		on_done(t->done_user, HPX_OK, "");
		return;
	}
	flush_queue(t);
}

static void shake_hands(struct tls_transport *t)
{
	ERR_clear_error();
	int rc = SSL_do_handshake(t->ssl);

	if (rc == 1)
		finish_handshake(t);
	else if (SSL_get_error(t->ssl, rc) != SSL_ERROR_WANT_READ)
		fail(t, failure_of(t));
}

/* ---- receiving ---- */

/* Under TLS 1.3 a client is done before the server has looked at the client's certificate.
 * A server that then refuses the certificate has not finished its handshake, so it has
 * read nothing of what was sent behind it (RFC 8446 §4.4.2.4). The alert is encrypted:
 * only the server can have sent it. */
static bool is_refused_late(const struct tls_transport *t)
{
	if (hpx_tls_side(t->tls) != HPX_TLS_CLIENT || t->bytes_in > 0 ||
	    SSL_version(t->ssl) < TLS1_3_VERSION)
		return false;
	switch (t->alert) {
	case SSL_AD_BAD_CERTIFICATE:
	case SSL_AD_UNSUPPORTED_CERTIFICATE:
	case SSL_AD_CERTIFICATE_REVOKED:
	case SSL_AD_CERTIFICATE_EXPIRED:
	case SSL_AD_CERTIFICATE_UNKNOWN:
	case SSL_AD_UNKNOWN_CA:
	case 116: /* certificate_required: OpenSSL 3.0 has no public name for it */
		return true;
	default:
		return false;
	}
}

static size_t tls_pending(const struct hpx_transport *transport);

/* SSL_read has no more to give: why? HPX_OK: it waits for bytes. */
static enum hpx_status end_of_read(struct tls_transport *t, int rc)
{
	int error = SSL_get_error(t->ssl, rc);

	if (is_flooded(t))
		return HPX_IO;
	if (error == SSL_ERROR_WANT_READ)
		return HPX_OK;
	ERR_clear_error();
	if (error == SSL_ERROR_ZERO_RETURN)
		return HPX_CLOSED;
	if (is_refused_late(t)) {
		t->base.accepted = tls_pending(&t->base);
		hpx_tls_note(t->tls, HPX_TLS_RESULT_refused);
		hpx_tls_drop_session(t->tls);
	}
	t->phase = TLS_FAILED;
	return HPX_IO;
}

/* The user is told of the end where it reads; otherwise when it reads again. */
static void tell_end(struct tls_transport *t, enum hpx_status status)
{
	if (t->base.phase >= HPX_TRANSPORT_BROKEN ||
	    (status == HPX_CLOSED && t->base.phase != HPX_TRANSPORT_OPEN))
		return;
	if (t->base.reading)
		hpx_transport_emit_end(&t->base, status);
	else if (t->read_end == HPX_OK)
		t->read_end = status;
}

/* Decrypts `in`, all of it, and gives it to the user in one piece. */
static void read_records(struct tls_transport *t)
{
	char *plain = t->base.loop->tls_buffer;
	enum hpx_status end = HPX_OK;
	size_t len = 0;

	while (len < PLAIN_BYTES) {
		ERR_clear_error();
		int n = SSL_read(t->ssl, plain + len, (int)(PLAIN_BYTES - len));
		if (n <= 0) {
			end = end_of_read(t, n);
			break;
		}
		len += (size_t)n;
	}
	t->bytes_in += len;
	if (len > 0)
		hpx_transport_emit_data(&t->base, hpx_span(plain, len));
	/* Within the call, the user may have closed the transport: its memory stays
	 * until the loop's deferred calls run. */
	if (end != HPX_OK && t->base.phase != HPX_TRANSPORT_CLOSED)
		tell_end(t, end);
}

/* Uses `in` as far as it can be used now; the rest is held. */
static void use_input(struct tls_transport *t)
{
	if (t->phase == TLS_HANDSHAKE)
		shake_hands(t);
	if (t->phase == TLS_OPEN && t->base.reading)
		read_records(t);
	if (t->base.phase == HPX_TRANSPORT_CLOSED || t->phase == TLS_FAILED || t->in.len == 0)
		return;
	if (hpx_buffer_append(&t->held, t->in) != HPX_OK)
		fail(t, (struct failure){ HPX_TLS_RESULT_failed, "no memory is left for the upstream's bytes" });
	t->in = HPX_SPAN("");
}

static void on_below_data(void *user, struct hpx_span bytes)
{
	struct tls_transport *t = user;

	HPX_ASSERT(t->held.len == 0);
	if (t->phase == TLS_FAILED)
		return;
	t->in = bytes;
	use_input(t);
}

/* Bytes that were held, or an end, for a user that reads again; or a failed send. */
static void run_later(struct hpx_later *later)
{
	struct tls_transport *t = HPX_CONTAINER(later, struct tls_transport, later);
	enum hpx_status end = t->read_end;
	struct hpx_buffer held = t->held;

	if (t->base.phase == HPX_TRANSPORT_BREAKING && !t->base.reading) {
		hpx_transport_emit_end(&t->base, HPX_IO);
		return;
	}
	if (!t->base.reading)
		return;
	if (end != HPX_OK) {
		t->read_end = HPX_OK;
		tell_end(t, end);
		return;
	}
	hpx_buffer_init(&t->held, HELD_BYTES_MAX);
	t->in = hpx_buffer_span(&held);
	use_input(t);
	hpx_buffer_done(&held);
	if (t->below != NULL && t->base.reading && t->held.len == 0)
		hpx_transport_read_start(t->below);
}

static void on_below_end(void *user, enum hpx_status status)
{
	struct tls_transport *t = user;

	(void)status;
	if (t->phase == TLS_HANDSHAKE)
		fail(t, (struct failure){ HPX_TLS_RESULT_closed,
					  "the upstream broke the TLS handshake off" });
	else
		hpx_transport_emit_end(&t->base, HPX_IO);
}

/* ---- sending ---- */

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

	HPX_ASSERT(bytes.len > 0 && bytes.len <= RECORD_BYTES);
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
static void flush_queue(struct tls_transport *t)
{
	while (queued_bytes(t) > 0 && !is_below_full(t)) {
		struct hpx_span rest = hpx_span_skip(hpx_buffer_span(&t->queue), t->queue_at);
		struct hpx_span part = hpx_span_first(rest, RECORD_BYTES);
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
	hpx_buffer_recycle(&t->queue, QUEUE_BYTES_MAX);
	if (t->shut)
		send_shutdown(t);
	if (t->owes_drain) {
		t->owes_drain = false;
		hpx_transport_emit_drain(&t->base);
	}
}

static void on_below_drain(void *user)
{
	struct tls_transport *t = user;

	if (t->phase == TLS_OPEN && t->base.phase < HPX_TRANSPORT_BREAKING)
		flush_queue(t);
}

static const struct hpx_transport_events below_events = { on_below_data, on_below_end, on_below_drain };

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
	char *record = t->base.loop->tls_buffer + PLAIN_BYTES;
	size_t len = 0;

	while (at->count > 0 && len < RECORD_BYTES) {
		bool last = at->count == 1;
		struct hpx_span part = take_part(at, RECORD_BYTES - len);
		if (len == 0 && (part.len == RECORD_BYTES || last))
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

static enum hpx_status tls_send(struct hpx_transport *transport, const struct hpx_span *pieces,
				size_t count)
{
	struct tls_transport *t = tls_of(transport);
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
	t->owes_drain = t->owes_drain || tls_pending(transport) > 0;
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

static size_t tls_pending(const struct hpx_transport *transport)
{
	const struct tls_transport *t = (const struct tls_transport *)transport;

	return queued_bytes(t) + record_left(t);
}

static void tls_shutdown(struct hpx_transport *transport)
{
	struct tls_transport *t = tls_of(transport);

	t->shut = true;
	if (queued_bytes(t) == 0)
		send_shutdown(t);
}

/* ---- reading on and off ---- */

static void tls_read_start(struct hpx_transport *transport)
{
	struct tls_transport *t = tls_of(transport);

	if (t->read_end != HPX_OK || t->held.len > 0)
		hpx_loop_later(transport->loop, &t->later);
	else if (t->below != NULL)
		hpx_transport_read_start(t->below);
}

static void tls_read_stop(struct hpx_transport *transport)
{
	struct tls_transport *t = tls_of(transport);

	if (t->phase != TLS_HANDSHAKE && t->below != NULL)
		hpx_transport_read_stop(t->below);
}

/* What waits on the socket may be a ticket, which is neither a stray byte nor an end: it
 * has to be decrypted to know. */
static bool tls_is_stale(struct hpx_transport *transport)
{
	struct tls_transport *t = tls_of(transport);
	struct hpx_loop *loop = transport->loop;

	if (t->phase != TLS_OPEN || t->held.len > 0 || t->read_end != HPX_OK || t->has_stray)
		return true;
	if (!hpx_transport_is_stale(t->below))
		return false;
	size_t len = hpx_stream_read_now(t->below, loop->read_buffer, HPX_LOOP_READ_BYTES);
	if (len == 0)
		return true;
	t->in = hpx_span(loop->read_buffer, len);
	ERR_clear_error();
	int n = SSL_read(t->ssl, loop->tls_buffer, PLAIN_BYTES);
	t->has_stray = n > 0;
	if (n <= 0)
		t->read_end = end_of_read(t, n);
	t->in = HPX_SPAN("");
	return t->has_stray || t->read_end != HPX_OK || SSL_has_pending(t->ssl) != 0 ||
	       hpx_transport_is_stale(t->below);
}

static bool tls_has_bytes(struct hpx_transport *transport)
{
	return tls_of(transport)->has_stray;
}

/* ---- the end ---- */

static void free_transport(struct tls_transport *t)
{
	/* A session that ended without close_notify can be resumed all the same. */
	if (t->ssl != NULL && t->phase == TLS_OPEN)
		SSL_set_shutdown(t->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(t->ssl);
	hpx_buffer_done(&t->held);
	hpx_buffer_done(&t->queue);
	free(t->names);
	free(t);
}

static void free_later(struct hpx_later *later)
{
	free_transport(HPX_CONTAINER(later, struct tls_transport, later));
}

/* The memory stays for the callback that this was called from. */
static void retire(struct tls_transport *t)
{
	if (t->phase == TLS_HANDSHAKE)
		hpx_tls_note(t->tls, HPX_TLS_RESULT_closed);
	t->below = NULL;
	t->on_done = NULL;
	hpx_later_cancel(&t->later);
	t->later.run = free_later;
	hpx_loop_later(t->base.loop, &t->later);
}

static void tls_close(struct hpx_transport *transport)
{
	struct tls_transport *t = tls_of(transport);
	struct hpx_transport *below = t->below;

	/* close_notify says that nothing was cut off. */
	if (t->phase == TLS_OPEN && !t->shut_sent && tls_pending(transport) == 0 &&
	    hpx_transport_is_sendable(below)) {
		ERR_clear_error();
		(void)SSL_shutdown(t->ssl);
		ERR_clear_error();
	}
	bool gently = t->phase == TLS_FAILED;
	retire(t);
	/* The alert that says why would be lost with a reset. */
	if (gently)
		hpx_transport_close_gently(below, ALERT_STALL_MS);
	else
		hpx_transport_close(below);
}

static void tls_abort(struct hpx_transport *transport)
{
	struct tls_transport *t = tls_of(transport);
	struct hpx_transport *below = t->below;

	retire(t);
	hpx_transport_abort(below);
}

/* ---- the peer's certificate ---- */

static struct hpx_span print_name(const X509_NAME *name, BIO *out)
{
	char *text;

	if (X509_NAME_print_ex(out, name, 0, XN_FLAG_RFC2253) < 0)
		return HPX_SPAN("");
	long len = BIO_get_mem_data(out, &text);
	return hpx_span(text, len > 0 ? (size_t)len : 0);
}

/* Two common names would be two callers. */
static const ASN1_STRING *find_common_name(const X509_NAME *subject)
{
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);

	if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
		return NULL;
	return X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
}

static const ASN1_STRING *find_alternative(const GENERAL_NAMES *names,
					   enum hpx_certificate_name kind)
{
	int type = kind == HPX_CERTIFICATE_DNS ? GEN_DNS :
		   kind == HPX_CERTIFICATE_URI ? GEN_URI :
						 GEN_EMAIL;

	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
		if (name->type == type)
			return name->d.ia5;
	}
	return NULL;
}

/* A copy in UTF-8; NULL: there is none, or it has a NUL in it, with which some program
 * would read a shorter name. */
static char *copy_string(const ASN1_STRING *string)
{
	unsigned char *text = NULL;
	int len = string != NULL ? ASN1_STRING_to_UTF8(&text, string) : -1;
	char *copy = len > 0 && memchr(text, 0, (size_t)len) == NULL ?
			     strndup((const char *)text, (size_t)len) :
			     NULL;

	OPENSSL_free(text);
	return copy;
}

static char *copy_name(const X509 *certificate, enum hpx_certificate_name kind)
{
	const X509_NAME *subject = X509_get_subject_name(certificate);
	char *copy = NULL;

	if (kind == HPX_CERTIFICATE_SUBJECT) {
		BIO *out = BIO_new(BIO_s_mem());
		struct hpx_span text = out != NULL ? print_name(subject, out) : HPX_SPAN("");
		if (text.len > 0)
			copy = strndup(text.ptr, text.len);
		BIO_free(out);
		return copy;
	}
	if (kind == HPX_CERTIFICATE_COMMON_NAME)
		return copy_string(find_common_name(subject));
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	if (names != NULL)
		copy = copy_string(find_alternative(names, kind));
	GENERAL_NAMES_free(names);
	return copy;
}

/* "<name>\0<authority>\0" */
static char *join_names(const char *name, struct hpx_span authority)
{
	size_t len = strlen(name);
	char *names = malloc(len + authority.len + 2);

	if (names == NULL)
		return NULL;
	memcpy(names, name, len + 1);
	memcpy(names + len + 1, authority.ptr, authority.len);
	names[len + 1 + authority.len] = '\0';
	return names;
}

static void read_certificate(struct tls_transport *t, enum hpx_certificate_name kind)
{
	const STACK_OF(X509) *chain = SSL_get0_verified_chain(t->ssl);
	int count = chain != NULL ? sk_X509_num(chain) : 0;
	BIO *out = BIO_new(BIO_s_mem());

	if (count > 0 && out != NULL && SSL_get_verify_result(t->ssl) == X509_V_OK) {
		char *name = copy_name(sk_X509_value(chain, 0), kind);
		struct hpx_span authority = print_name(
			X509_get_subject_name(sk_X509_value(chain, count - 1)), out);
		if (name != NULL)
			t->names = join_names(name, authority);
		free(name);
	}
	BIO_free(out);
	ERR_clear_error();
}

static bool tls_certificate(struct hpx_transport *transport, enum hpx_certificate_name kind,
			    struct hpx_certificate *ret_certificate)
{
	struct tls_transport *t = tls_of(transport);

	/* The kind is one for the life of the process. */
	if (t->names == NULL && t->phase == TLS_OPEN)
		read_certificate(t, kind);
	if (t->names == NULL)
		return false;
	ret_certificate->name = hpx_span_of(t->names);
	ret_certificate->authority = hpx_span_of(t->names + ret_certificate->name.len + 1);
	return true;
}

/* ---- making ---- */

static const struct hpx_transport_driver tls_driver = {
	.read_start = tls_read_start,
	.read_stop = tls_read_stop,
	.send = tls_send,
	.pending = tls_pending,
	.shutdown = tls_shutdown,
	.close = tls_close,
	.abort = tls_abort,
	.is_stale = tls_is_stale,
	.has_bytes = tls_has_bytes,
	.certificate = tls_certificate,
};

static bool make_buffer(struct hpx_loop *loop)
{
	if (loop->tls_buffer == NULL)
		loop->tls_buffer = malloc(PLAIN_BYTES + RECORD_BYTES);
	return loop->tls_buffer != NULL;
}

static bool make_ssl(struct tls_transport *t)
{
	BIO *bio = bio_new(t);

	t->ssl = bio != NULL ? hpx_tls_open(t->tls) : NULL;
	if (t->ssl == NULL) {
		BIO_free(bio);
		return false;
	}
	SSL_set_bio(t->ssl, bio, bio);
	SSL_set_app_data(t->ssl, t);
	return true;
}

static struct tls_transport *tls_new(struct hpx_tls *tls, struct hpx_transport *plain)
{
	struct tls_transport *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->base.driver = &tls_driver;
	t->base.loop = plain->loop;
	t->base.secure = true;
	memcpy(t->base.peer, plain->peer, sizeof(t->base.peer));
	t->tls = tls;
	t->in = HPX_SPAN("");
	t->alert = -1;
	t->later.run = run_later;
	hpx_buffer_init(&t->held, HELD_BYTES_MAX);
	hpx_buffer_init(&t->queue, QUEUE_BYTES_MAX);
	if (!make_buffer(plain->loop) || !make_ssl(t)) {
		free_transport(t);
		return NULL;
	}
	t->below = plain;
	hpx_transport_attach(plain, &below_events, t);
	return t;
}

struct hpx_transport *hpx_tls_accept(struct hpx_tls *tls, struct hpx_transport *plain,
				     struct hpx_span first)
{
	struct tls_transport *t = tls_new(tls, plain);

	if (t == NULL || hpx_buffer_append(&t->held, first) != HPX_OK) {
		if (t != NULL)
			free_transport(t);
		hpx_transport_close(plain);
		return NULL;
	}
	SSL_set_accept_state(t->ssl);
	return &t->base;
}

static bool expect_name(SSL *ssl, const char *name)
{
	unsigned char address[16];
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

	if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
	return SSL_set_tlsext_host_name(ssl, name) == 1 && SSL_set1_host(ssl, name) == 1;
}

/* The first flight is sent by a deferred call. */
static void begin_connect(struct hpx_later *later)
{
	struct tls_transport *t = HPX_CONTAINER(later, struct tls_transport, later);

	t->later.run = run_later;
	hpx_transport_read_start(t->below);
	shake_hands(t);
}

struct hpx_transport *hpx_tls_connect(struct hpx_tls *tls, struct hpx_transport *plain,
				      const char *name, hpx_tls_done *on_done, void *user)
{
	struct tls_transport *t = tls_new(tls, plain);

	if (t == NULL || !expect_name(t->ssl, name)) {
		if (t != NULL)
			free_transport(t);
		hpx_transport_close(plain);
		return NULL;
	}
	SSL_set_connect_state(t->ssl);
	hpx_tls_use_session(tls, t->ssl);
	t->on_done = on_done;
	t->done_user = user;
	t->later.run = begin_connect;
	hpx_loop_later(plain->loop, &t->later);
	return &t->base;
}
