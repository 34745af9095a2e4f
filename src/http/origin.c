/* Judging an origin's text: scheme, host, port, and nothing else. Comparing is
 * done byte by byte elsewhere, so there is one way to write each. */
#include "http/origin.h"

#include "http/target.h"

#define ORIGIN_BYTES_MAX 255

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
