/* Members by their width, and whether two are the same. */
#include "config/member.h"

#include "base/assert.h"
#include "config/value.h"
#include "settings/settings.h"

void hpx_option_put_number(const struct hpx_option *option, void *base, uint64_t value)
{
	bool bit = value != 0;
	uint32_t word = (uint32_t)value;
	void *member = hpx_option_member(option, base);

	HPX_ASSERT(option->width == 1 || option->width == 4 || option->width == 8);
	if (option->width == 1)
		memcpy(member, &bit, sizeof(bit));
	else if (option->width == 4)
		memcpy(member, &word, sizeof(word));
	else
		memcpy(member, &value, sizeof(value));
}

uint64_t hpx_option_get_number(const struct hpx_option *option, const void *base)
{
	const char *member = (const char *)base + option->offset;
	bool bit;
	uint32_t word;
	uint64_t value;

	if (option->width == 1) {
		memcpy(&bit, member, sizeof(bit));
		return bit;
	}
	if (option->width == 4) {
		memcpy(&word, member, sizeof(word));
		return word;
	}
	memcpy(&value, member, sizeof(value));
	return value;
}

/* The pointer of a list, and how many elements it has. */
static const void *list_of(const struct hpx_option *option, const void *base,
			   size_t *ret_count)
{
	const void *list;

	memcpy(&list, (const char *)base + option->offset, sizeof(list));
	memcpy(ret_count, (const char *)base + option->companion_offset, sizeof(*ret_count));
	return list;
}

static bool same_list(const struct hpx_option *option, const void *a, const void *b)
{
	size_t count;
	size_t other_count;
	const void *list = list_of(option, a, &count);
	const void *other = list_of(option, b, &other_count);

	if (count != other_count)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (option->kind == HPX_OPTION_NETWORKS) {
			const struct hpx_network *left =
				(const struct hpx_network *)list + i;
			const struct hpx_network *right =
				(const struct hpx_network *)other + i;
			if (left->prefix_bits != right->prefix_bits ||
			    memcmp(left->bytes, right->bytes, sizeof(left->bytes)) != 0)
				return false;
		} else if (!hpx_span_eq(((const struct hpx_span *)list)[i],
					((const struct hpx_span *)other)[i])) {
			return false;
		}
	}
	return true;
}

static bool same_address(const struct hpx_option *option, const void *a, const void *b)
{
	const struct hpx_address *left = (const void *)((const char *)a + option->offset);
	const struct hpx_address *right = (const void *)((const char *)b + option->offset);

	if (option->off &&
	    *((const bool *)a + option->companion_offset) != *((const bool *)b + option->companion_offset))
		return false;
	return strcmp(left->text, right->text) == 0;
}

static bool same_string(const struct hpx_option *option, const void *a, const void *b)
{
	const char *left;
	const char *right;

	memcpy(&left, (const char *)a + option->offset, sizeof(left));
	memcpy(&right, (const char *)b + option->offset, sizeof(right));
	return left == NULL || right == NULL ? left == right : strcmp(left, right) == 0;
}

static bool same_signs(const struct hpx_option *option, const void *a, const void *b)
{
	const struct hpx_ruling_signs *left =
		(const void *)((const char *)a + option->offset);
	const struct hpx_ruling_signs *right =
		(const void *)((const char *)b + option->offset);

	if (left->status_count != right->status_count ||
	    left->value_count != right->value_count)
		return false;
	for (size_t i = 0; i < left->status_count; i++)
		if (left->statuses[i] != right->statuses[i])
			return false;
	for (size_t i = 0; i < left->value_count; i++)
		if (!hpx_span_eq(left->values[i], right->values[i]))
			return false;
	return true;
}

bool hpx_value_same(const struct hpx_option *option, const void *a, const void *b)
{
	switch (option->kind) {
	case HPX_OPTION_TEXT:
	case HPX_OPTION_TOKEN:
	case HPX_OPTION_NAME:
	case HPX_OPTION_PATTERN:
	case HPX_OPTION_STORE:
	case HPX_OPTION_VARIABLE:
	case HPX_OPTION_PROBE:
	case HPX_OPTION_POINTER:
		return hpx_span_eq(
			*(const struct hpx_span *)(const void *)((const char *)a +
								 option->offset),
			*(const struct hpx_span *)(const void *)((const char *)b +
								 option->offset));
	case HPX_OPTION_ADDRESS:
	case HPX_OPTION_UPSTREAM:
		return same_address(option, a, b);
	case HPX_OPTION_URL:
	case HPX_OPTION_FILE:
		return same_string(option, a, b);
	case HPX_OPTION_MATCHES:
	case HPX_OPTION_WORDS:
		return same_signs(option, a, b);
	case HPX_OPTION_HEADERS:
	case HPX_OPTION_POINTERS:
	case HPX_OPTION_NETWORKS:
	case HPX_OPTION_ORIGINS:
		return same_list(option, a, b);
	default:
		return hpx_option_get_number(option, a) == hpx_option_get_number(option, b);
	}
}
