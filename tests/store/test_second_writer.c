/* Shows that two writers never have the same operation under way and keep the order of
 * its ops; that the second takes what waits while the first is busy; that what it cannot
 * do is done by the first; and that with both failing at random, at most one attempt of
 * an operation executes. */
#include "fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cluster.h"
#include "store/committer.h"
#include "store/op_queue.h"

enum { BODY = 1,
       A = 11,
       B = 12 };

/* ---- the queue ---- */

#define BATCH_MAX 16
#define OPS 4000
#define OPERATIONS 40

static unsigned next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*seed >> 33);
}

struct model {
	struct hpx_op_queue queue;
	struct hpx_store_op *batch[HPX_WRITER_COUNT][BATCH_MAX];
	size_t count[HPX_WRITER_COUNT];
	bool under_way[HPX_WRITER_COUNT][OPERATIONS];
	unsigned last[OPERATIONS]; /* the number of the op that was taken last */
	unsigned taken;
};

struct numbered_op {
	struct hpx_store_op op;
	unsigned operation;
	unsigned number; /* of its arrival, from 1 */
};

static void model_take(struct model *m, enum hpx_writer writer)
{
	enum hpx_writer other = writer == HPX_WRITER_FIRST ? HPX_WRITER_SECOND : HPX_WRITER_FIRST;

	m->count[writer] = hpx_op_queue_take(&m->queue, writer, m->batch[writer]);
	m->taken += (unsigned)m->count[writer];
	for (size_t i = 0; i < m->count[writer]; i++) {
		struct numbered_op *op = (struct numbered_op *)m->batch[writer][i];
		if (writer == HPX_WRITER_SECOND)
			assert_true(op->op.verb == HPX_VERB_RESERVE || op->op.verb == HPX_VERB_COMPLETE);
		assert_false(m->under_way[other][op->operation]);
		assert_true(op->number > m->last[op->operation]);
		m->last[op->operation] = op->number;
		m->under_way[writer][op->operation] = true;
	}
}

static void model_end(struct model *m, enum hpx_writer writer)
{
	hpx_op_queue_end(&m->queue, writer);
	memset(m->under_way[writer], 0, sizeof(m->under_way[writer]));
	m->count[writer] = 0;
}

/* Any order of arrivals, takes and ends: nothing is lost, nothing overtakes, nothing is
 * with both. */
static void two_writers_never_share_an_operation(void **state)
{
	static const enum hpx_verb verbs[] = { HPX_VERB_RESERVE, HPX_VERB_COMPLETE, HPX_VERB_FAIL };
	static struct numbered_op ops[OPS];
	static struct hpx_ask asks[OPERATIONS];

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct model m = { .taken = 0 };
		uint64_t random = seed;
		unsigned added = 0;

		assert_status(hpx_op_queue_init(&m.queue, BATCH_MAX, true), HPX_OK);
		while (m.taken < OPS) {
			enum hpx_writer writer = next_random(&random) % 2 ? HPX_WRITER_SECOND :
									    HPX_WRITER_FIRST;
			for (unsigned n = next_random(&random) % 24; n > 0 && added < OPS; n--) {
				struct numbered_op *op = &ops[added++];
				*op = (struct numbered_op){ .operation = next_random(&random) % OPERATIONS,
							    .number = added };
				op->op.verb = verbs[next_random(&random) % 3];
				asks[op->operation].id = id_of(op->operation + 1);
				op->op.id = asks[op->operation].id;
				if (op->op.verb == HPX_VERB_RESERVE)
					op->op.reserve.ask = &asks[op->operation];
				hpx_op_queue_add(&m.queue, &op->op, &op->op, 1);
			}
			if (m.count[writer] > 0)
				model_end(&m, writer);
			else
				model_take(&m, writer);
		}
		assert_int_equal(added, OPS);
		assert_null(m.queue.waiting.head);
		assert_int_equal(m.queue.count, 0);
		hpx_op_queue_done(&m.queue);
	}
}

