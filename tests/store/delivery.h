/* Short ways to owe, claim and end jobs, on any driver that keeps an outbox. All
 * of them are for the target "mailer". */
#ifndef HPX_TESTS_STORE_DELIVERY_H
#define HPX_TESTS_STORE_DELIVERY_H

#include "fixture.h"

/* Every driver that keeps an outbox. */
#define ON_OUTBOXES(test) ON_SQLITE(test), ON_POSTGRES(test)

#define ATTEMPTS_MAX 3

/* An op ready to be run: an async RESERVE, whose delivery is the job "answer". */
struct accept {
	struct hpx_policy policy;
	struct hpx_ask ask;
	struct hpx_store_op op;
};
void accept_init(struct accept *accept, struct fixture *f, unsigned key, unsigned token);
/* The decision's name, or the status' where it is not OK. */
const char *accept_later(struct fixture *f, unsigned key, unsigned token);
/* A job of an attempt under way. */
enum hpx_status owe(struct fixture *f, unsigned key, unsigned token, const char *name);

struct hpx_claim claim_of(unsigned room, int64_t honours_keys_ms);
/* The caller frees them. */
struct hpx_job_entry *claim(struct fixture *f, unsigned room, int64_t honours_keys_ms);
/* One job, which must be there; its claim is the delivery's token. */
struct hpx_delivery claim_one(struct fixture *f, int64_t honours_keys_ms);
/* Their names, joined by spaces; "" for none. */
const char *claim_names(struct fixture *f, unsigned room);
/* 201 "sent" with DELIVER; by the claim's token. */
enum hpx_status end_job(struct fixture *f, const struct hpx_delivery *claimed,
			enum hpx_job_move move);
/* Any turn, with its token. */
enum hpx_status turn_job(struct fixture *f, const struct hpx_job_update *turn,
			 const struct hpx_token *token);
/* A person's: by number alone. */
enum hpx_status person_moves(struct fixture *f, int64_t number, enum hpx_job_move move,
			     bool force);
unsigned sweep_jobs(struct fixture *f);

/* The state's name; "none" where there is no such job, "unreadable". */
const char *job_state(struct fixture *f, int64_t number);
struct hpx_delivery job_of(struct fixture *f, int64_t number);
/* "name=state" of an operation's jobs, oldest first, joined by spaces. */
const char *jobs_of(struct fixture *f, unsigned key);

/* What came of it: the reconcile move's name, or the status'. `about_ms` is from
 * now. settle_after is 1 s, confirm_after 1 s, two tries. */
#define SETTLE_MS 1000
const char *rule(struct fixture *f, unsigned key, unsigned first, int64_t number,
		 enum hpx_ruling ruling, bool asked);

#endif
