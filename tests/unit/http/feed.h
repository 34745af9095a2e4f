/* Feeds one message to the reader in portions and notes all that comes out,
 * for the tests and the fuzz target alike. Every portion is a copy of exactly
 * its own size, so that a sanitizer sees any byte read beyond it. */
#ifndef HPX_TESTS_UNIT_HTTP_FEED_H
#define HPX_TESTS_UNIT_HTTP_FEED_H

#include "base/buffer.h"
#include "http/message.h"

struct feed_setup {
	bool response;
	struct hpx_span method; /* that the response answers */
	struct hpx_http_limits limits;
	bool ends; /* the connection ends after the input */
};

struct feed_result {
	enum hpx_http_progress progress;
	enum hpx_http_error error;
	size_t used;                 /* with HPX_HTTP_DONE */
	struct hpx_http_head head;   /* flags and numbers; its spans are gone */
	struct hpx_buffer head_text; /* start line and fields, as they were cut */
	struct hpx_buffer body;
};

/* `cuts` are ascending places within the input. Results are to be given back
 * with feed_done. */
void feed_run(const struct feed_setup *setup, struct hpx_span input, const size_t *cuts,
	      size_t cut_count, struct feed_result *ret_result);
void feed_done(struct feed_result *result);

/* Whether two ways of feeding gave the same in every respect. */
bool feed_same(const struct feed_result *a, const struct feed_result *b);

/* For a message about a test that failed. */
const char *feed_error_name(enum hpx_http_error error);

#endif
