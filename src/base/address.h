/* Where to listen or connect: "127.0.0.1:8080", "[::1]:80", "localhost:80",
 * "unix:/run/hapax.sock", and upstream URLs "http://host:port", "https://host". */
#ifndef HPX_BASE_ADDRESS_H
#define HPX_BASE_ADDRESS_H

#include "base/span.h"
#include "base/status.h"

struct hpx_address {
	bool is_unix;
	bool tls;       /* an upstream's: https */
	char host[256]; /* a name or an address, without brackets */
	uint16_t port;
	char path[108]; /* unix */
	char text[300]; /* as written, for people */
};

/* HPX_INVALID with a sentence in `*ret_reason`. */
enum hpx_status hpx_address_parse(struct hpx_span text, struct hpx_address *ret_address,
				  const char **ret_reason);
/* "http://host[:port]", "https://host[:port]" (a path other than "/" is refused) or "unix:PATH". */
enum hpx_status hpx_address_parse_upstream(struct hpx_span url, struct hpx_address *ret_address,
					   const char **ret_reason);

/* Whether only this machine can connect to it: a unix socket, 127.0.0.0/8, ::1 or
 * "localhost". All addresses together (0.0.0.0, ::) are not. */
bool hpx_address_is_local(const struct hpx_address *address);

#endif
