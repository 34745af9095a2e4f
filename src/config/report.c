/* The list of remarks. Text from the file is made harmless here, once, before it
 * is printed on a terminal: control bytes become '?'. */
#include "config/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/status.h"

#define ARENA_BYTES_MAX ((size_t)256 << 10)
#define MESSAGE_MAX 600
#define OPTION_MAX 80

void hpx_config_report_init(struct hpx_config_report *report)
{
	*report = (struct hpx_config_report){ .count = 0 };
	hpx_arena_init(&report->arena, ARENA_BYTES_MAX);
}

void hpx_config_report_done(struct hpx_config_report *report)
{
	hpx_arena_done(&report->arena);
	report->count = 0;
}

static struct hpx_span harmless(struct hpx_span text, size_t max, struct hpx_arena *arena)
{
	char *out = hpx_arena_alloc(arena, text.len < max ? text.len : max);
	struct hpx_span character;
	bool printable;
	size_t len = 0;

	if (out == NULL)
		return HPX_SPAN("(no memory for the text)");
	while (hpx_utf8_next(&text, &character, &printable) && len + character.len <= max) {
		memcpy(out + len, printable ? character.ptr : "?", printable ? character.len : 1);
		len += printable ? character.len : 1;
	}
	return hpx_span(out, len);
}

void hpx_config_remark(struct hpx_config_report *report, enum hpx_config_severity severity,
		       unsigned line, unsigned column, struct hpx_span option,
		       const char *format, ...)
{
	char message[MESSAGE_MAX];
	va_list args;

	report->mistakes += severity == HPX_CONFIG_MISTAKE;
	report->warnings += severity == HPX_CONFIG_WARNING;
	if (report->count == HPX_CONFIG_REMARKS_MAX) {
		report->left_out++;
		return;
	}
	HPX_ASSERT(report->count < HPX_CONFIG_REMARKS_MAX);
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	report->remarks[report->count++] = (struct hpx_config_remark){
		.severity = severity,
		.line = line,
		.column = column,
		.option = harmless(option, OPTION_MAX, &report->arena),
		.message = harmless(hpx_span_of(message), MESSAGE_MAX, &report->arena),
	};
}

static bool comes_before(const struct hpx_config_remark *a,
			 const struct hpx_config_remark *b)
{
	/* Line 0 wraps round to the largest number: last. */
	unsigned left = a->line - 1;
	unsigned right = b->line - 1;

	return left != right ? left < right : a->column < b->column;
}

void hpx_config_report_sort(struct hpx_config_report *report)
{
	for (size_t i = 1; i < report->count; i++) {
		struct hpx_config_remark remark = report->remarks[i];
		size_t at = i;
		for (; at > 0 && comes_before(&remark, &report->remarks[at - 1]); at--)
			report->remarks[at] = report->remarks[at - 1];
		report->remarks[at] = remark;
	}
}

const char *hpx_config_severity_name(enum hpx_config_severity severity)
{
	static const char *const names[] = { "mistake", "warning", "note" };

	HPX_ASSERT(severity < sizeof(names) / sizeof(names[0]));
	return names[severity];
}

static enum hpx_status print_remark(const struct hpx_config_remark *remark,
				    const char *file, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	if (remark->line > 0)
		status = hpx_buffer_printf(out, "%s:%u:%u: ", file ? file : "configuration",
					   remark->line, remark->column);
	else if (file != NULL && !hpx_span_starts(remark->option, HPX_SPAN("--")))
		status = hpx_buffer_printf(out, "%s: ", file);
	if (status == HPX_OK && remark->severity != HPX_CONFIG_MISTAKE)
		status = hpx_buffer_printf(out,
					   "%s: ", hpx_config_severity_name(remark->severity));
	if (status == HPX_OK && remark->option.len > 0)
		status = hpx_buffer_printf(out, "%.*s: ", HPX_SPAN_ARG(remark->option));
	if (status == HPX_OK)
		status = hpx_buffer_printf(out, "%.*s\n", HPX_SPAN_ARG(remark->message));
	return status;
}

enum hpx_status hpx_config_report_print(const struct hpx_config_report *report,
					const char *file, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < report->count && status == HPX_OK; i++)
		status = print_remark(&report->remarks[i], file, out);
	if (status == HPX_OK && report->left_out > 0)
		status = hpx_buffer_printf(out, "and %zu more\n", report->left_out);
	return status;
}
