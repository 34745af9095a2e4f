/* Shows which bytes are a PROXY header of version 1 or 2 and which address it names, that
 * a header in parts is waited for byte by byte, and that nothing else is taken for one. */
#include "../test.h"

#include "net/proxy_header.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define V2 "\r\n\r\n\0\r\nQUIT\n"
#define BYTES(text) hpx_span(text, sizeof(text) - 1)
#define IPV4_BLOCK "\xc0\0\x02\x01\x0a\0\0\x01\x30\x39\0\x50"
#define IPV6_BLOCK \
	"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01" \
	"\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02\x30\x39\0\x50"
#define MAPPED_BLOCK \
	"\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\x02\x07" \
	"\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x01\x30\x39\0\x50"

static const struct {
	struct hpx_span bytes;
	const char *peer; /* NULL: no header */
} rows[] = {
	{ HPX_SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 12345 80\r\n"), "192.0.2.1" },
	{ HPX_SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 0 65535\r\n"), "192.0.2.1" },
	{ HPX_SPAN_INIT("PROXY TCP6 2001:db8::1 2001:DB8::2 12345 80\r\n"), "2001:db8::1" },
	{ HPX_SPAN_INIT("PROXY TCP6 2001:0db8:0:0:0:0:0:1 ::1 1 2\r\n"), "2001:db8::1" },
	{ HPX_SPAN_INIT("PROXY UNKNOWN\r\n"), "" },
	{ HPX_SPAN_INIT("PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n"), "" },
	{ HPX_SPAN_INIT("PROXY UNKNOWNX\r\n"), NULL },
	{ HPX_SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 12345\r\n"), NULL },
	{ HPX_SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 12345 80 \r\n"), NULL },
	{ HPX_SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 12345 80 1\r\n"), NULL },
	{ HPX_SPAN_INIT("PROXY TCP4  192.0.2.1 10.0.0.1 12345 80\r\n"), NULL },
	{ HPX_SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 65536 80\r\n"), NULL },
	{ HPX_SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 012 80\r\n"), NULL },
	{ HPX_SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 -1 80\r\n"), NULL },
	{ HPX_SPAN_INIT("PROXY TCP4 192.0.2 10.0.0.1 1 80\r\n"), NULL },
	{ HPX_SPAN_INIT("PROXY TCP4 2001:db8::1 10.0.0.1 1 80\r\n"), NULL },
	{ HPX_SPAN_INIT("PROXY TCP6 192.0.2.1 10.0.0.1 1 80\r\n"), NULL },
	{ HPX_SPAN_INIT("PROXY TCP5 192.0.2.1 10.0.0.1 1 80\r\n"), NULL },
	{ HPX_SPAN_INIT("PROXY tcp4 192.0.2.1 10.0.0.1 1 80\r\n"), NULL },
	{ HPX_SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 1 80\n"), NULL },
	{ HPX_SPAN_INIT("PROXY TCP4 192.0.2.1 10.0.0.1 1 80\rX"), NULL },
	{ HPX_SPAN_INIT("PROXY TCP4 192.0.2.1\0 10.0.0.1 1 80\r\n"), NULL },
	{ HPX_SPAN_INIT("PROXY\r\n"), NULL },
	{ HPX_SPAN_INIT("proxy TCP4 192.0.2.1 10.0.0.1 1 80\r\n"), NULL },
	{ HPX_SPAN_INIT("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), NULL },
	{ HPX_SPAN_INIT("\x16\x03\x01\x02\0\x01\0\x01\xfc"), NULL },
	{ HPX_SPAN_INIT(V2 "\x21\x11\0\x0c" IPV4_BLOCK), "192.0.2.1" },
	{ HPX_SPAN_INIT(V2 "\x21\x21\0\x24" IPV6_BLOCK), "2001:db8::1" },
	{ HPX_SPAN_INIT(V2 "\x21\x21\0\x24" MAPPED_BLOCK), "192.0.2.7" },
	/* An extension behind the addresses. */
	{ HPX_SPAN_INIT(V2 "\x21\x11\0\x11" IPV4_BLOCK "\x04\0\x02\0\0"), "192.0.2.1" },
	/* LOCAL, with and without a block; unspecified. */
	{ HPX_SPAN_INIT(V2 "\x20\0\0\0"), "" },
	{ HPX_SPAN_INIT(V2 "\x20\x11\0\x0c" IPV4_BLOCK), "" },
	{ HPX_SPAN_INIT(V2 "\x21\0\0\0"), "" },
	/* Too short a block, a datagram, an unknown version, command, family, transport. */
	{ HPX_SPAN_INIT(V2 "\x21\x11\0\x0b" IPV4_BLOCK), NULL },
	{ HPX_SPAN_INIT(V2 "\x21\x21\0\x0c" IPV4_BLOCK), NULL },
	{ HPX_SPAN_INIT(V2 "\x21\x31\0\x0c" IPV4_BLOCK), NULL },
	{ HPX_SPAN_INIT(V2 "\x21\x12\0\x0c" IPV4_BLOCK), NULL },
	{ HPX_SPAN_INIT(V2 "\x11\x11\0\x0c" IPV4_BLOCK), NULL },
	{ HPX_SPAN_INIT(V2 "\x22\x11\0\x0c" IPV4_BLOCK), NULL },
	{ HPX_SPAN_INIT(V2 "\x21\x41\0\x0c" IPV4_BLOCK), NULL },
	{ HPX_SPAN_INIT(V2 "\x21\x13\0\x0c" IPV4_BLOCK), NULL },
	/* Longer than any load balancer's. */
	{ HPX_SPAN_INIT(V2 "\x21\x11\xff\xff" IPV4_BLOCK), NULL },
	{ HPX_SPAN_INIT("\r\n\r\n\0\r\nQUIT\r\x21\x11\0\x0c" IPV4_BLOCK), NULL },
};

static void headers_are_read_strictly(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_proxy_header header = { .bytes = 0 };
		enum hpx_proxy_result result = hpx_proxy_header_read(rows[i].bytes, &header);
		bool want = rows[i].peer != NULL;
		if ((result == HPX_PROXY_DONE) != want || (!want && result == HPX_PROXY_MORE && memchr(rows[i].bytes.ptr, '\r', rows[i].bytes.len) != NULL))
			fail_msg("row %zu: got %d", i, result);
		if (want && (strcmp(header.peer, rows[i].peer) != 0 || header.bytes != rows[i].bytes.len))
			fail_msg("row %zu: got \"%s\" of %zu bytes, want \"%s\" of %zu", i, header.peer,
				 header.bytes, rows[i].peer, rows[i].bytes.len);
	}
}

/* Each beginning of a good header asks for more, and the bytes behind it are not its own. */
static void a_header_in_parts_is_waited_for(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_proxy_header header;
		char longer[256];
		if (rows[i].peer == NULL)
			continue;
		for (size_t len = 0; len < rows[i].bytes.len; len++)
			if (hpx_proxy_header_read(hpx_span_first(rows[i].bytes, len), &header) != HPX_PROXY_MORE)
				fail_msg("row %zu, %zu bytes", i, len);
		memcpy(longer, rows[i].bytes.ptr, rows[i].bytes.len);
		memcpy(longer + rows[i].bytes.len, "GET ", 4);
		assert_int_equal(hpx_proxy_header_read(hpx_span(longer, rows[i].bytes.len + 4), &header), HPX_PROXY_DONE);
		assert_int_equal(header.bytes, rows[i].bytes.len);
	}
}

static void a_line_without_an_end_is_given_up(void **state)
{
	char line[200];
	struct hpx_proxy_header header;
	(void)state;
	memset(line, 'f', sizeof(line));
	memcpy(line, "PROXY UNKNOWN ", 14);
	assert_int_equal(hpx_proxy_header_read(hpx_span(line, 106), &header), HPX_PROXY_MORE);
	assert_int_equal(hpx_proxy_header_read(hpx_span(line, 107), &header), HPX_PROXY_BAD);
	memcpy(line + 105, "\r\n", 2);
	assert_int_equal(hpx_proxy_header_read(hpx_span(line, 107), &header), HPX_PROXY_DONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_read_strictly),
		cmocka_unit_test(a_header_in_parts_is_waited_for),
		cmocka_unit_test(a_line_without_an_end_is_given_up),
	};
	return cmocka_run_group_tests_name("proxy_header", tests, NULL, NULL);
}
