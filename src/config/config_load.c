/* Loading: the file's bytes, then the steps of parse_context.h in order. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/status.h"
#include "config/parse_context.h"

/* Room for the nodes, names and paths of a file of 1 MiB: a node has some 100 bytes,
 * and the given sets of 1000 routes take 3 MiB. */
#define SCRATCH_BYTES_MAX ((size_t)32 << 20)

void hpx_config_flags_set(struct hpx_config_flags *flags, const char *flag,
			  const char *value)
{
	const struct hpx_option *option;

	for (size_t n = 0; (option = hpx_option_flag(&hpx_config_options, n)) != NULL; n++) {
		if (strcmp(option->flag, flag) != 0)
			continue;
		HPX_ASSERT(n < HPX_CONFIG_FLAG_MAX);
		flags->value[n] = value;
		return;
	}
	HPX_ASSERT(option != NULL);
}

const char *hpx_config_path(const struct hpx_config_flags *flags)
{
	const struct hpx_option *option;

	for (size_t n = 0; (option = hpx_option_flag(&hpx_config_options, n)) != NULL; n++)
		if (option->place == HPX_PLACE_COMMAND)
			return flags->value[n];
	return NULL;
}

static enum hpx_status run_steps(struct hpx_parse_context *context, struct hpx_span text,
				 const struct hpx_config_flags *flags)
{
	enum hpx_status status =
		hpx_yaml_read(text, context->scratch, context->report, &context->tree);

	if (status == HPX_OK)
		status = hpx_parse_values(context, flags);
	if (status == HPX_OK)
		status = hpx_parse_resolve(context);
	/* An option that stands in a part that was not read is not missing. */
	if (status == HPX_OK && context->tree.whole)
		hpx_parse_check(context);
	if (status == HPX_OK && context->report->mistakes > 0)
		status = HPX_INVALID;
	if (status == HPX_OK)
		hpx_route_sort(context->settings->routes, context->settings->route_count);
	return status;
}

enum hpx_status hpx_config_read(struct hpx_span text, const struct hpx_config_flags *flags,
				struct hpx_config_report *report,
				struct hpx_settings **ret_settings)
{
	struct hpx_arena scratch;
	struct hpx_parse_context context = {
		.settings = hpx_settings_new(),
		.report = report,
		.scratch = &scratch,
		.without_secrets = flags->without_secrets,
		.without_gateway = flags->without_gateway,
	};

	if (context.settings == NULL)
		return HPX_NOMEM;
	hpx_arena_init(&scratch, SCRATCH_BYTES_MAX);
	enum hpx_status status = run_steps(&context, text, flags);
	hpx_config_report_sort(report);
	hpx_arena_done(&scratch);
	HPX_ASSERT(status != HPX_OK || report->mistakes == 0);
	if (status == HPX_OK)
		*ret_settings = context.settings;
	else
		hpx_settings_unref(context.settings);
	return status;
}

static enum hpx_status refuse_file(struct hpx_config_report *report, const char *problem,
				   const char *cause)
{
	hpx_config_remark(report, HPX_CONFIG_MISTAKE, 0, 0, HPX_SPAN(""), "%s%s", problem,
			  cause);
	return HPX_INVALID;
}

static enum hpx_status read_bytes(int fd, struct hpx_buffer *bytes,
				  struct hpx_config_report *report)
{
	for (;;) {
		char piece[4096];
		ssize_t n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return refuse_file(report, "cannot be read: ", strerror(errno));
		if (n == 0)
			return HPX_OK;
		enum hpx_status status =
			hpx_buffer_append(bytes, hpx_span(piece, (size_t)n));
		if (status == HPX_TOO_LARGE)
			return refuse_file(report, "is larger than 1 MiB, ",
					   "which no configuration is");
		if (status != HPX_OK)
			return status;
	}
}

static enum hpx_status read_file(const char *path, struct hpx_buffer *bytes,
				 struct hpx_config_report *report)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return refuse_file(report, "cannot be opened: ", strerror(errno));
	enum hpx_status status = read_bytes(fd, bytes, report);
	close(fd);
	return status;
}

enum hpx_status hpx_config_load(const struct hpx_config_flags *flags,
				struct hpx_config_report *report,
				struct hpx_settings **ret_settings)
{
	const char *path = hpx_config_path(flags);
	struct hpx_buffer bytes;
	enum hpx_status status = HPX_OK;

	hpx_buffer_init(&bytes, HPX_CONFIG_FILE_BYTES_MAX);
	if (path != NULL)
		status = read_file(path, &bytes, report);
	if (status == HPX_OK)
		status = hpx_config_read(hpx_buffer_span(&bytes), flags, report,
					 ret_settings);
	hpx_buffer_done(&bytes);
	return status;
}
