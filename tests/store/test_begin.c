/* Shows that hapax.begin, for an application without the gateway, decides as
 * the decision in C does, in every state and for every way to ask; and what it
 * tells besides. */
#include "application.h"

#include "base/bytes.h"
#include "core/decision.h"

/* One question: the row as it is, and how it is asked. */
struct question {
	struct situation row;
	bool lost; /* the lease ran out */
	bool expired;
	bool mismatch;
	bool restored;    /* the row's request is not known */
	unsigned on_lost; /* as the record numbers it */
	unsigned token;   /* given: A (the row's own) or B; 0: none, one is made */
};

static const char *const on_lost_names[] = { "unknown", "resume", "repeat" };

static struct hpx_record put_question(struct fixture *f, unsigned key, const struct question *q)
{
	struct hpx_operation_id id = id_of(key);
	char hex[2 * HPX_OPERATION_ID_SIZE + 1], sql[512];

	put(f, key, &q->row);
	hpx_hex_encode(id.bytes, sizeof(id.bytes), hex);
	snprintf(sql, sizeof(sql),
		 "UPDATE hapax.operation SET recipe = repeat('%s', 32)::uuid, kept = false, "
		 "lease_until = %s, expires = CASE WHEN expires = 0 THEN 0 ELSE %s END, "
		 "point_data = 'saved' WHERE id = '%.32s'",
		 q->restored ? "f" : "0", q->lost ? "0" : "4102444800000", q->expired ? "1" : "4102444800000", hex);
	cluster_sql(sql);
	return record_or_none(f, key);
}

/* The verdict, and whatever else the function tells, joined by spaces. */
static void ask_begin(PGconn *app, unsigned key, const struct question *q,
		      const struct hpx_ask *request, char *out, size_t size)
{
	char hex[2 * HPX_SHA256_SIZE + 1], token[2 * HPX_TOKEN_SIZE + 8] = "NULL";

	hpx_hex_encode(request->fingerprint, sizeof(request->fingerprint), hex);
	if (q->token != 0) {
		struct hpx_token given = token_of(q->token);
		memcpy(token, "'\\x", 3);
		hpx_hex_encode(given.bytes, sizeof(given.bytes), token + 3);
		strcat(token, "'");
	}
	snprintf(out, size, "%s",
		 ask(app,
		     "SELECT concat_ws(' ', verdict, attempt, coalesce(lease, 'none'), operation, "
		     "coalesce(point, 'none'), coalesce(convert_from(data, 'UTF8'), 'none'), "
		     "coalesce(kept::text, 'none')) FROM hapax.begin('tenant', 'scope', 'key-%u', "
		     "'\\x%s', %d, %d, '%s', %s)",
		     key, hex, LEASE_MS, RETENTION_MS, on_lost_names[q->on_lost], token));
}

static void print_decision(const struct hpx_decision *decision, char *out, size_t size)
{
	const struct hpx_record *r = &decision->record;
	char lease[HPX_LEASE_SIZE], reference[HPX_REFERENCE_SIZE];
	bool begins = decision->kind == HPX_DECISION_EXECUTE ||
		      decision->kind == HPX_DECISION_EXECUTE_AGAIN;
	bool reached = begins && r->point[0] != '\0';

	hpx_lease_print(&r->id, &r->token, lease);
	hpx_reference_print(&r->id, &r->mark, reference);
	snprintf(out, size, "%s %u %s %s %s %s %s", hpx_decision_name(decision->kind),
		 r->attempt, begins ? lease : "none", reference, reached ? r->point : "none",
		 reached ? "saved" : "none",
		 decision->kind == HPX_DECISION_REPLAY ? "false" : "none");
}

/* The policy of the library's three words for a lost attempt. */
static struct hpx_policy policy_of(unsigned on_lost)
{
	struct hpx_policy p = *policy();

	p.on_lost = on_lost == HPX_WHEN_LOST_RESUME ? HPX_ON_LOST_RESUME : HPX_ON_LOST_UNKNOWN;
	p.completes = on_lost == HPX_WHEN_LOST_VOID ? HPX_COMPLETES_APPLICATION :
						      HPX_COMPLETES_UPSTREAM;
	return p;
}

/* The token in the decision: the given one, or the one the database made. */
static struct hpx_token token_asked(const struct question *q, const struct hpx_record *before,
				    const struct hpx_record *after)
{
	/* Nobody is ever given a delivery's token: it is no reservation of his. */
	if (before->state == HPX_STATE_PENDING)
		return token_of(99);
	if (q->token != 0)
		return token_of(q->token);
	if (before->state != HPX_STATE_NONE && hpx_token_eq(&before->token, &after->token))
		return token_of(99); /* made, and not used */
	return after->token;
}

