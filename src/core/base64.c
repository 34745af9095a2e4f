/* Four characters at a time; only the last group may be padded. */
#include "core/base64.h"

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

/* The bytes of one group of four characters, 0 where it is none. */
static size_t decode_group(const char *group, size_t padding, unsigned char out[3])
{
	uint32_t bits = 0;

	for (size_t i = 0; i < 4 - padding; i++) {
		int value = value_of(group[i]);
		if (value < 0)
			return 0;
		bits |= (uint32_t)value << (18 - 6 * i);
	}
	/* What the padding leaves over must be zero. */
	if ((bits & ((1u << (8 * padding)) - 1)) != 0)
		return 0;
	for (size_t i = 0; i < 3; i++)
		out[i] = (unsigned char)(bits >> (16 - 8 * i));
	return 3 - padding;
}

bool hpx_base64_decode(struct hpx_span text, void *out, size_t *ret_len)
{
	unsigned char *to = out;
	size_t len = 0;

	if (text.len % 4 != 0)
		return false;
	for (size_t at = 0; at < text.len; at += 4) {
		const char *group = text.ptr + at;
		unsigned char bytes[3];
		size_t padding = 0;

		if (at + 4 == text.len && group[3] == '=')
			padding = group[2] == '=' ? 2 : 1;
		size_t count = decode_group(group, padding, bytes);
		if (count == 0)
			return false;
		memcpy(to + len, bytes, count);
		len += count;
	}
	*ret_len = len;
	return true;
}
