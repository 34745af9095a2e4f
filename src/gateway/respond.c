/* Answers on their way to the client. Every field goes through the checked
 * writer, so nothing that an upstream or a client sent can add a line. */
#include "gateway/respond.h"

#include <stdio.h>

#include "base/assert.h"
#include "base/container.h"
#include "base/log.h"
#include "http/cors.h"
#include "http/field.h"
#include "http/write.h"

/* The head of one of our own answers or a replay. */
#define HEAD_BYTES_MAX (96 * 1024)
/* What hapax adds to a stored answer's fields. */
#define USUAL_HEAD_BYTES 512

/* Whether the connection can go on after this answer. Not behind a body that
 * was never asked for with 100: whether it still comes, nobody can tell. */
static bool keeps(const struct hpx_request *request)
{
	bool body_in_doubt = request->head.http.expect_continue && !request->body.whole;

	return request->head.http.keep_alive && !body_in_doubt &&
	       request->settings->keep_alive_ms > 0 && !request->shard->draining &&
	       !(request->client != NULL && request->client->ended &&
		 request->client->in.len == 0);
}

static enum hpx_status write_connection(const struct hpx_request *request,
					struct hpx_buffer *out, bool keep)
{
	if (!keep)
		return hpx_write_field(out, HPX_SPAN("Connection"), HPX_SPAN("close"));
	if (request->head.http.minor == 0)
		return hpx_write_field(out, HPX_SPAN("Connection"), HPX_SPAN("keep-alive"));
	return HPX_OK;
}

/* The lines of an answer, as the page that asks may read them. */
static enum hpx_status write_lines(const struct hpx_request *request,
				   enum hpx_cors_answer answer, struct hpx_span lines,
				   struct hpx_buffer *out)
{
	return hpx_cors_write(&request->settings->cors, answer, hpx_cors_origin(&request->head.http),
			      lines, out);
}

/* The key is free for another execution now: a time until which it is kept
 * would say the contrary. */
static bool runs_again(const struct hpx_request *request)
{
	enum hpx_state state = request->reservation.record.state;

	return state == HPX_STATE_FAILED_RETRYABLE ||
	       (state == HPX_STATE_IN_PROGRESS &&
		(request->attempt.outcome == HPX_OUTCOME_NOT_EXECUTED ||
		 request->attempt.outcome == HPX_OUTCOME_RELEASED));
}

/* What hapax says of the operation, where there is one. */
static enum hpx_status write_operation(const struct hpx_request *request, struct hpx_buffer *out)
{
	char text[HPX_REFERENCE_SIZE];
	char when[HPX_RFC3339_SIZE];
	const struct hpx_record *record = &request->reservation.record;

	if (record->state == HPX_STATE_NONE)
		return HPX_OK;
	hpx_reference_print(&record->id, &record->mark, text);
	enum hpx_status status =
		hpx_write_field(out, HPX_SPAN("Hapax-Operation"), hpx_span_of(text));
	/* Of what is delivered later, the same time says until when. */
	if (status != HPX_OK || record->expires_ms == 0 || record->state == HPX_STATE_PENDING ||
	    runs_again(request))
		return status;
	hpx_clock_rfc3339(record->expires_ms, when);
	return hpx_write_field(out, HPX_SPAN("Idempotency-Expires"), hpx_span_of(when));
}

/* RFC 7240 §3: that it waited, and for how long at most. */
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
	return hpx_write_field(out, HPX_SPAN("Date"), hpx_span_of(date));
}

static bool has_no_body(const struct hpx_request *request, unsigned status)
{
	return status == 204 || status == 304 || hpx_span_eq(request->head.http.method, HPX_SPAN("HEAD"));
}

static enum hpx_status write_length(struct hpx_buffer *out, unsigned status, size_t length)
{
	if (status == 204 || status == 304)
		return HPX_OK;
	return hpx_write_field_u64(out, "Content-Length", length);
}

/* Sends a complete answer: head, body, and the end of the exchange. */
static void send_whole(struct hpx_request *request, struct hpx_buffer *head,
		       enum hpx_status status, unsigned http_status, struct hpx_span body,
		       bool keep)
{
	struct hpx_client *client = request->client;

	if (status == HPX_OK)
		status = write_connection(request, head, keep);
	if (status == HPX_OK)
		status = hpx_write_head_end(head);
	if (status != HPX_OK) {
		hpx_log(HPX_LOG_ERROR, "answer_not_written", "status=%u problem=%s", http_status,
			hpx_status_name(status));
		hpx_client_close(client);
		return;
	}
	struct hpx_span pieces[] = { hpx_buffer_span(head), body };
	hpx_client_send(client, pieces, has_no_body(request, http_status) ? 1 : 2);
	hpx_client_answered(client, keep);
}

