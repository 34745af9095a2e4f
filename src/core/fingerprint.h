/* What a request means, as 32 bytes: two requests with one fingerprint are
 * the same operation sent twice. The recipe says how it is made; a record
 * names its recipe, and a retry is fingerprinted by the record's recipe. */
#ifndef HPX_CORE_FINGERPRINT_H
#define HPX_CORE_FINGERPRINT_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/bytes.h"

/* The version of new recipes. Records made by an older one are compared by it:
 *   1  as hpx_fingerprint has it, without what follows
 *   2  X-HTTP-Method-Override, X-HTTP-Method and X-Method-Override count, and
 *      preamble and epilogue of a multipart body do */
#define HPX_RECIPE_VERSION 2
#define HPX_RECIPE_ID_SIZE 16
#define HPX_RECIPE_TEXT_MAX 8192
#define HPX_RECIPE_LIST_MAX 64

struct hpx_recipe_id {
	uint8_t bytes[HPX_RECIPE_ID_SIZE];
};

/* Of a record whose request nobody knows (it was restored from a provider's export): no
 * hash of a recipe's text is all ones, and no fingerprint is compared with such a record. */
static inline struct hpx_recipe_id hpx_recipe_unknown(void)
{
	struct hpx_recipe_id id;

	memset(id.bytes, 0xff, sizeof(id.bytes));
	return id;
}
static inline bool hpx_recipe_is_unknown(const struct hpx_recipe_id *id)
{
	const struct hpx_recipe_id unknown = hpx_recipe_unknown();

	return memcmp(id->bytes, unknown.bytes, sizeof(id->bytes)) == 0;
}

struct hpx_recipe {
	unsigned version;
	const struct hpx_span *ignore; /* JSON pointers, sorted */
	size_t ignore_count;
	const struct hpx_span *headers; /* lower-case names, sorted */
	size_t header_count;
	const struct hpx_span *only;    /* JSON pointers, sorted: what alone counts of a JSON body */
	size_t only_count;              /* 0: all that is not ignored */
	const struct hpx_recipe_id *id; /* where it is known already, else NULL */
};

/* The recipe as one line of text, the same for equal recipes whatever the
 * order in the configuration; what the recipe table stores. */
enum hpx_status hpx_recipe_print(const struct hpx_recipe *recipe, struct hpx_buffer *out);
/* The way back; strings are copied into `arena`. HPX_INVALID: not a recipe
 * text; HPX_UNSUPPORTED: a version that this program does not know. */
enum hpx_status hpx_recipe_parse(struct hpx_span text, struct hpx_arena *arena,
				 struct hpx_recipe *ret_recipe);
/* The first 16 bytes of the SHA-256 of its text. */
enum hpx_status hpx_recipe_id(const struct hpx_recipe *recipe, struct hpx_recipe_id *ret_id);

/* The headers by which frameworks let a POST stand for another method, in lower
 * case; every recipe since version 2 counts them. */
#define HPX_METHOD_OVERRIDE_COUNT 3
extern const struct hpx_span hpx_method_override[HPX_METHOD_OVERRIDE_COUNT];

/* The request as the fingerprint sees it. `header` gives the combined value
 * (RFC 9110 §5.3) of a header named by the recipe or in hpx_method_override,
 * ptr NULL where absent. */
struct hpx_meaning {
	struct hpx_span method;
	struct hpx_span path;             /* normalised */
	struct hpx_span query;            /* without '?', ptr NULL if none */
	struct hpx_span content_type;     /* as sent, ptr NULL if none */
	struct hpx_span content_encoding; /* as sent, ptr NULL if none */
	struct hpx_span body;
	struct hpx_span (*header)(void *user, struct hpx_span name);
	void *user;
};

/* How many bytes the body's canonical form is made of at most: how much work it is. */
size_t hpx_fingerprint_effort(const struct hpx_meaning *meaning, size_t work_bytes_max);
/* `work_bytes_max` bounds the canonical form and the decoded body; where a
 * body cannot be brought to its canonical form within it (bad JSON, bad gzip,
 * too large when decoded, or more than 64 times its size), its raw bytes count. Fails only for memory and
 * for an unsupported recipe. */
enum hpx_status hpx_fingerprint(const struct hpx_recipe *recipe,
				const struct hpx_meaning *meaning, size_t work_bytes_max,
				uint8_t ret_fingerprint[HPX_SHA256_SIZE]);

#endif
