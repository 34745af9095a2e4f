/* Any form: its canonical form can be taken apart, and the same pairs spelled
 * with every byte escaped have the same form. */
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "core/form.h"
#include "netstring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX (4u << 20)

static void spell(struct hpx_span text, struct hpx_buffer *out)
{
	for (size_t i = 0; i < text.len; i++)
		HPX_ASSERT(hpx_buffer_printf(out, "%%%02X", (unsigned char)text.ptr[i]) == HPX_OK);
}

static void respell(struct hpx_span form, struct hpx_buffer *out)
{
	while (form.len > 0) {
		spell(take_netstring(&form), out);
		char mark = take_mark(&form);
		HPX_ASSERT(mark == '=' || mark == ';');
		if (mark == '=') {
			HPX_ASSERT(hpx_buffer_byte(out, '=') == HPX_OK);
			spell(take_netstring(&form), out);
		}
		HPX_ASSERT(hpx_buffer_byte(out, '&') == HPX_OK);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hpx_buffer form;
	struct hpx_buffer other;
	struct hpx_buffer again;

	hpx_buffer_init(&form, OUT_MAX);
	hpx_buffer_init(&other, OUT_MAX);
	hpx_buffer_init(&again, OUT_MAX);
	enum hpx_status status = hpx_form_canonical(hpx_span(data, size), &form);
	HPX_ASSERT(status == HPX_OK || (status == HPX_INVALID && form.len == 0));
	if (status == HPX_OK) {
		respell(hpx_buffer_span(&form), &other);
		HPX_ASSERT(hpx_form_canonical(hpx_buffer_span(&other), &again) == HPX_OK);
		HPX_ASSERT(hpx_span_eq(hpx_buffer_span(&form), hpx_buffer_span(&again)));
	}
	hpx_buffer_done(&form);
	hpx_buffer_done(&other);
	hpx_buffer_done(&again);
	return 0;
}
