/* The right to use one connection to an upstream, on one loop. A request takes
 * a slot before anything is reserved for it and keeps the slot until its
 * exchange takes that over; whoever finds none waits in a bounded queue, first
 * come, first served. Idle connections in the pool hold no slot: they make room
 * for whoever does.
 *
 * 1. The slots held by all kinds together stay within `max`, those of tunnels
 *    and pass-through together within `pass_max`, those of tunnels within
 *    `tunnel_max` (except what was held already when a reload lowered these).
 * 2. While somebody of a kind is queued, there is no free slot for that kind.
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

/* Embedded in whoever wants a connection; zeroed before its first use. */
struct hpx_slot {
	struct hpx_slots *slots; /* while queued or held */
	enum hpx_slot_state state;
	enum hpx_slot_kind kind;
	uint64_t arrival; /* while queued; orders the queues of different kinds */
	struct hpx_slot *next, *prev;
	struct hpx_later turn;
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
/* Other limits: what became free is granted, what is held or queued stays. */
void hpx_slots_configure(struct hpx_slots *slots, const struct hpx_slot_limits *limits);

/* Takes a slot at once; false where none is free. */
bool hpx_slot_take(struct hpx_slots *slots, struct hpx_slot *slot, enum hpx_slot_kind kind);
/* Takes a place in the queue, behind a refused take; false where the queue is
 * full. `granted` comes later, with the slot held. */
bool hpx_slot_queue(struct hpx_slots *slots, struct hpx_slot *slot, enum hpx_slot_kind kind,
		    void (*granted)(struct hpx_slot *slot));
/* The same held slot, from now on by another name. */
void hpx_slot_move(struct hpx_slot *from, struct hpx_slot *to);
/* Gives back a slot or a place; nothing where there is neither. */
void hpx_slot_release(struct hpx_slot *slot);

#endif
