/* Shows which requests are the same operation sent twice and which are not,
 * rule by rule. */
#include "../test.h"

#define ZLIB_CONST
#include <stdlib.h>
#include <zlib.h>

#include "core/fingerprint.h"

#define WORK_MAX (1u << 20)
#define NONE \
	{ \
		NULL, 0 \
	}
#define S(literal) HPX_SPAN_INIT(literal)

static const struct hpx_span ignore[] = { S("/sent_at") };
static const struct hpx_span headers[] = { S("x-currency"), S("x-note") };
static const struct hpx_span headers_again[] = { S("x-note"), S("x-currency") };
/* The version is put in when they are used. */
static const struct hpx_recipe plain;
static const struct hpx_recipe ignoring = { .ignore = ignore, .ignore_count = 1 };
static const struct hpx_recipe with_headers = { .headers = headers, .header_count = 2 };
static const struct hpx_recipe with_headers_again = { .headers = headers_again, .header_count = 2 };

static const struct hpx_span only[] = { S("/amount"), S("/to/id"), S("/items/0") };
static const struct hpx_span only_again[] = { S("/items/0"), S("/amount"), S("/to/id") };
static const struct hpx_recipe selecting = { .only = only, .only_count = 3 };
static const struct hpx_recipe selecting_again = { .only = only_again, .only_count = 3 };

/* The recipes' version in the tests that hold for each. */
static unsigned version = HPX_RECIPE_VERSION;

struct request {
	struct hpx_span method, path, query, type, encoding, body;
	const struct hpx_recipe *recipe; /* NULL: the plain one */
	struct hpx_span currency;
	struct hpx_span override[HPX_METHOD_OVERRIDE_COUNT];
};

static struct hpx_span header_of(void *user, struct hpx_span name)
{
	const struct request *request = user;

	if (hpx_span_eq(name, HPX_SPAN("x-currency")))
		return request->currency;
	for (size_t i = 0; i < HPX_METHOD_OVERRIDE_COUNT; i++)
		if (version > 1 && hpx_span_eq(name, hpx_method_override[i]))
			return request->override[i];
	assert_span(name, "x-note");
	return (struct hpx_span)NONE;
}

static void fingerprint_within(const struct request *request, size_t max, uint8_t *ret)
{
	struct request copy = *request;
	struct hpx_meaning meaning = { request->method, request->path, request->query,
				       request->type, request->encoding, request->body, header_of, &copy };

	struct hpx_recipe recipe = request->recipe ? *request->recipe : plain;

	recipe.version = version;
	assert_status(hpx_fingerprint(&recipe, &meaning, max, ret), HPX_OK);
}

static bool same(const struct request *a, const struct request *b)
{
	uint8_t x[HPX_SHA256_SIZE];
	uint8_t y[HPX_SHA256_SIZE];

	fingerprint_within(a, WORK_MAX, x);
	fingerprint_within(b, WORK_MAX, y);
	return memcmp(x, y, sizeof(x)) == 0;
}

#define JSON(body) \
	{ \
		S("POST"), S("/p"), NONE, S("application/json"), NONE, S(body), NULL, NONE, \
		{ \
			NONE \
		} \
	}
#define QUERY(query) \
	{ \
		S("POST"), S("/p"), query, NONE, NONE, S(""), NULL, NONE, \
		{ \
			NONE \
		} \
	}
#define TYPED(type, body) \
	{ \
		S("POST"), S("/p"), NONE, type, NONE, S(body), NULL, NONE, \
		{ \
			NONE \
		} \
	}
#define CODED(coding, body) \
	{ \
		S("POST"), S("/p"), NONE, NONE, coding, S(body), NULL, NONE, \
		{ \
			NONE \
		} \
	}
#define BY_RECIPE(recipe, body) \
	{ \
		S("POST"), S("/p"), NONE, S("application/json"), NONE, S(body), recipe, NONE, \
		{ \
			NONE \
		} \
	}
