/* Answers: those of hapax, stored ones, and the upstream's. Every field goes through
 * the checked writer, so that nothing that an upstream or a client sent can add a
 * line. */
#include "gateway/respond.h"

#include "base/log.h"
#include "base/status.h"
#include "http/cors.h"
#include "http/field.h"
#include "http/write.h"

/* The largest head of an answer of hapax, or of a replay. */
#define HEAD_BYTES_MAX (96 * 1024)
/* Room for the fields that hapax adds to a stored answer. */
#define USUAL_HEAD_BYTES 512

/* The lines of an answer, with the CORS fields for the page that asks. */
static enum hpx_status write_lines(const struct hpx_request *request,
				   enum hpx_cors_answer answer, struct hpx_span lines,
				   struct hpx_buffer *out)
{
	return hpx_cors_write(&request->settings->cors, answer, hpx_cors_origin(&request->head.http),
			      lines, out);
}

/* The key is free for another execution: Idempotency-Expires would say that its
 * answer is kept. */
static bool runs_again(const struct hpx_request *request)
{
	enum hpx_state state = request->reservation.record.state;

	return state == HPX_STATE_FAILED_RETRYABLE ||
	       (state == HPX_STATE_IN_PROGRESS &&
		(request->attempt.outcome == HPX_OUTCOME_NOT_EXECUTED ||
		 request->attempt.outcome == HPX_OUTCOME_RELEASED));
}

/* The fields about the operation, where there is one. */
static enum hpx_status write_operation(const struct hpx_request *request, struct hpx_buffer *out)
{
	char text[HPX_REFERENCE_SIZE];
	char when[HPX_RFC3339_SIZE];
	const struct hpx_record *record = &request->reservation.record;

	if (record->state == HPX_STATE_NONE)
		return HPX_OK;
	hpx_reference_print(&record->id, &record->mark, text);
	enum hpx_status status =
		HPX_WRITE_FIELD(out, "Hapax-Operation", hpx_span_of(text));
	/* Of what is delivered later, the same time says until when. */
	if (status != HPX_OK || record->expires_ms == 0 || record->state == HPX_STATE_PENDING ||
	    runs_again(request))
		return status;
	hpx_clock_rfc3339(record->expires_ms, when);
	return HPX_WRITE_FIELD(out, "Idempotency-Expires", hpx_span_of(when));
}

/* Preference-Applied (RFC 7240 §3): the request waited, and for how long at most. */
static enum hpx_status write_preference(const struct hpx_request *request,
					struct hpx_buffer *out)
{
	if (!request->wait.waited || request->wait.applied_s == 0)
		return HPX_OK;
	return hpx_buffer_printf(out, "Preference-Applied: wait=%u\r\n",
				 request->wait.applied_s);
}

static enum hpx_status write_date(struct hpx_buffer *out)
{
	char date[HPX_HTTP_DATE_SIZE];

	hpx_clock_http_date(hpx_clock_wall_ms(), date);
	return HPX_WRITE_FIELD(out, "Date", hpx_span_of(date));
}

/* Sends a complete answer, unless its head could not be written. */
static void send_whole(struct hpx_request *request, struct hpx_buffer *head,
		       enum hpx_status status, unsigned http_status, struct hpx_span body)
{
	if (status == HPX_OK) {
		hpx_downstream_answer(request->downstream, head, http_status, body);
		return;
	}
	hpx_log(HPX_LOG_ERROR, "answer_not_written", "status=%u problem=%s", http_status,
		hpx_status_name(status));
	hpx_downstream_close(request->downstream);
}

enum hpx_next hpx_respond_direct(struct hpx_request *request, unsigned http_status,
				 struct hpx_span content_type, struct hpx_span fields, struct hpx_span body)
{
	struct hpx_buffer head;

