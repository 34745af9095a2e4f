/* Shows that the filter never denies what it was told, seldom takes a stranger for
 * an acquaintance, and that a server's look says the same with it as without. */
#include "fixture.h"

#include "base/bytes.h"
#include "store/id_filter.h"

enum { BODY = 1,
       A = 11,
       B = 12 };

static struct hpx_operation_id random_id(void)
{
	struct hpx_operation_id id;

	hpx_random(id.bytes, sizeof(id.bytes));
	return id;
}

static unsigned strangers_that_pass(const struct hpx_id_filter *filter, unsigned of)
{
	unsigned passed = 0;

	for (unsigned i = 0; i < of; i++) {
		struct hpx_operation_id id = random_id();
		passed += hpx_id_filter_may_have(filter, id.bytes);
	}
	return passed;
}

static void what_was_added_is_there_and_hardly_anything_else(void **state)
{
	enum { COUNT = 1000000,
	       ASKED = 100000 };
	struct hpx_id_filter *filter = hpx_id_filter_new(COUNT);
	struct hpx_operation_id *ids = calloc(COUNT, sizeof(*ids));

	(void)state;
	assert_non_null(filter);
	assert_non_null(ids);
	assert_int_equal(strangers_that_pass(filter, ASKED), 0);
	for (unsigned i = 0; i < COUNT; i++) {
		ids[i] = random_id();
		hpx_id_filter_add(filter, ids[i].bytes);
	}
	for (unsigned i = 0; i < COUNT; i++)
		assert_true(hpx_id_filter_may_have(filter, ids[i].bytes));
	unsigned passed = strangers_that_pass(filter, ASKED);
	print_message("%u of %u strangers pass\n", passed, ASKED);
	assert_in_range(passed, 0, ASKED / 1000);
	/* Stored and taken up again, it says the same. */
	struct hpx_id_filter *again = hpx_id_filter_of(hpx_id_filter_bytes(filter));
	assert_non_null(again);
	for (unsigned i = 0; i < COUNT; i++)
		assert_true(hpx_id_filter_may_have(again, ids[i].bytes));
	hpx_id_filter_free(again);
	assert_null(hpx_id_filter_of(HPX_SPAN("short")));
	assert_null(hpx_id_filter_of(HPX_SPAN("")));
	free(ids);
	hpx_id_filter_free(filter);
}

/* The decision's name of a look, or the status'. */
static const char *look(struct fixture *f, unsigned key)
{
	struct hpx_ask ask = ask_of(f->store, key, BODY, B);
	struct hpx_answer *replay = NULL;
	struct hpx_decision decision;
	enum hpx_status status = hpx_store_peek(f->reader, &ask, policy(), &decision, &replay);

	hpx_answer_free(replay);
	return status == HPX_OK ? hpx_decision_name(decision.kind) : hpx_status_name(status);
}

static void maintain(struct fixture *f)
{
	char problem[HPX_STORE_PROBLEM_SIZE];

	assert_status(hpx_store_maintain(f->store, problem), HPX_OK);
}

static void expect_all_found(struct fixture *f, unsigned count)
{
	for (unsigned key = 0; key < count; key++) {
		assert_string_equal(look(f, 3 * key), "replay");
		assert_string_equal(look(f, 3 * key + 1), "in_progress");
		assert_string_equal(look(f, 3 * key + 2), "NOT_FOUND");
	}
}

static void a_look_says_the_same_before_while_and_after_it_was_read(void **state)
{
	enum { COUNT = 30 };
	struct fixture *f = *state;

	for (unsigned key = 0; key < COUNT; key++) {
		reserve(f, 3 * key, BODY, A);
		assert_status(complete(f, 3 * key, A, "y"), HPX_OK);
		reserve(f, 3 * key + 1, BODY, A);
	}
	expect_all_found(f, COUNT);
	maintain(f);
	expect_all_found(f, COUNT);
	for (unsigned key = COUNT; key < 2 * COUNT; key++) {
		reserve(f, 3 * key, BODY, A);
		assert_status(complete(f, 3 * key, A, "y"), HPX_OK);
		reserve(f, 3 * key + 1, BODY, A);
	}
	expect_all_found(f, 2 * COUNT);
	/* What is not there any more is not found, whatever the filter believes. */
	assert_status(act(f, HPX_VERB_FORGET, 0, A), HPX_OK);
	assert_string_equal(look(f, 0), "NOT_FOUND");
}

/* Another process wrote it: the look may miss it, the reservation does not. */
static void a_strangers_row_is_found_by_the_reservation(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_options options = { .url = hpx_span_of(f->url) };
	struct fixture other = *f;

	maintain(f);
	assert_status(hpx_store_open(&options, &other.store, NULL), HPX_OK);
	assert_string_equal(reserve(&other, 1, BODY, A), "created");
	hpx_store_close(other.store);
	assert_string_equal(look(f, 1), "NOT_FOUND");
	assert_string_equal(reserve(f, 1, BODY, B), "in_progress");
	assert_string_equal(look(f, 1), "in_progress");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_added_is_there_and_hardly_anything_else),
		ON_SQLITE(a_look_says_the_same_before_while_and_after_it_was_read),
		ON_SQLITE(a_strangers_row_is_found_by_the_reservation),
	};
	return run_on_drivers("id_filter", tests);
}
