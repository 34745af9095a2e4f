/* A payment, in four phases.
 *
 *   screened     the provider checks for fraud        customer and payment row
 *   authorised   the provider holds the money         its id in the payment
 *   captured     the provider takes the money         its id in the payment
 *   paid         a receipt is owed to the customer    ledger rows, job, the answer
 *
 * Each phase has one effect outside of this database, and goes the same way:
 *
 *   1. Ask the provider, with a key that is this operation's and this phase's
 *      alone. A crash from here on leads to the same question with the same
 *      key, and the provider gives the same answer: nothing happens twice.
 *   2. One transaction: hapax_advance says that the phase is done, and what the
 *      provider said goes into our rows. Both are committed, or neither is. The
 *      last phase commits its rows, the job and the answer by hapax_complete
 *      instead. hapax is asked first, because it knows who may write at all.
 *
 * A retry after a crash is told the last point that was committed, and begins
 * behind it. An attempt that was overtaken (its process stood still for longer
 * than its lease, and a retry took over) gets HAPAX_STALE in step 2, rolls
 * back, and has written nothing. */
#include "payment.h"

#include <stdio.h>
#include <string.h>

#include "rehearsal.h"

/* One payment on its way. */
struct payment {
	struct db *db;
	const struct payment_order *order;
	struct payment_attempt *attempt;
	struct http_answer *answer;
	char id[32];
};

static enum hapax_result advance(struct payment *payment, const char *point)
{
	struct payment_attempt *attempt = payment->attempt;

	return hapax_advance(payment->db->hapax, attempt->lease, point, attempt->proof,
			     strlen(attempt->proof), NULL);
}

/* ---- What each phase commits ---- */

static bool add_payment(struct payment *payment, const char *state)
{
	const struct payment_order *order = payment->order;

	return db_run(payment->db, "INSERT INTO customer (merchant, name) VALUES ($1, $2) "
				   "ON CONFLICT DO NOTHING",
		      order->merchant, order->customer) &&
	       db_run(payment->db, "INSERT INTO payment (id, operation, merchant, customer, "
				   "amount, currency, state, screening) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
		      payment->id, payment->attempt->reference, order->merchant, order->customer,
		      order->amount, order->currency, state, payment->attempt->proof);
}

static enum hapax_result screened(struct payment *payment)
{
	enum hapax_result result = advance(payment, "screened");

	if (result == HAPAX_OK && !add_payment(payment, "screened"))
		return HAPAX_UNAVAILABLE;
	return result;
}

static enum hapax_result authorised(struct payment *payment)
{
	enum hapax_result result = advance(payment, "authorised");

	if (result == HAPAX_OK &&
	    !db_run(payment->db, "UPDATE payment SET state = 'authorised', authorisation = $2 "
				 "WHERE id = $1",
		    payment->id, payment->attempt->proof))
		return HAPAX_UNAVAILABLE;
	return result;
}

static enum hapax_result captured(struct payment *payment)
{
	enum hapax_result result = advance(payment, "captured");

	if (result == HAPAX_OK &&
	    !db_run(payment->db, "UPDATE payment SET state = 'captured', capture = $2 "
				 "WHERE id = $1",
		    payment->id, payment->attempt->proof))
		return HAPAX_UNAVAILABLE;
	return result;
}

/* The receipt is not sent here: it is owed from the moment of the commit on,
 * and not before. */
static enum hapax_result owe_receipt(struct payment *payment)
{
	char body[256];
	int len = snprintf(body, sizeof(body),
			   "{\"to\": \"%s\", \"payment\": \"%s\", \"amount\": %s}",
			   payment->order->customer, payment->id, payment->order->amount);
	struct hapax_job receipt = {
		.size = sizeof(receipt),
		.name = "receipt",
		.target = "mailer",
		.method = "POST",
		.path = "/receipts",
		.headers = "Content-Type: application/json",
		.body = body,
		.body_len = (size_t)len,
	};

	return hapax_enqueue(payment->db->hapax, payment->attempt->lease, &receipt, NULL);
}

static enum hapax_result complete(struct payment *payment)
{
	struct http_answer *answer = payment->answer;
	struct hapax_answer kept = {
		.size = sizeof(kept),
		.status = answer->status,
		.headers = answer->headers,
		.body = answer->body,
		.body_len = answer->body_len,
	};

	return hapax_complete(payment->db->hapax, payment->attempt->lease, &kept, NULL);
}

static void describe(struct http_answer *answer, unsigned status, const char *id,
		     const char *state, const struct payment_order *order)
{
	answer->status = status;
	snprintf(answer->headers, sizeof(answer->headers),
		 "Content-Type: application/json\r\nLocation: /payments/%s\r\n", id);
	int len = snprintf(answer->body, sizeof(answer->body),
			   "{\"id\": \"%s\", \"state\": \"%s\", \"customer\": \"%s\", "
			   "\"amount\": %s, \"currency\": \"%s\"}\n",
			   id, state, order->customer, order->amount, order->currency);
	answer->body_len = (size_t)len;
}

static bool add_ledger_rows(struct payment *payment)
{
	return db_run(payment->db, "INSERT INTO ledger (payment, account, amount) VALUES "
				   "($1, 'provider', CAST($2 AS bigint)), "
				   "($1, 'merchant', -CAST($2 AS bigint))",
		      payment->id, payment->order->amount) &&
	       db_run(payment->db, "UPDATE payment SET state = 'paid' WHERE id = $1", payment->id);
}

