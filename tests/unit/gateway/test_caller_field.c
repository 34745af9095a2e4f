/* Shows what every row of the table of caller fields matches, in any case, and
 * what it does not: its near misses, and the names that requests carry. */
#include "../test.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/caller_field.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *field_name(enum hpx_caller_field field)
{
	static const char *const names[] = { "none", "credential", "stable", "vouched",
					     "renewed", "suspect", "harmless" };
	return names[field];
}

static void expect(const char *name, enum hpx_caller_field want, const char *want_twin)
{
	const char *twin = NULL;
	enum hpx_caller_field got = hpx_caller_field_of(hpx_span_of(name), &twin);

	if (got != want || (want_twin == NULL) != (twin == NULL) ||
	    (twin != NULL && strcmp(twin, want_twin) != 0))
		fail_msg("%s: got %s (%s), want %s (%s)", name, field_name(got),
			 twin ? twin : "no twin", field_name(want),
			 want_twin ? want_twin : "no twin");
}

static void names_are_what_they_are(void **state)
{
	static const struct {
		const char *name;
		enum hpx_caller_field field;
		const char *twin;
	} names[] = {
		{ "Authorization", HPX_CALLER_CREDENTIAL, NULL },
		{ "X-Api-Key", HPX_CALLER_CREDENTIAL, NULL },
		{ "X-Auth-Token", HPX_CALLER_STABLE, NULL },
		{ "X-Access-Token", HPX_CALLER_STABLE, NULL },
		{ "X-Session-Token", HPX_CALLER_STABLE, NULL },
		{ "Private-Token", HPX_CALLER_STABLE, NULL },
		{ "apikey", HPX_CALLER_STABLE, NULL },
		{ "api-key", HPX_CALLER_STABLE, NULL },
		{ "X-Goog-Api-Key", HPX_CALLER_STABLE, NULL },
		{ "DD-API-KEY", HPX_CALLER_STABLE, NULL },
		{ "X-MBX-APIKEY", HPX_CALLER_STABLE, NULL },
		{ "X-Shopify-Access-Token", HPX_CALLER_STABLE, NULL },
		{ "CB-ACCESS-KEY", HPX_CALLER_STABLE, NULL },
		{ "Ocp-Apim-Subscription-Key", HPX_CALLER_STABLE, NULL },
		{ "X-Vault-Token", HPX_CALLER_STABLE, NULL },
		{ "X-Forwarded-User", HPX_CALLER_VOUCHED, NULL },
		{ "X-Forwarded-Email", HPX_CALLER_VOUCHED, NULL },
		{ "Remote-User", HPX_CALLER_VOUCHED, NULL },
		{ "X-Consumer-Username", HPX_CALLER_VOUCHED, NULL },
		{ "X-Amzn-Oidc-Identity", HPX_CALLER_VOUCHED, NULL },
		{ "X-Goog-Iap-Anything", HPX_CALLER_VOUCHED, NULL },
		{ "X-Goog-Authenticated-User-Email", HPX_CALLER_VOUCHED, NULL },
		{ "X-Ms-Client-Principal-Id", HPX_CALLER_VOUCHED, NULL },
		{ "CF-Access-Client-Secret", HPX_CALLER_VOUCHED, NULL },
		{ "Cf-Access-Authenticated-User-Email", HPX_CALLER_VOUCHED, NULL },
		{ "client_id", HPX_CALLER_STABLE, NULL },
		{ "client_secret", HPX_CALLER_STABLE, NULL },
		{ "X-IBM-Client-Secret", HPX_CALLER_STABLE, NULL },
		{ "x-amzn-oidc-data", HPX_CALLER_RENEWED, "x-amzn-oidc-identity" },
		{ "x-amzn-oidc-accesstoken", HPX_CALLER_RENEWED, "x-amzn-oidc-identity" },
		{ "X-Goog-Iap-Jwt-Assertion", HPX_CALLER_RENEWED, "X-Goog-Authenticated-User-Id" },
		{ "Cf-Access-Jwt-Assertion", HPX_CALLER_RENEWED,
		  "Cf-Access-Authenticated-User-Email" },
		{ "X-Forwarded-Client-Cert", HPX_CALLER_RENEWED, "ssl-client-subject-dn" },
		{ "X-Forwarded-Access-Token", HPX_CALLER_RENEWED, "X-Forwarded-User" },
		{ "X-Auth-Request-Access-Token", HPX_CALLER_RENEWED, "X-Auth-Request-User" },
		{ "X-Ms-Token-Aad-Access-Token", HPX_CALLER_RENEWED, "X-Ms-Client-Principal-Id" },
		{ "X-Ms-Token-Aad-Expires-On", HPX_CALLER_RENEWED, "X-Ms-Client-Principal-Id" },
		{ "X-My-Token", HPX_CALLER_SUSPECT, NULL },
		{ "X-Amz-Security-Token", HPX_CALLER_SUSPECT, NULL },
		{ "Acme-Secret", HPX_CALLER_SUSPECT, NULL },
		{ "Token", HPX_CALLER_SUSPECT, NULL },
		{ "X-Session-Id", HPX_CALLER_SUSPECT, NULL },
		{ "X-Auth", HPX_CALLER_SUSPECT, NULL },
		{ "X-Acme-Jwt", HPX_CALLER_SUSPECT, NULL },
		{ "X-Tenant", HPX_CALLER_VOUCHED, NULL },
		{ "X-CSRF-Token", HPX_CALLER_HARMLESS, NULL },
		{ "X-XSRF-TOKEN", HPX_CALLER_HARMLESS, NULL },
		{ "csrfmiddlewaretoken", HPX_CALLER_HARMLESS, NULL },
		{ "X-CSRF-Access-Token", HPX_CALLER_HARMLESS, NULL },
		{ "RequestVerificationToken", HPX_CALLER_HARMLESS, NULL },
		{ "X-Recaptcha-Token", HPX_CALLER_HARMLESS, NULL },
		{ "h-captcha-response", HPX_CALLER_HARMLESS, NULL },
		{ "X-Device-Token", HPX_CALLER_HARMLESS, NULL },
		{ "X-Push-Token", HPX_CALLER_HARMLESS, NULL },
		{ "X-Ms-Continuation-Token", HPX_CALLER_HARMLESS, NULL },
		{ "X-Request-Token", HPX_CALLER_HARMLESS, NULL },
		{ "X-Requested-With", HPX_CALLER_HARMLESS, NULL },
		{ "DPoP", HPX_CALLER_HARMLESS, NULL },
		{ "X-Amz-Date", HPX_CALLER_HARMLESS, NULL },
		{ "X-Amz-Content-Sha256", HPX_CALLER_HARMLESS, NULL },
		{ "X-Hub-Signature-256", HPX_CALLER_HARMLESS, NULL },
		{ "Signature-Input", HPX_CALLER_HARMLESS, NULL },
		{ "Host", HPX_CALLER_NONE, NULL },
		{ "Accept", HPX_CALLER_NONE, NULL },
		{ "Content-Type", HPX_CALLER_NONE, NULL },
		{ "Content-Length", HPX_CALLER_NONE, NULL },
		{ "Idempotency-Key", HPX_CALLER_NONE, NULL },
		{ "User-Agent", HPX_CALLER_NONE, NULL },
		{ "Traceparent", HPX_CALLER_NONE, NULL },
		{ "X-Request-Id", HPX_CALLER_NONE, NULL },
		{ "X-Forwarded-For", HPX_CALLER_NONE, NULL },
		{ "X-Forwarded-Proto", HPX_CALLER_NONE, NULL },
		{ "X-Auth-Request-Redirect", HPX_CALLER_NONE, NULL },
		{ "Sec-WebSocket-Key", HPX_CALLER_NONE, NULL },
		{ "X-Api-Keys", HPX_CALLER_NONE, NULL },
		{ "Authorization2", HPX_CALLER_NONE, NULL },
		{ "tokens", HPX_CALLER_NONE, NULL },
		{ "X_Auth_Token", HPX_CALLER_NONE, NULL },
		{ "X_Goog_Api_Key", HPX_CALLER_NONE, NULL },
		{ "X_My_Token", HPX_CALLER_SUSPECT, NULL },
		{ "acme_secret", HPX_CALLER_SUSPECT, NULL },
		{ "csrf_token", HPX_CALLER_HARMLESS, NULL },
		{ "device_token", HPX_CALLER_HARMLESS, NULL },
		{ "trace_id", HPX_CALLER_NONE, NULL },
		/* Written so by those who use them. */
		{ "api_key", HPX_CALLER_STABLE, NULL },
		{ "access_token", HPX_CALLER_STABLE, NULL },
		{ "OIDC_access_token", HPX_CALLER_RENEWED, "OIDC_CLAIM_sub" },
		{ "REMOTE_USER", HPX_CALLER_VOUCHED, NULL },
		{ "X_Api_Key", HPX_CALLER_NONE, NULL },
		{ "X-Sentry-Auth", HPX_CALLER_SUSPECT, NULL },
		{ "X-Client-Id", HPX_CALLER_SUSPECT, NULL },
		{ "Sec-Api-Key", HPX_CALLER_STABLE, NULL },
		{ "Teleport-Jwt-Assertion", HPX_CALLER_SUSPECT, NULL },
		{ "X-Vouch-User", HPX_CALLER_VOUCHED, NULL },
		{ "Sec-Private-State-Token", HPX_CALLER_HARMLESS, NULL },
		{ "X-Anti-Forgery-Token", HPX_CALLER_HARMLESS, NULL },
		{ "X-Atlassian-Token", HPX_CALLER_HARMLESS, NULL },
		{ "Lock-Token", HPX_CALLER_HARMLESS, NULL },
		{ "X-Aws-Waf-Token", HPX_CALLER_HARMLESS, NULL },
		{ "", HPX_CALLER_NONE, NULL },
		{ "-", HPX_CALLER_NONE, NULL },
		{ "x", HPX_CALLER_NONE, NULL },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(names); i++)
		expect(names[i].name, names[i].field, names[i].twin);
}

