/* Keys that verify tokens: a JWK Set (RFC 7517) read strictly. A key says itself which
 * algorithms it fits, by its type and its own `alg`; the token never decides that. Not for
 * fetching the set: that is the gateway's. */
#ifndef HPX_CORE_JWK_H
#define HPX_CORE_JWK_H

#include <openssl/evp.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/status.h"

/* X(name, text): the algorithms of RFC 7518 §3.1 and RFC 8037 that are accepted. The text is
 * the configuration's and the token's word. */
#define HPX_JWS_ALGORITHM_LIST(X) \
	X(RS256, "RS256") \
	X(PS256, "PS256") \
	X(ES256, "ES256") \
	X(EDDSA, "EdDSA") \
	X(HS256, "HS256")

enum hpx_jws_algorithm {
#define X(name, text) HPX_JWS_##name,
	HPX_JWS_ALGORITHM_LIST(X)
#undef X
		HPX_JWS_ALGORITHM_COUNT
};

#define HPX_JWS_BIT(algorithm) (1u << (algorithm))

/* By its name, exactly as it is written; COUNT where it is none of the list. */
enum hpx_jws_algorithm hpx_jws_algorithm_of(struct hpx_span name);

struct hpx_jwk {
	struct hpx_span kid;    /* ptr NULL: none */
	unsigned algorithms;    /* that it fits, one bit each */
	EVP_PKEY *key;          /* public; NULL for HS256 */
	struct hpx_span secret; /* HS256: at least 32 bytes */
};

/* More keys than any issuer publishes: an issuer that rotates has two or three. */
#define HPX_JWK_KEYS_MAX 64
#define HPX_JWK_SET_BYTES_MAX ((size_t)256 << 10)

/* Immutable, shared by all threads, counted. */
struct hpx_jwk_set {
	atomic_uint references;
	struct hpx_arena arena;
	struct hpx_jwk keys[HPX_JWK_KEYS_MAX];
	size_t count;
	size_t skipped; /* keys for something else, or of a kind that is not known */
};

/* Reads a set, or one key alone. Keys that cannot verify one of the algorithms are left out
 * (RFC 7517 §5). HPX_INVALID, with `*ret_reason`: the text is no set (also: a member that
 * stands twice), no key is left, two keys of one `kid` fit the same algorithm, or secrets
 * stand beside public keys. */
enum hpx_status hpx_jwk_set_read(struct hpx_span text, struct hpx_jwk_set **ret_set,
				 const char **ret_reason);
struct hpx_jwk_set *hpx_jwk_set_ref(struct hpx_jwk_set *set);
/* Erases the secrets with the last reference. NULL is nothing. */
void hpx_jwk_set_unref(struct hpx_jwk_set *set);

#endif
