/* What both formats have in common: the bytes one by one, a BOM, the bound of
 * a record, and errors that name the line. */
#include "core/ledger.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/ledger_format.h"

/* An error's list of columns is cut behind the first name past CUT bytes, and
 * a name at NAME: so the list always fits. */
#define LIST_MAX 300
#define LIST_CUT 200
#define LIST_NAME 64

static bool settings_valid(const struct hpx_ledger_settings *settings)
{
	if (settings->column_count == 0 || settings->column_count > HPX_LEDGER_COLUMNS_MAX)
		return false;
	if (settings->format == HPX_LEDGER_JSON_LINES)
		return true;
	return settings->separator == ',' || settings->separator == ';' ||
	       settings->separator == '\t';
}

enum hpx_status hpx_ledger_init(struct hpx_ledger *ledger,
				const struct hpx_ledger_settings *settings)
{
	if (!settings_valid(settings))
		return HPX_MISUSE;
	*ledger = (struct hpx_ledger){ .settings = *settings, .line = 1, .record_line = 1 };
	hpx_buffer_init(&ledger->text, settings->record_bytes_max);
	hpx_buffer_init(&ledger->list, LIST_MAX);
	if (settings->format == HPX_LEDGER_CSV)
		return HPX_OK;
	enum hpx_status status = hpx_ledger_json_init(ledger);
	if (status != HPX_OK)
		hpx_ledger_done(ledger);
	return status;
}

void hpx_ledger_done(struct hpx_ledger *ledger)
{
	hpx_json_tree_done(&ledger->tree);
	hpx_json_pointers_done(&ledger->pointers);
	hpx_buffer_done(&ledger->names);
	hpx_buffer_done(&ledger->list);
	hpx_buffer_done(&ledger->text);
}

const char *hpx_ledger_error(const struct hpx_ledger *ledger)
{
	return ledger->error;
}

enum hpx_ledger_step hpx_ledger_fail(struct hpx_ledger *ledger, uint64_t line,
				     const char *format, ...)
{
	char *error = ledger->error;
	size_t at = 0;
	va_list args;

	if (line > 0)
		at = (size_t)snprintf(error, HPX_LEDGER_ERROR_SIZE, "line %" PRIu64 ": ", line);
	va_start(args, format);
	vsnprintf(error + at, HPX_LEDGER_ERROR_SIZE - at, format, args);
	va_end(args);
	/* A file may hold anything, and this is shown on a terminal. */
	for (char *c = error; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	ledger->failed = true;
	return HPX_LEDGER_FAILED;
}

void hpx_ledger_list(struct hpx_ledger *ledger, struct hpx_span name)
{
	struct hpx_buffer *list = &ledger->list;
	const char *comma = list->len > 0 ? ", " : "";

	if (list->len > LIST_CUT)
		return;
	name = hpx_span_first(name, LIST_NAME);
	/* Where memory is short, the list is: the error is said all the same. */
	if (hpx_buffer_printf(list, "%s%.*s", comma, HPX_SPAN_ARG(name)) == HPX_OK &&
	    list->len > LIST_CUT)
		(void)hpx_buffer_text(list, ", ...");
}

enum hpx_ledger_step hpx_ledger_keep(struct hpx_ledger *ledger, char c)
{
	switch (hpx_buffer_byte(&ledger->text, c)) {
	case HPX_OK:
		return HPX_LEDGER_MORE;
	case HPX_TOO_LARGE:
		return hpx_ledger_fail(ledger, ledger->record_line,
				       "the record is longer than %zu bytes",
				       ledger->settings.record_bytes_max);
	default:
		return hpx_ledger_fail(ledger, ledger->record_line, "out of memory");
	}
}

static enum hpx_ledger_step take_byte(struct hpx_ledger *ledger, char c,
				      struct hpx_ledger_record *ret_record)
{
	if (c == '\0')
		return hpx_ledger_fail(ledger, ledger->line,
				       "a NUL byte: the file must be text in UTF-8");
	uint64_t line = ledger->line;
	enum hpx_ledger_step step = ledger->settings.format == HPX_LEDGER_CSV ?
					    hpx_ledger_csv_byte(ledger, c, ret_record) :
					    hpx_ledger_json_byte(ledger, c, ret_record);
	if (c == '\n')
		ledger->line = line + 1;
	return step;
}

/* True when the byte may be part of a BOM and was kept back. If it turns out
 * that there is none, the bytes kept back are the beginning of the file; none
 * of them can end a record. */
static bool is_bom(struct hpx_ledger *ledger, char c, struct hpx_ledger_record *ret_record,
		   enum hpx_ledger_step *ret_step)
{
	static const char bom[] = "\xef\xbb\xbf";
	size_t kept = ledger->bom_len;

	if (kept >= 3)
		return false;
	if (c == bom[kept]) {
		ledger->bom_len++;
		return true;
	}
	ledger->bom_len = 3;
	for (size_t i = 0; i < kept && *ret_step == HPX_LEDGER_MORE; i++)
		*ret_step = take_byte(ledger, bom[i], ret_record);
	return false;
}

static enum hpx_ledger_step end(struct hpx_ledger *ledger, struct hpx_ledger_record *ret_record)
{
	enum hpx_ledger_step step = HPX_LEDGER_MORE;

	/* A file that ends within a BOM: any other byte ends the wait for it. */
	if (ledger->bom_len > 0 && ledger->bom_len < 3)
		is_bom(ledger, 'x', ret_record, &step);
	if (step != HPX_LEDGER_MORE)
		return step;
	return ledger->settings.format == HPX_LEDGER_CSV ?
		       hpx_ledger_csv_end(ledger, ret_record) :
		       hpx_ledger_json_end(ledger, ret_record);
}

enum hpx_ledger_step hpx_ledger_next(struct hpx_ledger *ledger, struct hpx_span *input, bool last,
				     struct hpx_ledger_record *ret_record)
{
	enum hpx_ledger_step step = HPX_LEDGER_MORE;

	if (ledger->failed)
		return HPX_LEDGER_FAILED;
	while (step == HPX_LEDGER_MORE && input->len > 0) {
		char c = input->ptr[0];
		*input = hpx_span_skip(*input, 1);
		if (is_bom(ledger, c, ret_record, &step))
			continue;
		if (step == HPX_LEDGER_MORE)
			step = take_byte(ledger, c, ret_record);
	}
	if (step == HPX_LEDGER_MORE && last)
		step = end(ledger, ret_record);
	return step;
}
