/* Contexts of TLS: from files and settings to OpenSSL's SSL_CTX, which is exchanged as a
 * whole when the files are read again.
 *
 * The settings are Mozilla's "intermediate" ones: TLS 1.2 and 1.3, ciphers with forward
 * secrecy and authentication, the client's order of them, X25519, P-256, P-384. Its three
 * DHE ciphers are left out: they would need a file of parameters, and are for clients
 * that have been gone for years. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/clock.h"
#include "base/metric.h"
#include "base/status.h"
#include "net/listener.h"
#include "net/tls.h"

#define CIPHERS_1_2 \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:" \
	"ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:" \
	"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define CIPHERS_1_3 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define GROUPS "X25519:P-256:P-384"
/* ALPN's form: a length, then the name. */
static const unsigned char alpn[] = "\x08http/1.1";
#define ALPN_BYTES (sizeof(alpn) - 1)
/* No chain of certificates is longer. */
#define CHAIN_MAX 16
/* A session can be resumed for this long. Contexts are made anew before that
 * (service/tls_watch.c), and ticket keys with them. */
#define SESSION_SECONDS (12 * 3600)

/* One certificate of a server with its key. */
struct pair {
	X509 *leaf;
	STACK_OF(X509) * chain;
	EVP_PKEY *key;
};

struct hpx_tls {
	enum hpx_tls_side side;
	pthread_mutex_t lock; /* over the next three */
	SSL_CTX *ctx;
	SSL_SESSION *session; /* client: the newest one, made with `ctx` */
	int64_t read_ms;
	struct hpx_counter results[HPX_TLS_RESULT_COUNT];
};

/* ---- files ---- */

/* The reason that OpenSSL gave last, for people. */
static const char *last_reason(void)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = ERR_reason_error_string(code);

	if (ERR_SYSTEM_ERROR(code))
		return strerror(ERR_GET_REASON(code));
	return reason != NULL ? reason : "it is of no use";
}

static enum hpx_status refuse(char *problem, const char *file, const char *what)
{
	snprintf(problem, HPX_PROBLEM_SIZE, "%s: %s", file, what);
	return HPX_INVALID;
}

static enum hpx_status refuse_read(char *problem, const char *file, const char *wanted)
{
	snprintf(problem, HPX_PROBLEM_SIZE,
		 "%s: %s; it must hold %s in PEM form, readable for the user that hapax runs as",
		 file, last_reason(), wanted);
	return HPX_INVALID;
}

/* A key with a passphrase is refused: nobody is there to be asked. */
static int no_passphrase(char *out, int size, int writing, void *user)
{
	(void)out;
	(void)size;
	(void)writing;
	(void)user;
	return -1;
}

static void pair_done(struct pair *pair)
{
	X509_free(pair->leaf);
	sk_X509_pop_free(pair->chain, X509_free);
	EVP_PKEY_free(pair->key);
	*pair = (struct pair){ .leaf = NULL };
}

static enum hpx_status read_chain(const char *file, struct pair *pair, char *problem)
{
	ERR_clear_error();
	BIO *in = BIO_new_file(file, "r");

	pair->chain = sk_X509_new_null();
	if (in != NULL && pair->chain != NULL)
		pair->leaf = PEM_read_bio_X509_AUX(in, NULL, no_passphrase, NULL);
	for (int n = 0; pair->leaf != NULL && n < CHAIN_MAX; n++) {
		X509 *next = PEM_read_bio_X509(in, NULL, no_passphrase, NULL);
		if (next == NULL)
			break;
		if (sk_X509_push(pair->chain, next) == 0) {
			X509_free(next);
			BIO_free(in);
			return HPX_NOMEM;
		}
	}
	BIO_free(in);
	if (pair->leaf == NULL)
		return refuse_read(problem, file, "a certificate");
	ERR_clear_error();
	return HPX_OK;
}

static enum hpx_status read_key(const char *file, struct pair *pair, char *problem)
{
	ERR_clear_error();
	BIO *in = BIO_new_file(file, "r");

	if (in != NULL)
		pair->key = PEM_read_bio_PrivateKey(in, NULL, no_passphrase, NULL);
	BIO_free(in);
	if (pair->key == NULL)
		return refuse_read(problem, file, "a private key without a passphrase");
	return HPX_OK;
}

static enum hpx_status read_pair(const char *certificate, const char *key, struct pair *pair,
				 char *problem)
{
	enum hpx_status status = read_chain(certificate, pair, problem);

	if (status == HPX_OK)
		status = read_key(key, pair, problem);
	if (status == HPX_OK && X509_check_private_key(pair->leaf, pair->key) != 1) {
		snprintf(problem, HPX_PROBLEM_SIZE,
			 "%s: it is not the key of the certificate in %s", key, certificate);
		status = HPX_INVALID;
	}
	if (status != HPX_OK)
		pair_done(pair);
	return status;
}

