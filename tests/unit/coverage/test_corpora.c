/* Shows that published descriptions come out as their publishers wrote them: how many
 * operations of each method there are, how many have a key, and how many require it. */
#include "../test.h"

#include <dirent.h>

#include "coverage/coverage.h"

static struct hpx_coverage coverage;

static void read_api(const char *path)
{
	const struct hpx_document *document =
		hpx_library_open(&coverage.library, hpx_span_of(path));

	if (document == NULL)
		fail_msg("%s: %s", path, coverage.library.errors[0].reason.ptr);
	hpx_coverage_read_api(&coverage, document);
	assert_int_equal(coverage.library.error_count, 0);
}

static unsigned read_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned files = 0;
	char path[8192];

	assert_non_null(dir);
	for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
		if (strstr(entry->d_name, ".json") == NULL)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		read_api(path);
		files++;
	}
	closedir(dir);
	return files;
}

struct method_count {
	unsigned all;
	unsigned marked;
	unsigned required;
};

static void expect(const char *method, struct method_count want)
{
	struct method_count got = { 0, 0, 0 };

	for (size_t i = 0; i < coverage.operation_count; i++) {
		const struct hpx_covered_operation *operation = &coverage.operations[i];
		if (!hpx_span_eq(operation->method, hpx_span_of(method)))
			continue;
		bool marked = operation->key.class <= HPX_CLASS_BODY;
		got.all++;
		got.marked += marked;
		got.required += marked && operation->key.required;
		/* Each says where it is known from. */
		assert_true(operation->key.place.line > 0 && operation->key.reason.len > 0);
	}
	if (got.all != want.all || got.marked != want.marked || got.required != want.required)
		fail_msg("%s: got %u, %u marked, %u required; want %u, %u, %u", method, got.all,
			 got.marked, got.required, want.all, want.marked, want.required);
}

static void test_paypal(void **state)
{
	const char *corpora = test_corpora();
	char path[4096];

	(void)state;
	if (corpora == NULL)
		skip();
	snprintf(path, sizeof(path), "%s/openapi/paypal", corpora);
	hpx_coverage_init(&coverage);
	assert_int_equal(read_folder(path), 17);
	expect("POST", (struct method_count){ 79, 20, 3 });
	hpx_coverage_done(&coverage);
}

static void test_square(void **state)
{
	const char *corpora = test_corpora();
	char path[4096];

	(void)state;
	if (corpora == NULL)
		skip();
	snprintf(path, sizeof(path), "%s/openapi/square/api.json", corpora);
	hpx_coverage_init(&coverage);
	read_api(path);
	expect("POST", (struct method_count){ 139, 52, 26 });
	expect("PUT", (struct method_count){ 33, 11, 1 });
	hpx_coverage_done(&coverage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paypal),
		cmocka_unit_test(test_square),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
