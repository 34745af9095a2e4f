/* Any two configurations, one behind the other with a line "---" between: where both are right,
 * going from one to the other and back names the same options as changed. */
#include <stdlib.h>

#include "base/status.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHANGES_MAX (1u << 20)

static struct hpx_settings *read_settings(struct hpx_span text)
{
	static const struct hpx_config_flags flags;
	struct hpx_settings *settings = NULL;
	struct hpx_config_report report;

	hpx_config_report_init(&report);
	(void)hpx_config_read(text, &flags, &report, &settings);
	hpx_config_report_done(&report);
	return settings;
}

static size_t changes(const struct hpx_settings *from, const struct hpx_settings *to)
{
	struct hpx_buffer out;

	hpx_buffer_init(&out, CHANGES_MAX);
	HPX_ASSERT(hpx_config_changes(from, to, &out) == HPX_OK);
	size_t len = out.len;
	hpx_buffer_done(&out);
	return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char between[] = "\n---\n";
	const char *mark = memmem(data, size, between, sizeof(between) - 1);

	setenv("S", "whsec_b25l", 1);
	if (mark == NULL)
		return 0;
	size_t len = (size_t)(mark - (const char *)data) + 1;
	struct hpx_settings *before = read_settings(hpx_span(data, len));
	struct hpx_settings *after = NULL;
	if (before != NULL)
		after = read_settings(hpx_span_skip(hpx_span(data, size), len + sizeof(between) - 2));
	if (after != NULL) {
		HPX_ASSERT((changes(before, after) == 0) == (changes(after, before) == 0));
		HPX_ASSERT(changes(before, before) == 0 && changes(after, after) == 0);
	}
	hpx_settings_unref(before);
	hpx_settings_unref(after);
	return 0;
}
