/* The tenant: the caller, found from the credentials of the request, never from its
 * body. A replay is given without asking the upstream, so two callers must never get
 * one name. A retry must get the name of the first try, so nothing that rotates may
 * be part of the name. */
#ifndef HPX_GATEWAY_TENANT_H
#define HPX_GATEWAY_TENANT_H

#include "base/buffer.h"
#include "http/message.h"
#include "net/transport.h"
#include "settings/settings.h"

/* The parts of a request that tell who sent it. */
struct hpx_tenant_source {
	const struct hpx_settings *settings;
	const struct hpx_http_head *head;
	struct hpx_span host; /* of the target, or of the Host field */
	const char *peer;
	bool local;                                /* the client is on this machine, and so is the listener's address */
	const struct hpx_certificate *certificate; /* the client's; NULL: none, or without the name */
	struct hpx_arena *arena;                   /* the texts of the result are allocated here */
};

struct hpx_tenant {
	/* "bearer:<hash>", "basic:…", "token:…", "apikey:…", "dpop:…", "api-key:…",
	 * "credential:…", "cookie:…", "certificate:…", "header:<value>" or "anonymous"; where more
	 * than that is part of it, with "+<hash>" behind. No credential is in it. */
	struct hpx_span name;
	bool anonymous;
	/* A header that may name a caller too and is in no list; len 0 where there is
	 * none. */
	struct hpx_span suspect;
	/* With HPX_INVALID: the reason and the remedy, for the client's developer and
	 * the operator. */
	const char *reason;
};

/* HPX_INVALID: the caller is not clear. Not for SUBREQUEST and JWT. */
enum hpx_status hpx_tenant_of(const struct hpx_tenant_source *source,
			      struct hpx_tenant *ret_tenant);

/* Adds the headers of `tenant.with` to `name`, from the arena. HPX_INVALID: one of
 * those headers is there twice, and `*ret_reason` says so. */
enum hpx_status hpx_tenant_add_with(const struct hpx_tenant_source *source,
				    struct hpx_span *name, const char **ret_reason);

/* Whether a header of this name is used to find the tenant under these settings; for
 * the checks of a request's head. */
bool hpx_tenant_looks_at(const struct hpx_settings *settings, struct hpx_span name);

/* One line for people: which credential names the tenant, and what becomes of
 * requests without one. */
enum hpx_status hpx_tenant_describe(const struct hpx_settings *settings,
				    struct hpx_buffer *out);

/* The scope: what a key is unique within besides the tenant. Always the upstream's
 * name; and method and path, or the route's pattern, or nothing more. */
enum hpx_status hpx_scope_of(const struct hpx_settings *settings, const struct hpx_route *route,
			     struct hpx_span method, struct hpx_span path,
			     struct hpx_arena *arena, struct hpx_span *ret_scope);

/* ---- shared by tenant.c and tenant_refusal.c only ---- */

/* More headers that name a caller than any caller sends. */
#define HPX_TENANT_STABLE_MAX 16

/* The fields of a request that may tell who sent it. */
struct hpx_tenant_found {
	const struct hpx_field *authorization;
	const struct hpx_field *api_key;
	const struct hpx_field *stable[HPX_TENANT_STABLE_MAX]; /* sorted by name */
	size_t stable_count;
	const struct hpx_field *renewed;
	const char *twin; /* of `renewed` */
	const struct hpx_field *suspect;
	const struct hpx_field *cookie;
	const struct hpx_field *proxy;   /* Proxy-Authorization */
	const struct hpx_field *twice;   /* for the second time; Authorization or
						     * X-Api-Key where one of them is */
	const struct hpx_field *surplus; /* one more than HPX_TENANT_STABLE_MAX */
};

/* All of these give HPX_INVALID with tenant->reason set, or HPX_NOMEM. */
enum hpx_status hpx_tenant_refuse(struct hpx_tenant *tenant, struct hpx_span reason);
enum hpx_status hpx_tenant_refuse_twice(const struct hpx_tenant_source *source,
					struct hpx_span name, struct hpx_tenant *tenant);
/* `bare`: Authorization has no scheme, or nothing behind it. */
enum hpx_status hpx_tenant_refuse_scheme(const struct hpx_tenant_found *found, bool bare,
					 struct hpx_tenant *tenant);
/* Under `automatic`: refuses a credential that cannot be used; HPX_OK where there is
 * none. */
enum hpx_status hpx_tenant_refuse_unusable(const struct hpx_tenant_source *source,
					   const struct hpx_tenant_found *found,
					   struct hpx_tenant *tenant);
/* `missing` is the credential that would name the caller; `other` is there
 * instead. */
enum hpx_status hpx_tenant_refuse_other(const struct hpx_tenant_source *source,
					const char *missing, const struct hpx_field *other,
					struct hpx_tenant *tenant);
/* An anonymous caller, under `anonymous: refuse`. */
enum hpx_status hpx_tenant_refuse_nobody(const struct hpx_tenant_source *source,
					 const char *missing, struct hpx_tenant *tenant);
/* Under `anonymous: local`: refuses a request that is not local; else HPX_OK. */
enum hpx_status hpx_tenant_refuse_afar(const struct hpx_tenant_source *source,
				       const char *missing, struct hpx_tenant *tenant);

#endif
