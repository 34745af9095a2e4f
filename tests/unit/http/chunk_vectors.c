/* Chunked bodies: sizes, extensions, data, trailers. */
#include "vectors.h"

#define HEAD "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
#define GOOD(rule, chunks, body, rest) REQ(rule, HEAD chunks, CHUNKED, KEEP, body, rest)
#define REFUSED(rule, chunks) BAD(rule, HEAD chunks, CHUNK)
#define LAST "0\r\n\r\n"
#define HELLO "5\r\nhello\r\n"

static const struct vector rows[] = {
	GOOD("RFC 9112 §7.1", HELLO LAST, "hello", 0),
	GOOD("RFC 9112 §7.1 several", HELLO "1\r\n,\r\n" HELLO LAST, "hello,hello", 0),
	GOOD("RFC 9112 §7.1 none", LAST, "", 0),
	GOOD("RFC 9112 §7.1 next message behind", LAST "GET", "", 3),
	GOOD("RFC 9112 §7.1 either case", "a\r\n0123456789\r\nA\r\n0123456789\r\n" LAST,
	     "01234567890123456789", 0),
	GOOD("RFC 9112 §7.1 sixteen digits", "0000000000000005\r\nhello\r\n0000000000000000\r\n\r\n",
	     "hello", 0),
	GOOD("RFC 9112 §7.1 line ends in the data", "4\r\n\r\n\r\n\r\n" LAST, "\r\n\r\n", 0),
	REFUSED("RFC 9112 §7.1 no size", "\r\n"),
	REFUSED("RFC 9112 §7.1 not hexadecimal", "g\r\n"),
	REFUSED("RFC 9112 §7.1 0x", "0x5\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1 sign", "+5\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1 negative", "-5\r\n"),
	REFUSED("RFC 9112 §7.1 underscore", "1_0\r\n"),
	REFUSED("RFC 9112 §7.1 seventeen digits", "00000000000000005\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1 overflow", "10000000000000005\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1 leading space", " 5\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1 trailing space", "5 \r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1 bare LF", "5\nhello\r\n"),
	REFUSED("RFC 9112 §7.1 bare CR", "5\rhello\r\n"),
	REFUSED("RFC 9112 §7.1 data longer than its size", "5\r\nhello!\r\n"),
	REFUSED("RFC 9112 §7.1 data ended by LF", "5\r\nhello\n"),
	REFUSED("RFC 9112 §7.1 data ended by CR", "5\r\nhello\r0"),
	REFUSED("RFC 9112 §7.1 data not ended", "5\r\nhello" LAST),
	BAD("RFC 9112 §8 huge and cut short", HEAD "ffffffffffffffff\r\nhello", INCOMPLETE),

	GOOD("RFC 9112 §7.1.1 name", "5;a\r\nhello\r\n" LAST, "hello", 0),
	GOOD("RFC 9112 §7.1.1 value", "5;a=b\r\nhello\r\n" LAST, "hello", 0),
	GOOD("RFC 9112 §7.1.1 several", "5;a=b;c;d=e\r\nhello\r\n0;x=y\r\n\r\n", "hello", 0),
	GOOD("RFC 9112 §7.1.1 quoted", "5;a=\"b c;\\\" \\\\ \200\"\r\nhello\r\n" LAST, "hello", 0),
	GOOD("RFC 9112 §7.1.1 quoted, empty", "5;a=\"\";b\r\nhello\r\n" LAST, "hello", 0),
	GOOD("RFC 9112 §7.1.1 bad white space", "5 ; a = b ;\tc\t=\t\"d\" ;e\r\nhello\r\n" LAST, "hello",
	     0),
	REFUSED("RFC 9112 §7.1.1 no name", "5;\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1.1 no name before =", "5;=b\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1.1 no value", "5;a=\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1.1 white space at the end", "5;a \r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1.1 white space behind a value", "5;a=b \r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1.1 two names", "5;a b\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1.1 no semicolon", "5 a\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1.1 bare LF", "5;a\nhello\r\n"),
	REFUSED("RFC 9112 §7.1.1 bare LF within quotes", "5;a=\"\n\"\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1.1 CR LF within quotes", "5;a=\"\r\n\"\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1.1 escaped CR", "5;a=\"\\\r\n\"\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1.1 NUL", "5;a\0\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1.1 bare CR", "5;a\rb\r\nhello\r\n"),
	REFUSED("RFC 9112 §7.1.1 text behind the quotes", "5;a=\"b\"c\r\nhello\r\n"),

	GOOD("RFC 9112 §7.1.2 trailer", "0\r\nX: y\r\nZ:\r\n\r\n", "", 0),
	GOOD("RFC 9112 §7.1.2 a length in the trailer is dropped", "0\r\nContent-Length: 5\r\n\r\nGET",
	     "", 3),
	BAD("RFC 9112 §7.1.2 bare LF", HEAD "0\r\n\n", TRAILER),
	BAD("RFC 9112 §7.1.2 bare LF behind a field", HEAD "0\r\nX: y\n\r\n", TRAILER),
	BAD("RFC 9112 §7.1.2 folded", HEAD "0\r\nX: y\r\n z\r\n\r\n", TRAILER),
	BAD("RFC 9112 §7.1.2 no colon", HEAD "0\r\nGET / HTTP/1.1\r\n\r\n", TRAILER),
	BAD("RFC 9112 §7.1.2 space before the colon", HEAD "0\r\nX : y\r\n\r\n", TRAILER),
	BAD("RFC 9112 §7.1.2 control byte", HEAD "0\r\nX: \001\r\n\r\n", TRAILER),
};

VECTOR_LIST(chunk);
