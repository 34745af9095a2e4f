/* From credentials to a tenant's name, and from a route to a scope. */
#include "gateway/tenant.h"

#include "base/bytes.h"
#include "base/status.h"
#include "gateway/caller_field.h"
#include "http/field.h"

#define TENANT_NAME_MAX 255

/* ---- reading ---- */

static bool is_among(const struct hpx_span *names, size_t count, struct hpx_span name)
{
	for (size_t i = 0; i < count; i++)
		if (hpx_span_ieq(names[i], name))
			return true;
	return false;
}

static bool is_ignored(const struct hpx_settings *settings, struct hpx_span name)
{
	return is_among(settings->tenant.ignore, settings->tenant.ignore_count, name);
}

static unsigned char lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static struct hpx_span lower_of(struct hpx_span text, struct hpx_arena *arena)
{
	char *copy = hpx_arena_alloc(arena, text.len);

	for (size_t i = 0; copy != NULL && i < text.len; i++)
		copy[i] = (char)lower(text.ptr[i]);
	return hpx_span(copy, copy != NULL ? text.len : 0);
}

static int compare_names(struct hpx_span a, struct hpx_span b)
{
	for (size_t i = 0; i < a.len && i < b.len; i++)
		if (lower(a.ptr[i]) != lower(b.ptr[i]))
			return lower(a.ptr[i]) - lower(b.ptr[i]);
	return (a.len > b.len) - (a.len < b.len);
}

/* Sorted by name: proxies may change the order of headers between two tries. */
static void add_stable(struct hpx_tenant_found *found, const struct hpx_field *field)
{
	size_t at = found->stable_count;

	HPX_ASSERT(at <= HPX_TENANT_STABLE_MAX);
	if (at == HPX_TENANT_STABLE_MAX) {
		found->surplus = field;
		return;
	}
	for (; at > 0; at--) {
		int order = compare_names(found->stable[at - 1]->name, field->name);
		if (order == 0 && found->twice == NULL)
			found->twice = field;
		if (order <= 0)
			break;
		found->stable[at] = found->stable[at - 1];
	}
	found->stable[at] = field;
	found->stable_count++;
}

static void add_credential(struct hpx_tenant_found *found, const struct hpx_field *field)
{
	bool is_key = hpx_span_ieq(field->name, HPX_SPAN("X-Api-Key"));
	const struct hpx_field **place = is_key ? &found->api_key : &found->authorization;

	if (*place != NULL)
		found->twice = field;
	*place = field;
}

static void add_other(struct hpx_tenant_found *found, const struct hpx_field *field)
{
	if (hpx_span_ieq(field->name, HPX_SPAN("Cookie")))
		found->cookie = field;
	else if (hpx_span_ieq(field->name, HPX_SPAN("Proxy-Authorization")))
		found->proxy = field;
}

/* One pass over the fields. An empty value names nobody; but an empty Authorization
 * is a credential that cannot be used. */
static void find(const struct hpx_tenant_source *source, struct hpx_tenant_found *found)
{
	const struct hpx_settings *settings = source->settings;

	*found = (struct hpx_tenant_found){ .authorization = NULL };
	for (size_t i = 0; i < source->head->field_count; i++) {
		const struct hpx_field *field = &source->head->fields[i];
		const char *twin = NULL;
		enum hpx_caller_field kind = hpx_caller_field_of(field->name, &twin);
		if (kind == HPX_CALLER_HARMLESS || is_ignored(settings, field->name) ||
		    (field->value.len == 0 && kind != HPX_CALLER_CREDENTIAL))
			continue;
		if (kind == HPX_CALLER_NONE) {
			add_other(found, field);
		} else if (kind == HPX_CALLER_CREDENTIAL) {
			add_credential(found, field);
		} else if (kind == HPX_CALLER_STABLE || kind == HPX_CALLER_VOUCHED) {
			add_stable(found, field);
		} else if (kind == HPX_CALLER_RENEWED) {
			found->renewed = field;
			found->twin = twin;
		} else if (!is_among(settings->tenant.with, settings->tenant.with_count,
				     field->name)) {
			found->suspect = field;
		}
	}
	/* X-Api-Key without a value is as good as none. */
	if (found->api_key != NULL && found->api_key->value.len == 0)
		found->api_key = NULL;
}

