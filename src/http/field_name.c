/* Looking names up: by their length, then by their first letter, then whole, eight
 * bytes at a time. */
#include "http/field_name.h"

#include "base/status.h"

static const struct {
	struct hpx_span text;
	unsigned traits;
} names[HPX_NAME_COUNT] = {
#define X(name, text, traits) [HPX_NAME_##name] = { HPX_SPAN_INIT(text), traits },
	HPX_FIELD_NAME_LIST(X)
#undef X
};

_Static_assert(HPX_NAME_COUNT <= 64, "a set of names is one word");

#define ALL(byte) (0x0101010101010101u * (byte))

/* Whether eight bytes are the same but for the case of letters. `known` is in lower
 * case. A byte with its bit 0x20 set is a known letter where it was that letter or its
 * capital; a known digit or `-`, though, may have been a control character then, which
 * has neither that bit nor 0x40. */
static bool same_word(const char *text, const char *known)
{
	uint64_t a, b;

	memcpy(&a, text, sizeof(a));
	memcpy(&b, known, sizeof(b));
	return (a | ALL(0x20)) == b && ((a | a >> 1) & ALL(0x20)) == ALL(0x20);
}

static bool same(struct hpx_span name, const char *known)
{
	size_t at = 0;

	if (name.len < sizeof(uint64_t)) {
		while (at < name.len && hpx_lower(name.ptr[at]) == known[at])
			at++;
		return at == name.len;
	}
	for (; at + sizeof(uint64_t) < name.len; at += sizeof(uint64_t))
		if (!same_word(name.ptr + at, known + at))
			return false;
	at = name.len - sizeof(uint64_t);
	return same_word(name.ptr + at, known + at);
}

/* Among the names from `first` to `last`, which all have this length. */
static enum hpx_field_name pick(struct hpx_span name, enum hpx_field_name first,
				enum hpx_field_name last)
{
	char letter = hpx_lower(name.ptr[0]);

	HPX_ASSERT(names[first].text.len == name.len && names[last].text.len == name.len);
	for (unsigned n = first; n <= last; n++)
		if (names[n].text.ptr[0] == letter && same(name, names[n].text.ptr))
			return (enum hpx_field_name)n;
	return HPX_NAME_OTHER;
}

enum hpx_field_name hpx_field_name_of(struct hpx_span name)
{
	switch (name.len) {
	case 2:
		return pick(name, HPX_NAME_TE, HPX_NAME_TE);
	case 3:
		return pick(name, HPX_NAME_AGE, HPX_NAME_VIA);
	case 4:
		return pick(name, HPX_NAME_DATE, HPX_NAME_VARY);
	case 6:
		return pick(name, HPX_NAME_ACCEPT, HPX_NAME_SERVER);
	case 7:
		return pick(name, HPX_NAME_ALT_SVC, HPX_NAME_UPGRADE);
	case 8:
		return pick(name, HPX_NAME_LOCATION, HPX_NAME_LOCATION);
	case 9:
		return pick(name, HPX_NAME_FORWARDED, HPX_NAME_X_API_KEY);
	case 10:
		return pick(name, HPX_NAME_CONNECTION, HPX_NAME_USER_AGENT);
	case 11:
		return pick(name, HPX_NAME_RETRY_AFTER, HPX_NAME_TRACEPARENT);
	case 12:
		return pick(name, HPX_NAME_CONTENT_TYPE, HPX_NAME_X_REQUEST_ID);
	case 13:
		return pick(name, HPX_NAME_ACCEPT_RANGES, HPX_NAME_X_HTTP_METHOD);
	case 14:
		return pick(name, HPX_NAME_CONTENT_LENGTH, HPX_NAME_HTTP2_SETTINGS);
	case 15:
		return pick(name, HPX_NAME_ACCEPT_ENCODING, HPX_NAME_X_FORWARDED_FOR);
	case 16:
		return pick(name, HPX_NAME_CONTENT_ENCODING, HPX_NAME_X_FORWARDED_HOST);
	case 17:
		return pick(name, HPX_NAME_TRANSFER_ENCODING, HPX_NAME_X_METHOD_OVERRIDE);
	case 18:
		return pick(name, HPX_NAME_PROXY_AUTHENTICATE, HPX_NAME_PROXY_AUTHENTICATE);
	case 19:
		return pick(name, HPX_NAME_AUTHENTICATION_INFO, HPX_NAME_PROXY_AUTHORIZATION);
	case 22:
		return pick(name, HPX_NAME_X_HTTP_METHOD_OVERRIDE, HPX_NAME_X_HTTP_METHOD_OVERRIDE);
	case 24:
		return pick(name, HPX_NAME_IDEMPOTENT_RECONSTRUCTED, HPX_NAME_IDEMPOTENT_RECONSTRUCTED);
	case 25:
		return pick(name, HPX_NAME_STRICT_TRANSPORT_SECURITY,
			    HPX_NAME_STRICT_TRANSPORT_SECURITY);
	default:
		return HPX_NAME_OTHER;
	}
}

struct hpx_span hpx_field_name_text(enum hpx_field_name name)
{
	HPX_ASSERT(name > HPX_NAME_OTHER && name < HPX_NAME_COUNT);
	return names[name].text;
}

/* The families, of which every name counts. */
static unsigned family_traits(struct hpx_span name)
{
	char letter = name.len > 0 ? hpx_lower(name.ptr[0]) : '\0';

	if (letter == 'h' && (hpx_span_istarts(name, HPX_SPAN("hapax-")) ||
			      hpx_span_istarts(name, HPX_SPAN("hapax_"))))
		return HPX_FIELD_OURS;
	if ((letter == 'p' && hpx_span_istarts(name, HPX_SPAN("proxy-"))) ||
	    (letter == 'r' && hpx_span_istarts(name, HPX_SPAN("ratelimit-"))))
		return HPX_FIELD_ONCE;
	return 0;
}

unsigned hpx_field_known_traits(enum hpx_field_name known, struct hpx_span name)
{
	HPX_ASSERT(known < HPX_NAME_COUNT);
	return known == HPX_NAME_OTHER ? family_traits(name) : names[known].traits;
}

unsigned hpx_field_name_traits(struct hpx_span name)
{
	return hpx_field_known_traits(hpx_field_name_of(name), name);
}
