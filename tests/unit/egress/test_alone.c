/* Shows that a request is sent as it was given whatever the environment holds:
 * no proxy, no .netrc, no cookie of an earlier answer. */
#include "call.h"

#include <sys/stat.h>
#include <unistd.h>

static void the_environments_proxies_are_not_asked(void **state)
{
	static const char *const names[] = { "http_proxy", "https_proxy", "HTTPS_PROXY",
					     "all_proxy", "ALL_PROXY" };
	static const struct server_act acts[] = {
		{ .kind = SERVER_SERVE, .size = 1, .text = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" },
		{ .kind = SERVER_END },
	};
	static const struct server_act nothing[] = {
		{ .kind = SERVER_WAIT },
		{ .kind = SERVER_NOBODY },
		{ .kind = SERVER_END },
	};
	struct server server, proxy;
	struct call call;

	(void)state;
	server_start(&proxy, nothing, NULL);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		setenv(names[i], proxy.url, 1);
	server_start(&server, acts, NULL);
	call_init(&call, server.url, "/");
	call_once(&call);
	assert_end(&call, HPX_EGRESS_ANSWERED);
	server_stop(&server);
	server_go(&proxy);
	server_stop(&proxy);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	call_done(&call);
}

static void a_netrc_and_cookies_stay_out(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_SERVE, .size = 2, .text = "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n" },
		{ .kind = SERVER_END },
	};
	char home[] = "/tmp/hapax-egress-XXXXXX", path[64];
	struct hpx_egress *egress = call_engine(1);
	struct server server;
	struct call call;

	(void)state;
	assert_non_null(mkdtemp(home));
	snprintf(path, sizeof(path), "%s/.netrc", home);
	FILE *netrc = fopen(path, "w");
	assert_non_null(netrc);
	fputs("machine 127.0.0.1 login somebody password secret\n", netrc);
	fclose(netrc);
	setenv("HOME", home, 1);
	server_start(&server, acts, NULL);
	for (int i = 0; i < 2; i++) {
		call_init(&call, server.url, "/");
		call_run(&call, egress);
		assert_end(&call, HPX_EGRESS_ANSWERED);
		call_done(&call);
	}
	call_engine_stop(egress);
	server_stop(&server);
	assert_null(strcasestr(server.head, "Authorization"));
	assert_null(strcasestr(server.head, "Cookie"));
	unlink(path);
	rmdir(home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_environments_proxies_are_not_asked),
		cmocka_unit_test(a_netrc_and_cookies_stay_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
