/* Shows that hexadecimal goes both ways, hashes are SHA-256, parts never mix. */
#include "../test.h"

#include <errno.h>
#include <sys/random.h>

#include "base/bytes.h"

/* What the kernel says to the next calls; 0: what it really says. */
static int refusals[2];

ssize_t __real_getrandom(void *bytes, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t len, unsigned flags);

ssize_t __wrap_getrandom(void *bytes, size_t len, unsigned flags)
{
	int refusal = refusals[0];

	refusals[0] = refusals[1];
	refusals[1] = 0;
	if (refusal == 0)
		return __real_getrandom(bytes, len, flags);
	errno = refusal;
	return -1;
}

static void hex_goes_both_ways(void **state)
{
	uint8_t bytes[3] = { 0x00, 0xab, 0xff };
	uint8_t back[3];
	char text[7];
	(void)state;
	hpx_hex_encode(bytes, 3, text);
	assert_string_equal(text, "00abff");
	assert_true(hpx_hex_decode(HPX_SPAN("00AbfF"), back, 3));
	assert_memory_equal(bytes, back, 3);
	assert_false(hpx_hex_decode(HPX_SPAN("00abf"), back, 3));
	assert_false(hpx_hex_decode(HPX_SPAN("00abfg"), back, 3));
}

static void hash_is_sha256(void **state)
{
	struct hpx_sha256 hash;
	uint8_t digest[HPX_SHA256_SIZE];
	char text[65];
	(void)state;
	hpx_sha256_init(&hash);
	hpx_sha256_add(&hash, HPX_SPAN("ab"));
	hpx_sha256_add(&hash, HPX_SPAN("c"));
	assert_status(hpx_sha256_done(&hash, digest), HPX_OK);
	hpx_hex_encode(digest, 32, text);
	/* FIPS 180-2, appendix B.1. */
	assert_string_equal(text,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* Every byte, in texts of every length up to a few words. */
static void hex_has_every_digit(void **state)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t bytes[256];
	char text[2 * sizeof(bytes) + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	for (size_t len = 0; len <= sizeof(bytes); len = len < 20 ? len + 1 : len + 59) {
		hpx_hex_encode(bytes, len, text);
		assert_int_equal(strlen(text), 2 * len);
		for (size_t i = 0; i < len; i++) {
			assert_int_equal(text[2 * i], digits[i / 16]);
			assert_int_equal(text[2 * i + 1], digits[i % 16]);
		}
	}
}

/* Pieces of any size, around the bounds of what waits, are the same as all at once. */
static void pieces_hash_as_the_whole(void **state)
{
	static uint8_t bytes[3000];
	uint8_t whole[HPX_SHA256_SIZE], pieces[HPX_SHA256_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	SHA256(bytes, sizeof(bytes), whole);
	for (size_t step = 1; step <= 600; step = step < 300 ? step + 1 : step + 77) {
		struct hpx_sha256 hash;
		hpx_sha256_init(&hash);
		for (size_t at = 0; at < sizeof(bytes); at += step) {
			size_t left = sizeof(bytes) - at;
			hpx_sha256_add(&hash, hpx_span(bytes + at, left < step ? left : step));
		}
		assert_status(hpx_sha256_done(&hash, pieces), HPX_OK);
		assert_memory_equal(pieces, whole, sizeof(whole));
	}
}

static void parts_never_mix(void **state)
{
	struct hpx_sha256 hash;
	uint8_t a[HPX_SHA256_SIZE], b[HPX_SHA256_SIZE];
	(void)state;
	hpx_sha256_init(&hash);
	hpx_sha256_part(&hash, HPX_SPAN("ab"));
	hpx_sha256_part(&hash, HPX_SPAN("c"));
	assert_status(hpx_sha256_done(&hash, a), HPX_OK);
	hpx_sha256_init(&hash);
	hpx_sha256_part(&hash, HPX_SPAN("a"));
	hpx_sha256_part(&hash, HPX_SPAN("bc"));
	assert_status(hpx_sha256_done(&hash, b), HPX_OK);
	assert_memory_not_equal(a, b, sizeof(a));
}

static void chance_gives_each_byte_once(void **state)
{
	struct hpx_random_pool chance = { 0 };
	uint8_t taken[64][16];
	(void)state;
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		hpx_random_pool_take(&chance, taken[i], sizeof(taken[i]));
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(taken[i], taken[j], sizeof(taken[i]));
		/* What was given is not in stock any more. */
		for (size_t at = chance.left; at < sizeof(chance.bytes); at++)
			assert_int_equal(chance.bytes[at], 0);
	}
	uint8_t many[256];
	hpx_random_pool_take(&chance, many, sizeof(many));
	assert_int_equal(chance.left, 0);
}

static void a_refusal_of_the_kernel_is_a_status(void **state)
{
	(void)state;
	assert_status(hpx_random_ready(), HPX_OK);
	refusals[0] = refusals[1] = EINTR;
	assert_status(hpx_random_ready(), HPX_OK);
	refusals[0] = EINTR;
	refusals[1] = ENOSYS;
	assert_status(hpx_random_ready(), HPX_UNAVAILABLE);
}

/* Every value has one spelling: no padding, no bits beyond the last byte, no other alphabet. */
static void test_base64url(void **state)
{
	static const struct {
		const char *text;
		const char *bytes; /* NULL: refused */
	} rows[] = {
		{ "", "" },
		{ "Zg", "f" },
		{ "Zm8", "fo" },
		{ "Zm9v", "foo" },
		{ "Zm9vYg", "foob" },
		{ "-_-_", "\xfb\xff\xbf" },
		{ "Zg==", NULL },
		{ "Zh", NULL },
		{ "Zm9", NULL },
		{ "Z", NULL },
		{ "Zm9vY", NULL },
		{ "+/+/", NULL },
		{ "Zm 9", NULL },
		{ "Zm9v=", NULL },
	};
	char out[16];
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool good = hpx_base64url_decode(hpx_span_of(rows[i].text), out, &len);
		if (good != (rows[i].bytes != NULL))
			fail_msg("%s is %s", rows[i].text, good ? "taken" : "refused");
		if (good)
			assert_span(hpx_span(out, len), rows[i].bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base64url),
		cmocka_unit_test(a_refusal_of_the_kernel_is_a_status),
		cmocka_unit_test(chance_gives_each_byte_once),
		cmocka_unit_test(hex_goes_both_ways),
		cmocka_unit_test(hash_is_sha256),
		cmocka_unit_test(hex_has_every_digit),
		cmocka_unit_test(pieces_hash_as_the_whole),
		cmocka_unit_test(parts_never_mix),
	};
	return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
