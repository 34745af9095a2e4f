/* Which request headers name a caller, besides Authorization and X-Api-Key: one table
 * of names, for the tenant rule, the authorisation subrequest and the checks of a
 * request's head. The table has names only, never values. */
#ifndef HPX_GATEWAY_CALLER_FIELD_H
#define HPX_GATEWAY_CALLER_FIELD_H

#include "base/span.h"

enum hpx_caller_field {
	HPX_CALLER_NONE,       /* not in the table: does not name a caller */
	HPX_CALLER_CREDENTIAL, /* Authorization, X-Api-Key */
	HPX_CALLER_STABLE,     /* names a caller, and stays the same in a retry */
	HPX_CALLER_VOUCHED,    /* the same, set by a proxy: no secret */
	HPX_CALLER_RENEWED,    /* names a caller, but is signed anew or renewed */
	HPX_CALLER_SUSPECT,    /* an unlisted *-token, *-secret and the like: may name a caller */
	HPX_CALLER_HARMLESS,   /* looks like a credential, and never names a caller */
};

/* How the text of a row is compared with the name of a header. */
enum hpx_caller_match {
	HPX_CALLER_EXACT,
	HPX_CALLER_PREFIX,
	HPX_CALLER_SUFFIX,
	HPX_CALLER_CONTAINS,
};

struct hpx_caller_row {
	enum hpx_caller_match match;
	struct hpx_span text; /* lower case */
	enum hpx_caller_field field;
	const char *twin; /* RENEWED: the header that stays the same */
};

/* The table, in the order of its use: the first row that matches decides. */
const struct hpx_caller_row *hpx_caller_rows(size_t *ret_count);

/* The kind of a header by its name. Case does not matter; `_` counts as `-` only for
 * SUSPECT and HARMLESS. Linear in the name. For RENEWED, `*ret_twin` is the header
 * beside it that stays the same; otherwise it is untouched. */
enum hpx_caller_field hpx_caller_field_of(struct hpx_span name, const char **ret_twin);

#endif
