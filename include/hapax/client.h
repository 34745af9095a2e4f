/* libhapax-client: calls to an HTTP API that change something, and that are
 * sent again until their outcome is known, always with the same key.
 *
 *	struct hapax_client_options options = { .size = sizeof(options), … };
 *	hapax_client_open(&options, &client, problem);
 *	hapax_call_new(client, "POST", "https://api.example/payments", &call, problem);
 *	hapax_call_header(call, "Authorization", "Bearer …", problem);
 *	hapax_call_body(call, body, body_len, problem);
 *	if (hapax_call_send(call, problem) == HAPAX_OK &&
 *	    hapax_call_outcome(call)->kind == HAPAX_DONE) {
 *		… hapax_call_outcome(call)->status …
 *		hapax_call_confirm(call, problem);
 *	}
 *	hapax_call_free(call);
 *
 * With a journal, the request and its key are on the disk before the first byte
 * leaves: a program that dies goes on with hapax_call_resume. Credentials are
 * never written; a resumed call is given them again, and they must be the same,
 * because an API takes another caller's key for another one.
 *
 * Nothing here logs, aborts, or keeps global state (but libcurl's own). Results
 * leave by `ret_` arguments, untouched on failure. `problem` is NULL or has
 * HAPAX_PROBLEM_SIZE bytes: a sentence for people where the result is not
 * HAPAX_OK, "" otherwise; it holds no credential, key or query. libhapax is not
 * needed for this.
 *
 * Every struct begins with its size (common.h says why). */
#ifndef HAPAX_CLIENT_H
#define HAPAX_CLIENT_H

#include "hapax/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A client, and one call of its. Since 0.2. */
struct hapax_client;
struct hapax_call;

/* The library's version, as "1.2.3". Since 0.2. */
HAPAX_API const char *hapax_client_version(void);

/* What is told of each attempt, as it happens. Since 0.2. */
enum hapax_attempt_event {
	HAPAX_ATTEMPT_BEGINS, /* the journal has it; nothing was sent */
	HAPAX_ATTEMPT_ENDED,
	HAPAX_ATTEMPT_WAITS, /* about every second until the next one begins */
};

/* Since 0.2. */
enum hapax_attempt_end {
	HAPAX_ATTEMPT_UNSENT, /* proved: no byte of the request left */
	HAPAX_ATTEMPT_LOST,   /* bytes left, and no whole answer came */
	HAPAX_ATTEMPT_ANSWERED,
};

/* Since 0.2. */
struct hapax_attempt {
	size_t size;
	enum hapax_attempt_event event;
	unsigned number; /* 1, 2, 3 … over all runs */
	/* Of one that has ended. */
	enum hapax_attempt_end end;
	unsigned status; /* of an answer */
	int64_t took_ms;
	const char *trouble; /* for people, where there is no answer; "" */
	int definite;        /* its answer settles the call */
	int doubt;           /* it, or one before it, may have happened */
	int64_t wait_ms;     /* until the next attempt; -1: there is none */
};

/* Zero or NULL stands for what is said behind it. Since 0.2. */
struct hapax_client_options {
	size_t size;
	const char *journal;        /* the file, made where it is absent; NULL: none */
	int64_t budget_ms;          /* no attempt begins later than this; 5 min */
	unsigned attempts_max;      /* of one run; as many as the budget allows */
	int64_t backoff_ms;         /* the most that the first wait can be; 200 ms */
	int64_t backoff_max_ms;     /* the most that any can be (a Retry-After may be longer);
				      * 30 s */
	int64_t connect_timeout_ms; /* look-up, connection and TLS of one attempt; 10 s */
	int64_t timeout_ms;         /* of one attempt; 30 s */
	int64_t remembered_ms;      /* how long the API remembers a key. One that is in doubt is
				      * not sent again later than this after the first attempt
				      * that may have happened, nor where the clock was set back
				      * since: the API would take it for a new one. A resumed
				      * call's, what the journal has; a new one's, 24 h */
	size_t answer_bytes_max;    /* of an answer's body that is kept; 16 MiB */
	const char *key_header;     /* Idempotency-Key */
	int key_bare;               /* without quotes, as Stripe wants it */
	const char *ca_file;        /* PEM; the system's */
	int confirm;                /* the entry of a call that is done stays open until
				      * hapax_call_confirm */
	/* On the thread of hapax_call_send; makes no call of this library but
	 * hapax_client_interrupt. */
	void (*observe)(void *user, const struct hapax_attempt *attempt);
	void *user;
};

/* HAPAX_UNAVAILABLE: the journal cannot be used, or libcurl has not what is
 * needed. `options` may be NULL: no journal. Any number of threads may use the
 * client at once, each with calls of its own; not across fork(). Since 0.2. */
HAPAX_API enum hapax_result hapax_client_open(const struct hapax_client_options *options,
					      struct hapax_client **ret_client, char *problem);
/* NULL is fine. Its calls are freed before. Since 0.2. */
HAPAX_API void hapax_client_close(struct hapax_client *client);
/* Ends what its calls are doing, and begins nothing any more; entries of the
 * journal stay open. From any thread, and from a signal handler. Since 0.2. */
HAPAX_API void hapax_client_interrupt(struct hapax_client *client);

/* ---- Calls ---- */

/* A POST, PUT, PATCH or DELETE to an http or https URL without a user name or
 * fragment. Its key is a new UUID (version 7) unless hapax_call_key says another.
 * Since 0.2. */
HAPAX_API enum hapax_result hapax_call_new(struct hapax_client *client, const char *method,
					   const char *url, struct hapax_call **ret_call,
					   char *problem);
/* NULL is fine. Since 0.2. */
HAPAX_API void hapax_call_free(struct hapax_call *call);

