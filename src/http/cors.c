/* Header lines as another origin gets them: copied, replaced, merged. Lists
 * are merged by adding what is missing; what stands there is not touched, so
 * all of it is one pass per name over what the upstream sent. */
#include "http/cors.h"

#include "base/status.h"
#include "http/field.h"
#include "http/target.h"
#include "http/write.h"

#define ORIGIN_BYTES_MAX 255
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define ALLOW_ORIGIN "Access-Control-Allow-Origin"
#define ALLOW_CREDENTIALS "Access-Control-Allow-Credentials"
#define EXPOSE_HEADERS "Access-Control-Expose-Headers"

/* A listed origin that is taken off the list is refused after this long. */
#define PREFLIGHT_MAX_AGE_S 600
/* A page sets a few headers; whoever names more is no page. */
#define ASKED_MAX 64

/* ---- origins as they are configured ---- */

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool has_upper(struct hpx_span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (is_upper(text.ptr[i]))
			return true;
	return false;
}

/* RFC 3986 §3.1, in lower case. */
static bool is_scheme(struct hpx_span scheme)
{
	for (size_t i = 0; i < scheme.len; i++) {
		char c = scheme.ptr[i];
		bool letter = c >= 'a' && c <= 'z';
		bool other = (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
		if (!letter && (i == 0 || !other))
			return false;
	}
	return scheme.len > 0;
}

/* What stands behind the host's colon; ptr NULL where there is none. */
static struct hpx_span port_of(struct hpx_span authority)
{
	size_t from = hpx_span_index(authority, ']');

	if (from == authority.len)
		from = 0;
	struct hpx_span rest = hpx_span_skip(authority, from);
	size_t colon = hpx_span_index(rest, ':');
	return colon < rest.len ? hpx_span_skip(rest, colon + 1) : (struct hpx_span){ NULL, 0 };
}

static bool is_own_port(struct hpx_span scheme, struct hpx_span port)
{
	return (hpx_span_eq(scheme, HPX_SPAN("https")) && hpx_span_eq(port, HPX_SPAN("443"))) ||
	       (hpx_span_eq(scheme, HPX_SPAN("http")) && hpx_span_eq(port, HPX_SPAN("80")));
}

static const char *authority_fault(struct hpx_span scheme, struct hpx_span authority)
{
	struct hpx_span port = port_of(authority);

	if (hpx_span_index(authority, '*') < authority.len)
		return "has a * inside, but origins are compared whole; list each of them";
	if (hpx_span_index(authority, '@') < authority.len)
		return "names a user, which no Origin does; leave it out";
	if (!hpx_host_valid(authority) || (port.ptr != NULL && port.len == 0))
		return "has no host and port as they stand in a URL; write e.g. "
		       "https://shop.example or http://127.0.0.1:3000";
	if (port.len > 0 && (is_own_port(scheme, port) || port.ptr[0] == '0'))
		return "has a port as no browser writes it: the scheme's own is left out, and "
		       "so are zeros in front";
	return NULL;
}

static const char *fault(struct hpx_span text)
{
	size_t colon = hpx_span_index(text, ':');
	struct hpx_span scheme = hpx_span_first(text, colon);
	struct hpx_span rest = hpx_span_skip(text, colon);

	if (hpx_span_eq(text, HPX_SPAN("null")))
		return NULL;
	if (text.len > ORIGIN_BYTES_MAX)
		return "is longer than 255 bytes";
	if (has_upper(text))
		return "has capital letters; browsers send the scheme and the host in lower case";
	if (!hpx_span_starts(rest, HPX_SPAN("://")) || !is_scheme(scheme))
		return "has no scheme; write e.g. https://shop.example";
	struct hpx_span authority = hpx_span_skip(rest, sizeof("://") - 1);
	for (size_t i = 0; i < authority.len; i++)
		if (authority.ptr[i] == '/' || authority.ptr[i] == '?' || authority.ptr[i] == '#')
			return "has more than scheme, host and port; leave out what comes behind "
			       "them, a last / too";
	return authority_fault(scheme, authority);
}

bool hpx_origin_valid(struct hpx_span text, const char **ret_reason)
{
	const char *reason = fault(text);

	if (reason != NULL)
		*ret_reason = reason;
	return reason == NULL;
}

/* ---- origins of requests ---- */

struct hpx_span hpx_cors_origin(const struct hpx_http_head *head)
{
	struct hpx_span none = { NULL, 0 };

	return hpx_field_known_count(head, HPX_NAME_ORIGIN) == 1 ?
		       hpx_field_known_value(head, HPX_NAME_ORIGIN) :
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
struct cors_list {
	struct hpx_span name;
	const struct hpx_span *added;
	size_t added_count;
};

static const struct hpx_span vary_names[] = { HPX_SPAN_INIT("Origin") };

/* The last four are hapax's to expose only on an answer of its own. */
static const struct hpx_span exposed_names[] = {
	HPX_SPAN_INIT("Hapax-Operation"),
	HPX_SPAN_INIT("Idempotent-Replayed"),
	HPX_SPAN_INIT("Idempotent-Reconstructed"),
	HPX_SPAN_INIT("Idempotency-Expires"),
	HPX_SPAN_INIT("Retry-After"),
	HPX_SPAN_INIT("Location"),
	HPX_SPAN_INIT("Link"),
	HPX_SPAN_INIT("RateLimit"),
	HPX_SPAN_INIT("RateLimit-Policy"),
};
#define OWN_EXPOSED_COUNT 4

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
static enum hpx_status write_list(const struct cors_list *list, struct hpx_span lines,
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
	struct cors_list list = { HPX_SPAN("Vary"), vary_names, COUNT(vary_names) };

	if (lines_have(lines, list.name, HPX_SPAN("*")))
		list.added_count = 0;
	return write_list(&list, lines, out);
}

/* Names are added to a * too: where credentials are sent, it means nothing. */
static enum hpx_status write_exposed(enum hpx_cors_answer answer, struct hpx_span lines,
				     struct hpx_buffer *out)
{
	struct cors_list list = { HPX_SPAN(EXPOSE_HEADERS), exposed_names, COUNT(exposed_names) };

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

	HPX_ASSERT(hpx_cors_is_on(cors));
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
