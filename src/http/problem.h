/* hapax's own answers: problem documents (RFC 9457), each code with its
 * status, whether anything was executed, and what a client may do next. One
 * table, from which the answers, the pages at /.hapax/problems/<code> and the
 * reference come. */
#ifndef HPX_HTTP_PROBLEM_H
#define HPX_HTTP_PROBLEM_H

#include "base/buffer.h"

/* Examples that several codes share. */
#define HPX_EXAMPLE_SAME_KEY \
	"# after the seconds in Retry-After: the same body, the same key\n" \
	"POST /payments HTTP/1.1\n" \
	"Idempotency-Key: order-1001\n\n" \
	"{\"amount\": 499}"
#define HPX_EXAMPLE_SAME_REQUEST \
	"# the same body, the same key\n" \
	"POST /payments HTTP/1.1\n" \
	"Idempotency-Key: order-1001\n\n" \
	"{\"amount\": 499}"
#define HPX_EXAMPLE_NEW_KEY \
	"# only if you want to pay once more: a new key\n" \
	"POST /payments HTTP/1.1\n" \
	"Idempotency-Key: order-1001-second\n\n" \
	"{\"amount\": 499}"
#define HPX_EXAMPLE_KEY_MADE \
	"POST /payments HTTP/1.1\n" \
	"Idempotency-Key: 8e03978e-40d5-43dd-bc93-6894a57f9324\n\n" \
	"{\"amount\": 499}"
#define HPX_EXAMPLE_ASK_LATER \
	"# later: the same body with the same key, or ask for the state alone\n" \
	"GET /.hapax/operations?path=/payments HTTP/1.1\n" \
	"Idempotency-Key: order-1001"

/* X(code, status, executed, retry, title, explanation: also the answer's detail, what the
 * developer of a client should do, in three sentences, an example of that) */
