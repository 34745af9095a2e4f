/* libhapax: once-only operations inside a C program.
 *
 * A request with an idempotency key is begun, done, and completed with its
 * answer; whoever asks again gets that answer. All of it can be written in a
 * transaction of the caller's own, so that the business rows, the answer and
 * the jobs owed to others commit together or not at all:
 *
 *	hapax_on_sqlite(db, &hapax, problem);         (or hapax_on_postgres)
 *	hapax_begin(hapax, &request, &operation, problem);
 *	if (operation.verdict == HAPAX_EXECUTE) {
 *		... BEGIN; the caller's own INSERTs ...
 *		hapax_complete(hapax, operation.lease, &answer, problem);
 *		... COMMIT ...
 *	}
 *
 * Every struct begins with its size (common.h says why): { .size = sizeof(begin) }
 * or HAPAX_INIT(&begin).
 *
 * Nothing here logs, aborts, or keeps global state. Results leave by `ret_`
 * arguments, untouched on failure. Text is UTF-8. `problem` is NULL or has
 * HAPAX_PROBLEM_SIZE bytes: a sentence for people where the result is not
 * HAPAX_OK, "" otherwise. A handle does not survive fork(): a child opens its
 * own. */
#ifndef HAPAX_HAPAX_H
#define HAPAX_HAPAX_H

#include "hapax/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As sqlite3.h and libpq-fe.h have them, so that neither is needed here. */
typedef struct sqlite3 sqlite3;
typedef struct pg_conn PGconn;

/* Bounds of texts. Since 0.2. */
#define HAPAX_KEY_MAX 255
#define HAPAX_FINGERPRINT_SIZE 32
#define HAPAX_LEASE_SIZE 98 /* 97 characters and a NUL: leases and references */
#define HAPAX_POINT_SIZE 64

/* The library's version, as "1.2.3". Since 0.2. */
HAPAX_API const char *hapax_version(void);
/* "stale". Since 0.2. */
HAPAX_API const char *hapax_result_name(enum hapax_result result);

/* ---- What a request means ---- */

/* Reads the value of an Idempotency-Key field, quoted (RFC 9651) or bare.
 * The key's bytes go to `ret_key` with a NUL behind them. On HAPAX_INVALID,
 * `*ret_reason` (may be NULL) is a sentence for the client's developer.
 * Since 0.2. */
HAPAX_API enum hapax_result hapax_key_parse(const char *value, size_t value_len,
					    char ret_key[HAPAX_KEY_MAX + 1], size_t *ret_len,
					    const char **ret_reason);

/* A request as an application got it. Since 0.2. */
struct hapax_request {
	size_t size;
	const char *method;
	const char *path;
	const char *query;        /* without '?', or NULL */
	const char *content_type; /* or NULL */
	const void *body;
	size_t body_len;
};

/* What the request means, as 32 bytes: member order and white space of a JSON
 * body, the order of a query's distinct names and a multipart boundary do not
 * matter; every amount does. Headers are not seen: an application that lets
 * X-HTTP-Method-Override or the like stand for the method gives that method.
 * Since 0.2. */
HAPAX_API enum hapax_result hapax_fingerprint(const struct hapax_request *request,
					      unsigned char ret_fingerprint[HAPAX_FINGERPRINT_SIZE]);

/* ---- Handles ---- */

/* A store that is open. Since 0.2. */
struct hapax;

/* Since 0.2. */
struct hapax_options {
	size_t size;
	int install;        /* make file and tables, or bring them up to date, where needed */
	int64_t timeout_ms; /* how long a call waits for the store; 0: 10 s; at most a day */
};

/* Opens a store with connections of its own: "sqlite:PATH", "postgres://…", or
 * "memory:", which is for tests and gone with the handle. Any number of threads
 * may use the handle at once; their commits are grouped. `options` may be NULL. The
 * file or database may serve gateways meanwhile, and hold the application's own
 * tables. Since 0.2. */
HAPAX_API enum hapax_result hapax_open(const char *url, const struct hapax_options *options,
				       struct hapax **ret_hapax, char *problem);

/* A handle on a connection that stays the caller's: what is written with it is
 * part of the transaction that is open there (of one of its own where none
 * is), and neither committed nor rolled back here. Like the connection, it is
 * for one thread at a time, and it is closed before the connection is. The
 * connection is made to commit durably (SQLite: synchronous=FULL, so this is
 * called outside a transaction).
 *
 * What does not return HAPAX_OK may leave the transaction unable to go on (on
 * PostgreSQL it always does, as any failed statement): roll back. Since 0.2. */
HAPAX_API enum hapax_result hapax_on_sqlite(sqlite3 *db, struct hapax **ret_hapax, char *problem);
/* The same on a connection of libpq. Since 0.2. */
HAPAX_API enum hapax_result hapax_on_postgres(PGconn *conn, struct hapax **ret_hapax,
					      char *problem);

/* Makes hapax's tables beside the caller's, or brings them up to date; outside
 * a transaction. Since 0.2. */
