/* One key, and another head: the method in another spelling or in a header, headers
 * that Connection names, somebody else's credentials, another Host.
 *
 * Whether such a change means anything is the API's decision: an API that knows no
 * X-HTTP-Method-Override is asked for the same thing twice, and its replay is right. So
 * where a changed request gets the first one's answer, it is sent once more under a key
 * of its own. If it is not executed then, or executed where the effects' GET does not
 * see it, it is another request, and must not get the answer to the first. */
#include <inttypes.h>
#include <stdio.h>

#include "verify/row_check.h"
#include "verify/verify_request.h"

/* What a changed request means to the API. */
enum change {
	CHANGE_TOLD_APART,    /* it has an answer of its own, or is refused */
	CHANGE_MEANS_NOTHING, /* it got the first one's answer, and is the same request */
	CHANGE_JUDGED,        /* the verdict is given */
};

/* Whether the effect of a request that was executed under its own key is counted. */
static enum change effect_is_counted(struct hpx_check *check, const struct hpx_verify_op *op)
{
	uint64_t effects = 0;

	for (unsigned look = 0; look <= HPX_CHECK_RECOUNTS_MAX; look++) {
		if (!hpx_check_count_effects(check, op, &effects))
			return CHANGE_JUDGED;
		if (effects > 0 || !hpx_verify_counts_effects(check->run))
			return CHANGE_MEANS_NOTHING;
		hpx_verify_pause(check->run, HPX_CHECK_RECOUNT_MS);
	}
	return CHANGE_TOLD_APART;
}

/* Sends the changed request under a key of its own. */
static enum change send_alone(struct hpx_check *check, const struct hpx_verify_variant *changed,
			      const struct hpx_verify_exchange **ret_answer)
{
	const struct hpx_verify_op *last = check->op;
	struct hpx_verify_variant alone = *changed;

	alone.op = hpx_check_op_new(check, HPX_REQUEST_main);
	*ret_answer = alone.op != NULL ? hpx_check_send(check, &alone) : NULL;
	check->op = last;
	if (*ret_answer == NULL)
		return CHANGE_JUDGED;
	if ((*ret_answer)->status >= 500) {
		hpx_check_undecided(check, "under a key of its own (#%u) it was answered %s",
				    (*ret_answer)->number, hpx_check_describe(check, *ret_answer));
		return CHANGE_JUDGED;
	}
	return hpx_check_is_2xx(*ret_answer) ? effect_is_counted(check, alone.op) :
					       CHANGE_TOLD_APART;
}

/* Classifies a changed request that got `other` under the key of the first. */
static enum change check_answer(struct hpx_check *check, const struct hpx_verify_variant *changed,
				const struct hpx_verify_exchange *first,
				const struct hpx_verify_exchange *other, const char *what)
{
	const struct hpx_verify_exchange *alone;

	if (hpx_check_whose_answer(check, first, other) == HPX_OWNER_SELF)
		return CHANGE_TOLD_APART;
	enum change change = send_alone(check, changed, &alone);
	if (change != CHANGE_TOLD_APART)
		return change;
	hpx_check_blame(check, HPX_GUARANTEE_FOREIGN, NULL);
	hpx_check_broken(check, "%s (#%u) got the answer of the first (#%u); under a key of its own (#%u) it is answered %s%s",
			 what, other->number, first->number, alone->number,
			 hpx_check_describe(check, alone),
			 hpx_check_is_2xx(alone) ? ", and its effect is not to be seen" : "");
	return CHANGE_JUDGED;
}

static const struct hpx_verify_exchange *execute_first(struct hpx_check *check, struct hpx_verify_op **ret_intent)
{
	*ret_intent = hpx_check_op_new(check, HPX_REQUEST_main);
	return *ret_intent != NULL ? hpx_check_execute(check, *ret_intent) : NULL;
}

/* ---- method_case ---- */

static struct hpx_span lower(struct hpx_check *check, struct hpx_span method)
{
	char *text = hpx_arena_alloc(hpx_verify_arena(check->run), method.len + 1);

	for (size_t i = 0; text != NULL && i < method.len; i++)
		text[i] = (char)(method.ptr[i] | (method.ptr[i] >= 'A' && method.ptr[i] <= 'Z' ? 0x20 : 0));
	return text != NULL ? hpx_span(text, method.len) : method;
}

/* The request in lower case was not executed. A server may also close the connection on
 * a method that it does not know. */
static void check_not_done(struct hpx_check *check, const struct hpx_verify_op *op,
			   const struct hpx_verify_exchange *answer)
{
	bool refused = hpx_check_is_4xx(answer) || answer->status == 501;

	if (!refused && !hpx_verify_counts_effects(check->run))
		hpx_check_undecided(check, "#%u: %s; whether anything happened cannot be seen (give `effects`)",
				    answer->number, hpx_check_describe(check, answer));
	else if (hpx_check_effects(check, op, 0))
		hpx_check_holds(check, "%s; %s", hpx_check_describe(check, answer),
				hpx_check_describe_effects(check, op));
}

