/* Credentials, the order, and the key or the lease. */
#include "admission.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AMOUNT_MAX 999999999999

static bool refuse(struct http_answer *answer, unsigned status, const char *text)
{
	http_error(answer, status, text);
	return false;
}

/* "Again, with the same key": nothing is lost by it, and nothing happens twice. */
static bool ask_again(struct http_answer *answer, unsigned status, const char *text)
{
	http_error(answer, status, text);
	snprintf(answer->headers, sizeof(answer->headers),
		 "Content-Type: application/json\r\nRetry-After: 1\r\n");
	return false;
}

/* A real service has these in a table, hashed. */
const char *admission_merchant(const struct http_message *request, struct http_answer *ret_answer)
{
	static const char *const merchants[][2] = {
		{ "Bearer test_key_alice", "alice" },
		{ "Bearer test_key_bob", "bob" },
	};
	char value[64];

	if (http_header(request, "Authorization", value, sizeof(value)) == 1) {
		for (size_t i = 0; i < sizeof(merchants) / sizeof(merchants[0]); i++) {
			if (strcmp(value, merchants[i][0]) == 0)
				return merchants[i][1];
		}
	}
	refuse(ret_answer, 401, "the credential is missing or not known");
	snprintf(ret_answer->headers, sizeof(ret_answer->headers),
		 "Content-Type: application/json\r\nWWW-Authenticate: Bearer\r\n");
	return NULL;
}

/* Names are kept to what needs no escaping in JSON. */
static bool is_made_of(const char *text, const char *allowed, size_t min, size_t max)
{
	size_t len = text != NULL ? strlen(text) : 0;

	return len >= min && len <= max && strspn(text, allowed) == len;
}

#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define NAME UPPER "abcdefghijklmnopqrstuvwxyz0123456789_-"

bool admission_order(const struct http_message *request, struct payment_order *ret_order,
		     struct http_answer *ret_answer)
{
	json_t *document = json_loadb(request->body, request->body_len, JSON_REJECT_DUPLICATES,
				      NULL);
	const char *customer = json_string_value(json_object_get(document, "customer"));
	const char *currency = json_string_value(json_object_get(document, "currency"));
	json_int_t amount = json_integer_value(json_object_get(document, "amount"));
	bool fine = is_made_of(customer, NAME, 1, 32) && is_made_of(currency, UPPER, 3, 3) &&
		    amount >= 1 && amount <= AMOUNT_MAX;

	if (fine) {
		snprintf(ret_order->customer, sizeof(ret_order->customer), "%s", customer);
		snprintf(ret_order->currency, sizeof(ret_order->currency), "%s", currency);
		snprintf(ret_order->amount, sizeof(ret_order->amount), "%lld", (long long)amount);
	}
	json_decref(document);
	return fine || refuse(ret_answer, 400, "send customer (letters, digits, _ and -), amount "
					       "(whole cents) and currency (three capitals)");
}

/* ---- Straight from a client ---- */

static bool read_key(const struct http_message *request, char ret_key[HAPAX_KEY_MAX + 1],
		     struct http_answer *ret_answer)
{
	char value[2 * HAPAX_KEY_MAX + 3];
	const char *reason = "send one Idempotency-Key";
	size_t len;

	if (http_header(request, "Idempotency-Key", value, sizeof(value)) != 1 ||
	    hapax_key_parse(value, strlen(value), ret_key, &len, &reason) != HAPAX_OK)
		return refuse(ret_answer, 400, reason);
	return true;
}

/* What the request means: the same key for another amount is refused. */
static bool read_fingerprint(const struct http_message *request,
			     unsigned char ret_fingerprint[HAPAX_FINGERPRINT_SIZE])
{
	char content_type[128];
	struct hapax_request meant = {
		.size = sizeof(meant),
		.method = "POST",
		.path = "/payments",
		.content_type = content_type,
		.body = request->body,
		.body_len = request->body_len,
	};

	http_header(request, "Content-Type", content_type, sizeof(content_type));
	return hapax_fingerprint(&meant, ret_fingerprint) == HAPAX_OK;
}

