/* One key, and another head: the method in another spelling or in a header,
 * headers that Connection names, somebody else's credentials, another Host.
 *
 * Whether such a change means anything is the API's to say: one that knows no
 * X-HTTP-Method-Override is asked for the same thing twice, and its replay is
 * right. So where a changed request gets the first one's answer, it is sent once
 * more under a key of its own. What is not done then, or done where nobody sees
 * it, is another request, and must not get the answer to the first. */
#include <inttypes.h>
#include <stdio.h>

#include "verify/request.h"
#include "verify/rows.h"

/* What a changed request is to the API. */
enum change {
	CHANGE_TOLD_APART,    /* it has an answer of its own, or is refused */
	CHANGE_MEANS_NOTHING, /* it got the first one's answer, and is the same request */
	CHANGE_JUDGED,        /* the verdict is given */
};

/* Of a request that is done by itself: whether its effect is where others are. */
static enum change seen_alone(struct hpx_judge *judge, const struct hpx_intent *intent)
{
	uint64_t effects = 0;

	for (unsigned look = 0; look <= HPX_JUDGE_LOOKS_MAX; look++) {
		if (!hpx_judge_count(judge, intent, &effects))
			return CHANGE_JUDGED;
		if (effects > 0 || !hpx_verify_counts(judge->run))
			return CHANGE_MEANS_NOTHING;
		hpx_verify_pause(judge->run, HPX_JUDGE_LOOK_AGAIN_MS);
	}
	return CHANGE_TOLD_APART;
}

/* The changed request under a key of its own. */
static enum change ask_alone(struct hpx_judge *judge, const struct hpx_sending *changed,
			     const struct hpx_exchange **ret_answer)
{
	const struct hpx_intent *last = judge->intent;
	struct hpx_sending alone = *changed;

	alone.intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	*ret_answer = alone.intent != NULL ? hpx_judge_send(judge, &alone) : NULL;
	judge->intent = last;
	if (*ret_answer == NULL)
		return CHANGE_JUDGED;
	if ((*ret_answer)->status >= 500) {
		hpx_judge_undecided(judge, "under a key of its own (#%u) it was answered %s",
				    (*ret_answer)->number, hpx_judge_words(judge, *ret_answer));
		return CHANGE_JUDGED;
	}
	return hpx_exchange_is_done(*ret_answer) ? seen_alone(judge, alone.intent) :
						   CHANGE_TOLD_APART;
}

/* The changed request, which got `other` under the key of the first. */
static enum change judge_answer(struct hpx_judge *judge, const struct hpx_sending *changed,
				const struct hpx_exchange *first,
				const struct hpx_exchange *other, const char *what)
{
	const struct hpx_exchange *alone;

	if (hpx_judge_whose(judge, first, other) == HPX_WHOSE_OWN)
		return CHANGE_TOLD_APART;
	enum change change = ask_alone(judge, changed, &alone);
	if (change != CHANGE_TOLD_APART)
		return change;
	hpx_judge_blames(judge, HPX_GUARANTEE_FOREIGN, NULL);
	hpx_judge_broken(judge, "%s (#%u) got the answer of the first (#%u); under a key of its own (#%u) it is answered %s%s",
			 what, other->number, first->number, alone->number,
			 hpx_judge_words(judge, alone),
			 hpx_exchange_is_done(alone) ? ", and its effect is not to be seen" : "");
	return CHANGE_JUDGED;
}

static const struct hpx_exchange *do_first(struct hpx_judge *judge, struct hpx_intent **ret_intent)
{
	*ret_intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	return *ret_intent != NULL ? hpx_judge_do(judge, *ret_intent) : NULL;
}

/* ---- method_case ---- */

static struct hpx_span lower(struct hpx_judge *judge, struct hpx_span method)
{
	char *text = hpx_arena_alloc(hpx_verify_arena(judge->run), method.len + 1);

	for (size_t i = 0; text != NULL && i < method.len; i++)
		text[i] = (char)(method.ptr[i] | (method.ptr[i] >= 'A' && method.ptr[i] <= 'Z' ? 0x20 : 0));
	return text != NULL ? hpx_span(text, method.len) : method;
}

/* A server may also close the connection on what it takes for no method: nothing
 * happened, if that can be seen. */
