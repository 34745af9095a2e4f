/* One request of a test: made, sent, waited for, and judged. */
#ifndef HPX_TESTS_EGRESS_CALL_H
#define HPX_TESTS_EGRESS_CALL_H

#include "server.h"

#include "egress/egress.h"

struct call {
	struct hpx_egress_request request;
	char url[256];
	sem_t done;
	unsigned dones;
};

struct hpx_egress *call_engine(unsigned running_max);
/* Without grace. */
void call_engine_stop(struct hpx_egress *egress);

/* A POST of "{}" with long timeouts to `url` + `path`. */
void call_init(struct call *call, const char *url, const char *path);
void call_submit(struct call *call, struct hpx_egress *egress);
/* Waits for `done`; fails the test when it does not come. */
void call_wait(struct call *call);
void call_run(struct call *call, struct hpx_egress *egress);
/* Also looks whether `done` came once. */
void call_done(struct call *call);

/* Fails with both values, and the problem, when it ended otherwise. */
#define assert_end(call, want) call_assert_end((call), (want), __FILE__, __LINE__)
void call_assert_end(const struct call *call, enum hpx_egress_end want, const char *file,
		     int line);

/* An engine of its own, one call, the engine stopped: the result stays. */
void call_once(struct call *call);

#endif
