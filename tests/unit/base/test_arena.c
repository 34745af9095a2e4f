/* Shows that an arena gives aligned memory up to its maximum and no more, and that one
 * which is used again begins empty. */
#include "../test.h"

#include "base/arena.h"
#include "base/recycle.h"

static void memory_is_aligned_and_bounded(void **state)
{
	struct hpx_arena arena;
	(void)state;
	hpx_arena_init(&arena, 20000);
	for (size_t size = 0; size < 100; size++) {
		char *p = hpx_arena_alloc(&arena, size);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		memset(p, 0xaa, size);
	}
	assert_null(hpx_arena_alloc(&arena, 20001));
	assert_null(hpx_arena_alloc(&arena, SIZE_MAX));
	assert_null(hpx_arena_zalloc(&arena, SIZE_MAX / 2, 4));
	while (hpx_arena_alloc(&arena, 100) != NULL)
		assert_true(arena.used_bytes <= 20000);
	hpx_arena_done(&arena);
	assert_non_null(hpx_arena_alloc(&arena, 15000));
	hpx_arena_done(&arena);
}

static void an_arena_that_is_used_again_begins_empty(void **state)
{
	struct hpx_arena arena;

	(void)state;
	hpx_arena_init(&arena, 20000);
	hpx_arena_recycle(&arena); /* nothing in it */
	assert_int_equal(arena.used_bytes, 0);
	char *first = hpx_arena_alloc(&arena, 100);
	assert_non_null(hpx_arena_alloc(&arena, 3900)); /* a second chunk, where it does not fit */
	assert_non_null(hpx_arena_alloc(&arena, 9000));
	hpx_arena_recycle(&arena);
	assert_in_range(arena.used_bytes, 0, 4096);
	char *again = hpx_arena_alloc(&arena, 100);
	assert_non_null(again);
	if (HPX_RECYCLES)
		assert_ptr_equal(again, first);
	/* As much as a fresh one has, less the chunk that is there. */
	assert_non_null(hpx_arena_alloc(&arena, 15000));
	assert_null(hpx_arena_alloc(&arena, 15000));
	hpx_arena_done(&arena);
	assert_int_equal(arena.used_bytes, 0);
}

/* A first chunk that is larger than usual is not held for ever. */
static void a_large_chunk_is_not_kept(void **state)
{
	struct hpx_arena arena;

	(void)state;
	hpx_arena_init(&arena, 20000);
	assert_non_null(hpx_arena_alloc(&arena, 10000));
	hpx_arena_recycle(&arena);
	assert_int_equal(arena.used_bytes, 0);
	assert_null(arena.chunks);
}

static void text_is_copied_with_a_terminator(void **state)
{
	struct hpx_arena arena;
	(void)state;
	hpx_arena_init(&arena, 10000);
	struct hpx_span copy = hpx_arena_dup(&arena, HPX_SPAN("abc"));
	assert_span(copy, "abc");
	assert_int_equal(copy.ptr[3], 0);
	assert_span(hpx_arena_dup(&arena, HPX_SPAN("")), "");
	assert_span(hpx_arena_printf(&arena, "%d-%s", 7, "x"), "7-x");
	hpx_arena_done(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_aligned_and_bounded),
		cmocka_unit_test(an_arena_that_is_used_again_begins_empty),
		cmocka_unit_test(a_large_chunk_is_not_kept),
		cmocka_unit_test(text_is_copied_with_a_terminator),
	};
	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
