/* One part of the file while its rules are looked at: `defaults`, a route, a
 * target, a webhook; where its options were given, and remarks about them. */
#ifndef HPX_CONFIG_SPOT_H
#define HPX_CONFIG_SPOT_H

#include "config/reading.h"

struct hpx_location {
	struct hpx_span prefix; /* "defaults", "routes[]", "targets.mailer"; "": the top */
	const struct hpx_given_set *set;
	unsigned line; /* of the part itself, for what it lacks */
	unsigned column;
};

struct hpx_location hpx_location_global(const struct hpx_parse_context *context);
struct hpx_location hpx_location_defaults(const struct hpx_parse_context *context);
struct hpx_location hpx_location_route(const struct hpx_parse_context *context, size_t n);
/* The prefix comes from the scratch arena; its ptr is NULL where that is full. */
struct hpx_location hpx_location_target(const struct hpx_parse_context *context, size_t n);
struct hpx_location hpx_location_webhook(const struct hpx_parse_context *context, size_t n);

/* `group` and `name` are put together: "reconcile.probe." and "get". Either
 * may be "". */
const struct hpx_given *hpx_location_given(const struct hpx_location *location, const char *group,
					   const char *name);
/* Whether any option is given whose name begins so. */
bool hpx_location_any_given(const struct hpx_location *location, const char *group);

/* At the option where it was given, else at the part itself. Nothing where its
 * value was refused: one mistake is one remark. */
void hpx_location_remark(struct hpx_parse_context *context, const struct hpx_location *location,
			 enum hpx_config_severity severity, const char *group, const char *name,
			 const char *format, ...) __attribute__((format(printf, 6, 7)));

#endif