	if (request->downstream == NULL)
		return HPX_NEXT_DONE;
	hpx_buffer_init(&head, HEAD_BYTES_MAX);
	enum hpx_status status = hpx_write_status_line(&head, http_status,
						       hpx_span_of(hpx_reason_phrase(http_status)));
	if (status == HPX_OK)
		status = write_date(&head);
	if (status == HPX_OK && content_type.len > 0)
		status = HPX_WRITE_FIELD(&head, "Content-Type", content_type);
	if (status == HPX_OK)
		status = HPX_WRITE_FIELD(&head, "Cache-Control", HPX_SPAN("no-store"));
	if (status == HPX_OK)
		status = write_lines(request, HPX_CORS_OWN, fields, &head);
	if (status == HPX_OK)
		status = write_operation(request, &head);
	if (status == HPX_OK)
		status = write_preference(request, &head);
	send_whole(request, &head, status, http_status, body);
	hpx_buffer_done(&head);
	return HPX_NEXT_DONE;
}

unsigned hpx_respond_spread(struct hpx_shard *shard, unsigned seconds)
{
	uint32_t random;

	hpx_random_pool_take(&shard->random, &random, sizeof(random));
	return seconds + random % (3 * seconds + 1);
}

static enum hpx_status write_refusal_fields(const struct hpx_problem_kind *kind,
					    const struct hpx_refusal *refusal,
					    unsigned retry_after_s, struct hpx_buffer *out)
{
	enum hpx_status status =
		hpx_buffer_printf(out, "Link: </.hapax/problems/%s>; rel=\"describedby\"\r\n",
				  kind->code);

	if (status == HPX_OK && retry_after_s > 0)
		status = HPX_WRITE_FIELD_U64(out, "Retry-After", retry_after_s);
	if (status == HPX_OK && kind == hpx_problem_kind(HPX_PROBLEM_unauthenticated))
		status = hpx_buffer_printf(out, "WWW-Authenticate: Bearer realm=\"hapax\"%s\r\n",
					   refusal->challenge != NULL ? refusal->challenge : "");
	if (status == HPX_OK && kind == hpx_problem_kind(HPX_PROBLEM_webhook_unverified))
		status = HPX_WRITE_FIELD(out, "WWW-Authenticate",
					 HPX_SPAN("Signature realm=\"hapax\""));
	if (status == HPX_OK && refusal->allow != NULL)
		status = hpx_write_field_text(out, "Allow", refusal->allow);
	if (status == HPX_OK && refusal->location.len > 0)
		status = HPX_WRITE_FIELD(out, "Location", refusal->location);
	return status == HPX_OK ? hpx_buffer_append(out, refusal->fields) : status;
}

enum hpx_next hpx_respond_refuse(struct hpx_request *request, enum hpx_problem_code code,
				 const struct hpx_refusal *refusal, enum hpx_respond_close close)
{
	static const struct hpx_refusal nothing;
	const struct hpx_problem_kind *kind = hpx_problem_kind(code);
	struct hpx_buffer body, fields;
	char reference[HPX_REFERENCE_SIZE];

	if (request->downstream == NULL)
		return HPX_NEXT_DONE;
	if (refusal == NULL)
		refusal = &nothing;
	if (close == HPX_RESPOND_CLOSE)
		hpx_downstream_make_last(request->downstream);
	hpx_counter_add(&request->shard->meter.problems[code], 1);
	request->summary.refused = true;
	request->summary.code = code;
	struct hpx_problem problem = { .code = code,
				       .status = refusal->status,
				       .detail = refusal->detail,
				       .executed = refusal->executed,
				       .original_status = refusal->original_status,
				       .location = refusal->location };
	if (request->reservation.record.state != HPX_STATE_NONE) {
		hpx_reference_print(&request->reservation.record.id, &request->reservation.record.mark, reference);
		problem.operation = hpx_span_of(reference);
	}
	unsigned http_status = refusal->status != 0 ? refusal->status : kind->status;
	unsigned retry_after_s = refusal->retry_after_s;
	if (http_status == 503 || refusal->is_limit)
		retry_after_s = hpx_respond_spread(request->shard, retry_after_s);
	struct hpx_span type;
	hpx_buffer_init(&body, HEAD_BYTES_MAX);
	hpx_buffer_init(&fields, HEAD_BYTES_MAX);
	enum hpx_status status = hpx_problem_print_as(request->settings->errors, &problem, &body, &type);
	if (status == HPX_OK)
		status = write_refusal_fields(kind, refusal, retry_after_s, &fields);
	if (status == HPX_OK)
		hpx_respond_direct(request, http_status, type, hpx_buffer_span(&fields),
				   hpx_buffer_span(&body));
	else
		hpx_downstream_close(request->downstream);
	hpx_buffer_done(&body);
	hpx_buffer_done(&fields);
	return HPX_NEXT_DONE;
}

