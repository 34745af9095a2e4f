/* The table of headers that name a caller, and its lookup. A header that names a
 * caller and is missing here lets two callers share their answers. A header that
 * names no caller and is here makes a retry a second operation, because its value
 * rotates. So every header whose value changes between a request and its retry is
 * RENEWED or HARMLESS. */
#include "gateway/caller_field.h"

#include <pthread.h>

#include "http/field_name.h"

#define EXACT(text, field) \
	{ \
		HPX_CALLER_EXACT, HPX_SPAN_INIT(text), HPX_CALLER_##field, NULL \
	}
#define PREFIX(text, field) \
	{ \
		HPX_CALLER_PREFIX, HPX_SPAN_INIT(text), HPX_CALLER_##field, NULL \
	}
#define SUFFIX(text, field) \
	{ \
		HPX_CALLER_SUFFIX, HPX_SPAN_INIT(text), HPX_CALLER_##field, NULL \
	}
#define CONTAINS(text, field) \
	{ \
		HPX_CALLER_CONTAINS, HPX_SPAN_INIT(text), HPX_CALLER_##field, NULL \
	}
#define RENEWED(text, twin) \
	{ \
		HPX_CALLER_EXACT, HPX_SPAN_INIT(text), HPX_CALLER_RENEWED, twin \
	}
#define RENEWED_PREFIX(text, twin) \
	{ \
		HPX_CALLER_PREFIX, HPX_SPAN_INIT(text), HPX_CALLER_RENEWED, twin \
	}

