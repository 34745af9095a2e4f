/* Reading a JWK Set: which keys can verify a token, and as which algorithm. */
#include "core/jwk.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "core/json_tree.h"

/* RFC 7518 §3.3 and §3.5 ask for 2048 bits. The upper bound is one on the time that a
 * signature takes to verify. */
#define RSA_BITS_MIN 2048
#define RSA_BITS_MAX 8192
#define RSA_EXPONENT_BITS_MAX 32
/* RFC 7518 §3.2: a key of at least the size of the hash. */
#define SECRET_BYTES_MIN 32
#define P256_COORDINATE 32
#define ED25519_BYTES 32
#define RSA_ALGORITHMS (HPX_JWS_BIT(HPX_JWS_RS256) | HPX_JWS_BIT(HPX_JWS_PS256))

static const struct hpx_json_limits limits = {
	.depth_max = 16, .digits_max = 64, .exponent_max = 64, .members_max = 8192
};

enum hpx_jws_algorithm hpx_jws_algorithm_of(struct hpx_span name)
{
	static const struct hpx_span names[] = {
#define X(name, text) HPX_SPAN_INIT(text),
		HPX_JWS_ALGORITHM_LIST(X)
#undef X
	};
	unsigned i = 0;

	while (i < HPX_JWS_ALGORITHM_COUNT && !hpx_span_eq(names[i], name))
		i++;
	return (enum hpx_jws_algorithm)i;
}

/* ---- members ---- */

/* One object of the set. */
struct jwk_object {
	const struct hpx_json_tree *tree;
	uint32_t at;
	struct hpx_arena *arena;
};

/* A string member; ptr NULL where it is absent. `*ret_odd` is set where it is no string. */
static struct hpx_span text_member(const struct jwk_object *object, const char *name, bool *ret_odd)
{
	uint32_t at = hpx_json_tree_member(object->tree, object->at, hpx_span_of(name));

	if (at == HPX_JSON_NONE)
		return (struct hpx_span){ NULL, 0 };
	if (object->tree->nodes[at].kind != HPX_JSON_STRING)
		*ret_odd = true;
	return object->tree->nodes[at].text;
}

static bool is_text(const struct jwk_object *object, const char *name, const char *value)
{
	bool odd = false;

	return hpx_span_eq(text_member(object, name, &odd), hpx_span_of(value)) && !odd;
}

/* A base64url member, from the arena; ptr NULL: absent or not base64url. */
static struct hpx_span bytes_member(const struct jwk_object *object, const char *name)
{
	bool odd = false;
	struct hpx_span text = text_member(object, name, &odd);
	char *bytes = text.ptr != NULL && !odd ?
			      hpx_arena_alloc(object->arena, HPX_BASE64URL_BYTES(text.len)) :
			      NULL;
	size_t len;

	if (bytes == NULL || !hpx_base64url_decode(text, bytes, &len))
		return (struct hpx_span){ NULL, 0 };
	return hpx_span(bytes, len);
}

/* `key_ops` (RFC 7517 §4.3), where it is there, lists "verify". */
static bool may_verify(const struct jwk_object *object)
{
	const struct hpx_json_node *nodes = object->tree->nodes;
	uint32_t at = hpx_json_tree_member(object->tree, object->at, HPX_SPAN("key_ops"));

	if (at == HPX_JSON_NONE)
		return true;
	if (nodes[at].kind != HPX_JSON_ARRAY)
		return false;
	for (at = nodes[at].first; at != HPX_JSON_NONE; at = nodes[at].next)
		if (nodes[at].kind == HPX_JSON_STRING && hpx_span_eq(nodes[at].text, HPX_SPAN("verify")))
			return true;
	return false;
}

/* ---- keys of each type ---- */

static EVP_PKEY *make_key(const char *type, OSSL_PARAM *params)
{
	EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	EVP_PKEY_CTX *check = NULL;
	EVP_PKEY *key = NULL;

	if (context == NULL || EVP_PKEY_fromdata_init(context) != 1 ||
	    EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
		key = NULL;
	if (key != NULL)
		check = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
	/* A point that is not on its curve, a modulus that is even, and so on. */
	if (check == NULL || EVP_PKEY_public_check(check) != 1) {
		EVP_PKEY_free(key);
		key = NULL;
	}
	EVP_PKEY_CTX_free(check);
	EVP_PKEY_CTX_free(context);
	return key;
}

/* Moduli of a library whose primes can be guessed (ROCA, CVE-2017-15361): they are powers of
 * 65537 modulo every small prime. Of other moduli, one in 2^27 or so is. */
static bool is_roca(const BIGNUM *n)
{
	static const BN_ULONG primes[] = { 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43,
					   47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101,
					   103, 107, 109, 113, 127, 131, 137, 139, 149, 151,
					   157, 163, 167 };

	for (size_t i = 0; i < sizeof(primes) / sizeof(primes[0]); i++) {
		BN_ULONG rest = BN_mod_word(n, primes[i]);
		BN_ULONG power = 1;
		bool found = false;
		for (BN_ULONG k = 0; k < primes[i] && !found; k++) {
			found = power == rest;
			power = power * 65537 % primes[i];
		}
		if (!found)
			return false;
	}
	return true;
}

static bool is_good_rsa(const BIGNUM *n, const BIGNUM *e)
{
	return BN_num_bits(n) >= RSA_BITS_MIN && BN_num_bits(n) <= RSA_BITS_MAX && BN_is_odd(n) &&
	       BN_num_bits(e) <= RSA_EXPONENT_BITS_MAX && BN_is_odd(e) && !BN_is_one(e) && !is_roca(n);
}

static EVP_PKEY *build_rsa(const BIGNUM *n, const BIGNUM *e)
{
	OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
	OSSL_PARAM *params = NULL;
	EVP_PKEY *key = NULL;

	if (builder != NULL && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
	    OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) == 1)
		params = OSSL_PARAM_BLD_to_param(builder);
	if (params != NULL)
		key = make_key("RSA", params);
	OSSL_PARAM_free(params);
	OSSL_PARAM_BLD_free(builder);
	return key;
}

