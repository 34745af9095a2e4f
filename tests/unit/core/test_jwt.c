/* Shows which tokens name a caller: the examples of RFC 7515 and RFC 8037, the vectors that
 * Wycheproof published for JWS and JWK, every claim that can be wrong, and that no two callers
 * get one name. */
#include "../test.h"

#include <jansson.h>
#include <openssl/hmac.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "core/jwt.h"

#define NOW_MS INT64_C(1800000000000)
#define ALL ((1u << HPX_JWS_ALGORITHM_COUNT) - 1)
#define SECRET "0123456789abcdef0123456789abcdef"
/* SECRET as a set of one key. */
#define SECRET_SET \
	"{\"keys\":[{\"kty\":\"oct\",\"kid\":\"a\",\"k\":" \
	"\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\"}]}"

static struct hpx_jwk_set *set_of(const char *text)
{
	struct hpx_jwk_set *set = NULL;
	const char *reason = NULL;

	if (hpx_jwk_set_read(hpx_span_of(text), &set, &reason) != HPX_OK)
		fail_msg("%s: %s", text, reason);
	return set;
}

static enum hpx_jwt_result verify(const struct hpx_jwk_set *set, unsigned algorithms,
				  struct hpx_span token, struct hpx_span *ret_payload,
				  struct hpx_arena *arena)
{
	struct hpx_span payload = { NULL, 0 };

	hpx_arena_init(arena, 1 << 20);
	enum hpx_jwt_result result = hpx_jws_verify(set, algorithms, token, arena, &payload);
	*ret_payload = payload;
	return result;
}

static void assert_result(const char *what, enum hpx_jwt_result got, enum hpx_jwt_result want)
{
	if (got != want)
		fail_msg("%s: got %s, want %s", what, hpx_jwt_result_name(got), hpx_jwt_result_name(want));
}

/* ---- what others published ---- */

#define RFC7515_PAYLOAD \
	"eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

static const struct published {
	const char *what;
	const char *key;
	const char *token;
	enum hpx_jws_algorithm algorithm;
	enum hpx_jwt_result want;
	const char *payload_begins;
} published[] = {
	{ "RFC 7515 A.1",
	  "{\"kty\":\"oct\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUu"
	  "TwjAzZr1Z9CAow\"}",
	  "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." RFC7515_PAYLOAD
	  ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
	  HPX_JWS_HS256, HPX_JWT_VERIFIED, "{\"iss\":\"joe\"" },
	{ "RFC 7515 A.2",
	  "{\"kty\":\"RSA\",\"n\":\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qP"
	  "CJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-"
	  "bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9k"
	  "G4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ\","
	  "\"e\":\"AQAB\"}",
	  "eyJhbGciOiJSUzI1NiJ9." RFC7515_PAYLOAD
	  ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2F"
	  "p5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMH"
	  "lb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9"
	  "QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
	  HPX_JWS_RS256, HPX_JWT_VERIFIED, "{\"iss\":\"joe\"" },
	{ "RFC 7515 A.3",
	  "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
	  "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}",
	  "eyJhbGciOiJFUzI1NiJ9." RFC7515_PAYLOAD
	  ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
	  HPX_JWS_ES256, HPX_JWT_VERIFIED, "{\"iss\":\"joe\"" },
	{ "RFC 7515 A.5, none", SECRET_SET, "eyJhbGciOiJub25lIn0." RFC7515_PAYLOAD ".",
	  HPX_JWS_HS256, HPX_JWT_MALFORMED, NULL },
	{ "none, with a signature", SECRET_SET, "eyJhbGciOiJub25lIn0." RFC7515_PAYLOAD ".AAAA",
	  HPX_JWS_HS256, HPX_JWT_ALGORITHM, NULL },
	{ "one part", SECRET_SET, "eyJhbGciOiJIUzI1NiJ9", HPX_JWS_HS256, HPX_JWT_MALFORMED, NULL },
	{ "two parts", SECRET_SET, "eyJhbGciOiJIUzI1NiJ9.e30", HPX_JWS_HS256, HPX_JWT_MALFORMED, NULL },
	{ "five parts", SECRET_SET, "eyJhbGciOiJIUzI1NiJ9.e30.AAAA.AAAA.AAAA", HPX_JWS_HS256,
	  HPX_JWT_MALFORMED, NULL },
	{ "nothing", SECRET_SET, "", HPX_JWS_HS256, HPX_JWT_MALFORMED, NULL },
	{ "RFC 8037 A.4",
	  "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}",
	  "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
	  ".hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
	  HPX_JWS_EDDSA, HPX_JWT_VERIFIED, "Example of Ed25519 signing" },
};