static const struct hpx_caller_row rows[] = {
	EXACT("authorization", CREDENTIAL),
	EXACT("x-api-key", CREDENTIAL),

	/* Never name a caller. */
	EXACT("dpop", HARMLESS), /* a proof, made for one request */
	EXACT("x-requested-with", HARMLESS),
	EXACT("x-amz-date", HARMLESS),
	EXACT("x-amz-content-sha256", HARMLESS),
	EXACT("x-firebase-appcheck", HARMLESS),
	EXACT("requestverificationtoken", HARMLESS),
	EXACT("x-atlassian-token", HARMLESS), /* no-check */
	EXACT("lock-token", HARMLESS),        /* WebDAV */
	EXACT("sec-private-state-token", HARMLESS),

	/* Signed anew or renewed by a proxy. */
	RENEWED("x-amzn-oidc-data", "x-amzn-oidc-identity"),
	RENEWED("x-amzn-oidc-accesstoken", "x-amzn-oidc-identity"),
	RENEWED("x-goog-iap-jwt-assertion", "X-Goog-Authenticated-User-Id"),
	RENEWED("cf-access-jwt-assertion", "Cf-Access-Authenticated-User-Email"),
	RENEWED("cf-access-token", "Cf-Access-Authenticated-User-Email"),
	RENEWED("x-forwarded-access-token", "X-Forwarded-User"),
	RENEWED("x-forwarded-id-token", "X-Forwarded-User"),
	RENEWED("x-auth-request-access-token", "X-Auth-Request-User"),
	RENEWED("x-auth-request-id-token", "X-Auth-Request-User"),
	RENEWED("x-authentik-jwt", "X-Authentik-Uid"),
	RENEWED("x-pomerium-jwt-assertion", "X-Pomerium-Claim-Email"),
	RENEWED("x-vouch-idp-accesstoken", "X-Vouch-User"),
	RENEWED("x-vouch-idp-idtoken", "X-Vouch-User"),
	RENEWED("oidc_access_token", "OIDC_CLAIM_sub"),
	RENEWED("oidc_id_token", "OIDC_CLAIM_sub"),
	RENEWED("x-ms-client-principal", "X-Ms-Client-Principal-Id"),
	RENEWED("x-forwarded-client-cert", "ssl-client-subject-dn"),
	RENEWED("client-cert", "ssl-client-subject-dn"),
	RENEWED("x-client-cert", "ssl-client-subject-dn"),
	RENEWED("ssl-client-cert", "ssl-client-subject-dn"),
	RENEWED("ssl_client_cert", "SSL_CLIENT_S_DN"),
	RENEWED("x-forwarded-tls-client-cert", "X-Forwarded-Tls-Client-Cert-Info"),
	RENEWED("x-arr-clientcert", "ssl-client-subject-dn"),
	RENEWED("x-ssl-client-cert", "X-SSL-Client-S-DN"),
	RENEWED("x-amzn-mtls-clientcert", "X-Amzn-Mtls-Clientcert-Subject"),
	RENEWED("x-amzn-mtls-clientcert-leaf", "X-Amzn-Mtls-Clientcert-Subject"),
	RENEWED("x-amzn-mtls-clientcert-serial-number", "X-Amzn-Mtls-Clientcert-Subject"),

	/* What callers send. */
	EXACT("x-auth-token", STABLE),
	EXACT("x-auth-key", STABLE),
	EXACT("x-auth-email", STABLE),
	EXACT("x-authorization", STABLE),
	EXACT("x-forwarded-authorization", STABLE),
	EXACT("auth-token", STABLE),
	EXACT("authtoken", STABLE),
	EXACT("access-token", STABLE),
	EXACT("accesstoken", STABLE),
	EXACT("x-accesstoken", STABLE),
	EXACT("access-key", STABLE),
	EXACT("session-token", STABLE),
	EXACT("x-session-token", STABLE),
	EXACT("private-token", STABLE),
	EXACT("job-token", STABLE),
	EXACT("deploy-token", STABLE),
	EXACT("app-token", STABLE),
	EXACT("x-app-token", STABLE),
	EXACT("user-token", STABLE),
	EXACT("x-user-token", STABLE),
	EXACT("apikey", STABLE),
	EXACT("api-key", STABLE),
	EXACT("api-token", STABLE),
	EXACT("x-api-token", STABLE),
	EXACT("x-api-secret", STABLE),
	EXACT("x-app-key", STABLE),
	EXACT("x-functions-key", STABLE),
	EXACT("x-master-key", STABLE),
	EXACT("x-parse-master-key", STABLE),
	EXACT("x-parse-session-token", STABLE),
	EXACT("x-rapidapi-key", STABLE),
	EXACT("dd-application-key", STABLE),
	EXACT("x-jfrog-art-api", STABLE),
	EXACT("x-trackertoken", STABLE),
	EXACT("x-figma-token", STABLE),
	EXACT("x-gitlab-token", STABLE),
	EXACT("x-vault-token", STABLE),
	EXACT("x-consul-token", STABLE),
	EXACT("x-nomad-token", STABLE),
	EXACT("x-postmark-server-token", STABLE),
	EXACT("x-postmark-account-token", STABLE),
	EXACT("x-subscription-token", STABLE),
	EXACT("ocp-apim-subscription-key", STABLE),
	EXACT("app-key", STABLE),
	EXACT("secret-key", STABLE),
	EXACT("x-license-key", STABLE),
	EXACT("x-insert-key", STABLE),
	EXACT("x-honeycomb-team", STABLE),
	EXACT("impersonate-user", STABLE),
	EXACT("sudo", STABLE),

	/* Written so by those who use them: not the twins of names with `-`. */
	EXACT("api_key", STABLE),
	EXACT("api_token", STABLE),
	EXACT("app_key", STABLE),
	EXACT("app_token", STABLE),
	EXACT("access_key", STABLE),
	EXACT("access_token", STABLE),
	EXACT("auth_token", STABLE),
	EXACT("session_token", STABLE),
	EXACT("user_token", STABLE),
	EXACT("client_id", STABLE),
	EXACT("client_secret", STABLE),
	EXACT("client-id", STABLE),
	EXACT("client-secret", STABLE),
	EXACT("x-ibm-client-id", STABLE),
	EXACT("plaid-client-id", STABLE),
	EXACT("plaid-secret", STABLE),

	/* What a proxy says about a caller whom it has checked. */
	EXACT("remote-user", VOUCHED),
	EXACT("remote_user", VOUCHED),
	EXACT("remote-email", VOUCHED),
	EXACT("x-remote-user", VOUCHED),
	EXACT("x-user", VOUCHED),
	EXACT("x-user-id", VOUCHED),
	EXACT("x-user-email", VOUCHED),
	EXACT("x-auth-user", VOUCHED),
	EXACT("x-username", VOUCHED),
	EXACT("x-tenant", VOUCHED),
	EXACT("x-tenant-id", VOUCHED),
	EXACT("x-remote-email", VOUCHED),
	EXACT("x-webauth-user", VOUCHED),
	EXACT("x-forwarded-user", VOUCHED),
	EXACT("x-forwarded-email", VOUCHED),
	EXACT("x-forwarded-preferred-username", VOUCHED),
	EXACT("x-auth-request-user", VOUCHED),
	EXACT("x-auth-request-email", VOUCHED),
	EXACT("x-auth-request-preferred-username", VOUCHED),
	EXACT("x-authenticated-user", VOUCHED),
	EXACT("x-authenticated-userid", VOUCHED),
	EXACT("x-authentik-username", VOUCHED),
	EXACT("x-authentik-email", VOUCHED),
	EXACT("x-authentik-uid", VOUCHED),
	EXACT("x-pomerium-claim-email", VOUCHED),
	EXACT("x-pomerium-claim-sub", VOUCHED),
	EXACT("x-auth-subject", VOUCHED),
	EXACT("x-auth-userid", VOUCHED),
	EXACT("x-auth-username", VOUCHED),
	EXACT("x-vouch-user", VOUCHED),
	EXACT("oidc_claim_sub", VOUCHED),
	EXACT("oidc_claim_email", VOUCHED),
	EXACT("tailscale-user-login", VOUCHED),
	EXACT("x-ms-client-principal-id", VOUCHED),
	EXACT("x-ms-client-principal-name", VOUCHED),
	EXACT("ssl-client-subject-dn", VOUCHED),
	EXACT("ssl-client-s-dn", VOUCHED),
	EXACT("ssl_client_s_dn", VOUCHED),
	EXACT("x-ssl-client-s-dn", VOUCHED),
	EXACT("x-ssl-client-dn", VOUCHED),
	EXACT("x-ssl-client-cn", VOUCHED),
	EXACT("x-client-dn", VOUCHED),
	EXACT("x-forwarded-tls-client-cert-info", VOUCHED),
	EXACT("x-amzn-mtls-clientcert-subject", VOUCHED),

	/* These stand before the patterns below, which they are exceptions of. */
	CONTAINS("csrf", HARMLESS),
	CONTAINS("xsrf", HARMLESS),
	CONTAINS("captcha", HARMLESS),
	CONTAINS("signature", HARMLESS),
	CONTAINS("turnstile", HARMLESS),
	SUFFIX("antiforgery-token", HARMLESS),
	SUFFIX("anti-forgery-token", HARMLESS),
	SUFFIX("verification-token", HARMLESS),
	SUFFIX("device-token", HARMLESS),
	SUFFIX("push-token", HARMLESS),
	SUFFIX("fcm-token", HARMLESS),
	SUFFIX("apns-token", HARMLESS),
	SUFFIX("instance-id-token", HARMLESS),
	SUFFIX("registration-token", HARMLESS),
	SUFFIX("continuation-token", HARMLESS),
	SUFFIX("pagination-token", HARMLESS),
	SUFFIX("page-token", HARMLESS),
	SUFFIX("sync-token", HARMLESS),
	SUFFIX("resume-token", HARMLESS),
	SUFFIX("request-token", HARMLESS),
	SUFFIX("idempotency-token", HARMLESS),
	SUFFIX("correlation-token", HARMLESS),
	SUFFIX("next-token", HARMLESS),
	SUFFIX("arkose-token", HARMLESS),
	SUFFIX("waf-token", HARMLESS),
	SUFFIX("integrity-token", HARMLESS),
	SUFFIX("attestation-token", HARMLESS),

	RENEWED_PREFIX("x-ms-token-", "X-Ms-Client-Principal-Id"),
	PREFIX("x-consumer-", VOUCHED),
	PREFIX("x-credential-", VOUCHED),
	PREFIX("x-amzn-oidc-", VOUCHED),
	PREFIX("x-goog-iap-", VOUCHED),
	PREFIX("x-goog-authenticated-user-", VOUCHED),
	PREFIX("cf-access-", VOUCHED),
	SUFFIX("-api-key", STABLE),
	SUFFIX("-apikey", STABLE),
	SUFFIX("-access-token", STABLE),
	SUFFIX("-access-key", STABLE),
	SUFFIX("-client-secret", STABLE),
	SUFFIX("-secret-key", STABLE),

	/* May be one: alone it is refused, beside a credential it is not hashed in. */
	EXACT("token", SUSPECT),
	EXACT("secret", SUSPECT),
	EXACT("auth", SUSPECT),
	EXACT("x-auth", SUSPECT),
	EXACT("x-userinfo", SUSPECT),
	EXACT("x-apigateway-api-userinfo", SUSPECT),
	EXACT("x-endpoint-api-userinfo", SUSPECT),
	EXACT("x-serverless-authorization", SUSPECT),
	EXACT("x-client-id", SUSPECT), /* or one made up for each page */
	EXACT("x-session", SUSPECT),
	EXACT("x-session-id", SUSPECT),
	EXACT("x-session-key", SUSPECT),
	SUFFIX("-token", SUSPECT),
	SUFFIX("-secret", SUSPECT),
	SUFFIX("-password", SUSPECT),
	SUFFIX("-jwt", SUSPECT),
	SUFFIX("-jwt-assertion", SUSPECT),
	SUFFIX("-auth", SUSPECT),
};