#define IGNORING(body) BY_RECIPE(&ignoring, body)
#define SELECTING(body) BY_RECIPE(&selecting, body)
#define HEADER(recipe, value) \
	{ \
		S("POST"), S("/p"), NONE, NONE, NONE, S(""), recipe, value, \
		{ \
			NONE \
		} \
	}
#define FORM S("application/x-www-form-urlencoded")

static const struct {
	const char *what;
	bool same;
	struct request a, b;
} rows[] = {
	{ "itself", true, JSON("{}"), JSON("{}") },
	{ "method", false, JSON("{}"), { S("PATCH"), S("/p"), NONE, S("application/json"), NONE, S("{}"), NULL, NONE, { NONE } } },
	{ "path", false, JSON("{}"), { S("POST"), S("/q"), NONE, S("application/json"), NONE, S("{}"), NULL, NONE, { NONE } } },
	{ "a path and a method of the same bytes", false, { S("POST"), S("/p"), NONE, NONE, NONE, S(""), NULL, NONE, { NONE } }, { S("POST/"), S("p"), NONE, NONE, NONE, S(""), NULL, NONE, { NONE } } },
	/* What others get wrong, 12: the query counts. */
	{ "query", false, QUERY(S("a=1")), QUERY(S("a=2")) },
	{ "query absent", false, QUERY(S("a=1")), QUERY(NONE) },
	{ "query empty", false, QUERY(S("")), QUERY(NONE) },
	{ "query order, distinct names", true, QUERY(S("a=1&b=2")), QUERY(S("b=2&a=1")) },
	{ "query order, a name twice", false, QUERY(S("a=1&a=2")), QUERY(S("a=2&a=1")) },
	{ "query spelling", true, QUERY(S("a=%41")), QUERY(S("%61=A")) },
	{ "query with a bad escape: raw", false, QUERY(S("a=%&b=1")), QUERY(S("b=1&a=%")) },
	{ "query a and a=", false, QUERY(S("a")), QUERY(S("a=")) },
	/* The media type without parameters. */
	{ "type parameters", true, TYPED(S("application/json"), "{}"),
	  TYPED(S("application/json; charset=utf-8"), "{}") },
	{ "type case", true, TYPED(S("text/plain"), "x"), TYPED(S("Text/PLAIN ;q"), "x") },
	{ "type", false, TYPED(S("text/plain"), "x"), TYPED(S("text/html"), "x") },
	{ "type absent", false, TYPED(S("text/plain"), "x"), TYPED(NONE, "x") },
	{ "type empty", false, TYPED(S(""), "x"), TYPED(NONE, "x") },
	/* JSON: what others get wrong, 18, and amounts. */
	{ "member order", true, JSON("{\"a\":1,\"b\":2}"), JSON("{ \"b\":2, \"a\":1 }") },
	{ "element order", false, JSON("[1,2]"), JSON("[2,1]") },
	{ "spelling of a string", true, JSON("\"\\u0061\""), JSON("\"a\"") },
	{ "1 and 1.0", true, JSON("{\"a\":1}"), JSON("{\"a\":1.0}") },
	{ "1 and 1e0", true, JSON("{\"a\":1}"), JSON("{\"a\":1e0}") },
	{ "beyond a double", false, JSON("9007199254740993"), JSON("9007199254740992") },
	{ "a fraction beyond a double", false, JSON("1.000000000000000001"),
	  JSON("1.000000000000000002") },
	{ "1 and \"1\"", false, JSON("1"), JSON("\"1\"") },
	{ "null and absent", false, JSON("{\"a\":null}"), JSON("{}") },
	{ "+json", true, TYPED(S("application/vnd.api+json"), "{\"a\":1,\"b\":2}"),
	  TYPED(S("Application/Vnd.Api+JSON"), "{\"b\":2,\"a\":1}") },
	{ "not json", false, TYPED(S("application/jsonx"), "[1]"),
	  TYPED(S("application/jsonx"), "[ 1]") },
	/* No canonical form: the raw bytes. */
	{ "duplicate names", false, JSON("{\"a\":1,\"a\":2}"), JSON("{\"a\":1, \"a\":2}") },
	{ "duplicate names, same bytes", true, JSON("{\"a\":1,\"a\":2}"), JSON("{\"a\":1,\"a\":2}") },
	{ "invalid UTF-8", false, JSON("[\"\xff\"]"), JSON("[ \"\xff\"]") },
	{ "invalid JSON", false, JSON("{"), JSON("{ ") },
	{ "empty JSON body", false, JSON(""), JSON(" ") },
	/* Forms. */
	{ "form order", true, TYPED(FORM, "a=1&b=2"), TYPED(FORM, "b=2&a=1") },
	{ "form order, a name twice", false, TYPED(FORM, "a=1&a=2"), TYPED(FORM, "a=2&a=1") },
	{ "form with a bad escape", false, TYPED(FORM, "a=%&b=1"), TYPED(FORM, "b=1&a=%") },
	/* A raw body that spells a canonical form is not that form. */
	{ "raw against canonical", false, TYPED(FORM, "a=1&z=%41"), TYPED(FORM, "1:a=1:11:z=1:A%") },
	/* Multipart: parts without the boundary. */
	{ "boundary", true,
	  TYPED(S("multipart/form-data; boundary=a"), "--a\r\nX: 1\r\n\r\nv\r\n--a--\r\n"),
	  TYPED(S("multipart/form-data; boundary=\"b\""), "--b\r\nx:1\r\n\r\nv\r\n--b--\r\n") },
	{ "a part's content", false,
	  TYPED(S("multipart/form-data; boundary=a"), "--a\r\nX: 1\r\n\r\nv\r\n--a--\r\n"),
	  TYPED(S("multipart/form-data; boundary=a"), "--a\r\nX: 1\r\n\r\nw\r\n--a--\r\n") },
	{ "not multipart after all", false, TYPED(S("multipart/form-data; boundary=a"), "x"),
	  TYPED(S("multipart/form-data; boundary=a"), "y") },
	/* Anything else: raw. */
	{ "other types", false, TYPED(S("text/plain"), "{\"a\":1}"),
	  TYPED(S("text/plain"), "{ \"a\":1}") },
	/* Codings that are not undone count. */
	{ "identity", true, CODED(S("identity"), "x"), CODED(NONE, "x") },
	{ "br", false, CODED(S("br"), "x"), CODED(NONE, "x") },
	{ "br, in any case", true, CODED(S("br"), "x"), CODED(S(" BR"), "x") },
	{ "gzip that is none", false, CODED(S("gzip"), "x"), CODED(NONE, "x") },
	{ "gzip and deflate that are none", false, CODED(S("gzip"), "x"), CODED(S("deflate"), "x") },
	/* Members ignored, headers included. */
	{ "an ignored member", true, IGNORING("{\"a\":1,\"sent_at\":5}"),
	  IGNORING("{\"sent_at\":6,\"a\":1}") },
	{ "an ignored member, absent", true, IGNORING("{\"a\":1,\"sent_at\":5}"),
	  IGNORING("{\"a\":1}") },
	{ "another member", false, IGNORING("{\"a\":1,\"sent_at\":5}"),
	  IGNORING("{\"a\":2,\"sent_at\":5}") },
	{ "another recipe", false, IGNORING("{\"a\":1}"), JSON("{\"a\":1}") },
	/* Members selected: nothing else counts of a JSON body. */
	{ "a member beside the selection", true, SELECTING("{\"amount\":1,\"note\":1}"),
	  SELECTING("{\"note\":2,\"amount\":1.0}") },
	{ "a selected member", false, SELECTING("{\"amount\":1}"), SELECTING("{\"amount\":2}") },
	{ "a selected member, absent", false, SELECTING("{\"amount\":1}"), SELECTING("{}") },
	{ "a selected member, null", false, SELECTING("{\"amount\":null}"), SELECTING("{}") },
	{ "a selected member, deeper", false, SELECTING("{\"to\":{\"id\":1}}"),
	  SELECTING("{\"to\":{\"id\":2}}") },
	{ "beside a deeper one", true, SELECTING("{\"to\":{\"id\":{\"b\":1,\"a\":[2]},\"x\":1}}"),
	  SELECTING("{\"to\":{\"x\":2,\"id\":{\"a\":[2.0],\"b\":1}}}") },
	{ "an element of an array", false, SELECTING("{\"items\":[1,2]}"),
	  SELECTING("{\"items\":[2,2]}") },
	{ "another element", true, SELECTING("{\"items\":[1,2]}"), SELECTING("{\"items\":[1,3]}") },
	{ "values under other pointers", false, SELECTING("{\"amount\":1}"),
	  SELECTING("{\"to\":{\"id\":1}}") },
	{ "a selection of no JSON", false, SELECTING("{\"amount\":1"), SELECTING("{\"amount\":1 ") },
	{ "a selection in another order", true, SELECTING("{\"amount\":1,\"items\":[1]}"),
	  BY_RECIPE(&selecting_again, "{\"amount\":1,\"items\":[1]}") },
	{ "a header", false, HEADER(&with_headers, S("EUR")), HEADER(&with_headers, S("USD")) },
	{ "a header absent", false, HEADER(&with_headers, S("")), HEADER(&with_headers, NONE) },
	{ "a header that is not named", true, HEADER(NULL, S("EUR")), HEADER(NULL, S("USD")) },
	{ "headers in another order", true, HEADER(&with_headers, S("EUR")),
	  HEADER(&with_headers_again, S("EUR")) },
};

