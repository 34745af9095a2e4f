/* Shows which name a request's caller gets, without a socket: the same for a
 * caller's retry, another for another caller, and none where that cannot be
 * said; and that no credential is part of a name. The whole program is judged
 * by tests/e2e/test_callers.py. */
#include "../test.h"

#include "gateway/tenant.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FIELDS_MAX 24
#define ARENA_BYTES_MAX 65536

/* "Name: value|Name: value" */
static size_t read_fields(const char *text, struct hpx_field *fields)
{
	struct hpx_span rest = hpx_span_of(text), line;
	size_t count = 0;

	while (rest.len > 0 && hpx_span_split(&rest, '|', &line)) {
		size_t at = hpx_span_index(line, ':');
		assert_true(count < FIELDS_MAX && at < line.len);
		fields[count++] = (struct hpx_field){ hpx_span_first(line, at),
						      hpx_span_trim(hpx_span_skip(line, at + 1)) };
	}
	return count;
}

/* The tenant of such a request, or "401"; from `arena`. */
static struct hpx_span name_of(const struct hpx_settings *settings, const char *text,
			       struct hpx_arena *arena)
{
	struct hpx_field fields[FIELDS_MAX];
	struct hpx_http_head head = { .fields = fields, .field_count = read_fields(text, fields) };
	struct hpx_tenant_source source = { .settings = settings, .head = &head, .host = HPX_SPAN("shop.example"), .peer = "127.0.0.1", .local = true, .arena = arena };
	struct hpx_tenant tenant;
	enum hpx_status status = hpx_tenant_of(&source, &tenant);

	if (status == HPX_INVALID) {
		assert_non_null(tenant.reason);
		return HPX_SPAN("401");
	}
	assert_status(status, HPX_OK);
	assert_true(tenant.anonymous == hpx_span_starts(tenant.name, HPX_SPAN("anonymous")));
	assert_null(memmem(tenant.name.ptr, tenant.name.len, "secret", 6));
	return tenant.name;
}

static struct hpx_settings local_settings(void)
{
	return (struct hpx_settings){ .listener_count = 0 };
}

static void names_begin_with_what_they_are_from(void **state)
{
	static const struct {
		const char *fields;
		const char *name; /* its beginning */
		size_t len;
	} rows[] = {
		{ "Authorization: Bearer secret", "bearer:", 7 + 64 },
		{ "authorization: BASIC secret", "basic:", 6 + 64 },
		{ "Authorization: token secret", "token:", 6 + 64 },
		{ "Authorization: ApiKey secret", "apikey:", 7 + 64 },
		{ "Authorization: DPoP secret|DPoP: proof", "dpop:", 5 + 64 },
		{ "X-Api-Key: secret", "api-key:", 8 + 64 },
		{ "Authorization: Bearer secret|X-Api-Key: secret", "bearer:", 7 + 64 + 1 + 64 },
		{ "X-Api-Key: secret|X-Auth-Token: secret", "api-key:", 8 + 64 + 1 + 64 },
		{ "X-Api-Key: secret|x-amzn-oidc-data: secret", "api-key:", 8 + 64 },
		{ "X-Api-Key: secret|X-My-Token: secret", "api-key:", 8 + 64 },
		{ "X-Api-Key: secret|X-CSRF-Token: secret", "api-key:", 8 + 64 },
		{ "X-Api-Key: secret|X-Auth-Token: ", "api-key:", 8 + 64 },
		{ "", "anonymous", 9 },
		{ "X-CSRF-Token: secret", "anonymous", 9 },
		{ "X-Auth-Token: ", "anonymous", 9 },
		{ "X-Api-Key: ", "anonymous", 9 },
		{ "X-Auth-Token: secret", "401", 3 },
		{ "x-amzn-oidc-data: secret", "401", 3 },
		{ "X-My-Token: secret", "401", 3 },
		{ "Cookie: secret", "401", 3 },
		{ "Proxy-Authorization: Basic secret", "401", 3 },
		{ "Authorization: ", "401", 3 },
		{ "Authorization: Bearer", "401", 3 },
		{ "Authorization: secret", "401", 3 },
		{ "Authorization: Digest secret", "401", 3 },
		{ "Authorization: Digest secret|X-Api-Key: secret", "401", 3 },
		{ "Authorization: Bearer secret|Authorization: Bearer secret", "401", 3 },
		{ "X-Api-Key: secret|X-Auth-Token: a|x-auth-token: a", "401", 3 },
		{ "X-Forwarded-For: 10.0.0.1", "401", 3 },
		{ "Via: 1.1 x", "401", 3 },
	};
	struct hpx_settings settings = local_settings();

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_arena arena;
		hpx_arena_init(&arena, ARENA_BYTES_MAX);
		struct hpx_span got = name_of(&settings, rows[i].fields, &arena);
		if (!hpx_span_starts(got, hpx_span_of(rows[i].name)) || got.len != rows[i].len)
			fail_msg("%s: got %.*s, want %s… of %zu bytes", rows[i].fields,
				 HPX_SPAN_ARG(got), rows[i].name, rows[i].len);
		hpx_arena_done(&arena);
	}
}