/* The same question to hapax.begin and to the decision in C. */
static void check_begin(struct fixture *f, PGconn *app, unsigned key, const struct question *q)
{
	struct hpx_record before = put_question(f, key, q);
	struct hpx_ask request = ask_of(f->store, key, BODY, B);
	struct hpx_policy p = policy_of(q->on_lost);
	struct hpx_decision decision;
	char told[512], said[512], got[640], want[640];

	request.recipe = (struct hpx_recipe_id){ { 0 } };
	memcpy(request.fingerprint, before.fingerprint, sizeof(request.fingerprint));
	request.fingerprint[0] ^= q->mismatch;
	ask_begin(app, key, q, &request, told, sizeof(told));
	struct hpx_record after = record_or_none(f, key);
	struct hpx_moment now = { .wall_ms = after.changed_ms, .lease_ms = after.changed_ms };
	request.token = token_asked(q, &before, &after);
	hpx_decide(before.state == HPX_STATE_NONE ? NULL : &before, &request, &p, &now, &decision);
	/* An application knows no deliveries. */
	if (decision.kind == HPX_DECISION_PENDING)
		decision.kind = HPX_DECISION_IN_PROGRESS;
	print_decision(&decision, said, sizeof(said));
	decision.record.owner = after.owner;
	print_record(&after, got, sizeof(got));
	print_record(decision.write ? &decision.record : &before, want, sizeof(want));
	if (strcmp(told, said) != 0 || strcmp(got, want) != 0)
		fail_msg("begin on %s lost=%d expired=%d mismatch=%d on_lost=%s token=%u:\n"
			 " got %s\n     %s\nwant %s\n     %s",
			 hpx_state_name(q->row.state), q->lost, q->expired, q->mismatch,
			 on_lost_names[q->on_lost], q->token, told, got, said, want);
}

static void begin_decides_as_the_record_says(void **state)
{
	static const unsigned tokens[] = { 0, A, B };
	struct fixture *f = *state;
	PGconn *app = cluster_connect();
	unsigned key = 0;

	/* Once more at the end: completed, and restored. */
	for (int s = 0; s <= HPX_STATE_COUNT; s++)
		for (unsigned bits = 0; bits < 16 * HPX_WHEN_LOST_COUNT; bits++)
			for (unsigned way = 0; way < 9; way++) {
				bool restored = s == HPX_STATE_COUNT;
				struct question q = {
					.restored = restored,
					.row = { .state = restored ? HPX_STATE_COMPLETED : (enum hpx_state)s,
						 .when_lost = (enum hpx_when_lost)(bits / 16),
						 .advanced = true,
						 .attempt = bits & 8 ? 2 : 1 },
					.lost = bits & 1,
					.expired = bits & 2,
					.mismatch = bits & 4,
					.on_lost = way / 3,
					.token = tokens[way % 3],
				};
				check_begin(f, app, key++, &q);
			}
	PQfinish(app);
}

static void an_application_alone_executes_once(void **state)
{
	static const char begin_sql[] =
		"SELECT verdict FROM hapax.begin('t', 's', 'k', sha256('request'), 30000, 86400000)";
	PGconn *app = cluster_connect();
	char lease[HPX_REFERENCE_SIZE];

	(void)state;
	PQclear(cluster_ask(app, "BEGIN"));
	snprintf(lease, sizeof(lease), "%s",
		 ask(app, "SELECT lease FROM hapax.begin('t', 's', 'k', sha256('request'), 30000, "
			  "86400000)"));
	assert_string_equal(state_after(app, "SELECT hapax.complete('%s', 201, 'A: b', 'done')", lease),
			    "00000");
	PQclear(cluster_ask(app, "COMMIT"));
	assert_string_equal(ask(app, "%s", begin_sql), "replay");
	assert_string_equal(ask(app, "SELECT status || headers || convert_from(body, 'UTF8') FROM "
				     "hapax.begin('t', 's', 'k', sha256('request'), 30000, 86400000)"),
			    "201A: b\r\ndone");
	assert_string_equal(state_after(app, "SELECT hapax.begin('t', 's', '', sha256('r'), 1, 1)"),
			    "22023");
	PQfinish(app);
}

/* What the database was given by hand is nobody's answer. */
static void an_answer_that_is_not_whole_is_unknown(void **state)
{
	static const struct {
		const char *damage;
		const char *verdict;
	} rows[] = {
		{ "UPDATE hapax.operation SET answer = hapax.pack_answer(id, rest, '', 'x')", "replay" },
		{ "UPDATE hapax.operation SET answer = hapax.pack_answer(id, id, '', 'x')", "unknown" },
		{ "UPDATE hapax.operation SET answer = overlay(answer PLACING 'y' FROM "
		  "octet_length(answer))",
		  "unknown" },
		{ "UPDATE hapax.operation SET answer = substr(answer, 1, 30)", "unknown" },
		/* The hash is right, the length is not. */
		{ "UPDATE hapax.operation SET answer = sha256(uuid_send(id) || uuid_send(rest) || "
		  "'\\x00000009' || 'x') || '\\x00000009' || 'x'",
		  "unknown" },
		{ "UPDATE hapax.operation SET answer = sha256(uuid_send(id) || uuid_send(rest) || "
		  "'\\xffffffff' || 'x') || '\\xffffffff' || 'x'",
		  "unknown" },
		{ "UPDATE hapax.operation SET answer = NULL", "unknown" },
		{ "UPDATE hapax.operation SET answer = NULL, kept = false", "replay" },
	};
	PGconn *app = cluster_connect();

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char lease[HPX_REFERENCE_SIZE];
		cluster_sql("TRUNCATE hapax.operation");
		snprintf(lease, sizeof(lease), "%s",
			 ask(app, "SELECT lease FROM hapax.begin('t', 's', 'k', sha256(''), 1, 99999)"));
		assert_string_equal(state_after(app, "SELECT hapax.complete('%s', 200, '', 'x')",
						lease),
				    "00000");
		cluster_sql(rows[i].damage);
		assert_string_equal(ask(app, "SELECT verdict FROM hapax.begin('t', 's', 'k', "
					     "sha256(''), 1, 99999)"),
				    rows[i].verdict);
	}
	PQfinish(app);
}

