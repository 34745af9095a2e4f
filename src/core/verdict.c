/* Each ruling is asked whether the status or value is among its signs; exactly
 * one must say so. */
#include "core/verdict.h"

#include "core/amount.h"
#include "core/json_lookup.h"

/* No word for a state is longer; a longer value cannot be meant. */
#define VALUE_MAX 4096

const char *hpx_ruling_name(enum hpx_ruling ruling)
{
	static const char *const names[] = {
#define X(name, text) text,
		HPX_RULING_LIST(X)
#undef X
	};
	return (unsigned)ruling < HPX_RULING_COUNT ? names[ruling] : "?";
}

static bool has_status(const struct hpx_ruling_signs *signs, unsigned status)
{
	for (size_t i = 0; i < signs->status_count; i++)
		if (signs->statuses[i] == status)
			return true;
	return false;
}

static bool value_is(const struct hpx_json_scalar *value, struct hpx_span sign)
{
	if (value->kind == HPX_JSON_NUMBER)
		return hpx_amount_eq(value->text, sign);
	return hpx_span_eq(value->text, sign);
}

static bool has_value(const struct hpx_ruling_signs *signs, const struct hpx_json_scalar *value)
{
	for (size_t i = 0; i < signs->value_count; i++)
		if (value_is(value, signs->values[i]))
			return true;
	return false;
}

/* By the value, or by the status where there is none. False: in no list. */
static bool find(const struct hpx_ruling_mapping *mapping, unsigned status,
		 const struct hpx_json_scalar *value, enum hpx_ruling *ret_ruling)
{
	size_t found = 0;

	for (unsigned i = 0; i < HPX_RULING_UNCLEAR; i++) {
		const struct hpx_ruling_signs *signs = &mapping->signs[i];
		if (value != NULL ? !has_value(signs, value) : !has_status(signs, status))
			continue;
		*ret_ruling = found++ == 0 ? (enum hpx_ruling)i : HPX_RULING_UNCLEAR;
	}
	return found > 0;
}

enum hpx_status hpx_ruling_of_answer(const struct hpx_ruling_mapping *mapping, unsigned status,
				     struct hpx_span body, enum hpx_ruling *ret_ruling)
{
	enum hpx_ruling ruling = HPX_RULING_UNCLEAR;

	if (!find(mapping, status, NULL, &ruling) && status >= 200 && status < 300)
		return hpx_ruling_of_body(mapping, body, ret_ruling);
	*ret_ruling = ruling;
	return HPX_OK;
}

enum hpx_status hpx_ruling_of_body(const struct hpx_ruling_mapping *mapping,
				   struct hpx_span body, enum hpx_ruling *ret_ruling)
{
	enum hpx_ruling ruling = HPX_RULING_UNCLEAR;
	struct hpx_json_scalar value;
	struct hpx_arena arena;

	if (mapping->pointer.ptr == NULL) {
		*ret_ruling = ruling;
		return HPX_OK;
	}
	hpx_arena_init(&arena, 2 * VALUE_MAX);
	enum hpx_status status = hpx_json_lookup(body, mapping->pointer, VALUE_MAX, &arena, &value);
	if (status == HPX_OK)
		find(mapping, 0, &value, &ruling);
	hpx_arena_done(&arena);
	if (status == HPX_NOMEM)
		return status;
	*ret_ruling = ruling;
	return HPX_OK;
}
