/* Shows that the reference page and the sample file in the tree are what the
 * table of options says, and that the sample is a configuration: as it is, and
 * with every default uncommented, it gives exactly the defaults, but for the values
 * that are in force there because they are better. */
#include "config_test.h"

#include "config/option_parse.h"
#include "http/problem.h"

#define FILE_BYTES_MAX ((size_t)1 << 20)

static void same_as_file(enum hpx_status (*print)(struct hpx_buffer *out), const char *path,
			 const char *flag)
{
	struct hpx_buffer printed;
	char *file = malloc(FILE_BYTES_MAX);
	FILE *stream = fopen(path, "r");

	if (stream == NULL)
		fail_msg("%s cannot be opened", path);
	assert_non_null(file);
	size_t len = fread(file, 1, FILE_BYTES_MAX, stream);
	fclose(stream);
	hpx_buffer_init(&printed, FILE_BYTES_MAX);
	assert_status(print(&printed), HPX_OK);
	if (!hpx_span_eq(hpx_buffer_span(&printed), hpx_span(file, len)))
		fail_msg("%s is not what the table says; run: hapax check %s > %s", path,
			 flag, path);
	free(file);
	hpx_buffer_done(&printed);
}

static void the_files_in_the_tree_are_those_of_the_table(void **state)
{
	(void)state;
	same_as_file(hpx_config_print_reference, "docs/reference/options.md",
		     "--print-reference");
	same_as_file(hpx_config_print_sample, "etc/hapax.yaml", "--print-sample");
	same_as_file(hpx_problem_print_reference, "docs/reference/problems.md", "--print-problems");
}

/* Removes each # that stands right before a name. */
static void uncomment(char *text)
{
	char *out = text;
	bool start = true;

	for (const char *in = text; *in != '\0'; in++) {
		bool skip = start && in[0] == '#' && in[1] != ' ' && in[1] != '\n';
		start = *in == '\n' || (start && *in == ' ');
		if (!skip)
			*out++ = *in;
	}
	*out = '\0';
}

static void same_settings(const struct hpx_settings *got, const struct hpx_settings *want)
{
	for (size_t i = 0; i < hpx_config_options.count; i++) {
		const struct hpx_option *option = &hpx_config_options.rows[i];
		bool global = option->place == HPX_PLACE_GLOBAL;
		if (option->place > HPX_PLACE_ROUTE)
			continue;
		bool same = hpx_value_same(option, global ? (const void *)got : &got->fallback,
					   global ? (const void *)want : &want->fallback);
		/* The sample has limits.preset: public. */
		if (same != (option->sample == NULL && option->public_value == NULL))
			fail_msg("%s is%s the default", option->name, same ? "" : " not");
	}
	assert_int_equal(got->route_count, 0);
	assert_int_equal(got->target_count, 0);
	assert_int_equal(got->webhook_count, 0);
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	for (; (text = strstr(text, part)) != NULL; text++)
		count++;
	return count;
}

static void the_sample_gives_the_defaults(void **state)
{
	struct hpx_settings *defaults =
		test_settings("upstream: http://127.0.0.1:9000\n", NULL);
	struct hpx_buffer sample;
	(void)state;

	hpx_buffer_init(&sample, FILE_BYTES_MAX);
	assert_status(hpx_config_print_sample(&sample), HPX_OK);
	assert_status(hpx_buffer_byte(&sample, '\0'), HPX_OK);
	struct hpx_settings *settings = test_settings(sample.ptr, NULL);
	same_settings(settings, defaults);
	hpx_settings_unref(settings);

	size_t lines = count_of(sample.ptr, "\n#") + count_of(sample.ptr, "  #");
	uncomment(sample.ptr);
	assert_true(count_of(sample.ptr, "\n#") + count_of(sample.ptr, "  #") + 50 < lines);
	assert_non_null(strstr(sample.ptr, "\n  head: 32KiB\n"));
	settings = test_settings(sample.ptr, NULL);
	same_settings(settings, defaults);
	hpx_settings_unref(settings);

	hpx_buffer_done(&sample);
	hpx_settings_unref(defaults);
}

static void the_sample_names_every_option(void **state)
{
	struct hpx_buffer sample;
	char line[HPX_OPTION_PATH_SIZE];
	(void)state;

	hpx_buffer_init(&sample, FILE_BYTES_MAX);
	assert_status(hpx_config_print_sample(&sample), HPX_OK);
	assert_status(hpx_buffer_byte(&sample, '\0'), HPX_OK);
	for (size_t i = 0; i < hpx_config_options.count; i++) {
		const struct hpx_option *option = &hpx_config_options.rows[i];
		const char *dot = strrchr(option->name, '.');
		if (option->place == HPX_PLACE_COMMAND)
			continue;
		snprintf(line, sizeof(line), "%s: ", dot ? dot + 1 : option->name);
		if (strstr(sample.ptr, line) == NULL)
			fail_msg("%s is not in the sample", option->name);
	}
	hpx_buffer_done(&sample);
}

static void a_full_buffer_is_a_status(void **state)
{
	static enum hpx_status (*const prints[])(struct hpx_buffer * out) = {
		hpx_config_print_reference,
		hpx_config_print_sample,
	};
	(void)state;
	for (size_t i = 0; i < COUNT(prints); i++) {
		for (size_t max = 0; max < 40000; max += 97) {
			struct hpx_buffer out;
			hpx_buffer_init(&out, max);
			enum hpx_status status = prints[i](&out);
			hpx_buffer_done(&out);
			if (status == HPX_OK)
				break;
			assert_status(status, HPX_TOO_LARGE);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_files_in_the_tree_are_those_of_the_table),
		cmocka_unit_test(the_sample_gives_the_defaults),
		cmocka_unit_test(the_sample_names_every_option),
		cmocka_unit_test(a_full_buffer_is_a_status),
	};
	return cmocka_run_group_tests_name("generated", tests, NULL, NULL);
}
