/* Shows which segments of a path are taken for ids, and which paths belong to a template. */
#include "../test.h"

#include "http/path_template.h"

static const struct {
	const char *path;
	const char *want;
} rows[] = {
	{ "/", "/" },
	{ "/orders", "/orders" },
	{ "/orders/17", "/orders/{x}" },
	{ "/orders/17/items/3?page=2", "/orders/{x}/items/{x}" },
	{ "/v1/charges/ch_3LmzzQ2eZvKYlo2C0", "/v1/charges/{x}" },
	{ "/v2/checkout/orders/5O190127TN364715T/capture", "/v2/checkout/orders/{x}/capture" },
	{ "/a/3fa85f64-5717-4562-b3fc-2c963f66afa6", "/a/{x}" },
	{ "/a/507f1f77bcf86cd799439011/b", "/a/{x}/b" },
	{ "/a/01J9XZ3Q5T8V7W6Y2N4M1K0HGF", "/a/{x}" },
	{ "/days/2026-11-18", "/days/{x}" },
	{ "/users/ada@example.com", "/users/{x}" },
	{ "/invoices/INV2-Z56S-5LLA-Q52L-CPZ5/send", "/invoices/{x}/send" },
	/* Words and versions stay. */
	{ "/v12/oauth2/token", "/v12/oauth2/token" },
	{ "/api/catalog-images/bulk_create", "/api/catalog-images/bulk_create" },
	{ "/s3/ipv4/sha256/h264", "/s3/ipv4/sha256/h264" },
	{ "/customers/deadbeef", "/customers/deadbeef" },
	{ "/feedface/added", "/feedface/added" },
	{ "//a//", "//a//" },
	{ "/web-experience-profiles/XP-8YTH-NNP3-WSVN-3C76", "/web-experience-profiles/{x}" },
};

static void test_templates(void **state)
{
	char out[HPX_PATH_TEMPLATE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_span(hpx_path_template(hpx_span_of(rows[i].path), out), rows[i].want);
}

/* However long the path, the template is bounded and says that there is more. */
static void test_long_paths(void **state)
{
	char path[4096], out[HPX_PATH_TEMPLATE_MAX];

	(void)state;
	for (size_t len = 1; len < sizeof(path); len += 7) {
		for (size_t step = 2; step < 300; step += 37) {
			for (size_t i = 0; i < len; i++)
				path[i] = i % step == 0 ? '/' : 'a';
			struct hpx_span got = hpx_path_template(hpx_span(path, len), out);
			assert_in_range(got.len, 1, HPX_PATH_TEMPLATE_MAX);
			if (len > HPX_PATH_TEMPLATE_MAX)
				assert_int_equal(got.ptr[got.len - 1], '*');
			assert_true(hpx_path_matches(got, hpx_span(path, len)));
		}
	}
}

static const struct {
	const char *template;
	const char *path;
	bool want;
} pairs[] = {
	{ "/a", "/a", true },
	{ "/a", "/a?b=/c", true },
	{ "/a", "/a/", false },
	{ "/a", "/b", false },
	{ "/a/{id}", "/a/1", true },
	{ "/a/{id}", "/a/{id}", true },
	{ "/a/{id}", "/a/", false },
	{ "/a/{id}", "/a/1/b", false },
	{ "/a/{id}/b", "/a/1/b", true },
	{ "/a/*", "/a/1/b", true },
	{ "/a/*", "/a", false },
	{ "/a/{}", "/a/1", false },
};

static void test_matches(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (hpx_path_matches(hpx_span_of(pairs[i].template), hpx_span_of(pairs[i].path)) !=
		    pairs[i].want)
			fail_msg("%s and %s", pairs[i].template, pairs[i].path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_templates),
		cmocka_unit_test(test_long_paths),
		cmocka_unit_test(test_matches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
