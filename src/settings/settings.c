/* Making, sharing and freeing settings, finding in them by name, and which peers are
 * trusted. Filling them is the task of config/. */
#include "settings/settings.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "base/status.h"

/* A configuration file has at most 1 MiB; the segments, lists and routes that are
 * made of it take a few times that. */
#define ARENA_BYTES_MAX ((size_t)32 << 20)

struct hpx_settings *hpx_settings_new(void)
{
	struct hpx_settings *settings = calloc(1, sizeof(*settings));

	if (settings == NULL)
		return NULL;
	atomic_init(&settings->references, 1);
	hpx_arena_init(&settings->arena, ARENA_BYTES_MAX);
	return settings;
}

struct hpx_settings *hpx_settings_ref(struct hpx_settings *settings)
{
	unsigned before =
		atomic_fetch_add_explicit(&settings->references, 1, memory_order_relaxed);

	HPX_ASSERT(before > 0);
	return settings;
}

void hpx_settings_unref(struct hpx_settings *settings)
{
	if (settings == NULL)
		return;
	unsigned before =
		atomic_fetch_sub_explicit(&settings->references, 1, memory_order_acq_rel);
	HPX_ASSERT(before > 0);
	if (before > 1)
		return;
	hpx_arena_done(&settings->arena);
	free(settings);
}

const struct hpx_job_target *hpx_settings_find_target(const struct hpx_settings *settings,
						      struct hpx_span name)
{
	for (size_t i = 0; i < settings->target_count; i++)
		if (hpx_span_eq(settings->targets[i].name, name))
			return &settings->targets[i];
	return NULL;
}

const struct hpx_route *hpx_settings_find_route(const struct hpx_settings *settings,
						struct hpx_span pattern)
{
	for (size_t i = 0; i < settings->route_count; i++)
		if (hpx_span_eq(settings->routes[i].pattern, pattern))
			return &settings->routes[i];
	return hpx_span_eq(settings->fallback.pattern, pattern) ? &settings->fallback : NULL;
}

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
	HPX_ASSERT(network->prefix_bits <= 128);
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
