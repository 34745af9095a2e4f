/* GET /.hapax/operations: the state of an operation. A caller sees the operations of
 * its own tenant only; another tenant's do not exist for it (guarantee 5). */
#include "gateway/steps.h"

#include <stdio.h>

#include "base/json_writer.h"
#include "base/status.h"
#include "core/form.h"
#include "http/field.h"
#include "http/write.h"

#define JSON HPX_SPAN("application/json")
/* Behind it, a reference. */
#define BY_REFERENCE HPX_SPAN(HPX_BUILTIN_ROOT "/operations/")
#define DOCUMENT_BYTES_MAX 16384
/* An operation has few jobs, usually one; further ones are not shown here. */
#define JOBS_SHOWN_MAX 16
#define PENDING_RETRY_AFTER_S 1

/* ---- the document ---- */

static void put_time_if_set(struct hpx_json_writer *json, const char *name, int64_t wall_ms)
{
	if (wall_ms != 0)
		hpx_json_put_time(json, name, wall_ms);
}

static void put_job(struct hpx_json_writer *json, const struct hpx_job_entry *entry)
{
	const struct hpx_delivery *delivery = &entry->delivery;
	enum hpx_job_state state = entry->readable ? delivery->state : HPX_JOB_UNKNOWN;

	hpx_json_begin_object(json, NULL);
	hpx_json_put_string(json, "name", entry->job.name);
	hpx_json_put_text(json, "state", hpx_job_state_name(state));
	hpx_json_put_number(json, "attempt", delivery->attempt);
	if (delivery->status != 0)
		hpx_json_put_number(json, "status", delivery->status);
	if (delivery->state == HPX_JOB_QUEUED)
		put_time_if_set(json, "next_try", delivery->due_ms);
	hpx_json_end_object(json);
}

/* A job outlives its operation. Jobs of an earlier use of the same key are not
 * shown. */
static void put_jobs(struct hpx_json_writer *json, const struct hpx_record *record,
		     const struct hpx_job_entry *jobs)
{
	bool any = false;

	for (; jobs != NULL; jobs = jobs->next) {
		if (!hpx_mark_eq(&jobs->delivery.mark, &record->mark))
			continue;
		if (!any)
			hpx_json_begin_array(json, "jobs");
		any = true;
		put_job(json, jobs);
	}
	if (any)
		hpx_json_end_array(json);
}

static void put_question(struct hpx_json_writer *json, const struct hpx_next_question *question)
{
	if (question->person)
		hpx_json_put_bool(json, "needs_person", true);
	else
		put_time_if_set(json, "next_question", question->at_ms);
}

static void put_links(struct hpx_json_writer *json, const char *reference)
{
	char self[sizeof(HPX_BUILTIN_ROOT "/operations/") + HPX_REFERENCE_SIZE];

	snprintf(self, sizeof(self), HPX_BUILTIN_ROOT "/operations/%s", reference);
	hpx_json_begin_object(json, "links");
	hpx_json_put_text(json, "self", self);
	hpx_json_put_text(json, "policy", HPX_BUILTIN_ROOT "/policy");
	hpx_json_end_object(json);
}

enum hpx_status hpx_operation_print(const struct hpx_record *record,
				    const struct hpx_job_entry *jobs,
				    const struct hpx_next_question *question,
				    struct hpx_buffer *out)
{
	bool pending = record->state == HPX_STATE_PENDING;
	char reference[HPX_REFERENCE_SIZE];
	struct hpx_json_writer json;

	hpx_reference_print(&record->id, &record->mark, reference);
	hpx_json_writer_init(&json, out);
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_text(&json, "operation", reference);
	hpx_json_put_text(&json, "state", hpx_state_name(record->state));
	hpx_json_put_number(&json, "attempt", record->attempt);
	if (record->status != 0)
		hpx_json_put_number(&json, "status", record->status);
	if (record->state == HPX_STATE_COMPLETED)
		hpx_json_put_bool(&json, "kept", record->kept);
	if (record->last_error != HPX_LAST_ERROR_NONE)
		hpx_json_put_text(&json, "last_error", hpx_last_error_name(record->last_error));
	put_time_if_set(&json, "created", record->created_ms);
	put_time_if_set(&json, "changed", record->changed_ms);
	put_time_if_set(&json, pending ? "deliver_until" : "expires", record->expires_ms);
	put_jobs(&json, record, jobs);
	if (record->state == HPX_STATE_UNKNOWN && question != NULL)
		put_question(&json, question);
	put_links(&json, reference);
	hpx_json_end_object(&json);
	return hpx_json_writer_finish(&json);
}

