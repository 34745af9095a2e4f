/* The table of byte classes. */
#include "http/octet.h"

enum {
	T = HPX_OCTET_TOKEN,
	G = HPX_OCTET_TARGET,
	V = HPX_OCTET_VALUE,
	/* Unreserved characters may stand anywhere. */
	U = HPX_OCTET_UNRESERVED | HPX_OCTET_PATH | HPX_OCTET_HOST | T | G | V,
	/* Sub-delims, those that are tchar and those that are not. */
	S = HPX_OCTET_PATH | HPX_OCTET_HOST | G | V,
	ST = S | T,
};

const unsigned char hpx_octet_class[256] = {
	['\t'] = V,
	[' '] = V,
	['!'] = ST,
	['"'] = G | V,
	['#'] = T | V,
	['$'] = ST,
	['%'] = T | G | V,
	['&'] = ST,
	['\''] = ST,
	['('] = S,
	[')'] = S,
	['*'] = ST,
	['+'] = ST,
	[','] = S,
	['-'] = U,
	['.'] = U,
	['/'] = G | V,
	['0' ... '9'] = U,
	[':'] = HPX_OCTET_PATH | G | V,
	[';'] = S,
	['<'] = G | V,
	['='] = S,
	['>'] = G | V,
	['?'] = G | V,
	['@'] = HPX_OCTET_PATH | G | V,
	['A' ... 'Z'] = U,
	['['] = G | V,
	['\\'] = V,
	[']'] = G | V,
	['^'] = T | G | V,
	['_'] = U,
	['`'] = T | G | V,
	['a' ... 'z'] = U,
	['{'] = G | V,
	['|'] = T | G | V,
	['}'] = G | V,
	['~'] = U,
	[0x80 ... 0xff] = V,
};

/* Whether none of eight bytes is below 0x20 or DEL: most of a head is values,
 * and every one of these is HPX_OCTET_VALUE. (A tab is too, and then the bytes
 * are looked at one by one.) A byte of `word` is below n where subtracting n
 * borrows into its highest bit, if that was not set before. */
static bool are_plain(const char *bytes)
{
	const uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
	uint64_t word, is_del;

	memcpy(&word, bytes, sizeof(word));
	is_del = word ^ ones * 0x7f;
	uint64_t low = (word - ones * 0x20) & ~word;
	uint64_t del = (is_del - ones) & ~is_del;
	return ((low | del) & highs) == 0;
}

size_t hpx_octet_run(struct hpx_span s, unsigned classes)
{
	size_t n = 0;

	if (classes == HPX_OCTET_VALUE)
		while (s.len - n >= sizeof(uint64_t) && are_plain(s.ptr + n))
			n += sizeof(uint64_t);
	while (n < s.len && hpx_octet_is(s.ptr[n], classes))
		n++;
	return n;
}
