/* Reading Prefer. A preference is name[=value][;parameter…], several are
 * separated by commas; a value may be a quoted string, in which a comma or a
 * semicolon separates nothing. */
#include "gateway/prefer.h"

#define WAIT_MAX_S 86400

/* Takes what stands before the next `sep` outside quotes off the front. */
static bool split(struct hpx_span *rest, char sep, struct hpx_span *ret_item)
{
	bool quoted = false;
	size_t at = 0;

	if (rest->ptr == NULL)
		return false;
	for (; at < rest->len && (quoted || rest->ptr[at] != sep); at++) {
		if (rest->ptr[at] == '"')
			quoted = !quoted;
		else if (quoted && rest->ptr[at] == '\\' && at + 1 < rest->len)
			at++;
	}
	*ret_item = hpx_span_first(*rest, at);
	*rest = at < rest->len ? hpx_span_skip(*rest, at + 1) : hpx_span(NULL, 0);
	return true;
}

static struct hpx_span unquoted(struct hpx_span value)
{
	if (value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"')
		return hpx_span(value.ptr + 1, value.len - 2);
	return value;
}

/* Digits; as many as one likes. */
static bool seconds_of(struct hpx_span value, int64_t *ret_ms)
{
	uint64_t seconds = WAIT_MAX_S;

	if (value.len == 0)
		return false;
	for (size_t i = 0; i < value.len; i++)
		if (value.ptr[i] < '0' || value.ptr[i] > '9')
			return false;
	if (!hpx_span_u64(value, WAIT_MAX_S, &seconds))
		seconds = WAIT_MAX_S;
	*ret_ms = (int64_t)seconds * 1000;
	return true;
}

bool hpx_prefer_wait(struct hpx_span prefer, int64_t *ret_ms)
{
	struct hpx_span preference, item;

	while (split(&prefer, ',', &preference)) {
		if (!split(&preference, ';', &item))
			continue;
		size_t at = hpx_span_index(item, '=');
		if (!hpx_span_ieq(hpx_span_trim(hpx_span_first(item, at)), HPX_SPAN("wait")))
			continue;
		return at < item.len &&
		       seconds_of(unquoted(hpx_span_trim(hpx_span_skip(item, at + 1))), ret_ms);
	}
	return false;
}