static void respond(struct hpx_request *request, unsigned http_status, struct hpx_span fields,
		    const struct hpx_store_query *look)
{
	struct hpx_buffer body;

	hpx_buffer_init(&body, DOCUMENT_BYTES_MAX);
	if (hpx_operation_print(&request->reservation.record, look != NULL ? look->jobs : NULL,
				look != NULL ? &look->question : NULL, &body) == HPX_OK)
		hpx_respond_direct(request, http_status, JSON, fields, hpx_buffer_span(&body));
	else
		(void)hpx_respond_problem(request, HPX_PROBLEM_overloaded, NULL);
	hpx_buffer_done(&body);
}

void hpx_operation_accepted(struct hpx_request *request)
{
	request->summary.did = HPX_DID_accepted;
	char reference[HPX_REFERENCE_SIZE];

	HPX_ASSERT(request->reservation.record.state != HPX_STATE_NONE);
	if (request->downstream == NULL)
		return;
	hpx_reference_print(&request->reservation.record.id, &request->reservation.record.mark, reference);
	struct hpx_span fields =
		hpx_arena_printf(&request->arena,
				 "Location: " HPX_BUILTIN_ROOT "/operations/%s\r\n"
				 "Retry-After: %u\r\n",
				 reference, PENDING_RETRY_AFTER_S);
	respond(request, 202, fields, NULL);
}

/* ---- its jobs ---- */

enum hpx_next hpx_step_show_late(struct hpx_request *request)
{
	respond(request, 200, (struct hpx_span){ "", 0 }, NULL);
	return HPX_NEXT_DONE;
}

enum hpx_next hpx_step_show(struct hpx_request *request)
{
	const struct hpx_store_query *query = &request->wait.query;

	respond(request, 200, (struct hpx_span){ "", 0 }, query->status == HPX_OK ? query : NULL);
	return HPX_NEXT_DONE;
}

enum hpx_next hpx_operation_show(struct hpx_request *request)
{
	HPX_ASSERT(request->reservation.record.state != HPX_STATE_NONE);
	request->wait.query = (struct hpx_store_query){
		.wants_jobs = true,
		.query = { .state = HPX_JOB_STATE_COUNT, .operation = &request->identity.ask.id, .limit = JOBS_SHOWN_MAX },
		.wants_question = request->reservation.record.state == HPX_STATE_UNKNOWN,
		.id = request->identity.ask.id,
	};
	return hpx_request_query(request, HPX_NEXT_SHOW, HPX_NEXT_SHOW_LATE);
}

/* ---- finding it ---- */

static bool is_under_way(const struct hpx_record *record)
{
	return record->state == HPX_STATE_PENDING || record->state == HPX_STATE_IN_PROGRESS;
}

/* The id that is made of a key is made of the caller's tenant, so that a record which was
 * restored without one is his; a reference tells nothing of that. */
static bool is_callers(const struct hpx_request *request, const struct hpx_record *record)
{
	bool by_key = !hpx_span_starts(request->head.target.path, BY_REFERENCE);

	if (hpx_recipe_is_unknown(&record->recipe))
		return by_key;
	return hpx_bytes_same(request->identity.ask.tenant, record->tenant, sizeof(record->tenant));
}

/* The caller's operation, or 404: the operation of another tenant, an earlier use of
 * the same key and an absent operation look alike. */
enum hpx_next hpx_step_found(struct hpx_request *request)
{
	const struct hpx_record *record = &request->reservation.op.decision.record;
	struct hpx_moment now = { .wall_ms = hpx_clock_wall_ms(),
				  .hold_expiry = atomic_load(
					  &request->shard->service->store->expiry_held) };

	HPX_ASSERT(request->reservation.op.verb == HPX_VERB_FIND);
	if (request->reservation.op.status == HPX_NOT_FOUND)
		return hpx_respond_problem(request, HPX_PROBLEM_not_found, NULL);
	if (request->reservation.op.status != HPX_OK)
		return HPX_NEXT_STORE_UNAVAILABLE;
	if (!is_callers(request, record) ||
	    (!hpx_mark_is_void(&request->identity.sought) &&
	     !hpx_mark_eq(&request->identity.sought, &record->mark)))
		return hpx_respond_problem(request, HPX_PROBLEM_not_found, NULL);
	request->reservation.record = *record;
	if (hpx_record_expired(record, &now))
		return hpx_respond_problem(request, HPX_PROBLEM_expired, NULL);
	int64_t wait_ms = is_under_way(record) ?
				  hpx_wait_preferred(request,
						     request->settings->fallback.policy.wait_ms) :
				  0;
	if (wait_ms > 0)
		return hpx_wait_for(request, wait_ms);
	return hpx_operation_show(request);
}

