/* Shows which header names hapax acts on under which settings, and that a head
 * which the upstream could read otherwise is found out. */
#include "../test.h"

#include "gateway/field_rule.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define S(literal) HPX_SPAN_INIT(literal)

static const struct hpx_span with[] = { S("stripe-account"), S("sub_account") };
static const struct hpx_span counted[] = { S("x-currency"), S("x_note") };
static const struct hpx_route route = { .recipe = { .headers = counted, .header_count = 2 } };

/* `automatic`: the unsaid rule, which has a table of its own. */
static struct hpx_settings settings_of(enum hpx_tenant_from from)
{
	return (struct hpx_settings){ .key_header = HPX_SPAN("X-Request_Key"),
				      .tenant.from = from,
				      .tenant.name = HPX_SPAN("X-Shop"),
				      .tenant.with = with,
				      .tenant.with_count = COUNT(with) };
}

static void each_name_has_its_standing(void **state)
{
	static const struct {
		const char *name;
		enum hpx_field_standing automatic;
		enum hpx_field_standing by_header;
	} rows[] = {
#define BOTH(name, standing) { name, HPX_FIELD_##standing, HPX_FIELD_##standing }
		BOTH("Host", ACTED_ON),
		BOTH("authorization", ACTED_ON),
		BOTH("COOKIE", ACTED_ON),
		BOTH("Origin", ACTED_ON),
		BOTH("Prefer", ACTED_ON),
		BOTH("Forwarded", ACTED_ON),
		BOTH("X-Api-Key", ACTED_ON),
		BOTH("X_Api_Key", TWIN),
		BOTH("X-Api_Key", TWIN),
		BOTH("Idempotency-Key", ACTED_ON),
		BOTH("idempotency_key", TWIN),
		BOTH("Transfer_Encoding", TWIN),
		BOTH("Content-Anything", ACTED_ON),
		BOTH("Content_Type", TWIN),
		BOTH("Content-My_Own", TWIN),
		BOTH("X-Forwarded-For", ACTED_ON),
		BOTH("X_Forwarded-For", TWIN),
		BOTH("X-Forwarded_Proto", TWIN),
		BOTH("X-Forwarded-Client_Cert", TWIN),
		BOTH("Hapax-Lease", ACTED_ON),
		BOTH("HAPAX_LEASE", TWIN),
		BOTH("X-HTTP-Method-Override", ACTED_ON),
		BOTH("x-http-method", ACTED_ON),
		BOTH("X_Method_Override", TWIN),
		/* As configured, and its twins in both directions. */
		BOTH("x-request_key", ACTED_ON),
		BOTH("X-Request-Key", TWIN),
		BOTH("X_Request_Key", TWIN),
		BOTH("Stripe-Account", ACTED_ON),
		BOTH("Stripe_Account", TWIN),
		BOTH("Sub_Account", ACTED_ON),
		BOTH("Sub-Account", TWIN),
		BOTH("X-Currency", ACTED_ON),
		BOTH("x_currency", TWIN),
		BOTH("X_Note", ACTED_ON),
		BOTH("X-Note", TWIN),
		/* What the tenant rule looks at. */
		{ "X-Shop", HPX_FIELD_FREE, HPX_FIELD_ACTED_ON },
		{ "X_Shop", HPX_FIELD_FREE, HPX_FIELD_TWIN },
		{ "X-Tenant", HPX_FIELD_ACTED_ON, HPX_FIELD_FREE },
		{ "X-Auth-Token", HPX_FIELD_ACTED_ON, HPX_FIELD_FREE },
		{ "x_auth_token", HPX_FIELD_TWIN, HPX_FIELD_FREE },
		{ "My_Api_Key", HPX_FIELD_TWIN, HPX_FIELD_FREE },
		{ "client_id", HPX_FIELD_ACTED_ON, HPX_FIELD_FREE },
		{ "api_key", HPX_FIELD_ACTED_ON, HPX_FIELD_FREE },
		{ "OIDC_access_token", HPX_FIELD_ACTED_ON, HPX_FIELD_FREE },
		{ "Client-Id", HPX_FIELD_ACTED_ON, HPX_FIELD_FREE },
		{ "X-Amzn-Oidc-Data", HPX_FIELD_ACTED_ON, HPX_FIELD_FREE },
		/* Looks like a credential, and is no part of the tenant. */
		BOTH("X-Unheard-Of-Token", FREE),
		BOTH("X_Unheard_Of_Token", FREE),
		BOTH("X-Csrf-Token", FREE),
		BOTH("X_Csrf_Token", FREE),
		/* Anything else. */
		BOTH("X-Custom", FREE),
		BOTH("X_Custom", FREE),
		BOTH("_", FREE),
		BOTH("Hos_t", FREE),
		BOTH("Contentt_Type", FREE),
		BOTH("traceparent", FREE),
#undef BOTH
	};
	struct hpx_settings automatic = settings_of(HPX_TENANT_AUTOMATIC);
	struct hpx_settings by_header = settings_of(HPX_TENANT_HEADER);
	(void)state;

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct hpx_span name = hpx_span_of(rows[i].name);
		int a = (int)hpx_field_standing(&automatic, &route, name);
		int h = (int)hpx_field_standing(&by_header, &route, name);
		if (a != (int)rows[i].automatic || h != (int)rows[i].by_header)
			fail_msg("%s: got %d and %d, want %d and %d", rows[i].name, a, h,
				 (int)rows[i].automatic, (int)rows[i].by_header);
	}
}

