/* A configuration while it is being read: the settings so far, what was given
 * where, and the remarks. Passed from step to step:
 *
 *   values   read.c    defaults, then every option that is given (walk.c)
 *   routes   build.c   patterns, recipes, names that follow from others
 *   rules    rule.c    what does not go together (rule_route.c: on a route)
 */
#ifndef HPX_CONFIG_READING_H
#define HPX_CONFIG_READING_H

#include "config/config.h"
#include "config/yaml.h"

/* Where an option was given. On the command line it has no line. */
struct hpx_given {
	bool given;
	unsigned line;
	unsigned column;
};

/* One place per row of the table. */
struct hpx_given_set {
	struct hpx_given at[HPX_OPTION_MAX];
};

struct hpx_reading {
	struct hpx_settings *settings;
	struct hpx_config_report *report;
	struct hpx_arena *scratch; /* dies with the reading */
	struct hpx_yaml tree;
	struct hpx_given_set global;
	struct hpx_given_set defaults;
	struct hpx_given_set *routes; /* as the routes stand in the file */
};

/* Fails for memory only; mistakes go into the report. */
enum hpx_status hpx_reading_values(struct hpx_reading *reading,
				   const struct hpx_config_flags *flags);
enum hpx_status hpx_reading_build(struct hpx_reading *reading);
void hpx_reading_rules(struct hpx_reading *reading);
void hpx_reading_route_rules(struct hpx_reading *reading);

/* All options in the mapping at `index`, whose path is `prefix`; not the
 * routes. Those of a policy go into `route` and are marked in `given`. */
enum hpx_status hpx_reading_walk(struct hpx_reading *reading, size_t index,
				 struct hpx_span prefix, struct hpx_route *route,
				 struct hpx_given_set *given);

/* Where the option of this path was given. A path in a route
 * ("routes[].lease") is looked up in that route's set. */
const struct hpx_given *hpx_reading_given(const struct hpx_reading *reading,
					  const char *path,
					  const struct hpx_given_set *route);

#endif
