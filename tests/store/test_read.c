/* Shows that answers come back byte for byte, and that readers, lists, events,
 * recipes and counts tell what was written. */
#include "fixture.h"

enum { BODY = 1,
       A = 11,
       B = 12 };

static void answers_come_back_byte_for_byte(void **state)
{
	static char large[1 << 20];
	static const struct hpx_span bodies[] = {
		HPX_SPAN_INIT(""),
		HPX_SPAN_INIT("\0"),
		HPX_SPAN_INIT("a\0b\r\n\xff\xfe\x80\0"),
		{ large, sizeof(large) },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (char)(i * 31);
	for (unsigned i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct hpx_store_op op = op_of(HPX_VERB_COMPLETE, i, A);
		struct hpx_answer answer = { .status = 299,
					     .kept = true,
					     .headers = HPX_SPAN("X: \xc3\xa9\r\nY:\r\n"),
					     .body = bodies[i] };
		struct hpx_ask ask = ask_of(f->store, i, BODY, B);
		struct hpx_store_op again = op_of(HPX_VERB_RESERVE, i, B);

		reserve(f, i, BODY, A);
		op.complete.answer = &answer;
		assert_status(run_op(f, &op), HPX_OK);
		again.reserve.ask = &ask;
		assert_status(run_op(f, &again), HPX_OK);
		assert_non_null(again.reserve.replay);
		assert_int_equal(again.reserve.replay->status, 299);
		assert_true(hpx_span_eq(again.reserve.replay->headers, answer.headers));
		assert_true(hpx_span_eq(again.reserve.replay->body, bodies[i]));
		hpx_answer_free(again.reserve.replay);
	}
}

static const char *peek(struct fixture *f, unsigned key, unsigned body)
{
	struct hpx_ask ask = ask_of(f->store, key, body, B);
	struct hpx_decision decision;
	struct hpx_answer *replay = NULL;
	enum hpx_status status = hpx_store_peek(f->reader, &ask, policy(), &decision, &replay);

	hpx_answer_free(replay);
	return status == HPX_OK ? hpx_decision_name(decision.kind) : hpx_status_name(status);
}

static void a_peek_decides_only_what_needs_no_write(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(peek(f, 1, BODY), "NOT_FOUND");
	reserve(f, 1, BODY, A);
	assert_string_equal(peek(f, 1, BODY), "in_progress");
	assert_string_equal(peek(f, 1, 2), "mismatch");
	act(f, HPX_VERB_FAIL, 1, A);
	assert_string_equal(peek(f, 1, BODY), "NOT_FOUND");
	reserve(f, 1, BODY, A + 10);
	act(f, HPX_VERB_MARK_UNKNOWN, 1, A + 10);
	assert_string_equal(peek(f, 1, BODY), "unknown");
	complete(f, 1, A + 10, "x");
	assert_string_equal(peek(f, 1, BODY), "replay");
	advance(f, RETENTION_MS + 1);
	assert_string_equal(peek(f, 1, BODY), "NOT_FOUND");
	reserve(f, 2, BODY, A);
	advance(f, LEASE_MS + 1);
	assert_string_equal(peek(f, 2, BODY), "NOT_FOUND");
	assert_string_equal(state_of(f, 2), "in_progress");
}

static void a_peek_brings_the_answer(void **state)
{
	struct fixture *f = *state;
	struct hpx_ask ask = ask_of(f->store, 1, BODY, B);
	struct hpx_decision decision;
	struct hpx_answer *replay = NULL;

	reserve(f, 1, BODY, A);
	complete(f, 1, A, "hello");
	assert_status(hpx_store_peek(f->reader, &ask, policy(), &decision, &replay), HPX_OK);
	assert_non_null(replay);
	assert_span(replay->body, "hello");
	assert_span(replay->headers, "Content-Type: text/plain\r\n");
	assert_int_equal(replay->status, 201);
	hpx_answer_free(replay);
}

static void a_record_of_another_recipe_asks_for_its_own(void **state)
{
	struct fixture *f = *state;
	struct hpx_ask ask = ask_of(f->store, 1, BODY, B);
	struct hpx_decision decision;
	struct hpx_answer *replay = NULL;

	reserve(f, 1, BODY, A);
	memset(ask.recipe.bytes, 'q', sizeof(ask.recipe.bytes));
	assert_status(hpx_store_peek(f->reader, &ask, policy(), &decision, &replay), HPX_OK);
	assert_string_equal(hpx_decision_name(decision.kind), "refingerprint");
	assert_int_equal(decision.record.recipe.bytes[0], 'r');
}

static void an_answer_that_is_not_kept_leaves_status_and_headers(void **state)
{
	struct fixture *f = *state;
	struct hpx_ask ask = ask_of(f->store, 1, BODY, B);
	struct hpx_store_op op = op_of(HPX_VERB_COMPLETE, 1, A);
	struct hpx_answer answer = { .status = 201,
				     .headers = HPX_SPAN("Location: /x\r\n"),
				     .body = HPX_SPAN("too large") };

	reserve(f, 1, BODY, A);
	op.complete.answer = &answer;
	assert_status(run_op(f, &op), HPX_OK);
	assert_string_equal(hpx_state_name(op.decision.record.state), "completed");
	op = op_of(HPX_VERB_RESERVE, 1, B);
	op.reserve.ask = &ask;
	assert_status(run_op(f, &op), HPX_OK);
	assert_string_equal(hpx_decision_name(op.decision.kind), "replay");
	assert_false(op.decision.record.kept);
	assert_non_null(op.reserve.replay);
	assert_false(op.reserve.replay->kept);
	assert_int_equal(op.reserve.replay->status, 201);
	assert_span(op.reserve.replay->headers, "Location: /x\r\n");
	assert_span(op.reserve.replay->body, "");
	hpx_answer_free(op.reserve.replay);
}

static void the_first_answer_stays(void **state)
{
	struct fixture *f = *state;

	reserve(f, 1, BODY, A);
	complete(f, 1, A, "first");
	assert_status(complete(f, 1, A, "second"), HPX_OK);
	assert_string_equal(body_of(f, 1), "first");
}

static void a_find_describes_the_operation(void **state)
{
	struct fixture *f = *state;
	struct hpx_operation_id id = id_of(5);
	struct hpx_entry entry;

	reserve(f, 5, BODY, A);
	assert_status(hpx_store_find(f->reader, &id, &f->arena, &entry, NULL), HPX_OK);
	assert_true(entry.readable);
	assert_span(entry.description.tenant, "tenant");
	assert_span(entry.description.scope, "scope");
	assert_span(entry.description.key, "key-5");
	assert_span(entry.description.method, "POST");
	assert_span(entry.description.path, "/payments");
	assert_span(entry.description.route, "POST /payments");
	assert_true(entry.record.owner == f->store->owner);
	id = id_of(6);
	assert_status(hpx_store_find(f->reader, &id, &f->arena, &entry, NULL), HPX_NOT_FOUND);
}

static size_t list(struct fixture *f, struct hpx_query query, struct hpx_entry **entries)
{
	struct hpx_looked looked = { .all = false };
	size_t count = 0;

	assert_status(hpx_store_list(f->reader, &query, &f->arena, entries, &count, &looked), HPX_OK);
	/* Of so few, all are looked at; or as many as were asked for. */
	assert_true(looked.all || count == query.limit);
	return count;
}

static void lists_are_newest_first_and_filtered(void **state)
{
	struct fixture *f = *state;
	struct hpx_entry *entries = NULL;

	for (unsigned key = 1; key <= 20; key++) {
		reserve(f, key, BODY, A);
		if (key % 2 == 0)
			act(f, HPX_VERB_MARK_UNKNOWN, key, A);
		advance(f, 1000);
	}
	assert_int_equal(list(f, (struct hpx_query){ .state = HPX_STATE_COUNT, .limit = 100 },
			      &entries),
			 20);
	assert_span(entries[0].description.key, "key-20");
	assert_span(entries[19].description.key, "key-1");
	assert_int_equal(list(f, (struct hpx_query){ .state = HPX_STATE_UNKNOWN, .limit = 3 },
			      &entries),
			 3);
	assert_span(entries[2].description.key, "key-16");
	int64_t since_ms = entries[2].record.created_ms;
	assert_int_equal(list(f, (struct hpx_query){ .state = HPX_STATE_COUNT, .limit = 100, .since_ms = since_ms },
			      &entries),
			 5);
	assert_span(entries[4].description.key, "key-16");
	assert_int_equal(list(f, (struct hpx_query){ .state = HPX_STATE_COUNT, .limit = 9, .key = HPX_SPAN("key-7") }, &entries), 1);
	assert_string_equal(hpx_state_name(entries[0].record.state), "in_progress");
	assert_int_equal(list(f, (struct hpx_query){ .state = HPX_STATE_COMPLETED, .limit = 9 },
			      &entries),
			 0);
}

static void bring_to_of(struct fixture *f, unsigned key, const char *tenant, const char *route)
{
	struct hpx_description description = { HPX_SPAN("t"), HPX_SPAN("s"), HPX_SPAN("same"),
					       HPX_SPAN("POST"), HPX_SPAN("/p"), HPX_SPAN("r") };
	struct hpx_ask ask = ask_of(f->store, key, BODY, A);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, A);

	description.tenant = hpx_span_of(tenant);
	description.route = hpx_span_of(route);
	op.reserve.ask = &ask;
	op.reserve.description = &description;
	assert_status(run_op(f, &op), HPX_OK);
	complete(f, key, A, "first");
}