void hpx_row_method_case(struct hpx_check *check)
{
	hpx_check_expect(check, "the method in lower case is refused, or done once for its key");
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_main);
	if (op == NULL)
		return;
	struct hpx_verify_variant whole = { .op = op };
	struct hpx_verify_variant small = { .op = op, .method = lower(check, op->method) };
	if (hpx_span_eq(small.method, op->method)) {
		hpx_check_not_applicable(check, "the method has no capital letter");
		return;
	}
	const struct hpx_verify_exchange *first = hpx_verify_send_retry_429(check->run, &small);
	hpx_check_cite(check, first);
	if (!hpx_check_is_2xx(first)) {
		if (first->end == HPX_EXCHANGE_ANSWERED || first->end == HPX_EXCHANGE_LOST)
			check_not_done(check, op, first);
		else
			hpx_check_undecided(check, "#%u: %s", first->number,
					    hpx_check_describe(check, first));
		return;
	}
	const struct hpx_verify_exchange *again = hpx_check_send(check, &small);
	if (again == NULL || !hpx_check_same(check, first, again, "the retry in lower case"))
		return;
	const struct hpx_verify_exchange *other = hpx_check_send(check, &whole);
	if (other != NULL &&
	    (hpx_check_is_4xx(other) ||
	     hpx_check_same(check, first, other, "the request in capitals")) &&
	    hpx_check_effects(check, op, 1))
		hpx_check_holds(check, "%s each time, then %u; %s", hpx_check_describe(check, first),
				other->status, hpx_check_describe_effects(check, op));
}

/* ---- method_override ---- */

void hpx_row_method_override(struct hpx_check *check)
{
	static const char *const names[] = { "X-HTTP-Method-Override", "X-HTTP-Method",
					     "X-Method-Override" };
	unsigned told_apart = 0;
	struct hpx_verify_op *op;

	hpx_check_expect(check, "another method in a header: 4xx, or an answer of its own, where the API heeds the header");
	const struct hpx_verify_exchange *first = execute_first(check, &op);
	if (first == NULL)
		return;
	/* As mismatch_method does: never a method that deletes. */
	bool patch = hpx_span_eq(op->method, HPX_SPAN("PATCH"));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct hpx_span line = hpx_arena_printf(hpx_verify_arena(check->run), "%s: %s",
							names[i], patch ? "PUT" : "PATCH");
		struct hpx_verify_variant changed = { .op = op, .line = line };
		const struct hpx_verify_exchange *other =
			line.ptr != NULL ? hpx_check_send(check, &changed) : NULL;

		if (other == NULL)
			return;
		enum change change = check_answer(check, &changed, first, other, line.ptr);
		if (change == CHANGE_JUDGED)
			return;
		told_apart += change == CHANGE_TOLD_APART ? 1 : 0;
	}
	if (told_apart > 0)
		hpx_check_holds(check, "%u of 3 such headers are told apart, the others mean nothing to the API",
				told_apart);
	else
		hpx_check_not_applicable(check, "the API takes no method from a header: with each of the three the request is done like any other");
}

/* ---- connection_named ---- */

/* One effect, where both requests got one answer. */
static bool check_named_effect(struct hpx_check *check, const struct hpx_verify_op *op,
			       const struct hpx_verify_exchange *const answers[3], const char *what)
{
	if (hpx_check_effects(check, op, 1))
		return true;
	if (check->result->verdict != HPX_ROW_BROKEN)
		return false;
	return hpx_check_broken(check, "%s (#%u) was answered %s; the request without that (#%u) got the same answer, with %s",
				what, answers[0]->number, hpx_check_describe(check, answers[0]),
				answers[2]->number, hpx_check_describe_effects(check, op));
}

/* Executed with the header named: once, and the request without that gets the same
 * answer, or is told apart from it. */
static bool check_named_done(struct hpx_check *check, const struct hpx_verify_op *op,
			     const struct hpx_verify_exchange *const answers[3], const char *what)
{
	bool once = !hpx_check_is_2xx(answers[1]) ||
		    hpx_check_same(check, answers[0], answers[1], what);

	if (once && (hpx_check_is_4xx(answers[2]) ||
		     (hpx_check_same(check, answers[0], answers[2], "the request without that") &&
		      check_named_effect(check, op, answers, what))))
		return true;
	bool again = !hpx_verify_counts_effects(check->run) || hpx_check_effects_exceed(check, op, 1);
	if (check->result->verdict == HPX_ROW_BROKEN)
		hpx_check_blame(check, again ? HPX_GUARANTEE_ONCE : HPX_GUARANTEE_FOREIGN, NULL);
	return false;
}

