/* Strings of RFC 8259 §7 in, strings of RFC 8785 §3.2.2.2 out. */
#include "core/json_string.h"

#include "base/bytes.h"
#include "base/utf8.h"

/* The letters of the short escapes and what they stand for. */
static const char escape_letters[] = "\"\\/bfnrt";
static const char escape_bytes[] = "\"\\/\b\f\n\r\t";

static bool read_unit(struct hpx_span s, uint32_t *ret_unit)
{
	unsigned char bytes[2];

	if (s.len < 6 || s.ptr[0] != '\\' || s.ptr[1] != 'u' ||
	    !hpx_hex_decode(hpx_span(s.ptr + 2, 4), bytes, sizeof(bytes)))
		return false;
	*ret_unit = (uint32_t)bytes[0] << 8 | bytes[1];
	return true;
}

/* The length of the escape at the front of `s` (a surrogate pair is one), 0
 * where it is not well formed. */
static size_t read_escape(struct hpx_span s, uint32_t *ret_code)
{
	uint32_t high;
	uint32_t low;

	if (s.len < 2)
		return 0;
	const char *letter = memchr(escape_letters, s.ptr[1], sizeof(escape_letters) - 1);
	if (letter != NULL) {
		*ret_code = (uint32_t)escape_bytes[letter - escape_letters];
		return 2;
	}
	if (!read_unit(s, &high))
		return 0;
	if (high < 0xd800 || high > 0xdfff) {
		*ret_code = high;
		return 6;
	}
	if (high > 0xdbff || !read_unit(hpx_span_skip(s, 6), &low) || low < 0xdc00 ||
	    low > 0xdfff)
		return 0;
	*ret_code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
	return 12;
}

/* Nothing below 0x20 or above 0x7f, no quote and no backslash among eight bytes. A
 * byte is below n where subtracting n borrows into its highest bit, if that was
 * not set before; and it is n where it is zero after XOR with n. */
static bool are_plain(const char *bytes)
{
	const uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
	uint64_t low = (word - ones * 0x20) | (quote - ones) | (backslash - ones);
	return ((low | word) & highs) == 0;
}

static size_t skip_plain(struct hpx_span s, size_t at)
{
	while (s.len - at >= sizeof(uint64_t) && are_plain(s.ptr + at))
		at += sizeof(uint64_t);
	return at;
}

enum hpx_status hpx_json_string_read(struct hpx_span *rest, struct hpx_span *ret_inside,
				     bool *ret_escaped)
{
	struct hpx_span s = *rest;
	bool escaped = false;
	uint32_t code;
	size_t at = skip_plain(s, 1);

	while (at < s.len && s.ptr[at] != '"') {
		unsigned char c = (unsigned char)s.ptr[at];
		size_t n = 1;
		if (c == '\\') {
			n = read_escape(hpx_span_skip(s, at), &code);
			escaped = true;
		} else if (c >= 0x80) {
			n = hpx_utf8_sequence(hpx_span_skip(s, at));
		} else if (c < 0x20) {
			n = 0;
		}
		if (n == 0)
			return HPX_INVALID;
		at = skip_plain(s, at + n);
	}
	if (at >= s.len)
		return HPX_INVALID;
	*ret_inside = hpx_span(s.ptr + 1, at - 1);
	*ret_escaped = escaped;
	*rest = hpx_span_skip(s, at + 1);
	return HPX_OK;
}

size_t hpx_json_string_decode(struct hpx_span inside, char *out)
{
	size_t len = 0;

	while (inside.len > 0) {
		size_t plain = hpx_span_index(inside, '\\');
		memcpy(out + len, inside.ptr, plain);
		len += plain;
		inside = hpx_span_skip(inside, plain);
		if (inside.len > 0) {
			uint32_t code = 0;
			size_t n = read_escape(inside, &code);
			len += hpx_utf8_encode(code, out + len);
			inside = hpx_span_skip(inside, n);
		}
	}
	return len;
}

static bool needs_escape(char c)
{
	return (unsigned char)c < 0x20 || c == '"' || c == '\\';
}

static enum hpx_status write_escape(char c, struct hpx_buffer *out)
{
	char escape[] = "\\u0000";
	const char *byte = memchr(escape_bytes, c, sizeof(escape_bytes) - 1);

	if (byte != NULL) {
		escape[1] = escape_letters[byte - escape_bytes];
		return hpx_buffer_append(out, hpx_span(escape, 2));
	}
	hpx_hex_encode(&c, 1, escape + 4);
	return hpx_buffer_append(out, hpx_span(escape, 6));
}

enum hpx_status hpx_json_string_write(struct hpx_span text, struct hpx_buffer *out)
{
	enum hpx_status status = hpx_buffer_byte(out, '"');

	while (text.len > 0 && status == HPX_OK) {
		size_t plain = skip_plain(text, 0);
		while (plain < text.len && !needs_escape(text.ptr[plain]))
			plain = skip_plain(text, plain + 1);
		status = hpx_buffer_append(out, hpx_span_first(text, plain));
		text = hpx_span_skip(text, plain);
		if (text.len > 0 && status == HPX_OK) {
			status = write_escape(text.ptr[0], out);
			text = hpx_span_skip(text, 1);
		}
	}
	return status == HPX_OK ? hpx_buffer_byte(out, '"') : status;
}

/* UTF-8 bytes sort as code points do; in UTF-16 the surrogates of U+10000 and
 * above (lead bytes F0 to F4) come before U+E000 to U+FFFF (lead bytes EE and
 * EF). Moving those two lead bytes up gives that order. */
static unsigned rank(char c)
{
	unsigned char u = (unsigned char)c;
	return u == 0xee || u == 0xef ? u + 0x10u : u;
}

int hpx_json_string_cmp(struct hpx_span a, struct hpx_span b)
{
	size_t n = a.len < b.len ? a.len : b.len;

	for (size_t i = 0; i < n; i++)
		if (a.ptr[i] != b.ptr[i])
			return rank(a.ptr[i]) < rank(b.ptr[i]) ? -1 : 1;
	return (a.len > b.len) - (a.len < b.len);
}
