/* One question, from what was taken to what is found. */
#include "worker/probe_call.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/crash_point.h"
#include "base/log.h"

#define URL_BYTES_MAX 8192
/* Of a probe's answer: a state and an id, not a document. */
#define ANSWER_BYTES_MAX ((size_t)256 * 1024)

const struct hpx_operation_id *hpx_question_id(const struct hpx_question *question)
{
	return question->about->delivery.number != 0 ? &question->about->delivery.operation :
						       &question->about->record.id;
}

const struct hpx_mark *hpx_question_mark(const struct hpx_question *question)
{
	return question->about->delivery.number != 0 ? &question->about->delivery.mark :
						       &question->about->record.mark;
}

/* NULL: nobody can be asked. */
static const struct hpx_reconcile_settings *find_how(const struct hpx_settings *settings,
						     const struct hpx_unsettled *about)
{
	const struct hpx_reconcile_settings *how = NULL;

	if (about->delivery.number != 0) {
		const struct hpx_job_target *target = hpx_settings_find_target(settings, about->target);
		how = target != NULL ? &target->reconcile : NULL;
	} else {
		const struct hpx_route *route =
			hpx_settings_find_route(settings, about->description.route);
		how = route != NULL ? &route->reconcile : NULL;
	}
	return how != NULL && how->given && how->probe.given ? how : NULL;
}

static struct hpx_question *question_new(struct hpx_reconciler *reconciler,
					 struct hpx_settings *settings,
					 struct hpx_unsettled *about)
{
	struct hpx_question *question = calloc(1, sizeof(*question));

	if (question == NULL)
		return NULL;
	question->reconciler = reconciler;
	question->settings = hpx_settings_ref(settings);
	question->about = about;
	question->how = find_how(settings, about);
	hpx_buffer_init(&question->url, URL_BYTES_MAX);
	return question;
}

static void question_free(struct hpx_question *question)
{
	hpx_egress_request_done(&question->request);
	hpx_buffer_done(&question->url);
	hpx_unsettled_free(question->about);
	hpx_settings_unref(question->settings);
	free(question);
}

/* Freed, and only then told: the reconciler goes when its last question has. */
void hpx_question_drop(struct hpx_question *question)
{
	struct hpx_reconciler *reconciler = question->reconciler;
	struct hpx_probe_lane *lane = question->lane;

	question_free(question);
	hpx_reconciler_ended(reconciler, lane);
}

/* ---- what was found ---- */

/* The probe itself failed, or cannot be made: that is an answer too, one that
 * says nothing and spends a try. */
static void rule_unclear(struct hpx_question *question, const char *why)
{
	struct hpx_received_ruling received = { .ruling = HPX_RULING_UNCLEAR,
						.about_ms = hpx_clock_wall_ms(),
						.asked = true };

	snprintf(question->reason, sizeof(question->reason), "the probe says nothing: %s", why);
	hpx_question_rule(question, &received);
}

static void answered(struct hpx_egress_request *request)
{
	struct hpx_question *question = HPX_CONTAINER(request, struct hpx_question, request);
	struct hpx_received_ruling received = {
		.about_ms = question->about_ms,
		.asked = true,
		.retry_after_ms = request->retry_after_ms > 0 ? request->retry_after_ms : 0,
	};

	hpx_reconciler_freed(question->reconciler, question->lane);
	if (request->end != HPX_EGRESS_ANSWERED) {
		if (hpx_reconciler_is_stopping(question->reconciler))
			hpx_question_drop(question);
		else
			rule_unclear(question, request->problem);
		return;
	}
	if (hpx_ruling_of_answer(&question->how->probe.mapping, request->status,
				 hpx_buffer_span(&request->body_in), &received.ruling) != HPX_OK) {
		rule_unclear(question, hpx_status_text(HPX_NOMEM));
		return;
	}
	snprintf(question->reason, sizeof(question->reason), "the probe was answered %u: %s",
		 request->status, hpx_ruling_name(received.ruling));
	hpx_question_rule(question, &received);
}