/* Not executed with the header named: then the request without that is executed, or
 * refused for its key, but not with the same answer. */
static bool check_named_refused(struct hpx_check *check, const struct hpx_verify_op *op,
				const struct hpx_verify_exchange *const answers[3], const char *what)
{
	const struct hpx_verify_exchange *refused = answers[1];
	const struct hpx_verify_exchange *own = answers[2];
	bool for_its_key = own->status == 400 || own->status == 409 || own->status == 422;

	if (hpx_check_is_2xx(own))
		return hpx_check_effects(check, op, 1);
	if (hpx_check_is_4xx(own) && for_its_key && !hpx_check_same_answer(refused, own))
		return true;
	hpx_check_blame(check, HPX_GUARANTEE_FOREIGN, NULL);
	return hpx_check_broken(check, "%s (#%u) was answered %s; the request without that, under the same key (#%u), is answered %s",
				what, refused->number, hpx_check_describe(check, refused), own->number,
				hpx_check_describe(check, own));
}

static bool check_named(struct hpx_check *check, struct hpx_span name)
{
	struct hpx_verify_op *op = hpx_check_op_new(check, HPX_REQUEST_main);
	struct hpx_span what = hpx_arena_printf(hpx_verify_arena(check->run), "Connection: close, %.*s",
						HPX_SPAN_ARG(hpx_span_first(name, 60)));
	const struct hpx_verify_exchange *answers[3];

	if (op == NULL || what.ptr == NULL)
		return false;
	struct hpx_verify_variant named = { .op = op, .connection = name };
	struct hpx_verify_variant whole = { .op = op };
	for (int i = 0; i < 3; i++) {
		answers[i] = hpx_check_send(check, i < 2 ? &named : &whole);
		if (answers[i] == NULL)
			return false;
	}
	return hpx_check_is_2xx(answers[0]) ?
		       check_named_done(check, op, answers, what.ptr) :
		       check_named_refused(check, op, answers, what.ptr);
}

void hpx_row_connection_named(struct hpx_check *check)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(check->run);
	const struct hpx_verify_request *request = &spec->requests[HPX_REQUEST_main];

	hpx_check_expect(check, "with a header named by Connection: refused, or done once; the request without that is done, or told apart");
	if (!check_named(check, spec->key_header))
		return;
	for (size_t i = 0; i < request->header_count; i++)
		if (!check_named(check, hpx_verify_line_name(request->headers[i])))
			return;
	hpx_check_holds(check, "%zu headers named, and none was lost", request->header_count + 1);
}

/* ---- foreign_caller ---- */

/* Headers that say who is calling, the most usual first. */
static const struct hpx_span caller_headers[] = {
	HPX_SPAN_INIT("Authorization"),
	HPX_SPAN_INIT("X-Api-Key"),
	HPX_SPAN_INIT("Cookie"),
	HPX_SPAN_INIT("X-Auth-Token"),
	HPX_SPAN_INIT("Private-Token"),
	HPX_SPAN_INIT("apikey"),
	HPX_SPAN_INIT("X-Access-Token"),
	HPX_SPAN_INIT("X-Forwarded-User"),
};

/* A token against request forgery does not say who is calling. */
static bool names_caller(const struct hpx_verify_spec *spec, struct hpx_span name)
{
	for (struct hpx_span rest = name; rest.len >= 4; rest = hpx_span_skip(rest, 1))
		if (hpx_span_istarts(rest, HPX_SPAN("csrf")) ||
		    hpx_span_istarts(rest, HPX_SPAN("xsrf")))
			return false;
	return hpx_redact_is_secret(spec, name);
}

static bool is_usual(struct hpx_span name)
{
	for (size_t i = 0; i < sizeof(caller_headers) / sizeof(caller_headers[0]); i++)
		if (hpx_span_ieq(name, caller_headers[i]))
			return true;
	return false;
}

/* Sends the request without its own credentials, and with a made-up one. */
static enum change try_foreign_caller(struct hpx_check *check, struct hpx_verify_op *op,
				      const struct hpx_verify_exchange *first, struct hpx_span name)
{
	const char *before = hpx_span_ieq(name, HPX_SPAN("Authorization")) ? "Bearer " :
			     hpx_span_ieq(name, HPX_SPAN("Cookie"))        ? "session=" :
									     "";
	struct hpx_arena *arena = hpx_verify_arena(check->run);
	struct hpx_span line = hpx_arena_printf(arena, "%.*s: %shapax-verify-%016" PRIx64,
						HPX_SPAN_ARG(name), before,
						hpx_verify_random(check->run));
	struct hpx_span what = hpx_arena_printf(arena, "somebody with a made-up %.*s",
						HPX_SPAN_ARG(hpx_span_first(name, 60)));
	struct hpx_verify_variant changed = { .op = op, .line = line, .without_credentials = true };
	const struct hpx_verify_exchange *other =
		line.ptr != NULL && what.ptr != NULL ? hpx_check_send(check, &changed) : NULL;

	if (other == NULL)
		return CHANGE_JUDGED;
	enum change change = check_answer(check, &changed, first, other, what.ptr);
	if (change == CHANGE_MEANS_NOTHING)
		hpx_check_not_applicable(check, "the API does the request for anybody: for %s as well (#%u)",
					 what.ptr, other->number);
	return change;
}

