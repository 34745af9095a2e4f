/* The reasons of a 401, for the client's developer and the operator, and what
 * `check` and the start say about tenants. */
#include "gateway/tenant.h"

#include "gateway/caller_field.h"

#define SHOWN_MAX 64
#define SHOW(name) HPX_SPAN_ARG(hpx_span_first((name), SHOWN_MAX))

/* ---- why a request has none ---- */

enum hpx_status hpx_tenant_refuse(struct hpx_tenant *tenant, struct hpx_span reason)
{
	if (reason.ptr == NULL)
		return HPX_NOMEM;
	tenant->reason = reason.ptr;
	return HPX_INVALID;
}

enum hpx_status hpx_tenant_refuse_twice(const struct hpx_tenant_source *source,
					struct hpx_span name, struct hpx_tenant *tenant)
{
	return hpx_tenant_refuse(
		tenant, hpx_arena_printf(source->arena,
					 "%.*s is sent more than once; send one credential",
					 SHOW(name)));
}

/* The header that the remedy names first: a secret, where there is one. */
static size_t lead_of(const struct hpx_tenant_found *found, bool *ret_vouched)
{
	const char *twin = NULL;
	size_t i = 0;

	while (i < found->stable_count &&
	       hpx_caller_field_of(found->stable[i]->name, &twin) == HPX_CALLER_VOUCHED)
		i++;
	*ret_vouched = i == found->stable_count;
	return *ret_vouched ? 0 : i;
}

/* ", with: [A, B]" of all but `lead`. */
static enum hpx_status write_with(const struct hpx_tenant_found *found, size_t lead,
				  struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < found->stable_count && status == HPX_OK; i++)
		if (i != lead)
			status = hpx_buffer_printf(out, "%s%.*s",
						   out->len == 0 ? ", with: [" : ", ",
						   SHOW(found->stable[i]->name));
	if (status == HPX_OK && out->len > 0)
		status = hpx_buffer_byte(out, ']');
	return status;
}

static enum hpx_status refuse_stable(const struct hpx_tenant_source *source,
				     const struct hpx_tenant_found *found, struct hpx_tenant *tenant)
{
	bool vouched;
	size_t lead = lead_of(found, &vouched);
	struct hpx_span name = found->stable[lead]->name;
	struct hpx_buffer with;

	hpx_buffer_init(&with, (SHOWN_MAX + 2) * (HPX_TENANT_STABLE_MAX + 1));
	enum hpx_status status = write_with(found, lead, &with);
	if (status == HPX_OK)
		status = hpx_tenant_refuse(tenant,
					   hpx_arena_printf(source->arena,
							    "%.*s names a caller, and the configuration does not say that it does; "
							    "the operator writes tenant: {from: %s, name: %.*s%.*s}%s, or "
							    "tenant: {ignore: [%.*s]} where it names nobody; or the client sends "
							    "Authorization or X-Api-Key",
							    SHOW(name), vouched ? "header" : "credential", SHOW(name),
							    HPX_SPAN_ARG(hpx_buffer_span(&with)),
							    vouched ? " and lists the proxy that sets it in trusted_peers" : "",
							    SHOW(name)));
	hpx_buffer_done(&with);
	return status;
}

static enum hpx_status refuse_renewed(const struct hpx_tenant_source *source,
				      const struct hpx_tenant_found *found, struct hpx_tenant *tenant)
{
	struct hpx_span name = found->renewed->name;

	return hpx_tenant_refuse(tenant, hpx_arena_printf(source->arena,
							  "%.*s is signed anew or renewed between two tries, so it does not name a caller; "
							  "the operator writes tenant: {from: header, name: %s}, has the proxy set that header, "
							  "and lists the proxy in trusted_peers; or tenant: {ignore: [%.*s]} where it names "
							  "nobody; or the client sends Authorization or X-Api-Key",
							  SHOW(name), found->twin, SHOW(name)));
}

static enum hpx_status refuse_suspect(const struct hpx_tenant_source *source,
				      const struct hpx_tenant_found *found, struct hpx_tenant *tenant)
{
	struct hpx_span name = found->suspect->name;

	return hpx_tenant_refuse(tenant, hpx_arena_printf(source->arena,
							  "%.*s may name the caller, and nothing else does; the operator writes "
							  "tenant: {from: credential, name: %.*s} if it does and stays the same in a retry, "
							  "or tenant: {ignore: [%.*s]} if not; or the client sends Authorization or "
							  "X-Api-Key",
							  SHOW(name), SHOW(name), SHOW(name)));
}

