/* Request targets (RFC 9112 §3.2) and the one normal form of a path
 * (RFC 3986 §6.2.2): that form is matched, scoped, fingerprinted and
 * forwarded. */
#ifndef HPX_HTTP_TARGET_H
#define HPX_HTTP_TARGET_H

#include "base/arena.h"
#include "base/status.h"

struct hpx_target {
	struct hpx_span authority; /* of an absolute-form target, ptr NULL otherwise */
	struct hpx_span path;      /* normalised, begins with '/', or "*" (OPTIONS) */
	struct hpx_span query;     /* without '?', as sent; ptr NULL if none */
};

/* origin-form, absolute-form (http or https), and "*" for OPTIONS. Dot
 * segments are removed, %XX of unreserved characters decoded, other escapes
 * upper-cased. HPX_INVALID: another form, NUL, control bytes, `\`, a bad
 * escape, or %00, %0A-like and %5C escapes of the same bytes; `*ret_reason`
 * is a sentence. `//` is kept: empty segments are segments. Strings come from
 * `arena` or point into `target`. */
enum hpx_status hpx_target_parse(struct hpx_span method, struct hpx_span target,
				 struct hpx_arena *arena, struct hpx_target *ret_target,
				 const char **ret_reason);

/* A Host field's value, or an authority: reg-name or address and an optional
 * port, no userinfo. */
bool hpx_host_valid(struct hpx_span host);

#endif
