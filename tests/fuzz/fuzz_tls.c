/* Fuzzes TLS records through the transport, over a real socket: what the peer sends is any
 * bytes, to a server, to a client, or to a server behind a handshake that was right. The
 * end always comes, memory stays bounded, and application bytes come only behind a finished
 * handshake, and only those that the peer has sent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/status.h"
#include "net/listener.h"
#include "net/tls.h"
#include "net/transport_driver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *count, char ***arguments);

#define SENT_MAX 32768 /* less than a socket takes at once */
#define TURNS_MAX 200
static const char words[] = "GET / HTTP/1.1\r\n\r\n";
#define WORDS_LEN (sizeof(words) - 1)

static struct hpx_loop loop;
static struct hpx_tls *server, *client;
static SSL_CTX *peer_ctx;

struct seen {
	struct hpx_transport *transport; /* NULL: closed */
	size_t bytes;                    /* of the application */
	bool ended;
	bool done; /* client: the handshake is over */
};

/* ---- what the transport tells ---- */

static void on_data(void *user, struct hpx_span bytes)
{
	struct seen *seen = user;

	HPX_ASSERT(!seen->ended && seen->bytes + bytes.len <= WORDS_LEN);
	HPX_ASSERT(memcmp(bytes.ptr, words + seen->bytes, bytes.len) == 0);
	seen->bytes += bytes.len;
}

static void on_end(void *user, enum hpx_status status)
{
	struct seen *seen = user;

	HPX_ASSERT(status == HPX_IO || status == HPX_CLOSED);
	seen->ended = true;
}

/* A peer of nothing but fuzz bytes proves to be nobody. */
static void on_done(void *user, enum hpx_status status, const char *reason)
{
	struct seen *seen = user;

	HPX_ASSERT(!seen->done && status != HPX_OK && reason != NULL);
	seen->done = true;
	seen->ended = true;
}

static const struct hpx_transport_events events = { on_data, on_end, NULL };

/* ---- one connection ---- */

static struct hpx_transport *stream_of(int fd)
{
	struct hpx_transport *plain = hpx_stream_new(&loop, true);

	HPX_ASSERT(plain != NULL);
	HPX_ASSERT(uv_pipe_open((uv_pipe_t *)hpx_stream_uv(plain), fd) == 0);
	HPX_ASSERT(hpx_stream_connected(plain) == HPX_OK);
	return plain;
}

static void turn(void)
{
	uv_run(&loop.uv, UV_RUN_NOWAIT);
}

static void await_end(const struct seen *seen)
{
	for (int i = 0; i < TURNS_MAX && !seen->ended; i++)
		turn();
	HPX_ASSERT(seen->ended);
}

/* What is left open is closed; its memory goes with the handles. */
static void finish(struct seen *seen, int peer)
{
	hpx_transport_close(seen->transport);
	for (int i = 0; i < 4; i++)
		turn();
	close(peer);
}

static void send_all(int peer, struct hpx_span bytes)
{
	while (bytes.len > 0) {
		ssize_t sent = send(peer, bytes.ptr, bytes.len, MSG_NOSIGNAL);
		/* The other side may have closed: nobody listens to the rest. */
		if (sent <= 0)
			return;
		bytes = hpx_span_skip(bytes, (size_t)sent);
	}
}

static void accept_on(int fd, struct seen *seen)
{
	seen->transport = hpx_tls_accept(server, stream_of(fd), HPX_SPAN(""));
	HPX_ASSERT(seen->transport != NULL);
	hpx_transport_attach(seen->transport, &events, seen);
	hpx_transport_read_start(seen->transport);
}

static void fuzz_server(int fd, int peer, struct hpx_span bytes)
{
	struct seen seen = { .bytes = 0 };

	accept_on(fd, &seen);
	send_all(peer, bytes);
	shutdown(peer, SHUT_WR);
	await_end(&seen);
	HPX_ASSERT(seen.bytes == 0);
	finish(&seen, peer);
}

