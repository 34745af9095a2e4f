/* See call.h. */
#include "call.h"

#include <time.h>

static void on_done(struct hpx_egress_request *request)
{
	struct call *call = request->user;

	call->dones++;
	sem_post(&call->done);
}

struct hpx_egress *call_engine(unsigned running_max)
{
	struct hpx_egress_options options = { .running_max = running_max };
	struct hpx_egress *egress;

	assert_status(hpx_egress_start(&options, &egress), HPX_OK);
	return egress;
}

void call_engine_stop(struct hpx_egress *egress)
{
	hpx_egress_stop(egress, 0);
	hpx_egress_free(egress);
}

void call_init(struct call *call, const char *url, const char *path)
{
	*call = (struct call){ 0 };
	snprintf(call->url, sizeof(call->url), "%s%s", url, path);
	sem_init(&call->done, 0, 0);
	call->request = (struct hpx_egress_request){
		.url = call->url,
		.method = "POST",
		.headers = HPX_SPAN("Content-Type: application/json\r\n"),
		.body = HPX_SPAN("{}"),
		.connect_timeout_ms = TEST_PATIENCE_MS,
		.timeout_ms = TEST_PATIENCE_MS,
		.answer_bytes_max = 4096,
		.done = on_done,
		.user = call,
	};
}

void call_submit(struct call *call, struct hpx_egress *egress)
{
	assert_status(hpx_egress_submit(egress, &call->request), HPX_OK);
}

void call_wait(struct call *call)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2 * TEST_PATIENCE_MS / 1000;
	if (sem_timedwait(&call->done, &until) != 0)
		fail_msg("the request to %s never ended", call->url);
}

void call_run(struct call *call, struct hpx_egress *egress)
{
	call_submit(call, egress);
	call_wait(call);
}

void call_done(struct call *call)
{
	assert_int_equal(call->dones, 1);
	sem_destroy(&call->done);
	hpx_egress_request_done(&call->request);
}

void call_assert_end(const struct call *call, enum hpx_egress_end want, const char *file,
		     int line)
{
	enum hpx_egress_end got = call->request.end;

	if (got != want) {
		print_error("got \"%s\" (%s), want \"%s\"\n", hpx_egress_end_text(got),
			    call->request.problem, hpx_egress_end_text(want));
		_fail(file, line);
	}
	/* What goes with each end. */
	_assert_int_equal(call->request.problem[0] == '\0', want == HPX_EGRESS_ANSWERED, file,
			  line);
	_assert_int_equal(call->request.status != 0, want == HPX_EGRESS_ANSWERED, file, line);
	_assert_int_equal(call->request.sent_ms < 0, want == HPX_EGRESS_NOT_SENT, file, line);
	if (want != HPX_EGRESS_ANSWERED)
		_assert_int_equal(call->request.headers_in.len + call->request.body_in.len, 0,
				  file, line);
}

void call_once(struct call *call)
{
	struct hpx_egress *egress = call_engine(4);

	call_run(call, egress);
	call_engine_stop(egress);
}
