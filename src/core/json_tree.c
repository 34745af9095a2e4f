/* Reads RFC 8259 into a tree: one pass, one explicit stack of the containers that are
 * open. Everything is bounded by the limits and the text's length. Strings come in as
 * RFC 8259 §7 has them and go out as RFC 8785 §3.2.2.2 has them. */
#include "core/json_tree.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/span.h"
#include "base/status.h"
#include "core/json.h"
#include "core/number.h"

/* ---- strings ---- */

/* The letters of the short escapes and what they stand for. */
static const char escape_letters[] = "\"\\/bfnrt";
static const char escape_bytes[] = "\"\\/\b\f\n\r\t";

static bool read_unit(struct hpx_span s, uint32_t *ret_unit)
{
	unsigned char bytes[2];

	if (s.len < 6 || s.ptr[0] != '\\' || s.ptr[1] != 'u' ||
	    !hpx_hex_decode(hpx_span(s.ptr + 2, 4), bytes, sizeof(bytes)))
		return false;
	*ret_unit = (uint32_t)bytes[0] << 8 | bytes[1];
	return true;
}

/* The length of the escape at the front of `s` (a surrogate pair is one), 0
 * where it is not well formed. */
static size_t read_escape(struct hpx_span s, uint32_t *ret_code)
{
	uint32_t high;
	uint32_t low;

	if (s.len < 2)
		return 0;
	const char *letter = memchr(escape_letters, s.ptr[1], sizeof(escape_letters) - 1);
	if (letter != NULL) {
		*ret_code = (uint32_t)escape_bytes[letter - escape_letters];
		return 2;
	}
	if (!read_unit(s, &high))
		return 0;
	if (high < 0xd800 || high > 0xdfff) {
		*ret_code = high;
		return 6;
	}
	if (high > 0xdbff || !read_unit(hpx_span_skip(s, 6), &low) || low < 0xdc00 ||
	    low > 0xdfff)
		return 0;
	*ret_code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
	return 12;
}

/* Nothing below 0x20 or above 0x7f, no quote and no backslash among eight bytes. A
 * byte is below n where subtracting n borrows into its highest bit, if that was
 * not set before; and it is n where it is zero after XOR with n. */
static bool are_plain(const char *bytes)
{
	const uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
	uint64_t low = (word - ones * 0x20) | (quote - ones) | (backslash - ones);
	return ((low | word) & highs) == 0;
}

static size_t skip_plain(struct hpx_span s, size_t at)
{
	while (s.len - at >= sizeof(uint64_t) && are_plain(s.ptr + at))
		at += sizeof(uint64_t);
	return at;
}

/* The string at the front of `*rest`, which begins with its quote: what stands
 * between the quotes, and whether there is an escape in it. Moves `*rest`
 * behind it. HPX_INVALID: no end, a control byte, a bad escape, a lone
 * surrogate, invalid UTF-8. */
static enum hpx_status string_read(struct hpx_span *rest, struct hpx_span *ret_inside,
				   bool *ret_escaped)
{
	struct hpx_span s = *rest;
	bool escaped = false;
	uint32_t code;

	HPX_ASSERT(s.len > 0 && s.ptr[0] == '"');
	size_t at = skip_plain(s, 1);

	while (at < s.len && s.ptr[at] != '"') {
		unsigned char c = (unsigned char)s.ptr[at];
		size_t n = 1;
		if (c == '\\') {
			n = read_escape(hpx_span_skip(s, at), &code);
			escaped = true;
		} else if (c >= 0x80) {
			n = hpx_utf8_sequence(hpx_span_skip(s, at));
		} else if (c < 0x20) {
			n = 0;
		}
		if (n == 0)
			return HPX_INVALID;
		at = skip_plain(s, at + n);
	}
	if (at >= s.len)
		return HPX_INVALID;
	*ret_inside = hpx_span(s.ptr + 1, at - 1);
	*ret_escaped = escaped;
	*rest = hpx_span_skip(s, at + 1);
	return HPX_OK;
}

/* What the inside of a string that was read means, as UTF-8 into `out`, which
 * has room for inside.len bytes. Returns the length. */
