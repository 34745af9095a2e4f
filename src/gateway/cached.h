/* A request and the answers in memory: looking there before the store is
 * asked, and keeping what the store said. Where there is no cache, nothing. */
#ifndef HPX_GATEWAY_CACHED_H
#define HPX_GATEWAY_CACHED_H

#include "gateway/request.h"

/* The decision, and the answer of a replay in request->reservation.stored; false: the store
 * must be asked, and the request is marked for what it will say. */
bool hpx_cached_find(struct hpx_request *request, struct hpx_decision *ret_decision);
/* Before the store is asked by request->reservation.op. */
void hpx_cached_mark(struct hpx_request *request);
/* What the store gave or took since the mark: nothing but a completed record
 * with its answer (NULL: none) is kept. `judged_ms`: the op's; 0: looked at here. */
void hpx_cached_keep(struct hpx_request *request, int64_t judged_ms,
		     const struct hpx_record *record, const struct hpx_answer *answer);

#endif
