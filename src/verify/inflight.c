/* Requests in flight: the response while it is read, the steps of one request
 * from connecting to its end, and one poll loop that moves all of them.
 *
 *   CONNECTING ─▶ SENDING ─▶ READING ─▶ DONE
 *                  │   ▲        (a response that comes early is read, and a
 *                  ▼   │ release        connection that breaks is read to its end)
 *                  HELD
 *   with a cut:   SENDING ─▶ FLUSHING ─▶ DONE, or ─▶ AWAITING ─▶ DONE */
#include "verify/run_state.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "http/field.h"

/* ---- the response ---- */

#define HEAD_MAX ((size_t)64 * 1024)
/* A head, and the bytes of the body that came with its end. */
#define HEAD_BYTES_MAX (HEAD_MAX * 2)
#define FIELDS_BYTES_MAX ((size_t)256 * 1024)

static const struct hpx_http_limits limits = { .head_bytes_max = HEAD_MAX,
					       .fields_max = HPX_HTTP_FIELDS_MAX };

void hpx_response_init(struct hpx_response *response, struct hpx_span method,
		       struct hpx_response_shared *shared)
{
	*response = (struct hpx_response){ .method = method, .shared = shared };
	hpx_http_reader_response(&response->reader, &limits, method);
	hpx_arena_init(&response->arena, FIELDS_BYTES_MAX);
	hpx_buffer_init(&response->head_bytes, HEAD_BYTES_MAX);
	hpx_buffer_init(&response->body, HPX_RESPONSE_BODY_MAX);
	hpx_sha256_init(&response->hash);
}

void hpx_response_done(struct hpx_response *response)
{
	uint8_t digest[HPX_SHA256_SIZE];

	/* Frees the hash's context; the digest is in the exchange by now. */
	hpx_sha256_done(&response->hash, digest);
	HPX_ASSERT(response->shared->held_bytes >= response->body.len);
	response->shared->held_bytes -= response->body.len;
	hpx_arena_done(&response->arena);
	hpx_buffer_done(&response->head_bytes);
	hpx_buffer_done(&response->body);
}

static enum hpx_http_progress refuse(struct hpx_response *response, const char *problem)
{
	response->problem = problem;
	return HPX_HTTP_BAD;
}

/* The reader's own words are about requests, which the gateway reads. */
static const char *head_problem(enum hpx_http_error error)
{
	return error == HPX_HTTP_ERROR_HEAD_TOO_LARGE ? "the answer's head is too large" : hpx_http_error_text(error);
}

/* How many more bytes of the body are kept. Once one was left out, none. */
static size_t room_of(const struct hpx_response *response)
{
	size_t len = response->body.len;
	size_t held = response->shared->held_bytes;
	size_t all = held < HPX_RESPONSE_BODIES_MAX ? HPX_RESPONSE_BODIES_MAX - held : 0;
	size_t first = len < HPX_EXCHANGE_KEPT ? HPX_EXCHANGE_KEPT - len : 0;
	size_t own = HPX_RESPONSE_BODY_MAX - len;

	HPX_ASSERT(len <= HPX_RESPONSE_BODY_MAX && len <= response->body_bytes);
	if (response->body_bytes > len)
		return 0;
	all = all > first ? all : first;
	return own < all ? own : all;
}

static enum hpx_http_progress keep(struct hpx_response *response, struct hpx_span data)
{
	struct hpx_span kept = hpx_span_first(data, room_of(response));

	response->body_bytes += data.len;
	hpx_sha256_add(&response->hash, data);
	if (hpx_buffer_append(&response->body, kept) != HPX_OK)
		return refuse(response, "no memory for the answer's body");
	response->shared->held_bytes += kept.len;
	return HPX_HTTP_MORE;
}

static enum hpx_http_progress feed_body(struct hpx_response *response, struct hpx_span bytes)
{
	for (;;) {
		struct hpx_span data = { NULL, 0 };
		size_t used = 0;
		enum hpx_http_progress progress =
			hpx_http_read_body(&response->reader, bytes, &data, &used);

		if (progress == HPX_HTTP_BAD)
			return refuse(response, hpx_http_error_text(response->reader.error));
		if (keep(response, data) == HPX_HTTP_BAD)
			return HPX_HTTP_BAD;
		bytes = hpx_span_skip(bytes, used);
		if (progress == HPX_HTTP_DONE || bytes.len == 0)
			return progress;
	}
}

