/* Counting effects: by a GET of the description, whose answer has a number or a list. */
#include "verify/run_state.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/status.h"
#include "core/json.h"
#include "verify/spec.h"

#define RESOURCE_MAX 1024

bool hpx_verify_counts_effects(const struct hpx_verify *run)
{
	return run->spec->effects_path.len > 0;
}

/* ---- the count in an answer ---- */

static enum hpx_status count_node(const struct hpx_json_tree *tree, uint32_t at,
				  uint64_t *ret_count)
{
	const struct hpx_json_node *node = &tree->nodes[at];

	if (node->kind == HPX_JSON_NUMBER)
		return hpx_span_u64(node->text, INT64_MAX, ret_count) ? HPX_OK : HPX_INVALID;
	if (node->kind != HPX_JSON_ARRAY)
		return HPX_INVALID;
	*ret_count = 0;
	for (uint32_t i = node->first; i != HPX_JSON_NONE; i = tree->nodes[i].next)
		++*ret_count;
	return HPX_OK;
}

static enum hpx_status count_at(const struct hpx_json_tree *tree, struct hpx_span pointer,
				uint64_t *ret_count, char *problem)
{
	struct hpx_json_pointers pointers;
	enum hpx_status status = hpx_json_pointers_init(&pointers, &pointer, 1);

	if (status != HPX_OK)
		return status;
	uint32_t at = pointers.whole ? 0 : hpx_json_tree_at(tree, &pointers, 0);
	hpx_json_pointers_done(&pointers);
	if (at != HPX_JSON_NONE && count_node(tree, at, ret_count) == HPX_OK)
		return HPX_OK;
	snprintf(problem, HPX_VERIFY_PROBLEM_SIZE,
		 "%s at \"%.*s\" in the answer that counts effects; a whole number or a list "
		 "is expected there",
		 at == HPX_JSON_NONE ? "there is nothing" : "there is something else",
		 HPX_SPAN_ARG(pointer));
	return HPX_INVALID;
}

enum hpx_status hpx_effect_read(struct hpx_span body, struct hpx_span pointer,
				uint64_t *ret_count, char problem[HPX_VERIFY_PROBLEM_SIZE])
{
	struct hpx_json_tree tree;
	enum hpx_status status =
		hpx_json_tree_read(body, &hpx_json_limits_default, NULL, 0, &tree);

	if (status != HPX_OK) {
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE,
			 "the answer that counts effects is not JSON");
		return HPX_INVALID;
	}
	status = count_at(&tree, pointer, ret_count, problem);
	hpx_json_tree_done(&tree);
	return status;
}

/* ---- the request ---- */

static enum hpx_status count_of_answer(struct hpx_verify *run, const struct hpx_verify_exchange *exchange,
				       uint64_t *ret_count, char *problem)
{
	const struct hpx_verify_spec *spec = run->spec;

	if (exchange->end != HPX_EXCHANGE_ANSWERED) {
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE, "effects could not be counted: %s",
			 exchange->problem);
		return HPX_UNAVAILABLE;
	}
	if (exchange->status == 404 && hpx_template_varies(spec->effects_path)) {
		*ret_count = 0;
		return HPX_OK;
	}
	if (exchange->status < 200 || exchange->status > 299) {
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE,
			 "effects could not be counted: the GET was answered by %u",
			 exchange->status);
		return HPX_INVALID;
	}
	if (exchange->body.len < exchange->body_bytes) {
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE,
			 "the answer that counts effects is larger than 4 MiB");
		return HPX_TOO_LARGE;
	}
	return hpx_effect_read(exchange->body, spec->effects_count, ret_count, problem);
}

static enum hpx_status count_now(struct hpx_verify *run, const struct hpx_verify_op *op,
				 bool second_tenant, uint64_t *ret_count, char *problem)
{
	struct hpx_verify_op copy = *op;
	static const struct hpx_span no_key;
	const struct hpx_verify_variant variant = {
		.op = &copy,
		.key_values = &no_key,
		.key_count = 0,
		.method = HPX_SPAN("GET"),
		.path = hpx_verify_op_path(run, op, run->spec->effects_path),
		.body = HPX_SPAN(""),
		.content_type = HPX_SPAN(""),
		.second_tenant = second_tenant,
	};

	HPX_ASSERT(hpx_verify_counts_effects(run) && (!second_tenant || run->spec->tenant_header_count > 0));
	if (variant.path.ptr == NULL) {
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE, "no memory to count effects");
		return HPX_NOMEM;
	}
	return count_of_answer(run, hpx_verify_send_retry_429(run, &variant), ret_count, problem);
}

void hpx_effect_count_before(struct hpx_verify *run, struct hpx_verify_op *op)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE];

	op->effects_before = HPX_EFFECTS_UNKNOWN;
	if (hpx_verify_counts_effects(run))
		(void)count_now(run, op, false, &op->effects_before, problem);
}

enum hpx_status hpx_verify_effects(struct hpx_verify *run, const struct hpx_verify_op *op,
				   uint64_t *ret_effects, char problem[HPX_VERIFY_PROBLEM_SIZE])
{
	uint64_t now;

	if (!hpx_verify_counts_effects(run)) {
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE,
			 "the description does not say how effects are counted");
		return HPX_UNSUPPORTED;
	}
	enum hpx_status status = count_now(run, op, false, &now, problem);
	if (status != HPX_OK)
		return status;
	if (op->effects_before == HPX_EFFECTS_UNKNOWN) {
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE,
			 "effects could not be counted before the first request");
		return HPX_UNAVAILABLE;
	}
	if (now < op->effects_before) {
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE,
			 "there are fewer effects than before: %" PRIu64 " and then %" PRIu64
			 "; does anything else use this server?",
			 op->effects_before, now);
		return HPX_CONFLICT;
	}
	*ret_effects = now - op->effects_before;
	return HPX_OK;
}

enum hpx_status hpx_verify_effects_of_second(struct hpx_verify *run,
					     const struct hpx_verify_op *op,
					     uint64_t *ret_effects,
					     char problem[HPX_VERIFY_PROBLEM_SIZE])
{
	return count_now(run, op, true, ret_effects, problem);
}

struct hpx_span hpx_verify_resource(struct hpx_verify *run, const struct hpx_verify_exchange *exchange)
{
	struct hpx_json_scalar scalar;

	if (run->spec->resource.len == 0 || exchange->body.len < exchange->body_bytes)
		return hpx_span("", 0);
	enum hpx_status status = hpx_json_lookup(exchange->body, run->spec->resource,
						 RESOURCE_MAX, &run->row_arena, &scalar);
	return status == HPX_OK ? scalar.text : hpx_span("", 0);
}
