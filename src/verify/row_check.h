/* The helpers that rows are written with: requests that are cited in the result,
 * comparisons that end in a sentence with the values, and the verdicts.
 *
 * A function that returns a bool or a pointer has given the verdict when it returns
 * false or NULL: the row only returns then. */
#ifndef HPX_VERIFY_ROW_CHECK_H
#define HPX_VERIFY_ROW_CHECK_H

#include "verify/row.h"

/* The crash rows share one series of crashes. */
enum { HPX_CRASH_ONCE,
       HPX_CRASH_KEPT,
       HPX_CRASH_SETTLED,
       HPX_CRASH_ROWS };

/* State that rows leave to later rows. */
struct hpx_check_notes {
	bool crashed; /* the series was run; its results are in `crash` */
	struct hpx_row_result crash[HPX_CRASH_ROWS];
	char stop[512]; /* why no other row can be tried; "": they can */
	/* The last executed operation: its answer, and the resource that the answer
	 * names. Where another operation gets the same, a comparison of answers tells
	 * nothing. */
	uint8_t answer[HPX_SHA256_SIZE];
	uint8_t resource[HPX_SHA256_SIZE];
	bool answers_alike;
	bool resources_alike;
};

struct hpx_check {
	struct hpx_verify *run;
	struct hpx_row_result *result;
	struct hpx_check_notes *notes;
	const struct hpx_verify_op *op; /* the last one made, for sentences */
};

/* ---- verdicts ---- */

