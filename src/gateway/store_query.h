/* Queries of the store that may have to wait for a network: an operation's jobs, and
 * when an unknown outcome is probed next. A thread of its own answers them by a
 * reader of its own, so that no event loop waits for a database. A request that is
 * executed or replayed makes none. */
#ifndef HPX_GATEWAY_STORE_QUERY_H
#define HPX_GATEWAY_STORE_QUERY_H

#include "store/store.h"

/* One query. The submitter keeps it until `done`. */
struct hpx_store_query {
	/* Any of them may be wanted. */
	bool wants_jobs;
	struct hpx_job_query query;
	bool wants_provided; /* operations that have query.provider_id */
	bool wants_keyed;    /* operations that have this key */
	struct hpx_key_query key;
	bool wants_question;
	struct hpx_operation_id id;                  /* whose next question is wanted */
	void (*done)(struct hpx_store_query *query); /* once, on the query thread */
	void *user;

	/* The result. */
	enum hpx_status status;           /* CLOSED: the thread has stopped */
	struct hpx_job_entry *jobs;       /* without headers and bodies; the receiver frees them */
	struct hpx_reference provided[2]; /* two are as good as many */
	size_t provided_count;
	struct hpx_key_matches keyed;
	struct hpx_next_question question;

	struct hpx_store_query *next; /* the query thread's own */
};

struct hpx_query_thread;

enum hpx_status hpx_query_thread_start(struct hpx_store *store,
				       struct hpx_query_thread **ret_queries);
/* From any thread. */
void hpx_query_thread_submit(struct hpx_query_thread *queries, struct hpx_store_query *query);
/* Afterwards every `done` has been called; a query that is submitted later ends with
 * HPX_CLOSED at once. NULL is nothing. */
void hpx_query_thread_stop(struct hpx_query_thread *queries);
/* When nobody submits any more. */
void hpx_query_thread_free(struct hpx_query_thread *queries);

#endif