HAPAX_API enum hapax_result hapax_install_sqlite(sqlite3 *db, char *problem);
/* The same on a connection of libpq. Since 0.2. */
HAPAX_API enum hapax_result hapax_install_postgres(PGconn *conn, char *problem);

/* NULL is fine. No other call may be under way with it. A handle with
 * connections of its own first writes what HAPAX_UNCERTAIN left to be written,
 * for at most its timeout (and as long as a file that somebody holds is waited
 * for: 5 s). Since 0.2. */
HAPAX_API void hapax_close(struct hapax *hapax);

/* ---- Operations ---- */

/* What becomes of an attempt whose process died, or whose lease ran out. Since 0.2. */
enum hapax_on_lost {
	HAPAX_LOST_UNKNOWN = 0, /* nobody can tell: a person settles it */
	HAPAX_LOST_RESUME,      /* it runs again after its recovery point: every external
				  * effect has a key of its own, or is fenced */
	HAPAX_LOST_REPEAT,      /* all it does is in this database and commits with
				  * hapax_complete: it has, or nothing happened */
};

/* The operation that is asked for. Since 0.2. */
struct hapax_begin {
	size_t size;
	const char *tenant;               /* who is calling, from credentials that were checked */
	const char *scope;                /* what the key is unique within: "POST /payments" */
	const char *key;                  /* as hapax_key_parse gave it, or any other 1 to 255 bytes */
	const unsigned char *fingerprint; /* HAPAX_FINGERPRINT_SIZE bytes */
	int64_t lease_ms;                 /* how long the attempt may take; 0: 30 s; at most an hour */
	int64_t retention_ms;             /* how long its answer is kept; 0: 24 h; at most ten years */
	enum hapax_on_lost on_lost;
};

/* Since 0.2. */
enum hapax_verdict {
	HAPAX_EXECUTE,     /* this caller does it, with `lease` */
	HAPAX_REPLAY,      /* it is done: `answer` is the answer */
	HAPAX_IN_PROGRESS, /* somebody does it now: 409, Retry-After */
	HAPAX_UNKNOWN,     /* nobody knows whether it happened: 409 */
	HAPAX_MISMATCH,    /* the key was used for another request: 422 */
};

/* The answer to a request. Since 0.2. */
struct hapax_answer {
	size_t size;
	unsigned status;     /* 200 to 599 */
	const char *headers; /* lines "Name: value", each with CR LF or LF; or NULL */
	const void *body;
	size_t body_len;
	/* hapax_complete: it is kept at least so long, whatever hapax_begin or the route says;
	 * 0: as they say; at most ten years. Elsewhere it means nothing. */
	int64_t retention_ms;
};

/* What hapax_begin found; freed by hapax_operation_clear. Since 0.2. */
struct hapax_operation {
	size_t size;  /* set before hapax_begin */
	void *memory; /* the library's */
	enum hapax_verdict verdict;
	unsigned attempt;
	char reference[HAPAX_LEASE_SIZE]; /* the operation's name, for logs and providers:
					    * it is no lease */
	char lease[HAPAX_LEASE_SIZE];     /* EXECUTE; else "" */
	char point[HAPAX_POINT_SIZE];     /* EXECUTE: the recovery point to go on after, or "" */
	void *data;                       /* what was saved there, or NULL */
	size_t data_len;
	const struct hapax_answer *answer; /* REPLAY; else NULL. Belongs to the operation */
	int kept;                          /* REPLAY: 0: only the status is known any more */
};

/* Reserves the key, or tells what became of it. With a handle of hapax_open the
 * reservation is durable when this returns: only now may anything happen. Where
 * that takes longer than the timeout, or than half the lease, the result is
 * HAPAX_UNAVAILABLE, and a reservation that becomes durable all the same is given
 * back; until then, others are told HAPAX_IN_PROGRESS.
 *
 * Fingerprints are compared as they are, whoever made them. A key that the
 * gateway used under the very same tenant and scope is recognised where
 * hapax_fingerprint of the same release made the fingerprint, the gateway's route
 * ignores no member and includes no header, and the request overrode no method;
 * else it is a mismatch. Since 0.2. */
HAPAX_API enum hapax_result hapax_begin(struct hapax *hapax, const struct hapax_begin *begin,
					struct hapax_operation *ret_operation, char *problem);
/* Frees what belongs to the operation; it can be used again. NULL is fine. Since 0.2. */
HAPAX_API void hapax_operation_clear(struct hapax_operation *operation);

/* `lease`: of hapax_begin, or the Hapax-Lease header of a request that came
 * through the gateway. */

/* The answer to the request, now and for every retry. By the same lease again,
 * it changes nothing and is HAPAX_OK. Of the headers (64 KiB), those are left
 * out that belong to one delivery (Connection, Content-Length, Date, Set-Cookie
 * …) or are hapax's to say; the body has at most 16 MiB. Since 0.2. */
