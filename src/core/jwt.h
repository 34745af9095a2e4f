/* Tokens that name a caller: a JWT (RFC 7519) as a compact JWS (RFC 7515), verified with a
 * set of keys, and its claims judged by the configuration. Bounded, without recursion, no
 * clock. What is not understood is refused: encrypted tokens, `crit`, `none`, another
 * serialisation, another type of token. */
#ifndef HPX_CORE_JWT_H
#define HPX_CORE_JWT_H

#include "core/jwk.h"

/* X(name, metric's label, what the client is told: printable, without " and \) */
#define HPX_JWT_LIST(X) \
	X(VERIFIED, "verified", "") \
	X(MALFORMED, "malformed", "the token is not a signed JWT in compact form") \
	X(ALGORITHM, "algorithm", "the algorithm of the token is not accepted here") \
	X(CRITICAL, "critical", "the token has a critical header parameter that is not known here") \
	X(TYPE, "type", "the typ of the token is not that of an access token") \
	X(KEY_UNKNOWN, "key_unknown", "no key that is known here fits the token") \
	X(SIGNATURE, "signature", "the signature of the token is wrong") \
	X(ISSUER, "issuer", "the token is of another issuer") \
	X(AUDIENCE, "audience", "the token is for another audience") \
	X(EXPIRED, "expired", "the token has expired") \
	X(EARLY, "early", "the token is not valid yet") \
	X(CLAIM, "claim", "the token has no usable claim that names the caller") \
	X(UNCHECKED, "unchecked", "the token could not be checked")

enum hpx_jwt_result {
#define X(name, label, text) HPX_JWT_##name,
	HPX_JWT_LIST(X)
#undef X
		HPX_JWT_COUNT
};

const char *hpx_jwt_result_name(enum hpx_jwt_result result);
const char *hpx_jwt_result_text(enum hpx_jwt_result result);

#define HPX_JWT_BYTES_MAX 16384

/* ---- the signature ---- */

/* The payload of a JWS that is verified, from `arena`. UNCHECKED: no memory. */
enum hpx_jwt_result hpx_jws_verify(const struct hpx_jwk_set *keys, unsigned algorithms,
				   struct hpx_span token, struct hpx_arena *arena,
				   struct hpx_span *ret_payload);

/* ---- the claims ---- */

/* What a token must say. */
struct hpx_jwt_rule {
	struct hpx_span claim;  /* whose value names the caller, a string */
	struct hpx_span issuer; /* `iss` */
	const struct hpx_span *audiences;
	size_t audience_count; /* 0: `aud` is not looked at */
	unsigned algorithms;   /* HPX_JWS_BIT each */
	int64_t skew_ms;       /* how far the issuer's clock and ours may be apart */
};

/* A caller's name: "jwt:ISSUER#VALUE", with a hash for a value that is long or has bytes
 * other than visible ASCII: "jwt:ISSUER##<hash>". An issuer has no '#', and a value that
 * begins with one is hashed too: no two pairs share a name. */
#define HPX_JWT_ISSUER_MAX 128
#define HPX_JWT_NAME_MAX 255

struct hpx_jwt_caller {
	int64_t until_ms; /* on the wall clock: the expiry, with the skew */
	uint8_t name_len;
	char name[HPX_JWT_NAME_MAX];
};

/* Judges the claims of a verified payload. */
enum hpx_jwt_result hpx_jwt_judge(const struct hpx_jwt_rule *rule, struct hpx_span payload,
				  int64_t now_ms, struct hpx_jwt_caller *ret_caller);
/* Both. `arena` is for what is decoded: about the token's size. */
enum hpx_jwt_result hpx_jwt_check(const struct hpx_jwt_rule *rule, const struct hpx_jwk_set *keys,
				  struct hpx_span token, int64_t now_ms, struct hpx_arena *arena,
				  struct hpx_jwt_caller *ret_caller);

#endif
