/* Shows that whichever allocation fails, reading a configuration says so,
 * loses nothing, and never gives half of it. */
#include "config_test.h"

#include <stdlib.h>

/* The linker sends every allocation of the code under test through these
 * (--wrap); the n-th one fails. */
static size_t allocations_left = SIZE_MAX;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);

static bool fails(void)
{
	return allocations_left != SIZE_MAX && allocations_left-- == 0;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
	return fails() ? NULL : __real_realloc(ptr, size);
}

/* More than one chunk of an arena, so that allocations lie all over. */
static char *long_text(void)
{
	static const char begin[] =
		"upstream: http://h:1\nstore: sqlite:/s\n"
		"targets:\n"
		"  t: {url: 'https://t/', credentials: {env: HPX_TEST_SECRET}, reconcile: {\n"
		"    probe: {get: '/{key}', applied: [200, ok], verdict: /v}}}\n"
		"webhooks:\n"
		"  w: {scheme: standard-webhooks, secret_env: HPX_TEST_SECRET, operation: /o,\n"
		"    verdict: /v, applied: [ok]}\n"
		"trusted_peers: [10.0.0.0/8]\nroutes:\n";
	size_t size = 16384;
	char *text = malloc(size);
	setenv("HPX_TEST_SECRET", "whsec_b25l", 1);
	size_t len = (size_t)snprintf(text, size, "%s", begin);

	for (int i = 0; i < 40; i++)
		len += (size_t)snprintf(
			text + len, size - len,
			"  - match: POST h%d/a%%7e/{b}/%d\n"
			"    lease: %ds\n"
			"    fingerprint: {ignore: [/b, /a], headers: [X-B, X-A]}\n"
			"    reconcile: {probe: {get: '/{operation}', applied: [200]}}\n",
			i, i, i + 1);
	return text;
}

static void the_nth_allocation_fails(void **state)
{
	static const struct hpx_config_flags flags;
	char *text = long_text();
	struct hpx_settings *settings = NULL;
	size_t n = 0;
	(void)state;

	for (; settings == NULL; n++) {
		struct hpx_config_report report;
		hpx_config_report_init(&report);
		allocations_left = n;
		enum hpx_status status =
			hpx_config_read(hpx_span_of(text), &flags, &report, &settings);
		allocations_left = SIZE_MAX;
		assert_int_equal(report.mistakes, 0);
		assert_status(status, settings != NULL ? HPX_OK : HPX_NOMEM);
		hpx_config_report_done(&report);
	}
	assert_true(n > 20);
	assert_int_equal(settings->route_count, 40);
	assert_int_equal(settings->target_count, 1);
	assert_int_equal(settings->webhooks[0].signature.key_count, 1);
	hpx_settings_unref(settings);
	free(text);
}

static void a_mistake_without_memory_is_still_one(void **state)
{
	static const struct hpx_config_flags flags;
	bool told = false;
	(void)state;

	for (size_t n = 0; !told; n++) {
		struct hpx_config_report report;
		struct hpx_settings *settings = NULL;
		hpx_config_report_init(&report);
		allocations_left = n;
		enum hpx_status status =
			hpx_config_read(HPX_SPAN("lisen: x\n"), &flags, &report, &settings);
		allocations_left = SIZE_MAX;
		assert_null(settings);
		assert_true(status == HPX_NOMEM || status == HPX_INVALID);
		told = report.count == 2 &&
		       hpx_span_eq(report.remarks[0].message,
				   HPX_SPAN("is no option; did you mean listen?"));
		hpx_config_report_done(&report);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nth_allocation_fails),
		cmocka_unit_test(a_mistake_without_memory_is_still_one),
	};
	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
