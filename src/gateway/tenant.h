/* The tenant: who is calling, from the credentials of the request, never from
 * its body. Other ways to know the caller (verified tokens, an authorisation
 * subrequest) hang on this same function. */
#ifndef HPX_GATEWAY_TENANT_H
#define HPX_GATEWAY_TENANT_H

#include "gateway/settings.h"
#include "http/message.h"

/* The tenant's name: "bearer:<hash>", "basic:<hash>", "api-key:<hash>",
 * "header:<value>", "cookie:<hash>" or "anonymous"; from `arena`. A credential
 * itself is never kept. HPX_INVALID: it is not clear who is calling;
 * `*ret_reason` tells the client's developer and the operator the remedy. */
enum hpx_status hpx_tenant_of(const struct hpx_settings *settings,
			      const struct hpx_http_head *head, const char *peer,
			      struct hpx_arena *arena, struct hpx_span *ret_tenant,
			      const char **ret_reason);

/* What a key is unique within besides the tenant, always with the upstream's
 * name: method and path, the route's pattern, or nothing more. */
enum hpx_status hpx_scope_of(const struct hpx_settings *settings, const struct hpx_route *route,
			     struct hpx_span method, struct hpx_span path,
			     struct hpx_arena *arena, struct hpx_span *ret_scope);

#endif
