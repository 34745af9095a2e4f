/* A provider's export, byte by byte: what both formats have in common (a BOM, the bound
 * of a record, errors that name the line), RFC 4180, and JSON lines.
 *
 * CSV (the states of enum hpx_ledger_state):
 *
 *   at start, at value ──"──▶ in quotes ──"──▶ at quote ──"──▶ in quotes
 *        │                                        │
 *        └──any other──▶ in bare                  ├──separator──▶ at value
 *                           └──separator──▶ at value
 *   LF, or CR and LF, ends the row everywhere but in quotes.
 *
 * JSON lines: a line is collected, read as one document, and the columns are looked up
 * in it.
 *
 * A format's byte function gives HPX_LEDGER_MORE, HPX_LEDGER_RECORD when the byte was the
 * last of a record, or HPX_LEDGER_FAILED; its end function also HPX_LEDGER_END. */
#include "core/ledger.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/status.h"

/* An error's list of columns is cut behind the first name past CUT bytes, and
 * a name at NAME: so the list always fits. */
#define LIST_MAX 300
#define LIST_CUT 200
#define LIST_NAME 64

/* Keeps "line N: ..." and gives HPX_LEDGER_FAILED; line 0: without it. */
static enum hpx_ledger_step __attribute__((format(printf, 3, 4)))
fail(struct hpx_ledger *ledger, uint64_t line, const char *format, ...)
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

/* Adds a column's name to the list for an error: "a, b, c", cut where it gets long. */
static void list_column(struct hpx_ledger *ledger, struct hpx_span name)
{
	struct hpx_buffer *list = &ledger->list;
	const char *comma = list->len > 0 ? ", " : "";

	if (list->len > LIST_CUT)
		return;
	name = hpx_span_first(name, LIST_NAME);
	/* Out of memory: the list is cut short, and the error is still reported. */
	if (hpx_buffer_printf(list, "%s%.*s", comma, HPX_SPAN_ARG(name)) == HPX_OK &&
	    list->len > LIST_CUT)
		(void)hpx_buffer_text(list, ", ...");
}

/* Adds a byte to the record, or fails. */
static enum hpx_ledger_step keep(struct hpx_ledger *ledger, char c)
{
	switch (hpx_buffer_byte(&ledger->text, c)) {
	case HPX_OK:
		return HPX_LEDGER_MORE;
	case HPX_TOO_LARGE:
		return fail(ledger, ledger->record_line,
			    "the record is longer than %zu bytes",
			    ledger->settings.record_bytes_max);
	default:
		return fail(ledger, ledger->record_line, "out of memory");
	}
}

/* ---- CSV ---- */

static struct hpx_span csv_field(const struct hpx_ledger *ledger, size_t i)
{
	size_t from = i > 0 ? ledger->ends[i - 1] : 0;

	HPX_ASSERT(i < ledger->field_count);
	/* A buffer that was never written has no memory: the value is empty, not
	 * absent. */
	if (ledger->text.ptr == NULL)
		return HPX_SPAN("");
	return hpx_span(ledger->text.ptr + from, ledger->ends[i] - from);
}

static struct hpx_span list_columns(struct hpx_ledger *ledger)
{
	for (size_t i = 0; i < ledger->field_count; i++)
		list_column(ledger, csv_field(ledger, i));
	return hpx_buffer_span(&ledger->list);
}

static enum hpx_ledger_step find_column(struct hpx_ledger *ledger, size_t which)
{
	struct hpx_span name = ledger->settings.columns[which];
	size_t found = 0;

	for (size_t i = 0; i < ledger->field_count; i++) {
		if (!hpx_span_eq(csv_field(ledger, i), name))
			continue;
		ledger->fields[which] = i;
		found++;
	}
	if (found == 1)
		return HPX_LEDGER_MORE;
	if (found > 1)
		return fail(ledger, ledger->record_line,
			    "the column \"%.*s\" is there %zu times",
			    HPX_SPAN_ARG(name), found);
	struct hpx_span columns = list_columns(ledger);
	return fail(ledger, ledger->record_line,
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
		return fail(ledger, ledger->record_line, "more than %d columns",
			    HPX_LEDGER_FIELDS_MAX);
	ledger->ends[ledger->field_count++] = ledger->text.len;
	ledger->state = HPX_LEDGER_AT_VALUE;
	return HPX_LEDGER_MORE;
}

static enum hpx_ledger_step end_row(struct hpx_ledger *ledger,
				    struct hpx_ledger_record *ret_record)
{
	enum hpx_ledger_step step = end_field(ledger);

	ledger->state = HPX_LEDGER_AT_START;
	if (step != HPX_LEDGER_MORE)
		return step;
	if (ledger->header_count == 0)
		return read_header(ledger);
	if (ledger->field_count != ledger->header_count)
		return fail(ledger, ledger->record_line,
			    "%zu values, but the first row names %zu columns",
			    ledger->field_count, ledger->header_count);
	ledger->record_count++;
	*ret_record = (struct hpx_ledger_record){ .line = ledger->record_line };
	for (size_t i = 0; i < ledger->settings.column_count; i++)
		ret_record->values[i] = csv_field(ledger, ledger->fields[i]);
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
		ledger->state = HPX_LEDGER_AT_CR;
		return HPX_LEDGER_MORE;
	}
	if (!bare)
		return fail(ledger, ledger->line, "text behind a closing quote");
	if (c == '"')
		return fail(ledger, ledger->line,
			    "a quote inside a value that does not begin with one");
	ledger->state = HPX_LEDGER_IN_BARE;
	return keep(ledger, c);
}

