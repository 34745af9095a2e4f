/* The handshake of a TLS transport, and how it fails: what the metric counts, and for a
 * client the sentence that says what is wrong with the upstream. */
#include <arpa/inet.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/status.h"
#include "net/tls_transport.h"

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

/* ---- how a handshake failed ---- */

static struct hpx_tls_failure failure_of_certificate(long code)
{
	static const char *const untrusted =
		"the upstream's certificate is not vouched for by a trusted authority (upstream_tls.ca)";

	switch (code) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return (struct hpx_tls_failure){ HPX_TLS_RESULT_certificate_refused,
						 "the upstream's certificate has expired" };
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return (struct hpx_tls_failure){ HPX_TLS_RESULT_certificate_refused,
						 "the upstream's certificate is not valid yet" };
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		return (struct hpx_tls_failure){
			HPX_TLS_RESULT_certificate_refused,
			"the upstream's certificate is for another name (upstream_tls.name)"
		};
	default:
		return (struct hpx_tls_failure){ HPX_TLS_RESULT_certificate_refused, untrusted };
	}
}

/* An alert of the peer, before our side was done. */
static struct hpx_tls_failure failure_of_alert(int alert)
{
	switch (alert) {
	case SSL_AD_PROTOCOL_VERSION:
		return (struct hpx_tls_failure){ HPX_TLS_RESULT_no_common_version,
						 "the upstream speaks no version of TLS that is allowed here" };
	case SSL_AD_HANDSHAKE_FAILURE:
	case SSL_AD_INSUFFICIENT_SECURITY:
	case SSL_AD_NO_APPLICATION_PROTOCOL:
		return (struct hpx_tls_failure){ HPX_TLS_RESULT_no_common_parameter,
						 "the upstream and hapax have no way of TLS in common" };
	default:
		return (struct hpx_tls_failure){ HPX_TLS_RESULT_refused,
						 "the upstream refused the TLS handshake" };
	}
}

static struct hpx_tls_failure failure_of_reason(int reason)
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
		return (struct hpx_tls_failure){ HPX_TLS_RESULT_not_tls,
						 "the upstream does not speak TLS there" };
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_VERSION_TOO_LOW:
	case SSL_R_WRONG_SSL_VERSION:
		return (struct hpx_tls_failure){ HPX_TLS_RESULT_no_common_version,
						 "the upstream speaks no version of TLS that is allowed here" };
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
	case SSL_R_NO_SUITABLE_KEY_SHARE:
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_NO_APPLICATION_PROTOCOL:
		return (struct hpx_tls_failure){ HPX_TLS_RESULT_no_common_parameter,
						 "the upstream and hapax have no way of TLS in common" };
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
		return (struct hpx_tls_failure){ HPX_TLS_RESULT_certificate_missing,
						 "the upstream showed no certificate" };
	default:
		return (struct hpx_tls_failure){ HPX_TLS_RESULT_failed, "the TLS handshake failed" };
	}
}

static const struct hpx_tls_failure broken_off = { HPX_TLS_RESULT_closed,
						   "the upstream broke the TLS handshake off" };

static struct hpx_tls_failure failure_of(const struct tls_transport *t)
{
	unsigned long code = ERR_peek_error();
	long verified = SSL_get_verify_result(t->ssl);

	if (t->alert >= 0)
		return failure_of_alert(t->alert);
	if (ERR_GET_LIB(code) == ERR_LIB_SSL &&
	    ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
		return failure_of_certificate(verified);
	if (t->below == NULL || !hpx_transport_is_sendable(t->below))
		return broken_off;
	return failure_of_reason(ERR_GET_REASON(code));
}

/* ---- handshake ---- */

void hpx_tls_fail(struct tls_transport *t, struct hpx_tls_failure failure)
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

void hpx_tls_fail_closed(struct tls_transport *t)
{
	hpx_tls_fail(t, broken_off);
}

static bool has_wrong_protocol(const struct tls_transport *t)
{
	const unsigned char *name;
	unsigned len;

	SSL_get0_alpn_selected(t->ssl, &name, &len);
	return len > 0 && !hpx_span_eq(hpx_span((const char *)name, len), HPX_SPAN("http/1.1"));
}

static void finish_handshake(struct tls_transport *t)
{
	hpx_tls_done *on_done = t->on_done;

	if (has_wrong_protocol(t)) {
		hpx_tls_fail(t, (struct hpx_tls_failure){ HPX_TLS_RESULT_no_common_parameter,
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
	hpx_tls_flush(t);
}

void hpx_tls_shake_hands(struct tls_transport *t)
{
	ERR_clear_error();
	int rc = SSL_do_handshake(t->ssl);

	if (rc == 1)
		finish_handshake(t);
	else if (SSL_get_error(t->ssl, rc) != SSL_ERROR_WANT_READ)
		hpx_tls_fail(t, failure_of(t));
}

/* ---- about the peer ---- */

/* Under TLS 1.3 a client is done before the server has looked at the client's certificate.
 * A server that then refuses the certificate has not finished its handshake, so it has
 * read nothing of what was sent behind it (RFC 8446 §4.4.2.4). The alert is encrypted:
 * only the server can have sent it. */
bool hpx_tls_is_refused_late(const struct tls_transport *t)
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

bool hpx_tls_expect_name(SSL *ssl, const char *name)
{
	unsigned char address[16];
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

	if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
	return SSL_set_tlsext_host_name(ssl, name) == 1 && SSL_set1_host(ssl, name) == 1;
}
