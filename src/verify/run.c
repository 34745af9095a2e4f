/* A run: its bounds, its chance, its memory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "config/unit.h"
#include "verify/state.h"

/* {{n}} fits into 32 bits with sign, whatever a run adds to it. */
#define N_FIRST_MAX 1000000000u
#define FIND_TIMEOUT_MS 10000

/* As hpx_verify_stop_reason will say it. */
static void word_bounds(struct hpx_verify *run)
{
	char time[HPX_UNIT_SIZE];

	hpx_duration_print(run->spec->time_max_ms, time);
	snprintf(run->over_requests, sizeof(run->over_requests),
		 "the run's %" PRIu64 " requests are used up (--requests)",
		 run->spec->requests_max);
	snprintf(run->over_time, sizeof(run->over_time), "the run's time, %s, is over (--time)",
		 time);
}

enum hpx_status hpx_verify_new(const struct hpx_verify_spec *spec, struct hpx_verify **ret_run)
{
	struct hpx_verify *run = calloc(1, sizeof(*run));

	if (run == NULL)
		return HPX_NOMEM;
	run->spec = spec;
	run->row = "";
	run->dialect = spec->dialect;
	run->stop_fd = -1;
	run->began_ms = hpx_clock_boot_ms();
	run->random = spec->seed;
	/* Not by the seed: a second run must not meet the first one's effects. */
	hpx_random(&run->n_first, sizeof(run->n_first));
	run->n_first %= N_FIRST_MAX;
	run->n = run->n_first;
	run->not_started = (struct hpx_inflight){ .run = run,
						  .state = HPX_INFLIGHT_DONE,
						  .exchange = &run->unsent };
	word_bounds(run);
	hpx_arena_init(&run->row_arena, HPX_RUN_ROW_BYTES_MAX);
	hpx_arena_init(&run->log, HPX_RUN_LOG_BYTES_MAX);
	hpx_shell_init(&run->server);
	enum hpx_status status = hpx_secrets_init(&run->share.secrets, spec);
	if (status != HPX_OK) {
		hpx_verify_free(run);
		return status;
	}
	*ret_run = run;
	return HPX_OK;
}

void hpx_verify_free(struct hpx_verify *run)
{
	if (run == NULL)
		return;
	hpx_verify_row_end(run);
	hpx_shell_end(&run->server);
	if (run->host_ready)
		hpx_verify_host_done(&run->host);
	hpx_arena_done(&run->row_arena);
	hpx_arena_done(&run->log);
	hpx_secrets_done(&run->share.secrets);
	free(run->exchanges);
	free(run);
}

enum hpx_status hpx_verify_open(struct hpx_verify *run, char problem[HPX_VERIFY_PROBLEM_SIZE])
{
	char what[HPX_CONN_PROBLEM_SIZE];
	enum hpx_status status = HPX_OK;

	if (!run->host_ready) {
		status = hpx_verify_host_init(&run->host, run->spec, what);
		run->host_ready = status == HPX_OK;
	}
	if (status == HPX_OK)
		status = hpx_verify_host_find(&run->host, FIND_TIMEOUT_MS, what);
	if (status != HPX_OK)
		snprintf(problem, HPX_VERIFY_PROBLEM_SIZE, "%.*s:%u: %s",
			 HPX_SPAN_ARG(run->spec->host), run->spec->port, what);
	return status;
}

void hpx_verify_stop_on(struct hpx_verify *run, int stop_fd)
{
	run->stop_fd = stop_fd;
}

void hpx_verify_row_begin(struct hpx_verify *run, const char *row)
{
	run->row = row;
}

void hpx_verify_row_end(struct hpx_verify *run)
{
	while (run->live != NULL)
		hpx_verify_abandon(run->live);
	hpx_verify_log_keep(run);
	hpx_arena_done(&run->row_arena);
	run->row = "";
}

size_t hpx_verify_exchange_count(const struct hpx_verify *run)
{
	return run->exchange_count;
}

const struct hpx_verify_exchange *hpx_verify_exchange_at(const struct hpx_verify *run, size_t index)
{
	return run->exchanges[index];
}

const struct hpx_verify_spec *hpx_verify_spec_of(const struct hpx_verify *run)
{
	return run->spec;
}

struct hpx_arena *hpx_verify_arena(struct hpx_verify *run)
{
	return &run->row_arena;
}

enum hpx_dialect hpx_verify_dialect(const struct hpx_verify *run)
{
	return run->dialect;
}

/* What was asked for stays. */
void hpx_verify_set_dialect(struct hpx_verify *run, enum hpx_dialect dialect)
{
	if (run->spec->dialect == HPX_DIALECT_AUTO)
		run->dialect = dialect;
}

const char *hpx_verify_stop_reason(const struct hpx_verify *run)
{
	int64_t took_ms = hpx_clock_boot_ms() - run->began_ms;

	if (run->stopped)
		return "the run was stopped";
	if (run->requests >= run->spec->requests_max)
		return run->over_requests;
	if (took_ms >= 0 && (uint64_t)took_ms >= run->spec->time_max_ms)
		return run->over_time;
	if (run->log_full)
		return "the memory for the log of exchanges is used up";
	return NULL;
}

/* splitmix64: short, even, and the same everywhere. */
uint64_t hpx_verify_random(struct hpx_verify *run)
{
	uint64_t z = run->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}
