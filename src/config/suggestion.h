/* "Did you mean": the candidate that is nearest to a wrong word. */
#ifndef HPX_CONFIG_NEAREST_H
#define HPX_CONFIG_NEAREST_H

#include "base/span.h"

/* The best candidate so far. Begin with { 0 }. */
struct hpx_suggestion {
	struct hpx_span word; /* ptr NULL: none was near enough */
	size_t distance;
	bool narrow; /* at most one letter in four may differ: for so many candidates that
		      * every short word is near to one of them */
};

/* How many letters are inserted, deleted, changed or swapped with a neighbour,
 * whatever their case. SIZE_MAX: one word is longer than any option's name. */
size_t hpx_edit_distance(struct hpx_span a, struct hpx_span b);
/* Keeps `candidate` if it is nearer to `given` than the best so far, and near
 * enough to be meant: few letters differ, or `given` is the candidate with a word
 * too many behind it. True: it was kept. */
bool hpx_suggestion_consider(struct hpx_suggestion *suggestion, struct hpx_span given,
			     struct hpx_span candidate);

#endif
