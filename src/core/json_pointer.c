/* RFC 6901 pointers, cut into tokens once and compared token by token. */
#include "core/json_pointer.h"

#include <stdlib.h>

bool hpx_json_pointer_valid(struct hpx_span pointer)
{
	if (pointer.len > 0 && pointer.ptr[0] != '/')
		return false;
	for (size_t i = 0; i < pointer.len; i++) {
		if (pointer.ptr[i] != '~')
			continue;
		i++;
		if (i == pointer.len || (pointer.ptr[i] != '0' && pointer.ptr[i] != '1'))
			return false;
	}
	return true;
}

static size_t count_tokens(struct hpx_span pointer)
{
	size_t count = 0;

	for (size_t i = 0; i < pointer.len; i++)
		count += pointer.ptr[i] == '/';
	return count;
}

/* Returns how many tokens were put at `tokens`. */
static size_t cut_tokens(struct hpx_span pointer, struct hpx_span *tokens)
{
	size_t count = 0;

	if (pointer.len == 0 || !hpx_json_pointer_valid(pointer))
		return 0;
	struct hpx_span rest = hpx_span_skip(pointer, 1);
	while (hpx_span_split(&rest, '/', &tokens[count]))
		count++;
	return count;
}

enum hpx_status hpx_json_pointers_init(struct hpx_json_pointers *pointers,
				       const struct hpx_span *ignore, size_t ignore_count)
{
	size_t total = 1;
	size_t at = 0;

	*pointers = (struct hpx_json_pointers){ .all = 0 };
	if (ignore_count > HPX_JSON_IGNORE_MAX)
		return HPX_MISUSE;
	if (ignore_count == 0)
		return HPX_OK;
	for (size_t i = 0; i < ignore_count; i++)
		total += count_tokens(ignore[i]);
	pointers->tokens = calloc(total, sizeof(*pointers->tokens));
	if (pointers->tokens == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < ignore_count; i++) {
		size_t count = cut_tokens(ignore[i], pointers->tokens + at);
		pointers->first[i] = at;
		at += count;
		pointers->first[i + 1] = at;
		if (count > 0)
			pointers->all |= (uint64_t)1 << i;
		else if (ignore[i].len == 0)
			pointers->whole = true;
	}
	return HPX_OK;
}

void hpx_json_pointers_done(struct hpx_json_pointers *pointers)
{
	free(pointers->tokens);
	pointers->tokens = NULL;
}

/* ~1 is '/', ~0 is '~'; the token is known to be well formed. */
static bool token_is(struct hpx_span token, struct hpx_span name)
{
	size_t at = 0;

	for (size_t i = 0; i < token.len; i++, at++) {
		char c = token.ptr[i];
		if (c == '~')
			c = token.ptr[++i] == '1' ? '/' : '~';
		if (at == name.len || name.ptr[at] != c)
			return false;
	}
	return at == name.len;
}

uint64_t hpx_json_pointers_step(const struct hpx_json_pointers *pointers,
				uint64_t set, size_t depth,
				struct hpx_span name, bool *ret_named)
{
	uint64_t below = 0;
	bool named = false;

	for (; set != 0; set &= set - 1) {
		size_t i = (size_t)__builtin_ctzll(set);
		size_t at = pointers->first[i] + depth;
		if (!token_is(pointers->tokens[at], name))
			continue;
		if (at + 1 == pointers->first[i + 1])
			named = true;
		else
			below |= set & -set;
	}
	*ret_named = named;
	return below;
}
