/* One value: from the text of the file, a flag or a default into the member
 * that the option names, and back. */
#ifndef HPX_CONFIG_VALUE_H
#define HPX_CONFIG_VALUE_H

#include "base/arena.h"
#include "base/buffer.h"
#include "config/option.h"
#include "config/unit.h"

#define HPX_VALUE_PROBLEM_SIZE 400

/* `items` is one text, or the elements of a list. `base` is the settings or
 * the route that the option lies in; it is changed on HPX_OK only. On
 * HPX_INVALID `problem` says what was given and what would be right. Strings
 * and lists come from `arena`. */
enum hpx_status hpx_value_read(const struct hpx_option *option,
			       const struct hpx_span *items, size_t count,
			       struct hpx_arena *arena, void *base,
			       char problem[HPX_VALUE_PROBLEM_SIZE]);

/* A number, a choice or a switch as it would be written in the file. */
void hpx_value_print(const struct hpx_option *option, const void *base,
		     char out[HPX_UNIT_SIZE]);

/* Whether the member is the same in both. */
bool hpx_value_same(const struct hpx_option *option, const void *a, const void *b);

#endif
