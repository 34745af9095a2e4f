/* The rules about a request's header names. The upstream must read the same headers
 * by which hapax decided. So none of these may be dropped on the way, stand there
 * twice, or have a second spelling that the upstream takes for the same header. */
#ifndef HPX_GATEWAY_FIELD_RULE_H
#define HPX_GATEWAY_FIELD_RULE_H

#include "http/message.h"
#include "settings/settings.h"

enum hpx_field_standing {
	HPX_FIELD_FREE,
	HPX_FIELD_ACTED_ON, /* hapax decides by it, or writes it for the upstream */
	HPX_FIELD_TWIN,     /* another spelling of such a name, where `_` and `-` are read alike */
};

/* The one function that says which names hapax acts on: the key's header, the headers
 * of the tenant and of the route's fingerprint, Host, Authorization, X-Api-Key,
 * Cookie, Origin, Prefer, Expect, Forwarded, Transfer-Encoding, the method overrides,
 * Content-*, X-Forwarded-* and Hapax-*. */
enum hpx_field_standing hpx_field_standing(const struct hpx_settings *settings,
					   const struct hpx_route *route, struct hpx_span name);

/* Why this head cannot be passed on as hapax has read it: Connection names a header
 * that hapax acts on, or a name is the twin of one. NULL: it can. The text is from
 * `arena` where there is room. */
const char *hpx_field_rule_fault(const struct hpx_settings *settings,
				 const struct hpx_route *route,
				 const struct hpx_http_head *head, struct hpx_arena *arena);

/* The header of a guarded request that is there twice, although it says what the
 * request means or whose it is: hapax could read one and the upstream the other.
 * NULL: none. */
const char *hpx_field_rule_repeated(const struct hpx_settings *settings,
				    const struct hpx_http_head *head, struct hpx_arena *arena);

/* Whether underscore_headers keeps this header from the upstream. */
bool hpx_field_rule_drops(const struct hpx_settings *settings, const struct hpx_route *route,
			  struct hpx_span name);

#endif
