/* The key's two spellings: an RFC 9651 String, and the bare bytes. */
#include "core/key.h"

#define REASON_EMPTY "The key is empty; send 1 to 255 printable ASCII characters."
#define REASON_LONG "The key is longer than 255 characters."
#define REASON_BYTE "The key has a byte that is not printable ASCII."
#define REASON_ESCAPE "In a quoted key, a backslash may only stand before \" or \\."
#define REASON_OPEN "The key begins with \" but has no closing \"."
#define REASON_AFTER "Something follows the quoted key; send one key, without parameters."
#define REASON_BARE_BYTE "A key with a space, a comma or a \" must be written in double quotes."
#define REASON_STRICT "The key must be written in double quotes, as a structured field String."

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
