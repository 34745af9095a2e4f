/* From what was read to findings: gaps of the description, and where description,
 * configuration and traffic say different things. */
#include "base/status.h"
#include "coverage/coverage.h"

static void judge_gap(struct hpx_coverage *coverage, const struct hpx_covered_operation *operation)
{
	const struct hpx_declared_key *key = &operation->key;
	enum hpx_finding_rule rule = key->class == HPX_CLASS_WEAK  ? HPX_RULE_KEY_WEAK :
				     key->class == HPX_CLASS_PROSE ? HPX_RULE_KEY_IN_PROSE :
								     HPX_RULE_KEY_ABSENT;

	if (hpx_coverage_is_covered(operation) || !operation->declared)
		return;
	if (key->name.len > 0)
		hpx_coverage_find(coverage, rule, operation, key->place, "%.*s: %.*s",
				  HPX_SPAN_ARG(key->name), HPX_SPAN_ARG(key->reason));
	else
		hpx_coverage_find(coverage, rule, operation, key->place, "%.*s",
				  HPX_SPAN_ARG(key->reason));
}

static void judge_retries(struct hpx_coverage *coverage,
			  const struct hpx_covered_operation *operation)
{
	if (operation->retries.file.ptr == NULL || hpx_coverage_is_covered(operation))
		return;
	hpx_coverage_find(coverage, HPX_RULE_RETRIES_WITHOUT_KEY, operation, operation->retries,
			  "x-speakeasy-retries makes SDKs send it again, and nothing says that "
			  "it is the same one");
}

void hpx_coverage_judge(struct hpx_coverage *coverage)
{
	HPX_ASSERT(coverage->finding_count <= HPX_COVERAGE_FINDINGS_MAX);
	for (size_t i = 0; i < coverage->operation_count; i++) {
		judge_gap(coverage, &coverage->operations[i]);
		judge_retries(coverage, &coverage->operations[i]);
	}
}