/* ---- naming ---- */

static enum hpx_status finish(struct hpx_sha256 *hash, const char *before, const char *sign,
			      struct hpx_arena *arena, struct hpx_span *ret_name)
{
	uint8_t digest[HPX_SHA256_SIZE];
	char text[2 * HPX_SHA256_SIZE + 1];
	enum hpx_status status = hpx_sha256_done(hash, digest);

	if (status != HPX_OK)
		return status;
	hpx_hex_encode(digest, sizeof(digest), text);
	struct hpx_span parts[] = { hpx_span_of(before), hpx_span_of(sign), hpx_span_of(text) };
	struct hpx_span name = hpx_arena_join(arena, parts, 3);
	if (name.ptr == NULL)
		return HPX_NOMEM;
	*ret_name = name;
	return HPX_OK;
}

/* "<kind>:<hash>": what is stored and shown in place of a credential. */
static enum hpx_status hashed(const char *kind, struct hpx_span secret, struct hpx_arena *arena,
			      struct hpx_span *ret_name)
{
	struct hpx_sha256 hash;

	hpx_sha256_init(&hash);
	hpx_sha256_part(&hash, hpx_span_of(kind));
	hpx_sha256_part(&hash, secret);
	return finish(&hash, kind, ":", arena, ret_name);
}

static enum hpx_status add_part(struct hpx_sha256 *hash, const struct hpx_field *field,
				struct hpx_arena *arena)
{
	struct hpx_span name = lower_of(field->name, arena);

	if (name.ptr == NULL)
		return HPX_NOMEM;
	hpx_sha256_part(hash, name);
	hpx_sha256_part(hash, field->value);
	return HPX_OK;
}

/* The credentials besides the one that names the caller. */
static enum hpx_status fold(const struct hpx_tenant_source *source,
			    const struct hpx_tenant_found *found, struct hpx_span *name)
{
	/* Alone, the key names the caller itself. */
	const struct hpx_field *key = found->authorization != NULL ? found->api_key : NULL;
	bool listed = source->settings->tenant.from == HPX_TENANT_AUTOMATIC;
	size_t count = listed ? found->stable_count : 0;
	struct hpx_sha256 hash;
	enum hpx_status status = HPX_OK;

	if (key == NULL && count == 0)
		return HPX_OK;
	hpx_sha256_init(&hash);
	if (key != NULL)
		status = add_part(&hash, key, source->arena);
	for (size_t i = 0; i < count && status == HPX_OK; i++)
		status = add_part(&hash, found->stable[i], source->arena);
	enum hpx_status finished = finish(&hash, name->ptr, "+", source->arena, name);
	return status == HPX_OK ? finished : status;
}

/* ---- anonymous ---- */

static enum hpx_status anonymous(const struct hpx_tenant_source *source, const char *missing,
				 struct hpx_tenant *tenant)
{
	enum hpx_status status = HPX_OK;

	if (source->settings->tenant.anonymous == HPX_ANONYMOUS_REFUSE)
		return hpx_tenant_refuse_nobody(source, missing, tenant);
	if (source->settings->tenant.anonymous == HPX_ANONYMOUS_LOCAL)
		status = hpx_tenant_refuse_afar(source, missing, tenant);
	if (status != HPX_OK)
		return status;
	tenant->name = HPX_SPAN("anonymous");
	tenant->anonymous = true;
	return HPX_OK;
}

/* The credential that `from` names is missing. A caller with another credential is
 * not anonymous, under `local` either. */
static enum hpx_status absent(const struct hpx_tenant_source *source,
			      const struct hpx_tenant_found *found, const char *missing,
			      struct hpx_tenant *tenant)
{
	bool cookies = source->settings->tenant.from != HPX_TENANT_COOKIE;
	const struct hpx_field *other = found->authorization;

	if (other == NULL)
		other = found->api_key;
	if (other == NULL && found->stable_count > 0)
		other = found->stable[0];
	if (other == NULL)
		other = found->renewed;
	if (other == NULL)
		other = found->suspect;
	if (other == NULL && cookies)
		other = found->cookie;
	if (other == NULL || source->settings->tenant.anonymous != HPX_ANONYMOUS_LOCAL)
		return anonymous(source, missing, tenant);
	return hpx_tenant_refuse_other(source, missing, other, tenant);
}

