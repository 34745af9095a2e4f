/* Each scheme brings its headers into one form, a claim: the signatures, the
 * time, and what is signed before the body. One function then judges it. */
#include "core/signature.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "base/bytes.h"
#include "base/status.h"

#define HEX_LEN (2 * HPX_SHA256_SIZE)
#define BASE64_LEN 44

/* What the headers claim. `lead` is joined and followed by dots. */
struct signature_claim {
	struct hpx_span lead[2];
	size_t lead_count;
	bool timed;
	int64_t time_ms;
	uint8_t macs[HPX_SIGNATURE_ITEMS_MAX][HPX_SHA256_SIZE];
	size_t mac_count;
};

const char *hpx_signature_scheme_name(enum hpx_signature_scheme scheme)
{
	static const char *const names[] = {
#define X(name, text) text,
		HPX_SIGNATURE_SCHEME_LIST(X)
#undef X
	};
	return (unsigned)scheme < HPX_SIGNATURE_SCHEME_COUNT ? names[scheme] : "?";
}

enum hpx_status hpx_signature_key(enum hpx_signature_scheme scheme, struct hpx_span secret,
				  struct hpx_arena *arena, struct hpx_span *ret_key)
{
	static const struct hpx_span mark = HPX_SPAN_INIT("whsec_");
	struct hpx_span key = secret;

	if (scheme == HPX_SIGNATURE_SCHEME_STANDARD && hpx_span_starts(secret, mark)) {
		struct hpx_span text = hpx_span_skip(secret, mark.len);
		char *bytes = hpx_arena_alloc(arena, text.len / 4 * 3);
		size_t len;

		if (bytes == NULL)
			return HPX_NOMEM;
		if (!hpx_base64_decode(text, bytes, &len))
			return HPX_INVALID;
		key = hpx_span(bytes, len);
	}
	if (key.len == 0)
		return HPX_INVALID;
	*ret_key = key;
	return HPX_OK;
}

static bool add_hex(struct signature_claim *claim, struct hpx_span text)
{
	return claim->mac_count < HPX_SIGNATURE_ITEMS_MAX &&
	       hpx_hex_decode(text, claim->macs[claim->mac_count++], HPX_SHA256_SIZE);
}

static bool add_base64(struct signature_claim *claim, struct hpx_span text)
{
	uint8_t bytes[BASE64_LEN / 4 * 3];
	size_t len;

	if (claim->mac_count == HPX_SIGNATURE_ITEMS_MAX || text.len != BASE64_LEN ||
	    !hpx_base64_decode(text, bytes, &len) || len != HPX_SHA256_SIZE)
		return false;
	memcpy(claim->macs[claim->mac_count++], bytes, HPX_SHA256_SIZE);
	return true;
}

/* Seconds since 1970. What is signed is the text as it was sent. */
static bool set_time(struct signature_claim *claim, struct hpx_span text)
{
	uint64_t seconds;

	if (claim->timed || !hpx_span_u64(text, INT64_MAX / 1000, &seconds))
		return false;
	HPX_ASSERT(claim->lead_count < 2);
	claim->timed = true;
	claim->time_ms = (int64_t)seconds * 1000;
	claim->lead[claim->lead_count++] = text;
	return true;
}

/* One "name=value". Names we do not know are other versions: passed over. */
static bool read_stripe_item(struct signature_claim *claim, struct hpx_span item)
{
	size_t at = hpx_span_index(item, '=');
	struct hpx_span name = hpx_span_first(item, at);

	/* No sender puts a space there, but a header that came twice is joined
	 * with one: whose time would count? */
	if (at == 0 || at == item.len || hpx_span_index(item, ' ') < item.len)
		return false;
	struct hpx_span value = hpx_span_skip(item, at + 1);
	if (hpx_span_eq(name, HPX_SPAN("t")))
		return set_time(claim, value);
	if (hpx_span_eq(name, HPX_SPAN("v1")))
		return add_hex(claim, value);
	return true;
}

