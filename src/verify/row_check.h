/* What rows are judged with: sending that is cited, comparisons that end in a
 * sentence with the values, and the verdicts. A function that returns a bool
 * or a pointer has given the verdict when it says false or NULL: the row only
 * returns then. */
#ifndef HPX_VERIFY_ROW_CHECK_H
#define HPX_VERIFY_ROW_CHECK_H

#include "verify/row.h"

/* The crash rows share one campaign. */
enum { HPX_CRASH_ONCE,
       HPX_CRASH_KEPT,
       HPX_CRASH_SETTLED,
       HPX_CRASH_ROWS };

/* What rows leave to later ones. */
struct hpx_check_notes {
	bool crashed; /* the campaign was made; its findings are below */
	struct hpx_row_result crash[HPX_CRASH_ROWS];
	char stop[512]; /* why no other row can be judged; "": they can */
	/* Of the operation that was done last: its answer, and what that named.
	 * Where another one gets the same, it tells nothing. */
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

/* The verdict and what came. Always false, so that a check can end with it. */
bool hpx_check_verdict(struct hpx_check *check, enum hpx_row_verdict verdict, const char *format,
		       ...) __attribute__((format(printf, 3, 4)));
#define hpx_check_holds(check, ...) hpx_check_verdict(check, HPX_ROW_HOLDS, __VA_ARGS__)
#define hpx_check_broken(check, ...) hpx_check_verdict(check, HPX_ROW_BROKEN, __VA_ARGS__)
#define hpx_check_undecided(check, ...) hpx_check_verdict(check, HPX_ROW_UNDECIDED, __VA_ARGS__)
#define hpx_check_not_applicable(check, ...) \
	hpx_check_verdict(check, HPX_ROW_NOT_APPLICABLE, __VA_ARGS__)

/* Behind a broken verdict of a row that is about second effects: whether more than
 * `max` were counted for the intent. A finding says that somebody pays twice only
 * then. */
bool hpx_check_effects_exceed(struct hpx_check *check, const struct hpx_verify_op *op, uint64_t max);
/* The guarantee that the broken row breaks, where that is not the row's own or it
 * has two; and what it means to people, NULL: as the row has it. */
void hpx_check_blame(struct hpx_check *check, unsigned guarantee, const char *why);

/* ---- words ---- */

/* `201 {"id":"pay_1"}`, at most a line; or why there is no answer. In the
 * row's memory; control bytes are made harmless. */
const char *hpx_check_describe(struct hpx_check *check, const struct hpx_verify_exchange *exchange);
/* "1 effect", "3 effects"; "effects not counted". */
const char *hpx_check_describe_effects(struct hpx_check *check, const struct hpx_verify_op *op);
/* The code of a problem document, in either shape; empty: none. */
struct hpx_span hpx_check_problem_code(struct hpx_check *check, const struct hpx_verify_exchange *exchange);
bool hpx_check_is_replay(const struct hpx_verify_exchange *exchange);

/* ---- sending ---- */

/* Whether the description has the request; not applicable otherwise. */
bool hpx_check_has_request(struct hpx_check *check, enum hpx_verify_request_name name);
struct hpx_verify_op *hpx_check_op_new(struct hpx_check *check, enum hpx_verify_request_name name);
/* Sent, cited, and answered, not by a 429. NULL: no answer, undecided. */
const struct hpx_verify_exchange *hpx_check_send(struct hpx_check *check,
						 const struct hpx_request_variant *variant);
/* A new operation got this answer. */
void hpx_check_remember(struct hpx_check *check, const struct hpx_verify_op *op,
			const struct hpx_verify_exchange *answer);
/* The intent as it is, which is done: 2xx. NULL: it was not, undecided. */
const struct hpx_verify_exchange *hpx_check_execute(struct hpx_check *check, struct hpx_verify_op *op);
/* A new intent, done, and one retry of it, answered. */
bool hpx_check_execute_and_retry(struct hpx_check *check, enum hpx_verify_request_name name,
				 const struct hpx_verify_exchange **ret_first,
				 const struct hpx_verify_exchange **ret_again);
/* Sent until it is settled, which is with a 2xx. NULL: stuck or refused, broken. */
const struct hpx_verify_exchange *hpx_check_settle(struct hpx_check *check,
						   const struct hpx_request_variant *variant);

/* ---- comparisons ---- */

/* A list may be a moment behind its API: a second in all. */
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

/* The same body bytes and status; where both are a 2xx, it is one answer also if
 * they differ: 201 that becomes 200 is judged by `retry`, and is no second effect. */
bool hpx_check_same_answer(const struct hpx_verify_exchange *a, const struct hpx_verify_exchange *b);
/* 409, but for one that says that it happened or that nobody knows; 425; 202
 * with a place to ask. */
bool hpx_check_is_in_progress(struct hpx_check *check, const struct hpx_verify_exchange *exchange);

/* Broken where the second is not the first's answer, undecided where it is and
 * every other request's too: then a second execution could not be seen. `what`:
 * "the retry". */
bool hpx_check_same(struct hpx_check *check, const struct hpx_verify_exchange *first,
		    const struct hpx_verify_exchange *second, const char *what);
/* Broken unless the answer is a 4xx, and no more effects than `effects`. */
bool hpx_check_refused(struct hpx_check *check, struct hpx_verify_op *op,
		       const struct hpx_verify_exchange *exchange, const char *what, uint64_t effects);
/* Behind a broken verdict: the second, which should have been refused for its key,
 * was executed or answered by something else, and not by the first one's answer. */
void hpx_check_blame_mismatch(struct hpx_check *check, const struct hpx_verify_op *op,
			      const struct hpx_verify_exchange *first,
			      const struct hpx_verify_exchange *second);
/* Broken where the intent has another number of effects. */
bool hpx_check_effects(struct hpx_check *check, const struct hpx_verify_op *op, uint64_t want);
/* How many now; 0 where they are not counted. False: undecided. */
bool hpx_check_count_effects(struct hpx_check *check, const struct hpx_verify_op *op,
			     uint64_t *ret_effects);
/* Whether the GET of the effects names this variable; one of those that tell
 * one intent's effects from another's. */
bool hpx_check_counts_by(const struct hpx_check *check, struct hpx_span variable);
bool hpx_check_counts_per_op(const struct hpx_check *check);

/* Whose answer the second is, which was not to be the first's. */
enum hpx_answer_owner { HPX_OWNER_SELF,
			HPX_OWNER_FIRST,
			HPX_OWNER_UNKNOWN };
enum hpx_answer_owner hpx_check_whose_answer(struct hpx_check *check, const struct hpx_verify_exchange *first,
					     const struct hpx_verify_exchange *second);
/* Broken where the second is the first's answer; undecided where that is open
 * and no effect of its own can be seen. */
bool hpx_check_own_answer(struct hpx_check *check, const struct hpx_verify_op *op,
			  const struct hpx_verify_exchange *first, const struct hpx_verify_exchange *second,
			  const char *what);

/* The second body of the description, or one made from the first's. False: not
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