void hpx_respond_own(struct hpx_request *request, unsigned http_status,
		     struct hpx_span content_type, struct hpx_span fields, struct hpx_span body)
{
	struct hpx_buffer head;

	if (request->client == NULL)
		return;
	hpx_buffer_init(&head, HEAD_BYTES_MAX);
	enum hpx_status status = hpx_write_status_line(&head, http_status,
						       hpx_span_of(hpx_reason_phrase(http_status)));
	if (status == HPX_OK)
		status = write_date(&head);
	if (status == HPX_OK && content_type.len > 0)
		status = hpx_write_field(&head, HPX_SPAN("Content-Type"), content_type);
	if (status == HPX_OK)
		status = hpx_write_field(&head, HPX_SPAN("Cache-Control"), HPX_SPAN("no-store"));
	if (status == HPX_OK)
		status = write_lines(request, HPX_CORS_OWN, fields, &head);
	if (status == HPX_OK)
		status = write_operation(request, &head);
	if (status == HPX_OK)
		status = write_preference(request, &head);
	if (status == HPX_OK)
		status = write_length(&head, http_status, body.len);
	send_whole(request, &head, status, http_status, body, keeps(request));
	hpx_buffer_done(&head);
}

static enum hpx_status write_refusal_fields(const struct hpx_problem_kind *kind,
					    const struct hpx_refusal *refusal,
					    struct hpx_buffer *out)
{
	enum hpx_status status =
		hpx_buffer_printf(out, "Link: </.hapax/problems/%s>; rel=\"describedby\"\r\n",
				  kind->code);

	if (status == HPX_OK && refusal->retry_after_s > 0)
		status = hpx_write_field_u64(out, "Retry-After", refusal->retry_after_s);
	if (status == HPX_OK && kind == hpx_problem_kind(HPX_PROBLEM_unauthenticated))
		status = hpx_write_field(out, HPX_SPAN("WWW-Authenticate"),
					 HPX_SPAN("Bearer realm=\"hapax\""));
	if (status == HPX_OK && kind == hpx_problem_kind(HPX_PROBLEM_webhook_unverified))
		status = hpx_write_field(out, HPX_SPAN("WWW-Authenticate"),
					 HPX_SPAN("Signature realm=\"hapax\""));
	if (status == HPX_OK && refusal->allow != NULL)
		status = hpx_write_field_text(out, "Allow", refusal->allow);
	if (status == HPX_OK && refusal->location.len > 0)
		status = hpx_write_field(out, HPX_SPAN("Location"), refusal->location);
	return status;
}

void hpx_respond_refuse(struct hpx_request *request, enum hpx_problem_code code,
			const struct hpx_refusal *refusal, enum hpx_respond_close close)
{
	static const struct hpx_refusal nothing;
	const struct hpx_problem_kind *kind = hpx_problem_kind(code);
	struct hpx_buffer body, fields;
	char reference[HPX_REFERENCE_SIZE];

	if (request->client == NULL)
		return;
	if (refusal == NULL)
		refusal = &nothing;
	if (close == HPX_RESPOND_CLOSE)
		request->head.http.keep_alive = false;
	hpx_counter_add(&request->shard->meter.problems[code], 1);
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
	bool stripe = request->settings->stripe_errors;
	hpx_buffer_init(&body, HEAD_BYTES_MAX);
	hpx_buffer_init(&fields, HEAD_BYTES_MAX);
	enum hpx_status status = stripe ? hpx_problem_print_stripe(&problem, &body) :
					  hpx_problem_print(&problem, &body);
	if (status == HPX_OK)
		status = write_refusal_fields(kind, refusal, &fields);
	if (status == HPX_OK)
		hpx_respond_own(request, refusal->status ? refusal->status : kind->status,
				stripe ? HPX_SPAN("application/json") :
					 HPX_SPAN("application/problem+json"),
				hpx_buffer_span(&fields), hpx_buffer_span(&body));
	else
		hpx_client_close(request->client);
	hpx_buffer_done(&body);
	hpx_buffer_done(&fields);
}

