/* The shape of a head, byte by byte: start line, header lines, empty line.
 * The scanner remembers where in the grammar it is, so bytes may come in any
 * portions and each is looked at once; the first byte that cannot belong to
 * any head is refused there and then. It finds no meaning: lengths, Host and
 * the like are judged over the whole head (framing.h). */
#ifndef HPX_HTTP_SCAN_H
#define HPX_HTTP_SCAN_H

#include "base/span.h"
#include "http/error.h"

/* What may come next. */
enum hpx_scan_state {
	HPX_SCAN_BEGIN, /* a request line, or one empty line before it */
	HPX_SCAN_BEGIN_LF,
	HPX_SCAN_METHOD_BEGIN,
	HPX_SCAN_METHOD,
	HPX_SCAN_TARGET_BEGIN,
	HPX_SCAN_TARGET,
	HPX_SCAN_VERSION,
	HPX_SCAN_STATUS,
	HPX_SCAN_STATUS_END,
	HPX_SCAN_REASON,
	HPX_SCAN_LINE_LF,
	HPX_SCAN_FIELD_BEGIN,
	HPX_SCAN_NAME,
	HPX_SCAN_VALUE,
	HPX_SCAN_END_LF,
	HPX_SCAN_DONE,
	HPX_SCAN_STATES
};

struct hpx_scan {
	enum hpx_scan_state state;
	bool response;
	unsigned place;   /* within "HTTP/1.1" or the status code */
	unsigned version; /* 10 and 11 once it is read */
	unsigned status;
	size_t field_count;
	size_t fields_max;
};

void hpx_scan_request(struct hpx_scan *scan, size_t fields_max);
void hpx_scan_response(struct hpx_scan *scan, size_t fields_max);
/* Header lines alone, for the trailer of a chunked body. */
void hpx_scan_trailer(struct hpx_scan *scan, size_t fields_max);

/* Goes on with `bytes`. DONE: the empty line ended at `*ret_used`. MORE: all
 * were used. BAD: `*ret_error`. */
enum hpx_http_progress hpx_scan_run(struct hpx_scan *scan, struct hpx_span bytes,
				    size_t *ret_used, enum hpx_http_error *ret_error);

#endif
