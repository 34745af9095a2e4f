/* One pass over the path, without memory of its own: it runs for every state-changing
 * request of the gateway. */
#include "http/path_template.h"

#include "base/status.h"

/* Digits together with letters: an id from this length on, where a third are digits. */
#define MIXED_MIN 8
/* Letters of both cases without a word's look: base64 and its like. */
#define LONG_MIN 20

struct letter_count {
	size_t digits;
	size_t upper;
	size_t lower;
	size_t hex;   /* of letters and digits */
	size_t marks; /* - _ . : ~ and others */
};

static struct letter_count count_letters(struct hpx_span segment)
{
	struct letter_count count = { 0, 0, 0, 0, 0 };

	for (size_t i = 0; i < segment.len; i++) {
		char c = segment.ptr[i];
		bool digit = c >= '0' && c <= '9';
		bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';
		count.digits += digit;
		count.upper += upper;
		count.lower += lower;
		count.hex += digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
		count.marks += !digit && !upper && !lower;
	}
	return count;
}

static bool is_version(struct hpx_span segment)
{
	uint64_t number;

	return segment.len <= 4 && segment.len > 1 && hpx_lower(segment.ptr[0]) == 'v' &&
	       hpx_span_u64(hpx_span_skip(segment, 1), 999, &number);
}

bool hpx_segment_is_id(struct hpx_span segment)
{
	struct letter_count count = count_letters(segment);
	size_t letters = count.upper + count.lower;

	if (segment.len == 0 || is_version(segment))
		return false;
	/* 17, 2026-11-18, 10.0.0.1 */
	if (letters == 0)
		return count.digits > 0;
	if (hpx_span_index(segment, '@') < segment.len)
		return true;
	/* A UUID, a digest, an object id. */
	if (count.hex + count.marks == segment.len && count.hex >= MIXED_MIN && count.digits >= 2)
		return true;
	/* ch_3LmzzQ2eZvKY, 8AC40532HB754, 01J9XZ… */
	if (segment.len >= MIXED_MIN && count.digits >= 3 && 3 * count.digits + 2 >= letters)
		return true;
	if (segment.len >= MIXED_MIN && count.digits >= 2 && count.upper >= 2)
		return true;
	return segment.len >= LONG_MIN && count.upper >= 4 && count.lower >= 4 && count.digits > 0;
}

struct hpx_span hpx_path_template(struct hpx_span path, char out[HPX_PATH_TEMPLATE_MAX])
{
	struct hpx_span rest = hpx_span_first(path, hpx_span_index(path, '?'));
	struct hpx_span segment;
	size_t len = 0;

	if (rest.len > 0 && rest.ptr[0] == '/')
		rest = hpx_span_skip(rest, 1);
	while (hpx_span_split(&rest, '/', &segment)) {
		if (hpx_segment_is_id(segment))
			segment = HPX_SPAN("{x}");
		/* Always room for "/" and a final "*". */
		if (len + 1 + segment.len + 2 > HPX_PATH_TEMPLATE_MAX) {
			segment = HPX_SPAN("*");
			rest = hpx_span(NULL, 0);
		}
		out[len++] = '/';
		memcpy(out + len, segment.len > 0 ? segment.ptr : "", segment.len);
		len += segment.len;
	}
	HPX_ASSERT(len <= HPX_PATH_TEMPLATE_MAX);
	return hpx_span(out, len);
}

bool hpx_path_matches(struct hpx_span template, struct hpx_span path)
{
	struct hpx_span given = hpx_span_first(path, hpx_span_index(path, '?'));
	struct hpx_span want, got;

	while (hpx_span_split(&template, '/', &want)) {
		if (!hpx_span_split(&given, '/', &got))
			return false;
		if (template.ptr == NULL && hpx_span_eq(want, HPX_SPAN("*")))
			return true;
		bool any = want.len > 2 && want.ptr[0] == '{' && want.ptr[want.len - 1] == '}';
		if (any ? got.len == 0 : !hpx_span_eq(want, got))
			return false;
	}
	return given.ptr == NULL;
}
