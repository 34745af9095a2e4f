/* One key, another request: another body, query, path, method, endpoint or
 * tenant never gets the answer that belongs to the first. What is asked under
 * another Host, or in another spelling, is in rows_head.c. */
#include <inttypes.h>

#include "verify/rows.h"

static bool is_mismatch(enum hpx_dialect dialect, unsigned status)
{
	return (status == 422 && dialect != HPX_DIALECT_STRIPE) ||
	       (status == 400 && dialect != HPX_DIALECT_IETF);
}

/* A new intent that is done. NULL: the verdict is given. */
static const struct hpx_exchange *do_main(struct hpx_judge *judge, struct hpx_intent **ret_intent)
{
	*ret_intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	return *ret_intent != NULL ? hpx_judge_do(judge, *ret_intent) : NULL;
}

void hpx_row_mismatch_body(struct hpx_judge *judge)
{
	enum hpx_dialect dialect = hpx_verify_dialect(judge->run);
	struct hpx_intent *intent;
	struct hpx_span body;

	hpx_judge_expects(judge, "%s, and no second effect",
			  dialect == HPX_DIALECT_IETF   ? "422" :
			  dialect == HPX_DIALECT_STRIPE ? "400" :
							  "422 or 400");
	const struct hpx_exchange *first = do_main(judge, &intent);
	if (first == NULL || !hpx_judge_other_body(judge, intent, &body))
		return;
	const struct hpx_exchange *other =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent, .body = body });
	if (other == NULL)
		return;
	if (!is_mismatch(dialect, other->status)) {
		hpx_judge_broken(judge, "another body under the key of #%u (#%u) was answered %s; %s",
				 first->number, other->number, hpx_judge_words(judge, other),
				 hpx_judge_effect_words(judge, intent));
		hpx_judge_blames_mismatch(judge, intent, first, other);
		return;
	}
	if (dialect == HPX_DIALECT_AUTO)
		hpx_verify_found_dialect(judge->run, other->status == 422 ? HPX_DIALECT_IETF :
									    HPX_DIALECT_STRIPE);
	if (hpx_judge_effects(judge, intent, 1))
		hpx_judge_holds(judge, "%s; %s", hpx_judge_words(judge, other),
				hpx_judge_effect_words(judge, intent));
}

/* ---- original_kept ---- */

#define CROWD 4

/* Four at once, so that a 409 may be among their answers; then settled. */
static const struct hpx_exchange *do_in_a_crowd(struct hpx_judge *judge, struct hpx_intent *intent,
						unsigned *ret_conflicts)
{
	struct hpx_sending sendings[CROWD];
	const struct hpx_exchange *exchanges[CROWD];
	const struct hpx_exchange *done = NULL;
	size_t sent = 0;

	for (size_t i = 0; i < CROWD; i++)
		sendings[i] = (struct hpx_sending){ .intent = intent };
	hpx_verify_send_together(judge->run, sendings, CROWD, exchanges, &sent);
	*ret_conflicts = 0;
	for (size_t i = 0; i < sent; i++) {
		hpx_judge_cite(judge, exchanges[i]);
		*ret_conflicts += exchanges[i]->status == 409 ? 1 : 0;
		if (done == NULL && hpx_exchange_is_done(exchanges[i]))
			done = exchanges[i];
	}
	return done != NULL ? done : hpx_judge_settle(judge, &sendings[0]);
}

void hpx_row_original_kept(struct hpx_judge *judge)
{
	struct hpx_span body;
	unsigned conflicts;

	hpx_judge_expects(judge, "behind a refusal of another body, and 409s, the request still gets its own answer");
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	if (intent == NULL || !hpx_judge_other_body(judge, intent, &body))
		return;
	const struct hpx_exchange *first = do_in_a_crowd(judge, intent, &conflicts);
	if (first == NULL)
		return;
	const struct hpx_exchange *other =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent, .body = body });
	if (other == NULL)
		return;
	const struct hpx_exchange *again =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent });
	if (again != NULL && hpx_judge_same(judge, first, again, "the original request"))
		hpx_judge_holds(judge, "%s behind %u for another body and %u times 409",
				hpx_judge_words(judge, again), other->status, conflicts);
}

