/* What the tests of the configuration share: reading a text, and failing with
 * the whole report. */
#ifndef HPX_TESTS_CONFIG_TEST_H
#define HPX_TESTS_CONFIG_TEST_H

#include "../test.h"

#include "config/config.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Reads the text; the report as it is printed goes into `out`. */
static inline enum hpx_status test_read(const char *text,
					const struct hpx_config_flags *flags,
					struct hpx_buffer *out,
					struct hpx_settings **ret_settings)
{
	static const struct hpx_config_flags none;
	struct hpx_config_report report;

	hpx_config_report_init(&report);
	enum hpx_status status = hpx_config_read(hpx_span_of(text), flags ? flags : &none,
						 &report, ret_settings);
	assert_status(hpx_config_report_print(&report, "f", out), HPX_OK);
	assert_true((status == HPX_OK) == (report.mistakes == 0));
	hpx_config_report_done(&report);
	return status;
}

/* Reads a text that must be right. */
static inline struct hpx_settings *test_settings(const char *text,
						 const struct hpx_config_flags *flags)
{
	struct hpx_settings *settings = NULL;
	struct hpx_buffer out;

	hpx_buffer_init(&out, 1 << 20);
	enum hpx_status status = test_read(text, flags, &out, &settings);
	if (status != HPX_OK)
		print_error("%.*s", HPX_SPAN_ARG(hpx_buffer_span(&out)));
	assert_status(status, HPX_OK);
	hpx_buffer_done(&out);
	return settings;
}

/* The whole report must be exactly this. */
static inline void test_report(const char *text, const struct hpx_config_flags *flags,
			       enum hpx_status want_status, const char *want)
{
	struct hpx_settings *settings = NULL;
	struct hpx_buffer out;

	hpx_buffer_init(&out, 1 << 20);
	enum hpx_status status = test_read(text, flags, &out, &settings);
	if (status != want_status || !hpx_span_eq(hpx_buffer_span(&out), hpx_span_of(want)))
		fail_msg("for\n%s\ngot %s\n%.*swant %s\n%s", text, hpx_status_name(status),
			 HPX_SPAN_ARG(hpx_buffer_span(&out)), hpx_status_name(want_status),
			 want);
	hpx_buffer_done(&out);
	hpx_settings_unref(settings);
}

#endif
