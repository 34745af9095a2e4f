/* The inside of the TLS transport, for the files that are it:
 *
 *   tls_transport.c  the driver: from OpenSSL to the plain transport, receiving, the end
 *   tls_handshake.c  the handshake, and how it fails
 *   tls_send.c       records on their way out
 *   tls_peer.c       the names in the peer's certificate
 *
 * 1. No more than one record is on its way out: the next is made when the socket has
 *    taken all of the last. Bytes that wait are not encrypted yet, so they have not left.
 * 2. A byte has left when the socket took the first encrypted byte of its record. (A peer
 *    can use a record only when it has the whole of it: this errs towards yes.)
 * 3. An end of stream without close_notify is a broken connection: somebody in between can
 *    forge the end of a TCP stream.
 * 4. `in` is used up, or kept in `held`, before on_below_data returns. */
#ifndef HPX_NET_TLS_TRANSPORT_H
#define HPX_NET_TLS_TRANSPORT_H

#include "base/buffer.h"
#include "net/tls.h"
#include "net/transport_driver.h"

/* The most bytes in a record (RFC 8446 §5.1). */
#define HPX_TLS_RECORD_BYTES 16384
/* One read's worth, and a record whose beginning came before it: the loop's tls_buffer
 * has room for so much, and behind it for one record that is made of small pieces. */
#define HPX_TLS_PLAIN_BYTES (HPX_LOOP_READ_BYTES + 2 * HPX_TLS_RECORD_BYTES)
/* The user bounds what it sends; this bounds a user that does not. */
#define HPX_TLS_QUEUE_BYTES_MAX ((size_t)2 << 30)

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
};

static inline struct tls_transport *hpx_tls_of(struct hpx_transport *transport)
{
	return (struct tls_transport *)transport;
}

/* ---- tls_handshake.c ---- */

/* How a handshake ended, and for a client a sentence about the upstream. */
struct hpx_tls_failure {
	enum hpx_tls_result result;
	const char *reason;
};

/* Goes on with the handshake, as far as `in` allows. */
void hpx_tls_shake_hands(struct tls_transport *t);
/* The transport is of no more use. The alert, if there is one, is on its way. */
void hpx_tls_fail(struct tls_transport *t, struct hpx_tls_failure failure);
/* The plain transport ended before the handshake did. */
void hpx_tls_fail_closed(struct tls_transport *t);
/* Whether the server has refused the client's certificate after the client was done. */
bool hpx_tls_is_refused_late(const struct tls_transport *t);
/* Whose certificate a client expects: a host name or an address. False: no memory. */
bool hpx_tls_expect_name(SSL *ssl, const char *name);

/* ---- tls_send.c ---- */

/* Goes on with the bytes that wait, as far as the socket takes them. */
void hpx_tls_flush(struct tls_transport *t);
/* The driver's functions: see transport_driver.h. */
enum hpx_status hpx_tls_send(struct hpx_transport *transport, const struct hpx_span *pieces,
			     size_t count);
size_t hpx_tls_pending(const struct hpx_transport *transport);
void hpx_tls_shutdown(struct hpx_transport *transport);

/* ---- tls_peer.c ---- */

/* The driver's function. */
bool hpx_tls_certificate(struct hpx_transport *transport, enum hpx_certificate_name kind,
			 struct hpx_certificate *ret_certificate);

#endif
