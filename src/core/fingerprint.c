/* The fingerprint: a list of length-prefixed parts under SHA-256. Each form a body can
 * take has its own tag, so that no body in one form can be mistaken for another body in
 * another.
 *
 * Recipes as text: "2 ignore=/metadata/sent_at header=x-currency", the version first,
 * then the lists in the order ignore, only, header.
 * Bytes that are not printable ASCII, spaces and '%' are written as %XX.
 *
 * Bodies under Content-Encoding are decoded by zlib within a bound: the output grows only
 * as far as its buffer may. */
#include "core/fingerprint.h"

#include <limits.h>

#define ZLIB_CONST /* next_in is const then */
#include <zlib.h>

#include "base/status.h"
#include "core/form.h"
#include "core/json.h"

#define STEP_BYTES 16384
/* How many times its own size a body may have when it is decoded, or this much in any
 * case. Documents that repeat themselves come to some 30 times; deflate can do 1,032, and
 * then the decoding costs far more than the sending did. */
#define RATIO_MAX 64
#define RATIO_FREE_BYTES ((size_t)64 * 1024)

/* inflateInit2's window bits: the largest window, and which wrapper. */
#define WRAP_GZIP (15 + 16)
#define WRAP_ZLIB 15
#define WRAP_NONE (-15)

/* ---- recipes ---- */

static const struct hpx_span ignore_word = HPX_SPAN_INIT("ignore=");
static const struct hpx_span only_word = HPX_SPAN_INIT("only=");
static const struct hpx_span header_word = HPX_SPAN_INIT("header=");

/* A word of a recipe's text, and the list that its items belong to. */
struct recipe_word {
	struct hpx_span word;
	struct hpx_span *list; /* room for HPX_RECIPE_LIST_MAX */
	size_t *count;
};

struct recipe_list {
	struct hpx_span items[HPX_RECIPE_LIST_MAX];
	size_t count;
};

/* Sorted by bytes, each once; HPX_TOO_LARGE for more than the list holds. */
static enum hpx_status sort_list(const struct hpx_span *items, size_t count,
				 struct recipe_list *ret_list)
{
	struct recipe_list *list = ret_list;

	if (count > HPX_RECIPE_LIST_MAX)
		return HPX_TOO_LARGE;
	list->count = 0;
	for (size_t i = 0; i < count; i++) {
		size_t at = list->count;
		while (at > 0 && hpx_span_cmp(list->items[at - 1], items[i]) > 0)
			at--;
		if (at > 0 && hpx_span_eq(list->items[at - 1], items[i]))
			continue;
		memmove(list->items + at + 1, list->items + at,
			(list->count - at) * sizeof(list->items[0]));
		list->items[at] = items[i];
		list->count++;
	}
	HPX_ASSERT(list->count <= count);
	return HPX_OK;
}

/* A field name (RFC 9110 §5.6.2) in lower case. */
static bool is_header_name(struct hpx_span name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];
		bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
			    (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
		if (!good)
			return false;
	}
	return name.len > 0;
}

static enum hpx_status print_item(struct hpx_span word, struct hpx_span item,
				  struct hpx_buffer *out)
{
	enum hpx_status status = hpx_buffer_byte(out, ' ');

	if (status == HPX_OK)
		status = hpx_buffer_append(out, word);
	for (size_t i = 0; i < item.len && status == HPX_OK; i++) {
		char text[] = "%00";
		char c = item.ptr[i];
		if (c > 0x20 && c < 0x7f && c != '%') {
			status = hpx_buffer_byte(out, c);
		} else {
			hpx_hex_encode(&c, 1, text + 1);
			status = hpx_buffer_text(out, text);
		}
	}
	return status;
}

static enum hpx_status print_list(struct hpx_span word, const struct hpx_span *items, size_t count,
				  bool (*valid)(struct hpx_span), struct hpx_buffer *out)
{
	struct recipe_list list;
	enum hpx_status status = sort_list(items, count, &list);

	for (size_t i = 0; status == HPX_OK && i < list.count; i++) {
		if (!valid(list.items[i]))
			return HPX_INVALID;
		status = print_item(word, list.items[i], out);
	}
	return status;
}

