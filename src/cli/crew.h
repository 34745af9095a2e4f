/* The workers of a process: sweep, reap and survey, the deliverer of jobs, the
 * reconciler of unknown outcomes, and what they count. `hapax serve` has them
 * beside its gateway, `hapax work` has nothing else. */
#ifndef HPX_CLI_CREW_H
#define HPX_CLI_CREW_H

#include "gateway/gateway.h"
#include "service/outbox_meter.h"
#include "worker/deliver.h"
#include "worker/reconcile.h"
#include "worker/worker.h"

struct hpx_crew {
	struct hpx_outbox_meter meter; /* its targets: as the settings have them */
	struct hpx_worker *worker;
	struct hpx_deliverer *deliverer; /* NULL: nobody delivers here */
	struct hpx_reconciler *reconciler;
	bool stopped;
	/* What a process that died had under way, found when the store was opened:
	 * operations by the state that they have now, and jobs. */
	uint64_t lost_operations[HPX_STATE_COUNT];
	uint64_t lost_jobs;
};

/* Makes the counters ready, which a gateway may print before anybody works. */
enum hpx_status hpx_crew_init(struct hpx_crew *crew, const struct hpx_settings *settings);

/* `gateway` has the store, the committer and the other counters. With
 * `outside`, jobs are delivered and unknown outcomes asked about, too. On an
 * error, what has begun goes on until hpx_crew_stop. */
enum hpx_status hpx_crew_start(struct hpx_crew *crew, struct hpx_gateway *gateway,
			       struct hpx_settings *settings, bool outside);
void hpx_crew_reload(struct hpx_crew *crew, struct hpx_settings *settings);
/* There is a new job; `user` is the crew. From any thread. */
void hpx_crew_wake(void *user);

/* Begins nothing more; deliveries under way have `grace_ms`. What became of them
 * may still be on its way: stop the committer next, then free the crew. */
void hpx_crew_stop(struct hpx_crew *crew, int64_t grace_ms);
void hpx_crew_done(struct hpx_crew *crew);

/* ---- what every serving process has ---- */

/* To serve, as the settings say; warns once of what an operator should know.
 * `problem` has HPX_STORE_PROBLEM_SIZE bytes. */
enum hpx_status hpx_crew_open_store(struct hpx_crew *crew, const struct hpx_settings *settings,
				    struct hpx_store **ret_store, char *problem);
/* The sum of what was found lost, where there is anything: somebody should look. */
void hpx_crew_tell_lost(const struct hpx_crew *crew);
/* The store goes down, or comes back: for the committer. */
void hpx_crew_store_changed(void *user, enum hpx_status status, const char *problem);

/* A signal and the callback that the main loop has for it. */
struct hpx_crew_signal {
	uv_signal_t *handle;
	int number;
	uv_signal_cb callback;
};
/* NULL, or the reason why a signal cannot be watched. `user` is each handle's data. */
const char *hpx_crew_watch_signals(struct hpx_loop *loop, const struct hpx_crew_signal *signals,
				   size_t count, void *user);

/* Runs `drain` on a thread of its own, so that the admin listener and a second
 * signal are heard meanwhile; where the system has no thread left, on this one.
 * Whether there is a thread to join. */
bool hpx_crew_drain(pthread_t *ret_thread, void *(*drain)(void *user), void *user);

/* A stop while one is under way: within a second it is the same one, sent to the
 * process and to its group, as timeout(1) does; later it ends the process. */
void hpx_crew_stop_again(int64_t first_ms, int number);
/* SIGUSR1 and SIGUSR2: a line, and nothing else. Before the loop runs, they are
 * ignored without one. */
void hpx_crew_ignore_signals(void);
void hpx_crew_ignored_signal(uv_signal_t *handle, int number);
/* hpx_loop_done, with the signals that the loop watched: libuv gives them back
 * their default, which is to end the process in the middle of its last writes. */
void hpx_crew_loop_done(struct hpx_loop *loop);
/* As the settings ask for: main() has forbidden them. */
void hpx_crew_allow_core_dumps(void);

#define HPX_CREW_ADDRESS_SIZE 320
/* "127.0.0.1:8080" with the port that was really bound. */
void hpx_crew_print_address(const struct hpx_address *address, uint16_t port,
			    char out[HPX_CREW_ADDRESS_SIZE]);

#endif
