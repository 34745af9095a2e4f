/* RFC 4180, one byte at a time:
 *
 *   at start, at value ──"──▶ in quotes ──"──▶ at quote ──"──▶ in quotes
 *        │                                        │
 *        └──any other──▶ in bare                  ├──separator──▶ at value
 *                           └──separator──▶ at value
 *   LF, or CR and LF, ends the row everywhere but in quotes. */
#include "core/ledger_format.h"

static struct hpx_span field(const struct hpx_ledger *ledger, size_t i)
{
	size_t from = i > 0 ? ledger->ends[i - 1] : 0;

	/* An empty value is there all the same. */
	if (ledger->text.ptr == NULL)
		return HPX_SPAN("");
	return hpx_span(ledger->text.ptr + from, ledger->ends[i] - from);
}

static struct hpx_span list_columns(struct hpx_ledger *ledger)
{
	for (size_t i = 0; i < ledger->field_count; i++)
		hpx_ledger_list(ledger, field(ledger, i));
	return hpx_buffer_span(&ledger->list);
}

static enum hpx_ledger_step find_column(struct hpx_ledger *ledger, size_t which)
{
	struct hpx_span name = ledger->settings.columns[which];
	size_t found = 0;

	for (size_t i = 0; i < ledger->field_count; i++) {
		if (!hpx_span_eq(field(ledger, i), name))
			continue;
		ledger->fields[which] = i;
		found++;
	}
	if (found == 1)
		return HPX_LEDGER_MORE;
	if (found > 1)
		return hpx_ledger_fail(ledger, ledger->record_line,
				       "the column \"%.*s\" is there %zu times",
				       HPX_SPAN_ARG(name), found);
	struct hpx_span columns = list_columns(ledger);
	return hpx_ledger_fail(ledger, ledger->record_line,
			       "there is no column \"%.*s\"; there are: %.*s",
			       HPX_SPAN_ARG(name), HPX_SPAN_ARG(columns));
}

static enum hpx_ledger_step read_header(struct hpx_ledger *ledger)
{
	enum hpx_ledger_step step = HPX_LEDGER_MORE;

	for (size_t i = 0; step == HPX_LEDGER_MORE && i < ledger->settings.column_count; i++)
		step = find_column(ledger, i);
	ledger->header_count = ledger->field_count;
	return step;
}

static enum hpx_ledger_step end_field(struct hpx_ledger *ledger)
{
	if (ledger->field_count == HPX_LEDGER_FIELDS_MAX)
		return hpx_ledger_fail(ledger, ledger->record_line, "more than %d columns",
				       HPX_LEDGER_FIELDS_MAX);
	ledger->ends[ledger->field_count++] = ledger->text.len;
	ledger->place = HPX_LEDGER_AT_VALUE;
	return HPX_LEDGER_MORE;
}

static enum hpx_ledger_step end_row(struct hpx_ledger *ledger,
				    struct hpx_ledger_record *ret_record)
{
	enum hpx_ledger_step step = end_field(ledger);

	ledger->place = HPX_LEDGER_AT_START;
	if (step != HPX_LEDGER_MORE)
		return step;
	if (ledger->header_count == 0)
		return read_header(ledger);
	if (ledger->field_count != ledger->header_count)
		return hpx_ledger_fail(ledger, ledger->record_line,
				       "%zu values, but the first row names %zu columns",
				       ledger->field_count, ledger->header_count);
	ledger->record_count++;
	*ret_record = (struct hpx_ledger_record){ .line = ledger->record_line };
	for (size_t i = 0; i < ledger->settings.column_count; i++)
		ret_record->values[i] = field(ledger, ledger->fields[i]);
	return HPX_LEDGER_RECORD;
}

/* A byte outside of quotes that is no quote: it ends the value, or (where
 * `bare`) belongs to it. */
static enum hpx_ledger_step take_outside(struct hpx_ledger *ledger, char c, bool bare,
					 struct hpx_ledger_record *ret_record)
{
	if (c == ledger->settings.separator)
		return end_field(ledger);
	if (c == '\n')
		return end_row(ledger, ret_record);
	if (c == '\r') {
		ledger->place = HPX_LEDGER_AT_CR;
		return HPX_LEDGER_MORE;
	}
	if (!bare)
		return hpx_ledger_fail(ledger, ledger->line, "text behind a closing quote");
	if (c == '"')
		return hpx_ledger_fail(ledger, ledger->line,
				       "a quote inside a value that does not begin with one");
	ledger->place = HPX_LEDGER_IN_BARE;
	return hpx_ledger_keep(ledger, c);
}