/* An interim response (1xx) is dropped: the final one is still to come. */
static bool drop_interim(struct hpx_response *response, size_t used)
{
	if (response->head.status >= 200)
		return false;
	hpx_buffer_consume(&response->head_bytes, used);
	hpx_arena_done(&response->arena);
	hpx_http_reader_response(&response->reader, &limits, response->method);
	return true;
}

static enum hpx_http_progress feed_head(struct hpx_response *response)
{
	for (;;) {
		size_t used = 0;
		struct hpx_span bytes = hpx_buffer_span(&response->head_bytes);
		enum hpx_http_progress progress = hpx_http_read_head(
			&response->reader, bytes, &response->arena, &response->head, &used);

		if (progress == HPX_HTTP_BAD)
			return refuse(response, head_problem(response->reader.error));
		if (progress == HPX_HTTP_MORE)
			return progress;
		if (response->head.framing == HPX_FRAMING_TUNNEL)
			return refuse(response, "the answer changes to another protocol");
		if (drop_interim(response, used))
			continue;
		response->has_head = true;
		return feed_body(response, hpx_span_skip(bytes, used));
	}
}

enum hpx_http_progress hpx_response_feed(struct hpx_response *response, struct hpx_span bytes)
{
	HPX_ASSERT(response->problem == NULL);
	if (response->has_head)
		return feed_body(response, bytes);
	if (hpx_buffer_append(&response->head_bytes, bytes) != HPX_OK)
		return refuse(response, "the answer's head is too large");
	return feed_head(response);
}

static enum hpx_http_progress end_of_stream(struct hpx_response *response)
{
	if (response->has_head && hpx_http_read_end(&response->reader) == HPX_HTTP_DONE)
		return HPX_HTTP_DONE;
	if (response->head_bytes.len == 0)
		return refuse(response, "the connection was closed before an answer came");
	return refuse(response, "the connection was closed in the middle of the answer");
}

static enum hpx_status give_fields(const struct hpx_response *response, struct hpx_arena *arena,
				   struct hpx_verify_exchange *exchange)
{
	const struct hpx_http_head *head = &response->head;
	struct hpx_field *fields = hpx_arena_zalloc(arena, head->field_count, sizeof(*fields));

	if (fields == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < head->field_count; i++) {
		fields[i].name = hpx_arena_dup(arena, head->fields[i].name);
		fields[i].value = hpx_secrets_hide(&response->shared->secrets, head->fields[i].value,
						   arena);
		if (fields[i].name.ptr == NULL || fields[i].value.ptr == NULL)
			return HPX_NOMEM;
	}
	exchange->fields = fields;
	exchange->field_count = head->field_count;
	return HPX_OK;
}

enum hpx_status hpx_response_move(struct hpx_response *response, struct hpx_arena *arena,
				  struct hpx_verify_exchange *exchange)
{
	const struct hpx_secrets *secrets = &response->shared->secrets;
	struct hpx_span body = hpx_buffer_span(&response->body);
	enum hpx_status status = give_fields(response, arena, exchange);

	HPX_ASSERT(response->has_head && response->problem == NULL);
	if (status == HPX_OK)
		status = hpx_sha256_done(&response->hash, exchange->body_hash);
	if (status != HPX_OK)
		return status;
	if (response->body_bytes > body.len)
		body = hpx_span_first(body, HPX_EXCHANGE_KEPT);
	exchange->status = response->head.status;
	exchange->body_bytes = response->body_bytes;
	exchange->body = hpx_secrets_hide(secrets, body, arena);
	if (exchange->body.ptr == NULL) /* the row's arena is full of other bodies */
		exchange->body = hpx_secrets_hide(secrets, hpx_span_first(body, HPX_EXCHANGE_KEPT),
						  arena);
	return exchange->body.ptr != NULL ? HPX_OK : HPX_NOMEM;
}

/* ---- one request ---- */

#define PIECE 16384
/* Steps of one request before the others are served, and the deadline and Ctrl-C are
 * looked at: a server that sends faster than we read would go on for ever. */
#define STEPS_A_TURN 64

static void end(struct hpx_inflight *inflight, enum hpx_verify_exchange_end how, const char *problem)
{
	struct hpx_verify_exchange *exchange = inflight->exchange;

	HPX_ASSERT(inflight->state != HPX_INFLIGHT_DONE);
	inflight->state = HPX_INFLIGHT_DONE;
	exchange->end = how;
	exchange->took_ms = hpx_clock_boot_ms() - inflight->began_ms;
	snprintf(exchange->problem, sizeof(exchange->problem), "%s", problem);
	if (how == HPX_EXCHANGE_CUT)
		hpx_verify_conn_reset(&inflight->conn);
	else
		hpx_verify_conn_close(&inflight->conn);
}

