/* Builtin paths: what hapax itself answers under /.hapax/; never forwarded. */
#ifndef HPX_GATEWAY_BUILTIN_H
#define HPX_GATEWAY_BUILTIN_H

#include "gateway/request.h"

#define HPX_BUILTIN_ROOT "/.hapax"

bool hpx_builtin_is(struct hpx_span path);
/* A refusal on a builtin path. */
enum hpx_next hpx_builtin_refuse(struct hpx_request *request, enum hpx_problem_code code,
				 const char *detail);

/* 202 with the operation's place: what is under way or delivered later. */
void hpx_operation_accepted(struct hpx_request *request);
/* The operation in request->reservation.record, with its jobs. */
enum hpx_next hpx_operation_show(struct hpx_request *request);

/* What an operation's caller may know of it, as JSON: no key, no body, nobody's
 * tenant. `jobs` may be NULL; those of another use of the same key are left
 * out. */
enum hpx_status hpx_operation_print(const struct hpx_record *record,
				    const struct hpx_job_entry *jobs,
				    const struct hpx_next_question *question,
				    struct hpx_buffer *out);

/* The published idempotency policy of every route, as JSON (builtin_policy.c). */
enum hpx_status hpx_builtin_policy_print(const struct hpx_settings *settings, struct hpx_buffer *out);

#endif
