/* Recipes as text: "2 ignore=/metadata/sent_at header=x-currency", the version
 * first. Bytes that are not printable ASCII, spaces and '%' are written as
 * %XX. */
#include "core/recipe.h"

#include "core/json.h"

static const struct hpx_span ignore_word = HPX_SPAN_INIT("ignore=");
static const struct hpx_span header_word = HPX_SPAN_INIT("header=");

enum hpx_status hpx_recipe_sort(const struct hpx_span *items, size_t count,
				struct hpx_recipe_list *ret_list)
{
	struct hpx_recipe_list *list = ret_list;

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
	struct hpx_recipe_list list;
	enum hpx_status status = hpx_recipe_sort(items, count, &list);

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

static enum hpx_status parse_lists(struct hpx_span rest, struct hpx_arena *arena,
				   struct hpx_recipe *recipe)
{
	struct hpx_span *ignore = hpx_arena_zalloc(arena, HPX_RECIPE_LIST_MAX, sizeof(*ignore));
	struct hpx_span *headers = hpx_arena_zalloc(arena, HPX_RECIPE_LIST_MAX, sizeof(*headers));
	struct hpx_span item;
	enum hpx_status status = HPX_OK;

	if (ignore == NULL || headers == NULL)
		return HPX_NOMEM;
	recipe->ignore = ignore;
	recipe->headers = headers;
	while (status == HPX_OK && hpx_span_split(&rest, ' ', &item)) {
		bool is_ignore = hpx_span_starts(item, ignore_word);
		size_t *count = is_ignore ? &recipe->ignore_count : &recipe->header_count;
		struct hpx_span *list = is_ignore ? ignore : headers;
		if (!(is_ignore || hpx_span_starts(item, header_word)) ||
		    *count == HPX_RECIPE_LIST_MAX)
			return HPX_INVALID;
		status = parse_item(hpx_span_skip(item, ignore_word.len), arena, &list[(*count)++]);
	}
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
