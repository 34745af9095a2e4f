/* The verdicts, the sentences, and sending that is cited. Comparisons are in
 * judge_compare.c. */
#include "verify/judge.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/utf8.h"
#include "core/json_lookup.h"

/* Of a body in a sentence; two of them and their words fit `came`. */
#define QUOTED_MAX 72

/* What cannot stand in a line for people becomes a dot. */
static size_t quote(struct hpx_span text, char *out, size_t max)
{
	size_t at = 0;

	while (text.len > 0 && at + 4 < max) {
		size_t n = hpx_utf8_sequence(text);
		bool plain = n > 1 || (n == 1 && text.ptr[0] >= 0x20 && text.ptr[0] != 0x7f);

		/* C1 controls move a terminal's cursor as well. */
		if (n == 2 && hpx_utf8_decode(text) < 0xa0)
			plain = false;
		n = n == 0 ? 1 : n;
		if (plain)
			memcpy(out + at, text.ptr, n);
		else
			out[at] = '.';
		at += plain ? n : 1;
		text = hpx_span_skip(text, n);
	}
	return at;
}

void hpx_judge_expects(struct hpx_judge *judge, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(judge->finding->expected, sizeof(judge->finding->expected), format, arguments);
	va_end(arguments);
}

bool hpx_judge_says(struct hpx_judge *judge, enum hpx_row_verdict verdict, const char *format, ...)
{
	char *came = judge->finding->came;
	char text[sizeof(judge->finding->came)];
	va_list arguments;

	/* Header values and messages of others may stand in it. */
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	came[quote(hpx_span_of(text), came, sizeof(judge->finding->came))] = '\0';
	judge->finding->verdict = verdict;
	return false;
}

void hpx_judge_cite(struct hpx_judge *judge, const struct hpx_exchange *exchange)
{
	struct hpx_row_finding *finding = judge->finding;

	for (size_t i = 0; i < finding->exchange_count; i++)
		if (finding->exchanges[i] == exchange->number)
			return;
	/* What was never sent has no number. */
	if (exchange->number > 0 && finding->exchange_count < HPX_FINDING_EXCHANGES_MAX)
		finding->exchanges[finding->exchange_count++] = exchange->number;
}

/* ---- words ---- */

static const char *kept(struct hpx_span text)
{
	return text.ptr != NULL ? text.ptr : "";
}

const char *hpx_judge_words(struct hpx_judge *judge, const struct hpx_exchange *exchange)
{
	struct hpx_arena *arena = hpx_verify_arena(judge->run);
	char quoted[QUOTED_MAX + 8];

	if (exchange->end == HPX_EXCHANGE_CUT)
		return "cut off, as it was meant to be";
	if (exchange->end != HPX_EXCHANGE_ANSWERED)
		return kept(hpx_arena_printf(arena, "no answer (%s)", exchange->problem));
	if (exchange->body_bytes == 0)
		return kept(hpx_arena_printf(arena, "%u without a body", exchange->status));
	size_t n = quote(hpx_span_first(exchange->body, QUOTED_MAX), quoted, sizeof(quoted));
	if (exchange->body_bytes <= QUOTED_MAX)
		return kept(hpx_arena_printf(arena, "%u %.*s", exchange->status, (int)n, quoted));
	return kept(hpx_arena_printf(arena, "%u %.*s... (%zu bytes)", exchange->status, (int)n,
				     quoted, exchange->body_bytes));
}

const char *hpx_judge_effect_words(struct hpx_judge *judge, const struct hpx_intent *intent)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE];
	uint64_t effects;

	if (!hpx_verify_counts(judge->run) ||
	    hpx_verify_effects(judge->run, intent, &effects, problem) != HPX_OK)
		return "effects not counted";
	return kept(hpx_arena_printf(hpx_verify_arena(judge->run), "%" PRIu64 " effect%s", effects,
				     effects == 1 ? "" : "s"));
}

struct hpx_span hpx_judge_code(struct hpx_judge *judge, const struct hpx_exchange *exchange)
{
	static const struct hpx_span pointers[] = { HPX_SPAN_INIT("/code"),
						    HPX_SPAN_INIT("/error/code") };
	struct hpx_json_scalar scalar;

	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++)
		if (hpx_json_lookup(exchange->body, pointers[i], 128, hpx_verify_arena(judge->run),
				    &scalar) == HPX_OK &&
		    scalar.kind == HPX_JSON_STRING)
			return scalar.text;
	return HPX_SPAN("");
}

bool hpx_judge_is_marked(const struct hpx_exchange *exchange)
{
	return hpx_span_ieq(hpx_exchange_field(exchange, HPX_SPAN("Idempotent-Replayed")),
			    HPX_SPAN("true"));
}

/* ---- sending ---- */

