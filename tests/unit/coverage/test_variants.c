/* Shows that 2,400 documents made from published ones, by a fixed seed, are read or refused
 * and never crash: cut off anywhere, nested in ways that no schema allows, with members in
 * another order and left out, in JSON and in YAML. A document that is only reordered has
 * the same operations with the same classes. */
#include "../test.h"

#include <dirent.h>

#include "coverage/coverage.h"

#define VARIANTS 2400
#define SOURCES_MAX 32
#define TEXT_MAX ((size_t)32 << 20)
/* Larger sources are thinned out to about this size, so that all variants take seconds. */
#define THIN_BYTES 60000

static uint64_t seed = 16;

/* splitmix64 */
static uint64_t next_random(void)
{
	uint64_t z = (seed += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static bool one_in(uint64_t n)
{
	return n > 0 && next_random() % n == 0;
}

struct variant {
	bool yaml;
	uint64_t drop_one_in; /* members that are left out; 0: none */
	uint64_t nest_one_in; /* values that are put into a list or an allOf; 0: none */
	struct hpx_buffer *out;
};

static void put(struct variant *variant, const char *text)
{
	assert_status(hpx_buffer_text(variant->out, text), HPX_OK);
}

static void put_string(struct variant *variant, struct hpx_span text)
{
	assert_status(hpx_json_string_write(text, variant->out), HPX_OK);
}

static void put_indent(struct variant *variant, unsigned depth)
{
	if (!variant->yaml)
		return;
	put(variant, "\n");
	for (unsigned i = 0; i < depth; i++)
		put(variant, " ");
}

static void write_value(struct variant *variant, const struct hpx_json_tree *tree, uint32_t at,
			unsigned depth);

/* Members in another order each time: first those that a coin chose, then the others. */
static void write_children(struct variant *variant, const struct hpx_json_tree *tree,
			   uint32_t parent, unsigned depth)
{
	bool object = tree->nodes[parent].kind == HPX_JSON_OBJECT;
	bool open = false;
	uint64_t coins = next_random();

	for (int pass = 0; pass < 2; pass++) {
		unsigned n = 0;
		for (uint32_t i = tree->nodes[parent].first; i != HPX_JSON_NONE;
		     i = tree->nodes[i].next, n++) {
			bool now = !object || (coins >> n % 64 & 1) == 0;
			if (object ? now != (pass == 0) : pass == 1)
				continue;
			if (depth > 1 && one_in(variant->drop_one_in))
				continue;
			if (!variant->yaml && open)
				put(variant, ",");
			put_indent(variant, depth);
			open = true;
			if (variant->yaml && !object)
				put(variant, "- ");
			if (object) {
				put_string(variant, tree->nodes[i].name);
				put(variant, ": ");
			}
			write_value(variant, tree, i, depth + 1);
		}
	}
	if (!open)
		put(variant, variant->yaml ? object ? "{}" : "[]" : "");
}

static void write_plain(struct variant *variant, const struct hpx_json_tree *tree, uint32_t at,
			unsigned depth)
{
	const struct hpx_json_node *node = &tree->nodes[at];
	bool object = node->kind == HPX_JSON_OBJECT;

	if (node->kind == HPX_JSON_STRING)
		put_string(variant, node->text);
	else if (!object && node->kind != HPX_JSON_ARRAY)
		assert_status(hpx_buffer_append(variant->out, node->text), HPX_OK);
	else {
		put(variant, variant->yaml ? "" : object ? "{" :
							   "[");
		write_children(variant, tree, at, depth);
		put(variant, variant->yaml ? "" : object ? "}" :
							   "]");
	}
}

static void write_value(struct variant *variant, const struct hpx_json_tree *tree, uint32_t at,
			unsigned depth)
{
	bool nest = depth > 1 && one_in(variant->nest_one_in);
	bool list = nest && one_in(2);

	if (!nest) {
		write_plain(variant, tree, at, depth);
		return;
	}
	if (variant->yaml) {
		put_indent(variant, depth);
		put(variant, list ? "- " : "allOf: ");
		write_plain(variant, tree, at, depth + 1);
		return;
	}
	put(variant, list ? "[" : "{\"allOf\":[");
	write_plain(variant, tree, at, depth + 1);
	put(variant, list ? "]" : "]}");
}

/* ---- sources ---- */

static struct hpx_library sources;

static void open_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	char path[8192];

	assert_non_null(dir);
	for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
		if (strstr(entry->d_name, ".json") == NULL)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		assert_non_null(hpx_library_open(&sources, hpx_span_of(path)));
	}
	closedir(dir);
}