enum hpx_status hpx_tenant_refuse_unusable(const struct hpx_tenant_source *source,
					   const struct hpx_tenant_found *found,
					   struct hpx_tenant *tenant)
{
	if (found->stable_count > 0)
		return refuse_stable(source, found, tenant);
	if (found->renewed != NULL)
		return refuse_renewed(source, found, tenant);
	if (found->suspect != NULL)
		return refuse_suspect(source, found, tenant);
	if (found->cookie != NULL)
		return hpx_tenant_refuse(tenant, HPX_SPAN(
							 "a cookie alone does not say which part of it names the caller; the "
							 "operator writes tenant: {from: cookie, name: …} with the name of the "
							 "session's cookie, or tenant: {ignore: [Cookie]} where none names a caller; "
							 "or the client sends Authorization or X-Api-Key"));
	if (found->proxy != NULL)
		return hpx_tenant_refuse(tenant, HPX_SPAN(
							 "Proxy-Authorization does not name a caller of this service; send "
							 "Authorization or X-Api-Key"));
	return HPX_OK;
}

enum hpx_status hpx_tenant_refuse_scheme(const struct hpx_tenant_found *found, bool bare,
					 struct hpx_tenant *tenant)
{
	if (bare)
		return hpx_tenant_refuse(tenant, HPX_SPAN(
							 "this Authorization has no scheme that is known, or no value behind it; send "
							 "Bearer or Basic, or the operator writes tenant: {from: credential, name: "
							 "Authorization} where its value stays the same in a retry"));
	/* The key alone would let two callers who share it share answers, and the
	 * scheme's value would make the retry another caller's. */
	if (found->api_key != NULL)
		return hpx_tenant_refuse(tenant, HPX_SPAN(
							 "this Authorization scheme's value may change with each request, so it does "
							 "not name a caller; use Bearer or Basic, or the operator writes tenant: "
							 "{ignore: [Authorization]} where X-Api-Key alone names the caller"));
	return hpx_tenant_refuse(tenant, HPX_SPAN(
						 "this Authorization scheme's value may change with each request, so it does not name "
						 "a caller; use Bearer or Basic, or the operator writes tenant: {from: credential, name: "
						 "Authorization} if it stays the same in a retry, or tenant: {from: subrequest, url: …, "
						 "header: …} and lets a service say who is calling"));
}

/* Headers that proxies add: a request that has one did not come from this machine. */
static bool is_mark_of_proxy(struct hpx_span name)
{
	return hpx_span_istarts(name, HPX_SPAN("X-Forwarded-")) ||
	       hpx_span_ieq(name, HPX_SPAN("Forwarded")) || hpx_span_ieq(name, HPX_SPAN("Via")) ||
	       hpx_span_ieq(name, HPX_SPAN("X-Real-IP"));
}

static const struct hpx_field *find_forwarded(const struct hpx_http_head *head)
{
	for (size_t i = 0; i < head->field_count; i++)
		if (is_mark_of_proxy(head->fields[i].name))
			return &head->fields[i];
	return NULL;
}

/* What the client can do, where the remedy is not the operator's alone. */
static const char *client_remedy(const struct hpx_settings *settings)
{
	return settings->tenant.from == HPX_TENANT_AUTOMATIC ||
			       settings->tenant.from == HPX_TENANT_AUTHORIZATION ?
		       "; send Authorization or X-Api-Key" :
		       "";
}

#define SHARED "under which all callers without a credential share keys and answers"

enum hpx_status hpx_tenant_refuse_afar(const struct hpx_tenant_source *source,
				       const char *missing, struct hpx_tenant *tenant)
{
	const struct hpx_field *forwarded = find_forwarded(source->head);
	struct hpx_span name = forwarded != NULL ? forwarded->name : HPX_SPAN("");

	if (!source->local)
		return hpx_tenant_refuse(tenant, hpx_arena_printf(source->arena,
								  "%s, and the connection is not from this machine to a loopback address or a unix socket%s; or "
								  "the operator writes tenant: {anonymous: allow}, " SHARED,
								  missing, client_remedy(source->settings)));
	if (forwarded != NULL)
		return hpx_tenant_refuse(tenant, hpx_arena_printf(source->arena,
								  "%s, and %.*s says that it was forwarded%s; or the operator writes tenant: "
								  "{anonymous: allow}, " SHARED,
								  missing, SHOW(name), client_remedy(source->settings)));
	return HPX_OK;
}

enum hpx_status hpx_tenant_refuse_nobody(const struct hpx_tenant_source *source,
					 const char *missing, struct hpx_tenant *tenant)
{
	return hpx_tenant_refuse(tenant, hpx_arena_printf(source->arena, "%s%s", missing,
							  client_remedy(source->settings)));
}