const struct hpx_caller_row *hpx_caller_rows(size_t *ret_count)
{
	*ret_count = sizeof(rows) / sizeof(rows[0]);
	return rows;
}

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))
#define BUCKETS 128
/* The longest text of a row. */
#define DASHED_MAX 64

/* Every header of every request is looked up, so most lookups must end without a walk
 * over the table. This index is made of the table once. */
static struct {
	uint8_t bucket[BUCKETS]; /* of exact names: a row's number + 1; 0: none */
	uint8_t next[ROW_COUNT];
	uint8_t first_pattern;       /* the first row that is no exact name */
	uint32_t letters[ROW_COUNT]; /* that a name must have, as bits */
	/* Of the names that have a number, the row that matches + 1; 0: none. */
	uint8_t known[HPX_NAME_COUNT];
} table;

_Static_assert(ROW_COUNT < UINT8_MAX, "a row's number + 1 is one byte");

static unsigned lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static uint32_t letters_of(struct hpx_span text)
{
	uint32_t letters = 0;

	for (size_t i = 0; i < text.len; i++) {
		unsigned letter = lower(text.ptr[i]) - 'a';
		letters |= letter < 26 ? (uint32_t)1 << letter : 0;
	}
	return letters;
}

static unsigned bucket_of(struct hpx_span name)
{
	return (unsigned)(name.len * 5 + lower(name.ptr[0]) * 3 +
			  lower(name.ptr[name.len - 1]) * 7 + lower(name.ptr[name.len / 2])) %
	       BUCKETS;
}

