/* Reading lists of signs: which statuses and which words mean a ruling. */
#include "config/member.h"
#include "config/value_list.h"
#include "config/value_outside.h"
#include "settings/external_service.h"

/* Each answer is compared with all of them. */
#define SIGNS_MAX 64
#define WORD_MAX 255
#define SHOWN 60
#define SHOW(text) HPX_SPAN_ARG(hpx_span_first((text), SHOWN))

/* A number of three digits; such a word cannot be listed, and nobody says
 * "404" in a body to mean another thing than the status. */
static bool is_status(struct hpx_span text)
{
	uint64_t number;

	return text.len == 3 && hpx_span_u64(text, 999, &number);
}

static enum hpx_status check_sign(struct hpx_span text, bool status, char *problem)
{
	uint64_t number;

	if (text.len == 0 || text.len > WORD_MAX)
		return hpx_value_refuse(problem, "has a word that does not have 1 to %d "
						 "characters",
					WORD_MAX);
	if (status && (!hpx_span_u64(text, 599, &number) || number < 200))
		return hpx_value_refuse(problem, "\"%.*s\" is no status of an answer: 200 to "
						 "599",
					SHOW(text));
	return HPX_OK;
}

static bool is_twice(const struct hpx_span *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (hpx_span_eq(items[i], items[n]))
			return true;
	return false;
}

enum hpx_status hpx_value_read_matches(const struct hpx_option *option,
				       const struct hpx_span *items, size_t count,
				       struct hpx_arena *arena, void *base, char *problem)
{
	unsigned *statuses = hpx_arena_zalloc(arena, count, sizeof(*statuses));
	struct hpx_span *values = hpx_arena_zalloc(arena, count, sizeof(*values));
	struct hpx_ruling_signs signs = { statuses, 0, values, 0 };
	uint64_t number = 0;

	if (count > SIGNS_MAX)
		return hpx_value_refuse(problem, "has %zu elements; at most %d", count,
					SIGNS_MAX);
	if (statuses == NULL || values == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < count; i++) {
		bool status = option->kind == HPX_OPTION_MATCHES && is_status(items[i]);
		enum hpx_status checked = check_sign(items[i], status, problem);
		if (checked != HPX_OK)
			return checked;
		if (is_twice(items, i))
			return hpx_value_refuse(problem, "names \"%.*s\" twice",
						SHOW(items[i]));
		if (status && hpx_span_u64(items[i], 599, &number)) {
			statuses[signs.status_count++] = (unsigned)number;
			continue;
		}
		values[signs.value_count] = hpx_arena_dup(arena, items[i]);
		if (values[signs.value_count++].ptr == NULL)
			return HPX_NOMEM;
	}
	*(struct hpx_ruling_signs *)hpx_option_member(option, base) = signs;
	return HPX_OK;
}
