/* The rules about a request's header names. hapax decides by some headers; what
 * it decided by must be what the upstream reads, so that none of these may be
 * dropped on the way, stand there twice, or have a second spelling that the
 * upstream takes for the same header. */
#ifndef HPX_GATEWAY_FIELD_RULE_H
#define HPX_GATEWAY_FIELD_RULE_H

#include "http/message.h"
#include "settings/settings.h"

enum hpx_field_standing {
	HPX_FIELD_FREE,
	HPX_FIELD_ACTED_ON, /* hapax decides by it, or writes it for the upstream */
	HPX_FIELD_TWIN,     /* becomes such a one where `_` and `-` are read alike */
};

/* The one place that says which names hapax acts on: the key's header, what names
 * the tenant, what the route's fingerprint counts, Host, Authorization,
 * X-Api-Key, Cookie, Origin, Prefer, Expect, Forwarded, Transfer-Encoding, the
 * method overrides, Content-*, X-Forwarded-* and Hapax-*. */
enum hpx_field_standing hpx_field_standing(const struct hpx_settings *settings,
					   const struct hpx_route *route, struct hpx_span name);

/* Why this head cannot be passed on as it was acted on: Connection names a header
 * that hapax acts on, or a name is the twin of one. NULL: it can. The text is
 * from `arena` where there is room. */
const char *hpx_field_rule_fault(const struct hpx_settings *settings,
				 const struct hpx_route *route,
				 const struct hpx_http_head *head, struct hpx_arena *arena);

/* Of a guarded request: which header that says what it means or whose it is
 * stands there twice, so that hapax could read one and the upstream the other.
 * NULL: none. */
const char *hpx_field_rule_repeated(const struct hpx_settings *settings,
				    const struct hpx_http_head *head, struct hpx_arena *arena);

/* Whether underscore_headers keeps this header from the upstream. */
bool hpx_field_rule_drops(const struct hpx_settings *settings, const struct hpx_route *route,
			  struct hpx_span name);

#endif