/* One more header field; what belongs to the connection, and the key's, cannot
 * be given. A name that speaks of a credential (with "auth", "cookie", "token",
 * "secret", "password", "session", "signature" or "credential" in it, or "key" at
 * its end) makes its value one: of it the journal keeps only a salted hash. To a
 * call that is resumed, just the credentials are given again; HAPAX_REFUSED:
 * another one than it was sent with. Since 0.2. */
HAPAX_API enum hapax_result hapax_call_header(struct hapax_call *call, const char *name,
					      const char *value, char *problem);
/* The same with every line "Name: value" of a file, each of them a credential.
 * The journal keeps the file's absolute name, so that hapax_call_resume reads it
 * again by itself. Since 0.2. */
HAPAX_API enum hapax_result hapax_call_header_file(struct hapax_call *call, const char *path,
						   char *problem);
/* Copied; at most 64 MiB. Since 0.2. */
HAPAX_API enum hapax_result hapax_call_body(struct hapax_call *call, const void *body,
					    size_t body_len, char *problem);
/* A key of the caller's own: 1 to 255 printable ASCII characters, without space,
 * comma and quote where keys are bare. Since 0.2. */
HAPAX_API enum hapax_result hapax_call_key(struct hapax_call *call, const char *key,
					   char *problem);

/* Since 0.2. */
enum hapax_outcome_kind {
	HAPAX_DONE,    /* definite: the answer is the call's, whatever its status */
	HAPAX_STOPPED, /* an answer that is not definite, and that asks for no retry */
	HAPAX_GAVE_UP, /* the budget, the attempts or the key's time are used up */
	HAPAX_INTERRUPTED,
};

/* As of the last hapax_call_send; pointers live as long as the call. Since 0.2. */
struct hapax_outcome {
	size_t size;
	enum hapax_outcome_kind kind;
	int doubt;         /* not DONE: it may have happened; 0: nothing has */
	unsigned attempts; /* over all runs */
	int64_t id;        /* of its entry in the journal; 0: there is none */
	const char *key;
	/* The last whole answer; 0 where none came. */
	unsigned status;
	const char *headers; /* lines "Name: value", each with CR LF */
	const void *body;
	size_t body_len;
	int body_kept;      /* 0: it was larger than answer_bytes_max */
	const char *reason; /* not DONE: why it ends here, for people */
};

/* Writes the call down, sends it, and sends it again until its outcome is
 * definite or there is no more to be done; blocks meanwhile. Once for each call.
 * HAPAX_OK: the outcome says what is known. HAPAX_UNAVAILABLE: the journal
 * cannot be written, and nothing (more) was sent; the outcome is valid if
 * anything was. HAPAX_UNCERTAIN: it is done, but the journal could not be told;
 * it would be sent once more by a resume, with the same key. HAPAX_REFUSED: a
 * credential of a resumed call is missing. Since 0.2. */
HAPAX_API enum hapax_result hapax_call_send(struct hapax_call *call, char *problem);
/* With the option `confirm`, once the program has used or kept the answer: the
 * journal is told that the call is done. One that dies before gets the answer
 * again by a resume, from the API, under the same key. HAPAX_UNCERTAIN: as of
 * hapax_call_send. Without the option, nothing. Since 0.2. */
HAPAX_API enum hapax_result hapax_call_confirm(struct hapax_call *call, char *problem);
/* NULL where the call is. Since 0.2. */
HAPAX_API const struct hapax_outcome *hapax_call_outcome(const struct hapax_call *call);
/* The first field of that name in the last answer; NULL where there is none.
 * Since 0.2. */
HAPAX_API const char *hapax_call_answer_header(const struct hapax_call *call, const char *name);

/* ---- The journal ---- */

/* Since 0.2. */
enum hapax_entry_state {
	HAPAX_ENTRY_OPEN, /* being sent, or left by a process that died */
	HAPAX_ENTRY_DONE, /* kept for 30 days, without headers, body and query */
	HAPAX_ENTRY_STOPPED,
	HAPAX_ENTRY_GAVE_UP,
};

/* A call in the journal. Since 0.2. */
struct hapax_entry {
	size_t size;
	struct hapax_entry *next; /* NULL: it is the last */
	int64_t id;
	enum hapax_entry_state state;
	int doubt;
	int busy; /* some process is at it just now */
	unsigned attempts;
	unsigned status;    /* of the last whole answer; 0: none */
	int64_t created_ms; /* milliseconds since 1970 */
	int64_t changed_ms;
	const char *method;
	const char *url;
	const char *key;
};

/* Those that are not done, the oldest first, and behind them, with `all`, those
 * that are; at most 10,000. `*ret_entries` is the first, NULL where there is none,
 * and `next` leads to the others. Freed by hapax_entries_free. Since 0.2. */
HAPAX_API enum hapax_result hapax_client_entries(struct hapax_client *client, int all,
						 struct hapax_entry **ret_entries,
						 size_t *ret_count, char *problem);
/* The first, with all others. NULL is fine. Since 0.2. */
HAPAX_API void hapax_entries_free(struct hapax_entry *entries);

/* A call as it was written down, to be sent once more with the same key.
 * HAPAX_BUSY: another process is at it. HAPAX_REFUSED: it is done, or a header
 * file has changed. HAPAX_INVALID: there is no such entry. Since 0.2. */
HAPAX_API enum hapax_result hapax_call_resume(struct hapax_client *client, int64_t id,
					      struct hapax_call **ret_call, char *problem);
/* Removes an entry, whatever became of it. Since 0.2. */
HAPAX_API enum hapax_result hapax_client_forget(struct hapax_client *client, int64_t id,
						char *problem);

#ifdef __cplusplus
}
#endif
#endif
