/* The admin listener: /healthz, /readyz and /metrics, for machines. The listener
 * runs on the main loop, so that it answers when the gateway's loops are busy. */
#ifndef HPX_SERVICE_ADMIN_H
#define HPX_SERVICE_ADMIN_H

#include "net/listener.h"
#include "service/service.h"

struct hpx_admin;

/* Listens at the settings' address. `problem` has HPX_PROBLEM_SIZE bytes. */
enum hpx_status hpx_admin_start(struct hpx_service *service, struct hpx_admin **ret_admin,
				char *problem);
uint16_t hpx_admin_port(const struct hpx_admin *admin);
void hpx_admin_stop(struct hpx_admin *admin);

#endif
