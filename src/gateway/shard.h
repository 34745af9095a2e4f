/* One event loop of the gateway, from its making to its end. */
#ifndef HPX_GATEWAY_SHARD_H
#define HPX_GATEWAY_SHARD_H

#include "gateway/gateway.h"

/* Everything but the thread; takes `listen_fd` over, on failure too. */
enum hpx_status hpx_shard_init(struct hpx_shard *shard, struct hpx_gateway *gateway,
			       int listen_fd);
/* Runs the loop on a thread of its own. */
enum hpx_status hpx_shard_start(struct hpx_shard *shard);
/* From any thread: the loop takes these settings (a reference goes with it). */
void hpx_shard_reload(struct hpx_shard *shard, struct hpx_settings *settings);
/* From any thread: stops accepting, and ends when nothing is under way or the
 * time is over. */
void hpx_shard_drain(struct hpx_shard *shard);
void hpx_shard_join(struct hpx_shard *shard);
void hpx_shard_done(struct hpx_shard *shard);

#endif
