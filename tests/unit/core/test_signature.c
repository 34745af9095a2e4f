/* Shows which webhooks are taken for signed: the published examples of each
 * scheme, every way a header can be wrong, several secrets, the time on both
 * sides, and that no single changed byte is let through. */
#include "../test.h"

#include "base/bytes.h"
#include "core/signature.h"

#define STRIPE HPX_SIGNATURE_SCHEME_STRIPE
#define STANDARD HPX_SIGNATURE_SCHEME_STANDARD
#define PLAIN HPX_SIGNATURE_SCHEME_HMAC_BODY
#define OK HPX_SIGNATURE_OK
#define MISSING HPX_SIGNATURE_MISSING
#define MALFORMED HPX_SIGNATURE_MALFORMED
#define TOO_OLD HPX_SIGNATURE_TOO_OLD
#define WRONG HPX_SIGNATURE_WRONG

struct header {
	const char *name;
	const char *value;
};

struct row {
	const char *what;
	const char *secrets[3];
	struct header headers[4];
	const char *body;
	int64_t now_s;
	enum hpx_signature want;
	const char *prefix;
};

static struct hpx_span find_header(void *user, struct hpx_span name)
{
	const struct header *headers = user;

	for (size_t i = 0; i < 4 && headers[i].name != NULL; i++)
		if (hpx_span_eq(name, hpx_span_of(headers[i].name)))
			return hpx_span_of(headers[i].value);
	return hpx_span(NULL, 0);
}

static enum hpx_signature check(enum hpx_signature_scheme scheme, const struct row *row,
				struct hpx_span body, int64_t now_ms)
{
	struct header headers[4];
	struct hpx_span keys[3];
	struct hpx_arena arena;
	struct hpx_signature_settings settings = { .scheme = scheme, .keys = keys, .tolerance_ms = 300000, .header = HPX_SPAN("x-hub-signature-256"), .prefix = hpx_span_of(row->prefix) };
	struct hpx_signature_message message = { body, find_header, headers };

	memcpy(headers, row->headers, sizeof(headers));
	hpx_arena_init(&arena, 4096);
	for (size_t i = 0; i < 3 && row->secrets[i] != NULL; i++)
		assert_status(hpx_signature_key(scheme, hpx_span_of(row->secrets[i]), &arena,
						&keys[settings.key_count++]),
			      HPX_OK);
	enum hpx_signature got = hpx_signature_check(&settings, &message, now_ms);
	hpx_arena_done(&arena);
	return got;
}

static const char *const names_of[] = {
	[OK] = "ok",
	[MISSING] = "missing",
	[MALFORMED] = "malformed",
	[TOO_OLD] = "too old",
	[WRONG] = "wrong",
	[HPX_SIGNATURE_UNCHECKED] = "unchecked",
};

static void check_rows(enum hpx_signature_scheme scheme, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		enum hpx_signature got = check(scheme, &rows[i], hpx_span_of(rows[i].body),
					       rows[i].now_s * 1000);
		if (got != rows[i].want)
			fail_msg("%s: got %s, want %s", rows[i].what, names_of[got],
				 names_of[rows[i].want]);
	}
}

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* Computed with Python's hmac module over the documented "<t>.<body>". */
#define S_OLD "799c4ba7bb339f3c8601adfd112f0e477c930a268be1243d341abb8286501c2f"
#define S_NEW "66a2dbab5858ad24fc4fddeb226bd38aceb3667bfa4e3722c4ef7503c0969661"
#define S_BODYLESS "0b143541b2e58bb8a2681ed7577ec944676988d66733d6a9d9cd6ccce1022353"
#define S_ZEROS "6ccd202bf31096b62fc50e7cbaf4014e8fa723d6a38c0d584e49750727dda546"
#define NOBODYS "0000000000000000000000000000000000000000000000000000000000000000"
#define T "1492774577"
#define AT 1492774577
#define BODY "{\"id\":\"evt_1\"}"
#define STRIPE_ROW(what, value, now_s, want) \
	{ \
		what, { "whsec_test_secret" }, { { "stripe-signature", value } }, BODY, now_s, want, NULL \
	}
