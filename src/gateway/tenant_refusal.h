/* What is said about tenants: why a request has none, with the line of
 * configuration that settles it, and what holds under given settings. Shared by
 * tenant.c and tenant_refusal.c only. */
#ifndef HPX_GATEWAY_TENANT_REFUSAL_H
#define HPX_GATEWAY_TENANT_REFUSAL_H

#include "gateway/tenant.h"

/* More headers that name a caller than any caller sends. */
#define HPX_TENANT_STABLE_MAX 16

/* What a request has that may tell who sent it. */
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
/* `bare`: it has no scheme, or nothing behind it. */
enum hpx_status hpx_tenant_refuse_scheme(const struct hpx_tenant_found *found, bool bare,
					 struct hpx_tenant *tenant);
/* Under `automatic`, whatever may name a caller and cannot be used; HPX_OK where
 * there is nothing of that. */
enum hpx_status hpx_tenant_refuse_unusable(const struct hpx_tenant_source *source,
					   const struct hpx_tenant_found *found,
					   struct hpx_tenant *tenant);
/* `missing` is what would name the caller; `other` is there instead. */
enum hpx_status hpx_tenant_refuse_other(const struct hpx_tenant_source *source,
					const char *missing, const struct hpx_field *other,
					struct hpx_tenant *tenant);
/* Nobody in particular, under `anonymous: refuse`. */
enum hpx_status hpx_tenant_refuse_nobody(const struct hpx_tenant_source *source,
					 const char *missing, struct hpx_tenant *tenant);
/* Under `anonymous: local`; HPX_OK where the request is local. */
enum hpx_status hpx_tenant_refuse_afar(const struct hpx_tenant_source *source,
				       const char *missing, struct hpx_tenant *tenant);

#endif
