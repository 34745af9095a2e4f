/* Shows that operations of a route that is matched by the client's key are found by that key
 * alone: whatever their tenant and state, for as long as their record lives and no longer;
 * that other routes write nothing; and that operations which began before the route was
 * matched by key are not forgotten about. */
#include "application.h"
#include "delivery.h"

#include <sqlite3.h>

static const struct hpx_description pay = {
	.tenant = HPX_SPAN_INIT("t"),
	.scope = HPX_SPAN_INIT("up POST /pay"),
	.key = HPX_SPAN_INIT("k"),
	.method = HPX_SPAN_INIT("POST"),
	.path = HPX_SPAN_INIT("/pay"),
	.route = HPX_SPAN_INIT("POST /pay"),
};

/* As a gateway does when it starts. */
static void make_known(struct fixture *f, bool matched_by_key)
{
	struct hpx_lane_settings lane = { .upstream = HPX_SPAN("up"), .name = pay.route, .matched_by_key = matched_by_key };
	struct hpx_store_op op = { .verb = HPX_VERB_LANE, .lane.settings = &lane };

	assert_status(run_op(f, &op), HPX_OK);
}

static struct hpx_route_key key_of(const char *route, const char *key, const char *amount)
{
	struct hpx_route_key made = { .amount = hpx_span_of(amount) };

	assert_status(hpx_route_key_hash(HPX_SPAN("up"), hpx_span_of(route), hpx_span_of(key), made.hash), HPX_OK);
	return made;
}

/* `number` stands for the tenant and the key: each is an operation of its own. Without
 * `key` the route is not matched by one. */
static const char *reserve_by(struct fixture *f, const struct hpx_policy *by, unsigned number, unsigned token,
			      const struct hpx_route_key *key)
{
	struct hpx_ask request = ask_of(f->store, number, BODY, token);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, number, token);

	op.reserve.ask = &request;
	op.reserve.policy = by;
	op.reserve.description = &pay;
	op.reserve.route_key = key;
	assert_status(run_op(f, &op), HPX_OK);
	const char *name = hpx_decision_name(op.decision.kind);
	hpx_store_op_drop(&op);
	return name;
}

static const char *reserve_keyed(struct fixture *f, unsigned number, unsigned token,
				 const struct hpx_route_key *key)
{
	return reserve_by(f, policy(), number, token, key);
}

static struct hpx_key_matches find(struct fixture *f, const char *route, const char *key)
{
	struct hpx_route_key wanted = key_of(route, key, "");
	struct hpx_key_query query = { .upstream = HPX_SPAN("up"), .route = hpx_span_of(route), .retention_ms = RETENTION_MS };
	struct hpx_key_matches matches;

	memcpy(query.hash, wanted.hash, sizeof(query.hash));
	assert_status(hpx_store_keyed(f->reader, &query, &matches), HPX_OK);
	return matches;
}

static void assert_only(struct fixture *f, unsigned number, unsigned first, const char *amount)
{
	struct hpx_key_matches matches = find(f, "POST /pay", "k");
	struct hpx_operation_id id = id_of(number);
	struct hpx_mark mark = mark_of(first);

	assert_int_equal(matches.count, 1);
	assert_true(hpx_operation_id_eq(&matches.of[0].reference.id, &id));
	assert_true(hpx_mark_eq(&matches.of[0].reference.mark, &mark));
	assert_string_equal(matches.of[0].amount, amount);
}

static long rows(struct fixture *f)
{
	return fixture_count(f, "route_key");
}

/* One row for each operation, which is the same in every state. */
static void an_operation_is_found_by_its_key(void **state)
{
	struct fixture *f = *state;
	struct hpx_route_key key = key_of("POST /pay", "k", "10.00");
	struct hpx_route_key elsewhere = key_of("POST /refund", "k", "");

	make_known(f, true);
	assert_int_equal(find(f, "POST /pay", "k").count, 0);
	assert_false(find(f, "POST /pay", "k").hidden);
	assert_string_equal(reserve_keyed(f, 1, A, &key), "created");
	assert_only(f, 1, A, "10.00");
	assert_int_equal(find(f, "POST /pay", "K").count, 0);
	/* The same key on another route is another's; so is that of a route without index. */
	reserve_keyed(f, 2, A, &elsewhere);
	reserve_keyed(f, 3, A, NULL);
	assert_only(f, 1, A, "10.00");
	assert_int_equal(rows(f), 2);
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, 1, A), HPX_OK);
	assert_only(f, 1, A, "10.00");
	fixture_reopen(f);
	assert_only(f, 1, A, "10.00");
	assert_status(resolve(f, 1, A, true), HPX_OK);
	assert_only(f, 1, A, "10.00");
	/* Another tenant's makes two, whatever became of the first. */
	assert_string_equal(reserve_keyed(f, 4, A, &key), "created");
	assert_int_equal(find(f, "POST /pay", "k").count, 2);
	assert_status(complete(f, 4, A, "done"), HPX_OK);
	assert_int_equal(find(f, "POST /pay", "k").count, 2);
	reserve_keyed(f, 5, A, &key);
	assert_int_equal(find(f, "POST /pay", "k").count, 2);
	assert_string_equal(reserve_keyed(f, 4, B, &key), "replay");
	assert_int_equal(rows(f), 4);
}

