/* A description while it is read: what is given where, and what is wrong. In
 * three steps: collected (collect.c), each value read (value.c), and completed
 * with what follows from the others (complete.c). */
#ifndef HPX_VERIFY_SPEC_READ_H
#define HPX_VERIFY_SPEC_READ_H

#include "config/report.h"
#include "config/yaml.h"
#include "verify/spec.h"

/* ---- URLs ---- */

/* The URL that is verified. */
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

/* One thing that is given, in the file or by a flag. */
struct hpx_spec_given {
	const struct hpx_span *items;
	size_t count; /* 0: not given */
	bool by_flag;
	struct hpx_span name; /* for people: "limits.time", "--time" */
	unsigned line;        /* 0: by a flag */
	unsigned column;
};

struct hpx_spec_reading {
	struct hpx_verify_spec *spec;
	struct hpx_config_report *report;
	struct hpx_arena *scratch;
	struct hpx_span folder;
	struct hpx_yaml tree;
	struct hpx_verify_url url;
	bool has_url;
	struct hpx_spec_given in_file[HPX_VERIFY_OPTION_MAX];
	struct hpx_spec_given by_flag[HPX_VERIFY_OPTION_MAX];
	struct hpx_spec_given
		requests[HPX_REQUEST_COUNT][HPX_VERIFY_REQUEST_OPTION_COUNT];
	const struct hpx_yaml_node *request_nodes[HPX_REQUEST_COUNT]; /* NULL: not given */
};

enum hpx_status hpx_spec_collect(struct hpx_spec_reading *reading, struct hpx_span text,
				 const struct hpx_verify_flags *flags);
/* Reads what is given into the member of `base`; mistakes go into the report.
 * Fails for memory only. */
enum hpx_status hpx_spec_value(struct hpx_spec_reading *reading,
			       const struct hpx_verify_option *option,
			       const struct hpx_spec_given *given, void *base);
void hpx_spec_remark(struct hpx_spec_reading *reading, const struct hpx_spec_given *given,
		     const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The file's bytes, into the spec's arena. HPX_INVALID: `*ret_reason`. */
enum hpx_status hpx_spec_file(struct hpx_span folder, struct hpx_span path, size_t bytes_max,
			      struct hpx_arena *arena, struct hpx_span *ret_bytes,
			      const char **ret_reason);

/* Adds a header line, or takes the place of those of the same name. False:
 * there are too many. */
bool hpx_spec_header(struct hpx_span *lines, size_t *count, struct hpx_span line);
struct hpx_span hpx_spec_header_name(struct hpx_span line);

#endif
