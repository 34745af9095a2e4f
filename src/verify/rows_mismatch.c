/* One key, another request: another body, query, path, method, endpoint or tenant never
 * gets the answer that belongs to the first. Another Host, and methods in another
 * spelling, are in rows_head.c. */
#include <inttypes.h>

#include "verify/row_check.h"

static bool is_mismatch(enum hpx_dialect dialect, unsigned status)
{
	return (status == 422 && hpx_dialects[dialect].mismatch_422) ||
	       (status == 400 && hpx_dialects[dialect].mismatch_400);
}

/* A new operation, answered by a 2xx. NULL: the verdict is given. */
static const struct hpx_verify_exchange *execute_main(struct hpx_check *check, struct hpx_verify_op **ret_intent)
{
	*ret_intent = hpx_check_op_new(check, HPX_REQUEST_main);
	return *ret_intent != NULL ? hpx_check_execute(check, *ret_intent) : NULL;
}

void hpx_row_mismatch_body(struct hpx_check *check)
{
	enum hpx_dialect dialect = hpx_verify_dialect(check->run);
	struct hpx_verify_op *op;
	struct hpx_span body;

	hpx_check_expect(check, "%s, and no second effect",
			 !hpx_dialects[dialect].mismatch_400 ? "422" :
			 !hpx_dialects[dialect].mismatch_422 ? "400" :
							       "422 or 400");
	const struct hpx_verify_exchange *first = execute_main(check, &op);
	if (first == NULL || !hpx_check_other_body(check, op, &body))
		return;
	const struct hpx_verify_exchange *other =
		hpx_check_send(check, &(struct hpx_verify_variant){ .op = op, .body = body });
	if (other == NULL)
		return;
	if (!is_mismatch(dialect, other->status)) {
		hpx_check_broken(check, "another body under the key of #%u (#%u) was answered %s; %s",
				 first->number, other->number, hpx_check_describe(check, other),
				 hpx_check_describe_effects(check, op));
		hpx_check_blame_mismatch(check, op, first, other);
		return;
	}
	if (dialect == HPX_DIALECT_AUTO)
		hpx_verify_set_dialect(check->run, other->status == 422 ? HPX_DIALECT_IETF :
									  HPX_DIALECT_STRIPE);
	if (hpx_check_effects(check, op, 1))
		hpx_check_holds(check, "%s; %s", hpx_check_describe(check, other),
				hpx_check_describe_effects(check, op));
}

/* ---- original_kept ---- */

#define BATCH 4

/* Four at the same moment, so that 409s may be among their answers; then settled. */
static const struct hpx_verify_exchange *execute_in_batch(struct hpx_check *check, struct hpx_verify_op *op,
							  unsigned *ret_conflicts)
{
	struct hpx_verify_variant variants[BATCH];
	const struct hpx_verify_exchange *exchanges[BATCH];
	const struct hpx_verify_exchange *done = NULL;
	size_t sent = 0;

	for (size_t i = 0; i < BATCH; i++)
		variants[i] = (struct hpx_verify_variant){ .op = op };
	hpx_verify_send_concurrently(check->run, variants, BATCH, exchanges, &sent);
	*ret_conflicts = 0;
	for (size_t i = 0; i < sent; i++) {
		hpx_check_cite(check, exchanges[i]);
		*ret_conflicts += exchanges[i]->status == 409 ? 1 : 0;
		if (done == NULL && hpx_check_is_2xx(exchanges[i]))
			done = exchanges[i];
	}
	return done != NULL ? done : hpx_check_settle(check, &variants[0]);
}

void hpx_row_original_kept(struct hpx_check *check)
{
	struct hpx_span body;
	unsigned conflicts;

	hpx_check_expect(check, "after a refusal of another body, and after 409s, the request still gets its own answer");
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_main);
	if (op == NULL || !hpx_check_other_body(check, op, &body))
		return;
	const struct hpx_verify_exchange *first = execute_in_batch(check, op, &conflicts);
	if (first == NULL)
		return;
	const struct hpx_verify_exchange *other =
		hpx_check_send(check, &(struct hpx_verify_variant){ .op = op, .body = body });
	if (other == NULL)
		return;
	const struct hpx_verify_exchange *again =
		hpx_check_send(check, &(struct hpx_verify_variant){ .op = op });
	if (again != NULL && hpx_check_same(check, first, again, "the original request"))
		hpx_check_holds(check, "%s after %u for another body and %u times 409",
				hpx_check_describe(check, again), other->status, conflicts);
}