static void judge_not_done(struct hpx_judge *judge, const struct hpx_intent *intent,
			   const struct hpx_exchange *answer)
{
	bool told = hpx_exchange_is_refused(answer) || answer->status == 501;

	if (!told && !hpx_verify_counts(judge->run))
		hpx_judge_undecided(judge, "#%u: %s; whether anything happened cannot be seen (give `effects`)",
				    answer->number, hpx_judge_words(judge, answer));
	else if (hpx_judge_effects(judge, intent, 0))
		hpx_judge_holds(judge, "%s; %s", hpx_judge_words(judge, answer),
				hpx_judge_effect_words(judge, intent));
}

void hpx_row_method_case(struct hpx_judge *judge)
{
	hpx_judge_expects(judge, "the method in lower case is refused, or done once for its key");
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	if (intent == NULL)
		return;
	struct hpx_sending whole = { .intent = intent };
	struct hpx_sending small = { .intent = intent, .method = lower(judge, intent->method) };
	if (hpx_span_eq(small.method, intent->method)) {
		hpx_judge_not_applicable(judge, "the method has no capital letter");
		return;
	}
	const struct hpx_exchange *first = hpx_verify_insist(judge->run, &small);
	hpx_judge_cite(judge, first);
	if (!hpx_exchange_is_done(first)) {
		if (first->end == HPX_EXCHANGE_ANSWERED || first->end == HPX_EXCHANGE_LOST)
			judge_not_done(judge, intent, first);
		else
			hpx_judge_undecided(judge, "#%u: %s", first->number,
					    hpx_judge_words(judge, first));
		return;
	}
	const struct hpx_exchange *again = hpx_judge_send(judge, &small);
	if (again == NULL || !hpx_judge_same(judge, first, again, "the retry in lower case"))
		return;
	const struct hpx_exchange *other = hpx_judge_send(judge, &whole);
	if (other != NULL &&
	    (hpx_exchange_is_refused(other) ||
	     hpx_judge_same(judge, first, other, "the request in capitals")) &&
	    hpx_judge_effects(judge, intent, 1))
		hpx_judge_holds(judge, "%s each time, then %u; %s", hpx_judge_words(judge, first),
				other->status, hpx_judge_effect_words(judge, intent));
}

/* ---- method_override ---- */

void hpx_row_method_override(struct hpx_judge *judge)
{
	static const char *const names[] = { "X-HTTP-Method-Override", "X-HTTP-Method",
					     "X-Method-Override" };
	unsigned told_apart = 0;
	struct hpx_intent *intent;

	hpx_judge_expects(judge, "another method in a header: 4xx, or an answer of its own, where the API heeds the header");
	const struct hpx_exchange *first = do_first(judge, &intent);
	if (first == NULL)
		return;
	/* As mismatch_method does it: nothing that deletes. */
	bool patch = hpx_span_eq(intent->method, HPX_SPAN("PATCH"));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct hpx_span line = hpx_arena_printf(hpx_verify_arena(judge->run), "%s: %s",
							names[i], patch ? "PUT" : "PATCH");
		struct hpx_sending changed = { .intent = intent, .line = line };
		const struct hpx_exchange *other =
			line.ptr != NULL ? hpx_judge_send(judge, &changed) : NULL;

		if (other == NULL)
			return;
		enum change change = judge_answer(judge, &changed, first, other, line.ptr);
		if (change == CHANGE_JUDGED)
			return;
		told_apart += change == CHANGE_TOLD_APART ? 1 : 0;
	}
	if (told_apart > 0)
		hpx_judge_holds(judge, "%u of 3 such headers are told apart, the others mean nothing to the API",
				told_apart);
	else
		hpx_judge_not_applicable(judge, "the API takes no method from a header: with each of the three the request is done like any other");
}

/* ---- connection_named ---- */

/* The effect of an answer that was given for both. */
static bool judge_named_effect(struct hpx_judge *judge, const struct hpx_intent *intent,
			       const struct hpx_exchange *const answers[3], const char *what)
{
	if (hpx_judge_effects(judge, intent, 1))
		return true;
	if (judge->finding->verdict != HPX_ROW_BROKEN)
		return false;
	return hpx_judge_broken(judge, "%s (#%u) was answered %s; the request without that (#%u) got the same answer, with %s",
				what, answers[0]->number, hpx_judge_words(judge, answers[0]),
				answers[2]->number, hpx_judge_effect_words(judge, intent));
}

/* Done with the header named: once, and the request as it is gets that answer, or
 * is told apart from it. */
