/* What was seen lately, in memory only and bounded: for observe mode (what
 * would have happened) and for hapax_tenant_changed_total (the same request
 * under another tenant: a sign of renewed credentials). Nothing here decides
 * anything; a forgotten sighting only makes a count smaller. */
#ifndef HPX_GATEWAY_SIGHTING_H
#define HPX_GATEWAY_SIGHTING_H

#include "gateway/request.h"

struct hpx_sightings *hpx_sightings_new(void);
void hpx_sightings_free(struct hpx_sightings *sightings);

/* Observe mode: an operation passes; its raw body counts as its fingerprint. */
void hpx_sighting_begin(struct hpx_request *request);
void hpx_sighting_body(struct hpx_request *request, struct hpx_span bytes);
void hpx_sighting_over(struct hpx_request *request);

/* A new operation is executed: was the same seen under another tenant? */
void hpx_sighting_tenant(struct hpx_request *request);

#endif
