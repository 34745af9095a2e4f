/* A request as it goes out. What the description gives was checked when it was
 * read; what a row gives is checked here: a line end would be another line. */
#include "verify/request.h"

#include <stdio.h>

#include "http/field.h"
#include "http/write.h"

/* Bare keys are what every API takes; who says ietf gets the String that the
 * draft writes. It is the same all through a run. */
static struct hpx_span key_line(const struct hpx_verify_spec *spec, const char *key,
				char out[HPX_VERIFY_KEY_SIZE + 2])
{
	const char *quote = spec->dialect == HPX_DIALECT_IETF ? "\"" : "";

	snprintf(out, HPX_VERIFY_KEY_SIZE + 2, "%s%s%s", quote, key, quote);
	return hpx_span_of(out);
}

static bool is_one_line(struct hpx_span value)
{
	return hpx_span_index(value, '\r') == value.len &&
	       hpx_span_index(value, '\n') == value.len &&
	       hpx_span_index(value, '\0') == value.len;
}

/* Raw: what is wrong with it is what the API is to say. */
static enum hpx_status write_raw(struct hpx_buffer *head, struct hpx_span name,
				 struct hpx_span value)
{
	enum hpx_status status = is_one_line(value) ? HPX_OK : HPX_INVALID;

	if (status == HPX_OK)
		status = hpx_buffer_append(head, name);
	if (status == HPX_OK)
		status = hpx_buffer_text(head, ": ");
	if (status == HPX_OK)
		status = hpx_buffer_append(head, value);
	return status == HPX_OK ? hpx_buffer_text(head, "\r\n") : status;
}

static enum hpx_status write_keys(const struct hpx_verify_spec *spec,
				  const struct hpx_request_variant *variant, struct hpx_buffer *head,
				  char shown[HPX_VERIFY_KEY_SIZE])
{
	char line[HPX_VERIFY_KEY_SIZE + 2];
	struct hpx_span own = key_line(spec, variant->op->key, line);
	const struct hpx_span *values = variant->key_values ? variant->key_values : &own;
	size_t count = variant->key_values ? variant->key_count : 1;
	enum hpx_status status = HPX_OK;
	int used = 0;

	shown[0] = '\0';
	for (size_t i = 0; i < count && status == HPX_OK; i++) {
		status = write_raw(head, spec->key_header, values[i]);
		if (used < HPX_VERIFY_KEY_SIZE)
			used += snprintf(shown + used, (size_t)(HPX_VERIFY_KEY_SIZE - used),
					 "%s%.*s", i > 0 ? " | " : "", HPX_SPAN_ARG(values[i]));
	}
	return status;
}

static struct hpx_span name_of(struct hpx_span line)
{
	return hpx_span_first(line, hpx_span_index(line, ':'));
}

/* An intent's line that this sending leaves out, or says otherwise. */
static bool is_changed(const struct hpx_verify_spec *spec, const struct hpx_request_variant *variant,
		       struct hpx_span name)
{
	return (variant->content_type.ptr != NULL && hpx_span_ieq(name, HPX_SPAN("Content-Type"))) ||
	       (variant->line.ptr != NULL && hpx_span_ieq(name, name_of(variant->line))) ||
	       (variant->without_credentials && hpx_redact_is_secret(spec, name));
}

/* The intent's lines, each with its CR LF, and what this sending has besides. */
static enum hpx_status write_lines(const struct hpx_verify_spec *spec,
				   const struct hpx_request_variant *variant, struct hpx_span lines,
				   struct hpx_buffer *head)
{
	enum hpx_status status = HPX_OK;
	struct hpx_field_line line;

	while (status == HPX_OK && hpx_field_line_next(&lines, &line))
		if (!is_changed(spec, variant, line.name))
			status = hpx_buffer_append(head, line.whole);
	if (status == HPX_OK && variant->content_type.len > 0)
		status = write_raw(head, HPX_SPAN("Content-Type"), variant->content_type);
	if (status == HPX_OK && variant->line.ptr != NULL)
		status = write_raw(head, name_of(variant->line),
				   hpx_span_trim(hpx_span_skip(variant->line,
							       name_of(variant->line).len + 1)));
	return status;
}