/* However the record goes: no row stays behind. */
static void what_is_gone_is_not_found(void **state)
{
	struct fixture *f = *state;
	struct hpx_route_key key = key_of("POST /pay", "k", "10");
	struct hpx_route_key other = key_of("POST /pay", "k", "11");

	make_known(f, true);
	/* Released: the first attempt leaves nothing. */
	reserve_keyed(f, 1, A, &key);
	assert_status(act(f, HPX_VERB_RELEASE, 1, A), HPX_OK);
	assert_int_equal(rows(f), 0);
	/* Forgotten, plain and aside. */
	reserve_keyed(f, 1, A, &key);
	assert_status(complete(f, 1, A, "done"), HPX_OK);
	struct hpx_store_op op = op_of(HPX_VERB_FORGET, 1, A);
	assert_status(run_op(f, &op), HPX_OK);
	assert_int_equal(rows(f), 0);
	reserve_keyed(f, 1, A, &key);
	assert_status(act(f, HPX_VERB_FAIL, 1, A), HPX_OK);
	assert_string_equal(reserve_keyed(f, 1, B, &key), "retried");
	assert_only(f, 1, A, "10");
	assert_int_equal(rows(f), 1);
	assert_status(complete(f, 1, B, "done"), HPX_OK);
	op = op_of(HPX_VERB_FORGET, 1, A);
	assert_status(run_op(f, &op), HPX_OK);
	assert_int_equal(rows(f), 0);
	/* Expired and used again: one row, the new one's. */
	reserve_keyed(f, 1, A, &key);
	assert_status(complete(f, 1, A, "done"), HPX_OK);
	advance(f, RETENTION_MS + 1);
	assert_string_equal(reserve_keyed(f, 1, B, &other), "created");
	assert_only(f, 1, B, "11");
	assert_int_equal(rows(f), 1);
	assert_status(complete(f, 1, B, "done"), HPX_OK);
	/* Expired and reaped, beside one that is not. */
	reserve_keyed(f, 2, A, &key);
	assert_status(complete(f, 2, A, "done"), HPX_OK);
	reserve_keyed(f, 3, A, &key);
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, 3, A), HPX_OK);
	advance(f, 3 * (int64_t)RETENTION_MS);
	for (int i = 0; i < 50 && rows(f) > 1; i++) {
		advance(f, 3600000);
		reap(f);
	}
	assert_string_equal(state_of(f, 2), "none");
	assert_only(f, 3, A, "10");
	assert_int_equal(rows(f), 1);
	/* What is new then is not what the reaper goes on with. */
	reserve_keyed(f, 2, B, &other);
	for (int i = 0; i < 10; i++)
		reap(f);
	assert_int_equal(find(f, "POST /pay", "k").count, 2);
	op = op_of(HPX_VERB_FORGET, 3, A);
	op_forces(&op, true);
	assert_status(run_op(f, &op), HPX_OK);
	assert_only(f, 2, B, "11");
}

/* The record of a tombstone is still there, wherever it was moved to: a late message may be
 * about it, so that another tenant's operation with the same key is not the only one. */
