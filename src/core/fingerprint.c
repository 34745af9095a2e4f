/* The fingerprint: a list of length-prefixed parts under SHA-256. Each form a
 * body can take has its own tag, so that no body in one form can be mistaken
 * for another body in another. */
#include "core/fingerprint.h"

#include "core/form.h"
#include "core/inflate.h"
#include "core/json.h"
#include "core/recipe.h"

const struct hpx_span hpx_method_override[HPX_METHOD_OVERRIDE_COUNT] = {
	HPX_SPAN_INIT("x-http-method-override"),
	HPX_SPAN_INIT("x-http-method"),
	HPX_SPAN_INIT("x-method-override"),
};

/* The tags are hashed: their texts belong to every recipe version. */
#define BODY_FORM_LIST(X) X(RAW, "raw") X(JSON, "json") X(FORM, "form") X(MULTIPART, "multipart")

enum body_form {
#define X(name, tag) FORM_##name,
	BODY_FORM_LIST(X)
#undef X
};

static const char *const body_tags[] = {
#define X(name, tag) tag,
	BODY_FORM_LIST(X)
#undef X
};

/* A part that may be missing: absent and empty differ. */
static void add_optional(struct hpx_sha256 *hash, bool present, struct hpx_span part)
{
	hpx_sha256_part(hash, present ? HPX_SPAN("present") : HPX_SPAN("absent"));
	if (present)
		hpx_sha256_part(hash, part);
}

/* One part in lower case, without a copy of the whole: its length as a part of
 * its own, then the bytes. */
static void add_lower(struct hpx_sha256 *hash, struct hpx_span text)
{
	char piece[256];

	hpx_sha256_part(hash, hpx_decimal(text.len, piece));
	while (text.len > 0) {
		struct hpx_span from = hpx_span_first(text, sizeof(piece));
		for (size_t i = 0; i < from.len; i++) {
			char c = from.ptr[i];
			piece[i] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
		}
		hpx_sha256_add(hash, hpx_span(piece, from.len));
		text = hpx_span_skip(text, from.len);
	}
}

static void add_optional_lower(struct hpx_sha256 *hash, struct hpx_span text)
{
	hpx_sha256_part(hash, text.ptr ? HPX_SPAN("present") : HPX_SPAN("absent"));
	if (text.ptr != NULL)
		add_lower(hash, text);
}

static struct hpx_span media_type(struct hpx_span content_type)
{
	if (content_type.ptr == NULL)
		return content_type;
	return hpx_span_trim(hpx_span_first(content_type, hpx_span_index(content_type, ';')));
}

static bool ends_with(struct hpx_span s, struct hpx_span end)
{
	return s.len >= end.len && hpx_span_ieq(hpx_span_skip(s, s.len - end.len), end);
}

static enum body_form form_of(struct hpx_span type)
{
	if (type.ptr == NULL)
		return FORM_RAW;
	if (hpx_span_ieq(type, HPX_SPAN("application/json")) || ends_with(type, HPX_SPAN("+json")))
		return FORM_JSON;
	if (hpx_span_ieq(type, HPX_SPAN("application/x-www-form-urlencoded")))
		return FORM_FORM;
	if (hpx_span_istarts(type, HPX_SPAN("multipart/")))
		return FORM_MULTIPART;
	return FORM_RAW;
}

static enum hpx_status canonicalise(enum body_form form, const struct hpx_recipe *recipe,
				    struct hpx_span content_type, struct hpx_span body,
				    struct hpx_buffer *out)
{
	switch (form) {
	case FORM_JSON:
		return hpx_json_canonical(body, &hpx_json_limits_default, recipe->ignore,
					  recipe->ignore_count, out);
	case FORM_FORM:
		return hpx_form_canonical(body, out);
	case FORM_MULTIPART:
		return hpx_multipart_canonical(recipe->version == 1 ? HPX_MULTIPART_PARTS :
								      HPX_MULTIPART_WHOLE,
					       content_type, body, out);
	case FORM_RAW:
		break;
	}
	return HPX_UNSUPPORTED;
}

/* Tag and canonical form; where that cannot be had, the bytes as they are. */
static enum hpx_status add_canonical(struct hpx_sha256 *hash, const struct hpx_recipe *recipe,
				     struct hpx_span content_type, struct hpx_span body,
				     size_t work_bytes_max)
{
	enum body_form form = form_of(media_type(content_type));
	struct hpx_buffer canonical;

	hpx_buffer_init(&canonical, work_bytes_max);
	enum hpx_status status = canonicalise(form, recipe, content_type, body, &canonical);
	if (status == HPX_OK)
		body = hpx_buffer_span(&canonical);
	else
		form = FORM_RAW;
	hpx_sha256_part(hash, hpx_span_of(body_tags[form]));
	hpx_sha256_part(hash, body);
	hpx_buffer_done(&canonical);
	return status == HPX_NOMEM ? status : HPX_OK;
}

