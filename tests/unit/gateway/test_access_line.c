/* Shows how a line of the access log is printed in each format, that the bytes of a client
 * neither end it nor make it long, and which traceparent has a trace id. */
#include "../test.h"

#include "base/log_writer.h"
#include "gateway/access_line.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct hpx_access_line whole = {
	.wall_ms = 1763453553250,
	.peer = HPX_SPAN_INIT("127.0.0.1"),
	.method = HPX_SPAN_INIT("POST"),
	.route = HPX_SPAN_INIT("POST /pay"),
	.status = 201,
	.did = HPX_DID_executed,
	.attempt = 2,
	.operation = HPX_SPAN_INIT("ab.cd"),
	.tenant = HPX_SPAN_INIT("2f183a4e6449"),
	.trace = HPX_SPAN_INIT("4bf92f3577b34da6a3ce929d0e0e4736"),
	.whole_us = 12345,
	.queue_us = HPX_ACCESS_NO_TIME,
	.reserve_us = 1,
	.upstream_us = 10000,
	.complete_us = 999,
	.bytes_in = 0,
	.bytes_out = UINT64_MAX,
};

static const struct hpx_access_line bare = {
	.wall_ms = 1763453553000,
	.did = HPX_DID_refused,
	.status = 400,
	.code = "bad_request",
	.whole_us = 0,
	.queue_us = HPX_ACCESS_NO_TIME,
	.reserve_us = HPX_ACCESS_NO_TIME,
	.upstream_us = HPX_ACCESS_NO_TIME,
	.complete_us = HPX_ACCESS_NO_TIME,
};

static void check(const struct hpx_access_line *line, enum hpx_access_format format,
		  const char *expected)
{
	struct hpx_buffer out;

	hpx_buffer_init(&out, 4096);
	assert_status(hpx_access_line_print(line, format, &out), HPX_OK);
	assert_status(hpx_buffer_byte(&out, '\0'), HPX_OK);
	assert_string_equal(out.ptr, expected);
	hpx_buffer_done(&out);
}

static void formats(void **state)
{
	(void)state;
	check(&whole, HPX_ACCESS_JSON,
	      "{\"time\":\"2025-11-18T08:12:33.250Z\",\"peer\":\"127.0.0.1\",\"method\":\"POST\","
	      "\"route\":\"POST /pay\",\"status\":201,\"did\":\"executed\",\"attempt\":2,"
	      "\"operation\":\"ab.cd\",\"tenant\":\"2f183a4e6449\",\"whole_ms\":12.345,"
	      "\"reserve_ms\":0.001,\"upstream_ms\":10.000,\"complete_ms\":0.999,\"bytes_in\":0,"
	      "\"bytes_out\":18446744073709551615,\"trace\":\"4bf92f3577b34da6a3ce929d0e0e4736\"}\n");
	check(&whole, HPX_ACCESS_TEXT,
	      "time=2025-11-18T08:12:33.250Z peer=127.0.0.1 method=\"POST\" route=\"POST /pay\" "
	      "status=201 did=executed attempt=2 operation=ab.cd tenant=2f183a4e6449 "
	      "whole_ms=12.345 reserve_ms=0.001 upstream_ms=10.000 complete_ms=0.999 bytes_in=0 "
	      "bytes_out=18446744073709551615 trace=4bf92f3577b34da6a3ce929d0e0e4736\n");
	check(&bare, HPX_ACCESS_TEXT,
	      "time=2025-11-18T08:12:33Z method=\"-\" status=400 did=refused code=bad_request "
	      "whole_ms=0.000 bytes_in=0 bytes_out=0\n");
	check(&whole, HPX_ACCESS_TERMINAL, "08:12:33 201 executed     12.3 ms  POST /pay  attempt 2\n");
	check(&whole, HPX_ACCESS_COLOURED,
	      "\033[2m08:12:33 \033[0m\033[32m201 executed\033[0m     12.3 ms  POST /pay  attempt 2\n");
	check(&bare, HPX_ACCESS_TERMINAL, "08:12:33 400 refused       0.0 ms  - -  bad_request\n");
}

static void hostile_bytes(void **state)
{
	struct hpx_access_line line = bare;
	(void)state;
	line.method = HPX_SPAN("A\"\n\\\x1b[31m\xff");
	line.peer = HPX_SPAN("\r\n");
	check(&line, HPX_ACCESS_JSON,
	      "{\"time\":\"2025-11-18T08:12:33Z\",\"peer\":\"??\",\"method\":\"A\\\"?\\\\?[31m?\","
	      "\"status\":400,\"did\":\"refused\",\"code\":\"bad_request\",\"whole_ms\":0.000,"
	      "\"bytes_in\":0,\"bytes_out\":0}\n");
}

/* Every field as long as it can be. */
static void long_fields(void **state)
{
	static char text[5000];
	struct hpx_access_line line = whole;
	struct hpx_buffer out;
	(void)state;
	memset(text, '"', sizeof(text));
	line.method = line.route = hpx_span(text, sizeof(text));
	line.operation = hpx_span(text, 97);
	line.peer = hpx_span(text, 47);
	hpx_buffer_init(&out, 4096);
	assert_status(hpx_access_line_print(&line, HPX_ACCESS_JSON, &out), HPX_OK);
	assert_true(out.len < HPX_LOG_LINE_MAX);
	assert_memory_equal(out.ptr + out.len - 5, "36\"}\n", 5);
	/* A buffer without room stays as it was. */
	out.max = out.len + 10;
	size_t before = out.len;
	assert_status(hpx_access_line_print(&line, HPX_ACCESS_JSON, &out), HPX_TOO_LARGE);
	assert_int_equal(out.len, before);
	hpx_buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats),
		cmocka_unit_test(hostile_bytes),
		cmocka_unit_test(long_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
