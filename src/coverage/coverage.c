/* The run itself: its lists, the words of its tables, and what fails. */
#include "coverage/coverage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"

#define ARENA_BYTES_MAX ((size_t)256 << 20)
#define MESSAGE_SIZE 512

void hpx_coverage_init(struct hpx_coverage *coverage)
{
	*coverage = (struct hpx_coverage){ .operations = NULL };
	hpx_library_init(&coverage->library);
	hpx_arena_init(&coverage->arena, ARENA_BYTES_MAX);
}

void hpx_coverage_done(struct hpx_coverage *coverage)
{
	free(coverage->operations);
	free(coverage->findings);
	hpx_arena_done(&coverage->arena);
	hpx_library_done(&coverage->library);
}

/* ---- words ---- */

const char *hpx_key_class_name(enum hpx_key_class class)
{
	static const char *const names[] = {
#define X(name, word, covers, text) word,
		HPX_KEY_CLASS_LIST(X)
#undef X
	};

	HPX_ASSERT(class < sizeof(names) / sizeof(names[0]));
	return names[class];
}

bool hpx_key_class_covers(enum hpx_key_class class)
{
	static const bool covering[] = {
#define X(name, word, covers, text) covers,
		HPX_KEY_CLASS_LIST(X)
#undef X
	};

	HPX_ASSERT(class < sizeof(covering) / sizeof(covering[0]));
	return covering[class];
}

const char *hpx_key_where_name(enum hpx_key_where where)
{
	static const char *const names[] = { "none", "header", "query", "body" };

	HPX_ASSERT(where < sizeof(names) / sizeof(names[0]));
	return names[where];
}

static const struct {
	const char *name;
	enum hpx_finding_level level;
	const char *title;
} rules[] = {
#define X(name, word, level, title) { word, HPX_FINDING_##level, title },
	HPX_FINDING_LIST(X)
#undef X
};

const char *hpx_finding_rule_name(enum hpx_finding_rule rule)
{
	HPX_ASSERT(rule < HPX_RULE_COUNT);
	return rules[rule].name;
}

const char *hpx_finding_rule_title(enum hpx_finding_rule rule)
{
	HPX_ASSERT(rule < HPX_RULE_COUNT);
	return rules[rule].title;
}

enum hpx_finding_level hpx_finding_rule_level(enum hpx_finding_rule rule)
{
	HPX_ASSERT(rule < HPX_RULE_COUNT);
	return rules[rule].level;
}

const char *hpx_finding_level_name(enum hpx_finding_level level)
{
	static const char *const names[] = { "error", "warning", "note" };

	HPX_ASSERT(level < sizeof(names) / sizeof(names[0]));
	return names[level];
}

/* ---- the lists ---- */

/* Room for one more in an array that doubles up to `max`. */
static bool grow(void **array, size_t count, size_t *cap, size_t max, size_t size)
{
	if (count < *cap)
		return true;
	size_t more = *cap > 0 ? 2 * *cap : 64;
	if (more > max)
		more = max;
	void *moved = count < more ? reallocarray(*array, more, size) : NULL;
	if (moved == NULL)
		return false;
	*array = moved;
	*cap = more;
	return true;
}

struct hpx_covered_operation *hpx_coverage_add(struct hpx_coverage *coverage)
{
	void *array = coverage->operations;

	if (!grow(&array, coverage->operation_count, &coverage->operation_cap,
		  HPX_COVERAGE_OPERATIONS_MAX, sizeof(*coverage->operations))) {
		coverage->full = true;
		return NULL;
	}
	coverage->operations = array;
	struct hpx_covered_operation *operation =
		&coverage->operations[coverage->operation_count++];
	*operation = (struct hpx_covered_operation){ .tag = HPX_SPAN(""),
						     .key = { .class = HPX_CLASS_ABSENT } };
	return operation;
}

