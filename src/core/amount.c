/* A normalised number has one sign, one point and one row of digits; they are
 * compared without being written out. */
#include "core/amount.h"

#include <stdlib.h>

#include "core/json.h"

static bool is_digit(struct hpx_span s, size_t at)
{
	return at < s.len && s.ptr[at] >= '0' && s.ptr[at] <= '9';
}

/* What stands before the number in an export and not in JSON. */
static struct hpx_span unsigned_part(struct hpx_span text, bool *ret_negative)
{
	*ret_negative = text.len > 0 && text.ptr[0] == '-';
	if (*ret_negative || (text.len > 0 && text.ptr[0] == '+'))
		text = hpx_span_skip(text, 1);
	while (is_digit(text, 1) && text.ptr[0] == '0')
		text = hpx_span_skip(text, 1);
	return text;
}

enum hpx_status hpx_amount_read(struct hpx_span text, struct hpx_number *ret_number)
{
	const struct hpx_json_limits *limits = &hpx_json_limits_default;
	struct hpx_number number;
	bool negative;

	text = unsigned_part(hpx_span_trim(text), &negative);
	if (!is_digit(text, 0))
		return HPX_INVALID;
	if (hpx_number_read(&text, &number) != HPX_OK || text.len > 0)
		return HPX_INVALID;
	/* Past a bound of its own, a written exponent is not kept exactly. */
	if (hpx_number_digits(&number) > limits->digits_max ||
	    llabs(hpx_number_exponent(&number)) > (long long)limits->exponent_max)
		return HPX_INVALID;
	number.negative = negative && hpx_number_digits(&number) > 0;
	*ret_number = number;
	return HPX_OK;
}

static char digit_at(const struct hpx_number *number, size_t at)
{
	size_t cut = number->head.len;

	return at < cut ? number->head.ptr[at] : number->tail.ptr[at - cut];
}

bool hpx_amount_eq(struct hpx_span a, struct hpx_span b)
{
	struct hpx_number x, y;

	if (hpx_amount_read(a, &x) != HPX_OK || hpx_amount_read(b, &y) != HPX_OK)
		return false;
	size_t digits = hpx_number_digits(&x);
	if (x.negative != y.negative || x.point != y.point || digits != hpx_number_digits(&y))
		return false;
	for (size_t i = 0; i < digits; i++)
		if (digit_at(&x, i) != digit_at(&y, i))
			return false;
	return true;
}
