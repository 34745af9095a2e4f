/* Reading, normalising and laying out decimal numbers, and comparing amounts: a normalised
 * number has one sign, one point and one row of digits, compared without being written
 * out. */
#include "core/number.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "core/json.h"

/* Where a written exponent stops growing: past every limit that can be set
 * (an unsigned) even when a text of 4 GiB shifts the point back. */
#define EXPONENT_STOP ((int64_t)1 << 50)

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool take_byte(struct hpx_span *rest, char c)
{
	if (rest->len == 0 || rest->ptr[0] != c)
		return false;
	*rest = hpx_span_skip(*rest, 1);
	return true;
}

static struct hpx_span take_digits(struct hpx_span *rest)
{
	size_t n = 0;

	while (n < rest->len && is_digit(rest->ptr[n]))
		n++;
	struct hpx_span digits = hpx_span_first(*rest, n);
	*rest = hpx_span_skip(*rest, n);
	return digits;
}

static enum hpx_status take_exponent(struct hpx_span *rest, int64_t *ret_exponent)
{
	int64_t exponent = 0;

	if (!take_byte(rest, 'e') && !take_byte(rest, 'E')) {
		*ret_exponent = 0;
		return HPX_OK;
	}
	bool negative = take_byte(rest, '-');
	if (!negative)
		take_byte(rest, '+');
	struct hpx_span digits = take_digits(rest);
	if (digits.len == 0)
		return HPX_INVALID;
	for (size_t i = 0; i < digits.len && exponent < EXPONENT_STOP; i++)
		exponent = exponent * 10 + (digits.ptr[i] - '0');
	*ret_exponent = negative ? -exponent : exponent;
	return HPX_OK;
}

static struct hpx_span without_zeros_before(struct hpx_span digits)
{
	while (digits.len > 0 && digits.ptr[0] == '0')
		digits = hpx_span_skip(digits, 1);
	return digits;
}

static struct hpx_span without_zeros_behind(struct hpx_span digits)
{
	while (digits.len > 0 && digits.ptr[digits.len - 1] == '0')
		digits.len--;
	return digits;
}

static struct hpx_number normalise(bool negative, struct hpx_span whole,
				   struct hpx_span fraction, int64_t exponent)
{
	struct hpx_span head = without_zeros_before(whole);
	struct hpx_span tail = without_zeros_behind(fraction);
	int64_t point = exponent + (int64_t)head.len;

	if (head.len == 0) {
		size_t written = tail.len;
		tail = without_zeros_before(tail);
		point -= (int64_t)(written - tail.len);
	}
	if (tail.len == 0)
		head = without_zeros_behind(head);
	if (head.len + tail.len == 0)
		return (struct hpx_number){ .negative = false };
	return (struct hpx_number){ negative, head, tail, point };
}

enum hpx_status hpx_number_read(struct hpx_span *rest, struct hpx_number *ret_number)
{
	struct hpx_span at = *rest;
	struct hpx_span fraction = { NULL, 0 };
	int64_t exponent;

	bool negative = take_byte(&at, '-');
	struct hpx_span whole = take_digits(&at);
	if (whole.len == 0 || (whole.len > 1 && whole.ptr[0] == '0'))
		return HPX_INVALID;
	if (take_byte(&at, '.')) {
		fraction = take_digits(&at);
		if (fraction.len == 0)
			return HPX_INVALID;
	}
	enum hpx_status status = take_exponent(&at, &exponent);
	if (status != HPX_OK)
		return status;
	*ret_number = normalise(negative, whole, fraction, exponent);
	*rest = at;
	return HPX_OK;
}

static enum hpx_status write_digits(const struct hpx_number *number, size_t from, size_t to,
				    struct hpx_buffer *out)
{
	size_t cut = number->head.len;
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(from <= to && to <= hpx_number_digits(number));
	if (from < cut) {
		size_t end = to < cut ? to : cut;
		status = hpx_buffer_append(out, hpx_span(number->head.ptr + from, end - from));
		from = end;
	}
	if (status == HPX_OK && from < to)
		status = hpx_buffer_append(out, hpx_span(number->tail.ptr + (from - cut),
							 to - from));
	return status;
}