/* ---- the parts of a request ---- */

void hpx_row_mismatch_query(struct hpx_check *check)
{
	struct hpx_verify_op *op;

	hpx_check_expect(check, "4xx, and no second effect, with one query parameter more");
	const struct hpx_verify_exchange *first = execute_main(check, &op);
	if (first == NULL)
		return;
	bool has_query = hpx_span_index(op->path, '?') < op->path.len;
	struct hpx_span path = hpx_arena_printf(hpx_verify_arena(check->run), "%.*s%shapax_verify=1",
						HPX_SPAN_ARG(op->path), has_query ? "&" : "?");
	const struct hpx_verify_exchange *other =
		hpx_check_send(check, &(struct hpx_verify_variant){ .op = op, .path = path });
	if (other == NULL)
		return;
	if (hpx_check_refused(check, op, other, "another query", 1))
		hpx_check_holds(check, "%s; %s", hpx_check_describe(check, other),
				hpx_check_describe_effects(check, op));
	hpx_check_blame_mismatch(check, op, first, other);
}

/* Refused, not found, or executed by itself: any answer but the first's. */
static void check_own(struct hpx_check *check, const struct hpx_verify_variant *variant,
		      const struct hpx_verify_exchange *first, const char *what)
{
	const struct hpx_verify_exchange *other = hpx_check_send(check, variant);

	if (other != NULL && hpx_check_own_answer(check, variant->op, first, other, what))
		hpx_check_holds(check, "%s", hpx_check_describe(check, other));
}

void hpx_row_mismatch_path(struct hpx_check *check)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(check->run);
	struct hpx_verify_op *op;
	struct hpx_span path;

	hpx_check_expect(check, "4xx, or an answer of its own, never the first one's");
	const struct hpx_verify_exchange *first = execute_main(check, &op);
	if (first == NULL)
		return;
	if (spec->requests[HPX_REQUEST_other].given) {
		path = hpx_verify_op_fill(check->run, op, spec->requests[HPX_REQUEST_other].path);
	} else {
		size_t end = hpx_span_index(op->path, '?');
		path = hpx_arena_printf(hpx_verify_arena(check->run), "%.*s/hapax-verify%.*s",
					HPX_SPAN_ARG(hpx_span_first(op->path, end)),
					HPX_SPAN_ARG(hpx_span_skip(op->path, end)));
	}
	check_own(check, &(struct hpx_verify_variant){ .op = op, .path = path }, first,
		  "the request on another path");
}

void hpx_row_mismatch_method(struct hpx_check *check)
{
	struct hpx_verify_op *op;

	hpx_check_expect(check, "4xx, or an answer of its own, never the first one's");
	const struct hpx_verify_exchange *first = execute_main(check, &op);
	if (first == NULL)
		return;
	bool patch = hpx_span_eq(op->method, HPX_SPAN("PATCH"));
	struct hpx_span method = patch ? HPX_SPAN("PUT") : HPX_SPAN("PATCH");
	check_own(check, &(struct hpx_verify_variant){ .op = op, .method = method }, first,
		  patch ? "the request as PUT" : "the request as PATCH");
}

/* Sent again, the request gets the same answer as before: a 2xx, or a refusal for its
 * key. */
static bool same_again(struct hpx_check *check, const struct hpx_verify_variant *variant,
		       const struct hpx_verify_exchange *answer, const char *what)
{
	const struct hpx_verify_exchange *again = hpx_check_send(check, variant);

	if (again == NULL)
		return false;
	/* A refusal may contain a time or a request id: its status is enough. */
	if (!hpx_check_is_2xx(answer) && again->status == answer->status)
		return true;
	return hpx_check_same(check, answer, again, what);
}

