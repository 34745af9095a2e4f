/* Shows that whichever allocation fails, a fingerprint fails with it and
 * nothing is lost: running out of memory never makes a different request the
 * same, or the same one different. */
#include "failing_memory.h"

#define ZLIB_CONST
#include <zlib.h>

#include "core/fingerprint.h"

#define JSON "{\"b\\n\":[[[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]]],\"a\":\"\\u00e9\"}"

static const struct {
	const char *type;
	const char *body;
} rows[] = {
	{ "application/json", JSON },
	{ "application/x-www-form-urlencoded", "b=%41&a=2" },
	{ "multipart/form-data; boundary=b", "--b\r\nA: 1\r\n\r\nx\r\n--b--" },
	{ "text/plain", "x" },
};

static struct hpx_span gzip(struct hpx_span text, char *out, size_t size)
{
	z_stream stream = { .next_in = (const Bytef *)text.ptr };

	stream.avail_in = (uInt)text.len;
	stream.next_out = (Bytef *)out;
	stream.avail_out = (uInt)size;
	assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	deflateEnd(&stream);
	return hpx_span(out, size - stream.avail_out);
}

static struct hpx_span no_header(void *user, struct hpx_span name)
{
	(void)user;
	(void)name;
	return (struct hpx_span){ NULL, 0 };
}

/* Returns how many allocations it took until none failed any more. */
static size_t fail_each(const struct hpx_recipe *recipe, const struct hpx_meaning *meaning)
{
	uint8_t want[HPX_SHA256_SIZE];
	uint8_t got[HPX_SHA256_SIZE];
	enum hpx_status status = HPX_NOMEM;
	size_t n = 0;

	assert_status(hpx_fingerprint(recipe, meaning, 1 << 20, want), HPX_OK);
	while (status != HPX_OK) {
		allocations_left = n++;
		status = hpx_fingerprint(recipe, meaning, 1 << 20, got);
		allocations_left = SIZE_MAX;
		if (status != HPX_OK)
			assert_status(status, HPX_NOMEM);
	}
	assert_memory_equal(got, want, sizeof(got));
	return n - 1;
}

static void every_allocation_may_fail(void **state)
{
	static const struct hpx_span ignore[] = { HPX_SPAN_INIT("/x/y") };
	static const struct hpx_recipe recipe = { .version = HPX_RECIPE_VERSION, .ignore = ignore, .ignore_count = 1 };
	char coded[512];
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_span body = hpx_span_of(rows[i].body);
		struct hpx_meaning meaning = { HPX_SPAN_INIT("POST"), HPX_SPAN_INIT("/p"), HPX_SPAN_INIT("b=1&a=2"), hpx_span_of(rows[i].type), { NULL, 0 }, body, no_header, NULL };
		size_t plain = fail_each(&recipe, &meaning);
		meaning.content_encoding = HPX_SPAN("gzip");
		meaning.body = gzip(body, coded, sizeof(coded));
		size_t decoded = fail_each(&recipe, &meaning);
		if (plain < 3 || decoded <= plain)
			fail_msg("%s: got %zu and %zu allocations", rows[i].type, plain, decoded);
	}
}

static void a_recipe_runs_out_of_memory(void **state)
{
	struct hpx_arena arena;
	struct hpx_recipe recipe;
	enum hpx_status status = HPX_NOMEM;
	(void)state;

	for (size_t n = 0; status != HPX_OK; n++) {
		hpx_arena_init(&arena, 1 << 16);
		allocations_left = n;
		status = hpx_recipe_parse(HPX_SPAN("1 ignore=/a header=b"), &arena, &recipe);
		allocations_left = SIZE_MAX;
		if (status != HPX_OK)
			assert_status(status, HPX_NOMEM);
		hpx_arena_done(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(a_recipe_runs_out_of_memory),
	};
	return cmocka_run_group_tests_name("fingerprint_memory", tests, NULL, NULL);
}
