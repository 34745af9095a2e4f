/* A connection slot: the right to use one connection to an upstream, on one loop. A
 * request takes a slot before anything is reserved for it, and keeps the slot until
 * its exchange takes that over. A request that finds none free waits in a bounded
 * queue, first come, first served. Idle connections in the pool hold no slot: one
 * of them is closed when a holder needs a new connection.
 *
 *   NONE ──▶ HELD                  hpx_slot_take, hpx_slot_move (to)
 *   NONE ──▶ QUEUED                hpx_slot_queue
 *   QUEUED ──▶ HELD                a slot became free; `granted` follows, deferred
 *   QUEUED, HELD ──▶ NONE          hpx_slot_release, hpx_slot_move (from)
 *
 * 1. The slots held by all kinds together stay within `max`, those of tunnels
 *    and pass-through together within `pass_max`, those of tunnels within
 *    `tunnel_max` (except slots that were held when a reload lowered these).
 * 2. While a request of a kind is queued, there is no free slot for that kind.
 * 3. `granted` is never called from inside a call into this file. */
#ifndef HPX_NET_CONNECTION_SLOT_H
#define HPX_NET_CONNECTION_SLOT_H

#include "net/loop.h"

enum hpx_slot_kind {
	HPX_SLOT_GUARDED,
	HPX_SLOT_PASS,   /* pass-through, without an upgrade */
	HPX_SLOT_TUNNEL, /* an upgrade is asked for; never queued: a tunnel may stay for days */
	HPX_SLOT_KIND_COUNT
};

enum hpx_slot_state {
	HPX_SLOT_NONE,
	HPX_SLOT_QUEUED,
	HPX_SLOT_HELD,
};

/* Embedded in the object that wants a connection; zeroed before its first use. */
struct hpx_slot {
	struct hpx_slots *slots; /* while queued or held */
	enum hpx_slot_state state;
	enum hpx_slot_kind kind;
	uint64_t arrival; /* while queued; orders the queues of different kinds */
	struct hpx_slot *next, *prev;
	struct hpx_later grant; /* calls `granted` */
	void (*granted)(struct hpx_slot *slot);
};

struct hpx_slot_limits {
	unsigned max;
	unsigned pass_max;
	unsigned tunnel_max;
	unsigned queue_max; /* of each kind */
};

struct hpx_slot_queue {
	struct hpx_slot *first, *last;
	unsigned count;
};

struct hpx_slots {
	struct hpx_loop *loop;
	struct hpx_slot_limits limits;
	unsigned held[HPX_SLOT_KIND_COUNT];
	struct hpx_slot_queue queues[HPX_SLOT_KIND_COUNT];
	uint64_t arrivals;
};

void hpx_slots_init(struct hpx_slots *slots, struct hpx_loop *loop);
/* Sets other limits. Slots that became free are granted; those held or queued stay. */
void hpx_slots_configure(struct hpx_slots *slots, const struct hpx_slot_limits *limits);

/* Takes a slot at once; false where none is free. */
bool hpx_slot_take(struct hpx_slots *slots, struct hpx_slot *slot, enum hpx_slot_kind kind);
/* Joins the queue, after hpx_slot_take has returned false. False where the queue is
 * full. `granted` comes deferred, with the slot held. */
bool hpx_slot_queue(struct hpx_slots *slots, struct hpx_slot *slot, enum hpx_slot_kind kind,
		    void (*granted)(struct hpx_slot *slot));
/* Hands a held slot over to another owner. */
void hpx_slot_move(struct hpx_slot *from, struct hpx_slot *to);
/* Gives the slot back, or leaves the queue. Nothing happens in NONE. */
void hpx_slot_release(struct hpx_slot *slot);

#endif
