/* The report on a configuration: a list of remarks, each with what is wrong, where,
 * and what would be right, so that one run shows every mistake. */
#ifndef HPX_CONFIG_REPORT_H
#define HPX_CONFIG_REPORT_H

#include "base/arena.h"
#include "base/buffer.h"

enum hpx_config_severity {
	HPX_CONFIG_MISTAKE, /* hapax does not start with it */
	HPX_CONFIG_WARNING, /* probably not what was meant */
	HPX_CONFIG_NOTE,    /* good to know */
};

struct hpx_config_remark {
	enum hpx_config_severity severity;
	unsigned line; /* 0: not in the file */
	unsigned column;
	struct hpx_span option; /* dotted, or "--flag"; may be empty */
	struct hpx_span message;
};

/* Past these, remarks are counted but not kept. */
#define HPX_CONFIG_REMARKS_MAX 100

struct hpx_config_report {
	struct hpx_arena arena;
	struct hpx_config_remark remarks[HPX_CONFIG_REMARKS_MAX];
	size_t count;
	size_t left_out;
	size_t mistakes; /* in all, also those left out */
	size_t warnings;
};

void hpx_config_report_init(struct hpx_config_report *report);
void hpx_config_report_done(struct hpx_config_report *report);

/* Control bytes and bytes that are not UTF-8 become '?', long texts are cut. */
void hpx_config_remark(struct hpx_config_report *report, enum hpx_config_severity severity,
		       unsigned line, unsigned column, struct hpx_span option,
		       const char *format, ...) __attribute__((format(printf, 6, 7)));

/* By line and column; remarks without a line come last. */
void hpx_config_report_sort(struct hpx_config_report *report);

/* "hapax.yaml:3:5: defaults.lease: …", one line each; "warning" or "note"
 * stands behind the line and column. `file` NULL: there was none. */
enum hpx_status hpx_config_report_print(const struct hpx_config_report *report,
					const char *file, struct hpx_buffer *out);
const char *hpx_config_severity_name(enum hpx_config_severity severity);

#endif