/* ---- the committer with two writers ---- */

/* Lets one writer's run wait, or fail. */
struct writer_board {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	bool closed;  /* the next run waits */
	bool arrived; /* it does */
	unsigned runs;
	unsigned fail_runs;  /* so many runs fail */
	bool after;          /* once they were committed */
	uint64_t random;     /* not 0: every twelfth run fails at random, before or after */
	_Atomic bool *quiet; /* no more of that */
};

static bool fails_at_random(struct writer_board *board)
{
	return board->random != 0 && !atomic_load(board->quiet) &&
	       next_random(&board->random) % 24 == 0;
}

static enum hpx_status fault(void *user, enum hpx_store_point point)
{
	struct writer_board *board = user;
	bool fails;

	if (point != HPX_STORE_RUN_BEFORE && point != HPX_STORE_RUN_AFTER)
		return HPX_OK;
	pthread_mutex_lock(&board->mutex);
	if (point == HPX_STORE_RUN_BEFORE) {
		board->runs++;
		board->arrived = board->closed;
		pthread_cond_broadcast(&board->cond);
		while (board->closed)
			pthread_cond_wait(&board->cond, &board->mutex);
	}
	fails = board->fail_runs > 0 && board->after == (point == HPX_STORE_RUN_AFTER);
	board->fail_runs -= fails;
	fails |= fails_at_random(board);
	pthread_mutex_unlock(&board->mutex);
	return fails ? HPX_IO : HPX_OK;
}

static void board_init(struct writer_board *board, struct hpx_store *store)
{
	*board = (struct writer_board){ .runs = 0 };
	pthread_mutex_init(&board->mutex, NULL);
	pthread_cond_init(&board->cond, NULL);
	store->fault = fault;
	store->fault_user = board;
}

static void board_hold(struct writer_board *board)
{
	pthread_mutex_lock(&board->mutex);
	board->closed = true;
	board->arrived = false;
	pthread_mutex_unlock(&board->mutex);
}

static void board_await(struct writer_board *board)
{
	pthread_mutex_lock(&board->mutex);
	while (!board->arrived)
		pthread_cond_wait(&board->cond, &board->mutex);
	pthread_mutex_unlock(&board->mutex);
}

static void board_open(struct writer_board *board)
{
	pthread_mutex_lock(&board->mutex);
	board->closed = false;
	pthread_cond_broadcast(&board->cond);
	pthread_mutex_unlock(&board->mutex);
}

static unsigned board_runs(struct writer_board *board)
{
	pthread_mutex_lock(&board->mutex);
	unsigned runs = board->runs;
	pthread_mutex_unlock(&board->mutex);
	return runs;
}

struct setting {
	struct fixture *f;
	struct writer_board first;
	struct writer_board second;
	struct hpx_committer *committer;
};

/* A database says that its commits wait for a standby by a setting. It is set only while
 * the second writer looks: nobody is there to be waited for. */
static void start(struct setting *s, struct fixture *f)
{
	struct hpx_committer_options options = { .store = f->store, .probe_ms = 10 };

	*s = (struct setting){ .f = f };
	hpx_store_open_second(f->store);
	assert_null(f->store->second);
	cluster_sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
	cluster_sql("SELECT pg_reload_conf()");
	while (f->store->second == NULL)
		hpx_store_open_second(f->store);
	cluster_sql("SET synchronous_commit = local");
	cluster_sql("ALTER SYSTEM RESET synchronous_standby_names");
	cluster_sql("SELECT pg_reload_conf()");
	board_init(&s->first, f->store);
	board_init(&s->second, f->store->second);
	assert_status(hpx_committer_start(&options, &s->committer), HPX_OK);
}

static void stop(struct setting *s)
{
	hpx_committer_stop(s->committer, 1000);
	hpx_committer_free(s->committer);
	s->f->store->fault = NULL;
}

struct counted {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	unsigned done;
};

