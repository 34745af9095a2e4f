/* Shows that a document is read with the line of every value, in JSON and in YAML; that
 * aliases, depth and size are bounded; and that a broken one says its line. */
#include "../test.h"

#include "coverage/library.h"

struct book {
	struct hpx_library library;
};

static struct book *open_book(void)
{
	struct book *book = malloc(sizeof(*book));

	assert_non_null(book);
	hpx_library_init(&book->library);
	return book;
}

static void close_book(struct book *book)
{
	hpx_library_done(&book->library);
	free(book);
}

static const struct {
	const char *path;
	const char *text;
	const char *pointer;
	const char *want; /* the scalar's text; NULL: nothing is there */
	unsigned line;
} values[] = {
	{ "a.json", "{\n\"a\": {\n\"b\": \"x\"}}", "/a/b", "x", 3 },
	{ "a.json", "\xef\xbb\xbf{\"a\":1}", "/a", "1", 1 },
	{ "a.json", "{\"a\\u0062\":\n {\"c\":\n\"d\\u0065\"}}", "/ab/c", "de", 2 },
	{ "a.json", "{\"a\":[1,\n2]}", "/a/1", "2", 2 },
	{ "a.json", "{\"a/b\":{\"~\":1}}", "/a~1b/~0", "1", 1 },
	{ "a.json", "{\"a\":[1]}", "/a/1", NULL, 0 },
	{ "a.json", "{\"a\":[1]}", "/a/x", NULL, 0 },
	{ "a.json", "{\"a\":1}", "/a/b", NULL, 0 },
	{ "a.json", "{\"a\":1}", "a", NULL, 0 },
	{ "a.yaml", "a:\n  b: x\n", "/a/b", "x", 2 },
	{ "a.yaml", "{\"a\": {\"b\": \"x\"}} # flow\n", "/a/b", "x", 1 },
	{ "a.yaml", "a: &x\n  b: 1\nc: *x\n", "/c/b", "1", 2 },
	{ "a.yaml", "a: &x {b: 1}\nc:\n  <<: *x\n  d: 2\n", "/c/b", "1", 1 },
	{ "a.yaml", "a: &x {b: 1}\ne: &y {f: 3}\nc:\n  <<: [*x, *y]\n", "/c/f", "3", 2 },
	{ "a.yaml", "a: &x {b: 1}\nc:\n  <<: *x\n  b: 2\n", "/c/b", "2", 4 },
	{ "a.yaml", "200: ok\n", "/200", "ok", 1 },
	/* Without an ending, the first byte decides. */
	{ "a", " {\"a\": 1}", "/a", "1", 1 },
	{ "a", "a: 1", "/a", "1", 1 },
};

static void test_values(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct book *book = open_book();
		const struct hpx_document *document = hpx_library_add(
			&book->library, hpx_span_of(values[i].path), hpx_span_of(values[i].text));
		if (document == NULL)
			fail_msg("<%s>: %s", values[i].text, book->library.errors[0].reason.ptr);
		struct hpx_value_at value = hpx_value_follow(hpx_document_root(document),
							     hpx_span_of(values[i].pointer));
		assert_int_equal(hpx_value_there(value), values[i].want != NULL);
		if (values[i].want != NULL) {
			assert_span(hpx_value_text(value), values[i].want);
			assert_int_equal(hpx_value_line(value), values[i].line);
		}
		close_book(book);
	}
}

static const struct {
	const char *path;
	const char *text;
	unsigned line;
	const char *reason;
} broken[] = {
	{ "a.json", "{\n\"a\": \n}", 3, "this is not JSON" },
	{ "a.json", "{\"a\":1}\n\nx", 3, "this is not JSON" },
	{ "a.json", "", 1, "this is not JSON" },
	{ "a.json", "{\"a\":1,\n\"a\":2}", 2, "two members of the object that ends here have one name" },
	{ "a.yaml", "a: 1\nb: [\n", 3, "this is not YAML: while parsing a flow node, did not find expected node content" },
	{ "a.yaml", "a: 1\nb: 2\na: 3\n", 3, "\"a\" is given twice; the first is on line 1" },
	{ "a.yaml", "a: *x\n", 1, "an alias (*name) that nothing before it has" },
	{ "a.yaml", "a: &x\n  b: *x\n", 2, "an alias (*name) inside what it names" },
	{ "a.yaml", "a: 1\n---\nb: 1\n", 2, "a second document (---) begins" },
	{ "a.yaml", "? [a]\n: b\n", 1, "the name of a member is a list or a mapping" },
	{ "a.yaml", "a: &x b\n*x : 1\n", 2, "an alias (*name) stands for a name of a member" },
	{ "a.yaml", "", 1, "the file is empty" },
	{ "a.yaml", "# nothing\n", 1, "the file is empty" },
};

static void test_broken(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		struct book *book = open_book();
		assert_null(hpx_library_add(&book->library, hpx_span_of(broken[i].path),
					    hpx_span_of(broken[i].text)));
		assert_int_equal(book->library.error_count, 1);
		assert_span(book->library.errors[0].reason, broken[i].reason);
		assert_int_equal(book->library.errors[0].line, broken[i].line);
		close_book(book);
	}
}

