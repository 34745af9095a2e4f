/* Shows what goes over a connection: cuts are resets at their place, the last bytes of
 * a batch leave together, answers are read strictly and within bounds; in the clear and
 * over TLS. */
#include "helper.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define OK_ANSWER "HTTP/1.1 201 Created\r\nContent-Length: 2\r\nX-A: b\r\n\r\nok"

struct scene {
	struct test_server server;
	struct hpx_verify_spec spec;
	struct hpx_verify *run;
	struct hpx_verify_op *op;
};

static char ca_path[64];

static void open_scene(struct scene *scene, void (*serve)(struct test_server *server), SSL_CTX *tls,
		       const char *more)
{
	*scene = (struct scene){ .server = { .serve = serve, .tls = tls } };
	test_server_start(&scene->server);
	spec_read(&scene->spec,
		  "url: http%s://127.0.0.1:%u/p\nbody: '{\"amount\": 100}'\n%s%s\n%s\n",
		  tls ? "s" : "", scene->server.port, tls ? "cacert: " : "", tls ? ca_path : "",
		  more);
	assert_status(hpx_verify_new(&scene->spec, &scene->run), HPX_OK);
	scene->op = hpx_verify_op_new(scene->run, HPX_REQUEST_main);
	assert_non_null(scene->op);
}

static void close_scene(struct scene *scene)
{
	test_server_wait(&scene->server);
	hpx_verify_free(scene->run);
	hpx_verify_spec_done(&scene->spec);
}

static void assert_end(const struct hpx_verify_exchange *exchange, enum hpx_verify_exchange_end want)
{
	if (exchange->end != want)
		fail_msg("ended as %d (%s), want %d", exchange->end, exchange->problem, want);
}

/* The first connection only pins the address. */
static bool pass_first(struct test_server *server)
{
	SSL_CTX *tls = server->tls;

	server->tls = NULL;
	bool came = test_server_accept(server);
	server->tls = tls;
	return came;
}

/* ---- answers ---- */

static const char *scripted;
static size_t scripted_size;

static void serve_scripted(struct test_server *server)
{
	if (pass_first(server) && test_server_accept(server) && test_server_read(server))
		test_server_put_bytes(server, scripted, scripted_size);
	if (server->ssl != NULL)
		SSL_shutdown(server->ssl);
}

static const struct {
	const char *says;
	const char *answer;
	enum hpx_verify_exchange_end end;
	unsigned status;
	const char *body;
} answers[] = {
	{ "by length", OK_ANSWER, HPX_EXCHANGE_ANSWERED, 201, "ok" },
	{ "chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n",
	  HPX_EXCHANGE_ANSWERED, 200, "ab" },
	{ "to the end", "HTTP/1.1 200 OK\r\n\r\nabc", HPX_EXCHANGE_ANSWERED, 200, "abc" },
	{ "no body", "HTTP/1.1 204 No Content\r\n\r\n", HPX_EXCHANGE_ANSWERED, 204, "" },
	{ "behind 1xx", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" OK_ANSWER,
	  HPX_EXCHANGE_ANSWERED, 201, "ok" },
	{ "a redirect is an answer", "HTTP/1.1 302 Found\r\nLocation: http://b.example/\r\nContent-Length: 0\r\n\r\n",
	  HPX_EXCHANGE_ANSWERED, 302, "" },
	{ "nothing", "", HPX_EXCHANGE_LOST, 0, "" },
	{ "half a head", "HTTP/1.1 200 OK\r\nX", HPX_EXCHANGE_LOST, 0, "" },
	{ "half a body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", HPX_EXCHANGE_LOST, 0, "" },
	{ "nonsense", "HELLO\r\n\r\n", HPX_EXCHANGE_LOST, 0, "" },
	{ "two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
	  HPX_EXCHANGE_LOST, 0, "" },
	{ "another protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
	  HPX_EXCHANGE_LOST, 0, "" },
};

