/* The TLS transport: OpenSSL between the user and a plain transport.
 *
 *   received   below ─▶ on_below_data ─▶ `in` ─▶ SSL_read ─▶ loop->tls_buffer ─▶ on_data
 *   sent       send ─▶ SSL_write, one record ─▶ below            (`queue`: while below is full)
 *
 * The invariants are in tls_transport.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/status.h"
#include "net/tls_transport.h"

#define HELD_BYTES_MAX ((size_t)2 * HPX_LOOP_READ_BYTES)
/* Messages of the handshake protocol after the handshake (tickets, new keys), beside one
 * for this many bytes: more of them only make work. */
#define LATE_MESSAGES_MAX 32
#define LATE_MESSAGE_BYTES 65536
/* How long a failed handshake's alert may take to reach the peer. */
#define ALERT_STALL_MS 2000

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

/* ---- receiving ---- */

static bool is_flooded(const struct tls_transport *t)
{
	return t->late_messages > LATE_MESSAGES_MAX + t->bytes_in / LATE_MESSAGE_BYTES;
}

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
	if (hpx_tls_is_refused_late(t)) {
		t->base.accepted = hpx_tls_pending(&t->base);
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

	while (len < HPX_TLS_PLAIN_BYTES) {
		ERR_clear_error();
		int n = SSL_read(t->ssl, plain + len, (int)(HPX_TLS_PLAIN_BYTES - len));
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
		hpx_tls_shake_hands(t);
	if (t->phase == TLS_OPEN && t->base.reading)
		read_records(t);
	if (t->base.phase == HPX_TRANSPORT_CLOSED || t->phase == TLS_FAILED || t->in.len == 0)
		return;
	if (hpx_buffer_append(&t->held, t->in) != HPX_OK)
		hpx_tls_fail(t, (struct hpx_tls_failure){ HPX_TLS_RESULT_failed, "no memory is left for the upstream's bytes" });
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
		hpx_tls_fail_closed(t);
	else
		hpx_transport_emit_end(&t->base, HPX_IO);
}

static void on_below_drain(void *user)
{
	struct tls_transport *t = user;

	if (t->phase == TLS_OPEN && t->base.phase < HPX_TRANSPORT_BREAKING)
		hpx_tls_flush(t);
}

static const struct hpx_transport_events below_events = { on_below_data, on_below_end, on_below_drain };

/* ---- reading on and off ---- */

static void tls_read_start(struct hpx_transport *transport)
{
	struct tls_transport *t = hpx_tls_of(transport);

	if (t->read_end != HPX_OK || t->held.len > 0)
		hpx_loop_later(transport->loop, &t->later);
	else if (t->below != NULL)
		hpx_transport_read_start(t->below);
}

static void tls_read_stop(struct hpx_transport *transport)
{
	struct tls_transport *t = hpx_tls_of(transport);

	if (t->phase != TLS_HANDSHAKE && t->below != NULL)
		hpx_transport_read_stop(t->below);
}

/* What waits on the socket may be a ticket, which is neither a stray byte nor an end: it
 * has to be decrypted to know. */
static bool tls_is_stale(struct hpx_transport *transport)
{
	struct tls_transport *t = hpx_tls_of(transport);
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
	int n = SSL_read(t->ssl, loop->tls_buffer, HPX_TLS_PLAIN_BYTES);
	t->has_stray = n > 0;
	if (n <= 0)
		t->read_end = end_of_read(t, n);
	t->in = HPX_SPAN("");
	return t->has_stray || t->read_end != HPX_OK || SSL_has_pending(t->ssl) != 0 ||
	       hpx_transport_is_stale(t->below);
}

static bool tls_has_bytes(struct hpx_transport *transport)
{
	return hpx_tls_of(transport)->has_stray;
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
	struct tls_transport *t = hpx_tls_of(transport);
	struct hpx_transport *below = t->below;

	/* close_notify says that nothing was cut off. */
	if (t->phase == TLS_OPEN && !t->shut_sent && hpx_tls_pending(transport) == 0 &&
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
	struct tls_transport *t = hpx_tls_of(transport);
	struct hpx_transport *below = t->below;

	retire(t);
	hpx_transport_abort(below);
}

/* ---- making ---- */

static const struct hpx_transport_driver tls_driver = {
	.read_start = tls_read_start,
	.read_stop = tls_read_stop,
	.send = hpx_tls_send,
	.pending = hpx_tls_pending,
	.shutdown = hpx_tls_shutdown,
	.close = tls_close,
	.abort = tls_abort,
	.is_stale = tls_is_stale,
	.has_bytes = tls_has_bytes,
	.certificate = hpx_tls_certificate,
};

static bool make_buffer(struct hpx_loop *loop)
{
	if (loop->tls_buffer == NULL)
		loop->tls_buffer = malloc(HPX_TLS_PLAIN_BYTES + HPX_TLS_RECORD_BYTES);
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
	hpx_buffer_init(&t->queue, HPX_TLS_QUEUE_BYTES_MAX);
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

/* The first flight is sent by a deferred call. */
static void begin_connect(struct hpx_later *later)
{
	struct tls_transport *t = HPX_CONTAINER(later, struct tls_transport, later);

	t->later.run = run_later;
	hpx_transport_read_start(t->below);
	hpx_tls_shake_hands(t);
}

struct hpx_transport *hpx_tls_connect(struct hpx_tls *tls, struct hpx_transport *plain,
				      const char *name, hpx_tls_done *on_done, void *user)
{
	struct tls_transport *t = tls_new(tls, plain);

	if (t == NULL || !hpx_tls_expect_name(t->ssl, name)) {
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