static enum hpx_ledger_step begin_value(struct hpx_ledger *ledger, char c,
					struct hpx_ledger_record *ret_record)
{
	if (c != '"')
		return take_outside(ledger, c, true, ret_record);
	ledger->state = HPX_LEDGER_IN_QUOTES;
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
		ledger->state = c == '\r' ? HPX_LEDGER_AT_EMPTY_CR : HPX_LEDGER_AT_START;
		return HPX_LEDGER_MORE;
	}
	return begin_value(ledger, c, ret_record);
}

static enum hpx_ledger_step take_quoted(struct hpx_ledger *ledger, char c)
{
	if (c != '"')
		return keep(ledger, c);
	ledger->state = HPX_LEDGER_AT_QUOTE;
	return HPX_LEDGER_MORE;
}

static enum hpx_ledger_step take_after_quote(struct hpx_ledger *ledger, char c,
					     struct hpx_ledger_record *ret_record)
{
	if (c != '"')
		return take_outside(ledger, c, false, ret_record);
	ledger->state = HPX_LEDGER_IN_QUOTES;
	return keep(ledger, c);
}

static enum hpx_ledger_step take_after_cr(struct hpx_ledger *ledger, char c,
					  struct hpx_ledger_record *ret_record)
{
	if (c != '\n')
		return fail(ledger, ledger->line,
			    "a carriage return without a line feed");
	if (ledger->state == HPX_LEDGER_AT_CR)
		return end_row(ledger, ret_record);
	ledger->state = HPX_LEDGER_AT_START;
	return HPX_LEDGER_MORE;
}

