/* The end of the tenant step, however the tenant was found out. */
#ifndef HPX_GATEWAY_ADMIT_H
#define HPX_GATEWAY_ADMIT_H

#include "gateway/respond.h"
#include "gateway/tenant.h"

/* What the request says about who sent it. */
struct hpx_tenant_source hpx_tenant_source_of(struct hpx_request *request);

/* request->identity.tenant is set. */
enum hpx_next hpx_tenant_found(struct hpx_request *request);
/* It is not known who is calling: refused, or, in observe mode, passed on. */
enum hpx_next hpx_tenant_missing(struct hpx_request *request, enum hpx_problem_code code,
				 const struct hpx_refusal *refusal);

#endif
