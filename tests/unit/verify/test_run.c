/* Shows the functions of a run: bounds hold, requests overlap, effects are counted, a
 * definite answer is waited for, and the log keeps its exchanges. */
#include "helper.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "verify/run_state.h"

struct scene {
	struct test_server server;
	struct hpx_verify_spec spec;
	struct hpx_verify *run;
};

static void open_scene(struct scene *scene, void (*serve)(struct test_server *server), const char *more)
{
	*scene = (struct scene){ .server = { .serve = serve } };
	test_server_start(&scene->server);
	spec_read(&scene->spec, "url: http://127.0.0.1:%u/p\n%s\n", scene->server.port, more);
	assert_status(hpx_verify_new(&scene->spec, &scene->run), HPX_OK);
	hpx_verify_row_begin(scene->run, "row");
}

static void close_scene(struct scene *scene)
{
	test_server_stop(&scene->server);
	hpx_verify_free(scene->run);
	hpx_verify_spec_done(&scene->spec);
}

static void assert_end(const struct hpx_verify_exchange *exchange, enum hpx_verify_exchange_end want)
{
	if (exchange->end != want)
		fail_msg("ended as %d (%s), want %d", exchange->end, exchange->problem, want);
}

static struct hpx_verify_variant intend(struct scene *scene)
{
	struct hpx_verify_variant variant = { .op = hpx_verify_op_new(scene->run,
								      HPX_REQUEST_main) };

	assert_non_null(variant.op);
	return variant;
}

/* ---- servers: all answer until they are stopped ---- */

#define IN_PROGRESS \
	"HTTP/1.1 409 Conflict\r\nContent-Length: 38\r\n\r\n" \
	"{\"code\":\"idempotency_key_in_progress\"}"
#define CREATED "HTTP/1.1 201 Created\r\nContent-Length: 10\r\nSet-Cookie: a=b\r\n\r\n{\"id\":\"x\"}"

static void serve_created(struct test_server *server)
{
	while (test_server_accept(server))
		if (test_server_read(server))
			test_server_put(server, CREATED);
}

/* A list with as many elements as there were POSTs. */
static void serve_counting(struct test_server *server)
{
	while (test_server_accept(server)) {
		char text[256], list[128] = "";

		if (!test_server_read(server))
			continue;
		server->at_once += strncmp(server->head, "POST", 4) == 0;
		for (size_t i = 0; i < server->at_once; i++)
			strcat(list, i > 0 ? ",1" : "1");
		snprintf(text, sizeof(text),
			 "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n{\"items\":[%s]}",
			 strlen(list) + 12, list);
		test_server_put(server, text);
	}
}

/* In progress, then unavailable, then reset, then done. */
static void serve_moody(struct test_server *server)
{
	static const char *const moods[] = {
		"HTTP/1.1 409 Conflict\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n",
		IN_PROGRESS,
		"",
		CREATED,
	};
	size_t mood = 0;

	while (test_server_accept(server))
		if (test_server_read(server) && mood < sizeof(moods) / sizeof(moods[0]))
			test_server_put(server, moods[mood++]);
}

/* ---- bounds ---- */

static void test_requests_are_bounded(void **state)
{
	struct scene scene;

	(void)state;
	open_scene(&scene, serve_created, "limits: {requests: 3}");
	struct hpx_verify_variant variant = intend(&scene);
	for (unsigned i = 1; i <= 3; i++) {
		const struct hpx_verify_exchange *exchange = hpx_verify_send(scene.run, &variant);
		assert_end(exchange, HPX_EXCHANGE_ANSWERED);
		assert_int_equal(exchange->number, i);
	}
	assert_contains(hpx_verify_stop_reason(scene.run), "--requests");
	const struct hpx_verify_exchange *late = hpx_verify_send(scene.run, &variant);
	assert_end(late, HPX_EXCHANGE_UNSENT);
	assert_contains(late->problem, "--requests");
	assert_null(hpx_verify_op_new(scene.run, HPX_REQUEST_main));
	assert_end(hpx_verify_finish(hpx_verify_begin(scene.run, &variant)), HPX_EXCHANGE_UNSENT);
	assert_int_equal(hpx_verify_exchange_count(scene.run), 3);
	close_scene(&scene);
}