#define X4(x) x x x x

static const struct row stripe_rows[] = {
	STRIPE_ROW("signed", "t=" T ",v1=" S_OLD, AT, OK),
	STRIPE_ROW("upper case", "t=" T ",v1=799C4BA7BB339F3C8601ADFD112F0E477C930A268BE1243D341ABB8286501C2F", AT, OK),
	STRIPE_ROW("the order does not matter", "v1=" S_OLD ",t=" T, AT, OK),
	STRIPE_ROW("another version beside", "t=" T ",v0=6ffbb59b,v1=" S_OLD, AT, OK),
	STRIPE_ROW("second of two", "t=" T ",v1=" NOBODYS ",v1=" S_OLD, AT, OK),
	STRIPE_ROW("first of two", "t=" T ",v1=" S_OLD ",v1=" NOBODYS, AT, OK),
	STRIPE_ROW("time as it was written", "t=00" T ",v1=" S_ZEROS, AT, OK),
	STRIPE_ROW("time written otherwise", "t=00" T ",v1=" S_OLD, AT, WRONG),
	STRIPE_ROW("another time", "t=1492774578,v1=" S_OLD, AT, WRONG),
	STRIPE_ROW("another secret's", "t=" T ",v1=" S_NEW, AT, WRONG),
	STRIPE_ROW("as late as allowed", "t=" T ",v1=" S_OLD, AT + 300, OK),
	STRIPE_ROW("too late", "t=" T ",v1=" S_OLD, AT + 301, TOO_OLD),
	STRIPE_ROW("as early as allowed", "t=" T ",v1=" S_OLD, AT - 300, OK),
	STRIPE_ROW("too early", "t=" T ",v1=" S_OLD, AT - 301, TOO_OLD),
	STRIPE_ROW("late and wrong", "t=" T ",v1=" S_NEW, AT + 301, WRONG),
	STRIPE_ROW("no header", NULL, AT, MISSING),
	STRIPE_ROW("no signature of ours", "t=" T ",v0=" S_OLD, AT, MISSING),
	STRIPE_ROW("a time only", "t=" T, AT, MISSING),
	STRIPE_ROW("empty", "", AT, MALFORMED),
	STRIPE_ROW("no time", "v1=" S_OLD, AT, MALFORMED),
	STRIPE_ROW("empty time", "t=,v1=" S_OLD, AT, MALFORMED),
	STRIPE_ROW("negative time", "t=-1,v1=" S_OLD, AT, MALFORMED),
	STRIPE_ROW("fractional time", "t=1492774577.5,v1=" S_OLD, AT, MALFORMED),
	STRIPE_ROW("time beyond all", "t=9223372036854776,v1=" S_OLD, AT, MALFORMED),
	STRIPE_ROW("last time there is", "t=9223372036854775,v1=" S_OLD, AT, WRONG),
	STRIPE_ROW("two times", "t=" T ",t=" T ",v1=" S_OLD, AT, MALFORMED),
	STRIPE_ROW("the header twice", "t=" T ",v1=" S_OLD ", t=" T ",v1=" S_OLD, AT, MALFORMED),
	STRIPE_ROW("a second header of signatures", "t=" T ",v1=" S_OLD ", v1=" S_NEW, AT, MALFORMED),
	STRIPE_ROW("a space", "t=" T ", v1=" S_OLD, AT, MALFORMED),
	STRIPE_ROW("empty item", "t=" T ",,v1=" S_OLD, AT, MALFORMED),
	STRIPE_ROW("comma at the end", "t=" T ",v1=" S_OLD ",", AT, MALFORMED),
	STRIPE_ROW("no name", "t=" T ",=" S_OLD, AT, MALFORMED),
	STRIPE_ROW("no value", "t=" T ",v1", AT, MALFORMED),
	STRIPE_ROW("empty value", "t=" T ",v1=", AT, MALFORMED),
	STRIPE_ROW("a digit short", "t=" T ",v1=799c4ba7bb339f3c8601adfd112f0e477c930a268be1243d341abb8286501c2", AT, MALFORMED),
	STRIPE_ROW("a digit more", "t=" T ",v1=" S_OLD "0", AT, MALFORMED),
	STRIPE_ROW("no digit", "t=" T ",v1=799c4ba7bb339f3c8601adfd112f0e477c930a268be1243d341abb8286501c2g", AT, MALFORMED),
	STRIPE_ROW("right and malformed", "t=" T ",v1=" S_OLD ",v1=1", AT, MALFORMED),
	STRIPE_ROW("as many as are looked at", "t=" T X4(",v1=" NOBODYS) X4(",v1=" NOBODYS) X4(",v1=" NOBODYS) ",v0=,v0=,v1=" S_OLD, AT, OK),
	STRIPE_ROW("one more", "t=" T X4(",v1=" NOBODYS) X4(",v1=" NOBODYS) X4(",v1=" NOBODYS) ",v0=,v0=,v0=,v1=" S_OLD, AT, MALFORMED),
	{ "empty body", { "whsec_test_secret" }, { { "stripe-signature", "t=" T ",v1=" S_BODYLESS } }, "", AT, OK, NULL },
	{ "rotation: the old one", { "whsec_next_secret", "whsec_test_secret" }, { { "stripe-signature", "t=" T ",v1=" S_OLD } }, BODY, AT, OK, NULL },
	{ "rotation: the new one", { "whsec_next_secret", "whsec_test_secret" }, { { "stripe-signature", "t=" T ",v1=" S_NEW } }, BODY, AT, OK, NULL },
	{ "rotation: neither", { "whsec_next_secret", "other" }, { { "stripe-signature", "t=" T ",v1=" S_OLD } }, BODY, AT, WRONG, NULL },
	{ "no secret", { NULL }, { { "stripe-signature", "t=" T ",v1=" S_OLD } }, BODY, AT, WRONG, NULL },
	{ "the prefix belongs to the secret", { "test_secret" }, { { "stripe-signature", "t=" T ",v1=" S_OLD } }, BODY, AT, WRONG, NULL },
	{ "another header", { "whsec_test_secret" }, { { "signature", "t=" T ",v1=" S_OLD } }, BODY, AT, MISSING, NULL },
};

