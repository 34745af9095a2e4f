/* What a head's fields decide about the message itself: where its body ends,
 * whom it is for, whether the connection goes on (RFC 9112 §3.2, §6, §9).
 * Works on a head whose shape is proved. */
#ifndef HPX_HTTP_FRAMING_H
#define HPX_HTTP_FRAMING_H

#include "http/message.h"

/* Fills framing, lengths and flags of `head` from its start line and fields.
 * The reader says which kind of message it is and is not changed. */
enum hpx_http_error hpx_framing_judge(const struct hpx_http_reader *reader,
				      struct hpx_http_head *head);

#endif