/* A coding that can be undone does not count, one that cannot does. */
static enum hpx_status add_body(struct hpx_sha256 *hash, const struct hpx_recipe *recipe,
				const struct hpx_meaning *meaning, size_t work_bytes_max)
{
	struct hpx_span coding = hpx_span_trim(meaning->content_encoding);
	struct hpx_span none = { NULL, 0 };
	struct hpx_buffer decoded;

	if (coding.len == 0 || hpx_span_ieq(coding, HPX_SPAN("identity"))) {
		add_optional_lower(hash, none);
		return add_canonical(hash, recipe, meaning->content_type, meaning->body,
				     work_bytes_max);
	}
	hpx_buffer_init(&decoded, work_bytes_max);
	enum hpx_status status = hpx_inflate(coding, meaning->body, &decoded);
	if (status == HPX_OK) {
		add_optional_lower(hash, none);
		status = add_canonical(hash, recipe, meaning->content_type,
				       hpx_buffer_span(&decoded), work_bytes_max);
	} else if (status != HPX_NOMEM) {
		add_optional_lower(hash, coding);
		status = add_canonical(hash, recipe, none, meaning->body, work_bytes_max);
	}
	hpx_buffer_done(&decoded);
	return status;
}

static enum hpx_status add_query(struct hpx_sha256 *hash, struct hpx_span query,
				 size_t work_bytes_max)
{
	struct hpx_buffer canonical;
	enum body_form form = FORM_FORM;

	hpx_sha256_part(hash, query.ptr ? HPX_SPAN("present") : HPX_SPAN("absent"));
	if (query.ptr == NULL)
		return HPX_OK;
	hpx_buffer_init(&canonical, work_bytes_max);
	enum hpx_status status = hpx_form_canonical(query, &canonical);
	if (status == HPX_OK)
		query = hpx_buffer_span(&canonical);
	else
		form = FORM_RAW;
	hpx_sha256_part(hash, hpx_span_of(body_tags[form]));
	hpx_sha256_part(hash, query);
	hpx_buffer_done(&canonical);
	return status == HPX_NOMEM ? status : HPX_OK;
}

static void add_headers(struct hpx_sha256 *hash, const struct hpx_recipe_list *names,
			const struct hpx_meaning *meaning)
{
	for (size_t i = 0; i < names->count; i++) {
		struct hpx_span value = meaning->header(meaning->user, names->items[i]);
		hpx_sha256_part(hash, names->items[i]);
		add_optional(hash, value.ptr != NULL, value);
	}
}

/* Only those that are there, behind all else: what the recipe names comes in a
 * number that its id fixes, so that nothing else can be read as one of these. */
static void add_method_overrides(struct hpx_sha256 *hash, const struct hpx_meaning *meaning)
{
	for (size_t i = 0; i < HPX_METHOD_OVERRIDE_COUNT; i++) {
		struct hpx_span value = meaning->header(meaning->user, hpx_method_override[i]);
		if (value.ptr == NULL)
			continue;
		hpx_sha256_part(hash, hpx_method_override[i]);
		hpx_sha256_part(hash, value);
	}
}

enum hpx_status hpx_fingerprint(const struct hpx_recipe *recipe,
				const struct hpx_meaning *meaning, size_t work_bytes_max,
				uint8_t ret_fingerprint[HPX_SHA256_SIZE])
{
	struct hpx_recipe_list names;
	struct hpx_recipe_id id;
	struct hpx_sha256 hash;
	uint8_t digest[HPX_SHA256_SIZE];

	enum hpx_status status = HPX_OK;
	if (recipe->id != NULL)
		id = *recipe->id;
	else
		status = hpx_recipe_id(recipe, &id);
	if (status == HPX_OK)
		status = hpx_recipe_sort(recipe->headers, recipe->header_count, &names);
	if (status != HPX_OK)
		return status == HPX_NOMEM ? status : HPX_UNSUPPORTED;

	hpx_sha256_init(&hash);
	hpx_sha256_part(&hash, hpx_span(id.bytes, sizeof(id.bytes)));
	hpx_sha256_part(&hash, meaning->method);
	hpx_sha256_part(&hash, meaning->path);
	status = add_query(&hash, meaning->query, work_bytes_max);
	add_optional_lower(&hash, media_type(meaning->content_type));
	enum hpx_status body_status = add_body(&hash, recipe, meaning, work_bytes_max);
	add_headers(&hash, &names, meaning);
	if (recipe->version > 1)
		add_method_overrides(&hash, meaning);
	enum hpx_status hash_status = hpx_sha256_done(&hash, digest);
	status = status != HPX_OK ? status : body_status != HPX_OK ? body_status :
								     hash_status;
	if (status == HPX_OK)
		memcpy(ret_fingerprint, digest, sizeof(digest));
	return status;
}
