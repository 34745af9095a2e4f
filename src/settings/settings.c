/* Making, sharing and freeing settings, and finding in them by name. Filling them is the
 * task of config/; peers are peer.c's. */
#include "settings/settings.h"

#include <stdlib.h>

#include "base/status.h"

/* A configuration file has at most 1 MiB; the segments, lists and routes that are
 * made of it take a few times that. */
#define ARENA_BYTES_MAX ((size_t)32 << 20)

struct hpx_settings *hpx_settings_new(void)
{
	struct hpx_settings *settings = calloc(1, sizeof(*settings));

	if (settings == NULL)
		return NULL;
	atomic_init(&settings->references, 1);
	hpx_arena_init(&settings->arena, ARENA_BYTES_MAX);
	return settings;
}

struct hpx_settings *hpx_settings_ref(struct hpx_settings *settings)
{
	unsigned before =
		atomic_fetch_add_explicit(&settings->references, 1, memory_order_relaxed);

	HPX_ASSERT(before > 0);
	return settings;
}

void hpx_settings_unref(struct hpx_settings *settings)
{
	if (settings == NULL)
		return;
	unsigned before =
		atomic_fetch_sub_explicit(&settings->references, 1, memory_order_acq_rel);
	HPX_ASSERT(before > 0);
	if (before > 1)
		return;
	hpx_arena_done(&settings->arena);
	free(settings);
}

const struct hpx_job_target *hpx_settings_find_target(const struct hpx_settings *settings,
						      struct hpx_span name)
{
	for (size_t i = 0; i < settings->target_count; i++)
		if (hpx_span_eq(settings->targets[i].name, name))
			return &settings->targets[i];
	return NULL;
}

const struct hpx_route *hpx_settings_find_route(const struct hpx_settings *settings,
						struct hpx_span pattern)
{
	for (size_t i = 0; i < settings->route_count; i++)
		if (hpx_span_eq(settings->routes[i].pattern, pattern))
			return &settings->routes[i];
	return hpx_span_eq(settings->fallback.pattern, pattern) ? &settings->fallback : NULL;
}

bool hpx_settings_only_unix(const struct hpx_settings *settings)
{
	for (size_t i = 0; i < settings->listener_count; i++)
		if (!settings->listeners[i].address.is_unix)
			return false;
	return true;
}