static BIGNUM *number_of(struct hpx_span bytes)
{
	if (bytes.len == 0 || bytes.len > RSA_BITS_MAX / 8 + 1)
		return NULL;
	return BN_bin2bn((const unsigned char *)bytes.ptr, (int)bytes.len, NULL);
}

static void read_rsa(const struct jwk_object *object, struct hpx_jwk *jwk)
{
	BIGNUM *n = number_of(bytes_member(object, "n"));
	BIGNUM *e = number_of(bytes_member(object, "e"));

	if (n != NULL && e != NULL && is_good_rsa(n, e))
		jwk->key = build_rsa(n, e);
	if (jwk->key != NULL)
		jwk->algorithms = RSA_ALGORITHMS;
	BN_free(n);
	BN_free(e);
}

/* RFC 7518 §6.2.1: the coordinates have the full width of the curve. */
static void read_ec(const struct jwk_object *object, struct hpx_jwk *jwk)
{
	struct hpx_span x = bytes_member(object, "x");
	struct hpx_span y = bytes_member(object, "y");
	unsigned char point[1 + 2 * P256_COORDINATE] = { 4 /* not compressed */ };
	char group[] = "P-256";
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
		OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)),
		OSSL_PARAM_construct_end(),
	};

	if (!is_text(object, "crv", "P-256") || x.len != P256_COORDINATE || y.len != P256_COORDINATE)
		return;
	memcpy(point + 1, x.ptr, x.len);
	memcpy(point + 1 + P256_COORDINATE, y.ptr, y.len);
	jwk->key = make_key("EC", params);
	if (jwk->key != NULL)
		jwk->algorithms = HPX_JWS_BIT(HPX_JWS_ES256);
}

static void read_okp(const struct jwk_object *object, struct hpx_jwk *jwk)
{
	struct hpx_span x = bytes_member(object, "x");

	if (!is_text(object, "crv", "Ed25519") || x.len != ED25519_BYTES)
		return;
	jwk->key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, (const unsigned char *)x.ptr,
					       x.len);
	if (jwk->key != NULL)
		jwk->algorithms = HPX_JWS_BIT(HPX_JWS_EDDSA);
}

static void read_secret(const struct jwk_object *object, struct hpx_jwk *jwk)
{
	struct hpx_span k = bytes_member(object, "k");

	if (k.len < SECRET_BYTES_MIN)
		return;
	jwk->secret = k;
	jwk->algorithms = HPX_JWS_BIT(HPX_JWS_HS256);
}

/* `algorithms` is 0 where the key is of no use here. HPX_NOMEM: the arena is full. */
static enum hpx_status read_key(const struct jwk_object *object, struct hpx_jwk *ret_jwk)
{
	struct hpx_jwk jwk = { .algorithms = 0 };
	bool odd = false;
	struct hpx_span kid = text_member(object, "kid", &odd);
	struct hpx_span use = text_member(object, "use", &odd);
	struct hpx_span alg = text_member(object, "alg", &odd);

	if (!odd && may_verify(object) && (use.ptr == NULL || hpx_span_eq(use, HPX_SPAN("sig")))) {
		if (is_text(object, "kty", "RSA"))
			read_rsa(object, &jwk);
		else if (is_text(object, "kty", "EC"))
			read_ec(object, &jwk);
		else if (is_text(object, "kty", "OKP"))
			read_okp(object, &jwk);
		else if (is_text(object, "kty", "oct"))
			read_secret(object, &jwk);
	}
	/* What its type allows, and its own `alg` names. */
	if (alg.ptr != NULL)
		jwk.algorithms &= HPX_JWS_BIT(hpx_jws_algorithm_of(alg));
	if (kid.ptr != NULL)
		jwk.kid = hpx_arena_dup(object->arena, kid);
	*ret_jwk = jwk;
	return kid.ptr != NULL && jwk.kid.ptr == NULL ? HPX_NOMEM : HPX_OK;
}

