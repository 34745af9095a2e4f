/* Webhook signatures: whether a message was signed with one of our secrets,
 * and lately. Three schemes:
 *
 *   stripe             Stripe-Signature: t=<s>,v1=<hex>[,v1=<hex>]
 *                      over "<t>.<body>"
 *   standard-webhooks  webhook-id, webhook-timestamp,
 *                      webhook-signature: v1,<base64>[ v1,<base64>]
 *                      over "<id>.<timestamp>.<body>"
 *   hmac-body          a header of any name: [<prefix>]<hex or base64>
 *                      over "<body>"; it carries no time, so that a message
 *                      can be played again at any later time: what comes of
 *                      it must be harmless twice
 *
 * All are HMAC-SHA256. Not for keeping secrets or answering: that is the
 * caller's. */
#ifndef HPX_CORE_SIGNATURE_H
#define HPX_CORE_SIGNATURE_H

#include "base/arena.h"
#include "base/status.h"

/* X(name, text) — the text is the configuration's word. */
#define HPX_SIGNATURE_SCHEME_LIST(X) \
	X(STRIPE, "stripe") \
	X(STANDARD, "standard-webhooks") \
	X(HMAC_BODY, "hmac-body")

enum hpx_signature_scheme {
#define X(name, text) HPX_SIGNATURE_SCHEME_##name,
	HPX_SIGNATURE_SCHEME_LIST(X)
#undef X
		HPX_SIGNATURE_SCHEME_COUNT
};

enum hpx_signature {
	HPX_SIGNATURE_OK,
	HPX_SIGNATURE_MISSING,   /* no header, or none of our version */
	HPX_SIGNATURE_MALFORMED, /* also: a header that came twice */
	HPX_SIGNATURE_TOO_OLD,   /* signed rightly, but its time is too far from ours, on either side */
	HPX_SIGNATURE_WRONG,     /* signed by somebody else */
	HPX_SIGNATURE_UNCHECKED, /* no memory to check it: ask to send again */
};

const char *hpx_signature_scheme_name(enum hpx_signature_scheme scheme);

/* Items of one header; more is MALFORMED. Senders in the midst of a rotation
 * have two, and some add a signature of another version. */
#define HPX_SIGNATURE_ITEMS_MAX 16

struct hpx_signature_settings {
	enum hpx_signature_scheme scheme;
	const struct hpx_span *keys; /* as hpx_signature_key gives them; any fits */
	size_t key_count;
	int64_t tolerance_ms;   /* not for hmac-body */
	struct hpx_span header; /* hmac-body: its name in lower case */
	struct hpx_span prefix; /* hmac-body: what must stand before, e.g. "sha256=" */
};

/* The message. `header` gives the combined value (RFC 9110 §5.3) of a header
 * by its lower-case name, ptr NULL where absent, as for hpx_meaning. */
struct hpx_signature_message {
	struct hpx_span body;
	struct hpx_span (*header)(void *user, struct hpx_span name);
	void *user;
};

/* From a secret as people write it to the key: for standard-webhooks, what
 * follows "whsec_" is base64; any other is its own bytes, a Stripe secret with
 * its "whsec_". Points into `secret` or the arena. HPX_INVALID: an empty key,
 * with which anybody could sign, or bad base64. */
enum hpx_status hpx_signature_key(enum hpx_signature_scheme scheme, struct hpx_span secret,
				  struct hpx_arena *arena, struct hpx_span *ret_key);

enum hpx_signature hpx_signature_check(const struct hpx_signature_settings *settings,
				       const struct hpx_signature_message *message,
				       int64_t now_ms);

/* When a message that was found OK says it was signed; wall. 0: its scheme
 * has no time. */
int64_t hpx_signature_time(const struct hpx_signature_settings *settings,
			   const struct hpx_signature_message *message);

#endif
