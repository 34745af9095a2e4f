/* Shows that the committer groups what waits, settles every op exactly once,
 * keeps what must not be lost while the store is down, wakes waiters before it
 * tells, takes many ops at once, and tells a listener when all of them are settled. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>

#include "store/committer.h"

enum { BODY = 1,
       A = 11,
       B = 12 };

/* A store that fails while `down` is set, before or after it really ran. */
struct switchboard {
	_Atomic bool down;
	_Atomic bool after;
	_Atomic bool full; /* by a full disk */
	_Atomic unsigned runs;
	_Atomic unsigned gate_runs; /* runs that wait at the gate */
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool gate_open;
	unsigned at_gate;
	_Atomic unsigned went_down;
	_Atomic unsigned came_up;
};

static void wait_at_gate(struct switchboard *board)
{
	pthread_mutex_lock(&board->mutex);
	board->at_gate++;
	pthread_cond_broadcast(&board->cond);
	while (!board->gate_open)
		pthread_cond_wait(&board->cond, &board->mutex);
	pthread_mutex_unlock(&board->mutex);
}

static void await_at_gate(struct switchboard *board)
{
	pthread_mutex_lock(&board->mutex);
	while (board->at_gate == 0)
		pthread_cond_wait(&board->cond, &board->mutex);
	pthread_mutex_unlock(&board->mutex);
}

static void open_gate(struct switchboard *board)
{
	pthread_mutex_lock(&board->mutex);
	board->gate_open = true;
	pthread_cond_broadcast(&board->cond);
	pthread_mutex_unlock(&board->mutex);
}

static enum hpx_status fault(void *user, enum hpx_store_point point)
{
	struct switchboard *board = user;

	if (point == HPX_STORE_RUN_BEFORE) {
		atomic_fetch_add(&board->runs, 1);
		if (atomic_load(&board->gate_runs) > 0) {
			atomic_fetch_sub(&board->gate_runs, 1);
			wait_at_gate(board);
		}
	}
	if (point != (atomic_load(&board->after) ? HPX_STORE_RUN_AFTER : HPX_STORE_RUN_BEFORE))
		return HPX_OK;
	if (!atomic_load(&board->down))
		return HPX_OK;
	return atomic_load(&board->full) ? HPX_FULL : HPX_IO;
}

static void changed(void *user, enum hpx_status status, const char *problem)
{
	struct switchboard *board = user;

	(void)problem;
	atomic_fetch_add(status == HPX_OK ? &board->came_up : &board->went_down, 1);
}

struct setting {
	struct fixture *f;
	struct switchboard board;
	struct hpx_waitlist *waitlist;
	struct hpx_committer *committer;
};

/* `reason_ms`: until another reason for being down is told. */
static void start_telling(struct setting *s, struct fixture *f, size_t batch_max, int64_t reason_ms)
{
	struct hpx_committer_options options = { .store = f->store,
						 .batch_max = batch_max,
						 .probe_ms = reason_ms > 0 ? 5 : 0,
						 .reason_ms = reason_ms,
						 .changed = changed,
						 .user = &s->board };

	*s = (struct setting){ .f = f };
	pthread_mutex_init(&s->board.mutex, NULL);
	pthread_cond_init(&s->board.cond, NULL);
	s->waitlist = hpx_waitlist_new(10, 100);
	options.waitlist = s->waitlist;
	f->store->fault = fault;
	f->store->fault_user = &s->board;
	assert_status(hpx_committer_start(&options, &s->committer), HPX_OK);
}

static void start(struct setting *s, struct fixture *f, size_t batch_max)
{
	start_telling(s, f, batch_max, 0);
}

static void stop(struct setting *s)
{
	hpx_committer_stop(s->committer, 1000);
	hpx_committer_free(s->committer);
	s->f->store->fault = NULL;
	hpx_waitlist_free(s->waitlist);
	pthread_cond_destroy(&s->board.cond);
	pthread_mutex_destroy(&s->board.mutex);
}

/* Ops that count down when done. */
struct countdown {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	unsigned left;
};

static void countdown_init(struct countdown *c, unsigned left)
{
	pthread_mutex_init(&c->mutex, NULL);
	pthread_cond_init(&c->cond, NULL);
	c->left = left;
}

static void countdown_done(struct hpx_store_op *op)
{
	struct countdown *c = op->user;

	pthread_mutex_lock(&c->mutex);
	c->left--;
	pthread_cond_signal(&c->cond);
	pthread_mutex_unlock(&c->mutex);
}

