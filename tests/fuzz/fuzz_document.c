/* Any description (the first byte chooses JSON or YAML): it is read or refused with a line,
 * every operation of it has a place and a reason, and all reports can be printed. */
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "coverage/coverage.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX ((size_t)64 << 20)

static struct hpx_coverage coverage;

static void check_reports(void)
{
	struct hpx_buffer out;

	hpx_buffer_init(&out, OUT_MAX);
	HPX_ASSERT(hpx_coverage_print_text(&coverage, &out) == HPX_OK);
	HPX_ASSERT(hpx_coverage_print_json(&coverage, 0, &out) == HPX_OK);
	HPX_ASSERT(hpx_coverage_print_sarif(&coverage, &out) == HPX_OK);
	HPX_ASSERT(hpx_coverage_print_routes(&coverage, &out) == HPX_OK);
	hpx_buffer_done(&out);
}

/* A baseline that was printed lists every gap, and nothing that is stale; but a path with a
 * space in it makes no entry. */
static void check_baseline(void)
{
	struct hpx_buffer baseline, stale;
	size_t stale_count;
	unsigned line;

	hpx_buffer_init(&baseline, OUT_MAX);
	hpx_buffer_init(&stale, OUT_MAX);
	HPX_ASSERT(hpx_coverage_print_baseline(&coverage, &baseline) == HPX_OK);
	enum hpx_status status = hpx_coverage_mark_known(&coverage, hpx_buffer_span(&baseline), &stale,
							 &stale_count, &line);
	HPX_ASSERT(status == HPX_INVALID || stale_count > 0 || hpx_coverage_gaps(&coverage) == 0);
	hpx_buffer_done(&baseline);
	hpx_buffer_done(&stale);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	hpx_coverage_init(&coverage);
	const struct hpx_document *document = hpx_library_add(
		&coverage.library, data[0] & 1 ? HPX_SPAN("a.yaml") : HPX_SPAN("a.json"),
		hpx_span(data + 1, size - 1));
	HPX_ASSERT(document != NULL || coverage.library.error_count == 1);
	if (document != NULL)
		hpx_coverage_read_api(&coverage, document);
	hpx_coverage_judge(&coverage);
	for (size_t i = 0; i < coverage.operation_count; i++)
		HPX_ASSERT(coverage.operations[i].key.place.line > 0 &&
			   coverage.operations[i].key.reason.ptr != NULL);
	check_reports();
	check_baseline();
	hpx_coverage_done(&coverage);
	return 0;
}
