/* Shows that an engine has many requests under way, never more than it may,
 * calls each one's `done` once, from its own thread, and ends all when stopped. */
#include "call.h"

#include <malloc.h>
#include <stdatomic.h>
#include <time.h>

#include <curl/curl.h>

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* On the engine's thread; read after it has ended. */
static int under_way, under_way_max;

CURLMcode __real_curl_multi_add_handle(CURLM *multi, CURL *easy);
CURLMcode __real_curl_multi_remove_handle(CURLM *multi, CURL *easy);
CURLMcode __wrap_curl_multi_add_handle(CURLM *multi, CURL *easy);
CURLMcode __wrap_curl_multi_remove_handle(CURLM *multi, CURL *easy);

/* What libcurl has no memory for: the n-th call fails, counted down to 0. */
static _Atomic int fail_init, fail_append, fail_add;

static bool fails(_Atomic int *countdown)
{
	return atomic_load(countdown) > 0 && atomic_fetch_sub(countdown, 1) == 1;
}

CURL *__real_curl_easy_init(void);
CURL *__wrap_curl_easy_init(void);
struct curl_slist *__real_curl_slist_append(struct curl_slist *list, const char *line);
struct curl_slist *__wrap_curl_slist_append(struct curl_slist *list, const char *line);

CURL *__wrap_curl_easy_init(void)
{
	return fails(&fail_init) ? NULL : __real_curl_easy_init();
}

struct curl_slist *__wrap_curl_slist_append(struct curl_slist *list, const char *line)
{
	return fails(&fail_append) ? NULL : __real_curl_slist_append(list, line);
}

CURLMcode __wrap_curl_multi_add_handle(CURLM *multi, CURL *easy)
{
	if (fails(&fail_add)) {
		under_way++;
		return CURLM_OUT_OF_MEMORY;
	}
	if (++under_way > under_way_max)
		under_way_max = under_way;
	return __real_curl_multi_add_handle(multi, easy);
}

CURLMcode __wrap_curl_multi_remove_handle(CURLM *multi, CURL *easy)
{
	under_way--;
	return __real_curl_multi_remove_handle(multi, easy);
}

static void many_are_under_way_at_once(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_HOLD, .size = SERVER_HELD_MAX },
		{ .kind = SERVER_ANSWER_HELD, .text = ANSWER },
		{ .kind = SERVER_END },
	};
	struct hpx_egress *egress = call_engine(SERVER_HELD_MAX);
	static struct call calls[SERVER_HELD_MAX];
	struct server server;

	(void)state;
	server_start(&server, acts, NULL);
	for (size_t i = 0; i < SERVER_HELD_MAX; i++) {
		call_init(&calls[i], server.url, "/");
		call_submit(&calls[i], egress);
	}
	for (size_t i = 0; i < SERVER_HELD_MAX; i++)
		call_wait(&calls[i]);
	call_engine_stop(egress);
	server_stop(&server);
	for (size_t i = 0; i < SERVER_HELD_MAX; i++) {
		assert_end(&calls[i], HPX_EGRESS_ANSWERED);
		call_done(&calls[i]);
	}
}

/* Several threads, each submitting its share. */
#define SUBMITTERS 4
#define SHARE 50

struct submitter {
	pthread_t thread;
	struct hpx_egress *egress;
	const char *url;
	struct call calls[SHARE];
};

static void *submit_share(void *user)
{
	struct submitter *submitter = user;

	for (size_t i = 0; i < SHARE; i++) {
		call_init(&submitter->calls[i], submitter->url, "/");
		call_submit(&submitter->calls[i], submitter->egress);
	}
	return NULL;
}

