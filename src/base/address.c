/* Reading addresses as people write them in the configuration. No sockets, and
 * no libuv: base is part of the libraries, which do without it. */
#include "base/address.h"

#include <arpa/inet.h>

#define PORT_MAX 65535
#define HTTP_PORT 80
#define HTTPS_PORT 443

static enum hpx_status refuse(const char **ret_reason, const char *reason)
{
	*ret_reason = reason;
	return HPX_INVALID;
}

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_';
}

/* "127.1" and "2130706433" are addresses to some resolvers and names to
 * others; only the dotted form with four numbers is taken. */
static bool is_host(const char *host)
{
	struct in_addr v4;
	bool numeric = true;

	if (*host == '\0')
		return false;
	for (const char *c = host; *c != '\0'; c++) {
		if (!is_name_byte(*c))
			return false;
		numeric = numeric && ((*c >= '0' && *c <= '9') || *c == '.');
	}
	return !numeric || inet_pton(AF_INET, host, &v4) == 1;
}

/* The zone of a link-local address ("fe80::1%eth0") names an interface and is no
 * part of the address. */
static bool read_ipv6(const char *host, struct in6_addr *ret_v6)
{
	char address[INET6_ADDRSTRLEN];
	size_t len = strcspn(host, "%");

	if (len >= sizeof(address))
		return false;
	memcpy(address, host, len);
	address[len] = '\0';
	return inet_pton(AF_INET6, address, ret_v6) == 1;
}

static bool is_ipv6(const char *host)
{
	struct in6_addr v6;

	return read_ipv6(host, &v6);
}

/* Nothing, or a port alone: ":8080", "8080". "::1" is an address. */
static bool lacks_host(struct hpx_span text)
{
	uint64_t port;

	if (text.len == 0)
		return true;
	if (text.ptr[0] != ':')
		return hpx_span_u64(text, PORT_MAX, &port);
	text = hpx_span_skip(text, 1);
	return hpx_span_index(text, ':') == text.len;
}

static bool copy(char *to, size_t size, struct hpx_span from)
{
	if (from.len >= size || (from.len > 0 && memchr(from.ptr, '\0', from.len) != NULL))
		return false;
	if (from.len > 0)
		memcpy(to, from.ptr, from.len);
	to[from.len] = '\0';
	return true;
}

static enum hpx_status parse_unix(struct hpx_span path, struct hpx_address *address,
				  const char **ret_reason)
{
	address->is_unix = true;
	if (path.len == 0)
		return refuse(ret_reason, "no path behind \"unix:\"");
	if (!copy(address->path, sizeof(address->path), path))
		return refuse(ret_reason,
			      "the path of a unix socket has at most 107 bytes");
	return HPX_OK;
}

/* Cuts "[v6]" or a name off the front of `*rest`. */
static enum hpx_status parse_host(struct hpx_span *rest, struct hpx_address *address,
				  const char **ret_reason)
{
	bool bracket = rest->len > 0 && rest->ptr[0] == '[';
	size_t end = hpx_span_index(*rest, bracket ? ']' : ':');

	if (bracket && end == rest->len)
		return refuse(ret_reason, "\"[\" without \"]\"");
	struct hpx_span host =
		bracket ? hpx_span(rest->ptr + 1, end - 1) : hpx_span_first(*rest, end);
	if (!copy(address->host, sizeof(address->host), host))
		return refuse(ret_reason, "the host name is too long");
	if (bracket && !is_ipv6(address->host))
		return refuse(ret_reason, "what stands in brackets is not an IPv6 address");
	if (lacks_host(*rest))
		return refuse(ret_reason, "the host is missing");
	if (!bracket && !is_host(address->host))
		return refuse(ret_reason, "the host is not a name or an address "
					  "(an IPv6 address stands in brackets)");
	*rest = hpx_span_skip(*rest, bracket ? end + 1 : end);
	return HPX_OK;
}

static enum hpx_status parse_port(struct hpx_span rest, uint16_t *ret_port,
				  const char **ret_reason)
{
	uint64_t port;

	if (rest.len == 0 || rest.ptr[0] != ':')
		return refuse(ret_reason, "a port is missing (host:port)");
	/* Five digits at most, so that 000…080 is not a way to write a port. */
	if (rest.len > 6 || !hpx_span_u64(hpx_span_skip(rest, 1), PORT_MAX, &port))
		return refuse(ret_reason, "the port is not a number up to 65535");
	*ret_port = (uint16_t)port;
	return HPX_OK;
}

enum hpx_status hpx_address_parse(struct hpx_span text, struct hpx_address *ret_address,
				  const char **ret_reason)
{
	struct hpx_address address = { 0 };
	enum hpx_status status;

	if (!copy(address.text, sizeof(address.text), text))
		return refuse(ret_reason, "the address is too long");
	if (hpx_span_starts(text, HPX_SPAN("unix:"))) {
		status = parse_unix(hpx_span_skip(text, 5), &address, ret_reason);
	} else {
		status = parse_host(&text, &address, ret_reason);
		if (status == HPX_OK)
			status = parse_port(text, &address.port, ret_reason);
	}
	if (status == HPX_OK)
		*ret_address = address;
	return status;
}

static enum hpx_status parse_authority(struct hpx_span rest, struct hpx_address *address,
				       const char **ret_reason)
{
	size_t slash = hpx_span_index(rest, '/');

	if (rest.len - slash > 1)
		return refuse(ret_reason,
			      "an upstream has no path: requests keep their own");
	rest = hpx_span_first(rest, slash);
	if (hpx_span_index(rest, '@') < rest.len)
		return refuse(ret_reason, "an upstream's URL carries no credentials");
	enum hpx_status status = parse_host(&rest, address, ret_reason);
	if (status != HPX_OK)
		return status;
	if (rest.len == 0) {
		address->port = address->tls ? HTTPS_PORT : HTTP_PORT;
		return HPX_OK;
	}
	status = parse_port(rest, &address->port, ret_reason);
	if (status == HPX_OK && address->port == 0)
		return refuse(ret_reason, "nobody listens on port 0");
	return status;
}

enum hpx_status hpx_address_parse_upstream(struct hpx_span url,
					   struct hpx_address *ret_address,
					   const char **ret_reason)
{
	struct hpx_address address = { 0 };
	struct hpx_span scheme = HPX_SPAN("http://");

	if (hpx_span_istarts(url, HPX_SPAN("https://"))) {
		scheme = HPX_SPAN("https://");
		address.tls = true;
	}
	if (hpx_span_starts(url, HPX_SPAN("unix:")))
		return hpx_address_parse(url, ret_address, ret_reason);
	if (!hpx_span_istarts(url, scheme))
		return refuse(ret_reason, "an upstream is http://host[:port], https://host[:port] or unix:PATH");
	if (!copy(address.text, sizeof(address.text), url))
		return refuse(ret_reason, "the address is too long");
	enum hpx_status status =
		parse_authority(hpx_span_skip(url, scheme.len), &address, ret_reason);
	if (status == HPX_OK)
		*ret_address = address;
	return status;
}

bool hpx_address_is_local(const struct hpx_address *address)
{
	static const uint8_t mapped[13] = { [10] = 0xff, [11] = 0xff, [12] = 127 };
	struct in_addr v4;
	struct in6_addr v6;

	if (address->is_unix)
		return true;
	if (inet_pton(AF_INET, address->host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	if (read_ipv6(address->host, &v6))
		return IN6_IS_ADDR_LOOPBACK(&v6) || memcmp(&v6, mapped, sizeof(mapped)) == 0;
	return hpx_span_ieq(hpx_span_of(address->host), HPX_SPAN("localhost"));
}