void hpx_respond_replay(struct hpx_request *request)
{
	const struct hpx_answer *stored = request->reservation.stored;
	struct hpx_buffer head;

	if (request->client == NULL)
		return;
	hpx_buffer_init(&head, stored->headers.len + HEAD_BYTES_MAX);
	enum hpx_status status = hpx_buffer_reserve(&head, stored->headers.len + USUAL_HEAD_BYTES);
	if (status == HPX_OK)
		status = hpx_write_status_line(&head, stored->status,
					       hpx_span_of(hpx_reason_phrase(stored->status)));
	if (status == HPX_OK)
		status = write_lines(request, HPX_CORS_REPLAY, stored->headers, &head);
	if (status == HPX_OK)
		status = write_date(&head);
	if (status == HPX_OK && request->answer.state != HPX_ANSWER_COMMITTED)
		status = hpx_write_field(&head, HPX_SPAN("Idempotent-Replayed"), HPX_SPAN("true"));
	if (status == HPX_OK)
		status = write_operation(request, &head);
	if (status == HPX_OK)
		status = write_preference(request, &head);
	if (status == HPX_OK)
		status = write_length(&head, stored->status, stored->body.len);
	send_whole(request, &head, status, stored->status, stored->body, keeps(request));
	hpx_buffer_done(&head);
}

/* What only hapax may say, also of what it passes through: a client behind it
 * goes by these. What is observed is not altered. */
static bool is_ours_to_say(const struct hpx_request *request, struct hpx_span name)
{
	return !request->head.observed &&
	       (hpx_span_ieq(name, HPX_SPAN("Idempotent-Replayed")) ||
		hpx_span_ieq(name, HPX_SPAN("Idempotency-Expires")));
}

/* A field of the upstream's answer that the client gets. Its framing is ours. */
static bool travels_down(const struct hpx_request *request, const struct hpx_http_head *head,
			 struct hpx_span name)
{
	return !hpx_field_is_hop(head, name) && !hpx_field_is_ours(name) &&
	       !is_ours_to_say(request, name) && !hpx_span_ieq(name, HPX_SPAN("Content-Length"));
}

/* A tunnel's own two fields are hop-by-hop, so they are written anew. */
static bool take_upgrade(struct hpx_request *request, const struct hpx_http_head *head)
{
	if (head->framing != HPX_FRAMING_TUNNEL)
		return true;
	return hpx_write_field_text(&request->answer.head, "Connection", "Upgrade") == HPX_OK &&
	       hpx_write_field(&request->answer.head, HPX_SPAN("Upgrade"),
			       hpx_field_value(head, HPX_SPAN("Upgrade"))) == HPX_OK;
}

/* A guarded answer's fields, with those names of ours that its page may read.
 * Only down_head: what is stored is the upstream's answer alone. */
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
		if (!travels_down(request, head, field->name))
			continue;
		if (hpx_write_field(&request->answer.head, field->name, field->value) != HPX_OK)
			return false;
		if (guarded && hpx_field_is_kept(head, field->name) &&
		    hpx_write_field(&request->answer.kept_head, field->name, field->value) != HPX_OK)
			return false;
	}
	return take_origin(request);
}

void hpx_respond_collected(struct hpx_request *request)
{
	struct hpx_buffer *head = &request->answer.head;
	struct hpx_span body = hpx_buffer_span(&request->answer.body);

	if (request->client == NULL)
		return;
	enum hpx_status status = write_operation(request, head);
	if (status == HPX_OK)
		status = write_length(head, request->answer.status, body.len);
	send_whole(request, head, status, request->answer.status, body, keeps(request));
}

/* How the end of a flowing answer is told to this client. */
static bool is_chunked_down(const struct hpx_request *request)
{
	return (request->answer.framing == HPX_FRAMING_CHUNKED ||
		request->answer.framing == HPX_FRAMING_CLOSE) &&
	       request->head.http.minor > 0;
}

static bool ends_by_close(const struct hpx_request *request)
{
	return (request->answer.framing == HPX_FRAMING_CHUNKED ||
		request->answer.framing == HPX_FRAMING_CLOSE) &&
	       request->head.http.minor == 0;
}

void hpx_chunk_frame(struct hpx_span bytes, struct hpx_chunk *ret_chunk)
{
	int n = snprintf(ret_chunk->size, sizeof(ret_chunk->size), "%zx\r\n", bytes.len);

	ret_chunk->pieces[0] = hpx_span(ret_chunk->size, (size_t)n);
	ret_chunk->pieces[1] = bytes;
	ret_chunk->pieces[2] = HPX_SPAN("\r\n");
}