static size_t string_decode(struct hpx_span inside, char *out)
{
	size_t len = 0;

	while (inside.len > 0) {
		size_t plain = hpx_span_index(inside, '\\');
		memcpy(out + len, inside.ptr, plain);
		len += plain;
		inside = hpx_span_skip(inside, plain);
		if (inside.len > 0) {
			uint32_t code = 0;
			size_t n = read_escape(inside, &code);
			HPX_ASSERT(n > 0);
			len += hpx_utf8_encode(code, out + len);
			inside = hpx_span_skip(inside, n);
		}
	}
	return len;
}

static bool needs_escape(char c)
{
	return (unsigned char)c < 0x20 || c == '"' || c == '\\';
}

static enum hpx_status write_escape(char c, struct hpx_buffer *out)
{
	char escape[] = "\\u0000";
	const char *byte = memchr(escape_bytes, c, sizeof(escape_bytes) - 1);

	if (byte != NULL) {
		escape[1] = escape_letters[byte - escape_bytes];
		return hpx_buffer_append(out, hpx_span(escape, 2));
	}
	hpx_hex_encode(&c, 1, escape + 4);
	return hpx_buffer_append(out, hpx_span(escape, 6));
}

enum hpx_status hpx_json_string_write(struct hpx_span text, struct hpx_buffer *out)
{
	enum hpx_status status = hpx_buffer_byte(out, '"');

	while (text.len > 0 && status == HPX_OK) {
		size_t plain = skip_plain(text, 0);
		while (plain < text.len && !needs_escape(text.ptr[plain]))
			plain = skip_plain(text, plain + 1);
		status = hpx_buffer_append(out, hpx_span_first(text, plain));
		text = hpx_span_skip(text, plain);
		if (text.len > 0 && status == HPX_OK) {
			status = write_escape(text.ptr[0], out);
			text = hpx_span_skip(text, 1);
		}
	}
	return status == HPX_OK ? hpx_buffer_byte(out, '"') : status;
}

/* UTF-8 bytes sort as code points do; in UTF-16 the surrogates of U+10000 and
 * above (lead bytes F0 to F4) come before U+E000 to U+FFFF (lead bytes EE and
 * EF). Moving those two lead bytes up gives that order. */
static unsigned rank(char c)
{
	unsigned char u = (unsigned char)c;
	return u == 0xee || u == 0xef ? u + 0x10u : u;
}

/* Order by UTF-16 code units (RFC 8785 §3.2.3) of two valid UTF-8 texts. */
static int string_cmp(struct hpx_span a, struct hpx_span b)
{
	size_t n = a.len < b.len ? a.len : b.len;

	for (size_t i = 0; i < n; i++)
		if (a.ptr[i] != b.ptr[i])
			return rank(a.ptr[i]) < rank(b.ptr[i]) ? -1 : 1;
	return (a.len > b.len) - (a.len < b.len);
}

/* ---- the order of members ---- */

/* The members of an object in RFC 8785 order: a merge sort of the list they already are,
 * which needs no memory and no recursion.
 *
 * Lists of 1, 2, 4, ... members wait for another of their size: 32 of them
 * are enough for every place that 32 bits can name. */
#define RUNS 32

static bool comes_first(const struct hpx_json_tree *tree, uint32_t a, uint32_t b)
{
	return string_cmp(tree->nodes[a].name, tree->nodes[b].name) <= 0;
}

static uint32_t merge(struct hpx_json_tree *tree, uint32_t a, uint32_t b)
{
	uint32_t head = HPX_JSON_NONE;
	uint32_t *link = &head;

	while (a != HPX_JSON_NONE && b != HPX_JSON_NONE) {
		uint32_t *from = comes_first(tree, a, b) ? &a : &b;
		*link = *from;
		link = &tree->nodes[*from].next;
		*from = *link;
	}
	*link = a != HPX_JSON_NONE ? a : b;
	return head;
}

static uint32_t sort_list(struct hpx_json_tree *tree, uint32_t list)
{
	uint32_t runs[RUNS];
	uint32_t all = HPX_JSON_NONE;
	size_t used = 0;

	while (list != HPX_JSON_NONE) {
		uint32_t one = list;
		size_t i = 0;
		list = tree->nodes[one].next;
		tree->nodes[one].next = HPX_JSON_NONE;
		for (; i < used && runs[i] != HPX_JSON_NONE; i++) {
			one = merge(tree, runs[i], one);
			runs[i] = HPX_JSON_NONE;
		}
		HPX_ASSERT(i < RUNS);
		runs[i] = one;
		used = i == used ? used + 1 : used;
	}
	for (size_t i = 0; i < used; i++)
		all = merge(tree, runs[i], all);
	return all;
}

