/* hapax's own answers: problem documents (RFC 9457), each code with its
 * status, whether anything was executed, and what a client may do next. One
 * table, from which the answers, the pages at /.hapax/problems/<code> and the
 * reference come. */
#ifndef HPX_HTTP_PROBLEM_H
#define HPX_HTTP_PROBLEM_H

#include "base/buffer.h"

/* X(code, status, executed, retry, title, explanation for the page) */
#define HPX_PROBLEM_LIST(X) \
	X(idempotency_key_missing, 400, "no", "after_fix", \
	  "An idempotency key is required", \
	  "This request changes something, so it needs an Idempotency-Key header: a value that the client makes once per intended effect, such as a UUID, and sends again with every retry.") \
	X(idempotency_key_invalid, 400, "no", "after_fix", \
	  "The idempotency key is malformed", \
	  "The key is 1 to 255 bytes of printable ASCII, sent once, as a quoted string (\"8e03978e\") or bare (8e03978e), without spaces or commas in the bare form.") \
	X(unauthenticated, 401, "no", "after_fix", \
	  "It is not clear who is calling", \
	  "Keys are kept apart by caller, and the caller is taken from the credentials of the request. This request's credentials do not name a caller that hapax can tell from others. Send Authorization with Bearer or Basic, or X-Api-Key; or the operator sets tenant in the configuration.") \
	X(forbidden, 403, "no", "after_fix", \
	  "This caller may not do that", \
	  "The service that knows the callers knows these credentials and refuses them. Nothing was sent on. Use credentials that are allowed to do this.") \
	X(tenant_unavailable, 503, "no", "same_key", \
	  "Who is calling could not be found out", \
	  "The service that tells whom the credentials belong to did not answer. Without a caller no key can be looked up, so nothing was sent on. Send it again with the same key after Retry-After.") \
	X(idempotency_key_reused, 422, "no", "never", \
	  "The idempotency key was used for another request", \
	  "A key stands for one request. This one was first sent with another method, path, query, media type or body. The first operation is untouched. Make a new key for a new request.") \
	X(idempotency_key_in_progress, 409, "unknown", "same_key", \
	  "The first request with this key is still being processed", \
	  "The same request is under way. Send it again with the same key after Retry-After to get its answer.") \
	X(idempotency_outcome_unknown, 409, "unknown", "same_key", \
	  "Nobody knows yet what became of this operation", \
	  "The request was sent on, but its answer was lost, so it may have happened. It is not sent again. Once the outcome is settled, a retry with the same key gets it.") \
	X(idempotency_store_unavailable, 503, "no", "same_key", \
	  "The key store cannot be reached", \
	  "Without its store hapax cannot promise that this happens once, so nothing was sent on. Send it again with the same key.") \
	X(overloaded, 503, "no", "same_key", \
	  "Too much is under way", \
	  "A limit on connections, waiting requests or memory is reached. Nothing was sent on. Send it again with the same key after Retry-After.") \
	X(rate_limited, 429, "no", "same_key", \
	  "Too many requests in a short time", \
	  "More came than is taken from one caller, for one key or on this path in such a time (RateLimit-Policy says how many). This request did nothing, and nothing is kept of it. Send it again with the same key after Retry-After.") \
	X(too_many_keys, 429, "no", "same_key", \
	  "This caller has too many keys or too much stored", \
	  "The keys of this caller that have not expired, or what is stored for them, have reached a limit. Nothing was done. Known keys are answered as before. Send it again with the same key after Retry-After, when older ones have expired.") \
	X(upstream_unreachable, 502, "no", "same_key", \
	  "The service behind hapax cannot be reached", \
	  "No byte of the request was sent on: the connection was refused, could not be made in time, or the name was not found. Send it again with the same key.") \
	X(upstream_outcome_unknown, 504, "unknown", "same_key", \
	  "The answer of the service behind hapax was lost", \
	  "The request was sent on, but no complete answer came back or it could not be stored, so it may have happened. Send it again with the same key: it is not executed twice.") \
	X(upstream_not_executed, 502, "no", "same_key", \
	  "The service behind hapax did not finish", \
	  "The request was sent on and ended without an answer. Only what the service commits together with its answer counts, and it committed nothing and cannot any more: it did not happen. Send it again with the same key.") \
	X(response_not_kept, 409, "yes", "never", \
	  "It happened, but its answer was not kept", \
	  "The operation was executed. Its answer was too large to store, a stream, or of a route that stores none, or it was lost and only later found out that it happened, so it cannot be given again. original_status and location tell what is known of it.") \
	X(not_delivered, 408, "no", "never", \
	  "The request was not delivered in time", \
	  "It was accepted to be delivered later, and its time ended before anything of it was sent. It did not happen and will not. Make a new key to ask for it anew.") \
	X(declined, 402, "yes", "never", \
	  "The request was declined", \
	  "The answer of the service was lost, and it said later that it had received the request and declined it. Make a new key for another try.") \
	X(webhook_unverified, 401, "no", "after_fix", \
	  "The webhook is not signed by a secret that is known here", \
	  "A message is taken only with a signature of its sender, made lately. Which part of it did not fit is not told here; the metrics of hapax count it (hapax_webhooks_total).") \
	X(request_too_large, 413, "no", "after_fix", \
	  "The request body is too large", \
	  "The body of a guarded request is held in memory until its fingerprint is known, so it is bounded (limits.request_body).") \
	X(headers_too_large, 431, "no", "after_fix", \
	  "The request head is too large", \
	  "The request line and the headers together are bounded (limits.head), and so is their number.") \
	X(bad_request, 400, "no", "after_fix", \
	  "The request is malformed", \
	  "The request breaks a rule of HTTP/1.1 that decides where a message ends or whom it is for, or it has a method or a header that two servers may read differently. hapax refuses it rather than guess what the next server would make of it.") \
	X(request_too_old, 400, "no", "after_fix", \
	  "The request is too old to begin something new", \
	  "This route takes a new key only with a recent time in the header that it names (max_age). Nothing was executed. Make the request anew, with a new key and the time of now.") \
	X(request_timeout, 408, "no", "same_key", \
	  "The request came too slowly", \
	  "The head or the body did not arrive in time. Nothing was sent on.") \
	X(not_found, 404, "no", "after_fix", \
	  "There is no such thing here", \
	  "No operation, policy or page of that name is known to hapax for this caller.") \
	X(idempotency_key_expired, 410, "yes", "never", \
	  "The idempotency key has expired", \
	  "A request with this key was executed, and its answer is past its retention, so it cannot be given again. This route does not execute an expired key. Make a new key only if it is to happen once more.") \
	X(expired, 410, "yes", "never", \
	  "The operation has expired", \
	  "Its record is past its retention. The same key would be executed as a new operation.")

enum hpx_problem_code {
#define X(code, status, executed, retry, title, page) HPX_PROBLEM_##code,
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

#endif
