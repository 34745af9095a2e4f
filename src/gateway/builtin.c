/* Own paths: the published policy, the pages about problems, and the way to
 * operations and webhooks. */
#include "gateway/builtin.h"

#include "gateway/preflight.h"
#include "gateway/respond.h"
#include "gateway/webhook.h"

#define JSON HPX_SPAN("application/json")
#define PAGE_BYTES_MAX (1024 * 1024)

bool hpx_builtin_is(struct hpx_span path)
{
	return hpx_span_eq(path, HPX_SPAN(HPX_BUILTIN_ROOT)) ||
	       hpx_span_starts(path, HPX_SPAN(HPX_BUILTIN_ROOT "/"));
}

enum hpx_next hpx_builtin_refuse(struct hpx_request *request, enum hpx_problem_code code,
				 const char *detail)
{
	struct hpx_refusal refusal = { .detail = detail };

	hpx_respond_refuse(request, code, &refusal, HPX_RESPOND_KEEP);
	return HPX_NEXT_DONE;
}

static enum hpx_next not_found(struct hpx_request *request)
{
	return hpx_builtin_refuse(request, HPX_PROBLEM_not_found, NULL);
}

static enum hpx_next page(struct hpx_request *request, struct hpx_span content_type,
			  enum hpx_status status, struct hpx_buffer *body)
{
	if (status == HPX_OK)
		hpx_respond_direct(request, 200, content_type, (struct hpx_span){ "", 0 },
				   hpx_buffer_span(body));
	else
		(void)hpx_builtin_refuse(request, HPX_PROBLEM_overloaded, NULL);
	hpx_buffer_done(body);
	return HPX_NEXT_DONE;
}

static enum hpx_next problem_page(struct hpx_request *request, struct hpx_span code)
{
	const struct hpx_problem_kind *kind = hpx_problem_by_name(code);
	struct hpx_buffer body;

	if (kind == NULL)
		return not_found(request);
	hpx_buffer_init(&body, PAGE_BYTES_MAX);
	return page(request, HPX_SPAN("text/html; charset=utf-8"), hpx_problem_page(kind, &body),
		    &body);
}

static enum hpx_next policy_page(struct hpx_request *request)
{
	struct hpx_buffer body;

	hpx_buffer_init(&body, PAGE_BYTES_MAX);
	return page(request, JSON, hpx_builtin_policy_print(request->settings, &body), &body);
}

static bool is_get(const struct hpx_request *request)
{
	return hpx_span_eq(request->head.http.method, HPX_SPAN("GET")) ||
	       hpx_span_eq(request->head.http.method, HPX_SPAN("HEAD"));
}

static enum hpx_next wrong_method(struct hpx_request *request, const char *detail,
				  const char *allow)
{
	struct hpx_refusal refusal = { .detail = detail, .status = 405, .allow = allow };

	hpx_respond_refuse(request, HPX_PROBLEM_bad_request, &refusal, HPX_RESPOND_KEEP);
	return HPX_NEXT_DONE;
}

static enum hpx_next webhook(struct hpx_request *request, struct hpx_span name)
{
	if (!hpx_hook_find(request, name))
		return not_found(request);
	if (!hpx_span_eq(request->head.http.method, HPX_SPAN("POST")))
		return wrong_method(request, "this path is for POST", "POST");
	return HPX_NEXT_BODY;
}

enum hpx_next hpx_step_builtin(struct hpx_request *request)
{
	struct hpx_span path = request->head.target.path;
	struct hpx_span problems = HPX_SPAN(HPX_BUILTIN_ROOT "/problems/");
	struct hpx_span operations = HPX_SPAN(HPX_BUILTIN_ROOT "/operations");
	struct hpx_span webhooks = HPX_SPAN(HPX_BUILTIN_ROOT "/webhooks/");

	if (!request->settings->own_paths)
		return not_found(request);
	if (hpx_span_starts(path, webhooks))
		return webhook(request, hpx_span_skip(path, webhooks.len));
	if (hpx_preflight_is(request))
		return hpx_preflight_answer(request);
	if (!is_get(request))
		return wrong_method(request, "this path is for GET", "GET, HEAD");
	if (hpx_span_eq(path, HPX_SPAN(HPX_BUILTIN_ROOT "/policy")))
		return policy_page(request);
	if (hpx_span_starts(path, problems))
		return problem_page(request, hpx_span_skip(path, problems.len));
	if (hpx_span_eq(path, operations) ||
	    (hpx_span_starts(path, operations) && path.len > operations.len + 1 &&
	     path.ptr[operations.len] == '/')) {
		request->head.purpose = HPX_PURPOSE_OPERATION;
		return HPX_NEXT_TENANT;
	}
	return not_found(request);
}
