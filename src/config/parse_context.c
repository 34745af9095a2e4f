/* Lookups in the parse context: which options were given, and where. */
#include "config/parse_context.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/status.h"

/* Longer than any remark; report.c cuts a longer one. */
#define MESSAGE_SIZE 400

const struct hpx_given *hpx_context_given(const struct hpx_parse_context *context,
					  const char *path,
					  const struct hpx_given_set *route)
{
	struct hpx_span name = hpx_span_of(path);
	const struct hpx_option *option = hpx_option_find(&hpx_config_options, name);
	const struct hpx_given_set *set = &context->global;

	HPX_ASSERT(option != NULL);
	if (hpx_span_starts(name, HPX_SPAN("routes[].")))
		set = route;
	else if (hpx_span_starts(name, HPX_SPAN("defaults.")))
		set = &context->defaults;
	return &set->at[hpx_option_index(&hpx_config_options, option)];
}

struct hpx_location hpx_location_global(const struct hpx_parse_context *context)
{
	return (struct hpx_location){ HPX_SPAN(""), &context->global, 0, 0 };
}

struct hpx_location hpx_location_defaults(const struct hpx_parse_context *context)
{
	return (struct hpx_location){ HPX_SPAN("defaults"), &context->defaults, 0, 0 };
}

struct hpx_location hpx_location_route(const struct hpx_parse_context *context, size_t n)
{
	HPX_ASSERT(n < context->settings->route_count);
	const struct hpx_given_set *set = &context->routes[n];
	const struct hpx_given *match = hpx_context_given(context, "routes[].match", set);

	return (struct hpx_location){ HPX_SPAN("routes[]"), set,
				      context->settings->routes[n].line, match->column };
}

static struct hpx_location location_named(const struct hpx_parse_context *context,
					  const struct hpx_section_given *named, const char *word,
					  struct hpx_span name)
{
	return (struct hpx_location){ hpx_arena_printf(context->scratch, "%s.%.*s", word,
						       HPX_SPAN_ARG(name)),
				      &named->set, named->line, named->column };
}

struct hpx_location hpx_location_target(const struct hpx_parse_context *context, size_t n)
{
	HPX_ASSERT(n < context->settings->target_count);
	return location_named(context, &context->target_sections[n], "targets",
			      context->targets[n].name);
}

struct hpx_location hpx_location_webhook(const struct hpx_parse_context *context, size_t n)
{
	HPX_ASSERT(n < context->settings->webhook_count);
	return location_named(context, &context->webhook_sections[n], "webhooks",
			      context->webhooks[n].name);
}

static struct hpx_span path_of(const struct hpx_location *location, const char *group,
			       const char *name, char out[HPX_OPTION_PATH_SIZE])
{
	snprintf(out, HPX_OPTION_PATH_SIZE, "%.*s%s%s%s", HPX_SPAN_ARG(location->prefix),
		 location->prefix.len > 0 ? "." : "", group, name);
	return hpx_span_of(out);
}

const struct hpx_given *hpx_location_given(const struct hpx_location *location, const char *group,
					   const char *name)
{
	char path[HPX_OPTION_PATH_SIZE];
	const struct hpx_option *option =
		hpx_option_find(&hpx_config_options, path_of(location, group, name, path));

	HPX_ASSERT(option != NULL);
	return &location->set->at[hpx_option_index(&hpx_config_options, option)];
}

bool hpx_location_any_given(const struct hpx_location *location, const char *group)
{
	for (size_t i = 0; i < hpx_config_options.count; i++)
		if (location->set->at[i].given &&
		    hpx_span_starts(hpx_span_of(hpx_config_options.rows[i].name), hpx_span_of(group)))
			return true;
	return false;
}

void hpx_location_remark(struct hpx_parse_context *context, const struct hpx_location *location,
			 enum hpx_config_severity severity, const char *group, const char *name,
			 const char *format, ...)
{
	const struct hpx_given *given = hpx_location_given(location, group, name);
	char path[HPX_OPTION_PATH_SIZE];
	char message[MESSAGE_SIZE];
	va_list args;

	if (given->wrong)
		return;
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	hpx_config_remark(context->report, severity, given->given ? given->line : location->line,
			  given->given ? given->column : location->column,
			  path_of(location, group, name, path), "%s", message);
}
