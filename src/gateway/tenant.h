/* The tenant: who is calling, from the credentials of the request, never from
 * its body. A replay is given without asking the upstream, so two callers must
 * never have one name; and a retry must have the name of the first try, so
 * nothing that rotates may be part of it. */
#ifndef HPX_GATEWAY_TENANT_H
#define HPX_GATEWAY_TENANT_H

#include "base/buffer.h"
#include "http/message.h"
#include "settings/settings.h"

/* A request, as far as it tells who sent it. */
struct hpx_tenant_source {
	const struct hpx_settings *settings;
	const struct hpx_http_head *head;
	struct hpx_span host; /* that the request is for */
	const char *peer;
	struct hpx_arena *arena; /* the answer's texts are from it */
};

struct hpx_tenant {
	/* "bearer:<hash>", "basic:…", "token:…", "apikey:…", "dpop:…", "api-key:…",
	 * "credential:…", "cookie:…", "header:<value>" or "anonymous"; where more
	 * than that is part of it, with "+<hash>" behind. No credential is in it. */
	struct hpx_span name;
	bool anonymous;
	/* A header that may name a caller too and is in no list; len 0: none. */
	struct hpx_span suspect;
	/* HPX_INVALID: tells the client's developer and the operator the remedy. */
	const char *reason;
};

/* HPX_INVALID: it is not clear who is calling. Not for SUBREQUEST. */
enum hpx_status hpx_tenant_of(const struct hpx_tenant_source *source,
			      struct hpx_tenant *ret_tenant);

/* `name` with what `tenant.with` adds behind it, from the arena. HPX_INVALID:
 * one of those headers is there twice, and `*ret_reason` says so. */
enum hpx_status hpx_tenant_add_with(const struct hpx_tenant_source *source,
				    struct hpx_span *name, const char **ret_reason);

/* Whether a header of this name is looked at to find out the tenant under these
 * settings (whatever the request); for the checks of a head. */
bool hpx_tenant_looks_at(const struct hpx_settings *settings, struct hpx_span name);

/* One line for people: what names the tenant here, and what becomes of requests
 * without a credential. */
enum hpx_status hpx_tenant_describe(const struct hpx_settings *settings,
				    struct hpx_buffer *out);

/* What a key is unique within besides the tenant, always with the upstream's
 * name: method and path, the route's pattern, or nothing more. */
enum hpx_status hpx_scope_of(const struct hpx_settings *settings, const struct hpx_route *route,
			     struct hpx_span method, struct hpx_span path,
			     struct hpx_arena *arena, struct hpx_span *ret_scope);

#endif
