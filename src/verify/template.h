/* {{uuid}}, {{n}}, {{key}} and {{env:NAME}} in paths, headers and bodies. */
#ifndef HPX_VERIFY_TEMPLATE_H
#define HPX_VERIFY_TEMPLATE_H

#include "base/buffer.h"

enum hpx_template_place {
	HPX_TEMPLATE_PATH,   /* values are percent-encoded */
	HPX_TEMPLATE_HEADER, /* the only place for {{env:NAME}}: it is kept out of reports */
	HPX_TEMPLATE_BODY,
};

struct hpx_template_values {
	struct hpx_span uuid;
	struct hpx_span n;
	struct hpx_span key;
};

#define HPX_TEMPLATE_PROBLEM_SIZE 200

/* HPX_INVALID: `problem` says what is wrong, and what to do: an unknown
 * variable, one without an end, one that is not set in the environment. */
enum hpx_status hpx_template_check(struct hpx_span text, enum hpx_template_place place,
				   char problem[HPX_TEMPLATE_PROBLEM_SIZE]);
/* Of a checked template; HPX_INVALID where it is not one. */
enum hpx_status hpx_template_fill(struct hpx_span text, enum hpx_template_place place,
				  const struct hpx_template_values *values,
				  struct hpx_buffer *out);
bool hpx_template_names_env(struct hpx_span text);
/* Whether anything in it differs from intent to intent. */
bool hpx_template_varies(struct hpx_span text);

#endif
