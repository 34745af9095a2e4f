/* "Did you mean": how far two words are apart. */
#ifndef HPX_CONFIG_NEAREST_H
#define HPX_CONFIG_NEAREST_H

#include "base/span.h"

/* The best candidate so far. Begin with { 0 }. */
struct hpx_suggestion {
	struct hpx_span word; /* ptr NULL: none was near enough */
	size_t distance;
	bool narrow; /* no more than one letter in four differs: where the candidates
		      * are so many that every short word is near to one */
};

/* Inserted, deleted, changed and swapped neighbouring letters, whatever the
 * case; SIZE_MAX where one of them is longer than any name of ours. */
size_t hpx_edit_distance(struct hpx_span a, struct hpx_span b);
/* Keeps `candidate` if it is nearer to `given` than the best so far, and near
 * enough that it may be what was meant: few letters differ, or `given` is the
 * candidate with a word too many behind it. Says whether it did. */
bool hpx_suggestion_consider(struct hpx_suggestion *suggestion, struct hpx_span given,
			     struct hpx_span candidate);

#endif