enum hpx_status hpx_tenant_refuse_other(const struct hpx_tenant_source *source,
					const char *missing, const struct hpx_field *other,
					struct hpx_tenant *tenant)
{
	return hpx_tenant_refuse(tenant, hpx_arena_printf(source->arena,
							  "%s, and %.*s is there, so the caller is not anonymous%s; or the operator writes "
							  "tenant.ignore: [%.*s] where it names nobody, or tenant.anonymous: allow, " SHARED,
							  missing, SHOW(other->name), client_remedy(source->settings), SHOW(other->name)));
}

/* ---- what holds ---- */

static enum hpx_status describe_from(const struct hpx_settings *settings, struct hpx_buffer *out)
{
	struct hpx_span name = settings->tenant.name;

	switch (settings->tenant.from) {
	case HPX_TENANT_AUTOMATIC:
		return hpx_buffer_text(out, "Authorization, X-Api-Key and other headers that are "
					    "known to name a caller");
	case HPX_TENANT_AUTHORIZATION:
		return hpx_buffer_text(out, "Authorization and X-Api-Key");
	case HPX_TENANT_CREDENTIAL:
		return hpx_buffer_printf(out, "a hash of the header %.*s", HPX_SPAN_ARG(name));
	case HPX_TENANT_HEADER:
		return hpx_buffer_printf(out, "the header %.*s of trusted peers",
					 HPX_SPAN_ARG(name));
	case HPX_TENANT_COOKIE:
		return hpx_buffer_printf(out, "a hash of the cookie %.*s", HPX_SPAN_ARG(name));
	case HPX_TENANT_CERTIFICATE: {
		static const char *const names[] = { "subject", "common name", "DNS name", "URI",
						     "email address" };
		return hpx_buffer_printf(out, "the %s of the client's certificate",
					 names[settings->tenant.certificate]);
	}
	case HPX_TENANT_SUBREQUEST:
		return hpx_buffer_text(out, "the name that the authorisation service gives");
	case HPX_TENANT_JWT:
		return hpx_buffer_printf(out, "the claim %.*s of verified tokens of %.*s",
					 HPX_SPAN_ARG(settings->tenant.jwt.rule.claim),
					 HPX_SPAN_ARG(settings->tenant.jwt.rule.issuer));
	case HPX_TENANT_ANONYMOUS:
		break;
	}
	return hpx_buffer_text(out, "one tenant for all callers");
}

static enum hpx_status describe_list(const char *before, const struct hpx_span *names,
				     size_t count, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < count && status == HPX_OK; i++)
		status = hpx_buffer_printf(out, "%s%.*s", i == 0 ? before : ", ",
					   HPX_SPAN_ARG(names[i]));
	return status;
}

static enum hpx_status describe_anonymous(const struct hpx_settings *settings,
					  struct hpx_buffer *out)
{
	if (settings->tenant.from == HPX_TENANT_SUBREQUEST || settings->tenant.from == HPX_TENANT_JWT ||
	    settings->tenant.from == HPX_TENANT_CERTIFICATE ||
	    settings->tenant.from == HPX_TENANT_ANONYMOUS)
		return HPX_OK;
	if (settings->tenant.anonymous == HPX_ANONYMOUS_ALLOW)
		return hpx_buffer_text(out, "; without it: anonymous, a tenant that all such callers share");
	if (settings->tenant.anonymous == HPX_ANONYMOUS_REFUSE)
		return hpx_buffer_text(out, "; without it: 401");
	enum hpx_status status = HPX_OK;
	for (size_t i = 0; i < settings->listener_count && status == HPX_OK; i++) {
		const struct hpx_address *address = &settings->listeners[i].address;
		status = hpx_buffer_printf(out,
					   hpx_address_is_local(address) ?
						   "; without any credential: anonymous, because %s is "
						   "local, or 401 if the request was forwarded" :
						   "; without any credential: 401, because %s is not local "
						   "(tenant.anonymous)",
					   address->text);
	}
	return status;
}

enum hpx_status hpx_tenant_describe(const struct hpx_settings *settings, struct hpx_buffer *out)
{
	enum hpx_status status = describe_from(settings, out);

	if (status == HPX_OK)
		status = describe_list(", with ", settings->tenant.with,
				       settings->tenant.with_count, out);
	if (status == HPX_OK)
		status = describe_list(", not looking at ", settings->tenant.ignore,
				       settings->tenant.ignore_count, out);
	return status == HPX_OK ? describe_anonymous(settings, out) : status;
}