/* What recipes of version 1 take for the same, and later ones do not. */
#define OVERRIDE(a, b, c) \
	{ \
		S("POST"), S("/p"), NONE, NONE, NONE, S(""), NULL, NONE, \
		{ \
			a, b, c \
		} \
	}
#define PART "--a\r\nX: 1\r\n\r\nv\r\n--a--"
#define MIXED(body) TYPED(S("multipart/mixed; boundary=a"), body)
static const struct {
	const char *what;
	bool same;
	struct request a, b;
} newer_rows[] = {
	{ "an override", false, OVERRIDE(S("DELETE"), NONE, NONE), OVERRIDE(NONE, NONE, NONE) },
	{ "another override", false, OVERRIDE(S("DELETE"), NONE, NONE),
	  OVERRIDE(S("PATCH"), NONE, NONE) },
	{ "the same in another header", false, OVERRIDE(S("DELETE"), NONE, NONE),
	  OVERRIDE(NONE, S("DELETE"), NONE) },
	{ "the third header", false, OVERRIDE(NONE, NONE, S("PUT")), OVERRIDE(NONE, NONE, NONE) },
	{ "an empty override", false, OVERRIDE(S(""), NONE, NONE), OVERRIDE(NONE, NONE, NONE) },
	{ "the same override", true, OVERRIDE(S("PUT"), NONE, S("PUT")),
	  OVERRIDE(S("PUT"), NONE, S("PUT")) },
	{ "an epilogue", false, MIXED(PART "\r\nmore"), MIXED(PART "\r\n") },
	{ "another epilogue", false, MIXED(PART "\r\nmore"), MIXED(PART "\r\nless") },
	{ "a part behind the end", false, MIXED(PART "\r\n" PART), MIXED(PART) },
	{ "a preamble", false, MIXED("before\r\n" PART), MIXED(PART) },
	{ "the end of the last line", true, MIXED(PART "\r\n"), MIXED(PART) },
};

