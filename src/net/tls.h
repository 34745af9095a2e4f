/* TLS on the transport seam, with OpenSSL: one more driver, above a plain transport.
 *
 * A context (struct hpx_tls) is one side's files and settings, shared by all loops: one
 * for each listener that speaks TLS, one for the admin listener, one for the upstream.
 * Its files can be read again while it is used: connections go on with what they began
 * with.
 *
 * Early data (0-RTT) is neither taken nor sent: it can be replayed. Renegotiation is
 * off, compression too. */
#ifndef HPX_NET_TLS_H
#define HPX_NET_TLS_H

#include "net/transport.h"
#include "settings/settings.h"

/* How a handshake ended: hapax_tls_handshakes_total{side,result}. */
#define HPX_TLS_RESULT_LIST(X) \
	X(done)    /* with all of its messages */ \
	X(resumed) /* an earlier session went on */ \
	X(closed)  /* the other side, or a timeout, ended it */ \
	X(not_tls) /* the other side speaks something else */ \
	X(no_common_version) \
	X(no_common_parameter) /* cipher, group, signature or application protocol */ \
	X(certificate_missing) /* the other side showed none */ \
	X(certificate_refused) /* the other side's: unknown issuer, expired, wrong name */ \
	X(refused)             /* by an alert of the other side, of any other kind */ \
	X(failed)

enum hpx_tls_result {
#define X(name) HPX_TLS_RESULT_##name,
	HPX_TLS_RESULT_LIST(X)
#undef X
		HPX_TLS_RESULT_COUNT
};

enum hpx_tls_side { HPX_TLS_SERVER,
		    HPX_TLS_CLIENT };

struct hpx_tls;

/* ---- contexts: tls_context.c ---- */

/* Reads the files. On failure `problem` (HPX_PROBLEM_SIZE) has a sentence that names the
 * file and the remedy. */
enum hpx_status hpx_tls_new(enum hpx_tls_side side, const struct hpx_tls_settings *settings,
			    struct hpx_tls **ret_tls, char *problem);
/* After the last transport of the context has been freed. NULL is harmless. */
void hpx_tls_free(struct hpx_tls *tls);
/* Reads the files again. New connections go by them. Where that fails, everything stays
 * as it was. Tickets of earlier sessions are void afterwards: their keys are new. From
 * any thread. */
enum hpx_status hpx_tls_reload(struct hpx_tls *tls, const struct hpx_tls_settings *settings,
			       char *problem);
/* A number that changes when one of the files does: when it was written, its size, or
 * which file the path leads to. */
uint64_t hpx_tls_stamp(const struct hpx_tls_settings *settings);
/* The boot clock's milliseconds at the last time that the files were read. */
int64_t hpx_tls_read_ms(struct hpx_tls *tls);
uint64_t hpx_tls_count(const struct hpx_tls *tls, enum hpx_tls_result result);
/* Seconds until the n-th certificate that is in force expires; negative: it has. False:
 * there are fewer. From any thread. */
bool hpx_tls_expiry(struct hpx_tls *tls, size_t n, int64_t *ret_seconds);

/* The first certificate in a file. */
struct hpx_certificate_facts {
	int64_t expires_s; /* seconds from now; negative: it has expired */
	int64_t begins_s;  /* seconds from now until it is valid; negative: it is */
	bool ordered;      /* each certificate was issued by the one behind it */
};
enum hpx_status hpx_certificate_read(const char *file, struct hpx_certificate_facts *ret_facts,
				     char *problem);

/* ---- transports: tls_transport.c ---- */

/* Speaks TLS as a server on a plain transport, which is taken over, on failure too. The
 * handshake goes on as bytes come; the user sees none before it is done, and on_end
 * with HPX_IO where it fails. `first`: bytes that came already. NULL: no memory. */
struct hpx_transport *hpx_tls_accept(struct hpx_tls *tls, struct hpx_transport *plain,
				     struct hpx_span first);

/* Speaks TLS as a client: `on_done` comes once, when the handshake is over, never from
 * inside this call. With HPX_OK the transport that was returned can be used; with
 * another status it is to be closed, and `reason` is a static sentence. `name`: whose
 * certificate it must be, a host name or an address. The plain transport is taken over,
 * on failure too. NULL: no memory. */
typedef void hpx_tls_done(void *user, enum hpx_status status, const char *reason);
struct hpx_transport *hpx_tls_connect(struct hpx_tls *tls, struct hpx_transport *plain,
				      const char *name, hpx_tls_done *on_done, void *user);

/* ---- shared by tls_context.c and the files of the transport (tls_transport.h) only ---- */

typedef struct ssl_st SSL;
typedef struct ssl_session_st SSL_SESSION;
typedef struct x509_st X509;

/* A new connection of the context as it is now; NULL: no memory. */
SSL *hpx_tls_open(struct hpx_tls *tls);
enum hpx_tls_side hpx_tls_side(const struct hpx_tls *tls);
void hpx_tls_note(struct hpx_tls *tls, enum hpx_tls_result result);
/* The client's last session, for the next handshake. `keep` takes a reference over;
 * false: it is not wanted, because the context has changed since. */
bool hpx_tls_keep_session(struct hpx_tls *tls, SSL *ssl, SSL_SESSION *session);
void hpx_tls_use_session(struct hpx_tls *tls, SSL *ssl);
void hpx_tls_drop_session(struct hpx_tls *tls);
/* OpenSSL's callback about the progress of a connection; the context installs it. */
void hpx_tls_on_progress(const SSL *ssl, int where, int code);
int hpx_tls_on_session(SSL *ssl, SSL_SESSION *session);

#endif
