/* A command of the user's, by /bin/sh, in a session of its own. What it prints
 * goes to a file without a name, of which a bounded part is kept to be shown. */
#ifndef HPX_VERIFY_SHELL_H
#define HPX_VERIFY_SHELL_H

#include <sys/types.h>

#include "base/span.h"
#include "base/status.h"

struct hpx_shell {
	pid_t pid;  /* 0: it does not run, or has ended */
	int output; /* -1: none */
	int how;    /* after its end: the status that waitpid gives */
};

void hpx_shell_init(struct hpx_shell *command);
enum hpx_status hpx_shell_start(struct hpx_shell *command, struct hpx_span text);
/* Whether it still runs; takes note of its end. */
bool hpx_shell_runs(struct hpx_shell *command);
/* It ended by itself, with exit code 0. */
bool hpx_shell_is_good(const struct hpx_shell *command);
/* "exit code 3: …" or "ended by signal 9: …" with the last lines it printed. */
void hpx_shell_explain(const struct hpx_shell *command, char *out, size_t size);
/* Keeps the file of its output within bounds, while it or what it left behind
 * goes on printing. */
void hpx_shell_trim(struct hpx_shell *command);
/* Ends it and its group where it still runs (first kindly), and forgets it.
 * What it left in the background, having ended itself, stays. */
void hpx_shell_end(struct hpx_shell *command);

#endif
