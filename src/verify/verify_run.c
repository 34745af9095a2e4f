/* A run: its bounds, its random numbers and its memory; the operations that rows make;
 * and the log of exchanges.
 *
 * While a row runs, its answers lie in the row's arena. When the row ends, what is kept
 * of them moves into the log's arena, which is bounded: bodies are left out first, and
 * where not even heads fit, the run is over. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/unit.h"
#include "verify/run_state.h"
#include "verify/spec.h"

/* ---- the log of exchanges ---- */

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
	HPX_ASSERT(run->exchange_count < run->exchange_cap && run->kept <= run->exchange_count);
	run->exchanges[run->exchange_count++] = exchange;
	run->requests++;
	exchange->number = (unsigned)run->exchange_count;
	exchange->row = run->row;
	exchange->began_ms = hpx_clock_boot_ms() - run->began_ms;
	return exchange;
}

/* A copy in the log's arena; ptr NULL where it does not fit, and the log is full. */
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

static void log_keep(struct hpx_verify *run)
{
	/* A request in flight would still write to its exchange. */
	HPX_ASSERT(run->live_count == 0);
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

struct hpx_span hpx_verify_exchange_field(const struct hpx_verify_exchange *exchange,
					  struct hpx_span name)
{
	for (size_t i = 0; i < exchange->field_count; i++)
		if (hpx_span_ieq(exchange->fields[i].name, name))
			return exchange->fields[i].value;
	return hpx_span(NULL, 0);
}

/* ---- the run ---- */

/* {{n}} fits into 32 bits with sign, whatever a run adds to it. */
#define N_FIRST_MAX 1000000000u
#define FIND_TIMEOUT_MS 10000

/* The sentences of hpx_verify_stop_reason. */
static void write_reasons(struct hpx_verify *run)
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
	/* Not by the seed: a second run must not count the first one's effects. */
	hpx_random(&run->n_first, sizeof(run->n_first));
	run->n_first %= N_FIRST_MAX;
	run->n = run->n_first;
	run->not_started = (struct hpx_inflight){ .run = run,
						  .state = HPX_INFLIGHT_DONE,
						  .exchange = &run->unsent };
	write_reasons(run);
	hpx_arena_init(&run->row_arena, HPX_RUN_ROW_BYTES_MAX);
	hpx_arena_init(&run->log, HPX_RUN_LOG_BYTES_MAX);
	hpx_shell_init(&run->server);
	enum hpx_status status = hpx_secrets_init(&run->shared.secrets, spec);
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
	hpx_secrets_done(&run->shared.secrets);
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
	HPX_ASSERT(run->live == NULL);
	run->row = row;
}

void hpx_verify_row_end(struct hpx_verify *run)
{
	while (run->live != NULL)
		hpx_verify_abandon(run->live);
	log_keep(run);
	hpx_arena_done(&run->row_arena);
	run->row = "";
}

size_t hpx_verify_exchange_count(const struct hpx_verify *run)
{
	return run->exchange_count;
}

