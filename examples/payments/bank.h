/* The outside: a payment provider that is asked over HTTP. Every order carries
 * an idempotency key of its own, made of the operation's reference and the
 * order's kind, so that asking again after a crash is asking for the same. */
#ifndef PAYMENTS_BANK_H
#define PAYMENTS_BANK_H

#include <stdint.h>

#define BANK_ID_SIZE 64

enum bank_result {
	BANK_DONE,
	BANK_DECLINED,  /* it will not, and that is final */
	BANK_NO_ANSWER, /* nobody knows: ask again, with the same key */
};

struct bank_order {
	const char *kind;      /* "screening", "authorisation", "capture" */
	const char *reference; /* the operation's */
	const char *about;     /* the provider's id of what it builds on, or "" */
	const char *amount;
	const char *currency;
};

/* `ret_id` is the provider's own id of what it did. */
enum bank_result bank_ask(uint16_t port, const struct bank_order *order,
			  char ret_id[BANK_ID_SIZE]);

#endif