/* How many operations a description has of each class; false: it is refused. */
struct class_count {
	unsigned of[HPX_CLASS_SAFE + 1];
};

static struct hpx_coverage coverage;

static bool count_classes(struct hpx_span path, struct hpx_span text, struct class_count *ret_count)
{
	struct hpx_buffer report;

	hpx_coverage_init(&coverage);
	hpx_buffer_init(&report, TEXT_MAX);
	*ret_count = (struct class_count){ { 0 } };
	const struct hpx_document *document = hpx_library_add(&coverage.library, path, text);
	if (document != NULL)
		hpx_coverage_read_api(&coverage, document);
	hpx_coverage_judge(&coverage);
	for (size_t i = 0; i < coverage.operation_count; i++)
		ret_count->of[coverage.operations[i].key.class]++;
	bool read = coverage.library.error_count == 0;
	/* What is refused says its line. */
	assert_true(read || coverage.library.errors[0].line > 0);
	assert_status(hpx_coverage_print_text(&coverage, &report), HPX_OK);
	hpx_buffer_done(&report);
	hpx_coverage_done(&coverage);
	return read;
}

static unsigned refused;

static void try_variant(unsigned number)
{
	const struct hpx_document *source = sources.documents[number % sources.count];
	unsigned kind = number / (unsigned)sources.count % 4;
	struct hpx_buffer out;
	struct variant variant = { .yaml = number % 2 == 1, .out = &out };
	struct class_count want, got;

	hpx_buffer_init(&out, TEXT_MAX);
	bool thin = source->text.len > 4 * THIN_BYTES || kind == 3;
	variant.drop_one_in = source->text.len > 20 * THIN_BYTES ? 2 : thin ? 4 :
									      0;
	variant.nest_one_in = kind == 2 ? 200 : 0;
	write_value(&variant, &source->tree, 0, 0);
	struct hpx_span text = hpx_buffer_span(&out);
	if (kind == 1)
		text = hpx_span_first(text, next_random() % text.len);
	struct hpx_span path = variant.yaml ? HPX_SPAN("v.yaml") : HPX_SPAN("v.json");
	bool read = count_classes(path, text, &got);
	if (kind == 0 && !thin) {
		assert_true(count_classes(HPX_SPAN("s.json"), hpx_buffer_span(&source->text), &want));
		if (!read || memcmp(&want, &got, sizeof(want)) != 0)
			fail_msg("variant %u of %.*s differs", number, HPX_SPAN_ARG(source->path));
	}
	refused += !read;
	hpx_buffer_done(&out);
}

static void test_variants(void **state)
{
	const char *corpora = test_corpora();
	char path[4096];

	(void)state;
	if (corpora == NULL)
		skip();
	hpx_library_init(&sources);
	snprintf(path, sizeof(path), "%s/openapi/paypal", corpora);
	open_folder(path);
	snprintf(path, sizeof(path), "%s/openapi/square", corpora);
	open_folder(path);
	assert_int_equal(sources.count, 18);
	for (unsigned i = 0; i < VARIANTS; i++)
		try_variant(i);
	/* Cut documents are refused; were all of them read, nothing would have been cut. */
	print_message("%u of %d refused\n", refused, VARIANTS);
	assert_in_range(refused, VARIANTS / 5, VARIANTS / 2);
	hpx_library_done(&sources);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variants),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
