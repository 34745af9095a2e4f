/* The methods of the IANA registry and what RFC 9110 §9.2 says of them. Whether
 * a request is guarded begins here; a method that is not in the table is
 * neither safe nor idempotent. */
#ifndef HPX_HTTP_METHOD_H
#define HPX_HTTP_METHOD_H

#include "base/span.h"

enum hpx_method_kind {
	HPX_METHOD_NEITHER,    /* twice may do something else than once */
	HPX_METHOD_IDEMPOTENT, /* changes something, but twice is as once */
	HPX_METHOD_SAFE,       /* changes nothing */
	HPX_METHOD_TUNNEL,     /* CONNECT: no request to this service at all */
};

struct hpx_method {
	struct hpx_span name;
	enum hpx_method_kind kind;
};

/* The method of that name in any case; NULL where the registry has none. A
 * method's name is case-sensitive (RFC 9110 §9.1), but gunicorn and others
 * write it in capitals before they look: another spelling of a known method is
 * to be refused, not taken for an unknown one. */
const struct hpx_method *hpx_method_find(struct hpx_span name);
enum hpx_method_kind hpx_method_kind(struct hpx_span name);

/* The whole table, for printing. */
const struct hpx_method *hpx_methods(size_t *ret_count);

#endif
