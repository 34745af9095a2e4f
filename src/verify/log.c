/* The log of exchanges. While a row runs, its answers lie in the row's memory;
 * when it ends, what is kept of them moves into the log's, which is bounded:
 * bodies are left out first, and where not even heads fit, the run is over. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "verify/state.h"

#define CAP_FIRST 256

static bool grow(struct hpx_verify *run)
{
	size_t cap = run->exchange_cap > 0 ? run->exchange_cap * 2 : CAP_FIRST;
	struct hpx_verify_exchange **more;

	if (run->exchange_count < run->exchange_cap)
		return true;
	more = realloc(run->exchanges, cap * sizeof(struct hpx_verify_exchange *));
	if (more == NULL)
		return false;
	run->exchanges = more;
	run->exchange_cap = cap;
	return true;
}

struct hpx_verify_exchange *hpx_verify_log_add(struct hpx_verify *run)
{
	struct hpx_verify_exchange *exchange =
		grow(run) ? hpx_arena_zalloc(&run->log, 1, sizeof(*exchange)) : NULL;

	if (exchange == NULL) {
		run->log_full = true;
		return NULL;
	}
	run->exchanges[run->exchange_count++] = exchange;
	run->requests++;
	exchange->number = (unsigned)run->exchange_count;
	exchange->row = run->row;
	exchange->began_ms = hpx_clock_boot_ms() - run->began_ms;
	return exchange;
}

/* Into the log; nothing at all where it does not fit. */
static struct hpx_span keep_text(struct hpx_verify *run, struct hpx_span text)
{
	struct hpx_span copy = hpx_arena_dup(&run->log, text);

	run->log_full = run->log_full || copy.ptr == NULL;
	return copy;
}

static struct hpx_span keep_body(struct hpx_verify *run, struct hpx_span body)
{
	if (run->log.used_bytes > HPX_RUN_LOG_BODIES_MAX)
		return hpx_span(NULL, 0);
	return keep_text(run, hpx_span_first(body, HPX_EXCHANGE_KEPT));
}

static void keep_fields(struct hpx_verify *run, struct hpx_verify_exchange *exchange)
{
	size_t count = exchange->field_count;
	struct hpx_field *fields = hpx_arena_zalloc(&run->log, count, sizeof(*fields));

	for (size_t i = 0; i < count && fields != NULL; i++) {
		const struct hpx_field *field = &exchange->fields[i];
		bool secret = hpx_redact_is_secret(run->spec, field->name);

		fields[i].name = keep_text(run, field->name);
		fields[i].value = keep_text(run, secret ? HPX_SPAN(HPX_REDACTED) : field->value);
	}
	run->log_full = run->log_full || fields == NULL;
	exchange->fields = fields;
	exchange->field_count = fields != NULL ? count : 0;
}

void hpx_verify_log_keep(struct hpx_verify *run)
{
	for (; run->kept < run->exchange_count; run->kept++) {
		struct hpx_verify_exchange *exchange = run->exchanges[run->kept];

		exchange->request_head = keep_text(run, exchange->request_head);
		exchange->request_body = keep_body(run, exchange->request_body);
		exchange->body = keep_body(run, exchange->body);
		keep_fields(run, exchange);
	}
}

const struct hpx_verify_exchange *hpx_verify_log_unsent(struct hpx_verify *run, const char *why)
{
	run->unsent = (struct hpx_verify_exchange){ .end = HPX_EXCHANGE_UNSENT, .row = run->row };
	snprintf(run->unsent.problem, sizeof(run->unsent.problem), "%s", why);
	return &run->unsent;
}