static void any_thread_may_submit_and_the_rest_waits(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_SERVE, .size = SUBMITTERS * SHARE, .text = ANSWER },
		{ .kind = SERVER_END },
	};
	struct submitter *submitters = calloc(SUBMITTERS, sizeof(*submitters));
	struct hpx_egress *egress = call_engine(3);
	struct server server;

	(void)state;
	assert_non_null(submitters);
	under_way_max = 0;
	server_start(&server, acts, NULL);
	for (size_t i = 0; i < SUBMITTERS; i++) {
		submitters[i].egress = egress;
		submitters[i].url = server.url;
		pthread_create(&submitters[i].thread, NULL, submit_share, &submitters[i]);
	}
	for (size_t i = 0; i < SUBMITTERS; i++) {
		pthread_join(submitters[i].thread, NULL);
		for (size_t j = 0; j < SHARE; j++) {
			call_wait(&submitters[i].calls[j]);
			assert_end(&submitters[i].calls[j], HPX_EGRESS_ANSWERED);
		}
	}
	call_engine_stop(egress);
	server_stop(&server);
	for (size_t i = 0; i < SUBMITTERS * SHARE; i++)
		call_done(&submitters[i / SHARE].calls[i % SHARE]);
	assert_int_equal(under_way, 0);
	assert_int_equal(under_way_max, 3);
	free(submitters);
}

struct chain {
	struct hpx_egress *egress;
	struct hpx_egress_request request;
	unsigned left;
	sem_t end;
};

static void submit_next(struct hpx_egress_request *request)
{
	struct chain *chain = request->user;

	assert_int_equal(request->status, 200);
	hpx_egress_request_done(request);
	if (--chain->left == 0)
		sem_post(&chain->end);
	else
		assert_status(hpx_egress_submit(chain->egress, request), HPX_OK);
}

static void done_may_submit_the_next(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_SERVE, .size = 20, .text = ANSWER },
		{ .kind = SERVER_END },
	};
	struct chain chain = { .egress = call_engine(1), .left = 20 };
	struct server server;
	struct call call;

	(void)state;
	server_start(&server, acts, NULL);
	call_init(&call, server.url, "/");
	chain.request = call.request;
	chain.request.user = &chain;
	chain.request.done = submit_next;
	sem_init(&chain.end, 0, 0);
	assert_status(hpx_egress_submit(chain.egress, &chain.request), HPX_OK);
	server_stop(&server);
	sem_wait(&chain.end);
	call_engine_stop(chain.egress);
	assert_int_equal(server.requests, 20);
	sem_destroy(&chain.end);
	sem_destroy(&call.done);
}

static void a_stop_ends_what_is_under_way_and_what_waits(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_TELL },
		{ .kind = SERVER_READ_END },
		{ .kind = SERVER_NOBODY },
		{ .kind = SERVER_END },
	};
	struct hpx_egress *egress = call_engine(1);
	struct call running, waiting, late;
	struct server server;

	(void)state;
	server_start(&server, acts, NULL);
	call_init(&running, server.url, "/");
	call_init(&waiting, server.url, "/");
	call_init(&late, server.url, "/");
	call_submit(&running, egress);
	call_submit(&waiting, egress);
	server_wait(&server);
	hpx_egress_stop(egress, 0);
	assert_end(&running, HPX_EGRESS_NO_ANSWER);
	assert_end(&waiting, HPX_EGRESS_NOT_SENT);
	assert_status(hpx_egress_submit(egress, &late.request), HPX_CLOSED);
	assert_int_equal(late.dones, 0);
	hpx_egress_free(egress);
	server_stop(&server);
	assert_int_equal(server.requests, 1);
	call_done(&running);
	call_done(&waiting);
}

static void what_ends_within_the_grace_is_answered(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_TELL },
		{ .kind = SERVER_WAIT },
		{ .kind = SERVER_SEND, .text = ANSWER },
		{ .kind = SERVER_END },
	};
	struct hpx_egress *egress = call_engine(1);
	struct call running, waiting;
	struct server server;

	(void)state;
	server_start(&server, acts, NULL);
	call_init(&running, server.url, "/");
	call_init(&waiting, server.url, "/");
	call_submit(&running, egress);
	call_submit(&waiting, egress);
	server_wait(&server);
	server_go(&server);
	/* For ever, had the engine not ended when the last one did. */
	hpx_egress_stop(egress, INT64_MAX / 2);
	assert_end(&running, HPX_EGRESS_ANSWERED);
	hpx_egress_free(egress);
	server_stop(&server);
	call_done(&running);
	call_done(&waiting);
}

#define CROWD 100000
/* The transfer that is under way, and then some. */
#define GROWTH_BYTES_MAX ((size_t)1 << 20)

