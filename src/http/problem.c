/* Problem documents: printed from the one table, as RFC 9457 has them or in
 * Stripe's shape. The pages for people are in page.c. */
#include "http/problem.h"

static const struct hpx_problem_kind kinds[HPX_PROBLEM_COUNT] = {
#define X(code, status, executed, retry, title, page) \
	[HPX_PROBLEM_##code] = { #code, status, executed, retry, title, page },
	HPX_PROBLEM_LIST(X)
#undef X
};

const struct hpx_problem_kind *hpx_problem_kind(enum hpx_problem_code code)
{
	return &kinds[code];
}

const struct hpx_problem_kind *hpx_problem_by_name(struct hpx_span code)
{
	for (size_t i = 0; i < HPX_PROBLEM_COUNT; i++)
		if (hpx_span_eq(code, hpx_span_of(kinds[i].code)))
			return &kinds[i];
	return NULL;
}

/* A JSON object under way: the first failure stays, what follows is skipped. */
struct object {
	struct hpx_buffer *out;
	enum hpx_status status;
	bool begun;
};

static void put(struct object *object, const char *text)
{
	if (object->status == HPX_OK)
		object->status = hpx_buffer_text(object->out, text);
}

/* Names are ours and need no escaping. */
static void put_name(struct object *object, const char *name)
{
	put(object, object->begun ? ",\"" : "\"");
	put(object, name);
	put(object, "\":");
	object->begun = true;
}

static void put_parts(struct object *object, const char *name, const char *prefix,
		      struct hpx_span value)
{
	put_name(object, name);
	put(object, "\"");
	put(object, prefix);
	if (object->status == HPX_OK)
		object->status = hpx_buffer_json(object->out, value);
	put(object, "\"");
}

static void put_text(struct object *object, const char *name, const char *value)
{
	put_parts(object, name, "", hpx_span_of(value));
}

static void put_span(struct object *object, const char *name, struct hpx_span value)
{
	if (value.len > 0)
		put_parts(object, name, "", value);
}

static void put_number(struct object *object, const char *name, unsigned value)
{
	put_name(object, name);
	if (object->status == HPX_OK)
		object->status = hpx_buffer_printf(object->out, "%u", value);
}

static void put_link(struct object *object, const char *name,
		     const struct hpx_problem_kind *kind)
{
	put_parts(object, name, "/.hapax/problems/", hpx_span_of(kind->code));
}

/* What a client needs to know before it tries again, in either shape. */
static void put_outcome(struct object *object, const struct hpx_problem *problem,
			const struct hpx_problem_kind *kind)
{
	put_text(object, "code", kind->code);
	put_text(object, "executed", problem->executed ? problem->executed : kind->executed);
	put_text(object, "retry", kind->retry);
	put_span(object, "operation", problem->operation);
	if (problem->original_status != 0)
		put_number(object, "original_status", problem->original_status);
	put_span(object, "location", problem->location);
}

static const char *detail_of(const struct hpx_problem *problem,
			     const struct hpx_problem_kind *kind)
{
	return problem->detail != NULL ? problem->detail : kind->page;
}

/* All or nothing: half a document is taken back. */
static enum hpx_status finish(const struct object *object, size_t begin)
{
	if (object->status != HPX_OK)
		object->out->len = begin;
	return object->status;
}

enum hpx_status hpx_problem_print(const struct hpx_problem *problem, struct hpx_buffer *out)
{
	const struct hpx_problem_kind *kind = hpx_problem_kind(problem->code);
	struct object object = { .out = out };
	size_t begin = out->len;

	put(&object, "{");
	put_link(&object, "type", kind);
	put_text(&object, "title", kind->title);
	put_number(&object, "status", problem->status != 0 ? problem->status : kind->status);
	put_text(&object, "detail", detail_of(problem, kind));
	put_outcome(&object, problem, kind);
	put(&object, "}\n");
	return finish(&object, begin);
}

static const char *stripe_type(enum hpx_problem_code code)
{
	switch (code) {
	case HPX_PROBLEM_idempotency_key_missing:
	case HPX_PROBLEM_idempotency_key_invalid:
	case HPX_PROBLEM_bad_request:
	case HPX_PROBLEM_request_too_large:
	case HPX_PROBLEM_headers_too_large:
		return "invalid_request_error";
	case HPX_PROBLEM_unauthenticated:
	case HPX_PROBLEM_forbidden:
	case HPX_PROBLEM_webhook_unverified:
		return "authentication_error";
	case HPX_PROBLEM_idempotency_key_reused:
	case HPX_PROBLEM_idempotency_key_in_progress:
	case HPX_PROBLEM_idempotency_outcome_unknown:
	case HPX_PROBLEM_idempotency_store_unavailable:
		return "idempotency_error";
	default:
		return "api_error";
	}
}

enum hpx_status hpx_problem_print_stripe(const struct hpx_problem *problem,
					 struct hpx_buffer *out)
{
	const struct hpx_problem_kind *kind = hpx_problem_kind(problem->code);
	struct object object = { .out = out };
	size_t begin = out->len;

	put(&object, "{\"error\":{");
	put_text(&object, "type", stripe_type(problem->code));
	put_text(&object, "message", detail_of(problem, kind));
	put_outcome(&object, problem, kind);
	put_link(&object, "doc_url", kind);
	put(&object, "}}\n");
	return finish(&object, begin);
}
