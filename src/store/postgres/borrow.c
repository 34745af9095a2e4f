/* A store on a connection that stays the caller's: each op is one call of an
 * SQL function, part of whatever transaction is open there. Only libpq's plain
 * calls are used, which leave nothing behind on the connection; no setting is
 * changed, nothing is prepared, nothing is committed or rolled back. */
#include <stdio.h>
#include <stdlib.h>

#include "base/span.h"
#include "store/postgres/driver.h"

struct borrowed {
	struct hpx_store base;
	PGconn *conn;
};

/* ---- the connection ---- */

enum hpx_status hpx_pg_judge_borrowed(PGconn *conn, char *problem)
{
	if (conn == NULL || PQstatus(conn) != CONNECTION_OK) {
		hpx_store_problem(problem, "the connection is lost");
		return HPX_UNAVAILABLE;
	}
	if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF) {
		hpx_store_problem(problem, "the connection is in pipeline mode: leave it first");
		return HPX_MISUSE;
	}
	switch (PQtransactionStatus(conn)) {
	case PQTRANS_IDLE:
	case PQTRANS_INTRANS:
		return HPX_OK;
	case PQTRANS_INERROR:
		hpx_store_problem(problem, "the transaction has failed: roll it back");
		return HPX_INVALID;
	case PQTRANS_ACTIVE:
		hpx_store_problem(problem, "the connection has a query under way: take its "
					   "results first");
		return HPX_MISUSE;
	default:
		hpx_store_problem(problem, "the connection is lost");
		return HPX_UNAVAILABLE;
	}
}

/* The server speaks the session's language, in its encoding; our own sentences
 * are ASCII. */
static void make_utf8(char *text)
{
	if (hpx_utf8_valid(hpx_span_of(text)))
		return;
	for (; *text != '\0'; text++)
		if ((unsigned char)*text > 0x7f)
			*text = '?';
}

enum hpx_status hpx_pg_borrowed_fault(PGconn *conn, const PGresult *result, char *problem)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	enum hpx_status status = hpx_pg_status_of(state);

	if (PQstatus(conn) != CONNECTION_OK || primary == NULL) {
		hpx_pg_explain("PostgreSQL", PQerrorMessage(conn), problem);
		status = HPX_UNAVAILABLE;
	} else if (hpx_pg_is_settlers_own(status)) {
		hpx_store_problem(problem, "%s", primary);
	} else {
		hpx_store_problem(problem, "PostgreSQL: %s (SQLSTATE %s)", primary,
				  state != NULL ? state : "?");
	}
	make_utf8(problem);
	return status;
}

/* ---- an op as a call ----
 *
 * Text goes there and comes back as bytes that are called UTF-8 in the SQL: whatever
 * client_encoding is, an operation's id comes out the same. What can be found wrong
 * before asking is, because an error ends the transaction. */

/* One call of an SQL function. */
struct call {
	PGconn *conn;
	struct hpx_store_op *op;
	struct hpx_pg_params params;
	char lease[HPX_LEASE_SIZE]; /* or the reference, which is as long */
	char *problem;
};

/* More than any function takes, less than a message may hold. */
#define VALUE_BYTES_MAX ((size_t)64 << 20)

#define UTF8(n) "pg_catalog.convert_from($" n "::pg_catalog.bytea, 'UTF8')"
#define BYTES(n) "$" n "::pg_catalog.bytea"
#define NUMBER(n) "$" n "::pg_catalog.int8"

/* X(verb, SQL). The lease is the first argument, of RULE the reference. */
#define CALL_LIST(X) \
	X(RESERVE, "SELECT b.verdict, b.lease, b.attempt, b.status, b.kept, " \
		   "b.operation, b.point, " \
		   "pg_catalog.convert_to(b.headers, 'UTF8'), b.body " \
		   "FROM hapax.begin(" UTF8("1") ", " UTF8("2") ", " UTF8("3") ", " BYTES("4") ", " NUMBER("5") ", " NUMBER("6") ", " UTF8("7") ", " BYTES("8") ") b") \
	X(COMPLETE, "SELECT hapax.complete(" UTF8("1") ", " NUMBER("2") "::pg_catalog.int4, " UTF8("3") ", " BYTES("4") ", " NUMBER("5") ")") \
	X(FAIL, "SELECT hapax.not_executed(" UTF8("1") ")") \
	X(ADVANCE, "SELECT hapax.advance(" UTF8("1") ", " UTF8("2") ", " BYTES("3") ")") \
	X(ENQUEUE, "SELECT hapax.enqueue(" UTF8("1") ", " UTF8("2") ", " UTF8("3") ", " UTF8("4") ", " UTF8("5") ", " UTF8("6") ", " BYTES("7") ")") \
	X(PROVIDER_ID, "SELECT hapax.provider_id(" UTF8("1") ", " UTF8("2") ")") \
	X(RULE, "SELECT hapax.settle(" UTF8("1") ", " UTF8("2") ", " NUMBER("3") "::pg_catalog.int4, " UTF8("4") ", " BYTES("5") ", " UTF8("6") ")") \
	X(READ_POINT, "SELECT point, data FROM hapax.recovery(" UTF8("1") ")")

