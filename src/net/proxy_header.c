/* Reads PROXY headers: see proxy_header.h. Strict: what the specification does not allow is
 * no header, because a client that could smuggle one in could be anybody. */
#include "net/proxy_header.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* "PROXY TCP6 " with two addresses and two ports, of the greatest length, and CRLF. */
#define V1_BYTES_MAX 107
#define V2_SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V2_SIGNATURE_BYTES 12
#define V2_HEAD_BYTES 16

/* ---- version 1 ---- */

/* A number of decimal digits without a leading zero. */
static bool is_port(struct hpx_span text)
{
	uint64_t port;

	return text.len > 0 && (text.len == 1 || text.ptr[0] != '0') &&
	       hpx_span_u64(text, UINT16_MAX, &port);
}

static bool read_address(int family, struct hpx_span text, char out[HPX_PROXY_PEER_SIZE])
{
	char name[HPX_PROXY_PEER_SIZE];
	unsigned char bytes[16];

	if (text.len == 0 || text.len >= sizeof(name) || memchr(text.ptr, 0, text.len) != NULL)
		return false;
	memcpy(name, text.ptr, text.len);
	name[text.len] = '\0';
	/* Written anew, so that one address has one text. */
	return inet_pton(family, name, bytes) == 1 &&
	       inet_ntop(family, bytes, out, HPX_PROXY_PEER_SIZE) != NULL;
}

/* The line without "PROXY " and its end. */
static bool read_line(struct hpx_span line, struct hpx_proxy_header *header)
{
	char destination[HPX_PROXY_PEER_SIZE];
	const char *end = line.ptr + line.len;
	struct hpx_span word[5];
	size_t count = 0;
	int family;

	/* Whatever stands behind UNKNOWN is to be ignored. */
	if (hpx_span_eq(line, HPX_SPAN("UNKNOWN")) || hpx_span_starts(line, HPX_SPAN("UNKNOWN ")))
		return true;
	while (count < 5 && hpx_span_split(&line, ' ', &word[count]))
		count++;
	if (count != 5 || word[4].ptr + word[4].len != end)
		return false;
	if (hpx_span_eq(word[0], HPX_SPAN("TCP4")))
		family = AF_INET;
	else if (hpx_span_eq(word[0], HPX_SPAN("TCP6")))
		family = AF_INET6;
	else
		return false;
	return read_address(family, word[1], header->peer) &&
	       read_address(family, word[2], destination) && is_port(word[3]) && is_port(word[4]);
}

static enum hpx_proxy_result read_v1(struct hpx_span bytes, struct hpx_proxy_header *header)
{
	struct hpx_span start = HPX_SPAN("PROXY ");
	struct hpx_span line = hpx_span_first(bytes, V1_BYTES_MAX);
	size_t end = hpx_span_index(line, '\r');

	if (end + 1 >= line.len)
		return line.len < V1_BYTES_MAX ? HPX_PROXY_MORE : HPX_PROXY_BAD;
	if (line.ptr[end + 1] != '\n' ||
	    !read_line(hpx_span_skip(hpx_span_first(line, end), start.len), header))
		return HPX_PROXY_BAD;
	header->bytes = end + 2;
	return HPX_PROXY_DONE;
}

/* ---- version 2 ---- */

/* The address block: source and destination address, then the ports. */
static bool read_block(unsigned family, struct hpx_span block, struct hpx_proxy_header *header)
{
	static const unsigned char mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

	switch (family) {
	case 1: /* IPv4 */
		return block.len >= 12 &&
		       inet_ntop(AF_INET, block.ptr, header->peer, sizeof(header->peer)) != NULL;
	case 2: /* IPv6; IPv4 within it is shown as what it is, as for sockets */
		if (block.len < 36)
			return false;
		if (memcmp(block.ptr, mapped, sizeof(mapped)) == 0)
			return inet_ntop(AF_INET, block.ptr + 12, header->peer,
					 sizeof(header->peer)) != NULL;
		return inet_ntop(AF_INET6, block.ptr, header->peer, sizeof(header->peer)) != NULL;
	case 3: /* a unix socket: no address that anybody could know again */
		return block.len >= 216;
	default: /* unspecified */
		return family == 0;
	}
}

static enum hpx_proxy_result read_v2(struct hpx_span bytes, struct hpx_proxy_header *header)
{
	if (bytes.len < V2_HEAD_BYTES)
		return HPX_PROXY_MORE;
	const unsigned char *head = (const unsigned char *)bytes.ptr;
	unsigned command = head[12] & 0x0f, family = head[13] >> 4, transport = head[13] & 0x0f;
	size_t len = (size_t)head[14] << 8 | head[15];
	if (head[12] >> 4 != 2 || command > 1 || family > 3 || transport > 2 ||
	    V2_HEAD_BYTES + len > HPX_PROXY_HEADER_BYTES_MAX)
		return HPX_PROXY_BAD;
	if (bytes.len < V2_HEAD_BYTES + len)
		return HPX_PROXY_MORE;
	/* LOCAL: the load balancer's own connection. A stream is what was accepted here. */
	bool is_proxy = command == 1;
	if (is_proxy && transport == 2)
		return HPX_PROXY_BAD;
	if (is_proxy && !read_block(transport == 0 ? 0 : family,
				    hpx_span_first(hpx_span_skip(bytes, V2_HEAD_BYTES), len), header))
		return HPX_PROXY_BAD;
	header->bytes = V2_HEAD_BYTES + len;
	return HPX_PROXY_DONE;
}

static bool begins(struct hpx_span bytes, struct hpx_span signature)
{
	size_t len = bytes.len < signature.len ? bytes.len : signature.len;

	return len == 0 || memcmp(bytes.ptr, signature.ptr, len) == 0;
}

enum hpx_proxy_result hpx_proxy_header_read(struct hpx_span bytes, struct hpx_proxy_header *ret_header)
{
	const struct hpx_span v1 = HPX_SPAN("PROXY ");
	const struct hpx_span v2 = hpx_span(V2_SIGNATURE, V2_SIGNATURE_BYTES);
	struct hpx_proxy_header header = { .bytes = 0 };
	enum hpx_proxy_result result = HPX_PROXY_BAD;

	if (begins(bytes, v1))
		result = bytes.len < v1.len ? HPX_PROXY_MORE : read_v1(bytes, &header);
	else if (begins(bytes, v2))
		result = bytes.len < v2.len ? HPX_PROXY_MORE : read_v2(bytes, &header);
	if (result == HPX_PROXY_DONE)
		*ret_header = header;
	return result;
}
