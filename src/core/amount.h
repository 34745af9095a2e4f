/* Amounts as providers write them, compared by their exact decimal value:
 * "10", "10.00" and "1e1" are one amount, "10.01" is another, and no double
 * comes between. */
#ifndef HPX_CORE_AMOUNT_H
#define HPX_CORE_AMOUNT_H

#include "core/number.h"

/* A JSON number (RFC 8259 §6), or the same with a '+', zeros before it, or
 * blanks around it, as exports have it. HPX_INVALID for anything else, also
 * for thousands separators, which mean different things in different places,
 * and for numbers beyond the limits of core/json.h. */
enum hpx_status hpx_amount_read(struct hpx_span text, struct hpx_number *ret_number);

/* Both are amounts, and equal. What is no amount equals nothing. */
bool hpx_amount_eq(struct hpx_span a, struct hpx_span b);

#endif