static void counted_done(struct hpx_store_op *op)
{
	struct counted *counted = op->user;

	pthread_mutex_lock(&counted->mutex);
	counted->done++;
	pthread_cond_broadcast(&counted->cond);
	pthread_mutex_unlock(&counted->mutex);
}

static void counted_await(struct counted *counted, unsigned number)
{
	pthread_mutex_lock(&counted->mutex);
	while (counted->done < number)
		pthread_cond_wait(&counted->cond, &counted->mutex);
	pthread_mutex_unlock(&counted->mutex);
}

#define MANY 64

struct many {
	struct hpx_ask asks[MANY];
	struct hpx_store_op ops[MANY];
	struct counted counted;
};

/* Reservations of the keys from `from` on, by that token. */
static void submit_many(struct setting *s, struct many *many, unsigned from, unsigned token)
{
	struct hpx_op_list list = { .first = NULL };

	*many = (struct many){ .counted.done = 0 };
	pthread_mutex_init(&many->counted.mutex, NULL);
	pthread_cond_init(&many->counted.cond, NULL);
	for (unsigned i = 0; i < MANY; i++) {
		many->asks[i] = ask_of(s->f->store, from + i, BODY, token);
		many->ops[i] = op_of(HPX_VERB_RESERVE, from + i, token);
		many->ops[i].reserve.ask = &many->asks[i];
		many->ops[i].done = counted_done;
		many->ops[i].user = &many->counted;
		hpx_op_list_add(&list, &many->ops[i]);
	}
	hpx_committer_submit_all(s->committer, &list);
}

static void the_second_takes_what_waits_for_the_first(void **state)
{
	static struct many held, helped;
	struct setting s;

	start(&s, *state);
	board_hold(&s.first);
	submit_many(&s, &held, 100, A);
	board_await(&s.first);
	submit_many(&s, &helped, 200, A);
	counted_await(&helped.counted, MANY); /* the first is still held */
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(helped.ops[i].decision.kind, HPX_DECISION_EXECUTE);
	assert_int_equal(board_runs(&s.first), 1);
	board_open(&s.first);
	counted_await(&held.counted, MANY);
	/* Both are counted as the store's. */
	assert_int_equal(hpx_counter_read(&s.f->store->batch_ops.sum), 2 * MANY);
	stop(&s);
}

/* The same keys again, by other tokens, while the first has them under way: the second
 * must leave them alone, however many wait. */
static void an_operation_under_way_waits_for_its_writer(void **state)
{
	static struct many held, again, others;
	struct setting s;

	start(&s, *state);
	board_hold(&s.first);
	submit_many(&s, &held, 100, A);
	board_await(&s.first);
	submit_many(&s, &again, 100, B);
	submit_many(&s, &others, 200, A);
	counted_await(&others.counted, MANY);
	assert_int_equal(again.counted.done, 0);
	board_open(&s.first);
	counted_await(&again.counted, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(held.ops[i].decision.kind, HPX_DECISION_EXECUTE);
		assert_int_equal(again.ops[i].decision.kind, HPX_DECISION_IN_PROGRESS);
	}
	stop(&s);
}

/* A batch of the second that failed, before or after it was committed, is run by the
 * first, and each reservation is recognised by its token. */
static void what_the_second_cannot_do_the_first_does(void **state)
{
	for (unsigned after = 0; after < 2; after++) {
		static struct many held, handed;
		struct setting s;

		start(&s, *state);
		s.second.fail_runs = 1;
		s.second.after = after;
		board_hold(&s.first);
		submit_many(&s, &held, 100 + 1000 * after, A);
		board_await(&s.first);
		submit_many(&s, &handed, 200 + 1000 * after, A);
		while (board_runs(&s.second) == 0)
			sched_yield();
		board_open(&s.first);
		counted_await(&handed.counted, MANY);
		for (unsigned i = 0; i < MANY; i++) {
			assert_status(handed.ops[i].status, HPX_OK);
			assert_int_equal(handed.ops[i].decision.kind, HPX_DECISION_EXECUTE);
		}
		assert_true(hpx_committer_healthy(s.committer));
		stop(&s);
		hpx_store_close(s.f->store->second);
		s.f->store->second = NULL;
	}
}