static enum hpx_status write_host(const struct hpx_verify_spec *spec,
				  const struct hpx_request_variant *variant, struct hpx_buffer *head)
{
	bool v6 = hpx_span_index(spec->host, ':') < spec->host.len;
	char port[8] = "";

	if (variant->host.ptr != NULL)
		return write_raw(head, HPX_SPAN("Host"), variant->host);
	if (spec->port != (spec->tls ? 443 : 80))
		snprintf(port, sizeof(port), ":%u", spec->port);
	return hpx_buffer_printf(head, "Host: %s%.*s%s%s\r\n", v6 ? "[" : "",
				 HPX_SPAN_ARG(spec->host), v6 ? "]" : "", port);
}

static enum hpx_status write_target(struct hpx_buffer *head, struct hpx_span method,
				    struct hpx_span target)
{
	size_t mark = hpx_span_index(target, '?');
	struct hpx_span query = { NULL, 0 };

	if (mark < target.len)
		query = hpx_span_skip(target, mark + 1);
	return hpx_write_request_line(head, method, hpx_span_first(target, mark), query);
}

/* GET and the like have no length where they have no body (RFC 9110 §8.6). */
static bool needs_length(struct hpx_span method, struct hpx_span body)
{
	return body.len > 0 ||
	       !(hpx_span_eq(method, HPX_SPAN("GET")) || hpx_span_eq(method, HPX_SPAN("HEAD")) ||
		 hpx_span_eq(method, HPX_SPAN("DELETE")) ||
		 hpx_span_eq(method, HPX_SPAN("OPTIONS")));
}

static struct hpx_span or_else(struct hpx_span given, struct hpx_span other)
{
	return given.ptr != NULL ? given : other;
}

static enum hpx_status write_head(const struct hpx_verify_spec *spec,
				  const struct hpx_request_variant *variant, struct hpx_request_bytes *request,
				  struct hpx_buffer *head)
{
	const struct hpx_verify_op *op = variant->op;
	struct hpx_span lines = variant->second_tenant ? op->other_headers : op->headers;
	enum hpx_status status =
		write_target(head, request->method, or_else(variant->path, op->path));

	if (status == HPX_OK)
		status = write_host(spec, variant, head);
	if (status == HPX_OK)
		status = hpx_buffer_text(head, "User-Agent: hapax-verify/" HPX_VERSION "\r\n");
	if (status == HPX_OK)
		status = write_lines(spec, variant, lines, head);
	if (status == HPX_OK)
		status = write_keys(spec, variant, head, request->key);
	if (status == HPX_OK && needs_length(request->method, request->body))
		status = hpx_write_field_u64(head, "Content-Length", request->body.len);
	if (status == HPX_OK)
		status = hpx_buffer_printf(head, "Connection: close%s%.*s\r\n",
					   variant->connection.len > 0 ? ", " : "",
					   HPX_SPAN_ARG(variant->connection));
	return status == HPX_OK ? hpx_write_head_end(head) : status;
}

static enum hpx_status join(struct hpx_span head, struct hpx_request_bytes *request,
			    struct hpx_arena *arena)
{
	size_t len = head.len + request->body.len;
	char *bytes = hpx_arena_alloc(arena, len);

	if (bytes == NULL)
		return HPX_NOMEM;
	memcpy(bytes, head.ptr, head.len);
	if (request->body.len > 0)
		memcpy(bytes + head.len, request->body.ptr, request->body.len);
	request->bytes = hpx_span(bytes, len);
	request->head_bytes = head.len;
	request->body = hpx_span(bytes + head.len, request->body.len);
	return HPX_OK;
}

enum hpx_status hpx_request_bytes_build(const struct hpx_verify_spec *spec,
					const struct hpx_request_variant *variant, struct hpx_arena *arena,
					struct hpx_request_bytes *ret_request)
{
	struct hpx_request_bytes request = {
		.method = or_else(variant->method, variant->op->method),
		.body = or_else(variant->body, variant->op->body),
	};
	struct hpx_buffer head;

	hpx_buffer_init(&head, HPX_REQUEST_HEAD_MAX);
	enum hpx_status status = write_head(spec, variant, &request, &head);
	if (status == HPX_OK)
		status = join(hpx_buffer_span(&head), &request, arena);
	if (status == HPX_OK) {
		request.method = hpx_arena_dup(arena, request.method);
		request.shown_head = hpx_redact_head(spec, hpx_buffer_span(&head), arena);
		if (request.method.ptr == NULL || request.shown_head.ptr == NULL)
			status = HPX_NOMEM;
	}
	/* It may hold credentials. */
	if (head.ptr != NULL)
		explicit_bzero(head.ptr, head.len);
	hpx_buffer_done(&head);
	if (status == HPX_OK)
		*ret_request = request;
	return status;
}
