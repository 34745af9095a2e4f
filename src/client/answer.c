/* Answers: kept with their call, read for the words that decide what follows, and
 * shown to whoever asks. */
#include "client/answer.h"

#include "http/field.h"

const struct hapax_outcome *hapax_call_outcome(const struct hapax_call *call)
{
	return call != NULL ? &call->outcome : NULL;
}

/* Answers' lines are of our own making: "Name: value", and a NUL for the CR. */
const char *hapax_call_answer_header(const struct hapax_call *call, const char *name)
{
	if (call == NULL || name == NULL)
		return NULL;
	struct hpx_span lines = hpx_buffer_span(&call->values_in);
	struct hpx_field_line line;

	return hpx_field_line_find(lines, hpx_span_of(name), &line) ? line.value.ptr : NULL;
}

static struct hpx_span field_of(const struct hapax_call *call, const char *name)
{
	return hpx_span_of(hapax_call_answer_header(call, name));
}

bool hpx_answer_take(struct hapax_call *call, struct hpx_egress_request *request)
{
	hpx_buffer_done(&call->headers_in);
	hpx_buffer_done(&call->values_in);
	hpx_buffer_done(&call->body_in);
	call->status = request->status;
	call->headers_in = request->headers_in;
	call->body_in = request->body_in;
	call->body_kept = !request->body_dropped;
	request->headers_in = (struct hpx_buffer){ .max = 0 };
	request->body_in = (struct hpx_buffer){ .max = 0 };
	call->headers_in.max++;
	hpx_buffer_init(&call->values_in, call->headers_in.max);
	if (hpx_buffer_byte(&call->headers_in, '\0') != HPX_OK ||
	    hpx_buffer_append(&call->values_in, hpx_buffer_span(&call->headers_in)) != HPX_OK)
		return false;
	for (size_t i = 0; i < call->values_in.len; i++)
		if (call->values_in.ptr[i] == '\r')
			call->values_in.ptr[i] = '\0';
	return true;
}

struct hpx_retry_facts hpx_answer_facts(const struct hapax_call *call,
					const struct hpx_egress_request *request)
{
	struct hpx_retry_facts facts = { .reached = HPX_REACHED_ANSWER, .retry_after_s = -1 };

	if (request->end != HPX_EGRESS_ANSWERED) {
		facts.reached = request->end == HPX_EGRESS_NOT_SENT ? HPX_REACHED_NOBODY :
								      HPX_REACHED_SILENCE;
		return facts;
	}
	facts.status = call->status;
	facts.replayed = hpx_span_eq(field_of(call, "Idempotent-Replayed"), HPX_SPAN("true"));
	facts.operation = hapax_call_answer_header(call, "Hapax-Operation") != NULL;
	if (request->retry_after_ms >= 0)
		facts.retry_after_s = request->retry_after_ms / 1000;
	if (call->body_kept)
		hpx_retry_read_body(field_of(call, "Content-Type"), hpx_buffer_span(&call->body_in), &facts);
	return facts;
}

void hpx_answer_outcome(struct hapax_call *call)
{
	struct hapax_outcome *outcome = &call->outcome;

	outcome->size = sizeof(*outcome);
	outcome->doubt = call->doubt;
	outcome->attempts = call->attempts;
	outcome->id = call->id;
	outcome->key = call->key;
	outcome->status = call->headers_in.ptr != NULL ? call->status : 0;
	outcome->headers = call->headers_in.ptr != NULL ? call->headers_in.ptr : "";
	outcome->body = call->body_in.ptr != NULL ? call->body_in.ptr : "";
	outcome->body_len = call->body_in.len;
	outcome->body_kept = call->body_kept;
	outcome->reason = call->reason;
}
