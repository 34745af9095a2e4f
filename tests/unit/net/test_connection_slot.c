/* Shows which requests get a connection slot and which wait, in which order they are
 * served, and how many slots are left to guarded requests. */
#include "helper.h"
#include "net/connection_slot.h"

#define MANY 8

struct fixture {
	struct hpx_loop loop;
	struct hpx_slots slots;
	struct hpx_slot slot[MANY];
	char order[MANY + 1]; /* the numbers of those that were told, as they were */
	size_t told;
};

static struct fixture *now;

static void on_granted(struct hpx_slot *slot)
{
	assert_int_equal(slot->state, HPX_SLOT_HELD);
	now->order[now->told++] = (char)('0' + (slot - now->slot));
}

static int set_up(void **state)
{
	now = calloc(1, sizeof(*now));
	assert_non_null(now);
	assert_status(hpx_loop_init(&now->loop), HPX_OK);
	hpx_slots_init(&now->slots, &now->loop);
	*state = now;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	for (size_t i = 0; i < MANY; i++)
		hpx_slot_release(&fixture->slot[i]);
	for (int kind = 0; kind < HPX_SLOT_KIND_COUNT; kind++) {
		assert_int_equal(fixture->slots.held[kind], 0);
		assert_int_equal(fixture->slots.queues[kind].count, 0);
	}
	hpx_loop_done(&fixture->loop);
	free(fixture);
	return 0;
}

static void limit(struct fixture *f, unsigned max, unsigned pass, unsigned tunnels, unsigned queue)
{
	struct hpx_slot_limits limits = { max, pass, tunnels, queue };

	hpx_slots_configure(&f->slots, &limits);
}

static bool take(struct fixture *f, int i, enum hpx_slot_kind kind)
{
	return hpx_slot_take(&f->slots, &f->slot[i], kind);
}

static bool queue(struct fixture *f, int i, enum hpx_slot_kind kind)
{
	return !take(f, i, kind) && hpx_slot_queue(&f->slots, &f->slot[i], kind, on_granted);
}

/* Nobody is told from inside a call; one turn of the loop tells all. */
static void assert_told(struct fixture *f, const char *before, const char *after)
{
	assert_string_equal(f->order, before);
	uv_run(&f->loop.uv, UV_RUN_NOWAIT);
	assert_string_equal(f->order, after);
}

static void the_first_in_the_queue_is_served_first(void **state)
{
	struct fixture *f = *state;

	limit(f, 2, 2, 2, 3);
	assert_true(take(f, 0, HPX_SLOT_GUARDED));
	assert_true(take(f, 1, HPX_SLOT_PASS));
	assert_true(queue(f, 2, HPX_SLOT_PASS));
	assert_true(queue(f, 3, HPX_SLOT_GUARDED));
	assert_true(queue(f, 4, HPX_SLOT_PASS));
	hpx_slot_release(&f->slot[0]);
	assert_told(f, "", "2");
	hpx_slot_release(&f->slot[1]);
	hpx_slot_release(&f->slot[2]);
	assert_told(f, "2", "234");
}

static void a_full_queue_takes_no_more(void **state)
{
	struct fixture *f = *state;

	limit(f, 1, 1, 1, 1);
	assert_true(take(f, 0, HPX_SLOT_GUARDED));
	assert_true(queue(f, 1, HPX_SLOT_GUARDED));
	assert_false(queue(f, 2, HPX_SLOT_GUARDED));
	/* Each kind has a queue of its own; tunnels have none. */
	assert_true(queue(f, 3, HPX_SLOT_PASS));
	assert_false(queue(f, 4, HPX_SLOT_TUNNEL));
	assert_int_equal(f->slot[4].state, HPX_SLOT_NONE);
}

static void leaving_the_queue_makes_room(void **state)
{
	struct fixture *f = *state;

	limit(f, 1, 1, 1, 3);
	assert_true(take(f, 0, HPX_SLOT_GUARDED));
	assert_true(queue(f, 1, HPX_SLOT_GUARDED));
	assert_true(queue(f, 2, HPX_SLOT_GUARDED));
	assert_true(queue(f, 3, HPX_SLOT_GUARDED));
	hpx_slot_release(&f->slot[2]);
	hpx_slot_release(&f->slot[0]);
	/* Granted, and gone before it was told: the next one has it. */
	assert_int_equal(f->slot[1].state, HPX_SLOT_HELD);
	hpx_slot_release(&f->slot[1]);
	assert_told(f, "", "3");
}

static void guarded_requests_keep_what_is_beyond_the_share(void **state)
{
	struct fixture *f = *state;

	limit(f, 4, 3, 1, 4);
	assert_true(take(f, 0, HPX_SLOT_TUNNEL));
	assert_false(take(f, 1, HPX_SLOT_TUNNEL));
	assert_true(take(f, 1, HPX_SLOT_PASS));
	assert_true(take(f, 2, HPX_SLOT_PASS));
	assert_true(queue(f, 3, HPX_SLOT_PASS));
	assert_true(take(f, 4, HPX_SLOT_GUARDED));
	assert_true(queue(f, 5, HPX_SLOT_GUARDED));
	/* The longest waiting one has no room in its share: the next one gets it. */
	hpx_slot_release(&f->slot[4]);
	assert_told(f, "", "5");
	hpx_slot_release(&f->slot[0]);
	assert_told(f, "5", "53");
}

static void other_limits_hold_for_the_slots_to_come(void **state)
{
	struct fixture *f = *state;

	limit(f, 2, 2, 2, 4);
	assert_true(take(f, 0, HPX_SLOT_GUARDED));
	assert_true(take(f, 1, HPX_SLOT_GUARDED));
	assert_true(queue(f, 2, HPX_SLOT_GUARDED));
	assert_true(queue(f, 3, HPX_SLOT_GUARDED));
	limit(f, 1, 1, 1, 1);
	hpx_slot_release(&f->slot[0]);
	assert_told(f, "", "");
	assert_false(queue(f, 4, HPX_SLOT_GUARDED));
	limit(f, 3, 3, 3, 4);
	assert_told(f, "", "23");
}

static void a_moved_slot_is_the_same_slot(void **state)
{
	struct fixture *f = *state;

	limit(f, 1, 1, 1, 1);
	assert_true(take(f, 0, HPX_SLOT_PASS));
	hpx_slot_move(&f->slot[0], &f->slot[1]);
	hpx_slot_release(&f->slot[0]);
	assert_int_equal(f->slots.held[HPX_SLOT_PASS], 1);
	assert_false(take(f, 2, HPX_SLOT_PASS));
	hpx_slot_release(&f->slot[1]);
	assert_true(take(f, 2, HPX_SLOT_PASS));
}

#define SLOT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SLOT_TEST(the_first_in_the_queue_is_served_first),
		SLOT_TEST(a_full_queue_takes_no_more),
		SLOT_TEST(leaving_the_queue_makes_room),
		SLOT_TEST(guarded_requests_keep_what_is_beyond_the_share),
		SLOT_TEST(other_limits_hold_for_the_slots_to_come),
		SLOT_TEST(a_moved_slot_is_the_same_slot),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