/* A name that the row matches; `more` stands for what a pattern leaves open. */
static void write_name(const struct hpx_caller_row *row, const char *more, bool upper,
		       char *out, size_t size)
{
	bool before = row->match == HPX_CALLER_SUFFIX || row->match == HPX_CALLER_CONTAINS;
	bool after = row->match == HPX_CALLER_PREFIX || row->match == HPX_CALLER_CONTAINS;

	snprintf(out, size, "%s%.*s%s", before ? more : "", HPX_SPAN_ARG(row->text),
		 after ? more : "");
	for (char *c = out; upper && *c != '\0'; c++)
		if (*c >= 'a' && *c <= 'z')
			*c = (char)(*c - 'a' + 'A');
}

/* No row is hidden by one above it, and case changes nothing. */
static void every_row_is_found(void **state)
{
	size_t count;
	const struct hpx_caller_row *rows = hpx_caller_rows(&count);
	char name[128];

	(void)state;
	assert_true(count > 100);
	for (size_t i = 0; i < count; i++) {
		write_name(&rows[i], "q", false, name, sizeof(name));
		expect(name, rows[i].field, rows[i].twin);
		write_name(&rows[i], "Zq", true, name, sizeof(name));
		expect(name, rows[i].field, rows[i].twin);
	}
}

