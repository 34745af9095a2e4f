/* The URL that is verified, and other ways to write a path on its host. */
#ifndef HPX_VERIFY_TARGET_H
#define HPX_VERIFY_TARGET_H

#include "base/span.h"
#include "base/status.h"

struct hpx_verify_url {
	bool tls;
	char host[256]; /* without brackets */
	uint16_t port;
	struct hpx_span path; /* with its query, into the text; "/" where there is none */
};

/* http:// or https://, no credentials, no fragment. HPX_INVALID: `*ret_reason`
 * is a sentence. */
enum hpx_status hpx_verify_url_parse(struct hpx_span text, struct hpx_verify_url *ret_url,
				     const char **ret_reason);
/* A path, or a URL of the same scheme, host and port. */
enum hpx_status hpx_verify_path_parse(struct hpx_span text, const struct hpx_verify_url *of,
				      struct hpx_span *ret_path, const char **ret_reason);

#endif
