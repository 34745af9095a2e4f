/* What a request means: a thin skin that checks arguments and calls the core. */
#include "hapax/hapax.h"

#include "base/sized.h"
#include "core/fingerprint.h"
#include "core/key.h"
#include "lib/result.h"

const char *hapax_version(void)
{
	return HPX_VERSION;
}

enum hapax_result hapax_key_parse(const char *value, size_t value_len,
				  char ret_key[HAPAX_KEY_MAX + 1], size_t *ret_len,
				  const char **ret_reason)
{
	struct hpx_key key;
	const char *reason = NULL;

	if ((value == NULL && value_len > 0) || ret_key == NULL || ret_len == NULL)
		return HAPAX_MISUSE;
	enum hpx_status status = hpx_key_parse(hpx_span(value, value_len), false, &key, &reason);
	if (status == HPX_OK) {
		memcpy(ret_key, key.bytes, key.len);
		ret_key[key.len] = '\0';
		*ret_len = key.len;
	} else if (ret_reason != NULL) {
		*ret_reason = reason;
	}
	return hpx_result_of(status);
}

/* The default recipe names no headers, so nothing is ever asked for. */
static struct hpx_span no_header(void *user, struct hpx_span name)
{
	(void)user;
	(void)name;
	return (struct hpx_span){ NULL, 0 };
}

enum hapax_result hapax_fingerprint(const struct hapax_request *given,
				    unsigned char ret_fingerprint[HAPAX_FINGERPRINT_SIZE])
{
	static const struct hpx_recipe plain = { .version = HPX_RECIPE_VERSION };
	struct hapax_request request;

	if (!hpx_sized_read(given, &request, sizeof(request)) || request.method == NULL ||
	    request.path == NULL || (request.body == NULL && request.body_len > 0) ||
	    ret_fingerprint == NULL)
		return HAPAX_MISUSE;
	struct hpx_meaning meaning = {
		.method = hpx_span_of(request.method),
		.path = hpx_span_of(request.path),
		.query = hpx_span_of(request.query),
		.content_type = hpx_span_of(request.content_type),
		.body = hpx_span(request.body, request.body_len),
		.header = no_header,
	};
	/* A canonical form is at most a few times the size of its input. */
	size_t work_bytes_max = request.body_len < SIZE_MAX / 16 ?
					request.body_len * 8 + 65536 :
					SIZE_MAX;
	return hpx_result_of(hpx_fingerprint(&plain, &meaning, work_bytes_max, ret_fingerprint));
}
