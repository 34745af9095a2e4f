/* See server_certificate in server.h. */
#include "server.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#define SECONDS_VALID 86400

static void add_subject(X509 *certificate, const char *subject)
{
	X509V3_CTX context;

	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, certificate, certificate, NULL, NULL, 0);
	X509_EXTENSION *name =
		X509V3_EXT_conf_nid(NULL, &context, NID_subject_alt_name, subject);
	assert_non_null(name);
	assert_int_equal(X509_add_ext(certificate, name, -1), 1);
	X509_EXTENSION_free(name);
}

static X509 *make(EVP_PKEY *key, const char *subject)
{
	X509 *certificate = X509_new();

	assert_non_null(certificate);
	X509_set_version(certificate, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -SECONDS_VALID);
	X509_gmtime_adj(X509_getm_notAfter(certificate), SECONDS_VALID);
	X509_set_pubkey(certificate, key);
	X509_NAME *name = X509_get_subject_name(certificate);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"test", -1,
				   -1, 0);
	X509_set_issuer_name(certificate, name);
	add_subject(certificate, subject);
	assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
	return certificate;
}

SSL_CTX *server_certificate(const char *subject, const char *path)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	assert_non_null(key);
	assert_non_null(context);
	X509 *certificate = make(key, subject);
	assert_int_equal(SSL_CTX_use_certificate(context, certificate), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(PEM_write_X509(file, certificate), 1);
	fclose(file);
	X509_free(certificate);
	EVP_PKEY_free(key);
	return context;
}