static void the_same_caller_in_another_spelling(void **state)
{
	static const struct {
		const char *one;
		const char *other;
		bool same;
	} rows[] = {
		{ "Authorization: Bearer a|X-Auth-Token: t|client-id: c",
		  "CLIENT-ID: c|x-auth-token:   t |authorization: bearer a", true },
		{ "Authorization: Bearer a|X-Auth-Token: t", "Authorization: Bearer a", false },
		{ "Authorization: Bearer a|X-Auth-Token: t",
		  "Authorization: Bearer a|X-Access-Token: t", false },
		{ "Authorization: Bearer a|client-id: b|client-secret: c",
		  "Authorization: Bearer a|client-id: c|client-secret: b", false },
		{ "Authorization: Bearer a|X-Auth-Token: bc", "Authorization: Bearer a|X-Auth-Token: b",
		  false },
		{ "Authorization: Bearer a|X-Api-Key: k", "Authorization: Bearer a|X-Api-Key: K", false },
		{ "X-Api-Key: a", "Authorization: Bearer a", false },
		{ "X-Api-Key: k|Cookie: a", "X-Api-Key: k|Cookie: b", true },
	};
	struct hpx_settings settings = local_settings();

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_arena arena;
		hpx_arena_init(&arena, ARENA_BYTES_MAX);
		struct hpx_span one = name_of(&settings, rows[i].one, &arena);
		struct hpx_span other = name_of(&settings, rows[i].other, &arena);
		if (hpx_span_eq(one, other) != rows[i].same)
			fail_msg("%s and %s: %.*s and %.*s", rows[i].one, rows[i].other,
				 HPX_SPAN_ARG(one), HPX_SPAN_ARG(other));
		hpx_arena_done(&arena);
	}
}

/* Written, `authorization` looks at two headers: twice, they are refused, whatever
 * else is there twice. */
static void authorization_alone(void **state)
{
	static const struct {
		const char *fields;
		const char *name;
	} rows[] = {
		{ "Authorization: Bearer a|X-Auth-Token: b|X-Auth-Token: c", "bearer:" },
		{ "Authorization: Bearer a|Authorization: Bearer a|X-Auth-Token: b|X-Auth-Token: c",
		  "401" },
		{ "X-Auth-Token: b|X-Auth-Token: c|X-Api-Key: a|X-Api-Key: a", "401" },
		{ "X-Auth-Token: b", "401" },
		{ "Cookie: b", "401" },
		{ "", "anonymous" },
	};
	struct hpx_settings settings = local_settings();

	(void)state;
	settings.tenant.from = HPX_TENANT_AUTHORIZATION;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_arena arena;
		hpx_arena_init(&arena, ARENA_BYTES_MAX);
		struct hpx_span got = name_of(&settings, rows[i].fields, &arena);
		if (!hpx_span_starts(got, hpx_span_of(rows[i].name)))
			fail_msg("%s: got %.*s, want %s", rows[i].fields, HPX_SPAN_ARG(got),
				 rows[i].name);
		hpx_arena_done(&arena);
	}
}

/* Out of memory, a request has no tenant: never a part of one. */
static void too_little_memory_is_told(void **state)
{
	struct hpx_span with[] = { HPX_SPAN("host") };
	struct hpx_settings settings = local_settings();
	struct hpx_field fields[FIELDS_MAX];
	size_t count = read_fields("Authorization: Bearer a|X-Auth-Token: t", fields);
	struct hpx_http_head head = { .fields = fields, .field_count = count };
	struct hpx_tenant tenant;
	bool enough = false;

	(void)state;
	settings.tenant.with = with;
	settings.tenant.with_count = 1;
	for (size_t bytes = 1; !enough; bytes += 16) {
		struct hpx_arena arena;
		hpx_arena_init(&arena, bytes);
		struct hpx_tenant_source source = { .settings = &settings, .head = &head, .host = HPX_SPAN("h"), .peer = "unix", .local = true, .arena = &arena };
		enum hpx_status status = hpx_tenant_of(&source, &tenant);
		enough = status == HPX_OK;
		if (!enough)
			assert_status(status, HPX_NOMEM);
		hpx_arena_done(&arena);
	}
}

