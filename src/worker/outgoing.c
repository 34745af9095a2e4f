/* One job on its way out: from the row to a request. The target says where it
 * goes and with which credentials; the job says the path, its fields and the
 * body; hapax adds the key and what it is about. */
#include "worker/outgoing.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/container.h"
#include "base/crash_point.h"
#include "http/field.h"
#include "http/write.h"

#define URL_BYTES_MAX 16384
#define METHOD_BYTES_MAX 64
/* For a provider's id: the tree of its answer is not in it. */
#define ARENA_BYTES_MAX 4096

struct hpx_sending *hpx_sending_new(struct hpx_deliverer *deliverer, struct hpx_lane *lane,
				    struct hpx_job_entry *entry)
{
	struct hpx_sending *sending = calloc(1, sizeof(*sending));

	if (sending == NULL)
		return NULL;
	sending->deliverer = deliverer;
	sending->lane = lane;
	sending->entry = entry;
	hpx_buffer_init(&sending->url, URL_BYTES_MAX);
	hpx_buffer_init(&sending->method, METHOD_BYTES_MAX);
	hpx_buffer_init(&sending->headers, HPX_EGRESS_HEAD_BYTES_MAX);
	hpx_buffer_init(&sending->kept_headers, 2 * HPX_EGRESS_HEAD_BYTES_MAX);
	hpx_arena_init(&sending->arena, ARENA_BYTES_MAX);
	return sending;
}

void hpx_sending_free(struct hpx_sending *sending)
{
	hpx_egress_request_done(&sending->request);
	hpx_arena_done(&sending->arena);
	hpx_buffer_done(&sending->kept_headers);
	hpx_buffer_done(&sending->headers);
	hpx_buffer_done(&sending->method);
	hpx_buffer_done(&sending->url);
	hpx_job_entry_free(sending->entry);
	free(sending);
}

/* ---- the request ---- */

/* What frames the message is the engine's; the host, the credentials and the
 * key are the target's and hapax's, whatever a job says. */
static bool is_ours(const struct hpx_job_target *target, struct hpx_span name)
{
	static const struct hpx_http_head none;
	struct hpx_field_line line;

	return hpx_field_is_hop(&none, name) || hpx_field_is_ours(name) ||
	       hpx_span_ieq(name, HPX_SPAN("Host")) ||
	       hpx_span_ieq(name, HPX_SPAN("Content-Length")) ||
	       hpx_span_ieq(name, HPX_SPAN("Expect")) ||
	       hpx_span_ieq(name, target->key_header) ||
	       hpx_field_line_find(target->caller.headers, name, &line);
}

/* A line that is no field travels on to the engine, which says what is wrong. */
static enum hpx_status add_job_headers(struct hpx_sending *sending)
{
	struct hpx_span rest = sending->entry->job.headers;
	enum hpx_status status = HPX_OK;
	struct hpx_field_line line;

	while (status == HPX_OK && hpx_field_line_next(&rest, &line))
		if (line.name.ptr == NULL || !is_ours(sending->lane->target, line.name))
			status = hpx_buffer_append(&sending->headers, line.whole);
	return status;
}

static enum hpx_status add_our_headers(struct hpx_sending *sending)
{
	const struct hpx_job_target *target = sending->lane->target;
	const struct hpx_delivery *delivery = &sending->entry->delivery;
	struct hpx_buffer *out = &sending->headers;
	char reference[HPX_REFERENCE_SIZE], key[HPX_JOB_KEY_SIZE];
	enum hpx_status status;

	hpx_reference_print(&delivery->operation, &delivery->mark, reference);
	status = hpx_job_key(&delivery->operation, &delivery->mark, sending->entry->job.name, key);
	if (status == HPX_OK)
		status = hpx_buffer_append(out, target->caller.headers);
	if (status == HPX_OK && target->key_header.len > 0)
		status = hpx_write_field(out, target->key_header, hpx_span_of(key));
	if (status == HPX_OK)
		status = hpx_write_field_text(out, "Hapax-Operation", reference);
	if (status == HPX_OK)
		status = hpx_write_field_u64(out, "Hapax-Attempt", delivery->attempt);
	return status;
}