/* Sorts the members of an object by name; HPX_INVALID where two are equal. */
static enum hpx_status sort_members(struct hpx_json_tree *tree, uint32_t object)
{
	uint32_t at = sort_list(tree, tree->nodes[object].first);

	tree->nodes[object].first = at;
	for (; at != HPX_JSON_NONE; at = tree->nodes[at].next) {
		uint32_t next = tree->nodes[at].next;
		if (next != HPX_JSON_NONE &&
		    hpx_span_eq(tree->nodes[at].name, tree->nodes[next].name))
			return HPX_INVALID;
	}
	return HPX_OK;
}

/* ---- the reader ---- */

/* A container that is open, and what of the ignore list goes on below it. */
struct json_frame {
	uint64_t set;
	uint32_t node;
	uint32_t last;
	uint32_t count;
};

struct json_reader {
	struct hpx_span rest;
	const struct hpx_json_limits *limits;
	struct hpx_json_pointers pointers;
	struct hpx_json_tree tree;
	size_t text_len;
	size_t decoded_len;
	struct json_frame *frames;
	size_t frames_cap;
	size_t depth;
	const char *refused; /* why, where it is not the syntax */
};

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void skip_space(struct json_reader *r)
{
	while (r->rest.len > 0 && is_space(r->rest.ptr[0]))
		r->rest = hpx_span_skip(r->rest, 1);
}

static bool take(struct json_reader *r, char c)
{
	if (r->rest.len == 0 || r->rest.ptr[0] != c)
		return false;
	r->rest = hpx_span_skip(r->rest, 1);
	return true;
}

static struct json_frame *top(struct json_reader *r)
{
	return r->depth > 0 ? &r->frames[r->depth - 1] : NULL;
}

/* More room in an array that doubles up to `max` places. */
static enum hpx_status grow(void **array, size_t *cap, size_t max, size_t size)
{
	if (*cap >= max)
		return HPX_INVALID;
	size_t more = *cap > max / 2 ? max : *cap * 2;
	if (more == 0)
		more = max < 16 ? max : 16;
	void *moved = reallocarray(*array, more, size);
	if (moved == NULL)
		return HPX_NOMEM;
	*array = moved;
	*cap = more;
	return HPX_OK;
}

/* A node behind the others of the open container. */
static enum hpx_status add_node(struct json_reader *r, struct hpx_span name, uint32_t *ret_node)
{
	struct hpx_json_tree *tree = &r->tree;
	struct json_frame *frame = top(r);
	/* The root is neither a member nor an element. */
	size_t max = r->limits->members_max < UINT32_MAX - 1 ? r->limits->members_max + 1 :
							       UINT32_MAX - 1;

	if (tree->count == tree->cap) {
		void *nodes = tree->nodes;
		enum hpx_status status = grow(&nodes, &tree->cap, max, sizeof(*tree->nodes));
		if (status == HPX_INVALID)
			r->refused = "too many values";
		if (status != HPX_OK)
			return status;
		tree->nodes = nodes;
	}
	uint32_t at = (uint32_t)tree->count++;
	tree->nodes[at] = (struct hpx_json_node){ .name = name,
						  .parent = frame ? frame->node : HPX_JSON_NONE,
						  .next = HPX_JSON_NONE,
						  .first = HPX_JSON_NONE };
	if (frame != NULL && frame->last == HPX_JSON_NONE)
		tree->nodes[frame->node].first = at;
	else if (frame != NULL)
		tree->nodes[frame->last].next = at;
	if (frame != NULL) {
		frame->last = at;
		frame->count++;
	}
	*ret_node = at;
	return HPX_OK;
}

static enum hpx_status read_string(struct json_reader *r, struct hpx_span *ret_text)
{
	struct hpx_span inside;
	bool escaped;

