/* Keys and tenants that passed lately, in memory only and bounded: for observe mode
 * (what would have happened) and for hapax_tenant_changed_total (the same request
 * under another tenant: a sign of renewed credentials). Nothing here decides
 * anything; a key that is forgotten only makes a count smaller. */
#ifndef HPX_GATEWAY_OBSERVE_H
#define HPX_GATEWAY_OBSERVE_H

#include "gateway/request.h"

struct hpx_observed_keys *hpx_observed_keys_new(void);
void hpx_observed_keys_free(struct hpx_observed_keys *observed_keys);

/* Observe mode: an operation passes; its raw body counts as its fingerprint. */
void hpx_observe_begin(struct hpx_request *request);
void hpx_observe_body(struct hpx_request *request, struct hpx_span bytes);
void hpx_observe_end(struct hpx_request *request);

/* A new operation is executed: was the same seen under another tenant? */
void hpx_observe_tenant_change(struct hpx_request *request);

#endif
