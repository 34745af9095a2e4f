/* What a sending's end means: the job's next move, when it is tried again, and
 * the operation's answer where the job brings it. */
#include <stdio.h>

#include "base/bytes.h"
#include "core/json_lookup.h"
#include "http/field.h"
#include "http/write.h"
#include "worker/outgoing.h"

bool hpx_sending_blames(const struct hpx_egress_request *request)
{
	return request->end != HPX_EGRESS_ANSWERED || request->status >= 500 ||
	       request->status == 429;
}

static enum hpx_sent sent_of(enum hpx_egress_end end)
{
	switch (end) {
	case HPX_EGRESS_NOT_SENT:
		return HPX_SENT_NOTHING;
	case HPX_EGRESS_ANSWERED:
		return HPX_SENT_ANSWERED;
	case HPX_EGRESS_NO_ANSWER:
		break;
	}
	return HPX_SENT_NO_ANSWER;
}

/* ---- the answer of an operation ---- */

/* The engine's lines, as the head they came from. */
static struct hpx_http_head head_of(struct hpx_span lines,
				    struct hpx_field fields[HPX_HTTP_FIELDS_MAX])
{
	struct hpx_http_head head = { .fields = fields };
	struct hpx_field_line line;

	while (head.field_count < HPX_HTTP_FIELDS_MAX && hpx_field_line_next(&lines, &line))
		if (line.name.ptr != NULL)
			fields[head.field_count++] = (struct hpx_field){ line.name, line.value };
	return head;
}

static bool is_event_stream(const struct hpx_http_head *head)
{
	struct hpx_span type = hpx_field_value(head, HPX_SPAN("Content-Type"));

	return hpx_span_ieq(hpx_span_trim(hpx_span_first(type, hpx_span_index(type, ';'))),
			    HPX_SPAN("text/event-stream"));
}

/* By the gateway's own rule; of what is not kept, only where its resource is. */
static enum hpx_status keep_headers(struct hpx_sending *sending, const struct hpx_http_head *head,
				    bool kept)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < head->field_count && status == HPX_OK; i++) {
		const struct hpx_field *field = &head->fields[i];
		if (kept ? hpx_field_is_kept(head, field->name) :
			   hpx_span_ieq(field->name, HPX_SPAN("Location")))
			status = hpx_write_field(&sending->kept_headers, field->name, field->value);
	}
	return status;
}

static void take_answer(struct hpx_sending *sending)
{
	const struct hpx_egress_request *request = &sending->request;
	struct hpx_field fields[HPX_HTTP_FIELDS_MAX];
	struct hpx_http_head head = head_of(hpx_buffer_span(&request->headers_in), fields);
	bool kept = !request->body_dropped && !sending->status_only && !is_event_stream(&head);

	/* Out of memory: it happened, and that is all that will be known. */
	if (keep_headers(sending, &head, kept) != HPX_OK) {
		sending->kept_headers.len = 0;
		kept = false;
	}
	sending->answer = (struct hpx_answer){
		.status = request->status,
		.kept = kept,
		.headers = hpx_buffer_span(&sending->kept_headers),
		.body = kept ? hpx_buffer_span(&request->body_in) : hpx_span(NULL, 0),
	};
	sending->turn.answer = &sending->answer;
}

/* ---- the turn ---- */

/* Whatever the answer was: an id helps to ask about it later. */
static struct hpx_span provider_id(struct hpx_sending *sending)
{
	const struct hpx_egress_request *request = &sending->request;
	struct hpx_span pointer = sending->lane->target->provider_id;
	struct hpx_json_scalar scalar;

	if (pointer.ptr == NULL || request->end != HPX_EGRESS_ANSWERED || request->body_dropped ||
	    hpx_json_lookup(hpx_buffer_span(&request->body_in), pointer, HPX_PROVIDER_ID_SIZE - 1,
			    &sending->arena, &scalar) != HPX_OK ||
	    (scalar.kind != HPX_JSON_STRING && scalar.kind != HPX_JSON_NUMBER))
		return hpx_span(NULL, 0);
	return scalar.text;
}

static int64_t delay_ms(const struct hpx_sending *sending)
{
	const struct hpx_job_target *target = sending->lane->target;
	const struct hpx_delivery *delivery = &sending->entry->delivery;
	uint64_t random;

	hpx_random(&random, sizeof(random));
	return hpx_backoff_heed(hpx_backoff_delay(&target->backoff,
						  delivery->attempt - delivery->budget, random),
				sending->request.retry_after_ms, target->retry_after_max_ms);
}

static void write_reason(struct hpx_sending *sending)
{
	const struct hpx_egress_request *request = &sending->request;
	struct hpx_span name = hpx_span_first(sending->lane->target->name, 64);

	if (request->end == HPX_EGRESS_ANSWERED)
		snprintf(sending->reason, sizeof(sending->reason), "%.*s answered %u",
			 HPX_SPAN_ARG(name), request->status);
	else
		snprintf(sending->reason, sizeof(sending->reason), "%.*s: %s: %s",
			 HPX_SPAN_ARG(name), hpx_egress_end_text(request->end), request->problem);
}

void hpx_sending_judge(struct hpx_sending *sending)
{
	const struct hpx_egress_request *request = &sending->request;
	bool answers = sending->entry->delivery.answers;

	sending->turn = (struct hpx_job_update){
		.move = hpx_job_judge(sent_of(request->end), request->status,
				      request->retry_after_ms >= 0, answers),
		.attempts_max = sending->lane->target->attempts_max,
		.delay_ms = delay_ms(sending),
		.status = request->status,
		.provider_id = provider_id(sending),
	};
	if (request->resent)
		sending->turn.move = hpx_job_judge_resent(sending->turn.move, request->status);
	if (answers && sending->turn.move == HPX_JOB_MOVE_DELIVER)
		take_answer(sending);
	write_reason(sending);
}
