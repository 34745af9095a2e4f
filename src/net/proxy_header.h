/* The PROXY header, by which a load balancer that forwards bytes names its client, before
 * the first byte of that client: version 1 (a line of text) and version 2 (binary), as
 * HAProxy's specification has them. Pure: bytes in, an address out. */
#ifndef HPX_NET_PROXY_HEADER_H
#define HPX_NET_PROXY_HEADER_H

#include "base/span.h"

/* A longer header has extensions (TLVs) that nobody here reads, in an amount that no load
 * balancer sends. */
#define HPX_PROXY_HEADER_BYTES_MAX 4096
/* As large as an IPv6 address in text. */
#define HPX_PROXY_PEER_SIZE 46

struct hpx_proxy_header {
	char peer[HPX_PROXY_PEER_SIZE]; /* the client's address; "": the connection is the load
					 * balancer's own (a health check), or the client's
					 * address is of a kind that has no text */
	size_t bytes;                   /* of the header */
};

enum hpx_proxy_result { HPX_PROXY_MORE, /* the bytes are the beginning of a header */
			HPX_PROXY_DONE,
			HPX_PROXY_BAD }; /* no header: the connection is to be closed */

enum hpx_proxy_result hpx_proxy_header_read(struct hpx_span bytes, struct hpx_proxy_header *ret_header);

#endif
