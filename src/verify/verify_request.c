/* The bytes of a request, and what must not be shown of requests and answers:
 * the values of secret headers (redacted by name) and the credentials themselves
 * where an answer repeats them.
 *
 * The description was checked when it was read; what a row gives is checked here:
 * a line end in a value would begin another header. */
#include "verify/verify_request.h"

#include <stdio.h>

#include "base/status.h"
#include "http/field.h"
#include "http/write.h"
#include "verify/spec.h"

/* Every API takes bare keys. The dialect `ietf` is sent the String that the draft
 * writes. The form is the same all through a run. */
static struct hpx_span key_line(const struct hpx_verify_spec *spec, const char *key,
				char out[HPX_VERIFY_KEY_SIZE + 2])
{
	const char *quote = hpx_dialects[spec->dialect].strings ? "\"" : "";

	snprintf(out, HPX_VERIFY_KEY_SIZE + 2, "%s%s%s", quote, key, quote);
	return hpx_span_of(out);
}

static bool is_one_line(struct hpx_span value)
{
	return hpx_span_index(value, '\r') == value.len &&
	       hpx_span_index(value, '\n') == value.len &&
	       hpx_span_index(value, '\0') == value.len;
}

/* As it is: some rows send values that the API has to refuse. */
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
				  const struct hpx_verify_variant *variant, struct hpx_buffer *head,
				  char shown[HPX_VERIFY_KEY_SIZE])
{
	char line[HPX_VERIFY_KEY_SIZE + 2];
	struct hpx_span own = key_line(spec, variant->op->key, line);
	const struct hpx_span *values = variant->key_values ? variant->key_values : &own;
	size_t count = variant->key_values ? variant->key_count : 1;
	enum hpx_status status = HPX_OK;
	int used = 0;

	shown[0] = '\0';
	/* {{key}} in the body has it already. */
	if (hpx_dialects[spec->dialect].key_header == NULL)
		count = 0;
	for (size_t i = 0; i < count && status == HPX_OK; i++) {
		status = write_raw(head, spec->key_header, values[i]);
		if (used < HPX_VERIFY_KEY_SIZE)
			used += snprintf(shown + used, (size_t)(HPX_VERIFY_KEY_SIZE - used),
					 "%s%.*s", i > 0 ? " | " : "", HPX_SPAN_ARG(values[i]));
	}
	return status;
}

/* Whether the variant leaves out, or replaces, the operation's line of that name. */
static bool is_changed(const struct hpx_verify_spec *spec, const struct hpx_verify_variant *variant,
		       struct hpx_span name)
{
	return (variant->content_type.ptr != NULL && hpx_span_ieq(name, HPX_SPAN("Content-Type"))) ||
	       (variant->line.ptr != NULL && hpx_span_ieq(name, hpx_verify_line_name(variant->line))) ||
	       (variant->without_credentials && hpx_redact_is_secret(spec, name));
}

/* The operation's lines, each with its CR LF, and the variant's own. */
static enum hpx_status write_lines(const struct hpx_verify_spec *spec,
				   const struct hpx_verify_variant *variant, struct hpx_span lines,
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
		status = write_raw(head, hpx_verify_line_name(variant->line),
				   hpx_span_trim(hpx_span_skip(variant->line,
							       hpx_verify_line_name(variant->line).len + 1)));
	return status;
}

