/* A run: the verbs that rows are written with. A row makes intents (an intended
 * effect, with its key and its variables bound), sends them in every way, and
 * asks how many effects there are. Each verb keeps the run's bounds: beyond
 * them nothing is sent any more, and exchanges end as UNSENT. */
#ifndef HPX_VERIFY_RUN_H
#define HPX_VERIFY_RUN_H

#include "verify/exchange.h"
#include "verify/spec.h"

struct hpx_verify;

/* ---- intents ---- */

#define HPX_VERIFY_KEY_SIZE 300

/* One intended effect. {{uuid}}, {{n}} and {{key}} have one value each in all
 * that it sends, so that a retry is the same bytes. Lives as long as its row. */
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
	uint64_t effects_before; /* counted when it was made, where they can be */
};

/* NULL: no memory, or the run is over. `name` must be given in the spec. */
struct hpx_verify_op *hpx_verify_op_new(struct hpx_verify *run, enum hpx_verify_request_name name);

/* The same without counting effects first: nothing is sent. For --dry-run. */
struct hpx_verify_op *hpx_verify_op_draft(struct hpx_verify *run, enum hpx_verify_request_name name);
/* A body template (other_body) with the intent's variables filled in; ptr NULL:
 * no memory. */
struct hpx_span hpx_verify_op_fill(struct hpx_verify *run, const struct hpx_verify_op *op,
				   struct hpx_span template);

/* ---- sending ---- */

/* How this sending differs from the intent; zero is the intent itself. The key
 * goes out bare, and as a String ("…") where the description says `ietf`: one
 * way all through a run. */
struct hpx_request_variant {
	struct hpx_verify_op *op;
	const struct hpx_span *key_values; /* raw field values, one line each; NULL: the key */
	size_t key_count;                  /* with key_values; 0: no key line at all */
	struct hpx_span method;            /* ptr NULL: the intent's */
	struct hpx_span path;
	struct hpx_span body;
	struct hpx_span content_type; /* replaces the header */
	struct hpx_span host;         /* the Host line's value; the connection is the same */
	struct hpx_span connection;   /* a name for the Connection line, besides `close` */
	struct hpx_span line;         /* "Name: value", in place of the intent's lines of that
					    * name, or besides them */
	bool without_credentials;     /* the intent's own are left out */
	bool second_tenant;
	enum hpx_verify_cut cut;
	int64_t linger_ms; /* before the cut, once the bytes are there */
};

#define HPX_RAW_KEY(...) ((struct hpx_span[]){ __VA_ARGS__ })

/* One sending, on a connection of its own. Never NULL: see its `end`. */
const struct hpx_verify_exchange *hpx_verify_send(struct hpx_verify *run,
						  const struct hpx_request_variant *variant);

/* All at the same moment: each on a connection of its own, made beforehand,
 * with everything but the last byte sent; then the last bytes go out together.
 * At most the run's concurrency (fewer are sent then: `*ret_sent`). */
void hpx_verify_send_concurrently(struct hpx_verify *run, const struct hpx_request_variant *variants,
				  size_t count, const struct hpx_verify_exchange **exchanges,
				  size_t *ret_sent);

/* A sending that is under way while others are made: begin, then finish. */
struct hpx_inflight;
/* Returns when the whole request is sent (or cannot be). Never NULL; what was
 * not begun ends as UNSENT. Each is finished or abandoned once. */
struct hpx_inflight *hpx_verify_begin(struct hpx_verify *run, const struct hpx_request_variant *variant);
/* True while no byte of an answer has come. */
bool hpx_verify_is_waiting(struct hpx_inflight *inflight);
const struct hpx_verify_exchange *hpx_verify_finish(struct hpx_inflight *inflight);
/* The client goes away (reset), whatever is under way. */
const struct hpx_verify_exchange *hpx_verify_abandon(struct hpx_inflight *inflight);

/* The same, and again while the answer is 429, as Retry-After says, within the
 * run's settle time: who sends too many is told nothing about its keys. */
const struct hpx_verify_exchange *hpx_verify_send_retry_429(struct hpx_verify *run,
							    const struct hpx_request_variant *variant);

/* Sends it again and again until there is a definite answer: not while the
 * connection is lost, or the answer is 409 (but for one that says that it
 * happened), 425, 429, 502, 503 or 504; heeds Retry-After; ends with the run's settle
 * time. The last exchange; `*ret_sent` (may be NULL): how many were made. */
const struct hpx_verify_exchange *hpx_verify_settle(struct hpx_verify *run,
						    const struct hpx_request_variant *variant,
						    unsigned *ret_sent);
