/* The helpers that rows are written with: verdicts, sentences, sending that is
 * cited, and comparisons that end in a sentence. */
#include "verify/row_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/span.h"
#include "base/status.h"
#include "core/json.h"
#include "verify/rewrite.h"

/* How much of a body stands in a sentence; two of them and the words around fit `came`. */
#define QUOTED_MAX 72

/* Copies text for a line; control characters and bytes that are no UTF-8 become dots. */
static size_t quote(struct hpx_span text, char *out, size_t max)
{
	struct hpx_span character;
	bool printable;
	size_t at = 0;

	HPX_ASSERT(max > 4);
	while (at + 4 < max && hpx_utf8_next(&text, &character, &printable)) {
		memcpy(out + at, printable ? character.ptr : ".", printable ? character.len : 1);
		at += printable ? character.len : 1;
	}
	return at;
}

void hpx_check_expect(struct hpx_check *check, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(check->result->expected, sizeof(check->result->expected), format, arguments);
	va_end(arguments);
}

bool hpx_check_verdict(struct hpx_check *check, enum hpx_row_verdict verdict, const char *format, ...)
{
	char *came = check->result->came;
	char text[sizeof(check->result->came)];
	va_list arguments;

	HPX_ASSERT(verdict <= HPX_ROW_SKIPPED);
	/* The text may hold header values and messages of the API. */
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	came[quote(hpx_span_of(text), came, sizeof(check->result->came))] = '\0';
	check->result->verdict = verdict;
	return false;
}

void hpx_check_cite(struct hpx_check *check, const struct hpx_verify_exchange *exchange)
{
	struct hpx_row_result *row_result = check->result;

	HPX_ASSERT(row_result->exchange_count <= HPX_ROW_EXCHANGES_MAX);
	for (size_t i = 0; i < row_result->exchange_count; i++)
		if (row_result->exchanges[i] == exchange->number)
			return;
	/* A request that was never sent has no number. */
	if (exchange->number > 0 && row_result->exchange_count < HPX_ROW_EXCHANGES_MAX)
		row_result->exchanges[row_result->exchange_count++] = exchange->number;
}

/* ---- sentences ---- */

static const char *kept(struct hpx_span text)
{
	return text.ptr != NULL ? text.ptr : "";
}

const char *hpx_check_describe(struct hpx_check *check, const struct hpx_verify_exchange *exchange)
{
	struct hpx_arena *arena = hpx_verify_arena(check->run);
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

const char *hpx_check_describe_effects(struct hpx_check *check, const struct hpx_verify_op *op)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE];
	uint64_t effects;

	if (!hpx_verify_counts_effects(check->run) ||
	    hpx_verify_effects(check->run, op, &effects, problem) != HPX_OK)
		return "effects not counted";
	return kept(hpx_arena_printf(hpx_verify_arena(check->run), "%" PRIu64 " effect%s", effects,
				     effects == 1 ? "" : "s"));
}

struct hpx_span hpx_check_problem_code(struct hpx_check *check, const struct hpx_verify_exchange *exchange)
{
	static const struct hpx_span pointers[] = { HPX_SPAN_INIT("/code"),
						    HPX_SPAN_INIT("/error/code") };
	struct hpx_json_scalar scalar;

	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++)
		if (hpx_json_lookup(exchange->body, pointers[i], 128, hpx_verify_arena(check->run),
				    &scalar) == HPX_OK &&
		    scalar.kind == HPX_JSON_STRING)
			return scalar.text;
	return HPX_SPAN("");
}

bool hpx_check_is_replay(const struct hpx_verify_exchange *exchange)
{
	return hpx_span_ieq(hpx_verify_exchange_field(exchange, HPX_SPAN("Idempotent-Replayed")),
			    HPX_SPAN("true"));
}

/* ---- sending ---- */

bool hpx_check_has_request(struct hpx_check *check, enum hpx_verify_request_name name)
{
	if (hpx_verify_spec_of(check->run)->requests[name].given)
		return true;
	return hpx_check_not_applicable(check, "the description has no request `%s`",
					hpx_verify_request_name_text(name));
}

/* Undecided: a bound of the run, where that is why nothing was sent. */
static bool no_more(struct hpx_check *check, const char *otherwise)
{
	const char *over = hpx_verify_stop_reason(check->run);

	return hpx_check_undecided(check, "%s", over != NULL ? over : otherwise);
}

