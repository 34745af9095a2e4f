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
#define HPX_EXAMPLE_NEW_KEY \
	"# only if it is wanted anew: a new key\n" \
	"POST /payments HTTP/1.1\n" \
	"Idempotency-Key: order-1001-second\n\n" \
	"{\"amount\": 499}"
#define HPX_EXAMPLE_KEY_MADE \
	"POST /payments HTTP/1.1\n" \
	"Idempotency-Key: 8e03978e-40d5-43dd-bc93-6894a57f9324\n\n" \
	"{\"amount\": 499}"
#define HPX_EXAMPLE_ASK_LATER \
	"# again later: the same body, the same key; or only ask\n" \
	"GET /.hapax/operations?path=/payments HTTP/1.1\n" \
	"Idempotency-Key: order-1001"

/* X(code, status, executed, retry, title, explanation: also the answer's detail, what the
 * developer of a client should do, in three sentences, an example of that) */
#define HPX_PROBLEM_LIST(X) \
	X(idempotency_key_missing, 400, "no", "after_fix", \
	  "An idempotency key is required", \
	  "This request changes something, so it needs an Idempotency-Key header: a value that the client makes once per intended effect, such as a UUID, and sends again with every retry.", \
	  "Make a key before you send the request: a UUID, or the id of the order that is paid. Keep it with the order, so that a retry after a crash sends the same one. Send it in the header Idempotency-Key; if your library has no such option, set it as any other header.", \
	  HPX_EXAMPLE_KEY_MADE) \
	X(idempotency_key_invalid, 400, "no", "after_fix", \
	  "The idempotency key is malformed", \
	  "The key is 1 to 255 bytes of printable ASCII, sent once, as a quoted string (\"8e03978e\") or bare (8e03978e), without spaces or commas in the bare form.", \
	  "Look at the bytes that you send: no spaces, commas or quotes inside, at most 255 characters, and the header only once. A UUID is always right. detail says what is wrong with this key.", \
	  HPX_EXAMPLE_KEY_MADE) \
	X(unauthenticated, 401, "no", "after_fix", \
	  "It is not clear who is calling", \
	  "Keys are kept apart by caller, and the caller is taken from the credentials of the request. This request's credentials do not name a caller that hapax can tell from others. Send Authorization with Bearer or Basic, or X-Api-Key; or the operator sets tenant in the configuration.", \
	  "Send the credentials that the API asks for, with every try. If you do send them, the operator has to tell hapax which header names the caller; detail says the line of configuration. Keep the key: nothing was executed.", \
	  "POST /payments HTTP/1.1\n" \
	  "Authorization: Bearer 3f8a...\n" \
	  "Idempotency-Key: order-1001") \
	X(forbidden, 403, "no", "after_fix", \
	  "This caller may not do that", \
	  "The service that knows the callers knows these credentials and refuses them. Nothing was sent on. Use credentials that are allowed to do this.", \
	  "Use credentials that may do this, or ask the operator of the API for the right. A retry with the same credentials gets the same answer. The key may be used again: nothing was executed.", \
	  "POST /payments HTTP/1.1\n" \
	  "Authorization: Bearer of-another-account\n" \
	  "Idempotency-Key: order-1001") \
	X(tenant_unavailable, 503, "no", "same_key", \
	  "Who is calling could not be found out", \
	  "The service that tells whom the credentials belong to did not answer. Without a caller no key can be looked up, so nothing was sent on. Send it again with the same key after Retry-After.", \
	  "Wait for the seconds in Retry-After, and send the same request with the same key. Nothing has to be changed in it. Go on with longer pauses, as long as the order is wanted.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(idempotency_key_reused, 422, "no", "never", \
	  "The idempotency key was used for another request", \
	  "A key stands for one request. This one was first sent with another method, path, query, media type or body. The first operation is untouched. Make a new key for a new request.", \
	  "Find out why two different requests have one key: a key made from a customer or a day instead of one intended payment, a counter that began anew, or a time inside the body that changes with each try. For a new request make a new key; for a retry send exactly the first body. Do not make a new key only to get through: if this was a retry, the effect would happen twice.", \
	  "# the body of the first request, with its key\n" \
	  "POST /payments HTTP/1.1\n" \
	  "Idempotency-Key: order-1001\n\n" \
	  "{\"amount\": 499}") \
	X(idempotency_key_in_progress, 409, "unknown", "same_key", \
	  "The first request with this key is still being processed", \
	  "The same request is under way. Send it again with the same key after Retry-After to get its answer.", \
	  "Wait for the seconds in Retry-After, then send the same request with the same key. You get the answer of the first one when it is there. Do not make a new key: that would be a second payment.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(idempotency_outcome_unknown, 409, "unknown", "same_key", \
	  "Nobody knows yet what became of this operation", \
	  "The request was sent on, but its answer was lost, so it may have happened. It is not sent again. Once the outcome is settled, a retry with the same key gets it.", \
	  "Do not show this as a failure, and do not make a new key: the payment may have happened. Send the same request with the same key again later, first after Retry-After, then in growing pauses, for days if need be. If it is urgent, give the reference in operation to the operator, who can find out and settle it.", \
	  HPX_EXAMPLE_ASK_LATER) \
	X(idempotency_store_unavailable, 503, "no", "same_key", \
	  "The key store cannot be reached", \
	  "Without its store hapax cannot promise that this happens once, so nothing was sent on. Send it again with the same key.", \
	  "Wait for the seconds in Retry-After, and send the same request with the same key. Nothing was executed by this one, but an earlier try with the same key may have been: keep the key. Go on with longer pauses.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(overloaded, 503, "no", "same_key", \
	  "Too much is under way", \
	  "A limit on connections, waiting requests or memory is reached. Nothing was sent on. Send it again with the same key after Retry-After.", \
	  "Wait for the seconds in Retry-After, with some randomness, so that not all clients come back at once. Send the same request with the same key. If this happens often, send fewer requests at the same time.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(rate_limited, 429, "no", "same_key", \
	  "Too many requests in a short time", \
	  "More came than is taken from one caller, for one key or on this path in such a time (RateLimit-Policy says how many). This request did nothing, and nothing is kept of it. Send it again with the same key after Retry-After.", \
	  "Wait for the seconds in Retry-After, and send the same request with the same key. Send fewer requests at once, or ask the operator for a higher rate; RateLimit-Policy says the one in force. A loop that retries without a pause is the usual cause.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(too_many_keys, 429, "no", "same_key", \
	  "This caller has too many keys or too much stored", \
	  "The keys of this caller that have not expired, or what is stored for them, have reached a limit. Nothing was done. Known keys are answered as before. Send it again with the same key after Retry-After, when older ones have expired.", \
	  "Wait for the seconds in Retry-After, and send the same request with the same key. Keys expire by themselves; a retry of a known key is still answered. If you need more at once, ask the operator.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(upstream_unreachable, 502, "no", "same_key", \
	  "The service behind hapax cannot be reached", \
	  "No byte of the request was sent on: the connection was refused, could not be made in time, or the name was not found. Send it again with the same key.", \
	  "Send the same request with the same key again, after Retry-After or a few seconds. Nothing was executed. Go on with longer pauses.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(upstream_outcome_unknown, 504, "unknown", "same_key", \
	  "The answer of the service behind hapax was lost", \
	  "The request was sent on, but no complete answer came back or it could not be stored, so it may have happened. Send it again with the same key: it is not executed twice.", \
	  "Do not show this as a failure, and do not make a new key: it may have happened. Send the same request with the same key again; it is not executed twice. If the next answer is idempotency_outcome_unknown, go on in growing pauses.", \
	  HPX_EXAMPLE_ASK_LATER) \
	X(upstream_not_executed, 502, "no", "same_key", \
	  "The service behind hapax did not finish", \
	  "The request was sent on and ended without an answer. Only what the service commits together with its answer counts, and it committed nothing and cannot any more: it did not happen. Send it again with the same key.", \
	  "Send the same request with the same key again. It is certain that nothing happened. Go on with longer pauses.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(response_not_kept, 409, "yes", "never", \
	  "It happened, but its answer was not kept", \
	  "The operation was executed. Its answer was too large to store, a stream, or of a route that stores none, or it was lost and only later found out that it happened, so it cannot be given again. original_status and location tell what is known of it.", \
	  "Take it as done: the operation was executed once. Look up the result where location points, or by the id in your request, instead of sending it again. Make a new key only if you want it to happen a second time.", \
	  "GET /payments/7 HTTP/1.1\n" \
	  "# the path that location in this answer names") \
	X(not_delivered, 408, "no", "never", \
	  "The request was not delivered in time", \
	  "It was accepted to be delivered later, and its time ended before anything of it was sent. It did not happen and will not. Make a new key to ask for it anew.", \
	  "It did not happen and will not. Decide whether it is still wanted. If so, send it with a new key.", \
	  HPX_EXAMPLE_NEW_KEY) \
	X(declined, 402, "yes", "never", \
	  "The request was declined", \
	  "The answer of the service was lost, and it said later that it had received the request and declined it. Make a new key for another try.", \
	  "Show your user that it was declined. Send the next try, with another card for instance, under a new key. The same key gets the same answer.", \
	  HPX_EXAMPLE_NEW_KEY) \
	X(webhook_unverified, 401, "no", "after_fix", \
	  "The webhook is not signed by a secret that is known here", \
	  "A message is taken only with a signature of its sender, made lately. Which part of it did not fit is not told here; the metrics of hapax count it (hapax_webhooks_total).", \
	  "Sign the message with the secret that the operator gave you, over the exact bytes of the body. Make the signature anew for each sending, because old ones are refused. Compare the clocks of both sides.", \
	  "POST /.hapax/webhooks/bank HTTP/1.1\n" \
	  "Stripe-Signature: t=1763450000,v1=5257a8...\n\n" \
	  "{\"id\": \"evt_1\"}") \
	X(request_too_large, 413, "no", "after_fix", \
	  "The request body is too large", \
	  "The body of a guarded request is held in memory until its fingerprint is known, so it is bounded (limits.request_body).", \
	  "Make the body smaller: send a file apart and refer to it by its id. If the API promises more, ask the operator to raise limits.request_body. The key may be used again: nothing was executed.", \
	  "POST /invoices HTTP/1.1\n" \
	  "Idempotency-Key: invoice-88\n\n" \
	  "{\"document\": \"file_31\"}") \
	X(headers_too_large, 431, "no", "after_fix", \
	  "The request head is too large", \
	  "The request line and the headers together are bounded (limits.head), and so is their number.", \
	  "Find the header that grew: mostly a cookie or a token. Send less of it, or ask the operator to raise limits.head. The key may be used again: nothing was executed.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(bad_request, 400, "no", "after_fix", \
	  "The request is malformed", \
	  "The request breaks a rule of HTTP/1.1 that decides where a message ends or whom it is for, or it has a method or a header that two servers may read differently. hapax refuses it rather than guess what the next server would make of it.", \
	  "detail says which part of the request is malformed. It is mostly a header written by hand, a proxy that changes requests, or a method in small letters. Let an HTTP library write the request; the key may be used again.", \
	  "POST /payments HTTP/1.1\n" \
	  "Host: api.example\n" \
	  "Content-Length: 15\n" \
	  "Idempotency-Key: order-1001\n\n" \
	  "{\"amount\": 499}") \
	X(request_too_old, 400, "no", "after_fix", \
	  "The request is too old to begin something new", \
	  "This route takes a new key only with a recent time in the header that it names (max_age). Nothing was executed. Make the request anew, with a new key and the time of now.", \
	  "Send the time of now in the header that detail names. Set the clock of the client right. A request that waited in a queue for longer than the limit needs a person's decision, a new time and a new key.", \
	  "POST /payments HTTP/1.1\n" \
	  "Date: Tue, 17 Nov 2026 10:00:00 GMT\n" \
	  "Idempotency-Key: order-1002") \
	X(request_timeout, 408, "no", "same_key", \
	  "The request came too slowly", \
	  "The head or the body did not arrive in time. Nothing was sent on.", \
	  "Send the same request with the same key again, over a better connection or with a smaller body. Send head and body at once. Nothing was executed.", \
	  HPX_EXAMPLE_SAME_KEY) \
	X(not_found, 404, "no", "after_fix", \
	  "There is no such thing here", \
	  "No operation, policy or page of that name is known to hapax for this caller.", \
	  "Look at the reference or the key that you ask for: it belongs to the caller that made it, and to the path and method it was sent to. Ask with the same credentials. A key that was never used, or was forgotten, is not found either.", \
	  "GET /.hapax/operations?path=/payments HTTP/1.1\n" \
	  "Authorization: Bearer 3f8a...\n" \
	  "Idempotency-Key: order-1001") \
	X(idempotency_key_expired, 410, "yes", "never", \
	  "The idempotency key has expired", \
	  "A request with this key was executed, and its answer is past its retention, so it cannot be given again. This route does not execute an expired key. Make a new key only if it is to happen once more.", \
	  "Take it as done: it was executed once, longer ago than the answers are kept. Look up the result in the API. Make a new key only if it is to happen once more.", \
	  HPX_EXAMPLE_NEW_KEY) \
	X(expired, 410, "yes", "never", \
	  "The operation has expired", \
	  "Its record is past its retention. The same key would be executed as a new operation.", \
	  "The operation ended long ago, and its answer is gone. Look up the result in the API itself. Do not send the request again with the same key: it would be executed anew.", \
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
