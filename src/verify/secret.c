/* See secret.h. */
#include "verify/secret.h"

#include "verify/request.h"
#include "verify/template.h"

#define ARENA_BYTES_MAX ((size_t)4 << 20)

/* "Bearer x", "a=x; b=y": the words, and of a pair what it is set to. */
static struct hpx_span next_word(struct hpx_span *rest)
{
	size_t end = 0;

	while (end < rest->len && strchr(" ;,", rest->ptr[end]) == NULL)
		end++;
	struct hpx_span word = hpx_span_first(*rest, end);
	*rest = hpx_span_skip(*rest, end < rest->len ? end + 1 : end);
	struct hpx_span value = hpx_span_skip(word, hpx_span_index(word, '='));
	/* The padding of base64 is no value. */
	return value.len > HPX_SECRET_BYTES_MIN ? hpx_span_skip(value, 1) : word;
}

static enum hpx_status add(struct hpx_secrets *secrets, struct hpx_span word)
{
	if (word.len < HPX_SECRET_BYTES_MIN)
		return HPX_OK;
	for (size_t i = 0; i < secrets->count; i++)
		if (hpx_span_eq(secrets->values[i], word))
			return HPX_OK;
	if (secrets->count == HPX_SECRETS_MAX)
		return HPX_TOO_LARGE;
	struct hpx_span copy = hpx_arena_dup(&secrets->arena, word);
	if (copy.ptr == NULL)
		return HPX_NOMEM;
	secrets->values[secrets->count++] = copy;
	return HPX_OK;
}

/* Variables that differ from one operation to the next are nobody's secret. */
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
		status = add(secrets, next_word(&rest));
	hpx_buffer_done(&filled);
	return status;
}

static enum hpx_status add_lines(struct hpx_secrets *secrets, const struct hpx_verify_spec *spec,
				 const struct hpx_span *lines, size_t count)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < count && status == HPX_OK; i++) {
		size_t colon = hpx_span_index(lines[i], ':');

		if (colon < lines[i].len &&
		    hpx_redact_is_secret(spec, hpx_span_trim(hpx_span_first(lines[i], colon))))
			status = add_line(secrets, lines[i]);
	}
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
