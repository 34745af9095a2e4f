/* A request before it is sent: whether its URL, method and fields can be written into
 * a request without changing where that goes or where it ends, and the fields in the
 * form that libcurl wants. */
#include "egress/transfer.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/status.h"
#include "http/field.h"
#include "http/octet.h"

#define URL_BYTES_MAX 8192

const char *hpx_egress_end_text(enum hpx_egress_end end)
{
	static const char *const texts[] = {
#define X(name, text) text,
		HPX_EGRESS_END_LIST(X)
#undef X
	};

	HPX_ASSERT((size_t)end < sizeof(texts) / sizeof(texts[0]));
	return texts[end];
}

void hpx_egress_request_reset(struct hpx_egress_request *request)
{
	request->end = HPX_EGRESS_NOT_SENT;
	request->status = 0;
	request->body_dropped = false;
	request->resent = false;
	request->retry_after_ms = -1;
	request->sent_ms = -1;
	request->problem[0] = '\0';
	request->next = NULL;
	/* The colon, the space and the line's end are added to each field. */
	hpx_buffer_init(&request->headers_in,
			HPX_EGRESS_HEAD_BYTES_MAX + HPX_HTTP_FIELDS_MAX * sizeof(": \r\n"));
	hpx_buffer_init(&request->body_in, request->answer_bytes_max);
}

void hpx_egress_request_done(struct hpx_egress_request *request)
{
	hpx_buffer_done(&request->headers_in);
	hpx_buffer_done(&request->body_in);
}

