/* What rows are judged with: sending that is cited, comparisons that end in a
 * sentence with the values, and the verdicts. A function that returns a bool
 * or a pointer has given the verdict when it says false or NULL: the row only
 * returns then. */
#ifndef HPX_VERIFY_JUDGE_H
#define HPX_VERIFY_JUDGE_H

#include "verify/row.h"

/* The crash rows share one campaign. */
enum { HPX_CRASH_ONCE,
       HPX_CRASH_KEPT,
       HPX_CRASH_SETTLED,
       HPX_CRASH_FINDINGS };

/* What rows leave to later ones. */
struct hpx_verify_notes {
	bool crashed; /* the campaign was made; its findings are below */
	struct hpx_row_finding crash[HPX_CRASH_FINDINGS];
	char stop[512]; /* why no other row can be judged; "": they can */
	/* Of the operation that was done last: its answer, and what that named.
	 * Where another one gets the same, it tells nothing. */
	uint8_t answer[HPX_SHA256_SIZE];
	uint8_t resource[HPX_SHA256_SIZE];
	bool answers_alike;
	bool resources_alike;
};

struct hpx_judge {
	struct hpx_verify *run;
	struct hpx_row_finding *finding;
	struct hpx_verify_notes *notes;
	const struct hpx_intent *intent; /* the last one made, for sentences */
};

/* ---- verdicts ---- */