	if (r->rest.len == 0 || r->rest.ptr[0] != '"')
		return HPX_INVALID;
	enum hpx_status status = string_read(&r->rest, &inside, &escaped);
	if (status != HPX_OK)
		return status;
	if (escaped) {
		/* Decoded strings are never longer than written ones, so that
		 * one block as long as the text holds all of them. */
		if (r->tree.decoded == NULL)
			r->tree.decoded = malloc(r->text_len);
		if (r->tree.decoded == NULL)
			return HPX_NOMEM;
		char *out = r->tree.decoded + r->decoded_len;
		inside = hpx_span(out, string_decode(inside, out));
		r->decoded_len += inside.len;
		HPX_ASSERT(r->decoded_len <= r->text_len);
	}
	*ret_text = inside;
	return HPX_OK;
}

static enum hpx_status read_number(struct json_reader *r, struct hpx_span *ret_text)
{
	struct hpx_number number;
	struct hpx_span from = r->rest;

	enum hpx_status status = hpx_number_read(&r->rest, &number);
	if (status != HPX_OK)
		return status;
	if (hpx_number_digits(&number) > r->limits->digits_max ||
	    llabs(hpx_number_exponent(&number)) > (long long)r->limits->exponent_max)
		return HPX_INVALID;
	*ret_text = hpx_span_first(from, from.len - r->rest.len);
	return HPX_OK;
}

static enum hpx_status read_literal(struct json_reader *r, struct hpx_span *ret_text)
{
	static const struct hpx_span literals[] = {
		HPX_SPAN_INIT("null"), HPX_SPAN_INIT("true"), HPX_SPAN_INIT("false")
	};

	for (size_t i = 0; i < sizeof(literals) / sizeof(literals[0]); i++) {
		if (!hpx_span_starts(r->rest, literals[i]))
			continue;
		r->rest = hpx_span_skip(r->rest, literals[i].len);
		*ret_text = literals[i];
		return HPX_OK;
	}
	return HPX_INVALID;
}

/* The name and colon before a member's value. */
static enum hpx_status read_name(struct json_reader *r, struct hpx_span *ret_name)
{
	skip_space(r);
	enum hpx_status status = read_string(r, ret_name);
	if (status != HPX_OK)
		return status;
	skip_space(r);
	return take(r, ':') ? HPX_OK : HPX_INVALID;
}

static enum hpx_status open_container(struct json_reader *r, uint32_t node,
				      uint64_t set)
{
	if (r->depth == r->frames_cap) {
		void *frames = r->frames;
		enum hpx_status status = grow(&frames, &r->frames_cap, r->limits->depth_max,
					      sizeof(*r->frames));
		if (status == HPX_INVALID)
			r->refused = "nested too deep";
		if (status != HPX_OK)
			return status;
		r->frames = frames;
	}
	r->frames[r->depth++] = (struct json_frame){ set, node, HPX_JSON_NONE, 0 };
	return HPX_OK;
}

/* Whether the ignore list names this new node, and what goes on below it. */
static uint64_t follow(struct json_reader *r, const struct json_frame *frame,
		       struct hpx_span name, bool *ret_ignored)
{
	char index[16];

	*ret_ignored = false;
	if (frame->set == 0)
		return 0;
	if (r->tree.nodes[frame->node].kind == HPX_JSON_ARRAY) {
		int n = snprintf(index, sizeof(index), "%u", (unsigned)(frame->count - 1));
		name = hpx_span(index, (size_t)n);
	}
	return hpx_json_pointers_step(&r->pointers, frame->set, r->depth - 1, name,
				      ret_ignored);
}

static enum hpx_status fill(struct json_reader *r, uint32_t at, uint64_t set)
{
	struct hpx_json_node *node = &r->tree.nodes[at];
	char c = r->rest.len > 0 ? r->rest.ptr[0] : '\0';

	if (take(r, '{') || take(r, '[')) {
		node->kind = c == '{' ? HPX_JSON_OBJECT : HPX_JSON_ARRAY;
		node->text = hpx_span(r->rest.ptr - 1, 1);
		return open_container(r, at, set);
	}
	if (c == '"') {
		node->kind = HPX_JSON_STRING;
		return read_string(r, &node->text);
	}
	if (c == '-' || (c >= '0' && c <= '9')) {
		node->kind = HPX_JSON_NUMBER;
		return read_number(r, &node->text);
	}
	node->kind = HPX_JSON_LITERAL;
	return read_literal(r, &node->text);
}

/* One value with its name, if it is a member; of a container, the opening. */
static enum hpx_status read_value(struct json_reader *r)
{
	struct json_frame *frame = top(r);
	struct hpx_span name = { NULL, 0 };
	uint64_t set = r->pointers.all;
	bool ignored = r->pointers.whole;
	uint32_t node;

