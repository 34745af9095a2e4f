/* The client for guarded and passed requests to an upstream. It exists because the
 * gateway must know whether a byte left: this client never resends by itself, and
 * it reports exactly how far a request went. One per event loop, with its own pool;
 * only that loop's thread calls. Answers are read by the same strict reader as
 * requests. */
#ifndef HPX_NET_UPSTREAM_H
#define HPX_NET_UPSTREAM_H

#include <stdatomic.h>

#include "base/address.h"
#include "http/message.h"
#include "net/connection_slot.h"
#include "net/transport.h"

/* The state of one upstream, shared by all loops: whether it can be reached, and
 * whether it sends one answer per request.
 *
 * HTTP/1.1 has no number that ties an answer to its request: on a kept connection,
 * the next bytes are the next answer. A second answer that comes while no request is
 * under way is a stray byte and does no harm. A moment later it would be taken for
 * the answer to the next request. So one stray byte, on any loop,
 *   - closes every kept connection to the upstream,
 *   - keeps guarded requests off kept connections for a time, the quarantine.
 * An upstream that was not watched yet (at the start, and after a quarantine) has to
 * be silent after its answers on a few connections before any connection is used
 * again at once. */
/* A connection counts as watched after this time of silence; the upstream does after
 * this many connections. */
#define HPX_UPSTREAM_SILENCE_MS 100
#define HPX_UPSTREAM_WATCHED_MIN 8

enum hpx_upstream_event {
	HPX_UPSTREAM_STRAY, /* a quarantine begins; `ms` is its length */
	HPX_UPSTREAM_DOWN,  /* `detail` says why */
	HPX_UPSTREAM_UP,    /* `ms` is the time it was down */
};

struct hpx_upstream_state {
	_Atomic uint64_t strays;             /* ever; a pool compares it with its strays_seen */
	_Atomic int64_t quarantine_until_ms; /* boot clock */
	atomic_uint watched;                 /* silent connections since the last stray */
	atomic_bool down;
	_Atomic int64_t down_since_ms;
	_Atomic int64_t failed_ms;  /* the last failure to connect */
	_Atomic int64_t reached_ms; /* the last success while it was down */
	/* Called on any loop's thread; must not block. Set once, before the loops run. */
	void (*on_event)(void *user, enum hpx_upstream_event event, const char *detail, int64_t ms);
	void *user;
};

/* A stray byte came: bytes that no request asked for. */
void hpx_upstream_note_stray(struct hpx_upstream_state *state, uint64_t quarantine_ms);
/* While true, guarded requests use no kept connection. */
bool hpx_upstream_in_quarantine(struct hpx_upstream_state *state);
/* A kept connection was silent for HPX_UPSTREAM_SILENCE_MS after an answer. */
void hpx_upstream_note_silent(struct hpx_upstream_state *state);
bool hpx_upstream_is_watched(struct hpx_upstream_state *state);

/* A connection was made or an answer came; or no connection could be made. on_event
 * comes once when that changes. An upstream that refuses some connections and takes
 * others stays down until none has failed for a second. */
void hpx_upstream_note_reached(struct hpx_upstream_state *state);
void hpx_upstream_note_unreachable(struct hpx_upstream_state *state, const char *reason);
/* Called by a tick: the upstream is up again where it was reached and has not failed
 * since. */
void hpx_upstream_check_up(struct hpx_upstream_state *state);

struct hpx_upstream;
struct hpx_exchange;

struct hpx_tls;

struct hpx_upstream_options {
	struct hpx_address address;
	struct hpx_tls *tls;  /* NULL: plain. For good, like the next */
	const char *tls_name; /* whose certificate it must be; NULL: the address's host */
	uint64_t connect_timeout_ms;
	uint64_t send_timeout_ms;         /* between two bytes that the socket takes */
	uint64_t first_byte_timeout_ms;   /* from the whole request out to the first byte of the answer */
	uint64_t idle_timeout_ms;         /* between two bytes of the answer; 0: none (event streams) */
	uint64_t whole_timeout_ms;        /* of a whole guarded exchange; 0: none */
	uint64_t reuse_idle_ms;           /* guarded: a kept-alive connection idle longer is not reused (1000) */
	uint64_t reuse_quarantine_ms;     /* guarded: none is reused for this long after a stray byte */
	struct hpx_upstream_state *state; /* shared by all loops; NULL: not watched */
	uint64_t pool_idle_ms;            /* a pooled connection idle longer is closed */
	unsigned pool_max;                /* idle connections kept */
	struct hpx_slot_limits slots;     /* per loop */
	uint64_t resolve_ttl_ms;          /* how long resolved addresses are used */
	struct hpx_http_limits limits;    /* of response heads */
};

