/* Hexadecimal here; randomness from the kernel; hashing from OpenSSL. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/bytes.h"

#include <endian.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <sys/random.h>

#include "base/status.h"

#define ALL(byte) (0x0101010101010101u * (byte))

/* Four bytes as eight digits, all at once: a word with a nibble in each byte. Every
 * operation has a reference and a lease that are written for each request. */
static void encode_four(const unsigned char *bytes, char *out)
{
	uint32_t four;

	memcpy(&four, bytes, sizeof(four));
	uint64_t word = le32toh(four);
	word = (word | word << 16) & 0x0000ffff0000ffffu;
	word = (word | word << 8) & 0x00ff00ff00ff00ffu;
	word = (word >> 4 & 0x000f000f000f000fu) | (word & 0x000f000f000f000fu) << 8;
	/* A nibble of ten or more has a carry when six are added. */
	uint64_t letters = (word + ALL(6)) >> 4 & ALL(1);
	word = htole64(word + ALL('0') + letters * ('a' - '0' - 10));
	memcpy(out, &word, sizeof(word));
}

void hpx_hex_encode(const void *bytes, size_t len, char *out)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *b = bytes;
	size_t i = 0;

	for (; i + 4 <= len; i += 4)
		encode_four(b + i, out + 2 * i);
	for (; i < len; i++) {
		out[2 * i] = digits[b[i] >> 4];
		out[2 * i + 1] = digits[b[i] & 15];
	}
	out[2 * len] = '\0';
}

int hpx_hex_digit(char c)
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
		if (hpx_hex_digit(text.ptr[i]) < 0)
			return false;
	for (size_t i = 0; i < len; i++)
		out[i] = (unsigned char)(hpx_hex_digit(text.ptr[2 * i]) << 4 |
					 hpx_hex_digit(text.ptr[2 * i + 1]));
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
	hash->waiting = 0;
	hash->waited = 0;
}

static void flush(struct hpx_sha256 *hash)
{
	HPX_ASSERT(hash->waiting <= sizeof(hash->bytes));
	if (hash->waiting > 0)
		SHA256_Update(&hash->context, hash->bytes, hash->waiting);
	hash->waiting = 0;
}

void hpx_sha256_add(struct hpx_sha256 *hash, struct hpx_span bytes)
{
	if (bytes.len == 0)
		return;
	if (bytes.len > sizeof(hash->bytes) - hash->waiting)
		flush(hash);
	if (bytes.len > sizeof(hash->bytes)) {
		SHA256_Update(&hash->context, bytes.ptr, bytes.len);
		return;
	}
	memcpy(hash->bytes + hash->waiting, bytes.ptr, bytes.len);
	hash->waiting += bytes.len;
	if (hash->waited < hash->waiting)
		hash->waited = hash->waiting;
}

void hpx_sha256_part(struct hpx_sha256 *hash, struct hpx_span bytes)
{
	uint64_t length = htobe64(bytes.len);

	hpx_sha256_add(hash, hpx_span(&length, sizeof(length)));
	hpx_sha256_add(hash, bytes);
}

/* What was hashed may be a secret: nothing of it stays. */
enum hpx_status hpx_sha256_done(struct hpx_sha256 *hash, uint8_t ret_digest[HPX_SHA256_SIZE])
{
	flush(hash);
	SHA256_Final(ret_digest, &hash->context);
	OPENSSL_cleanse(hash->bytes, hash->waited);
	return HPX_OK;
}

bool hpx_bytes_same(const void *a, const void *b, size_t len)
{
	return CRYPTO_memcmp(a, b, len) == 0;
}

/* ---- base64 ---- */

struct base64_alphabet {
	char value_62;
	char value_63;
};

static int base64_value(const struct base64_alphabet *alphabet, char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == alphabet->value_62)
		return 62;
	return c == alphabet->value_63 ? 63 : -1;
}

/* The bytes of one group of 4 - missing characters, 0 where it is none. */
static size_t decode_group(const struct base64_alphabet *alphabet, const char *group,
			   size_t missing, unsigned char out[3])
{
	uint32_t bits = 0;

	for (size_t i = 0; i < 4 - missing; i++) {
		int value = base64_value(alphabet, group[i]);
		if (value < 0)
			return 0;
		bits |= (uint32_t)value << (18 - 6 * i);
	}
	/* The bits that stand for no byte must be zero. */
	if ((bits & ((1u << (8 * missing)) - 1)) != 0)
		return 0;
	for (size_t i = 0; i < 3; i++)
		out[i] = (unsigned char)(bits >> (16 - 8 * i));
	return 3 - missing;
}

/* Four characters at a time; only the last group may be shorter, by `missing`. */
static bool decode_groups(const struct base64_alphabet *alphabet, struct hpx_span text,
			  size_t missing, void *out, size_t *ret_len)
{
	unsigned char *to = out;
	size_t len = 0;

	for (size_t at = 0; at < text.len; at += 4) {
		unsigned char bytes[3];
		size_t count = decode_group(alphabet, text.ptr + at,
					    text.len - at <= 4 ? missing : 0, bytes);
		if (count == 0)
			return false;
		memcpy(to + len, bytes, count);
		len += count;
	}
	*ret_len = len;
	return true;
}

bool hpx_base64_decode(struct hpx_span text, void *out, size_t *ret_len)
{
	static const struct base64_alphabet standard = { '+', '/' };
	size_t padding = 0;

	if (text.len % 4 != 0)
		return false;
	while (padding < 2 && text.len > 0 && text.ptr[text.len - 1 - padding] == '=')
		padding++;
	return decode_groups(&standard, text, padding, out, ret_len);
}

bool hpx_base64url_decode(struct hpx_span text, void *out, size_t *ret_len)
{
	static const struct base64_alphabet for_urls = { '-', '_' };
	size_t missing = (4 - text.len % 4) % 4;

	return missing < 3 && decode_groups(&for_urls, text, missing, out, ret_len);
}
