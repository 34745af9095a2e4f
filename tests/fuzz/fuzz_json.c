/* Any text: its canonical form is its own canonical form, leaving members out
 * before or after makes no difference, and Jansson agrees on what is JSON
 * wherever its own rules (numbers that fit a double or an int64) do not differ. */
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/status.h"
#include "core/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX (1u << 20)

static const struct hpx_span ignore[] = { HPX_SPAN_INIT("/a"), HPX_SPAN_INIT("/b/0"),
					  HPX_SPAN_INIT("/0/a"), HPX_SPAN_INIT("/1"), HPX_SPAN_INIT("/a~1b/~0") };
#define IGNORE_COUNT (sizeof(ignore) / sizeof(ignore[0]))

static void check_forms(struct hpx_span text, const struct hpx_buffer *form)
{
	struct hpx_buffer again;
	struct hpx_buffer less;
	struct hpx_buffer less_again;

	hpx_buffer_init(&again, OUT_MAX);
	hpx_buffer_init(&less, OUT_MAX);
	hpx_buffer_init(&less_again, OUT_MAX);
	HPX_ASSERT(hpx_json_canonical(hpx_buffer_span(form), &hpx_json_limits_default, NULL, 0,
				      &again) == HPX_OK);
	HPX_ASSERT(hpx_span_eq(hpx_buffer_span(form), hpx_buffer_span(&again)));
	HPX_ASSERT(hpx_json_canonical(text, &hpx_json_limits_default, ignore, IGNORE_COUNT,
				      &less) == HPX_OK);
	HPX_ASSERT(hpx_json_canonical(hpx_buffer_span(form), &hpx_json_limits_default, ignore,
				      IGNORE_COUNT, &less_again) == HPX_OK);
	HPX_ASSERT(hpx_span_eq(hpx_buffer_span(&less), hpx_buffer_span(&less_again)));
	HPX_ASSERT(less.len <= form->len);
	hpx_buffer_done(&again);
	hpx_buffer_done(&less);
	hpx_buffer_done(&less_again);
}

/* Without digits there are no numbers to disagree about, and no \u0000, which
 * Jansson takes in values but not in names; a NUL byte ends the text for it. */
static bool is_common_ground(struct hpx_span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] == '\0' || (text.ptr[i] >= '0' && text.ptr[i] <= '9'))
			return false;
	return true;
}

static void check_jansson(struct hpx_span text, bool good)
{
	json_error_t error;

	if (!is_common_ground(text))
		return;
	json_t *value = json_loadb(text.ptr, text.len,
				   JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL,
				   &error);
	bool deep = value == NULL && json_error_code(&error) == json_error_stack_overflow;
	/* Deeper than 256 is refused here and taken there. */
	bool bounded = text.len < hpx_json_limits_default.depth_max;
	HPX_ASSERT(deep || !good || value != NULL);
	HPX_ASSERT(!bounded || good || value == NULL);
	json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hpx_span text = hpx_span(data, size);
	struct hpx_buffer form;

	hpx_buffer_init(&form, OUT_MAX);
	enum hpx_status status = hpx_json_canonical(text, &hpx_json_limits_default, NULL, 0, &form);
	HPX_ASSERT(status == HPX_OK || (status == HPX_INVALID && form.len == 0));
	if (status == HPX_OK)
		check_forms(text, &form);
	check_jansson(text, status == HPX_OK);
	hpx_buffer_done(&form);
	return 0;
}
