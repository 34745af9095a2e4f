/* One part of the file while its rules are looked at: `defaults`, a route, a
 * target, a webhook; where its options were given, and remarks about them. */
#ifndef HPX_CONFIG_SPOT_H
#define HPX_CONFIG_SPOT_H

#include "config/reading.h"

struct hpx_spot {
	struct hpx_span prefix; /* "defaults", "routes[]", "targets.mailer"; "": the top */
	const struct hpx_given_set *set;
	unsigned line; /* of the part itself, for what it lacks */
	unsigned column;
};

struct hpx_spot hpx_spot_global(const struct hpx_reading *reading);
struct hpx_spot hpx_spot_defaults(const struct hpx_reading *reading);
struct hpx_spot hpx_spot_route(const struct hpx_reading *reading, size_t n);
/* The prefix comes from the scratch arena; its ptr is NULL where that is full. */
struct hpx_spot hpx_spot_target(const struct hpx_reading *reading, size_t n);
struct hpx_spot hpx_spot_webhook(const struct hpx_reading *reading, size_t n);

/* `group` and `name` are put together: "reconcile.probe." and "get". Either
 * may be "". */
const struct hpx_given *hpx_spot_given(const struct hpx_spot *spot, const char *group,
				       const char *name);
/* Whether any option is given whose name begins so. */
bool hpx_spot_any_given(const struct hpx_spot *spot, const char *group);

/* At the option where it was given, else at the part itself. Nothing where its
 * value was refused: one mistake is one remark. */
void hpx_spot_remark(struct hpx_reading *reading, const struct hpx_spot *spot,
		     enum hpx_config_weight weight, const char *group, const char *name,
		     const char *format, ...) __attribute__((format(printf, 6, 7)));

#endif
