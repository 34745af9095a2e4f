/* Which header values nobody may see in a report or a log. */
#include "verify/request.h"
#include "verify/template.h"

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
	return hpx_span_ieq(hpx_span_trim(hpx_span_first(line, hpx_span_index(line, ':'))), name);
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
	/* They are there to say who is calling. */
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