static void every_pair_is_told_apart_or_not(void **state)
{
	(void)state;
	for (version = 1; version <= HPX_RECIPE_VERSION; version++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			if (same(&rows[i].a, &rows[i].b) != rows[i].same)
				fail_msg("%s: got %s, want %s", rows[i].what,
					 rows[i].same ? "different" : "same",
					 rows[i].same ? "same" : "different");
	version = HPX_RECIPE_VERSION;
}

static void a_record_of_an_older_recipe_is_compared_by_it(void **state)
{
	size_t count = sizeof(newer_rows) / sizeof(newer_rows[0]);
	(void)state;
	for (size_t i = 0; i < 2 * count; i++) {
		size_t n = i / 2;
		version = i % 2 == 0 ? 1 : HPX_RECIPE_VERSION;
		bool want = version == 1 || newer_rows[n].same;
		if (same(&newer_rows[n].a, &newer_rows[n].b) != want)
			fail_msg("%s, version %u: want %s", newer_rows[n].what, version,
				 want ? "same" : "different");
	}
	version = HPX_RECIPE_VERSION;
}

/* `wrap` as deflateInit2 takes it: 31 gzip, 15 zlib, -15 neither. */
static struct hpx_span deflated(int wrap, struct hpx_span text, char *out, size_t size)
{
	z_stream stream = { .next_in = (const Bytef *)text.ptr };

	stream.avail_in = (uInt)text.len;
	stream.next_out = (Bytef *)out;
	stream.avail_out = (uInt)size;
	assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, wrap, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	deflateEnd(&stream);
	return hpx_span(out, size - stream.avail_out);
}

static const struct {
	int wrap;
	struct hpx_span coding;
} codings[] = { { 31, S("gzip") }, { 31, S("X-GZip") }, { 15, S("deflate") }, { -15, S("deflate") } };

static void a_coded_body_is_the_body(void **state)
{
	static const struct request text = JSON("{\"b\":1.0,\"a\":[2]}");
	static const struct request broken = JSON("{\"b\":");
	char bytes[256] = { 0 };
	(void)state;

	for (size_t i = 0; i < sizeof(codings) / sizeof(codings[0]); i++) {
		struct request coded = text;
		coded.encoding = codings[i].coding;
		coded.body = deflated(codings[i].wrap, HPX_SPAN("{\"a\":[2],\"b\":1}"), bytes,
				      sizeof(bytes));
		assert_true(same(&text, &coded));
		/* Without its end, or with something behind it, it is raw. */
		coded.body.len--;
		assert_false(same(&text, &coded));
		coded.body.len += 2;
		assert_false(same(&text, &coded));
		coded.body = deflated(codings[i].wrap, broken.body, bytes, sizeof(bytes));
		assert_true(same(&broken, &coded));
		coded.encoding = HPX_SPAN("gzip, gzip");
		assert_false(same(&broken, &coded));
	}
}

/* More than 64 times its size is not decoded, however much room there is; a document that
 * repeats itself as documents do is. */
static void the_ratio_is_bounded(void **state)
{
	enum { BIG = 4 << 20 };
	char *zeros = calloc(1, BIG), *bytes = malloc(BIG);
	uint8_t a[HPX_SHA256_SIZE], b[HPX_SHA256_SIZE];
	struct request coded = CODED(S("gzip"), "");
	struct request raw = CODED(NONE, "");
	(void)state;

	assert_non_null(zeros);
	assert_non_null(bytes);
	raw.body = hpx_span(zeros, BIG);
	coded.body = deflated(31, raw.body, bytes, BIG);
	fingerprint_within(&raw, BIG, a);
	fingerprint_within(&coded, BIG, b);
	assert_memory_not_equal(a, b, sizeof(a));
	/* Noise in every 128th byte: some 40 times. */
	for (unsigned i = 0, noise = 1; i < BIG; i += 128) {
		noise = noise * 1103515245u + 12345u;
		zeros[i] = (char)(noise >> 16);
	}
	coded.body = deflated(31, raw.body, bytes, BIG);
	assert_in_range(coded.body.len, BIG / 64 + 1, BIG / 16);
	fingerprint_within(&raw, BIG, a);
	fingerprint_within(&coded, BIG, b);
	assert_memory_equal(a, b, sizeof(a));
	free(zeros);
	free(bytes);
}

static void a_bomb_counts_as_it_came(void **state)
{
	static char zeros[1 << 16];
	char bytes[1024];
	uint8_t a[HPX_SHA256_SIZE];
	uint8_t b[HPX_SHA256_SIZE];
	struct request coded = CODED(S("gzip"), "");
	struct request raw = CODED(NONE, "");
	(void)state;

	raw.body = hpx_span(zeros, sizeof(zeros));
	coded.body = deflated(31, raw.body, bytes, sizeof(bytes));
	fingerprint_within(&raw, sizeof(zeros), a);
	fingerprint_within(&coded, sizeof(zeros), b);
	assert_memory_equal(a, b, sizeof(a));
	fingerprint_within(&raw, sizeof(zeros) - 1, a);
	fingerprint_within(&coded, sizeof(zeros) - 1, b);
	assert_memory_not_equal(a, b, sizeof(a));
	fingerprint_within(&coded, 0, a);
	assert_memory_equal(a, b, sizeof(a));
}

static void a_form_too_large_counts_as_it_came(void **state)
{
	static const struct request rows_a = JSON("{\"b\":1,\"a\":[2]}");
	static const struct request rows_b = JSON("{\"a\":[2],\"b\":1}");
	uint8_t a[HPX_SHA256_SIZE];
	uint8_t b[HPX_SHA256_SIZE];
	(void)state;

	for (size_t max = 0; max <= 16; max++) {
		fingerprint_within(&rows_a, max, a);
		fingerprint_within(&rows_b, max, b);
		bool equal = memcmp(a, b, sizeof(a)) == 0;
		if (equal != (max >= 15))
			fail_msg("within %zu: got %d", max, equal);
	}
}

/* Stored fingerprints outlive the program that made them: that of a version may
 * never change. They were computed by hand from the parts: recipe id, method,
 * path, query, media type, coding, body, headers, overrides. */
static void the_fingerprint_is_fixed(void **state)
{
	static const struct request request = { S("POST"), S("/v1/charges"), S("b=2&a=1"), S("application/json"), NONE, S("{\"amount\":1250.0,\"currency\":\"eur\"}"), &with_headers, S("EUR"), { NONE, S("PUT"), NONE } };
	static const struct request mixed = MIXED("p\r\n" PART "\r\ne");
	static const struct {
		unsigned version;
		const struct request *request;
		const char *hex;
	} fixed[] = {
		{ 1, &request, "6c730e9ddcadb8ced7c4679b14a1d47abaeac2f82dd81926da40881410e170d1" },
		{ 2, &request, "af7ba7b20f5de8651e4c4ec80e901379ad4305fd9750030a8a38a83e10f12a14" },
		{ 1, &mixed, "8380aed175bf3f0926e6450783e7423c927458fbb0ade3406cf2d83ed34bb6b2" },
		{ 2, &mixed, "c2da6759950bc9567b8b24052f216176ccddec257ed20c63820fc65d63178eb6" },
	};
	uint8_t digest[HPX_SHA256_SIZE];
	char hex[2 * HPX_SHA256_SIZE + 1];
	(void)state;
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		version = fixed[i].version;
		fingerprint_within(fixed[i].request, WORK_MAX, digest);
		hpx_hex_encode(digest, sizeof(digest), hex);
		assert_string_equal(hex, fixed[i].hex);
	}
	version = HPX_RECIPE_VERSION;
}

static void an_unknown_recipe_is_refused(void **state)
{
	struct hpx_recipe newer = { .version = HPX_RECIPE_VERSION + 1 };
	struct hpx_recipe none = { .version = 0 };
	struct hpx_meaning meaning = { .method = S("POST"), .path = S("/") };
	uint8_t digest[HPX_SHA256_SIZE];
	(void)state;
	assert_status(hpx_fingerprint(&newer, &meaning, WORK_MAX, digest), HPX_UNSUPPORTED);
	assert_status(hpx_fingerprint(&none, &meaning, WORK_MAX, digest), HPX_UNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_is_told_apart_or_not),
		cmocka_unit_test(a_record_of_an_older_recipe_is_compared_by_it),
		cmocka_unit_test(a_coded_body_is_the_body),
		cmocka_unit_test(the_ratio_is_bounded),
		cmocka_unit_test(a_bomb_counts_as_it_came),
		cmocka_unit_test(a_form_too_large_counts_as_it_came),
		cmocka_unit_test(the_fingerprint_is_fixed),
		cmocka_unit_test(an_unknown_recipe_is_refused),
	};
	return cmocka_run_group_tests_name("fingerprint", tests, NULL, NULL);
}
