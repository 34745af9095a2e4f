/* The story: five accidents, each told, made to happen without and with
 * hapax, and judged by the ledgers. */
#ifndef HPX_CLI_DEMO_STORY_H
#define HPX_CLI_DEMO_STORY_H

#include "cli/demo_client.h"
#include "cli/demo_report.h"
#include "cli/demo_stage.h"

#define HPX_DEMO_SAW_SIZE 160

struct hpx_demo_step {
	const char *title;
	const char *tells;
	struct hpx_demo_order order;
	/* Makes it happen on one side and writes what the client saw; true
	 * where the client was told what it should have been told. */
	bool (*act)(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
		    const struct hpx_demo_step *step, char saw[HPX_DEMO_SAW_SIZE]);
	/* What is left to tell when both sides are done; may be NULL. */
	bool (*settle)(struct hpx_demo_stage *stage, const struct hpx_demo_report *report,
		       const struct hpx_demo_step *step);
};

/* Tells it all and fills the report. */
void hpx_demo_story(struct hpx_demo_stage *stage, struct hpx_demo_report *report);

/* "201 pay_1", "409 idempotency_outcome_unknown", "no answer" */
void hpx_demo_reply_print(const struct hpx_demo_reply *reply, char *out, size_t size);

/* The last accident has a file of its own: demo_crash.c. */
bool hpx_demo_crash(struct hpx_demo_stage *stage, struct hpx_demo_side *side,
		    const struct hpx_demo_step *step, char saw[HPX_DEMO_SAW_SIZE]);
bool hpx_demo_crash_settle(struct hpx_demo_stage *stage, const struct hpx_demo_report *report,
			   const struct hpx_demo_step *step);

#endif
