/* The stage of the demo: a folder for its files, the payments API twice, the
 * flaky network, and hapax before one of the two.
 *
 *   client ─▶ network ─▶ payments API ─▶ ledger           (without)
 *   client ─▶ network ─▶ hapax ─▶ network ─▶ payments API ─▶ ledger  (with)
 */
#ifndef HPX_CLI_DEMO_STAGE_H
#define HPX_CLI_DEMO_STAGE_H

#include <limits.h>

#include "cli/demo_api.h"
#include "cli/demo_child.h"
#include "cli/demo_network.h"

/* One way to the API: what a client connects to, and what it ends in. */
struct hpx_demo_side {
	const char *name;
	bool guarded;                    /* by hapax */
	struct hpx_demo_network network; /* the one that the client sees */
	struct hpx_demo_api api;
};

struct hpx_demo_stage {
	char folder[PATH_MAX - 64];
	int folder_fd; /* locked while this demo runs; -1: it has no known name */
	int ports_fd;  /* held while the known ports are this demo's; or -1 */
	char config_path[PATH_MAX];
	char log_path[PATH_MAX];
	char store_url[PATH_MAX];
	struct hpx_demo_side without;
	struct hpx_demo_side with;
	struct hpx_demo_network behind; /* between hapax and the API */
	struct hpx_demo_child hapax;
	unsigned built; /* how many parts stand */
};

/* `known`: the ports 8080 and its like and the folder hapax-demo, where they are
 * free, so that the README can name them; otherwise whatever is free. On failure `problem` says
 * what is wrong and what to do, and nothing is left behind. */
enum hpx_status hpx_demo_stage_open(struct hpx_demo_stage *stage, bool known,
				    char *problem, size_t problem_size);
/* Ends hapax and removes the folder; from any thread, more than once. */
void hpx_demo_stage_sweep(struct hpx_demo_stage *stage);
/* The same, and ends the threads too. */
void hpx_demo_stage_close(struct hpx_demo_stage *stage);

#endif
