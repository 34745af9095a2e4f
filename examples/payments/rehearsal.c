/* Real signals, so that nothing gets to clean up; raised in this very thread, so
 * that it does not take another step. */
#include "rehearsal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rehearse(const char *moment, const char *phase)
{
	const char *wanted = getenv("PAYMENTS_BREAK");
	char here[64];

	if (wanted == NULL)
		return;
	snprintf(here, sizeof(here), ":%s:%s", moment, phase);
	if (strncmp(wanted, "kill", 4) == 0 && strcmp(wanted + 4, here) == 0)
		raise(SIGKILL);
	else if (strncmp(wanted, "stop", 4) == 0 && strcmp(wanted + 4, here) == 0)
		raise(SIGSTOP);
}
