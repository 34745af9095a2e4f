/* The key of a request, from wherever its route says: headers and the query before the
 * body is read, members of the body after it. Several places may have it; two that differ
 * are refused, because nobody could say which one the service goes by. */
#include "base/status.h"
#include "core/form.h"
#include "core/json.h"
#include "gateway/steps.h"
#include "http/field.h"

static const char differ_text[] = "Two places of the request have keys that differ. Send one key.";
static const char escape_text[] = "The key in the query cannot be decoded.";
static const char string_text[] = "The key in the body is no string, or too long.";
static const char encoded_text[] = "The key is in the body, and the body is compressed. Send it as "
				   "it is.";

/* Takes a key that was found; HPX_INVALID where another place had another one. */
static enum hpx_status keep_key(struct hpx_request *request, const struct hpx_key *key,
				const char **ret_reason)
{
	struct hpx_key *known = &request->identity.key;

	if (request->identity.has_key &&
	    !hpx_span_eq(hpx_span(known->bytes, known->len), hpx_span(key->bytes, key->len))) {
		*ret_reason = differ_text;
		return HPX_INVALID;
	}
	*known = *key;
	request->identity.has_key = true;
	return HPX_OK;
}

static enum hpx_status take_header(struct hpx_request *request, struct hpx_span name,
				   const char **ret_reason)
{
	const struct hpx_settings *settings = request->settings;
	size_t count = hpx_field_count(&request->head.http, name);
	struct hpx_span value = hpx_field_value(&request->head.http, name);
	struct hpx_key key;

	if (count == 0)
		return HPX_OK;
	if (count > 1) {
		*ret_reason = "the key's header is sent more than once";
		return HPX_INVALID;
	}
	enum hpx_status status =
		settings->key_syntax == HPX_KEY_SYNTAX_BARE ?
			hpx_key_parse_bare(value, &key, ret_reason) :
			hpx_key_parse(value, settings->key_syntax == HPX_KEY_SYNTAX_STRICT, &key,
				      ret_reason);
	return status == HPX_OK ? keep_key(request, &key, ret_reason) : status;
}

static enum hpx_status take_bare(struct hpx_request *request, struct hpx_span value,
				 const char **ret_reason)
{
	struct hpx_key key;
	enum hpx_status status = hpx_key_parse_bare(value, &key, ret_reason);

	return status == HPX_OK ? keep_key(request, &key, ret_reason) : status;
}

/* A parameter that is there twice is two places. */
static enum hpx_status take_query(struct hpx_request *request, struct hpx_span name,
				  const char **ret_reason)
{
	struct hpx_span rest = request->head.target.query, part;
	enum hpx_status status = HPX_OK;

	while (status == HPX_OK && rest.ptr != NULL && hpx_span_split(&rest, '&', &part)) {
		size_t equal = hpx_span_index(part, '=');
		char decoded[3 * HPX_KEY_MAX];
		size_t len = 0;
		if (!hpx_span_eq(hpx_span_first(part, equal), name) || equal == part.len)
			continue;
		part = hpx_span_skip(part, equal + 1);
		if (part.len > sizeof(decoded) || hpx_form_decode(part, decoded, &len) != HPX_OK) {
			*ret_reason = escape_text;
			return HPX_INVALID;
		}
		status = take_bare(request, hpx_span(decoded, len), ret_reason);
	}
	return status;
}

enum hpx_status hpx_request_key_in_head(struct hpx_request *request, const char **ret_reason)
{
	const struct hpx_key_sources *sources = &request->head.route->key_from;
	enum hpx_status status = HPX_OK;

	if (sources->count == 0)
		return take_header(request, request->settings->key_header, ret_reason);
	for (size_t i = 0; i < sources->count && status == HPX_OK; i++) {
		const struct hpx_key_source *source = &sources->at[i];
		if (source->place == HPX_KEY_IN_HEADER)
			status = take_header(request, source->name, ret_reason);
		else if (source->place == HPX_KEY_IN_QUERY)
			status = take_query(request, source->name, ret_reason);
	}
	return status;
}

/* A body that is no JSON, or has no such member, has no key; null is no key either. */
static enum hpx_status take_member(struct hpx_request *request, struct hpx_span pointer,
				   const char **ret_reason)
{
	struct hpx_json_scalar scalar;

	switch (hpx_json_lookup(hpx_buffer_span(&request->body.bytes), pointer, HPX_KEY_MAX,
				&request->arena, &scalar)) {
	case HPX_OK:
		if (scalar.kind == HPX_JSON_LITERAL && hpx_span_eq(scalar.text, HPX_SPAN("null")))
			return HPX_OK;
		if (scalar.kind == HPX_JSON_STRING)
			return take_bare(request, scalar.text, ret_reason);
		*ret_reason = string_text;
		return HPX_INVALID;
	case HPX_TOO_LARGE:
		*ret_reason = string_text;
		return HPX_INVALID;
	case HPX_NOMEM:
		return HPX_NOMEM;
	default:
		return HPX_OK;
	}
}

enum hpx_status hpx_request_key_in_body(struct hpx_request *request, const char **ret_reason)
{
	const struct hpx_key_sources *sources = &request->head.route->key_from;
	enum hpx_status status = HPX_OK;

	HPX_ASSERT(request->body.whole);
	if (request->body.bytes.len == 0)
		return HPX_OK;
	if (hpx_field_known(&request->head.http, HPX_NAME_CONTENT_ENCODING) != NULL) {
		*ret_reason = encoded_text;
		return HPX_INVALID;
	}
	for (size_t i = 0; i < sources->count && status == HPX_OK; i++)
		if (sources->at[i].place == HPX_KEY_IN_BODY)
			status = take_member(request, sources->at[i].name, ret_reason);
	return status;
}