enum hpx_next hpx_step_find(struct hpx_request *request)
{
	request->reservation.op = (struct hpx_store_op){ .verb = HPX_VERB_FIND,
							 .id = request->identity.ask.id,
							 .mark = request->identity.sought };
	return hpx_request_submit(request, HPX_WAIT_QUERY, HPX_NEXT_FOUND, HPX_NEXT_STORE_UNAVAILABLE);
}

/* The decoded value of a query parameter; ptr is NULL where the parameter is absent
 * or malformed. */
static struct hpx_span parameter(struct hpx_request *request, struct hpx_span wanted)
{
	struct hpx_span rest = request->head.target.query;
	struct hpx_span pair;

	while (rest.ptr != NULL && hpx_span_split(&rest, '&', &pair)) {
		size_t at = hpx_span_index(pair, '=');
		if (at == pair.len || !hpx_span_eq(hpx_span_first(pair, at), wanted))
			continue;
		char *value = hpx_arena_alloc(&request->arena, pair.len);
		size_t len = 0;
		if (value == NULL ||
		    hpx_form_decode(hpx_span_skip(pair, at + 1), value, &len) != HPX_OK)
			break;
		return hpx_span(value, len);
	}
	return (struct hpx_span){ NULL, 0 };
}

/* Finds the operation by key, method and path. The key is in its header or in a query
 * parameter. */
static enum hpx_next by_key(struct hpx_request *request)
{
	const struct hpx_settings *settings = request->settings;
	struct hpx_span value = hpx_field_value(&request->head.http, settings->key_header);
	struct hpx_span method = parameter(request, HPX_SPAN("method"));
	struct hpx_span path = parameter(request, HPX_SPAN("path"));
	struct hpx_target target;
	struct hpx_span scope;
	const char *reason = "the key is missing: send its header, or ?key=…";

	if (value.ptr == NULL)
		value = parameter(request, HPX_SPAN("key"));
	if (method.ptr == NULL)
		method = HPX_SPAN("POST");
	method = hpx_route_method_meant(settings, method);
	if (path.ptr == NULL)
		return hpx_respond_problem(request, HPX_PROBLEM_bad_request,
					   "ask with ?method=POST&path=/…, and the key in its header or as key=…");
	if (value.ptr == NULL ||
	    (settings->key_syntax == HPX_KEY_SYNTAX_BARE ?
		     hpx_key_parse_bare(value, &request->identity.key, &reason) :
		     hpx_key_parse(value, false, &request->identity.key, &reason)) != HPX_OK)
		return hpx_respond_problem(request, HPX_PROBLEM_idempotency_key_invalid, reason);
	if (hpx_target_parse(method, path, &request->arena, &target, &reason) != HPX_OK)
		return hpx_respond_problem(request, HPX_PROBLEM_bad_request, reason);
	const struct hpx_route *route =
		hpx_route_match(settings, method, request->head.host, target.path);
	if (hpx_scope_of(settings, route, method, target.path, &request->arena, &scope) != HPX_OK ||
	    hpx_operation_id(request->identity.tenant, scope,
			     hpx_span(request->identity.key.bytes, request->identity.key.len), &request->identity.ask.id) != HPX_OK)
		return hpx_respond_problem(request, HPX_PROBLEM_overloaded, NULL);
	return HPX_NEXT_FIND;
}

enum hpx_next hpx_step_operation(struct hpx_request *request)
{
	struct hpx_span path = request->head.target.path;
	struct hpx_sha256 hash;

	if (request->shard->service->committer == NULL)
		return HPX_NEXT_STORE_UNAVAILABLE;
	hpx_sha256_init(&hash);
	hpx_sha256_add(&hash, request->identity.tenant);
	if (hpx_sha256_done(&hash, request->identity.ask.tenant) != HPX_OK)
		return hpx_respond_problem(request, HPX_PROBLEM_overloaded, NULL);
	if (!hpx_span_starts(path, BY_REFERENCE))
		return by_key(request);
	if (!hpx_reference_parse(hpx_span_skip(path, BY_REFERENCE.len), &request->identity.ask.id,
				 &request->identity.sought))
		return hpx_respond_problem(request, HPX_PROBLEM_not_found, NULL);
	return HPX_NEXT_FIND;
}
