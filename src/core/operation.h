/* The names of an operation: the client's key, the operation's id, the lease tokens of
 * its attempts, the reference that clients get, and the lease that the upstream gets.
 *
 * The reference gives no right to write: it holds a mark, the hash of the first
 * attempt's token, and nobody gets from the mark to the token. Marks and tokens
 * are two types, so that the compiler keeps them apart. */
#ifndef HPX_CORE_OPERATION_H
#define HPX_CORE_OPERATION_H

#include "base/bytes.h"
#include "base/span.h"
#include "base/status.h"

/* ---- the client's Idempotency-Key, from the field's value to the key's bytes ---- */

#define HPX_KEY_MAX 255

struct hpx_key {
	char bytes[HPX_KEY_MAX];
	size_t len;
};

/* Reads one field value. One that begins with `"` must be an RFC 9651 String
 * without parameters; otherwise the bare bytes are the key, without space,
 * comma or `"` (refused altogether when `strict`). 1 to 255 bytes of
 * printable ASCII after decoding. On HPX_INVALID, `*ret_reason` is a sentence
 * that tells a client's developer what to mend. */
enum hpx_status hpx_key_parse(struct hpx_span value, bool strict,
			      struct hpx_key *ret_key, const char **ret_reason);

/* The value's bytes as they are, as Stripe takes them: quotes, commas and
 * spaces within are part of the key. The same bounds hold. */
enum hpx_status hpx_key_parse_bare(struct hpx_span value, struct hpx_key *ret_key,
				   const char **ret_reason);

/* What a key must not hold: people put personal data where any unique text will do,
 * and a key is stored, logged by others and shown to operators. */
enum hpx_key_content {
	HPX_KEY_EMAIL = 1 << 0, /* an address with a dotted domain */
	HPX_KEY_CARD = 1 << 1,  /* 13 to 19 digits that pass Luhn's check */
};

/* What a route demands of a new key, besides its syntax. */
struct hpx_key_demand {
	unsigned bytes_min;
	unsigned bytes_max; /* 0: HPX_KEY_MAX */
	unsigned refuse;    /* enum hpx_key_content */
};

enum hpx_key_fault { HPX_KEY_FAULT_NONE,
		     HPX_KEY_FAULT_SHORT,
		     HPX_KEY_FAULT_LONG,
		     HPX_KEY_FAULT_EMAIL,
		     HPX_KEY_FAULT_CARD };

/* The first demand that the key does not meet. */
enum hpx_key_fault hpx_key_judge(const struct hpx_key *key, const struct hpx_key_demand *demand);

/* ---- ids, tokens, marks ---- */

#define HPX_OPERATION_ID_SIZE 32
#define HPX_TOKEN_SIZE 16
#define HPX_MARK_SIZE 16

struct hpx_operation_id {
	uint8_t bytes[HPX_OPERATION_ID_SIZE];
};

/* A lease token: 128 random bits, made before the store is asked, never
 * reused. All zero is the void token, which no attempt holds. */
struct hpx_token {
	uint8_t bytes[HPX_TOKEN_SIZE];
};

/* The first 128 bits of SHA-256 over "hapax.mark:" and the first attempt's
 * token; hapax.mark() in SQL is the same. All zero is the void mark, which no
 * operation has. */
struct hpx_mark {
	uint8_t bytes[HPX_MARK_SIZE];
};

/* A key as it is stored with `key_storage: hash`: "sha256:" and the hash in hexadecimal,
 * without a salt, so that whoever has the key finds the row by it. */
#define HPX_KEY_HASH_PREFIX "sha256:"
#define HPX_KEY_HASH_SIZE (sizeof(HPX_KEY_HASH_PREFIX) + 2 * HPX_SHA256_SIZE)
enum hpx_status hpx_key_hash_print(struct hpx_span key, char ret_text[static HPX_KEY_HASH_SIZE]);
/* Whether a stored key is such a hash; a client's key that looks like one counts as one. */
bool hpx_key_is_hash(struct hpx_span stored);

/* SHA-256 of tenant, scope and key, each with its length before it. */
enum hpx_status hpx_operation_id(struct hpx_span tenant, struct hpx_span scope,
				 struct hpx_span key, struct hpx_operation_id *ret_id);
bool hpx_operation_id_eq(const struct hpx_operation_id *a, const struct hpx_operation_id *b);

void hpx_token_make(struct hpx_token *ret_token);
bool hpx_token_eq(const struct hpx_token *a, const struct hpx_token *b);
bool hpx_token_is_void(const struct hpx_token *token);

enum hpx_status hpx_mark_make(const struct hpx_token *first, struct hpx_mark *ret_mark);
bool hpx_mark_eq(const struct hpx_mark *a, const struct hpx_mark *b);
bool hpx_mark_is_void(const struct hpx_mark *mark);

/* The reference: "<id>.<mark>", hexadecimal. */
#define HPX_REFERENCE_LEN (2 * HPX_OPERATION_ID_SIZE + 1 + 2 * HPX_MARK_SIZE)
#define HPX_REFERENCE_SIZE (HPX_REFERENCE_LEN + 1)

void hpx_reference_print(const struct hpx_operation_id *id, const struct hpx_mark *mark,
			 char out[HPX_REFERENCE_SIZE]);
bool hpx_reference_parse(struct hpx_span text, struct hpx_operation_id *ret_id,
			 struct hpx_mark *ret_mark);

/* The lease: "<id>.<token>", the token being the current attempt's. A secret: it
 * goes to the upstream and to the store, and never into a log or to a client. */
#define HPX_LEASE_LEN (2 * HPX_OPERATION_ID_SIZE + 1 + 2 * HPX_TOKEN_SIZE)
#define HPX_LEASE_SIZE (HPX_LEASE_LEN + 1)

/* The same from the reference's text: the id is written as digits once. */
void hpx_lease_print_beside(const char reference[HPX_REFERENCE_SIZE],
			    const struct hpx_token *token, char out[HPX_LEASE_SIZE]);
void hpx_lease_print(const struct hpx_operation_id *id, const struct hpx_token *token,
		     char out[HPX_LEASE_SIZE]);
bool hpx_lease_parse(struct hpx_span text, struct hpx_operation_id *ret_id,
		     struct hpx_token *ret_token);

#endif