static void make_index(void)
{
	table.first_pattern = ROW_COUNT;
	for (size_t n = ROW_COUNT; n > 0; n--) {
		const struct hpx_caller_row *row = &rows[n - 1];
		if (row->match == HPX_CALLER_EXACT) {
			uint8_t *bucket = &table.bucket[bucket_of(row->text)];
			table.next[n - 1] = *bucket;
			*bucket = (uint8_t)n;
			continue;
		}
		table.first_pattern = (uint8_t)(n - 1);
		table.letters[n - 1] = letters_of(row->text);
	}
}

static bool contains(struct hpx_span name, struct hpx_span text)
{
	for (size_t at = 0; at + text.len <= name.len; at++)
		if (hpx_span_istarts(hpx_span_skip(name, at), text))
			return true;
	return false;
}

static bool matches(const struct hpx_caller_row *row, struct hpx_span name)
{
	struct hpx_span text = row->text;

	if (name.len < text.len)
		return false;
	switch (row->match) {
	case HPX_CALLER_EXACT:
		return hpx_span_ieq(name, text);
	case HPX_CALLER_PREFIX:
		return hpx_span_istarts(name, text);
	case HPX_CALLER_SUFFIX:
		return hpx_span_istarts(hpx_span_skip(name, name.len - text.len), text);
	case HPX_CALLER_CONTAINS:
		return contains(name, text);
	}
	return false;
}

static const struct hpx_caller_row *find_row(struct hpx_span name)
{
	uint32_t letters = letters_of(name);

	for (unsigned n = table.bucket[bucket_of(name)]; n != 0; n = table.next[n - 1])
		if (matches(&rows[n - 1], name))
			return &rows[n - 1];
	for (size_t i = table.first_pattern; i < ROW_COUNT; i++)
		if ((table.letters[i] & ~letters) == 0 && matches(&rows[i], name))
			return &rows[i];
	return NULL;
}

/* Most headers of most requests are among these. None of them has an underscore. */
static void make_table(void)
{
	make_index();
	for (unsigned n = HPX_NAME_OTHER + 1; n < HPX_NAME_COUNT; n++) {
		const struct hpx_caller_row *row =
			find_row(hpx_field_name_text((enum hpx_field_name)n));
		table.known[n] = row != NULL ? (uint8_t)(row - rows + 1) : 0;
	}
}

/* X_My_Token may name a caller as well as X-My-Token does, and csrf_token does not.
 * The end of a long name decides. The exact names of credentials are not compared in
 * this way: another spelling of such a name is a mistake of the client and no
 * credential. */
static const struct hpx_caller_row *find_dashed(struct hpx_span name)
{
	char text[DASHED_MAX];
	size_t len = name.len < sizeof(text) ? name.len : sizeof(text);

	if (hpx_span_index(name, '_') == name.len)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		char c = name.ptr[name.len - len + i];
		text[i] = c == '_' ? '-' : c;
	}
	const struct hpx_caller_row *row = find_row(hpx_span(text, len));
	bool taken = row != NULL && (row->field == HPX_CALLER_SUSPECT ||
				     row->field == HPX_CALLER_HARMLESS);
	return taken ? row : NULL;
}

static const struct hpx_caller_row *find_any(struct hpx_span name)
{
	enum hpx_field_name known = hpx_field_name_of(name);

	if (known != HPX_NAME_OTHER)
		return table.known[known] > 0 ? &rows[table.known[known] - 1] : NULL;
	const struct hpx_caller_row *row = find_row(name);
	return row != NULL ? row : find_dashed(name);
}

enum hpx_caller_field hpx_caller_field_of(struct hpx_span name, const char **ret_twin)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_table);
	const struct hpx_caller_row *row = name.len > 0 ? find_any(name) : NULL;
	if (row == NULL)
		return HPX_CALLER_NONE;
	if (row->twin != NULL)
		*ret_twin = row->twin;
	return row->field;
}