/* ---- the set ---- */

static const char *fault_of_keys(const struct hpx_jwk_set *set)
{
	bool secrets = false, publics = false;

	for (size_t i = 0; i < set->count; i++) {
		const struct hpx_jwk *a = &set->keys[i];
		secrets |= a->key == NULL;
		publics |= a->key != NULL;
		for (size_t k = 0; k < i; k++)
			if (a->kid.ptr != NULL && hpx_span_eq(a->kid, set->keys[k].kid) &&
			    (a->algorithms & set->keys[k].algorithms) != 0)
				return "two keys of the set have the same kid and fit the same algorithm";
	}
	if (set->count == 0)
		return "the set has no key that can verify RS256, PS256, ES256, EdDSA or HS256 "
		       "(RSA has at least 2048 bits, a secret at least 32 bytes)";
	return secrets && publics ? "the set has secrets (kty oct) beside public keys" : NULL;
}

static enum hpx_status read_keys(const struct hpx_json_tree *tree, uint32_t first,
				 struct hpx_jwk_set *set, const char **ret_reason)
{
	for (uint32_t at = first; at != HPX_JSON_NONE; at = tree->nodes[at].next) {
		struct jwk_object object = { .tree = tree, .at = at, .arena = &set->arena };
		struct hpx_jwk jwk;
		enum hpx_status status = read_key(&object, &jwk);

		if (status != HPX_OK || jwk.algorithms == 0) {
			EVP_PKEY_free(jwk.key);
			set->skipped++;
		} else if (set->count == HPX_JWK_KEYS_MAX) {
			EVP_PKEY_free(jwk.key);
			*ret_reason = "the set has more than 64 keys";
			return HPX_INVALID;
		} else {
			set->keys[set->count++] = jwk;
		}
		if (status != HPX_OK)
			return status;
	}
	*ret_reason = fault_of_keys(set);
	return *ret_reason == NULL ? HPX_OK : HPX_INVALID;
}

/* {"keys": [...]}, or one key. */
static enum hpx_status read_set(const struct hpx_json_tree *tree, struct hpx_jwk_set *set,
				const char **ret_reason)
{
	uint32_t keys = hpx_json_tree_member(tree, 0, HPX_SPAN("keys"));

	if (keys != HPX_JSON_NONE && tree->nodes[keys].kind == HPX_JSON_ARRAY)
		return read_keys(tree, tree->nodes[keys].first, set, ret_reason);
	if (hpx_json_tree_member(tree, 0, HPX_SPAN("kty")) != HPX_JSON_NONE)
		return read_keys(tree, 0, set, ret_reason);
	*ret_reason = "the text has neither keys nor kty: it is no JWK Set";
	return HPX_INVALID;
}

enum hpx_status hpx_jwk_set_read(struct hpx_span text, struct hpx_jwk_set **ret_set,
				 const char **ret_reason)
{
	struct hpx_json_tree tree;
	struct hpx_jwk_set *set;

	*ret_reason = "the text is longer than 256 KiB";
	if (text.len > HPX_JWK_SET_BYTES_MAX)
		return HPX_INVALID;
	*ret_reason = "the text is not JSON, or a name stands twice in an object";
	enum hpx_status status = hpx_json_tree_read(text, &limits, NULL, 0, &tree);
	if (status != HPX_OK)
		return status;
	set = calloc(1, sizeof(*set));
	if (set == NULL) {
		hpx_json_tree_done(&tree);
		return HPX_NOMEM;
	}
	atomic_init(&set->references, 1);
	hpx_arena_init(&set->arena, 4 * HPX_JWK_SET_BYTES_MAX);
	ERR_set_mark();
	status = read_set(&tree, set, ret_reason);
	/* What OpenSSL thought of the keys that were left out is nobody's business later. */
	ERR_pop_to_mark();
	hpx_json_tree_done(&tree);
	if (status != HPX_OK) {
		hpx_jwk_set_unref(set);
		return status;
	}
	*ret_set = set;
	return HPX_OK;
}

struct hpx_jwk_set *hpx_jwk_set_ref(struct hpx_jwk_set *set)
{
	unsigned before = atomic_fetch_add_explicit(&set->references, 1, memory_order_relaxed);

	HPX_ASSERT(before > 0);
	return set;
}

void hpx_jwk_set_unref(struct hpx_jwk_set *set)
{
	if (set == NULL ||
	    atomic_fetch_sub_explicit(&set->references, 1, memory_order_acq_rel) > 1)
		return;
	for (size_t i = 0; i < set->count; i++) {
		EVP_PKEY_free(set->keys[i].key);
		if (set->keys[i].secret.len > 0)
			OPENSSL_cleanse((void *)(uintptr_t)set->keys[i].secret.ptr,
					set->keys[i].secret.len);
	}
	hpx_arena_done(&set->arena);
	free(set);
}
