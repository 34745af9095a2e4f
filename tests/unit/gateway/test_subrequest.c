/* Shows what an authorisation service's answer is taken for, and that what is
 * remembered of it is bounded, ends in time, and never is another's. */
#include "../test.h"

#include "gateway/subrequest.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void an_answer_names_or_refuses(void **state)
{
	static const struct {
		unsigned status;
		const char *headers;
		enum hpx_identity_kind kind;
		const char *name;
	} rows[] = {
		{ 200, "X-Tenant: acme\r\n", HPX_IDENTITY_NAMED, "acme" },
		{ 204, "Date: x\r\nx-tenant:acme\r\nServer: y\r\n", HPX_IDENTITY_NAMED, "acme" },
		{ 299, "X-TENANT: \t a/b:c \r\n", HPX_IDENTITY_NAMED, "a/b:c" },
		{ 200, "X-Tenant-Id: acme\r\n", HPX_IDENTITY_UNAUTHENTICATED, "" },
		{ 200, "X-Tenant: \r\n", HPX_IDENTITY_UNAUTHENTICATED, "" },
		{ 200, "", HPX_IDENTITY_UNAUTHENTICATED, "" },
		{ 200, "X-Tenant: a\r\nX-Tenant: b\r\n", HPX_IDENTITY_UNAVAILABLE, "" },
		{ 200, "X-Tenant: a\r\nX-Tenant: \r\n", HPX_IDENTITY_UNAVAILABLE, "" },
		{ 200, "X-Tenant: a b\r\n", HPX_IDENTITY_UNAVAILABLE, "" },
		{ 200, "X-Tenant: \xc3\xa4\r\n", HPX_IDENTITY_UNAVAILABLE, "" },
		{ 401, "X-Tenant: acme\r\n", HPX_IDENTITY_UNAUTHENTICATED, "" },
		{ 403, "X-Tenant: acme\r\n", HPX_IDENTITY_FORBIDDEN, "" },
		{ 302, "X-Tenant: acme\r\n", HPX_IDENTITY_UNAVAILABLE, "" },
		{ 404, "X-Tenant: acme\r\n", HPX_IDENTITY_UNAVAILABLE, "" },
		{ 429, "", HPX_IDENTITY_UNAVAILABLE, "" },
		{ 500, "X-Tenant: acme\r\n", HPX_IDENTITY_UNAVAILABLE, "" },
		{ 0, "", HPX_IDENTITY_UNAVAILABLE, "" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_identity got;
		hpx_identity_read(rows[i].status, hpx_span_of(rows[i].headers), HPX_SPAN("X-Tenant"),
				  &got);
		if (got.kind != rows[i].kind ||
		    !hpx_span_eq(hpx_span(got.name, got.name_len), hpx_span_of(rows[i].name)))
			fail_msg("row %zu: got kind %d \"%.*s\", want %d \"%s\"", i, got.kind,
				 got.name_len, got.name, rows[i].kind, rows[i].name);
	}
}

static void a_name_has_its_bound(void **state)
{
	char headers[400];
	struct hpx_identity got;

	(void)state;
	for (int len = 254; len <= 257; len++) {
		snprintf(headers, sizeof(headers), "X-Tenant: %0*d\r\n", len, 7);
		hpx_identity_read(200, hpx_span_of(headers), HPX_SPAN("X-Tenant"), &got);
		assert_int_equal(got.kind, len <= 255 ? HPX_IDENTITY_NAMED :
							HPX_IDENTITY_UNAVAILABLE);
		if (len <= 255)
			assert_int_equal(got.name_len, len);
	}
}

static void digest_of(unsigned n, uint8_t ret_digest[HPX_SHA256_SIZE])
{
	struct hpx_sha256 hash;

	hpx_sha256_init(&hash);
	hpx_sha256_part(&hash, hpx_span(&n, sizeof(n)));
	assert_status(hpx_sha256_done(&hash, ret_digest), HPX_OK);
}

static struct hpx_identity named(unsigned n)
{
	struct hpx_identity identity = { .kind = HPX_IDENTITY_NAMED };

	identity.name_len = (uint8_t)snprintf(identity.name, sizeof(identity.name), "tenant%u", n);
	return identity;
}

/* Whether number n is remembered; fails where it is somebody else. */
static bool knows(struct hpx_identities *all, unsigned n, int64_t now_ms)
{
	struct hpx_identity want = named(n), got;
	uint8_t digest[HPX_SHA256_SIZE];

	digest_of(n, digest);
	if (!hpx_identities_find(all, digest, now_ms, &got))
		return false;
	if (got.kind != want.kind || got.name_len != want.name_len ||
	    memcmp(got.name, want.name, want.name_len) != 0)
		fail_msg("number %u is taken for \"%.*s\"", n, got.name_len, got.name);
	return true;
}

static void put(struct hpx_identities *all, unsigned n, int64_t until_ms)
{
	struct hpx_identity identity = named(n);
	uint8_t digest[HPX_SHA256_SIZE];

	digest_of(n, digest);
	hpx_identities_put(all, digest, &identity, until_ms);
}

static void it_is_remembered_until_its_end(void **state)
{
	struct hpx_identities *all = hpx_identities_new(64);

	(void)state;
	assert_false(knows(all, 1, 0));
	put(all, 1, 1000);
	assert_true(knows(all, 1, 0));
	assert_true(knows(all, 1, 999));
	assert_false(knows(all, 1, 1000));
	put(all, 1, 3000); /* asked anew */
	assert_true(knows(all, 1, 2000));
	hpx_identities_free(all);
}

/* Ten thousand callers through 64 places: never more than that are known, and
 * nobody is taken for another. */
static void it_is_bounded(void **state)
{
	struct hpx_identities *all = hpx_identities_new(64);
	unsigned known = 0;

	(void)state;
	for (unsigned n = 0; n < 10000; n++) {
		put(all, n, 1000 + n);
		assert_true(knows(all, n, 0));
	}
	for (unsigned n = 0; n < 10000; n++)
		known += knows(all, n, 0);
	assert_in_range(known, 1, 64);
	hpx_identities_free(all);
}

/* Refusals end soon, so they make room for each other before any name does. */
static void whoever_guesses_pushes_nobody_out(void **state)
{
	struct hpx_identities *all = hpx_identities_new(4);

	(void)state;
	for (unsigned n = 0; n < 3; n++)
		put(all, n, 60000);
	for (unsigned n = 100; n < 1000; n++)
		put(all, n, 2000);
	for (unsigned n = 0; n < 3; n++)
		assert_true(knows(all, n, 0));
	hpx_identities_free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_names_or_refuses),
		cmocka_unit_test(a_name_has_its_bound),
		cmocka_unit_test(it_is_remembered_until_its_end),
		cmocka_unit_test(it_is_bounded),
		cmocka_unit_test(whoever_guesses_pushes_nobody_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
