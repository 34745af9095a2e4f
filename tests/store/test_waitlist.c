/* Shows that waiters are woken once, by their own operation, within bounds,
 * and that of a wake and a remove exactly one wins. */
#include "../unit/test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "store/waitlist.h"

static struct hpx_operation_id id_of(unsigned n)
{
	struct hpx_operation_id id = { { 0 } };

	memcpy(id.bytes, &n, sizeof(n));
	return id;
}

static void note_wake(struct hpx_waiter *waiter)
{
	atomic_fetch_add((_Atomic unsigned *)waiter->user, 1);
}

static void wakes_all_of_one_operation(void **state)
{
	struct hpx_waitlist *list = hpx_waitlist_new(10, 100);
	struct hpx_operation_id one = id_of(1);
	_Atomic unsigned woken[3] = { 0, 0, 0 };
	struct hpx_waiter waiters[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		waiters[i] = (struct hpx_waiter){ .id = id_of(i == 2 ? 2 : 1),
						  .wake = note_wake,
						  .user = &woken[i] };
		assert_status(hpx_waitlist_add(list, &waiters[i]), HPX_OK);
	}
	assert_int_equal(hpx_waitlist_count(list), 3);
	hpx_waitlist_wake(list, &one);
	hpx_waitlist_wake(list, &one);
	assert_int_equal(woken[0], 1);
	assert_int_equal(woken[1], 1);
	assert_int_equal(woken[2], 0);
	assert_false(hpx_waitlist_remove(list, &waiters[0]));
	assert_true(hpx_waitlist_remove(list, &waiters[2]));
	assert_false(hpx_waitlist_remove(list, &waiters[2]));
	assert_int_equal(hpx_waitlist_count(list), 0);
	hpx_waitlist_free(list);
}

static void bounds_are_kept(void **state)
{
	struct hpx_waitlist *list = hpx_waitlist_new(2, 3);
	static const struct {
		unsigned operation;
		enum hpx_status status;
	} rows[] = { { 1, HPX_OK }, { 1, HPX_OK }, { 1, HPX_FULL }, { 2, HPX_OK }, { 3, HPX_FULL } };
	struct hpx_waiter waiters[5];
	_Atomic unsigned woken = 0;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		waiters[i] = (struct hpx_waiter){ .id = id_of(rows[i].operation),
						  .wake = note_wake,
						  .user = &woken };
		assert_status(hpx_waitlist_add(list, &waiters[i]), rows[i].status);
	}
	for (unsigned i = 0; i < 5; i++)
		hpx_waitlist_remove(list, &waiters[i]);
	hpx_waitlist_free(list);
}

/* Two operations whose ids fall into one bucket must not wake each other. */
static void one_bucket_holds_several_operations(void **state)
{
	struct hpx_waitlist *list = hpx_waitlist_new(1, 10);
	struct hpx_operation_id same = id_of(1);
	_Atomic unsigned woken[2] = { 0, 0 };
	struct hpx_waiter a = { .id = id_of(1), .wake = note_wake, .user = &woken[0] };
	struct hpx_waiter b = { .id = id_of(1), .wake = note_wake, .user = &woken[1] };

	(void)state;
	b.id.bytes[31] = 9;
	assert_status(hpx_waitlist_add(list, &a), HPX_OK);
	assert_status(hpx_waitlist_add(list, &b), HPX_OK);
	hpx_waitlist_wake(list, &same);
	assert_int_equal(woken[0], 1);
	assert_int_equal(woken[1], 0);
	assert_true(hpx_waitlist_remove(list, &b));
	hpx_waitlist_free(list);
}

static void all_who_are_waited_for_have_their_turn(void **state)
{
	struct hpx_waitlist *list = hpx_waitlist_new(10, 100);
	struct hpx_waiter waiters[10];
	struct hpx_operation_id ids[3];
	bool seen[10] = { false };
	unsigned cursor = 0;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		waiters[i] = (struct hpx_waiter){ .id = id_of(i * 100), .wake = note_wake };
		assert_status(hpx_waitlist_add(list, &waiters[i]), HPX_OK);
	}
	for (unsigned call = 0; call < 10; call++) {
		size_t count = hpx_waitlist_ids(list, &cursor, ids, 3);
		assert_in_range(count, 1, 3);
		for (size_t k = 0; k < count; k++)
			for (unsigned i = 0; i < 10; i++)
				seen[i] |= hpx_operation_id_eq(&ids[k], &waiters[i].id);
	}
	for (unsigned i = 0; i < 10; i++) {
		assert_true(seen[i]);
		hpx_waitlist_remove(list, &waiters[i]);
	}
	assert_int_equal(hpx_waitlist_ids(list, &cursor, ids, 3), 0);
	hpx_waitlist_free(list);
}

#define ROUNDS 2000

struct contest {
	struct hpx_waitlist *list;
	pthread_barrier_t barrier;
	struct hpx_operation_id id;
};

static void *wake_each_round(void *arg)
{
	struct contest *contest = arg;

	for (unsigned i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&contest->barrier);
		hpx_waitlist_wake(contest->list, &contest->id);
		pthread_barrier_wait(&contest->barrier);
	}
	return NULL;
}

static void of_wake_and_remove_one_wins(void **state)
{
	struct contest contest = { .list = hpx_waitlist_new(1, 1), .id = id_of(1) };
	pthread_t thread;

	(void)state;
	pthread_barrier_init(&contest.barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, wake_each_round, &contest), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		_Atomic unsigned woken = 0;
		struct hpx_waiter waiter = { .id = contest.id, .wake = note_wake, .user = &woken };
		assert_status(hpx_waitlist_add(contest.list, &waiter), HPX_OK);
		pthread_barrier_wait(&contest.barrier);
		bool removed = hpx_waitlist_remove(contest.list, &waiter);
		pthread_barrier_wait(&contest.barrier);
		assert_int_equal(woken, removed ? 0 : 1);
	}
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&contest.barrier);
	hpx_waitlist_free(contest.list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wakes_all_of_one_operation),
		cmocka_unit_test(bounds_are_kept),
		cmocka_unit_test(one_bucket_holds_several_operations),
		cmocka_unit_test(all_who_are_waited_for_have_their_turn),
		cmocka_unit_test(of_wake_and_remove_one_wins),
	};
	return cmocka_run_group_tests_name("waitlist", tests, NULL, NULL);
}
