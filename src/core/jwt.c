/* From a token to a caller: the parts, the header, the signature, the claims. */
#include "core/jwt.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>
#include <stdio.h>

#include "base/bytes.h"
#include "core/json_tree.h"
#include "core/number.h"

/* Keys that one token is tried with: an issuer without `kid` has two while it rotates. Bounds
 * the time that a forged token costs. */
#define TRIES_MAX 4
#define SIGNATURE_BYTES_MAX 1024 /* RSA of 8192 bits */
#define ES256_HALF 32
#define DER_BYTES_MAX 80
#define PSS_SALT_BYTES 32
/* Later than any date, and far from an overflow. */
#define FAR_MS (INT64_MAX / 4)

static const struct hpx_json_limits limits = {
	.depth_max = 16, .digits_max = 64, .exponent_max = 64, .members_max = 1024
};

const char *hpx_jwt_result_name(enum hpx_jwt_result result)
{
	static const char *const names[] = {
#define X(name, label, text) label,
		HPX_JWT_LIST(X)
#undef X
	};
	return names[result];
}

const char *hpx_jwt_result_text(enum hpx_jwt_result result)
{
	static const char *const texts[] = {
#define X(name, label, text) text,
		HPX_JWT_LIST(X)
#undef X
	};
	return texts[result];
}

/* ---- the parts ---- */

/* header.payload.signature, each decoded; `input` is what is signed. */
struct jws_parts {
	struct hpx_span input;
	struct hpx_span header;
	struct hpx_span payload;
	struct hpx_span signature;
};

static enum hpx_jwt_result decode(struct hpx_span text, struct hpx_arena *arena,
				  struct hpx_span *ret_bytes)
{
	char *bytes = hpx_arena_alloc(arena, HPX_BASE64URL_BYTES(text.len));
	size_t len;

	if (bytes == NULL)
		return HPX_JWT_UNCHECKED;
	if (!hpx_base64url_decode(text, bytes, &len))
		return HPX_JWT_MALFORMED;
	*ret_bytes = hpx_span(bytes, len);
	return HPX_JWT_VERIFIED;
}

static enum hpx_jwt_result split(struct hpx_span token, struct hpx_arena *arena,
				 struct jws_parts *ret_parts)
{
	struct jws_parts parts;
	size_t first = hpx_span_index(token, '.');

	if (token.len > HPX_JWT_BYTES_MAX || first == token.len)
		return HPX_JWT_MALFORMED;
	struct hpx_span rest = hpx_span_skip(token, first + 1);
	size_t second = hpx_span_index(rest, '.');
	if (second == rest.len)
		return HPX_JWT_MALFORMED;
	/* A further dot is no base64url. */
	parts.input = hpx_span_first(token, first + 1 + second);
	enum hpx_jwt_result result = decode(hpx_span_first(token, first), arena, &parts.header);
	if (result == HPX_JWT_VERIFIED)
		result = decode(hpx_span_first(rest, second), arena, &parts.payload);
	if (result == HPX_JWT_VERIFIED)
		result = decode(hpx_span_skip(rest, second + 1), arena, &parts.signature);
	if (result == HPX_JWT_VERIFIED &&
	    (parts.signature.len == 0 || parts.signature.len > SIGNATURE_BYTES_MAX))
		return HPX_JWT_MALFORMED;
	*ret_parts = parts;
	return result;
}

/* ---- the header ---- */

struct jws_header {
	enum hpx_jws_algorithm algorithm;
	bool has_kid;
	struct hpx_span kid;
};

/* A string member of the document; false where it is there and no string. `*ret_text` has a
 * NULL ptr where it is absent. */
static bool read_text(const struct hpx_json_tree *tree, const char *name, struct hpx_span *ret_text)
{
	uint32_t at = hpx_json_tree_member(tree, 0, hpx_span_of(name));

	*ret_text = (struct hpx_span){ NULL, 0 };
	if (at == HPX_JSON_NONE)
		return true;
	*ret_text = tree->nodes[at].text;
	return tree->nodes[at].kind == HPX_JSON_STRING;
}

