/* One run: connections in a closed loop, each sending its next request when the
 * last one was answered, through the phases below. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include <sys/resource.h>

#include <openssl/types.h>

#include "histogram.h"
#include "plan.h"
#include "request.h"
#include "response.h"

/* PRIME  (REPLAY) every key is executed once; (IDLE) every connection is used once
 * WARM   as measured, not counted
 * MEASURE
 * OVER   nothing more is sent; what is under way is waited for a little */
enum phase { PHASE_PRIME,
	     PHASE_WARM,
	     PHASE_MEASURE,
	     PHASE_OVER };

struct client {
	int fd;
	SSL *ssl; /* NULL: without TLS */
	unsigned caller;
	int64_t due_us; /* when the pause before the next request is over; 0: none */
	struct request request;
	struct response response;
	size_t sent;
	int64_t sent_us;
	bool waiting;       /* for an answer */
	bool blocked;       /* the socket takes nothing more now */
	bool retry;         /* MIXED: this is a key that was answered */
	unsigned turn;      /* MIXED: where in the ten */
	uint64_t recent[7]; /* MIXED: the last new numbers */
};

struct run {
	const struct plan *plan;
	struct client *clients;
	SSL_CTX *tls; /* NULL: without TLS */
	int epoll;
	enum phase phase;
	uint64_t next;          /* the next number nobody has had */
	int64_t pauses_seen_us; /* when the connections that pause were last looked at */
	unsigned primed;
	unsigned primes_sent; /* IDLE: also the next connection to be used */
	int64_t began_us;
	int64_t ended_us;
	struct rusage usage_began;
	struct rusage usage_ended;
	struct histogram all;
	struct histogram again;   /* MIXED: the retries among them */
	struct histogram *slices; /* by the time of the answer; NULL: not wanted */
	size_t slice_count;
	uint64_t statuses[600];
	uint64_t broken; /* connections that failed, or answers that were none */
	uint64_t connected_anew;
	uint64_t answered; /* with 2xx, in all phases */
};

/* False, with a sentence on stderr, where it could not be begun. */
bool run_open(struct run *run, const struct plan *plan);
/* Goes through the phases; says "begin" and "end" on stdout as measuring does. SIGTERM
 * ends the measuring. */
void run_go(struct run *run);
void run_close(struct run *run);

/* Of one connection. */
/* NULL: OpenSSL cannot, or `ca` is no file of certificates. */
SSL_CTX *client_tls(const char *ca);
void client_close(struct client *client);
bool client_connect(struct run *run, struct client *client);
void client_send(struct run *run, struct client *client);
void client_read(struct run *run, struct client *client);
void client_write(struct run *run, struct client *client);

int64_t run_now_us(void);
/* An answer came: it is counted, and the phase may be over. */
void run_answered(struct run *run, struct client *client, int64_t now_us);

#endif
