/* Shows the client as a program uses it: what an outcome holds, what an observer
 * is told, that an answer can be had again until it is confirmed, that several threads share a client, that it can be interrupted, and
 * that whoever breaks the header's contract is told so. */
#include "folder.h"

#include <pthread.h>

#include "../egress/server.h"
#include "hapax/client.h"

static char problem[HAPAX_PROBLEM_SIZE];

#define assert_told(call, want) \
	do { \
		memset(problem, 0, sizeof(problem)); \
		enum hapax_result got_ = (call); \
		if (got_ != (want) || (problem[0] == '\0') != ((want) == HAPAX_OK)) \
			fail_msg("%s: got %d (\"%s\"), want %d", #call, got_, problem, (want)); \
	} while (0)

#define PAID "HTTP/1.1 201 Created\r\nContent-Length: 4\r\nX-Id: 7\r\nX-Empty:\r\n\r\npaid"
#define LATER "HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n"

struct told {
	unsigned begins;
	unsigned ends;
	unsigned waits;
	unsigned statuses[8];
	int doubts[8];
};

#define OPTIONS_SIZE .size = sizeof(struct hapax_client_options)

static void observe(void *user, const struct hapax_attempt *attempt)
{
	struct told *told = user;

	told->begins += attempt->event == HAPAX_ATTEMPT_BEGINS;
	told->waits += attempt->event == HAPAX_ATTEMPT_WAITS;
	if (attempt->event != HAPAX_ATTEMPT_ENDED || told->ends == 8)
		return;
	assert_int_equal(attempt->number, told->ends + 1);
	told->statuses[told->ends] = attempt->status;
	told->doubts[told->ends++] = attempt->doubt;
}

static struct hapax_call *post(struct hapax_client *client, const char *url)
{
	struct hapax_call *call = NULL;
	char full[128];

	snprintf(full, sizeof(full), "%s/pay", url);
	assert_told(hapax_call_new(client, "POST", full, &call, problem), HAPAX_OK);
	assert_told(hapax_call_body(call, "{}", 2, problem), HAPAX_OK);
	return call;
}

static void an_outcome(void **state)
{
	static const struct server_act acts[] = {
		{ SERVER_ACCEPT, NULL, 0 },
		{ SERVER_READ, NULL, 0 },
		{ SERVER_RESET, NULL, 0 },
		{ SERVER_ACCEPT, NULL, 0 },
		{ SERVER_READ, NULL, 0 },
		{ SERVER_SEND, LATER, 0 },
		{ SERVER_CLOSE, NULL, 0 },
		{ SERVER_ACCEPT, NULL, 0 },
		{ SERVER_READ, NULL, 0 },
		{ SERVER_SEND, PAID, 0 },
		{ SERVER_CLOSE, NULL, 0 },
		{ SERVER_END, NULL, 0 },
	};
	struct told told = { .begins = 0 };
	struct hapax_client_options options = {
		.size = sizeof(options),
		.backoff_ms = 1,
		.observe = observe,
		.user = &told,
	};
	struct hapax_client *client = NULL;
	struct server server;

	(void)state;
	server_start(&server, acts, NULL);
	assert_told(hapax_client_open(&options, &client, problem), HAPAX_OK);
	struct hapax_call *call = post(client, server.url);
	assert_told(hapax_call_send(call, problem), HAPAX_OK);
	const struct hapax_outcome *outcome = hapax_call_outcome(call);
	assert_int_equal(outcome->kind, HAPAX_DONE);
	assert_int_equal(outcome->status, 201);
	assert_int_equal(outcome->attempts, 3);
	assert_int_equal(outcome->doubt, 0);
	assert_int_equal(outcome->id, 0);
	assert_int_equal(outcome->body_len, 4);
	assert_memory_equal(outcome->body, "paid", 4);
	assert_int_equal(strlen(outcome->key), 36);
	assert_string_equal(outcome->headers, "Content-Length: 4\r\nX-Id: 7\r\nX-Empty: \r\n");
	assert_string_equal(hapax_call_answer_header(call, "x-id"), "7");
	assert_string_equal(hapax_call_answer_header(call, "X-Empty"), "");
	assert_null(hapax_call_answer_header(call, "X-I"));
	assert_told(hapax_call_send(call, problem), HAPAX_MISUSE);
	assert_told(hapax_call_body(call, "", 0, problem), HAPAX_MISUSE);
	assert_told(hapax_call_header(call, "A", "b", problem), HAPAX_MISUSE);
	hapax_call_free(call);
	hapax_client_close(client);
	server_stop(&server);
	assert_int_equal(told.begins, 3);
	assert_int_equal(told.ends, 3);
	assert_int_equal(told.statuses[1], 503);
	assert_int_equal(told.doubts[0], 1);
	assert_int_equal(told.doubts[2], 0);
}

static struct hapax_entry the_entry(struct hapax_client *client)
{
	struct hapax_entry *entries = NULL, entry;
	size_t count = 0;

	assert_told(hapax_client_entries(client, 1, &entries, &count, problem), HAPAX_OK);
	assert_int_equal(count, 1);
	entry = entries[0];
	hapax_entries_free(entries);
	return entry;
}

static void done_when_confirmed(void **state)
{
	static const struct server_act acts[] = {
		{ SERVER_ACCEPT, NULL, 0 },
		{ SERVER_READ, NULL, 0 },
		{ SERVER_SEND, PAID, 0 },
		{ SERVER_CLOSE, NULL, 0 },
		{ SERVER_ACCEPT, NULL, 0 },
		{ SERVER_READ, NULL, 0 },
		{ SERVER_SEND, PAID, 0 },
		{ SERVER_CLOSE, NULL, 0 },
		{ SERVER_END, NULL, 0 },
	};
	char folder[64], path[128];
	struct hapax_client_options options = {
		.size = sizeof(options),
		.journal = path,
		.confirm = 1,
	};
	struct hapax_client *client = NULL;
	struct server server;

	(void)state;
	folder_make(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/calls.db", folder);
	server_start(&server, acts, NULL);
	assert_told(hapax_client_open(&options, &client, problem), HAPAX_OK);
	struct hapax_call *call = post(client, server.url);
	assert_told(hapax_call_confirm(call, problem), HAPAX_MISUSE);
	assert_told(hapax_call_send(call, problem), HAPAX_OK);
	assert_int_equal(hapax_call_outcome(call)->kind, HAPAX_DONE);
	hapax_call_free(call);
	assert_int_equal(the_entry(client).state, HAPAX_ENTRY_OPEN);
	assert_int_equal(the_entry(client).doubt, 1);
	assert_told(hapax_call_resume(client, 1, &call, problem), HAPAX_OK);
	assert_told(hapax_call_send(call, problem), HAPAX_OK);
	assert_memory_equal(hapax_call_outcome(call)->body, "paid", 4);
	assert_told(hapax_call_confirm(call, problem), HAPAX_OK);
	assert_told(hapax_call_confirm(call, problem), HAPAX_OK);
	hapax_call_free(call);
	assert_int_equal(the_entry(client).state, HAPAX_ENTRY_DONE);
	assert_int_equal(the_entry(client).status, 201);
	hapax_client_close(client);
	server_stop(&server);
	folder_remove(folder);
}

#define THREADS 4
#define CALLS 5

struct worker {
	struct hapax_client *client;
	const char *url;
	unsigned done;
};

static void *work(void *user)
{
	struct worker *worker = user;
	char full[128];

	snprintf(full, sizeof(full), "%s/pay", worker->url);
	for (int i = 0; i < CALLS; i++) {
		struct hapax_call *call = NULL;

		if (hapax_call_new(worker->client, "POST", full, &call, NULL) == HAPAX_OK &&
		    hapax_call_send(call, NULL) == HAPAX_OK)
			worker->done += hapax_call_outcome(call)->kind == HAPAX_DONE;
		hapax_call_free(call);
	}
	return NULL;
}

static void threads_share_a_client(void **state)
{
	static const struct server_act acts[] = { { SERVER_SERVE, PAID, THREADS * CALLS },
						  { SERVER_END, NULL, 0 } };
	struct hapax_client_options options = { .size = sizeof(options), .journal = NULL };
	struct worker workers[THREADS];
	pthread_t threads[THREADS];
	struct hapax_entry *entries;
	char folder[64], path[128];
	struct server server;
	size_t count = 0;

	(void)state;
	folder_make(folder, sizeof(folder));
	snprintf(path, sizeof(path), "%s/calls.db", folder);
	options.journal = path;
	struct hapax_client *client = NULL;
	server_start(&server, acts, NULL);
	assert_told(hapax_client_open(&options, &client, problem), HAPAX_OK);
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ client, server.url, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(workers[i].done, CALLS);
	}
	assert_told(hapax_client_entries(client, 1, &entries, &count, problem), HAPAX_OK);
	assert_int_equal(count, THREADS * CALLS);
	for (struct hapax_entry *entry = entries; entry != NULL; entry = entry->next, count--)
		assert_int_equal(entry->state, HAPAX_ENTRY_DONE);
	assert_int_equal(count, 0);
	hapax_entries_free(entries);
	assert_told(hapax_client_entries(client, 0, &entries, &count, problem), HAPAX_OK);
	assert_int_equal(count, 0);
	assert_null(entries);
	hapax_entries_free(entries);
	hapax_client_close(client);
	server_stop(&server);
	folder_remove(folder);
}

static void interrupt(void *user, const struct hapax_attempt *attempt)
{
	struct hapax_client **client = user;

	if (attempt->event == HAPAX_ATTEMPT_WAITS)
		hapax_client_interrupt(*client);
}

static void interrupted_at_once(void **state)
{
	struct hapax_client *client = NULL;
	struct hapax_client_options options = {
		.size = sizeof(options),
		.budget_ms = 86400000,
		.backoff_ms = 86400000,
		.backoff_max_ms = 86400000,
		.observe = interrupt,
		.user = &client,
	};
	char url[64];
	unsigned port;
	int held = server_listen(-1, &port);

	(void)state;
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
	assert_told(hapax_client_open(&options, &client, problem), HAPAX_OK);
	struct hapax_call *call = post(client, url);
	assert_told(hapax_call_send(call, problem), HAPAX_OK);
	assert_int_equal(hapax_call_outcome(call)->kind, HAPAX_INTERRUPTED);
	assert_int_equal(hapax_call_outcome(call)->doubt, 0);
	assert_int_equal(hapax_call_outcome(call)->attempts, 1);
	hapax_call_free(call);
	call = post(client, url);
	assert_told(hapax_call_send(call, problem), HAPAX_OK);
	assert_int_equal(hapax_call_outcome(call)->attempts, 0);
	hapax_call_free(call);
	hapax_client_close(client);
	close(held);
}

static void broken_contracts(void **state)
{
	struct hapax_client *client = NULL;
	struct hapax_call *call = NULL;
	struct hapax_entry *entries;
	size_t count;

	(void)state;
	assert_told(hapax_client_open(NULL, NULL, problem), HAPAX_MISUSE);
	assert_told(hapax_client_open(&(struct hapax_client_options){ OPTIONS_SIZE, .budget_ms = -1 },
				      &client, problem),
		    HAPAX_INVALID);
	assert_told(hapax_client_open(&(struct hapax_client_options){ OPTIONS_SIZE, .timeout_ms = INT64_MAX },
				      &client, problem),
		    HAPAX_INVALID);
	assert_told(hapax_client_open(&(struct hapax_client_options){ OPTIONS_SIZE, .key_header = "a b" },
				      &client, problem),
		    HAPAX_INVALID);
	assert_null(client);
	assert_told(hapax_client_open(NULL, &client, problem), HAPAX_OK);
	assert_told(hapax_call_new(NULL, "POST", "http://h/", &call, problem), HAPAX_MISUSE);
	assert_told(hapax_call_new(client, "GET", "http://h/", &call, problem), HAPAX_INVALID);
	assert_told(hapax_call_new(client, "POST", "h", &call, problem), HAPAX_INVALID);
	assert_null(call);
	assert_told(hapax_call_resume(client, 1, &call, problem), HAPAX_MISUSE);
	assert_told(hapax_client_forget(client, 1, problem), HAPAX_MISUSE);
	assert_told(hapax_client_entries(client, 0, &entries, &count, problem), HAPAX_MISUSE);
	assert_told(hapax_call_new(client, "POST", "http://h/", &call, problem), HAPAX_OK);
	assert_told(hapax_call_header(call, "Idempotency-Key", "x", problem), HAPAX_INVALID);
	assert_told(hapax_call_header(call, "Host ", "x", problem), HAPAX_INVALID);
	assert_told(hapax_call_header(call, "X", "a\r\nY: b", problem), HAPAX_INVALID);
	assert_told(hapax_call_header(call, "Connection", "close", problem), HAPAX_INVALID);
	assert_told(hapax_call_header_file(call, "/nowhere", problem), HAPAX_INVALID);
	assert_told(hapax_call_body(call, NULL, 1, problem), HAPAX_MISUSE);
	assert_told(hapax_call_key(call, "", problem), HAPAX_INVALID);
	for (int i = 0; i < 128; i++)
		assert_told(hapax_call_header(call, "X", "x", problem), HAPAX_OK);
	assert_told(hapax_call_header(call, "X", "x", problem), HAPAX_INVALID);
	hapax_call_free(call);
	hapax_call_free(NULL);
	hapax_entries_free(NULL);
	hapax_client_interrupt(NULL);
	hapax_client_close(client);
	hapax_client_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_outcome),
		cmocka_unit_test(done_when_confirmed),
		cmocka_unit_test(threads_share_a_client),
		cmocka_unit_test(interrupted_at_once),
		cmocka_unit_test(broken_contracts),
	};

	return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}