struct hpx_verify_op *hpx_check_op_new(struct hpx_check *check, enum hpx_verify_request_name name)
{
	struct hpx_verify_op *op = hpx_verify_op_new(check->run, name);

	check->op = op;
	if (op == NULL)
		no_more(check, "the request cannot be made: no memory, or its effects cannot be counted");
	return op;
}

const struct hpx_verify_exchange *hpx_check_send(struct hpx_check *check,
						 const struct hpx_verify_variant *variant)
{
	const struct hpx_verify_exchange *exchange = hpx_verify_send_retry_429(check->run, variant);

	hpx_check_cite(check, exchange);
	if (exchange->end == HPX_EXCHANGE_ANSWERED && exchange->status != 429)
		return exchange;
	if (exchange->end == HPX_EXCHANGE_ANSWERED)
		hpx_check_undecided(check, "#%u was put off for too long: %s", exchange->number,
				    hpx_check_describe(check, exchange));
	else if (exchange->end == HPX_EXCHANGE_UNSENT)
		no_more(check, exchange->problem);
	else
		hpx_check_undecided(check, "#%u got no answer: %s", exchange->number,
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

void hpx_check_remember(struct hpx_check *check, const struct hpx_verify_op *op,
			const struct hpx_verify_exchange *answer)
{
	struct hpx_check_notes *notes = check->notes;
	struct hpx_check_notes last = *notes;

	HPX_ASSERT(hpx_check_is_2xx(answer));
	if (op->name != HPX_REQUEST_main)
		return;
	memcpy(notes->answer, answer->body_hash, sizeof(notes->answer));
	digest(hpx_verify_resource(check->run, answer), notes->resource);
	notes->answers_alike = memcmp(notes->answer, last.answer, sizeof(last.answer)) == 0;
	notes->resources_alike = memcmp(notes->resource, last.resource, sizeof(last.resource)) == 0;
}

const struct hpx_verify_exchange *hpx_check_execute(struct hpx_check *check, struct hpx_verify_op *op)
{
	const struct hpx_verify_exchange *exchange =
		hpx_check_send(check, &(struct hpx_verify_variant){ .op = op });

	if (exchange != NULL && hpx_check_is_2xx(exchange))
		hpx_check_remember(check, op, exchange);
	if (exchange == NULL || hpx_check_is_2xx(exchange))
		return exchange;
	hpx_check_undecided(check, "the first request does not succeed: %s",
			    hpx_check_describe(check, exchange));
	return NULL;
}

bool hpx_check_execute_and_retry(struct hpx_check *check, enum hpx_verify_request_name name,
				 const struct hpx_verify_exchange **ret_first,
				 const struct hpx_verify_exchange **ret_again)
{
	struct hpx_verify_op *op = hpx_check_op_new(check, name);

	if (op == NULL)
		return false;
	*ret_first = hpx_check_execute(check, op);
	if (*ret_first == NULL)
		return false;
	*ret_again = hpx_check_send(check, &(struct hpx_verify_variant){ .op = op });
	return *ret_again != NULL;
}

const struct hpx_verify_exchange *hpx_check_settle(struct hpx_check *check,
						   const struct hpx_verify_variant *variant)
{
	unsigned sent = 0;
	const struct hpx_verify_exchange *exchange = hpx_verify_settle(check->run, variant, &sent);
	const char *words = hpx_check_describe(check, exchange);

	hpx_check_cite(check, exchange);
	if (hpx_check_is_2xx(exchange))
		return exchange;
	if (exchange->end == HPX_EXCHANGE_UNSENT)
		no_more(check, exchange->problem);
	else if (exchange->end != HPX_EXCHANGE_ANSWERED)
		hpx_check_broken(check, "after %u retries there is still %s", sent, words);
	else if (exchange->status == 409 || exchange->status / 100 == 5)
		hpx_check_broken(check, "stuck: after %u retries still %s", sent, words);
	else
		hpx_check_broken(check, "the retry was refused: %s", words);
	return NULL;
}

/* ---- comparisons ---- */

static bool of_one_kind(const struct hpx_verify_exchange *a, const struct hpx_verify_exchange *b)
{
	return a->status == b->status || (hpx_check_is_2xx(a) && hpx_check_is_2xx(b));
}

bool hpx_check_same_answer(const struct hpx_verify_exchange *a, const struct hpx_verify_exchange *b)
{
	return a->end == HPX_EXCHANGE_ANSWERED && b->end == HPX_EXCHANGE_ANSWERED &&
	       of_one_kind(a, b) && a->body_bytes == b->body_bytes &&
	       memcmp(a->body_hash, b->body_hash, sizeof(a->body_hash)) == 0;
}

bool hpx_check_is_in_progress(struct hpx_check *check, const struct hpx_verify_exchange *exchange)
{
	if (exchange->end != HPX_EXCHANGE_ANSWERED)
		return false;
	if (exchange->status == 202)
		return hpx_verify_exchange_field(exchange, HPX_SPAN("Location")).ptr != NULL;
	if (exchange->status == 425)
		return true;
	if (exchange->status != 409)
		return false;
	struct hpx_span code = hpx_check_problem_code(check, exchange);
	return !hpx_span_eq(code, HPX_SPAN("response_not_kept")) &&
	       !hpx_span_eq(code, HPX_SPAN("idempotency_outcome_unknown"));
}

/* Whether every request gets this answer, which is not marked as a replay either. */
static bool tells_nothing(const struct hpx_check *check, const struct hpx_verify_exchange *answer)
{
	return check->notes->answers_alike && !hpx_verify_counts_effects(check->run) &&
	       !hpx_check_is_replay(answer);
}

bool hpx_check_same(struct hpx_check *check, const struct hpx_verify_exchange *first,
		    const struct hpx_verify_exchange *second, const char *what)
{
	HPX_ASSERT(first->end == HPX_EXCHANGE_ANSWERED && second->end == HPX_EXCHANGE_ANSWERED);
	if (hpx_check_same_answer(first, second) && tells_nothing(check, second))
		return hpx_check_undecided(check, "%s (#%u) was answered like the first (#%u), but so is every other request: whether it was executed again cannot be seen (give `effects`)",
					   what, second->number, first->number);
	if (hpx_check_same_answer(first, second))
		return true;
	const char *was = hpx_check_describe(check, first);
	const char *is = hpx_check_describe(check, second);
	const char *effects = check->op != NULL ?
				      hpx_check_describe_effects(check, check->op) :
				      "effects not counted";
	if (strcmp(was, is) == 0)
		return hpx_check_broken(check, "%s (#%u) has other bytes further on than the answer (#%u), %s; %s",
					what, second->number, first->number, was, effects);
	return hpx_check_broken(check, "%s (#%u) was answered %s; the answer (#%u) was %s; %s", what,
				second->number, is, first->number, was, effects);
}

bool hpx_check_counts_by(const struct hpx_check *check, struct hpx_span variable)
{
	struct hpx_span path = hpx_verify_spec_of(check->run)->effects_path;

	for (; path.len >= variable.len; path = hpx_span_skip(path, 1))
		if (hpx_span_starts(path, variable))
			return true;
	return false;
}

bool hpx_check_counts_per_op(const struct hpx_check *check)
{
	return hpx_check_counts_by(check, HPX_SPAN("{{key}}")) ||
	       hpx_check_counts_by(check, HPX_SPAN("{{uuid}}")) ||
	       hpx_check_counts_by(check, HPX_SPAN("{{n}}"));
}

bool hpx_check_count_effects(struct hpx_check *check, const struct hpx_verify_op *op,
			     uint64_t *ret_effects)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE] = "";

	*ret_effects = 0;
	if (!hpx_verify_counts_effects(check->run) ||
	    hpx_verify_effects(check->run, op, ret_effects, problem) == HPX_OK)
		return true;
	const char *over = hpx_verify_stop_reason(check->run);
	return hpx_check_undecided(check, "the effects cannot be counted: %s",
				   over != NULL ? over : problem);
}