	enum hpx_status status = HPX_OK;
	if (frame != NULL && r->tree.nodes[frame->node].kind == HPX_JSON_OBJECT)
		status = read_name(r, &name);
	if (status != HPX_OK)
		return status;
	status = add_node(r, name, &node);
	if (status != HPX_OK)
		return status;
	if (frame != NULL)
		set = follow(r, frame, name, &ignored);
	r->tree.nodes[node].ignored = ignored;
	skip_space(r);
	return fill(r, node, set);
}

/* After a value or an opening: closes what ends here, up to the place where
 * the next value begins (`*ret_more`) or the end of the document. */
static enum hpx_status read_closings(struct json_reader *r, bool *ret_more)
{
	for (struct json_frame *frame = top(r); frame != NULL; frame = top(r)) {
		bool object = r->tree.nodes[frame->node].kind == HPX_JSON_OBJECT;
		skip_space(r);
		if (take(r, object ? '}' : ']')) {
			r->depth--;
			if (object && sort_members(&r->tree, frame->node) != HPX_OK) {
				r->refused = "two members of the object that ends here have one name";
				return HPX_INVALID;
			}
			continue;
		}
		/* Before the first there is no comma. */
		if (frame->count > 0 && !take(r, ','))
			return HPX_INVALID;
		*ret_more = true;
		return HPX_OK;
	}
	skip_space(r);
	*ret_more = false;
	return r->rest.len == 0 ? HPX_OK : HPX_INVALID;
}

/* `r` is set up; on failure it says where and why. */
static enum hpx_status read_document(struct json_reader *r, struct hpx_json_tree *ret_tree)
{
	enum hpx_status status = HPX_OK;
	bool more = true;

	skip_space(r);
	while (status == HPX_OK && more) {
		status = read_value(r);
		if (status == HPX_OK)
			status = read_closings(r, &more);
	}
	free(r->frames);
	HPX_ASSERT(status != HPX_OK || (r->depth == 0 && r->tree.count > 0));
	if (status == HPX_OK)
		*ret_tree = r->tree;
	else
		hpx_json_tree_done(&r->tree);
	return status;
}

enum hpx_status hpx_json_tree_read(struct hpx_span text, const struct hpx_json_limits *limits,
				   const struct hpx_span *ignore, size_t ignore_count,
				   struct hpx_json_tree *ret_tree)
{
	struct json_reader r = { .rest = text, .limits = limits, .text_len = text.len };

	if (text.len >= UINT32_MAX)
		return HPX_TOO_LARGE;
	enum hpx_status status = hpx_json_pointers_init(&r.pointers, ignore, ignore_count);
	if (status == HPX_OK)
		status = read_document(&r, ret_tree);
	hpx_json_pointers_done(&r.pointers);
	return status;
}

enum hpx_status hpx_json_tree_read_document(struct hpx_span text,
					    const struct hpx_json_limits *limits,
					    struct hpx_json_mistake *ret_mistake,
					    struct hpx_json_tree *ret_tree)
{
	struct json_reader r = { .rest = text, .limits = limits, .text_len = text.len };

	if (text.len >= UINT32_MAX)
		return HPX_TOO_LARGE;
	enum hpx_status status = read_document(&r, ret_tree);
	if (status == HPX_INVALID)
		*ret_mistake = (struct hpx_json_mistake){
			text.len - r.rest.len, r.refused != NULL ? r.refused : "this is not JSON"
		};
	return status;
}

void hpx_json_tree_done(struct hpx_json_tree *tree)
{
	free(tree->nodes);
	free(tree->decoded);
	*tree = (struct hpx_json_tree){ .nodes = NULL };
}

uint32_t hpx_json_tree_member(const struct hpx_json_tree *tree, uint32_t of, struct hpx_span name)
{
	if (of == HPX_JSON_NONE || tree->nodes[of].kind != HPX_JSON_OBJECT)
		return HPX_JSON_NONE;
	for (uint32_t at = tree->nodes[of].first; at != HPX_JSON_NONE; at = tree->nodes[at].next)
		if (hpx_span_eq(tree->nodes[at].name, name))
			return at;
	return HPX_JSON_NONE;
}
