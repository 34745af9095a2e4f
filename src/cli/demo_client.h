/* The demo's client: sends a payment, and sends it again with the same key
 * until it has an answer that says what became of it. */
#ifndef HPX_CLI_DEMO_CLIENT_H
#define HPX_CLI_DEMO_CLIENT_H

#include <pthread.h>

#include "cli/demo_wire.h"
#include "core/operation.h"

struct hpx_demo_order {
	const char *key;
	const char *order;
	uint64_t cents;
	bool lose_answer; /* the network loses the first try's answer */
};

struct hpx_demo_reply {
	enum hpx_status status; /* HPX_OK: an answer came; the rest is its */
	unsigned code;
	bool replayed;
	char payment[32]; /* "pay_1", or empty */
	char problem[64]; /* the problem's code, or empty */
	char operation[HPX_REFERENCE_SIZE];
	unsigned tries;
};

/* One try. */
void hpx_demo_pay(uint16_t port, const struct hpx_demo_order *order,
		  struct hpx_demo_reply *ret_reply);
/* Up to `tries`, as long as a retry with the same key is what one does: no
 * answer at all, a 5xx, or "still in progress". */
void hpx_demo_pay_until(uint16_t port, const struct hpx_demo_order *order, unsigned tries,
			struct hpx_demo_reply *ret_reply);

/* A client on a thread of its own, and many of them at once. */
struct hpx_demo_payer {
	uint16_t port;
	const struct hpx_demo_order *order;
	unsigned tries;
	struct hpx_demo_reply reply;
	pthread_t thread;
};
enum hpx_status hpx_demo_payer_start(struct hpx_demo_payer *payer);
void hpx_demo_payer_join(struct hpx_demo_payer *payer);
enum hpx_status hpx_demo_pay_at_once(struct hpx_demo_payer *payers, unsigned count);

/* GET, one try. */
enum hpx_status hpx_demo_get(uint16_t port, const char *path, struct hpx_demo_message *message);

#endif