static bool is_known_version(uint64_t version)
{
	return version >= 1 && version <= HPX_RECIPE_VERSION;
}

static enum hpx_status print_recipe(const struct hpx_recipe *recipe, struct hpx_buffer *out)
{
	if (!is_known_version(recipe->version))
		return HPX_UNSUPPORTED;
	enum hpx_status status = hpx_buffer_printf(out, "%u", recipe->version);
	if (status == HPX_OK)
		status = print_list(ignore_word, recipe->ignore, recipe->ignore_count,
				    hpx_json_pointer_valid, out);
	if (status == HPX_OK)
		status = print_list(only_word, recipe->only, recipe->only_count,
				    hpx_json_pointer_valid, out);
	if (status == HPX_OK)
		status = print_list(header_word, recipe->headers, recipe->header_count,
				    is_header_name, out);
	return status;
}

enum hpx_status hpx_recipe_print(const struct hpx_recipe *recipe, struct hpx_buffer *out)
{
	struct hpx_buffer text;

	hpx_buffer_init(&text, HPX_RECIPE_TEXT_MAX);
	enum hpx_status status = print_recipe(recipe, &text);
	if (status == HPX_OK)
		status = hpx_buffer_append(out, hpx_buffer_span(&text));
	hpx_buffer_done(&text);
	return status;
}

enum hpx_status hpx_recipe_id(const struct hpx_recipe *recipe, struct hpx_recipe_id *ret_id)
{
	struct hpx_buffer text;
	struct hpx_sha256 hash;
	uint8_t digest[HPX_SHA256_SIZE];

	hpx_buffer_init(&text, HPX_RECIPE_TEXT_MAX);
	enum hpx_status status = print_recipe(recipe, &text);
	if (status == HPX_OK) {
		hpx_sha256_init(&hash);
		hpx_sha256_add(&hash, hpx_buffer_span(&text));
		status = hpx_sha256_done(&hash, digest);
	}
	if (status == HPX_OK)
		memcpy(ret_id->bytes, digest, sizeof(ret_id->bytes));
	hpx_buffer_done(&text);
	return status;
}

static enum hpx_status parse_item(struct hpx_span text, struct hpx_arena *arena,
				  struct hpx_span *ret_item)
{
	char *out = hpx_arena_alloc(arena, text.len);
	size_t len = 0;

	if (out == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < text.len; i++, len++) {
		out[len] = text.ptr[i];
		if (text.ptr[i] != '%')
			continue;
		if (text.len - i < 3 || !hpx_hex_decode(hpx_span(text.ptr + i + 1, 2), out + len, 1))
			return HPX_INVALID;
		i += 2;
	}
	*ret_item = hpx_span(out, len);
	return HPX_OK;
}

/* Adds the item to the list whose word it begins with. */
static enum hpx_status parse_listed(struct hpx_span item, struct hpx_arena *arena,
				    const struct recipe_word *words, size_t word_count)
{
	for (size_t i = 0; i < word_count; i++) {
		const struct recipe_word *word = &words[i];
		if (!hpx_span_starts(item, word->word))
			continue;
		if (*word->count == HPX_RECIPE_LIST_MAX)
			return HPX_INVALID;
		return parse_item(hpx_span_skip(item, word->word.len), arena,
				  &word->list[(*word->count)++]);
	}
	return HPX_INVALID;
}

static enum hpx_status parse_lists(struct hpx_span rest, struct hpx_arena *arena,
				   struct hpx_recipe *recipe)
{
	enum { LISTS = 3 };
	struct hpx_span *items = hpx_arena_zalloc(arena, LISTS * HPX_RECIPE_LIST_MAX, sizeof(*items));
	struct hpx_span item;
	enum hpx_status status = HPX_OK;