/* Each example verifies; not with another list of algorithms, and not with a changed byte. */
static void check_published(const struct published *row)
{
	struct hpx_jwk_set *set = set_of(row->key);
	struct hpx_span token = hpx_span_of(row->token), payload;
	struct hpx_arena arena;
	char changed[4096];

	assert_result(row->what, verify(set, HPX_JWS_BIT(row->algorithm), token, &payload, &arena),
		      row->want);
	if (row->payload_begins != NULL)
		assert_true(hpx_span_starts(payload, hpx_span_of(row->payload_begins)));
	hpx_arena_done(&arena);
	if (row->want == HPX_JWT_VERIFIED)
		assert_result(row->what,
			      verify(set, ALL & ~HPX_JWS_BIT(row->algorithm), token, &payload, &arena),
			      HPX_JWT_ALGORITHM);
	hpx_arena_done(&arena);
	assert_true(token.len < sizeof(changed));
	for (size_t i = 0; i < token.len; i++) {
		memcpy(changed, token.ptr, token.len);
		changed[i] = changed[i] == 'A' ? 'B' : 'A';
		if (verify(set, ALL, hpx_span(changed, token.len), &payload, &arena) == HPX_JWT_VERIFIED)
			fail_msg("%s: verified with another byte at %zu", row->what, i);
		hpx_arena_done(&arena);
	}
	hpx_jwk_set_unref(set);
}

static void test_published(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++)
		check_published(&published[i]);
}

/* ---- Wycheproof ---- */

/* Whether the header names one of the five algorithms; the others are never accepted. */
static bool is_of_the_five(const char *token)
{
	char header[4096];
	size_t len;
	struct hpx_span text = hpx_span_of(token);

	text = hpx_span_first(text, hpx_span_index(text, '.'));
	if (text.len > 1024 || !hpx_base64url_decode(text, header, &len))
		return false;
	json_t *object = json_loadb(header, len, 0, NULL);
	const char *alg = json_string_value(json_object_get(object, "alg"));
	bool found = alg != NULL && hpx_jws_algorithm_of(hpx_span_of(alg)) < HPX_JWS_ALGORITHM_COUNT;
	json_decref(object);
	return found;
}

/* Published as valid although a character that is not base64url stands in the token, because
 * some readers pass over it: a token would have many spellings. */
static bool is_loosely_spelled(const char *token)
{
	return strchr(token, '?') != NULL;
}

/* Published as invalid, and verified here all the same. */
static bool is_excepted(const char *comment)
{
	/* Byte for byte the token of ValidMac. */
	return strncmp(comment, "invalidBase64Padding", 20) == 0 ||
	       /* The second key of that kid is not base64url, so that it is no key. Two that are
		* keys: test_sets. */
	       strcmp(comment, "rejectsDuplicateKid") == 0;
}

static void check_vector(const struct hpx_jwk_set *set, json_t *test, unsigned counts[2])
{
	const char *token = json_string_value(json_object_get(test, "jws"));
	bool valid = strcmp(json_string_value(json_object_get(test, "result")), "valid") == 0 ||
		     is_excepted(json_string_value(json_object_get(test, "comment")));
	bool want = valid && is_of_the_five(token) && !is_loosely_spelled(token);
	struct hpx_span payload;
	struct hpx_arena arena;
	enum hpx_jwt_result result = HPX_JWT_KEY_UNKNOWN;

	if (set != NULL) {
		result = verify(set, ALL, hpx_span_of(token), &payload, &arena);
		hpx_arena_done(&arena);
	}
	if ((result == HPX_JWT_VERIFIED) != want)
		fail_msg("%lld %s: got %s, want %s",
			 (long long)json_integer_value(json_object_get(test, "tcId")),
			 json_string_value(json_object_get(test, "comment")),
			 hpx_jwt_result_name(result), want ? "verified" : "a refusal");
	counts[want]++;
}