/* Too few effects are counted again, because a list may be a moment behind its API. Too
 * many never become fewer. */
bool hpx_check_effects(struct hpx_check *check, const struct hpx_verify_op *op, uint64_t want)
{
	uint64_t effects;

	if (!hpx_verify_counts_effects(check->run))
		return true;
	for (unsigned look = 0;; look++) {
		if (!hpx_check_count_effects(check, op, &effects))
			return false;
		if (effects == want)
			return true;
		if (effects > want || look == HPX_CHECK_RECOUNTS_MAX)
			break;
		hpx_verify_pause(check->run, HPX_CHECK_RECOUNT_MS);
	}
	return hpx_check_broken(check,
				"%" PRIu64 " effect%s, where there should be %" PRIu64 " (key %.64s)",
				effects, effects == 1 ? "" : "s", want, op->key);
}

bool hpx_check_effects_exceed(struct hpx_check *check, const struct hpx_verify_op *op, uint64_t max)
{
	char problem[HPX_VERIFY_PROBLEM_SIZE];
	uint64_t effects = 0;

	return hpx_verify_counts_effects(check->run) &&
	       hpx_verify_effects(check->run, op, &effects, problem) == HPX_OK && effects > max;
}

void hpx_check_blame(struct hpx_check *check, unsigned guarantee, const char *why)
{
	HPX_ASSERT(guarantee <= HPX_GUARANTEE_MAX);
	check->result->blamed |= 1u << guarantee;
	if (why != NULL)
		check->result->why = why;
}

