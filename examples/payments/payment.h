/* A payment, in four phases. This is the part to copy. */
#ifndef PAYMENTS_PAYMENT_H
#define PAYMENTS_PAYMENT_H

#include <stdint.h>

#include <hapax/hapax.h>

#include "bank.h"
#include "db.h"
#include "http.h"

/* What was asked for. */
struct payment_order {
	const char *merchant; /* who asks, from the credentials */
	char customer[33];
	char amount[16]; /* digits: whole cents */
	char currency[4];
};

/* The right to do it, and how far an earlier attempt got. */
struct payment_attempt {
	char reference[HAPAX_LEASE_SIZE];
	char lease[HAPAX_LEASE_SIZE];
	char point[HAPAX_POINT_SIZE]; /* the last phase that is committed, or "" */
	char proof[BANK_ID_SIZE];     /* the provider's id that was saved with it */
};

enum payment_end {
	PAYMENT_ANSWERED,  /* committed, with the answer, for every retry */
	PAYMENT_OVERTAKEN, /* the lease is lost: somebody else goes on with it */
	PAYMENT_CUT_SHORT, /* a retry goes on after the last committed phase */
};

/* Goes on after the attempt's point; the answer is set with PAYMENT_ANSWERED. */
enum payment_end payment_run(struct db *db, uint16_t bank_port, const struct payment_order *order,
			     struct payment_attempt *attempt, struct http_answer *ret_answer);

/* The merchant's own payment of this id; false: the database cannot be asked. */
bool payment_show(struct db *db, const char *merchant, const char *id,
		  struct http_answer *ret_answer);

#endif
