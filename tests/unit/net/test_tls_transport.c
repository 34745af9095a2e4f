/* Shows that the TLS transport bears every way in which bytes can arrive and stop: the
 * handshake and records in pieces, an end at every byte of the handshake, from either
 * side, an end without close_notify, a full socket, and messages that only make work. The
 * peer is OpenSSL with its bytes in memory, so that the test says when each one leaves. */
#include "helper.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/buffer.h"
#include "net/tls.h"
#include "net/transport_driver.h"

#define TURNS 4     /* of the loop: what one byte on a socket pair can cause */
#define ROUNDS 2000 /* of the pump: far more than any exchange here takes */
#define ALL SIZE_MAX
#define WORDS "POST /pay HTTP/1.1\r\n\r\n"

struct fixture {
	struct hpx_loop loop;
	struct hpx_tls *server;
	struct hpx_tls *client;
	SSL_CTX *peer_client;
	SSL_CTX *peer_server;
};

/* A transport, its peer, and what the transport's user was told. */
struct wire {
	struct fixture *of;
	enum hpx_tls_side side;          /* of the transport */
	struct hpx_transport *transport; /* NULL: closed */
	struct hpx_buffer data;
	bool idle; /* a client's user does not read when the handshake is done */
	unsigned ends, drains, dones;
	enum hpx_status end_status, done_status;

	int fd; /* the peer's; -1: closed */
	SSL *ssl;
	BIO *in, *out;
	size_t piece; /* bytes that leave the peer at once */
	size_t left;  /* bytes that it may still send */
	size_t sent;
};

/* ---- what the transport tells ---- */

static void on_data(void *user, struct hpx_span bytes)
{
	struct wire *wire = user;

	assert_int_equal(wire->ends, 0);
	assert_status(hpx_buffer_append(&wire->data, bytes), HPX_OK);
}

static void on_end(void *user, enum hpx_status status)
{
	struct wire *wire = user;

	wire->ends++;
	wire->end_status = status;
}

static void on_drain(void *user)
{
	struct wire *wire = user;

	wire->drains++;
}

static void on_done(void *user, enum hpx_status status, const char *reason)
{
	struct wire *wire = user;

	assert_non_null(reason);
	wire->dones++;
	wire->done_status = status;
	if (status == HPX_OK && !wire->idle)
		hpx_transport_read_start(wire->transport);
}

static const struct hpx_transport_events events = { on_data, on_end, on_drain };

/* ---- the two sides ---- */

static void turn(struct fixture *fixture)
{
	for (int i = 0; i < TURNS; i++)
		uv_run(&fixture->loop.uv, UV_RUN_NOWAIT);
}

static void open_peer(struct wire *wire, int version)
{
	bool serves = wire->side == HPX_TLS_CLIENT;

	wire->ssl = SSL_new(serves ? wire->of->peer_server : wire->of->peer_client);
	wire->in = BIO_new(BIO_s_mem());
	wire->out = BIO_new(BIO_s_mem());
	assert_true(wire->ssl != NULL && wire->in != NULL && wire->out != NULL);
	SSL_set_bio(wire->ssl, wire->in, wire->out);
	assert_int_equal(SSL_set_min_proto_version(wire->ssl, version), 1);
	assert_int_equal(SSL_set_max_proto_version(wire->ssl, version), 1);
	if (serves)
		SSL_set_accept_state(wire->ssl);
	else
		SSL_set_connect_state(wire->ssl);
}

/* A connection of which no byte has been sent; `room` bytes of the transport's fit into the
 * socket, 0: as the system has it. */