static void expect_refused(const char *path, struct hpx_buffer *text, const char *reason)
{
	struct book *book = open_book();

	assert_null(hpx_library_add(&book->library, hpx_span_of(path), hpx_buffer_span(text)));
	assert_span(book->library.errors[0].reason, reason);
	hpx_buffer_done(text);
	close_book(book);
}

/* Each list has ten of the one before: a thousand million values in ten lines. */
static void test_aliases_are_bounded(void **state)
{
	struct hpx_buffer text;

	(void)state;
	hpx_buffer_init(&text, 1 << 20);
	assert_status(hpx_buffer_text(&text, "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n"), HPX_OK);
	for (int i = 1; i < 10; i++) {
		assert_status(hpx_buffer_printf(&text, "a%d: &a%d [", i, i), HPX_OK);
		for (int j = 0; j < 10; j++)
			assert_status(hpx_buffer_printf(&text, "*a%d,", i - 1), HPX_OK);
		assert_status(hpx_buffer_text(&text, "]\n"), HPX_OK);
	}
	expect_refused("a.yaml", &text, "its aliases (*name) stand for too much");
}

static void test_depth_is_bounded(void **state)
{
	struct hpx_buffer text;

	(void)state;
	for (int yaml = 0; yaml < 2; yaml++) {
		hpx_buffer_init(&text, 1 << 20);
		for (int i = 0; i <= HPX_DOCUMENT_DEPTH_MAX; i++)
			assert_status(hpx_buffer_byte(&text, '['), HPX_OK);
		expect_refused(yaml ? "a.yaml" : "a.json", &text, "nested too deep");
	}
}

static void test_values_are_bounded(void **state)
{
	struct hpx_buffer text;

	(void)state;
	hpx_buffer_init(&text, (size_t)16 << 20);
	assert_status(hpx_buffer_byte(&text, '['), HPX_OK);
	for (size_t i = 0; i <= HPX_DOCUMENT_VALUES_MAX; i++)
		assert_status(hpx_buffer_text(&text, "1,"), HPX_OK);
	assert_status(hpx_buffer_text(&text, "1]"), HPX_OK);
	expect_refused("a.json", &text, "too many values");
}

static void test_size_is_bounded(void **state)
{
	struct hpx_buffer text;

	(void)state;
	hpx_buffer_init(&text, HPX_DOCUMENT_BYTES_MAX + 1);
	assert_status(hpx_buffer_reserve(&text, HPX_DOCUMENT_BYTES_MAX + 1), HPX_OK);
	memset(text.ptr, ' ', HPX_DOCUMENT_BYTES_MAX + 1);
	text.len = HPX_DOCUMENT_BYTES_MAX + 1;
	expect_refused("a.json", &text, "larger than 64 MiB");
}

/* References: to another file of the folder, through ~1 and %7B; never out of the folder,
 * to a URL, or in a circle. */
static void test_references(void **state)
{
	static const struct {
		const char *reference;
		const char *want;
	} rows[] = {
		{ "#/x", "here" },
		{ "other.yaml#/y", "there" },
		{ "./other.yaml#/y", "there" },
		{ "#/paths/~1p~1%7Bid%7D", "path" },
		{ "../other.yaml#/y", NULL },
		{ "sub/../../other.yaml#/y", NULL },
		{ "/etc/passwd", NULL },
		{ "https://example.com/a.yaml#/y", NULL },
		{ "missing.yaml#/y", NULL },
		{ "#/nowhere", NULL },
		{ "#/circle", NULL },
		{ "#", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct book *book = open_book();
		char text[512];
		snprintf(text, sizeof(text),
			 "{\"$ref\":\"%s\",\"x\":{\"is\":\"here\"},\"circle\":{\"$ref\":\"#/circle\"},"
			 "\"paths\":{\"/p/{id}\":{\"is\":\"path\"}}}",
			 rows[i].reference);
		assert_non_null(hpx_library_add(&book->library, HPX_SPAN("folder/other.yaml"),
						HPX_SPAN("y:\n  is: there\n")));
		const struct hpx_document *document = hpx_library_add(
			&book->library, HPX_SPAN("folder/a.json"), hpx_span_of(text));
		struct hpx_value_at found =
			hpx_library_resolve(&book->library, hpx_document_root(document));
		if (hpx_value_there(found) != (rows[i].want != NULL))
			fail_msg("%s: %s", rows[i].reference, rows[i].want ? "not found" : "found");
		if (rows[i].want != NULL)
			assert_span(hpx_value_member_text(found, "is"), rows[i].want);
		close_book(book);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_aliases_are_bounded),
		cmocka_unit_test(test_depth_is_bounded),
		cmocka_unit_test(test_values_are_bounded),
		cmocka_unit_test(test_size_is_bounded),
		cmocka_unit_test(test_references),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