static void test_concurrency_is_bounded(void **state)
{
	const struct hpx_verify_exchange *exchanges[5];
	struct hpx_verify_variant variants[5];
	struct scene scene;
	size_t sent;

	(void)state;
	open_scene(&scene, serve_created, "limits: {concurrency: 3}");
	for (size_t i = 0; i < 5; i++)
		variants[i] = intend(&scene);
	hpx_verify_send_concurrently(scene.run, variants, 5, exchanges, &sent);
	assert_int_equal(sent, 3);
	for (size_t i = 0; i < 5; i++)
		assert_end(exchanges[i], i < 3 ? HPX_EXCHANGE_ANSWERED : HPX_EXCHANGE_UNSENT);
	assert_null(hpx_verify_stop_reason(scene.run));
	close_scene(&scene);
}

/* Never answers: a request ends when its client leaves. */
static void serve_nothing(struct test_server *server)
{
	while (test_server_accept(server))
		if (test_server_read(server))
			test_server_read_end(server);
}

/* A readable descriptor ends the run: Ctrl-C. No answer can come before it is seen. */
static void test_a_person_stops_it(void **state)
{
	int stop = eventfd(1, EFD_CLOEXEC);
	struct scene scene;

	(void)state;
	open_scene(&scene, serve_nothing, "");
	struct hpx_verify_variant variant = intend(&scene);
	hpx_verify_stop_on(scene.run, stop);
	assert_end(hpx_verify_send(scene.run, &variant), HPX_EXCHANGE_UNSENT);
	assert_contains(hpx_verify_stop_reason(scene.run), "stopped");
	assert_end(hpx_verify_send(scene.run, &variant), HPX_EXCHANGE_UNSENT);
	close(stop);
	close_scene(&scene);
}

/* ---- in flight ---- */

/* Holds the first request until a second one has come. */
static void serve_second_first(struct test_server *server)
{
	if (!test_server_accept(server)) /* pins the address */
		return;
	if (!test_server_accept(server) || !test_server_read(server))
		return;
	int first = server->fd;
	server->fd = -1;
	if (test_server_accept(server) && test_server_read(server))
		test_server_put(server, "HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n");
	test_server_leave(server);
	server->fd = first;
	test_server_put(server, CREATED);
	if (test_server_accept(server) && test_server_read(server))
		test_server_read_end(server);
}

static void test_flights(void **state)
{
	struct scene scene;

	(void)state;
	open_scene(&scene, serve_second_first, "");
	struct hpx_verify_variant variant = intend(&scene);
	struct hpx_inflight *first = hpx_verify_begin(scene.run, &variant);
	assert_true(hpx_verify_is_waiting(first));
	assert_int_equal(hpx_verify_send(scene.run, &variant)->status, 409);
	const struct hpx_verify_exchange *answer = hpx_verify_finish(first);
	assert_end(answer, HPX_EXCHANGE_ANSWERED);
	assert_int_equal(answer->status, 201);
	assert_int_equal(answer->number, 1);
	const struct hpx_verify_exchange *gone =
		hpx_verify_abandon(hpx_verify_begin(scene.run, &variant));
	assert_end(gone, HPX_EXCHANGE_CUT);
	test_server_wait(&scene.server);
	assert_true(scene.server.reset);
	hpx_verify_free(scene.run);
	hpx_verify_spec_done(&scene.spec);
}

/* A request that a row left in flight does not outlive the row. */
static void test_row_end_lands_all(void **state)
{
	struct scene scene;

	(void)state;
	open_scene(&scene, serve_created, "limits: {concurrency: 1}");
	struct hpx_verify_variant variant = intend(&scene);
	hpx_verify_begin(scene.run, &variant);
	assert_end(hpx_verify_send(scene.run, &variant), HPX_EXCHANGE_UNSENT);
	hpx_verify_row_end(scene.run);
	hpx_verify_row_begin(scene.run, "next");
	variant = intend(&scene);
	assert_end(hpx_verify_send(scene.run, &variant), HPX_EXCHANGE_ANSWERED);
	close_scene(&scene);
}

/* ---- a definite answer ---- */

