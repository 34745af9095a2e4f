/* hapax's own paths, under /.hapax/, never forwarded. */
#ifndef HPX_GATEWAY_OWN_H
#define HPX_GATEWAY_OWN_H

#include "gateway/request.h"

bool hpx_own_is(struct hpx_span path);
/* 202 with the operation's place: `concurrent: accepted`. */
void hpx_own_accepted(struct hpx_request *request);

/* The published idempotency policy of every route, as JSON (own_policy.c). */
enum hpx_status hpx_own_policy_print(const struct hpx_settings *settings, struct hpx_buffer *out);

#endif
