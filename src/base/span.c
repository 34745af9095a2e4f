/* Spans: comparing, cutting and reading numbers, always within their length. */
#include "base/span.h"

static unsigned char lower(char c)
{
	unsigned char u = (unsigned char)c;
	return u >= 'A' && u <= 'Z' ? (unsigned char)(u + ('a' - 'A')) : u;
}

bool hpx_span_istarts(struct hpx_span s, struct hpx_span prefix)
{
	if (s.len < prefix.len)
		return false;
	for (size_t i = 0; i < prefix.len; i++)
		if (s.ptr[i] != prefix.ptr[i] && lower(s.ptr[i]) != lower(prefix.ptr[i]))
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
