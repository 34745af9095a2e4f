/* A request and its slot: the right to one connection to the upstream, or a
 * place in the queue for it. Nothing is reserved and nothing has happened while
 * a request is queued. */
#ifndef HPX_GATEWAY_QUEUE_H
#define HPX_GATEWAY_QUEUE_H

#include "gateway/request.h"

/* Takes a slot at once; false where none is free. */
bool hpx_queue_take(struct hpx_request *request, enum hpx_slot_kind kind);
/* Takes a place in the queue (the wait is SLOT then); false where that is full.
 * The request goes on with `granted` when it has its slot, or with `late` when
 * `timeouts.queue` is over or the process ends. */
bool hpx_queue_enter(struct hpx_request *request, enum hpx_slot_kind kind, enum hpx_next granted,
		     enum hpx_next late);
/* Gives back the slot, if the request has one. */
void hpx_queue_leave(struct hpx_request *request);
/* Gives up the place in the queue; `result` says why. */
void hpx_queue_give_up(struct hpx_request *request, enum hpx_queued result);
/* The slot has come, and the request is told of it within this turn of the loop. */
bool hpx_queue_is_granted(const struct hpx_request *request);
/* The loop's figures for /metrics. */
void hpx_queue_measure(struct hpx_shard *shard);

#endif
