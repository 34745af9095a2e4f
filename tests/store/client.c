/* The client of the fault tests. */
#include "client.h"

static void submit(struct client *client, struct hpx_store_op *op)
{
	hpx_committer_submit_wait(client->committer, op);
}

/* Returns once the store has taken something. */
static void await_up(struct client *client)
{
	struct hpx_store_op op = op_of(HPX_VERB_RECIPE, 0, 0);

	op.recipe.text = HPX_SPAN("text");
	submit(client, &op);
	assert_status(op.status, HPX_OK);
}

/* What the gateway does when a reservation ends with an error. */
static void undo(struct client *client, unsigned key, unsigned token)
{
	struct hpx_store_op op = op_of(HPX_VERB_FAIL, key, token);

	submit(client, &op);
	if (op.status != HPX_OK && op.status != HPX_STALE)
		fail_msg("undo: %s", hpx_status_name(op.status));
}

/* The decision; HPX_DECISION_COUNT where the request was refused. */
static enum hpx_decision_kind ask(struct client *client, unsigned key, unsigned token)
{
	struct hpx_ask ask = ask_of(client->f->store, key, 1, token);
	struct hpx_store_op op = op_of(HPX_VERB_RESERVE, key, token);

	op.reserve.ask = &ask;
	submit(client, &op);
	hpx_answer_free(op.reserve.replay);
	if (op.status == HPX_OK)
		return op.decision.kind;
	if (op.status != HPX_UNAVAILABLE)
		undo(client, key, token);
	await_up(client);
	return HPX_DECISION_COUNT;
}

static unsigned reserve_somehow(struct client *client, unsigned key)
{
	for (;;) {
		unsigned token = ++client->next_token;
		enum hpx_decision_kind decision = ask(client, key, token);
		if (decision == HPX_DECISION_EXECUTE || decision == HPX_DECISION_EXECUTE_AGAIN)
			return token;
		if (decision != HPX_DECISION_COUNT)
			fail_msg("key %u: %s", key, hpx_decision_name(decision));
	}
}

static void send_all(struct client *client, struct hpx_store_op *op)
{
	submit(client, op);
	/* The same op again, where the first try committed unheard: FAIL makes
	 * the token void, which is stale for the second. */
	if (op->status != HPX_OK && !(op->verb == HPX_VERB_FAIL && op->status == HPX_STALE))
		fail_msg("%s: %s", hpx_verb_name(op->verb), hpx_status_name(op->status));
}

static void run_key(struct client *client, unsigned key)
{
	struct hpx_answer answer = { .status = 200, .kept = true, .body = HPX_SPAN("done") };
	struct hpx_store_op op;
	unsigned token = reserve_somehow(client, key);

	op = op_of(HPX_VERB_FAIL, key, token);
	send_all(client, &op);
	token = reserve_somehow(client, key);
	client->executed[key]++;
	op = op_of(HPX_VERB_RENEW, key, token);
	send_all(client, &op);
	op = op_of(HPX_VERB_COMPLETE, key, token);
	op.complete.answer = &answer;
	send_all(client, &op);
}

void client_run(struct client *client)
{
	for (unsigned key = 0; key < CLIENT_KEYS; key++)
		run_key(client, key);
}

void client_check(struct client *client, const char *what, unsigned nth)
{
	for (unsigned key = 0; key < CLIENT_KEYS; key++) {
		const char *body;
		if (client->executed[key] != 1 ||
		    strcmp(state_of(client->f, key), "completed") != 0)
			fail_msg("%s %u: key %u executed %u times, is %s", what, nth, key,
				 client->executed[key], state_of(client->f, key));
		body = body_of(client->f, key);
		assert_non_null(body);
		assert_string_equal(body, "done");
	}
}
