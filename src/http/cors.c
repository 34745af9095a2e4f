/* Header lines as another origin gets them: copied, replaced, merged. Lists
 * are merged by adding what is missing; what stands there is not touched, so
 * all of it is one pass per name over what the upstream sent. */
#include "http/cors.h"

#include "http/field.h"
#include "http/write.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define ALLOW_ORIGIN "Access-Control-Allow-Origin"
#define ALLOW_CREDENTIALS "Access-Control-Allow-Credentials"
#define EXPOSE_HEADERS "Access-Control-Expose-Headers"

/* A listed origin that is taken off the list is refused after this long. */
#define PREFLIGHT_MAX_AGE_S 600
/* A page sets a few headers; whoever names more is no page. */
#define ASKED_MAX 64

struct hpx_span hpx_cors_origin(const struct hpx_http_head *head)
{
	struct hpx_span none = { NULL, 0 };

	return hpx_field_count(head, HPX_SPAN("Origin")) == 1 ?
		       hpx_field_value(head, HPX_SPAN("Origin")) :
		       none;
}

struct hpx_span hpx_cors_allowed(const struct hpx_cors *cors, struct hpx_span origin)
{
	for (size_t i = 0; i < cors->origin_count && origin.ptr != NULL; i++)
		if (hpx_span_eq(cors->origins[i], HPX_SPAN("*")) ||
		    hpx_span_eq(cors->origins[i], origin))
			return cors->origins[i];
	return (struct hpx_span){ NULL, 0 };
}

/* ---- lists ---- */

/* A header whose value is a list of names, and what hapax adds to it. */
struct list {
	struct hpx_span name;
	const struct hpx_span *added;
	size_t added_count;
};

static const struct hpx_span vary_names[] = { HPX_SPAN_INIT("Origin") };

/* The last two are hapax's to expose only on an answer of its own. */
static const struct hpx_span exposed_names[] = {
	HPX_SPAN_INIT("Hapax-Operation"),
	HPX_SPAN_INIT("Idempotent-Replayed"),
	HPX_SPAN_INIT("Idempotency-Expires"),
	HPX_SPAN_INIT("Retry-After"),
	HPX_SPAN_INIT("Location"),
	HPX_SPAN_INIT("Link"),
};
#define OWN_EXPOSED_COUNT 2

static bool lines_have(struct hpx_span lines, struct hpx_span name, struct hpx_span item)
{
	struct hpx_field_line line;

	while (hpx_field_line_next(&lines, &line))
		if (hpx_span_ieq(line.name, name) && hpx_field_list_has(line.value, item))
			return true;
	return false;
}

static enum hpx_status add_item(struct hpx_buffer *out, struct hpx_span item, bool *begun)
{
	enum hpx_status status = *begun ? hpx_buffer_text(out, ", ") : HPX_OK;

	*begun = true;
	return status == HPX_OK ? hpx_buffer_append(out, item) : status;
}

/* All lines of that name as one, then what they lack. */
static enum hpx_status write_list(const struct list *list, struct hpx_span lines,
				  struct hpx_buffer *out)
{
	enum hpx_status status = hpx_buffer_printf(out, "%.*s: ", HPX_SPAN_ARG(list->name));
	struct hpx_span rest = lines;
	bool begun = false;
	struct hpx_field_line line;

	while (status == HPX_OK && hpx_field_line_next(&rest, &line))
		if (hpx_span_ieq(line.name, list->name) && line.value.len > 0)
			status = add_item(out, line.value, &begun);
	for (size_t i = 0; i < list->added_count && status == HPX_OK; i++)
		if (!lines_have(lines, list->name, list->added[i]))
			status = add_item(out, list->added[i], &begun);
	return status == HPX_OK ? hpx_buffer_text(out, "\r\n") : status;
}

/* Vary: * says more than any name. */
static enum hpx_status write_vary(struct hpx_span lines, struct hpx_buffer *out)
{
	struct list list = { HPX_SPAN("Vary"), vary_names, COUNT(vary_names) };

	if (lines_have(lines, list.name, HPX_SPAN("*")))
		list.added_count = 0;
	return write_list(&list, lines, out);
}

/* Names are added to a * too: where credentials are sent, it means nothing. */
static enum hpx_status write_exposed(enum hpx_cors_answer answer, struct hpx_span lines,
				     struct hpx_buffer *out)
{
	struct list list = { HPX_SPAN(EXPOSE_HEADERS), exposed_names, COUNT(exposed_names) };

