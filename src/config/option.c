/* The table of options as one: its parts, in the order of the reference and
 * the sample file. */
#include "config/option.h"

#include "base/assert.h"
#include "config/option_row.h"

static const struct hpx_option_part *const parts[] = {
	&hpx_option_global,
	&hpx_option_route,
	&hpx_option_target,
	&hpx_option_webhook,
};

#define PART_COUNT (sizeof(parts) / sizeof(parts[0]))

size_t hpx_option_count(void)
{
	size_t count = 0;

	for (size_t i = 0; i < PART_COUNT; i++)
		count += parts[i]->count;
	return count;
}

const struct hpx_option *hpx_option_at(size_t index)
{
	size_t i = 0;

	for (; i < PART_COUNT && index >= parts[i]->count; i++)
		index -= parts[i]->count;
	HPX_ASSERT(i < PART_COUNT);
	return &parts[i]->rows[index];
}

size_t hpx_option_index(const struct hpx_option *option)
{
	size_t index = 0;
	size_t i = 0;

	for (; i < PART_COUNT; i++) {
		const struct hpx_option *rows = parts[i]->rows;
		if (option >= rows && option < rows + parts[i]->count)
			break;
		index += parts[i]->count;
	}
	HPX_ASSERT(i < PART_COUNT);
	index += (size_t)(option - parts[i]->rows);
	HPX_ASSERT(index < HPX_OPTION_MAX);
	return index;
}

const struct hpx_option *hpx_option_flag(size_t n)
{
	for (size_t i = 0; i < hpx_option_count(); i++)
		if (hpx_option_at(i)->flag != NULL && n-- == 0)
			return hpx_option_at(i);
	return NULL;
}

const char *hpx_option_kind_words(enum hpx_option_kind kind)
{
	static const char *const words[] = {
#define X(name, text, list) text,
		HPX_OPTION_KIND_LIST(X)
#undef X
	};

	return words[kind];
}

bool hpx_option_kind_is_list(enum hpx_option_kind kind)
{
	static const bool lists[] = {
#define X(name, text, list) list,
		HPX_OPTION_KIND_LIST(X)
#undef X
	};

	return lists[kind];
}
