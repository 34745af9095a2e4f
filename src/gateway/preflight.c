/* 204, and what the page may send. Who it is for is said as on every answer. */
#include "gateway/preflight.h"

#include "gateway/builtin.h"
#include "gateway/respond.h"
#include "http/cors.h"
#include "http/field.h"

/* A head's worth of names, and ours. */
#define FIELDS_BYTES_MAX (64 * 1024)

bool hpx_preflight_is(const struct hpx_request *request)
{
	const struct hpx_http_head *head = &request->head.http;
	struct hpx_span origin = hpx_cors_origin(head);

	return hpx_span_eq(head->method, HPX_SPAN("OPTIONS")) &&
	       hpx_field_find(head, HPX_SPAN("Access-Control-Request-Method")) != NULL &&
	       hpx_cors_allowed(&request->settings->cors, origin).ptr != NULL;
}

enum hpx_next hpx_preflight_answer(struct hpx_request *request)
{
	struct hpx_span asked =
		hpx_field_value(&request->head.http, HPX_SPAN("Access-Control-Request-Headers"));
	struct hpx_buffer fields;

	hpx_buffer_init(&fields, FIELDS_BYTES_MAX);
	if (hpx_cors_write_preflight(HPX_SPAN("GET, HEAD"), request->settings->key_header, asked,
				     &fields) == HPX_OK)
		hpx_respond_direct(request, 204, (struct hpx_span){ "", 0 }, hpx_buffer_span(&fields),
				   (struct hpx_span){ "", 0 });
	else
		(void)hpx_builtin_refuse(request, HPX_PROBLEM_overloaded, NULL);
	hpx_buffer_done(&fields);
	return HPX_NEXT_DONE;
}
