/* One sending under way: from connecting to its end, by small steps that never
 * block, so that a hundred fly in one thread. */
#ifndef HPX_VERIFY_FLIGHT_H
#define HPX_VERIFY_FLIGHT_H

#include "verify/reply.h"
#include "verify/request.h"
#include "verify/wire.h"

enum hpx_flight_state {
	HPX_FLIGHT_CONNECTING,
	HPX_FLIGHT_SENDING,
	HPX_FLIGHT_HELD,     /* all but the last byte is sent */
	HPX_FLIGHT_FLUSHING, /* before a cut: until the other side has the bytes */
	HPX_FLIGHT_AWAITING, /* before a cut: until the answer begins */
	HPX_FLIGHT_READING,
	HPX_FLIGHT_DONE,
};

struct hpx_flight {
	struct hpx_verify *run;
	struct hpx_flight *next; /* in the run's list */
	enum hpx_flight_state state;
	bool hold; /* keep the last byte back */
	struct hpx_wire_request request;
	size_t stop; /* so many bytes are to be sent */
	size_t sent;
	struct hpx_wire wire;
	struct hpx_reply answer;
	struct hpx_exchange *exchange;
	struct hpx_arena *arena; /* for the answer */
	int64_t deadline_ms;
	int64_t timeout_ms;
	int64_t began_ms;
	int64_t linger_ms;  /* between the last byte's arrival and the cut */
	int64_t flushed_ms; /* when that was; 0: not yet */
};

/* Begins to connect. The request, the answer (initialised) and the exchange are
 * given; the request's bytes must stay. */
void hpx_flight_start(struct hpx_flight *flight, const struct hpx_wire_host *host);
/* As far as it goes without waiting; checks the deadline. */
void hpx_flight_step(struct hpx_flight *flight);
/* What poll is to wait for; 0: nothing that poll knows. */
short hpx_flight_wants(const struct hpx_flight *flight);
/* Lets the last byte go, with a new deadline for the answer. */
void hpx_flight_release(struct hpx_flight *flight);
/* Goes away now. */
void hpx_flight_cut(struct hpx_flight *flight);
/* The run is stopped: what is under way tells nothing. */
void hpx_flight_stop(struct hpx_flight *flight);
/* Closes and frees what is not the exchange's. */
void hpx_flight_done(struct hpx_flight *flight);

#endif
