/* The member of the settings or of a route that an option's row points at. */
#ifndef HPX_CONFIG_MEMBER_H
#define HPX_CONFIG_MEMBER_H

#include "base/address.h"
#include "config/option.h"

/* Numbers, choices and switches, whatever the width of their member. */
void hpx_option_put_number(const struct hpx_option *option, void *base, uint64_t value);
uint64_t hpx_option_get_number(const struct hpx_option *option, const void *base);

static inline void *hpx_option_member(const struct hpx_option *option, void *base)
{
	return (char *)base + option->offset;
}

static inline struct hpx_span *hpx_option_text(const struct hpx_option *option, void *base)
{
	return hpx_option_member(option, base);
}

static inline struct hpx_address *hpx_option_address(const struct hpx_option *option,
						     void *base)
{
	return hpx_option_member(option, base);
}

/* Whether an address that can be off is on. */
static inline bool *hpx_option_switch(const struct hpx_option *option, void *base)
{
	return (bool *)((char *)base + option->companion_offset);
}

/* The count of a list. */
static inline size_t *hpx_option_list_count(const struct hpx_option *option, void *base)
{
	return (size_t *)(void *)((char *)base + option->companion_offset);
}

#endif
