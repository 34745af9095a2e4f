/* Counting effects, for the files of this folder. */
#ifndef HPX_VERIFY_EFFECT_H
#define HPX_VERIFY_EFFECT_H

#include "verify/run.h"

/* Where they could not be counted. */
#define HPX_EFFECTS_UNKNOWN UINT64_MAX

void hpx_effect_count_before(struct hpx_verify *run, struct hpx_verify_op *op);
/* A path template with the intent's variables, percent-encoded. */
struct hpx_span hpx_verify_op_path(struct hpx_verify *run, const struct hpx_verify_op *op,
				   struct hpx_span template);
/* How many effects an answer's body says: a number, or the length of a list.
 * HPX_INVALID: `problem` says why. */
enum hpx_status hpx_effect_read(struct hpx_span body, struct hpx_span pointer,
				uint64_t *ret_count, char problem[HPX_VERIFY_PROBLEM_SIZE]);

#endif
