/* The functions of run.h for a fake run: what a report needs is given, and a function
 * that would send fails the test. */
#include "../test.h"

#include "fake_run.h"

const struct hpx_verify_spec *hpx_verify_spec_of(const struct hpx_verify *run)
{
	return &run->spec;
}

enum hpx_dialect hpx_verify_dialect(const struct hpx_verify *run)
{
	return run->dialect;
}

bool hpx_verify_counts_effects(const struct hpx_verify *run)
{
	return run->spec.effects_path.len > 0;
}

size_t hpx_verify_exchange_count(const struct hpx_verify *run)
{
	(void)run;
	return FAKE_RUN_EXCHANGES;
}

const struct hpx_verify_exchange *hpx_verify_exchange_at(const struct hpx_verify *run, size_t index)
{
	return &run->exchanges[index];
}

const char *hpx_verify_stop_reason(const struct hpx_verify *run)
{
	(void)run;
	return NULL;
}

/* ---- not to be called ---- */

#define NEVER(type, name, ...) \
	type name(__VA_ARGS__); \
	type name(__VA_ARGS__) \
	{ \
		fail_msg("%s is called, and nothing can be sent", #name); \
		abort(); \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wredundant-decls"

NEVER(struct hpx_span, hpx_verify_exchange_field, const struct hpx_verify_exchange *e, struct hpx_span name)
NEVER(struct hpx_verify_op *, hpx_verify_op_new, struct hpx_verify *run, enum hpx_verify_request_name n)
NEVER(struct hpx_span, hpx_verify_op_fill, struct hpx_verify *run, const struct hpx_verify_op *op,
      struct hpx_span template)
NEVER(const struct hpx_verify_exchange *, hpx_verify_send_retry_429, struct hpx_verify *run,
      const struct hpx_verify_variant *variant)
NEVER(const struct hpx_verify_exchange *, hpx_verify_send, struct hpx_verify *run,
      const struct hpx_verify_variant *variant)
NEVER(void, hpx_verify_send_concurrently, struct hpx_verify *run, const struct hpx_verify_variant *variants,
      size_t count, const struct hpx_verify_exchange **exchanges, size_t *ret_sent)
NEVER(struct hpx_inflight *, hpx_verify_begin, struct hpx_verify *run,
      const struct hpx_verify_variant *variant)
NEVER(struct hpx_inflight *, hpx_verify_begin_retry_429, struct hpx_verify *run,
      const struct hpx_verify_variant *variant, int64_t pause_ms,
      const struct hpx_verify_exchange **ret_answer)
NEVER(bool, hpx_verify_is_waiting, struct hpx_inflight *inflight)
NEVER(const struct hpx_verify_exchange *, hpx_verify_finish, struct hpx_inflight *inflight)
NEVER(const struct hpx_verify_exchange *, hpx_verify_abandon, struct hpx_inflight *inflight)
NEVER(const struct hpx_verify_exchange *, hpx_verify_settle, struct hpx_verify *run,
      const struct hpx_verify_variant *variant, unsigned *ret_sent)
NEVER(void, hpx_verify_settle_all, struct hpx_verify *run, struct hpx_verify_settling *all, size_t count)
NEVER(bool, hpx_redact_is_secret, const struct hpx_verify_spec *spec, struct hpx_span name)
NEVER(void, hpx_verify_pause, struct hpx_verify *run, int64_t ms)
NEVER(enum hpx_status, hpx_verify_effects, struct hpx_verify *run, const struct hpx_verify_op *op,
      uint64_t *ret_effects, char problem[HPX_VERIFY_PROBLEM_SIZE])
NEVER(enum hpx_status, hpx_verify_effects_of_second, struct hpx_verify *run,
      const struct hpx_verify_op *op, uint64_t *ret_effects, char problem[HPX_VERIFY_PROBLEM_SIZE])
NEVER(struct hpx_span, hpx_verify_resource, struct hpx_verify *run, const struct hpx_verify_exchange *e)
NEVER(struct hpx_arena *, hpx_verify_arena, struct hpx_verify *run)
NEVER(void, hpx_verify_set_dialect, struct hpx_verify *run, enum hpx_dialect dialect)
NEVER(uint64_t, hpx_verify_random, struct hpx_verify *run)
NEVER(enum hpx_status, hpx_verify_crash, struct hpx_verify *run,
      char problem[HPX_VERIFY_PROBLEM_SIZE])
NEVER(enum hpx_status, hpx_verify_start_again, struct hpx_verify *run,
      char problem[HPX_VERIFY_PROBLEM_SIZE])
NEVER(void, hpx_verify_row_begin, struct hpx_verify *run, const char *row)
NEVER(void, hpx_verify_row_end, struct hpx_verify *run)
