/* The names of an operation: its id, the lease tokens of its attempts, and
 * the reference that is given out. */
#ifndef HPX_CORE_OPERATION_H
#define HPX_CORE_OPERATION_H

#include "base/span.h"
#include "base/status.h"

#define HPX_OPERATION_ID_SIZE 32
#define HPX_TOKEN_SIZE 16

struct hpx_operation_id {
	uint8_t bytes[HPX_OPERATION_ID_SIZE];
};

/* A lease token: 128 random bits, made before the store is asked, never
 * reused. All zero is the void token, which no attempt holds. */
struct hpx_token {
	uint8_t bytes[HPX_TOKEN_SIZE];
};

/* SHA-256 of tenant, scope and key, each with its length before it. */
enum hpx_status hpx_operation_id(struct hpx_span tenant, struct hpx_span scope,
				 struct hpx_span key, struct hpx_operation_id *ret_id);
bool hpx_operation_id_eq(const struct hpx_operation_id *a, const struct hpx_operation_id *b);

void hpx_token_make(struct hpx_token *ret_token);
bool hpx_token_eq(const struct hpx_token *a, const struct hpx_token *b);
bool hpx_token_is_void(const struct hpx_token *token);

/* "<id>.<token>", hexadecimal: the operation reference when the token is the
 * first attempt's, the lease when it is the current one's. */
#define HPX_REFERENCE_LEN (2 * HPX_OPERATION_ID_SIZE + 1 + 2 * HPX_TOKEN_SIZE)
#define HPX_REFERENCE_SIZE (HPX_REFERENCE_LEN + 1)

void hpx_reference_print(const struct hpx_operation_id *id, const struct hpx_token *token,
			 char out[HPX_REFERENCE_SIZE]);
bool hpx_reference_parse(struct hpx_span text, struct hpx_operation_id *ret_id,
			 struct hpx_token *ret_token);

#endif
