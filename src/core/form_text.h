/* How a text stands in the canonical form of a form: "3:abc". */
#ifndef HPX_CORE_FORM_TEXT_H
#define HPX_CORE_FORM_TEXT_H

#include <stdio.h>

#include "base/buffer.h"

static inline enum hpx_status hpx_form_text(struct hpx_buffer *out, struct hpx_span text)
{
	char length[24];
	int n = snprintf(length, sizeof(length), "%zu:", text.len);

	enum hpx_status status = hpx_buffer_append(out, hpx_span(length, (size_t)n));
	return status == HPX_OK ? hpx_buffer_append(out, text) : status;
}

#endif