/* ---- the parts of a request ---- */

void hpx_row_mismatch_query(struct hpx_judge *judge)
{
	struct hpx_intent *intent;

	hpx_judge_expects(judge, "4xx, and no second effect, with one query parameter more");
	const struct hpx_exchange *first = do_main(judge, &intent);
	if (first == NULL)
		return;
	bool has_query = hpx_span_index(intent->path, '?') < intent->path.len;
	struct hpx_span path = hpx_arena_printf(hpx_verify_arena(judge->run), "%.*s%shapax_verify=1",
						HPX_SPAN_ARG(intent->path), has_query ? "&" : "?");
	const struct hpx_exchange *other =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent, .path = path });
	if (other == NULL)
		return;
	if (hpx_judge_refused(judge, intent, other, "another query", 1))
		hpx_judge_holds(judge, "%s; %s", hpx_judge_words(judge, other),
				hpx_judge_effect_words(judge, intent));
	hpx_judge_blames_mismatch(judge, intent, first, other);
}

/* Refused, not known, or done by itself: anything but the first's answer. */
static void judge_own(struct hpx_judge *judge, const struct hpx_sending *sending,
		      const struct hpx_exchange *first, const char *what)
{
	const struct hpx_exchange *other = hpx_judge_send(judge, sending);

	if (other != NULL && hpx_judge_own(judge, sending->intent, first, other, what))
		hpx_judge_holds(judge, "%s", hpx_judge_words(judge, other));
}

void hpx_row_mismatch_path(struct hpx_judge *judge)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(judge->run);
	struct hpx_intent *intent;
	struct hpx_span path;

	hpx_judge_expects(judge, "4xx, or an answer of its own, never the first one's");
	const struct hpx_exchange *first = do_main(judge, &intent);
	if (first == NULL)
		return;
	if (spec->requests[HPX_REQUEST_other].given) {
		path = hpx_verify_fill(judge->run, intent, spec->requests[HPX_REQUEST_other].path);
	} else {
		size_t end = hpx_span_index(intent->path, '?');
		path = hpx_arena_printf(hpx_verify_arena(judge->run), "%.*s/hapax-verify%.*s",
					HPX_SPAN_ARG(hpx_span_first(intent->path, end)),
					HPX_SPAN_ARG(hpx_span_skip(intent->path, end)));
	}
	judge_own(judge, &(struct hpx_sending){ .intent = intent, .path = path }, first,
		  "the request on another path");
}

void hpx_row_mismatch_method(struct hpx_judge *judge)
{
	struct hpx_intent *intent;

	hpx_judge_expects(judge, "4xx, or an answer of its own, never the first one's");
	const struct hpx_exchange *first = do_main(judge, &intent);
	if (first == NULL)
		return;
	bool patch = hpx_span_eq(intent->method, HPX_SPAN("PATCH"));
	struct hpx_span method = patch ? HPX_SPAN("PUT") : HPX_SPAN("PATCH");
	judge_own(judge, &(struct hpx_sending){ .intent = intent, .method = method }, first,
		  patch ? "the request as PUT" : "the request as PATCH");
}

/* Again, and the same answer as before: a 2xx, or a refusal for its key. */
static bool same_again(struct hpx_judge *judge, const struct hpx_sending *sending,
		       const struct hpx_exchange *answer, const char *what)
{
	const struct hpx_exchange *again = hpx_judge_send(judge, sending);

	if (again == NULL)
		return false;
	/* A refusal may name the moment or the request: its status is enough. */
	if (!hpx_exchange_is_done(answer) && again->status == answer->status)
		return true;
	return hpx_judge_same(judge, answer, again, what);
}

