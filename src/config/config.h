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

/* What the command line says: one place per option with a flag, in the order
 * of hpx_option_flag(); NULL where it was not given. A switch is "true". The
 * strings are borrowed. */
#define HPX_CONFIG_FLAG_MAX 8
struct hpx_config_flags {
	const char *value[HPX_CONFIG_FLAG_MAX];
	/* Nothing is sent or served by these settings, so no secret is read: who
	 * looks into the store need not be able to. */
	bool without_secrets;
};
/* By the flag's name without the dashes; it must be one of the table. */
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
/* The same for a text that is already there. */
enum hpx_status hpx_config_read(struct hpx_span text, const struct hpx_config_flags *flags,
				struct hpx_config_report *report,
				struct hpx_settings **ret_settings);

/* Warns where nobody has said what a 5xx of the upstream means, with the question
 * to answer: at each guarded route, or in one line for all. */
void hpx_config_warn_server_error(const struct hpx_settings *settings, bool each,
				  struct hpx_config_report *report);

/* What differs between the two and cannot change while hapax runs, as
 * "listen, tenant.from, routes[].scope (POST /payments)"; nothing is written
 * where a reload may go ahead. Scopes count as they come out: a new route is
 * named if it moves a path from one scope to another. */
enum hpx_status hpx_config_changes(const struct hpx_settings *before,
				   const struct hpx_settings *after,
				   struct hpx_buffer *out);

/* Generated from the table: docs/reference/options.md and etc/hapax.yaml. */
enum hpx_status hpx_config_print_reference(struct hpx_buffer *out);
enum hpx_status hpx_config_print_sample(struct hpx_buffer *out);

#endif