/* The columns of RESERVE. */
enum {
	COLUMN_VERDICT,
	COLUMN_LEASE,
	COLUMN_ATTEMPT,
	COLUMN_STATUS,
	COLUMN_KEPT,
	COLUMN_OPERATION,
	COLUMN_POINT,
	COLUMN_HEADERS,
	COLUMN_BODY,
};

/* NULL where no function does that. */
static const char *call_sql(enum hpx_verb verb)
{
	switch (verb) {
#define X(name, sql) \
	case HPX_VERB_##name: \
		return sql;
		CALL_LIST(X)
#undef X
	default:
		return NULL;
	}
}

/* ---- what each verb says ---- */

static enum hpx_status refuse(struct call *call, enum hpx_status status, const char *why)
{
	hpx_store_problem(call->problem, "%s", why);
	return status;
}

static enum hpx_status add_bytes(struct call *call, struct hpx_span bytes)
{
	if (bytes.len > VALUE_BYTES_MAX)
		return refuse(call, HPX_TOO_LARGE, "a value is larger than can be stored");
	hpx_pg_add_bytes(&call->params, bytes.len != 0 ? bytes : HPX_SPAN(""));
	return HPX_OK;
}

static enum hpx_status add_text(struct call *call, struct hpx_span text)
{
	if (!hpx_utf8_valid(text) || (text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL))
		return refuse(call, HPX_INVALID, "text must be UTF-8, without NUL");
	return add_bytes(call, text);
}

static enum hpx_status add_texts(struct call *call, const struct hpx_span *texts, size_t count)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < count && status == HPX_OK; i++)
		status = add_text(call, texts[i]);
	return status;
}

static void add_lease(struct call *call)
{
	hpx_lease_print(&call->op->id, &call->op->token, call->lease);
	hpx_pg_add_bytes(&call->params, hpx_span(call->lease, HPX_LEASE_LEN));
}

static struct hpx_span on_lost_of(const struct hpx_policy *policy)
{
	if (policy->completes == HPX_COMPLETES_APPLICATION)
		return HPX_SPAN("repeat");
	return policy->on_lost == HPX_ON_LOST_RESUME ? HPX_SPAN("resume") : HPX_SPAN("unknown");
}

/* hapax.begin makes the id of tenant, scope and key itself, and knows no
 * recipes: whoever calls it makes the fingerprint alike for ever. */
static enum hpx_status say_reserve(struct call *call)
{
	static const struct hpx_recipe_id no_recipe;
	const struct hpx_store_op *op = call->op;
	enum hpx_status status;

	if (op->reserve.ask == NULL || op->reserve.policy == NULL || op->reserve.description == NULL || op->reserve.look ||
	    memcmp(&op->reserve.ask->recipe, &no_recipe, sizeof(no_recipe)) != 0)
		return refuse(call, HPX_MISUSE, "a reservation here needs its description and "
						"a fingerprint without a recipe");
	const struct hpx_span names[] = { op->reserve.description->tenant, op->reserve.description->scope,
					  op->reserve.description->key };
	status = add_texts(call, names, 3);
	if (status != HPX_OK)
		return status;
	add_bytes(call, hpx_span(op->reserve.ask->fingerprint, sizeof(op->reserve.ask->fingerprint)));
	hpx_pg_add_int8(&call->params, op->reserve.policy->lease_ms);
	hpx_pg_add_int8(&call->params, op->reserve.policy->retention_ms);
	add_bytes(call, on_lost_of(op->reserve.policy));
	return add_bytes(call, hpx_span(op->reserve.ask->token.bytes, sizeof(op->reserve.ask->token.bytes)));
}

static enum hpx_status say_complete(struct call *call)
{
	const struct hpx_answer *answer = call->op->complete.answer;
	enum hpx_status status;

