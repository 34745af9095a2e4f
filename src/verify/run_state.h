/* The insides of a run: responses, requests in flight, shell commands, and the
 * struct itself. For the files that implement run.h, and their tests. */
#ifndef HPX_VERIFY_RUN_STATE_H
#define HPX_VERIFY_RUN_STATE_H

#include <sys/types.h>

#include "verify/verify_connection.h"
#include "verify/verify_request.h"

/* ---- a response while it is read (inflight.c) ---- */

/* A longer body is counted and hashed, and only its first part is kept. */
#define HPX_RESPONSE_BODY_MAX ((size_t)4 << 20)
/* The same for all bodies that arrive at the same time. */
#define HPX_RESPONSE_BODIES_MAX ((size_t)64 << 20)

/* Shared by all responses of a run. */
struct hpx_response_shared {
	size_t held_bytes;          /* of the bodies that are arriving */
	struct hpx_secrets secrets; /* hidden in every response */
};

struct hpx_response {
	struct hpx_span method; /* of the request */
	struct hpx_http_reader reader;
	struct hpx_arena arena; /* of the head's fields */
	struct hpx_buffer head_bytes;
	struct hpx_http_head head;
	bool has_head; /* of the final response: 1xx are dropped */
	struct hpx_buffer body;
	size_t body_bytes;
	struct hpx_response_shared *shared;
	struct hpx_sha256 hash;
	const char *problem; /* after HPX_HTTP_BAD */
};

/* `method` is borrowed. */
void hpx_response_init(struct hpx_response *response, struct hpx_span method,
		       struct hpx_response_shared *shared);
void hpx_response_done(struct hpx_response *response);
/* HPX_HTTP_DONE: the response is complete. */
enum hpx_http_progress hpx_response_feed(struct hpx_response *response, struct hpx_span bytes);
/* After HPX_HTTP_DONE: into the exchange, copied into `arena`, without secrets. The
 * hash is that of the bytes as they came. */
enum hpx_status hpx_response_move(struct hpx_response *response, struct hpx_arena *arena,
				  struct hpx_verify_exchange *exchange);

/* ---- a request in flight (inflight.c) ---- */

enum hpx_inflight_state {
	HPX_INFLIGHT_CONNECTING,
	HPX_INFLIGHT_SENDING,
	HPX_INFLIGHT_HELD,     /* all but the last byte is sent */
	HPX_INFLIGHT_FLUSHING, /* before a cut: until the peer has the bytes */
	HPX_INFLIGHT_AWAITING, /* before a cut: until the response begins */
	HPX_INFLIGHT_READING,
	HPX_INFLIGHT_DONE,
};

/* Moves by small steps that never block, so that one thread serves a hundred. */
struct hpx_inflight {
	struct hpx_verify *run;
	struct hpx_inflight *next; /* in the run's list */
	enum hpx_inflight_state state;
	bool hold; /* keep the last byte back */
	struct hpx_verify_request_bytes request;
	size_t send_bytes; /* how many bytes of the request are to be sent */
	size_t sent;
	struct hpx_verify_conn conn;
	struct hpx_response response;
	struct hpx_verify_exchange *exchange;
	struct hpx_arena *arena; /* for the response */
	int64_t deadline_ms;
	int64_t timeout_ms;
	int64_t began_ms;
	int64_t linger_ms;  /* between the last byte's arrival and the cut */
	int64_t flushed_ms; /* when the last byte arrived; 0: not yet */
};

/* Begins to connect. The request, the response (initialised) and the exchange are
 * set; the request's bytes are borrowed. */
void hpx_inflight_start(struct hpx_inflight *inflight, const struct hpx_verify_host *host);
/* As far as possible without waiting; checks the deadline. */
void hpx_inflight_step(struct hpx_inflight *inflight);
/* Sends the last byte, with a new deadline for the response. */
void hpx_inflight_release(struct hpx_inflight *inflight);
/* The client goes away now. */
void hpx_inflight_cut(struct hpx_inflight *inflight);
/* Closes, and frees what is not the exchange's. */
void hpx_inflight_done(struct hpx_inflight *inflight);

