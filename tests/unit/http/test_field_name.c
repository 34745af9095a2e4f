/* Shows that every name of the list is found in any case and nothing else is taken for
 * it, and that the index of a head that was read says the same as a search. */
#include "../test.h"
#include "http/field.h"

static const struct {
	const char *text;
	enum hpx_field_name name;
	unsigned traits;
} rows[] = {
#define X(name, text, traits) { text, HPX_NAME_##name, traits },
	HPX_FIELD_NAME_LIST(X)
#undef X
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void every_name_is_found_in_any_case(void **state)
{
	char text[64];

	(void)state;
	assert_int_equal(ROWS, HPX_NAME_COUNT - 1);
	for (size_t i = 0; i < ROWS; i++) {
		struct hpx_span name = hpx_span_of(rows[i].text);
		assert_int_equal(hpx_field_name_of(name), rows[i].name);
		assert_true(hpx_span_eq(hpx_field_name_text(rows[i].name), name));
		for (size_t at = 0; at < name.len; at++)
			text[at] = (char)(name.ptr[at] >= 'a' && name.ptr[at] <= 'z' ? name.ptr[at] - 32 :
										       name.ptr[at]);
		assert_int_equal(hpx_field_name_of(hpx_span(text, name.len)), rows[i].name);
		text[0] = name.ptr[0];
		assert_int_equal(hpx_field_name_of(hpx_span(text, name.len)), rows[i].name);
	}
}

/* Every byte of every name, exchanged for every other byte. */
static void nothing_else_is_taken_for_a_name(void **state)
{
	char text[64];

	(void)state;
	assert_int_equal(hpx_field_name_of(hpx_span("", 0)), HPX_NAME_OTHER);
	for (size_t i = 0; i < ROWS; i++) {
		size_t len = strlen(rows[i].text);
		for (size_t at = 0; at < len; at++) {
			memcpy(text, rows[i].text, len);
			for (int c = 0; c < 256; c++) {
				text[at] = (char)c;
				enum hpx_field_name found = hpx_field_name_of(hpx_span(text, len));
				bool same = hpx_lower((char)c) == rows[i].text[at];
				if ((found == rows[i].name) != same)
					fail_msg("byte %zu of %s as %d: %s", at, rows[i].text, c,
						 same ? "not found" : "taken for it");
			}
		}
		memcpy(text, rows[i].text, len);
		text[len] = 'x';
		assert_int_not_equal(hpx_field_name_of(hpx_span(text, len + 1)), rows[i].name);
		assert_int_not_equal(hpx_field_name_of(hpx_span(text, len - 1)), rows[i].name);
	}
}

static void families_have_their_traits(void **state)
{
	static const struct {
		const char *name;
		unsigned traits;
	} others[] = {
		{ "X-Other", 0 },
		{ "Hapax-Anything", HPX_FIELD_OURS },
		{ "hapax_anything", HPX_FIELD_OURS },
		{ "HAPAX-OUTCOME", HPX_FIELD_OURS },
		{ "Hapaxes", 0 },
		{ "Proxy-Status", HPX_FIELD_ONCE },
		{ "Proxy", 0 },
		{ "RateLimit-Policy", HPX_FIELD_ONCE },
		{ "RateLimits", 0 },
		{ "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ROWS; i++)
		assert_int_equal(hpx_field_name_traits(hpx_span_of(rows[i].text)), rows[i].traits);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (hpx_field_name_traits(hpx_span_of(others[i].name)) != others[i].traits)
			fail_msg("%s has %u", others[i].name,
				 hpx_field_name_traits(hpx_span_of(others[i].name)));
}

/* The same fields without the index. */
static struct hpx_http_head without_index(const struct hpx_http_head *head)
{
	return (struct hpx_http_head){ .fields = head->fields, .field_count = head->field_count };
}

static void compare(const struct hpx_http_head *head, struct hpx_arena *arena)
{
	struct hpx_http_head plain = without_index(head);

	for (size_t i = 0; i < ROWS; i++) {
		struct hpx_span text = hpx_span_of(rows[i].text);
		assert_ptr_equal(hpx_field_known(head, rows[i].name), hpx_field_find(&plain, text));
		assert_ptr_equal(hpx_field_find(head, text), hpx_field_find(&plain, text));
		assert_int_equal(hpx_field_known_count(head, rows[i].name),
				 hpx_field_count(&plain, text));
		assert_int_equal(hpx_field_known_count(&plain, rows[i].name),
				 hpx_field_count(&plain, text));
		assert_true(hpx_span_eq(hpx_field_known_combined(head, rows[i].name, arena),
					hpx_field_combined(&plain, text, arena)));
	}
	for (size_t i = 0; i < head->field_count; i++) {
		assert_int_equal(hpx_field_name_at(head, i), hpx_field_name_at(&plain, i));
		assert_int_equal(hpx_field_traits(head, &head->fields[i]),
				 hpx_field_traits(&plain, &plain.fields[i]));
		assert_int_equal(hpx_field_is_hop(head, head->fields[i].name),
				 hpx_field_is_hop(&plain, head->fields[i].name));
		assert_int_equal(hpx_field_is_kept(head, head->fields[i].name),
				 hpx_field_traits(head, &head->fields[i]) == 0);
	}
}

static void an_index_says_the_same_as_a_search(void **state)
{
	static const char *const heads[] = {
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nhost: a\r\nX-Hop: 1\r\nCONNECTION: x-hop\r\nAccept: b\r\n"
		"Via: 1.1 c\r\naccept: d\r\nX-Other: e\r\nVIA: 1.1 f\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nClose: 1\r\nDate: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: b\r\n"
		"Keep-Alive: c\r\nHapax-Operation: d\r\nRateLimit-Reset: e\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nCookie: b\r\nCookie: c\r\n"
		"Cookie: d\r\nIdempotency-Key: e\r\nIdempotent-Replayed: true\r\n\r\n",
	};
	struct hpx_http_limits limits = { .head_bytes_max = 4096, .fields_max = 64 };

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct hpx_http_reader reader;
		struct hpx_http_head head;
		struct hpx_arena arena;
		size_t used;

		hpx_arena_init(&arena, 65536);
		hpx_http_reader_request(&reader, &limits);
		assert_int_equal(hpx_http_read_head(&reader, hpx_span_of(heads[i]), &arena, &head, &used),
				 HPX_HTTP_DONE);
		assert_non_null(head.known);
		compare(&head, &arena);
		hpx_arena_done(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_name_is_found_in_any_case),
		cmocka_unit_test(nothing_else_is_taken_for_a_name),
		cmocka_unit_test(families_have_their_traits),
		cmocka_unit_test(an_index_says_the_same_as_a_search),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
