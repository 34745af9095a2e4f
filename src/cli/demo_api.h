/* A small payments API that knows nothing of idempotency keys: every POST
 * /payments it receives is a payment, with a line in its ledger. */
#ifndef HPX_CLI_DEMO_API_H
#define HPX_CLI_DEMO_API_H

#include "cli/demo_ledger.h"
#include "cli/demo_server.h"

struct hpx_demo_api {
	struct hpx_demo_server server;
	struct hpx_demo_ledger ledger;
	pthread_mutex_t lock;
	pthread_cond_t released;
	bool held;
};

/*  POST /payments {"amount":2000,"currency":"EUR"}  201, Location
 *  GET  /payments/pay_1                         200
 *  GET  /payments?operation=REFERENCE           200: the payment made for it
 *  GET  /ledger                                 200, text
 */
enum hpx_status hpx_demo_api_start(struct hpx_demo_api *api, uint16_t port,
				   const char *ledger_path);
/* While held, payments are made but not answered: the middle of a payment. */
void hpx_demo_api_hold(struct hpx_demo_api *api, bool held);
void hpx_demo_api_stop(struct hpx_demo_api *api);

#endif
