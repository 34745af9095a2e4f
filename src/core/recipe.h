/* What recipe.c and fingerprint.c share: a recipe in its one order. */
#ifndef HPX_CORE_RECIPE_H
#define HPX_CORE_RECIPE_H

#include "core/fingerprint.h"

struct hpx_recipe_list {
	struct hpx_span items[HPX_RECIPE_LIST_MAX];
	size_t count;
};

/* Sorted by bytes, each once; HPX_TOO_LARGE for more than the list holds. */
enum hpx_status hpx_recipe_sort(const struct hpx_span *items, size_t count,
				struct hpx_recipe_list *ret_list);

#endif