static enum hpx_status write_host(const struct hpx_verify_spec *spec,
				  const struct hpx_verify_variant *variant, struct hpx_buffer *head)
{
	char authority[HPX_VERIFY_AUTHORITY_SIZE];

	if (variant->host.ptr != NULL)
		return write_raw(head, HPX_SPAN("Host"), variant->host);
	hpx_verify_authority(spec, authority);
	return hpx_buffer_printf(head, "Host: %s\r\n", authority);
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

static struct hpx_span first_given(struct hpx_span given, struct hpx_span other)
{
	return given.ptr != NULL ? given : other;
}

static enum hpx_status write_head(const struct hpx_verify_spec *spec,
				  const struct hpx_verify_variant *variant, struct hpx_verify_request_bytes *request,
				  struct hpx_buffer *head)
{
	const struct hpx_verify_op *op = variant->op;
	struct hpx_span lines = variant->second_tenant ? op->other_headers : op->headers;
	enum hpx_status status =
		write_target(head, request->method, first_given(variant->path, op->path));

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

static enum hpx_status join(struct hpx_span head, struct hpx_verify_request_bytes *request,
			    struct hpx_arena *arena)
{
	size_t len = head.len + request->body.len;
	char *bytes = hpx_arena_alloc(arena, len);

	if (bytes == NULL)
		return HPX_NOMEM;
	HPX_ASSERT(head.len > 0);
	memcpy(bytes, head.ptr, head.len);
	if (request->body.len > 0)
		memcpy(bytes + head.len, request->body.ptr, request->body.len);
	request->bytes = hpx_span(bytes, len);
	request->head_bytes = head.len;
	request->body = hpx_span(bytes + head.len, request->body.len);
	return HPX_OK;
}

enum hpx_status hpx_verify_request_build(const struct hpx_verify_spec *spec,
					 const struct hpx_verify_variant *variant, struct hpx_arena *arena,
					 struct hpx_verify_request_bytes *ret_request)
{
	struct hpx_verify_request_bytes request = {
		.method = first_given(variant->method, variant->op->method),
		.body = first_given(variant->body, variant->op->body),
	};
	struct hpx_buffer head;

	HPX_ASSERT(variant->key_values != NULL || variant->key_count == 0);
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
	/* The head may hold credentials. */
	if (head.ptr != NULL)
		explicit_bzero(head.ptr, head.len);
	hpx_buffer_done(&head);
	if (status == HPX_OK)
		*ret_request = request;
	return status;
}

/* ---- secret headers ---- */

static const struct hpx_span always[] = {
	HPX_SPAN_INIT("Authorization"),
	HPX_SPAN_INIT("Proxy-Authorization"),
	HPX_SPAN_INIT("Cookie"),
	HPX_SPAN_INIT("X-Api-Key"),
	HPX_SPAN_INIT("Set-Cookie"),
	HPX_SPAN_INIT("Authentication-Info"),
	HPX_SPAN_INIT("X-Auth-Token"),
	HPX_SPAN_INIT("X-Access-Token"),
	HPX_SPAN_INIT("X-Session-Token"),
	HPX_SPAN_INIT("Private-Token"),
	HPX_SPAN_INIT("apikey"),
	HPX_SPAN_INIT("api-key"),
};
/* Names that end so: X-Goog-Api-Key, X-Shopify-Access-Token, client_secret. */
static const struct hpx_span ends[] = {
	HPX_SPAN_INIT("-api-key"),
	HPX_SPAN_INIT("-token"),
	HPX_SPAN_INIT("-access-key"),
	HPX_SPAN_INIT("-secret"),
	HPX_SPAN_INIT("_secret"),
};

static bool is_named(struct hpx_span line, struct hpx_span name)
{
	return hpx_span_ieq(hpx_verify_line_name(line), name);
}

static bool has_secret(const struct hpx_span *lines, size_t count, struct hpx_span name)
{
	for (size_t i = 0; i < count; i++)
		if (is_named(lines[i], name) && hpx_template_names_env(lines[i]))
			return true;
	return false;
}

bool hpx_redact_is_secret(const struct hpx_verify_spec *spec, struct hpx_span name)
{
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (hpx_span_ieq(name, always[i]))
			return true;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (name.len > ends[i].len &&
		    hpx_span_ieq(hpx_span_skip(name, name.len - ends[i].len), ends[i]))
			return true;
	/* The second tenant's headers say who is calling. */
	for (size_t i = 0; i < spec->tenant_header_count; i++)
		if (is_named(spec->tenant_headers[i], name))
			return true;
	for (size_t i = 0; i < HPX_REQUEST_COUNT; i++)
		if (has_secret(spec->requests[i].headers, spec->requests[i].header_count, name))
			return true;
	return false;
}

/* One line, without its CR LF. */
static enum hpx_status redact_line(const struct hpx_verify_spec *spec, struct hpx_span line,
				   struct hpx_buffer *out)
{
	size_t colon = hpx_span_index(line, ':');
	bool secret = colon < line.len && hpx_redact_is_secret(spec, hpx_span_first(line, colon));
	enum hpx_status status =
		hpx_buffer_append(out, secret ? hpx_span_first(line, colon + 1) : line);

	if (status == HPX_OK && secret)
		status = hpx_buffer_text(out, " " HPX_REDACTED);
	return status == HPX_OK ? hpx_buffer_text(out, "\r\n") : status;
}

struct hpx_span hpx_redact_head(const struct hpx_verify_spec *spec, struct hpx_span head,
				struct hpx_arena *arena)
{
	struct hpx_span shown = { NULL, 0 };
	struct hpx_buffer out;
	struct hpx_span line;
	enum hpx_status status = HPX_OK;
	bool first = true;

	hpx_buffer_init(&out, HPX_REQUEST_HEAD_MAX * 2);
	while (status == HPX_OK && hpx_span_line(&head, &line)) {
		/* The request line may have a colon, and is no header. */
		if (first)
			status = hpx_buffer_printf(&out, "%.*s\r\n", HPX_SPAN_ARG(line));
		else if (line.len > 0)
			status = redact_line(spec, line, &out);
		first = false;
	}
	if (status == HPX_OK)
		shown = hpx_arena_dup(arena, hpx_buffer_span(&out));
	hpx_buffer_done(&out);
	return shown;
}

/* ---- credentials in answers ---- */

#define ARENA_BYTES_MAX ((size_t)4 << 20)

/* The next word of a header value: of "Bearer x" the words, of "a=x; b=y" the values. */
static struct hpx_span next_word(struct hpx_span *rest)
{
	size_t end = 0;

	while (end < rest->len && strchr(" ;,", rest->ptr[end]) == NULL)
		end++;
	struct hpx_span word = hpx_span_first(*rest, end);
	*rest = hpx_span_skip(*rest, end < rest->len ? end + 1 : end);
	struct hpx_span value = hpx_span_skip(word, hpx_span_index(word, '='));
	/* The "=" at the end of base64 begins no value. */
	return value.len > HPX_SECRET_BYTES_MIN ? hpx_span_skip(value, 1) : word;
}

static enum hpx_status add_secret(struct hpx_secrets *secrets, struct hpx_span word)
{
	if (word.len < HPX_SECRET_BYTES_MIN)
		return HPX_OK;
	for (size_t i = 0; i < secrets->count; i++)
		if (hpx_span_eq(secrets->values[i], word))
			return HPX_OK;
	if (secrets->count == HPX_SECRETS_MAX)
		return HPX_TOO_LARGE;
	HPX_ASSERT(secrets->count < HPX_SECRETS_MAX);
	struct hpx_span copy = hpx_arena_dup(&secrets->arena, word);
	if (copy.ptr == NULL)
		return HPX_NOMEM;
	secrets->values[secrets->count++] = copy;
	return HPX_OK;
}

/* Variables that differ from operation to operation are no secret. */
static enum hpx_status add_line(struct hpx_secrets *secrets, struct hpx_span line)
{
	static const struct hpx_template_values none = { { "", 0 }, { "", 0 }, { "", 0 } };
	size_t colon = hpx_span_index(line, ':');
	struct hpx_buffer filled;

	hpx_buffer_init(&filled, HPX_REQUEST_HEAD_MAX);
	enum hpx_status status = hpx_template_fill(hpx_span_skip(line, colon + 1),
						   HPX_TEMPLATE_HEADER, &none, &filled);
	struct hpx_span rest = hpx_buffer_span(&filled);
	while (status == HPX_OK && rest.len > 0)
		status = add_secret(secrets, next_word(&rest));
	hpx_buffer_done(&filled);
	return status;
}

static enum hpx_status add_lines(struct hpx_secrets *secrets, const struct hpx_verify_spec *spec,
				 const struct hpx_span *lines, size_t count)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < count && status == HPX_OK; i++)
		if (hpx_redact_is_secret(spec, hpx_verify_line_name(lines[i])))
			status = add_line(secrets, lines[i]);
	return status;
}