/* By tenant and by route, whichever way they went. */
static void lists_are_narrowed_by_tenant_and_route(void **state)
{
	static const struct {
		const char *tenant, *route;
		size_t count;
	} rows[] = { { "a", NULL, 2 }, { "b", NULL, 2 }, { NULL, "x", 2 }, { "a", "y", 1 }, { "c", NULL, 0 }, { NULL, NULL, 4 } };
	struct fixture *f = *state;
	struct hpx_entry *entries = NULL;

	bring_to_of(f, 1, "a", "x");
	bring_to_of(f, 2, "a", "y");
	bring_to_of(f, 3, "b", "x");
	bring_to_of(f, 4, "b", "y");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hpx_query query = { .state = HPX_STATE_COUNT,
					   .tenant = hpx_span_of(rows[i].tenant),
					   .route = hpx_span_of(rows[i].route),
					   .limit = 9 };
		size_t count = list(f, query, &entries);
		if (count != rows[i].count)
			fail_msg("row %zu: got %zu, want %zu", i, count, rows[i].count);
	}
}

/* Page by page, whatever the state; each once. */
static void a_walk_sees_every_operation_once(void **state)
{
	struct fixture *f = *state;
	struct hpx_walk walk = { .ended = false };
	struct hpx_query query = { .state = HPX_STATE_COUNT, .limit = 3, .walk = &walk };
	bool seen[20] = { false };
	unsigned pages = 0, all = 0;

	for (unsigned key = 0; key < 20; key++)
		bring_to(f, key, (enum hpx_state)(HPX_STATE_IN_PROGRESS + (int)(key % 4)), A);
	for (; !walk.ended; pages++) {
		struct hpx_entry *entries = NULL;
		struct hpx_looked looked;
		size_t count = 0;
		assert_status(hpx_store_list(f->reader, &query, &f->arena, &entries, &count, &looked),
			      HPX_OK);
		assert_true(looked.all == walk.ended);
		for (size_t i = 0; i < count; i++, all++) {
			unsigned key = 0;
			while (key < 20 && memcmp(entries[i].record.id.bytes, id_of(key).bytes, HPX_OPERATION_ID_SIZE) != 0)
				key++;
			assert_in_range(key, 0, 19);
			assert_false(seen[key]);
			seen[key] = true;
		}
	}
	assert_int_equal(all, 20);
	assert_true(pages >= 7);
}

