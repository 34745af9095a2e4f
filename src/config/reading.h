/* A configuration while it is being read: the settings so far, what was given
 * where, and the remarks. Passed from step to step:
 *
 *   values   read.c    defaults, then every option that is given (walk.c;
 *                      named.c: targets and webhooks)
 *   routes   build.c   patterns, recipes, names that follow from others
 *                      (build_outside.c: secrets, and what routes send to)
 *   rules    rule.c    what does not go together (rule_*.c: on routes, and
 *                      about services outside)
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
	bool wrong; /* and its value was refused: the default is there instead */
};

/* One place per row of the table. */
struct hpx_given_set {
	struct hpx_given at[HPX_OPTION_MAX];
};

/* One of `targets` or `webhooks`. */
struct hpx_section_given {
	struct hpx_given_set set;
	unsigned line;
	unsigned column;
};

struct hpx_parse_context {
	struct hpx_settings *settings;
	struct hpx_config_report *report;
	struct hpx_arena *scratch; /* dies with the reading */
	bool without_secrets;
	struct hpx_yaml tree;
	struct hpx_given_set global;
	struct hpx_given_set defaults;
	struct hpx_given_set *routes; /* as the routes stand in the file */
	/* What each target and webhook begins as. */
	struct hpx_job_target standard_target;
	struct hpx_webhook standard_webhook;
	/* The same as in the settings, while they can be changed. */
	struct hpx_job_target *targets;
	struct hpx_section_given *target_sections;
	struct hpx_webhook *webhooks;
	struct hpx_section_given *webhook_sections;
};

/* Fails for memory only; mistakes go into the report. */
enum hpx_status hpx_parse_values(struct hpx_parse_context *context,
				 const struct hpx_config_flags *flags);
enum hpx_status hpx_parse_resolve(struct hpx_parse_context *context);
void hpx_parse_check(struct hpx_parse_context *context);

/* Parts of these. */
enum hpx_status hpx_parse_services(struct hpx_parse_context *context);
enum hpx_status hpx_resolve_services(struct hpx_parse_context *context);
void hpx_rule_check_routes(struct hpx_parse_context *context);
void hpx_check_deliveries(struct hpx_parse_context *context);
void hpx_rule_check_services(struct hpx_parse_context *context);

/* All options in the mapping at `index`, whose path is `prefix`; not the
 * routes, targets and webhooks. Those that do not lie in the settings go into
 * `base` (a route, a target, a webhook) and are marked in `given`. */
enum hpx_status hpx_parse_mapping(struct hpx_parse_context *context, size_t index,
				  struct hpx_span prefix, void *base,
				  struct hpx_given_set *given);

/* The member of the file's root with this name; 0: there is none. */
size_t hpx_context_member(const struct hpx_parse_context *context, struct hpx_span name);
/* How many elements or members the node at `index` has. */
size_t hpx_child_count(const struct hpx_parse_context *context, size_t index);

/* Where the option of this path was given. A path in a route
 * ("routes[].lease") is looked up in that route's set. */
const struct hpx_given *hpx_context_given(const struct hpx_parse_context *context,
					  const char *path,
					  const struct hpx_given_set *route);

#endif
