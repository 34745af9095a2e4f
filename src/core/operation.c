/* Ids, tokens, marks, references and leases: making, comparing, writing and reading them. */
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

enum hpx_status hpx_mark_make(const struct hpx_token *first, struct hpx_mark *ret_mark)
{
	struct hpx_sha256 hash;
	uint8_t digest[HPX_SHA256_SIZE];
	enum hpx_status status;

	hpx_sha256_init(&hash);
	hpx_sha256_add(&hash, HPX_SPAN("hapax.mark:"));
	hpx_sha256_add(&hash, hpx_span(first->bytes, sizeof(first->bytes)));
	status = hpx_sha256_done(&hash, digest);
	if (status == HPX_OK)
		memcpy(ret_mark->bytes, digest, sizeof(ret_mark->bytes));
	return status;
}

bool hpx_mark_eq(const struct hpx_mark *a, const struct hpx_mark *b)
{
	return hpx_bytes_same(a->bytes, b->bytes, sizeof(a->bytes));
}

bool hpx_mark_is_void(const struct hpx_mark *mark)
{
	static const struct hpx_mark nothing;
	return hpx_mark_eq(mark, &nothing);
}

/* "<id>.<tail>", hexadecimal; both tails have the same size. */
#define TAIL_SIZE HPX_TOKEN_SIZE
_Static_assert(HPX_MARK_SIZE == TAIL_SIZE, "a reference looks like a lease");

static void print_pair(const struct hpx_operation_id *id, const uint8_t tail[TAIL_SIZE], char *out)
{
	hpx_hex_encode(id->bytes, sizeof(id->bytes), out);
	out[2 * HPX_OPERATION_ID_SIZE] = '.';
	hpx_hex_encode(tail, TAIL_SIZE, out + 2 * HPX_OPERATION_ID_SIZE + 1);
}

static bool parse_pair(struct hpx_span text, struct hpx_operation_id *ret_id,
		       uint8_t ret_tail[TAIL_SIZE])
{
	struct hpx_operation_id id;
	uint8_t tail[TAIL_SIZE];

	if (text.len != HPX_REFERENCE_LEN || text.ptr[2 * HPX_OPERATION_ID_SIZE] != '.')
		return false;
	if (!hpx_hex_decode(hpx_span_first(text, 2 * HPX_OPERATION_ID_SIZE), id.bytes,
			    sizeof(id.bytes)) ||
	    !hpx_hex_decode(hpx_span_skip(text, 2 * HPX_OPERATION_ID_SIZE + 1), tail,
			    sizeof(tail)))
		return false;
	*ret_id = id;
	memcpy(ret_tail, tail, sizeof(tail));
	return true;
}

void hpx_reference_print(const struct hpx_operation_id *id, const struct hpx_mark *mark,
			 char out[HPX_REFERENCE_SIZE])
{
	print_pair(id, mark->bytes, out);
}

bool hpx_reference_parse(struct hpx_span text, struct hpx_operation_id *ret_id,
			 struct hpx_mark *ret_mark)
{
	return parse_pair(text, ret_id, ret_mark->bytes);
}

void hpx_lease_print(const struct hpx_operation_id *id, const struct hpx_token *token,
		     char out[HPX_LEASE_SIZE])
{
	print_pair(id, token->bytes, out);
}

bool hpx_lease_parse(struct hpx_span text, struct hpx_operation_id *ret_id,
		     struct hpx_token *ret_token)
{
	return parse_pair(text, ret_id, ret_token->bytes);
}
