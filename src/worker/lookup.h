/* From the words in a row to what the settings say of them. */
#ifndef HPX_WORKER_LOOKUP_H
#define HPX_WORKER_LOOKUP_H

#include "settings/settings.h"

/* By its pattern as it is written; NULL where it is not configured any more. */
const struct hpx_route *hpx_lookup_route(const struct hpx_settings *settings,
					 struct hpx_span pattern);
const struct hpx_job_target *hpx_lookup_target(const struct hpx_settings *settings,
					       struct hpx_span name);
/* Whether any async route keeps no more than the status of an answer. */
bool hpx_lookup_any_status_only(const struct hpx_settings *settings);

#endif