static void count_unsent(struct hpx_egress_request *request)
{
	unsigned *count = request->user;

	*count += request->end == HPX_EGRESS_NOT_SENT;
}

static void a_crowd_waits_in_its_own_memory(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_ACCEPT },
		{ .kind = SERVER_READ },
		{ .kind = SERVER_TELL },
		{ .kind = SERVER_READ_END },
		{ .kind = SERVER_END },
	};
	struct hpx_egress_request *crowd = calloc(CROWD, sizeof(*crowd));
	struct hpx_egress *egress = call_engine(1);
	struct server server;
	struct call call;
	unsigned unsent = 0;

	(void)state;
	assert_non_null(crowd);
	under_way_max = 0;
	server_start(&server, acts, NULL);
	call_init(&call, server.url, "/");
	struct hpx_egress_request one_of_many = call.request;
	one_of_many.done = count_unsent;
	one_of_many.user = &unsent;
	call_submit(&call, egress);
	server_wait(&server);
	size_t before = mallinfo2().uordblks;
	for (size_t i = 0; i < CROWD; i++) {
		crowd[i] = one_of_many;
		assert_status(hpx_egress_submit(egress, &crowd[i]), HPX_OK);
	}
	size_t after = mallinfo2().uordblks;
	assert_in_range(after > before ? after - before : 0, 0, GROWTH_BYTES_MAX);
	call_engine_stop(egress);
	assert_int_equal(unsent, CROWD);
	assert_int_equal(under_way_max, 1);
	server_stop(&server);
	call_done(&call);
	free(crowd);
}

static void two_engines_do_not_know_each_other(void **state)
{
	static const struct server_act acts[] = {
		{ .kind = SERVER_SERVE, .size = 2, .text = ANSWER },
		{ .kind = SERVER_END },
	};
	struct hpx_egress *one = call_engine(1), *other = call_engine(1);
	struct server server;
	struct call calls[2];

	(void)state;
	server_start(&server, acts, NULL);
	call_init(&calls[0], server.url, "/");
	call_run(&calls[0], one);
	call_engine_stop(one);
	call_init(&calls[1], server.url, "/");
	call_run(&calls[1], other);
	call_engine_stop(other);
	server_stop(&server);
	for (size_t i = 0; i < 2; i++) {
		assert_end(&calls[i], HPX_EGRESS_ANSWERED);
		call_done(&calls[i]);
	}
}

static void what_cannot_be_begun_is_not_sent(void **state)
{
	static _Atomic int *const kinds[] = { &fail_init, &fail_append, &fail_add };
	static const struct server_act acts[] = {
		{ .kind = SERVER_SERVE, .size = sizeof(kinds) / sizeof(kinds[0]), .text = ANSWER },
		{ .kind = SERVER_END },
	};
	struct hpx_egress *egress = call_engine(1);
	struct server server;
	struct call call;

	(void)state;
	server_start(&server, acts, NULL);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		/* Until a call that does not come to the failure. */
		for (int n = 1, left = 0; left == 0; n++) {
			atomic_store(kinds[i], n);
			call_init(&call, server.url, "/");
			call_run(&call, egress);
			left = atomic_exchange(kinds[i], 0);
			assert_end(&call, left == 0 ? HPX_EGRESS_NOT_SENT : HPX_EGRESS_ANSWERED);
			call_done(&call);
		}
	}
	call_engine_stop(egress);
	server_stop(&server);
	assert_int_equal(server.requests, sizeof(kinds) / sizeof(kinds[0]));
	assert_int_equal(under_way, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_are_under_way_at_once),
		cmocka_unit_test(any_thread_may_submit_and_the_rest_waits),
		cmocka_unit_test(done_may_submit_the_next),
		cmocka_unit_test(a_stop_ends_what_is_under_way_and_what_waits),
		cmocka_unit_test(what_ends_within_the_grace_is_answered),
		cmocka_unit_test(a_crowd_waits_in_its_own_memory),
		cmocka_unit_test(what_cannot_be_begun_is_not_sent),
		cmocka_unit_test(two_engines_do_not_know_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