static int64_t seconds_until(const ASN1_TIME *when)
{
	int days = 0, seconds = 0;

	if (ASN1_TIME_diff(&days, &seconds, NULL, when) != 1)
		return 0;
	return (int64_t)days * 86400 + seconds;
}

static bool is_ordered(const struct pair *pair)
{
	X509 *subject = pair->leaf;

	for (int i = 0; i < sk_X509_num(pair->chain); i++) {
		X509 *issuer = sk_X509_value(pair->chain, i);
		if (X509_check_issued(issuer, subject) != X509_V_OK)
			return false;
		subject = issuer;
	}
	return true;
}

enum hpx_status hpx_certificate_read(const char *file, struct hpx_certificate_facts *ret_facts,
				     char *problem)
{
	struct pair pair = { .leaf = NULL };
	enum hpx_status status = read_chain(file, &pair, problem);

	if (status == HPX_OK)
		*ret_facts = (struct hpx_certificate_facts){
			.expires_s = seconds_until(X509_get0_notAfter(pair.leaf)),
			.begins_s = seconds_until(X509_get0_notBefore(pair.leaf)),
			.ordered = is_ordered(&pair),
		};
	pair_done(&pair);
	return status;
}

static uint64_t mix(uint64_t stamp, uint64_t value)
{
	return (stamp ^ value) * 0x100000001b3ull;
}

static uint64_t stamp_file(uint64_t stamp, const char *file)
{
	struct stat found;

	if (file == NULL)
		return stamp;
	if (stat(file, &found) != 0)
		return mix(stamp, (uint64_t)errno);
	stamp = mix(stamp, (uint64_t)found.st_ino);
	stamp = mix(stamp, (uint64_t)found.st_size);
	stamp = mix(stamp, (uint64_t)found.st_mtim.tv_sec);
	return mix(stamp, (uint64_t)found.st_mtim.tv_nsec);
}

uint64_t hpx_tls_stamp(const struct hpx_tls_settings *settings)
{
	uint64_t stamp = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < settings->certificate_count; i++)
		stamp = stamp_file(stamp, settings->certificates[i]);
	for (size_t i = 0; i < settings->key_count; i++)
		stamp = stamp_file(stamp, settings->keys[i]);
	return stamp_file(stamp, settings->ca);
}

/* ---- several certificates ---- */

/* The pairs of a context; freed with the SSL_CTX that owns them. */
struct pair_list {
	size_t count;
	struct pair pairs[];
};

static void free_pairs(void *parent, void *data, CRYPTO_EX_DATA *all, int index, long number,
		       void *user)
{
	struct pair_list *list = data;

	(void)parent;
	(void)all;
	(void)index;
	(void)number;
	(void)user;
	for (size_t i = 0; list != NULL && i < list->count; i++)
		pair_done(&list->pairs[i]);
	free(list);
}

static int pairs_index = -1;

static void make_index(void)
{
	pairs_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_pairs);
}

static int index_of_pairs(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_index);
	return pairs_index;
}

/* NULL: the context has no certificate. */
static const struct pair_list *pairs_of(const SSL_CTX *ctx)
{
	return SSL_CTX_get_ex_data(ctx, index_of_pairs());
}

static int use_pair(SSL *ssl, const struct pair *pair)
{
	return SSL_use_cert_and_key(ssl, pair->leaf, pair->key, pair->chain, 1);
}

/* Every certificate that has the name the client asks for: of two with one name, say an
 * RSA and an ECDSA one, OpenSSL takes the one that the client can use. The first
 * certificate where none has the name, or the client names nobody. */
static int choose_certificate(SSL *ssl, void *user)
{
	const struct pair_list *list = user;
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	bool found = false;

	SSL_certs_clear(ssl);
	for (size_t i = 0; name != NULL && i < list->count; i++) {
		if (X509_check_host(list->pairs[i].leaf, name, 0, 0, NULL) != 1)
			continue;
		if (use_pair(ssl, &list->pairs[i]) != 1)
			return 0;
		found = true;
	}
	return found ? 1 : use_pair(ssl, &list->pairs[0]);
}

