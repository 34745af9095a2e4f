/* The client's retry decision: whether an answer, or the lack of one, is definite, and
 * if not, whether the same request is sent again with the same key. No clock and no
 * network. The cases are in tests/client/answers.json, which also judge the clients in
 * JavaScript and Python.
 *
 * Doubt: this attempt or an earlier one may have happened without its answer
 * being known. Only a definite answer ends it; until then the key must not be
 * dropped, because it is what keeps a second effect away. */
#ifndef HPX_CORE_RETRY_H
#define HPX_CORE_RETRY_H

#include "base/span.h"

#define HPX_RETRY_ACTION_LIST(X) \
	X(done)  /* definite: the key may be dropped */ \
	X(again) /* the same request, with the same key */ \
	X(stop)  /* not definite, and sending it again now does not help */

enum hpx_retry_action {
#define X(name) HPX_RETRY_ACTION_##name,
	HPX_RETRY_ACTION_LIST(X)
#undef X
};

/* The words of a problem document; a word that nobody knows is NONE. */
enum hpx_retry_word { HPX_RETRY_NONE,
		      HPX_RETRY_SAME_KEY,
		      HPX_RETRY_AFTER_FIX,
		      HPX_RETRY_NEVER };
enum hpx_executed_word {
	HPX_EXECUTED_NONE,
	HPX_EXECUTED_NO,
	HPX_EXECUTED_YES,
	HPX_EXECUTED_UNKNOWN,
};

enum hpx_reached {
	HPX_REACHED_NOBODY,  /* proved: no byte of it left */
	HPX_REACHED_SILENCE, /* bytes left, and no whole answer came */
	HPX_REACHED_ANSWER,
};

/* What is known of one attempt. All members but `reached` need an answer. */
struct hpx_retry_facts {
	enum hpx_reached reached;
	unsigned status;
	bool replayed;         /* Idempotent-Replayed: true */
	int64_t retry_after_s; /* -1: none, or nonsense */
	enum hpx_retry_word retry;
	enum hpx_executed_word executed;
	bool idempotency_error; /* Stripe's error.type */
	bool operation;         /* Hapax-Operation: it came through a gateway */
	bool in_progress;       /* the state of that operation, by its document */
};

struct hpx_retry_decision {
	enum hpx_retry_action action;
	bool doubt;     /* afterwards */
	int64_t wait_s; /* asked for before the next attempt; 0: nothing */
};

/* `doubt`: an earlier attempt may have happened. */
struct hpx_retry_decision hpx_retry_decide(const struct hpx_retry_facts *facts, bool doubt);

/* Reads the words out of an answer's body into `facts`: of a problem document
 * (application/problem+json), or, in application/json, of Stripe's shape
 * {"error": {…}} or of an operation's document {"state": …}. Bodies that are neither, that are larger than any such
 * document, or that cannot be read have none: the status counts. */
#define HPX_RETRY_DOCUMENT_MAX 65536
void hpx_retry_read_body(struct hpx_span content_type, struct hpx_span body,
			 struct hpx_retry_facts *facts);

#endif
