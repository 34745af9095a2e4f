/* Spans: comparing, cutting and reading numbers, always within their length; and UTF-8 by
 * the table of RFC 3629 §4. */
#include "base/span.h"

#include "base/status.h"

bool hpx_span_istarts(struct hpx_span s, struct hpx_span prefix)
{
	if (s.len < prefix.len)
		return false;
	for (size_t i = 0; i < prefix.len; i++)
		if (s.ptr[i] != prefix.ptr[i] && hpx_lower(s.ptr[i]) != hpx_lower(prefix.ptr[i]))
			return false;
	return true;
}

int hpx_span_cmp(struct hpx_span a, struct hpx_span b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int order = n ? memcmp(a.ptr, b.ptr, n) : 0;

	if (order != 0)
		return order;
	return (a.len > b.len) - (a.len < b.len);
}

size_t hpx_span_count(struct hpx_span s, char c)
{
	size_t count = 0;

	for (size_t i = 0; i < s.len; i++)
		count += s.ptr[i] == c;
	return count;
}

size_t hpx_span_index(struct hpx_span s, char c)
{
	const char *at = s.len ? memchr(s.ptr, c, s.len) : NULL;
	return at ? (size_t)(at - s.ptr) : s.len;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct hpx_span hpx_span_trim(struct hpx_span s)
{
	while (s.len > 0 && is_blank(s.ptr[0]))
		s = hpx_span_skip(s, 1);
	while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

bool hpx_span_split(struct hpx_span *rest, char sep, struct hpx_span *ret_item)
{
	if (rest->ptr == NULL)
		return false;
	size_t at = hpx_span_index(*rest, sep);
	*ret_item = hpx_span_first(*rest, at);
	if (at == rest->len)
		*rest = (struct hpx_span){ NULL, 0 };
	else
		*rest = hpx_span_skip(*rest, at + 1);
	return true;
}

bool hpx_span_line(struct hpx_span *rest, struct hpx_span *ret_line)
{
	struct hpx_span line;

	if (rest->len == 0 || !hpx_span_split(rest, '\n', &line))
		return false;
	if (line.len > 0 && line.ptr[line.len - 1] == '\r')
		line.len--;
	*ret_line = line;
	return true;
}

bool hpx_span_u64(struct hpx_span s, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (s.len == 0)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
		uint64_t digit = (uint64_t)(s.ptr[i] - '0');
		if (value > (max - digit) / 10 || digit > max)
			return false;
		value = value * 10 + digit;
	}
	*ret_value = value;
	return true;
}

struct hpx_span hpx_decimal(uint64_t value, char out[HPX_DECIMAL_SIZE])
{
	char digits[HPX_DECIMAL_SIZE];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0);
	memcpy(out, digits + at, sizeof(digits) - at);
	return hpx_span(out, sizeof(digits) - at);
}

/* ---- UTF-8 ---- */

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
