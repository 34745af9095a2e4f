/* Names of keys, and prose about them: which words say that a client may mark a request
 * as the same one again. */
#ifndef HPX_COVERAGE_KEY_NAME_H
#define HPX_COVERAGE_KEY_NAME_H

#include "base/span.h"

enum hpx_key_mark {
	HPX_MARK_NONE,
	HPX_MARK_WEAK,   /* clientToken, requestId: a key in some APIs, a trace in others */
	HPX_MARK_STRONG, /* Idempotency-Key and its spellings, and names that mean nothing else */
};

/* By the letters and digits of a name; case and separators do not matter.
 * `is_idempotent` and `idempotency_enabled` are no keys. */
enum hpx_key_mark hpx_key_mark_of(struct hpx_span name);

enum hpx_key_prose {
	HPX_PROSE_NONE,
	HPX_PROSE_CLAIM, /* "this call is idempotent": no key is named */
	HPX_PROSE_KEY,   /* "send an Idempotency-Key" */
};

/* What a text for people says. "not idempotent" and `is_idempotent` say nothing. */
enum hpx_key_prose hpx_key_prose_of(struct hpx_span text);

#endif
