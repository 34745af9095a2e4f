/* Shows that whichever allocation fails, a webhook, a verdict and a provider's
 * export fail with it: running out of memory is never taken for a wrong
 * signature, for "unclear", or for the end of a file. */
#include "failing_memory.h"

#include <openssl/crypto.h>

#include "core/ledger.h"
#include "core/reconcile.h"
#include "core/signature.h"

/* OpenSSL's allocations do not pass the linker's --wrap. */
static void *openssl_malloc(size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return __wrap_malloc(size);
}

static void *openssl_realloc(void *ptr, size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return __wrap_realloc(ptr, size);
}

static void openssl_free(void *ptr, const char *file, int line)
{
	(void)file;
	(void)line;
	free(ptr);
}

static struct hpx_span the_header(void *user, struct hpx_span name)
{
	(void)user;
	(void)name;
	/* GitHub's published example. */
	return HPX_SPAN("757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17");
}

static void a_signature(void **state)
{
	static const struct hpx_span key = HPX_SPAN_INIT("It's a Secret to Everybody");
	static const struct hpx_signature_settings settings = { .scheme = HPX_SIGNATURE_SCHEME_HMAC_BODY,
								.keys = &key,
								.key_count = 1,
								.header = HPX_SPAN_INIT("x") };
	struct hpx_signature_message message = { HPX_SPAN_INIT("Hello, World!"), the_header, NULL };
	size_t unchecked = 0;
	(void)state;
	assert_int_equal(hpx_signature_check(&settings, &message, 0), HPX_SIGNATURE_OK);
	for (size_t n = 0;; n++) {
		allocations_left = n;
		enum hpx_signature got = hpx_signature_check(&settings, &message, 0);
		bool all_given = allocations_left != SIZE_MAX && allocations_left > 0;
		allocations_left = SIZE_MAX;
		/* OpenSSL can do without some of them. */
		if (got != HPX_SIGNATURE_OK && got != HPX_SIGNATURE_UNCHECKED)
			fail_msg("allocation %zu fails: got %d", n, (int)got);
		unchecked += got == HPX_SIGNATURE_UNCHECKED;
		if (got == HPX_SIGNATURE_OK && all_given)
			break;
	}
	assert_true(unchecked > 0);
}

static void a_verdict(void **state)
{
	static const struct hpx_span words[] = { HPX_SPAN_INIT("a\nb") };
	static const struct hpx_ruling_mapping mapping = { HPX_SPAN_INIT("/x/y"),
							   { [HPX_RULING_DECLINED] = { NULL, 0, words, 1 } } };
	enum hpx_status status = HPX_NOMEM;
	enum hpx_ruling ruling = HPX_RULING_COUNT;
	size_t n = 0;
	(void)state;
	while (status != HPX_OK) {
		assert_int_equal(ruling, HPX_RULING_COUNT);
		allocations_left = n++;
		status = hpx_ruling_of_answer(&mapping, 200, HPX_SPAN("{\"x\":{\"y\":\"a\\nb\"}}"), &ruling);
		allocations_left = SIZE_MAX;
		if (status != HPX_OK)
			assert_status(status, HPX_NOMEM);
	}
	assert_int_equal(ruling, HPX_RULING_DECLINED);
	assert_true(n > 3);
}

/* Reads the whole file with the n-th allocation failing; true when none did. */
static bool read_ledger(const struct hpx_ledger_settings *settings, struct hpx_span file, size_t n)
{
	static struct hpx_ledger ledger;
	struct hpx_ledger_record record;
	enum hpx_ledger_step step = HPX_LEDGER_RECORD;
	size_t records = 0;

	allocations_left = n;
	enum hpx_status status = hpx_ledger_init(&ledger, settings);
	while (status == HPX_OK && step == HPX_LEDGER_RECORD) {
		step = hpx_ledger_next(&ledger, &file, true, &record);
		records += step == HPX_LEDGER_RECORD;
	}
	allocations_left = SIZE_MAX;
	if (status != HPX_OK) {
		assert_status(status, HPX_NOMEM);
		return false;
	}
	if (step == HPX_LEDGER_FAILED)
		assert_non_null(strstr(hpx_ledger_error(&ledger), "out of memory"));
	else
		assert_int_equal(records, 2);
	hpx_ledger_done(&ledger);
	return step == HPX_LEDGER_END;
}

static void a_ledger(void **state)
{
	static const struct hpx_span columns[] = { HPX_SPAN_INIT("id"), HPX_SPAN_INIT("amount") };
	static const struct {
		struct hpx_ledger_settings settings;
		struct hpx_span file;
		size_t more_than;
	} rows[] = {
		{ { HPX_LEDGER_CSV, ',', columns, 2, 4096 }, HPX_SPAN_INIT("id,amount\na,1\nb,2\n"), 0 },
		{ { HPX_LEDGER_JSON_LINES, 0, columns, 2, 4096 },
		  HPX_SPAN_INIT("{\"id\":\"\\n\",\"amount\":1}\n{\"id\":2}\n"),
		  5 },
	};
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		size_t n = 0;
		while (!read_ledger(&rows[i].settings, rows[i].file, n))
			n++;
		if (n <= rows[i].more_than)
			fail_msg("row %zu: got %zu allocations", i, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signature),
		cmocka_unit_test(a_verdict),
		cmocka_unit_test(a_ledger),
	};
	if (CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) != 1)
		return 1;
	return cmocka_run_group_tests_name("reconcile_memory", tests, NULL, NULL);
}