static void test_settle(void **state)
{
	struct scene scene;
	unsigned sent = 0;

	(void)state;
	open_scene(&scene, serve_moody, "");
	struct hpx_verify_variant variant = intend(&scene);
	char problem[HPX_VERIFY_PROBLEM_SIZE];
	assert_status(hpx_verify_open(scene.run, problem), HPX_OK);
	const struct hpx_verify_exchange *last = hpx_verify_settle(scene.run, &variant, &sent);
	assert_end(last, HPX_EXCHANGE_ANSWERED);
	assert_int_equal(last->status, 201);
	assert_int_equal(sent, 5);
	assert_span(hpx_verify_resource(scene.run, last), "");
	close_scene(&scene);
}

static void serve_busy(struct test_server *server)
{
	while (test_server_accept(server))
		if (test_server_read(server))
			test_server_put(server, "HTTP/1.1 409 Conflict\r\nRetry-After: 3600\r\n"
						"Content-Length: 0\r\n\r\n");
}

/* A server error, then done; and one key that is done at once. */
static void serve_rising(struct test_server *server)
{
	while (test_server_accept(server)) {
		if (!test_server_read(server))
			continue;
		bool fails = server->at_once < 2 && strstr(server->head, "X-Slow") != NULL;
		server->at_once += fails ? 1 : 0;
		test_server_put(server, fails ? "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n" : CREATED);
	}
}

static void test_settle_all(void **state)
{
	struct hpx_verify_settling all[2] = { 0 };
	struct scene scene;

	(void)state;
	open_scene(&scene, serve_rising, "");
	all[0].variant = intend(&scene);
	all[0].variant.line = HPX_SPAN("X-Slow: yes");
	all[1].variant = intend(&scene);
	hpx_verify_settle_all(scene.run, all, 2);
	assert_int_equal(all[0].last->status, 201);
	assert_int_equal(all[0].sent, 3);
	assert_int_equal(all[1].last->status, 201);
	assert_int_equal(all[1].sent, 1);
	close_scene(&scene);
}

/* What the time to settle ends with: the last answer. */
static void serve_broken(struct test_server *server)
{
	while (test_server_accept(server))
		if (test_server_read(server))
			test_server_put(server, "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n");
}

static void test_settle_all_ends(void **state)
{
	struct hpx_verify_settling all[2] = { 0 };
	struct scene scene;

	(void)state;
	open_scene(&scene, serve_broken, "limits: {settle: 1s}");
	all[0].variant = intend(&scene);
	all[1].variant = intend(&scene);
	hpx_verify_settle_all(scene.run, all, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(all[i].last->status, 500);
		assert_true(all[i].sent >= 2);
	}
	/* Where nothing was just started, a 500 is an answer. */
	unsigned sent = 0;
	assert_int_equal(hpx_verify_settle(scene.run, &all[0].variant, &sent)->status, 500);
	assert_int_equal(sent, 1);
	close_scene(&scene);
}

/* ---- another head ---- */

#define CREDENTIALS \
	"headers: [\"Authorization: Bearer sesame-open\", \"X-Goog-Api-Key: sesame-too\", " \
	"\"X-Order: 7\"]"

/* The head that the server got. */
static void send_head(struct hpx_verify_variant variant, char head[4096])
{
	struct scene scene;

	open_scene(&scene, serve_created, CREDENTIALS);
	variant.op = intend(&scene).op;
	assert_end(hpx_verify_send(scene.run, &variant), HPX_EXCHANGE_ANSWERED);
	test_server_stop(&scene.server);
	memcpy(head, scene.server.head, sizeof(scene.server.head));
	hpx_verify_free(scene.run);
	hpx_verify_spec_done(&scene.spec);
}

static void test_other_head(void **state)
{
	char head[4096];

	(void)state;
	send_head((struct hpx_verify_variant){ .host = HPX_SPAN("other.invalid"),
					       .connection = HPX_SPAN("X-Order"),
					       .line = HPX_SPAN("X-Order: 8") },
		  head);
	assert_contains(head, "\r\nHost: other.invalid\r\n");
	assert_contains(head, "\r\nConnection: close, X-Order\r\n");
	assert_contains(head, "\r\nX-Order: 8\r\n");
	assert_contains(head, "\r\nAuthorization: Bearer sesame-open\r\n");
	assert_null(strstr(head, "X-Order: 7"));
	send_head((struct hpx_verify_variant){ .without_credentials = true,
					       .line = HPX_SPAN("Authorization: Bearer fake") },
		  head);
	assert_contains(head, "\r\nAuthorization: Bearer fake\r\n");
	assert_contains(head, "\r\nConnection: close\r\n");
	assert_contains(head, "\r\nX-Order: 7\r\n");
	assert_null(strstr(head, "sesame"));
}