static void a_tombstone_is_found_until_its_end(void **state)
{
	struct fixture *f = *state;
	struct hpx_route_key key = key_of("POST /pay", "k", "10"), later = key_of("POST /pay", "later", "11");
	struct hpx_policy buried = *policy();

	buried.tombstone_ms = 30 * (int64_t)RETENTION_MS;
	make_known(f, true);
	reserve_by(f, &buried, 1, A, &key);
	assert_status(complete(f, 1, A, "done"), HPX_OK);
	/* One with a past: SQLite has it aside. */
	reserve_by(f, &buried, 2, A, &later);
	assert_status(act(f, HPX_VERB_FAIL, 2, A), HPX_OK);
	assert_string_equal(reserve_by(f, &buried, 2, B, &later), "retried");
	assert_status(complete(f, 2, B, "done"), HPX_OK);
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	assert_null(body_of(f, 1));
	assert_null(body_of(f, 2));
	assert_only(f, 1, A, "10");
	assert_int_equal(find(f, "POST /pay", "later").count, 1);
	assert_int_equal(rows(f), 2);
	reserve_keyed(f, 3, A, &key);
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, 3, A), HPX_OK);
	assert_int_equal(find(f, "POST /pay", "k").count, 2);
	/* Used again: the row is the new one's. */
	assert_string_equal(reserve_by(f, &buried, 1, B, &later), "created");
	assert_only(f, 3, A, "10");
	assert_int_equal(find(f, "POST /pay", "later").count, 2);
	assert_int_equal(rows(f), 3);
	assert_status(complete(f, 1, B, "anew"), HPX_OK);
	advance(f, 40 * (int64_t)RETENTION_MS);
	reap_all(f);
	assert_string_equal(state_of(f, 1), "none");
	assert_string_equal(state_of(f, 2), "none");
	assert_only(f, 3, A, "10");
	assert_int_equal(rows(f), 1);
}

/* What somebody left behind where the tombstone's row is to be keeps nobody from being reaped. */
static void a_tombstone_moves_over_what_was_left_behind(void **state)
{
	struct fixture *f = *state;
	struct hpx_route_key key = key_of("POST /pay", "k", "10");
	struct hpx_policy buried = *policy();

	buried.tombstone_ms = 30 * (int64_t)RETENTION_MS;
	make_known(f, true);
	reserve_by(f, &buried, 1, A, &key);
	assert_status(complete(f, 1, A, "done"), HPX_OK);
	raw_sql(f->path, "WITH g (n) AS (VALUES (2), (3), (4)) INSERT INTO hapax_route_key (generation, number, hash, "
			 "id, mark, amount) SELECT n, 1, x'00', x'00', x'00', '' FROM g");
	advance(f, RETENTION_MS + 1);
	reap_all(f);
	assert_null(body_of(f, 1));
	assert_only(f, 1, A, "10");
	assert_int_equal(rows(f), 3);
}

/* An operation without its row could be the one that is meant. */
static void what_began_before_is_not_forgotten_about(void **state)
{
	struct fixture *f = *state;
	struct hpx_route_key key = key_of("POST /pay", "k", "");

	make_known(f, false);
	assert_true(find(f, "POST /pay", "k").hidden);
	reserve_keyed(f, 1, A, NULL);
	assert_status(complete(f, 1, A, "done"), HPX_OK);
	reserve_keyed(f, 2, A, NULL);
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, 2, A), HPX_OK);
	make_known(f, true);
	reserve_keyed(f, 3, A, &key);
	assert_true(find(f, "POST /pay", "k").hidden);
	assert_int_equal(find(f, "POST /pay", "k").count, 1);
	/* What another gateway reserves meanwhile, too. */
	advance(f, HPX_KEYED_LATER_MS / 2);
	reserve_keyed(f, 4, A, NULL);
	assert_status(complete(f, 4, A, "done"), HPX_OK);
	assert_status(act(f, HPX_VERB_MARK_UNKNOWN, 3, A), HPX_OK);
	advance(f, 3 * (int64_t)RETENTION_MS);
	for (int i = 0; i < 50 && strcmp(state_of(f, 4), "none") != 0; i++) {
		advance(f, 3600000);
		reap(f);
	}
	/* An unknown outcome does not expire. */
	assert_true(find(f, "POST /pay", "k").hidden);
	struct hpx_store_op op = op_of(HPX_VERB_FORGET, 2, A);
	op_forces(&op, true);
	assert_status(run_op(f, &op), HPX_OK);
	assert_false(find(f, "POST /pay", "k").hidden);
	/* A restart changes nothing; a start without it ends it. */
	make_known(f, true);
	fixture_reopen(f);
	assert_false(find(f, "POST /pay", "k").hidden);
	make_known(f, false);
	assert_true(find(f, "POST /pay", "k").hidden);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_OUTBOXES(an_operation_is_found_by_its_key),
		ON_OUTBOXES(what_is_gone_is_not_found),
		ON_OUTBOXES(a_tombstone_is_found_until_its_end),
		ON_SQLITE(a_tombstone_moves_over_what_was_left_behind),
		ON_OUTBOXES(what_began_before_is_not_forgotten_about),
	};
	return run_on_drivers("route_key", tests);
}
