/* The parse context: a configuration while it is read. It holds the settings so
 * far, where each option was given, and the report. It passes through three
 * steps, each over the whole configuration:
 *
 *   values    config_parse.c     defaults, then the file, then the flags
 *   resolve   config_resolve.c   what follows from the values: patterns, recipes,
 *                                secrets, the target that a route sends to
 *   check     rule_*.c           options that contradict each other
 *
 * Internal to src/config. */
#ifndef HPX_CONFIG_PARSE_CONTEXT_H
#define HPX_CONFIG_PARSE_CONTEXT_H

#include "config/config.h"
#include "config/option_parse.h"

/* One of `targets` or `webhooks`: its options, and where it stands. */
struct hpx_section_given {
	struct hpx_given_set set;
	unsigned line;
	unsigned column;
};

struct hpx_parse_context {
	struct hpx_settings *settings;
	struct hpx_config_report *report;
	struct hpx_arena *scratch; /* dies with the context */
	bool without_secrets;
	bool without_gateway;
	struct hpx_yaml tree;
	struct hpx_given_set global;
	struct hpx_given_set defaults;
	struct hpx_given_set *routes; /* in the order of the file */
	/* The given options of each listener, in the order of the file; NULL: `listen` is
	 * one address. */
	struct hpx_section_given *listener_sections;
	struct hpx_listener_settings default_listener;
	/* The defaults that each target and each webhook begins with. */
	struct hpx_job_target default_target;
	struct hpx_webhook default_webhook;
	/* The lists of the settings, as long as they can be changed. */
	struct hpx_job_target *targets;
	struct hpx_section_given *target_sections;
	struct hpx_webhook *webhooks;
	struct hpx_section_given *webhook_sections;
};

/* The steps. They fail for memory only: mistakes go into the report. */
enum hpx_status hpx_parse_values(struct hpx_parse_context *context,
				 const struct hpx_config_flags *flags);
enum hpx_status hpx_parse_resolve(struct hpx_parse_context *context);
void hpx_parse_check(struct hpx_parse_context *context);

/* Where the option of this path was given. A path in a route ("routes[].lease")
 * is looked up in that route's set. */
const struct hpx_given *hpx_context_given(const struct hpx_parse_context *context,
					  const char *path,
					  const struct hpx_given_set *route);

/* ---- locations ---- */

/* One section of the file: the root, `defaults`, a route, a target, a webhook. */
struct hpx_location {
	struct hpx_span prefix; /* "defaults", "routes[]", "targets.mailer"; "": the root */
	const struct hpx_given_set *set;
	unsigned line; /* of the section itself, for remarks about what it lacks */
	unsigned column;
};

struct hpx_location hpx_location_global(const struct hpx_parse_context *context);
struct hpx_location hpx_location_defaults(const struct hpx_parse_context *context);
struct hpx_location hpx_location_route(const struct hpx_parse_context *context, size_t n);
/* The prefix comes from the scratch arena; its ptr is NULL where that is full. */
struct hpx_location hpx_location_target(const struct hpx_parse_context *context, size_t n);
struct hpx_location hpx_location_webhook(const struct hpx_parse_context *context, size_t n);

/* An option is named by `group` and `name` together: "reconcile.probe." and
 * "get". Either may be "". */
const struct hpx_given *hpx_location_given(const struct hpx_location *location,
					   const char *group, const char *name);
/* Whether any option is given whose name begins with `group`. */
bool hpx_location_any_given(const struct hpx_location *location, const char *group);

/* A remark at the option where it was given, else at the section. None where the
 * option's value was refused: one mistake is one remark. */
void hpx_location_remark(struct hpx_parse_context *context,
			 const struct hpx_location *location,
			 enum hpx_config_severity severity, const char *group,
			 const char *name, const char *format, ...)
	__attribute__((format(printf, 6, 7)));

/* ---- rules ---- */

/* `listen`: its value, its rules, and what of it a reload cannot change. listener_option.c. */
enum hpx_status hpx_parse_listeners(struct hpx_parse_context *context);
void hpx_rule_check_listeners(struct hpx_parse_context *context);
enum hpx_status hpx_server_name_read(const struct hpx_option *option, const struct hpx_span *items,
				     size_t count, struct hpx_arena *arena, void *base,
				     char *problem);
/* The options of one section into the structs of their places. */
enum hpx_status hpx_parse_section(struct hpx_parse_context *context, size_t index,
				  struct hpx_span prefix, void *base, struct hpx_given_set *given);

/* Rules about `defaults` and routes, and rules about targets and webhooks. */
void hpx_rule_check_routes(struct hpx_parse_context *context);
void hpx_rule_check_services(struct hpx_parse_context *context);
/* `tenant: {from: jwt}`, and whether the keys in a file can be used. */
void hpx_rule_check_jwt(struct hpx_parse_context *context);

/* Headers that frame a message, belong to a connection, or are hapax's own. */
bool hpx_rule_is_framing(struct hpx_span name);
/* Headers that the upstream does not get as a client sent them: they end at hapax,
 * or are written anew. A decision by one of these is not about what is forwarded. */
bool hpx_rule_is_rewritten(const struct hpx_settings *settings, struct hpx_span name);
/* Whether a key may travel in the header. */
bool hpx_rule_is_key_header(struct hpx_span name);
/* Reads `key_from`: key_source.c. */
enum hpx_status hpx_key_sources_read(const struct hpx_option *option, const struct hpx_span *items,
				     size_t count, struct hpx_arena *arena, void *base, char *problem);
/* Whether the store forgets everything when hapax stops. */
bool hpx_rule_in_memory(const struct hpx_parse_context *context);
/* `target`: the probe is one of a target's, not of a route's. */
void hpx_rule_reconcile(struct hpx_parse_context *context,
			const struct hpx_location *location,
			const struct hpx_reconcile_settings *reconcile, bool target);
/* Whether the probe of a route asks with the client's key. */
bool hpx_rule_probe_needs_key(const struct hpx_probe *probe);
/* An error where `name` is none of `targets`, with a suggestion or `advice`. */
void hpx_rule_unknown_target(struct hpx_parse_context *context,
			     const struct hpx_location *location, struct hpx_span name,
			     const char *advice);

#endif