enum hpx_next hpx_respond_problem(struct hpx_request *request, enum hpx_problem_code code,
				  const char *detail)
{
	struct hpx_refusal refusal = { .detail = detail };

	return hpx_respond_refuse(request, code, &refusal, HPX_RESPOND_KEEP);
}

enum hpx_next hpx_respond_replay(struct hpx_request *request)
{
	const struct hpx_answer *stored = request->reservation.stored;
	struct hpx_buffer *head = &request->answer.head;
	struct hpx_span lines = stored->headers;

	if (request->downstream == NULL)
		return HPX_NEXT_DONE;
	if (request->answer.state != HPX_ANSWER_COMMITTED)
		request->summary.did = HPX_DID_replayed;
	/* Hapax's own line does not travel, whether traces are on now or not. */
	(void)hpx_trace_line_take(&lines, &request->trace.link);
	/* The head of the upstream's own answer may be in it, where the application
	 * has committed another. */
	hpx_buffer_recycle(head, stored->headers.len + HEAD_BYTES_MAX);
	enum hpx_status status = hpx_buffer_reserve(head, stored->headers.len + USUAL_HEAD_BYTES);
	if (status == HPX_OK)
		status = hpx_write_status_line(head, stored->status,
					       hpx_span_of(hpx_reason_phrase(stored->status)));
	if (status == HPX_OK)
		status = write_lines(request, HPX_CORS_REPLAY, lines, head);
	if (status == HPX_OK)
		status = write_date(head);
	if (status == HPX_OK && request->answer.state != HPX_ANSWER_COMMITTED)
		status = HPX_WRITE_FIELD(head, "Idempotent-Replayed", HPX_SPAN("true"));
	if (status == HPX_OK)
		status = write_operation(request, head);
	if (status == HPX_OK)
		status = write_preference(request, head);
	send_whole(request, head, status, stored->status, stored->body);
	return HPX_NEXT_DONE;
}

/* A field of the upstream's answer that the client gets. What a replay states only
 * hapax may write, even where it passes an answer through: clients rely on it; but
 * observe mode alters nothing. Framing is the downstream's. */
static bool travels_down(const struct hpx_request *request, const struct hpx_http_head *head,
			 size_t number, unsigned traits)
{
	unsigned stopped = HPX_FIELD_HOP | HPX_FIELD_OURS |
			   (request->head.observed ? 0 : HPX_FIELD_STATED);

	return (traits & stopped) == 0 &&
	       hpx_field_name_at(head, number) != HPX_NAME_CONTENT_LENGTH;
}

/* The two fields of an upgrade are hop-by-hop, so they are written anew. */
static bool take_upgrade(struct hpx_request *request, const struct hpx_http_head *head)
{
	if (head->framing != HPX_FRAMING_TUNNEL)
		return true;
	return hpx_write_field_text(&request->answer.head, "Connection", "Upgrade") == HPX_OK &&
	       HPX_WRITE_FIELD(&request->answer.head, "Upgrade",
			       hpx_field_known_value(head, HPX_NAME_UPGRADE)) == HPX_OK;
}

/* Adds the CORS fields to a guarded answer, for the client only: the store keeps the
 * upstream's answer as it is. */