bool hpx_judge_has(struct hpx_judge *judge, enum hpx_verify_request_name name)
{
	if (hpx_verify_spec_of(judge->run)->requests[name].given)
		return true;
	return hpx_judge_not_applicable(judge, "the description has no request `%s`",
					hpx_verify_request_word(name));
}

/* The bounds, where they are why nothing was sent. */
static bool no_more(struct hpx_judge *judge, const char *otherwise)
{
	const char *over = hpx_verify_over(judge->run);

	return hpx_judge_undecided(judge, "%s", over != NULL ? over : otherwise);
}

struct hpx_intent *hpx_judge_intend(struct hpx_judge *judge, enum hpx_verify_request_name name)
{
	struct hpx_intent *intent = hpx_verify_intend(judge->run, name);

	judge->intent = intent;
	if (intent == NULL)
		no_more(judge, "the request cannot be made: no memory, or its effects cannot be counted");
	return intent;
}

const struct hpx_exchange *hpx_judge_send(struct hpx_judge *judge,
					  const struct hpx_sending *sending)
{
	const struct hpx_exchange *exchange = hpx_verify_insist(judge->run, sending);

	hpx_judge_cite(judge, exchange);
	if (exchange->end == HPX_EXCHANGE_ANSWERED && exchange->status != 429)
		return exchange;
	if (exchange->end == HPX_EXCHANGE_ANSWERED)
		hpx_judge_undecided(judge, "#%u was put off for too long: %s", exchange->number,
				    hpx_judge_words(judge, exchange));
	else if (exchange->end == HPX_EXCHANGE_UNSENT)
		no_more(judge, exchange->problem);
	else
		hpx_judge_undecided(judge, "#%u got no answer: %s", exchange->number,
				    exchange->problem);
	return NULL;
}

static void digest(struct hpx_span bytes, uint8_t ret_digest[HPX_SHA256_SIZE])
{
	struct hpx_sha256 hash;

	hpx_sha256_init(&hash);
	hpx_sha256_add(&hash, bytes);
	if (hpx_sha256_done(&hash, ret_digest) != HPX_OK)
		memset(ret_digest, 0, HPX_SHA256_SIZE);
}

void hpx_judge_note(struct hpx_judge *judge, const struct hpx_intent *intent,
		    const struct hpx_exchange *answer)
{
	struct hpx_verify_notes *notes = judge->notes;
	struct hpx_verify_notes last = *notes;

	if (intent->name != HPX_REQUEST_main)
		return;
	memcpy(notes->answer, answer->body_hash, sizeof(notes->answer));
	digest(hpx_verify_resource(judge->run, answer), notes->resource);
	notes->answers_alike = memcmp(notes->answer, last.answer, sizeof(last.answer)) == 0;
	notes->resources_alike = memcmp(notes->resource, last.resource, sizeof(last.resource)) == 0;
}

const struct hpx_exchange *hpx_judge_do(struct hpx_judge *judge, struct hpx_intent *intent)
{
	const struct hpx_exchange *exchange =
		hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent });

	if (exchange != NULL && hpx_exchange_is_done(exchange))
		hpx_judge_note(judge, intent, exchange);
	if (exchange == NULL || hpx_exchange_is_done(exchange))
		return exchange;
	hpx_judge_undecided(judge, "the first request does not succeed: %s",
			    hpx_judge_words(judge, exchange));
	return NULL;
}

bool hpx_judge_twice(struct hpx_judge *judge, enum hpx_verify_request_name name,
		     const struct hpx_exchange **ret_first,
		     const struct hpx_exchange **ret_again)
{
	struct hpx_intent *intent = hpx_judge_intend(judge, name);

	if (intent == NULL)
		return false;
	*ret_first = hpx_judge_do(judge, intent);
	if (*ret_first == NULL)
		return false;
	*ret_again = hpx_judge_send(judge, &(struct hpx_sending){ .intent = intent });
	return *ret_again != NULL;
}

const struct hpx_exchange *hpx_judge_settle(struct hpx_judge *judge,
					    const struct hpx_sending *sending)
{
	unsigned sent = 0;
	const struct hpx_exchange *exchange = hpx_verify_settle(judge->run, sending, &sent);
	const char *words = hpx_judge_words(judge, exchange);

	hpx_judge_cite(judge, exchange);
	if (hpx_exchange_is_done(exchange))
		return exchange;
	if (exchange->end == HPX_EXCHANGE_UNSENT)
		no_more(judge, exchange->problem);
	else if (exchange->end != HPX_EXCHANGE_ANSWERED)
		hpx_judge_broken(judge, "after %u retries there is still %s", sent, words);
	else if (exchange->status == 409 || exchange->status / 100 == 5)
		hpx_judge_broken(judge, "stuck: after %u retries still %s", sent, words);
	else
		hpx_judge_broken(judge, "the retry was refused: %s", words);
	return NULL;
}
