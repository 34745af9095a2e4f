/* Shows that a recipe has one text and one id whatever the order of its lists,
 * and that only that text is read back. */
#include "../test.h"

#include "core/fingerprint.h"

static const struct hpx_span pointers[] = { HPX_SPAN_INIT("/metadata/sent_at"),
					    HPX_SPAN_INIT("/a b%\n"), HPX_SPAN_INIT("/\xc3\xa9"), HPX_SPAN_INIT("/a b%\n") };
static const struct hpx_span pointers_again[] = { HPX_SPAN_INIT("/\xc3\xa9"),
						  HPX_SPAN_INIT("/a b%\n"), HPX_SPAN_INIT("/metadata/sent_at") };
static const struct hpx_span headers[] = { HPX_SPAN_INIT("x-currency"), HPX_SPAN_INIT("accept") };
static const struct hpx_span headers_again[] = { HPX_SPAN_INIT("accept"),
						 HPX_SPAN_INIT("x-currency") };

static const struct hpx_recipe full = { .version = 2, .ignore = pointers, .ignore_count = 4, .headers = headers, .header_count = 2 };
static const struct hpx_recipe full_again = { .version = 2, .ignore = pointers_again, .ignore_count = 3, .headers = headers_again, .header_count = 2 };
static const struct hpx_recipe selecting = {
	.version = 2, .headers = headers, .header_count = 2, .only = pointers, .only_count = 4
};
static const struct hpx_recipe plain = { .version = 2 };
static const struct hpx_recipe first = { .version = 1 };

#define FULL_TEXT "2 ignore=/a%20b%25%0a ignore=/metadata/sent_at ignore=/%c3%a9 " \
		  "header=accept header=x-currency"

#define SELECTING_TEXT "2 only=/a%20b%25%0a only=/metadata/sent_at only=/%c3%a9 " \
		       "header=accept header=x-currency"

static void check_print(const struct hpx_recipe *recipe, const char *want)
{
	struct hpx_buffer out;

	hpx_buffer_init(&out, HPX_RECIPE_TEXT_MAX);
	assert_status(hpx_recipe_print(recipe, &out), HPX_OK);
	assert_span(hpx_buffer_span(&out), want);
	hpx_buffer_done(&out);
}

static void the_order_of_the_configuration_does_not_count(void **state)
{
	struct hpx_recipe_id a;
	struct hpx_recipe_id b;
	struct hpx_recipe_id c;
	(void)state;

	check_print(&plain, "2");
	check_print(&first, "1");
	check_print(&full, FULL_TEXT);
	check_print(&full_again, FULL_TEXT);
	check_print(&selecting, SELECTING_TEXT);
	assert_status(hpx_recipe_id(&full, &a), HPX_OK);
	assert_status(hpx_recipe_id(&full_again, &b), HPX_OK);
	assert_status(hpx_recipe_id(&plain, &c), HPX_OK);
	assert_memory_equal(a.bytes, b.bytes, sizeof(a.bytes));
	assert_memory_not_equal(a.bytes, c.bytes, sizeof(a.bytes));
}

/* The id is in every stored record: it may never change. SHA-256 of the text. */
static void the_id_of_the_plain_recipe_is_fixed(void **state)
{
	char hex[2 * HPX_RECIPE_ID_SIZE + 1];
	struct hpx_recipe_id id;
	(void)state;
	assert_status(hpx_recipe_id(&plain, &id), HPX_OK);
	hpx_hex_encode(id.bytes, sizeof(id.bytes), hex);
	assert_string_equal(hex, "d4735e3a265e16eee03f59718b9b5d03");
	assert_status(hpx_recipe_id(&first, &id), HPX_OK);
	hpx_hex_encode(id.bytes, sizeof(id.bytes), hex);
	assert_string_equal(hex, "6b86b273ff34fce19d6b804eff5a3f57");
}

static void the_text_reads_back(void **state)
{
	struct hpx_arena arena;
	struct hpx_recipe recipe;
	(void)state;

	hpx_arena_init(&arena, 1 << 16);
	assert_status(hpx_recipe_parse(HPX_SPAN(FULL_TEXT), &arena, &recipe), HPX_OK);
	assert_int_equal(recipe.ignore_count, 3);
	assert_int_equal(recipe.header_count, 2);
	assert_span(recipe.ignore[0], "/a b%\n");
	check_print(&recipe, FULL_TEXT);
	/* The reader keeps the versions of before. */
	for (unsigned version = 1; version <= HPX_RECIPE_VERSION; version++) {
		char text[4];
		snprintf(text, sizeof(text), "%u", version);
		assert_status(hpx_recipe_parse(hpx_span_of(text), &arena, &recipe), HPX_OK);
		assert_int_equal(recipe.version, version);
		assert_int_equal(recipe.ignore_count + recipe.header_count, 0);
	}
	assert_status(hpx_recipe_parse(HPX_SPAN("1 header=a"), &arena, &recipe), HPX_OK);
	check_print(&recipe, "1 header=a");
	hpx_arena_done(&arena);
}

