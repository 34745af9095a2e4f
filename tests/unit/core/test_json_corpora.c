/* Shows that the published test data for RFC 8785 and for JSON parsers comes
 * out as its publishers say, but for the exceptions listed with their reason. */
#include "../test.h"

#include <dirent.h>
#include <locale.h>

#include "core/json.h"

#define FILE_MAX (4u << 20)

/* Asserts and all: a file of the corpora that cannot be read is a failure. */
static void read_file(const char *folder, const char *name, struct hpx_buffer *ret_text)
{
	char path[4096];
	char piece[4096];
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "rb");
	if (file == NULL)
		fail_msg("%s cannot be read", path);
	hpx_buffer_init(ret_text, FILE_MAX);
	while ((n = fread(piece, 1, sizeof(piece), file)) > 0)
		assert_status(hpx_buffer_append(ret_text, hpx_span(piece, n)), HPX_OK);
	fclose(file);
}

static enum hpx_status canonical(struct hpx_span text, struct hpx_buffer *out)
{
	hpx_buffer_init(out, FILE_MAX);
	return hpx_json_canonical(text, &hpx_json_limits_default, NULL, 0, out);
}

/* The one number of the pairs that RFC 8785 rounds: its double is printed with
 * one digit less than was written. Kept as written, it stays apart from the
 * amount that it would be rounded to. */
static const struct {
	const char *published;
	const char *ours;
} rounded[] = { { "333333333.3333333,", "333333333.33333329," } };

/* The published text with those numbers as they were written. */
static void put_back_rounded(struct hpx_buffer *text)
{
	for (size_t i = 0; i < sizeof(rounded) / sizeof(rounded[0]); i++) {
		struct hpx_buffer whole;
		struct hpx_span from = hpx_span_of(rounded[i].published);
		char *hit = memmem(text->ptr, text->len, from.ptr, from.len);
		if (hit == NULL)
			continue;
		size_t at = (size_t)(hit - text->ptr);
		hpx_buffer_init(&whole, FILE_MAX);
		assert_status(hpx_buffer_append(&whole, hpx_span(text->ptr, at)), HPX_OK);
		assert_status(hpx_buffer_text(&whole, rounded[i].ours), HPX_OK);
		hpx_buffer_consume(text, at + from.len);
		assert_status(hpx_buffer_append(&whole, hpx_buffer_span(text)), HPX_OK);
		hpx_buffer_done(text);
		*text = whole;
	}
}

static void the_published_pairs_agree(void **state)
{
	static const char *const names[] = { "arrays", "french", "structures", "unicode", "values",
					     "weird" };
	const char *corpora = test_corpora();
	(void)state;

	if (corpora == NULL)
		skip();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct hpx_buffer in;
		struct hpx_buffer want;
		struct hpx_buffer out;
		char name[64];
		snprintf(name, sizeof(name), "jcs/input/%s.json", names[i]);
		read_file(corpora, name, &in);
		snprintf(name, sizeof(name), "jcs/output/%s.json", names[i]);
		read_file(corpora, name, &want);
		put_back_rounded(&want);
		assert_status(canonical(hpx_buffer_span(&in), &out), HPX_OK);
		if (!hpx_span_eq(hpx_buffer_span(&out), hpx_buffer_span(&want)))
			fail_msg("%s: got %.*s, want %.*s", names[i],
				 HPX_SPAN_ARG(hpx_buffer_span(&out)),
				 HPX_SPAN_ARG(hpx_buffer_span(&want)));
		hpx_buffer_done(&in);
		hpx_buffer_done(&want);
		hpx_buffer_done(&out);
	}
}

/* The published form is one of ours too, and other spellings of its value
 * lead to it. */
