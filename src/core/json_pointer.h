/* The pointers of an ignore list, followed all at once while a document is
 * read: a set of pointers that still match goes down with every member. */
#ifndef HPX_CORE_JSON_POINTER_H
#define HPX_CORE_JSON_POINTER_H

#include "core/json.h"

/* A set of pointers is one bit each: those whose tokens so far led to this
 * place, and which have more. */
struct hpx_json_pointers {
	struct hpx_span *tokens;               /* of all pointers, still escaped */
	size_t first[HPX_JSON_IGNORE_MAX + 1]; /* a pointer's first token */
	uint64_t all;
	bool whole; /* "" is among them */
};

enum hpx_status hpx_json_pointers_init(struct hpx_json_pointers *pointers,
				       const struct hpx_span *ignore, size_t ignore_count);
void hpx_json_pointers_done(struct hpx_json_pointers *pointers);

/* What of `set` goes on below the member `name` (unescaped; an index in
 * decimal for an element) of a container at `depth` (0: the document).
 * `*ret_named`: a pointer of the set ends at this member. */
uint64_t hpx_json_pointers_step(const struct hpx_json_pointers *pointers,
				uint64_t set, size_t depth,
				struct hpx_span name, bool *ret_named);

#endif
