/* The arena: a list of chunks, each filled from front to back. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/recycle.h"
#include "base/status.h"

/* Large enough that an ordinary request needs one chunk, small enough that
 * thousands of requests under way stay within a few tens of megabytes. */
#define CHUNK_BYTES 4096

struct hpx_arena_chunk {
	struct hpx_arena_chunk *next;
	size_t size;
	size_t used;
	alignas(max_align_t) char data[];
};

void hpx_arena_init(struct hpx_arena *arena, size_t max_bytes)
{
	*arena = (struct hpx_arena){ .max_bytes = max_bytes };
}

void hpx_arena_done(struct hpx_arena *arena)
{
	while (arena->chunks != NULL) {
		struct hpx_arena_chunk *chunk = arena->chunks;
		arena->chunks = chunk->next;
		free(chunk);
	}
	arena->used_bytes = 0;
}

void hpx_arena_recycle(struct hpx_arena *arena)
{
	struct hpx_arena_chunk *kept = arena->chunks;

	/* The oldest chunk, which is the usual one. */
	while (kept != NULL && kept->next != NULL) {
		arena->chunks = kept->next;
		free(kept);
		kept = arena->chunks;
	}
	if (!HPX_RECYCLES || kept == NULL || kept->size > CHUNK_BYTES) {
		hpx_arena_done(arena);
		return;
	}
	kept->used = 0;
	arena->used_bytes = kept->size;
}

static struct hpx_arena_chunk *add_chunk(struct hpx_arena *arena, size_t need)
{
	size_t size = CHUNK_BYTES - sizeof(struct hpx_arena_chunk);

	if (need > size)
		size = need;
	if (size > arena->max_bytes - arena->used_bytes) {
		size = arena->max_bytes - arena->used_bytes;
		if (need > size)
			return NULL;
	}
	struct hpx_arena_chunk *chunk = malloc(sizeof(*chunk) + size);
	if (chunk == NULL)
		return NULL;
	chunk->size = size;
	chunk->used = 0;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	arena->used_bytes += size;
	HPX_ASSERT(arena->used_bytes <= arena->max_bytes);
	return chunk;
}

void *hpx_arena_alloc(struct hpx_arena *arena, size_t size)
{
	size_t mask = alignof(max_align_t) - 1;

	if (size > SIZE_MAX - mask)
		return NULL;
	size = (size + mask) & ~mask;
	if (size == 0)
		size = mask + 1;
	struct hpx_arena_chunk *chunk = arena->chunks;
	if (chunk == NULL || size > chunk->size - chunk->used) {
		chunk = add_chunk(arena, size);
		if (chunk == NULL)
			return NULL;
	}
	void *ptr = chunk->data + chunk->used;
	chunk->used += size;
	HPX_ASSERT(chunk->used <= chunk->size);
	return ptr;
}

void *hpx_arena_zalloc(struct hpx_arena *arena, size_t count, size_t size)
{
	if (size != 0 && count > SIZE_MAX / size)
		return NULL;
	void *ptr = hpx_arena_alloc(arena, count * size);
	if (ptr != NULL)
		memset(ptr, 0, count * size);
	return ptr;
}

struct hpx_span hpx_arena_dup(struct hpx_arena *arena, struct hpx_span s)
{
	char *copy = s.len < SIZE_MAX ? hpx_arena_alloc(arena, s.len + 1) : NULL;

	if (copy == NULL)
		return (struct hpx_span){ NULL, 0 };
	if (s.len > 0)
		memcpy(copy, s.ptr, s.len);
	copy[s.len] = '\0';
	return hpx_span(copy, s.len);
}

struct hpx_span hpx_arena_lower(struct hpx_arena *arena, struct hpx_span s)
{
	char *copy = s.len < SIZE_MAX ? hpx_arena_alloc(arena, s.len + 1) : NULL;

	if (copy == NULL)
		return (struct hpx_span){ NULL, 0 };
	for (size_t i = 0; i < s.len; i++)
		copy[i] = hpx_lower(s.ptr[i]);
	copy[s.len] = '\0';
	return hpx_span(copy, s.len);
}

struct hpx_span hpx_arena_join(struct hpx_arena *arena, const struct hpx_span *parts, size_t count)
{
	size_t len = 0, at = 0;

	for (size_t i = 0; i < count; i++) {
		if (parts[i].len > SIZE_MAX - 1 - len)
			return (struct hpx_span){ NULL, 0 };
		len += parts[i].len;
	}
	char *text = hpx_arena_alloc(arena, len + 1);
	if (text == NULL)
		return (struct hpx_span){ NULL, 0 };
	for (size_t i = 0; i < count; i++) {
		if (parts[i].len > 0)
			memcpy(text + at, parts[i].ptr, parts[i].len);
		at += parts[i].len;
	}
	text[len] = '\0';
	return hpx_span(text, len);
}

struct hpx_span hpx_arena_printf(struct hpx_arena *arena, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	char *text = n < 0 ? NULL : hpx_arena_alloc(arena, (size_t)n + 1);
	if (text == NULL)
		return (struct hpx_span){ NULL, 0 };
	va_start(args, format);
	vsnprintf(text, (size_t)n + 1, format, args);
	va_end(args);
	return hpx_span(text, (size_t)n);
}
