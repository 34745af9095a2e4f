/* Any token and any set of keys (the input's first line is the token, the rest the set; without
 * a line end, the claims of a signed token): what is verified has a name within its bounds, and
 * nothing is verified with keys that did not sign it. */
#include <stddef.h>
#include <stdint.h>

#include "core/jwt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW_MS INT64_C(1800000000000)
#define ALL ((1u << HPX_JWS_ALGORITHM_COUNT) - 1)

static const struct hpx_span audiences[] = { HPX_SPAN_INIT("a"), HPX_SPAN_INIT("b") };
static const struct hpx_jwt_rule rule = { .claim = HPX_SPAN_INIT("sub"),
					  .issuer = HPX_SPAN_INIT("i"),
					  .audiences = audiences,
					  .audience_count = 2,
					  .algorithms = ALL,
					  .skew_ms = 60000 };
/* Nobody who makes inputs has the other half. */
static const char foreign[] =
	"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}";

static void check_caller(const struct hpx_jwt_caller *caller)
{
	struct hpx_span name = hpx_span(caller->name, caller->name_len);

	HPX_ASSERT(caller->until_ms > NOW_MS);
	HPX_ASSERT(hpx_span_starts(name, HPX_SPAN("jwt:i#")) && name.len > 6);
	for (size_t i = 0; i < name.len; i++)
		HPX_ASSERT(name.ptr[i] > ' ' && name.ptr[i] <= '~');
}

static void check_claims(struct hpx_span payload)
{
	struct hpx_jwt_caller caller;
	enum hpx_jwt_result result = hpx_jwt_judge(&rule, payload, NOW_MS, &caller);

	HPX_ASSERT(result < HPX_JWT_COUNT);
	if (result == HPX_JWT_VERIFIED)
		check_caller(&caller);
}

static void check_token(struct hpx_span token, struct hpx_span keys)
{
	struct hpx_jwk_set *set = NULL;
	struct hpx_jwt_caller caller;
	struct hpx_arena arena;
	const char *reason = NULL;

	enum hpx_status status = hpx_jwk_set_read(keys, &set, &reason);
	HPX_ASSERT((status == HPX_OK) == (set != NULL));
	HPX_ASSERT((status == HPX_INVALID) == (reason != NULL) || status == HPX_NOMEM);
	hpx_arena_init(&arena, 1 << 20);
	if (set != NULL) {
		HPX_ASSERT(set->count > 0 && set->count <= HPX_JWK_KEYS_MAX);
		if (hpx_jwt_check(&rule, set, token, NOW_MS, &arena, &caller) == HPX_JWT_VERIFIED)
			check_caller(&caller);
		hpx_jwk_set_unref(set);
	}
	HPX_ASSERT(hpx_jwk_set_read(hpx_span_of(foreign), &set, &reason) == HPX_OK);
	struct hpx_span payload;
	enum hpx_jwt_result result = hpx_jws_verify(set, ALL, token, &arena, &payload);
	HPX_ASSERT(result != HPX_JWT_VERIFIED || hpx_span_eq(payload, HPX_SPAN("Example of Ed25519 signing")));
	hpx_jwk_set_unref(set);
	hpx_arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hpx_span input = hpx_span(data, size);
	size_t line = hpx_span_index(input, '\n');

	if (line < input.len)
		check_token(hpx_span_first(input, line), hpx_span_skip(input, line + 1));
	else
		check_claims(input);
	return 0;
}