static enum hpx_status write_scientific(const struct hpx_number *number, struct hpx_buffer *out)
{
	size_t count = hpx_number_digits(number);
	char exponent[24];

	enum hpx_status status = write_digits(number, 0, 1, out);
	if (status == HPX_OK && count > 1)
		status = hpx_buffer_byte(out, '.');
	if (status == HPX_OK)
		status = write_digits(number, 1, count, out);
	snprintf(exponent, sizeof(exponent), "e%+lld",
		 (long long)hpx_number_exponent(number));
	if (status == HPX_OK)
		status = hpx_buffer_text(out, exponent);
	return status;
}

/* `point` digits before the point, -6 < point <= 21: no more than 21 zeros. */
static enum hpx_status write_plain(const struct hpx_number *number, struct hpx_buffer *out)
{
	static const char zeros[] = "000000000000000000000";
	size_t count = hpx_number_digits(number);
	size_t whole = number->point > 0 ? (size_t)number->point : 0;
	size_t cut = whole < count ? whole : count;
	size_t behind = number->point < 0 ? (size_t)-number->point : 0;

	HPX_ASSERT(whole - cut < sizeof(zeros) && behind < sizeof(zeros));

	enum hpx_status status = cut > 0 ? write_digits(number, 0, cut, out) :
					   hpx_buffer_byte(out, '0');
	if (status == HPX_OK)
		status = hpx_buffer_append(out, hpx_span(zeros, whole - cut));
	if (status != HPX_OK || cut == count)
		return status;
	status = hpx_buffer_byte(out, '.');
	if (status == HPX_OK)
		status = hpx_buffer_append(out, hpx_span(zeros, behind));
	if (status == HPX_OK)
		status = write_digits(number, cut, count, out);
	return status;
}

enum hpx_status hpx_number_write(const struct hpx_number *number, struct hpx_buffer *out)
{
	if (hpx_number_digits(number) == 0)
		return hpx_buffer_byte(out, '0');
	enum hpx_status status = number->negative ? hpx_buffer_byte(out, '-') : HPX_OK;
	if (status != HPX_OK)
		return status;
	if (number->point > -6 && number->point <= 21)
		return write_plain(number, out);
	return write_scientific(number, out);
}

/* ---- amounts ---- */

static bool has_digit(struct hpx_span s, size_t at)
{
	return at < s.len && s.ptr[at] >= '0' && s.ptr[at] <= '9';
}

/* What stands before the number in an export and not in JSON. */
static struct hpx_span unsigned_part(struct hpx_span text, bool *ret_negative)
{
	*ret_negative = text.len > 0 && text.ptr[0] == '-';
	if (*ret_negative || (text.len > 0 && text.ptr[0] == '+'))
		text = hpx_span_skip(text, 1);
	while (has_digit(text, 1) && text.ptr[0] == '0')
		text = hpx_span_skip(text, 1);
	return text;
}

/* A JSON number (RFC 8259 §6), or the same with a '+', zeros before it, or
 * blanks around it, as exports have it. HPX_INVALID for anything else, also
 * for thousands separators, which mean different things in different places,
 * and for numbers beyond the limits of core/json.h. */
static enum hpx_status read_amount(struct hpx_span text, struct hpx_number *ret_number)
{
	const struct hpx_json_limits *limits = &hpx_json_limits_default;
	struct hpx_number number;
	bool negative;

	text = unsigned_part(hpx_span_trim(text), &negative);
	if (!has_digit(text, 0))
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

	if (read_amount(a, &x) != HPX_OK || read_amount(b, &y) != HPX_OK)
		return false;
	size_t digits = hpx_number_digits(&x);
	if (x.negative != y.negative || x.point != y.point || digits != hpx_number_digits(&y))
		return false;
	for (size_t i = 0; i < digits; i++)
		if (digit_at(&x, i) != digit_at(&y, i))
			return false;
	return true;
}