static void check_answers(SSL_CTX *tls)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct scene scene;

		scripted = answers[i].answer;
		scripted_size = strlen(scripted);
		open_scene(&scene, serve_scripted, tls, "");
		const struct hpx_verify_variant variant = { .op = scene.op };
		const struct hpx_verify_exchange *exchange = hpx_verify_send(scene.run, &variant);
		if (exchange->end != answers[i].end)
			print_error("%s:\n", answers[i].says);
		assert_end(exchange, answers[i].end);
		assert_int_equal(exchange->status, answers[i].status);
		assert_span(exchange->body, answers[i].body);
		assert_int_equal(exchange->number, 1);
		close_scene(&scene);
	}
}

static void test_answers(void **state)
{
	(void)state;
	check_answers(NULL);
}

static void test_answers_over_tls(void **state)
{
	check_answers(*state);
}

#define LARGE ((size_t)5 << 20)

/* Beyond 4 MiB an answer is counted and hashed, and its first part kept. */
static void test_large_answer(void **state)
{
	char *answer = malloc(LARGE + 100);
	struct hpx_sha256 hash;
	uint8_t digest[HPX_SHA256_SIZE];
	struct scene scene;

	(void)state;
	assert_non_null(answer);
	int head = sprintf(answer, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", LARGE);
	memset(answer + head, 'x', LARGE);
	scripted = answer;
	scripted_size = (size_t)head + LARGE;
	hpx_sha256_init(&hash);
	hpx_sha256_add(&hash, hpx_span(answer + head, LARGE));
	assert_status(hpx_sha256_done(&hash, digest), HPX_OK);
	open_scene(&scene, serve_scripted, NULL, "");
	const struct hpx_verify_variant variant = { .op = scene.op };
	const struct hpx_verify_exchange *exchange = hpx_verify_send(scene.run, &variant);
	assert_end(exchange, HPX_EXCHANGE_ANSWERED);
	assert_int_equal(exchange->body_bytes, LARGE);
	assert_int_equal(exchange->body.len, HPX_EXCHANGE_KEPT);
	assert_memory_equal(exchange->body_hash, digest, sizeof(digest));
	close_scene(&scene);
	free(answer);
}

/* An API may refuse before it has read everything. */
static void serve_early(struct test_server *server)
{
	char bytes[64];

	if (pass_first(server) && test_server_accept(server) &&
	    recv(server->fd, bytes, sizeof(bytes), 0) > 0)
		test_server_put(server, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
	shutdown(server->fd, SHUT_WR);
	test_server_read_end(server);
}

static void test_early_answer(void **state)
{
	static char body[8 << 20];
	struct scene scene;

	(void)state;
	memset(body, 'x', sizeof(body));
	open_scene(&scene, serve_early, NULL, "");
	const struct hpx_verify_variant variant = { .op = scene.op,
						    .body = { body, sizeof(body) } };
	const struct hpx_verify_exchange *exchange = hpx_verify_send(scene.run, &variant);
	assert_end(exchange, HPX_EXCHANGE_ANSWERED);
	assert_int_equal(exchange->status, 413);
	close_scene(&scene);
}

/* ---- no answer ---- */

static void serve_silence(struct test_server *server)
{
	if (pass_first(server) && test_server_accept(server))
		test_server_read_end(server);
}

static void test_timeout(void **state)
{
	struct scene scene;

	(void)state;
	open_scene(&scene, serve_silence, NULL, "limits: {timeout: 50ms}");
	const struct hpx_verify_variant variant = { .op = scene.op };
	assert_end(hpx_verify_send(scene.run, &variant), HPX_EXCHANGE_TIMEOUT);
	close_scene(&scene);
}

/* Faster than anybody reads. */
static void serve_flood(struct test_server *server)
{
	static char flood[27 * 2000];

	for (size_t i = 0; i < sizeof(flood); i += 27)
		memcpy(flood + i, "HTTP/1.1 102 Processing\r\n\r\n", 27);
	if (pass_first(server) && test_server_accept(server) && test_server_read(server))
		while (test_server_put_bytes(server, flood, sizeof(flood)))
			;
}

/* A server that never stops sending does not keep the deadline from coming. */
static void test_flood(void **state)
{
	struct scene scene;

	(void)state;
	open_scene(&scene, serve_flood, NULL, "limits: {timeout: 50ms}");
	const struct hpx_verify_variant variant = { .op = scene.op };
	assert_end(hpx_verify_send(scene.run, &variant), HPX_EXCHANGE_TIMEOUT);
	close_scene(&scene);
}

static void serve_once(struct test_server *server)
{
	pass_first(server);
}

static void test_refused(void **state)
{
	struct scene scene;
	char problem[HPX_VERIFY_PROBLEM_SIZE];

	(void)state;
	open_scene(&scene, serve_once, NULL, "");
	assert_status(hpx_verify_open(scene.run, problem), HPX_OK);
	test_server_wait(&scene.server);
	const struct hpx_verify_variant variant = { .op = scene.op };
	const struct hpx_verify_exchange *exchange = hpx_verify_send(scene.run, &variant);
	assert_end(exchange, HPX_EXCHANGE_REFUSED);
	assert_contains(exchange->problem, "refused");
	hpx_verify_free(scene.run);
	hpx_verify_spec_done(&scene.spec);
}

/* ---- TLS ---- */

/* Without the certificate nothing is sent. */
static void serve_tls_refused(struct test_server *server)
{
	if (pass_first(server) && test_server_accept(server))
		test_server_read_end(server);
}

static void test_untrusted(void **state)
{
	static const char *const more[] = { "cacert: /etc/ssl/certs/ca-certificates.crt", "" };
	struct test_server server;
	struct hpx_verify_spec spec;
	struct hpx_verify *run;

	for (size_t i = 0; i < 2; i++) {
		server = (struct test_server){ .serve = serve_tls_refused, .tls = *state };
		test_server_start(&server);
		spec_read(&spec, "url: https://127.0.0.1:%u/p\n%s\n", server.port,
			  access("/etc/ssl/certs/ca-certificates.crt", R_OK) == 0 ? more[i] : "");
		assert_status(hpx_verify_new(&spec, &run), HPX_OK);
		const struct hpx_verify_variant variant = {
			.op = hpx_verify_op_new(run, HPX_REQUEST_main)
		};
		const struct hpx_verify_exchange *exchange = hpx_verify_send(run, &variant);
		assert_end(exchange, HPX_EXCHANGE_REFUSED);
		assert_contains(exchange->problem, "not trusted");
		test_server_wait(&server);
		assert_int_equal(server.bytes, 0);
		hpx_verify_free(run);
		hpx_verify_spec_done(&spec);
	}
}

/* The right authority, but for another name. */
static void test_wrong_name(void **state)
{
	char path[] = "/tmp/hpx-verify-other-XXXXXX";
	int fd = mkstemp(path);
	struct test_server server = { .serve = serve_tls_refused };
	struct hpx_verify_spec spec;
	struct hpx_verify *run;

	(void)state;
	close(fd);
	server.tls = server_certificate("DNS:b.example", path);
	test_server_start(&server);
	spec_read(&spec, "url: https://127.0.0.1:%u/p\ncacert: %s\n", server.port, path);
	assert_status(hpx_verify_new(&spec, &run), HPX_OK);
	const struct hpx_verify_variant variant = { .op = hpx_verify_op_new(run, HPX_REQUEST_main) };
	const struct hpx_verify_exchange *exchange = hpx_verify_send(run, &variant);
	assert_end(exchange, HPX_EXCHANGE_REFUSED);
	assert_contains(exchange->problem, "IP address mismatch");
	test_server_wait(&server);
	hpx_verify_free(run);
	hpx_verify_spec_done(&spec);
	SSL_CTX_free(server.tls);
	unlink(path);
}

static void test_insecure(void **state)
{
	struct scene scene;

	scripted = OK_ANSWER;
	scripted_size = strlen(scripted);
	open_scene(&scene, serve_scripted, *state, "insecure: true");
	const struct hpx_verify_variant variant = { .op = scene.op };
	assert_end(hpx_verify_send(scene.run, &variant), HPX_EXCHANGE_ANSWERED);
	close_scene(&scene);
}

/* ---- cuts ---- */

static void serve_counting(struct test_server *server)
{
	if (pass_first(server) && test_server_accept(server))
		test_server_read_end(server);
}

/* Answers behind the whole request, and then sees the reset. */
static void serve_answering(struct test_server *server)
{
	if (pass_first(server) && test_server_accept(server) && test_server_read(server) &&
	    test_server_put(server, OK_ANSWER))
		test_server_read_end(server);
}

static void check_cut(enum hpx_verify_cut cut, SSL_CTX *tls)
{
	struct scene scene;

	open_scene(&scene, cut == HPX_CUT_BEFORE_ANSWER ? serve_answering : serve_counting, tls,
		   "");
	const struct hpx_verify_variant variant = { .op = scene.op, .cut = cut };
	const struct hpx_verify_exchange *exchange = hpx_verify_send(scene.run, &variant);
	assert_end(exchange, HPX_EXCHANGE_CUT);
	assert_int_equal(exchange->cut, cut);
	assert_int_equal(exchange->status, 0);
	test_server_wait(&scene.server);
	/* What is kept of the head has every byte but the empty line. */
	size_t head = exchange->request_head.len + 2;
	size_t body = exchange->request_body_bytes;
	const size_t want[] = { [HPX_CUT_HEAD] = head,
				[HPX_CUT_HALF_BODY] = head + body / 2,
				[HPX_CUT_WHOLE_BODY] = head + body,
				[HPX_CUT_BEFORE_ANSWER] = 0 };
	assert_int_equal(scene.server.bytes, want[cut]);
	assert_true(scene.server.reset);
	hpx_verify_free(scene.run);
	hpx_verify_spec_done(&scene.spec);
}

static void test_cuts(void **state)
{
	(void)state;
	for (enum hpx_verify_cut cut = HPX_CUT_HEAD; cut <= HPX_CUT_BEFORE_ANSWER; cut++)
		check_cut(cut, NULL);
}

/* Session tickets are written when the handshake is over, which a reset may be
 * ahead of: the server would fail there, with the request unread behind it. Only
 * the cut before the answer waits for bytes, and must not take tickets for one. */
static void test_cuts_over_tls(void **state)
{
	SSL_CTX *tls = *state;

	for (enum hpx_verify_cut cut = HPX_CUT_HEAD; cut <= HPX_CUT_BEFORE_ANSWER; cut++) {
		SSL_CTX_set_num_tickets(tls, cut == HPX_CUT_BEFORE_ANSWER ? 2 : 0);
		check_cut(cut, tls);
	}
}

/* Behind the last byte: the other side has them all, however many are still on
 * their way when the last one is written. */
static void test_cut_loses_nothing(void **state)
{
	static char body[4 << 20];
	struct scene scene;

	(void)state;
	memset(body, 'x', sizeof(body));
	open_scene(&scene, serve_counting, NULL, "");
	const struct hpx_verify_variant variant = { .op = scene.op,
						    .body = { body, sizeof(body) },
						    .cut = HPX_CUT_WHOLE_BODY };
	const struct hpx_verify_exchange *exchange = hpx_verify_send(scene.run, &variant);
	assert_end(exchange, HPX_EXCHANGE_CUT);
	test_server_wait(&scene.server);
	assert_int_equal(scene.server.bytes, exchange->request_head.len + 2 + sizeof(body));
	assert_true(scene.server.reset);
	hpx_verify_free(scene.run);
	hpx_verify_spec_done(&scene.spec);
}

/* ---- at the same moment ---- */

#define CROWD 40

/* More than two sockets take while nobody reads; ends as the others do. */
static char endless[16 << 20];

/* All but the last byte of a request, or as much as there is room for. */
static size_t read_poised(int fd, char *bytes, size_t max)
{
	size_t len = 0;
	ssize_t n = 1;

	while (n > 0 && len < max && memmem(bytes, len, "{\"amount\": 100", 14) == NULL) {
		n = recv(fd, bytes + len, max - len, 0);
		len += n > 0 ? (size_t)n : 0;
	}
	return len;
}

static void read_last(int fd)
{
	static char bytes[1 << 16];
	ssize_t n;

	do
		n = recv(fd, bytes, sizeof(bytes), 0);
	while (n > 0 && bytes[n - 1] != '}');
}

/* Of the endless request only the beginning is read, so that it never lacks just
 * one byte, and none of the others may have sent its last one. */
static void serve_crowd(struct test_server *server)
{
	static char bytes[CROWD][4096];
	int fds[CROWD];
	size_t len[CROWD], large = 0;
	char last;

	pass_first(server);
	for (size_t i = 0; i < CROWD; i++) {
		fds[i] = accept(server->listening, NULL, NULL);
		len[i] = read_poised(fds[i], bytes[i], sizeof(bytes[i]));
	}
	for (size_t i = 0; i < CROWD; i++)
		if (len[i] == sizeof(bytes[i]))
			large = i;
		else
			server->at_once += bytes[i][len[i] - 1] == '0' &&
					   recv(fds[i], &last, 1, MSG_DONTWAIT) < 0;
	read_last(fds[large]);
	for (size_t i = 0; i < CROWD; i++) {
		server->fd = fds[i];
		if (i != large)
			read_last(server->fd);
		test_server_put(server, OK_ANSWER);
		test_server_leave(server);
	}
}

static void test_together(void **state)
{
	struct hpx_verify_variant variants[CROWD];
	const struct hpx_verify_exchange *exchanges[CROWD];
	struct scene scene;
	size_t sent;

	(void)state;
	memset(endless, 'x', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = '}';
	open_scene(&scene, serve_crowd, NULL, "");
	for (size_t i = 0; i < CROWD; i++)
		variants[i] = (struct hpx_verify_variant){ .op = scene.op };
	variants[CROWD / 2].body = (struct hpx_span){ endless, sizeof(endless) };
	hpx_verify_send_concurrently(scene.run, variants, CROWD, exchanges, &sent);
	assert_int_equal(sent, CROWD);
	for (size_t i = 0; i < CROWD; i++)
		assert_end(exchanges[i], HPX_EXCHANGE_ANSWERED);
	test_server_wait(&scene.server);
	assert_int_equal(scene.server.at_once, CROWD - 1);
	hpx_verify_free(scene.run);
	hpx_verify_spec_done(&scene.spec);
}

#define FEW 4

/* The handshake with the last one is kept back, so that none of the others may
 * have sent its last byte: one byte of each is still to come. */
static void serve_few(struct test_server *server)
{
	static char bytes[FEW][4096];
	SSL *ssls[FEW];
	int fds[FEW];

	pass_first(server);
	for (size_t i = 0; i < FEW && test_server_accept(server); i++) {
		int len = 0;

		while (memmem(bytes[i], (size_t)len, "{\"amount\": 100", 14) == NULL) {
			int n = SSL_read(server->ssl, bytes[i] + len, (int)sizeof(bytes[i]) - len);
			if (n <= 0)
				return;
			len += n;
		}
		server->at_once += bytes[i][len - 1] == '0';
		ssls[i] = server->ssl;
		fds[i] = server->fd;
		server->ssl = NULL;
		server->fd = -1;
	}
	for (size_t i = 0; i < FEW; i++) {
		char last;

		server->ssl = ssls[i];
		server->fd = fds[i];
		if (SSL_read(server->ssl, &last, 1) == 1 && last == '}')
			test_server_put(server, OK_ANSWER);
		test_server_leave(server);
	}
}

static void test_together_over_tls(void **state)
{
	struct hpx_verify_variant variants[FEW];
	const struct hpx_verify_exchange *exchanges[FEW];
	struct scene scene;
	size_t sent;

	open_scene(&scene, serve_few, *state, "");
	for (size_t i = 0; i < FEW; i++)
		variants[i] = (struct hpx_verify_variant){ .op = scene.op };
	hpx_verify_send_concurrently(scene.run, variants, FEW, exchanges, &sent);
	assert_int_equal(sent, FEW);
	for (size_t i = 0; i < FEW; i++)
		assert_end(exchanges[i], HPX_EXCHANGE_ANSWERED);
	test_server_wait(&scene.server);
	assert_int_equal(scene.server.at_once, FEW);
	hpx_verify_free(scene.run);
	hpx_verify_spec_done(&scene.spec);
}

/* ---- the address ---- */

/* A name with several addresses: the first that takes a connection is pinned. */
static void test_name(void **state)
{
	struct test_server server = { .serve = serve_scripted };
	struct hpx_verify_spec spec;
	struct hpx_verify *run;

	(void)state;
	scripted = OK_ANSWER;
	scripted_size = strlen(scripted);
	test_server_start(&server);
	spec_read(&spec, "url: http://localhost:%u/p", server.port);
	assert_status(hpx_verify_new(&spec, &run), HPX_OK);
	const struct hpx_verify_variant variant = { .op = hpx_verify_op_new(run, HPX_REQUEST_main) };
	assert_end(hpx_verify_send(run, &variant), HPX_EXCHANGE_ANSWERED);
	test_server_wait(&server);
	assert_contains(server.head, "\r\nHost: localhost:");
	hpx_verify_free(run);
	hpx_verify_spec_done(&spec);
}

static void test_no_such_name(void **state)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE];
	struct hpx_verify_spec spec;
	struct hpx_verify *run;

	(void)state;
	spec_read(&spec, "url: http://no-such-host.invalid/p");
	assert_status(hpx_verify_new(&spec, &run), HPX_OK);
	assert_status(hpx_verify_open(run, problem), HPX_NOT_FOUND);
	assert_contains(problem, "no-such-host.invalid");
	const struct hpx_verify_variant variant = { .op = hpx_verify_op_new(run, HPX_REQUEST_main) };
	assert_end(hpx_verify_send(run, &variant), HPX_EXCHANGE_REFUSED);
	hpx_verify_free(run);
	hpx_verify_spec_done(&spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_answers_over_tls),
		cmocka_unit_test(test_large_answer),
		cmocka_unit_test(test_early_answer),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_untrusted),
		cmocka_unit_test(test_wrong_name),
		cmocka_unit_test(test_insecure),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_cuts_over_tls),
		cmocka_unit_test(test_cut_loses_nothing),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_together_over_tls),
		cmocka_unit_test(test_name),
		cmocka_unit_test(test_no_such_name),
	};
	struct CMUnitTest with_tls[sizeof(tests) / sizeof(tests[0])];

	snprintf(ca_path, sizeof(ca_path), "/tmp/hpx-verify-ca-%d.pem", (int)getpid());
	SSL_CTX *tls = server_certificate("IP:127.0.0.1", ca_path);
	memcpy(with_tls, tests, sizeof(tests));
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		with_tls[i].initial_state = tls;
	int failed = cmocka_run_group_tests(with_tls, NULL, NULL);
	SSL_CTX_free(tls);
	unlink(ca_path);
	return failed;
}
