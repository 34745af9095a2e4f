/* Shows that listening sockets share a port between loops but not with
 * strangers, that a unix socket is made once and only over a dead one, and
 * that running out of descriptors costs the newcomers, not the loop. */
#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char problem[HPX_PROBLEM_SIZE];

#define CROWD 32

struct crowd {
	struct hpx_loop loop;
	struct hpx_transport *transports[CROWD];
	unsigned count;
	unsigned ended;
	unsigned want;
	bool enough;
	bool all_ended;
};

static void on_data(void *user, struct hpx_span bytes)
{
	(void)user;
	(void)bytes;
}

static void on_end(void *user, enum hpx_status status)
{
	struct crowd *crowd = user;

	(void)status;
	crowd->all_ended = ++crowd->ended == crowd->count;
}

static const struct hpx_transport_events crowd_events = { on_data, on_end, NULL };

static void on_accept(void *user, struct hpx_transport *transport)
{
	struct crowd *crowd = user;

	assert_true(crowd->count < CROWD);
	hpx_transport_attach(transport, &crowd_events, crowd);
	hpx_transport_read_start(transport);
	crowd->transports[crowd->count++] = transport;
	crowd->enough = crowd->count >= crowd->want;
}

static void disperse(struct crowd *crowd)
{
	for (unsigned i = 0; i < crowd->count; i++)
		hpx_transport_close(crowd->transports[i]);
	crowd->count = 0;
	crowd->ended = 0;
	crowd->enough = false;
	crowd->all_ended = false;
}

/* Two sockets for one address: every connection is accepted by one of them. */
static void check_sharing(bool is_unix)
{
	struct crowd crowd = { .want = CROWD };
	struct hpx_address address = test_address(is_unix);
	struct hpx_listener *listeners[2];
	int fds[2], clients[CROWD];

	assert_status(hpx_loop_init(&crowd.loop), HPX_OK);
	assert_status(hpx_listener_open(&address, &fds[0], problem), HPX_OK);
	assert_status(hpx_listener_open_beside(fds[0], &fds[1]), HPX_OK);
	assert_int_equal(hpx_listener_port(fds[0]), hpx_listener_port(fds[1]));
	assert_int_equal(hpx_listener_port(fds[0]) != 0, !is_unix);
	for (int i = 0; i < 2; i++)
		assert_status(hpx_listener_start(&crowd.loop, fds[i], on_accept, &crowd,
						 &listeners[i]),
			      HPX_OK);
	for (int i = 0; i < CROWD; i++)
		clients[i] = test_connect(fds[0]);
	run_until(&crowd.loop, &crowd.enough);
	for (int i = 0; i < CROWD; i++)
		close(clients[i]);
	/* Connections live on when listening stops. */
	hpx_listener_stop(listeners[0]);
	hpx_listener_stop(listeners[1]);
	run_until(&crowd.loop, &crowd.all_ended);
	disperse(&crowd);
	hpx_loop_run(&crowd.loop);
	hpx_listener_unlink(&address);
	assert_int_equal(is_unix && access(address.path, F_OK) == 0, 0);
	hpx_loop_done(&crowd.loop);
}

static void loops_share_a_tcp_port(void **state)
{
	(void)state;
	check_sharing(false);
}

static void loops_share_a_unix_socket(void **state)
{
	(void)state;
	check_sharing(true);
}

static void a_port_in_use_is_noticed(void **state)
{
	struct hpx_address address = test_address(false);
	int fd;

	(void)state;
	assert_status(hpx_listener_open(&address, &fd, problem), HPX_OK);
	address.port = hpx_listener_port(fd);
	assert_status(hpx_listener_probe(&address, problem), HPX_BUSY);
	assert_non_null(strstr(problem, "another process listens there"));
	close(fd);
	assert_status(hpx_listener_probe(&address, problem), HPX_OK);
	fd = test_listen(&address, 1);
	int other;
	assert_status(hpx_listener_open(&address, &other, problem), HPX_BUSY);
	close(fd);
}