void hpx_row_foreign_caller(struct hpx_check *check)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(check->run);
	const struct hpx_verify_request *request = &spec->requests[HPX_REQUEST_main];
	size_t own = 0;
	size_t strangers = 0;
	struct hpx_verify_op *op;

	hpx_check_expect(check, "without the first one's credentials: 401, another 4xx, or an answer of its own");
	for (size_t i = 0; i < request->header_count; i++)
		own += names_caller(spec, hpx_verify_line_name(request->headers[i])) ? 1 : 0;
	if (own == 0) {
		hpx_check_not_applicable(check, "the request has no credentials");
		return;
	}
	const struct hpx_verify_exchange *first = execute_first(check, &op);
	if (first == NULL)
		return;
	for (size_t i = 0; i < request->header_count; i++) {
		struct hpx_span name = hpx_verify_line_name(request->headers[i]);

		if (!names_caller(spec, name) || is_usual(name))
			continue;
		strangers++;
		if (try_foreign_caller(check, op, first, name) != CHANGE_TOLD_APART)
			return;
	}
	for (size_t i = 0; i < sizeof(caller_headers) / sizeof(caller_headers[0]); i++, strangers++)
		if (try_foreign_caller(check, op, first, caller_headers[i]) != CHANGE_TOLD_APART)
			return;
	const struct hpx_verify_exchange *again =
		hpx_check_send(check, &(struct hpx_verify_variant){ .op = op });
	if (again != NULL && hpx_check_same(check, first, again, "the first caller again"))
		hpx_check_holds(check, "of %zu strangers none got the answer, and it is still the first one's",
				strangers);
}

/* ---- other_host ---- */

/* Executed again under another Host. One service that has two names has executed it
 * twice; two sites on one server have not. */
static void check_done_again(struct hpx_check *check, const struct hpx_verify_op *op,
			     const struct hpx_verify_exchange *first, const struct hpx_verify_exchange *other)
{
	uint64_t effects = 0;

	if (!hpx_verify_counts_effects(check->run)) {
		hpx_check_undecided(check, "under another Host (#%u) it is done again: %s; whether that is another site cannot be seen (give `effects`)",
				    other->number, hpx_check_describe(check, other));
		return;
	}
	for (unsigned look = 0; look <= HPX_CHECK_RECOUNTS_MAX; look++) {
		if (!hpx_check_count_effects(check, op, &effects))
			return;
		if (effects > 1)
			break;
		hpx_verify_pause(check->run, HPX_CHECK_RECOUNT_MS);
	}
	if (effects <= 1) {
		hpx_check_holds(check, "another Host is another site: %s", hpx_check_describe(check, other));
		return;
	}
	hpx_check_blame(check, HPX_GUARANTEE_ONCE, NULL);
	hpx_check_broken(check, "under another Host (#%u) the request of #%u is done again: %" PRIu64 " effects",
			 other->number, first->number, effects);
}

void hpx_row_other_host(struct hpx_check *check)
{
	struct hpx_verify_op *op;

	hpx_check_expect(check, "another Host: refused, or the same service's one answer, or another site's own");
	const struct hpx_verify_exchange *first = execute_first(check, &op);
	if (first == NULL)
		return;
	struct hpx_verify_variant changed = { .op = op, .host = HPX_SPAN("hapax-verify.invalid") };
	const struct hpx_verify_exchange *other = hpx_check_send(check, &changed);
	if (other == NULL)
		return;
	enum change change = check_answer(check, &changed, first, other, "the request under another Host");
	if (change == CHANGE_JUDGED)
		return;
	if (change == CHANGE_MEANS_NOTHING)
		hpx_check_holds(check, "one service by both names: %s", hpx_check_describe(check, other));
	else if (hpx_check_is_2xx(other))
		check_done_again(check, op, first, other);
	else if (other->status >= 500)
		hpx_check_undecided(check, "another Host (#%u) was answered %s", other->number,
				    hpx_check_describe(check, other));
	else if (hpx_check_effects(check, op, 1))
		hpx_check_holds(check, "%s; %s", hpx_check_describe(check, other),
				hpx_check_describe_effects(check, op));
}
