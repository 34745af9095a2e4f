/* A run: the functions that rows are written with. A row makes operations (each an
 * intended effect, with its key and its variables bound), sends their requests in
 * every way, and asks how many effects there are. Each function keeps the run's
 * bounds: beyond them nothing is sent any more, and exchanges end as UNSENT.
 *
 * One thread. Nothing here may be called by two. */
#ifndef HPX_VERIFY_RUN_H
#define HPX_VERIFY_RUN_H

#include "base/bytes.h"
#include "http/message.h"
#include "verify/spec.h"

struct hpx_verify;

/* ---- exchanges ---- */

/* Longer bodies are cut for the log; their hash is of the whole. */
#define HPX_EXCHANGE_KEPT 8192

/* Where the client goes away. */
enum hpx_verify_cut {
	HPX_CUT_NONE,
	HPX_CUT_HEAD, /* behind the head */
	HPX_CUT_HALF_BODY,
	HPX_CUT_WHOLE_BODY,    /* at once behind the last byte */
	HPX_CUT_BEFORE_ANSWER, /* when the answer begins to arrive, unread */
};

enum hpx_verify_exchange_end {
	HPX_EXCHANGE_ANSWERED,
	HPX_EXCHANGE_CUT,     /* as the row asked for */
	HPX_EXCHANGE_REFUSED, /* no connection, or no TLS: nothing was sent */
	HPX_EXCHANGE_LOST,    /* no whole answer came: closed, reset, not HTTP */
	HPX_EXCHANGE_TIMEOUT,
	HPX_EXCHANGE_UNSENT, /* a bound of the run was reached, or the run was stopped */
};

/* One request and its answer, as they are kept for the report. Credentials are
 * never kept. */
struct hpx_verify_exchange {
	unsigned number; /* 1, 2, 3 … in the order of sending; 0: UNSENT */
	const char *row; /* that sent the request */
	enum hpx_verify_exchange_end end;
	enum hpx_verify_cut cut;
	int64_t began_ms; /* since the run began */
	int64_t took_ms;
	char problem[160]; /* for people, where there is no answer */
	/* The request. */
	struct hpx_span request_head; /* without credentials */
	struct hpx_span request_body; /* kept part */
	size_t request_body_bytes;
	char key[300]; /* as sent, for people; may be cut */
	/* The answer; zero unless ANSWERED. */
	unsigned status;
	const struct hpx_field *fields;
	size_t field_count;
	struct hpx_span body; /* whole, up to the bound of one answer, while its row runs;
				      * later its kept part */
	size_t body_bytes;
	uint8_t body_hash[HPX_SHA256_SIZE];
};

/* The value of the answer's first field of that name; ptr NULL: there is none. */
struct hpx_span hpx_verify_exchange_field(const struct hpx_verify_exchange *exchange,
					  struct hpx_span name);

/* ---- operations ---- */

#define HPX_VERIFY_KEY_SIZE 300

/* One intended effect. {{uuid}}, {{n}} and {{key}} have one value each in all
 * requests of the operation, so that a retry is the same bytes. Lives as long as
 * its row. */
struct hpx_verify_op {
	enum hpx_verify_request_name name;
	char key[HPX_VERIFY_KEY_SIZE]; /* a UUID; without quotes */
	char uuid[37];
	uint64_t n;
	struct hpx_span method;
	struct hpx_span path;
	struct hpx_span headers;       /* lines with CR LF */
	struct hpx_span other_headers; /* the same with the second tenant's; empty: none given */
	struct hpx_span body;
	uint64_t effects_before; /* counted when the operation was made, where they can be */
};

/* NULL: no memory, or the run is over. `name` must be given in the spec. */
struct hpx_verify_op *hpx_verify_op_new(struct hpx_verify *run, enum hpx_verify_request_name name);
/* The same without counting effects first: nothing is sent. */
struct hpx_verify_op *hpx_verify_op_draft(struct hpx_verify *run,
					  enum hpx_verify_request_name name);
/* A body template with the operation's variables filled in; ptr NULL: no memory. */
struct hpx_span hpx_verify_op_fill(struct hpx_verify *run, const struct hpx_verify_op *op,
				   struct hpx_span template);