/* A line end would be another line. */
static void test_no_other_line(void **state)
{
	struct scene scene;

	(void)state;
	open_scene(&scene, serve_created, "");
	struct hpx_verify_variant variant = intend(&scene);
	variant.line = HPX_SPAN("X-A: b\r\nX-C: d");
	assert_end(hpx_verify_send(scene.run, &variant), HPX_EXCHANGE_UNSENT);
	close_scene(&scene);
}

/* A Retry-After beyond the settle time is not waited for. */
static void test_settle_ends(void **state)
{
	struct scene scene;
	unsigned sent = 0;

	(void)state;
	open_scene(&scene, serve_busy, "limits: {settle: 5s}");
	struct hpx_verify_variant variant = intend(&scene);
	assert_int_equal(hpx_verify_settle(scene.run, &variant, &sent)->status, 409);
	assert_int_equal(sent, 1);
	close_scene(&scene);
}

/* ---- effects ---- */

static void test_effects(void **state)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE];
	uint64_t effects = 99;
	struct scene scene;

	(void)state;
	open_scene(&scene, serve_counting, "effects: {get: /count, count: /items}");
	assert_true(hpx_verify_counts_effects(scene.run));
	struct hpx_verify_variant first = intend(&scene);
	hpx_verify_send(scene.run, &first);
	struct hpx_verify_variant second = intend(&scene);
	assert_int_equal(second.op->effects_before, 1);
	assert_status(hpx_verify_effects(scene.run, second.op, &effects, problem), HPX_OK);
	assert_int_equal(effects, 0);
	hpx_verify_send(scene.run, &second);
	hpx_verify_send(scene.run, &second);
	assert_status(hpx_verify_effects(scene.run, second.op, &effects, problem), HPX_OK);
	assert_int_equal(effects, 2);
	close_scene(&scene);
}

static void serve_not_found(struct test_server *server)
{
	while (test_server_accept(server))
		if (test_server_read(server))
			test_server_put(server, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
}

/* Where the path names the operation, a 404 says that there is no effect yet;
 * elsewhere, that the description is wrong. */
static void test_effects_not_found(void **state)
{
	static const struct {
		const char *get;
		enum hpx_status status;
	} cases[] = { { "/p/{{uuid}}", HPX_OK }, { "/p", HPX_INVALID } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char problem[HPX_VERIFY_PROBLEM_SIZE] = "", more[100];
		uint64_t effects = 99;
		struct scene scene;

		snprintf(more, sizeof(more), "effects: {get: '%s'}", cases[i].get);
		open_scene(&scene, serve_not_found, more);
		struct hpx_verify_variant variant = intend(&scene);
		assert_status(hpx_verify_effects(scene.run, variant.op, &effects, problem),
			      cases[i].status);
		assert_int_equal(effects, cases[i].status == HPX_OK ? 0 : 99);
		if (cases[i].status != HPX_OK)
			assert_contains(problem, "404");
		close_scene(&scene);
	}
}

static void test_no_effects(void **state)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE];
	uint64_t effects = 99;
	struct scene scene;

	(void)state;
	open_scene(&scene, serve_created, "");
	struct hpx_verify_variant variant = intend(&scene);
	assert_status(hpx_verify_effects(scene.run, variant.op, &effects, problem),
		      HPX_UNSUPPORTED);
	assert_int_equal(effects, 99);
	close_scene(&scene);
}

static const struct {
	const char *body;
	const char *pointer;
	enum hpx_status status;
	uint64_t count;
} counts[] = {
	{ "[]", "", HPX_OK, 0 },
	{ "[1,[2,3],{}]", "", HPX_OK, 3 },
	{ "7", "", HPX_OK, 7 },
	{ "{\"a\":{\"n\":12}}", "/a/n", HPX_OK, 12 },
	{ "{\"a\":[[1,2]]}", "/a/0", HPX_OK, 2 },
	{ "{\"n\":-1}", "/n", HPX_INVALID, 0 },
	{ "{\"n\":1.5}", "/n", HPX_INVALID, 0 },
	{ "{\"n\":\"3\"}", "/n", HPX_INVALID, 0 },
	{ "{\"n\":{}}", "/n", HPX_INVALID, 0 },
	{ "{}", "/n", HPX_INVALID, 0 },
	{ "<html>", "", HPX_INVALID, 0 },
	{ "", "", HPX_INVALID, 0 },
};