void hpx_coverage_find(struct hpx_coverage *coverage, enum hpx_finding_rule rule,
		       const struct hpx_covered_operation *operation,
		       struct hpx_source_place place, const char *format, ...)
{
	void *array = coverage->findings;
	char message[MESSAGE_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	struct hpx_span copy = hpx_arena_dup(&coverage->arena, hpx_span_of(message));
	if (copy.ptr == NULL || !grow(&array, coverage->finding_count, &coverage->finding_cap,
				      HPX_COVERAGE_FINDINGS_MAX, sizeof(*coverage->findings))) {
		coverage->full = true;
		return;
	}
	coverage->findings = array;
	coverage->findings[coverage->finding_count++] = (struct hpx_coverage_finding){
		.rule = rule,
		.method = operation->method,
		.path = operation->path,
		.place = place,
		.message = copy,
	};
}

bool hpx_coverage_is_covered(const struct hpx_covered_operation *operation)
{
	/* What is only seen is covered where every request had a key. */
	if (!operation->declared && operation->traffic.keyed > 0 && operation->traffic.unkeyed == 0)
		return true;
	return operation->guarded || hpx_key_class_covers(operation->key.class);
}

bool hpx_coverage_needs_key(const struct hpx_covered_operation *operation)
{
	return operation->key.class != HPX_CLASS_SAFE || operation->guarded;
}

/* ---- what fails ---- */

/* `*` stands for any text, also for none. The last star that was passed is where the
 * comparison goes on after a mismatch, so that it takes no more than text times pattern. */
static bool matches(struct hpx_span pattern, struct hpx_span text)
{
	size_t at = 0, star = pattern.len, resume = 0, i = 0;

	while (i < text.len) {
		if (at < pattern.len && pattern.ptr[at] == '*') {
			star = at++;
			resume = i;
		} else if (at < pattern.len && pattern.ptr[at] == text.ptr[i]) {
			at++;
			i++;
		} else if (star < pattern.len) {
			at = star + 1;
			i = ++resume;
		} else {
			return false;
		}
	}
	while (at < pattern.len && pattern.ptr[at] == '*')
		at++;
	return at == pattern.len;
}

/* "POST /payments*" is about one method, "/payments*" about all. */
static bool is_critical(const struct hpx_coverage_finding *finding, const char *const *patterns)
{
	for (size_t i = 0; patterns[i] != NULL; i++) {
		struct hpx_span pattern = hpx_span_of(patterns[i]);
		size_t space = hpx_span_index(pattern, ' ');
		if (space < pattern.len &&
		    !matches(hpx_span_first(pattern, space), finding->method))
			continue;
		if (space < pattern.len)
			pattern = hpx_span_trim(hpx_span_skip(pattern, space));
		if (matches(pattern, finding->path))
			return true;
	}
	return false;
}

void hpx_coverage_mark_critical(struct hpx_coverage *coverage, const char *const *patterns)
{
	for (size_t i = 0; patterns[0] != NULL && i < coverage->finding_count; i++)
		coverage->findings[i].ignored = !is_critical(&coverage->findings[i], patterns);
}

static bool mark_entry(struct hpx_coverage *coverage, struct hpx_span method, struct hpx_span path,
		       struct hpx_span rule)
{
	bool found = false;

	for (size_t i = 0; i < coverage->finding_count; i++) {
		struct hpx_coverage_finding *finding = &coverage->findings[i];
		if (!hpx_span_eq(finding->path, path) || !hpx_span_eq(finding->method, method) ||
		    !hpx_span_eq(hpx_span_of(hpx_finding_rule_name(finding->rule)), rule))
			continue;
		finding->known = true;
		found = true;
	}
	return found;
}

static bool is_rule(struct hpx_span name)
{
	for (int i = 0; i < HPX_RULE_COUNT; i++)
		if (hpx_span_eq(name, hpx_span_of(rules[i].name)))
			return true;
	return false;
}

/* "POST /v1/refunds key_absent": the path is what stands between the first blank and the
 * last. */
static bool read_entry(struct hpx_span line, struct hpx_span *ret_method, struct hpx_span *ret_path,
		       struct hpx_span *ret_rule)
{
	size_t first = hpx_span_index(line, ' ');
	size_t last = line.len;

	while (last > first && line.ptr[last - 1] != ' ')
		last--;
	if (first == line.len || last < first + 2)
		return false;
	*ret_method = hpx_span_first(line, first);
	*ret_path = hpx_span(line.ptr + first + 1, last - first - 2);
	*ret_rule = hpx_span_skip(line, last);
	return is_rule(*ret_rule);
}

enum hpx_status hpx_coverage_mark_known(struct hpx_coverage *coverage, struct hpx_span baseline,
					struct hpx_buffer *stale, size_t *ret_stale,
					unsigned *ret_line)
{
	struct hpx_span line, method, path, rule;
	enum hpx_status status = HPX_OK;

	*ret_stale = 0;
	for (unsigned number = 1; status == HPX_OK && hpx_span_line(&baseline, &line); number++) {
		line = hpx_span_trim(line);
		if (line.len == 0 || line.ptr[0] == '#')
			continue;
		if (!read_entry(line, &method, &path, &rule)) {
			*ret_line = number;
			return HPX_INVALID;
		}
		if (mark_entry(coverage, method, path, rule))
			continue;
		++*ret_stale;
		status = hpx_buffer_printf(stale, "%.*s\n", HPX_SPAN_ARG(line));
	}
	return status;
}

size_t hpx_coverage_gaps(const struct hpx_coverage *coverage)
{
	size_t gaps = 0;

	for (size_t i = 0; i < coverage->finding_count; i++) {
		const struct hpx_coverage_finding *finding = &coverage->findings[i];
		gaps += hpx_finding_rule_level(finding->rule) == HPX_FINDING_ERROR &&
			!finding->known && !finding->ignored;
	}
	return gaps;
}
