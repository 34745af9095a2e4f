/* The table of methods. The usual ones come first: it is searched from the top
 * for every request. */
#include "http/method.h"

#define SAFE(name) \
	{ \
		HPX_SPAN_INIT(name), HPX_METHOD_SAFE \
	}
#define IDEMPOTENT(name) \
	{ \
		HPX_SPAN_INIT(name), HPX_METHOD_IDEMPOTENT \
	}
#define NEITHER(name) \
	{ \
		HPX_SPAN_INIT(name), HPX_METHOD_NEITHER \
	}

/* PRI is left out: only the preface of an HTTP/2 connection has it. */
static const struct hpx_method methods[] = {
	NEITHER("POST"),
	SAFE("GET"),
	NEITHER("PATCH"),
	IDEMPOTENT("PUT"),
	IDEMPOTENT("DELETE"),
	SAFE("HEAD"),
	SAFE("OPTIONS"),
	SAFE("TRACE"),
	SAFE("PROPFIND"),
	SAFE("REPORT"),
	SAFE("SEARCH"),
	SAFE("QUERY"),
	NEITHER("LOCK"),
	IDEMPOTENT("ACL"),
	IDEMPOTENT("BASELINE-CONTROL"),
	IDEMPOTENT("BIND"),
	IDEMPOTENT("CHECKIN"),
	IDEMPOTENT("CHECKOUT"),
	IDEMPOTENT("COPY"),
	IDEMPOTENT("LABEL"),
	IDEMPOTENT("LINK"),
	IDEMPOTENT("MERGE"),
	IDEMPOTENT("MKACTIVITY"),
	IDEMPOTENT("MKCALENDAR"),
	IDEMPOTENT("MKCOL"),
	IDEMPOTENT("MKREDIRECTREF"),
	IDEMPOTENT("MKWORKSPACE"),
	IDEMPOTENT("MOVE"),
	IDEMPOTENT("ORDERPATCH"),
	IDEMPOTENT("PROPPATCH"),
	IDEMPOTENT("REBIND"),
	IDEMPOTENT("UNBIND"),
	IDEMPOTENT("UNCHECKOUT"),
	IDEMPOTENT("UNLINK"),
	IDEMPOTENT("UNLOCK"),
	IDEMPOTENT("UPDATE"),
	IDEMPOTENT("UPDATEREDIRECTREF"),
	IDEMPOTENT("VERSION-CONTROL"),
	{ HPX_SPAN_INIT("CONNECT"), HPX_METHOD_TUNNEL },
};

#define METHOD_COUNT (sizeof(methods) / sizeof(methods[0]))

const struct hpx_method *hpx_method_find(struct hpx_span name)
{
	for (size_t i = 0; i < METHOD_COUNT; i++)
		if (hpx_span_ieq(methods[i].name, name))
			return &methods[i];
	return NULL;
}

enum hpx_method_kind hpx_method_kind(struct hpx_span name)
{
	const struct hpx_method *method = hpx_method_find(name);

	return method != NULL ? method->kind : HPX_METHOD_NEITHER;
}

const struct hpx_method *hpx_methods(size_t *ret_count)
{
	*ret_count = METHOD_COUNT;
	return methods;
}
