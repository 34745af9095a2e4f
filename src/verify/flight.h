/* One sending under way: from connecting to its end, by small steps that never
 * block, so that a hundred fly in one thread. */
#ifndef HPX_VERIFY_FLIGHT_H
#define HPX_VERIFY_FLIGHT_H

#include "verify/reply.h"
#include "verify/request.h"
#include "verify/wire.h"

enum hpx_inflight_state {
	HPX_INFLIGHT_CONNECTING,
	HPX_INFLIGHT_SENDING,
	HPX_INFLIGHT_HELD,     /* all but the last byte is sent */
	HPX_INFLIGHT_FLUSHING, /* before a cut: until the other side has the bytes */
	HPX_INFLIGHT_AWAITING, /* before a cut: until the answer begins */
	HPX_INFLIGHT_READING,
	HPX_INFLIGHT_DONE,
};

struct hpx_inflight {
	struct hpx_verify *run;
	struct hpx_inflight *next; /* in the run's list */
	enum hpx_inflight_state state;
	bool hold; /* keep the last byte back */
	struct hpx_request_bytes request;
	size_t stop; /* so many bytes are to be sent */
	size_t sent;
	struct hpx_verify_conn conn;
	struct hpx_response answer;
	struct hpx_verify_exchange *exchange;
	struct hpx_arena *arena; /* for the answer */
	int64_t deadline_ms;
	int64_t timeout_ms;
	int64_t began_ms;
	int64_t linger_ms;  /* between the last byte's arrival and the cut */
	int64_t flushed_ms; /* when that was; 0: not yet */
};

/* Begins to connect. The request, the answer (initialised) and the exchange are
 * given; the request's bytes must stay. */
void hpx_inflight_start(struct hpx_inflight *inflight, const struct hpx_verify_host *host);
/* As far as it goes without waiting; checks the deadline. */
void hpx_inflight_step(struct hpx_inflight *inflight);
/* What poll is to wait for; 0: nothing that poll knows. */
short hpx_inflight_wants(const struct hpx_inflight *inflight);
/* Lets the last byte go, with a new deadline for the answer. */
void hpx_inflight_release(struct hpx_inflight *inflight);
/* Goes away now. */
void hpx_inflight_cut(struct hpx_inflight *inflight);
/* The run is stopped: what is under way tells nothing. */
void hpx_inflight_stop(struct hpx_inflight *inflight);
/* Closes and frees what is not the exchange's. */
void hpx_inflight_done(struct hpx_inflight *inflight);

#endif
