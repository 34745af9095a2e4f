/* The field names that hapax looks for, or meets in nearly every message: each has a
 * number, so that a name is compared once, when its head is read, and not again by
 * every rule. Whatever is true of a name by itself (it is hop-by-hop, it belongs to one
 * delivery) is said here too.
 *
 * A name in the list means nothing by being there: a name that is missing is found by
 * its text, more slowly. */
#ifndef HPX_HTTP_FIELD_NAME_H
#define HPX_HTTP_FIELD_NAME_H

#include "base/span.h"

/* What is true of a field by its name. */
#define HPX_FIELD_HOP 0x01    /* hop-by-hop (RFC 9110 §7.6.1); never travels */
#define HPX_FIELD_ONCE 0x02   /* of one delivery of an answer, not of the answer */
#define HPX_FIELD_STATED 0x04 /* a replay states it, or leaves it out, itself */
#define HPX_FIELD_OURS 0x08   /* `Hapax-*` and `Hapax_*` */

/* X(name, text, traits), the shortest first: names of one length stand together. */
#define HPX_FIELD_NAME_LIST(X) \
	X(TE, "te", HPX_FIELD_HOP) \
	X(AGE, "age", HPX_FIELD_ONCE) \
	X(VIA, "via", HPX_FIELD_ONCE) \
	X(DATE, "date", HPX_FIELD_ONCE) \
	X(ETAG, "etag", 0) \
	X(HOST, "host", 0) \
	X(LINK, "link", 0) \
	X(VARY, "vary", 0) \
	X(ACCEPT, "accept", 0) \
	X(COOKIE, "cookie", 0) \
	X(EXPECT, "expect", 0) \
	X(ORIGIN, "origin", 0) \
	X(PREFER, "prefer", 0) \
	X(SERVER, "server", 0) \
	X(ALT_SVC, "alt-svc", HPX_FIELD_ONCE) \
	X(REFERER, "referer", 0) \
	X(TRAILER, "trailer", HPX_FIELD_HOP) \
	X(UPGRADE, "upgrade", HPX_FIELD_HOP) \
	X(LOCATION, "location", 0) \
	X(FORWARDED, "forwarded", 0) \
	X(RATELIMIT, "ratelimit", HPX_FIELD_ONCE) \
	X(X_API_KEY, "x-api-key", 0) \
	X(CONNECTION, "connection", HPX_FIELD_HOP) \
	X(KEEP_ALIVE, "keep-alive", HPX_FIELD_HOP) \
	X(SET_COOKIE, "set-cookie", HPX_FIELD_ONCE) \
	X(TRACESTATE, "tracestate", 0) \
	X(USER_AGENT, "user-agent", 0) \
	X(RETRY_AFTER, "retry-after", 0) \
	X(TRACEPARENT, "traceparent", 0) \
	X(CONTENT_TYPE, "content-type", 0) \
	X(X_REQUEST_ID, "x-request-id", 0) \
	X(ACCEPT_RANGES, "accept-ranges", 0) \
	X(AUTHORIZATION, "authorization", 0) \
	X(CACHE_CONTROL, "cache-control", 0) \
	X(HAPAX_OUTCOME, "hapax-outcome", HPX_FIELD_OURS) \
	X(LAST_MODIFIED, "last-modified", 0) \
	X(SERVER_TIMING, "server-timing", HPX_FIELD_ONCE) \
	X(X_HTTP_METHOD, "x-http-method", 0) \
	X(CONTENT_LENGTH, "content-length", HPX_FIELD_ONCE) \
	X(HTTP2_SETTINGS, "http2-settings", 0) \
	X(ACCEPT_ENCODING, "accept-encoding", 0) \
	X(HAPAX_RETENTION, "hapax-retention", HPX_FIELD_OURS) \
	X(ACCEPT_LANGUAGE, "accept-language", 0) \
	X(CLEAR_SITE_DATA, "clear-site-data", HPX_FIELD_ONCE) \
	X(IDEMPOTENCY_KEY, "idempotency-key", 0) \
	X(X_FORWARDED_FOR, "x-forwarded-for", 0) \
	X(CONTENT_ENCODING, "content-encoding", 0) \
	X(PROXY_CONNECTION, "proxy-connection", HPX_FIELD_HOP) \
	X(X_CORRELATION_ID, "x-correlation-id", 0) \
	X(X_FORWARDED_HOST, "x-forwarded-host", 0) \
	X(TRANSFER_ENCODING, "transfer-encoding", HPX_FIELD_HOP) \
	X(X_FORWARDED_PROTO, "x-forwarded-proto", 0) \
	X(X_METHOD_OVERRIDE, "x-method-override", 0) \
	X(PROXY_AUTHENTICATE, "proxy-authenticate", HPX_FIELD_HOP) \
	X(AUTHENTICATION_INFO, "authentication-info", HPX_FIELD_ONCE) \
	X(IDEMPOTENCY_EXPIRES, "idempotency-expires", HPX_FIELD_STATED) \
	X(IDEMPOTENT_REPLAYED, "idempotent-replayed", HPX_FIELD_STATED) \
	X(PROXY_AUTHORIZATION, "proxy-authorization", HPX_FIELD_HOP) \
	X(X_HTTP_METHOD_OVERRIDE, "x-http-method-override", 0) \
	X(IDEMPOTENT_RECONSTRUCTED, "idempotent-reconstructed", HPX_FIELD_STATED) \
	X(STRICT_TRANSPORT_SECURITY, "strict-transport-security", 0)

enum hpx_field_name {
	HPX_NAME_OTHER, /* none of the list */
#define X(name, text, traits) HPX_NAME_##name,
	HPX_FIELD_NAME_LIST(X)
#undef X
		HPX_NAME_COUNT
};

/* OTHER where the list has no such name. Case does not matter. */
enum hpx_field_name hpx_field_name_of(struct hpx_span name);
/* In lower case; not of OTHER. */
struct hpx_span hpx_field_name_text(enum hpx_field_name name);
/* HPX_FIELD_*, of a name that is in the list or not. */
unsigned hpx_field_name_traits(struct hpx_span name);
/* The same where the number is known already. */
unsigned hpx_field_known_traits(enum hpx_field_name known, struct hpx_span name);

#endif