static void events_tell_all_but_the_plain_way(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op op;

	reserve(f, 1, BODY, A);
	complete(f, 1, A, "x");
	assert_string_equal(events_of(f, 1), "");

	reserve(f, 2, BODY, A);
	act(f, HPX_VERB_RELEASE, 2, A);
	assert_string_equal(events_of(f, 2), "");

	reserve(f, 3, BODY, A);
	act(f, HPX_VERB_FAIL, 3, A);
	reserve(f, 3, BODY, B);
	act(f, HPX_VERB_MARK_UNKNOWN, 3, B);
	resolve(f, 3, A, false);
	reserve(f, 3, BODY, B + 1);
	act(f, HPX_VERB_RELEASE, 3, B + 1);
	assert_string_equal(events_of(f, 3), "not_executed reserved outcome_lost "
					     "resolved_not_applied reserved released");
	op = op_of(HPX_VERB_FORGET, 3, A);
	assert_status(run_op(f, &op), HPX_OK);
	assert_string_equal(state_of(f, 3), "none");
	assert_string_equal(events_of(f, 3), "not_executed reserved outcome_lost "
					     "resolved_not_applied reserved released forgotten");
}

static void an_event_says_who_and_why(void **state)
{
	struct fixture *f = *state;
	struct hpx_operation_id id = id_of(1);
	struct hpx_store_op op = op_of(HPX_VERB_MARK_UNKNOWN, 1, A);
	struct hpx_event *events = NULL;
	size_t count = 0;

	reserve(f, 1, BODY, A);
	op.actor = HPX_SPAN("gateway");
	op.reason = HPX_SPAN("the connection was reset");
	op.mark_unknown.status_seen = 504;
	assert_status(run_op(f, &op), HPX_OK);
	assert_status(hpx_store_events(f->reader, &id, &f->arena, &events, &count), HPX_OK);
	assert_int_equal(count, 1);
	assert_span(events[0].actor, "gateway");
	assert_span(events[0].reason, "the connection was reset");
	assert_int_equal(events[0].status, 504);
	assert_int_equal(events[0].attempt, 1);
	assert_true(events[0].at_ms == record_of(f, 1).changed_ms);
}