static enum hapax_result paid(struct payment *payment)
{
	enum hapax_result result = owe_receipt(payment);

	if (result != HAPAX_OK)
		return result;
	if (!add_ledger_rows(payment))
		return HAPAX_UNAVAILABLE;
	describe(payment->answer, 201, payment->id, "paid", payment->order);
	return complete(payment);
}

/* "No" is an answer too: final, and the same for every retry. Before anything
 * was screened there is no row yet. */
static enum hapax_result declined(struct payment *payment)
{
	bool first = payment->attempt->proof[0] == '\0';

	describe(payment->answer, 402, payment->id, "declined", payment->order);
	enum hapax_result result = complete(payment);
	if (result != HAPAX_OK)
		return result;
	bool written = first ? add_payment(payment, "declined") :
			       db_run(payment->db, "UPDATE payment SET state = 'declined' WHERE id = $1",
				      payment->id);
	return written ? HAPAX_OK : HAPAX_UNAVAILABLE;
}

/* ---- How a phase goes ---- */

static const struct phase {
	const char *name;  /* its recovery point */
	const char *order; /* what the provider is asked for, or NULL */
	enum hapax_result (*write)(struct payment *payment);
} PHASES[] = {
	{ "screened", "screening", screened },
	{ "authorised", "authorisation", authorised },
	{ "captured", "capture", captured },
	{ "paid", NULL, paid },
};
#define PHASE_COUNT (sizeof(PHASES) / sizeof(PHASES[0]))

static enum hapax_result commit(struct payment *payment,
				enum hapax_result (*write)(struct payment *payment))
{
	if (!db_begin(payment->db))
		return HAPAX_UNAVAILABLE;
	enum hapax_result result = write(payment);
	if (result != HAPAX_OK) {
		db_rollback(payment->db);
		return result;
	}
	/* Where the connection breaks here, nobody knows whether it was committed:
	 * the retry finds out, by its recovery point. */
	return db_commit(payment->db) ? HAPAX_OK : HAPAX_UNCERTAIN;
}

static enum bank_result ask(struct payment *payment, const struct phase *phase, uint16_t bank_port)
{
	struct payment_attempt *attempt = payment->attempt;
	char proof[BANK_ID_SIZE];

	if (phase->order == NULL)
		return BANK_DONE;
	struct bank_order order = {
		.kind = phase->order,
		.reference = attempt->reference,
		.about = attempt->proof,
		.amount = payment->order->amount,
		.currency = payment->order->currency,
	};
	enum bank_result result = bank_ask(bank_port, &order, proof);
	if (result == BANK_DONE)
		memcpy(attempt->proof, proof, sizeof(proof));
	return result;
}

static enum payment_end end_of(enum hapax_result result)
{
	switch (result) {
	case HAPAX_OK:
		return PAYMENT_ANSWERED;
	case HAPAX_STALE:
		fputs("payments: overtaken: the lease is lost, nothing was written\n", stderr);
		return PAYMENT_OVERTAKEN;
	default:
		fprintf(stderr, "payments: cut short: %s\n", hapax_result_name(result));
		return PAYMENT_CUT_SHORT;
	}
}

/* The phase behind the recovery point; PHASE_COUNT where this program knows no
 * such point. */
static size_t next_phase(const char *point)
{
	if (point[0] == '\0')
		return 0;
	for (size_t i = 0; i + 1 < PHASE_COUNT; i++) {
		if (strcmp(PHASES[i].name, point) == 0)
			return i + 1;
	}
	return PHASE_COUNT;
}

/* The id is the operation's for ever, whichever attempt asks for it. */
static void name_payment(struct payment *payment)
{
	const char *dot = strchr(payment->attempt->reference, '.');

	snprintf(payment->id, sizeof(payment->id), "pay_%.24s", dot != NULL ? dot + 1 : "");
}

enum payment_end payment_run(struct db *db, uint16_t bank_port, const struct payment_order *order,
			     struct payment_attempt *attempt, struct http_answer *ret_answer)
{
	struct payment payment = { .db = db, .order = order, .attempt = attempt, .answer = ret_answer };
	enum hapax_result result = HAPAX_INVALID;

	name_payment(&payment);
	for (size_t i = next_phase(attempt->point); i < PHASE_COUNT; i++) {
		const struct phase *phase = &PHASES[i];
		enum bank_result asked = ask(&payment, phase, bank_port);

		if (asked == BANK_NO_ANSWER)
			return PAYMENT_CUT_SHORT;
		rehearse("asked", phase->name);
		result = commit(&payment, asked == BANK_DECLINED ? declined : phase->write);
		if (result != HAPAX_OK || asked == BANK_DECLINED)
			break;
		rehearse("committed", phase->name);
	}
	return end_of(result);
}

bool payment_show(struct db *db, const char *merchant, const char *id,
		  struct http_answer *ret_answer)
{
	struct payment_order order = { .merchant = merchant };
	char row[4][DB_CELL_SIZE];
	bool found;

	if (!db_find(db, "SELECT state, customer, amount, currency FROM payment "
			 "WHERE id = $1 AND merchant = $2",
		     4, row, &found, id, merchant))
		return false;
	if (!found) {
		http_error(ret_answer, 404, "there is no such payment");
		return true;
	}
	snprintf(order.customer, sizeof(order.customer), "%.32s", row[1]);
	snprintf(order.amount, sizeof(order.amount), "%.15s", row[2]);
	snprintf(order.currency, sizeof(order.currency), "%.3s", row[3]);
	describe(ret_answer, 200, id, row[0], &order);
	return true;
}
