/* Rules about `tenant: {from: jwt}`: what must be said, what a URL of keys may be, and
 * whether the keys in a file verify what the list of algorithms accepts. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "config/parse_context.h"

static void mistake(struct hpx_parse_context *context, const char *name, const char *message)
{
	struct hpx_location global = hpx_location_global(context);

	hpx_location_remark(context, &global, HPX_CONFIG_MISTAKE, "tenant.", name, "%s", message);
}

static void warn(struct hpx_parse_context *context, const char *name, const char *message)
{
	struct hpx_location global = hpx_location_global(context);

	hpx_location_remark(context, &global, HPX_CONFIG_WARNING, "tenant.", name, "%s", message);
}

static bool is_given(const struct hpx_parse_context *context, const char *name)
{
	struct hpx_location global = hpx_location_global(context);

	return hpx_location_given(&global, "tenant.", name)->given;
}

/* ---- what must be said ---- */

static void check_issuer(struct hpx_parse_context *context)
{
	struct hpx_span issuer = context->settings->tenant.jwt.rule.issuer;

	if (issuer.ptr == NULL) {
		mistake(context, "from", "is jwt, but no issuer is named; add e.g. tenant.issuer: "
					 "https://login.example, byte for byte as in iss");
		return;
	}
	for (size_t i = 0; i < issuer.len; i++)
		if (issuer.ptr[i] <= ' ' || issuer.ptr[i] > '~' || issuer.ptr[i] == '#') {
			mistake(context, "issuer", "must be visible ASCII without #, which ends the "
						   "issuer in a tenant's name");
			return;
		}
	if (issuer.len == 0 || issuer.len > HPX_JWT_ISSUER_MAX)
		mistake(context, "issuer", "must have 1 to 128 characters");
}

static void check_needed(struct hpx_parse_context *context)
{
	if (!is_given(context, "audience"))
		mistake(context, "from",
			"is jwt, but nothing says for whom a token must be; a token that was given for "
			"another service would work here: add e.g. tenant.audience: [payments], or "
			"tenant.audience: [] where the issuer writes no aud");
	if (!is_given(context, "keys"))
		mistake(context, "from", "is jwt, but no keys are named; add e.g. tenant.keys: "
					 "https://login.example/.well-known/jwks.json");
	if (context->settings->tenant.jwt.rule.algorithms == 0)
		mistake(context, "algorithms", "is empty, so that no token is accepted; write e.g. "
					       "[RS256]");
	if (context->settings->tenant.jwt.rule.claim.len == 0)
		mistake(context, "claim", "is empty; write e.g. sub");
	if (is_given(context, "anonymous"))
		warn(context, "anonymous", "has no effect where tenant.from is jwt: a request without a "
					   "token is refused");
}

/* ---- the keys ---- */

/* Whoever stands between could put a key of their own into a set that travels in the open;
 * on this machine nobody does. */
static bool is_loopback(struct hpx_span rest)
{
	static const struct hpx_span hosts[] = { HPX_SPAN_INIT("127.0.0.1"), HPX_SPAN_INIT("localhost"),
						 HPX_SPAN_INIT("[::1]") };

	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		struct hpx_span after = hpx_span_skip(rest, hosts[i].len);
		if (hpx_span_istarts(rest, hosts[i]) &&
		    (after.len == 0 || after.ptr[0] == ':' || after.ptr[0] == '/'))
			return true;
	}
	return false;
}

static void check_url(struct hpx_parse_context *context, struct hpx_span url)
{
	static const struct hpx_span http = HPX_SPAN_INIT("http://");
	size_t mark = hpx_span_index(url, '?');
	struct hpx_span query = hpx_span_skip(url, mark);
	const char *reason = hpx_value_url_problem(hpx_span_first(url, mark));

	for (size_t i = 0; i < query.len && reason == NULL; i++)
		if (query.ptr[i] <= ' ' || query.ptr[i] > '~' || query.ptr[i] == '#')
			reason = "has a query with bytes that must be written as %XX, or a fragment";
	if (reason != NULL)
		mistake(context, "keys", reason);
	else if (hpx_span_istarts(url, http) && !is_loopback(hpx_span_skip(url, http.len)))
		mistake(context, "keys", "is an http URL of another machine: whoever stands between could "
					 "put in a key of their own; use https, or a file");
	if ((context->settings->tenant.jwt.rule.algorithms & HPX_JWS_BIT(HPX_JWS_HS256)) != 0)
		mistake(context, "algorithms", "accepts HS256 with keys from a URL: whoever can read the key "
					       "can sign with it; name a file in tenant.keys, or leave "
					       "HS256 out");
}

static void check_set(struct hpx_parse_context *context, const struct hpx_jwk_set *set, unsigned mode)
{
	unsigned fit = 0;

	for (size_t i = 0; i < set->count; i++)
		fit |= set->keys[i].algorithms & context->settings->tenant.jwt.rule.algorithms;
	if (fit == 0)
		mistake(context, "keys", "has no key that fits one of tenant.algorithms");
	if (set->keys[0].secret.len > 0 && (mode & (S_IROTH | S_IWOTH)) != 0)
		warn(context, "keys", "holds secrets and can be read or written by every user; chmod 600 it, "
				      "as the user that hapax runs as");
	else if ((mode & S_IWOTH) != 0)
		warn(context, "keys", "can be written by every user, who could put in a key of their own; "
				      "chmod 644 it");
}

static void check_file(struct hpx_parse_context *context, const char *path)
{
	struct hpx_location global = hpx_location_global(context);
	struct hpx_jwk_set *set = NULL;
	const char *reason = "cannot be read";
	struct hpx_buffer text;
	unsigned mode = 0;

	hpx_buffer_init(&text, HPX_JWK_SET_BYTES_MAX);
	enum hpx_status status = hpx_buffer_read_file(&text, path, &mode);
	if (status == HPX_IO)
		reason = strerror(errno);
	else if (status != HPX_OK)
		reason = status == HPX_INVALID ? "it is no file" : "it is larger than 256 KiB";
	if (status == HPX_OK)
		status = hpx_jwk_set_read(hpx_buffer_span(&text), &set, &reason);
	if (status == HPX_OK)
		check_set(context, set, mode);
	else
		hpx_location_remark(context, &global, HPX_CONFIG_MISTAKE, "tenant.", "keys",
				    "cannot be used: %s", reason);
	hpx_jwk_set_unref(set);
	hpx_buffer_done(&text);
}

void hpx_rule_check_jwt(struct hpx_parse_context *context)
{
	static const char *const names[] = { "keys", "issuer", "audience", "claim",
					     "algorithms", "skew", "refresh" };
	const struct hpx_jwt_settings *jwt = &context->settings->tenant.jwt;

	if (context->settings->tenant.from != HPX_TENANT_JWT) {
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (is_given(context, names[i]))
				warn(context, names[i], "has no effect unless tenant.from is jwt");
		return;
	}
	check_issuer(context);
	check_needed(context);
	if (jwt->keys != NULL && jwt->keys_by_url)
		check_url(context, hpx_span_of(jwt->keys));
	else if (jwt->keys != NULL && !context->without_secrets)
		check_file(context, jwt->keys);
}