/* An issuer signs other things with the same keys: logout tokens, proofs, events. The types
 * of RFC 7519 §5.1 and RFC 9068 §2.1, with and without "application/"; or none. */
static bool is_access_token(struct hpx_span typ)
{
	static const struct hpx_span prefix = HPX_SPAN_INIT("application/");

	if (typ.ptr == NULL)
		return true;
	if (hpx_span_istarts(typ, prefix))
		typ = hpx_span_skip(typ, prefix.len);
	return hpx_span_ieq(typ, HPX_SPAN("JWT")) || hpx_span_ieq(typ, HPX_SPAN("at+jwt"));
}

/* `jwk`, `jku`, `x5c` and the like are not looked at: a token brings no key of its own. */
static enum hpx_jwt_result read_members(const struct hpx_json_tree *tree, unsigned algorithms,
					struct hpx_arena *arena, struct jws_header *ret_header)
{
	struct hpx_span alg, kid, typ;

	if (tree->nodes[0].kind != HPX_JSON_OBJECT || !read_text(tree, "alg", &alg) ||
	    !read_text(tree, "kid", &kid) || !read_text(tree, "typ", &typ) || alg.ptr == NULL)
		return HPX_JWT_MALFORMED;
	/* RFC 7515 §4.1.11: an extension that is not understood refuses the token, and none is. */
	if (hpx_json_tree_member(tree, 0, HPX_SPAN("crit")) != HPX_JSON_NONE)
		return HPX_JWT_CRITICAL;
	ret_header->algorithm = hpx_jws_algorithm_of(alg);
	if ((HPX_JWS_BIT(ret_header->algorithm) & algorithms) == 0)
		return HPX_JWT_ALGORITHM;
	if (!is_access_token(typ))
		return HPX_JWT_TYPE;
	ret_header->has_kid = kid.ptr != NULL;
	if (kid.ptr != NULL)
		ret_header->kid = hpx_arena_dup(arena, kid);
	return ret_header->has_kid && ret_header->kid.ptr == NULL ? HPX_JWT_UNCHECKED : HPX_JWT_VERIFIED;
}

static enum hpx_jwt_result read_header(struct hpx_span text, unsigned algorithms,
				       struct hpx_arena *arena, struct jws_header *ret_header)
{
	struct hpx_json_tree tree;
	enum hpx_status status = hpx_json_tree_read(text, &limits, NULL, 0, &tree);

	if (status != HPX_OK)
		return status == HPX_NOMEM ? HPX_JWT_UNCHECKED : HPX_JWT_MALFORMED;
	enum hpx_jwt_result result = read_members(&tree, algorithms, arena, ret_header);
	hpx_json_tree_done(&tree);
	return result;
}

/* ---- the signature ---- */

static bool is_hmac(const struct hpx_jwk *jwk, const struct jws_parts *parts)
{
	unsigned char mac[HPX_SHA256_SIZE];
	unsigned len = 0;

	return HMAC(EVP_sha256(), jwk->secret.ptr, (int)jwk->secret.len,
		    (const unsigned char *)parts->input.ptr, parts->input.len, mac, &len) != NULL &&
	       len == sizeof(mac) && parts->signature.len == sizeof(mac) &&
	       hpx_bytes_same(mac, parts->signature.ptr, sizeof(mac));
}