static void stripe(void **state)
{
	(void)state;
	check_rows(STRIPE, stripe_rows, COUNT(stripe_rows));
}

/* The Standard Webhooks specification's own example. */
#define W_SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define W_ID "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define W_T "1614265330"
#define W_AT 1614265330
#define W_BODY "{\"test\": 2432232314}"
#define W_SIGNED "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
#define W_OTHER "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define W(what, id, time, signature, now_s, want) \
	{ \
		what, { W_SECRET }, { { "webhook-id", id }, { "webhook-timestamp", time }, { "webhook-signature", signature } }, W_BODY, now_s, want, NULL \
	}

static const struct row standard_rows[] = {
	W("published", W_ID, W_T, W_SIGNED, W_AT, OK),
	W("second", W_ID, W_T, W_OTHER " " W_SIGNED, W_AT, OK),
	W("first", W_ID, W_T, W_SIGNED " " W_OTHER, W_AT, OK),
	W("beside a public key's", W_ID, W_T, "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg== " W_SIGNED, W_AT, OK),
	W("as late as allowed", W_ID, W_T, W_SIGNED, W_AT + 300, OK),
	W("too late", W_ID, W_T, W_SIGNED, W_AT + 301, TOO_OLD),
	W("as early as allowed", W_ID, W_T, W_SIGNED, W_AT - 300, OK),
	W("too early", W_ID, W_T, W_SIGNED, W_AT - 301, TOO_OLD),
	W("another id", "msg_p5jXN8AQM9LWM0D4loKWxJel", W_T, W_SIGNED, W_AT, WRONG),
	W("another time", W_ID, "1614265331", W_SIGNED, W_AT, WRONG),
	W("nobody's", W_ID, W_T, W_OTHER, W_AT, WRONG),
	W("no id", NULL, W_T, W_SIGNED, W_AT, MISSING),
	W("no time", W_ID, NULL, W_SIGNED, W_AT, MISSING),
	W("no signature", W_ID, W_T, NULL, W_AT, MISSING),
	W("none of ours", W_ID, W_T, "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", W_AT, MISSING),
	W("empty id", "", W_T, W_SIGNED, W_AT, MALFORMED),
	W("a dot in the id", "msg.1", W_T, W_SIGNED, W_AT, MALFORMED),
	W("two ids", W_ID ", " W_ID, W_T, W_SIGNED, W_AT, MALFORMED),
	W("two ids, close", W_ID "," W_ID, W_T, W_SIGNED, W_AT, MALFORMED),
	W("a byte that is no text", "msg\x01", W_T, W_SIGNED, W_AT, MALFORMED),
	W("a byte beyond ASCII", "msg\xc3\xa9", W_T, W_SIGNED, W_AT, MALFORMED),
	W("two times", W_ID, W_T ", " W_T, W_SIGNED, W_AT, MALFORMED),
	W("empty time", W_ID, "", W_SIGNED, W_AT, MALFORMED),
	W("a time with a sign", W_ID, "+" W_T, W_SIGNED, W_AT, MALFORMED),
	W("the header twice", W_ID, W_T, W_SIGNED ", " W_SIGNED, W_AT, MALFORMED),
	W("twice, the first of another version", W_ID, W_T, "v1a,x, " W_SIGNED, W_AT, MALFORMED),
	W("empty", W_ID, W_T, "", W_AT, MALFORMED),
	W("two spaces", W_ID, W_T, W_SIGNED "  " W_SIGNED, W_AT, MALFORMED),
	W("no version", W_ID, W_T, "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", W_AT, MALFORMED),
	W("empty version", W_ID, W_T, ",g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", W_AT, MALFORMED),
	W("empty signature", W_ID, W_T, "v1,", W_AT, MALFORMED),
	W("without its padding", W_ID, W_T, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE", W_AT, MALFORMED),
	W("the same bytes, spelled otherwise", W_ID, W_T, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OF=", W_AT, MALFORMED),
	W("the alphabet of addresses", W_ID, W_T, "v1,g0hM9SsE-OTPJTGt_tmIKtSyZlE3uFJELVlNIOLJ1OE=", W_AT, MALFORMED),
	W("33 bytes", W_ID, W_T, "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", W_AT, MALFORMED),
	W("31 bytes", W_ID, W_T, "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", W_AT, MALFORMED),
	W("as many as are looked at", W_ID, W_T, X4(W_OTHER " ") X4(W_OTHER " ") X4(W_OTHER " ") "v0,a v0,a v0,a " W_SIGNED, W_AT, OK),
	W("one more", W_ID, W_T, X4(W_OTHER " ") X4(W_OTHER " ") X4(W_OTHER " ") "v0,a v0,a v0,a v0,a " W_SIGNED, W_AT, MALFORMED),
	/* Computed with Python's hmac module. */
	{ "a secret that is its own bytes", { "plain secret" }, { { "webhook-id", "msg_1" }, { "webhook-timestamp", T }, { "webhook-signature", "v1,QvKdMtRd1bzggxP/vNlRWdWIvYIdHu8IQkCLDzA23JU=" } }, "{}", AT, OK, NULL },
	{ "a prefix is no part of the key", { W_SECRET }, { { "webhook-id", "msg_1" }, { "webhook-timestamp", T }, { "webhook-signature", "v1,xBmXoM6Lk5bWaloIhpPBbnQKxIYeKGst3Y71LfL/h7k=" } }, "{}", AT, WRONG, NULL },
};

static void standard_webhooks(void **state)
{
	(void)state;
	check_rows(STANDARD, standard_rows, COUNT(standard_rows));
}

/* GitHub's published example, and RFC 4231's second. */
#define G_SECRET "It's a Secret to Everybody"
#define G_HEX "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
#define G_BASE64 "dXEH6g6yUJ/CESIczphLijdXC211hsIsRvQ3nIsEPhc="
#define G(what, value, prefix, want) \
	{ \
		what, { "another", G_SECRET }, { { "x-hub-signature-256", value } }, "Hello, World!", 0, want, prefix \
	}

static const struct row plain_rows[] = {
	G("published", "sha256=" G_HEX, "sha256=", OK),
	G("without prefix", G_HEX, NULL, OK),
	G("base64", G_BASE64, "", OK),
	G("base64 behind a prefix", "sha256=" G_BASE64, "sha256=", OK),
	G("another's", "sha256=" NOBODYS, "sha256=", WRONG),
	G("no header", NULL, "sha256=", MISSING),
	G("the prefix is missing", G_HEX, "sha256=", MALFORMED),
	G("another prefix", "sha512=" G_HEX, "sha256=", MALFORMED),
	G("the prefix in upper case", "SHA256=" G_HEX, "sha256=", MALFORMED),
	G("a prefix nobody named", "sha256=" G_HEX, "", MALFORMED),
	G("the prefix only", "sha256=", "sha256=", MALFORMED),
	G("less than the prefix", "sha", "sha256=", MALFORMED),
	G("empty", "", "", MALFORMED),
	G("the header twice", "sha256=" G_HEX ", sha256=" G_HEX, "sha256=", MALFORMED),
	G("a blank behind", G_HEX " ", "", MALFORMED),
	G("a digit short", "57107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", "", MALFORMED),
	{ "RFC 4231", { "Jefe" }, { { "x-hub-signature-256", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" } }, "what do ya want for nothing?", INT64_MAX / 1000, OK, NULL },
	/* Python's hmac module. */
	{ "empty body", { "k" }, { { "x-hub-signature-256", "8bb990c40a7d61cb97597a942125025be50ac8beb74436e3735b98893a7f6620" } }, "", 0, OK, NULL },
};

static void hmac_body(void **state)
{
	static const struct row binary = { "binary", { "k" }, { { "x-hub-signature-256", "8a4ac62eb5a339800323e315edd438f9a336f47b94ba42bf519b738881fb4c87" } }, "", 0, OK, NULL };
	(void)state;
	check_rows(PLAIN, plain_rows, COUNT(plain_rows));
	assert_int_equal(check(PLAIN, &binary, hpx_span("\0\xff\n", 3), 0), OK);
	assert_int_equal(check(PLAIN, &binary, hpx_span("\0\xff", 2), 0), WRONG);
}

/* The ends of the clock: a difference that no number holds is too far. */
static void times_far_away(void **state)
{
	static const int64_t nows[] = { INT64_MIN, INT64_MIN + 1, -1, 0, INT64_MAX };
	(void)state;
	for (size_t i = 0; i < COUNT(nows); i++)
		assert_int_equal(check(STRIPE, &stripe_rows[0], hpx_span_of(BODY), nows[i]), TOO_OLD);
	assert_int_equal(check(STRIPE, &stripe_rows[0], hpx_span_of(BODY), AT * 1000LL + 300000), OK);
	assert_int_equal(check(STRIPE, &stripe_rows[0], hpx_span_of(BODY), AT * 1000LL + 300001), TOO_OLD);
	assert_int_equal(check(STRIPE, &stripe_rows[0], hpx_span_of(BODY), AT * 1000LL - 300001), TOO_OLD);
}

/* Every byte of the body, the header and the secret counts. */
static void no_changed_byte_passes(void **state)
{
	static const struct {
		enum hpx_signature_scheme scheme;
		const struct row *row;
	} good[] = { { STRIPE, &stripe_rows[0] }, { STANDARD, &standard_rows[0] }, { PLAIN, &plain_rows[0] } };
	(void)state;
	for (size_t g = 0; g < COUNT(good); g++) {
		struct row row = *good[g].row;
		char text[256];
		size_t last = good[g].scheme == STANDARD ? 2 : 0;
		const char **places[] = { &row.body, &row.headers[0].value, &row.headers[last].value };

		for (size_t p = 0; p < COUNT(places); p++) {
			const char *was = *places[p];
			snprintf(text, sizeof(text), "%s", was);
			*places[p] = text;
			for (size_t i = 0; text[i] != '\0'; i++) {
				text[i] ^= 1;
				enum hpx_signature got = check(good[g].scheme, &row,
							       hpx_span_of(row.body), row.now_s * 1000);
				if (got == OK)
					fail_msg("%s: \"%s\" is taken for \"%s\"", row.what, text, was);
				text[i] ^= 1;
			}
			assert_int_equal(check(good[g].scheme, &row, hpx_span_of(row.body),
					       row.now_s * 1000),
					 OK);
			*places[p] = was;
		}
	}
}

static void secrets(void **state)
{
	static const struct {
		enum hpx_signature_scheme scheme;
		const char *secret;
		const char *key; /* NULL: refused */
	} rows[] = {
		{ STRIPE, "whsec_c2VjcmV0", "whsec_c2VjcmV0" },
		{ PLAIN, "whsec_c2VjcmV0", "whsec_c2VjcmV0" },
		{ STANDARD, "whsec_c2VjcmV0", "secret" },
		{ STANDARD, "c2VjcmV0", "c2VjcmV0" },
		{ STANDARD, "whsec_c2VjcmU=", "secre" },
		{ STANDARD, "whsec_c2VjcmU", NULL },
		{ STANDARD, "whsec_", NULL },
		{ STANDARD, "whsec_c2Vj cmV0", NULL },
		{ STANDARD, "whsec_c2VjcmV0\n", NULL },
		{ STRIPE, "", NULL },
		{ STANDARD, "", NULL },
		{ PLAIN, "", NULL },
	};
	struct hpx_arena arena;
	(void)state;
	hpx_arena_init(&arena, 65536);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_span key = HPX_SPAN("untouched");
		enum hpx_status want = rows[i].key ? HPX_OK : HPX_INVALID;
		assert_status(hpx_signature_key(rows[i].scheme, hpx_span_of(rows[i].secret), &arena,
						&key),
			      want);
		assert_span(key, rows[i].key ? rows[i].key : "untouched");
	}
	hpx_arena_done(&arena);
	hpx_arena_init(&arena, 0);
	struct hpx_span key;
	assert_status(hpx_signature_key(STANDARD, HPX_SPAN(W_SECRET), &arena, &key), HPX_NOMEM);
	hpx_arena_done(&arena);
}

/* RFC 4648 §10, and what is no base64. */
static void base64(void **state)
{
	static const char *const good[][2] = { { "", "" }, { "Zg==", "f" }, { "Zm8=", "fo" }, { "Zm9v", "foo" }, { "Zm9vYg==", "foob" }, { "Zm9vYmE=", "fooba" }, { "Zm9vYmFy", "foobar" }, { "+/+/", "\xfb\xff\xbf" } };
	static const char *const bad[] = { "Z", "Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "=Zg=",
					   "Zg==Zg==", "Zm8=Zm8=", "Zm9v\n", "Zm9v\nabc", " Zg=", "Zg= ", "-_-_", "Zm9v====", "Z=g=" };
	char out[64];
	size_t len;
	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_true(hpx_base64_decode(hpx_span_of(good[i][0]), out, &len));
		assert_span(hpx_span(out, len), good[i][1]);
	}
	for (size_t i = 0; i < COUNT(bad); i++)
		if (hpx_base64_decode(hpx_span_of(bad[i]), out, &len))
			fail_msg("\"%s\" was taken", bad[i]);
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(hpx_signature_scheme_name(STANDARD), "standard-webhooks");
	assert_string_equal(hpx_signature_scheme_name(HPX_SIGNATURE_SCHEME_COUNT), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stripe),
		cmocka_unit_test(standard_webhooks),
		cmocka_unit_test(hmac_body),
		cmocka_unit_test(times_far_away),
		cmocka_unit_test(no_changed_byte_passes),
		cmocka_unit_test(secrets),
		cmocka_unit_test(base64),
		cmocka_unit_test(names),
	};
	return cmocka_run_group_tests_name("signature", tests, NULL, NULL);
}