static enum hpx_status add_where(struct hpx_sending *sending)
{
	const struct hpx_job *job = &sending->entry->job;
	enum hpx_status status = hpx_buffer_text(&sending->url, sending->lane->target->caller.url);

	if (status == HPX_OK)
		status = hpx_buffer_append(&sending->url, job->path);
	if (status == HPX_OK)
		status = hpx_buffer_byte(&sending->url, '\0');
	if (status == HPX_OK)
		status = hpx_buffer_append(&sending->method, job->method);
	return status == HPX_OK ? hpx_buffer_byte(&sending->method, '\0') : status;
}

static enum hpx_status build(struct hpx_sending *sending)
{
	enum hpx_status status = add_where(sending);

	if (status == HPX_OK)
		status = add_job_headers(sending);
	return status == HPX_OK ? add_our_headers(sending) : status;
}

/* ---- its way ---- */

static void ended(struct hpx_egress_request *request)
{
	struct hpx_sending *sending = HPX_CONTAINER(request, struct hpx_sending, request);

	HPX_CRASH_POINT(job_answered);
	if (request->end == HPX_EGRESS_NOT_SENT &&
	    hpx_deliverer_is_stopping(sending->deliverer)) {
		hpx_sending_return(sending, request->problem);
		return;
	}
	hpx_sending_judge(sending);
	hpx_deliverer_freed(sending->deliverer, sending->lane, request);
	hpx_sending_store(sending);
}

/* It would be the same next time. Where an earlier sending may have happened,
 * "refused" would say too much. */
static void refuse(struct hpx_sending *sending, enum hpx_status status)
{
	const struct hpx_job_target *target = sending->lane->target;

	sending->turn = (struct hpx_job_update){
		.move = sending->entry->delivery.unsure ? HPX_JOB_MOVE_LOSE : HPX_JOB_MOVE_REJECT,
		.attempts_max = target->attempts_max,
		.delay_ms = target->backoff.cap_ms,
	};
	snprintf(sending->reason, sizeof(sending->reason), "%.*s: it cannot be sent: %s",
		 HPX_SPAN_ARG(hpx_span_first(target->name, 64)),
		 sending->request.problem[0] != '\0' ? sending->request.problem :
						       hpx_status_text(status));
	hpx_deliverer_freed(sending->deliverer, sending->lane, NULL);
	hpx_sending_store(sending);
}

static enum hpx_status hand_over(struct hpx_sending *sending, int64_t send_until_ms,
				 size_t answer_bytes_max)
{
	const struct hpx_job_target *target = sending->lane->target;
	enum hpx_status status = build(sending);

	if (status != HPX_OK)
		return status;
	sending->request = (struct hpx_egress_request){
		.url = sending->url.ptr,
		.method = sending->method.ptr,
		.headers = hpx_buffer_span(&sending->headers),
		.body = sending->entry->job.body,
		.reuse = target->honours_keys_ms > 0,
		.connect_timeout_ms = target->caller.connect_timeout_ms,
		.timeout_ms = target->caller.timeout_ms,
		.send_until_ms = send_until_ms,
		.answer_bytes_max = answer_bytes_max,
		.ca_file = target->caller.ca_file,
		.done = ended,
	};
	return hpx_egress_submit(sending->deliverer->egress, &sending->request);
}

void hpx_sending_begin(struct hpx_sending *sending, int64_t send_until_ms,
		       size_t answer_bytes_max)
{
	enum hpx_status status = hand_over(sending, send_until_ms, answer_bytes_max);

	if (status == HPX_OK)
		HPX_CRASH_POINT(job_sending);
	else if (status == HPX_INVALID || status == HPX_TOO_LARGE)
		refuse(sending, status);
	else
		hpx_sending_return(sending, hpx_status_text(status));
}

void hpx_sending_return(struct hpx_sending *sending, const char *why)
{
	sending->turn = (struct hpx_job_update){ .move = HPX_JOB_MOVE_POSTPONE,
						 .unsent = true };
	snprintf(sending->reason, sizeof(sending->reason), "it was not sent: %s", why);
	hpx_deliverer_freed(sending->deliverer, sending->lane, NULL);
	hpx_sending_store(sending);
}
