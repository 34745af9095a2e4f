/* Any field value: a key that is taken is within its bounds, means the same in
 * both modes, and comes back from its quoted spelling. */
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "core/operation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_bounds(const struct hpx_key *key)
{
	HPX_ASSERT(key->len >= 1 && key->len <= HPX_KEY_MAX);
	for (size_t i = 0; i < key->len; i++)
		HPX_ASSERT(key->bytes[i] >= 0x20 && key->bytes[i] <= 0x7e);
}

static void check_same(const struct hpx_key *a, const struct hpx_key *b)
{
	HPX_ASSERT(hpx_span_eq(hpx_span(a->bytes, a->len), hpx_span(b->bytes, b->len)));
}

static void check_quoted(const struct hpx_key *key)
{
	char text[2 * HPX_KEY_MAX + 2];
	size_t len = 0;
	struct hpx_key again;
	const char *reason;

	text[len++] = '"';
	for (size_t i = 0; i < key->len; i++) {
		if (key->bytes[i] == '"' || key->bytes[i] == '\\')
			text[len++] = '\\';
		text[len++] = key->bytes[i];
	}
	text[len++] = '"';
	HPX_ASSERT(hpx_key_parse(hpx_span(text, len), true, &again, &reason) == HPX_OK);
	check_same(key, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hpx_span value = hpx_span(data, size);
	struct hpx_key key;
	struct hpx_key strict;
	const char *reason = NULL;

	bool good = hpx_key_parse(value, false, &key, &reason) == HPX_OK;
	HPX_ASSERT(good == (reason == NULL));
	if (good) {
		check_bounds(&key);
		check_quoted(&key);
	}
	if (hpx_key_parse(value, true, &strict, &reason) == HPX_OK) {
		HPX_ASSERT(good);
		check_same(&key, &strict);
	}
	return 0;
}
