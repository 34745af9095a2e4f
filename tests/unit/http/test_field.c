/* Shows how fields are found and combined, and which of them travel on or are
 * kept with a stored answer. */
#include "../test.h"
#include "http/field.h"
#include "kept_vectors.h"

#define FIELD(name, value) \
	{ \
		HPX_SPAN_INIT(name), HPX_SPAN_INIT(value) \
	}

static const struct hpx_field fields[] = {
	FIELD("Accept", "a"),
	FIELD("Connection", "X-Hop, close"),
	FIELD("accept", "b;q=1, c"),
	FIELD("X-Hop", "1"),
	FIELD("ACCEPT", ""),
	FIELD("connection", ",\tY-Hop ,"),
};
static const struct hpx_http_head head = {
	.fields = fields, .field_count = sizeof(fields) / sizeof(fields[0])
};

static void finding(void **state)
{
	(void)state;
	assert_ptr_equal(hpx_field_find(&head, HPX_SPAN("ACCEPT")), &fields[0]);
	assert_null(hpx_field_find(&head, HPX_SPAN("Accep")));
	assert_span(hpx_field_value(&head, HPX_SPAN("x-hop")), "1");
	assert_null(hpx_field_value(&head, HPX_SPAN("X-None")).ptr);
	assert_int_equal(hpx_field_count(&head, HPX_SPAN("accept")), 3);
	assert_int_equal(hpx_field_count(&head, HPX_SPAN("X-None")), 0);
}

static void combining_keeps_the_order(void **state)
{
	struct hpx_arena arena;

	(void)state;
	hpx_arena_init(&arena, 4096);
	assert_span(hpx_field_combined(&head, HPX_SPAN("Accept"), &arena), "a, b;q=1, c, ");
	assert_span(hpx_field_combined(&head, HPX_SPAN("X-Hop"), &arena), "1");
	assert_null(hpx_field_combined(&head, HPX_SPAN("X-None"), &arena).ptr);
	hpx_arena_done(&arena);
	hpx_arena_init(&arena, 8);
	assert_null(hpx_field_combined(&head, HPX_SPAN("Accept"), &arena).ptr);
	hpx_arena_done(&arena);
}

static void lists_hold_whole_tokens(void **state)
{
	static const struct {
		const char *list;
		const char *token;
		bool has;
	} rows[] = {
		{ "close", "close", true },
		{ "keep-alive,\t Close ", "close", true },
		{ "closed", "close", false },
		{ "clos", "close", false },
		{ "a b", "a", false },
		{ "", "close", false },
		{ ",,", "close", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool has = hpx_field_list_has(hpx_span_of(rows[i].list),
					      hpx_span_of(rows[i].token));
		if (has != rows[i].has)
			fail_msg("\"%s\" has \"%s\": got %d, want %d", rows[i].list,
				 rows[i].token, has, rows[i].has);
	}
}

static void tokens(void **state)
{
	static const char others[] = "\"(),/:;<=>?@[\\]{} \t\r\n\177";

	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		bool want = c > 0x20 && c < 0x7f && strchr(others, (int)c) == NULL;
		char byte = (char)c;
		if (hpx_is_token(hpx_span(&byte, 1)) != want)
			fail_msg("0x%02x: got %d, want %d", c, !want, want);
	}
	assert_true(hpx_is_token(HPX_SPAN("X-a.b~c|d`e^f_g#h$i%j&k'l*m+n!o")));
	assert_false(hpx_is_token(HPX_SPAN("")));
	assert_false(hpx_is_token(HPX_SPAN("a b")));
	assert_false(hpx_is_token(HPX_SPAN("a\0")));
}