static void check_group(json_t *group, unsigned counts[2])
{
	json_t *key = json_object_get(group, "public");
	struct hpx_jwk_set *set = NULL;
	const char *reason;
	size_t i;
	json_t *test;

	char *text = json_dumps(key != NULL ? key : json_object_get(group, "private"), 0);
	assert_non_null(text);
	(void)hpx_jwk_set_read(hpx_span_of(text), &set, &reason);
	json_array_foreach(json_object_get(group, "tests"), i, test)
		check_vector(set, test, counts);
	hpx_jwk_set_unref(set);
	free(text);
}

/* `valid` and `invalid`: how many vectors are to be accepted and refused. */
static void check_file(const char *name, unsigned valid, unsigned invalid)
{
	unsigned counts[2] = { 0, 0 };
	const char *folder = test_corpora();
	char path[4096];
	size_t i;
	json_t *group;

	if (folder == NULL)
		skip();
	snprintf(path, sizeof(path), "%s/wycheproof/%s", folder, name);
	json_t *file = json_load_file(path, 0, NULL);
	if (file == NULL)
		fail_msg("%s cannot be read", path);
	json_array_foreach(json_object_get(file, "testGroups"), i, group)
		check_group(group, counts);
	json_decref(file);
	assert_int_equal(counts[1], valid);
	assert_int_equal(counts[0], invalid);
}

static void test_wycheproof_signatures(void **state)
{
	(void)state;
	check_file("json_web_signature_test.json", 26, 375);
}

static void test_wycheproof_keys(void **state)
{
	(void)state;
	check_file("json_web_key_test.json", 4, 22);
}

/* ---- tokens made here ---- */

static void add_base64url(struct hpx_buffer *out, struct hpx_span bytes)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	for (size_t at = 0; at < bytes.len; at += 3) {
		uint32_t bits = 0;
		size_t count = bytes.len - at < 3 ? bytes.len - at : 3;
		for (size_t i = 0; i < count; i++)
			bits |= (uint32_t)(unsigned char)bytes.ptr[at + i] << (16 - 8 * i);
		for (size_t i = 0; i <= count; i++)
			assert_status(hpx_buffer_byte(out, alphabet[bits >> (18 - 6 * i) & 63]), HPX_OK);
	}
}

static void make_token(struct hpx_buffer *out, const char *header, struct hpx_span payload)
{
	unsigned char mac[32];
	unsigned len;

	hpx_buffer_init(out, 1 << 20);
	add_base64url(out, hpx_span_of(header));
	assert_status(hpx_buffer_byte(out, '.'), HPX_OK);
	add_base64url(out, payload);
	assert_non_null(HMAC(EVP_sha256(), SECRET, sizeof(SECRET) - 1, (const unsigned char *)out->ptr,
			     out->len, mac, &len));
	assert_status(hpx_buffer_byte(out, '.'), HPX_OK);
	add_base64url(out, hpx_span(mac, sizeof(mac)));
}

static enum hpx_jwt_result check(const struct hpx_jwt_rule *rule, const char *keys,
				 const char *header, struct hpx_span payload,
				 struct hpx_jwt_caller *ret_caller)
{
	struct hpx_jwk_set *set = set_of(keys);
	struct hpx_buffer token;
	struct hpx_arena arena;

	make_token(&token, header, payload);
	hpx_arena_init(&arena, 1 << 20);
	enum hpx_jwt_result result =
		hpx_jwt_check(rule, set, hpx_buffer_span(&token), NOW_MS, &arena, ret_caller);
	hpx_arena_done(&arena);
	hpx_buffer_done(&token);
	hpx_jwk_set_unref(set);
	return result;
}

static const struct hpx_span audiences[] = { HPX_SPAN_INIT("pay"), HPX_SPAN_INIT("shop") };
static const struct hpx_jwt_rule rule = { .claim = HPX_SPAN_INIT("sub"),
					  .issuer = HPX_SPAN_INIT("https://i.example"),
					  .audiences = audiences,
					  .audience_count = 2,
					  .algorithms = HPX_JWS_BIT(HPX_JWS_HS256),
					  .skew_ms = 60000 };

#define HEADER "{\"alg\":\"HS256\",\"kid\":\"a\"}"
#define ISS "\"iss\":\"https://i.example\""
#define AUD "\"aud\":\"pay\""
#define EXP "\"exp\":1800000100"
#define SUB "\"sub\":\"alice\""

