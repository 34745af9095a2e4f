/* The client's key in its two spellings, an RFC 9651 String and the bare bytes; ids,
 * tokens, marks, references and leases: making, comparing, writing and reading them. */
#include "core/operation.h"

#include "base/bytes.h"
#include "base/status.h"

#define REASON_EMPTY "The key is empty; send 1 to 255 printable ASCII characters."
#define REASON_LONG "The key is longer than 255 characters."
#define REASON_BYTE "The key has a byte that is not printable ASCII."
#define REASON_ESCAPE "In a quoted key, a backslash may only stand before \" or \\."
#define REASON_OPEN "The key begins with \" but has no closing \"."
#define REASON_AFTER "Something follows the quoted key; send one key, without parameters."
#define REASON_BARE_BYTE "A key with a space, a comma or a \" must be written in double quotes."
#define REASON_STRICT "The key must be written in double quotes, as a structured field String."

/* ---- the client's key ---- */

static bool is_printable(char c)
{
	return c >= 0x20 && c <= 0x7e;
}

/* RFC 9651 §4.2: an Item may stand between spaces (not tabs). */
static struct hpx_span strip_spaces(struct hpx_span s)
{
	while (s.len > 0 && s.ptr[0] == ' ')
		s = hpx_span_skip(s, 1);
	while (s.len > 0 && s.ptr[s.len - 1] == ' ')
		s.len--;
	return s;
}

static const char *add_byte(struct hpx_key *key, char c)
{
	if (!is_printable(c))
		return REASON_BYTE;
	if (key->len == HPX_KEY_MAX)
		return REASON_LONG;
	key->bytes[key->len++] = c;
	return NULL;
}

/* RFC 9651 §4.2.5, and the end of the Item behind it. */
static const char *read_quoted(struct hpx_span value, struct hpx_key *key)
{
	for (size_t i = 1; i < value.len; i++) {
		char c = value.ptr[i];
		if (c == '"')
			return i + 1 == value.len ? NULL : REASON_AFTER;
		if (c == '\\') {
			if (++i == value.len)
				return REASON_OPEN;
			c = value.ptr[i];
			if (c != '"' && c != '\\')
				return REASON_ESCAPE;
		}
		const char *reason = add_byte(key, c);
		if (reason != NULL)
			return reason;
	}
	return REASON_OPEN;
}

static const char *read_bare(struct hpx_span value, struct hpx_key *key)
{
	for (size_t i = 0; i < value.len; i++) {
		char c = value.ptr[i];
		if (c == ' ' || c == ',' || c == '"')
			return REASON_BARE_BYTE;
		const char *reason = add_byte(key, c);
		if (reason != NULL)
			return reason;
	}
	return NULL;
}

static const char *read_key(struct hpx_span value, bool strict, struct hpx_key *key)
{
	value = strip_spaces(value);
	if (value.len == 0)
		return REASON_EMPTY;
	if (value.ptr[0] != '"' && strict)
		return REASON_STRICT;
	const char *reason = value.ptr[0] == '"' ? read_quoted(value, key) :
						   read_bare(value, key);
	if (reason == NULL && key->len == 0)
		return REASON_EMPTY;
	HPX_ASSERT(key->len <= HPX_KEY_MAX);
	return reason;
}

enum hpx_status hpx_key_parse(struct hpx_span value, bool strict, struct hpx_key *ret_key,
			      const char **ret_reason)
{
	struct hpx_key key = { .len = 0 };
	const char *reason = read_key(value, strict, &key);

	if (reason != NULL) {
		*ret_reason = reason;
		return HPX_INVALID;
	}
	*ret_key = key;
	return HPX_OK;
}

enum hpx_status hpx_key_parse_bare(struct hpx_span value, struct hpx_key *ret_key,
				   const char **ret_reason)
{
	struct hpx_key key = { .len = 0 };
	const char *reason = value.len == 0 ? REASON_EMPTY : NULL;

	for (size_t i = 0; i < value.len && reason == NULL; i++)
		reason = add_byte(&key, value.ptr[i]);
	if (reason != NULL) {
		*ret_reason = reason;
		return HPX_INVALID;
	}
	*ret_key = key;
	return HPX_OK;
}

/* ---- what a key must not hold ---- */

#define CARD_DIGITS_MIN 13
#define CARD_DIGITS_MAX 19

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_label_byte(char c)
{
	return is_digit(c) || is_letter(c) || c == '-';
}

static bool is_local_byte(char c)
{
	return is_label_byte(c) || memchr("._%+", c, 4) != NULL;
}