void hpx_judge_expects(struct hpx_judge *judge, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void hpx_judge_cite(struct hpx_judge *judge, const struct hpx_exchange *exchange);

/* The verdict and what came. Always false, so that a check can end with it. */
bool hpx_judge_says(struct hpx_judge *judge, enum hpx_row_verdict verdict, const char *format,
		    ...) __attribute__((format(printf, 3, 4)));
#define hpx_judge_holds(judge, ...) hpx_judge_says(judge, HPX_ROW_HOLDS, __VA_ARGS__)
#define hpx_judge_broken(judge, ...) hpx_judge_says(judge, HPX_ROW_BROKEN, __VA_ARGS__)
#define hpx_judge_undecided(judge, ...) hpx_judge_says(judge, HPX_ROW_UNDECIDED, __VA_ARGS__)
#define hpx_judge_not_applicable(judge, ...) \
	hpx_judge_says(judge, HPX_ROW_NOT_APPLICABLE, __VA_ARGS__)

/* Behind a broken verdict of a row that is about second effects: whether more than
 * `max` were counted for the intent. A finding says that somebody pays twice only
 * then. */
bool hpx_judge_counted_more(struct hpx_judge *judge, const struct hpx_intent *intent, uint64_t max);
/* The guarantee that the broken row breaks, where that is not the row's own or it
 * has two; and what it means to people, NULL: as the row has it. */
void hpx_judge_blames(struct hpx_judge *judge, unsigned guarantee, const char *why);

/* ---- words ---- */

/* `201 {"id":"pay_1"}`, at most a line; or why there is no answer. In the
 * row's memory; control bytes are made harmless. */
const char *hpx_judge_words(struct hpx_judge *judge, const struct hpx_exchange *exchange);
/* "1 effect", "3 effects"; "effects not counted". */
const char *hpx_judge_effect_words(struct hpx_judge *judge, const struct hpx_intent *intent);
/* The code of a problem document, in either shape; empty: none. */
struct hpx_span hpx_judge_code(struct hpx_judge *judge, const struct hpx_exchange *exchange);
bool hpx_judge_is_marked(const struct hpx_exchange *exchange);

/* ---- sending ---- */

/* Whether the description has the request; not applicable otherwise. */
bool hpx_judge_has(struct hpx_judge *judge, enum hpx_verify_request_name name);
struct hpx_intent *hpx_judge_intend(struct hpx_judge *judge, enum hpx_verify_request_name name);
/* Sent, cited, and answered, not by a 429. NULL: no answer, undecided. */
const struct hpx_exchange *hpx_judge_send(struct hpx_judge *judge,
					  const struct hpx_sending *sending);
/* A new operation got this answer. */
void hpx_judge_note(struct hpx_judge *judge, const struct hpx_intent *intent,
		    const struct hpx_exchange *answer);
/* The intent as it is, which is done: 2xx. NULL: it was not, undecided. */
const struct hpx_exchange *hpx_judge_do(struct hpx_judge *judge, struct hpx_intent *intent);
/* A new intent, done, and one retry of it, answered. */
bool hpx_judge_twice(struct hpx_judge *judge, enum hpx_verify_request_name name,
		     const struct hpx_exchange **ret_first,
		     const struct hpx_exchange **ret_again);
/* Sent until it is settled, which is with a 2xx. NULL: stuck or refused, broken. */
const struct hpx_exchange *hpx_judge_settle(struct hpx_judge *judge,
					    const struct hpx_sending *sending);

/* ---- comparisons ---- */

/* A list may be a moment behind its API: a second in all. */
#define HPX_JUDGE_LOOKS_MAX 10
#define HPX_JUDGE_LOOK_AGAIN_MS 100

static inline bool hpx_exchange_is_done(const struct hpx_exchange *exchange)
{
	return exchange->end == HPX_EXCHANGE_ANSWERED && exchange->status / 100 == 2;
}

static inline bool hpx_exchange_is_refused(const struct hpx_exchange *exchange)
{
	return exchange->end == HPX_EXCHANGE_ANSWERED && exchange->status / 100 == 4;
}

/* The same body bytes and status; where both are a 2xx, it is one answer also if
 * they differ: 201 that becomes 200 is judged by `retry`, and is no second effect. */
bool hpx_exchange_same(const struct hpx_exchange *a, const struct hpx_exchange *b);
/* 409, but for one that says that it happened or that nobody knows; 425; 202
 * with a place to ask. */
bool hpx_judge_is_in_progress(struct hpx_judge *judge, const struct hpx_exchange *exchange);

/* Broken where the second is not the first's answer, undecided where it is and
 * every other request's too: then a second execution could not be seen. `what`:
 * "the retry". */
bool hpx_judge_same(struct hpx_judge *judge, const struct hpx_exchange *first,
		    const struct hpx_exchange *second, const char *what);
/* Broken unless the answer is a 4xx, and no more effects than `effects`. */
bool hpx_judge_refused(struct hpx_judge *judge, struct hpx_intent *intent,
		       const struct hpx_exchange *exchange, const char *what, uint64_t effects);
/* Behind a broken verdict: the second, which should have been refused for its key,
 * was executed or answered by something else, and not by the first one's answer. */
void hpx_judge_blames_mismatch(struct hpx_judge *judge, const struct hpx_intent *intent,
			       const struct hpx_exchange *first,
			       const struct hpx_exchange *second);
/* Broken where the intent has another number of effects. */
bool hpx_judge_effects(struct hpx_judge *judge, const struct hpx_intent *intent, uint64_t want);
/* How many now; 0 where they are not counted. False: undecided. */
bool hpx_judge_count(struct hpx_judge *judge, const struct hpx_intent *intent,
		     uint64_t *ret_effects);
/* Whether the GET of the effects names this variable; one of those that tell
 * one intent's effects from another's. */
bool hpx_judge_counts_by(const struct hpx_judge *judge, struct hpx_span variable);
bool hpx_judge_counts_apart(const struct hpx_judge *judge);

/* Whose answer the second is, which was not to be the first's. */
enum hpx_whose { HPX_WHOSE_OWN,
		 HPX_WHOSE_FIRST,
		 HPX_WHOSE_OPEN };
enum hpx_whose hpx_judge_whose(struct hpx_judge *judge, const struct hpx_exchange *first,
			       const struct hpx_exchange *second);
/* Broken where the second is the first's answer; undecided where that is open
 * and no effect of its own can be seen. */
bool hpx_judge_own(struct hpx_judge *judge, const struct hpx_intent *intent,
		   const struct hpx_exchange *first, const struct hpx_exchange *second,
		   const char *what);

/* The second body of the description, or one made from the first's. False: not
 * applicable. */
bool hpx_judge_other_body(struct hpx_judge *judge, const struct hpx_intent *intent,
			  struct hpx_span *ret_body);

#endif
