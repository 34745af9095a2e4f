/* What all loops know together of one upstream: whether it can be reached,
 * and whether it keeps to one answer per request.
 *
 * HTTP/1.1 has no number that ties an answer to its request: on a kept
 * connection, the next bytes are the next answer. A second answer that comes
 * while nobody has asked is a stray byte and harms nobody; a moment later it
 * would be taken for somebody else's answer. So one stray byte, on any loop,
 *   - closes every kept connection to the upstream,
 *   - keeps guarded requests off kept connections for the quarantine,
 * and an upstream that nobody has watched yet (at the start, and after a
 * quarantine) has to be silent behind its answers on a few connections before
 * any connection is used again at once. */
#ifndef HPX_NET_UPSTREAM_STATE_H
#define HPX_NET_UPSTREAM_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* How long a connection is silent to count as watched, and how many must be. */
#define HPX_UPSTREAM_SILENCE_MS 100
#define HPX_UPSTREAM_WATCHED_MIN 8

enum hpx_upstream_news {
	HPX_UPSTREAM_STRAY, /* a quarantine begins; `ms` is its length */
	HPX_UPSTREAM_DOWN,  /* `detail` says why */
	HPX_UPSTREAM_UP,    /* `ms` is how long it was down */
};

struct hpx_upstream_state {
	_Atomic uint64_t strays;             /* ever; pools compare it with what they saw */
	_Atomic int64_t quarantine_until_ms; /* boot clock */
	atomic_uint watched;                 /* silent connections since the last stray */
	atomic_bool down;
	_Atomic int64_t down_since_ms;
	_Atomic int64_t failed_ms;  /* the last failure to connect */
	_Atomic int64_t reached_ms; /* the last success while it was down */
	/* Called on any loop's thread; must not wait. Set once, before the loops run. */
	void (*tell)(void *user, enum hpx_upstream_news news, const char *detail, int64_t ms);
	void *user;
};

/* Bytes came that nobody asked for. */
void hpx_upstream_stray(struct hpx_upstream_state *state, uint64_t quarantine_ms);
/* Guarded requests use no kept connection now. */
bool hpx_upstream_in_quarantine(struct hpx_upstream_state *state);
/* A kept connection was silent for HPX_UPSTREAM_SILENCE_MS behind an answer. */
void hpx_upstream_was_silent(struct hpx_upstream_state *state);
bool hpx_upstream_is_watched(struct hpx_upstream_state *state);

/* A connection came about, or an answer came; no connection came about. Told
 * once when it changes: an upstream that refuses some connections and takes
 * others stays down until none has failed for a second. */
void hpx_upstream_reached(struct hpx_upstream_state *state);
void hpx_upstream_not_reached(struct hpx_upstream_state *state, const char *reason);
/* From a tick: it is up where it was reached and has not failed since. */
void hpx_upstream_look(struct hpx_upstream_state *state);

#endif