void hpx_row_other_endpoint(struct hpx_check *check)
{
	hpx_check_expect(check, "`other` under the key of the first: 4xx, or an answer of its own; each retry gets its own");
	if (!hpx_check_has_request(check, HPX_REQUEST_other))
		return;
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_main);
	struct hpx_verify_op *other = op != NULL ? hpx_check_op_new(check, HPX_REQUEST_other) : NULL;
	const struct hpx_verify_exchange *first = other != NULL ? hpx_check_execute(check, op) : NULL;
	if (first == NULL)
		return;
	/* With the variables of the first, so that only the endpoint tells them apart
	 * where their bodies are alike. */
	memcpy(other->key, op->key, sizeof(other->key));
	const struct hpx_verify_request *template =
		&hpx_verify_spec_of(check->run)->requests[HPX_REQUEST_other];
	struct hpx_verify_variant variant = {
		.op = other,
		.path = hpx_verify_op_fill(check->run, op, template->path),
		.body = hpx_verify_op_fill(check->run, op, template->body),
	};
	const struct hpx_verify_exchange *second = hpx_check_send(check, &variant);
	if (second == NULL)
		return;
	if (second->status >= 500) {
		hpx_check_broken(check, "`other` (#%u) was answered %s", second->number,
				 hpx_check_describe(check, second));
		return;
	}
	if (hpx_check_own_answer(check, op, first, second, "`other`") &&
	    same_again(check, &(struct hpx_verify_variant){ .op = op }, first, "the first again") &&
	    same_again(check, &variant, second, "`other` again"))
		hpx_check_holds(check, "%s", hpx_check_describe(check, second));
}

/* ---- tenants ---- */

static bool count_both(struct hpx_check *check, const struct hpx_verify_op *op, uint64_t *ret_first,
		       uint64_t *ret_second)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE] = "";

	if (!hpx_check_count_effects(check, op, ret_first))
		return false;
	if (hpx_verify_effects_of_second(check->run, op, ret_second, problem) == HPX_OK)
		return true;
	return hpx_check_undecided(check, "the second tenant's effects cannot be counted: %s", problem);
}

/* One effect each: each tenant sees its own, or both see both. */
static bool one_each(struct hpx_check *check, const struct hpx_verify_op *op)
{
	uint64_t first = 0;
	uint64_t second = 0;

	if (!hpx_verify_counts_effects(check->run) || !hpx_check_counts_per_op(check))
		return true;
	for (unsigned i = 0;; i++) {
		if (!count_both(check, op, &first, &second))
			return false;
		if (first == second && (first == 1 || first == 2))
			return true;
		if (first > 2 || second > 2 || i == HPX_CHECK_RECOUNTS_MAX)
			break;
		hpx_verify_pause(check->run, HPX_CHECK_RECOUNT_MS);
	}
	if (first > 1 || second > 1)
		hpx_check_blame(check, HPX_GUARANTEE_ONCE,
				"Each customer gets the right answer, and one of them pays twice.");
	return hpx_check_broken(check, "the first tenant sees %" PRIu64 " effects and the second %" PRIu64 ", where each should see its own or both should see two",
				first, second);
}

void hpx_row_tenants(struct hpx_check *check)
{
	hpx_check_expect(check, "the second tenant's request is executed, and each gets its own answer again; one effect each");
	if (hpx_verify_spec_of(check->run)->tenant_header_count == 0) {
		hpx_check_not_applicable(check, "the description has no second tenant");
		return;
	}
	struct hpx_verify_op *op;
	const struct hpx_verify_exchange *first = execute_main(check, &op);
	if (first == NULL)
		return;
	struct hpx_verify_variant theirs = { .op = op, .second_tenant = true };
	const struct hpx_verify_exchange *second = hpx_check_send(check, &theirs);
	if (second == NULL)
		return;
	if (!hpx_check_is_2xx(second)) {
		bool stranger = second->status == 401 || second->status == 403;
		hpx_check_verdict(check, stranger ? HPX_ROW_UNDECIDED : HPX_ROW_BROKEN,
				  "the second tenant (#%u) was answered %s", second->number,
				  hpx_check_describe(check, second));
		return;
	}
	if (hpx_check_own_answer(check, op, first, second, "the second tenant") &&
	    same_again(check, &(struct hpx_verify_variant){ .op = op }, first, "the first tenant again") &&
	    same_again(check, &theirs, second, "the second tenant again") &&
	    one_each(check, op))
		hpx_check_holds(check, "%s for the first, %s for the second",
				hpx_check_describe(check, first), hpx_check_describe(check, second));
}
