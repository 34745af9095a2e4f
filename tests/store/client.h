/* A client as the gateway is one: it reserves, executes once it may, stores
 * the answer, and undoes a reservation of which it does not know. Its ledger
 * counts executions per key: the judge of every fault test. */
#ifndef HPX_TESTS_STORE_CLIENT_H
#define HPX_TESTS_STORE_CLIENT_H

#include "fixture.h"
#include "store/committer.h"

#define CLIENT_KEYS 3

struct client {
	struct fixture *f;
	struct hpx_committer *committer;
	unsigned next_token;
	unsigned executed[CLIENT_KEYS];
};

/* Every key until it is completed, each with a first attempt that fails. */
void client_run(struct client *client);
/* Afterwards: every key completed, with its answer, executed exactly once. */
void client_check(struct client *client, const char *what, unsigned nth);

#endif
