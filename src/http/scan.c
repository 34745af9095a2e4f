/* The scanner: for each state, the bytes that stay in it and the step that
 * leaves it (RFC 9112 §2.1, §3, §4, §5). Bare CR, bare LF and folding have no
 * place in it. */
#include "http/scan.h"

#include "base/status.h"
#include "http/octet.h"

unsigned hpx_http_error_status(enum hpx_http_error error)
{
	switch (error) {
#define X(name, status, text) \
	case HPX_HTTP_ERROR_##name: \
		return status;
		HPX_HTTP_ERROR_LIST(X)
#undef X
	}
	return 400;
}

const char *hpx_http_error_text(enum hpx_http_error error)
{
	switch (error) {
#define X(name, status, text) \
	case HPX_HTTP_ERROR_##name: \
		return text;
		HPX_HTTP_ERROR_LIST(X)
#undef X
	}
	return "the message is malformed";
}

/* The states that run over many bytes of one class; taken in one loop. */
static const unsigned char run_class[HPX_SCAN_STATES] = {
	[HPX_SCAN_METHOD] = HPX_OCTET_TOKEN,
	[HPX_SCAN_TARGET] = HPX_OCTET_TARGET,
	[HPX_SCAN_REASON] = HPX_OCTET_VALUE,
	[HPX_SCAN_NAME] = HPX_OCTET_TOKEN,
	[HPX_SCAN_VALUE] = HPX_OCTET_VALUE,
};

void hpx_scan_request(struct hpx_scan *scan, size_t fields_max)
{
	*scan = (struct hpx_scan){ .state = HPX_SCAN_BEGIN, .fields_max = fields_max };
}

void hpx_scan_response(struct hpx_scan *scan, size_t fields_max)
{
	*scan = (struct hpx_scan){ .state = HPX_SCAN_VERSION,
				   .response = true,
				   .fields_max = fields_max };
}

void hpx_scan_trailer(struct hpx_scan *scan, size_t fields_max)
{
	*scan = (struct hpx_scan){ .state = HPX_SCAN_FIELD_BEGIN,
				   .fields_max = fields_max };
}

static enum hpx_http_error go(struct hpx_scan *scan, enum hpx_scan_state next)
{
	scan->state = next;
	return HPX_HTTP_ERROR_NONE;
}

/* A line feed out of place is named as what it is, whatever it broke. */
static enum hpx_http_error refuse(char c, enum hpx_http_error error)
{
	return c == '\n' ? HPX_HTTP_ERROR_LINE_END : error;
}

static enum hpx_http_error line_feed(struct hpx_scan *scan, char c,
				     enum hpx_scan_state next)
{
	return c == '\n' ? go(scan, next) : HPX_HTTP_ERROR_LINE_END;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static enum hpx_http_error method_step(struct hpx_scan *scan, char c)
{
	bool begun = scan->state == HPX_SCAN_METHOD;

	if (hpx_octet_is(c, HPX_OCTET_TOKEN))
		return go(scan, HPX_SCAN_METHOD);
	if (begun && c == ' ')
		return go(scan, HPX_SCAN_TARGET_BEGIN);
	if (begun && c == '\r')
		return HPX_HTTP_ERROR_REQUEST_LINE;
	return refuse(c, HPX_HTTP_ERROR_METHOD);
}

static enum hpx_http_error target_step(struct hpx_scan *scan, char c)
{
	if (hpx_octet_is(c, HPX_OCTET_TARGET))
		return go(scan, HPX_SCAN_TARGET);
	if (scan->state == HPX_SCAN_TARGET && c == ' ')
		return go(scan, HPX_SCAN_VERSION);
	/* A second space, or HTTP/0.9. */
	if (c == ' ' || c == '\r')
		return HPX_HTTP_ERROR_REQUEST_LINE;
	return refuse(c, HPX_HTTP_ERROR_TARGET);
}

/* Whether a version is one of ours is said when it is whole: "HTTP/1.12" is
 * no version at all. */
static enum hpx_http_error version_step(struct hpx_scan *scan, char c)
{
	static const char form[] = "HTTP/d.d";
	enum hpx_http_error malformed =
		scan->response ? HPX_HTTP_ERROR_STATUS_LINE : HPX_HTTP_ERROR_REQUEST_LINE;

