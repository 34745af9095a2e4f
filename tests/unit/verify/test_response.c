/* Shows how answers are kept: all that come at the same time stay within one bound,
 * whatever their number, and none is kept with a credential that was sent. */
#include "helper.h"

#include "verify/run_state.h"

#define ANSWERS 20
#define BODY_BYTES ((size_t)5 << 20)

static void feed(struct hpx_response *reply, const char *head, const char *body, size_t len)
{
	enum hpx_http_progress progress = hpx_response_feed(reply, hpx_span_of(head));

	if (len > 0)
		progress = hpx_response_feed(reply, hpx_span(body, len));
	if (progress != HPX_HTTP_DONE)
		fail_msg("progress %d, want %d: %s", progress, HPX_HTTP_DONE,
			 reply->problem ? reply->problem : "");
}

/* Those that come first are whole up to the bound of one, the last are not; all
 * have their first part, their length and the same hash. */
static void test_bodies_are_bounded(void **state)
{
	static struct hpx_response replies[ANSWERS];
	static struct hpx_response_shared share;
	struct hpx_verify_exchange exchanges[ANSWERS] = { { 0 } };
	struct hpx_arena arena;
	char head[96];
	char *body = malloc(BODY_BYTES);

	(void)state;
	assert_non_null(body);
	memset(body, 'x', BODY_BYTES);
	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", BODY_BYTES);
	hpx_arena_init(&arena, (size_t)1 << 20);
	for (size_t i = 0; i < ANSWERS; i++) {
		hpx_response_init(&replies[i], HPX_SPAN("POST"), &share);
		feed(&replies[i], head, body, BODY_BYTES);
	}
	assert_in_range(share.held_bytes, HPX_RESPONSE_BODIES_MAX,
			HPX_RESPONSE_BODIES_MAX + ANSWERS * HPX_EXCHANGE_KEPT);
	for (size_t i = 0; i < ANSWERS; i++) {
		assert_status(hpx_response_move(&replies[i], &arena, &exchanges[i]), HPX_OK);
		assert_int_equal(exchanges[i].body_bytes, BODY_BYTES);
		assert_int_equal(exchanges[i].body.len, HPX_EXCHANGE_KEPT);
		assert_memory_equal(exchanges[i].body_hash, exchanges[0].body_hash,
				    HPX_SHA256_SIZE);
		hpx_response_done(&replies[i]);
	}
	assert_int_equal(share.held_bytes, 0);
	hpx_arena_done(&arena);
	free(body);
}

static const struct {
	const char *sent; /* a header line of the description */
	const char *came; /* a body */
	const char *kept;
} echoes[] = {
	{ "Authorization: Bearer tok-12345678", "you are tok-12345678!", "you are ************!" },
	{ "Authorization: Bearer tok-12345678", "tok-12345678tok-12345678",
	  "************************" },
	{ "Authorization: Bearer {{env:HPX_TEST_TOKEN}}", "got from-the-env", "got ************" },
	{ "X-Mine: {{env:HPX_TEST_TOKEN}}-{{uuid}}", "got from-the-env-1", "got *************1" },
	{ "Authorization: Basic dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA==",
	  "********************" },
	{ "Cookie: a=1; sid=abcdefghij; b=2", "{\"sid\":\"abcdefghij\"}", "{\"sid\":\"**********\"}" },
	{ "X-Api-Key: short", "a short answer", "a short answer" },
	{ "X-Order: not-a-secret", "not-a-secret", "not-a-secret" },
};

static void check_echo(const struct hpx_verify_spec *spec, size_t i)
{
	struct hpx_response_shared share = { .held_bytes = 0 };
	struct hpx_verify_exchange exchange = { 0 };
	struct hpx_response reply;
	struct hpx_arena arena;
	char answer[512];

	snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nX-Said: %s\r\nContent-Length: %zu\r\n\r\n%s",
		 echoes[i].came, strlen(echoes[i].came), echoes[i].came);
	hpx_arena_init(&arena, (size_t)1 << 20);
	assert_status(hpx_secrets_init(&share.secrets, spec), HPX_OK);
	hpx_response_init(&reply, HPX_SPAN("POST"), &share);
	feed(&reply, answer, NULL, 0);
	assert_status(hpx_response_move(&reply, &arena, &exchange), HPX_OK);
	assert_span(exchange.body, echoes[i].kept);
	assert_span(hpx_verify_exchange_field(&exchange, HPX_SPAN("X-Said")), echoes[i].kept);
	hpx_response_done(&reply);
	hpx_secrets_done(&share.secrets);
	hpx_arena_done(&arena);
}

static void test_secrets_are_hidden(void **state)
{
	struct hpx_verify_spec spec;

	(void)state;
	setenv("HPX_TEST_TOKEN", "from-the-env", 1);
	for (size_t i = 0; i < sizeof(echoes) / sizeof(echoes[0]); i++) {
		spec_read(&spec, "url: http://127.0.0.1:9/p\nheaders: ['%s']\n", echoes[i].sent);
		check_echo(&spec, i);
		hpx_verify_spec_done(&spec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bodies_are_bounded),
		cmocka_unit_test(test_secrets_are_hidden),
	};

	return cmocka_run_group_tests_name("verify/reply", tests, NULL, NULL);
}