	HPX_ASSERT(call->op->verb == HPX_VERB_COMPLETE);
	if (answer == NULL || answer->status == 0 || !answer->kept)
		return refuse(call, HPX_MISUSE, "a completion here needs its answer, to be kept");
	hpx_pg_add_int8(&call->params, answer->status);
	status = add_text(call, answer->headers);
	if (status == HPX_OK)
		status = add_bytes(call, answer->body);
	hpx_pg_add_int8(&call->params, call->op->complete.retention_ms);
	return status;
}

static enum hpx_status say_advance(struct call *call)
{
	const struct hpx_store_op *op = call->op;

	HPX_ASSERT(op->verb == HPX_VERB_ADVANCE);
	if (!hpx_point_valid(op->advance.point))
		return refuse(call, HPX_INVALID, "the name of a recovery point is 1 to 63 visible "
						 "ASCII characters");
	if (op->advance.data.len > HPX_POINT_DATA_MAX)
		return refuse(call, HPX_TOO_LARGE, "the data of a recovery point is too large: at "
						   "most 1 MiB");
	add_bytes(call, op->advance.point);
	return add_bytes(call, op->advance.data);
}

static enum hpx_status say_enqueue(struct call *call)
{
	const struct hpx_job *job = call->op->enqueue.job;
	enum hpx_status status;

	HPX_ASSERT(call->op->verb == HPX_VERB_ENQUEUE);
	if (job == NULL)
		return refuse(call, HPX_MISUSE, "there is no job");
	if (hpx_job_fault(job) != NULL)
		return refuse(call, HPX_INVALID, hpx_job_fault(job));
	const struct hpx_span texts[] = { job->name, job->target, job->method, job->path,
					  job->headers };
	status = add_texts(call, texts, 5);
	return status == HPX_OK ? add_bytes(call, job->body) : status;
}

static enum hpx_status say_rule(struct call *call)
{
	const struct hpx_store_op *op = call->op;
	const struct hpx_ruling_update *update = op->rule.update;
	const struct hpx_answer *answer = update != NULL ? update->answer : NULL;
	struct hpx_span none = { NULL, 0 };
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(op->verb == HPX_VERB_RULE);
	if (update == NULL || !update->stored_rule || update->number != 0)
		return refuse(call, HPX_MISUSE, "a ruling here is about an operation, by the rule "
						"that the store knows");
	hpx_reference_print(&op->id, &op->mark, call->lease);
	hpx_pg_add_bytes(&call->params, hpx_span(call->lease, HPX_REFERENCE_LEN));
	add_bytes(call, hpx_span_of(hpx_ruling_name(update->received.ruling)));
	if (answer != NULL) {
		hpx_pg_add_int8(&call->params, answer->status);
		status = add_text(call, answer->headers);
		if (status == HPX_OK)
			status = add_bytes(call, answer->body);
	} else {
		for (int i = 0; i < 3; i++)
			hpx_pg_add_bytes(&call->params, none);
	}
	return status == HPX_OK ? add_text(call, op->reason) : status;
}

/* The arguments; or what is wrong with the op, and the problem. */
static enum hpx_status call_say(struct call *call)
{
	if (call->op->verb == HPX_VERB_RESERVE)
		return say_reserve(call);
	if (call->op->verb == HPX_VERB_RULE)
		return say_rule(call);
	add_lease(call);
	switch (call->op->verb) {
	case HPX_VERB_COMPLETE:
		return say_complete(call);
	case HPX_VERB_ADVANCE:
		return say_advance(call);
	case HPX_VERB_ENQUEUE:
		return say_enqueue(call);
	case HPX_VERB_PROVIDER_ID:
		if (!hpx_provider_id_valid(call->op->provider_id.text))
			return refuse(call, HPX_INVALID, "a provider's id is 1 to 127 visible ASCII "
							 "characters");
		return add_text(call, call->op->provider_id.text);
	default:
		return HPX_OK;
	}
}

/* ---- what it answers ---- */

static enum hpx_decision_kind decision_by_name(struct hpx_span name)
{
	for (int i = 0; i < HPX_DECISION_COUNT; i++)
		if (hpx_span_eq(name, hpx_span_of(hpx_decision_name((enum hpx_decision_kind)i))))
			return (enum hpx_decision_kind)i;
	return HPX_DECISION_COUNT;
}