static size_t bytes_to_send(const struct hpx_verify_request_bytes *request, enum hpx_verify_cut cut)
{
	HPX_ASSERT(request->head_bytes > 0 && request->head_bytes <= request->bytes.len);
	if (cut == HPX_CUT_HEAD)
		return request->head_bytes;
	if (cut == HPX_CUT_HALF_BODY)
		return request->head_bytes + (request->bytes.len - request->head_bytes) / 2;
	return request->bytes.len;
}

void hpx_inflight_start(struct hpx_inflight *inflight, const struct hpx_verify_host *host)
{
	char problem[HPX_CONN_PROBLEM_SIZE];

	HPX_ASSERT(inflight->conn.fd == -1 && inflight->timeout_ms > 0);
	inflight->state = HPX_INFLIGHT_CONNECTING;
	inflight->began_ms = hpx_clock_boot_ms();
	inflight->deadline_ms = inflight->began_ms + inflight->timeout_ms;
	inflight->send_bytes = bytes_to_send(&inflight->request, inflight->exchange->cut);
	inflight->sent = 0;
	inflight->flushed_ms = 0;
	if (hpx_verify_conn_open(&inflight->conn, host, problem) != HPX_OK)
		end(inflight, HPX_EXCHANGE_REFUSED, problem);
}

static bool step_connecting(struct hpx_inflight *inflight)
{
	char problem[HPX_CONN_PROBLEM_SIZE];
	enum hpx_status status = hpx_verify_conn_connect(&inflight->conn, problem);

	if (status == HPX_OK)
		inflight->state = HPX_INFLIGHT_SENDING;
	else if (status != HPX_BUSY)
		end(inflight, HPX_EXCHANGE_REFUSED, problem);
	return status == HPX_OK;
}

static void take_response(struct hpx_inflight *inflight, enum hpx_http_progress progress)
{
	if (progress == HPX_HTTP_BAD) {
		end(inflight, HPX_EXCHANGE_LOST, inflight->response.problem);
		return;
	}
	if (progress == HPX_HTTP_MORE)
		return;
	if (hpx_response_move(&inflight->response, inflight->arena, inflight->exchange) == HPX_OK)
		end(inflight, HPX_EXCHANGE_ANSWERED, "");
	else
		end(inflight, HPX_EXCHANGE_LOST, "no memory for the answer");
}

/* Reads one piece of the response; HPX_OK: there may be more. */
static enum hpx_status read_piece(struct hpx_inflight *inflight)
{
	char bytes[PIECE];
	size_t len = 0;
	enum hpx_status status = hpx_verify_conn_receive(&inflight->conn, bytes, sizeof(bytes), &len);

	if (status == HPX_OK)
		take_response(inflight, hpx_response_feed(&inflight->response, hpx_span(bytes, len)));
	else if (status == HPX_CLOSED)
		take_response(inflight, end_of_stream(&inflight->response));
	else if (status != HPX_BUSY)
		end(inflight, HPX_EXCHANGE_LOST, "the connection was reset");
	return status;
}

static bool step_reading(struct hpx_inflight *inflight)
{
	return read_piece(inflight) == HPX_OK && inflight->state == HPX_INFLIGHT_READING;
}

/* All bytes that are to be sent are sent. */
static bool sent_all(struct hpx_inflight *inflight)
{
	HPX_ASSERT(inflight->sent + inflight->hold == inflight->send_bytes);
	if (inflight->hold) {
		inflight->state = HPX_INFLIGHT_HELD;
		return false;
	}
	inflight->state = inflight->exchange->cut == HPX_CUT_NONE ? HPX_INFLIGHT_READING : HPX_INFLIGHT_FLUSHING;
	return true;
}