	if (scan->matched < sizeof(form) - 1) {
		bool digit = form[scan->matched] == 'd';
		if (digit ? !is_digit(c) : c != form[scan->matched])
			return refuse(c, malformed);
		if (digit)
			scan->version = scan->version * 10 + (unsigned)(c - '0');
		scan->matched++;
		return HPX_HTTP_ERROR_NONE;
	}
	if (c != (scan->response ? ' ' : '\r'))
		return refuse(c, malformed);
	if (scan->version != 10 && scan->version != 11)
		return HPX_HTTP_ERROR_VERSION;
	scan->matched = 0;
	return go(scan, scan->response ? HPX_SCAN_STATUS : HPX_SCAN_LINE_LF);
}

/* Three digits, the first not 0. The space before an absent reason is left
 * out by some servers; nothing hangs on it. */
static enum hpx_http_error status_step(struct hpx_scan *scan, char c)
{
	if (scan->state == HPX_SCAN_STATUS_END) {
		if (c == ' ')
			return go(scan, HPX_SCAN_REASON);
		if (c == '\r')
			return go(scan, HPX_SCAN_LINE_LF);
		return refuse(c, HPX_HTTP_ERROR_STATUS_LINE);
	}
	HPX_ASSERT(scan->matched < 3);
	if (!is_digit(c) || (scan->matched == 0 && c == '0'))
		return refuse(c, HPX_HTTP_ERROR_STATUS_LINE);
	scan->status = scan->status * 10 + (unsigned)(c - '0');
	scan->matched++;
	return go(scan, scan->matched == 3 ? HPX_SCAN_STATUS_END : HPX_SCAN_STATUS);
}

static enum hpx_http_error field_begin_step(struct hpx_scan *scan, char c)
{
	if (c == '\r')
		return go(scan, HPX_SCAN_END_LF);
	if (c == ' ' || c == '\t')
		return HPX_HTTP_ERROR_FIELD_FOLDED;
	if (!hpx_octet_is(c, HPX_OCTET_TOKEN))
		return refuse(c, HPX_HTTP_ERROR_FIELD_NAME);
	if (scan->field_count == scan->fields_max)
		return HPX_HTTP_ERROR_TOO_MANY_FIELDS;
	scan->field_count++;
	return go(scan, HPX_SCAN_NAME);
}

static enum hpx_http_error name_step(struct hpx_scan *scan, char c)
{
	if (c == ':')
		return go(scan, HPX_SCAN_VALUE);
	if (c == ' ' || c == '\t')
		return HPX_HTTP_ERROR_FIELD_SPACE;
	return refuse(c, HPX_HTTP_ERROR_FIELD_NAME);
}

static enum hpx_http_error line_end_step(struct hpx_scan *scan, char c,
					 enum hpx_http_error error)
{
	return c == '\r' ? go(scan, HPX_SCAN_LINE_LF) : refuse(c, error);
}

/* One byte that the run of the present state does not take. */
static enum hpx_http_error step(struct hpx_scan *scan, char c)
{
	switch (scan->state) {
	case HPX_SCAN_BEGIN:
		return c == '\r' ? go(scan, HPX_SCAN_BEGIN_LF) : method_step(scan, c);
	case HPX_SCAN_BEGIN_LF:
		return line_feed(scan, c, HPX_SCAN_METHOD_BEGIN);
	case HPX_SCAN_METHOD_BEGIN:
	case HPX_SCAN_METHOD:
		return method_step(scan, c);
	case HPX_SCAN_TARGET_BEGIN:
	case HPX_SCAN_TARGET:
		return target_step(scan, c);
	case HPX_SCAN_VERSION:
		return version_step(scan, c);
	case HPX_SCAN_STATUS:
	case HPX_SCAN_STATUS_END:
		return status_step(scan, c);
	case HPX_SCAN_REASON:
		return line_end_step(scan, c, HPX_HTTP_ERROR_STATUS_LINE);
	case HPX_SCAN_LINE_LF:
		return line_feed(scan, c, HPX_SCAN_FIELD_BEGIN);
	case HPX_SCAN_FIELD_BEGIN:
		return field_begin_step(scan, c);
	case HPX_SCAN_NAME:
		return name_step(scan, c);
	case HPX_SCAN_VALUE:
		return line_end_step(scan, c, HPX_HTTP_ERROR_FIELD_VALUE);
	case HPX_SCAN_END_LF:
		return line_feed(scan, c, HPX_SCAN_DONE);
	case HPX_SCAN_DONE:
	case HPX_SCAN_STATES:
		break;
	}
	return HPX_HTTP_ERROR_NONE;
}

enum hpx_http_progress hpx_scan_run(struct hpx_scan *scan, struct hpx_span bytes,
				    size_t *ret_used, enum hpx_http_error *ret_error)
{
	size_t at = 0;

	HPX_ASSERT(scan->state < HPX_SCAN_STATES && scan->field_count <= scan->fields_max);
	while (at < bytes.len && scan->state != HPX_SCAN_DONE) {
		unsigned run = run_class[scan->state];
		if (run != 0)
			at += hpx_octet_run(hpx_span_skip(bytes, at), run);
		if (at == bytes.len)
			break;
		enum hpx_http_error error = step(scan, bytes.ptr[at]);
		if (error != HPX_HTTP_ERROR_NONE) {
			*ret_error = error;
			return HPX_HTTP_BAD;
		}
		at++;
	}
	*ret_used = at;
	return scan->state == HPX_SCAN_DONE ? HPX_HTTP_DONE : HPX_HTTP_MORE;
}
