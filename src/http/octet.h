/* Which bytes may stand where: one table of classes for the whole folder. */
#ifndef HPX_HTTP_OCTET_H
#define HPX_HTTP_OCTET_H

#include "base/span.h"

#define HPX_OCTET_TOKEN 0x01      /* tchar, RFC 9110 §5.6.2 */
#define HPX_OCTET_TARGET 0x02     /* 0x21-0x7e but `\` and `#`: no fragment travels */
#define HPX_OCTET_VALUE 0x04      /* VCHAR, SP, HTAB, obs-text, RFC 9110 §5.5 */
#define HPX_OCTET_UNRESERVED 0x08 /* RFC 3986 §2.3 */
#define HPX_OCTET_PATH 0x10       /* pchar without escapes, RFC 3986 §3.3 */
#define HPX_OCTET_HOST 0x20       /* reg-name without escapes, RFC 3986 §3.2.2 */

extern const unsigned char hpx_octet_class[256];

static inline bool hpx_octet_is(char c, unsigned classes)
{
	return (hpx_octet_class[(unsigned char)c] & classes) != 0;
}

/* How many bytes at the front are all of one of these classes. */
size_t hpx_octet_run(struct hpx_span s, unsigned classes);

static inline bool hpx_octet_all(struct hpx_span s, unsigned classes)
{
	return hpx_octet_run(s, classes) == s.len;
}

#endif