/* The same for a path template: values are percent-encoded. */
struct hpx_span hpx_verify_op_path(struct hpx_verify *run, const struct hpx_verify_op *op,
				   struct hpx_span template);

/* ---- sending ---- */

/* A request of an operation, and how it differs from the operation's own; zero but
 * for `op` is the operation's own. The key is sent bare, and as a String ("…")
 * where the description says `ietf`: one way all through a run. */
struct hpx_verify_variant {
	struct hpx_verify_op *op;
	const struct hpx_span *key_values; /* raw field values, one line each; NULL: the key */
	size_t key_count;                  /* with key_values; 0: no key line at all */
	struct hpx_span method;            /* ptr NULL: the operation's */
	struct hpx_span path;
	struct hpx_span body;
	struct hpx_span content_type; /* replaces the header */
	struct hpx_span host;         /* the Host line's value; the connection is the same */
	struct hpx_span connection;   /* a name for the Connection line, besides `close` */
	struct hpx_span line;         /* "Name: value", in place of the operation's lines of that
					    * name, or besides them */
	bool without_credentials;     /* the operation's own are left out */
	bool second_tenant;
	enum hpx_verify_cut cut;
	int64_t linger_ms; /* before the cut, once the peer has the bytes */
};

#define HPX_RAW_KEY(...) ((struct hpx_span[]){ __VA_ARGS__ })

/* One request, on a connection of its own. Never NULL: see its `end`. */
const struct hpx_verify_exchange *hpx_verify_send(struct hpx_verify *run,
						  const struct hpx_verify_variant *variant);

/* All at the same moment: each on a connection of its own, made beforehand,
 * with everything but the last byte sent; then the last bytes are sent together.
 * At most the run's concurrency (fewer are sent then: `*ret_sent`). */
void hpx_verify_send_concurrently(struct hpx_verify *run,
				  const struct hpx_verify_variant *variants, size_t count,
				  const struct hpx_verify_exchange **exchanges, size_t *ret_sent);

/* A request in flight while others are sent: begin, then finish or abandon, once. */
struct hpx_inflight;
/* Returns when the whole request is sent (or cannot be). Never NULL; a request that
 * was not begun ends as UNSENT. */
struct hpx_inflight *hpx_verify_begin(struct hpx_verify *run,
				      const struct hpx_verify_variant *variant);
/* True while no byte of an answer has come. */
bool hpx_verify_is_waiting(struct hpx_inflight *inflight);
const struct hpx_verify_exchange *hpx_verify_finish(struct hpx_inflight *inflight);
/* The client goes away (reset), whatever has come. */
const struct hpx_verify_exchange *hpx_verify_abandon(struct hpx_inflight *inflight);

/* As hpx_verify_send, and again while the answer is 429, after Retry-After, within
 * the run's settle time: a rate limit says nothing about keys. */
const struct hpx_verify_exchange *hpx_verify_send_retry_429(struct hpx_verify *run,
							    const struct hpx_verify_variant *variant);
/* As hpx_verify_begin, likewise again while the answer is 429. Returns a request that still
 * waits `pause_ms` after it was sent, or NULL: it ended before, with `*ret_answer`. */
struct hpx_inflight *hpx_verify_begin_retry_429(struct hpx_verify *run,
						const struct hpx_verify_variant *variant,
						int64_t pause_ms,
						const struct hpx_verify_exchange **ret_answer);

/* Sends the request again and again until there is a definite answer: not while the
 * connection is lost, or the answer is 409 (but for one that says that the effect
 * happened), 425, 429, 502, 503 or 504. Waits as Retry-After says; ends with the
 * run's settle time. The last exchange; `*ret_sent` (may be NULL): how many. */
const struct hpx_verify_exchange *hpx_verify_settle(struct hpx_verify *run,
						    const struct hpx_verify_variant *variant,
						    unsigned *ret_sent);
/* One of several requests that are settled together; zero but for `variant`. */
struct hpx_verify_settling {
	struct hpx_verify_variant variant;
	const struct hpx_verify_exchange *last;
	unsigned sent;
	int64_t due_ms; /* when it may be sent again */
};
/* All of them by turns, within one settle time. For a server that was just
 * started: no 5xx is final before. */
