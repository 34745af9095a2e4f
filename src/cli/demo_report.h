/* How the demo talks: calm, within 80 columns, coloured only on a terminal
 * and not where NO_COLOR is set. */
#ifndef HPX_CLI_DEMO_REPORT_H
#define HPX_CLI_DEMO_REPORT_H

#include "cli/demo_ledger.h"

#define HPX_DEMO_STEPS_MAX 8

struct hpx_demo_result {
	const char *title;
	struct hpx_demo_sum intended;
	struct hpx_demo_sum without;
	struct hpx_demo_sum with;
	bool right; /* it came out as it should, both ways */
};

struct hpx_demo_report {
	bool colour;
	struct hpx_demo_result results[HPX_DEMO_STEPS_MAX];
	unsigned count;
};

void hpx_demo_report_init(struct hpx_demo_report *report);

/* "1  A double click" */
void hpx_demo_report_title(const struct hpx_demo_report *report, unsigned number,
			   const char *title);
/* Lines of the story, indented; `text` may hold line ends. */
void hpx_demo_report_tell(const char *text);
/* A command as one would type it, and what it printed. */
void hpx_demo_report_command(const struct hpx_demo_report *report, const char *command);
void hpx_demo_report_output(struct hpx_span output);
/* One side of a step: what the client saw, and what the ledger says. */
void hpx_demo_report_side(const struct hpx_demo_report *report, const char *name,
			  const char *saw, const struct hpx_demo_sum *intended,
			  const struct hpx_demo_sum *sum);
/* Something went wrong that is not part of the story. */
void hpx_demo_report_trouble(const struct hpx_demo_report *report, const char *what);

/* The ledgers side by side; true where every step came out right. */
bool hpx_demo_report_table(const struct hpx_demo_report *report);

#endif