/* ---- each `from` ---- */

/* Schemes whose value is the same in every request. */
static const char *stable_scheme(struct hpx_span scheme)
{
	static const struct {
		struct hpx_span scheme;
		const char *kind;
	} schemes[] = {
		{ HPX_SPAN_INIT("Bearer"), "bearer" },
		{ HPX_SPAN_INIT("Basic"), "basic" },
		{ HPX_SPAN_INIT("Token"), "token" },
		{ HPX_SPAN_INIT("ApiKey"), "apikey" },
		{ HPX_SPAN_INIT("DPoP"), "dpop" },
	};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (hpx_span_ieq(scheme, schemes[i].scheme))
			return schemes[i].kind;
	return NULL;
}

/* From Authorization or X-Api-Key; one of the two is there. */
static enum hpx_status from_two(const struct hpx_tenant_source *source,
				const struct hpx_tenant_found *found, struct hpx_tenant *tenant)
{
	if (found->authorization == NULL)
		return hashed("api-key", found->api_key->value, source->arena, &tenant->name);
	struct hpx_span value = found->authorization->value;
	struct hpx_span scheme = hpx_span_first(value, hpx_span_index(value, ' '));
	struct hpx_span secret = hpx_span_trim(hpx_span_skip(value, scheme.len));
	const char *kind = stable_scheme(scheme);
	if (kind == NULL || secret.len == 0)
		return hpx_tenant_refuse_scheme(found, secret.len == 0, tenant);
	return hashed(kind, secret, source->arena, &tenant->name);
}

static enum hpx_status from_credentials(const struct hpx_tenant_source *source,
					struct hpx_tenant *tenant)
{
	bool automatic = source->settings->tenant.from == HPX_TENANT_AUTOMATIC;
	const char *missing = "this request has no credential";
	struct hpx_tenant_found found;

	find(source, &found);
	if (found.twice != NULL &&
	    (automatic || hpx_span_ieq(found.twice->name, HPX_SPAN("Authorization")) ||
	     hpx_span_ieq(found.twice->name, HPX_SPAN("X-Api-Key"))))
		return hpx_tenant_refuse_twice(source, found.twice->name, tenant);
	if (automatic && found.surplus != NULL)
		return hpx_tenant_refuse(tenant, HPX_SPAN(
							 "more headers than can be told apart name a caller"));
	if (found.authorization == NULL && found.api_key == NULL && automatic) {
		enum hpx_status status = hpx_tenant_refuse_unusable(source, &found, tenant);
		return status == HPX_OK ? anonymous(source, missing, tenant) : status;
	}
	if (found.authorization == NULL && found.api_key == NULL)
		return absent(source, &found, missing, tenant);
	enum hpx_status status = from_two(source, &found, tenant);
	if (status == HPX_OK)
		status = fold(source, &found, &tenant->name);
	if (automatic && found.suspect != NULL)
		tenant->suspect = found.suspect->name;
	return status;
}

/* The credential that `from` names is missing: is there another one? */
static enum hpx_status missing_one(const struct hpx_tenant_source *source, const char *missing,
				   struct hpx_tenant *tenant)
{
	struct hpx_tenant_found found;

	find(source, &found);
	return absent(source, &found, missing, tenant);
}

/* The value of a header that the configuration names, as the upstream gets it:
 * a host in the target goes before the Host field (RFC 9112 §3.2.2), and has no
 * case. */
static enum hpx_status read_value(const struct hpx_tenant_source *source, struct hpx_span name,
				  struct hpx_span *ret_value)
{
	if (!hpx_span_ieq(name, HPX_SPAN("Host"))) {
		*ret_value = hpx_field_value(source->head, name);
		return HPX_OK;
	}
	*ret_value = lower_of(source->host, source->arena);
	return ret_value->ptr != NULL ? HPX_OK : HPX_NOMEM;
}

/* A header that the configuration names, hashed with its name. */
static enum hpx_status from_credential(const struct hpx_tenant_source *source,
				       struct hpx_tenant *tenant)
{
	struct hpx_field field = { .name = source->settings->tenant.name };
	enum hpx_status status = read_value(source, field.name, &field.value);
	struct hpx_sha256 hash;

