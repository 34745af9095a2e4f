/* The hapax that the demo puts before its API: this same program, run as
 * `hapax serve` in a process of its own, so that it can be killed. */
#ifndef HPX_CLI_DEMO_CHILD_H
#define HPX_CLI_DEMO_CHILD_H

#include <pthread.h>
#include <sys/types.h>

#include "base/buffer.h"

struct hpx_demo_child {
	uint16_t port;
	uint16_t admin_port;
	const char *config_path;
	const char *log_path;
	/* The rest is the child's own. */
	pid_t pid;  /* 0: not running */
	bool ended; /* never to be started again */
	pthread_mutex_t lock;
};

void hpx_demo_child_init(struct hpx_demo_child *child);
/* Starts it and waits until it is ready. HPX_CLOSED: it ended instead (its
 * log says why); HPX_TIMEOUT. */
enum hpx_status hpx_demo_child_start(struct hpx_demo_child *child);
/* kill -9: what a power cut looks like to everybody else. */
void hpx_demo_child_kill(struct hpx_demo_child *child);
/* For good; from any thread. */
void hpx_demo_child_end(struct hpx_demo_child *child);

/* Runs `hapax` with these arguments (the first is the subcommand, NULL ends
 * them), collects what it prints, and gives its exit code; -1: it could not be
 * run or took too long. */
int hpx_demo_run(const char *const *arguments, struct hpx_buffer *out);

#endif