/* The service that names tenants is told of what may name a caller, so that it
 * must arrive as it was. */
static void what_the_service_is_told_of_is_acted_on(void **state)
{
	struct hpx_settings settings = settings_of(HPX_TENANT_SUBREQUEST);
	(void)state;

	assert_int_equal(hpx_field_standing(&settings, &route, HPX_SPAN("X-Unheard-Of-Token")),
			 HPX_FIELD_ACTED_ON);
	assert_int_equal(hpx_field_standing(&settings, &route, HPX_SPAN("X-Csrf-Token")),
			 HPX_FIELD_FREE);
}

static void a_name_of_any_length_is_survived(void **state)
{
	static char name[1000];
	struct hpx_settings settings = settings_of(HPX_TENANT_AUTOMATIC);
	(void)state;

	memset(name, '_', sizeof(name));
	for (size_t n = 0; n <= sizeof(name); n++)
		assert_int_equal(hpx_field_standing(&settings, &route, hpx_span(name, n)),
				 HPX_FIELD_FREE);
	memcpy(name, "Content_", 8);
	assert_int_equal(hpx_field_standing(&settings, &route, hpx_span(name, sizeof(name))),
			 HPX_FIELD_TWIN);
}

#define FIELDS_MAX 4
struct row {
	const char *fields[FIELDS_MAX][2];
	const char *told; /* a part of the reason; NULL: none */
	bool drop;
};

static const char *judge(const struct row *row, bool repeated, struct hpx_arena *arena)
{
	struct hpx_settings settings = settings_of(HPX_TENANT_AUTOMATIC);
	struct hpx_field fields[FIELDS_MAX];
	struct hpx_http_head head = { .fields = fields };

	settings.drop_underscores = row->drop;
	for (; head.field_count < FIELDS_MAX && row->fields[head.field_count][0]; head.field_count++)
		fields[head.field_count] =
			(struct hpx_field){ hpx_span_of(row->fields[head.field_count][0]),
					    hpx_span_of(row->fields[head.field_count][1]) };
	return repeated ? hpx_field_rule_repeated(&settings, &head, arena) :
			  hpx_field_rule_fault(&settings, &route, &head, arena);
}

static void check(const struct row *rows, size_t count, bool repeated)
{
	for (size_t i = 0; i < count; i++) {
		struct hpx_arena arena;
		hpx_arena_init(&arena, 4096);
		const char *got = judge(&rows[i], repeated, &arena);
		if ((got != NULL) != (rows[i].told != NULL) ||
		    (got != NULL && strstr(got, rows[i].told) == NULL))
			fail_msg("row %zu: got \"%s\", want \"%s\"", i, got ? got : "(none)",
				 rows[i].told ? rows[i].told : "(none)");
		hpx_arena_done(&arena);
		/* Without memory for its words, it is refused all the same. */
		hpx_arena_init(&arena, 0);
		got = judge(&rows[i], repeated, &arena);
		assert_int_equal(got != NULL, rows[i].told != NULL);
		hpx_arena_done(&arena);
	}
}

static void a_head_that_can_be_read_otherwise_is_told(void **state)
{
	static const struct row rows[] = {
		{ { { "Connection", "close" } }, NULL, false },
		{ { { "Connection", "keep-alive, Upgrade, X-Hop" } }, NULL, false },
		{ { { "Connection", "X-Currency" } }, "X-Currency", false },
		{ { { "connection", "close" }, { "CONNECTION", "a ,  x-request_key" } },
		  "x-request_key",
		  false },
		{ { { "Connection", "sub-account" } }, "sub-account", false },
		{ { { "Connection", "Authorization" } }, "Authorization", true },
		{ { { "X_Custom", "1" }, { "X-Custom", "2" } }, NULL, false },
		{ { { "A", "1" }, { "X_Api_Key", "2" } }, "X_Api_Key", false },
		{ { { "X-Request-Key", "2" } }, "X-Request-Key", false },
		{ { { "X-Request_Key", "2" } }, NULL, false },
		/* Dropped, it cannot be read otherwise. */
		{ { { "X_Api_Key", "2" } }, NULL, true },
		{ { { "X-Request-Key", "2" } }, "X-Request-Key", true },
	};
	(void)state;
	check(rows, COUNT(rows), false);
}