static bool take_origin(struct hpx_request *request)
{
	struct hpx_buffer *head = &request->answer.head;
	struct hpx_buffer seen;

	if (request->wait.kind == HPX_WAIT_PASS || !hpx_cors_is_on(&request->settings->cors))
		return true;
	struct hpx_span all = hpx_buffer_span(head);
	size_t begin = hpx_span_index(all, '\n') + 1;
	hpx_buffer_init(&seen, head->max);
	bool good = hpx_buffer_append(&seen, hpx_span_first(all, begin)) == HPX_OK &&
		    write_lines(request, HPX_CORS_FIRST, hpx_span_skip(all, begin), &seen) ==
			    HPX_OK;
	if (!good) {
		hpx_buffer_done(&seen);
		return false;
	}
	hpx_buffer_done(head);
	*head = seen;
	return true;
}

bool hpx_respond_take_head(struct hpx_request *request, const struct hpx_http_head *head)
{
	bool guarded = request->wait.kind != HPX_WAIT_PASS;

	HPX_ASSERT(request->answer.state == HPX_ANSWER_COLLECTING);
	request->answer.head.len = 0;
	request->answer.kept_head.len = 0;
	request->answer.status = head->status;
	request->answer.framing = head->framing;
	request->answer.has_length = head->has_content_length;
	request->answer.length = head->content_length;
	if (hpx_write_status_line(&request->answer.head, head->status, head->reason) != HPX_OK ||
	    !take_upgrade(request, head))
		return false;
	for (size_t i = 0; i < head->field_count; i++) {
		const struct hpx_field *field = &head->fields[i];
		unsigned traits = hpx_field_traits(head, field);
		if (!travels_down(request, head, i, traits))
			continue;
		if (hpx_write_read_field(&request->answer.head, head, i) != HPX_OK)
			return false;
		if (guarded && traits == 0 &&
		    hpx_write_read_field(&request->answer.kept_head, head, i) != HPX_OK)
			return false;
	}
	return take_origin(request);
}

void hpx_respond_collected(struct hpx_request *request)
{
	struct hpx_buffer *head = &request->answer.head;

	HPX_ASSERT(request->answer.state == HPX_ANSWER_COLLECTED);
	if (request->downstream == NULL)
		return;
	send_whole(request, head, write_operation(request, head), request->answer.status,
		   hpx_buffer_span(&request->answer.body));
}

void hpx_respond_begin(struct hpx_request *request)
{
	struct hpx_request_answer *answer = &request->answer;
	struct hpx_downstream_head head = { .lines = &answer->head,
					    .status = answer->status,
					    .framing = answer->framing,
					    .has_length = answer->has_length,
					    .length = answer->length };

	if (request->downstream == NULL)
		return;
	if (write_operation(request, &answer->head) != HPX_OK) {
		hpx_downstream_close(request->downstream);
		return;
	}
	hpx_request_answer_move(request, HPX_ANSWER_FLOWING);
	hpx_downstream_begin(request->downstream, &head);
	hpx_respond_piece(request, hpx_buffer_span(&answer->body));
}

void hpx_respond_piece(struct hpx_request *request, struct hpx_span bytes)
{
	if (request->downstream == NULL || bytes.len == 0)
		return;
	hpx_downstream_body(request->downstream, bytes);
	if (request->downstream != NULL && request->attempt.exchange != NULL &&
	    hpx_downstream_is_full(request->downstream))
		hpx_exchange_pause(request->attempt.exchange);
}

void hpx_respond_end(struct hpx_request *request)
{
	if (request->downstream != NULL)
		hpx_downstream_finish(request->downstream);
}

void hpx_respond_break(struct hpx_request *request)
{
	if (request->downstream != NULL)
		hpx_downstream_abort(request->downstream);
}

void hpx_respond_informational(void *user, const struct hpx_http_head *head)
{
	struct hpx_request *request = user;
	struct hpx_buffer lines;

	if (request->downstream == NULL)
		return;
	hpx_buffer_init(&lines, HEAD_BYTES_MAX);
	enum hpx_status status = hpx_write_status_line(&lines, head->status, head->reason);
	for (size_t i = 0; i < head->field_count && status == HPX_OK; i++)
		if (travels_down(request, head, i, hpx_field_traits(head, &head->fields[i])))
			status = hpx_write_read_field(&lines, head, i);
	if (status == HPX_OK)
		hpx_downstream_informational(request->downstream, &lines);
	hpx_buffer_done(&lines);
}
