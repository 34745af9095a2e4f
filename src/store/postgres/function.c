/* An op as the arguments of the SQL function that does it, and that function's
 * answer as the op's results.
 *
 * Text goes there and comes back as bytes that are called UTF-8 in the SQL:
 * whatever client_encoding is, an operation's id comes out the same. What can
 * be found wrong before asking is, because an error ends the transaction. */
#include "base/span.h"
#include "store/postgres/driver.h"

/* More than any function takes, less than a message may hold. */
#define VALUE_BYTES_MAX ((size_t)64 << 20)

#define UTF8(n) "pg_catalog.convert_from($" n "::pg_catalog.bytea, 'UTF8')"
#define BYTES(n) "$" n "::pg_catalog.bytea"
#define NUMBER(n) "$" n "::pg_catalog.int8"

/* X(verb, SQL). The lease is always the first argument. */
#define CALL_LIST(X) \
	X(RESERVE, "SELECT b.verdict, b.lease, b.attempt, b.status, b.kept, " \
		   "b.operation, b.point, " \
		   "pg_catalog.convert_to(b.headers, 'UTF8'), b.body " \
		   "FROM hapax.begin(" UTF8("1") ", " UTF8("2") ", " UTF8("3") ", " BYTES("4") ", " NUMBER("5") ", " NUMBER("6") ", " UTF8("7") ", " BYTES("8") ") b") \
	X(COMPLETE, "SELECT hapax.complete(" UTF8("1") ", " NUMBER("2") "::pg_catalog.int4, " UTF8("3") ", " BYTES("4") ")") \
	X(FAIL, "SELECT hapax.not_executed(" UTF8("1") ")") \
	X(ADVANCE, "SELECT hapax.advance(" UTF8("1") ", " UTF8("2") ", " BYTES("3") ")") \
	X(ENQUEUE, "SELECT hapax.enqueue(" UTF8("1") ", " UTF8("2") ", " UTF8("3") ", " UTF8("4") ", " UTF8("5") ", " UTF8("6") ", " BYTES("7") ")") \
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

const char *hpx_pg_call_sql(enum hpx_verb verb)
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

static enum hpx_status refuse(struct hpx_pg_call *call, enum hpx_status status, const char *why)
{
	hpx_store_problem(call->problem, "%s", why);
	return status;
}

static enum hpx_status add_bytes(struct hpx_pg_call *call, struct hpx_span bytes)
{
	if (bytes.len > VALUE_BYTES_MAX)
		return refuse(call, HPX_TOO_LARGE, "a value is larger than can be stored");
	hpx_pg_add_bytes(&call->params, bytes.len != 0 ? bytes : HPX_SPAN(""));
	return HPX_OK;
}

static enum hpx_status add_text(struct hpx_pg_call *call, struct hpx_span text)
{
	if (!hpx_utf8_valid(text) || (text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL))
		return refuse(call, HPX_INVALID, "text must be UTF-8, without NUL");
	return add_bytes(call, text);
}

static enum hpx_status add_texts(struct hpx_pg_call *call, const struct hpx_span *texts, size_t count)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < count && status == HPX_OK; i++)
		status = add_text(call, texts[i]);
	return status;
}

static void add_lease(struct hpx_pg_call *call)
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
static enum hpx_status say_reserve(struct hpx_pg_call *call)
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

static enum hpx_status say_complete(struct hpx_pg_call *call)
{
	const struct hpx_answer *answer = call->op->complete.answer;
	enum hpx_status status;

	HPX_ASSERT(call->op->verb == HPX_VERB_COMPLETE);
	if (answer == NULL || answer->status == 0 || !answer->kept)
		return refuse(call, HPX_MISUSE, "a completion here needs its answer, to be kept");
	hpx_pg_add_int8(&call->params, answer->status);
	status = add_text(call, answer->headers);
	return status == HPX_OK ? add_bytes(call, answer->body) : status;
}

static enum hpx_status say_advance(struct hpx_pg_call *call)
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

static enum hpx_status say_enqueue(struct hpx_pg_call *call)
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

enum hpx_status hpx_pg_call_say(struct hpx_pg_call *call)
{
	if (call->op->verb == HPX_VERB_RESERVE)
		return say_reserve(call);
	add_lease(call);
	switch (call->op->verb) {
	case HPX_VERB_COMPLETE:
		return say_complete(call);
	case HPX_VERB_ADVANCE:
		return say_advance(call);
	case HPX_VERB_ENQUEUE:
		return say_enqueue(call);
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

static enum hpx_status read_reserve(struct hpx_pg_call *call, const PGresult *result)
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

enum hpx_status hpx_pg_call_read(struct hpx_pg_call *call, const PGresult *result)
{
	struct hpx_store_op *op = call->op;
	struct hpx_record *record = &op->decision.record;

	if (PQntuples(result) != 1)
		return refuse(call, HPX_CORRUPT, "hapax's functions are not what they should be");
	if (op->verb == HPX_VERB_RESERVE)
		return read_reserve(call, result);
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