/* The length of the label that the text begins with. */
static size_t label_length(struct hpx_span text)
{
	size_t len = 0;

	while (len < text.len && is_label_byte(text.ptr[len]))
		len++;
	return len;
}

/* Whether the text begins with a domain of two labels or more, the second of which
 * begins with two letters: `example.com`. */
static bool begins_with_domain(struct hpx_span text)
{
	size_t first = label_length(text);

	return first > 0 && text.len >= first + 3 && text.ptr[first] == '.' &&
	       is_letter(text.ptr[first + 1]) && is_letter(text.ptr[first + 2]);
}

static bool holds_email(struct hpx_span text)
{
	for (size_t at = 1; at < text.len; at++)
		if (text.ptr[at] == '@' && is_local_byte(text.ptr[at - 1]) &&
		    begins_with_domain(hpx_span_skip(text, at + 1)))
			return true;
	return false;
}

static bool passes_luhn(struct hpx_span digits)
{
	unsigned sum = 0;

	for (size_t i = 0; i < digits.len; i++) {
		unsigned digit = (unsigned)(digits.ptr[digits.len - 1 - i] - '0');
		if (i % 2 == 1)
			digit = digit > 4 ? 2 * digit - 9 : 2 * digit;
		sum += digit;
	}
	return sum % 10 == 0;
}

/* One number in ten passes Luhn's check. So a number counts only where it stands alone
 * (not within the hexadecimal digits of a UUID) and does not begin with 0 or 1 (the
 * first digit of today's times in milliseconds or finer, and of no payment card). */
static bool is_card(struct hpx_span digits)
{
	return digits.len >= CARD_DIGITS_MIN && digits.len <= CARD_DIGITS_MAX && digits.ptr[0] > '1' &&
	       passes_luhn(digits);
}

static bool holds_card(struct hpx_span text)
{
	size_t begin = 0;

	while (begin < text.len) {
		size_t end = begin;
		bool digits_only = true;
		while (end < text.len && (is_digit(text.ptr[end]) || is_letter(text.ptr[end])))
			digits_only = is_digit(text.ptr[end++]) && digits_only;
		if (digits_only && is_card(hpx_span(text.ptr + begin, end - begin)))
			return true;
		begin = end + 1;
	}
	return false;
}

enum hpx_key_fault hpx_key_judge(const struct hpx_key *key, const struct hpx_key_demand *demand)
{
	struct hpx_span text = hpx_span(key->bytes, key->len);

	HPX_ASSERT(key->len > 0 && key->len <= HPX_KEY_MAX);
	if (key->len < demand->bytes_min)
		return HPX_KEY_FAULT_SHORT;
	if (demand->bytes_max > 0 && key->len > demand->bytes_max)
		return HPX_KEY_FAULT_LONG;
	if ((demand->refuse & HPX_KEY_EMAIL) != 0 && holds_email(text))
		return HPX_KEY_FAULT_EMAIL;
	if ((demand->refuse & HPX_KEY_CARD) != 0 && holds_card(text))
		return HPX_KEY_FAULT_CARD;
	return HPX_KEY_FAULT_NONE;
}

/* ---- ids, tokens, marks ---- */

enum hpx_status hpx_operation_id(struct hpx_span tenant, struct hpx_span scope,
				 struct hpx_span key, struct hpx_operation_id *ret_id)
{
	struct hpx_sha256 hash;

	hpx_sha256_init(&hash);
	hpx_sha256_part(&hash, tenant);
	hpx_sha256_part(&hash, scope);
	hpx_sha256_part(&hash, key);
	return hpx_sha256_done(&hash, ret_id->bytes);
}

enum hpx_status hpx_key_hash_print(struct hpx_span key, char ret_text[static HPX_KEY_HASH_SIZE])
{
	uint8_t digest[HPX_SHA256_SIZE];
	struct hpx_sha256 hash;

	hpx_sha256_init(&hash);
	hpx_sha256_add(&hash, key);
	enum hpx_status status = hpx_sha256_done(&hash, digest);
	if (status != HPX_OK)
		return status;
	memcpy(ret_text, HPX_KEY_HASH_PREFIX, sizeof(HPX_KEY_HASH_PREFIX));
	hpx_hex_encode(digest, sizeof(digest), ret_text + sizeof(HPX_KEY_HASH_PREFIX) - 1);
	return HPX_OK;
}

bool hpx_key_is_hash(struct hpx_span stored)
{
	uint8_t digest[HPX_SHA256_SIZE];

	return hpx_span_starts(stored, HPX_SPAN(HPX_KEY_HASH_PREFIX)) &&
	       hpx_hex_decode(hpx_span_skip(stored, sizeof(HPX_KEY_HASH_PREFIX) - 1), digest, sizeof(digest));
}

