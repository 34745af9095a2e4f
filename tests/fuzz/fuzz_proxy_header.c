/* Any beginning of a connection: a header that is taken names an address or nobody, lies
 * within the bytes, asked for more at each of its beginnings, and is the same with any
 * bytes behind it. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "net/proxy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hpx_span bytes = hpx_span((const char *)data, size);
	struct hpx_proxy_header header, again;
	unsigned char address[16];
	enum hpx_proxy_result result = hpx_proxy_header_read(bytes, &header);

	check(result != HPX_PROXY_MORE || size < HPX_PROXY_HEADER_BYTES_MAX);
	if (result != HPX_PROXY_DONE)
		return 0;
	check(header.bytes > 0 && header.bytes <= size && header.bytes <= HPX_PROXY_HEADER_BYTES_MAX);
	check(header.peer[0] == '\0' || inet_pton(AF_INET, header.peer, address) == 1 ||
	      inet_pton(AF_INET6, header.peer, address) == 1);
	for (size_t len = 0; len < header.bytes; len++)
		check(hpx_proxy_header_read(hpx_span_first(bytes, len), &again) == HPX_PROXY_MORE);
	check(hpx_proxy_header_read(hpx_span_first(bytes, header.bytes), &again) == HPX_PROXY_DONE);
	check(again.bytes == header.bytes && strcmp(again.peer, header.peer) == 0);
	return 0;
}
