/* Header lines of an application, and what is stored of them: in C and in SQL. */
#ifndef HPX_TESTS_UNIT_HTTP_KEPT_VECTORS_H
#define HPX_TESTS_UNIT_HTTP_KEPT_VECTORS_H

#define NOT_A_HEADER NULL

static const struct {
	const char *lines;
	const char *kept;
} kept_vectors[] = {
	{ "", "" },
	{ "Content-Type: text/plain", "Content-Type: text/plain\r\n" },
	{ "Content-Type: text/plain\r\n", "Content-Type: text/plain\r\n" },
	{ "A: 1\nB: 2\r\nC: 3", "A: 1\r\nB: 2\r\nC: 3\r\n" },
	{ "A: 1\n\n\r\nB: 2\n", "A: 1\r\nB: 2\r\n" },
	{ "A:1\nB: \t 2 \t\nC:\nD:  ", "A: 1\r\nB: 2\r\nC: \r\nD: \r\n" },
	{ "A: x:y, \"z\"\tw", "A: x:y, \"z\"\tw\r\n" },
	{ "A: gr\xc3\xbc\xc3\x9f", "A: gr\xc3\xbc\xc3\x9f\r\n" },
	{ "Set-Cookie: a=b\nLocation: /p/1\nDATE: now\nHapax-Operation: x", "Location: /p/1\r\n" },
	{ "Idempotent-Replayed: true\nProxy-Status: x\nRateLimit-Policy: y", "" },
	{ "no colon", NOT_A_HEADER },
	{ ": no name", NOT_A_HEADER },
	{ "A : space before the colon", NOT_A_HEADER },
	{ " folded: line", NOT_A_HEADER },
	{ "A: 1\n folded", NOT_A_HEADER },
	{ "A: bare\rCR", NOT_A_HEADER },
	{ "A: CR at the end\r", NOT_A_HEADER },
	{ "A: two CRs\r\r\n", NOT_A_HEADER },
	{ "A: \x01", NOT_A_HEADER },
	{ "A: \x7f", NOT_A_HEADER },
	{ "A: \xff", NOT_A_HEADER },
	{ "A\xc3\xbc: name", NOT_A_HEADER },
	{ "Date: \x01", NOT_A_HEADER },
};
#define KEPT_VECTORS (sizeof(kept_vectors) / sizeof(kept_vectors[0]))

#endif