bool hpx_operation_id_eq(const struct hpx_operation_id *a, const struct hpx_operation_id *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

void hpx_token_make(struct hpx_token *ret_token)
{
	hpx_random(ret_token->bytes, sizeof(ret_token->bytes));
}

bool hpx_token_eq(const struct hpx_token *a, const struct hpx_token *b)
{
	return hpx_bytes_same(a->bytes, b->bytes, sizeof(a->bytes));
}

bool hpx_token_is_void(const struct hpx_token *token)
{
	static const struct hpx_token nobody;
	return hpx_token_eq(token, &nobody);
}

enum hpx_status hpx_mark_make(const struct hpx_token *first, struct hpx_mark *ret_mark)
{
	struct hpx_sha256 hash;
	uint8_t digest[HPX_SHA256_SIZE];
	enum hpx_status status;

	hpx_sha256_init(&hash);
	hpx_sha256_add(&hash, HPX_SPAN("hapax.mark:"));
	hpx_sha256_add(&hash, hpx_span(first->bytes, sizeof(first->bytes)));
	status = hpx_sha256_done(&hash, digest);
	if (status == HPX_OK)
		memcpy(ret_mark->bytes, digest, sizeof(ret_mark->bytes));
	return status;
}

bool hpx_mark_eq(const struct hpx_mark *a, const struct hpx_mark *b)
{
	return hpx_bytes_same(a->bytes, b->bytes, sizeof(a->bytes));
}

bool hpx_mark_is_void(const struct hpx_mark *mark)
{
	static const struct hpx_mark nothing;
	return hpx_mark_eq(mark, &nothing);
}

/* "<id>.<tail>", hexadecimal; both tails have the same size. */
#define TAIL_SIZE HPX_TOKEN_SIZE
_Static_assert(HPX_MARK_SIZE == TAIL_SIZE, "a reference looks like a lease");

static void print_pair(const struct hpx_operation_id *id, const uint8_t tail[TAIL_SIZE], char *out)
{
	hpx_hex_encode(id->bytes, sizeof(id->bytes), out);
	out[2 * HPX_OPERATION_ID_SIZE] = '.';
	hpx_hex_encode(tail, TAIL_SIZE, out + 2 * HPX_OPERATION_ID_SIZE + 1);
}

static bool parse_pair(struct hpx_span text, struct hpx_operation_id *ret_id,
		       uint8_t ret_tail[TAIL_SIZE])
{
	struct hpx_operation_id id;
	uint8_t tail[TAIL_SIZE];

	if (text.len != HPX_REFERENCE_LEN || text.ptr[2 * HPX_OPERATION_ID_SIZE] != '.')
		return false;
	if (!hpx_hex_decode(hpx_span_first(text, 2 * HPX_OPERATION_ID_SIZE), id.bytes,
			    sizeof(id.bytes)) ||
	    !hpx_hex_decode(hpx_span_skip(text, 2 * HPX_OPERATION_ID_SIZE + 1), tail,
			    sizeof(tail)))
		return false;
	*ret_id = id;
	memcpy(ret_tail, tail, sizeof(tail));
	return true;
}

void hpx_reference_print(const struct hpx_operation_id *id, const struct hpx_mark *mark,
			 char out[HPX_REFERENCE_SIZE])
{
	print_pair(id, mark->bytes, out);
}

bool hpx_reference_parse(struct hpx_span text, struct hpx_operation_id *ret_id,
			 struct hpx_mark *ret_mark)
{
	return parse_pair(text, ret_id, ret_mark->bytes);
}

void hpx_lease_print(const struct hpx_operation_id *id, const struct hpx_token *token,
		     char out[HPX_LEASE_SIZE])
{
	print_pair(id, token->bytes, out);
}

void hpx_lease_print_beside(const char reference[HPX_REFERENCE_SIZE],
			    const struct hpx_token *token, char out[HPX_LEASE_SIZE])
{
	HPX_ASSERT(reference[2 * HPX_OPERATION_ID_SIZE] == '.');
	memcpy(out, reference, 2 * HPX_OPERATION_ID_SIZE + 1);
	hpx_hex_encode(token->bytes, sizeof(token->bytes), out + 2 * HPX_OPERATION_ID_SIZE + 1);
}

bool hpx_lease_parse(struct hpx_span text, struct hpx_operation_id *ret_id,
		     struct hpx_token *ret_token)
{
	return parse_pair(text, ret_id, ret_token->bytes);
}
