/* Verified callers (`tenant: {from: jwt}`): the tenant is the issuer and a claim of a signed
 * token, so that a renewed token is the same caller. The keys are read by a thread of their
 * own, at the start, from time to time, and where a token names one that is not known; no
 * request waits for that. A token that was verified is remembered by its hash until it
 * expires or the keys change. */
#ifndef HPX_GATEWAY_VERIFIED_CALLER_H
#define HPX_GATEWAY_VERIFIED_CALLER_H

#include "base/metric.h"
#include "egress/egress.h"
#include "settings/settings.h"

struct hpx_verified_callers;

/* Reads the keys, and waits for that at most as long as reading may take: a process that is
 * ready knows them, if anybody does. `egress` is needed for keys with a URL. Takes a
 * reference of the settings. */
enum hpx_status hpx_verified_callers_new(struct hpx_settings *settings, struct hpx_egress *egress,
					 struct hpx_verified_callers **ret_callers);
/* After the engine has stopped. NULL is nothing, as for the next two. */
void hpx_verified_callers_free(struct hpx_verified_callers *callers);
/* SIGHUP: the keys are read again. */
void hpx_verified_callers_refresh(struct hpx_verified_callers *callers);
void hpx_verified_callers_metrics(struct hpx_verified_callers *callers,
				  struct hpx_metric_page *page);

#endif
