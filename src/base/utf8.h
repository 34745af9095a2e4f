/* UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, none above
 * U+10FFFF. */
#ifndef HPX_BASE_UTF8_H
#define HPX_BASE_UTF8_H

#include "base/span.h"

/* The length (1 to 4) of the valid sequence at the front, 0 if there is none. */
size_t hpx_utf8_sequence(struct hpx_span s);
bool hpx_utf8_valid(struct hpx_span s);

/* Takes the next character off the front of `*rest`; false when nothing is left. A byte
 * that is no UTF-8 is a character of its own. Printable is what a terminal shows and
 * does not obey: neither a control character (C0, DEL, C1) nor such a byte. */
bool hpx_utf8_next(struct hpx_span *rest, struct hpx_span *ret_character, bool *ret_printable);

/* The code point of a sequence that hpx_utf8_sequence found valid. */
uint32_t hpx_utf8_decode(struct hpx_span s);

/* Writes the sequence for a code point (not a surrogate), returns its length. */
size_t hpx_utf8_encode(uint32_t code, char out[4]);

#endif
