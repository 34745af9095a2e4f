/* From credentials to a tenant's name, and from a route to a scope. */
#include "gateway/tenant.h"

#include "base/bytes.h"
#include "http/field.h"

#define TENANT_NAME_MAX 255

/* "<kind>:<hash>": what is stored and shown in place of a credential. */
static enum hpx_status hashed(const char *kind, struct hpx_span secret, struct hpx_arena *arena,
			      struct hpx_span *ret_tenant)
{
	struct hpx_sha256 hash;
	uint8_t digest[HPX_SHA256_SIZE];
	char text[2 * HPX_SHA256_SIZE + 1];

	hpx_sha256_init(&hash);
	hpx_sha256_part(&hash, hpx_span_of(kind));
	hpx_sha256_part(&hash, secret);
	enum hpx_status status = hpx_sha256_done(&hash, digest);
	if (status != HPX_OK)
		return status;
	hpx_hex_encode(digest, sizeof(digest), text);
	struct hpx_span parts[] = { hpx_span_of(kind), HPX_SPAN(":"), hpx_span_of(text) };
	struct hpx_span name = hpx_arena_join(arena, parts, 3);
	if (name.ptr == NULL)
		return HPX_NOMEM;
	*ret_tenant = name;
	return HPX_OK;
}

static enum hpx_status anonymous(struct hpx_span *ret_tenant)
{
	*ret_tenant = HPX_SPAN("anonymous");
	return HPX_OK;
}

static enum hpx_status absent(const struct hpx_settings *settings, const char *reason,
			      struct hpx_span *ret_tenant, const char **ret_reason)
{
	if (!settings->tenant_required)
		return anonymous(ret_tenant);
	*ret_reason = reason;
	return HPX_INVALID;
}

static enum hpx_status from_authorization(const struct hpx_http_head *head,
					  struct hpx_arena *arena, struct hpx_span *ret_tenant,
					  const char **ret_reason)
{
	struct hpx_span value = hpx_field_value(head, HPX_SPAN("Authorization"));
	size_t at = hpx_span_index(value, ' ');
	struct hpx_span scheme = hpx_span_first(value, at);
	struct hpx_span secret = hpx_span_trim(hpx_span_skip(value, scheme.len));

	if (hpx_field_count(head, HPX_SPAN("Authorization")) > 1) {
		*ret_reason = "Authorization is sent more than once; send one credential";
		return HPX_INVALID;
	}
	if (secret.len > 0 && hpx_span_ieq(scheme, HPX_SPAN("Bearer")))
		return hashed("bearer", secret, arena, ret_tenant);
	if (secret.len > 0 && hpx_span_ieq(scheme, HPX_SPAN("Basic")))
		return hashed("basic", secret, arena, ret_tenant);
	*ret_reason = "this Authorization scheme's value may change with each request, so it does "
		      "not name a caller; use Bearer or Basic, or let the operator set tenant.from";
	return HPX_INVALID;
}

/* The default: whatever credential there is, if it stays the same. */
static enum hpx_status from_credentials(const struct hpx_settings *settings,
					const struct hpx_http_head *head, struct hpx_arena *arena,
					struct hpx_span *ret_tenant, const char **ret_reason)
{
	struct hpx_span api_key = hpx_field_value(head, HPX_SPAN("X-Api-Key"));

	if (hpx_field_count(head, HPX_SPAN("X-Api-Key")) > 1) {
		*ret_reason = "X-Api-Key is sent more than once; send one credential";
		return HPX_INVALID;
	}
	if (hpx_field_find(head, HPX_SPAN("Authorization")) != NULL) {
		enum hpx_status status = from_authorization(head, arena, ret_tenant, ret_reason);
		if (status != HPX_INVALID || api_key.len == 0)
			return status;
	}
	if (api_key.len > 0)
		return hashed("api-key", api_key, arena, ret_tenant);
	if (hpx_field_find(head, HPX_SPAN("Cookie")) != NULL) {
		*ret_reason = "a cookie alone does not say which part of it names the caller; send "
			      "Authorization or X-Api-Key, or let the operator set "
			      "tenant: {from: cookie, name: …}";
		return HPX_INVALID;
	}
	if (hpx_field_find(head, HPX_SPAN("Proxy-Authorization")) != NULL) {
		*ret_reason = "Proxy-Authorization does not name a caller of this service; send "
			      "Authorization or X-Api-Key";
		return HPX_INVALID;
	}
	return absent(settings, "this request has no credential; send Authorization or X-Api-Key",
		      ret_tenant, ret_reason);
}