static bool judge_named_done(struct hpx_judge *judge, const struct hpx_intent *intent,
			     const struct hpx_exchange *const answers[3], const char *what)
{
	bool once = !hpx_exchange_is_done(answers[1]) ||
		    hpx_judge_same(judge, answers[0], answers[1], what);

	if (once && (hpx_exchange_is_refused(answers[2]) ||
		     (hpx_judge_same(judge, answers[0], answers[2], "the request without that") &&
		      judge_named_effect(judge, intent, answers, what))))
		return true;
	bool again = !hpx_verify_counts(judge->run) || hpx_judge_counted_more(judge, intent, 1);
	if (judge->finding->verdict == HPX_ROW_BROKEN)
		hpx_judge_blames(judge, again ? HPX_GUARANTEE_ONCE : HPX_GUARANTEE_FOREIGN, NULL);
	return false;
}

/* Not done with the header named: then the request as it is is done, or is refused
 * for its key, but not with that answer. */
static bool judge_named_refused(struct hpx_judge *judge, const struct hpx_intent *intent,
				const struct hpx_exchange *const answers[3], const char *what)
{
	const struct hpx_exchange *refused = answers[1];
	const struct hpx_exchange *own = answers[2];
	bool for_its_key = own->status == 400 || own->status == 409 || own->status == 422;

	if (hpx_exchange_is_done(own))
		return hpx_judge_effects(judge, intent, 1);
	if (hpx_exchange_is_refused(own) && for_its_key && !hpx_exchange_same(refused, own))
		return true;
	hpx_judge_blames(judge, HPX_GUARANTEE_FOREIGN, NULL);
	return hpx_judge_broken(judge, "%s (#%u) was answered %s; the request without that, under the same key (#%u), is answered %s",
				what, refused->number, hpx_judge_words(judge, refused), own->number,
				hpx_judge_words(judge, own));
}

static bool judge_named(struct hpx_judge *judge, struct hpx_span name)
{
	struct hpx_intent *intent = hpx_judge_intend(judge, HPX_REQUEST_main);
	struct hpx_span what = hpx_arena_printf(hpx_verify_arena(judge->run), "Connection: close, %.*s",
						HPX_SPAN_ARG(hpx_span_first(name, 60)));
	const struct hpx_exchange *answers[3];

	if (intent == NULL || what.ptr == NULL)
		return false;
	struct hpx_sending named = { .intent = intent, .connection = name };
	struct hpx_sending whole = { .intent = intent };
	for (int i = 0; i < 3; i++) {
		answers[i] = hpx_judge_send(judge, i < 2 ? &named : &whole);
		if (answers[i] == NULL)
			return false;
	}
	return hpx_exchange_is_done(answers[0]) ?
		       judge_named_done(judge, intent, answers, what.ptr) :
		       judge_named_refused(judge, intent, answers, what.ptr);
}

static struct hpx_span name_of(struct hpx_span line)
{
	return hpx_span_trim(hpx_span_first(line, hpx_span_index(line, ':')));
}

void hpx_row_connection_named(struct hpx_judge *judge)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(judge->run);
	const struct hpx_verify_request *request = &spec->requests[HPX_REQUEST_main];

	hpx_judge_expects(judge, "with a header named by Connection: refused, or done once; the request without that is done, or told apart");
	if (!judge_named(judge, spec->key_header))
		return;
	for (size_t i = 0; i < request->header_count; i++)
		if (!judge_named(judge, name_of(request->headers[i])))
			return;
	hpx_judge_holds(judge, "%zu headers named, and none was lost", request->header_count + 1);
}

/* ---- foreign_caller ---- */

/* Headers that say who is calling, in the order of how usual they are. */
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

/* A token against forgery says nothing of who is calling. */
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

/* Somebody who has none of the request's own credentials, and a made-up one. */
static enum change try_stranger(struct hpx_judge *judge, struct hpx_intent *intent,
				const struct hpx_exchange *first, struct hpx_span name)
{
	const char *before = hpx_span_ieq(name, HPX_SPAN("Authorization")) ? "Bearer " :
			     hpx_span_ieq(name, HPX_SPAN("Cookie"))        ? "session=" :
									     "";
	struct hpx_arena *arena = hpx_verify_arena(judge->run);
	struct hpx_span line = hpx_arena_printf(arena, "%.*s: %shapax-verify-%016" PRIx64,
						HPX_SPAN_ARG(name), before,
						hpx_verify_random(judge->run));
	struct hpx_span what = hpx_arena_printf(arena, "somebody with a made-up %.*s",
						HPX_SPAN_ARG(hpx_span_first(name, 60)));
	struct hpx_sending changed = { .intent = intent, .line = line, .without_credentials = true };
	const struct hpx_exchange *other =
		line.ptr != NULL && what.ptr != NULL ? hpx_judge_send(judge, &changed) : NULL;

	if (other == NULL)
		return CHANGE_JUDGED;
	enum change change = judge_answer(judge, &changed, first, other, what.ptr);
	if (change == CHANGE_MEANS_NOTHING)
		hpx_judge_not_applicable(judge, "the API does the request for anybody: for %s as well (#%u)",
					 what.ptr, other->number);
	return change;
}