/* One letter more or less at the end that a row fixes is another name. */
static void near_misses_are_not_found(void **state)
{
	size_t count;
	const struct hpx_caller_row *rows = hpx_caller_rows(&count);
	char name[128];

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const struct hpx_caller_row *row = &rows[i];
		const char *twin = NULL;
		if (row->match == HPX_CALLER_CONTAINS)
			continue;
		snprintf(name, sizeof(name), row->match == HPX_CALLER_PREFIX ? "q%.*sq" : "%.*sq",
			 HPX_SPAN_ARG(row->text));
		enum hpx_caller_field got = hpx_caller_field_of(hpx_span_of(name), &twin);
		/* `cf-access-tokenq` is of cf-access-*, and so on. */
		bool of_prefix = row->match == HPX_CALLER_EXACT &&
				 (got == HPX_CALLER_VOUCHED || got == HPX_CALLER_RENEWED);
		if (got != HPX_CALLER_NONE && !of_prefix)
			fail_msg("%s: got %s, want none", name, field_name(got));
	}
}

/* Whoever sends a header that does not stay the same is told one that does. */
static void every_renewed_field_has_a_stable_twin(void **state)
{
	size_t count;
	const struct hpx_caller_row *rows = hpx_caller_rows(&count);
	const char *none = NULL;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		if ((rows[i].field == HPX_CALLER_RENEWED) != (rows[i].twin != NULL))
			fail_msg("%s: a twin and RENEWED go together", rows[i].text.ptr);
		if (rows[i].twin != NULL &&
		    hpx_caller_field_of(hpx_span_of(rows[i].twin), &none) != HPX_CALLER_VOUCHED)
			fail_msg("%s: its twin %s is not stable", rows[i].text.ptr, rows[i].twin);
	}
}

#define PAGE "docs/reference/http.md"
#define PAGE_BYTES_MAX ((size_t)1 << 20)

/* As the page writes it: `*-token`. */
static void write_pattern(const struct hpx_caller_row *row, char *out, size_t size)
{
	bool before = row->match == HPX_CALLER_SUFFIX || row->match == HPX_CALLER_CONTAINS;
	bool after = row->match == HPX_CALLER_PREFIX || row->match == HPX_CALLER_CONTAINS;

	snprintf(out, size, "`%s%.*s%s`", before ? "*" : "", HPX_SPAN_ARG(row->text),
		 after ? "*" : "");
}

static void the_reference_has_every_row(void **state)
{
	size_t count;
	const struct hpx_caller_row *rows = hpx_caller_rows(&count);
	char *page = calloc(1, PAGE_BYTES_MAX);
	FILE *file = fopen(PAGE, "r");
	char pattern[128];

	(void)state;
	assert_non_null(file);
	assert_non_null(page);
	assert_true(fread(page, 1, PAGE_BYTES_MAX - 1, file) > 0);
	fclose(file);
	for (size_t i = 0; i < count; i++) {
		write_pattern(&rows[i], pattern, sizeof(pattern));
		if (strcasestr(page, pattern) == NULL)
			fail_msg("%s is not in " PAGE, pattern);
	}
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_what_they_are),
		cmocka_unit_test(every_row_is_found),
		cmocka_unit_test(near_misses_are_not_found),
		cmocka_unit_test(every_renewed_field_has_a_stable_twin),
		cmocka_unit_test(the_reference_has_every_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
