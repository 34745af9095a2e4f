/* The credentials that a run sends, and answers without them: some servers tell
 * their callers what they were sent, and a report goes to others. */
#ifndef HPX_VERIFY_SECRET_H
#define HPX_VERIFY_SECRET_H

#include "verify/spec.h"

/* Shorter ones would be found in anything. */
#define HPX_SECRET_BYTES_MIN 8
#define HPX_SECRETS_MAX 256

struct hpx_secrets {
	struct hpx_arena arena;
	struct hpx_span values[HPX_SECRETS_MAX];
	size_t count;
};

/* The words of all header values that no report shows. HPX_TOO_LARGE: there are
 * more than can be looked for. */
enum hpx_status hpx_secrets_init(struct hpx_secrets *secrets, const struct hpx_verify_spec *spec);
void hpx_secrets_done(struct hpx_secrets *secrets);
/* A copy with a star for each byte of a secret, as long as the text itself; ptr
 * NULL: no memory. */
struct hpx_span hpx_secrets_hide(const struct hpx_secrets *secrets, struct hpx_span text,
				 struct hpx_arena *arena);

#endif
