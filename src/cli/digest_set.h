/* A set of what a ledger had, for files with millions of rows: 16 bytes each,
 * the beginning of a SHA-256. Two different names that fall together would hide
 * a difference; with 2^127 values and the bound below that does not happen. */
#ifndef HPX_CLI_DIGEST_SET_H
#define HPX_CLI_DIGEST_SET_H

#include "base/span.h"
#include "base/status.h"

#define HPX_DIGEST_SIZE 16
/* At most half of the places are taken: 256 MiB. */
#define HPX_DIGEST_SET_MAX ((size_t)8 << 20)

struct hpx_digest_set {
	uint8_t (*places)[HPX_DIGEST_SIZE];
	int64_t *numbers;   /* what each stands for; NULL: none was ever given */
	size_t place_count; /* a power of two, or 0 */
	size_t count;
};

void hpx_digest_set_done(struct hpx_digest_set *set);

/* `marked` tells two kinds apart: `*ret_before` says whether the name was added
 * with a mark before. HPX_TOO_LARGE: there are too many. */
enum hpx_status hpx_digest_set_add(struct hpx_digest_set *set, struct hpx_span name, bool marked,
				   bool *ret_before);
enum hpx_status hpx_digest_set_has(const struct hpx_digest_set *set, struct hpx_span name,
				   bool *ret_has);

/* The same set as a map; a name stands for the number it was first given. */
enum hpx_status hpx_digest_set_put(struct hpx_digest_set *set, struct hpx_span name, int64_t number);
/* HPX_NOT_FOUND: it is not there. */
enum hpx_status hpx_digest_set_number(const struct hpx_digest_set *set, struct hpx_span name,
				      int64_t *ret_number);

#endif