enum hpx_status hpx_secrets_init(struct hpx_secrets *secrets, const struct hpx_verify_spec *spec)
{
	enum hpx_status status;

	*secrets = (struct hpx_secrets){ .count = 0 };
	hpx_arena_init(&secrets->arena, ARENA_BYTES_MAX);
	status = add_lines(secrets, spec, spec->tenant_headers, spec->tenant_header_count);
	for (size_t i = 0; i < HPX_REQUEST_COUNT && status == HPX_OK; i++)
		status = add_lines(secrets, spec, spec->requests[i].headers,
				   spec->requests[i].header_count);
	if (status != HPX_OK)
		hpx_secrets_done(secrets);
	return status;
}

void hpx_secrets_done(struct hpx_secrets *secrets)
{
	hpx_arena_done(&secrets->arena);
	secrets->count = 0;
}

static void hide_one(struct hpx_span secret, char *text, size_t len)
{
	char *end = text + len;

	HPX_ASSERT(secret.len >= HPX_SECRET_BYTES_MIN);
	while ((text = memmem(text, (size_t)(end - text), secret.ptr, secret.len)) != NULL) {
		memset(text, '*', secret.len);
		text += secret.len;
	}
}

struct hpx_span hpx_secrets_hide(const struct hpx_secrets *secrets, struct hpx_span text,
				 struct hpx_arena *arena)
{
	char *copy = hpx_arena_alloc(arena, text.len + 1);

	if (copy == NULL)
		return hpx_span(NULL, 0);
	if (text.len > 0)
		memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	for (size_t i = 0; i < secrets->count; i++)
		hide_one(secrets->values[i], copy, text.len);
	return hpx_span(copy, text.len);
}
