/* Shows which names are keys, which may be, and which only sound like one; and what a text
 * for people says about keys. */
#include "../test.h"

#include "coverage/key_name.h"

static const struct {
	const char *name;
	enum hpx_key_mark want;
} names[] = {
	{ "Idempotency-Key", HPX_MARK_STRONG },
	{ "idempotency_key", HPX_MARK_STRONG },
	{ "idempotencyKey", HPX_MARK_STRONG },
	{ "X-Idempotency-Key", HPX_MARK_STRONG },
	{ "X-GCS-Idempotence-Key", HPX_MARK_STRONG },
	{ "Cko-Idempotency-Key", HPX_MARK_STRONG },
	{ "Idempotency", HPX_MARK_STRONG },
	{ "idempotency_token", HPX_MARK_STRONG },
	{ "Idempotent-Key", HPX_MARK_STRONG },
	{ "PayPal-Request-Id", HPX_MARK_STRONG },
	{ "Repeatability-Request-ID", HPX_MARK_STRONG },
	{ "opc-retry-token", HPX_MARK_STRONG },
	{ "clientToken", HPX_MARK_WEAK },
	{ "requestId", HPX_MARK_WEAK },
	{ "X-Request-Id", HPX_MARK_WEAK },
	{ "ClientRequestToken", HPX_MARK_WEAK },
	{ "is_idempotent", HPX_MARK_NONE },
	{ "isIdempotent", HPX_MARK_NONE },
	{ "is_idempotency_key", HPX_MARK_NONE },
	{ "idempotent", HPX_MARK_NONE },
	{ "idempotency_enabled", HPX_MARK_NONE },
	{ "idempotency_key_expires_at", HPX_MARK_NONE },
	{ "non_idempotent_id", HPX_MARK_NONE },
	{ "correlation_id", HPX_MARK_NONE },
	{ "key", HPX_MARK_NONE },
	{ "", HPX_MARK_NONE },
	{ "---", HPX_MARK_NONE },
	{ "idempotency_key_idempotency_key_idempotency_key_idempotency_key_idempotency_key",
	  HPX_MARK_NONE },
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		enum hpx_key_mark got = hpx_key_mark_of(hpx_span_of(names[i].name));
		if (got != names[i].want)
			fail_msg("%s: got %d, want %d", names[i].name, got, names[i].want);
	}
}

static const struct {
	const char *text;
	enum hpx_key_prose want;
} texts[] = {
	{ "Creates a payment.", HPX_PROSE_NONE },
	{ "Send an Idempotency-Key header.", HPX_PROSE_KEY },
	{ "Pass an idempotency key to retry safely.", HPX_PROSE_KEY },
	{ "IDEMPOTENCY TOKEN", HPX_PROSE_KEY },
	{ "With PayPal-Request-Id it is safe.", HPX_PROSE_KEY },
	{ "This call is idempotent.", HPX_PROSE_CLAIM },
	{ "For idempotency, ask us.", HPX_PROSE_CLAIM },
	{ "This call is not idempotent.", HPX_PROSE_NONE },
	{ "A non-idempotent call.", HPX_PROSE_NONE },
	{ "is_idempotent says so", HPX_PROSE_NONE },
	{ "Not idempotent. Send an idempotency key.", HPX_PROSE_KEY },
	{ "idempote", HPX_PROSE_NONE },
	{ "", HPX_PROSE_NONE },
};

static void test_prose(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		enum hpx_key_prose got = hpx_key_prose_of(hpx_span_of(texts[i].text));
		if (got != texts[i].want)
			fail_msg("%s: got %d, want %d", texts[i].text, got, texts[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_prose),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