static enum hpx_status put_pairs(SSL_CTX *ctx, const struct hpx_tls_settings *settings,
				 char *problem)
{
	size_t count = settings->certificate_count;
	struct pair_list *list = calloc(1, sizeof(*list) + count * sizeof(list->pairs[0]));
	enum hpx_status status = HPX_OK;

	if (list == NULL || SSL_CTX_set_ex_data(ctx, index_of_pairs(), list) != 1) {
		free(list);
		return HPX_NOMEM;
	}
	for (size_t i = 0; i < count && status == HPX_OK; i++) {
		status = read_pair(settings->certificates[i], settings->keys[i], &list->pairs[i],
				   problem);
		list->count++;
	}
	/* The same in the context itself: OpenSSL refuses what is too weak here, and not
	 * in the first handshake. */
	for (size_t i = count; i-- > 0 && status == HPX_OK;)
		if (SSL_CTX_use_cert_and_key(ctx, list->pairs[i].leaf, list->pairs[i].key,
					     list->pairs[i].chain, 1) != 1)
			status = refuse(problem, settings->certificates[i], last_reason());
	if (status == HPX_OK && count > 1)
		SSL_CTX_set_cert_cb(ctx, choose_certificate, list);
	return status;
}

/* ---- contexts ---- */

static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
		       const unsigned char *offered, unsigned offered_len, void *user)
{
	unsigned char *chosen;

	(void)ssl;
	(void)user;
	if (SSL_select_next_proto(&chosen, out_len, alpn, ALPN_BYTES, offered, offered_len) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

/* A client's certificate is looked at in every handshake: none is resumed, so that a
 * certificate that has expired or whose authority is gone ends at once. */
static enum hpx_status set_up_server(SSL_CTX *ctx, const struct hpx_tls_settings *settings,
				     char *problem)
{
	static const unsigned char session_context[] = "hapax";

	SSL_CTX_set_alpn_select_cb(ctx, select_alpn, NULL);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_timeout(ctx, SESSION_SECONDS);
	if (SSL_CTX_set_session_id_context(ctx, session_context, sizeof(session_context)) != 1)
		return HPX_NOMEM;
	if (settings->ca == NULL)
		return HPX_OK;
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(settings->ca);
	if (names == NULL)
		return refuse_read(problem, settings->ca, "certificates");
	SSL_CTX_set_client_CA_list(ctx, names);
	return HPX_OK;
}

static enum hpx_status set_up_client(SSL_CTX *ctx, const struct hpx_tls_settings *settings,
				     char *problem)
{
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, hpx_tls_on_session);
	if (SSL_CTX_set_alpn_protos(ctx, alpn, ALPN_BYTES) != 0)
		return HPX_NOMEM;
	if (settings->ca == NULL && SSL_CTX_set_default_verify_paths(ctx) != 1)
		return refuse(problem, "the system's certificates", last_reason());
	return HPX_OK;
}

static enum hpx_status set_up(SSL_CTX *ctx, enum hpx_tls_side side,
			      const struct hpx_tls_settings *settings, char *problem)
{
	int version = settings->min_version == HPX_TLS_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;

	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_max_early_data(ctx, 0);
	SSL_CTX_set_info_callback(ctx, hpx_tls_on_progress);
	if (SSL_CTX_set_min_proto_version(ctx, version) != 1 ||
	    SSL_CTX_set_cipher_list(ctx, CIPHERS_1_2) != 1 ||
	    SSL_CTX_set_ciphersuites(ctx, CIPHERS_1_3) != 1 ||
	    SSL_CTX_set1_groups_list(ctx, GROUPS) != 1)
		return refuse(problem, "OpenSSL", last_reason());
	if (settings->ca != NULL && SSL_CTX_load_verify_file(ctx, settings->ca) != 1)
		return refuse_read(problem, settings->ca, "certificates");
	enum hpx_status status = side == HPX_TLS_SERVER ? set_up_server(ctx, settings, problem) :
							  set_up_client(ctx, settings, problem);
	if (status == HPX_OK && settings->certificate_count > 0)
		status = put_pairs(ctx, settings, problem);
	return status;
}

static enum hpx_status make_context(enum hpx_tls_side side,
				    const struct hpx_tls_settings *settings, SSL_CTX **ret_ctx,
				    char *problem)
{
	HPX_ASSERT(settings->certificate_count == settings->key_count);
	ERR_clear_error();
	SSL_CTX *ctx = SSL_CTX_new(side == HPX_TLS_SERVER ? TLS_server_method() :
							    TLS_client_method());
	enum hpx_status status = ctx != NULL ? set_up(ctx, side, settings, problem) : HPX_NOMEM;

	ERR_clear_error();
	if (status == HPX_NOMEM)
		snprintf(problem, HPX_PROBLEM_SIZE, "%s", hpx_status_text(status));
	if (status != HPX_OK) {
		SSL_CTX_free(ctx);
		return status;
	}
	*ret_ctx = ctx;
	return HPX_OK;
}

enum hpx_status hpx_tls_new(enum hpx_tls_side side, const struct hpx_tls_settings *settings,
			    struct hpx_tls **ret_tls, char *problem)
{
	struct hpx_tls *tls = calloc(1, sizeof(*tls));

	snprintf(problem, HPX_PROBLEM_SIZE, "%s", hpx_status_text(HPX_NOMEM));
	if (tls == NULL)
		return HPX_NOMEM;
	tls->side = side;
	pthread_mutex_init(&tls->lock, NULL);
	enum hpx_status status = hpx_tls_reload(tls, settings, problem);
	if (status != HPX_OK) {
		hpx_tls_free(tls);
		return status;
	}
	*ret_tls = tls;
	return HPX_OK;
}

void hpx_tls_free(struct hpx_tls *tls)
{
	if (tls == NULL)
		return;
	SSL_SESSION_free(tls->session);
	SSL_CTX_free(tls->ctx);
	pthread_mutex_destroy(&tls->lock);
	free(tls);
}

enum hpx_status hpx_tls_reload(struct hpx_tls *tls, const struct hpx_tls_settings *settings,
			       char *problem)
{
	SSL_CTX *ctx = NULL;
	enum hpx_status status = make_context(tls->side, settings, &ctx, problem);

	if (status != HPX_OK)
		return status;
	pthread_mutex_lock(&tls->lock);
	SSL_CTX *before = tls->ctx;
	SSL_SESSION *session = tls->session;
	tls->ctx = ctx;
	tls->session = NULL;
	tls->read_ms = hpx_clock_boot_ms();
	pthread_mutex_unlock(&tls->lock);
	SSL_SESSION_free(session);
	SSL_CTX_free(before);
	return HPX_OK;
}

int64_t hpx_tls_read_ms(struct hpx_tls *tls)
{
	pthread_mutex_lock(&tls->lock);
	int64_t read_ms = tls->read_ms;
	pthread_mutex_unlock(&tls->lock);
	return read_ms;
}

bool hpx_tls_expiry(struct hpx_tls *tls, size_t n, int64_t *ret_seconds)
{
	pthread_mutex_lock(&tls->lock);
	const struct pair_list *list = pairs_of(tls->ctx);
	bool found = list != NULL && n < list->count;
	if (found)
		*ret_seconds = seconds_until(X509_get0_notAfter(list->pairs[n].leaf));
	pthread_mutex_unlock(&tls->lock);
	return found;
}

SSL *hpx_tls_open(struct hpx_tls *tls)
{
	pthread_mutex_lock(&tls->lock);
	SSL *ssl = SSL_new(tls->ctx);
	pthread_mutex_unlock(&tls->lock);
	return ssl;
}

enum hpx_tls_side hpx_tls_side(const struct hpx_tls *tls)
{
	return tls->side;
}

/* ---- the client's session ---- */

bool hpx_tls_keep_session(struct hpx_tls *tls, SSL *ssl, SSL_SESSION *session)
{
	pthread_mutex_lock(&tls->lock);
	bool wanted = SSL_get_SSL_CTX(ssl) == tls->ctx;
	SSL_SESSION *before = wanted ? tls->session : NULL;
	if (wanted)
		tls->session = session;
	pthread_mutex_unlock(&tls->lock);
	SSL_SESSION_free(before);
	return wanted;
}

void hpx_tls_use_session(struct hpx_tls *tls, SSL *ssl)
{
	pthread_mutex_lock(&tls->lock);
	if (tls->session != NULL && SSL_get_SSL_CTX(ssl) == tls->ctx &&
	    SSL_SESSION_is_resumable(tls->session))
		SSL_set_session(ssl, tls->session);
	pthread_mutex_unlock(&tls->lock);
}

void hpx_tls_drop_session(struct hpx_tls *tls)
{
	pthread_mutex_lock(&tls->lock);
	SSL_SESSION *session = tls->session;
	tls->session = NULL;
	pthread_mutex_unlock(&tls->lock);
	SSL_SESSION_free(session);
}

/* ---- counting ---- */

void hpx_tls_note(struct hpx_tls *tls, enum hpx_tls_result result)
{
	hpx_counter_add(&tls->results[result], 1);
}

uint64_t hpx_tls_count(const struct hpx_tls *tls, enum hpx_tls_result result)
{
	return hpx_counter_read(&tls->results[result]);
}
