/* UTF-8 by the table of RFC 3629 §4. */
#include "base/utf8.h"

#include "base/assert.h"

static bool is_tail(struct hpx_span s, size_t at)
{
	return at < s.len && ((unsigned char)s.ptr[at] & 0xc0) == 0x80;
}

size_t hpx_utf8_sequence(struct hpx_span s)
{
	if (s.len == 0)
		return 0;
	unsigned char a = (unsigned char)s.ptr[0];
	unsigned char b = s.len > 1 ? (unsigned char)s.ptr[1] : 0;

	if (a < 0x80)
		return 1;
	if (a >= 0xc2 && a <= 0xdf)
		return is_tail(s, 1) ? 2 : 0;
	if (a >= 0xe0 && a <= 0xef) {
		if ((a == 0xe0 && b < 0xa0) || (a == 0xed && b > 0x9f))
			return 0;
		return is_tail(s, 1) && is_tail(s, 2) ? 3 : 0;
	}
	if (a >= 0xf0 && a <= 0xf4) {
		if ((a == 0xf0 && b < 0x90) || (a == 0xf4 && b > 0x8f))
			return 0;
		return is_tail(s, 1) && is_tail(s, 2) && is_tail(s, 3) ? 4 : 0;
	}
	return 0;
}

bool hpx_utf8_valid(struct hpx_span s)
{
	while (s.len > 0) {
		size_t n = hpx_utf8_sequence(s);
		if (n == 0)
			return false;
		s = hpx_span_skip(s, n);
	}
	return true;
}

bool hpx_utf8_next(struct hpx_span *rest, struct hpx_span *ret_character, bool *ret_printable)
{
	size_t n = hpx_utf8_sequence(*rest);
	uint32_t code = hpx_utf8_decode(*rest);

	if (rest->len == 0)
		return false;
	*ret_printable = n > 0 && code >= 0x20 && (code < 0x7f || code >= 0xa0);
	*ret_character = hpx_span_first(*rest, n > 0 ? n : 1);
	*rest = hpx_span_skip(*rest, ret_character->len);
	return true;
}

uint32_t hpx_utf8_decode(struct hpx_span s)
{
	static const unsigned char lead_mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	size_t n = hpx_utf8_sequence(s);
	uint32_t code = n ? (uint32_t)((unsigned char)s.ptr[0] & lead_mask[n]) : 0xfffd;

	for (size_t i = 1; i < n; i++)
		code = code << 6 | ((unsigned char)s.ptr[i] & 0x3f);
	return code;
}

size_t hpx_utf8_encode(uint32_t code, char out[4])
{
	HPX_ASSERT(code <= 0x10ffff);
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}
