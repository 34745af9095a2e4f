/* Preflights to hapax's own paths: a browser asks whether a page of another
 * origin may send what it is about to. Those to any other path are the
 * upstream's to answer, and pass. */
#ifndef HPX_GATEWAY_PREFLIGHT_H
#define HPX_GATEWAY_PREFLIGHT_H

#include "gateway/request.h"

/* OPTIONS with Access-Control-Request-Method, from an origin that is listed.
 * From another it is an OPTIONS like any, which own paths do not have. */
bool hpx_preflight_is(const struct hpx_request *request);
enum hpx_next hpx_preflight_answer(struct hpx_request *request);

#endif
