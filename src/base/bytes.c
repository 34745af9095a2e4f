/* Hexadecimal here; randomness from the kernel; hashing from OpenSSL. */
#include "base/bytes.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/random.h>

#include "base/assert.h"

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

void hpx_random(void *bytes, size_t len)
{
	/* Requests of up to 256 bytes are never cut short (getrandom(2)). */
	HPX_ASSERT(len <= 256);
	HPX_ASSERT(getrandom(bytes, len, 0) == (ssize_t)len);
}

void hpx_sha256_init(struct hpx_sha256 *hash)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();

	hash->context = context;
	hash->failed = context == NULL ||
		       EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1;
}

void hpx_sha256_add(struct hpx_sha256 *hash, struct hpx_span bytes)
{
	if (!hash->failed && bytes.len > 0)
		hash->failed = EVP_DigestUpdate(hash->context, bytes.ptr, bytes.len) != 1;
}

void hpx_sha256_part(struct hpx_sha256 *hash, struct hpx_span bytes)
{
	unsigned char length[8];

	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)((uint64_t)bytes.len >> (56 - 8 * i));
	hpx_sha256_add(hash, hpx_span(length, sizeof(length)));
	hpx_sha256_add(hash, bytes);
}

enum hpx_status hpx_sha256_done(struct hpx_sha256 *hash, uint8_t ret_digest[HPX_SHA256_SIZE])
{
	uint8_t digest[HPX_SHA256_SIZE];
	bool good = !hash->failed && EVP_DigestFinal_ex(hash->context, digest, NULL) == 1;

	EVP_MD_CTX_free(hash->context);
	hash->context = NULL;
	hash->failed = true;
	if (!good)
		return HPX_NOMEM;
	memcpy(ret_digest, digest, sizeof(digest));
	return HPX_OK;
}

bool hpx_bytes_same(const void *a, const void *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}
