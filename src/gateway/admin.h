/* The admin listener: /healthz, /readyz and /metrics, for machines. It runs on
 * its own event loop, so that it answers when the gateway's loops are busy. */
#ifndef HPX_GATEWAY_ADMIN_H
#define HPX_GATEWAY_ADMIN_H

#include "gateway/gateway.h"

struct hpx_admin;

/* On `loop`, which the caller runs. `problem` has HPX_PROBLEM_SIZE bytes. */
enum hpx_status hpx_admin_start(struct hpx_loop *loop, struct hpx_gateway *gateway,
				struct hpx_admin **ret_admin, char *problem);
uint16_t hpx_admin_port(const struct hpx_admin *admin);
void hpx_admin_stop(struct hpx_admin *admin);

#endif