static void countdown_wait(struct countdown *c)
{
	pthread_mutex_lock(&c->mutex);
	while (c->left > 0)
		pthread_cond_wait(&c->cond, &c->mutex);
	pthread_mutex_unlock(&c->mutex);
	pthread_cond_destroy(&c->cond);
	pthread_mutex_destroy(&c->mutex);
}

#define MANY 64

struct many {
	struct hpx_ask asks[MANY];
	struct hpx_store_op ops[MANY];
	struct countdown countdown;
};

/* Reservations of keys 0 to MANY-1, submitted while the first run waits. */
static void submit_behind_the_gate(struct setting *s, struct many *many)
{
	atomic_store(&s->board.gate_runs, 1);
	countdown_init(&many->countdown, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		many->asks[i] = ask_of(s->f->store, i, BODY, A);
		many->ops[i] = op_of(HPX_VERB_RESERVE, i, A);
		many->ops[i].reserve.ask = &many->asks[i];
		many->ops[i].done = countdown_done;
		many->ops[i].user = &many->countdown;
		hpx_committer_submit(s->committer, &many->ops[i]);
		if (i == 0)
			await_at_gate(&s->board);
	}
	open_gate(&s->board);
	countdown_wait(&many->countdown);
}

static void what_waits_is_one_transaction(void **state)
{
	static struct many many;
	struct setting s;

	start(&s, *state, 0);
	submit_behind_the_gate(&s, &many);
	assert_int_equal(atomic_load(&s.board.runs), 2);
	for (unsigned i = 0; i < MANY; i++) {
		assert_status(many.ops[i].status, HPX_OK);
		assert_int_equal(many.ops[i].decision.kind, HPX_DECISION_EXECUTE);
	}
	assert_int_equal(hpx_counter_read(&s.f->store->batch_ops.sum), MANY);
	stop(&s);
}

static void a_batch_has_its_bound(void **state)
{
	static struct many many;
	struct setting s;

	start(&s, *state, 9);
	submit_behind_the_gate(&s, &many);
	assert_int_equal(atomic_load(&s.board.runs), 1 + (MANY - 1) / 9);
	stop(&s);
}

#define THREADS 8
#define PER_THREAD 50

struct client {
	struct setting *s;
	unsigned number;
	pthread_t thread;
};

static void *client_main(void *arg)
{
	struct client *client = arg;
	struct setting *s = client->s;

	for (unsigned i = 0; i < PER_THREAD; i++) {
		unsigned key = client->number * PER_THREAD + i;
		struct hpx_ask ask = ask_of(s->f->store, key, BODY, key + 1);
		struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, key + 1);
		struct hpx_answer answer = { .status = 200, .kept = true, .body = HPX_SPAN("y") };

		op.reserve.ask = &ask;
		hpx_committer_submit_wait(s->committer, &op);
		if (op.status != HPX_OK || op.decision.kind != HPX_DECISION_EXECUTE)
			return (void *)"reserve";
		op = op_of(HPX_VERB_COMPLETE, key, key + 1);
		op.complete.answer = &answer;
		hpx_committer_submit_wait(s->committer, &op);
		if (op.status != HPX_OK)
			return (void *)"complete";
	}
	return NULL;
}

static void many_threads_share_commits(void **state)
{
	struct client clients[THREADS];
	struct hpx_store_stats stats;
	struct setting s;
	void *trouble = NULL;

	start(&s, *state, 0);
	for (unsigned i = 0; i < THREADS; i++) {
		clients[i] = (struct client){ .s = &s, .number = i };
		assert_int_equal(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]),
				 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(clients[i].thread, &trouble);
		assert_null(trouble);
	}
	print_message("%u ops in %u commits\n", 2 * THREADS * PER_THREAD,
		      atomic_load(&s.board.runs));
	assert_in_range(atomic_load(&s.board.runs), 1, 2 * THREADS * PER_THREAD);
	stop(&s);
	assert_status(hpx_store_stats(s.f->reader, &stats), HPX_OK);
	assert_int_equal(stats.operations[HPX_STATE_COMPLETED], THREADS * PER_THREAD);
}

static enum hpx_status submit_reserve(struct setting *s, unsigned key, unsigned token)
{
	struct hpx_ask ask = ask_of(s->f->store, key, BODY, token);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, token);

	op.reserve.ask = &ask;
	hpx_committer_submit_wait(s->committer, &op);
	hpx_answer_free(op.reserve.replay);
	return op.status;
}