static void what_says_whose_or_what_it_is_stands_there_once(void **state)
{
	static const struct row rows[] = {
		{ { { "Content-Type", "a" }, { "Accept", "b" }, { "Accept", "c" } }, NULL, false },
		{ { { "Content-Type", "a" }, { "X", "" }, { "content-type", "a" } }, "content-type", false },
		{ { { "Authorization", "a" }, { "authorization", "b" } }, "uthorization", false },
		{ { { "Origin", "a" }, { "Origin", "a" } }, "Origin", false },
		{ { { "X-Api-Key", "a" }, { "X-Api-Key", "b" } }, "X-Api-Key", false },
		{ { { "X-Auth-Token", "a" }, { "X-Auth-Token", "b" } }, "X-Auth-Token", false },
		{ { { "Stripe-Account", "a" }, { "stripe-account", "b" } }, "stripe-account", false },
		{ { { "client_id", "a" }, { "client-id", "b" } }, "client-id", false },
		{ { { "Cookie", "a" }, { "Cookie", "b" } }, NULL, false },
		{ { { "X-Forwarded-For", "a" }, { "X-Forwarded-For", "b" } }, NULL, false },
		{ { { "X-Foo-Token", "a" }, { "X-Foo-Token", "b" } }, NULL, false },
		{ { { "X-Currency", "a" }, { "X-Currency", "b" } }, NULL, false },
	};
	(void)state;
	check(rows, COUNT(rows), true);
}

/* As many as a head can have, of any length, and the last is one of them again. */
static void one_of_many_is_found(void **state)
{
	static char names[HPX_HTTP_FIELDS_MAX][600];
	static struct hpx_field fields[HPX_HTTP_FIELDS_MAX];
	struct hpx_settings settings = settings_of(HPX_TENANT_AUTOMATIC);
	struct hpx_http_head head = { .fields = fields, .field_count = HPX_HTTP_FIELDS_MAX };
	struct hpx_arena arena;
	(void)state;

	hpx_arena_init(&arena, 65536);
	for (size_t i = 0; i < HPX_HTTP_FIELDS_MAX; i++) {
		memset(names[i], 'a', sizeof(names[i]) - 1);
		memcpy(names[i], "X-Consumer-", 11);
		names[i][sizeof(names[i]) - 2] = (char)('a' + i % 26);
		names[i][sizeof(names[i]) - 3] = (char)('a' + i / 26);
		fields[i].name = hpx_span_of(names[i]);
	}
	assert_null(hpx_field_rule_repeated(&settings, &head, &arena));
	memcpy(names[HPX_HTTP_FIELDS_MAX - 1], names[3], sizeof(names[3]));
	memcpy(names[HPX_HTTP_FIELDS_MAX - 1], "x-CONSUMER-", 11);
	assert_non_null(hpx_field_rule_repeated(&settings, &head, &arena));
	hpx_arena_done(&arena);
}

static void underscores_are_dropped_but_for_what_is_acted_on(void **state)
{
	static const struct {
		const char *name;
		bool dropped;
	} rows[] = { { "X_Custom", true }, { "X_Api_Key", true }, { "X-Custom", false }, { "X_Note", false }, { "X-Request_Key", false }, { "client_id", false } };
	struct hpx_settings settings = settings_of(HPX_TENANT_AUTOMATIC);
	(void)state;

	for (size_t i = 0; i < 2 * COUNT(rows); i++) {
		settings.drop_underscores = i % 2 == 0;
		bool want = settings.drop_underscores && rows[i / 2].dropped;
		bool got = hpx_field_rule_drops(&settings, &route, hpx_span_of(rows[i / 2].name));
		if (got != want)
			fail_msg("%s: got %d, want %d", rows[i / 2].name, got, want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_name_has_its_standing),
		cmocka_unit_test(what_the_service_is_told_of_is_acted_on),
		cmocka_unit_test(a_name_of_any_length_is_survived),
		cmocka_unit_test(a_head_that_can_be_read_otherwise_is_told),
		cmocka_unit_test(what_says_whose_or_what_it_is_stands_there_once),
		cmocka_unit_test(one_of_many_is_found),
		cmocka_unit_test(underscores_are_dropped_but_for_what_is_acted_on),
	};
	return cmocka_run_group_tests_name("field_rule", tests, NULL, NULL);
}
