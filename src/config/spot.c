/* Parts of the file by their prefix. */
#include "config/spot.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/assert.h"

/* Longer than any remark of ours; report.c cuts what is too long. */
#define MESSAGE_SIZE 400

struct hpx_spot hpx_spot_global(const struct hpx_reading *reading)
{
	return (struct hpx_spot){ HPX_SPAN(""), &reading->global, 0, 0 };
}

struct hpx_spot hpx_spot_defaults(const struct hpx_reading *reading)
{
	return (struct hpx_spot){ HPX_SPAN("defaults"), &reading->defaults, 0, 0 };
}

struct hpx_spot hpx_spot_route(const struct hpx_reading *reading, size_t n)
{
	const struct hpx_given_set *set = &reading->routes[n];
	const struct hpx_given *match = hpx_reading_given(reading, "routes[].match", set);

	return (struct hpx_spot){ HPX_SPAN("routes[]"), set,
				  reading->settings->routes[n].line, match->column };
}

static struct hpx_spot spot_named(const struct hpx_reading *reading,
				  const struct hpx_named *named, const char *word,
				  struct hpx_span name)
{
	return (struct hpx_spot){ hpx_arena_printf(reading->scratch, "%s.%.*s", word,
						   HPX_SPAN_ARG(name)),
				  &named->set, named->line, named->column };
}

struct hpx_spot hpx_spot_target(const struct hpx_reading *reading, size_t n)
{
	return spot_named(reading, &reading->target_places[n], "targets",
			  reading->targets[n].name);
}

struct hpx_spot hpx_spot_webhook(const struct hpx_reading *reading, size_t n)
{
	return spot_named(reading, &reading->webhook_places[n], "webhooks",
			  reading->webhooks[n].name);
}

static struct hpx_span path_of(const struct hpx_spot *spot, const char *group,
			       const char *name, char out[HPX_OPTION_PATH_SIZE])
{
	snprintf(out, HPX_OPTION_PATH_SIZE, "%.*s%s%s%s", HPX_SPAN_ARG(spot->prefix),
		 spot->prefix.len > 0 ? "." : "", group, name);
	return hpx_span_of(out);
}

const struct hpx_given *hpx_spot_given(const struct hpx_spot *spot, const char *group,
				       const char *name)
{
	char path[HPX_OPTION_PATH_SIZE];
	const struct hpx_option *option = hpx_option_find(path_of(spot, group, name, path));

	HPX_ASSERT(option != NULL);
	return &spot->set->at[hpx_option_index(option)];
}

bool hpx_spot_any_given(const struct hpx_spot *spot, const char *group)
{
	for (size_t i = 0; i < hpx_option_count(); i++)
		if (spot->set->at[i].given &&
		    hpx_span_starts(hpx_span_of(hpx_option_at(i)->name), hpx_span_of(group)))
			return true;
	return false;
}

void hpx_spot_remark(struct hpx_reading *reading, const struct hpx_spot *spot,
		     enum hpx_config_weight weight, const char *group, const char *name,
		     const char *format, ...)
{
	const struct hpx_given *given = hpx_spot_given(spot, group, name);
	char path[HPX_OPTION_PATH_SIZE];
	char message[MESSAGE_SIZE];
	va_list args;

	if (given->wrong)
		return;
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	hpx_config_remark(reading->report, weight, given->given ? given->line : spot->line,
			  given->given ? given->column : spot->column,
			  path_of(spot, group, name, path), "%s", message);
}
