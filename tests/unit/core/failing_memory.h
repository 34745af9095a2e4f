/* Allocations that fail when a test says so: for tests that let the n-th one
 * fail, until none is left to fail. Links with --wrap for the four functions. */
#ifndef HPX_TESTS_UNIT_CORE_FAILING_MEMORY_H
#define HPX_TESTS_UNIT_CORE_FAILING_MEMORY_H

#include "../test.h"

/* The linker sends every allocation of the code under test through these
 * (--wrap); the n-th one fails. */
static size_t allocations_left = SIZE_MAX;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__real_reallocarray(void *ptr, size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void *__wrap_reallocarray(void *ptr, size_t count, size_t size);

static bool fails(void)
{
	return allocations_left != SIZE_MAX && allocations_left-- == 0;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
	return fails() ? NULL : __real_realloc(ptr, size);
}

void *__wrap_reallocarray(void *ptr, size_t count, size_t size)
{
	return fails() ? NULL : __real_reallocarray(ptr, count, size);
}

#endif
