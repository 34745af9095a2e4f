/* Memory that dies together: what one request needs is taken from its arena
 * and given back in one call. An arena has a maximum; past it, and when the
 * machine has no more, allocation gives NULL, which callers turn into a
 * status. Not for use from two threads. */
#ifndef HPX_BASE_ARENA_H
#define HPX_BASE_ARENA_H

#include "base/span.h"

struct hpx_arena_chunk;

struct hpx_arena {
	struct hpx_arena_chunk *chunks;
	size_t used_bytes;
	size_t max_bytes;
};

void hpx_arena_init(struct hpx_arena *arena, size_t max_bytes);
/* Gives everything back; the arena may be used again. */
void hpx_arena_done(struct hpx_arena *arena);

/* Gives everything back but one chunk of the usual size, for the next use
 * (recycle.h). What is allocated from it is not zeroed, as ever. */
void hpx_arena_recycle(struct hpx_arena *arena);

/* Aligned for any type, not zeroed; size 0 gives a valid pointer. */
void *hpx_arena_alloc(struct hpx_arena *arena, size_t size);
void *hpx_arena_zalloc(struct hpx_arena *arena, size_t count, size_t size);

/* A copy with a NUL behind it that does not count; ptr NULL when full. */
struct hpx_span hpx_arena_dup(struct hpx_arena *arena, struct hpx_span s);
/* The same in small letters. */
struct hpx_span hpx_arena_lower(struct hpx_arena *arena, struct hpx_span s);
/* The parts one behind the other, in the same way. */
struct hpx_span hpx_arena_join(struct hpx_arena *arena, const struct hpx_span *parts, size_t count);
struct hpx_span hpx_arena_printf(struct hpx_arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