bool hpx_check_refused(struct hpx_check *check, struct hpx_verify_op *op,
		       const struct hpx_verify_exchange *exchange, const char *what, uint64_t effects)
{
	if (hpx_check_is_4xx(exchange))
		return hpx_check_effects(check, op, effects);
	return hpx_check_broken(check, "%s (#%u) was answered %s; %s", what, exchange->number,
				hpx_check_describe(check, exchange),
				hpx_check_describe_effects(check, op));
}

enum hpx_answer_owner hpx_check_whose_answer(struct hpx_check *check, const struct hpx_verify_exchange *first,
					     const struct hpx_verify_exchange *second)
{
	HPX_ASSERT(first->end == HPX_EXCHANGE_ANSWERED);
	if (!of_one_kind(first, second))
		return HPX_OWNER_SELF;
	struct hpx_span one = hpx_verify_resource(check->run, first);
	struct hpx_span other = hpx_verify_resource(check->run, second);
	if (one.len > 0 && other.len > 0 && !check->notes->resources_alike)
		return hpx_span_eq(one, other) ? HPX_OWNER_FIRST : HPX_OWNER_SELF;
	if (!hpx_check_same_answer(first, second))
		return HPX_OWNER_SELF;
	return hpx_check_is_replay(second) ? HPX_OWNER_FIRST : HPX_OWNER_UNKNOWN;
}

void hpx_check_blame_mismatch(struct hpx_check *check, const struct hpx_verify_op *op,
			      const struct hpx_verify_exchange *first,
			      const struct hpx_verify_exchange *second)
{
	if (check->result->verdict != HPX_ROW_BROKEN ||
	    hpx_check_whose_answer(check, first, second) != HPX_OWNER_SELF)
		return;
	if (hpx_check_effects_exceed(check, op, 1))
		hpx_check_blame(check, HPX_GUARANTEE_ONCE,
				"A program that mixes up its keys has both executed under one key: a client that retries with something changed pays again.");
	else
		hpx_check_blame(check, HPX_GUARANTEE_CONTRACT,
				"A program that mixes up its keys is not told so.");
}

bool hpx_check_own_answer(struct hpx_check *check, const struct hpx_verify_op *op,
			  const struct hpx_verify_exchange *first, const struct hpx_verify_exchange *second,
			  const char *what)
{
	enum hpx_answer_owner whose = hpx_check_whose_answer(check, first, second);
	uint64_t effects;

	if (whose == HPX_OWNER_SELF)
		return true;
	if (whose == HPX_OWNER_FIRST)
		return hpx_check_broken(check, "%s (#%u) got the answer of the first (#%u): %s",
					what, second->number, first->number,
					hpx_check_describe(check, second));
	if (!hpx_check_count_effects(check, op, &effects))
		return false;
	if (effects > 1)
		return true;
	return hpx_check_undecided(check,
				   "%s (#%u) was answered like the first (#%u), and nothing tells whose answer it is (%s): %s",
				   what, second->number, first->number,
				   check->notes->resources_alike ?
					   "`resource` names the same for different requests; give `effects`" :
					   "give `resource`",
				   hpx_check_describe(check, second));
}

bool hpx_check_other_body(struct hpx_check *check, const struct hpx_verify_op *op,
			  struct hpx_span *ret_body)
{
	const struct hpx_verify_spec *spec = hpx_verify_spec_of(check->run);
	struct hpx_span body = { NULL, 0 };

	if (spec->other_body.len > 0)
		body = hpx_verify_op_fill(check->run, op, spec->other_body);
	else if (hpx_rewrite_other(op->body, spec->number, hpx_verify_arena(check->run),
				   &body) != HPX_OK)
		body.ptr = NULL;
	if (body.ptr == NULL || hpx_span_eq(body, op->body))
		return hpx_check_not_applicable(check,
						"no second body can be made of this one (give `other_body`)");
	*ret_body = body;
	return true;
}
