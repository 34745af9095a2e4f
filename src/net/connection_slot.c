/* Connection slots: counting them and queueing for them. See connection_slot.h. */
#include "net/connection_slot.h"

#include "base/status.h"

static unsigned held_by_all(const struct hpx_slots *slots)
{
	unsigned all = 0;

	for (int kind = 0; kind < HPX_SLOT_KIND_COUNT; kind++)
		all += slots->held[kind];
	return all;
}

static bool has_room(const struct hpx_slots *slots, enum hpx_slot_kind kind)
{
	unsigned tunnels = slots->held[HPX_SLOT_TUNNEL];

	if (held_by_all(slots) >= slots->limits.max)
		return false;
	if (kind == HPX_SLOT_TUNNEL && tunnels >= slots->limits.tunnel_max)
		return false;
	return kind == HPX_SLOT_GUARDED ||
	       slots->held[HPX_SLOT_PASS] + tunnels < slots->limits.pass_max;
}

static void hold(struct hpx_slots *slots, struct hpx_slot *slot, enum hpx_slot_kind kind)
{
	slot->slots = slots;
	slot->kind = kind;
	slot->state = HPX_SLOT_HELD;
	slots->held[kind]++;
}

static void unlink_queued(struct hpx_slot *slot)
{
	struct hpx_slot_queue *queue = &slot->slots->queues[slot->kind];

	HPX_ASSERT(slot->state == HPX_SLOT_QUEUED && queue->count > 0);
	*(slot->prev != NULL ? &slot->prev->next : &queue->first) = slot->next;
	*(slot->next != NULL ? &slot->next->prev : &queue->last) = slot->prev;
	slot->next = NULL;
	slot->prev = NULL;
	queue->count--;
}

static void call_granted(struct hpx_later *grant)
{
	struct hpx_slot *slot = HPX_CONTAINER(grant, struct hpx_slot, grant);

	HPX_ASSERT(slot->state == HPX_SLOT_HELD);
	slot->granted(slot);
}

/* The longest waiting slot among the kinds that have room. */
static struct hpx_slot *next_served(const struct hpx_slots *slots)
{
	struct hpx_slot *found = NULL;

	for (int kind = 0; kind < HPX_SLOT_KIND_COUNT; kind++) {
		struct hpx_slot *first = slots->queues[kind].first;
		if (first != NULL && (found == NULL || first->arrival < found->arrival) &&
		    has_room(slots, (enum hpx_slot_kind)kind))
			found = first;
	}
	return found;
}

static void serve(struct hpx_slots *slots)
{
	struct hpx_slot *slot;

	while ((slot = next_served(slots)) != NULL) {
		unlink_queued(slot);
		hold(slots, slot, slot->kind);
		slot->grant.run = call_granted;
		hpx_loop_later(slots->loop, &slot->grant);
	}
}

void hpx_slots_init(struct hpx_slots *slots, struct hpx_loop *loop)
{
	*slots = (struct hpx_slots){ .loop = loop };
}

void hpx_slots_configure(struct hpx_slots *slots, const struct hpx_slot_limits *limits)
{
	slots->limits = *limits;
	serve(slots);
}

bool hpx_slot_take(struct hpx_slots *slots, struct hpx_slot *slot, enum hpx_slot_kind kind)
{
	HPX_ASSERT(slot->state == HPX_SLOT_NONE);
	if (!has_room(slots, kind))
		return false;
	HPX_ASSERT(slots->queues[kind].first == NULL);
	hold(slots, slot, kind);
	return true;
}

bool hpx_slot_queue(struct hpx_slots *slots, struct hpx_slot *slot, enum hpx_slot_kind kind,
		    void (*granted)(struct hpx_slot *slot))
{
	struct hpx_slot_queue *queue = &slots->queues[kind];

	HPX_ASSERT(slot->state == HPX_SLOT_NONE && !has_room(slots, kind));
	if (kind == HPX_SLOT_TUNNEL || queue->count >= slots->limits.queue_max)
		return false;
	slot->slots = slots;
	slot->kind = kind;
	slot->state = HPX_SLOT_QUEUED;
	slot->granted = granted;
	slot->arrival = slots->arrivals++;
	slot->prev = queue->last;
	slot->next = NULL;
	*(queue->last != NULL ? &queue->last->next : &queue->first) = slot;
	queue->last = slot;
	queue->count++;
	return true;
}

void hpx_slot_move(struct hpx_slot *from, struct hpx_slot *to)
{
	HPX_ASSERT(from->state == HPX_SLOT_HELD && to->state == HPX_SLOT_NONE);
	HPX_ASSERT(from->grant.next == NULL);
	to->slots = from->slots;
	to->kind = from->kind;
	to->state = HPX_SLOT_HELD;
	from->state = HPX_SLOT_NONE;
}

void hpx_slot_release(struct hpx_slot *slot)
{
	struct hpx_slots *slots = slot->slots;

	if (slot->state == HPX_SLOT_QUEUED) {
		unlink_queued(slot);
	} else if (slot->state == HPX_SLOT_HELD) {
		hpx_later_cancel(&slot->grant);
		HPX_ASSERT(slots->held[slot->kind] > 0);
		slots->held[slot->kind]--;
	} else {
		return;
	}
	slot->state = HPX_SLOT_NONE;
	serve(slots);
}
