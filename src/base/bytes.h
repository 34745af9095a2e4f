/* Bytes: hexadecimal text, base64, random bytes, SHA-256. */
#ifndef HPX_BASE_BYTES_H
#define HPX_BASE_BYTES_H

#include <openssl/sha.h>

#include "base/span.h"
#include "base/status.h"

/* Lower-case hexadecimal, 2 * len characters and a NUL into `out`. */
void hpx_hex_encode(const void *bytes, size_t len, char *out);
/* The value of a hexadecimal digit of either case, -1 for any other byte. */
int hpx_hex_digit(char c);
/* Exactly 2 * len hexadecimal digits of either case; false otherwise. */
bool hpx_hex_decode(struct hpx_span text, void *ret_bytes, size_t len);

/* Base64 (RFC 4648 §4) read strictly: the standard alphabet, whole groups with their
 * padding, no unused bits set, nothing in between. So a value has one spelling, which a
 * signature is compared by. Into `out`, which has room for text.len / 4 * 3 bytes; false,
 * with `out` and `*ret_len` of no meaning, where the text is not base64. Empty text is. */
bool hpx_base64_decode(struct hpx_span text, void *out, size_t *ret_len);
/* The same in the alphabet for URLs and without padding (RFC 4648 §5, as RFC 7515 §2 uses
 * it). Into `out`, which has room for HPX_BASE64URL_BYTES(text.len). */
#define HPX_BASE64URL_BYTES(text_len) (((text_len) + 3) / 4 * 3)
bool hpx_base64url_decode(struct hpx_span text, void *out, size_t *ret_len);

/* Whether the kernel gives random bytes: a seccomp filter can refuse them
 * (HPX_UNAVAILABLE). Waits for a system that has just booted. A program or a handle
 * of a library begins with it. */
enum hpx_status hpx_random_ready(void);
/* At most 256 random bytes from the kernel. This does not fail where hpx_random_ready
 * did not: a guessable lease token would be worse than none. */
void hpx_random(void *bytes, size_t len);

/* A pool of random bytes for one thread of a process that does not fork: one system
 * call fills the pool for many takers. All zeros is an empty pool. */
struct hpx_random_pool {
	size_t left;
	uint8_t bytes[256];
};
/* Takes at most 256 bytes. Each byte is given once and erased from the pool. */
void hpx_random_pool_take(struct hpx_random_pool *pool, void *bytes, size_t len);

#define HPX_SHA256_SIZE 32

/* A hash under way. It needs no memory of its own: without hpx_sha256_done nothing leaks. */
struct hpx_sha256 {
	SHA256_CTX context;
	/* Small pieces wait here, so that OpenSSL is called once for many. */
	size_t waiting;
	size_t waited; /* the most that ever waited: what is to be erased */
	uint8_t bytes[256];
};

void hpx_sha256_init(struct hpx_sha256 *hash);
void hpx_sha256_add(struct hpx_sha256 *hash, struct hpx_span bytes);
/* The length as eight bytes, big endian, then the bytes: no two lists of
 * parts give the same input. */
void hpx_sha256_part(struct hpx_sha256 *hash, struct hpx_span bytes);
enum hpx_status hpx_sha256_done(struct hpx_sha256 *hash,
				uint8_t ret_digest[HPX_SHA256_SIZE]);

/* Equal in constant time. */
bool hpx_bytes_same(const void *a, const void *b, size_t len);

#endif