HAPAX_API enum hapax_result hapax_complete(struct hapax *hapax, const char *lease,
					   const struct hapax_answer *answer, char *problem);
/* Nothing happened, and a retry may run at once: the lease is given up, and stale
 * from then on. After a part was committed (advance, enqueue) that is not true
 * any more: it becomes what on_lost says. Since 0.2. */
HAPAX_API enum hapax_result hapax_fail(struct hapax *hapax, const char *lease, char *problem);
/* A phase is done: its name has 1 to 63 visible ASCII characters; `data` (at most
 * 1 MiB) is what the next one needs. The last one counts. Since 0.2. */
HAPAX_API enum hapax_result hapax_advance(struct hapax *hapax, const char *lease,
					  const char *point, const void *data, size_t data_len,
					  char *problem);
/* Where an earlier attempt got to: "" where there is no such point. `*ret_data`
 * is freed with free(). Since 0.2. */
HAPAX_API enum hapax_result hapax_recovery(struct hapax *hapax, const char *lease,
					   char ret_point[HAPAX_POINT_SIZE], void **ret_data,
					   size_t *ret_data_len, char *problem);

/* A delivery owed to an external service. The name is the job's own within its
 * operation, over all attempts: the same again is no second job. The bounds are
 * those of an answer. Since 0.2. */
struct hapax_job {
	size_t size;
	const char *name;
	const char *target; /* as the configuration names it */
	const char *method;
	const char *path;    /* from '/', with its query */
	const char *headers; /* lines, or NULL */
	const void *body;
	size_t body_len;
};
/* The job becomes part of the operation. Since 0.2. */
HAPAX_API enum hapax_result hapax_enqueue(struct hapax *hapax, const char *lease,
					  const struct hapax_job *job, char *problem);

/* The provider has seen the request, and calls it by this id (1 to 127 visible ASCII
 * characters): a webhook that names the id is about this operation. The last one counts.
 * From then on "nothing happened" is not true any more, as after hapax_advance.
 * Since 0.2. */
HAPAX_API enum hapax_result hapax_provider_id(struct hapax *hapax, const char *lease,
					      const char *provider_id, char *problem);

/* ---- Outcomes that nobody knows ---- */

/* What somebody found out about one. Since 0.2. */
enum hapax_ruling {
	HAPAX_APPLIED = 0, /* it happened */
	HAPAX_DECLINED,    /* it was executed, and the answer is no */
	HAPAX_NOT_APPLIED, /* it never happened, and may be executed again */
};

/* Since 0.2. */
struct hapax_settlement {
	size_t size;
	const char *reference; /* of hapax_operation, or the Hapax-Operation header */
	enum hapax_ruling ruling;
	/* What retries get, with Idempotent-Reconstructed: true. Status 200 to 399 of what
	 * was applied, 400 to 599 of what was declined. NULL: that it happened, or was
	 * declined, is all that is known; always NULL of what was not applied. */
	const struct hapax_answer *answer;
	const char *reason; /* for people; or NULL */
};

/* Since 0.2. */
enum hapax_settled {
	HAPAX_IGNORED = 0, /* nothing is open that it could settle: it is completed */
	HAPAX_SETTLED,
	HAPAX_KEPT,      /* as evidence until the outcome is unknown, or as the first of two
			  * HAPAX_NOT_APPLIED */
	HAPAX_TOO_EARLY, /* HAPAX_NOT_APPLIED, before settle_after or too near to the first */
};

/* Settles an outcome that is unknown, by the rules of a probe: applied and declined
 * count at once; not applied counts when it was said twice in a row, both after the
 * route's settle_after, and confirm_after apart. Nothing overrides what is completed.
 * HAPAX_STALE: there is no such operation any more. HAPAX_REFUSED: not applied cannot be
 * judged, because no gateway made the route's settle_after known in this store.
 * Since 0.2. */
HAPAX_API enum hapax_result hapax_settle(struct hapax *hapax,
					 const struct hapax_settlement *settlement,
					 enum hapax_settled *ret_settled, char *problem);

/* ---- For handles of hapax_open alone: durable at once, tied to no
 * transaction of the caller's. HAPAX_MISUSE with any other. ---- */

/* The attempt goes on for `lease_ms` (at most an hour) more from now. Since 0.2. */
HAPAX_API enum hapax_result hapax_renew(struct hapax *hapax, const char *lease, int64_t lease_ms,
					char *problem);
/* An external effect was asked for and no answer came: it becomes what on_lost
 * says, without waiting for the lease to run out. Since 0.2. */
HAPAX_API enum hapax_result hapax_lose(struct hapax *hapax, const char *lease, char *problem);
/* Finds lost leases, deletes what has expired, keeps the file in shape; in
 * small steps. Where no gateway or `hapax work` serves the store, call it every
 * few seconds. Since 0.2. */
HAPAX_API enum hapax_result hapax_tidy(struct hapax *hapax, char *problem);

#ifdef __cplusplus
}
#endif
#endif
