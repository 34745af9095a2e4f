/* Text by value: a pointer and a length, borrowed, not terminated. */
#ifndef HPX_BASE_SPAN_H
#define HPX_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct hpx_span {
	const char *ptr;
	size_t len;
};

/* For printf: "%.*s", HPX_SPAN_ARG(s). */
#define HPX_SPAN_ARG(s) (int)(s).len, (s).len ? (s).ptr : ""

/* A span over a string literal, usable in static initialisers. */
#define HPX_SPAN_INIT(literal) \
	{ \
		"" literal, sizeof(literal) - 1 \
	}
#define HPX_SPAN(literal) ((struct hpx_span)HPX_SPAN_INIT(literal))

static inline struct hpx_span hpx_span(const void *ptr, size_t len)
{
	return (struct hpx_span){ ptr, len };
}

static inline struct hpx_span hpx_span_of(const char *text)
{
	return (struct hpx_span){ text, text ? strlen(text) : 0 };
}

static inline bool hpx_span_eq(struct hpx_span a, struct hpx_span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool hpx_span_starts(struct hpx_span s, struct hpx_span prefix)
{
	return s.len >= prefix.len &&
	       (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

/* What remains of `s` after its first `n` bytes (n <= s.len). */
static inline struct hpx_span hpx_span_skip(struct hpx_span s, size_t n)
{
	return (struct hpx_span){ s.ptr + n, s.len - n };
}

static inline struct hpx_span hpx_span_first(struct hpx_span s, size_t n)
{
	return (struct hpx_span){ s.ptr, n < s.len ? n : s.len };
}

/* The small letter of an ASCII capital; any other byte as it is. */
static inline char hpx_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Equal but for the case of ASCII letters. Most comparisons of names end with
 * their lengths. */
bool hpx_span_istarts(struct hpx_span s, struct hpx_span prefix);
static inline bool hpx_span_ieq(struct hpx_span a, struct hpx_span b)
{
	return a.len == b.len && hpx_span_istarts(a, b);
}

/* Order by bytes, the shorter first when one begins the other. */
int hpx_span_cmp(struct hpx_span a, struct hpx_span b);

/* The place of the first `c`, or s.len where there is none. */
size_t hpx_span_index(struct hpx_span s, char c);
/* How often the byte is in it. */
size_t hpx_span_count(struct hpx_span s, char c);

/* Without spaces and tabs at both ends (the OWS of RFC 9110 §5.6.3). */
struct hpx_span hpx_span_trim(struct hpx_span s);

/* Takes the text up to the next `sep` off the front of `*rest` into
 * `*ret_item`; false when nothing is left. "a,,b" gives "a", "", "b". */
bool hpx_span_split(struct hpx_span *rest, char sep, struct hpx_span *ret_item);

/* Takes the next line off the front of `*rest`, without its end: LF, CR LF, or a CR
 * or nothing at the end of the text. False when nothing is left. */
bool hpx_span_line(struct hpx_span *rest, struct hpx_span *ret_line);

/* Decimal digits only, the whole span, at most `max`: the only way a number
 * of a protocol is read. */
bool hpx_span_u64(struct hpx_span s, uint64_t max, uint64_t *ret_value);

#define HPX_DECIMAL_SIZE 20
/* The way back: its digits, in `out`, without a NUL. */
struct hpx_span hpx_decimal(uint64_t value, char out[HPX_DECIMAL_SIZE]);

/* ---- UTF-8 ---- */

/* The length (1 to 4) of the valid sequence at the front, 0 if there is none. */
size_t hpx_utf8_sequence(struct hpx_span s);
bool hpx_utf8_valid(struct hpx_span s);

/* Takes the next character off the front of `*rest`; false when nothing is left. A byte
 * that is no UTF-8 is a character of its own. Printable is what a terminal shows and
 * does not obey: neither a control character (C0, DEL, C1) nor such a byte. */
bool hpx_utf8_next(struct hpx_span *rest, struct hpx_span *ret_character, bool *ret_printable);

/* The code point of a sequence that hpx_utf8_sequence found valid. */
uint32_t hpx_utf8_decode(struct hpx_span s);

/* Writes the sequence for a code point (not a surrogate), returns its length. */
size_t hpx_utf8_encode(uint32_t code, char out[4]);

#endif