static void names_and_ipv6_are_listened_on(void **state)
{
	static const char *const texts[] = { "localhost:0", "[::1]:0", "nobody.invalid:0" };
	static const enum hpx_status want[] = { HPX_OK, HPX_OK, HPX_UNAVAILABLE };
	struct hpx_address address;
	const char *reason;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		int fd = -1;
		assert_status(hpx_address_parse(hpx_span_of(texts[i]), &address, &reason), HPX_OK);
		enum hpx_status status = hpx_listener_open(&address, &fd, problem);
		if (i == 1 && status == HPX_IO) {
			print_message("SKIPPED: this machine has no IPv6 (%s)\n", problem);
			continue;
		}
		assert_status(status, want[i]);
		if (fd >= 0)
			close(fd);
	}
}

static void a_unix_socket_replaces_only_a_dead_one(void **state)
{
	struct hpx_address address = test_address(true);
	struct stat found;
	int fd, other;

	(void)state;
	assert_status(hpx_listener_open(&address, &fd, problem), HPX_OK);
	assert_int_equal(stat(address.path, &found), 0);
	assert_int_equal(found.st_mode & 0777, 0660);
	assert_status(hpx_listener_open(&address, &other, problem), HPX_BUSY);
	/* Nobody is behind the file now. */
	close(fd);
	assert_int_equal(access(address.path, F_OK), 0);
	assert_status(hpx_listener_open(&address, &fd, problem), HPX_OK);
	close(fd);
	hpx_listener_unlink(&address);
	/* A file that is no socket is left alone. */
	fd = open(address.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_status(hpx_listener_open(&address, &other, problem), HPX_IO);
	assert_int_equal(stat(address.path, &found), 0);
	assert_true(S_ISREG(found.st_mode));
	unlink(address.path);
}

/* A process of its own: connects `CROWD` times, waits until all but `kept`
 * were closed by the other side, and leaves. */
static _Noreturn void be_the_crowd(int listening_fd, int kept)
{
	struct pollfd clients[CROWD];
	int closed = 0;

	for (int i = 0; i < CROWD; i++)
		clients[i] = (struct pollfd){ .fd = test_connect(listening_fd), .events = POLLIN };
	while (closed < CROWD - kept) {
		if (poll(clients, CROWD, TEST_PATIENCE_MS) <= 0)
			_exit(1);
		for (int i = 0; i < CROWD; i++) {
			if (clients[i].revents == 0)
				continue;
			clients[i].fd = -1;
			closed++;
		}
	}
	_exit(0);
}

/* Leaves room for `more` descriptors. */
static struct rlimit limit_descriptors(rlim_t more)
{
	struct rlimit before, now;
	int next = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(next >= 0);
	close(next);
	getrlimit(RLIMIT_NOFILE, &before);
	now = before;
	now.rlim_cur = (rlim_t)next + more;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	return before;
}

static void running_out_of_descriptors_drops_newcomers_only(void **state)
{
	enum { ROOM = 3 };
	struct crowd crowd = { .want = ROOM };
	struct hpx_address address = test_address(false);
	struct hpx_listener *listener;
	int fd, status;

	(void)state;
	assert_status(hpx_loop_init(&crowd.loop), HPX_OK);
	assert_status(hpx_listener_open(&address, &fd, problem), HPX_OK);
	assert_status(hpx_listener_start(&crowd.loop, fd, on_accept, &crowd, &listener), HPX_OK);
	uv_run(&crowd.loop.uv, UV_RUN_NOWAIT);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		be_the_crowd(fd, ROOM);
	struct rlimit before = limit_descriptors(ROOM);
	run_until(&crowd.loop, &crowd.enough);
	run_until(&crowd.loop, &crowd.all_ended);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(crowd.count, ROOM);
	disperse(&crowd);
	setrlimit(RLIMIT_NOFILE, &before);
	/* And it goes on. */
	crowd.want = 1;
	int client = test_connect(fd);
	run_until(&crowd.loop, &crowd.enough);
	close(client);
	disperse(&crowd);
	hpx_listener_stop(listener);
	hpx_loop_run(&crowd.loop);
	hpx_loop_done(&crowd.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_share_a_tcp_port),
		cmocka_unit_test(loops_share_a_unix_socket),
		cmocka_unit_test(a_port_in_use_is_noticed),
		cmocka_unit_test(names_and_ipv6_are_listened_on),
		cmocka_unit_test(a_unix_socket_replaces_only_a_dead_one),
		cmocka_unit_test(running_out_of_descriptors_drops_newcomers_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
