/* Names that speak of a credential, and the seal of a value. */
#include "client/credential.h"

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool contains(struct hpx_span name, struct hpx_span word)
{
	for (size_t i = 0; i + word.len <= name.len; i++)
		if (hpx_span_istarts(hpx_span_skip(name, i), word))
			return true;
	return false;
}

/* Too many are better than too few: one more to be given again at a resume. */
bool hpx_credential_is(struct hpx_span name)
{
	static const struct hpx_span words[] = {
		HPX_SPAN_INIT("auth"),
		HPX_SPAN_INIT("cookie"),
		HPX_SPAN_INIT("token"),
		HPX_SPAN_INIT("secret"),
		HPX_SPAN_INIT("password"),
		HPX_SPAN_INIT("session"),
		HPX_SPAN_INIT("signature"),
		HPX_SPAN_INIT("credential"),
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (contains(name, words[i]))
			return true;
	return name.len >= 3 &&
	       hpx_span_ieq(hpx_span_skip(name, name.len - 3), HPX_SPAN("key"));
}

/* The case of a name does not matter to anybody else either. */
static void add_name(struct hpx_sha256 *hash, struct hpx_span name)
{
	char small[256];
	size_t len = name.len < sizeof(small) ? name.len : sizeof(small);

	for (size_t i = 0; i < len; i++)
		small[i] = lower(name.ptr[i]);
	hpx_sha256_part(hash, hpx_span(small, len));
}

static enum hpx_status digest(const uint8_t salt[HPX_SALT_SIZE], struct hpx_span name,
			      struct hpx_span value, uint8_t ret_digest[HPX_SHA256_SIZE])
{
	struct hpx_sha256 hash;

	hpx_sha256_init(&hash);
	hpx_sha256_part(&hash, hpx_span(salt, HPX_SALT_SIZE));
	add_name(&hash, name);
	hpx_sha256_part(&hash, value);
	return hpx_sha256_done(&hash, ret_digest);
}

enum hpx_status hpx_seal_make(struct hpx_span name, struct hpx_span value,
			      struct hpx_seal *ret_seal)
{
	hpx_random(ret_seal->salt, sizeof(ret_seal->salt));
	return digest(ret_seal->salt, name, value, ret_seal->digest);
}

enum hpx_status hpx_seal_check(const struct hpx_seal *seal, struct hpx_span name,
			       struct hpx_span value)
{
	uint8_t got[HPX_SHA256_SIZE];
	enum hpx_status status = digest(seal->salt, name, value, got);

	if (status != HPX_OK)
		return status;
	return hpx_bytes_same(got, seal->digest, sizeof(got)) ? HPX_OK : HPX_CONFLICT;
}
