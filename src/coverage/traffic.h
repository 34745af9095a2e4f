/* Traffic: requests that were seen, from HAR files, access logs or a running gateway. Each
 * is counted at the operation that it belongs to; one that belongs to none becomes an
 * operation of its own, with a template made from its path. */
#ifndef HPX_COVERAGE_TRAFFIC_H
#define HPX_COVERAGE_TRAFFIC_H

#include "coverage/coverage.h"

enum hpx_keyed { HPX_KEYED_UNKNOWN,
		 HPX_KEYED_NO,
		 HPX_KEYED_YES };

/* One request, or several alike. */
struct hpx_seen_request {
	struct hpx_span method;
	struct hpx_span target; /* a path, with or without query; or a URL */
	enum hpx_keyed keyed;
	uint64_t count;
};

struct hpx_traffic_index;

/* NULL: out of memory. */
struct hpx_traffic_index *hpx_traffic_index_new(struct hpx_coverage *coverage);
void hpx_traffic_index_free(struct hpx_traffic_index *index);
struct hpx_coverage *hpx_traffic_coverage(const struct hpx_traffic_index *index);

/* Counts it. The number of its operation; SIZE_MAX where it changes nothing, or a bound is
 * reached. */
size_t hpx_traffic_count(struct hpx_traffic_index *index, const struct hpx_seen_request *seen);

/* What is read is counted; what cannot be read is an error of the library. */
void hpx_traffic_read_har(struct hpx_traffic_index *index, const struct hpx_document *document);
/* Lines of an access log: the combined format, or JSON lines. Feeds one line; the number is
 * of the line, from 1. */
struct hpx_access_log {
	struct hpx_traffic_index *index;
	uint64_t read;
	uint64_t unread;
	unsigned unread_line; /* the first that cannot be read */
};
void hpx_access_log_line(struct hpx_access_log *log, struct hpx_span line, unsigned number);
/* A HAR file by its ending, a log otherwise. The path ends with a NUL. */
void hpx_traffic_read_file(struct hpx_traffic_index *index, struct hpx_span path);
/* What a gateway's /api/v1/coverage said; HPX_INVALID: it is not that. */
enum hpx_status hpx_traffic_read_gateway(struct hpx_traffic_index *index, struct hpx_span text);

/* Whether a request had a key, by the name of a header or member and its value. */
bool hpx_traffic_is_key(const struct hpx_coverage *coverage, struct hpx_span name);

#endif