/* A name that a trusted peer has checked. It is stored as it is. */
static enum hpx_status from_header(const struct hpx_settings *settings,
				   const struct hpx_http_head *head, const char *peer,
				   struct hpx_arena *arena, struct hpx_span *ret_tenant,
				   const char **ret_reason)
{
	struct hpx_span value = hpx_field_value(head, settings->tenant_name);

	if (!hpx_peer_trusted(settings, peer)) {
		*ret_reason = "the tenant's header is taken from trusted peers only, and this "
			      "connection is not from one (trusted_peers)";
		return HPX_INVALID;
	}
	if (hpx_field_count(head, settings->tenant_name) > 1 || value.len > TENANT_NAME_MAX) {
		*ret_reason = "the tenant's header is sent more than once or is longer than 255 bytes";
		return HPX_INVALID;
	}
	if (value.len == 0)
		return absent(settings, "the tenant's header is missing", ret_tenant, ret_reason);
	struct hpx_span name = hpx_arena_printf(arena, "header:%.*s", HPX_SPAN_ARG(value));
	if (name.ptr == NULL)
		return HPX_NOMEM;
	*ret_tenant = name;
	return HPX_OK;
}

static enum hpx_status from_cookie(const struct hpx_settings *settings,
				   const struct hpx_http_head *head, struct hpx_arena *arena,
				   struct hpx_span *ret_tenant, const char **ret_reason)
{
	struct hpx_span rest = hpx_field_combined(head, HPX_SPAN("Cookie"), arena);
	struct hpx_span pair, found = { NULL, 0 };

	while (hpx_span_split(&rest, ';', &pair)) {
		pair = hpx_span_trim(pair);
		size_t at = hpx_span_index(pair, '=');
		if (at == pair.len || !hpx_span_eq(hpx_span_first(pair, at), settings->tenant_name))
			continue;
		if (found.ptr != NULL) {
			*ret_reason = "the cookie that names the caller is sent twice";
			return HPX_INVALID;
		}
		found = hpx_span_skip(pair, at + 1);
	}
	if (found.len == 0)
		return absent(settings, "the cookie that names the caller is missing", ret_tenant,
			      ret_reason);
	return hashed("cookie", found, arena, ret_tenant);
}

enum hpx_status hpx_tenant_of(const struct hpx_settings *settings,
			      const struct hpx_http_head *head, const char *peer,
			      struct hpx_arena *arena, struct hpx_span *ret_tenant,
			      const char **ret_reason)
{
	switch (settings->tenant_from) {
	case HPX_TENANT_AUTHORIZATION:
		return from_credentials(settings, head, arena, ret_tenant, ret_reason);
	case HPX_TENANT_HEADER:
		return from_header(settings, head, peer, arena, ret_tenant, ret_reason);
	case HPX_TENANT_COOKIE:
		return from_cookie(settings, head, arena, ret_tenant, ret_reason);
	case HPX_TENANT_SUBREQUEST:
		/* Asked of another service, by the step before. */
		return HPX_MISUSE;
	case HPX_TENANT_ANONYMOUS:
		break;
	}
	return anonymous(ret_tenant);
}

enum hpx_status hpx_scope_of(const struct hpx_settings *settings, const struct hpx_route *route,
			     struct hpx_span method, struct hpx_span path,
			     struct hpx_arena *arena, struct hpx_span *ret_scope)
{
	struct hpx_span upstream = settings->upstream_name;
	struct hpx_span scope = { NULL, 0 };

	/* A route for one host keeps that host's keys apart. */
	const struct hpx_span of_path[] = { upstream, HPX_SPAN(" "), method, HPX_SPAN(" "),
					    route->host, path };
	const struct hpx_span of_route[] = { upstream, HPX_SPAN(" route "), route->pattern };

	switch (route->policy.scope) {
	case HPX_SCOPE_PATH:
		scope = hpx_arena_join(arena, of_path, 6);
		break;
	case HPX_SCOPE_ROUTE:
		scope = hpx_arena_join(arena, of_route, 3);
		break;
	case HPX_SCOPE_TENANT:
		scope = hpx_arena_join(arena, &upstream, 1);
		break;
	}
	if (scope.ptr == NULL)
		return HPX_NOMEM;
	*ret_scope = scope;
	return HPX_OK;
}