static void what_is_looked_at(void **state)
{
	static const struct {
		enum hpx_tenant_from from;
		const char *name;
		bool looked_at;
	} rows[] = {
		{ HPX_TENANT_AUTOMATIC, "authorization", true },
		{ HPX_TENANT_AUTOMATIC, "X-Auth-Token", true },
		{ HPX_TENANT_AUTOMATIC, "cookie", true },
		{ HPX_TENANT_AUTOMATIC, "X-CSRF-Token", false },
		{ HPX_TENANT_AUTOMATIC, "X-Session-Token", false }, /* ignored */
		{ HPX_TENANT_AUTOMATIC, "Stripe-Account", true },   /* with */
		{ HPX_TENANT_AUTHORIZATION, "X-Api-Key", true },
		{ HPX_TENANT_AUTHORIZATION, "X-Auth-Token", false },
		{ HPX_TENANT_AUTHORIZATION, "Stripe-Account", true },
		{ HPX_TENANT_CREDENTIAL, "x-tenant", true },
		{ HPX_TENANT_CREDENTIAL, "Authorization", false },
		{ HPX_TENANT_HEADER, "X-Tenant", true },
		{ HPX_TENANT_COOKIE, "Cookie", true },
		{ HPX_TENANT_COOKIE, "X-Tenant", false },
		{ HPX_TENANT_SUBREQUEST, "x-amzn-oidc-data", true },
		{ HPX_TENANT_ANONYMOUS, "Authorization", false },
	};
	struct hpx_span with[] = { HPX_SPAN("stripe-account") };
	struct hpx_span ignore[] = { HPX_SPAN("x-session-token") };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_settings settings = { .tenant.from = rows[i].from,
						 .tenant.name = HPX_SPAN("X-Tenant"),
						 .tenant.with = with,
						 .tenant.with_count = 1,
						 .tenant.ignore = ignore,
						 .tenant.ignore_count = 1 };
		if (hpx_tenant_looks_at(&settings, hpx_span_of(rows[i].name)) != rows[i].looked_at)
			fail_msg("row %zu, %s", i, rows[i].name);
	}
}

/* What `check` and the start say. */
static void what_holds_is_said(void **state)
{
	struct hpx_span with[] = { HPX_SPAN("host"), HPX_SPAN("x-org") };
	struct hpx_span ignore[] = { HPX_SPAN("cookie") };
	const struct {
		enum hpx_tenant_from from;
		enum hpx_anonymous anonymous;
		const char *listen;
		const char *text;
	} rows[] = {
		{ HPX_TENANT_AUTHORIZATION, HPX_ANONYMOUS_LOCAL, "127.0.0.1",
		  "Authorization and X-Api-Key, with host, x-org, not looking at cookie; without any "
		  "credential: anonymous, because 127.0.0.1 is local, or 401 if the request was "
		  "forwarded" },
		{ HPX_TENANT_CREDENTIAL, HPX_ANONYMOUS_LOCAL, "0.0.0.0",
		  "a hash of the header X-T, with host, x-org, not looking at cookie; without any "
		  "credential: 401, because 0.0.0.0 is not local (tenant.anonymous)" },
		{ HPX_TENANT_COOKIE, HPX_ANONYMOUS_ALLOW, "0.0.0.0",
		  "a hash of the cookie X-T, with host, x-org, not looking at cookie; without it: "
		  "anonymous, a tenant that all such callers share" },
		{ HPX_TENANT_HEADER, HPX_ANONYMOUS_REFUSE, "0.0.0.0",
		  "the header X-T of trusted peers, with host, x-org, not looking at cookie; without "
		  "it: 401" },
		{ HPX_TENANT_SUBREQUEST, HPX_ANONYMOUS_REFUSE, "0.0.0.0",
		  "the name that the authorisation service gives, with host, x-org, not looking at cookie" },
		{ HPX_TENANT_ANONYMOUS, HPX_ANONYMOUS_ALLOW, "0.0.0.0",
		  "one tenant for all callers, with host, x-org, not looking at cookie" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_settings settings = { .tenant.from = rows[i].from,
						 .tenant.anonymous = rows[i].anonymous,
						 .tenant.name = HPX_SPAN("X-T"),
						 .tenant.with = with,
						 .tenant.with_count = 2,
						 .tenant.ignore = ignore,
						 .tenant.ignore_count = 1 };
		struct hpx_buffer out;
		struct hpx_listener_settings listener = { .line = 0 };
		snprintf(listener.address.host, sizeof(listener.address.host), "%s", rows[i].listen);
		snprintf(listener.address.text, sizeof(listener.address.text), "%s", rows[i].listen);
		settings.listeners = &listener;
		settings.listener_count = 1;
		hpx_buffer_init(&out, 1000);
		assert_status(hpx_tenant_describe(&settings, &out), HPX_OK);
		assert_span(hpx_buffer_span(&out), rows[i].text);
		hpx_buffer_done(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_begin_with_what_they_are_from),
		cmocka_unit_test(the_same_caller_in_another_spelling),
		cmocka_unit_test(authorization_alone),
		cmocka_unit_test(too_little_memory_is_told),
		cmocka_unit_test(what_is_looked_at),
		cmocka_unit_test(what_holds_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
