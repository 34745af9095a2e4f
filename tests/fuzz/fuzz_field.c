/* Any header lines of an application, and any Origin (the input's first line): what is kept is
 * kept again as it is, holds no field of one delivery, and is given to a page with one origin
 * that was listed. */
#include <stddef.h>
#include <stdint.h>

#include "http/cors.h"
#include "http/field.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX (4u << 20)
#define LISTED "https://shop.example"

static void check_kept(struct hpx_span kept)
{
	struct hpx_field_line line;
	struct hpx_buffer again;
	struct hpx_span rest = kept;

	while (hpx_field_line_next(&rest, &line)) {
		HPX_ASSERT(line.name.len > 0);
		HPX_ASSERT(hpx_field_name_is_kept(line.name));
		HPX_ASSERT(memchr(line.value.ptr, '\n', line.value.len) == NULL);
	}
	hpx_buffer_init(&again, OUT_MAX);
	HPX_ASSERT(hpx_field_lines_keep(kept, &again) == HPX_OK);
	HPX_ASSERT(hpx_span_eq(hpx_buffer_span(&again), kept));
	hpx_buffer_done(&again);
}

static void check_cors(struct hpx_span origin, struct hpx_span lines)
{
	static const struct hpx_span origins[] = { HPX_SPAN_INIT(LISTED) };
	static const struct hpx_cors cors = { .origins = origins, .origin_count = 1, .credentials = true };
	struct hpx_span allowed = hpx_cors_allowed(&cors, origin);
	struct hpx_field_line line;
	struct hpx_buffer out;
	unsigned named = 0;

	HPX_ASSERT(allowed.ptr == NULL || hpx_span_eq(allowed, HPX_SPAN(LISTED)));
	hpx_buffer_init(&out, OUT_MAX);
	if (hpx_cors_write(&cors, HPX_CORS_REPLAY, origin, lines, &out) == HPX_OK) {
		struct hpx_span rest = hpx_buffer_span(&out);
		while (hpx_field_line_next(&rest, &line))
			if (hpx_span_ieq(line.name, HPX_SPAN("Access-Control-Allow-Origin"))) {
				HPX_ASSERT(hpx_span_eq(line.value, HPX_SPAN(LISTED)));
				named++;
			}
		HPX_ASSERT(named == (allowed.ptr != NULL));
	}
	hpx_buffer_done(&out);
	hpx_buffer_init(&out, OUT_MAX);
	(void)hpx_cors_write_preflight(HPX_SPAN("POST"), HPX_SPAN("Idempotency-Key"), origin, &out);
	hpx_buffer_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hpx_span lines = hpx_span(data, size);
	const char *reason = NULL;
	struct hpx_span origin;
	struct hpx_buffer out;

	if (!hpx_span_line(&lines, &origin))
		return 0;
	HPX_ASSERT(hpx_origin_valid(origin, &reason) == (reason == NULL));
	hpx_buffer_init(&out, HPX_KEPT_BYTES_MAX);
	enum hpx_status status = hpx_field_lines_keep(lines, &out);
	HPX_ASSERT(status == HPX_OK || status == HPX_INVALID || status == HPX_TOO_LARGE);
	if (status == HPX_OK) {
		check_kept(hpx_buffer_span(&out));
		check_cors(origin, hpx_buffer_span(&out));
	}
	hpx_buffer_done(&out);
	return 0;
}