void hpx_row_foreign_caller(struct hpx_judge *judge)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(judge->run);
	const struct hpx_verify_request *request = &spec->requests[HPX_REQUEST_main];
	size_t own = 0;
	size_t strangers = 0;
	struct hpx_intent *intent;

	hpx_judge_expects(judge, "without the first one's credentials: 401, another 4xx, or an answer of its own");
	for (size_t i = 0; i < request->header_count; i++)
		own += names_caller(spec, name_of(request->headers[i])) ? 1 : 0;
	if (own == 0) {
		hpx_judge_not_applicable(judge, "the request has no credentials");
		return;
	}
	const struct hpx_exchange *first = do_first(judge, &intent);
	if (first == NULL)
		return;
	for (size_t i = 0; i < request->header_count; i++) {
		struct hpx_span name = name_of(request->headers[i]);

		if (!names_caller(spec, name) || is_usual(name))
			continue;
		strangers++;
		if (try_stranger(judge, intent, first, name) != CHANGE_TOLD_APART)
			return;
	}
	for (size_t i = 0; i < sizeof(caller_headers) / sizeof(caller_headers[0]); i++, strangers++)
		if (try_stranger(judge, intent, first, caller_headers[i]) != CHANGE_TOLD_APART)
			return;
	const struct hpx_exchange *again =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent });
	if (again != NULL && hpx_judge_same(judge, first, again, "the first caller again"))
		hpx_judge_holds(judge, "of %zu strangers none got the answer, and it is still the first one's",
				strangers);
}

/* ---- other_host ---- */

/* Done again under another Host. One service that has two names has done it twice;
 * two sites on one server have not. */
static void judge_done_again(struct hpx_judge *judge, const struct hpx_intent *intent,
			     const struct hpx_exchange *first, const struct hpx_exchange *other)
{
	uint64_t effects = 0;

	if (!hpx_verify_counts(judge->run)) {
		hpx_judge_undecided(judge, "under another Host (#%u) it is done again: %s; whether that is another site cannot be seen (give `effects`)",
				    other->number, hpx_judge_words(judge, other));
		return;
	}
	for (unsigned look = 0; look <= HPX_JUDGE_LOOKS_MAX; look++) {
		if (!hpx_judge_count(judge, intent, &effects))
			return;
		if (effects > 1)
			break;
		hpx_verify_pause(judge->run, HPX_JUDGE_LOOK_AGAIN_MS);
	}
	if (effects <= 1) {
		hpx_judge_holds(judge, "another Host is another site: %s", hpx_judge_words(judge, other));
		return;
	}
	hpx_judge_blames(judge, HPX_GUARANTEE_ONCE, NULL);
	hpx_judge_broken(judge, "under another Host (#%u) the request of #%u is done again: %" PRIu64 " effects",
			 other->number, first->number, effects);
}

void hpx_row_other_host(struct hpx_judge *judge)
{
	struct hpx_intent *intent;

	hpx_judge_expects(judge, "another Host: refused, or the same service's one answer, or another site's own");
	const struct hpx_exchange *first = do_first(judge, &intent);
	if (first == NULL)
		return;
	struct hpx_sending changed = { .intent = intent, .host = HPX_SPAN("hapax-verify.invalid") };
	const struct hpx_exchange *other = hpx_judge_send(judge, &changed);
	if (other == NULL)
		return;
	enum change change = judge_answer(judge, &changed, first, other, "the request under another Host");
	if (change == CHANGE_JUDGED)
		return;
	if (change == CHANGE_MEANS_NOTHING)
		hpx_judge_holds(judge, "one service by both names: %s", hpx_judge_words(judge, other));
	else if (hpx_exchange_is_done(other))
		judge_done_again(judge, intent, first, other);
	else if (other->status >= 500)
		hpx_judge_undecided(judge, "another Host (#%u) was answered %s", other->number,
				    hpx_judge_words(judge, other));
	else if (hpx_judge_effects(judge, intent, 1))
		hpx_judge_holds(judge, "%s; %s", hpx_judge_words(judge, other),
				hpx_judge_effect_words(judge, intent));
}
