/* Short ways to act on deliveries, beside those of fixture.h; for tests of the
 * outbox on PostgreSQL. */
#ifndef HPX_TESTS_STORE_CLAIMS_H
#define HPX_TESTS_STORE_CLAIMS_H

#include "application.h"

enum { CLAIM = 21,
       CLAIM_AGAIN = 22 };

/* A job whose answer is its operation's, and that answer. */
extern const struct hpx_job mail;
extern const struct hpx_answer delivered;

/* The decision's name, or the status' where it is not OK. */
const char *accept_job(struct fixture *f, unsigned key, unsigned token,
		       const struct hpx_job *job);
struct hpx_claim claim_for(unsigned room, int64_t honours_keys_ms);
struct hpx_store_op claim_op(const struct hpx_claim *claim, unsigned token);
/* The jobs are the caller's to free; claim_some: how many there were, dropped. */
struct hpx_job_entry *claim(struct fixture *f, unsigned room, int64_t honours_keys_ms,
			    unsigned token);
unsigned length_of(const struct hpx_job_entry *jobs);
unsigned claim_some(struct fixture *f, unsigned room, unsigned token);
enum hpx_status turn(struct fixture *f, int64_t number, enum hpx_job_move move,
		     unsigned token);
unsigned sweep_jobs(struct fixture *f);
unsigned count_jobs(struct fixture *f, const struct hpx_job_query *query);
/* Of the operation's newest job. */
struct hpx_delivery delivery_of(struct fixture *f, unsigned key);
const char *job_state(struct fixture *f, unsigned key);
enum hpx_status rule(struct fixture *f, unsigned key, unsigned first, int64_t number,
		     enum hpx_ruling ruling);
/* Another process on the same database. */
void other_open(struct fixture *other, const struct fixture *f);
void other_close(struct fixture *other);
/* A job of an operation that an application works on. */
void enqueue(PGconn *app, unsigned key, unsigned token, const char *name);

#endif