static enum hpx_signature read_stripe(const struct hpx_signature_message *message,
				      struct signature_claim *claim)
{
	struct hpx_span rest = message->header(message->user, HPX_SPAN("stripe-signature"));
	struct hpx_span item;

	if (rest.ptr == NULL)
		return HPX_SIGNATURE_MISSING;
	for (size_t count = 0; hpx_span_split(&rest, ',', &item); count++)
		if (count == HPX_SIGNATURE_ITEMS_MAX || !read_stripe_item(claim, item))
			return HPX_SIGNATURE_MALFORMED;
	if (!claim->timed)
		return HPX_SIGNATURE_MALFORMED;
	return claim->mac_count > 0 ? HPX_SIGNATURE_OK : HPX_SIGNATURE_MISSING;
}

/* One "version,signature". */
static bool read_standard_item(struct signature_claim *claim, struct hpx_span item)
{
	size_t at = hpx_span_index(item, ',');

	if (at == 0 || at == item.len)
		return false;
	struct hpx_span value = hpx_span_skip(item, at + 1);
	/* A second comma: the header came twice and was joined with one. */
	if (value.len == 0 || hpx_span_index(value, ',') < value.len)
		return false;
	if (hpx_span_eq(hpx_span_first(item, at), HPX_SPAN("v1")))
		return add_base64(claim, value);
	return true;
}

/* A dot in the id would let "a.1" and time 2 stand for "a" and time 1 before a
 * body that begins with "2."; a comma or a space is a header that came twice. */
static bool set_id(struct signature_claim *claim, struct hpx_span id)
{
	for (size_t i = 0; i < id.len; i++)
		if (id.ptr[i] <= ' ' || id.ptr[i] > '~' || id.ptr[i] == ',' || id.ptr[i] == '.')
			return false;
	HPX_ASSERT(claim->lead_count == 0);
	claim->lead[claim->lead_count++] = id;
	return id.len > 0;
}

static enum hpx_signature read_standard(const struct hpx_signature_message *message,
					struct signature_claim *claim)
{
	struct hpx_span id = message->header(message->user, HPX_SPAN("webhook-id"));
	struct hpx_span time = message->header(message->user, HPX_SPAN("webhook-timestamp"));
	struct hpx_span rest = message->header(message->user, HPX_SPAN("webhook-signature"));
	struct hpx_span item;

	if (id.ptr == NULL || time.ptr == NULL || rest.ptr == NULL)
		return HPX_SIGNATURE_MISSING;
	if (!set_id(claim, id) || !set_time(claim, time))
		return HPX_SIGNATURE_MALFORMED;
	for (size_t count = 0; hpx_span_split(&rest, ' ', &item); count++)
		if (count == HPX_SIGNATURE_ITEMS_MAX || !read_standard_item(claim, item))
			return HPX_SIGNATURE_MALFORMED;
	return claim->mac_count > 0 ? HPX_SIGNATURE_OK : HPX_SIGNATURE_MISSING;
}

/* The two spellings of 32 bytes differ in length, so nobody has to say which. */
static enum hpx_signature read_hmac_body(const struct hpx_signature_settings *settings,
					 const struct hpx_signature_message *message,
					 struct signature_claim *claim)
{
	struct hpx_span value = message->header(message->user, settings->header);

	if (value.ptr == NULL)
		return HPX_SIGNATURE_MISSING;
	if (!hpx_span_starts(value, settings->prefix))
		return HPX_SIGNATURE_MALFORMED;
	value = hpx_span_skip(value, settings->prefix.len);
	bool good = value.len == HEX_LEN ? add_hex(claim, value) : add_base64(claim, value);
	return good ? HPX_SIGNATURE_OK : HPX_SIGNATURE_MALFORMED;
}

