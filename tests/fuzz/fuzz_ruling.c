/* Any body of a probe's answer or of a webhook: it is a ruling, the same at every look, and a
 * body that is no JSON settles nothing. */
#include <stddef.h>
#include <stdint.h>

#include "core/json.h"
#include "core/reconcile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hpx_span applied[] = { HPX_SPAN_INIT("succeeded"), HPX_SPAN_INIT("1.0") };
static const struct hpx_span declined[] = { HPX_SPAN_INIT("failed"), HPX_SPAN_INIT("false") };
static const unsigned missing[] = { 404, 410 };
static const struct hpx_ruling_mapping mapping = {
	.pointer = HPX_SPAN_INIT("/data/status"),
	.signs = { [HPX_RULING_APPLIED] = { .values = applied, .value_count = 2 },
		   [HPX_RULING_DECLINED] = { .values = declined, .value_count = 2 },
		   [HPX_RULING_NOT_APPLIED] = { .statuses = missing, .status_count = 2 } },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hpx_span body = hpx_span(data, size);
	enum hpx_ruling of_body, of_answer, of_absence;
	struct hpx_json_tree tree;

	HPX_ASSERT(hpx_ruling_of_body(&mapping, body, &of_body) == HPX_OK);
	HPX_ASSERT(hpx_ruling_of_answer(&mapping, 200, body, &of_answer) == HPX_OK);
	HPX_ASSERT(hpx_ruling_of_answer(&mapping, 404, body, &of_absence) == HPX_OK);
	HPX_ASSERT(of_body == of_answer && of_absence == HPX_RULING_NOT_APPLIED);
	HPX_ASSERT(of_body == HPX_RULING_APPLIED || of_body == HPX_RULING_DECLINED ||
		   of_body == HPX_RULING_UNCLEAR);
	if (hpx_json_tree_read(body, &hpx_json_limits_default, NULL, 0, &tree) == HPX_OK)
		hpx_json_tree_done(&tree);
	else
		HPX_ASSERT(of_body == HPX_RULING_UNCLEAR);
	return 0;
}
