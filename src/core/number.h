/* JSON numbers as exact decimal values. A number is never turned into a
 * double on its way to the canonical form: its digits and the place of its
 * point are kept, without zeros at either end, and printed the way ECMAScript
 * lays a number out. That text is RFC 8785's wherever RFC 8785's text has the
 * value that was written; where RFC 8785 would round, the written value stays.
 * So two values share a text only if they are equal. */
#ifndef HPX_CORE_NUMBER_H
#define HPX_CORE_NUMBER_H

#include "base/buffer.h"

/* 0.d1d2d3... * 10^point, where d1d2d3... is `head` followed by `tail` (what
 * stood before and behind the written point). Zero has no digits. */
struct hpx_number {
	bool negative;
	struct hpx_span head;
	struct hpx_span tail;
	int64_t point;
};

/* Reads the number (RFC 8259 §6) at the front of `*rest` and moves `*rest`
 * behind it. HPX_INVALID where there is none. Linear; no exponent is ever
 * counted up to, and one too large for int64_t stops at a bound of its own. */
enum hpx_status hpx_number_read(struct hpx_span *rest, struct hpx_number *ret_number);

static inline size_t hpx_number_digits(const struct hpx_number *number)
{
	return number->head.len + number->tail.len;
}

/* The exponent in scientific notation: 0 for 1 to 9.99..., -1 for 0.1. */
static inline int64_t hpx_number_exponent(const struct hpx_number *number)
{
	return hpx_number_digits(number) ? number->point - 1 : 0;
}

/* ECMAScript's layout (Number::toString): plain from 1e-6 to below 1e21, with
 * an exponent outside. */
enum hpx_status hpx_number_write(const struct hpx_number *number, struct hpx_buffer *out);

/* ---- amounts as providers write them ---- */

/* Amounts are compared by their exact decimal value: "10", "10.00" and "1e1" are one
 * amount, "10.01" is another, and no double comes between. */

/* Both are amounts, and equal. What is no amount equals nothing. */
bool hpx_amount_eq(struct hpx_span a, struct hpx_span b);

#endif