static void test_counts(void **state)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint64_t count = 0;

		assert_status(hpx_effect_read(hpx_span_of(counts[i].body),
					      hpx_span_of(counts[i].pointer), &count, problem),
			      counts[i].status);
		assert_int_equal(count, counts[i].count);
	}
}

/* ---- operations ---- */

/* A retry is the same bytes; another operation is not. */
static void test_intents(void **state)
{
	struct scene scene;

	(void)state;
	open_scene(&scene, serve_created,
		   "body: '{\"n\":{{n}},\"u\":\"{{uuid}}\"}'\n"
		   "headers: ['X-K: {{key}}', 'X-Who: a']\nsecond_tenant: ['x-who: b']\n");
	struct hpx_verify_variant a = intend(&scene), b = intend(&scene);
	assert_int_equal(b.op->n, a.op->n + 1);
	assert_int_equal(a.op->n, scene.run->n_first + 1);
	assert_string_not_equal(a.op->key, b.op->key);
	assert_string_not_equal(a.op->uuid, b.op->uuid);
	char want[500];
	snprintf(want, sizeof(want), "{\"n\":%llu,\"u\":\"%s\"}", (unsigned long long)a.op->n,
		 a.op->uuid);
	assert_span(a.op->body, want);
	assert_span(hpx_verify_op_fill(scene.run, a.op, HPX_SPAN("{{uuid}}")), a.op->uuid);
	snprintf(want, sizeof(want), "X-K: %s\r\nContent-Type: application/json\r\nx-who: b\r\n",
		 a.op->key);
	assert_span(a.op->other_headers, want);
	close_scene(&scene);
}

/* ---- the log ---- */

static void serve_long(struct test_server *server)
{
	static char body[20000];

	memset(body, 'y', sizeof(body));
	while (test_server_accept(server))
		if (test_server_read(server) && test_server_put(server, "HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n"
									"Set-Cookie: sid=sekret\r\nX-A: b\r\n\r\n"))
			test_server_put_bytes(server, body, sizeof(body));
}

/* Whole while the row runs; afterwards the first 8 KiB, without credentials. */
static void test_log(void **state)
{
	struct scene scene;

	(void)state;
	open_scene(&scene, serve_long, "headers: ['Authorization: sekret']");
	struct hpx_verify_variant variant = intend(&scene);
	const struct hpx_verify_exchange *exchange = hpx_verify_send(scene.run, &variant);
	assert_int_equal(exchange->body.len, 20000);
	assert_span(hpx_verify_exchange_field(exchange, HPX_SPAN("set-cookie")), "sid=sekret");
	assert_null(memmem(exchange->request_head.ptr, exchange->request_head.len, "sekret", 6));
	hpx_verify_row_end(scene.run);
	assert_ptr_equal(hpx_verify_exchange_at(scene.run, 0), exchange);
	assert_string_equal(exchange->row, "row");
	assert_int_equal(exchange->body.len, HPX_EXCHANGE_KEPT);
	assert_int_equal(exchange->body_bytes, 20000);
	assert_span(hpx_verify_exchange_field(exchange, HPX_SPAN("Set-Cookie")), "(left out)");
	assert_span(hpx_verify_exchange_field(exchange, HPX_SPAN("X-A")), "b");
	assert_null(hpx_verify_exchange_field(exchange, HPX_SPAN("X-None")).ptr);
	close_scene(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_are_bounded),
		cmocka_unit_test(test_concurrency_is_bounded),
		cmocka_unit_test(test_a_person_stops_it),
		cmocka_unit_test(test_flights),
		cmocka_unit_test(test_row_end_lands_all),
		cmocka_unit_test(test_settle),
		cmocka_unit_test(test_settle_ends),
		cmocka_unit_test(test_settle_all),
		cmocka_unit_test(test_settle_all_ends),
		cmocka_unit_test(test_other_head),
		cmocka_unit_test(test_no_other_line),
		cmocka_unit_test(test_effects),
		cmocka_unit_test(test_effects_not_found),
		cmocka_unit_test(test_no_effects),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_intents),
		cmocka_unit_test(test_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