/* Only where nothing but the outcome is known, no request is compared: an answer is that
 * of its own request, and what failed is executed again by it alone. */
static void a_restored_record_has_no_answer_and_is_not_executed(void **state)
{
	static const struct {
		const char *change;
		const char *verdict;
	} rows[] = {
		{ "", "mismatch" },
		{ ", recipe = repeat('f', 32)::uuid", "mismatch" },
		{ ", recipe = repeat('f', 32)::uuid, kept = false, answer = NULL", "replay" },
		{ ", recipe = repeat('f', 32)::uuid, kept = false, state = 2", "mismatch" },
	};
	PGconn *app = cluster_connect();

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char sql[256];
		cluster_sql("TRUNCATE hapax.operation");
		PQclear(cluster_ask(app, "SELECT hapax.complete(lease, 200, '', 'x') FROM "
					 "hapax.begin('t', 's', 'k', sha256(''), 1, 99999)"));
		snprintf(sql, sizeof(sql), "UPDATE hapax.operation SET point = ''%s", rows[i].change);
		cluster_sql(sql);
		assert_string_equal(ask(app, "SELECT verdict FROM hapax.begin('t', 's', 'k', "
					     "sha256('another'), 1, 99999)"),
				    rows[i].verdict);
	}
	PQfinish(app);
}

/* HTTP's old encoding, as the gateway keeps it. */
static void headers_that_are_not_utf8_are_still_told(void **state)
{
	PGconn *app = cluster_connect();

	(void)state;
	PQclear(cluster_ask(app, "SELECT hapax.complete(lease, 200, 'X: b', 'x') FROM "
				 "hapax.begin('t', 's', 'k', sha256(''), 1, 99999)"));
	cluster_sql("UPDATE hapax.operation SET answer = "
		    "hapax.pack_answer(id, rest, '\\x583a20e90d0a', 'x')");
	assert_string_equal(ask(app, "SELECT headers FROM hapax.begin('t', 's', 'k', sha256(''), 1, "
				     "99999)"),
			    "X: \xc3\xa9\r\n");
	PQfinish(app);
}

static void what_cannot_be_begun_is_refused(void **state)
{
	static const struct {
		const char *arguments;
		const char *sqlstate;
	} rows[] = {
		{ "'t', 's', 'k', sha256(''), 1, 1", "00000" },
		{ "'t', 's', 'l', sha256(''), 1, 3155760000000", "00000" },
		{ "'t', 's', 'k', sha256(''), 1, 3155760000001", "22023" },
		{ "'t', 's', 'k', sha256(''), 0, 1", "22023" },
		{ "'t', 's', '', sha256(''), 1, 1", "22023" },
		{ "NULL, 's', 'k', sha256(''), 1, 1", "22023" },
		{ "'t', 's', 'k', 'short', 1, 1", "22023" },
		{ "'t', 's', 'k', sha256(''), 1, 1, NULL", "22023" },
		{ "'t', 's', 'k', sha256(''), 1, 1, 'never'", "22023" },
		{ "'t', 's', 'k', sha256(''), 1, 1, 'resume', 'short'", "22023" },
		{ "'t', 's', 'k', sha256(''), 1, 1, 'resume', decode(repeat('00', 16), 'hex')", "22023" },
		{ "'t', 's', 'm', sha256(''), 1, 1, token => substr(sha256(''), 1, 16)", "00000" },
	};
	PGconn *app = cluster_connect();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *got = state_after(app, "SELECT hapax.begin(%s)", rows[i].arguments);
		if (strcmp(got, rows[i].sqlstate) != 0)
			fail_msg("%s: got %s, want %s", rows[i].arguments, got, rows[i].sqlstate);
	}
	PQfinish(app);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_POSTGRES(begin_decides_as_the_record_says),
		ON_POSTGRES(an_application_alone_executes_once),
		ON_POSTGRES(an_answer_that_is_not_whole_is_unknown),
		ON_POSTGRES(a_restored_record_has_no_answer_and_is_not_executed),
		ON_POSTGRES(headers_that_are_not_utf8_are_still_told),
		ON_POSTGRES(what_cannot_be_begun_is_refused),
	};
	return run_on_drivers("begin", tests);
}
