/* Crash points: named places where a test build can be made to die. Not the steps of
 * a request (hpx_step_*, gateway/request.h). HPX_CRASH_POINT(reserve_done) does
 * nothing in a release; built with -Dsteps=true, it kills the process (SIGKILL, as a
 * power cut would look to everybody else) when HAPAX_CRASH_AT names the point, on its
 * n-th passing: HAPAX_CRASH_AT=complete_done:3. HAPAX_STOP_AT stops it (SIGSTOP)
 * instead. With HAPAX_STEPS_FROM, passings count once the file of that name is there.
 * A name outside HPX_CRASH_POINT_LIST does not compile. */
#ifndef HPX_BASE_CRASH_POINT_H
#define HPX_BASE_CRASH_POINT_H

#define HPX_CRASH_POINT_LIST(X) \
	X(request_read, "the request is read, nothing is decided") \
	X(reserve_submitted, "the reservation is on its way to the store") \
	X(batch_begun, "the batch's transaction is open") \
	X(batch_written, "the batch is written, not committed") \
	X(batch_committed, "the batch is committed, nobody was told") \
	X(generation_closed, "SQLite: a generation is marked closed, not committed") \
	X(generation_opened, "SQLite: a new generation's tables are made, not committed") \
	X(generation_settled, "SQLite: a closed generation has no attempt under way any more, not committed") \
	X(generation_filtered, "SQLite: a closed generation's filter is written, not committed") \
	X(filter_stored, "SQLite: a closed generation's filter is committed, nobody uses it") \
	X(generation_dead, "SQLite: a generation is marked dead and its index dropped, not committed") \
	X(generation_reaped, "SQLite: rows of a dead generation are deleted, not committed") \
	X(generation_dropped, "SQLite: a dead generation's tables are dropped, not committed") \
	X(expired_moved, "SQLite: what expired rows of a generation leave behind is written, not committed") \
	X(aside_reaped, "SQLite: expired aside rows are tombstones, or gone, not committed") \
	X(reap_done, "what had expired was reaped, and that is durable") \
	X(reserve_done, "the reservation is durable, nothing was sent") \
	X(async_accepted, "the operation and its job are durable, nobody was told") \
	X(send_before, "connected, no byte handed to the socket") \
	X(send_after, "the whole request was handed to the socket") \
	X(answer_head, "the head of the answer has arrived") \
	X(answer_end, "the whole answer has arrived, nothing is stored") \
	X(complete_submitted, "the answer is on its way to the store") \
	X(complete_done, "the answer is durable, the client saw nothing") \
	X(client_answered, "the answer was handed to the client's socket") \
	X(job_claimed, "a job's claim is durable, nothing was sent") \
	X(job_sending, "the job was handed over to be sent") \
	X(job_answered, "the target has answered, nothing is stored") \
	X(job_stored, "what became of the job is durable") \
	X(reconcile_asked, "a probe was handed over to be sent") \
	X(reconcile_ruled, "what the probe said is durable") \
	X(call_written, "a client's call and its attempt are in its journal, nothing was sent") \
	X(call_sent, "the whole call was handed to the socket") \
	X(call_answered, "the call was answered, or lost; the journal knows nothing") \
	X(call_recorded, "what became of the attempt is in the journal, its answer handed over")

enum hpx_crash_point {
#define X(name, text) HPX_CRASH_POINT_##name,
	HPX_CRASH_POINT_LIST(X)
#undef X
		HPX_CRASH_POINT_COUNT
};

#ifdef HPX_STEPS
void hpx_crash_point_reached(enum hpx_crash_point point);
#define HPX_CRASH_POINT(name) hpx_crash_point_reached(HPX_CRASH_POINT_##name)
#else
#define HPX_CRASH_POINT(name) ((void)0)
#endif

/* The name of a point and what it means; for `hapax version --steps`. */
const char *hpx_crash_point_name(enum hpx_crash_point point);
const char *hpx_crash_point_text(enum hpx_crash_point point);

#endif
