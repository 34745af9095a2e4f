/* Sends a call until its outcome is known:
 *
 *   written down ──▶ attempt ──▶ done                definite
 *                     ▲    └───▶ stopped             not definite, no retry asked for
 *                     │    └───▶ gave up             budget, attempts, the key's time
 *                     └─ wait ─┘ └─▶ interrupted     the entry stays open
 *
 * What an answer means for the next attempt is decided in core/retry; here are the
 * clock, the journal and the wait. The request is put together once and never
 * changed.
 *
 * An attempt is a transfer of egress/, as for jobs: on a fresh connection that is
 * closed afterwards, so that libcurl never sends again by itself, and with the proof
 * whether a byte left. HTTP/1.1 only: in HTTP/2 libcurl sends a request again by
 * itself when its stream is refused, and one request per connection gains nothing
 * from HTTP/2. */
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/crash_point.h"
#include "base/status.h"
#include "client/client.h"
#include "client/journal.h"
#include "core/pacing.h"
#include "core/retry.h"
#include "egress/transfer.h"
#include "http/field.h"

#define TICK_MS 1000
/* Corrections of a wall clock are smaller. A clock that was set back further says
 * nothing about an age. */
#define CORRECTION_MS 300000

/* ---- one transfer ---- */

struct attempt_progress {
	struct hapax_client *client;
	struct hpx_transfer *transfer;
	bool sent;
};

/* All of the request was handed to the socket. */
static void note_sent(struct attempt_progress *progress)
{
	const struct hpx_egress_request *request = progress->transfer->request;
	curl_off_t body_bytes = 0;
	long head_bytes = 0;

	if (progress->sent || progress->transfer->state == HPX_TRANSFER_CONNECTING)
		return;
	curl_easy_getinfo(progress->transfer->easy, CURLINFO_REQUEST_SIZE, &head_bytes);
	curl_easy_getinfo(progress->transfer->easy, CURLINFO_SIZE_UPLOAD_T, &body_bytes);
	if (head_bytes == 0 || (size_t)body_bytes < request->body.len)
		return;
	progress->sent = true;
	HPX_CRASH_POINT(call_sent);
}

/* Called at least once a second. */
static int on_progress(void *user, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
		       curl_off_t up)
{
	struct attempt_progress *progress = user;

	note_sent(progress);
	if (!atomic_load(&progress->client->interrupted))
		return hpx_transfer_on_progress(progress->transfer, down_total, down, up_total, up);
	progress->transfer->abort_reason = "interrupted";
	return 1;
}

/* Other than for jobs, the proxies of the environment are used, as people expect of a
 * client. Their answer to CONNECT is not taken for the API's. */
static CURLcode set_up(struct attempt_progress *progress)
{
	CURL *easy = progress->transfer->easy;
	CURLcode code = curl_easy_setopt(easy, CURLOPT_PROXY, NULL);

	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_XFERINFODATA, progress);
	return code;
}

static void fill_request(const struct hapax_call *call, struct hpx_span headers,
			 struct hpx_egress_request *request)
{
	const struct hapax_client_options *options = &call->client->options;

	*request = (struct hpx_egress_request){
		.url = call->url,
		.method = call->method,
		.headers = headers,
		.body = hpx_span(call->body, call->body_len),
		.connect_timeout_ms = options->connect_timeout_ms,
		.timeout_ms = options->timeout_ms,
		/* The boot clock also counts the time in which the machine sleeps;
		 * libcurl's clock does not. */
		.send_until_ms = hpx_clock_boot_ms() + options->timeout_ms,
		.answer_bytes_max = options->answer_bytes_max,
		.ca_file = options->ca_file,
	};
	hpx_egress_request_reset(request);
}

enum hapax_result hpx_call_check(const struct hapax_call *call, struct hpx_span headers,
				 char *problem)
{
	struct hpx_egress_request request;

	fill_request(call, headers, &request);
	if (hpx_egress_request_check(&request) == HPX_OK)
		return hpx_client_ok(problem);
	return hpx_client_error(HAPAX_INVALID, problem, "%s", request.problem);
}

/* libcurl quotes a proxy that it does not understand, password and all. */
static void hide_proxy(struct hpx_transfer *transfer)
{
	if (hpx_span_starts(hpx_span_of(transfer->error), HPX_SPAN("Unsupported proxy")))
		transfer->abort_reason = "the proxy that the environment names cannot be used";
}

/* Sends the call once; the caller frees the result (hpx_egress_request_done). `headers` are
 * all fields as lines. */
static void run_transfer(struct hapax_call *call, struct hpx_span headers,
			 struct hpx_egress_request *request)
{
	struct attempt_progress progress = { .client = call->client };
	const char *problem = "";