static void what_travels_and_what_is_kept(void **state)
{
	static const struct {
		const char *name;
		bool hop;
		bool kept;
		bool ours;
	} rows[] = {
		{ "Connection", true, false, false },
		{ "Keep-Alive", true, false, false },
		{ "PROXY-CONNECTION", true, false, false },
		{ "Proxy-Authenticate", true, false, false },
		{ "Proxy-Authorization", true, false, false },
		{ "te", true, false, false },
		{ "Trailer", true, false, false },
		{ "Transfer-Encoding", true, false, false },
		{ "Upgrade", true, false, false },
		{ "x-hop", true, false, false },
		{ "Y-HOP", true, false, false },
		{ "Close", true, false, false },
		{ "Content-Length", false, false, false },
		{ "Set-Cookie", false, false, false },
		{ "Date", false, false, false },
		{ "Age", false, false, false },
		{ "Via", false, false, false },
		{ "Alt-Svc", false, false, false },
		{ "Clear-Site-Data", false, false, false },
		{ "Authentication-Info", false, false, false },
		{ "RateLimit", false, false, false },
		{ "RateLimit-Policy", false, false, false },
		{ "ratelimit-remaining", false, false, false },
		{ "Server-Timing", false, false, false },
		{ "Proxy-Status", false, false, false },
		{ "Proxy-Authentication-Info", false, false, false },
		{ "Idempotent-Replayed", false, false, false },
		{ "idempotency-expires", false, false, false },
		{ "Hapax-Operation", false, false, true },
		{ "hapax_lease", false, false, true },
		{ "HAPAX-", false, false, true },
		{ "Proxy", false, true, false },
		{ "Hapax", false, true, false },
		{ "Hapaxes", false, true, false },
		{ "Content-Type", false, true, false },
		{ "Content-Encoding", false, true, false },
		{ "Location", false, true, false },
		{ "ETag", false, true, false },
		{ "Idempotency-Key", false, true, false },
		{ "X-RateLimit-Limit", false, true, false },
		{ "Datf", false, true, false },
		{ "Z-Hop", false, true, false },
		{ "x", false, true, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_span name = hpx_span_of(rows[i].name);
		bool hop = hpx_field_is_hop(&head, name);
		bool kept = hpx_field_is_kept(&head, name);
		bool ours = hpx_field_is_ours(name);
		if (hop != rows[i].hop || kept != rows[i].kept || ours != rows[i].ours)
			fail_msg("%s: got hop %d kept %d ours %d, want %d %d %d", rows[i].name,
				 hop, kept, ours, rows[i].hop, rows[i].kept, rows[i].ours);
	}
}

static void lines_are_cut_at_lf_and_cr_lf(void **state)
{
	static const struct {
		const char *name; /* NULL: no colon */
		const char *value;
		const char *text;
		const char *whole;
	} rows[] = {
		{ "A", "b c", "A:  b c\t", "A:  b c\t\r\n" },
		{ NULL, NULL, "", "\n" },
		{ NULL, NULL, "no field", "no field\n" },
		{ "", "x:y", ":x:y", ":x:y\r\n" },
		{ "Empty", "", "Empty:", "Empty:\n" },
		{ "Last\rone", "z", "Last\rone: z", "Last\rone: z" },
	};
	struct hpx_span rest = HPX_SPAN("A:  b c\t\r\n\nno field\n:x:y\r\nEmpty:\nLast\rone: z");
	struct hpx_field_line line;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(hpx_field_line_next(&rest, &line));
		assert_span(line.text, rows[i].text);
		assert_span(line.whole, rows[i].whole);
		assert_int_equal(line.name.ptr == NULL, rows[i].name == NULL);
		assert_int_equal(line.value.ptr == NULL, rows[i].name == NULL);
		if (rows[i].name == NULL)
			continue;
		assert_span(line.name, rows[i].name);
		assert_span(line.value, rows[i].value);
	}
	assert_false(hpx_field_line_next(&rest, &line));
}

static void lines_are_found_by_name(void **state)
{
	struct hpx_span lines = HPX_SPAN("b\r\nB: 1\r\nb:2\r\n");
	struct hpx_field_line line;

	(void)state;
	assert_true(hpx_field_line_find(lines, HPX_SPAN("b"), &line));
	assert_span(line.value, "1");
	assert_false(hpx_field_line_find(lines, HPX_SPAN("c"), &line));
	assert_false(hpx_field_line_find(lines, HPX_SPAN(""), &line));
}

static void lines_are_kept_or_refused(void **state)
{
	struct hpx_buffer out;

	(void)state;
	for (size_t i = 0; i < KEPT_VECTORS; i++) {
		hpx_buffer_init(&out, HPX_KEPT_BYTES_MAX);
		enum hpx_status status = hpx_field_lines_keep(hpx_span_of(kept_vectors[i].lines), &out);
		assert_status(status, kept_vectors[i].kept != NULL ? HPX_OK : HPX_INVALID);
		assert_span(hpx_buffer_span(&out), kept_vectors[i].kept != NULL ? kept_vectors[i].kept : "");
		hpx_buffer_done(&out);
	}
}

/* What is left out does not count towards the bound; what is kept does. */
static void the_bound_is_on_what_is_kept(void **state)
{
	static char lines[HPX_KEPT_BYTES_MAX + 64];
	struct hpx_buffer out;
	int n;

	(void)state;
	hpx_buffer_init(&out, HPX_KEPT_BYTES_MAX);
	n = snprintf(lines, sizeof(lines), "Date: ");
	memset(lines + n, 'x', HPX_KEPT_BYTES_MAX);
	assert_status(hpx_field_lines_keep(hpx_span_of(lines), &out), HPX_OK);
	assert_int_equal(out.len, 0);
	memcpy(lines, "Dote: ", 6);
	assert_status(hpx_field_lines_keep(hpx_span_of(lines), &out), HPX_TOO_LARGE);
	assert_int_equal(out.len, 0);
	lines[HPX_KEPT_BYTES_MAX - 2] = '\0';
	assert_status(hpx_field_lines_keep(hpx_span_of(lines), &out), HPX_OK);
	assert_int_equal(out.len, HPX_KEPT_BYTES_MAX);
	hpx_buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finding),
		cmocka_unit_test(combining_keeps_the_order),
		cmocka_unit_test(lists_hold_whole_tokens),
		cmocka_unit_test(tokens),
		cmocka_unit_test(what_travels_and_what_is_kept),
		cmocka_unit_test(lines_are_cut_at_lf_and_cr_lf),
		cmocka_unit_test(lines_are_found_by_name),
		cmocka_unit_test(lines_are_kept_or_refused),
		cmocka_unit_test(the_bound_is_on_what_is_kept),
	};
	return cmocka_run_group_tests_name("field", tests, NULL, NULL);
}