/* Returns once the store has taken something: nothing of this verb is lost. */
static void await_up(struct setting *s)
{
	struct hpx_store_op op = op_of(HPX_VERB_RECIPE, 0, 0);

	op.recipe.text = HPX_SPAN("text");
	hpx_committer_submit_wait(s->committer, &op);
	assert_status(op.status, HPX_OK);
}

/* HPX_FULL means that nothing was written, and here nobody knows. */
static void a_write_into_a_full_disk_is_no_refusal(void **state)
{
	struct setting s;

	start(&s, *state, 0);
	atomic_store(&s.board.full, true);
	atomic_store(&s.board.after, true);
	atomic_store(&s.board.down, true);
	assert_status(submit_reserve(&s, 1, A), HPX_IO);
	atomic_store(&s.board.down, false);
	stop(&s);
}

static void while_down_reservations_are_refused_and_answers_kept(void **state)
{
	struct setting s;
	struct countdown countdown;
	struct hpx_answer answer = { .status = 200, .kept = true, .body = HPX_SPAN("kept") };
	struct hpx_store_op op = op_of(HPX_VERB_COMPLETE, 1, A);

	start(&s, *state, 0);
	assert_status(submit_reserve(&s, 1, A), HPX_OK);
	atomic_store(&s.board.down, true);
	assert_status(submit_reserve(&s, 2, A), HPX_IO);
	assert_false(hpx_committer_healthy(s.committer));
	assert_int_equal(atomic_load(&s.board.went_down), 1);
	unsigned runs = atomic_load(&s.board.runs);
	assert_status(submit_reserve(&s, 3, A), HPX_UNAVAILABLE);
	assert_int_equal(atomic_load(&s.board.runs), runs);
	countdown_init(&countdown, 1);
	op.complete.answer = &answer;
	op.done = countdown_done;
	op.user = &countdown;
	hpx_committer_submit(s.committer, &op);
	assert_status(submit_reserve(&s, 3, A), HPX_UNAVAILABLE);
	atomic_store(&s.board.down, false);
	countdown_wait(&countdown);
	assert_status(op.status, HPX_OK);
	assert_true(hpx_committer_healthy(s.committer));
	assert_int_equal(atomic_load(&s.board.came_up), 1);
	assert_status(submit_reserve(&s, 3, A), HPX_OK);
	stop(&s);
	assert_string_equal(body_of(s.f, 1), "kept");
	assert_string_equal(state_of(s.f, 2), "none");
}

/* Until the store was asked so many times more. */
static void await_probes(struct setting *s, unsigned count)
{
	unsigned wanted = atomic_load(&s->board.runs) + count;

	while (atomic_load(&s->board.runs) < wanted)
		(void)submit_reserve(s, 4, A);
}

/* A store that stays down is told of once for each reason, not once for each probe, and
 * reasons that change quickly are not told each time. */
static void another_reason_for_being_down_is_told(void **state)
{
	static const struct {
		int64_t reason_ms;
		unsigned told;
	} rows[] = { { 1, 2 }, { 3600000, 1 } };
	struct setting s;

	for (size_t i = 0; i < 2; i++) {
		start_telling(&s, *state, 0, rows[i].reason_ms);
		atomic_store(&s.board.full, false);
		atomic_store(&s.board.down, true);
		await_probes(&s, 6);
		assert_int_equal(atomic_load(&s.board.went_down), 1);
		atomic_store(&s.board.full, true);
		await_probes(&s, 6);
		assert_int_equal(atomic_load(&s.board.went_down), rows[i].told);
		atomic_store(&s.board.down, false);
		stop(&s);
	}
}

/* Mistake 15: an error after the reservation leaves the lock behind. */
static void a_reservation_that_committed_unheard_is_undone(void **state)
{
	struct setting s;
	struct hpx_store_op undo = op_of(HPX_VERB_FAIL, 1, A);

	start(&s, *state, 0);
	atomic_store(&s.board.after, true);
	atomic_store(&s.board.down, true);
	assert_status(submit_reserve(&s, 1, A), HPX_IO);
	assert_string_equal(state_of(s.f, 1), "in_progress");
	atomic_store(&s.board.down, false);
	hpx_committer_submit_wait(s.committer, &undo);
	assert_status(undo.status, HPX_OK);
	assert_string_equal(state_of(s.f, 1), "failed_retryable");
	undo = op_of(HPX_VERB_FAIL, 2, A);
	hpx_committer_submit_wait(s.committer, &undo);
	assert_status(undo.status, HPX_STALE);
	stop(&s);
}

