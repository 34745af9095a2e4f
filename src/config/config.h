/* The configuration: a YAML file and the flags of the command line, read by
 * the table of options (option.h) into settings. Every mistake is reported,
 * not only the first. */
#ifndef HPX_CONFIG_CONFIG_H
#define HPX_CONFIG_CONFIG_H

#include "base/buffer.h"
#include "config/option.h"
#include "config/report.h"
#include "settings/settings.h"

#define HPX_CONFIG_FILE_BYTES_MAX ((size_t)1 << 20)
#define HPX_CONFIG_ROUTES_MAX 1000

/* The values of the command line: one element per option with a flag, in the order
 * of hpx_option_flag(); NULL where the flag was not given. A switch is "true". The
 * strings are borrowed. */
#define HPX_CONFIG_FLAG_MAX 8
struct hpx_config_flags {
	const char *value[HPX_CONFIG_FLAG_MAX];
	/* The command only looks into the store: no secret is read, because its user
	 * need not be able to read any. */
	bool without_secrets;
	/* No gateway is started by it: `upstream` may be missing, unless a probe asks it. */
	bool without_gateway;
};
/* `flag` is the name without the dashes; the table must have it. `value` NULL: it was
 * not given. */
void hpx_config_flags_set(struct hpx_config_flags *flags, const char *flag,
			  const char *value);
/* The file to read (--config), NULL: none. */
const char *hpx_config_path(const struct hpx_config_flags *flags);

/* Reads the file that the flags name, if they do; flags win over the file.
 * HPX_OK: `*ret_settings` is the caller's reference; the report may have
 * warnings. HPX_INVALID: the report says every mistake. `report` is set up by
 * the caller, who prints and frees it. */
enum hpx_status hpx_config_load(const struct hpx_config_flags *flags,
				struct hpx_config_report *report,
				struct hpx_settings **ret_settings);
/* The same for the text of a file. */
enum hpx_status hpx_config_read(struct hpx_span text, const struct hpx_config_flags *flags,
				struct hpx_config_report *report,
				struct hpx_settings **ret_settings);

/* Warns where no option says what a 5xx of the upstream means, with the question
 * to answer: at each guarded route, or in one line for all. */
void hpx_config_warn_server_error(const struct hpx_settings *settings, bool each,
				  struct hpx_config_report *report);

/* The options that differ between the two settings and cannot change while hapax
 * runs, as "listen, tenant.from, routes[].scope (POST /payments)"; nothing is
 * written where a reload may go ahead. A new route is named where it moves a path
 * from one scope to another. */
enum hpx_status hpx_config_changes(const struct hpx_settings *before,
				   const struct hpx_settings *after,
				   struct hpx_buffer *out);

/* Generated from the table: docs/reference/options.md and etc/hapax.yaml. */
enum hpx_status hpx_config_print_reference(struct hpx_buffer *out);
enum hpx_status hpx_config_print_sample(struct hpx_buffer *out);

#endif
