/* The names in the certificate that the peer of a TLS transport has proved to own. */
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/tls_transport.h"

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

bool hpx_tls_certificate(struct hpx_transport *transport, enum hpx_certificate_name kind,
			 struct hpx_certificate *ret_certificate)
{
	struct tls_transport *t = hpx_tls_of(transport);

	/* The kind is one for the life of the process. */
	if (t->names == NULL && t->phase == TLS_OPEN)
		read_certificate(t, kind);
	if (t->names == NULL)
		return false;
	ret_certificate->name = hpx_span_of(t->names);
	ret_certificate->authority = hpx_span_of(t->names + ret_certificate->name.len + 1);
	return true;
}