static bool step_sending(struct hpx_inflight *inflight)
{
	size_t limit = inflight->hold ? inflight->send_bytes - 1 : inflight->send_bytes;

	while (inflight->sent < limit) {
		size_t n = 0;
		struct hpx_span left = hpx_span(inflight->request.bytes.ptr + inflight->sent,
						limit - inflight->sent);
		enum hpx_status status = hpx_verify_conn_send(&inflight->conn, left, &n);

		inflight->sent += n;
		if (status == HPX_BUSY) {
			short wants = inflight->conn.wants;
			bool cut = inflight->exchange->cut != HPX_CUT_NONE;
			/* Some servers answer before they have read the whole request. */
			if (!cut && read_piece(inflight) == HPX_BUSY)
				inflight->conn.wants = wants;
			return false;
		}
		if (status != HPX_OK) {
			inflight->state = HPX_INFLIGHT_READING;
			return true;
		}
	}
	return sent_all(inflight);
}

static bool step_flushing(struct hpx_inflight *inflight)
{
	HPX_ASSERT(inflight->exchange->cut != HPX_CUT_NONE && inflight->sent == inflight->send_bytes);
	if (inflight->exchange->cut == HPX_CUT_BEFORE_ANSWER) {
		inflight->state = HPX_INFLIGHT_AWAITING;
		return true;
	}
	/* A reset drops the bytes that are still in our own queue. */
	if (inflight->flushed_ms == 0 && hpx_verify_conn_is_flushed(&inflight->conn))
		inflight->flushed_ms = hpx_clock_boot_ms();
	if (inflight->flushed_ms != 0 &&
	    hpx_clock_boot_ms() - inflight->flushed_ms >= inflight->linger_ms)
		end(inflight, HPX_EXCHANGE_CUT, "");
	return false;
}

static bool step_awaiting(struct hpx_inflight *inflight)
{
	enum hpx_status status = hpx_verify_conn_peek(&inflight->conn);

	if (status == HPX_OK)
		end(inflight, HPX_EXCHANGE_CUT, "");
	else if (status != HPX_BUSY)
		end(inflight, HPX_EXCHANGE_LOST, "the connection was closed before an answer came");
	return false;
}

static bool step(struct hpx_inflight *inflight)
{
	switch (inflight->state) {
	case HPX_INFLIGHT_CONNECTING:
		return step_connecting(inflight);
	case HPX_INFLIGHT_SENDING:
		return step_sending(inflight);
	case HPX_INFLIGHT_FLUSHING:
		return step_flushing(inflight);
	case HPX_INFLIGHT_AWAITING:
		return step_awaiting(inflight);
	case HPX_INFLIGHT_READING:
		return step_reading(inflight);
	case HPX_INFLIGHT_HELD:
	case HPX_INFLIGHT_DONE:
		break;
	}
	return false;
}

static void end_late(struct hpx_inflight *inflight)
{
	char problem[HPX_CONN_PROBLEM_SIZE];
	bool connecting = inflight->state == HPX_INFLIGHT_CONNECTING;

	snprintf(problem, sizeof(problem), "no %s within %lld ms",
		 connecting ? "connection" : "whole answer", (long long)inflight->timeout_ms);
	end(inflight, connecting ? HPX_EXCHANGE_REFUSED : HPX_EXCHANGE_TIMEOUT, problem);
}

void hpx_inflight_step(struct hpx_inflight *inflight)
{
	for (int i = 0; i < STEPS_A_TURN && step(inflight); i++)
		;
	/* A held request waits for the others, and each of those has its deadline. */
	if (inflight->state != HPX_INFLIGHT_DONE && inflight->state != HPX_INFLIGHT_HELD &&
	    hpx_clock_boot_ms() >= inflight->deadline_ms)
		end_late(inflight);
}

static short wanted_events(const struct hpx_inflight *inflight)
{
	switch (inflight->state) {
	case HPX_INFLIGHT_CONNECTING:
		return inflight->conn.wants;
	case HPX_INFLIGHT_SENDING:
		/* A request that will be cut reads nothing, so POLLIN would wake it for
		 * ever. */
		if (inflight->exchange->cut != HPX_CUT_NONE)
			return inflight->conn.wants;
		return inflight->conn.wants | POLLIN;
	case HPX_INFLIGHT_AWAITING:
	case HPX_INFLIGHT_READING:
		return inflight->conn.wants == POLLOUT && inflight->conn.ssl != NULL ? POLLOUT | POLLIN : POLLIN;
	case HPX_INFLIGHT_FLUSHING:
	case HPX_INFLIGHT_HELD:
	case HPX_INFLIGHT_DONE:
		break;
	}
	return 0;
}