void hpx_egress_request_set_problem(struct hpx_egress_request *request, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(request->problem, sizeof(request->problem), format, args);
	va_end(args);
	for (char *c = request->problem; *c != '\0'; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

static enum hpx_status refuse(struct hpx_egress_request *request, const char *why)
{
	hpx_egress_request_set_problem(request, "%s", why);
	return HPX_INVALID;
}

/* The part after "http://" or "https://"; ptr NULL where the URL has neither. */
static struct hpx_span after_scheme(struct hpx_span url)
{
	static const struct hpx_span schemes[] = { HPX_SPAN_INIT("http://"),
						   HPX_SPAN_INIT("https://") };

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (hpx_span_istarts(url, schemes[i]))
			return hpx_span_skip(url, schemes[i].len);
	return hpx_span(NULL, 0);
}

static enum hpx_status check_url(struct hpx_egress_request *request)
{
	struct hpx_span url = hpx_span_of(request->url);
	struct hpx_span rest = after_scheme(url);
	size_t slash = hpx_span_index(rest, '/');
	size_t query = hpx_span_index(rest, '?');
	struct hpx_span authority = hpx_span_first(rest, slash < query ? slash : query);

	if (url.len > URL_BYTES_MAX)
		return refuse(request, "the URL is too long");
	if (!hpx_octet_all(url, HPX_OCTET_TARGET))
		return refuse(request, "the URL has a byte that must be escaped, or a fragment");
	if (rest.ptr == NULL)
		return refuse(request, "the URL is neither http:// nor https://");
	if (authority.len == 0)
		return refuse(request, "the URL names no host");
	/* A credential in a URL ends up in logs; it belongs in a field. */
	if (hpx_span_index(authority, '@') < authority.len)
		return refuse(request, "the URL holds a user name; credentials go into a header field");
	return HPX_OK;
}

static enum hpx_status check_method(struct hpx_egress_request *request)
{
	struct hpx_span method = hpx_span_of(request->method);

	if (!hpx_is_token(method) || hpx_span_ieq(method, HPX_SPAN("CONNECT")))
		return refuse(request, "the method is not one that can be sent");
	if (hpx_span_eq(method, HPX_SPAN("HEAD")) && request->body.len > 0)
		return refuse(request, "HEAD has no body");
	return HPX_OK;
}

/* Takes the next line off the front; false when it is not a field with CR LF behind it. */
static bool take_field(struct hpx_span *rest, struct hpx_field *ret_field)
{
	struct hpx_field_line line;

	if (!hpx_field_line_next(rest, &line) || line.whole.len != line.text.len + 2)
		return false;
	*ret_field = (struct hpx_field){ line.name, line.value };
	return hpx_is_token(line.name) && hpx_octet_all(line.value, HPX_OCTET_VALUE);
}

/* Fields that say where the message ends or whether the connection stays open: only
 * the engine writes them. */
static bool is_engine_field(struct hpx_span name)
{
	static const struct hpx_http_head none;

	return hpx_field_is_hop(&none, name) || hpx_span_ieq(name, HPX_SPAN("content-length")) ||
	       hpx_span_ieq(name, HPX_SPAN("expect"));
}

static enum hpx_status check_headers(struct hpx_egress_request *request)
{
	struct hpx_span rest = request->headers;
	struct hpx_field field;

	if (rest.len > HPX_EGRESS_HEAD_BYTES_MAX) {
		refuse(request, "the header fields are too large");
		return HPX_TOO_LARGE;
	}
	while (rest.len > 0) {
		if (!take_field(&rest, &field))
			return refuse(request, "a header field is malformed");
		if (!is_engine_field(field.name))
			continue;
		hpx_egress_request_set_problem(request, "the header field %.*s cannot be given",
					       HPX_SPAN_ARG(hpx_span_first(field.name, 64)));
		return HPX_INVALID;
	}
	return HPX_OK;
}

static bool is_timeout(int64_t ms)
{
	return ms > 0 && ms <= INT_MAX;
}

enum hpx_status hpx_egress_request_check(struct hpx_egress_request *request)
{
	enum hpx_status status = check_url(request);

	if (status == HPX_OK)
		status = check_method(request);
	if (status == HPX_OK)
		status = check_headers(request);
	if (status == HPX_OK &&
	    (!is_timeout(request->timeout_ms) || !is_timeout(request->connect_timeout_ms)))
		status = refuse(request, "a timeout is missing or too long");
	return status;
}

static bool has_field(const struct hpx_egress_request *request, struct hpx_span name)
{
	struct hpx_span rest = request->headers;
	struct hpx_field field;

	while (rest.len > 0 && take_field(&rest, &field))
		if (hpx_span_ieq(field.name, name))
			return true;
	return false;
}

static bool append(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (longer == NULL)
		return false;
	*list = longer;
	return true;
}

/* To libcurl, "Name:" means to leave the field out, and "Name;" an empty field. */
static bool append_field(struct curl_slist **list, const struct hpx_field *field)
{
	struct hpx_buffer line;
	bool empty = field->value.len == 0;

	hpx_buffer_init(&line, HPX_EGRESS_HEAD_BYTES_MAX + sizeof(": "));
	enum hpx_status status = hpx_buffer_append(&line, field->name);
	if (status == HPX_OK)
		status = hpx_buffer_text(&line, empty ? ";" : ": ");
	if (status == HPX_OK)
		status = hpx_buffer_append(&line, field->value);
	if (status == HPX_OK)
		status = hpx_buffer_byte(&line, '\0');
	bool ok = status == HPX_OK && append(list, line.ptr);
	hpx_buffer_done(&line);
	return ok;
}

static bool append_given(struct curl_slist **list, const struct hpx_egress_request *request)
{
	struct hpx_span rest = request->headers;
	struct hpx_field field;

	while (rest.len > 0 && take_field(&rest, &field))
		if (!append_field(list, &field))
			return false;
	HPX_ASSERT(rest.len == 0);
	return true;
}

/* Without these fields libcurl would wait for 100 (Continue) before a large body, and
 * give any body the Content-Type of a form. */
static bool append_engine_fields(struct curl_slist **list, const struct hpx_egress_request *request)
{
	if (!append(list, "Expect:"))
		return false;
	if (!request->reuse && !append(list, "Connection: close"))
		return false;
	if (!has_field(request, HPX_SPAN("content-type")) && !append(list, "Content-Type:"))
		return false;
	return has_field(request, HPX_SPAN("accept-encoding")) ||
	       append(list, "Accept-Encoding: identity");
}

struct curl_slist *hpx_egress_request_lines(const struct hpx_egress_request *request)
{
	struct curl_slist *list = NULL;

	if (append_given(&list, request) && append_engine_fields(&list, request))
		return list;
	curl_slist_free_all(list);
	return NULL;
}
