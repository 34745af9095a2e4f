/* Shows that the table of rows is in order, and that the reference page has
 * each of them, word for word, and every option of a description. */
#include "../test.h"

#include "fake_run.h"

#define PAGE "docs/reference/verify.md"
#define PAGE_BYTES_MAX 65536

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < hpx_row_count; i++) {
		const struct hpx_row *row = &hpx_rows[i];

		assert_ptr_equal(hpx_row_by_name(hpx_span_of(row->name)), row);
		assert_true(row->guarantee <= HPX_GUARANTEE_MAX);
		assert_true(hpx_guarantees[row->guarantee].observable);
		assert_true(row->title[0] != '\0' && row->why[0] != '\0' && row->sends[0] != '\0');
	}
	assert_null(hpx_row_by_name(HPX_SPAN("retri")));
}

/* A group's rows stand together, or the table would print its name twice. */
static void test_groups(void **state)
{
	(void)state;
	for (size_t i = 1; i < hpx_row_count; i++) {
		if (hpx_rows[i].group < hpx_rows[i - 1].group)
			print_error("%s stands behind %s\n", hpx_rows[i].name, hpx_rows[i - 1].name);
		assert_true(hpx_rows[i].group >= hpx_rows[i - 1].group);
	}
}

static void test_weights(void **state)
{
	const struct hpx_row *marker = hpx_row_by_name(HPX_SPAN("retry_marker"));
	const struct hpx_row *expiry = hpx_row_by_name(HPX_SPAN("expiry"));

	(void)state;
	assert_int_equal(hpx_row_weight(marker, HPX_DIALECT_IETF), HPX_ROW_ADVISED);
	assert_int_equal(hpx_row_weight(marker, HPX_DIALECT_AUTO), HPX_ROW_ADVISED);
	assert_int_equal(hpx_row_weight(marker, HPX_DIALECT_STRIPE), HPX_ROW_REQUIRED);
	assert_int_equal(hpx_row_weight(expiry, HPX_DIALECT_STRIPE), HPX_ROW_ADVISED);
}

static void print_line(const struct hpx_row *row, char *out, size_t size)
{
	char guarantees[16];

	if (row->also != 0)
		snprintf(guarantees, sizeof(guarantees), "%u, %u", row->guarantee, row->also);
	else
		snprintf(guarantees, sizeof(guarantees), "%u", row->guarantee);
	snprintf(out, size, "| `%s` | %s | %s | %s%s%s | %s | %s |\n", row->name,
		 row->weight == HPX_ROW_REQUIRED ? "required" : "advised", guarantees,
		 row->needs[0] != '\0' ? "`" : "", row->needs, row->needs[0] != '\0' ? "`" : "",
		 row->title, row->why);
}

static char page[PAGE_BYTES_MAX];

static int read_page(void **state)
{
	FILE *in = fopen(PAGE, "r");

	(void)state;
	assert_non_null(in);
	size_t n = fread(page, 1, sizeof(page) - 1, in);
	page[n] = '\0';
	fclose(in);
	return 0;
}

static void test_reference(void **state)
{
	char line[1024];

	(void)state;
	for (size_t i = 0; i < hpx_row_count; i++) {
		print_line(&hpx_rows[i], line, sizeof(line));
		if (strstr(page, line) == NULL)
			print_error(PAGE " lacks: %s", line);
		assert_non_null(strstr(page, line));
	}
}

/* "limits.time" is named `limits` and `time`. */
static void test_reference_of_options(void **state)
{
	char code[64];

	(void)state;
	for (size_t i = 0; i < hpx_verify_options.count; i++) {
		struct hpx_span rest = hpx_span_of(hpx_verify_options.rows[i].name);
		struct hpx_span word;

		while (hpx_span_split(&rest, '.', &word)) {
			snprintf(code, sizeof(code), "`%.*s`", HPX_SPAN_ARG(word));
			if (strstr(page, code) == NULL)
				print_error(PAGE " lacks: %s\n", code);
			assert_non_null(strstr(page, code));
		}
	}
}

/* --help names the default that the table has. */
static void test_help_of_defaults(void **state)
{
	char word[64];

	(void)state;
	for (size_t i = 0; i < hpx_verify_options.count; i++) {
		const struct hpx_option *option = &hpx_verify_options.rows[i];

		if (option->default_value == NULL)
			continue;
		snprintf(word, sizeof(word), "(%s", option->default_value);
		if (strstr(option->text, word) == NULL)
			print_error("%s has the default %s: %s\n", option->name, option->default_value,
				    option->text);
		assert_non_null(strstr(option->text, word));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_reference),
		cmocka_unit_test(test_reference_of_options),
		cmocka_unit_test(test_help_of_defaults),
	};
	return cmocka_run_group_tests(tests, read_page, NULL);
}