void hpx_verify_settle_all(struct hpx_verify *run, struct hpx_verify_settling *all, size_t count);

/* Lets that much time pass, or less where the run ends before. Requests in flight
 * move on meanwhile. */
void hpx_verify_pause(struct hpx_verify *run, int64_t ms);

/* ---- effects ---- */

/* Whether effects can be counted, by a GET of the description. */
bool hpx_verify_counts_effects(const struct hpx_verify *run);
/* How many effects there are since the operation was made. A 404 counts as none
 * where the GET's path names the operation by a variable. HPX_UNSUPPORTED: the
 * description has no such GET; others: the answer could not be read (`problem` says
 * why, and the row is undecided). */
enum hpx_status hpx_verify_effects(struct hpx_verify *run, const struct hpx_verify_op *op,
				   uint64_t *ret_effects, char problem[HPX_VERIFY_PROBLEM_SIZE]);
/* How many the second tenant sees, where the GET's path names the operation: there
 * were none before. */
enum hpx_status hpx_verify_effects_of_second(struct hpx_verify *run,
					     const struct hpx_verify_op *op,
					     uint64_t *ret_effects,
					     char problem[HPX_VERIFY_PROBLEM_SIZE]);
/* The created resource's id in an answer; empty where there is none, or where the
 * description does not say where the id stands. */
struct hpx_span hpx_verify_resource(struct hpx_verify *run,
				    const struct hpx_verify_exchange *exchange);

/* ---- the run ---- */

const struct hpx_verify_spec *hpx_verify_spec_of(const struct hpx_verify *run);
/* Memory of the row that runs now. */
struct hpx_arena *hpx_verify_arena(struct hpx_verify *run);
/* As the description says, or as the first rows found out; AUTO while not known. */
enum hpx_dialect hpx_verify_dialect(const struct hpx_verify *run);
/* What a row found out. A dialect that the description names stays. */
void hpx_verify_set_dialect(struct hpx_verify *run, enum hpx_dialect dialect);
/* Why the run is over: a bound is reached, or a person stopped it. NULL: it is not. */
const char *hpx_verify_stop_reason(const struct hpx_verify *run);
uint64_t hpx_verify_random(struct hpx_verify *run); /* by the seed */

/* For crash rows: runs the crash command by /bin/sh and waits for its end, at most
 * the settle time. */
enum hpx_status hpx_verify_crash(struct hpx_verify *run, char problem[HPX_VERIFY_PROBLEM_SIZE]);
/* Runs the start command, which may leave the server in the background, and waits
 * until the effects' GET is answered, or else the request `get`; with neither, until
 * a connection is accepted: a GET of any other path might do something. */
enum hpx_status hpx_verify_start_again(struct hpx_verify *run,
				       char problem[HPX_VERIFY_PROBLEM_SIZE]);

/* ---- for the owner of a run: cli/verify.c ---- */

/* `spec` is borrowed. Opens nothing. The caller ignores SIGPIPE. HPX_TOO_LARGE:
 * the headers have more credentials than can be kept out of reports. */
enum hpx_status hpx_verify_new(const struct hpx_verify_spec *spec, struct hpx_verify **ret_run);
/* Ends the requests in flight, and a server that was started in the foreground. */
void hpx_verify_free(struct hpx_verify *run);
/* Reads the certificates, looks the host up and pins its address, so that a mistake
 * is told before the first row; the first request does so too. HPX_INVALID: the
 * certificates; HPX_NOT_FOUND: no such host; HPX_UNAVAILABLE: no connection is
 * accepted. */
enum hpx_status hpx_verify_open(struct hpx_verify *run, char problem[HPX_VERIFY_PROBLEM_SIZE]);
/* Once `stop_fd` (a signalfd) is readable the run is over. */
void hpx_verify_stop_on(struct hpx_verify *run, int stop_fd);
/* Called around each row: names the sender of exchanges, frees what the row held. */
void hpx_verify_row_begin(struct hpx_verify *run, const char *row);
void hpx_verify_row_end(struct hpx_verify *run);
/* Every exchange so far, in order. */
size_t hpx_verify_exchange_count(const struct hpx_verify *run);
const struct hpx_verify_exchange *hpx_verify_exchange_at(const struct hpx_verify *run,
							 size_t index);

#endif
