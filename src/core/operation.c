/* Ids, tokens and references: making, comparing, writing and reading them. */
#include "core/operation.h"

#include "base/bytes.h"

enum hpx_status hpx_operation_id(struct hpx_span tenant, struct hpx_span scope,
				 struct hpx_span key, struct hpx_operation_id *ret_id)
{
	struct hpx_sha256 hash;

	hpx_sha256_init(&hash);
	hpx_sha256_part(&hash, tenant);
	hpx_sha256_part(&hash, scope);
	hpx_sha256_part(&hash, key);
	return hpx_sha256_done(&hash, ret_id->bytes);
}

bool hpx_operation_id_eq(const struct hpx_operation_id *a, const struct hpx_operation_id *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

void hpx_token_make(struct hpx_token *ret_token)
{
	hpx_random(ret_token->bytes, sizeof(ret_token->bytes));
}

bool hpx_token_eq(const struct hpx_token *a, const struct hpx_token *b)
{
	return hpx_bytes_same(a->bytes, b->bytes, sizeof(a->bytes));
}

bool hpx_token_is_void(const struct hpx_token *token)
{
	static const struct hpx_token nobody;
	return hpx_token_eq(token, &nobody);
}

void hpx_reference_print(const struct hpx_operation_id *id, const struct hpx_token *token,
			 char out[HPX_REFERENCE_SIZE])
{
	hpx_hex_encode(id->bytes, sizeof(id->bytes), out);
	out[2 * HPX_OPERATION_ID_SIZE] = '.';
	hpx_hex_encode(token->bytes, sizeof(token->bytes), out + 2 * HPX_OPERATION_ID_SIZE + 1);
}

bool hpx_reference_parse(struct hpx_span text, struct hpx_operation_id *ret_id,
			 struct hpx_token *ret_token)
{
	struct hpx_operation_id id;
	struct hpx_token token;

	if (text.len != HPX_REFERENCE_LEN || text.ptr[2 * HPX_OPERATION_ID_SIZE] != '.')
		return false;
	if (!hpx_hex_decode(hpx_span_first(text, 2 * HPX_OPERATION_ID_SIZE), id.bytes,
			    sizeof(id.bytes)) ||
	    !hpx_hex_decode(hpx_span_skip(text, 2 * HPX_OPERATION_ID_SIZE + 1), token.bytes,
			    sizeof(token.bytes)))
		return false;
	*ret_id = id;
	*ret_token = token;
	return true;
}
