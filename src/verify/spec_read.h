/* A description while it is read, for spec.c and spec_option.c: the spec so far,
 * where each option was given, and what readers of values need to know. */
#ifndef HPX_VERIFY_SPEC_READ_H
#define HPX_VERIFY_SPEC_READ_H

#include "config/option_parse.h"
#include "config/report.h"
#include "verify/spec.h"

/* ---- URLs ---- */

/* A URL, or the path of one. */
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

/* ---- the description ---- */

/* Which struct the members of an option lie in. */
enum hpx_spec_place {
	HPX_PLACE_SPEC,    /* struct hpx_spec_context */
	HPX_PLACE_REQUEST, /* struct hpx_spec_request_context */
	HPX_SPEC_PLACES,
};

struct hpx_spec_context {
	struct hpx_verify_spec spec;
	struct hpx_config_report *report;
	struct hpx_arena *scratch;
	struct hpx_span folder; /* of files that are named; "": the working directory */
	struct hpx_yaml tree;
	struct hpx_given_set given; /* line 0: by a flag */
	/* The URL is looked at before all other options, because paths are compared
	 * with it. Not set where it is missing or wrong. */
	struct hpx_verify_url url;
	bool has_url;
	const struct hpx_yaml_node *request_nodes[HPX_REQUEST_COUNT]; /* NULL: not given */
};

/* One of `requests`. */
struct hpx_spec_request_context {
	struct hpx_verify_request request;
	const struct hpx_spec_context *context;
	struct hpx_given_set given;
};

/* The bytes of a file, into the arena. HPX_INVALID: `*ret_reason`. */
enum hpx_status hpx_spec_file(struct hpx_span folder, struct hpx_span path, size_t bytes_max,
			      struct hpx_arena *arena, struct hpx_span *ret_bytes,
			      const char **ret_reason);

/* Adds a header line; replaces those of the same name. False: there are too many. */
bool hpx_spec_header(struct hpx_span *lines, size_t *count, struct hpx_span line);

#endif
