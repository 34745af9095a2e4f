/* The words, as tables. A name that only some APIs use as a key is a weak mark: better a
 * question too many than a gap that looks closed. */
#include "coverage/key_name.h"

#include "base/status.h"

#define NAME_SIZE 64

/* What may stand behind "idempotency", "idempotence" or "idempotent" in the name of a
 * key. */
static const char *const tails[] = { "key", "token", "id", "requestid", "keyid", "header" };

/* Names of keys that do not have the word in them. */
static const char *const strong[] = { "paypalrequestid", "repeatabilityrequestid",
				      "opcretrytoken" };

static const char *const weak[] = {
	"clienttoken", "xamzclienttoken", "clientrequesttoken", "requesttoken", "requestid",
	"xrequestid", "clientrequestid", "xclientrequestid", "xmsclientrequestid",
	"deduplicationid", "messagededuplicationid", "xreferenceid"
};

static bool is_among(struct hpx_span name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (hpx_span_eq(name, hpx_span_of(list[i])))
			return true;
	return false;
}
#define IS_AMONG(name, list) is_among(name, list, sizeof(list) / sizeof((list)[0]))

/* The letters and digits, in small letters. */
static struct hpx_span letters_of(struct hpx_span name, char out[NAME_SIZE])
{
	size_t len = 0;

	for (size_t i = 0; i < name.len; i++) {
		char c = hpx_lower(name.ptr[i]);
		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9'))
			continue;
		if (len == NAME_SIZE)
			return hpx_span(NULL, 0);
		out[len++] = c;
	}
	return hpx_span(out, len);
}

/* The place of `word` in `text` from `from` on, in any case; text.len: nowhere. */
static size_t find_word(struct hpx_span text, struct hpx_span word, size_t from)
{
	HPX_ASSERT(word.len > 0);
	for (size_t i = from; i + word.len <= text.len; i++)
		if (hpx_lower(text.ptr[i]) == word.ptr[0] &&
		    hpx_span_istarts(hpx_span_skip(text, i), word))
			return i;
	return text.len;
}

/* Takes "ncy", "nce" or "nt" off the front. */
static bool take_ending(struct hpx_span *rest, bool *ret_adjective)
{
	static const char *const endings[] = { "ncy", "nce", "nt" };

	for (size_t i = 0; i < 3; i++) {
		struct hpx_span ending = hpx_span_of(endings[i]);
		if (!hpx_span_istarts(*rest, ending))
			continue;
		*rest = hpx_span_skip(*rest, ending.len);
		*ret_adjective = i == 2;
		return true;
	}
	return false;
}

static bool is_strong(struct hpx_span name)
{
	static const struct hpx_span stem = HPX_SPAN_INIT("idempote");
	size_t at = find_word(name, stem, 0);
	struct hpx_span before = hpx_span_first(name, at);
	bool adjective;

	if (at == name.len)
		return IS_AMONG(name, strong);
	struct hpx_span rest = hpx_span_skip(name, at + stem.len);
	if (hpx_span_eq(before, HPX_SPAN("is")) || hpx_span_eq(before, HPX_SPAN("non")) ||
	    !take_ending(&rest, &adjective))
		return false;
	return rest.len == 0 ? !adjective : IS_AMONG(rest, tails);
}

enum hpx_key_mark hpx_key_mark_of(struct hpx_span name)
{
	char letters[NAME_SIZE];
	struct hpx_span short_name = letters_of(name, letters);

	if (short_name.len == 0)
		return HPX_MARK_NONE;
	if (is_strong(short_name))
		return HPX_MARK_STRONG;
	return IS_AMONG(short_name, weak) ? HPX_MARK_WEAK : HPX_MARK_NONE;
}

/* ---- prose ---- */

static bool is_denied(struct hpx_span before)
{
	static const char *const denials[] = { "not ", "is_", "non-", "non", "n't ", "never " };

	for (size_t i = 0; i < sizeof(denials) / sizeof(denials[0]); i++) {
		struct hpx_span word = hpx_span_of(denials[i]);
		if (before.len >= word.len &&
		    hpx_span_ieq(hpx_span_skip(before, before.len - word.len), word))
			return true;
	}
	return false;
}

/* What the text behind "idempote" makes of it. */
static enum hpx_key_prose judge(struct hpx_span rest)
{
	static const char *const things[] = { "key", "token", "header", "id" };
	bool adjective;

	if (!take_ending(&rest, &adjective))
		return HPX_PROSE_NONE;
	if (rest.len > 0 && strchr(" -_", rest.ptr[0]) != NULL)
		rest = hpx_span_skip(rest, 1);
	for (size_t i = 0; i < sizeof(things) / sizeof(things[0]); i++)
		if (hpx_span_istarts(rest, hpx_span_of(things[i])))
			return HPX_PROSE_KEY;
	return HPX_PROSE_CLAIM;
}

enum hpx_key_prose hpx_key_prose_of(struct hpx_span text)
{
	static const struct hpx_span stem = HPX_SPAN_INIT("idempote");
	enum hpx_key_prose found = HPX_PROSE_NONE;

	if (find_word(text, HPX_SPAN("paypal-request-id"), 0) < text.len)
		return HPX_PROSE_KEY;
	for (size_t at = find_word(text, stem, 0); at < text.len;
	     at = find_word(text, stem, at + stem.len)) {
		if (is_denied(hpx_span_first(text, at)))
			continue;
		enum hpx_key_prose here = judge(hpx_span_skip(text, at + stem.len));
		found = here > found ? here : found;
	}
	return found;
}