	if (status != HPX_OK)
		return status;
	if (hpx_field_count(source->head, field.name) > 1)
		return hpx_tenant_refuse_twice(source, field.name, tenant);
	if (field.value.len == 0)
		return missing_one(source, "the header that names the caller is missing", tenant);
	hpx_sha256_init(&hash);
	status = add_part(&hash, &field, source->arena);
	enum hpx_status finished = finish(&hash, "credential", ":", source->arena, &tenant->name);
	return status == HPX_OK ? finished : status;
}

/* A name that a trusted peer has checked; stored as it is. */
static enum hpx_status from_header(const struct hpx_tenant_source *source,
				   struct hpx_tenant *tenant)
{
	const struct hpx_settings *settings = source->settings;
	struct hpx_span value;
	enum hpx_status status = read_value(source, settings->tenant.name, &value);

	if (status != HPX_OK)
		return status;
	if (!hpx_peer_trusted(settings, source->peer))
		return hpx_tenant_refuse(tenant, HPX_SPAN(
							 "the tenant's header is taken from trusted peers only, and this "
							 "connection is not from one (trusted_peers)"));
	if (hpx_field_count(source->head, settings->tenant.name) > 1 ||
	    value.len > TENANT_NAME_MAX)
		return hpx_tenant_refuse(tenant, HPX_SPAN(
							 "the tenant's header is sent more than once or is longer than 255 bytes"));
	if (value.len == 0)
		return missing_one(source, "the tenant's header is missing", tenant);
	tenant->name = hpx_arena_printf(source->arena, "header:%.*s", HPX_SPAN_ARG(value));
	return tenant->name.ptr != NULL ? HPX_OK : HPX_NOMEM;
}

/* How often the cookie is in one field, and its value. */
static unsigned find_cookie(struct hpx_span rest, struct hpx_span name,
			    struct hpx_span *ret_value)
{
	struct hpx_span pair;
	unsigned count = 0;

	while (hpx_span_split(&rest, ';', &pair)) {
		pair = hpx_span_trim(pair);
		size_t at = hpx_span_index(pair, '=');
		if (at == pair.len || !hpx_span_eq(hpx_span_first(pair, at), name))
			continue;
		*ret_value = hpx_span_skip(pair, at + 1);
		count++;
	}
	return count;
}

/* A proxy that speaks HTTP/2 may send each cookie in a field of its own
 * (RFC 9113 §8.2.3). */
static enum hpx_status from_cookie(const struct hpx_tenant_source *source,
				   struct hpx_tenant *tenant)
{
	const struct hpx_http_head *head = source->head;
	struct hpx_span value = { NULL, 0 };
	unsigned count = 0;

	for (size_t i = 0; i < head->field_count; i++)
		if (hpx_span_ieq(head->fields[i].name, HPX_SPAN("Cookie")))
			count += find_cookie(head->fields[i].value,
					     source->settings->tenant.name, &value);
	if (count > 1)
		return hpx_tenant_refuse(tenant, HPX_SPAN(
							 "the cookie that names the caller is sent twice"));
	if (value.len == 0)
		return missing_one(source, "the cookie that names the caller is missing", tenant);
	return hashed("cookie", value, source->arena, &tenant->name);
}

/* The name and the authority that vouches for it: another authority may know somebody else
 * by that name. A renewed certificate has the same two. */
static enum hpx_status from_certificate(const struct hpx_tenant_source *source,
					struct hpx_tenant *tenant)
{
	const struct hpx_certificate *certificate = source->certificate;
	struct hpx_sha256 hash;

	if (certificate == NULL)
		return hpx_tenant_refuse(tenant, HPX_SPAN(
							 "the client's certificate does not have the name that names the caller "
							 "(tenant.certificate)"));
	hpx_sha256_init(&hash);
	hpx_sha256_part(&hash, certificate->name);
	hpx_sha256_part(&hash, certificate->authority);
	return finish(&hash, "certificate", ":", source->arena, &tenant->name);
}

