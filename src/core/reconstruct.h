/* The answer of an operation, made from the provider's own object, where the upstream's
 * answer was lost and a probe, a webhook or a ledger says later that the request was
 * applied. A retry then gets a success instead of "it happened, nobody knows what was
 * said". The answer says that it is not the original: HPX_RECONSTRUCTED. */
#ifndef HPX_CORE_RECONSTRUCT_H
#define HPX_CORE_RECONSTRUCT_H

#include "base/buffer.h"

#define HPX_RECONSTRUCTED "Idempotent-Reconstructed"
/* The fields of a reconstructed answer together. */
#define HPX_RECONSTRUCT_HEADERS_MAX ((size_t)32 * 1024)

/* `answer` of a probe, a webhook or a ledger. */
struct hpx_answer_rule {
	unsigned status;      /* 2xx; 0: no answer is made */
	struct hpx_span body; /* HPX_ANSWER_WHOLE, or an RFC 6901 pointer into the object */
	/* "Name: value", where {/pointer} in a value stands for that scalar of the
	 * object; or "Name": the provider's own header of that name. */
	const struct hpx_span *headers;
	size_t header_count;
};
#define HPX_ANSWER_WHOLE "answer"

/* What the provider said. */
struct hpx_provider_object {
	struct hpx_span text;         /* JSON, unless the whole of it is the body */
	struct hpx_span content_type; /* of the text; ptr NULL: not known */
	/* The value of one of its headers, ptr NULL where absent; NULL: it has none. */
	struct hpx_span (*header)(void *user, struct hpx_span name);
	void *user;
};

/* Whether the line can be a header of a rule: a field name, then nothing or a colon and a
 * value of printable characters whose {…} are pointers. */
bool hpx_answer_header_valid(struct hpx_span line);

/* Appends the fields as lines ("Name: value\r\n") and the body. Values of the object are
 * written in canonical form, numbers exactly. HPX_NOT_FOUND: a pointer leads nowhere, or
 * for a header to an array or object. HPX_INVALID: no JSON, or a value that cannot stand
 * in a header. HPX_TOO_LARGE: a buffer is full. Only the outcome is known then, and the
 * buffers hold nothing of use. */
enum hpx_status hpx_reconstruct(const struct hpx_answer_rule *rule,
				const struct hpx_provider_object *object,
				struct hpx_buffer *headers, struct hpx_buffer *body);

#endif