static struct wire open_wire(struct fixture *fixture, enum hpx_tls_side side, int version, int room)
{
	struct wire wire = { .of = fixture, .side = side, .piece = ALL, .left = ALL };
	struct hpx_transport *plain = hpx_stream_new(&fixture->loop, true);
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
	if (room > 0)
		assert_int_equal(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	assert_non_null(plain);
	assert_int_equal(uv_pipe_open((uv_pipe_t *)hpx_stream_uv(plain), ends[0]), 0);
	assert_status(hpx_stream_connected(plain), HPX_OK);
	hpx_buffer_init(&wire.data, 1 << 20);
	wire.fd = ends[1];
	open_peer(&wire, version);
	wire.transport = plain;
	return wire;
}

/* Puts TLS on the transport. `wire` stays where it is from here on. */
static void start(struct wire *wire)
{
	if (wire->side == HPX_TLS_SERVER)
		wire->transport = hpx_tls_accept(wire->of->server, wire->transport, HPX_SPAN(""));
	else
		wire->transport = hpx_tls_connect(wire->of->client, wire->transport, "localhost",
						  on_done, wire);
	assert_non_null(wire->transport);
	hpx_transport_attach(wire->transport, &events, wire);
	if (wire->side == HPX_TLS_SERVER)
		hpx_transport_read_start(wire->transport);
	turn(wire->of);
}

static void close_wire(struct wire *wire)
{
	if (wire->transport != NULL)
		hpx_transport_close(wire->transport);
	wire->transport = NULL;
	if (wire->fd >= 0)
		close(wire->fd);
	SSL_free(wire->ssl);
	hpx_buffer_done(&wire->data);
	ERR_clear_error();
	turn(wire->of);
}

/* What the transport has sent goes to the peer. */
static bool peer_receive(struct wire *wire)
{
	char bytes[65536];
	ssize_t n = recv(wire->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n <= 0)
		return false;
	assert_int_equal(BIO_write(wire->in, bytes, (int)n), n);
	return true;
}

/* What the peer has made leaves it, piece by piece, each seen by the loop on its own. */
static bool peer_flush(struct wire *wire)
{
	char bytes[65536];
	bool any = false;

	while (wire->left > 0 && BIO_ctrl_pending(wire->out) > 0) {
		size_t most = wire->piece < sizeof(bytes) ? wire->piece : sizeof(bytes);
		int n = BIO_read(wire->out, bytes, (int)(most < wire->left ? most : wire->left));
		assert_true(n > 0);
		if (send(wire->fd, bytes, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) != n) {
			assert_true(errno == EPIPE || errno == ECONNRESET);
			return false; /* the transport is closed: nobody listens */
		}
		wire->sent += (size_t)n;
		wire->left -= (size_t)n;
		any = true;
		turn(wire->of);
	}
	return any;
}

/* Both go on until neither has anything to say. */
static void pump(struct wire *wire)
{
	bool moved = true;

	for (int i = 0; i < ROUNDS && moved; i++) {
		if (!SSL_is_init_finished(wire->ssl))
			(void)SSL_do_handshake(wire->ssl);
		moved = peer_flush(wire);
		turn(wire->of);
		moved = peer_receive(wire) || moved;
	}
	assert_false(moved);
}

static void say(struct wire *wire, const char *text)
{
	assert_int_equal(SSL_write(wire->ssl, text, (int)strlen(text)), strlen(text));
}

/* The peer has `text` next, and nothing behind it. */
static void assert_peer_reads(struct wire *wire, const char *text)
{
	char bytes[256];
	int n = SSL_read(wire->ssl, bytes, sizeof(bytes));

	assert_span(hpx_span(bytes, n > 0 ? (size_t)n : 0), text);
}

static void send_words(struct wire *wire)
{
	struct hpx_span piece = HPX_SPAN(WORDS);

	assert_status(hpx_transport_send(wire->transport, &piece, 1, NULL), HPX_OK);
}

/* A connection behind its handshake, whose user reads. */
static struct wire *shaken(struct wire *wire)
{
	start(wire);
	pump(wire);
	assert_int_equal(SSL_is_init_finished(wire->ssl), 1);
	if (wire->side == HPX_TLS_CLIENT) {
		assert_int_equal(wire->dones, 1);
		assert_status(wire->done_status, HPX_OK);
	}
	return wire;
}

static struct hpx_tls *context_of(const struct wire *wire)
{
	return wire->side == HPX_TLS_SERVER ? wire->of->server : wire->of->client;
}

static uint64_t finished(struct hpx_tls *tls)
{
	return hpx_tls_count(tls, HPX_TLS_RESULT_done) + hpx_tls_count(tls, HPX_TLS_RESULT_resumed);
}

/* ---- rows ---- */

static const struct {
	enum hpx_tls_side side;
	int version;
} ways[] = {
	{ HPX_TLS_SERVER, TLS1_2_VERSION },
	{ HPX_TLS_SERVER, TLS1_3_VERSION },
	{ HPX_TLS_CLIENT, TLS1_2_VERSION },
	{ HPX_TLS_CLIENT, TLS1_3_VERSION },
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* A handshake is the same in whatever pieces it comes, and bytes go both ways behind it. */
static void test_handshake_in_pieces(void **state)
{
	static const size_t pieces[] = { 1, 2, 3, 7, 100, ALL };

	for (size_t i = 0; i < WAYS * 6; i++) {
		struct wire wire = open_wire(*state, ways[i / 6].side, ways[i / 6].version, 0);
		uint64_t before = finished(context_of(&wire));
		wire.piece = pieces[i % 6];
		shaken(&wire);
		say(&wire, WORDS);
		pump(&wire);
		assert_span(hpx_buffer_span(&wire.data), WORDS);
		send_words(&wire);
		pump(&wire);
		assert_peer_reads(&wire, WORDS);
		assert_int_equal(finished(context_of(&wire)), before + 1);
		assert_int_equal(wire.ends, 0);
		close_wire(&wire);
	}
}

/* The number of bytes that a peer sends for a whole handshake. A signature may have a few
 * bytes less in one handshake than in the next. */
static size_t handshake_bytes(struct fixture *fixture, enum hpx_tls_side side, int version)
{
	struct wire wire = open_wire(fixture, side, version, 0);

	shaken(&wire);
	size_t bytes = wire.sent;
	close_wire(&wire);
	return bytes + 4;
}

/* The peer ends after its n-th byte: the user is told once, and the end is counted. */
static void end_after(struct fixture *fixture, size_t way, size_t n)
{
	struct wire wire = open_wire(fixture, ways[way].side, ways[way].version, 0);
	struct hpx_tls *tls = context_of(&wire);
	uint64_t before = finished(tls), closed = hpx_tls_count(tls, HPX_TLS_RESULT_closed);

	wire.left = n;
	start(&wire);
	pump(&wire);
	bool done = finished(tls) > before;
	assert_int_equal(shutdown(wire.fd, SHUT_WR), 0);
	turn(fixture);
	assert_int_equal(wire.data.len, 0);
	if (wire.side == HPX_TLS_CLIENT) {
		assert_int_equal(wire.dones, 1);
		assert_status(wire.done_status, done ? HPX_OK : HPX_UNAVAILABLE);
	}
	if (wire.side == HPX_TLS_SERVER || done) {
		assert_int_equal(wire.ends, 1);
		assert_status(wire.end_status, HPX_IO);
	}
	assert_int_equal(hpx_tls_count(tls, HPX_TLS_RESULT_closed), closed + (done ? 0 : 1));
	close_wire(&wire);
}

static void test_the_peer_ends_at_every_byte(void **state)
{
	for (size_t way = 0; way < WAYS; way++) {
		size_t bytes = handshake_bytes(*state, ways[way].side, ways[way].version);
		for (size_t n = 0; n <= bytes; n++)
			end_after(*state, way, n);
	}
}

/* The user closes after the peer's n-th byte: nothing is told any more. Every fifth is a
 * reset. */
static void test_the_user_closes_at_every_byte(void **state)
{
	for (size_t way = 0; way < WAYS; way++) {
		size_t bytes = handshake_bytes(*state, ways[way].side, ways[way].version);
		for (size_t n = 0; n <= bytes; n++) {
			struct wire wire = open_wire(*state, ways[way].side, ways[way].version, 0);
			wire.left = n;
			start(&wire);
			pump(&wire);
			unsigned told = wire.ends + wire.dones;
			if (n % 5 == 4)
				hpx_transport_abort(wire.transport);
			else
				hpx_transport_close(wire.transport);
			wire.transport = NULL;
			wire.left = ALL;
			(void)peer_flush(&wire);
			turn(*state);
			assert_int_equal(wire.ends + wire.dones, told);
			assert_int_equal(wire.data.len, 0);
			close_wire(&wire);
		}
	}
}

/* A record is given when its last byte has come, and not before. */
static void test_a_record_in_single_bytes(void **state)
{
	for (size_t way = 0; way < WAYS; way++) {
		struct wire wire = open_wire(*state, ways[way].side, ways[way].version, 0);
		shaken(&wire);
		say(&wire, WORDS);
		wire.piece = 1;
		wire.left = BIO_ctrl_pending(wire.out) - 1;
		pump(&wire);
		assert_int_equal(wire.data.len, 0);
		wire.left = 1;
		pump(&wire);
		assert_span(hpx_buffer_span(&wire.data), WORDS);
		assert_int_equal(wire.ends, 0);
		close_wire(&wire);
	}
}

enum how_it_ends { CLOSE_NOTIFY,
		   NO_CLOSE_NOTIFY,
		   HALF_A_RECORD,
		   BROKEN_RECORD };

/* Only close_notify is an end of stream: anybody can forge the end of a socket's. */
static void test_ends(void **state)
{
	static const struct {
		enum how_it_ends how;
		enum hpx_status status;
	} rows[] = {
		{ CLOSE_NOTIFY, HPX_CLOSED },
		{ NO_CLOSE_NOTIFY, HPX_IO },
		{ HALF_A_RECORD, HPX_IO },
		{ BROKEN_RECORD, HPX_IO },
	};

	for (size_t i = 0; i < WAYS * 4; i++) {
		struct wire wire = open_wire(*state, ways[i / 4].side, ways[i / 4].version, 0);
		shaken(&wire);
		say(&wire, WORDS);
		pump(&wire);
		switch (rows[i % 4].how) {
		case CLOSE_NOTIFY:
			(void)SSL_shutdown(wire.ssl);
			break;
		case HALF_A_RECORD:
			say(&wire, WORDS);
			wire.left = BIO_ctrl_pending(wire.out) / 2;
			break;
		case BROKEN_RECORD:
			assert_int_equal(send(wire.fd, "\x17\x03\x03\x00\x20XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX",
					      37, MSG_NOSIGNAL),
					 37);
			break;
		default:
			break;
		}
		pump(&wire);
		assert_int_equal(shutdown(wire.fd, SHUT_WR), 0);
		turn(*state);
		assert_span(hpx_buffer_span(&wire.data), WORDS);
		assert_int_equal(wire.ends, 1);
		assert_status(wire.end_status, rows[i % 4].status);
		close_wire(&wire);
	}
}

/* After close_notify of the peer, the other direction goes on. */
static void test_sending_after_close_notify(void **state)
{
	struct wire wire = open_wire(*state, HPX_TLS_SERVER, TLS1_3_VERSION, 0);

	shaken(&wire);
	(void)SSL_shutdown(wire.ssl);
	pump(&wire);
	assert_int_equal(wire.ends, 1);
	send_words(&wire);
	hpx_transport_shutdown(wire.transport);
	pump(&wire);
	assert_peer_reads(&wire, WORDS);
	assert_int_equal(SSL_shutdown(wire.ssl), 1); /* ours has come too */
	close_wire(&wire);
}

/* ---- a full socket ---- */

#define ROOM 4608
#define HEAD_BYTES 10
#define BODY_BYTES 20000
#define REST_BYTES 100000
#define SENT_BYTES (HEAD_BYTES + BODY_BYTES + REST_BYTES)

static char *pattern(void)
{
	char *bytes = malloc(SENT_BYTES);

	assert_non_null(bytes);
	for (size_t i = 0; i < SENT_BYTES; i++)
		bytes[i] = (char)(i * 31 + i / 251);
	return bytes;
}

/* Pieces, two of them empty; the socket takes the beginning. */
static size_t send_pattern(struct wire *wire, const char *bytes)
{
	const struct hpx_span pieces[] = {
		HPX_SPAN_INIT(""),
		{ bytes, HEAD_BYTES },
		{ bytes + HEAD_BYTES, BODY_BYTES },
		{ NULL, 0 },
		{ bytes + HEAD_BYTES + BODY_BYTES, REST_BYTES },
	};
	uint64_t before = hpx_transport_taken(wire->transport);
	size_t taken;

	assert_status(hpx_transport_send(wire->transport, pieces, 5, &taken), HPX_OK);
	assert_int_equal(hpx_transport_taken(wire->transport), before + taken);
	assert_int_equal(hpx_transport_pending(wire->transport), SENT_BYTES - taken);
	return taken;
}

/* A record that the socket did not take whole is the last that is made: what is behind it
 * has not left. Everything comes in order when the peer reads; then, once, on_drain. */
static void test_pieces_into_a_full_socket(void **state)
{
	char *bytes = pattern(), *got = malloc(SENT_BYTES);

	assert_non_null(got);
	for (size_t way = 0; way < WAYS; way++) {
		struct wire wire = open_wire(*state, ways[way].side, ways[way].version, ROOM);
		size_t len = 0;
		int n;
		shaken(&wire);
		size_t taken = send_pattern(&wire, bytes);
		assert_in_range(taken, 1, 3 * 16384);
		turn(*state);
		assert_int_equal(wire.drains, 0);
		for (int i = 0; i < ROUNDS && len < SENT_BYTES; i++) {
			pump(&wire);
			while ((n = SSL_read(wire.ssl, got + len, (int)(SENT_BYTES - len))) > 0)
				len += (size_t)n;
		}
		assert_int_equal(len, SENT_BYTES);
		assert_memory_equal(got, bytes, SENT_BYTES);
		assert_int_equal(hpx_transport_pending(wire.transport), 0);
		assert_int_equal(hpx_transport_taken(wire.transport), SENT_BYTES);
		assert_int_equal(wire.drains, 1);
		close_wire(&wire);
	}
	free(got);
	free(bytes);
}

/* A peer that goes away while bytes wait: those whose record was never made have not left. */
static void test_the_peer_goes_away_from_a_full_socket(void **state)
{
	char *bytes = pattern();

	for (size_t way = 0; way < WAYS; way++) {
		struct wire wire = open_wire(*state, ways[way].side, ways[way].version, ROOM);
		shaken(&wire);
		size_t taken = send_pattern(&wire, bytes);
		close(wire.fd);
		wire.fd = -1;
		turn(*state);
		assert_int_equal(wire.ends, 1);
		assert_status(wire.end_status, HPX_IO);
		/* The record that the socket had begun counts whole, and no other one. */
		assert_in_range(hpx_transport_taken(wire.transport), taken, taken + 16384);
		assert_int_equal(wire.drains, 0);
		close_wire(&wire);
	}
	free(bytes);
}

/* What is sent before the handshake is done waits for it, and has not left. */
static void test_a_send_during_the_handshake(void **state)
{
	struct wire wire = open_wire(*state, HPX_TLS_SERVER, TLS1_3_VERSION, 0);

	start(&wire);
	send_words(&wire);
	assert_int_equal(hpx_transport_taken(wire.transport), 0);
	assert_int_equal(hpx_transport_pending(wire.transport), strlen(WORDS));
	pump(&wire);
	assert_peer_reads(&wire, WORDS);
	assert_int_equal(hpx_transport_taken(wire.transport), strlen(WORDS));
	close_wire(&wire);
}

/* ---- messages that only make work ---- */

/* A new handshake inside the connection is refused, and gives the peer nothing. */
static void test_renegotiation_is_refused(void **state)
{
	char byte[1];

	for (int side = HPX_TLS_SERVER; side <= HPX_TLS_CLIENT; side++) {
		struct wire wire = open_wire(*state, (enum hpx_tls_side)side, TLS1_2_VERSION, 0);
		shaken(&wire);
		uint64_t before = finished(context_of(&wire));
		assert_int_equal(SSL_renegotiate(wire.ssl), 1);
		(void)SSL_do_handshake(wire.ssl);
		assert_true(peer_flush(&wire));
		assert_true(peer_receive(&wire));
		ERR_clear_error();
		assert_true(SSL_read(wire.ssl, byte, sizeof(byte)) <= 0);
		assert_int_equal(ERR_GET_REASON(ERR_peek_error()), SSL_R_NO_RENEGOTIATION);
		assert_int_equal(finished(context_of(&wire)), before);
		assert_int_equal(wire.data.len, 0);
		close_wire(&wire);
	}
}

/* New keys are borne, a flood of them is not. */
static void test_a_flood_of_new_keys(void **state)
{
	static const struct {
		int messages;
		unsigned ends;
	} rows[] = { { 10, 0 }, { 200, 1 } };

	for (size_t i = 0; i < 2; i++) {
		struct wire wire = open_wire(*state, HPX_TLS_SERVER, TLS1_3_VERSION, 0);
		shaken(&wire);
		for (int n = 0; n < rows[i].messages; n++) {
			assert_int_equal(SSL_key_update(wire.ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
			assert_int_equal(SSL_do_handshake(wire.ssl), 1);
		}
		pump(&wire);
		assert_int_equal(wire.ends, rows[i].ends);
		assert_status(wire.end_status, rows[i].ends > 0 ? HPX_IO : HPX_OK);
		close_wire(&wire);
	}
}

/* ---- a user that does not read ---- */

/* Bytes that came together with the end of the handshake wait until the user reads. */
static void test_bytes_behind_the_handshake_are_held(void **state)
{
	struct wire wire = open_wire(*state, HPX_TLS_CLIENT, TLS1_2_VERSION, 0);

	wire.idle = true;
	start(&wire);
	for (int i = 0; i < ROUNDS && !SSL_is_init_finished(wire.ssl); i++) {
		if (SSL_do_handshake(wire.ssl) == 1)
			say(&wire, WORDS); /* behind Finished, in one piece with it */
		(void)peer_flush(&wire);
		turn(*state);
		(void)peer_receive(&wire);
	}
	assert_status(wire.done_status, HPX_OK);
	turn(*state);
	assert_int_equal(wire.data.len, 0);
	assert_true(hpx_transport_is_stale(wire.transport));
	hpx_transport_read_start(wire.transport);
	turn(*state);
	assert_span(hpx_buffer_span(&wire.data), WORDS);
	assert_int_equal(wire.ends, 0);
	close_wire(&wire);
}

/* An idle connection: tickets are no stray bytes, words and an end are. */
static void test_stale(void **state)
{
	static const struct {
		bool words, end;
	} rows[] = { { false, false }, { true, false }, { false, true } };

	for (size_t i = 0; i < 3; i++) {
		struct wire wire = open_wire(*state, HPX_TLS_CLIENT, TLS1_3_VERSION, 0);
		wire.idle = true;
		start(&wire);
		pump(&wire); /* with the server's tickets, which nobody has read */
		assert_status(wire.done_status, HPX_OK);
		if (rows[i].words)
			say(&wire, WORDS);
		if (rows[i].end)
			(void)SSL_shutdown(wire.ssl);
		(void)peer_flush(&wire);
		assert_int_equal(hpx_transport_is_stale(wire.transport), rows[i].words || rows[i].end);
		assert_int_equal(hpx_transport_has_bytes(wire.transport), rows[i].words);
		close_wire(&wire);
	}
}

/* ---- certificates ---- */

static X509 *certificate_of(EVP_PKEY *key)
{
	X509 *certificate = X509_new();
	X509_NAME *name = certificate != NULL ? X509_get_subject_name(certificate) : NULL;

	assert_non_null(name);
	assert_int_equal(X509_set_version(certificate, 2), 1);
	assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1), 1);
	assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certificate), -3600));
	assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate), 86400));
	assert_int_equal(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
						    (const unsigned char *)"localhost", -1, -1, 0),
			 1);
	assert_int_equal(X509_set_issuer_name(certificate, name), 1);
	assert_int_equal(X509_set_pubkey(certificate, key), 1);
	assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
	return certificate;
}