void hpx_row_other_endpoint(struct hpx_judge *judge)
{
	hpx_judge_expects(judge, "`other` under the key of the first: 4xx, or an answer of its own; each retry gets its own");
	if (!hpx_judge_has(judge, HPX_REQUEST_other))
		return;
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	struct hpx_intent *other = intent != NULL ? hpx_judge_intend(judge, HPX_REQUEST_other) : NULL;
	const struct hpx_exchange *first = other != NULL ? hpx_judge_do(judge, intent) : NULL;
	if (first == NULL)
		return;
	/* With the first one's variables, so that nothing but the endpoint tells
	 * them apart where their bodies are alike. */
	memcpy(other->key, intent->key, sizeof(other->key));
	const struct hpx_verify_request *template =
		&hpx_verify_spec_of(judge->run)->requests[HPX_REQUEST_other];
	struct hpx_sending sending = {
		.intent = other,
		.path = hpx_verify_fill(judge->run, intent, template->path),
		.body = hpx_verify_fill(judge->run, intent, template->body),
	};
	const struct hpx_exchange *second = hpx_judge_send(judge, &sending);
	if (second == NULL)
		return;
	if (second->status >= 500) {
		hpx_judge_broken(judge, "`other` (#%u) was answered %s", second->number,
				 hpx_judge_words(judge, second));
		return;
	}
	if (hpx_judge_own(judge, intent, first, second, "`other`") &&
	    same_again(judge, &(struct hpx_sending){ .intent = intent }, first, "the first again") &&
	    same_again(judge, &sending, second, "`other` again"))
		hpx_judge_holds(judge, "%s", hpx_judge_words(judge, second));
}

/* ---- tenants ---- */

static bool look(struct hpx_judge *judge, const struct hpx_intent *intent, uint64_t *ret_first,
		 uint64_t *ret_second)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE] = "";

	if (!hpx_judge_count(judge, intent, ret_first))
		return false;
	if (hpx_verify_effects_of_second(judge->run, intent, ret_second, problem) == HPX_OK)
		return true;
	return hpx_judge_undecided(judge, "the second tenant's effects cannot be counted: %s", problem);
}

/* One effect each: a tenant sees its own, or both see both. */
static bool one_each(struct hpx_judge *judge, const struct hpx_intent *intent)
{
	uint64_t first = 0;
	uint64_t second = 0;

	if (!hpx_verify_counts(judge->run) || !hpx_judge_counts_apart(judge))
		return true;
	for (unsigned i = 0;; i++) {
		if (!look(judge, intent, &first, &second))
			return false;
		if (first == second && (first == 1 || first == 2))
			return true;
		if (first > 2 || second > 2 || i == HPX_JUDGE_LOOKS_MAX)
			break;
		hpx_verify_pause(judge->run, HPX_JUDGE_LOOK_AGAIN_MS);
	}
	if (first > 1 || second > 1)
		hpx_judge_blames(judge, HPX_GUARANTEE_ONCE,
				 "Each customer gets the right answer, and one of them pays twice.");
	return hpx_judge_broken(judge, "the first tenant sees %" PRIu64 " effects and the second %" PRIu64 ", where each should see its own or both should see two",
				first, second);
}

void hpx_row_tenants(struct hpx_judge *judge)
{
	hpx_judge_expects(judge, "the second tenant's request is executed, and each gets its own answer again; one effect each");
	if (hpx_verify_spec_of(judge->run)->tenant_header_count == 0) {
		hpx_judge_not_applicable(judge, "the description has no second tenant");
		return;
	}
	struct hpx_intent *intent;
	const struct hpx_exchange *first = do_main(judge, &intent);
	if (first == NULL)
		return;
	struct hpx_sending theirs = { .intent = intent, .second_tenant = true };
	const struct hpx_exchange *second = hpx_judge_send(judge, &theirs);
	if (second == NULL)
		return;
	if (!hpx_exchange_is_done(second)) {
		bool stranger = second->status == 401 || second->status == 403;
		hpx_judge_says(judge, stranger ? HPX_ROW_UNDECIDED : HPX_ROW_BROKEN,
			       "the second tenant (#%u) was answered %s", second->number,
			       hpx_judge_words(judge, second));
		return;
	}
	if (hpx_judge_own(judge, intent, first, second, "the second tenant") &&
	    same_again(judge, &(struct hpx_sending){ .intent = intent }, first, "the first tenant again") &&
	    same_again(judge, &theirs, second, "the second tenant again") &&
	    one_each(judge, intent))
		hpx_judge_holds(judge, "%s for the first, %s for the second",
				hpx_judge_words(judge, first), hpx_judge_words(judge, second));
}