/* RFC 7518 §3.4: two numbers of 32 bytes; OpenSSL wants them in DER. 0: they are none. */
static size_t signature_to_der(struct hpx_span raw, unsigned char der[DER_BYTES_MAX])
{
	const unsigned char *bytes = (const unsigned char *)raw.ptr;
	ECDSA_SIG *signature = ECDSA_SIG_new();
	BIGNUM *r = BN_bin2bn(bytes, ES256_HALF, NULL);
	BIGNUM *s = BN_bin2bn(bytes + ES256_HALF, ES256_HALF, NULL);
	int len = 0;

	HPX_ASSERT(raw.len == 2 * (size_t)ES256_HALF);
	if (signature == NULL || r == NULL || s == NULL) {
		BN_free(r);
		BN_free(s);
	} else {
		/* Cannot fail: neither is NULL. The signature owns them now. */
		(void)ECDSA_SIG_set0(signature, r, s);
		if (i2d_ECDSA_SIG(signature, NULL) <= DER_BYTES_MAX)
			len = i2d_ECDSA_SIG(signature, &der);
	}
	ECDSA_SIG_free(signature);
	return len > 0 ? (size_t)len : 0;
}

static bool set_padding(EVP_PKEY_CTX *context, enum hpx_jws_algorithm algorithm)
{
	if (algorithm == HPX_JWS_RS256)
		return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1;
	if (algorithm == HPX_JWS_PS256)
		return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1 &&
		       EVP_PKEY_CTX_set_rsa_mgf1_md(context, EVP_sha256()) == 1 &&
		       EVP_PKEY_CTX_set_rsa_pss_saltlen(context, PSS_SALT_BYTES) == 1;
	return true;
}

static bool is_signed(const struct hpx_jwk *jwk, enum hpx_jws_algorithm algorithm,
		      const struct jws_parts *parts)
{
	const unsigned char *signature = (const unsigned char *)parts->signature.ptr;
	size_t len = parts->signature.len;
	unsigned char der[DER_BYTES_MAX];
	EVP_PKEY_CTX *context = NULL; /* the other context's */

	if (algorithm == HPX_JWS_ES256) {
		if (len != 2 * (size_t)ES256_HALF)
			return false;
		len = signature_to_der(parts->signature, der);
		signature = der;
	}
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	bool good = len > 0 && digest != NULL &&
		    EVP_DigestVerifyInit(digest, &context,
					 algorithm == HPX_JWS_EDDSA ? NULL : EVP_sha256(), NULL,
					 jwk->key) == 1 &&
		    set_padding(context, algorithm) &&
		    EVP_DigestVerify(digest, signature, len, (const unsigned char *)parts->input.ptr,
				     parts->input.len) == 1;
	EVP_MD_CTX_free(digest);
	return good;
}

static enum hpx_jwt_result try_keys(const struct hpx_jwk_set *keys, const struct jws_header *header,
				    const struct jws_parts *parts)
{
	unsigned tries = 0;

	for (size_t i = 0; i < keys->count && tries < TRIES_MAX; i++) {
		const struct hpx_jwk *jwk = &keys->keys[i];
		if ((jwk->algorithms & HPX_JWS_BIT(header->algorithm)) == 0 ||
		    (header->has_kid && !(jwk->kid.ptr != NULL && hpx_span_eq(jwk->kid, header->kid))))
			continue;
		tries++;
		if (header->algorithm == HPX_JWS_HS256 ? is_hmac(jwk, parts) :
							 is_signed(jwk, header->algorithm, parts))
			return HPX_JWT_VERIFIED;
	}
	return tries > 0 ? HPX_JWT_SIGNATURE : HPX_JWT_KEY_UNKNOWN;
}

enum hpx_jwt_result hpx_jws_verify(const struct hpx_jwk_set *keys, unsigned algorithms,
				   struct hpx_span token, struct hpx_arena *arena,
				   struct hpx_span *ret_payload)
{
	struct jws_header header = { .has_kid = false };
	struct jws_parts parts;
	enum hpx_jwt_result result = split(token, arena, &parts);

	if (result == HPX_JWT_VERIFIED)
		result = read_header(parts.header, algorithms, arena, &header);
	if (result != HPX_JWT_VERIFIED)
		return result;
	ERR_set_mark();
	result = try_keys(keys, &header, &parts);
	ERR_pop_to_mark();
	if (result == HPX_JWT_VERIFIED)
		*ret_payload = parts.payload;
	return result;
}

