/* A request and its slot: the right to one connection to the upstream, or a
 * place in the queue for it. Nothing is reserved and nothing has happened while
 * a request is queued. */
#ifndef HPX_GATEWAY_QUEUE_H
#define HPX_GATEWAY_QUEUE_H

#include "gateway/request.h"

/* Takes a slot at once; false where none is free. */
bool hpx_queue_take(struct hpx_request *request, enum hpx_slot_kind kind);
/* Takes a place in the queue; false where that is full. The request goes on
 * with `granted` when it has its slot, or with what `too_late` says when
 * `timeouts.queue` is over or the process ends. */
bool hpx_queue_enter(struct hpx_request *request, enum hpx_slot_kind kind, enum hpx_next granted,
		     enum hpx_next (*too_late)(struct hpx_request *request));
/* Gives back the slot or the place; nothing where the request has neither. */
void hpx_queue_leave(struct hpx_request *request);
void hpx_queue_tick(struct hpx_request *request, uint64_t now_ms);
/* The process ends: the request is answered without its turn. */
void hpx_queue_abandon(struct hpx_request *request);
/* The loop's figures for /metrics. */
void hpx_queue_measure(struct hpx_shard *shard);

#endif