void hpx_check_expect(struct hpx_check *check, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void hpx_check_cite(struct hpx_check *check, const struct hpx_verify_exchange *exchange);

/* Gives the verdict, and what came. Always false, so that a check can end with it. */
bool hpx_check_verdict(struct hpx_check *check, enum hpx_row_verdict verdict, const char *format,
		       ...) __attribute__((format(printf, 3, 4)));
#define hpx_check_holds(check, ...) hpx_check_verdict(check, HPX_ROW_HOLDS, __VA_ARGS__)
#define hpx_check_broken(check, ...) hpx_check_verdict(check, HPX_ROW_BROKEN, __VA_ARGS__)
#define hpx_check_undecided(check, ...) hpx_check_verdict(check, HPX_ROW_UNDECIDED, __VA_ARGS__)
#define hpx_check_not_applicable(check, ...) \
	hpx_check_verdict(check, HPX_ROW_NOT_APPLICABLE, __VA_ARGS__)

/* After a broken verdict of a row about second effects: whether more than `max` effects
 * were counted for the operation. Only then the result says that somebody pays twice. */
bool hpx_check_effects_exceed(struct hpx_check *check, const struct hpx_verify_op *op, uint64_t max);
/* Names the guarantee that a broken row breaks, where that is not the row's own, or the
 * row has two; and what it means to people (NULL: the row's own words). */
void hpx_check_blame(struct hpx_check *check, unsigned guarantee, const char *why);

/* ---- sentences ---- */

/* `201 {"id":"pay_1"}`, at most a line; or why there is no answer. In the
 * row's memory; control bytes are made harmless. */
const char *hpx_check_describe(struct hpx_check *check, const struct hpx_verify_exchange *exchange);
/* "1 effect", "3 effects"; "effects not counted". */
const char *hpx_check_describe_effects(struct hpx_check *check, const struct hpx_verify_op *op);
/* The code of a problem document, in hapax's or Stripe's shape; empty: none. */
struct hpx_span hpx_check_problem_code(struct hpx_check *check, const struct hpx_verify_exchange *exchange);
bool hpx_check_is_replay(const struct hpx_verify_exchange *exchange);

/* ---- sending ---- */

/* Whether the description has the request; if not, the row is not applicable. */
bool hpx_check_has_request(struct hpx_check *check, enum hpx_verify_request_name name);
struct hpx_verify_op *hpx_check_op_new(struct hpx_check *check, enum hpx_verify_request_name name);
/* Sends and cites. NULL: no answer, or only 429s: undecided. */
const struct hpx_verify_exchange *hpx_check_send(struct hpx_check *check,
						 const struct hpx_verify_variant *variant);
/* Notes the answer of a new operation. */
void hpx_check_remember(struct hpx_check *check, const struct hpx_verify_op *op,
			const struct hpx_verify_exchange *answer);
/* Sends the operation's own request, which must be answered by a 2xx. NULL: it was not,
 * undecided. */
const struct hpx_verify_exchange *hpx_check_execute(struct hpx_check *check, struct hpx_verify_op *op);
/* A new operation, answered by a 2xx, and the answer to one retry. */
bool hpx_check_execute_and_retry(struct hpx_check *check, enum hpx_verify_request_name name,
				 const struct hpx_verify_exchange **ret_first,
				 const struct hpx_verify_exchange **ret_again);
/* Sends until there is a definite answer, which must be a 2xx. NULL: stuck or refused,
 * broken. */
const struct hpx_verify_exchange *hpx_check_settle(struct hpx_check *check,
						   const struct hpx_verify_variant *variant);

/* ---- comparisons ---- */

/* A list may be a moment behind its API: effects are counted again for a second in all. */
#define HPX_CHECK_RECOUNTS_MAX 10
#define HPX_CHECK_RECOUNT_MS 100

static inline bool hpx_check_is_2xx(const struct hpx_verify_exchange *exchange)
{
	return exchange->end == HPX_EXCHANGE_ANSWERED && exchange->status / 100 == 2;
}

static inline bool hpx_check_is_4xx(const struct hpx_verify_exchange *exchange)
{
	return exchange->end == HPX_EXCHANGE_ANSWERED && exchange->status / 100 == 4;
}

/* Whether two answers are the same: body bytes and status. Two 2xx with one body are
 * the same: a 201 that becomes 200 is checked by the row `retry`, and is no second
 * effect. */
bool hpx_check_same_answer(const struct hpx_verify_exchange *a, const struct hpx_verify_exchange *b);
/* A 409 (but for one that says that the effect happened, or that nobody knows), a 425,
 * or a 202 with a Location. */
bool hpx_check_is_in_progress(struct hpx_check *check, const struct hpx_verify_exchange *exchange);

/* Broken where the second answer is not the first. Undecided where every other request
 * gets that answer too: then a second execution could not be seen. `what`: "the retry". */
bool hpx_check_same(struct hpx_check *check, const struct hpx_verify_exchange *first,
		    const struct hpx_verify_exchange *second, const char *what);
/* Broken unless the answer is a 4xx, with no more effects than `effects`. */
bool hpx_check_refused(struct hpx_check *check, struct hpx_verify_op *op,
		       const struct hpx_verify_exchange *exchange, const char *what, uint64_t effects);
/* After a broken verdict: blames the guarantee that fits where the second request,
 * which should have been refused for its key, was executed or got an answer other than
 * the first's. */
void hpx_check_blame_mismatch(struct hpx_check *check, const struct hpx_verify_op *op,
			      const struct hpx_verify_exchange *first,
			      const struct hpx_verify_exchange *second);
/* Broken where the operation has another number of effects. */
bool hpx_check_effects(struct hpx_check *check, const struct hpx_verify_op *op, uint64_t want);
/* The number of effects now; 0 where they are not counted. False: undecided. */
bool hpx_check_count_effects(struct hpx_check *check, const struct hpx_verify_op *op,
			     uint64_t *ret_effects);
/* Whether the GET of the effects names this variable; whether it names any that tells
 * one operation's effects from another's. */
bool hpx_check_counts_by(const struct hpx_check *check, struct hpx_span variable);
bool hpx_check_counts_per_op(const struct hpx_check *check);

/* Whose answer the second request got, which must not be the first's. */
enum hpx_answer_owner { HPX_OWNER_SELF,
			HPX_OWNER_FIRST,
			HPX_OWNER_UNKNOWN };
enum hpx_answer_owner hpx_check_whose_answer(struct hpx_check *check, const struct hpx_verify_exchange *first,
					     const struct hpx_verify_exchange *second);
/* Broken where the second got the first's answer. Undecided where that cannot be told
 * and no effect of its own is seen. */
bool hpx_check_own_answer(struct hpx_check *check, const struct hpx_verify_op *op,
			  const struct hpx_verify_exchange *first, const struct hpx_verify_exchange *second,
			  const char *what);

/* The description's second body, or one made from the operation's. False: not
 * applicable. */
bool hpx_check_other_body(struct hpx_check *check, const struct hpx_verify_op *op,
			  struct hpx_span *ret_body);

/* ---- the rows ---- */

/* The function of each row; rows_*.c has them by family. */
#define X(name, weight, guarantee, also, group, needs, title, why, sends) \
	void hpx_row_##name(struct hpx_check *check);
HPX_ROW_LIST(X)
#undef X

#endif