static void a_settled_refusal_is_not_tried_again(void **state)
{
	struct setting s;
	struct hpx_store_op op = op_of(HPX_VERB_MARK_UNKNOWN, 1, B);

	start(&s, *state, 0);
	assert_status(submit_reserve(&s, 1, A), HPX_OK);
	hpx_committer_submit_wait(s.committer, &op);
	assert_status(op.status, HPX_STALE);
	assert_int_equal(op.tries, 0);
	stop(&s);
}

struct watcher {
	struct hpx_waiter waiter;
	_Atomic bool woken;
	_Atomic bool woken_before_done;
};

static void watcher_wake(struct hpx_waiter *waiter)
{
	atomic_store(&((struct watcher *)waiter)->woken, true);
}

static void watcher_done(struct hpx_store_op *op)
{
	struct watcher *watcher = op->user;

	atomic_store(&watcher->woken_before_done, atomic_load(&watcher->woken));
}

static void waiters_are_woken_before_the_submitter_is_told(void **state)
{
	static const enum hpx_verb verbs[] = { HPX_VERB_COMPLETE, HPX_VERB_FAIL, HPX_VERB_RELEASE,
					       HPX_VERB_MARK_UNKNOWN, HPX_VERB_FORGET };
	struct hpx_answer answer = { .status = 200 };
	struct setting s;

	start(&s, *state, 0);
	for (unsigned i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		struct watcher watcher = { .waiter = { .id = id_of(i), .wake = watcher_wake } };
		struct hpx_store_op op = op_of(verbs[i], i, A);

		assert_status(submit_reserve(&s, i, A), HPX_OK);
		assert_status(hpx_waitlist_add(s.waitlist, &watcher.waiter), HPX_OK);
		op_answers(&op, &answer);
		op_forces(&op, true);
		op.done = watcher_done;
		op.user = &watcher;
		hpx_committer_submit(s.committer, &op);
		await_up(&s); /* runs behind it */
		assert_status(op.status, HPX_OK);
		assert_true(atomic_load(&watcher.woken_before_done));
	}
	stop(&s);
}

static void a_sweep_wakes_whom_it_touched(void **state)
{
	struct setting s;
	struct watcher watcher = { .waiter = { .id = id_of(1), .wake = watcher_wake } };
	struct hpx_touched touched[10];
	struct hpx_store_op op = op_of(HPX_VERB_SWEEP, 0, 0);

	start(&s, *state, 0);
	assert_status(submit_reserve(&s, 1, A), HPX_OK);
	assert_status(hpx_waitlist_add(s.waitlist, &watcher.waiter), HPX_OK);
	advance(s.f, LEASE_MS + 1);
	op.sweep.limit = 10;
	op.sweep.touched = touched;
	hpx_committer_submit_wait(s.committer, &op);
	assert_int_equal(op.sweep.count, 1);
	assert_true(atomic_load(&watcher.woken));
	stop(&s);
}

static void stopping_runs_what_is_queued_and_ends_the_rest(void **state)
{
	struct setting s;
	struct countdown countdown;
	struct hpx_answer answer = { .status = 200 };
	struct hpx_store_op ops[2] = { op_of(HPX_VERB_COMPLETE, 1, A),
				       op_of(HPX_VERB_COMPLETE, 2, A) };

	start(&s, *state, 0);
	assert_status(submit_reserve(&s, 1, A), HPX_OK);
	assert_status(submit_reserve(&s, 2, A), HPX_OK);
	countdown_init(&countdown, 2);
	for (unsigned i = 0; i < 2; i++) {
		ops[i].complete.answer = &answer;
		ops[i].done = countdown_done;
		ops[i].user = &countdown;
	}
	hpx_committer_submit(s.committer, &ops[0]);
	await_up(&s);
	atomic_store(&s.board.down, true);
	hpx_committer_submit(s.committer, &ops[1]);
	hpx_committer_stop(s.committer, 100);
	hpx_committer_free(s.committer);
	countdown_wait(&countdown);
	assert_status(ops[0].status, HPX_OK);
	assert_status(ops[1].status, HPX_CLOSED);
	s.committer = NULL;
	stop(&s);
}

/* Counts what is done, and how much of it the listener has seen. */
struct tally {
	struct hpx_committer_listener listener;
	_Atomic unsigned done;
	_Atomic unsigned told; /* `done` when the listener was called last */
	_Atomic unsigned calls;
};

