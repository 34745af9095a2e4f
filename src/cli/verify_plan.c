/* See verify.h. */
#include "cli/verify.h"

#include <inttypes.h>
#include <stdio.h>

#include "config/unit.h"
#include "verify/effect.h"
#include "verify/request.h"
#include "verify/row.h"

#define BODY_SHOWN 2048

void hpx_verify_print_list(void)
{
	for (size_t i = 0; i < hpx_row_count; i++)
		printf("%-18s %-9s %s\n", hpx_rows[i].name,
		       hpx_rows[i].weight == HPX_ROW_REQUIRED ? "required" : "advised",
		       hpx_rows[i].title);
}

/* Indented, and harmless on a terminal. */
static void print_indented(struct hpx_span text)
{
	struct hpx_span line;

	while (hpx_span_line(&text, &line)) {
		printf("    ");
		for (size_t i = 0; i < line.len; i++) {
			unsigned char c = (unsigned char)line.ptr[i];

			putchar(c == '\t' || (c >= 0x20 && c != 0x7f) ? c : '?');
		}
		putchar('\n');
	}
}

static enum hpx_status print_request(struct hpx_verify *run,
				     enum hpx_verify_request_name name)
{
	const struct hpx_request_variant variant = { .op = hpx_verify_op_draft(run, name) };
	struct hpx_request_bytes request;

	if (variant.op == NULL)
		return HPX_NOMEM;
	enum hpx_status status = hpx_request_bytes_build(hpx_verify_spec_of(run), &variant,
							 hpx_verify_arena(run), &request);
	if (status != HPX_OK)
		return status;
	printf("\n  %s: %s\n\n", hpx_verify_request_name_text(name), hpx_verify_request_name_about(name));
	print_indented(request.shown_head);
	if (request.body.len > 0)
		putchar('\n');
	print_indented(hpx_span_first(request.body, BODY_SHOWN));
	if (request.body.len > BODY_SHOWN)
		printf("    … %zu bytes in all\n", request.body.len);
	return HPX_OK;
}

static void print_bounds(const struct hpx_verify_spec *spec)
{
	char time[HPX_UNIT_SIZE], timeout[HPX_UNIT_SIZE], settle[HPX_UNIT_SIZE];

	hpx_duration_print(spec->time_max_ms, time);
	hpx_duration_print(spec->answer_timeout_ms, timeout);
	hpx_duration_print(spec->settle_ms, settle);
	printf("\nBounds: at most %" PRIu64 " requests, nothing sent after %s, %" PRIu64
	       " at once; %s for one answer, %s for a definite one.\n",
	       spec->requests_max, time, spec->concurrency_max, timeout, settle);
	printf("{{uuid}} and {{key}} are made anew for each operation; {{n}} counts up from a "
	       "number\nthat differs from run to run.\n");
	if (spec->crash_cmd.len > 0)
		printf("The server is killed up to %" PRIu64 " times (seed %" PRIu64
		       ") by:\n    %.*s\nand started again by:\n    %.*s\n",
		       spec->crashes, spec->seed, HPX_SPAN_ARG(spec->crash_cmd),
		       HPX_SPAN_ARG(spec->start_cmd));
}

static void print_rows(const struct hpx_verify_spec *spec)
{
	printf("\nRows, and what each sends (those that the description has nothing for send "
	       "nothing):\n\n");
	for (size_t i = 0; i < hpx_row_count; i++)
		printf("  %-18s %s\n", hpx_rows[i].name,
		       hpx_row_is_left_out(&hpx_rows[i], spec) ? "(left out)" : hpx_rows[i].sends);
}

static enum hpx_status print_effects(struct hpx_verify *run, const struct hpx_verify_spec *spec)
{
	const struct hpx_verify_op *op = hpx_verify_op_draft(run, HPX_REQUEST_main);
	struct hpx_span path = { NULL, 0 };

	if (op != NULL)
		path = hpx_verify_op_path(run, op, spec->effects_path);
	if (path.ptr == NULL)
		return HPX_NOMEM;
	printf("\n  effects are counted by:\n\n    GET %.*s\n", HPX_SPAN_ARG(path));
	return HPX_OK;
}

static enum hpx_status print_requests(struct hpx_verify *run, const struct hpx_verify_spec *spec)
{
	enum hpx_status status = HPX_OK;

	printf("Requests would go to %.*s port %u%s and nowhere else.\n",
	       HPX_SPAN_ARG(spec->host), spec->port, spec->tls ? " over TLS" : "");
	for (size_t i = 0; i < HPX_REQUEST_COUNT && status == HPX_OK; i++)
		if (spec->requests[i].given)
			status = print_request(run, (enum hpx_verify_request_name)i);
	return status == HPX_OK && hpx_verify_counts_effects(run) ? print_effects(run, spec) : status;
}

enum hpx_status hpx_verify_print_plan(const struct hpx_verify_spec *spec)
{
	struct hpx_verify *run;
	enum hpx_status status = hpx_verify_new(spec, &run);

	if (status != HPX_OK)
		return status;
	status = print_requests(run, spec);
	hpx_verify_free(run);
	print_rows(spec);
	print_bounds(spec);
	return status;
}