/* Every member of the header that can be wrong. */
static void test_header(void **state)
{
	static const struct {
		const char *header;
		enum hpx_jwt_result want;
	} rows[] = {
		{ HEADER, HPX_JWT_VERIFIED },
		{ "{\"alg\":\"HS256\"}", HPX_JWT_VERIFIED },
		{ "{\"alg\":\"HS256\",\"typ\":\"JWT\"}", HPX_JWT_VERIFIED },
		{ "{\"alg\":\"HS256\",\"typ\":\"at+jwt\"}", HPX_JWT_VERIFIED },
		{ "{\"alg\":\"HS256\",\"typ\":\"application/AT+JWT\"}", HPX_JWT_VERIFIED },
		{ "{\"alg\":\"HS256\",\"typ\":\"logout+jwt\"}", HPX_JWT_TYPE },
		{ "{\"alg\":\"HS256\",\"typ\":\"\"}", HPX_JWT_TYPE },
		{ "{\"alg\":\"HS256\",\"typ\":1}", HPX_JWT_MALFORMED },
		{ "{\"alg\":\"HS256\",\"kid\":\"b\"}", HPX_JWT_KEY_UNKNOWN },
		{ "{\"alg\":\"HS256\",\"kid\":\"\"}", HPX_JWT_KEY_UNKNOWN },
		{ "{\"alg\":\"HS256\",\"kid\":null}", HPX_JWT_MALFORMED },
		{ "{\"alg\":\"HS256\",\"crit\":[\"b64\"],\"b64\":false}", HPX_JWT_CRITICAL },
		{ "{\"alg\":\"HS256\",\"crit\":[]}", HPX_JWT_CRITICAL },
		{ "{\"alg\":\"hs256\"}", HPX_JWT_ALGORITHM },
		{ "{\"alg\":\"none\"}", HPX_JWT_ALGORITHM },
		{ "{\"alg\":\"RS256\"}", HPX_JWT_ALGORITHM },
		{ "{\"alg\":\"\"}", HPX_JWT_ALGORITHM },
		{ "{\"alg\":[\"HS256\"]}", HPX_JWT_MALFORMED },
		{ "{\"alg\":\"HS256\",\"alg\":\"HS256\"}", HPX_JWT_MALFORMED },
		{ "{\"alg\":\"HS256\",\"\\u0061lg\":\"none\"}", HPX_JWT_MALFORMED },
		{ "{}", HPX_JWT_MALFORMED },
		{ "[\"HS256\"]", HPX_JWT_MALFORMED },
		{ "\"HS256\"", HPX_JWT_MALFORMED },
		{ "", HPX_JWT_MALFORMED },
	};
	struct hpx_jwt_caller caller;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_result(rows[i].header,
			      check(&rule, SECRET_SET, rows[i].header,
				    HPX_SPAN("{" ISS "," AUD "," EXP "," SUB "}"), &caller),
			      rows[i].want);
}