	HPX_ASSERT(call->sent && call->sending);
	fill_request(call, headers, request);
	progress.transfer = hpx_transfer_new(request, &problem);
	if (progress.transfer == NULL) {
		hpx_egress_request_set_problem(request, "%s", problem);
		return;
	}
	CURLcode code = set_up(&progress);
	if (code == CURLE_OK)
		code = curl_easy_perform(progress.transfer->easy);
	note_sent(&progress);
	hide_proxy(progress.transfer);
	hpx_transfer_end(progress.transfer, code);
}

/* ---- the answer ---- */

const struct hapax_outcome *hapax_call_outcome(const struct hapax_call *call)
{
	return call != NULL ? &call->outcome : NULL;
}

/* The lines of an answer were written by take_answer: "Name: value", with a NUL
 * for the CR. */
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

/* The answer becomes the call's, in place of an earlier one; false when out of memory. */
static bool take_answer(struct hapax_call *call, struct hpx_egress_request *request)
{
	HPX_ASSERT(request->end == HPX_EGRESS_ANSWERED);
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

/* What core/retry must know of an attempt, whose answer, if any, was taken. */
static struct hpx_retry_facts facts_of(const struct hapax_call *call,
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
		hpx_retry_read_body(field_of(call, "Content-Type"),
				    hpx_buffer_span(&call->body_in), &facts);
	return facts;
}

/* Fills the outcome from the state of the call, all but its kind. */
static void fill_outcome(struct hapax_call *call)
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

/* ---- attempts, until the outcome is known ---- */

struct send_run {
	struct hapax_call *call;
	struct hpx_buffer lines;
	int64_t until_ms;  /* boot clock: no attempt begins later */
	unsigned attempts; /* of this run */
	int64_t wait_ms;   /* until the next one */
	struct hapax_attempt report;
	char trouble[HPX_EGRESS_PROBLEM_SIZE];
	bool over;
};

static void notify(struct send_run *run, enum hapax_attempt_event event)
{
	const struct hapax_client_options *options = &run->call->client->options;

	run->report.event = event;
	run->report.number = run->call->attempts;
	if (options->observe != NULL)
		options->observe(options->user, &run->report);
}

/* Ends the run without a definite answer; the sentence says why. */
__attribute__((format(printf, 3, 4))) static void
end(struct send_run *run, enum hapax_outcome_kind kind, const char *format, ...)
{
	va_list args;

	HPX_ASSERT(kind != HAPAX_DONE);
	va_start(args, format);
	vsnprintf(run->call->reason, sizeof(run->call->reason), format, args);
	va_end(args);
	run->call->outcome.kind = kind;
	run->over = true;
	run->report.wait_ms = -1;
}

static enum hapax_result record(struct hapax_call *call, char *problem)
{
	if (call->client->journal == NULL)
		return HAPAX_OK;
	HPX_ASSERT((call->id == 0) == (call->claim_fd < 0));
	if (call->id == 0)
		return hpx_journal_add(call->client->journal, call, problem);
	return hpx_journal_update(call->client->journal, call, problem);
}

/* The attempt's beginning is durable before its first byte leaves. While there is no
 * doubt, nothing has happened, and the age of the key counts from now. */
static enum hapax_result begin_attempt(struct send_run *run, char *problem)
{
	struct hapax_call *call = run->call;
	int64_t first_ms = call->first_ms;

	HPX_ASSERT(!run->over && !call->sending);
	call->state = HAPAX_ENTRY_OPEN;
	call->sending = true;
	call->attempts++;
	if (!call->doubt)
		call->first_ms = hpx_clock_wall_ms();
	enum hapax_result result = record(call, problem);
	if (result == HAPAX_OK) {
		run->attempts++;
		HPX_CRASH_POINT(call_written);
		return HAPAX_OK;
	}
	call->sending = false;
	call->attempts--;
	call->first_ms = first_ms;
	return result;
}

static uint64_t random_number(void)
{
	uint64_t number;

	hpx_random(&number, sizeof(number));
	return number;
}

static bool is_forgotten(const struct hapax_call *call)
{
	int64_t age_ms = hpx_clock_wall_ms() - call->first_ms;

	return call->doubt && (age_ms < -CORRECTION_MS || age_ms >= call->remembered_ms);
}

/* A time to come back that is beyond the budget is not waited for. */
static void plan_next(struct send_run *run, int64_t asked_s)
{
	const struct hapax_client_options *options = &run->call->client->options;
	struct hpx_backoff backoff = { options->backoff_ms, options->backoff_max_ms };
	int64_t delay_ms = hpx_backoff_delay(&backoff, run->attempts, random_number());

	HPX_ASSERT(run->attempts > 0);
	run->wait_ms = hpx_backoff_heed(delay_ms, asked_s * 1000, INT64_MAX);
	run->report.wait_ms = run->wait_ms;
	if (options->attempts_max > 0 && run->attempts >= options->attempts_max)
		end(run, HAPAX_GAVE_UP, "the attempts are used up");
	else if (hpx_backoff_add(hpx_clock_boot_ms(), run->wait_ms) <= run->until_ms)
		return;
	else if (asked_s * 1000 >= delay_ms && asked_s > 0)
		end(run, HAPAX_GAVE_UP,
		    "the server asks to come back in %" PRId64 " s, which is beyond the budget",
		    asked_s);
	else
		end(run, HAPAX_GAVE_UP, "the budget is used up");
}

static void apply_decision(struct send_run *run, const struct hpx_egress_request *request)
{
	struct hapax_call *call = run->call;
	struct hpx_retry_facts facts = facts_of(call, request);
	struct hpx_retry_decision decision = hpx_retry_decide(&facts, call->doubt);

	call->doubt = decision.doubt;
	run->report.definite = decision.action == HPX_RETRY_ACTION_done;
	run->report.doubt = call->doubt;
	run->report.wait_ms = -1;
	switch (decision.action) {
	case HPX_RETRY_ACTION_done:
		call->outcome.kind = HAPAX_DONE;
		run->over = true;
		break;
	case HPX_RETRY_ACTION_stop:
		end(run, HAPAX_STOPPED, "the answer %u does not say what happened, and is not one to "
					"retry at once",
		    call->status);
		break;
	case HPX_RETRY_ACTION_again:
		plan_next(run, decision.wait_s);
		break;
	}
}

/* One attempt and what follows from it. */
static enum hapax_result attempt(struct send_run *run, char *problem)
{
	struct hapax_call *call = run->call;
	struct hpx_egress_request request;
	int64_t began_ms = hpx_clock_boot_ms();
	enum hapax_result result = HAPAX_OK;

	run->report = (struct hapax_attempt){ .trouble = "", .wait_ms = -1 };
	run->report.size = sizeof(run->report);
	notify(run, HAPAX_ATTEMPT_BEGINS);
	run_transfer(call, hpx_buffer_span(&run->lines), &request);
	HPX_CRASH_POINT(call_answered);
	run->report.end = request.end == HPX_EGRESS_ANSWERED  ? HAPAX_ATTEMPT_ANSWERED :
			  request.end == HPX_EGRESS_NO_ANSWER ? HAPAX_ATTEMPT_LOST :
								HAPAX_ATTEMPT_UNSENT;
	run->report.status = request.status;
	run->report.took_ms = hpx_clock_boot_ms() - began_ms;
	snprintf(run->trouble, sizeof(run->trouble), "%s", request.problem);
	run->report.trouble = run->trouble;
	if (request.end != HPX_EGRESS_ANSWERED || take_answer(call, &request)) {
		apply_decision(run, &request);
	} else {
		result = hpx_client_no_memory(problem);
		call->doubt = true;
		end(run, HAPAX_GAVE_UP, "there was no memory for the answer");
	}
	hpx_egress_request_done(&request);
	return result;
}

static enum hapax_entry_state state_of(const struct send_run *run)
{
	if (!run->over)
		return HAPAX_ENTRY_OPEN;
	switch (run->call->outcome.kind) {
	case HAPAX_DONE:
		return HAPAX_ENTRY_DONE;
	case HAPAX_STOPPED:
		return HAPAX_ENTRY_STOPPED;
	case HAPAX_GAVE_UP:
		return HAPAX_ENTRY_GAVE_UP;
	case HAPAX_INTERRUPTED:
		break;
	}
	return HAPAX_ENTRY_OPEN;
}

static bool is_interrupted(const struct send_run *run)
{
	return atomic_load(&run->call->client->interrupted);
}

static bool is_done(const struct send_run *run)
{
	return run->over && run->call->outcome.kind == HAPAX_DONE;
}

static enum hapax_result end_attempt(struct send_run *run, char *problem)
{
	struct hapax_call *call = run->call;

	HPX_ASSERT(call->sending);
	if (!run->over && is_interrupted(run))
		end(run, HAPAX_INTERRUPTED, "it was interrupted");
	call->unconfirmed = is_done(run) && call->client->options.confirm != 0;
	if (call->unconfirmed) {
		/* Until the caller confirms, the journal still says that the call may
		 * have happened. */
		notify(run, HAPAX_ATTEMPT_ENDED);
		return HAPAX_OK;
	}
	call->sending = false;
	call->state = state_of(run);
	enum hapax_result result = record(call, problem);
	if (result == HAPAX_OK)
		HPX_CRASH_POINT(call_recorded);
	notify(run, HAPAX_ATTEMPT_ENDED);
	if (result == HAPAX_OK)
		return HAPAX_OK;
	/* The journal still says that the call may have happened, which is safe. */
	if (is_done(run))
		return HAPAX_UNCERTAIN;
	end(run, HAPAX_GAVE_UP, "the journal cannot be written");
	return result;
}

/* The next attempt's time, or the interruption. */
static void wait_for_next(struct send_run *run)
{
	int64_t until_ms = hpx_backoff_add(hpx_clock_boot_ms(), run->wait_ms);
	HPX_ASSERT(!run->over && run->wait_ms >= 0);
	struct pollfd wake = { .fd = run->call->client->wake_fd, .events = POLLIN };

	for (;;) {
		int64_t left_ms = until_ms - hpx_clock_boot_ms();
		if (left_ms <= 0 || is_interrupted(run))
			break;
		run->report.wait_ms = left_ms;
		notify(run, HAPAX_ATTEMPT_WAITS);
		/* poll ends early by a signal; the loop then looks again. */
		(void)poll(&wake, 1, (int)(left_ms < TICK_MS ? left_ms : TICK_MS));
	}
	if (is_interrupted(run))
		end(run, HAPAX_INTERRUPTED, "it was interrupted");
}

/* One round: an attempt, written down before and after, and the wait. */
static enum hapax_result run_round(struct send_run *run, char *problem)
{
	if (is_forgotten(run->call)) {
		end(run, HAPAX_GAVE_UP,
		    "the server may have forgotten its key since the first attempt, and would "
		    "execute it again: look there what became of it");
		run->call->state = HAPAX_ENTRY_GAVE_UP;
		return run->call->id != 0 ? record(run->call, problem) : HAPAX_OK;
	}
	enum hapax_result result = begin_attempt(run, problem);
	if (result != HAPAX_OK) {
		end(run, HAPAX_GAVE_UP, "the journal cannot be written");
		return result;
	}
	result = attempt(run, problem);
	if (result == HAPAX_OK)
		result = end_attempt(run, problem);
	if (result == HAPAX_OK && !run->over)
		wait_for_next(run);
	return result;
}

static enum hapax_result prepare(struct send_run *run, char *problem)
{
	enum hapax_result result = hpx_call_is_complete(run->call, problem);

	if (result != HAPAX_OK)
		return result;
	enum hpx_status status = hpx_call_lines(run->call, &run->lines);
	if (status == HPX_NOMEM)
		return hpx_client_no_memory(problem);
	if (status != HPX_OK)
		return hpx_client_error(HAPAX_INVALID, problem, "the header fields are too large");
	return hpx_call_check(run->call, hpx_buffer_span(&run->lines), problem);
}

enum hapax_result hapax_call_send(struct hapax_call *call, char *problem)
{
	if (call == NULL || call->sent)
		return hpx_client_error(HAPAX_MISUSE, problem,
					"a call is sent once: resume it, or make "
					"another");
	struct send_run run = { .call = call, .report = { .size = sizeof(run.report) } };
	hpx_client_ok(problem);
	hpx_buffer_init(&run.lines, HPX_EGRESS_HEAD_BYTES_MAX);
	enum hapax_result result = prepare(&run, problem);
	if (result == HAPAX_OK) {
		call->sent = true;
		run.until_ms = hpx_backoff_add(hpx_clock_boot_ms(), call->client->options.budget_ms);
		if (is_interrupted(&run))
			end(&run, HAPAX_INTERRUPTED, "it was interrupted");
	}
	while (result == HAPAX_OK && !run.over)
		result = run_round(&run, problem);
	hpx_buffer_done(&run.lines);
	fill_outcome(call);
	return result;
}

enum hapax_result hapax_call_confirm(struct hapax_call *call, char *problem)
{
	if (call == NULL || call->outcome.kind != HAPAX_DONE)
		return hpx_client_error(HAPAX_MISUSE, problem, "only a call that is done is confirmed");
	if (!call->unconfirmed)
		return hpx_client_ok(problem);
	HPX_ASSERT(call->sending && call->state == HAPAX_ENTRY_OPEN);
	call->sending = false;
	call->state = HAPAX_ENTRY_DONE;
	if (record(call, problem) != HAPAX_OK)
		return HAPAX_UNCERTAIN;
	call->unconfirmed = false;
	HPX_CRASH_POINT(call_recorded);
	return hpx_client_ok(problem);
}