static void recipes_are_kept_once(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op op = op_of(HPX_VERB_RECIPE, 0, 0);
	struct hpx_span text;

	memset(op.recipe.id.bytes, 5, sizeof(op.recipe.id.bytes));
	assert_status(hpx_store_recipe(f->reader, &op.recipe.id, &f->arena, &text), HPX_NOT_FOUND);
	op.recipe.text = HPX_SPAN("1 ignore=/a");
	assert_status(run_op(f, &op), HPX_OK);
	op.recipe.text = HPX_SPAN("something else");
	assert_status(run_op(f, &op), HPX_OK);
	assert_status(hpx_store_recipe(f->reader, &op.recipe.id, &f->arena, &text), HPX_OK);
	assert_span(text, "1 ignore=/a");
}

static void counts_are_by_state(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_stats stats;

	assert_status(hpx_store_stats(f->reader, &stats), HPX_OK);
	assert_int_equal(stats.oldest_unknown_ms, 0);
	for (unsigned key = 0; key < 10; key++)
		reserve(f, key, BODY, A);
	for (unsigned key = 0; key < 4; key++)
		complete(f, key, A, "x");
	act(f, HPX_VERB_FAIL, 4, A);
	act(f, HPX_VERB_MARK_UNKNOWN, 5, A);
	advance(f, 1000);
	act(f, HPX_VERB_MARK_UNKNOWN, 6, A);
	assert_status(hpx_store_stats(f->reader, &stats), HPX_OK);
	assert_int_equal(stats.operations[HPX_STATE_IN_PROGRESS], 3);
	assert_int_equal(stats.operations[HPX_STATE_COMPLETED], 4);
	assert_int_equal(stats.operations[HPX_STATE_FAILED_RETRYABLE], 1);
	assert_int_equal(stats.operations[HPX_STATE_UNKNOWN], 2);
	assert_true(stats.oldest_unknown_ms == record_of(f, 5).changed_ms);
}

static void a_person_may_give_the_answer(void **state)
{
	struct fixture *f = *state;
	struct hpx_store_op op = op_of(HPX_VERB_RESOLVE, 1, A);
	struct hpx_answer answer = { .status = 402, .kept = true, .body = HPX_SPAN("declined") };

	reserve(f, 1, BODY, A);
	act(f, HPX_VERB_MARK_UNKNOWN, 1, A);
	op.resolve.applied = true;
	op.resolve.answer = &answer;
	assert_status(run_op(f, &op), HPX_OK);
	assert_string_equal(body_of(f, 1), "declined");
	assert_int_equal(record_of(f, 1).status, 402);

	reserve(f, 2, BODY, A);
	act(f, HPX_VERB_MARK_UNKNOWN, 2, A);
	assert_status(resolve(f, 2, A, true), HPX_OK);
	assert_string_equal(reserve(f, 2, BODY, B), "replay");
	assert_false(record_of(f, 2).kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_EVERY_DRIVER(answers_come_back_byte_for_byte),
		ON_LOCAL_DRIVERS(a_peek_decides_only_what_needs_no_write),
		ON_LOCAL_DRIVERS(a_peek_brings_the_answer),
		ON_LOCAL_DRIVERS(a_record_of_another_recipe_asks_for_its_own),
		ON_EVERY_DRIVER(an_answer_that_is_not_kept_leaves_status_and_headers),
		ON_EVERY_DRIVER(the_first_answer_stays),
		ON_EVERY_DRIVER(a_find_describes_the_operation),
		ON_EVERY_DRIVER(lists_are_newest_first_and_filtered),
		ON_EVERY_DRIVER(lists_are_narrowed_by_tenant_and_route),
		ON_EVERY_DRIVER(a_walk_sees_every_operation_once),
		ON_EVERY_DRIVER(events_tell_all_but_the_plain_way),
		ON_EVERY_DRIVER(an_event_says_who_and_why),
		ON_EVERY_DRIVER(recipes_are_kept_once),
		ON_EVERY_DRIVER(counts_are_by_state),
		ON_EVERY_DRIVER(a_person_may_give_the_answer),
	};
	return run_on_drivers("read", tests);
}