static enum hpx_signature read_claim(const struct hpx_signature_settings *settings,
				     const struct hpx_signature_message *message,
				     struct signature_claim *claim)
{
	switch (settings->scheme) {
	case HPX_SIGNATURE_SCHEME_STRIPE:
		return read_stripe(message, claim);
	case HPX_SIGNATURE_SCHEME_STANDARD:
		return read_standard(message, claim);
	case HPX_SIGNATURE_SCHEME_HMAC_BODY:
		return read_hmac_body(settings, message, claim);
	case HPX_SIGNATURE_SCHEME_COUNT:
		break;
	}
	return HPX_SIGNATURE_MALFORMED;
}

static bool add_part(EVP_MAC_CTX *context, struct hpx_span part)
{
	return part.len == 0 ||
	       EVP_MAC_update(context, (const unsigned char *)part.ptr, part.len) == 1;
}

/* False: no memory. */
static bool sign(EVP_MAC_CTX *context, struct hpx_span key, const struct signature_claim *claim,
		 struct hpx_span body, uint8_t ret_mac[HPX_SHA256_SIZE])
{
	char digest[] = "SHA256";
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end(),
	};
	size_t len;

	bool good = EVP_MAC_init(context, (const unsigned char *)key.ptr, key.len, params) == 1;
	for (size_t i = 0; good && i < claim->lead_count; i++)
		good = add_part(context, claim->lead[i]) && add_part(context, HPX_SPAN("."));
	return good && add_part(context, body) &&
	       EVP_MAC_final(context, ret_mac, &len, HPX_SHA256_SIZE) == 1 &&
	       len == HPX_SHA256_SIZE;
}

/* Every key and every signature is looked at, whichever fits: the time this
 * takes says nothing of them. */
static enum hpx_signature compare(const struct hpx_signature_settings *settings,
				  const struct signature_claim *claim, struct hpx_span body)
{
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *context = hmac != NULL ? EVP_MAC_CTX_new(hmac) : NULL;
	bool good = context != NULL;
	bool found = false;

	HPX_ASSERT(claim->mac_count > 0 && claim->mac_count <= HPX_SIGNATURE_ITEMS_MAX);

	for (size_t k = 0; good && k < settings->key_count; k++) {
		uint8_t mac[HPX_SHA256_SIZE];

		good = sign(context, settings->keys[k], claim, body, mac);
		for (size_t i = 0; good && i < claim->mac_count; i++)
			found |= hpx_bytes_same(mac, claim->macs[i], sizeof(mac));
	}
	EVP_MAC_CTX_free(context);
	EVP_MAC_free(hmac);
	if (!good)
		return HPX_SIGNATURE_UNCHECKED;
	return found ? HPX_SIGNATURE_OK : HPX_SIGNATURE_WRONG;
}

static bool in_time(int64_t time_ms, int64_t now_ms, int64_t tolerance_ms)
{
	int64_t apart;

	if (__builtin_sub_overflow(now_ms, time_ms, &apart) || apart == INT64_MIN)
		return false;
	return (apart < 0 ? -apart : apart) <= tolerance_ms;
}

/* The time is judged last, so that TOO_OLD is only said of what was signed
 * rightly: a clock that is wrong then looks like one, not like an attack. */
enum hpx_signature hpx_signature_check(const struct hpx_signature_settings *settings,
				       const struct hpx_signature_message *message, int64_t now_ms)
{
	struct signature_claim claim = { .lead_count = 0 };

	enum hpx_signature signature = read_claim(settings, message, &claim);
	if (signature == HPX_SIGNATURE_OK)
		signature = compare(settings, &claim, message->body);
	if (signature == HPX_SIGNATURE_OK && claim.timed &&
	    !in_time(claim.time_ms, now_ms, settings->tolerance_ms))
		signature = HPX_SIGNATURE_TOO_OLD;
	return signature;
}

int64_t hpx_signature_time(const struct hpx_signature_settings *settings,
			   const struct hpx_signature_message *message)
{
	struct signature_claim claim = { .lead_count = 0 };

	if (read_claim(settings, message, &claim) != HPX_SIGNATURE_OK || !claim.timed)
		return 0;
	return claim.time_ms;
}
