/* Looks at the store that may have to wait for a network: jobs, and when an
 * unknown is asked about next. They are made on a thread of their own with a
 * reader of its own, so that no event loop waits for a database. Not on the
 * way of a request that goes through; only of one that asks. */
#ifndef HPX_GATEWAY_LOOKER_H
#define HPX_GATEWAY_LOOKER_H

#include "store/store.h"

/* One look. The submitter keeps it until `done`. */
struct hpx_look {
	/* Either may be wanted, or both. */
	bool wants_jobs;
	struct hpx_job_query query;
	bool wants_question;
	struct hpx_operation_id id;          /* the question's */
	void (*done)(struct hpx_look *look); /* once, on the looker's thread */
	void *user;

	/* The result. */
	enum hpx_status status;     /* CLOSED: the looker has stopped */
	struct hpx_job_entry *jobs; /* without headers and bodies; the receiver frees them */
	struct hpx_next_question question;

	struct hpx_look *next; /* the looker's own */
};

struct hpx_looker;

enum hpx_status hpx_looker_start(struct hpx_store *store, struct hpx_looker **ret_looker);
/* From any thread. */
void hpx_looker_submit(struct hpx_looker *looker, struct hpx_look *look);
/* Afterwards every `done` has been called; what is submitted later ends with
 * HPX_CLOSED at once. NULL is nothing. */
void hpx_looker_stop(struct hpx_looker *looker);
/* When nobody submits any more. */
void hpx_looker_free(struct hpx_looker *looker);

#endif
