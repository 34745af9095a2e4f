/* What the files of rules share. */
#ifndef HPX_CONFIG_RULE_H
#define HPX_CONFIG_RULE_H

#include "config/spot.h"

/* Headers that frame a message, belong to a connection, or are ours. */
bool hpx_rule_is_framing(struct hpx_span name);
/* Headers that the upstream does not get as a client sent them: they end at hapax,
 * or are written anew. What is decided by one of these is not what is forwarded. */
bool hpx_rule_is_rewritten(const struct hpx_settings *settings, struct hpx_span name);
/* Whether a key may travel in it. */
bool hpx_rule_is_key_header(struct hpx_span name);
bool hpx_rule_in_memory(const struct hpx_parse_context *context);

/* `group` is where the mapping's options lie: "reconcile.probe.", or "". */
void hpx_rule_mapping(struct hpx_parse_context *context, const struct hpx_location *location,
		      const char *group, const struct hpx_verdict_mapping *mapping);
/* `target`: the probe is one of a target's. */
void hpx_rule_reconcile(struct hpx_parse_context *context, const struct hpx_location *location,
			const struct hpx_reconcile_settings *reconcile, bool target);
/* That a credential is not sent where others could read it, and its header. */
void hpx_rule_caller(struct hpx_parse_context *context, const struct hpx_location *location,
		     const char *group, const struct hpx_caller *caller);

#endif