static void check_spelling(struct hpx_span spelling, struct hpx_span want)
{
	struct hpx_buffer out;

	assert_status(canonical(spelling, &out), HPX_OK);
	if (!hpx_span_eq(hpx_buffer_span(&out), want))
		fail_msg("%.*s: got %.*s, want %.*s", HPX_SPAN_ARG(spelling),
			 HPX_SPAN_ARG(hpx_buffer_span(&out)), HPX_SPAN_ARG(want));
	hpx_buffer_done(&out);
}

static void check_number(struct hpx_span want)
{
	char other[80];

	check_spelling(want, want);
	bool scientific = hpx_span_index(want, 'e') < want.len;
	bool fraction = hpx_span_index(want, '.') < want.len;
	snprintf(other, sizeof(other), "%.*s%s%s", HPX_SPAN_ARG(want),
		 scientific || !fraction ? "" : "000", scientific ? "" : "e0");
	check_spelling(hpx_span_of(other), want);
}

static void ten_thousand_numbers_keep_their_published_text(void **state)
{
	const char *corpora = test_corpora();
	struct hpx_buffer file;
	struct hpx_span line;
	size_t count = 0;
	(void)state;

	if (corpora == NULL)
		skip();
	read_file(corpora, "jcs/numbers-10k.txt", &file);
	struct hpx_span rest = hpx_buffer_span(&file);
	while (hpx_span_split(&rest, '\n', &line)) {
		size_t comma = hpx_span_index(line, ',');
		if (comma == line.len)
			continue;
		check_number(hpx_span_skip(line, comma + 1));
		count++;
	}
	assert_int_equal(count, 10000);
	hpx_buffer_done(&file);
}

/* JSON that is well formed and has no canonical form, each for its reason. */
static const char *const refused[] = {
	"y_object_duplicated_key.json", /* which member counts? */
	"y_object_duplicated_key_and_value.json",
};

/* -1: either will do. */
static int wanted(const char *name)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (strcmp(name, refused[i]) == 0)
			return HPX_INVALID;
	if (strncmp(name, "y_", 2) == 0)
		return HPX_OK;
	return strncmp(name, "n_", 2) == 0 ? HPX_INVALID : -1;
}

static void check_file(const char *folder, const char *name)
{
	struct hpx_buffer text;
	struct hpx_buffer out;
	struct hpx_buffer again;

	read_file(folder, name, &text);
	enum hpx_status status = canonical(hpx_buffer_span(&text), &out);
	int want = wanted(name);
	if (want >= 0 && (int)status != want)
		fail_msg("%s: got %s, want %s", name, hpx_status_name(status),
			 hpx_status_name((enum hpx_status)want));
	if (status == HPX_OK) {
		assert_status(canonical(hpx_buffer_span(&out), &again), HPX_OK);
		assert_true(hpx_span_eq(hpx_buffer_span(&out), hpx_buffer_span(&again)));
		hpx_buffer_done(&again);
	} else {
		assert_int_equal(out.len, 0);
	}
	hpx_buffer_done(&out);
	hpx_buffer_done(&text);
}

static void the_parser_suite_is_judged_as_it_says(void **state)
{
	const char *corpora = test_corpora();
	char folder[4096];
	size_t count = 0;
	(void)state;

	if (corpora == NULL)
		skip();
	snprintf(folder, sizeof(folder), "%s/json/test_parsing", corpora);
	DIR *dir = opendir(folder);
	assert_non_null(dir);
	for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
		if (entry->d_name[0] == '.')
			continue;
		check_file(folder, entry->d_name);
		count++;
	}
	closedir(dir);
	if (count < 318)
		fail_msg("got %zu files, want 318", count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_published_pairs_agree),
		cmocka_unit_test(ten_thousand_numbers_keep_their_published_text),
		cmocka_unit_test(the_parser_suite_is_judged_as_it_says),
	};
	/* A locale with another decimal point must change nothing. */
	if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL)
		setlocale(LC_ALL, "");
	return cmocka_run_group_tests_name("json_corpora", tests, NULL, NULL);
}
