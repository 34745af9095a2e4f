/* See helper.h. */
#include "helper.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/transport_driver.h"

struct watchdog {
	uv_timer_t timer;
	bool bitten;
};

static void on_patience_end(uv_timer_t *timer)
{
	((struct watchdog *)timer->data)->bitten = true;
}

static void on_watchdog_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void test_run_until(struct hpx_loop *loop, const bool *flag, const char *what,
		    const char *file, int line)
{
	struct watchdog *watchdog = calloc(1, sizeof(*watchdog));

	assert_non_null(watchdog);
	uv_timer_init(&loop->uv, &watchdog->timer);
	watchdog->timer.data = watchdog;
	uv_timer_start(&watchdog->timer, on_patience_end, TEST_PATIENCE_MS, 0);
	while (!*flag && !watchdog->bitten)
		uv_run(&loop->uv, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&watchdog->timer, on_watchdog_closed);
	if (*flag)
		return;
	print_error("waited in vain for %s\n", what);
	_fail(file, line);
}

struct hpx_address test_address(bool is_unix)
{
	struct hpx_address address;
	const char *reason;
	char text[64] = "127.0.0.1:0";
	static unsigned number;

	if (is_unix)
		snprintf(text, sizeof(text), "unix:/tmp/hapax-test-%ld-%u.sock", (long)getpid(),
			 number++);
	assert_status(hpx_address_parse(hpx_span_of(text), &address, &reason), HPX_OK);
	return address;
}

int test_connect(int listening_fd)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);

	assert_int_equal(getsockname(listening_fd, (struct sockaddr *)&name, &len), 0);
	int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&name, len), 0);
	return fd;
}

int test_listen(struct hpx_address *ret_address, int backlog)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, len), 0);
	assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &len), 0);
	*ret_address = test_address(false);
	ret_address->port = ntohs(name.sin_port);
	return fd;
}

void test_write(int fd, const char *text)
{
	size_t len = strlen(text);

	assert_int_equal(send(fd, text, len, MSG_NOSIGNAL), len);
}

char *test_read_all(int fd, size_t *ret_len)
{
	size_t len = 0, cap = 1 << 16;
	char *text = malloc(cap);
	ssize_t n;

	assert_non_null(text);
	while ((n = recv(fd, text + len, cap - len - 1, 0)) > 0) {
		len += (size_t)n;
		if (cap - len < 2) {
			text = realloc(text, cap *= 2);
			assert_non_null(text);
		}
	}
	text[len] = '\0';
	*ret_len = len;
	return text;
}

void test_reset(int fd)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

void test_await(struct hpx_transport *transport, short event)
{
	struct pollfd poll_fd = { .events = event };
	uv_os_fd_t fd;

	assert_int_equal(uv_fileno((uv_handle_t *)hpx_stream_uv(transport), &fd), 0);
	poll_fd.fd = fd;
	assert_int_equal(poll(&poll_fd, 1, TEST_PATIENCE_MS), 1);
	assert_true(poll_fd.revents & event);
}

static void close_side(struct test_side *side)
{
	hpx_transport_close(side->transport);
	side->transport = NULL;
}

static void on_data(void *user, struct hpx_span bytes)
{
	struct test_side *side = user;

	assert_non_null(side->transport);
	assert_false(side->in_call);
	for (size_t i = 0; i < bytes.len && side->data_len + i < sizeof(side->data); i++)
		side->data[side->data_len + i] = bytes.ptr[i];
	side->data_len += bytes.len;
	side->got_data = true;
	if (side->close_in == 'd')
		close_side(side);
}

static void on_end(void *user, enum hpx_status status)
{
	struct test_side *side = user;

	assert_non_null(side->transport);
	assert_false(side->in_call);
	side->ended = true;
	side->ends++;
	side->end_status = status;
	if (side->close_in == 'e')
		close_side(side);
}

static void on_drain(void *user)
{
	struct test_side *side = user;

	assert_non_null(side->transport);
	assert_false(side->in_call);
	side->drained = true;
	if (side->close_in == 'r')
		close_side(side);
}

static const struct hpx_transport_events side_events = { on_data, on_end, on_drain };

static void on_accept(void *user, struct hpx_transport *transport)
{
	struct test_side *side = user;

	assert_false(side->accepted);
	side->accepted = true;
	side->transport = transport;
	hpx_transport_attach(transport, &side_events, side);
}

void test_side_open(struct test_side *side, struct hpx_loop *loop, bool is_unix)
{
	char problem[HPX_PROBLEM_SIZE];
	int fd;

	*side = (struct test_side){ .loop = loop, .address = test_address(is_unix) };
	assert_status(hpx_listener_open(&side->address, &fd, problem), HPX_OK);
	assert_status(hpx_listener_start(loop, fd, on_accept, side, &side->listener), HPX_OK);
	side->client = test_connect(fd);
	run_until(loop, &side->accepted);
}

void test_side_close(struct test_side *side)
{
	if (side->transport != NULL)
		hpx_transport_close(side->transport);
	if (side->client >= 0)
		close(side->client);
	hpx_listener_stop(side->listener);
	hpx_listener_unlink(&side->address);
}