/* ---- the claims ---- */

/* The digit at `at` of 0.d1d2d3…; zeros go on for ever. */
static int64_t digit_at(const struct hpx_number *number, size_t at)
{
	if (at < number->head.len)
		return number->head.ptr[at] - '0';
	at -= number->head.len;
	return at < number->tail.len ? number->tail.ptr[at] - '0' : 0;
}

/* A NumericDate (RFC 7519 §2), which may have a fraction, in milliseconds. */
static bool read_date(const struct hpx_json_tree *tree, uint32_t at, int64_t *ret_ms)
{
	struct hpx_span text = tree->nodes[at].text;
	struct hpx_number number;
	int64_t ms = 0;

	if (tree->nodes[at].kind != HPX_JSON_NUMBER || hpx_number_read(&text, &number) != HPX_OK)
		return false;
	if (hpx_number_digits(&number) > 0 && number.point > 14)
		ms = FAR_MS;
	else if (hpx_number_digits(&number) > 0 && number.point > -3)
		for (size_t i = 0; i < (size_t)(number.point + 3); i++)
			ms = 10 * ms + digit_at(&number, i);
	*ret_ms = number.negative ? -ms : ms;
	return true;
}

static enum hpx_jwt_result judge_time(const struct hpx_jwt_rule *rule,
				      const struct hpx_json_tree *tree, int64_t now_ms,
				      int64_t *ret_until_ms)
{
	uint32_t exp = hpx_json_tree_member(tree, 0, HPX_SPAN("exp"));
	uint32_t nbf = hpx_json_tree_member(tree, 0, HPX_SPAN("nbf"));
	int64_t ends_ms, begins_ms;

	/* A token that never expires cannot be withdrawn. */
	if (exp == HPX_JSON_NONE || !read_date(tree, exp, &ends_ms))
		return HPX_JWT_EXPIRED;
	if (ends_ms + rule->skew_ms <= now_ms)
		return HPX_JWT_EXPIRED;
	if (nbf != HPX_JSON_NONE &&
	    (!read_date(tree, nbf, &begins_ms) || begins_ms - rule->skew_ms > now_ms))
		return HPX_JWT_EARLY;
	*ret_until_ms = ends_ms + rule->skew_ms;
	return HPX_JWT_VERIFIED;
}

static bool is_ours(const struct hpx_jwt_rule *rule, const struct hpx_json_node *node)
{
	for (size_t i = 0; i < rule->audience_count && node->kind == HPX_JSON_STRING; i++)
		if (hpx_span_eq(node->text, rule->audiences[i]))
			return true;
	return false;
}

/* RFC 7519 §4.1.3: one string, or a list of which one is ours. */
static bool is_for_us(const struct hpx_jwt_rule *rule, const struct hpx_json_tree *tree)
{
	uint32_t at = hpx_json_tree_member(tree, 0, HPX_SPAN("aud"));

	if (rule->audience_count == 0)
		return true;
	if (at == HPX_JSON_NONE)
		return false;
	if (tree->nodes[at].kind != HPX_JSON_ARRAY)
		return is_ours(rule, &tree->nodes[at]);
	for (at = tree->nodes[at].first; at != HPX_JSON_NONE; at = tree->nodes[at].next)
		if (is_ours(rule, &tree->nodes[at]))
			return true;
	return false;
}

static bool is_plain(struct hpx_span value, size_t len_max)
{
	if (value.len > len_max || value.ptr[0] == '#')
		return false;
	for (size_t i = 0; i < value.len; i++)
		if (value.ptr[i] <= ' ' || value.ptr[i] > '~')
			return false;
	return true;
}