/* The record as far as the function tells of it. */
static enum hpx_state state_after(enum hpx_decision_kind verdict)
{
	switch (verdict) {
	case HPX_DECISION_EXECUTE:
	case HPX_DECISION_EXECUTE_AGAIN:
	case HPX_DECISION_IN_PROGRESS:
		return HPX_STATE_IN_PROGRESS;
	case HPX_DECISION_REPLAY:
		return HPX_STATE_COMPLETED;
	default:
		return HPX_STATE_UNKNOWN;
	}
}

static bool read_names(const PGresult *result, const struct hpx_ask *ask,
		       struct hpx_record *record)
{
	struct hpx_span lease = hpx_pg_bytes(result, 0, COLUMN_LEASE);
	struct hpx_operation_id id;

	memcpy(record->tenant, ask->tenant, sizeof(record->tenant));
	memcpy(record->fingerprint, ask->fingerprint, sizeof(record->fingerprint));
	if (!hpx_reference_parse(hpx_pg_bytes(result, 0, COLUMN_OPERATION), &record->id,
				 &record->mark))
		return false;
	return lease.ptr == NULL || hpx_lease_parse(lease, &id, &record->token);
}

static enum hpx_status read_replay(const PGresult *result, struct hpx_store_op *op)
{
	const struct hpx_record *record = &op->decision.record;
	struct hpx_span headers = hpx_pg_bytes(result, 0, COLUMN_HEADERS);

	if (op->decision.kind != HPX_DECISION_REPLAY || headers.ptr == NULL)
		return HPX_OK;
	op->reserve.replay = hpx_answer_new(record->status, record->kept, headers,
					    hpx_pg_bytes(result, 0, COLUMN_BODY));
	return op->reserve.replay != NULL ? HPX_OK : HPX_NOMEM;
}

static enum hpx_status read_reserve(struct call *call, const PGresult *result)
{
	struct hpx_store_op *op = call->op;
	struct hpx_decision decision = { .kind = decision_by_name(
						 hpx_pg_bytes(result, 0, COLUMN_VERDICT)) };
	struct hpx_span point = hpx_pg_bytes(result, 0, COLUMN_POINT);
	int64_t attempt = 0, status = 0, kept = 0;

	if (decision.kind == HPX_DECISION_COUNT ||
	    !read_names(result, op->reserve.ask, &decision.record) ||
	    !hpx_pg_int(result, 0, COLUMN_ATTEMPT, 1, UINT32_MAX, &attempt))
		return refuse(call, HPX_CORRUPT, "hapax.begin gave an answer that cannot be read");
	if (!hpx_operation_id_eq(&decision.record.id, &op->reserve.ask->id))
		return refuse(call, HPX_MISUSE, "the description is not this operation's");
	hpx_pg_int(result, 0, COLUMN_STATUS, 0, 999, &status);
	hpx_pg_int(result, 0, COLUMN_KEPT, 0, 1, &kept);
	if (hpx_point_valid(point))
		memcpy(decision.record.point, point.ptr, point.len);
	decision.write = !hpx_token_is_void(&decision.record.token);
	decision.record.state = state_after(decision.kind);
	decision.record.attempt = (uint32_t)attempt;
	decision.record.status = (uint32_t)status;
	decision.record.kept = kept == 1;
	op->decision = decision;
	return read_replay(result, op);
}

static enum hpx_status call_read(struct call *call, const PGresult *result)
{
	struct hpx_store_op *op = call->op;
	struct hpx_record *record = &op->decision.record;

	if (PQntuples(result) != 1)
		return refuse(call, HPX_CORRUPT, "hapax's functions are not what they should be");
	if (op->verb == HPX_VERB_RESERVE)
		return read_reserve(call, result);
	if (op->verb == HPX_VERB_RULE)
		return hpx_pg_settlement_read(result, op);
	record->id = op->id;
	record->token = op->token;
	if (op->verb == HPX_VERB_COMPLETE) {
		record->state = HPX_STATE_COMPLETED;
		record->status = op->complete.answer->status;
		record->kept = true;
	}
	if (op->verb != HPX_VERB_READ_POINT)
		return HPX_OK;
	hpx_buffer_init(&op->read_point.data, HPX_POINT_DATA_MAX);
	return hpx_pg_point_read(result, 0, op);
}

/* ---- the driver's slots ---- */

static enum hpx_status run_call(struct call *call)
{
	const struct hpx_pg_params *p = &call->params;
	enum hpx_status status = call_say(call);
	int formats[HPX_PG_PARAMS_MAX];
	PGresult *result;

