/* Shows that the n-th call of the store may fail, before it ran or after, once
 * or several times in a row, and still every operation is executed once and
 * its answer stored; so is what is restored after a backup. */
#include "client.h"

struct plan {
	enum hpx_store_point before_or_after[2]; /* points of run and of recover */
	unsigned nth;                            /* the call that fails first */
	unsigned length;                         /* how many in a row */
	unsigned calls;
	bool fired;
};

static enum hpx_status fault(void *user, enum hpx_store_point point)
{
	struct plan *plan = user;

	if (point != plan->before_or_after[0] && point != plan->before_or_after[1])
		return HPX_OK;
	plan->calls++;
	if (plan->calls < plan->nth || plan->calls >= plan->nth + plan->length)
		return HPX_OK;
	plan->fired = true;
	return HPX_IO;
}

static bool run_with(struct fixture *f, const struct plan *wanted, const char *what)
{
	struct plan plan = *wanted;
	struct hpx_committer_options options = { .store = f->store, .probe_ms = 5 };
	struct client client = { .f = f };

	f->store->fault = fault;
	f->store->fault_user = &plan;
	assert_status(hpx_committer_start(&options, &client.committer), HPX_OK);
	client_run(&client);
	hpx_committer_stop(client.committer, 1000);
	hpx_committer_free(client.committer);
	f->store->fault = NULL;
	client_check(&client, what, plan.nth);
	return plan.fired;
}

static void run_until_no_call_is_left(struct fixture *f, struct plan plan, const char *what)
{
	bool fired = true;

	for (plan.nth = 1; fired; plan.nth++) {
		fixture_afresh(f);
		fired = run_with(f, &plan, what);
	}
	print_message("%s, %u in a row: %u calls\n", what, plan.length, plan.nth - 2);
}

static void the_nth_call_fails_before_it_ran(void **state)
{
	static const unsigned lengths[] = { 1, 2, 3 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		run_until_no_call_is_left(*state,
					  (struct plan){ { HPX_STORE_RUN_BEFORE,
							   HPX_STORE_RECOVER_BEFORE },
							 .length = lengths[i] },
					  "before");
}

static void the_nth_call_fails_although_it_ran(void **state)
{
	static const unsigned lengths[] = { 1, 2, 3 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		run_until_no_call_is_left(*state,
					  (struct plan){ { HPX_STORE_RUN_AFTER,
							   HPX_STORE_RECOVER_AFTER },
							 .length = lengths[i] },
					  "after");
}

/* A RESTORE that failed is run again, as whoever runs `hapax reconcile --restore` again
 * does: it is known then, and was restored once, also where the first one had run. */
static void a_restore_that_failed_is_run_again(void **state)
{
	static const enum hpx_store_point points[] = { HPX_STORE_RUN_BEFORE, HPX_STORE_RUN_AFTER };
	struct fixture *f = *state;

	for (unsigned key = 0; key < sizeof(points) / sizeof(points[0]); key++) {
		struct plan plan = { { points[key], points[key] }, .nth = 1, .length = 1 };
		struct hpx_store_op op = op_of(HPX_VERB_RESTORE, key, 1), *ops = &op;

		op.restore.retention_ms = RETENTION_MS;
		f->store->fault = fault;
		f->store->fault_user = &plan;
		assert_status(hpx_store_run(f->store, &ops, 1, NULL), HPX_IO);
		f->store->fault = NULL;
		assert_string_equal(state_of(f, key), points[key] == HPX_STORE_RUN_AFTER ? "completed" : "none");
		assert_status(run_op(f, &op), HPX_OK);
		assert_string_equal(state_of(f, key), "completed");
		assert_string_equal(events_of(f, key), "restored");
		assert_string_equal(reserve(f, key, 1, 2), "replay");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_EVERY_DRIVER(the_nth_call_fails_before_it_ran),
		ON_EVERY_DRIVER(the_nth_call_fails_although_it_ran),
		ON_EVERY_DRIVER(a_restore_that_failed_is_run_again),
	};
	return run_on_drivers("fault", tests);
}