static void other_texts_are_refused(void **state)
{
	static const struct {
		const char *text;
		enum hpx_status want;
	} rows[] = {
		{ "0", HPX_UNSUPPORTED },
		{ "3", HPX_UNSUPPORTED },
		{ "3 whatever", HPX_UNSUPPORTED },
		{ "4294967295", HPX_UNSUPPORTED },
		{ "", HPX_INVALID },
		{ "x", HPX_INVALID },
		{ "01", HPX_INVALID },
		{ "1 ", HPX_INVALID },
		{ "1  header=a", HPX_INVALID },
		{ "1 other=a", HPX_INVALID },
		{ "1 ignore=a", HPX_INVALID },
		{ "1 ignore=/b ignore=/a", HPX_INVALID },
		{ "1 header=a header=a", HPX_INVALID },
		{ "1 header=a ignore=/b", HPX_INVALID },
		{ "1 header=A", HPX_INVALID },
		{ "1 header=", HPX_INVALID },
		{ "1 ignore=/%4", HPX_INVALID },
		{ "1 ignore=/%41", HPX_INVALID },
		{ "1 ignore=/%0A", HPX_INVALID },
		{ "1 ignore=/~2", HPX_INVALID },
		{ "1\n", HPX_INVALID },
		{ "99999999999999999999", HPX_INVALID },
	};
	struct hpx_recipe recipe;
	struct hpx_arena arena;
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		hpx_arena_init(&arena, 1 << 16);
		enum hpx_status got = hpx_recipe_parse(hpx_span_of(rows[i].text), &arena, &recipe);
		if (got != rows[i].want)
			fail_msg("<%s>: got %s, want %s", rows[i].text, hpx_status_name(got),
				 hpx_status_name(rows[i].want));
		hpx_arena_done(&arena);
	}
	hpx_arena_init(&arena, 64);
	assert_status(hpx_recipe_parse(HPX_SPAN(FULL_TEXT), &arena, &recipe), HPX_NOMEM);
	hpx_arena_done(&arena);
}

static void recipes_beyond_their_bounds_are_refused(void **state)
{
	static char text[HPX_RECIPE_LIST_MAX + 1][160];
	struct hpx_span many[HPX_RECIPE_LIST_MAX + 1];
	struct hpx_buffer out;
	struct hpx_recipe_id id;
	(void)state;

	for (size_t i = 0; i <= HPX_RECIPE_LIST_MAX; i++) {
		snprintf(text[i], sizeof(text[i]), "/%zu", i);
		many[i] = hpx_span_of(text[i]);
	}
	struct hpx_recipe recipe = { .version = 2, .ignore = many, .ignore_count = HPX_RECIPE_LIST_MAX, .headers = NULL, .header_count = 0 };
	hpx_buffer_init(&out, 100000);
	assert_status(hpx_recipe_print(&recipe, &out), HPX_OK);
	recipe.ignore_count++;
	assert_status(hpx_recipe_print(&recipe, &out), HPX_TOO_LARGE);
	assert_status(hpx_recipe_id(&recipe, &id), HPX_TOO_LARGE);
	for (size_t i = 0; i < HPX_RECIPE_LIST_MAX; i++) {
		snprintf(text[i], sizeof(text[i]), "/%0150zu", i);
		many[i] = hpx_span_of(text[i]);
	}
	recipe.ignore_count = HPX_RECIPE_LIST_MAX;
	assert_status(hpx_recipe_print(&recipe, &out), HPX_TOO_LARGE);
	recipe.version = HPX_RECIPE_VERSION + 1;
	assert_status(hpx_recipe_print(&recipe, &out), HPX_UNSUPPORTED);
	hpx_buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_order_of_the_configuration_does_not_count),
		cmocka_unit_test(the_id_of_the_plain_recipe_is_fixed),
		cmocka_unit_test(the_text_reads_back),
		cmocka_unit_test(other_texts_are_refused),
		cmocka_unit_test(recipes_beyond_their_bounds_are_refused),
	};
	return cmocka_run_group_tests_name("recipe", tests, NULL, NULL);
}
