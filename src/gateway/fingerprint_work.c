/* The fingerprint of a request, made on its loop where that is quick. A large body, or
 * one that may become large when it is decoded, is worked on by a thread of libuv's pool,
 * so that nobody else on the loop waits for it: one for each loop at a time, in the order
 * of arrival, because a crowd of such bodies must not take all cores.
 *
 * While a thread works on a request, the request waits (QUERY) and its loop touches
 * neither its arena nor its body. It is held until the thread is done, whatever becomes of
 * its client. */
#include "gateway/steps.h"

#include "base/status.h"
#include "http/field.h"

/* Room for a decoded body and its canonical form. Not an option: with another
 * bound the same large body could get another fingerprint. */
#define CANONICAL_BYTES_MAX (16 * 1024 * 1024)
/* The most that is worked on without leaving the loop: a millisecond or so. */
#define ON_LOOP_BYTES_MAX (128 * 1024)

/* A header as the upstream gets it: a host in the target overrides the Host field. */
static struct hpx_span combined_header(void *user, struct hpx_span name)
{
	struct hpx_request *request = user;

	if (hpx_span_ieq(name, HPX_SPAN("Host")))
		return request->head.host;
	return hpx_field_combined(&request->head.http, name, &request->arena);
}

static struct hpx_meaning meaning_of(struct hpx_request *request)
{
	return (struct hpx_meaning){
		.method = request->head.http.method,
		.path = request->head.target.path,
		.query = request->head.target.query,
		.content_type = hpx_field_known_value(&request->head.http, HPX_NAME_CONTENT_TYPE),
		.content_encoding = hpx_field_known_combined(
			&request->head.http, HPX_NAME_CONTENT_ENCODING, &request->arena),
		.body = hpx_buffer_span(&request->body.bytes),
		.header = combined_header,
		.user = request,
	};
}

static enum hpx_next step_behind(enum hpx_status status)
{
	return status == HPX_OK ? HPX_NEXT_LOOKUP : HPX_NEXT_OVERLOADED;
}

static enum hpx_status make(struct hpx_request *request, const struct hpx_meaning *meaning)
{
	return hpx_fingerprint(&request->identity.recipe, meaning, CANONICAL_BYTES_MAX,
			       request->identity.ask.fingerprint);
}

/* ---- on a thread ---- */

static void start_next(struct hpx_shard *shard);

static struct hpx_request *request_of(uv_work_t *work)
{
	return HPX_CONTAINER(work, struct hpx_request, fingerprint.work);
}

static void on_thread(uv_work_t *work)
{
	struct hpx_request *request = request_of(work);
	const struct hpx_meaning meaning = meaning_of(request);

	request->fingerprint.status = make(request, &meaning);
}

/* On the loop again. */
static void on_made(uv_work_t *work, int rc)
{
	struct hpx_request *request = request_of(work);
	struct hpx_shard *shard = request->shard;

	if (rc != 0)
		request->fingerprint.status = HPX_UNAVAILABLE;
	shard->fingerprints.working = false;
	hpx_resume_post(&request->fingerprint.made);
	start_next(shard);
}

static void start_next(struct hpx_shard *shard)
{
	struct hpx_fingerprint_queue *queue = &shard->fingerprints;
	struct hpx_request *request = queue->first;

	if (request == NULL || queue->working)
		return;
	queue->first = request->fingerprint.next;
	if (queue->first == NULL)
		queue->last = NULL;
	queue->working = true;
	/* Fails only without a callback (libuv's documentation). */
	(void)uv_queue_work(&shard->loop.uv, &request->fingerprint.work, on_thread, on_made);
}

static void join_queue(struct hpx_request *request)
{
	struct hpx_fingerprint_queue *queue = &request->shard->fingerprints;

	request->fingerprint.next = NULL;
	if (queue->last != NULL)
		queue->last->fingerprint.next = request;
	else
		queue->first = request;
	queue->last = request;
	start_next(request->shard);
}

enum hpx_next hpx_fingerprint_make(struct hpx_request *request)
{
	const struct hpx_meaning meaning = meaning_of(request);

	if (hpx_fingerprint_effort(&meaning, CANONICAL_BYTES_MAX) <= ON_LOOP_BYTES_MAX)
		return step_behind(make(request, &meaning));
	hpx_resume_arm(&request->fingerprint.made, request);
	join_queue(request);
	return hpx_request_await(request, HPX_WAIT_QUERY, &request->fingerprint.made,
				 HPX_WAIT_NO_DEADLINE, HPX_NEXT_FINGERPRINTED, HPX_NEXT_OVERLOADED);
}

enum hpx_next hpx_step_fingerprinted(struct hpx_request *request)
{
	return step_behind(request->fingerprint.status);
}