static enum hpx_status write_flowing_head(struct hpx_request *request, struct hpx_buffer *head)
{
	enum hpx_status status = write_operation(request, head);

	if (status != HPX_OK)
		return status;
	if (is_chunked_down(request))
		status = hpx_write_field(head, HPX_SPAN("Transfer-Encoding"), HPX_SPAN("chunked"));
	else if (request->answer.has_length && request->answer.status != 204)
		status = hpx_write_field_u64(head, "Content-Length", request->answer.length);
	if (status == HPX_OK && request->answer.framing == HPX_FRAMING_TUNNEL)
		return hpx_write_head_end(head);
	if (status == HPX_OK)
		status = write_connection(request, head, request->head.http.keep_alive);
	return status == HPX_OK ? hpx_write_head_end(head) : status;
}

/* Sends pieces of a flowing answer, the head before them where it still waits:
 * an answer that comes whole from the upstream leaves in one write. */
static void send_flowing(struct hpx_request *request, const struct hpx_span *pieces, size_t count)
{
	struct hpx_span all[4] = { hpx_buffer_span(&request->answer.head) };
	size_t first = request->answer.head_waits ? 1 : 0;

	HPX_ASSERT(count <= 3);
	for (size_t i = 0; i < count; i++)
		all[first + i] = pieces[i];
	request->answer.head_waits = false;
	hpx_later_cancel(&request->answer.head_later);
	hpx_client_send(request->client, all, first + count);
}

/* Nothing has come behind the head in this turn: it does not wait for more. */
static void send_head_alone(struct hpx_later *later)
{
	struct hpx_request *request = HPX_CONTAINER(later, struct hpx_request, answer.head_later);

	if (request->client != NULL && request->answer.head_waits)
		send_flowing(request, NULL, 0);
}

void hpx_respond_begin(struct hpx_request *request)
{
	if (request->client == NULL)
		return;
	if (ends_by_close(request) || request->shard->draining)
		request->head.http.keep_alive = false;
	if (write_flowing_head(request, &request->answer.head) != HPX_OK) {
		hpx_client_close(request->client);
		return;
	}
	hpx_request_answer_move(request, HPX_ANSWER_FLOWING);
	request->answer.head_waits = true;
	request->answer.head_later.run = send_head_alone;
	hpx_loop_later(&request->shard->loop, &request->answer.head_later);
	if (request->answer.body.len > 0)
		hpx_respond_piece(request, hpx_buffer_span(&request->answer.body));
}

void hpx_respond_piece(struct hpx_request *request, struct hpx_span bytes)
{
	struct hpx_chunk chunk;

	if (request->client == NULL || bytes.len == 0)
		return;
	if (is_chunked_down(request)) {
		hpx_chunk_frame(bytes, &chunk);
		send_flowing(request, chunk.pieces, 3);
	} else {
		send_flowing(request, &bytes, 1);
	}
}

void hpx_respond_end(struct hpx_request *request)
{
	struct hpx_span last = HPX_SPAN("0\r\n\r\n");
	bool has_last = is_chunked_down(request) && !has_no_body(request, request->answer.status);

	if (request->client == NULL)
		return;
	if (has_last || request->answer.head_waits)
		send_flowing(request, &last, has_last ? 1 : 0);
	hpx_client_answered(request->client, request->head.http.keep_alive);
}

void hpx_respond_break(struct hpx_request *request)
{
	/* A half answer with a proper end would look whole: the connection is
	 * cut, and where only its end ends the answer, by a reset. */
	if (request->client != NULL)
		hpx_client_abort(request->client);
}

void hpx_respond_informational(struct hpx_request *request, const struct hpx_http_head *head)
{
	struct hpx_buffer out;
	enum hpx_status status;

	if (request->client == NULL || request->head.http.minor == 0)
		return;
	hpx_buffer_init(&out, HEAD_BYTES_MAX);
	status = hpx_write_status_line(&out, head->status, head->reason);
	for (size_t i = 0; i < head->field_count && status == HPX_OK; i++)
		if (travels_down(request, head, head->fields[i].name))
			status = hpx_write_field(&out, head->fields[i].name, head->fields[i].value);
	if (status == HPX_OK && hpx_write_head_end(&out) == HPX_OK) {
		struct hpx_span piece = hpx_buffer_span(&out);
		hpx_client_send(request->client, &piece, 1);
	}
	hpx_buffer_done(&out);
}
