/* See target.h. */
#include "verify/target.h"

#include <stdio.h>

#include "base/address.h"
#include "http/octet.h"

#define AUTHORITY_MAX 300

static enum hpx_status refuse(const char **ret_reason, const char *reason)
{
	*ret_reason = reason;
	return HPX_INVALID;
}

static enum hpx_status parse_scheme(struct hpx_span *rest, bool *ret_tls,
				    const char **ret_reason)
{
	struct hpx_span plain = HPX_SPAN("http://"), tls = HPX_SPAN("https://");

	*ret_tls = hpx_span_istarts(*rest, tls);
	if (!*ret_tls && !hpx_span_istarts(*rest, plain))
		return refuse(ret_reason, "a URL begins with http:// or https://");
	*rest = hpx_span_skip(*rest, *ret_tls ? tls.len : plain.len);
	return HPX_OK;
}

static bool has_port(struct hpx_span authority)
{
	size_t bracket = hpx_span_index(authority, ']');
	struct hpx_span rest = bracket < authority.len ? hpx_span_skip(authority, bracket) : authority;

	return hpx_span_index(rest, ':') < rest.len;
}

static enum hpx_status parse_authority(struct hpx_span authority, struct hpx_verify_url *url,
				       const char **ret_reason)
{
	struct hpx_address address;
	char text[AUTHORITY_MAX];

	if (hpx_span_index(authority, '@') < authority.len)
		return refuse(ret_reason, "credentials do not stand in the URL; give them as a "
					  "header, as -H 'Authorization: Bearer {{env:TOKEN}}'");
	if (authority.len == 0 || authority.len > sizeof(text) - 8 ||
	    hpx_span_starts(authority, HPX_SPAN("unix:")))
		return refuse(ret_reason, "there is no host in the URL");
	snprintf(text, sizeof(text), "%.*s%s", HPX_SPAN_ARG(authority),
		 has_port(authority) ? "" : url->tls ? ":443" :
						       ":80");
	enum hpx_status status = hpx_address_parse(hpx_span_of(text), &address, ret_reason);
	if (status != HPX_OK)
		return status;
	if (address.port == 0)
		return refuse(ret_reason, "nobody listens on port 0");
	memcpy(url->host, address.host, sizeof(url->host));
	url->port = address.port;
	return HPX_OK;
}

static enum hpx_status check_path(struct hpx_span path, const char **ret_reason)
{
	if (hpx_span_index(path, '#') < path.len)
		return refuse(ret_reason, "a fragment (#…) is never sent; leave it out");
	if (!hpx_octet_all(path, HPX_OCTET_TARGET))
		return refuse(ret_reason, "the path has a space or another byte that must be "
					  "percent-encoded");
	return HPX_OK;
}

/* Where the path begins: "https://host?x=1" has none before its query. */
static size_t authority_end(struct hpx_span rest)
{
	size_t i = 0;

	while (i < rest.len && rest.ptr[i] != '/' && rest.ptr[i] != '?' && rest.ptr[i] != '#')
		i++;
	return i;
}

enum hpx_status hpx_verify_url_parse(struct hpx_span text, struct hpx_verify_url *ret_url,
				     const char **ret_reason)
{
	struct hpx_verify_url url = { .path = HPX_SPAN("/") };
	enum hpx_status status = parse_scheme(&text, &url.tls, ret_reason);

	if (status != HPX_OK)
		return status;
	size_t end = authority_end(text);
	status = parse_authority(hpx_span_first(text, end), &url, ret_reason);
	if (status == HPX_OK && end < text.len) {
		url.path = hpx_span_skip(text, end);
		if (url.path.ptr[0] != '/')
			return refuse(ret_reason, "write a path (/) behind the host");
		status = check_path(url.path, ret_reason);
	}
	if (status == HPX_OK)
		*ret_url = url;
	return status;
}

enum hpx_status hpx_verify_path_parse(struct hpx_span text, const struct hpx_verify_url *of,
				      struct hpx_span *ret_path, const char **ret_reason)
{
	struct hpx_verify_url url = { .path = text };
	bool whole = text.len == 0 || text.ptr[0] != '/';
	enum hpx_status status = whole ? hpx_verify_url_parse(text, &url, ret_reason) : check_path(text, ret_reason);

	if (status != HPX_OK)
		return whole ? refuse(ret_reason, "a path begins with \"/\"") : status;
	if (whole && (url.tls != of->tls || url.port != of->port ||
		      !hpx_span_ieq(hpx_span_of(url.host), hpx_span_of(of->host))))
		return refuse(ret_reason, "is on another host; only the one of the URL is "
					  "ever asked, so give a path on it");
	*ret_path = url.path;
	return HPX_OK;
}
