/* The flaky network: a hop that passes one HTTP exchange on to another port
 * and, where the request says so, loses the answer behind the effect:
 *
 *   X-Demo-Network: lose-answer
 *
 * The header is the network's own and travels no further than one hop. */
#ifndef HPX_CLI_DEMO_NETWORK_H
#define HPX_CLI_DEMO_NETWORK_H

#include "cli/demo_server.h"

#define HPX_DEMO_NETWORK_FIELD "X-Demo-Network"
#define HPX_DEMO_LOSE_ANSWER "lose-answer"

struct hpx_demo_network {
	struct hpx_demo_server server;
	uint16_t to_port;
};

enum hpx_status hpx_demo_network_start(struct hpx_demo_network *network, uint16_t port,
				       uint16_t to_port);
/* Breaks what is under way, as a proxy that dies would. */
void hpx_demo_network_cut(struct hpx_demo_network *network);
void hpx_demo_network_stop(struct hpx_demo_network *network);

#endif