const struct hpx_verify_exchange *hpx_verify_exchange_at(const struct hpx_verify *run, size_t index)
{
	HPX_ASSERT(index < run->exchange_count);
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

void hpx_verify_set_dialect(struct hpx_verify *run, enum hpx_dialect dialect)
{
	HPX_ASSERT(dialect != HPX_DIALECT_AUTO);
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

/* splitmix64: short, evenly distributed, and the same on every machine. */
uint64_t hpx_verify_random(struct hpx_verify *run)
{
	uint64_t z = run->random += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* ---- operations ---- */

/* A body template is read from a file of at most this size, and grows by what
 * its variables say. */
#define FILLED_MAX ((size_t)32 << 20)

/* RFC 9562, version 4. */
static void make_uuid(char out[37])
{
	uint8_t bytes[16];
	char hex[33];

	hpx_random(bytes, sizeof(bytes));
	bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
	bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
	hpx_hex_encode(bytes, sizeof(bytes), hex);
	snprintf(out, 37, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
		 hex + 20);
}

/* A copy in the row's arena; ptr NULL: no memory. */
static struct hpx_span copy_to_row(struct hpx_verify *run, struct hpx_buffer *filled,
				   enum hpx_status status)
{
	struct hpx_span text = { NULL, 0 };

	if (status == HPX_OK)
		text = hpx_arena_dup(&run->row_arena, hpx_buffer_span(filled));
	hpx_buffer_done(filled);
	return text;
}

static enum hpx_status fill_into(const struct hpx_verify_op *op, struct hpx_span template,
				 enum hpx_template_place place, struct hpx_buffer *out)
{
	char n[24];

	snprintf(n, sizeof(n), "%" PRIu64, op->n);
	const struct hpx_template_values values = { .uuid = hpx_span_of(op->uuid),
						    .n = hpx_span_of(n),
						    .key = hpx_span_of(op->key) };
	return hpx_template_fill(template, place, &values, out);
}

static struct hpx_span fill(struct hpx_verify *run, const struct hpx_verify_op *op,
			    struct hpx_span template, enum hpx_template_place place)
{
	struct hpx_buffer filled;

	hpx_buffer_init(&filled, FILLED_MAX);
	enum hpx_status status = fill_into(op, template, place, &filled);
	return copy_to_row(run, &filled, status);
}

struct hpx_span hpx_verify_op_fill(struct hpx_verify *run, const struct hpx_verify_op *op,
				   struct hpx_span template)
{
	return fill(run, op, template, HPX_TEMPLATE_BODY);
}

struct hpx_span hpx_verify_op_path(struct hpx_verify *run, const struct hpx_verify_op *op,
				   struct hpx_span template)
{
	return fill(run, op, template, HPX_TEMPLATE_PATH);
}

static bool is_replaced(const struct hpx_verify_spec *spec, struct hpx_span line)
{
	struct hpx_span name = hpx_verify_line_name(line);

	for (size_t i = 0; i < spec->tenant_header_count; i++)
		if (hpx_span_ieq(name, hpx_verify_line_name(spec->tenant_headers[i])))
			return true;
	return false;
}

static enum hpx_status fill_line(const struct hpx_verify_op *op, struct hpx_span line,
				 struct hpx_buffer *out)
{
	enum hpx_status status = fill_into(op, line, HPX_TEMPLATE_HEADER, out);

	return status == HPX_OK ? hpx_buffer_text(out, "\r\n") : status;
}

/* The request's header lines. For the second tenant, its own lines replace those of the
 * same name. */
static struct hpx_span fill_lines(struct hpx_verify *run, const struct hpx_verify_op *op,
				  const struct hpx_verify_request *request, bool second)
{
	const struct hpx_verify_spec *spec = run->spec;
	enum hpx_status status = HPX_OK;
	struct hpx_buffer filled;

	HPX_ASSERT(!second || spec->tenant_header_count > 0);
	hpx_buffer_init(&filled, HPX_REQUEST_HEAD_MAX);
	for (size_t i = 0; i < request->header_count && status == HPX_OK; i++)
		if (!second || !is_replaced(spec, request->headers[i]))
			status = fill_line(op, request->headers[i], &filled);
	for (size_t i = 0; second && i < spec->tenant_header_count && status == HPX_OK; i++)
		status = fill_line(op, spec->tenant_headers[i], &filled);
	return copy_to_row(run, &filled, status);
}

static bool fill_all(struct hpx_verify *run, struct hpx_verify_op *op)
{
	const struct hpx_verify_request *request = &run->spec->requests[op->name];

	op->method = request->method;
	op->path = hpx_verify_op_path(run, op, request->path);
	op->headers = fill_lines(run, op, request, false);
	op->other_headers = hpx_span("", 0);
	if (run->spec->tenant_header_count > 0)
		op->other_headers = fill_lines(run, op, request, true);
	op->body = hpx_verify_op_fill(run, op, request->body);
	return op->path.ptr != NULL && op->headers.ptr != NULL &&
	       op->other_headers.ptr != NULL && op->body.ptr != NULL;
}

struct hpx_verify_op *hpx_verify_op_draft(struct hpx_verify *run, enum hpx_verify_request_name name)
{
	struct hpx_verify_op *op = hpx_arena_zalloc(&run->row_arena, 1, sizeof(*op));

	HPX_ASSERT(name < HPX_REQUEST_COUNT && run->spec->requests[name].given);
	if (op == NULL)
		return NULL;
	op->name = name;
	op->n = ++run->n;
	make_uuid(op->key);
	make_uuid(op->uuid);
	return fill_all(run, op) ? op : NULL;
}

struct hpx_verify_op *hpx_verify_op_new(struct hpx_verify *run, enum hpx_verify_request_name name)
{
	struct hpx_verify_op *op = hpx_verify_stop_reason(run) == NULL ? hpx_verify_op_draft(run, name) : NULL;

	if (op != NULL)
		hpx_effect_count_before(run, op);
	return op;
}