/* ---- asking ---- */

/* The store gets this long, before a question and after it. */
#define STORE_MS 10000

/* Half of it for the way to the probe: a slot that comes free, and the store's
 * own time; half for the question and what is stored of it. */
int64_t hpx_question_lease_ms(const struct hpx_reconcile_settings *how)
{
	return 2 * ((how != NULL ? how->probe.caller.timeout_ms : 0) + STORE_MS);
}

static void prepare(struct hpx_question *question)
{
	const char *reason = "";
	enum hpx_status status = hpx_probe_url(question, question->reconciler->reader,
					       &question->url, &reason);

	if (status != HPX_OK)
		rule_unclear(question, status == HPX_NOT_FOUND ? reason : hpx_status_text(status));
	else
		hpx_reconciler_queue(question->reconciler, question);
}

void hpx_question_ask(struct hpx_question *question)
{
	struct hpx_reconciler *reconciler = question->reconciler;
	const struct hpx_probe *probe = &question->how->probe;
	enum hpx_status status;

	question->about_ms = hpx_clock_wall_ms();
	question->request = (struct hpx_egress_request){
		.url = question->url.ptr,
		.method = "GET",
		.headers = probe->caller.headers,
		.reuse = true,
		.connect_timeout_ms = probe->caller.connect_timeout_ms,
		.timeout_ms = probe->caller.timeout_ms,
		.answer_bytes_max = ANSWER_BYTES_MAX,
		.ca_file = probe->caller.ca_file,
		.done = answered,
	};
	status = hpx_clock_boot_ms() > question->ask_until_ms ?
			 HPX_CLOSED :
			 hpx_egress_submit(reconciler->egress, &question->request);
	if (status == HPX_OK) {
		HPX_CRASH_POINT(reconcile_asked);
		return;
	}
	hpx_reconciler_freed(reconciler, question->lane);
	if (status == HPX_CLOSED)
		hpx_question_drop(question);
	else
		rule_unclear(question, question->request.problem);
}

/* The last two tries are kept for when their answers can count. The store makes
 * the first question due at once, so this looks again. */
static bool is_too_early(const struct hpx_question *question)
{
	struct hpx_reconcile reconcile = question->about->reconcile;
	int64_t now_ms = hpx_clock_wall_ms();

	if (reconcile.sent_ms == 0)
		reconcile.sent_ms = question->about->delivery.number != 0 ?
					    question->about->delivery.changed_ms :
					    question->about->record.changed_ms;
	return hpx_reconcile_first_ms(&reconcile, &question->how->rule, now_ms, 0) > now_ms;
}

static void use_evidence(struct hpx_question *question)
{
	struct hpx_received_ruling received = { .ruling = question->about->evidence,
						.about_ms = hpx_clock_wall_ms() };

	snprintf(question->reason, sizeof(question->reason),
		 "evidence: it was said to be %s before its outcome was unknown",
		 hpx_ruling_name(received.ruling));
	hpx_question_rule(question, &received);
}

static bool has_evidence(const struct hpx_unsettled *about)
{
	return about->evidence == HPX_RULING_APPLIED || about->evidence == HPX_RULING_DECLINED;
}

void hpx_question_begin(struct hpx_reconciler *reconciler, struct hpx_settings *settings,
			struct hpx_unsettled *about)
{
	struct hpx_question *question = question_new(reconciler, settings, about);

	if (question == NULL) {
		hpx_unsettled_free(about); /* it comes again */
		return;
	}
	question->lane = hpx_reconciler_lane(reconciler, about);
	question->ask_until_ms = hpx_clock_boot_ms() + hpx_question_lease_ms(question->how) / 2;
	hpx_reconciler_enlist(reconciler, question);
	if (has_evidence(about))
		use_evidence(question);
	else if (question->how == NULL || question->lane == NULL || is_too_early(question))
		hpx_question_drop(question);
	else
		prepare(question);
}
