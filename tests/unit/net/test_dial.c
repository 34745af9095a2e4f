/* Shows how an upstream's name becomes a connection: look-ups are shared and
 * remembered, addresses are tried in their order, and whatever fails on the
 * way fails before any byte left. Names under .test are resolved here, by
 * standing in for uv_getaddrinfo (the linker's --wrap). */
#include "call.h"
#include "script.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define SHORT_MS 50

int __real_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb on_found,
			  const char *node, const char *service, const struct addrinfo *hints);
int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb on_found,
			  const char *node, const char *service, const struct addrinfo *hints);

/* One look-up at a time is under way, as the resolver promises. */
static struct {
	uv_timer_t timer;
	uv_getaddrinfo_t *request; /* not NULL: under way */
	uv_getaddrinfo_cb on_found;
	char service[8];
	unsigned count;
	bool held; /* the answer waits for answer_lookup */
} lookup;

static struct addrinfo *numeric(const char *address)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST };
	struct addrinfo *found = NULL;

	assert_int_equal(getaddrinfo(address, lookup.service, &hints, &found), 0);
	return found;
}

static void answer_lookup(uv_timer_t *timer)
{
	uv_getaddrinfo_t *request = lookup.request;
	struct addrinfo *first = numeric("::1");

	lookup.request = NULL;
	uv_close((uv_handle_t *)timer, NULL);
	first->ai_next = numeric("127.0.0.1");
	lookup.on_found(request, 0, first);
}

int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb on_found,
			  const char *node, const char *service, const struct addrinfo *hints)
{
	if (strstr(node, ".test") == NULL)
		return __real_uv_getaddrinfo(loop, request, on_found, node, service, hints);
	assert_null(lookup.request);
	lookup.request = request;
	lookup.on_found = on_found;
	lookup.count++;
	snprintf(lookup.service, sizeof(lookup.service), "%s", service);
	uv_timer_init(loop, &lookup.timer);
	if (!lookup.held)
		uv_timer_start(&lookup.timer, answer_lookup, 0, 0);
	return 0;
}

struct fixture {
	struct hpx_loop loop;
	struct hpx_upstream *upstream;
	struct hpx_upstream_options options;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct hpx_address nowhere = test_address(false);

	assert_non_null(fixture);
	assert_status(hpx_loop_init(&fixture->loop), HPX_OK);
	fixture->options = call_options(&nowhere);
	fixture->options.pool_max = 0;
	memset(&lookup, 0, sizeof(lookup));
	*state = fixture;
	return 0;
}

static void make_upstream(struct fixture *fixture, const char *host, uint16_t port)
{
	snprintf(fixture->options.address.host, sizeof(fixture->options.address.host), "%s", host);
	fixture->options.address.port = port;
	assert_status(hpx_upstream_new(&fixture->loop, &fixture->options, &fixture->upstream),
		      HPX_OK);
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	hpx_upstream_free(fixture->upstream);
	hpx_loop_run(&fixture->loop);
	hpx_loop_done(&fixture->loop);
	free(fixture);
	return 0;
}

static void a_name_without_an_address_means_nothing_left(void **state)
{
	struct fixture *fixture = *state;

	make_upstream(fixture, "nobody.invalid", 80);
	struct call call = call_post(&fixture->loop);
	call_run(&call, fixture->upstream);
	assert_failed(&call, HPX_UNAVAILABLE, false);
}

#define VISIT \
	{ .kind = SCRIPT_ACCEPT }, { .kind = SCRIPT_READ }, \
		{ .kind = SCRIPT_SEND, .text = ANSWER }, \
	{ \
		.kind = SCRIPT_READ_END \
	}

static const struct script_act three_visits[] = { VISIT, VISIT, VISIT, { .kind = SCRIPT_END } };

static void the_next_address_is_tried_when_one_refuses(void **state)
{
	struct fixture *fixture = *state;
	struct script script;

	/* The script listens on 127.0.0.1 only, the name's second address. */
	script_start(&script, three_visits);
	make_upstream(fixture, "two.test", script.address.port);
	for (int i = 0; i < 3; i++) {
		struct call call = call_post(&fixture->loop);
		call_run(&call, fixture->upstream);
		assert_ended(&call, 200, "ok");
	}
	script_stop(&script);
	assert_int_equal(script.requests, 3);
	/* What was found is remembered. */
	assert_int_equal(lookup.count, 1);
}