static enum hpx_ledger_step begin_value(struct hpx_ledger *ledger, char c,
					struct hpx_ledger_record *ret_record)
{
	if (c != '"')
		return take_outside(ledger, c, true, ret_record);
	ledger->place = HPX_LEDGER_IN_QUOTES;
	ledger->quote_line = ledger->line;
	return HPX_LEDGER_MORE;
}

static enum hpx_ledger_step begin_row(struct hpx_ledger *ledger, char c,
				      struct hpx_ledger_record *ret_record)
{
	ledger->text.len = 0;
	ledger->field_count = 0;
	ledger->record_line = ledger->line;
	/* An empty line is no row. */
	if (c == '\n' || c == '\r') {
		ledger->place = c == '\r' ? HPX_LEDGER_AT_EMPTY_CR : HPX_LEDGER_AT_START;
		return HPX_LEDGER_MORE;
	}
	return begin_value(ledger, c, ret_record);
}

static enum hpx_ledger_step take_quoted(struct hpx_ledger *ledger, char c)
{
	if (c != '"')
		return hpx_ledger_keep(ledger, c);
	ledger->place = HPX_LEDGER_AT_QUOTE;
	return HPX_LEDGER_MORE;
}

static enum hpx_ledger_step take_after_quote(struct hpx_ledger *ledger, char c,
					     struct hpx_ledger_record *ret_record)
{
	if (c != '"')
		return take_outside(ledger, c, false, ret_record);
	ledger->place = HPX_LEDGER_IN_QUOTES;
	return hpx_ledger_keep(ledger, c);
}

static enum hpx_ledger_step take_after_cr(struct hpx_ledger *ledger, char c,
					  struct hpx_ledger_record *ret_record)
{
	if (c != '\n')
		return hpx_ledger_fail(ledger, ledger->line,
				       "a carriage return without a line feed");
	if (ledger->place == HPX_LEDGER_AT_CR)
		return end_row(ledger, ret_record);
	ledger->place = HPX_LEDGER_AT_START;
	return HPX_LEDGER_MORE;
}

enum hpx_ledger_step hpx_ledger_csv_byte(struct hpx_ledger *ledger, char c,
					 struct hpx_ledger_record *ret_record)
{
	switch (ledger->place) {
	case HPX_LEDGER_AT_START:
		return begin_row(ledger, c, ret_record);
	case HPX_LEDGER_AT_VALUE:
		return begin_value(ledger, c, ret_record);
	case HPX_LEDGER_IN_BARE:
		return take_outside(ledger, c, true, ret_record);
	case HPX_LEDGER_IN_QUOTES:
		return take_quoted(ledger, c);
	case HPX_LEDGER_AT_QUOTE:
		return take_after_quote(ledger, c, ret_record);
	case HPX_LEDGER_AT_CR:
	case HPX_LEDGER_AT_EMPTY_CR:
		break;
	}
	return take_after_cr(ledger, c, ret_record);
}

enum hpx_ledger_step hpx_ledger_csv_end(struct hpx_ledger *ledger,
					struct hpx_ledger_record *ret_record)
{
	enum hpx_ledger_step step = HPX_LEDGER_MORE;

	if (ledger->place == HPX_LEDGER_IN_QUOTES)
		return hpx_ledger_fail(ledger, ledger->quote_line,
				       "the quote that is opened here is never closed");
	if (ledger->place == HPX_LEDGER_AT_CR || ledger->place == HPX_LEDGER_AT_EMPTY_CR)
		return hpx_ledger_fail(ledger, ledger->line,
				       "a carriage return without a line feed");
	if (ledger->place != HPX_LEDGER_AT_START)
		step = end_row(ledger, ret_record);
	if (step != HPX_LEDGER_MORE)
		return step;
	if (ledger->header_count == 0)
		return hpx_ledger_fail(ledger, 0,
				       "the file is empty: no row names the columns");
	return HPX_LEDGER_END;
}