static void replay(const struct hapax_operation *operation, struct http_answer *answer)
{
	const struct hapax_answer *kept = operation->answer;

	answer->status = kept->status;
	answer->body_len = kept->body_len < sizeof(answer->body) ? kept->body_len : 0;
	memcpy(answer->body, kept->body_len > 0 ? kept->body : "", answer->body_len);
	snprintf(answer->headers, sizeof(answer->headers), "%sIdempotent-Replayed: true\r\n",
		 kept->headers != NULL ? kept->headers : "");
}

static void take_over(const struct hapax_operation *operation, struct payment_attempt *attempt)
{
	memcpy(attempt->reference, operation->reference, sizeof(attempt->reference));
	memcpy(attempt->lease, operation->lease, sizeof(attempt->lease));
	memcpy(attempt->point, operation->point, sizeof(attempt->point));
	snprintf(attempt->proof, sizeof(attempt->proof), "%.*s", (int)operation->data_len,
		 operation->data != NULL ? (const char *)operation->data : "");
}

static bool obey(const struct hapax_operation *operation, struct payment_attempt *ret_attempt,
		 struct http_answer *ret_answer)
{
	switch (operation->verdict) {
	case HAPAX_EXECUTE:
		take_over(operation, ret_attempt);
		return true;
	case HAPAX_REPLAY:
		replay(operation, ret_answer);
		return false;
	case HAPAX_MISMATCH:
		return refuse(ret_answer, 422, "this key was used for another request");
	case HAPAX_UNKNOWN:
		return ask_again(ret_answer, 409, "nobody knows yet whether it happened");
	case HAPAX_IN_PROGRESS:
	default:
		return ask_again(ret_answer, 409, "this payment is being made");
	}
}

bool admission_by_key(struct hapax *hapax, const struct http_message *request,
		      const char *merchant, int64_t lease_ms,
		      struct payment_attempt *ret_attempt, struct http_answer *ret_answer)
{
	char key[HAPAX_KEY_MAX + 1], problem[HAPAX_PROBLEM_SIZE];
	unsigned char fingerprint[HAPAX_FINGERPRINT_SIZE];
	struct hapax_operation operation = { .size = sizeof(operation) };

	if (!read_key(request, key, ret_answer))
		return false;
	if (!read_fingerprint(request, fingerprint))
		return ask_again(ret_answer, 503, "out of memory");
	struct hapax_begin begin = {
		.size = sizeof(begin),
		.tenant = merchant,
		.scope = "POST /payments",
		.key = key,
		.fingerprint = fingerprint,
		.lease_ms = lease_ms,
		/* Every order to the provider has a key of its own, and every phase
		 * commits by the lease: it can go on where it was. */
		.on_lost = HAPAX_LOST_RESUME,
	};
	if (hapax_begin(hapax, &begin, &operation, problem) != HAPAX_OK) {
		fprintf(stderr, "payments: %s\n", problem);
		return ask_again(ret_answer, 503, "the store cannot be asked; nothing happened");
	}
	bool execute = obey(&operation, ret_attempt, ret_answer);
	hapax_operation_clear(&operation);
	return execute;
}

/* ---- Through the gateway ---- */

bool admission_by_lease(struct db *db, const struct http_message *request,
			struct payment_attempt *ret_attempt, struct http_answer *ret_answer)
{
	struct payment_attempt *attempt = ret_attempt;
	char problem[HAPAX_PROBLEM_SIZE];
	void *data = NULL;
	size_t len = 0;

	if (http_header(request, "Hapax-Lease", attempt->lease, sizeof(attempt->lease)) != 1 ||
	    http_header(request, "Hapax-Operation", attempt->reference,
			sizeof(attempt->reference)) != 1)
		return refuse(ret_answer, 400, "this service is reached through its gateway");
	enum hapax_result result = hapax_recovery(db->hapax, attempt->lease, attempt->point, &data,
						  &len, problem);
	if (result == HAPAX_STALE || result == HAPAX_INVALID)
		return ask_again(ret_answer, 409, "another attempt makes this payment");
	if (result != HAPAX_OK) {
		fprintf(stderr, "payments: %s\n", problem);
		return ask_again(ret_answer, 503, "the store cannot be asked");
	}
	snprintf(attempt->proof, sizeof(attempt->proof), "%.*s", (int)len,
		 data != NULL ? (const char *)data : "");
	free(data);
	return true;
}
