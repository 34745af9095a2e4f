/* The configuration as commands meet it: its flags, and loading it with every
 * remark on standard error. */
#include "cli/cli.h"

#include <errno.h>

/* All remarks of one report, each within its own bound. */
#define REPORT_BYTES_MAX ((size_t)256 << 10)

size_t hpx_cli_config_flags(struct hpx_config_flags *flags,
			    struct hpx_cli_flag rows[HPX_CONFIG_FLAG_MAX])
{
	const struct hpx_option *option;
	size_t count = 0;

	*flags = (struct hpx_config_flags){ .value = { NULL } };
	for (; (option = hpx_option_flag(count)) != NULL; count++)
		rows[count] = (struct hpx_cli_flag){ option->flag, option->flag_value,
						     option->text, &flags->value[count] };
	return count;
}

int hpx_cli_write(struct hpx_span text, FILE *stream)
{
	size_t written = text.len > 0 ? fwrite(text.ptr, 1, text.len, stream) : 0;

	if (written == text.len && fflush(stream) == 0)
		return HPX_EXIT_OK;
	fprintf(stderr, "hapax: cannot write: %s\n", strerror(errno));
	return HPX_EXIT_FAILED;
}

struct hpx_settings *hpx_cli_load(const struct hpx_config_flags *flags)
{
	struct hpx_config_report report;
	struct hpx_settings *settings = NULL;
	struct hpx_buffer text;

	hpx_config_report_init(&report);
	hpx_buffer_init(&text, REPORT_BYTES_MAX);
	enum hpx_status status = hpx_config_load(flags, &report, &settings);
	if (status == HPX_OK)
		hpx_config_warn_server_error(settings, false, &report);
	enum hpx_status printed =
		hpx_config_report_print(&report, hpx_config_path(flags), &text);
	if (status != HPX_OK || !flags->without_secrets)
		hpx_cli_write(hpx_buffer_span(&text), stderr);
	if (status != HPX_OK && (status != HPX_INVALID || printed != HPX_OK))
		fprintf(stderr, "hapax: the configuration cannot be read: %s\n",
			hpx_status_text(status));
	hpx_buffer_done(&text);
	hpx_config_report_done(&report);
	return settings;
}