static enum hpx_ledger_step csv_byte(struct hpx_ledger *ledger, char c,
				     struct hpx_ledger_record *ret_record)
{
	switch (ledger->state) {
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

static enum hpx_ledger_step csv_end(struct hpx_ledger *ledger,
				    struct hpx_ledger_record *ret_record)
{
	enum hpx_ledger_step step = HPX_LEDGER_MORE;

	if (ledger->state == HPX_LEDGER_IN_QUOTES)
		return fail(ledger, ledger->quote_line,
			    "the quote that is opened here is never closed");
	if (ledger->state == HPX_LEDGER_AT_CR || ledger->state == HPX_LEDGER_AT_EMPTY_CR)
		return fail(ledger, ledger->line,
			    "a carriage return without a line feed");
	if (ledger->state != HPX_LEDGER_AT_START)
		step = end_row(ledger, ret_record);
	if (step != HPX_LEDGER_MORE)
		return step;
	if (ledger->header_count == 0)
		return fail(ledger, 0,
			    "the file is empty: no row names the columns");
	return HPX_LEDGER_END;
}

/* ---- JSON lines ---- */

/* A column as an RFC 6901 pointer; the buffer has room for it. */
static enum hpx_status add_pointer(struct hpx_span column, struct hpx_buffer *out)
{
	if (column.len > 0 && column.ptr[0] == '/')
		return hpx_json_pointer_valid(column) ? hpx_buffer_append(out, column) : HPX_INVALID;
	enum hpx_status status = hpx_buffer_byte(out, '/');
	for (size_t i = 0; status == HPX_OK && i < column.len; i++) {
		char c = column.ptr[i];
		if (c == '~' || c == '/')
			status = hpx_buffer_text(out, c == '~' ? "~0" : "~1");
		else
			status = hpx_buffer_byte(out, c);
	}
	return status;
}

static enum hpx_status json_init(struct hpx_ledger *ledger)
{
	const struct hpx_ledger_settings *settings = &ledger->settings;
	struct hpx_span pointers[HPX_LEDGER_COLUMNS_MAX];
	size_t room = 0;

	/* Every byte escaped, and the slash. Reserved at once: it must not move,
	 * as the pointers stay where they are put. */
	for (size_t i = 0; i < settings->column_count; i++)
		room += 2 * settings->columns[i].len + 1;
	hpx_buffer_init(&ledger->names, room);
	enum hpx_status status = hpx_buffer_reserve(&ledger->names, room);
	for (size_t i = 0; status == HPX_OK && i < settings->column_count; i++) {
		size_t from = ledger->names.len;
		status = add_pointer(settings->columns[i], &ledger->names);
		pointers[i] = hpx_span(ledger->names.ptr + from, ledger->names.len - from);
	}
	if (status != HPX_OK)
		return status;
	return hpx_json_pointers_init(&ledger->pointers, pointers, settings->column_count);
}

static bool is_blank_line(struct hpx_span line)
{
	for (size_t i = 0; i < line.len; i++)
		if (line.ptr[i] != ' ' && line.ptr[i] != '\t' && line.ptr[i] != '\r')
			return false;
	return true;
}

static enum hpx_ledger_step look_up(struct hpx_ledger *ledger, size_t which,
				    struct hpx_span *ret_value)
{
	struct hpx_span column = ledger->settings.columns[which];
	HPX_ASSERT(which < ledger->settings.column_count);
	uint32_t at = hpx_json_tree_at(&ledger->tree, &ledger->pointers, which);

	if (at == HPX_JSON_NONE)
		return HPX_LEDGER_MORE;
	const struct hpx_json_node *node = &ledger->tree.nodes[at];
	if (node->kind == HPX_JSON_ARRAY || node->kind == HPX_JSON_OBJECT)
		return fail(ledger, ledger->record_line,
			    "the column \"%.*s\" is an array or an object, not a value",
			    HPX_SPAN_ARG(column));
	ledger->seen |= 1u << which;
	if (node->kind != HPX_JSON_LITERAL || !hpx_span_eq(node->text, HPX_SPAN("null")))
		*ret_value = node->text;
	return HPX_LEDGER_MORE;
}

/* The members of the first record, for the error at the end. */
static void list_members(struct hpx_ledger *ledger)
{
	const struct hpx_json_node *nodes = ledger->tree.nodes;

	if (ledger->record_count > 0)
		return;
	for (uint32_t at = nodes[0].first; at != HPX_JSON_NONE; at = nodes[at].next)
		list_column(ledger, nodes[at].name);
}

static enum hpx_ledger_step read_line(struct hpx_ledger *ledger,
				      struct hpx_ledger_record *ret_record)
{
	struct hpx_ledger_record record = { .line = ledger->record_line };
	enum hpx_ledger_step step = HPX_LEDGER_MORE;

	enum hpx_status status = hpx_json_tree_read(hpx_buffer_span(&ledger->text),
						    &hpx_json_limits_default, NULL, 0,
						    &ledger->tree);
	if (status == HPX_NOMEM)
		return fail(ledger, ledger->record_line, "out of memory");
	if (status != HPX_OK || ledger->tree.nodes[0].kind != HPX_JSON_OBJECT)
		return fail(ledger, ledger->record_line, "not one JSON object");
	list_members(ledger);
	for (size_t i = 0; step == HPX_LEDGER_MORE && i < ledger->settings.column_count; i++)
		step = look_up(ledger, i, &record.values[i]);
	if (step != HPX_LEDGER_MORE)
		return step;
	ledger->record_count++;
	record.text = hpx_span_trim(hpx_buffer_span(&ledger->text));
	*ret_record = record;
	return HPX_LEDGER_RECORD;
}

static enum hpx_ledger_step end_line(struct hpx_ledger *ledger,
				     struct hpx_ledger_record *ret_record)
{
	ledger->state = HPX_LEDGER_AT_START;
	if (is_blank_line(hpx_buffer_span(&ledger->text)))
		return HPX_LEDGER_MORE;
	return read_line(ledger, ret_record);
}

static enum hpx_ledger_step json_byte(struct hpx_ledger *ledger, char c,
				      struct hpx_ledger_record *ret_record)
{
	if (ledger->state == HPX_LEDGER_AT_START) {
		hpx_json_tree_done(&ledger->tree);
		ledger->text.len = 0;
		ledger->record_line = ledger->line;
		ledger->state = HPX_LEDGER_IN_BARE;
	}
	return c == '\n' ? end_line(ledger, ret_record) : keep(ledger, c);
}

static enum hpx_ledger_step json_end(struct hpx_ledger *ledger,
				     struct hpx_ledger_record *ret_record)
{
	enum hpx_ledger_step step = HPX_LEDGER_MORE;

	if (ledger->state != HPX_LEDGER_AT_START)
		step = end_line(ledger, ret_record);
	if (step != HPX_LEDGER_MORE)
		return step;
	for (size_t i = 0; i < ledger->settings.column_count; i++) {
		struct hpx_span column = ledger->settings.columns[i];
		/* A file without records says nothing of its columns. */
		if (ledger->record_count > 0 && (ledger->seen & 1u << i) == 0)
			return fail(ledger, 0,
				    "no record has \"%.*s\"; the first has: %.*s",
				    HPX_SPAN_ARG(column), HPX_SPAN_ARG(ledger->list));
	}
	return HPX_LEDGER_END;
}

/* ---- either format ---- */

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
	enum hpx_status status = json_init(ledger);
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

static enum hpx_ledger_step take_byte(struct hpx_ledger *ledger, char c,
				      struct hpx_ledger_record *ret_record)
{
	if (c == '\0')
		return fail(ledger, ledger->line,
			    "a NUL byte: the file must be text in UTF-8");
	uint64_t line = ledger->line;
	enum hpx_ledger_step step = ledger->settings.format == HPX_LEDGER_CSV ?
					    csv_byte(ledger, c, ret_record) :
					    json_byte(ledger, c, ret_record);
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
		       csv_end(ledger, ret_record) :
		       json_end(ledger, ret_record);
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