/* ---- both fail at random ---- */

#define CLIENTS 96
#define ROUNDS 8
#define KEYS (CLIENTS * ROUNDS / 2)

struct crowd {
	struct setting s;
	_Atomic unsigned effects[KEYS];
	_Atomic bool quiet;
};

struct client {
	struct crowd *crowd;
	unsigned number;
	pthread_t thread;
};

static enum hpx_status submit(struct crowd *crowd, struct hpx_store_op *op)
{
	hpx_committer_submit_wait(crowd->s.committer, op);
	return op->status;
}

/* Until the operation is completed, by whichever of its two clients. */
static const char *execute_once(struct crowd *crowd, unsigned key, unsigned token)
{
	struct hpx_answer answer = { .status = 200, .kept = true, .body = HPX_SPAN("y") };

	for (;; token += CLIENTS) {
		struct hpx_ask ask = ask_of(crowd->s.f->store, key, BODY, token);
		struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, token);
		op.reserve.ask = &ask;
		enum hpx_status status = submit(crowd, &op);
		enum hpx_decision_kind kind = op.decision.kind;
		hpx_answer_free(op.reserve.replay);
		if (status != HPX_OK) {
			op = op_of(HPX_VERB_FAIL, key, token);
			status = submit(crowd, &op);
			if (status != HPX_OK && status != HPX_STALE)
				return "fail";
			continue;
		}
		if (kind == HPX_DECISION_REPLAY)
			return NULL;
		if (kind == HPX_DECISION_UNKNOWN)
			return "unknown";
		if (kind != HPX_DECISION_EXECUTE && kind != HPX_DECISION_EXECUTE_AGAIN)
			continue;
		atomic_fetch_add(&crowd->effects[key], 1);
		op = op_of(HPX_VERB_COMPLETE, key, token);
		op.complete.answer = &answer;
		return submit(crowd, &op) == HPX_OK ? NULL : "complete";
	}
}

static void *client_main(void *user)
{
	struct client *client = user;

	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned key = client->number / 2 * ROUNDS + i;
		const char *trouble = execute_once(client->crowd, key, 1 + client->number);
		if (trouble != NULL)
			return (void *)trouble;
	}
	return NULL;
}

static void with_both_failing_an_operation_happens_once(void **state)
{
	static struct crowd crowd;
	struct client clients[CLIENTS];
	void *trouble = NULL, *ended;

	start(&crowd.s, *state);
	crowd.s.first.quiet = crowd.s.second.quiet = &crowd.quiet;
	crowd.s.first.random = 7;
	crowd.s.second.random = 11;
	for (unsigned i = 0; i < CLIENTS; i++) {
		clients[i] = (struct client){ .crowd = &crowd, .number = i };
		assert_int_equal(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]), 0);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		pthread_join(clients[i].thread, &ended);
		trouble = ended != NULL ? ended : trouble;
	}
	if (trouble != NULL)
		fail_msg("a client came to: %s", (const char *)trouble);
	atomic_store(&crowd.quiet, true);
	print_message("%u runs by the first, %u by the second\n", board_runs(&crowd.s.first),
		      board_runs(&crowd.s.second));
	assert_true(board_runs(&crowd.s.second) > 0);
	for (unsigned key = 0; key < KEYS; key++)
		assert_int_equal(atomic_load(&crowd.effects[key]), 1);
	stop(&crowd.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_MEMORY(two_writers_never_share_an_operation),
		ON_POSTGRES(the_second_takes_what_waits_for_the_first),
		ON_POSTGRES(an_operation_under_way_waits_for_its_writer),
		ON_POSTGRES(what_the_second_cannot_do_the_first_does),
		ON_POSTGRES(with_both_failing_an_operation_happens_once),
	};
	return run_on_drivers("second writer", tests);
}
