/* Any traffic (the first byte chooses HAR, the lines of a log, or a gateway's page): it is
 * counted or refused, no request is counted twice, and the reports can be printed. */
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "coverage/traffic.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct hpx_coverage coverage;

static void read_log(struct hpx_traffic_index *index, struct hpx_span text)
{
	struct hpx_access_log log = { .index = index };
	struct hpx_span line;
	unsigned number = 0;

	while (hpx_span_line(&text, &line))
		hpx_access_log_line(&log, line, ++number);
	HPX_ASSERT(log.read + log.unread <= number && (log.unread > 0) == (log.unread_line > 0));
}

static void read_input(struct hpx_traffic_index *index, uint8_t kind, struct hpx_span text)
{
	const struct hpx_document *document;

	switch (kind % 3) {
	case 0:
		read_log(index, text);
		return;
	case 1:
		document = hpx_library_add(&coverage.library, HPX_SPAN("a.har"), text);
		if (document != NULL)
			hpx_traffic_read_har(index, document);
		return;
	default:
		(void)hpx_traffic_read_gateway(index, text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hpx_buffer out;

	if (size == 0)
		return 0;
	hpx_coverage_init(&coverage);
	struct hpx_traffic_index *index = hpx_traffic_index_new(&coverage);
	HPX_ASSERT(index != NULL);
	read_input(index, data[0], hpx_span(data + 1, size - 1));
	hpx_traffic_index_free(index);
	for (size_t i = 0; i < coverage.operation_count; i++) {
		const struct hpx_traffic_count *seen = &coverage.operations[i].traffic;
		HPX_ASSERT(seen->requests >= seen->keyed && seen->requests - seen->keyed >= seen->unkeyed);
	}
	hpx_coverage_judge(&coverage);
	hpx_buffer_init(&out, (size_t)64 << 20);
	HPX_ASSERT(hpx_coverage_print_text(&coverage, &out) == HPX_OK);
	HPX_ASSERT(hpx_coverage_print_json(&coverage, 0, &out) == HPX_OK);
	hpx_buffer_done(&out);
	hpx_coverage_done(&coverage);
	return 0;
}
