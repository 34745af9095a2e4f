/* Hexadecimal here; randomness from the kernel; hashing from OpenSSL. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/bytes.h"

#include <endian.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <sys/random.h>

#include "base/status.h"

void hpx_hex_encode(const void *bytes, size_t len, char *out)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *b = bytes;

	for (size_t i = 0; i < len; i++) {
		out[2 * i] = digits[b[i] >> 4];
		out[2 * i + 1] = digits[b[i] & 15];
	}
	out[2 * len] = '\0';
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool hpx_hex_decode(struct hpx_span text, void *ret_bytes, size_t len)
{
	unsigned char *out = ret_bytes;

	if (text.len != 2 * len)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (hex_value(text.ptr[i]) < 0)
			return false;
	for (size_t i = 0; i < len; i++)
		out[i] = (unsigned char)(hex_value(text.ptr[2 * i]) << 4 |
					 hex_value(text.ptr[2 * i + 1]));
	return true;
}

enum hpx_status hpx_random_ready(void)
{
	char byte;
	ssize_t count;

	/* Before the kernel has gathered enough, a signal ends the wait. */
	do
		count = getrandom(&byte, sizeof(byte), 0);
	while (count < 0 && errno == EINTR);
	return count == (ssize_t)sizeof(byte) ? HPX_OK : HPX_UNAVAILABLE;
}

void hpx_random(void *bytes, size_t len)
{
	/* Requests of up to 256 bytes are never cut short (getrandom(2)). */
	HPX_ASSERT(len <= 256);
	ssize_t given = getrandom(bytes, len, 0);
	HPX_ASSERT(given == (ssize_t)len);
}

void hpx_random_pool_take(struct hpx_random_pool *pool, void *bytes, size_t len)
{
	if (pool->left < len) {
		hpx_random(pool->bytes, sizeof(pool->bytes));
		pool->left = sizeof(pool->bytes);
	}
	HPX_ASSERT(len <= pool->left);
	pool->left -= len;
	memcpy(bytes, pool->bytes + pool->left, len);
	OPENSSL_cleanse(pool->bytes + pool->left, len);
}

/* The functions that OpenSSL 3 calls low-level: a few hashes are made for every
 * request, and setting up an EVP digest takes longer than hashing a key. */
void hpx_sha256_init(struct hpx_sha256 *hash)
{
	SHA256_Init(&hash->context);
}

void hpx_sha256_add(struct hpx_sha256 *hash, struct hpx_span bytes)
{
	if (bytes.len > 0)
		SHA256_Update(&hash->context, bytes.ptr, bytes.len);
}

void hpx_sha256_part(struct hpx_sha256 *hash, struct hpx_span bytes)
{
	uint64_t length = htobe64(bytes.len);

	SHA256_Update(&hash->context, &length, sizeof(length));
	hpx_sha256_add(hash, bytes);
}

enum hpx_status hpx_sha256_done(struct hpx_sha256 *hash, uint8_t ret_digest[HPX_SHA256_SIZE])
{
	SHA256_Final(ret_digest, &hash->context);
	return HPX_OK;
}

bool hpx_bytes_same(const void *a, const void *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}

/* ---- base64 ---- */

/* Four characters at a time; only the last group may be padded. */
static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

/* The bytes of one group of four characters, 0 where it is none. */
static size_t decode_group(const char *group, size_t padding, unsigned char out[3])
{
	uint32_t bits = 0;

	for (size_t i = 0; i < 4 - padding; i++) {
		int value = base64_value(group[i]);
		if (value < 0)
			return 0;
		bits |= (uint32_t)value << (18 - 6 * i);
	}
	/* What the padding leaves over must be zero. */
	if ((bits & ((1u << (8 * padding)) - 1)) != 0)
		return 0;
	for (size_t i = 0; i < 3; i++)
		out[i] = (unsigned char)(bits >> (16 - 8 * i));
	return 3 - padding;
}

bool hpx_base64_decode(struct hpx_span text, void *out, size_t *ret_len)
{
	unsigned char *to = out;
	size_t len = 0;

	if (text.len % 4 != 0)
		return false;
	for (size_t at = 0; at < text.len; at += 4) {
		const char *group = text.ptr + at;
		unsigned char bytes[3];
		size_t padding = 0;

		if (at + 4 == text.len && group[3] == '=')
			padding = group[2] == '=' ? 2 : 1;
		size_t count = decode_group(group, padding, bytes);
		if (count == 0)
			return false;
		memcpy(to + len, bytes, count);
		len += count;
	}
	*ret_len = len;
	return true;
}
