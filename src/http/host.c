/* Whether a Host, or the authority of a target, is one (RFC 3986 §3.2). */
#include <arpa/inet.h>

#include "http/octet.h"
#include "http/target.h"

#define PORT_MAX 65535

/* An empty port means the scheme's own (RFC 3986 §3.2.3). */
static bool is_port(struct hpx_span port)
{
	uint64_t value;

	return port.len == 0 || hpx_span_u64(port, PORT_MAX, &value);
}

/* "[" IPv6 "]", without a zone: that means something on one machine only. */
static bool is_ip_literal(struct hpx_span literal)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;
	size_t len = literal.len - 2;

	if (len >= sizeof(text) || memchr(literal.ptr, '\0', literal.len) != NULL)
		return false;
	memcpy(text, literal.ptr + 1, len);
	text[len] = '\0';
	return inet_pton(AF_INET6, text, &address) == 1;
}

static bool is_reg_name(struct hpx_span name)
{
	for (size_t i = 0; i < name.len; i++) {
		if (hpx_octet_is(name.ptr[i], HPX_OCTET_HOST))
			continue;
		if (name.ptr[i] != '%' || name.len - i < 3 ||
		    hpx_octet_hex(name.ptr[i + 1]) < 0 ||
		    hpx_octet_hex(name.ptr[i + 2]) < 0)
			return false;
		i += 2;
	}
	return name.len > 0;
}

bool hpx_host_valid(struct hpx_span host)
{
	bool literal = host.len > 0 && host.ptr[0] == '[';
	size_t end = literal ? hpx_span_index(host, ']') + 1 : hpx_span_index(host, ':');

	if (end > host.len)
		return false;
	struct hpx_span name = hpx_span_first(host, end);
	if (literal ? !is_ip_literal(name) : !is_reg_name(name))
		return false;
	if (end == host.len)
		return true;
	return host.ptr[end] == ':' && is_port(hpx_span_skip(host, end + 1));
}