static void make_peers(struct fixture *fixture, X509 *certificate, EVP_PKEY *key)
{
	fixture->peer_client = SSL_CTX_new(TLS_client_method());
	fixture->peer_server = SSL_CTX_new(TLS_server_method());
	assert_true(fixture->peer_client != NULL && fixture->peer_server != NULL);
	SSL_CTX_set_verify(fixture->peer_client, SSL_VERIFY_NONE, NULL);
	assert_int_equal(SSL_CTX_use_certificate(fixture->peer_server, certificate), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(fixture->peer_server, key), 1);
}

static void make_contexts(struct fixture *fixture, X509 *certificate, EVP_PKEY *key)
{
	char folder[] = "/tmp/hapax-tls-XXXXXX";
	char certificate_file[64], key_file[64], problem[HPX_PROBLEM_SIZE] = "";
	const char *const certificates[] = { certificate_file };
	const char *const keys[] = { key_file };
	const struct hpx_tls_settings own = { .certificates = certificates,
					      .certificate_count = 1,
					      .keys = keys,
					      .key_count = 1 };
	const struct hpx_tls_settings other = { .ca = certificate_file };

	assert_non_null(mkdtemp(folder));
	snprintf(certificate_file, sizeof(certificate_file), "%s/certificate.pem", folder);
	snprintf(key_file, sizeof(key_file), "%s/key.pem", folder);
	FILE *out = fopen(certificate_file, "w");
	assert_true(out != NULL && PEM_write_X509(out, certificate) == 1 && fclose(out) == 0);
	out = fopen(key_file, "w");
	assert_true(out != NULL && PEM_write_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) == 1 &&
		    fclose(out) == 0);
	assert_status(hpx_tls_new(HPX_TLS_SERVER, &own, &fixture->server, problem), HPX_OK);
	assert_status(hpx_tls_new(HPX_TLS_CLIENT, &other, &fixture->client, problem), HPX_OK);
	unlink(certificate_file);
	unlink(key_file);
	rmdir(folder);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	EVP_PKEY *key = EVP_EC_gen("P-256");

	assert_true(fixture != NULL && key != NULL);
	X509 *certificate = certificate_of(key);
	hpx_net_ignore_sigpipe();
	assert_status(hpx_loop_init(&fixture->loop), HPX_OK);
	make_contexts(fixture, certificate, key);
	make_peers(fixture, certificate, key);
	X509_free(certificate);
	EVP_PKEY_free(key);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	hpx_loop_run(&fixture->loop);
	hpx_loop_done(&fixture->loop);
	hpx_tls_free(fixture->server);
	hpx_tls_free(fixture->client);
	SSL_CTX_free(fixture->peer_client);
	SSL_CTX_free(fixture->peer_server);
	free(fixture);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_handshake_in_pieces),
		TEST(test_the_peer_ends_at_every_byte),
		TEST(test_the_user_closes_at_every_byte),
		TEST(test_a_record_in_single_bytes),
		TEST(test_ends),
		TEST(test_sending_after_close_notify),
		TEST(test_pieces_into_a_full_socket),
		TEST(test_the_peer_goes_away_from_a_full_socket),
		TEST(test_a_send_during_the_handshake),
		TEST(test_renegotiation_is_refused),
		TEST(test_a_flood_of_new_keys),
		TEST(test_bytes_behind_the_handshake_are_held),
		TEST(test_stale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