static void a_look_up_is_shared_and_forgotten_in_time(void **state)
{
	struct fixture *fixture = *state;
	struct script script;
	struct call calls[2];

	script_start(&script, three_visits);
	fixture->options.resolve_ttl_ms = 0;
	make_upstream(fixture, "two.test", script.address.port);
	for (int i = 0; i < 2; i++) {
		calls[i] = call_post(&fixture->loop);
		call_start(&calls[i], fixture->upstream);
	}
	for (int i = 0; i < 2; i++) {
		run_until(&fixture->loop, &calls[i].done);
		assert_ended(&calls[i], 200, "ok");
	}
	assert_int_equal(lookup.count, 1);
	struct call later = call_post(&fixture->loop);
	call_run(&later, fixture->upstream);
	assert_ended(&later, 200, "ok");
	assert_int_equal(lookup.count, 2);
	script_stop(&script);
}

static void addresses_that_all_refuse_are_looked_up_again(void **state)
{
	struct fixture *fixture = *state;
	struct hpx_address address;

	close(test_listen(&address, 1));
	make_upstream(fixture, "two.test", address.port);
	for (unsigned i = 1; i <= 2; i++) {
		struct call call = call_post(&fixture->loop);
		call_run(&call, fixture->upstream);
		assert_failed(&call, HPX_UNAVAILABLE, false);
		assert_int_equal(lookup.count, i);
	}
}

static void a_slow_look_up_ends_the_waiting_in_time(void **state)
{
	struct fixture *fixture = *state;

	lookup.held = true;
	fixture->options.connect_timeout_ms = SHORT_MS;
	make_upstream(fixture, "slow.test", 80);
	struct call call = call_post(&fixture->loop), cancelled = call_post(&fixture->loop);
	call_start(&cancelled, fixture->upstream);
	uv_run(&fixture->loop.uv, UV_RUN_NOWAIT);
	hpx_exchange_cancel(cancelled.exchange);
	cancelled.done = true;
	call_run(&call, fixture->upstream);
	assert_failed(&call, HPX_TIMEOUT, false);
	/* The answer comes when nobody waits, and when nobody is there. */
	answer_lookup(&lookup.timer);
	hpx_upstream_free(fixture->upstream);
	make_upstream(fixture, "slow.test", 80);
	struct call orphan = call_post(&fixture->loop);
	call_start(&orphan, fixture->upstream);
	while (lookup.request == NULL)
		uv_run(&fixture->loop.uv, UV_RUN_ONCE);
	hpx_upstream_free(fixture->upstream);
	assert_failed(&orphan, HPX_CLOSED, false);
	answer_lookup(&lookup.timer);
	make_upstream(fixture, "two.test", 80);
}

/* Fills the queue of a listening socket until a connection hangs. */
static int fill_backlog(int listening, int clients[], int max)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int count = 0;

	getsockname(listening, (struct sockaddr *)&name, &len);
	while (count < max) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		assert_true(fd >= 0);
		connect(fd, (struct sockaddr *)&name, len);
		clients[count++] = fd;
	}
	return count;
}

static void an_upstream_that_does_not_accept_means_nothing_left(void **state)
{
	struct fixture *fixture = *state;
	struct hpx_address address;
	int clients[16];
	int listening = test_listen(&address, 1);
	int count = fill_backlog(listening, clients, 16);

	fixture->options.connect_timeout_ms = SHORT_MS;
	make_upstream(fixture, "127.0.0.1", address.port);
	struct call call = call_post(&fixture->loop);
	call_run(&call, fixture->upstream);
	assert_failed(&call, HPX_TIMEOUT, false);
	call_settle(&fixture->loop, fixture->upstream, 0, 0);
	while (count > 0)
		close(clients[--count]);
	close(listening);
}

#define DIAL_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	hpx_net_ignore_sigpipe();
	const struct CMUnitTest tests[] = {
		DIAL_TEST(a_name_without_an_address_means_nothing_left),
		DIAL_TEST(the_next_address_is_tried_when_one_refuses),
		DIAL_TEST(a_look_up_is_shared_and_forgotten_in_time),
		DIAL_TEST(addresses_that_all_refuse_are_looked_up_again),
		DIAL_TEST(a_slow_look_up_ends_the_waiting_in_time),
		DIAL_TEST(an_upstream_that_does_not_accept_means_nothing_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
