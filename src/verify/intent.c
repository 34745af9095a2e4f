/* Intents: a request of the description with its variables bound. */
#include <inttypes.h>
#include <stdio.h>

#include "verify/effect.h"
#include "verify/state.h"
#include "verify/template.h"

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

/* From the row's memory; ptr NULL: there is no more. */
static struct hpx_span give(struct hpx_verify *run, struct hpx_buffer *filled,
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
	return give(run, &filled, status);
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
	struct hpx_span name = hpx_span_first(line, hpx_span_index(line, ':'));

	for (size_t i = 0; i < spec->tenant_header_count; i++) {
		struct hpx_span other = spec->tenant_headers[i];

		if (hpx_span_ieq(name, hpx_span_first(other, hpx_span_index(other, ':'))))
			return true;
	}
	return false;
}

static enum hpx_status fill_line(const struct hpx_verify_op *op, struct hpx_span line,
				 struct hpx_buffer *out)
{
	enum hpx_status status = fill_into(op, line, HPX_TEMPLATE_HEADER, out);

	return status == HPX_OK ? hpx_buffer_text(out, "\r\n") : status;
}

/* The request's own lines; for the second tenant, those that say who it is in
 * place of the first one's. */
static struct hpx_span fill_lines(struct hpx_verify *run, const struct hpx_verify_op *op,
				  const struct hpx_verify_request *request, bool second)
{
	const struct hpx_verify_spec *spec = run->spec;
	enum hpx_status status = HPX_OK;
	struct hpx_buffer filled;

	hpx_buffer_init(&filled, HPX_REQUEST_HEAD_MAX);
	for (size_t i = 0; i < request->header_count && status == HPX_OK; i++)
		if (!second || !is_replaced(spec, request->headers[i]))
			status = fill_line(op, request->headers[i], &filled);
	for (size_t i = 0; second && i < spec->tenant_header_count && status == HPX_OK; i++)
		status = fill_line(op, spec->tenant_headers[i], &filled);
	return give(run, &filled, status);
}

static bool bind_all(struct hpx_verify *run, struct hpx_verify_op *op)
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

	if (op == NULL)
		return NULL;
	op->name = name;
	op->n = ++run->n;
	make_uuid(op->key);
	make_uuid(op->uuid);
	return bind_all(run, op) ? op : NULL;
}

struct hpx_verify_op *hpx_verify_op_new(struct hpx_verify *run, enum hpx_verify_request_name name)
{
	struct hpx_verify_op *op = hpx_verify_stop_reason(run) == NULL ? hpx_verify_op_draft(run, name) : NULL;

	if (op != NULL)
		hpx_effect_count_before(run, op);
	return op;
}