/* Moves all requests in flight until `is_done` returns true, or for that long
 * (below 0: no limit; each request has its own). */
void hpx_verify_poll(struct hpx_verify *run, bool (*is_done)(void *user), void *user,
		     int64_t timeout_ms);

/* ---- a shell command (crash.c) ---- */

/* A command of the user's, by /bin/sh, in a session of its own. Its output goes to
 * a file without a name, of which a bounded part is kept to be shown. */
struct hpx_shell {
	pid_t pid;       /* 0: not running */
	int output;      /* -1: none */
	int wait_status; /* after its end, as waitpid gives it */
};

void hpx_shell_init(struct hpx_shell *command);
enum hpx_status hpx_shell_start(struct hpx_shell *command, struct hpx_span text);
/* Whether it still runs; takes note of its end. */
bool hpx_shell_runs(struct hpx_shell *command);
/* Whether it ended by itself, with exit code 0. */
bool hpx_shell_is_good(const struct hpx_shell *command);
/* "exit code 3: …" or "ended by signal 9: …" with the last lines of its output. */
void hpx_shell_explain(const struct hpx_shell *command, char *out, size_t size);
/* Keeps the file of its output within bounds, while the command, or a process that
 * it left behind, goes on printing. */
void hpx_shell_trim(struct hpx_shell *command);
/* Ends the command and its process group where it still runs (SIGTERM first), and
 * forgets it. Processes that an ended command left in the background stay. */
void hpx_shell_end(struct hpx_shell *command);

/* ---- the run ---- */

/* What one row may hold: operations, requests, whole answers. */
#define HPX_RUN_ROW_BYTES_MAX ((size_t)256 << 20)
/* What the log may hold. Bodies are kept only up to the smaller bound, so that
 * heads are kept long after. */
#define HPX_RUN_LOG_BYTES_MAX ((size_t)96 << 20)
#define HPX_RUN_LOG_BODIES_MAX ((size_t)64 << 20)

struct hpx_verify {
	const struct hpx_verify_spec *spec;
	struct hpx_arena row_arena;
	const char *row;
	enum hpx_dialect dialect;
	/* Bounds. */
	int64_t began_ms;
	uint64_t requests; /* sent so far */
	bool log_full;
	char over_requests[96]; /* the reason that is given then */
	char over_time[96];
	int stop_fd; /* readable: a person stops the run; -1: none */
	bool stopped;
	/* Random numbers, and the values of {{n}}. */
	uint64_t random;
	uint64_t n_first;
	uint64_t n;
	/* The host, and the requests in flight to it. */
	struct hpx_verify_host host;
	bool host_ready;
	struct hpx_inflight *live;       /* a list */
	struct hpx_inflight not_started; /* stands for a request that was not begun; never in the list */
	size_t live_count;
	struct hpx_response_shared shared;
	/* The log. */
	struct hpx_arena log;
	struct hpx_verify_exchange **exchanges;
	size_t exchange_count;
	size_t exchange_cap;
	size_t kept;                       /* so many exchanges have moved into the log's arena */
	struct hpx_verify_exchange unsent; /* stands for a request that was not sent */
	/* The server under test, where the run starts it. */
	struct hpx_shell server;
};

/* The next exchange, counted; NULL: no memory, and the run is over. */
struct hpx_verify_exchange *hpx_verify_log_add(struct hpx_verify *run);
/* The exchange of a request that was not sent, and why. */
const struct hpx_verify_exchange *hpx_verify_log_unsent(struct hpx_verify *run, const char *why);

/* ---- effects (effects.c) ---- */

/* `effects_before` of an operation where effects could not be counted. */
#define HPX_EFFECTS_UNKNOWN UINT64_MAX

void hpx_effect_count_before(struct hpx_verify *run, struct hpx_verify_op *op);
/* How many effects an answer's body tells: a number, or the length of a list.
 * HPX_INVALID: `problem` says why. */
enum hpx_status hpx_effect_read(struct hpx_span body, struct hpx_span pointer,
				uint64_t *ret_count, char problem[HPX_VERIFY_PROBLEM_SIZE]);

#endif
