/* A set of names for ledgers with millions of rows: 16 bytes for each name, the beginning
 * of its SHA-256. Two names with the same digest would hide a difference; with 2^127
 * digests and the bound below that does not happen. */
#ifndef HPX_CLI_DIGEST_SET_H
#define HPX_CLI_DIGEST_SET_H

#include "base/span.h"
#include "base/status.h"

#define HPX_DIGEST_SIZE 16
/* Names. At most half of the places are taken: 256 MiB. */
#define HPX_DIGEST_SET_MAX ((size_t)8 << 20)

struct hpx_digest_set {
	uint8_t (*places)[HPX_DIGEST_SIZE];
	int64_t *numbers;   /* of each place; NULL: the set is no map */
	size_t place_count; /* a power of two, or 0 */
	size_t count;
};

void hpx_digest_set_done(struct hpx_digest_set *set);

/* Adds a name, with a mark or without. `*ret_before`: the name was added with a mark
 * before. HPX_TOO_LARGE: the set is full. */
enum hpx_status hpx_digest_set_add(struct hpx_digest_set *set, struct hpx_span name, bool marked,
				   bool *ret_before);
enum hpx_status hpx_digest_set_has(const struct hpx_digest_set *set, struct hpx_span name,
				   bool *ret_has);

/* The set as a map: a name has the number, above 0, that it was given first. */
enum hpx_status hpx_digest_set_put(struct hpx_digest_set *set, struct hpx_span name, int64_t number);
/* HPX_NOT_FOUND: the set does not have the name. */
enum hpx_status hpx_digest_set_number(const struct hpx_digest_set *set, struct hpx_span name,
				      int64_t *ret_number);

#endif
