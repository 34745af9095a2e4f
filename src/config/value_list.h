/* Lists: header names, JSON pointers, origins, networks; what readers of values share. */
#ifndef HPX_CONFIG_VALUE_LIST_H
#define HPX_CONFIG_VALUE_LIST_H

#include "config/value.h"

/* As hpx_value_read. Texts come out sorted, as a recipe wants
 * them, header names in lower case. */
enum hpx_status hpx_value_read_list(const struct hpx_option *option,
				    const struct hpx_span *items, size_t count,
				    struct hpx_arena *arena, void *base,
				    char problem[HPX_VALUE_PROBLEM_SIZE]);

/* An RFC 6901 pointer to a member or an element; not "", the whole. */
bool hpx_value_is_pointer(struct hpx_span text);

/* Writes the message, gives HPX_INVALID. */
enum hpx_status hpx_value_refuse(char problem[HPX_VALUE_PROBLEM_SIZE], const char *format,
				 ...) __attribute__((format(printf, 2, 3)));

#endif
