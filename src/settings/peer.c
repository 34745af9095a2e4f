/* Peers: networks, which peers are trusted, and whose request it is behind those. */
#include <arpa/inet.h>

#include "base/status.h"
#include "http/message.h"
#include "settings/settings.h"

#define IPV4_PREFIX_BITS 96

/* An address as sixteen bytes; false where the text is no address. */
static bool read_ip(struct hpx_span text, uint8_t ret_bytes[16], bool *ret_ipv4)
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	char name[INET6_ADDRSTRLEN];
	uint8_t bytes[16];

	if (text.len == 0 || text.len >= sizeof(name) ||
	    hpx_span_index(text, '\0') < text.len)
		return false;
	memcpy(name, text.ptr, text.len);
	name[text.len] = '\0';
	bool ipv4 = inet_pton(AF_INET, name, bytes + sizeof(mapped)) == 1;
	if (ipv4)
		memcpy(bytes, mapped, sizeof(mapped));
	else if (inet_pton(AF_INET6, name, bytes) != 1)
		return false;
	memcpy(ret_bytes, bytes, sizeof(bytes));
	*ret_ipv4 = ipv4;
	return true;
}

bool hpx_network_parse(struct hpx_span text, struct hpx_network *ret_network)
{
	size_t slash = hpx_span_index(text, '/');
	struct hpx_network network;
	bool ipv4;
	uint64_t bits;

	if (!read_ip(hpx_span_first(text, slash), network.bytes, &ipv4))
		return false;
	bits = ipv4 ? 32 : 128;
	if (slash < text.len && !hpx_span_u64(hpx_span_skip(text, slash + 1), bits, &bits))
		return false;
	network.prefix_bits = (unsigned)bits + (ipv4 ? IPV4_PREFIX_BITS : 0);
	*ret_network = network;
	return true;
}

static bool network_has(const struct hpx_network *network, const uint8_t address[16])
{
	unsigned whole = network->prefix_bits / 8;
	unsigned rest = network->prefix_bits % 8;

	HPX_ASSERT(network->prefix_bits <= 128);
	if (memcmp(network->bytes, address, whole) != 0)
		return false;
	unsigned differing = rest ? (unsigned)(network->bytes[whole] ^ address[whole]) : 0;
	return differing >> (8 - rest) == 0;
}

bool hpx_peer_trusted(const struct hpx_settings *settings, const char *peer)
{
	struct hpx_span text = hpx_span_of(peer);
	uint8_t address[16];
	bool ipv4;

	if (hpx_span_eq(text, HPX_SPAN("unix")))
		return true;
	/* The zone of a link-local address ("fe80::1%eth0") names an interface,
	 * not a network. */
	if (!read_ip(hpx_span_first(text, hpx_span_index(text, '%')), address, &ipv4))
		return false;
	for (size_t i = 0; i < settings->trusted_peer_count; i++)
		if (network_has(&settings->trusted_peers[i], address))
			return true;
	return false;
}

bool hpx_peer_is_local(const char *peer)
{
	static const struct hpx_network loopback[] = {
		{ { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127 }, IPV4_PREFIX_BITS + 8 },
		{ { [15] = 1 }, 128 },
	};
	struct hpx_span text = hpx_span_of(peer);
	uint8_t address[16];
	bool ipv4;

	if (hpx_span_eq(text, HPX_SPAN("unix")))
		return true;
	return read_ip(text, address, &ipv4) &&
	       (network_has(&loopback[0], address) || network_has(&loopback[1], address));
}

/* The address in one element of X-Forwarded-For, without the port that some proxies add
 * ("192.0.2.1:4711", "[2001:db8::1]:4711"). */
static struct hpx_span without_port(struct hpx_span element)
{
	size_t colon = hpx_span_index(element, ':');

	if (hpx_span_starts(element, HPX_SPAN("["))) {
		element = hpx_span_skip(element, 1);
		return hpx_span_first(element, hpx_span_index(element, ']'));
	}
	if (colon < element.len &&
	    hpx_span_index(hpx_span_skip(element, colon + 1), ':') == element.len - colon - 1)
		return hpx_span_first(element, colon);
	return element;
}

/* Takes the last element off a list. */
static struct hpx_span take_last(struct hpx_span *list)
{
	size_t at = list->len;

	while (at > 0 && list->ptr[at - 1] != ',')
		at--;
	struct hpx_span element = hpx_span_trim(hpx_span_skip(*list, at));
	*list = hpx_span_first(*list, at > 0 ? at - 1 : 0);
	return element;
}

struct hpx_span hpx_peer_of(const struct hpx_settings *settings, const struct hpx_http_head *head,
			    const char *peer)
{
	const struct hpx_span nobody = { NULL, 0 };
	char text[INET6_ADDRSTRLEN];

	if (!hpx_peer_trusted(settings, peer))
		return hpx_span_of(peer);
	for (size_t i = head->field_count; i-- > 0;) {
		struct hpx_span list = head->fields[i].value;
		if (!hpx_span_ieq(head->fields[i].name, HPX_SPAN("X-Forwarded-For")))
			continue;
		while (list.len > 0) {
			struct hpx_span address = without_port(take_last(&list));
			uint8_t bytes[16];
			bool ipv4;
			/* What stands before a word that is no address was not written
			 * by a proxy that is known. */
			if (!read_ip(address, bytes, &ipv4))
				return nobody;
			memcpy(text, address.ptr, address.len);
			text[address.len] = '\0';
			if (!hpx_peer_trusted(settings, text))
				return address;
		}
	}
	return nobody;
}

bool hpx_peer_network(struct hpx_span address, uint8_t ret_network[16])
{
	uint8_t bytes[16];
	bool ipv4;

	if (!read_ip(hpx_span_first(address, hpx_span_index(address, '%')), bytes, &ipv4))
		return false;
	if (!ipv4)
		memset(bytes + 8, 0, 8);
	memcpy(ret_network, bytes, sizeof(bytes));
	return true;
}
