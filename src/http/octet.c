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

size_t hpx_octet_run(struct hpx_span s, unsigned classes)
{
	size_t n = 0;

	while (n < s.len && hpx_octet_is(s.ptr[n], classes))
		n++;
	return n;
}

int hpx_octet_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}