	if (items == NULL)
		return HPX_NOMEM;
	const struct recipe_word words[LISTS] = {
		{ ignore_word, items, &recipe->ignore_count },
		{ only_word, items + HPX_RECIPE_LIST_MAX, &recipe->only_count },
		{ header_word, items + 2 * HPX_RECIPE_LIST_MAX, &recipe->header_count },
	};
	recipe->ignore = words[0].list;
	recipe->only = words[1].list;
	recipe->headers = words[2].list;
	while (status == HPX_OK && hpx_span_split(&rest, ' ', &item))
		status = parse_listed(item, arena, words, LISTS);
	return status;
}

/* A recipe has one text; anything that reads as the same recipe but is not
 * that text would get an id that no other process computes. */
static enum hpx_status check_text(const struct hpx_recipe *recipe, struct hpx_span text)
{
	struct hpx_buffer again;

	hpx_buffer_init(&again, HPX_RECIPE_TEXT_MAX);
	enum hpx_status status = print_recipe(recipe, &again);
	if (status == HPX_OK && !hpx_span_eq(hpx_buffer_span(&again), text))
		status = HPX_INVALID;
	hpx_buffer_done(&again);
	return status == HPX_TOO_LARGE ? HPX_INVALID : status;
}

enum hpx_status hpx_recipe_parse(struct hpx_span text, struct hpx_arena *arena,
				 struct hpx_recipe *ret_recipe)
{
	struct hpx_recipe recipe = { 0 };
	struct hpx_span rest = text;
	struct hpx_span word;
	uint64_t version;

	if (text.len > HPX_RECIPE_TEXT_MAX || !hpx_span_split(&rest, ' ', &word) ||
	    !hpx_span_u64(word, UINT32_MAX, &version))
		return HPX_INVALID;
	if (!is_known_version(version))
		return HPX_UNSUPPORTED;
	recipe.version = (unsigned)version;
	enum hpx_status status = parse_lists(rest, arena, &recipe);
	if (status == HPX_OK)
		status = check_text(&recipe, text);
	if (status == HPX_OK)
		*ret_recipe = recipe;
	return status;
}

/* ---- bodies under Content-Encoding ---- */

static enum hpx_status inflate_step(z_stream *stream, struct hpx_buffer *out, int *ret_code)
{
	size_t room = out->max - out->len;

	room = room < STEP_BYTES ? room : STEP_BYTES;
	/* A full buffer is asked for one byte more, which tells a stream that
	 * ends here from one that goes on. */
	Bytef spare;
	enum hpx_status status = hpx_buffer_reserve(out, room);
	if (status != HPX_OK)
		return status;
	stream->next_out = room > 0 ? (Bytef *)out->ptr + out->len : &spare;
	stream->avail_out = room > 0 ? (uInt)room : 1;
	*ret_code = inflate(stream, Z_NO_FLUSH);
	if (room == 0)
		return stream->avail_out == 0 ? HPX_TOO_LARGE : HPX_OK;
	out->len += room - stream->avail_out;
	HPX_ASSERT(out->len <= out->max);
	return HPX_OK;
}

static enum hpx_status inflate_all(z_stream *stream, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;
	int code = Z_OK;

	while (status == HPX_OK && code == Z_OK)
		status = inflate_step(stream, out, &code);
	if (status != HPX_OK)
		return status;
	if (code == Z_MEM_ERROR)
		return HPX_NOMEM;
	return code == Z_STREAM_END && stream->avail_in == 0 ? HPX_OK : HPX_INVALID;
}

static enum hpx_status inflate_wrapped(int wrap, struct hpx_span body, struct hpx_buffer *out)
{
	z_stream stream = { .next_in = (const Bytef *)body.ptr };
	size_t len = out->len;

	if (body.len > UINT_MAX)
		return HPX_TOO_LARGE;
	stream.avail_in = (uInt)body.len;
	if (inflateInit2(&stream, wrap) != Z_OK)
		return HPX_NOMEM;
	enum hpx_status status = inflate_all(&stream, out);
	inflateEnd(&stream);
	if (status != HPX_OK)
		out->len = len;
	return status;
}