/* Every claim that can be wrong; the time to the millisecond, with the skew. */
static void test_claims(void **state)
{
	static const struct {
		const char *payload;
		enum hpx_jwt_result want;
	} rows[] = {
		{ "{" ISS "," AUD "," EXP "," SUB "}", HPX_JWT_VERIFIED },
		{ "{" AUD "," EXP "," SUB "}", HPX_JWT_ISSUER },
		{ "{\"iss\":\"https://i.example/\"," AUD "," EXP "," SUB "}", HPX_JWT_ISSUER },
		{ "{\"iss\":[\"https://i.example\"]," AUD "," EXP "," SUB "}", HPX_JWT_ISSUER },
		{ "{" ISS "," EXP "," SUB "}", HPX_JWT_AUDIENCE },
		{ "{" ISS ",\"aud\":\"bank\"," EXP "," SUB "}", HPX_JWT_AUDIENCE },
		{ "{" ISS ",\"aud\":[]," EXP "," SUB "}", HPX_JWT_AUDIENCE },
		{ "{" ISS ",\"aud\":[\"bank\",\"shop\"]," EXP "," SUB "}", HPX_JWT_VERIFIED },
		{ "{" ISS ",\"aud\":[[\"pay\"]]," EXP "," SUB "}", HPX_JWT_AUDIENCE },
		{ "{" ISS ",\"aud\":{\"pay\":\"pay\"}," EXP "," SUB "}", HPX_JWT_AUDIENCE },
		{ "{" ISS ",\"aud\":1," EXP "," SUB "}", HPX_JWT_AUDIENCE },
		{ "{" ISS "," AUD "," SUB "}", HPX_JWT_EXPIRED },
		{ "{" ISS "," AUD ",\"exp\":\"1800000100\"," SUB "}", HPX_JWT_EXPIRED },
		{ "{" ISS "," AUD ",\"exp\":1799999940," SUB "}", HPX_JWT_EXPIRED },
		{ "{" ISS "," AUD ",\"exp\":1799999940.001," SUB "}", HPX_JWT_VERIFIED },
		{ "{" ISS "," AUD ",\"exp\":1.8e9," SUB "}", HPX_JWT_VERIFIED },
		{ "{" ISS "," AUD ",\"exp\":1e30," SUB "}", HPX_JWT_VERIFIED },
		{ "{" ISS "," AUD ",\"exp\":-1e30," SUB "}", HPX_JWT_EXPIRED },
		{ "{" ISS "," AUD ",\"exp\":0," SUB "}", HPX_JWT_EXPIRED },
		{ "{" ISS "," AUD ",\"exp\":1e-30," SUB "}", HPX_JWT_EXPIRED },
		{ "{" ISS "," AUD "," EXP ",\"nbf\":1800000060," SUB "}", HPX_JWT_VERIFIED },
		{ "{" ISS "," AUD "," EXP ",\"nbf\":1800000060.001," SUB "}", HPX_JWT_EARLY },
		{ "{" ISS "," AUD "," EXP ",\"nbf\":\"x\"," SUB "}", HPX_JWT_EARLY },
		{ "{" ISS "," AUD "," EXP ",\"nbf\":-5," SUB "}", HPX_JWT_VERIFIED },
		{ "{" ISS "," AUD "," EXP "}", HPX_JWT_CLAIM },
		{ "{" ISS "," AUD "," EXP ",\"sub\":\"\"}", HPX_JWT_CLAIM },
		{ "{" ISS "," AUD "," EXP ",\"sub\":7}", HPX_JWT_CLAIM },
		{ "{" ISS "," AUD "," EXP ",\"sub\":null}", HPX_JWT_CLAIM },
		{ "{" ISS "," AUD "," EXP "," SUB "," SUB "}", HPX_JWT_MALFORMED },
		{ "{" ISS "," AUD "," EXP "," SUB "} ", HPX_JWT_VERIFIED },
		{ "{" ISS "," AUD "," EXP "," SUB "}x", HPX_JWT_MALFORMED },
		{ "[" SUB "]", HPX_JWT_MALFORMED },
		{ "alice", HPX_JWT_MALFORMED },
		{ "", HPX_JWT_MALFORMED },
	};
	struct hpx_jwt_caller caller;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_result(rows[i].payload,
			      check(&rule, SECRET_SET, HEADER, hpx_span_of(rows[i].payload), &caller),
			      rows[i].want);
}

static void check_name(const char *value, const char *want)
{
	struct hpx_jwt_caller caller;
	char payload[4096];

	snprintf(payload, sizeof(payload), "{" ISS "," AUD "," EXP ",\"sub\":\"%s\"}", value);
	assert_result(value, check(&rule, SECRET_SET, HEADER, hpx_span_of(payload), &caller),
		      HPX_JWT_VERIFIED);
	assert_span(hpx_span(caller.name, caller.name_len), want);
	assert_int_equal(caller.until_ms, INT64_C(1800000160000));
}

/* A name is issuer and claim. Values that cannot stand in a name are hashed, and no value can
 * be written that looks like another's hash. */
