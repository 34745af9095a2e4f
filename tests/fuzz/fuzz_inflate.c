/* Any body under any Content-Encoding and Content-Type (the first byte chooses them): it has one
 * fingerprint, within the memory that was given; and a body that is packed means what it means
 * unpacked. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#include "core/fingerprint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WORK_BYTES_MAX ((size_t)256 << 10)

static struct hpx_span no_header(void *user, struct hpx_span name)
{
	(void)user;
	(void)name;
	return (struct hpx_span){ NULL, 0 };
}

static void take(struct hpx_span type, struct hpx_span encoding, struct hpx_span body, uint8_t *out)
{
	static const struct hpx_recipe recipe = { .version = HPX_RECIPE_VERSION };
	struct hpx_meaning meaning = { .method = HPX_SPAN("POST"),
				       .path = HPX_SPAN("/p"),
				       .content_type = type,
				       .content_encoding = encoding,
				       .body = body,
				       .header = no_header };

	HPX_ASSERT(hpx_fingerprint(&recipe, &meaning, WORK_BYTES_MAX, out) == HPX_OK);
}

static struct hpx_span pack(struct hpx_span body)
{
	uLong bound = compressBound((uLong)body.len) + 32;
	unsigned char *out = malloc(bound);
	z_stream stream = { .next_in = (unsigned char *)(uintptr_t)body.ptr,
			    .avail_in = (uInt)body.len,
			    .next_out = out,
			    .avail_out = (uInt)bound };

	HPX_ASSERT(out != NULL);
	HPX_ASSERT(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
	HPX_ASSERT(deflate(&stream, Z_FINISH) == Z_STREAM_END);
	struct hpx_span packed = hpx_span(out, stream.total_out);
	deflateEnd(&stream);
	return packed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct hpx_span types[] = { HPX_SPAN_INIT("application/json"),
						 HPX_SPAN_INIT("application/x-www-form-urlencoded"),
						 HPX_SPAN_INIT("text/plain"),
						 HPX_SPAN_INIT("multipart/form-data; boundary=b") };
	static const struct hpx_span encodings[] = { HPX_SPAN_INIT("gzip"), HPX_SPAN_INIT("deflate"),
						     HPX_SPAN_INIT("x-gzip"), HPX_SPAN_INIT("gzip, gzip") };
	uint8_t first[HPX_SHA256_SIZE], again[HPX_SHA256_SIZE], packed_print[HPX_SHA256_SIZE];

	if (size == 0 || size > 65536)
		return 0;
	struct hpx_span type = types[data[0] & 3], encoding = encodings[data[0] >> 2 & 3];
	struct hpx_span body = hpx_span(data + 1, size - 1);
	take(type, encoding, body, first);
	take(type, encoding, body, again);
	HPX_ASSERT(memcmp(first, again, sizeof(first)) == 0);
	take(type, (struct hpx_span){ NULL, 0 }, body, first);
	struct hpx_span packed = pack(body);
	take(type, HPX_SPAN("gzip"), packed, packed_print);
	HPX_ASSERT(memcmp(first, packed_print, sizeof(first)) == 0);
	free((void *)(uintptr_t)packed.ptr);
	return 0;
}
