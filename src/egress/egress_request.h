/* A request before it is sent: whether it can be sent at all, and its fields
 * in the form that libcurl wants. */
#ifndef HPX_EGRESS_REQUEST_H
#define HPX_EGRESS_REQUEST_H

#include <curl/curl.h>

#include "egress/egress.h"

/* HPX_INVALID and HPX_TOO_LARGE fill `problem`. */
enum hpx_status hpx_egress_request_check(struct hpx_egress_request *request);

/* The fields of a request that was checked, and those that the engine adds;
 * NULL when there is no memory. */
struct curl_slist *hpx_egress_request_lines(const struct hpx_egress_request *request);

/* Sets the problem; bytes that are not printable become '?'. */
void hpx_egress_request_blame(struct hpx_egress_request *request, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