	if (status != HPX_OK)
		return status;
	for (int i = 0; i < p->count; i++)
		formats[i] = 1;
	result = PQexecParams(call->conn, call_sql(call->op->verb), p->count, NULL, p->value,
			      p->length, formats, 1);
	if (PQresultStatus(result) == PGRES_TUPLES_OK)
		status = call_read(call, result);
	else
		status = hpx_pg_borrowed_fault(call->conn, result, call->problem);
	PQclear(result);
	return status;
}

static enum hpx_status judge(const struct call *call)
{
	if (call_sql(call->op->verb) != NULL)
		return hpx_pg_judge_borrowed(call->conn, call->problem);
	hpx_store_problem(call->problem, "this needs a store with a connection of its own");
	return HPX_UNSUPPORTED;
}

/* The caller's mistakes and the operation's state are the op's; what is left is
 * the store's. */
static enum hpx_status borrowed_run(struct hpx_store *store, struct hpx_store_op **ops,
				    size_t count, char *problem)
{
	struct call call = { .conn = ((struct borrowed *)store)->conn, .problem = problem };
	enum hpx_status status;

	if (count != 1)
		return HPX_MISUSE;
	call.op = ops[0];
	status = judge(&call);
	if (status == HPX_OK)
		status = run_call(&call);
	if (status != HPX_OK && status != HPX_MISUSE && status != HPX_UNSUPPORTED &&
	    !hpx_pg_is_ops_own(status) &&
	    (call.op->verb != HPX_VERB_RULE || !hpx_pg_is_settlers_own(status)))
		return status;
	call.op->status = status;
	return HPX_OK;
}

static void borrowed_close(struct hpx_store *store)
{
	free(store);
}

static const struct hpx_store_driver borrowed_driver = {
	.run = borrowed_run,
	.close = borrowed_close,
};

/* Which functions are there, and whether this role may call them: all that a
 * borrower needs of the schema. From the catalog, where nothing can fail and
 * so end a transaction. */
#define CHECK_SQL \
	"SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE') " \
	"AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE') " \
	"FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_proc p " \
	"ON p.pronamespace OPERATOR(pg_catalog.=) n.oid " \
	"AND p.proname OPERATOR(pg_catalog.=) 'begin' " /* text, text, text, bytea, bigint, bigint, text, bytea */ \
	"AND p.proargtypes OPERATOR(pg_catalog.=) " \
	"'25 25 25 17 20 20 25 17' " \
	"WHERE n.nspname OPERATOR(pg_catalog.=) 'hapax'"

static enum hpx_status judge_schema(const PGresult *result, char *problem)
{
	if (PQntuples(result) != 1) {
		hpx_store_problem(problem, "the database has no schema \"hapax\": run `hapax "
					   "migrate --store URL`, or install it");
		return HPX_NOT_FOUND;
	}
	if (PQgetisnull(result, 0, 0)) {
		hpx_store_problem(problem, "the database's hapax functions are not this version's: "
					   "run `hapax migrate --store URL`, or install them");
		return HPX_UNSUPPORTED;
	}
	if (*PQgetvalue(result, 0, 0) != 't') {
		hpx_store_problem(problem, "this role may not call hapax's functions: GRANT "
					   "hapax_application to it");
		return HPX_READ_ONLY;
	}
	return HPX_OK;
}

static enum hpx_status check_schema(PGconn *conn, char *problem)
{
	PGresult *result = PQexec(conn, CHECK_SQL);
	enum hpx_status status = PQresultStatus(result) == PGRES_TUPLES_OK ?
					 judge_schema(result, problem) :
					 hpx_pg_borrowed_fault(conn, result, problem);

	PQclear(result);
	return status;
}

enum hpx_status hpx_pg_borrow(void *connection, struct hpx_store **ret_store,
			      char *problem)
{
	struct borrowed *b;
	enum hpx_status status = hpx_pg_judge_borrowed(connection, problem);

	if (status == HPX_OK)
		status = hpx_pg_check_server(connection, problem);
	if (status == HPX_OK)
		status = check_schema(connection, problem);
	if (status != HPX_OK)
		return status;
	b = calloc(1, sizeof(*b));
	if (b == NULL)
		return HPX_NOMEM;
	hpx_store_init(&b->base, &borrowed_driver);
	b->conn = connection;
	snprintf(b->base.description, sizeof(b->base.description), "postgres:%s", PQdb(connection));
	*ret_store = &b->base;
	return HPX_OK;
}