enum hpx_status hpx_upstream_new(struct hpx_loop *loop, const struct hpx_upstream_options *options,
				 struct hpx_upstream **ret_upstream);
/* Sets another address, other timeouts and limits, for exchanges that get their connection
 * from now on. Exchanges that have one, or are connecting, end where they began; their
 * connections are not used again. HPX_NOMEM: the address stays, the rest is set. */
enum hpx_status hpx_upstream_configure(struct hpx_upstream *upstream,
				       const struct hpx_upstream_options *options);
/* Closes the pool; exchanges under way fail. */
void hpx_upstream_free(struct hpx_upstream *upstream);
/* The connection slots of this upstream on this loop. */
struct hpx_slots *hpx_upstream_slots(struct hpx_upstream *upstream);
/* To be called by a tick: closes idle connections after a stray byte on another loop,
 * and notices that the upstream is up again. */
void hpx_upstream_tick(struct hpx_upstream *upstream);

/* How an exchange failed. */
struct hpx_exchange_failure {
	bool any_byte_left; /* at least one byte was handed to a connected socket */
	bool head_seen;     /* the answer's head had arrived */
	bool timed_out;
	enum hpx_status status; /* UNAVAILABLE (refused, DNS), FULL (memory), TIMEOUT, CLOSED, IO,
				     INVALID (nonsense), NOMEM */
	const char *reason;     /* a sentence, static */
};

/* Callbacks come on the loop's thread, never from inside a call into the exchange.
 * on_end or on_failed is the last one: the exchange is freed after it returns, the
 * head's spans too. The exchange may be cancelled within any other callback. */
struct hpx_exchange_events {
	/* Connected, right before the first byte: false gives up (nothing was
	 * sent; on_failed with status HPX_CLOSED follows). May be NULL. */
	bool (*on_ready)(void *user);
	/* The request is out, whole. May be NULL. */
	void (*on_sent)(void *user);
	/* Room again for hpx_exchange_write (below its mark). May be NULL. */
	void (*on_writable)(void *user);
	/* A 1xx other than 101. The head's spans are valid during the call. May be NULL. */
	void (*on_informational)(void *user, const struct hpx_http_head *head);
	/* The final head, or a 101 (framing TUNNEL): a caller that asked for no
	 * upgrade cancels then; for a guarded request a 101 is INVALID. The spans
	 * stay valid until the exchange ends. The head may come before the whole
	 * request is out: after a refusal the rest is dropped and on_sent does not
	 * come; after a success (2xx) sending goes on until the answer ends. */
	void (*on_head)(void *user, const struct hpx_http_head *head);
	void (*on_data)(void *user, struct hpx_span bytes);
	/* The answer is complete and well-formed. (In a tunnel: the upstream
	 * closed its half.) */
	void (*on_end)(void *user);
	void (*on_failed)(void *user, const struct hpx_exchange_failure *failure);
};

struct hpx_exchange_request {
	struct hpx_slot *slot;  /* held; the exchange takes it over */
	struct hpx_span method; /* to know whether an answer has a body */
	struct hpx_span head;   /* ready for the wire, with its final CRLF; must stay until on_sent */
	struct hpx_span body;   /* sent right behind the head; must stay until on_sent */
	bool streamed;          /* more follows by hpx_exchange_write … _finish */
	bool fresh;             /* on a new connection, which is not kept */
	bool guarded;           /* strict reuse rule, whole timeout; never retried on another
					    address once a byte left */
};

/* HPX_NOMEM, or HPX_CLOSED while the upstream is being freed: the slot stays the
 * caller's. Every other failure comes by on_failed. */
enum hpx_status hpx_exchange_start(struct hpx_upstream *upstream,
				   const struct hpx_exchange_request *request,
				   const struct hpx_exchange_events *events, void *user,
				   struct hpx_exchange **ret_exchange);
/* For streamed bodies and tunnels: bytes for the wire, with chunk framing already in
 * them. The bytes are taken in any case. False: the high mark is reached (or nothing
 * can be sent yet); wait for on_writable before the next write. True, and the bytes
 * are dropped, when the upstream wants no more of the request. */
bool hpx_exchange_write(struct hpx_exchange *exchange, const struct hpx_span *pieces, size_t count);
/* No more follows (in a tunnel: an end of stream). */
void hpx_exchange_finish(struct hpx_exchange *exchange);
/* Stop reading the answer, and go on (backpressure). */
void hpx_exchange_pause(struct hpx_exchange *exchange);
void hpx_exchange_resume(struct hpx_exchange *exchange);
/* Closes the connection, no callback any more. */
void hpx_exchange_cancel(struct hpx_exchange *exchange);
/* Whether a byte has been handed to the socket so far. */
bool hpx_exchange_any_byte_left(const struct hpx_exchange *exchange);

#endif