/* One of several that are settled together; zero but for `sending`. */
struct hpx_verify_settling {
	struct hpx_request_variant variant;
	const struct hpx_verify_exchange *last;
	unsigned sent;
	int64_t due_ms; /* when it may be sent again */
};
/* All of them by turns, within one settle time. For a server that was just
 * started: no 5xx is final before. */
void hpx_verify_settle_all(struct hpx_verify *run, struct hpx_verify_settling *all, size_t count);

/* Lets that much time pass, or less where the run's time ends before. */
void hpx_verify_pause(struct hpx_verify *run, uint64_t ms);

/* ---- effects ---- */

/* Whether effects can be counted, by a GET of the description. */
bool hpx_verify_counts_effects(const struct hpx_verify *run);
/* How many effects there are now since the intent was made. A 404 counts as
 * none where the GET's path names the intent by a variable. HPX_UNSUPPORTED:
 * the description has no such GET; others: it could not be read (the finding
 * is then undecided; `problem` says why). */
enum hpx_status hpx_verify_effects(struct hpx_verify *run, const struct hpx_verify_op *op,
				   uint64_t *ret_effects, char problem[HPX_VERIFY_PROBLEM_SIZE]);
/* How many the second tenant sees, where the GET's path names the intent: there
 * were none before. */
enum hpx_status hpx_verify_effects_of_second(struct hpx_verify *run,
					     const struct hpx_verify_op *op,
					     uint64_t *ret_effects,
					     char problem[HPX_VERIFY_PROBLEM_SIZE]);
/* The created resource's id out of an answer; empty where there is none, or
 * where the description does not say where it stands. */
struct hpx_span hpx_verify_resource(struct hpx_verify *run, const struct hpx_verify_exchange *exchange);

/* ---- the run ---- */

const struct hpx_verify_spec *hpx_verify_spec_of(const struct hpx_verify *run);
/* Memory of the row that runs now. */
struct hpx_arena *hpx_verify_arena(struct hpx_verify *run);
/* As asked for, or as found out by the first rows; AUTO while not known. */
enum hpx_dialect hpx_verify_dialect(const struct hpx_verify *run);
void hpx_verify_set_dialect(struct hpx_verify *run, enum hpx_dialect dialect);
/* The bounds are reached: why, or NULL while they are not. */
const char *hpx_verify_stop_reason(const struct hpx_verify *run);
uint64_t hpx_verify_random(struct hpx_verify *run); /* by the seed */

/* For crash rows: runs the command by /bin/sh, waits for its end (a start
 * command may leave the server behind in the background), bounded. */
enum hpx_status hpx_verify_crash(struct hpx_verify *run, char problem[HPX_VERIFY_PROBLEM_SIZE]);
/* Runs the start command and waits until the effects' GET is answered, or else
 * `get`; with neither, until a connection is taken: a GET of any other path might
 * do something. */
enum hpx_status hpx_verify_start_again(struct hpx_verify *run,
				       char problem[HPX_VERIFY_PROBLEM_SIZE]);

/* ---- for whoever drives it: cli/verify ---- */

/* `spec` must stay. Opens nothing. The caller ignores SIGPIPE. HPX_TOO_LARGE:
 * the headers have more credentials than can be kept out of reports. */
enum hpx_status hpx_verify_new(const struct hpx_verify_spec *spec, struct hpx_verify **ret_run);
/* Ends what is under way, and a server that was started in the foreground. */
void hpx_verify_free(struct hpx_verify *run);
/* Reads the certificates, looks the host up and pins its address, so that what
 * is wrong with them is said before the first row; the first sending does so
 * too. HPX_INVALID: the certificates; HPX_NOT_FOUND: no such host;
 * HPX_UNAVAILABLE: nobody takes a connection. */
enum hpx_status hpx_verify_open(struct hpx_verify *run, char problem[HPX_VERIFY_PROBLEM_SIZE]);
/* Once it is readable the run is over: a signalfd. */
void hpx_verify_stop_on(struct hpx_verify *run, int stop_fd);
/* Called around each row: names what is sent, frees what the row held. */
void hpx_verify_row_begin(struct hpx_verify *run, const char *row);
void hpx_verify_row_end(struct hpx_verify *run);
/* Every exchange so far, in order. */
size_t hpx_verify_exchange_count(const struct hpx_verify *run);
const struct hpx_verify_exchange *hpx_verify_exchange_at(const struct hpx_verify *run, size_t index);

#endif