static void test_name(void **state)
{
	static const char hash[] = "#f0e4c2f76c58916ec258f246851bea091d14d4247a2fc3e18694461b1816e13b";
	char longest[300], want[400];

	(void)state;
	check_name("alice", "jwt:https://i.example#alice");
	check_name("\\u0061lice", "jwt:https://i.example#alice");
	check_name("auth0|7#8", "jwt:https://i.example#auth0|7#8");
	memset(longest, 'x', sizeof(longest));
	longest[HPX_JWT_NAME_MAX - 5 - sizeof("https://i.example") + 1] = '\0';
	snprintf(want, sizeof(want), "jwt:https://i.example#%s", longest);
	check_name(longest, want);

	const char *const hashed[] = { "#alice", "a b", "\xc3\xa9", "\\u0000", "\\n", hash };
	struct hpx_jwt_caller callers[7];
	longest[strlen(longest)] = 'x';
	longest[sizeof(longest) - 1] = '\0';
	for (size_t i = 0; i < 7; i++) {
		char payload[4096];
		snprintf(payload, sizeof(payload), "{" ISS "," AUD "," EXP ",\"sub\":\"%s\"}",
			 i < 6 ? hashed[i] : longest);
		assert_result(payload, check(&rule, SECRET_SET, HEADER, hpx_span_of(payload), &callers[i]),
			      HPX_JWT_VERIFIED);
		struct hpx_span name = hpx_span(callers[i].name, callers[i].name_len);
		assert_true(hpx_span_starts(name, HPX_SPAN("jwt:https://i.example##")));
		assert_int_equal(name.len, sizeof("jwt:https://i.example##") - 1 + 64);
		for (size_t k = 0; k < i; k++)
			assert_false(hpx_span_eq(name, hpx_span(callers[k].name, callers[k].name_len)));
	}
}

/* Sets that are refused as a whole, and keys that are left out of one. */
static void test_sets(void **state)
{
#define K32 "\"k\":\"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY\""
#define ED "\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\""
	static const struct {
		const char *text;
		size_t keys; /* 0: refused */
		size_t skipped;
	} rows[] = {
		{ "{\"keys\":[{\"kty\":\"oct\"," K32 "}]}", 1, 0 },
		{ "{\"kty\":\"oct\"," K32 "}", 1, 0 },
		{ "{\"keys\":[{" ED "},{\"kty\":\"XYZ\"},{\"kty\":\"EC\",\"crv\":\"P-384\"},7]}", 1, 3 },
		{ "{\"keys\":[{" ED ",\"use\":\"enc\"},{" ED ",\"key_ops\":[\"sign\"]},{" ED "}]}", 1, 2 },
		{ "{\"keys\":[{" ED ",\"alg\":\"HS256\"},{" ED ",\"kid\":3},{" ED "}]}", 1, 2 },
		{ "{\"keys\":[{" ED ",\"kid\":\"a\"},{" ED ",\"kid\":\"b\"}]}", 2, 0 },
		{ "{\"keys\":[{" ED ",\"kid\":\"a\"},{" ED ",\"kid\":\"a\"}]}", 0, 0 },
		{ "{\"keys\":[{" ED "},{\"kty\":\"oct\"," K32 "}]}", 0, 0 },
		{ "{\"keys\":[{" ED ",\"kty\":\"OKP\"}]}", 0, 0 },
		{ "{\"keys\":[]}", 0, 0 },
		{ "{\"keys\":{}}", 0, 0 },
		{ "[]", 0, 0 },
		{ "<html>", 0, 0 },
		{ "", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_jwk_set *set = NULL;
		const char *reason = NULL;
		enum hpx_status status = hpx_jwk_set_read(hpx_span_of(rows[i].text), &set, &reason);
		if ((status == HPX_OK) != (rows[i].keys > 0) ||
		    (set != NULL && (set->count != rows[i].keys || set->skipped != rows[i].skipped)))
			fail_msg("%s: %s, %zu keys, %zu skipped", rows[i].text, hpx_status_name(status),
				 set != NULL ? set->count : 0, set != NULL ? set->skipped : 0);
		assert_true((reason == NULL) == (status == HPX_OK));
		hpx_jwk_set_unref(set);
	}
}

/* What the client is told can stand in a quoted error_description (RFC 6750 §3). */
static void test_texts(void **state)
{
	(void)state;
	for (unsigned i = 0; i < HPX_JWT_COUNT; i++)
		for (const char *c = hpx_jwt_result_text((enum hpx_jwt_result)i); *c != '\0'; c++)
			assert_true(*c >= ' ' && *c <= '~' && *c != '"' && *c != '\\');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_wycheproof_signatures),
		cmocka_unit_test(test_wycheproof_keys),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_name),
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
