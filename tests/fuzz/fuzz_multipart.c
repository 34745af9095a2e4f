/* Any body under any Content-Type (the input's first line): its canonical form
 * can be taken apart, and the same parts behind another boundary have the same
 * form, with what stands around them and without. */
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "core/form.h"
#include "netstring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX (4u << 20)
#define OTHER "another-boundary-than-yours"

static void add(struct hpx_buffer *out, struct hpx_span text)
{
	HPX_ASSERT(hpx_buffer_append(out, text) == HPX_OK);
}

static bool has_other(struct hpx_span form)
{
	return form.len > 0 && memmem(form.ptr, form.len, OTHER, sizeof(OTHER) - 1) != NULL;
}

static void rebuild(bool whole, struct hpx_span form, struct hpx_buffer *out)
{
	if (whole)
		add(out, take_netstring(&form));
	while (form.len > 0 && form.ptr[0] != '.') {
		add(out, whole ? HPX_SPAN("--" OTHER "\r\n") : HPX_SPAN("--" OTHER " \r\n"));
		while (form.ptr[0] != ';') {
			add(out, take_netstring(&form));
			HPX_ASSERT(take_mark(&form) == '=');
			add(out, HPX_SPAN(":\t"));
			add(out, take_netstring(&form));
			add(out, HPX_SPAN(" \r\n"));
			HPX_ASSERT(form.len > 0);
		}
		take_mark(&form);
		add(out, HPX_SPAN("\r\n"));
		add(out, take_netstring(&form));
		add(out, HPX_SPAN("\r\n"));
	}
	add(out, HPX_SPAN("--" OTHER "--\r\n"));
	if (whole) {
		HPX_ASSERT(take_mark(&form) == '.');
		add(out, take_netstring(&form));
	}
	HPX_ASSERT(form.len == 0);
}

static void check(enum hpx_multipart_extent extent, struct hpx_span type, struct hpx_span body)
{
	struct hpx_buffer form;
	struct hpx_buffer other;
	struct hpx_buffer again;

	hpx_buffer_init(&form, OUT_MAX);
	hpx_buffer_init(&other, OUT_MAX);
	hpx_buffer_init(&again, OUT_MAX);
	enum hpx_status status = hpx_multipart_canonical(extent, type, body, &form);
	HPX_ASSERT(status == HPX_OK || (status == HPX_INVALID && form.len == 0));
	/* In the form, where names are in small letters. */
	if (status == HPX_OK && !has_other(hpx_buffer_span(&form))) {
		rebuild(extent == HPX_MULTIPART_WHOLE, hpx_buffer_span(&form), &other);
		HPX_ASSERT(hpx_multipart_canonical(extent,
						   HPX_SPAN("multipart/mixed; boundary=\"" OTHER "\""),
						   hpx_buffer_span(&other), &again) == HPX_OK);
		HPX_ASSERT(hpx_span_eq(hpx_buffer_span(&form), hpx_buffer_span(&again)));
	}
	hpx_buffer_done(&form);
	hpx_buffer_done(&other);
	hpx_buffer_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hpx_span input = hpx_span(data, size);
	size_t line = hpx_span_index(input, '\n');

	if (line < input.len) {
		struct hpx_span type = hpx_span_first(input, line);
		struct hpx_span body = hpx_span_skip(input, line + 1);
		check(HPX_MULTIPART_PARTS, type, body);
		check(HPX_MULTIPART_WHOLE, type, body);
	}
	return 0;
}