static enum hpx_status from_setting(const struct hpx_tenant_source *source,
				    struct hpx_tenant *tenant)
{
	switch (source->settings->tenant.from) {
	case HPX_TENANT_AUTOMATIC:
	case HPX_TENANT_AUTHORIZATION:
		return from_credentials(source, tenant);
	case HPX_TENANT_CREDENTIAL:
		return from_credential(source, tenant);
	case HPX_TENANT_HEADER:
		return from_header(source, tenant);
	case HPX_TENANT_COOKIE:
		return from_cookie(source, tenant);
	case HPX_TENANT_CERTIFICATE:
		return from_certificate(source, tenant);
	case HPX_TENANT_SUBREQUEST:
	case HPX_TENANT_JWT:
		/* Found by the step before: from another service, or from a token. */
		return HPX_MISUSE;
	case HPX_TENANT_ANONYMOUS:
		break;
	}
	return anonymous(source, "", tenant);
}

/* ---- with ---- */

/* The values of one header of `with`. An absent header and an empty one differ. */
static enum hpx_status add_with(const struct hpx_tenant_source *source, struct hpx_span name,
				struct hpx_sha256 *hash)
{
	struct hpx_span value;
	enum hpx_status status = read_value(source, name, &value);

	if (status != HPX_OK)
		return status;
	if (hpx_field_count(source->head, name) > 1)
		return HPX_INVALID;
	hpx_sha256_part(hash, name);
	hpx_sha256_part(hash, value.ptr != NULL ? HPX_SPAN("=") : HPX_SPAN(""));
	hpx_sha256_part(hash, value);
	return HPX_OK;
}

enum hpx_status hpx_tenant_add_with(const struct hpx_tenant_source *source,
				    struct hpx_span *name, const char **ret_reason)
{
	const struct hpx_settings *settings = source->settings;
	enum hpx_status status = HPX_OK;
	struct hpx_span one = { NULL, 0 };
	struct hpx_tenant refused = { .reason = NULL };
	struct hpx_sha256 hash;

	if (settings->tenant.with_count == 0)
		return HPX_OK;
	hpx_sha256_init(&hash);
	hpx_sha256_part(&hash, HPX_SPAN("with"));
	for (size_t i = 0; i < settings->tenant.with_count && status == HPX_OK; i++) {
		one = settings->tenant.with[i];
		status = add_with(source, one, &hash);
	}
	enum hpx_status finished = finish(&hash, name->ptr, "+", source->arena, name);
	if (status == HPX_INVALID) {
		status = hpx_tenant_refuse_twice(source, one, &refused);
		*ret_reason = refused.reason;
	}
	return status == HPX_OK ? finished : status;
}

enum hpx_status hpx_tenant_of(const struct hpx_tenant_source *source,
			      struct hpx_tenant *ret_tenant)
{
	struct hpx_tenant tenant = { .anonymous = false };
	enum hpx_status status = from_setting(source, &tenant);

	if (status == HPX_OK)
		status = hpx_tenant_add_with(source, &tenant.name, &tenant.reason);
	*ret_tenant = tenant;
	return status;
}

bool hpx_tenant_looks_at(const struct hpx_settings *settings, struct hpx_span name)
{
	const char *twin = NULL;
	enum hpx_caller_field kind = hpx_caller_field_of(name, &twin);
	bool is_cookie = hpx_span_ieq(name, HPX_SPAN("Cookie"));

	if (is_among(settings->tenant.with, settings->tenant.with_count, name))
		return true;
	switch (settings->tenant.from) {
	case HPX_TENANT_AUTOMATIC:
	case HPX_TENANT_SUBREQUEST:
		return (is_cookie || (kind != HPX_CALLER_NONE && kind != HPX_CALLER_HARMLESS)) &&
		       !is_ignored(settings, name);
	case HPX_TENANT_AUTHORIZATION:
		return kind == HPX_CALLER_CREDENTIAL && !is_ignored(settings, name);
	case HPX_TENANT_CREDENTIAL:
	case HPX_TENANT_HEADER:
		return hpx_span_ieq(name, settings->tenant.name);
	case HPX_TENANT_COOKIE:
		return is_cookie;
	case HPX_TENANT_JWT:
		return hpx_span_ieq(name, HPX_SPAN("Authorization"));
	case HPX_TENANT_CERTIFICATE:
	case HPX_TENANT_ANONYMOUS:
		break;
	}
	return false;
}

/* ---- scope ---- */

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