	if (answer != HPX_CORS_OWN)
		list.added_count -= OWN_EXPOSED_COUNT;
	return write_list(&list, lines, out);
}

/* ---- an answer ---- */

/* A line that is not copied: it is written anew, or not for this origin. */
static bool is_replaced(enum hpx_cors_answer answer, bool allowed, struct hpx_span name)
{
	if (hpx_span_ieq(name, HPX_SPAN("Vary")))
		return true;
	if (hpx_span_ieq(name, HPX_SPAN(EXPOSE_HEADERS)))
		return allowed;
	return answer != HPX_CORS_FIRST && (hpx_span_ieq(name, HPX_SPAN(ALLOW_ORIGIN)) ||
					    hpx_span_ieq(name, HPX_SPAN(ALLOW_CREDENTIALS)));
}

static enum hpx_status write_allowed(const struct hpx_cors *cors, struct hpx_span allowed,
				     struct hpx_buffer *out)
{
	enum hpx_status status = hpx_write_field(out, HPX_SPAN(ALLOW_ORIGIN), allowed);

	if (status == HPX_OK && cors->credentials)
		status = hpx_write_field_text(out, ALLOW_CREDENTIALS, "true");
	return status;
}

static enum hpx_status write_answer(const struct hpx_cors *cors, enum hpx_cors_answer answer,
				    struct hpx_span allowed, struct hpx_span lines,
				    struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;
	struct hpx_span rest = lines;
	struct hpx_field_line line;

	while (status == HPX_OK && hpx_field_line_next(&rest, &line))
		if (!is_replaced(answer, allowed.ptr != NULL, line.name))
			status = hpx_buffer_append(out, line.whole);
	if (status == HPX_OK && allowed.ptr != NULL && answer != HPX_CORS_FIRST)
		status = write_allowed(cors, allowed, out);
	if (status == HPX_OK && allowed.ptr != NULL)
		status = write_exposed(answer, lines, out);
	return status == HPX_OK ? write_vary(lines, out) : status;
}

enum hpx_status hpx_cors_write(const struct hpx_cors *cors, enum hpx_cors_answer answer,
			       struct hpx_span origin, struct hpx_span lines,
			       struct hpx_buffer *out)
{
	size_t begin = out->len;

	if (!hpx_cors_is_on(cors))
		return hpx_buffer_append(out, lines);
	enum hpx_status status =
		write_answer(cors, answer, hpx_cors_allowed(cors, origin), lines, out);
	if (status != HPX_OK)
		out->len = begin;
	return status;
}

/* ---- a preflight ---- */

/* What no page can set, or only hapax may say, is not granted. */
static bool may_be_asked(struct hpx_span name)
{
	static const struct hpx_http_head nothing;

	return hpx_is_token(name) && !hpx_field_is_ours(name) && !hpx_field_is_hop(&nothing, name);
}

static bool is_among(struct hpx_span name, const struct hpx_span *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (hpx_span_ieq(name, names[i]))
			return true;
	return false;
}

static enum hpx_status write_headers(struct hpx_span key_header, struct hpx_span asked,
				     struct hpx_buffer *out)
{
	const struct hpx_span read[] = { key_header, HPX_SPAN("Authorization"),
					 HPX_SPAN("Content-Type"), HPX_SPAN("Prefer") };
	enum hpx_status status = hpx_buffer_text(out, "Access-Control-Allow-Headers: ");
	bool begun = false;
	struct hpx_span item;

	for (size_t i = 0; i < COUNT(read) && status == HPX_OK; i++)
		status = add_item(out, read[i], &begun);
	for (size_t n = 0; n < ASKED_MAX && status == HPX_OK && hpx_span_split(&asked, ',', &item);
	     n++) {
		item = hpx_span_trim(item);
		if (may_be_asked(item) && !is_among(item, read, COUNT(read)))
			status = add_item(out, item, &begun);
	}
	return status == HPX_OK ? hpx_buffer_text(out, "\r\n") : status;
}

enum hpx_status hpx_cors_write_preflight(struct hpx_span methods, struct hpx_span key_header,
					 struct hpx_span asked, struct hpx_buffer *out)
{
	size_t begin = out->len;
	enum hpx_status status =
		hpx_write_field(out, HPX_SPAN("Access-Control-Allow-Methods"), methods);

	if (status == HPX_OK)
		status = write_headers(key_header, asked, out);
	if (status == HPX_OK)
		status = hpx_write_field_u64(out, "Access-Control-Max-Age", PREFLIGHT_MAX_AGE_S);
	if (status != HPX_OK)
		out->len = begin;
	return status;
}