void hpx_inflight_release(struct hpx_inflight *inflight)
{
	inflight->hold = false;
	if (inflight->state != HPX_INFLIGHT_HELD)
		return;
	HPX_ASSERT(inflight->sent + 1 == inflight->send_bytes);
	inflight->state = HPX_INFLIGHT_SENDING;
	inflight->began_ms = hpx_clock_boot_ms();
	inflight->deadline_ms = inflight->began_ms + inflight->timeout_ms;
}

void hpx_inflight_cut(struct hpx_inflight *inflight)
{
	if (inflight->state != HPX_INFLIGHT_DONE)
		end(inflight, HPX_EXCHANGE_CUT, "");
}

static void stop(struct hpx_inflight *inflight)
{
	if (inflight->state != HPX_INFLIGHT_DONE)
		end(inflight, HPX_EXCHANGE_UNSENT, "the run was stopped");
}

void hpx_inflight_done(struct hpx_inflight *inflight)
{
	hpx_verify_conn_close(&inflight->conn);
	hpx_response_done(&inflight->response);
}

/* ---- all requests ---- */

/* No event tells when the peer's machine has the bytes, so this is polled. */
#define FLUSH_POLL_MS 1
#define POLL_MAX_MS 1000

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* How long poll may sleep for the sake of this request. */
static int64_t poll_ms_for(const struct hpx_inflight *inflight, int64_t now_ms)
{
	if (inflight->state == HPX_INFLIGHT_FLUSHING)
		return FLUSH_POLL_MS;
	if (inflight->state == HPX_INFLIGHT_DONE || inflight->state == HPX_INFLIGHT_HELD)
		return POLL_MAX_MS;
	return inflight->deadline_ms > now_ms ? inflight->deadline_ms - now_ms : 0;
}

static void note_stop(struct hpx_verify *run, const struct pollfd *stop)
{
	if (stop->fd >= 0 && (stop->revents & POLLIN))
		run->stopped = true;
}

static int sleep_ms(const struct hpx_verify *run, int64_t deadline_ms)
{
	int64_t now_ms = hpx_clock_boot_ms();
	int64_t ms = least(POLL_MAX_MS, deadline_ms > now_ms ? deadline_ms - now_ms : 0);

	for (const struct hpx_inflight *inflight = run->live; inflight != NULL; inflight = inflight->next)
		ms = least(ms, poll_ms_for(inflight, now_ms));
	return (int)ms;
}

static void wait_once(struct hpx_verify *run, struct pollfd *fds, int64_t deadline_ms)
{
	nfds_t count = 1;

	fds[0] = (struct pollfd){ .fd = run->stopped ? -1 : run->stop_fd, .events = POLLIN };
	for (const struct hpx_inflight *inflight = run->live; inflight != NULL; inflight = inflight->next) {
		short wants = wanted_events(inflight);

		fds[count++] = (struct pollfd){ .fd = wants ? inflight->conn.fd : -1,
						.events = wants };
	}
	HPX_ASSERT(count == run->live_count + 1);
	poll(fds, count, sleep_ms(run, deadline_ms));
	note_stop(run, &fds[0]);
	hpx_shell_trim(&run->server);
}

static void step_all(struct hpx_verify *run)
{
	for (struct hpx_inflight *inflight = run->live; inflight != NULL; inflight = inflight->next) {
		hpx_inflight_step(inflight);
		if (run->stopped)
			stop(inflight);
	}
}

void hpx_verify_poll(struct hpx_verify *run, bool (*is_done)(void *user), void *user,
		     int64_t timeout_ms)
{
	int64_t deadline_ms = timeout_ms < 0 ? INT64_MAX : hpx_clock_boot_ms() + timeout_ms;
	struct pollfd *fds = calloc(run->live_count + 1, sizeof(*fds));
	struct pollfd alone;

	/* Without memory only the stop descriptor is polled, and all requests step by
	 * turns. */
	for (;;) {
		step_all(run);
		if (is_done(user) || hpx_clock_boot_ms() >= deadline_ms)
			break;
		if (fds != NULL) {
			wait_once(run, fds, deadline_ms);
		} else {
			alone = (struct pollfd){ .fd = run->stop_fd, .events = POLLIN };
			poll(&alone, 1, FLUSH_POLL_MS);
			note_stop(run, &alone);
		}
	}
	free(fds);
}

static bool is_over(void *user)
{
	return hpx_verify_stop_reason(user) != NULL;
}

void hpx_verify_pause(struct hpx_verify *run, int64_t ms)
{
	hpx_verify_poll(run, is_over, run, ms);
}