static enum hpx_jwt_result name_caller(const struct hpx_jwt_rule *rule, struct hpx_span value,
				       struct hpx_jwt_caller *caller)
{
	char text[HPX_JWT_NAME_MAX + 1];
	char hex[2 * HPX_SHA256_SIZE + 1];
	uint8_t digest[HPX_SHA256_SIZE];
	struct hpx_sha256 hash;
	int len;

	HPX_ASSERT(rule->issuer.len <= HPX_JWT_ISSUER_MAX);
	if (is_plain(value, HPX_JWT_NAME_MAX - 5 - rule->issuer.len)) {
		len = snprintf(text, sizeof(text), "jwt:%.*s#%.*s", HPX_SPAN_ARG(rule->issuer),
			       HPX_SPAN_ARG(value));
	} else {
		hpx_sha256_init(&hash);
		hpx_sha256_part(&hash, value);
		if (hpx_sha256_done(&hash, digest) != HPX_OK)
			return HPX_JWT_UNCHECKED;
		hpx_hex_encode(digest, sizeof(digest), hex);
		len = snprintf(text, sizeof(text), "jwt:%.*s##%s", HPX_SPAN_ARG(rule->issuer), hex);
	}
	HPX_ASSERT(len > 0 && len <= HPX_JWT_NAME_MAX);
	caller->name_len = (uint8_t)len;
	memcpy(caller->name, text, caller->name_len);
	return HPX_JWT_VERIFIED;
}

static enum hpx_jwt_result judge(const struct hpx_jwt_rule *rule, const struct hpx_json_tree *tree,
				 int64_t now_ms, struct hpx_jwt_caller *caller)
{
	struct hpx_span issuer;
	uint32_t claim = hpx_json_tree_member(tree, 0, rule->claim);

	if (tree->nodes[0].kind != HPX_JSON_OBJECT)
		return HPX_JWT_MALFORMED;
	if (!read_text(tree, "iss", &issuer) || !hpx_span_eq(issuer, rule->issuer))
		return HPX_JWT_ISSUER;
	if (!is_for_us(rule, tree))
		return HPX_JWT_AUDIENCE;
	enum hpx_jwt_result result = judge_time(rule, tree, now_ms, &caller->until_ms);
	if (result != HPX_JWT_VERIFIED)
		return result;
	/* A number or a list would have several spellings. */
	if (claim == HPX_JSON_NONE || tree->nodes[claim].kind != HPX_JSON_STRING ||
	    tree->nodes[claim].text.len == 0)
		return HPX_JWT_CLAIM;
	return name_caller(rule, tree->nodes[claim].text, caller);
}

enum hpx_jwt_result hpx_jwt_judge(const struct hpx_jwt_rule *rule, struct hpx_span payload,
				  int64_t now_ms, struct hpx_jwt_caller *ret_caller)
{
	struct hpx_jwt_caller caller = { .name_len = 0 };
	struct hpx_json_tree tree;
	enum hpx_status status = hpx_json_tree_read(payload, &limits, NULL, 0, &tree);

	if (status != HPX_OK)
		return status == HPX_NOMEM ? HPX_JWT_UNCHECKED : HPX_JWT_MALFORMED;
	enum hpx_jwt_result result = judge(rule, &tree, now_ms, &caller);
	hpx_json_tree_done(&tree);
	if (result == HPX_JWT_VERIFIED)
		*ret_caller = caller;
	return result;
}

enum hpx_jwt_result hpx_jwt_check(const struct hpx_jwt_rule *rule, const struct hpx_jwk_set *keys,
				  struct hpx_span token, int64_t now_ms, struct hpx_arena *arena,
				  struct hpx_jwt_caller *ret_caller)
{
	struct hpx_span payload;
	enum hpx_jwt_result result = hpx_jws_verify(keys, rule->algorithms, token, arena, &payload);

	return result == HPX_JWT_VERIFIED ? hpx_jwt_judge(rule, payload, now_ms, ret_caller) : result;
}