static void tally_done(struct hpx_store_op *op)
{
	struct tally *tally = op->user;

	atomic_fetch_add(&tally->done, 1);
}

static void tally_settled(struct hpx_committer_listener *listener)
{
	struct tally *tally = (struct tally *)listener;

	atomic_store(&tally->told, atomic_load(&tally->done));
	atomic_fetch_add(&tally->calls, 1);
}

/* A list of reservations of keys 0 to MANY-1. */
static void make_list(struct setting *s, struct many *many, struct tally *tally,
		      struct hpx_op_list *list)
{
	*list = (struct hpx_op_list){ .first = NULL };
	for (unsigned i = 0; i < MANY; i++) {
		many->asks[i] = ask_of(s->f->store, i, BODY, A);
		many->ops[i] = op_of(HPX_VERB_RESERVE, i, A);
		many->ops[i].reserve.ask = &many->asks[i];
		many->ops[i].done = tally_done;
		many->ops[i].user = tally;
		hpx_op_list_add(list, &many->ops[i]);
	}
	assert_int_equal(list->count, MANY);
}

static void a_list_is_one_transaction_and_told_once(void **state)
{
	static struct many many;
	struct tally tally = { .listener.settled = tally_settled };
	struct hpx_op_list list;
	struct setting s;

	start(&s, *state, 0);
	hpx_committer_listen(s.committer, &tally.listener);
	make_list(&s, &many, &tally, &list);
	hpx_committer_submit_all(s.committer, &list);
	assert_null(list.first);
	assert_int_equal(list.count, 0);
	await_up(&s); /* in a run behind theirs, or in the same */
	hpx_committer_stop(s.committer, 1000);
	assert_int_equal(hpx_counter_read(&s.f->store->batch_ops.sum), MANY + 1);
	assert_in_range(atomic_load(&s.board.runs), 1, 2);
	assert_int_equal(atomic_load(&tally.done), MANY);
	assert_int_equal(atomic_load(&tally.told), MANY);
	/* One for each run, and one by the end of the thread. */
	assert_in_range(atomic_load(&tally.calls), 2, 3);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(many.ops[i].decision.kind, HPX_DECISION_EXECUTE);
	stop(&s);
}

static void an_empty_list_does_nothing(void **state)
{
	struct hpx_op_list list = { .first = NULL };
	struct setting s;

	start(&s, *state, 0);
	hpx_committer_submit_all(s.committer, &list);
	assert_status(submit_reserve(&s, 1, A), HPX_OK);
	assert_int_equal(atomic_load(&s.board.runs), 1);
	stop(&s);
}

static void a_list_behind_the_end_comes_back_closed(void **state)
{
	static struct many many;
	struct tally tally = { .listener.settled = tally_settled };
	struct hpx_op_list list;
	struct setting s;

	start(&s, *state, 0);
	make_list(&s, &many, &tally, &list);
	hpx_committer_stop(s.committer, 1000);
	hpx_committer_submit_all(s.committer, &list);
	assert_null(list.first);
	assert_int_equal(atomic_load(&tally.done), MANY);
	for (unsigned i = 0; i < MANY; i++)
		assert_status(many.ops[i].status, HPX_CLOSED);
	assert_int_equal(atomic_load(&s.board.runs), 0);
	stop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_EVERY_DRIVER(what_waits_is_one_transaction),
		ON_EVERY_DRIVER(a_batch_has_its_bound),
		ON_EVERY_DRIVER(many_threads_share_commits),
		ON_EVERY_DRIVER(a_write_into_a_full_disk_is_no_refusal),
		ON_EVERY_DRIVER(while_down_reservations_are_refused_and_answers_kept),
		ON_EVERY_DRIVER(another_reason_for_being_down_is_told),
		ON_EVERY_DRIVER(a_reservation_that_committed_unheard_is_undone),
		ON_EVERY_DRIVER(a_settled_refusal_is_not_tried_again),
		ON_EVERY_DRIVER(waiters_are_woken_before_the_submitter_is_told),
		ON_EVERY_DRIVER(a_sweep_wakes_whom_it_touched),
		ON_EVERY_DRIVER(stopping_runs_what_is_queued_and_ends_the_rest),
		ON_EVERY_DRIVER(a_list_is_one_transaction_and_told_once),
		ON_EVERY_DRIVER(an_empty_list_does_nothing),
		ON_EVERY_DRIVER(a_list_behind_the_end_comes_back_closed),
	};
	return run_on_drivers("committer", tests);
}
