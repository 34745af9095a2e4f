/* Shows that a look-up which does not end holds up nobody: not its own request
 * beyond its timeout, not the others, not the engine's stop. */
#include "call.h"

#include <netdb.h>

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* Look-ups under way tell `begun`, wait for `go`, and tell `ended`. */
static sem_t begun, go, ended;

/* In place of the C library's, for libcurl. */
int getaddrinfo(const char *restrict node, const char *restrict service,
		const struct addrinfo *restrict hints, struct addrinfo **restrict ret_list)
{
	(void)node;
	(void)service;
	(void)hints;
	(void)ret_list;
	sem_post(&begun);
	sem_wait(&go);
	sem_post(&ended);
	return EAI_AGAIN;
}

static void a_look_up_that_hangs_holds_up_nobody(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_SERVE, .size = 1, .text = ANSWER },
		{ .kind = SERVER_END },
	};
	struct hpx_egress *egress = call_engine(4);
	struct call hanging, other, stopped;
	struct server server;

	(void)state;
	server_start(&server, acts, NULL);
	call_init(&hanging, "http://slow.example", "/");
	hanging.request.connect_timeout_ms = 200;
	call_run(&hanging, egress);
	assert_end(&hanging, HPX_EGRESS_NOT_SENT);
	call_init(&other, server.url, "/");
	call_run(&other, egress);
	assert_end(&other, HPX_EGRESS_ANSWERED);
	sem_wait(&begun);
	call_init(&stopped, "http://slow.example", "/");
	call_submit(&stopped, egress);
	sem_wait(&begun);
	call_engine_stop(egress);
	assert_end(&stopped, HPX_EGRESS_NOT_SENT);
	server_stop(&server);
	call_done(&hanging);
	call_done(&other);
	call_done(&stopped);
	for (int i = 0; i < 2; i++)
		sem_post(&go);
	for (int i = 0; i < 2; i++)
		sem_wait(&ended);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_look_up_that_hangs_holds_up_nobody),
	};

	sem_init(&begun, 0, 0);
	sem_init(&go, 0, 0);
	sem_init(&ended, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
