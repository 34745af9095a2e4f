/* The same JSON written differently, and different JSON that looks the same. Works on
 * the text as written: the parts that are not to change keep their bytes. */
#ifndef HPX_VERIFY_REWRITE_H
#define HPX_VERIFY_REWRITE_H

#include "base/arena.h"
#include "base/status.h"

/* Every function returns HPX_NOT_FOUND where the body does not allow it (not JSON, no
 * object, too few members, no such number), or HPX_NOMEM. */

/* The members of the outermost object, last to first. Needs two. */
enum hpx_status hpx_rewrite_order(struct hpx_span body, struct hpx_arena *arena,
				  struct hpx_span *ret_body);
/* White space wherever it may stand in an object. */
enum hpx_status hpx_rewrite_space(struct hpx_span body, struct hpx_arena *arena,
				  struct hpx_span *ret_body);
/* White space behind the JSON value, to at least `bytes` in all. */
enum hpx_status hpx_rewrite_pad(struct hpx_span body, size_t bytes, struct hpx_arena *arena,
				struct hpx_span *ret_body);

/* Finds the number at the pointer, or the first one with an empty pointer, as it is
 * written: a part of `body`. */
enum hpx_status hpx_rewrite_find(struct hpx_span body, struct hpx_span pointer,
				 struct hpx_span *ret_number);
/* Puts another text in place of a part of `body`. */
enum hpx_status hpx_rewrite_replace(struct hpx_span body, struct hpx_span part,
				    struct hpx_span text, struct hpx_arena *arena,
				    struct hpx_span *ret_body);
/* Makes another request: one digit of a number of the JSON, or of a form, is changed;
 * an object without a number gets one more member. */
enum hpx_status hpx_rewrite_other(struct hpx_span body, struct hpx_span pointer,
				  struct hpx_arena *arena, struct hpx_span *ret_body);

#endif