/* Appends the body without its coding, which is one of gzip, x-gzip and deflate (with or
 * without the zlib wrapper). HPX_UNSUPPORTED: another coding or several; HPX_INVALID: not
 * a whole stream, or something behind it; HPX_TOO_LARGE: more than `out` may hold. On
 * failure `out` is as it was. */
static enum hpx_status inflate_body(struct hpx_span coding, struct hpx_span body,
				    struct hpx_buffer *out)
{
	if (hpx_span_ieq(coding, HPX_SPAN("gzip")) || hpx_span_ieq(coding, HPX_SPAN("x-gzip")))
		return inflate_wrapped(WRAP_GZIP, body, out);
	if (!hpx_span_ieq(coding, HPX_SPAN("deflate")))
		return HPX_UNSUPPORTED;
	/* RFC 9110 §8.4.1.2: some senders leave the wrapper out. */
	enum hpx_status status = inflate_wrapped(WRAP_ZLIB, body, out);
	if (status == HPX_INVALID)
		status = inflate_wrapped(WRAP_NONE, body, out);
	return status;
}

/* ---- the fingerprint ---- */

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

/* The members that alone count, in one order whatever the configuration's. */
static enum hpx_status select_members(const struct hpx_recipe *recipe, struct hpx_span body,
				      struct hpx_buffer *out)
{
	struct recipe_list only;
	enum hpx_status status = sort_list(recipe->only, recipe->only_count, &only);

	return status == HPX_OK ? hpx_json_canonical_only(body, &hpx_json_limits_default, only.items,
							  only.count, out) :
				  status;
}

static enum hpx_status canonicalise(enum body_form form, const struct hpx_recipe *recipe,
				    struct hpx_span content_type, struct hpx_span body,
				    struct hpx_buffer *out)
{
	switch (form) {
	case FORM_JSON:
		if (recipe->only_count > 0)
			return select_members(recipe, body, out);
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

static bool is_coded(struct hpx_span coding)
{
	return coding.len > 0 && !hpx_span_ieq(coding, HPX_SPAN("identity"));
}

/* The most bytes that a body may have when it is decoded. */
static size_t decoded_max(size_t len, size_t work_bytes_max)
{
	size_t most = len < work_bytes_max / RATIO_MAX ? len * RATIO_MAX : work_bytes_max;
	size_t least = RATIO_FREE_BYTES < work_bytes_max ? RATIO_FREE_BYTES : work_bytes_max;

	return most > least ? most : least;
}

size_t hpx_fingerprint_effort(const struct hpx_meaning *meaning, size_t work_bytes_max)
{
	if (!is_coded(hpx_span_trim(meaning->content_encoding)))
		return meaning->body.len;
	return decoded_max(meaning->body.len, work_bytes_max);
}

/* A coding that can be undone does not count, one that cannot does. */
static enum hpx_status add_body(struct hpx_sha256 *hash, const struct hpx_recipe *recipe,
				const struct hpx_meaning *meaning, size_t work_bytes_max)
{
	struct hpx_span coding = hpx_span_trim(meaning->content_encoding);
	struct hpx_span none = { NULL, 0 };
	struct hpx_buffer decoded;

	if (!is_coded(coding)) {
		add_optional_lower(hash, none);
		return add_canonical(hash, recipe, meaning->content_type, meaning->body,
				     work_bytes_max);
	}
	hpx_buffer_init(&decoded, decoded_max(meaning->body.len, work_bytes_max));
	enum hpx_status status = inflate_body(coding, meaning->body, &decoded);
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

static void add_headers(struct hpx_sha256 *hash, const struct recipe_list *names,
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
	struct recipe_list names;
	struct hpx_recipe_id id;
	struct hpx_sha256 hash;
	uint8_t digest[HPX_SHA256_SIZE];

	enum hpx_status status = HPX_OK;
	if (recipe->id != NULL)
		id = *recipe->id;
	else
		status = hpx_recipe_id(recipe, &id);
	if (status == HPX_OK)
		status = sort_list(recipe->headers, recipe->header_count, &names);
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