#define HPX_PROBLEM_LIST(X) \
	X(idempotency_key_missing, 400, "no", "after_fix", \
	  "An idempotency key is required", \
	  "This request changes something, so it needs the header Idempotency-Key. The client makes one key for each effect that it wants, such as a UUID, and sends the same key with every retry.", \
	  "Make a key before you send the request: a UUID, or the id of the order to be paid. Save the key with the order, so that a retry after a crash sends the same key. Send it in the header Idempotency-Key, as you would set any other header.", \
	  HPX_EXAMPLE_KEY_MADE) \
	X(idempotency_key_invalid, 400, "no", "after_fix", \
	  "The idempotency key is malformed", \
	  "A key has 1 to 255 bytes of printable ASCII and is sent once. It is a quoted string (\"8e03978e\") or bare (8e03978e); a bare key has no spaces and no commas.", \
	  "Read detail in the answer: it says what is wrong with this key. Send the header once, with at most 255 characters and without spaces, commas or quotes in the key. A UUID is always accepted.", \
	  HPX_EXAMPLE_KEY_MADE) \
	X(unauthenticated, 401, "no", "after_fix", \
	  "It is not clear who is calling", \
	  "hapax keeps the keys of each caller apart, and knows a caller by the credentials of the request. The credentials of this request do not identify a caller. Send Authorization with Bearer or Basic, or X-Api-Key; or the operator sets tenant in the configuration.", \
	  "Send the credentials that the API asks for, with the first request and with every retry. If you did send them, show detail to the operator: it has the line of configuration that tells hapax which header identifies a caller. Keep the key, because nothing was executed.", \
	  "POST /payments HTTP/1.1\n" \
	  "Authorization: Bearer 3f8a...\n" \
	  "Idempotency-Key: order-1001") \
	X(forbidden, 403, "no", "after_fix", \
	  "This caller may not do that", \
	  "The authorisation service knows these credentials and refuses this request. Nothing was sent to the service. Use credentials that are allowed to do this.", \
	  "Use credentials that are allowed to do this, or ask the operator of the API for permission. A retry with the same credentials gets the same answer. You can use the key again, because nothing was executed.", \
	  "POST /payments HTTP/1.1\n" \
	  "Authorization: Bearer of-another-account\n" \
	  "Idempotency-Key: order-1001") \
	X(tenant_unavailable, 503, "no", "same_key", \
	  "The caller could not be identified now", \
	  "The service that says whose credentials these are did not answer. hapax cannot look up a key without knowing the caller, so nothing was sent to the service. Send the request again with the same key after Retry-After.", \
	  "Wait for the seconds in Retry-After, then send the same request with the same key. You do not have to change anything in it. If it is refused again, go on with longer pauses.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(idempotency_key_reused, 422, "no", "never", \
	  "The idempotency key was used for another request", \
	  "A key stands for one request. This key was first sent with another method, path, query, media type or body. The first operation is untouched. Make a new key for a new request.", \
	  "Find out why two different requests have one key: often the key is made from a customer or a date, a counter began again, or the body has a time that changes with each try. Make a new key for a new request, but send a retry with exactly the first body. Do not make a new key for a retry: the effect would happen twice.", \
	  "# the body of the first request, with its key\n" \
	  "POST /payments HTTP/1.1\n" \
	  "Idempotency-Key: order-1001\n\n" \
	  "{\"amount\": 499}") \
	X(idempotency_key_in_progress, 409, "unknown", "same_key", \
	  "The first request with this key is still being processed", \
	  "The same request is being processed. Send it again with the same key after Retry-After to get its answer.", \
	  "Wait for the seconds in Retry-After, then send the same request with the same key. When the first request has its answer, you get that answer. Do not make a new key: that would be a second payment.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(idempotency_outcome_unknown, 409, "unknown", "same_key", \
	  "It is not known yet whether this operation happened", \
	  "The request was sent to the service, but the answer was lost, so it may have happened. It is not sent again. When the outcome is known, a retry with the same key gets it.", \
	  "Do not tell your user that it failed, and do not make a new key: the payment may have happened. Send the same request with the same key again after Retry-After, then with longer and longer pauses, for days if you have to. If it is urgent, give the reference in operation to the operator, who can find out what happened.", \
	  HPX_EXAMPLE_ASK_LATER) \
	X(idempotency_store_unavailable, 503, "no", "same_key", \
	  "The key store cannot be reached", \
	  "Without its store hapax cannot make sure that this happens once, so nothing was sent to the service. Send the request again with the same key.", \
	  "Wait for the seconds in Retry-After, then send the same request with the same key. This request executed nothing, but an earlier one with the same key may have, so do not make a new key. If it is refused again, go on with longer pauses.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(overloaded, 503, "no", "same_key", \
	  "hapax has too much to do", \
	  "A limit on connections, waiting requests or memory is reached. Nothing was sent to the service. Send the request again with the same key after Retry-After.", \
	  "Wait for the seconds in Retry-After and a random time more, so that not all clients come back at once. Send the same request with the same key. If this happens often, send fewer requests at the same time.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(rate_limited, 429, "no", "same_key", \
	  "Too many requests in a short time", \
	  "There were more requests of this caller, with this key or on this path than the limit allows (RateLimit-Policy says how many). This request did nothing, and nothing of it is stored. Send it again with the same key after Retry-After.", \
	  "Wait for the seconds in Retry-After, then send the same request with the same key. Look for a loop that retries without a pause: it is the usual cause. If you need a higher rate than RateLimit-Policy says, ask the operator.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(too_many_keys, 429, "no", "same_key", \
	  "This caller has too many keys or too much stored", \
	  "This caller has as many unexpired keys, or as many bytes stored for them, as the limit allows. Nothing was executed. Retries of known keys are answered as before. Send the request again with the same key after Retry-After, when older keys have expired.", \
	  "Wait for the seconds in Retry-After, then send the same request with the same key. Older keys expire without your doing anything. If you need more keys at the same time, ask the operator.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(upstream_unreachable, 502, "no", "same_key", \
	  "The service behind hapax cannot be reached", \
	  "No byte of the request was sent to the service: the connection was refused, took too long, or the name was not found. Send the request again with the same key.", \
	  "Wait for the seconds in Retry-After, then send the same request with the same key. Nothing was executed. If the service is still not reached, go on with longer pauses.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(upstream_outcome_unknown, 504, "unknown", "same_key", \
	  "The answer of the service behind hapax was lost", \
	  "The request was sent to the service, but no complete answer came back, or the answer could not be stored, so it may have happened. Send the request again with the same key: it is not executed twice.", \
	  "Do not tell your user that it failed, and do not make a new key: it may have happened. Send the same request with the same key again; it is not executed twice. If the next answer is idempotency_outcome_unknown, go on with longer and longer pauses.", \
	  HPX_EXAMPLE_ASK_LATER) \
	X(upstream_not_executed, 502, "no", "same_key", \
	  "The service behind hapax did not finish", \
	  "The request was sent to the service, and no answer came. On this route only what the service commits together with its answer counts. It committed nothing, and it can commit nothing any more, so the operation did not happen. Send the request again with the same key.", \
	  "Wait for the seconds in Retry-After, then send the same request with the same key. It is certain that nothing happened. If the service does not finish again, go on with longer pauses.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(response_not_kept, 409, "yes", "never", \
	  "It happened, but its answer was not kept", \
	  "The operation was executed, but hapax cannot give its answer again. The answer was too large, was a stream, belongs to a route that stores no answers, or was lost. original_status and location say what is known of it.", \
	  "Treat the operation as done: it was executed once. Look up the result at the path in location, or by the id in your request, instead of sending it again. Make a new key only if you want it to happen a second time.", \
	  "# the path in location of this answer\n" \
	  "GET /payments/7 HTTP/1.1") \
	X(not_delivered, 408, "no", "never", \
	  "The request was not delivered in time", \
	  "hapax accepted the request to deliver it later, and the time for that ended before any of it was sent. It did not happen and will not happen. Make a new key to ask for it again.", \
	  "Tell your user that it did not happen and will not happen. Ask whether it is still wanted. If it is, send the request with a new key.", \
	  "# still wanted: a new key\n" \
	  "POST /payments HTTP/1.1\n" \
	  "Idempotency-Key: order-1001-second\n\n" \
	  "{\"amount\": 499}") \
	X(declined, 402, "yes", "never", \
	  "The request was declined", \
	  "The answer of the service was lost. The service said later that it had received the request and declined it. Make a new key for another try.", \
	  "Tell your user that the request was declined. Make a new key for the next try, for instance with another card. A retry with the old key gets this answer again.", \
	  "# another card: a new key\n" \
	  "POST /payments HTTP/1.1\n" \
	  "Idempotency-Key: order-1001-second\n\n" \
	  "{\"amount\": 499, \"card\": \"card_2\"}") \
	X(webhook_unverified, 401, "no", "after_fix", \
	  "The signature of the webhook could not be verified", \
	  "hapax accepts a message only with a recent signature that was made with the sender's secret. The answer does not say which check failed; the operator sees it in the metric hapax_webhooks_total.", \
	  "Sign the exact bytes of the body with the secret that the operator gave you. Make a new signature each time you send the message, because old signatures are refused. Check the clocks of both machines.", \
	  "POST /.hapax/webhooks/bank HTTP/1.1\n" \
	  "Stripe-Signature: t=1763450000,v1=5257a8...\n\n" \
	  "{\"id\": \"evt_1\"}") \
	X(request_too_large, 413, "no", "after_fix", \
	  "The request body is too large", \
	  "hapax holds the body of a guarded request in memory to compute its fingerprint, so its size is limited (limits.request_body).", \
	  "Make the body smaller: upload a file with a request of its own, and name its id in this one. If the API promises to take larger bodies, ask the operator to raise limits.request_body. You can use the key again, because nothing was executed.", \
	  "POST /invoices HTTP/1.1\n" \
	  "Idempotency-Key: invoice-88\n\n" \
	  "{\"document\": \"file_31\"}") \
	X(headers_too_large, 431, "no", "after_fix", \
	  "The request head is too large", \
	  "The size of the request line with all headers is limited (limits.head), and so is the number of headers (limits.fields).", \
	  "Find the header that has grown: it is usually a cookie or a token. Make it shorter, or ask the operator to raise limits.head. You can use the key again, because nothing was executed.", \
	  "# without the large cookie\n" \
	  "POST /payments HTTP/1.1\n" \
	  "Authorization: Bearer 3f8a...\n" \
	  "Idempotency-Key: order-1001\n\n" \
	  "{\"amount\": 499}") \
	X(bad_request, 400, "no", "after_fix", \
	  "The request is malformed", \
	  "The request breaks a rule of HTTP/1.1 that says where a message ends or whom it is for, or it has a method or a header that two servers may read differently. hapax refuses it, because the next server could read it in another way.", \
	  "Read detail in the answer: it says which part of the request is malformed. The usual causes are a header written by hand, a proxy that changes requests, and a method in lower case. Let an HTTP library write the request; you can use the key again, because nothing was executed.", \
	  "POST /payments HTTP/1.1\n" \
	  "Host: api.example\n" \
	  "Content-Length: 15\n" \
	  "Idempotency-Key: order-1001\n\n" \
	  "{\"amount\": 499}") \
	X(request_too_old, 400, "no", "after_fix", \
	  "The request is too old to begin something new", \
	  "This route accepts a new key only if a header of the request has a recent time (max_age). Nothing was executed. Make the request again, with a new key and the current time.", \
	  "Send the current time in the header that detail names. Check that the clock of the client is right. If the request waited too long in a queue, ask a person whether it is still wanted, and send it with a new key.", \
	  "POST /payments HTTP/1.1\n" \
	  "Date: Tue, 17 Nov 2026 10:00:00 GMT\n" \
	  "Idempotency-Key: order-1002") \
	X(request_timeout, 408, "no", "same_key", \
	  "The request came too slowly", \
	  "The head or the body of the request did not arrive in time. Nothing was sent to the service.", \
	  "Send the same request with the same key again. Write head and body without a pause between them. If it is too slow again, use a better connection or a smaller body.", \
	  HPX_EXAMPLE_SAME_REQUEST) \
	X(not_found, 404, "no", "after_fix", \
	  "hapax has nothing at this address", \
	  "hapax knows no operation, policy or page of that name for this caller.", \
	  "Check the reference or the key that you ask for, and with a key the path and method of its request. Send the credentials of the caller that made the request: nobody else sees the operation. A key that was never used, or was forgotten, is not found either.", \
	  "GET /.hapax/operations?path=/payments HTTP/1.1\n" \
	  "Authorization: Bearer 3f8a...\n" \
	  "Idempotency-Key: order-1001") \
	X(idempotency_key_expired, 410, "yes", "never", \
	  "The idempotency key has expired", \
	  "A request with this key was executed, and its answer is no longer kept. This route does not execute an expired key again. Make a new key only if you want it to happen once more.", \
	  "Treat the operation as done: it was executed once, and its answer is no longer kept. Look up the result in the API. Make a new key only if you want it to happen once more.", \
	  HPX_EXAMPLE_NEW_KEY) \
	X(expired, 410, "yes", "never", \
	  "The operation has expired", \
	  "The record of this operation is past its retention. A request with the same key would be executed as a new operation.", \
	  "Treat the operation as ended: its answer is no longer kept. Look up the result in the API itself. Do not send the request again with the same key, because it would be executed a second time.", \
	  "# the result, from the API itself\n" \
	  "GET /payments?order=1001 HTTP/1.1")

enum hpx_problem_code {
#define X(code, status, executed, retry, title, page, advice, example) HPX_PROBLEM_##code,
	HPX_PROBLEM_LIST(X)
#undef X
		HPX_PROBLEM_COUNT
};

struct hpx_problem_kind {
	const char *code;
	unsigned status;
	const char *executed;
	const char *retry;
	const char *title;
	const char *page;
	const char *advice;
	const char *example;
};

const struct hpx_problem_kind *hpx_problem_kind(enum hpx_problem_code code);
/* NULL where there is no such code. */
const struct hpx_problem_kind *hpx_problem_by_name(struct hpx_span code);

/* One answer. Zero or NULL members are left out, or come from the kind. */
struct hpx_problem {
	enum hpx_problem_code code;
	unsigned status;           /* 0: the kind's */
	const char *detail;        /* NULL: the kind's page text */
	const char *executed;      /* NULL: the kind's */
	struct hpx_span operation; /* the reference */
	unsigned original_status;  /* response_not_kept */
	struct hpx_span location;
};

/* How hapax's own answers look: `errors`. */
enum hpx_problem_shape { HPX_SHAPE_PROBLEM,
			 HPX_SHAPE_STRIPE,
			 HPX_SHAPE_PAYPAL,
			 HPX_SHAPE_SQUARE };

/* In that shape; `*ret_type` is its media type. */
enum hpx_status hpx_problem_print_as(enum hpx_problem_shape shape, const struct hpx_problem *problem,
				     struct hpx_buffer *out, struct hpx_span *ret_type);

/* application/problem+json: type (/.hapax/problems/<code>), title, status,
 * detail, code, executed, retry, operation, … */
enum hpx_status hpx_problem_print(const struct hpx_problem *problem, struct hpx_buffer *out);
/* Stripe's shape: {"error":{"type":"idempotency_error"|"invalid_request_error"
 * |"api_error"|"authentication_error","code":…,"message":…,"executed":…,
 * "retry":…,"operation":…,"doc_url":…}}. */
enum hpx_status hpx_problem_print_stripe(const struct hpx_problem *problem,
					 struct hpx_buffer *out);
/* PayPal's: {"name":"UNPROCESSABLE_ENTITY","message":…,"debug_id":…,"details":[{"issue":
 * "DUPLICATE_REQUEST_ID","description":…}],"links":[…]}, and the members of a problem
 * beside them. */
enum hpx_status hpx_problem_print_paypal(const struct hpx_problem *problem,
					 struct hpx_buffer *out);
/* Square's: {"errors":[{"category":"INVALID_REQUEST_ERROR","code":"IDEMPOTENCY_KEY_REUSED",
 * "detail":…}]}, and the same beside it. */
enum hpx_status hpx_problem_print_square(const struct hpx_problem *problem,
					 struct hpx_buffer *out);
/* The page about a code, as HTML. */
enum hpx_status hpx_problem_page(const struct hpx_problem_kind *kind, struct hpx_buffer *out);
/* All of them, as docs/reference/problems.md. */
enum hpx_status hpx_problem_print_reference(struct hpx_buffer *out);

#endif