static void fuzz_client(int fd, int peer, struct hpx_span bytes)
{
	struct seen seen = { .bytes = 0 };

	seen.transport = hpx_tls_connect(client, stream_of(fd), "localhost", on_done, &seen);
	HPX_ASSERT(seen.transport != NULL);
	hpx_transport_attach(seen.transport, &events, &seen);
	send_all(peer, bytes);
	shutdown(peer, SHUT_WR);
	await_end(&seen);
	HPX_ASSERT(seen.bytes == 0 && seen.done);
	finish(&seen, peer);
}

/* The words come first, so that the bytes behind them are read as records of the
 * connection: nothing more of the application's comes of them. */
static void fuzz_behind_handshake(int fd, int peer, struct hpx_span bytes)
{
	struct seen seen = { .bytes = 0 };
	SSL *ssl = SSL_new(peer_ctx);
	int done = 0;

	HPX_ASSERT(ssl != NULL && SSL_set_fd(ssl, peer) == 1);
	accept_on(fd, &seen);
	for (int i = 0; i < TURNS_MAX && done != 1; i++) {
		done = SSL_connect(ssl);
		turn();
	}
	HPX_ASSERT(done == 1 && seen.bytes == 0);
	HPX_ASSERT(SSL_write(ssl, words, (int)WORDS_LEN) == (int)WORDS_LEN);
	send_all(peer, bytes);
	shutdown(peer, SHUT_WR);
	await_end(&seen);
	HPX_ASSERT(seen.bytes == WORDS_LEN);
	SSL_free(ssl);
	finish(&seen, peer);
}

/* ---- certificates ---- */

static X509 *certificate_of(EVP_PKEY *key)
{
	X509 *certificate = X509_new();

	HPX_ASSERT(certificate != NULL);
	X509_set_version(certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
	X509_NAME *name = X509_get_subject_name(certificate);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1,
				   -1, 0);
	X509_set_issuer_name(certificate, name);
	X509_set_pubkey(certificate, key);
	HPX_ASSERT(X509_sign(certificate, key, EVP_sha256()) > 0);
	return certificate;
}

static void write_pair(const char *certificate_file, const char *key_file)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = certificate_of(key);
	FILE *out = fopen(certificate_file, "w");

	HPX_ASSERT(out != NULL && PEM_write_X509(out, certificate) == 1);
	fclose(out);
	out = fopen(key_file, "w");
	HPX_ASSERT(out != NULL && PEM_write_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) == 1);
	fclose(out);
	X509_free(certificate);
	EVP_PKEY_free(key);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	char folder[] = "/tmp/hapax-fuzz-XXXXXX";
	char certificate[64], key[64], problem[HPX_PROBLEM_SIZE];
	const char *const certificates[] = { certificate };
	const char *const keys[] = { key };

	(void)count;
	(void)arguments;
	HPX_ASSERT(mkdtemp(folder) != NULL);
	snprintf(certificate, sizeof(certificate), "%s/certificate.pem", folder);
	snprintf(key, sizeof(key), "%s/key.pem", folder);
	write_pair(certificate, key);
	const struct hpx_tls_settings own = { .certificates = certificates,
					      .certificate_count = 1,
					      .keys = keys,
					      .key_count = 1 };
	const struct hpx_tls_settings other = { .ca = certificate };
	HPX_ASSERT(hpx_tls_new(HPX_TLS_SERVER, &own, &server, problem) == HPX_OK);
	HPX_ASSERT(hpx_tls_new(HPX_TLS_CLIENT, &other, &client, problem) == HPX_OK);
	unlink(certificate);
	unlink(key);
	rmdir(folder);
	peer_ctx = SSL_CTX_new(TLS_client_method());
	HPX_ASSERT(peer_ctx != NULL);
	SSL_CTX_set_verify(peer_ctx, SSL_VERIFY_NONE, NULL);
	hpx_net_ignore_sigpipe();
	HPX_ASSERT(hpx_loop_init(&loop) == HPX_OK);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const ways[])(int, int, struct hpx_span) = { fuzz_server, fuzz_client,
								   fuzz_behind_handshake };
	int ends[2];

	if (size == 0 || size > SENT_MAX)
		return 0;
	HPX_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	ways[data[0] % 3](ends[0], ends[1], hpx_span_skip(hpx_span(data, size), 1));
	ERR_clear_error();
	return 0;
}
