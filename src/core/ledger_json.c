/* JSON lines: a line is collected, read as one document, and the columns are
 * looked up in it. */
#include "core/json_lookup.h"
#include "core/ledger_format.h"

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

enum hpx_status hpx_ledger_json_init(struct hpx_ledger *ledger)
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

static bool is_blank(struct hpx_span line)
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
	uint32_t at = hpx_json_tree_at(&ledger->tree, &ledger->pointers, which);

	if (at == HPX_JSON_NONE)
		return HPX_LEDGER_MORE;
	const struct hpx_json_node *node = &ledger->tree.nodes[at];
	if (node->kind == HPX_JSON_ARRAY || node->kind == HPX_JSON_OBJECT)
		return hpx_ledger_fail(ledger, ledger->record_line,
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
		hpx_ledger_list(ledger, nodes[at].name);
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
		return hpx_ledger_fail(ledger, ledger->record_line, "out of memory");
	if (status != HPX_OK || ledger->tree.nodes[0].kind != HPX_JSON_OBJECT)
		return hpx_ledger_fail(ledger, ledger->record_line, "not one JSON object");
	list_members(ledger);
	for (size_t i = 0; step == HPX_LEDGER_MORE && i < ledger->settings.column_count; i++)
		step = look_up(ledger, i, &record.values[i]);
	if (step != HPX_LEDGER_MORE)
		return step;
	ledger->record_count++;
	*ret_record = record;
	return HPX_LEDGER_RECORD;
}

static enum hpx_ledger_step end_line(struct hpx_ledger *ledger,
				     struct hpx_ledger_record *ret_record)
{
	ledger->place = HPX_LEDGER_AT_START;
	if (is_blank(hpx_buffer_span(&ledger->text)))
		return HPX_LEDGER_MORE;
	return read_line(ledger, ret_record);
}

enum hpx_ledger_step hpx_ledger_json_byte(struct hpx_ledger *ledger, char c,
					  struct hpx_ledger_record *ret_record)
{
	if (ledger->place == HPX_LEDGER_AT_START) {
		hpx_json_tree_done(&ledger->tree);
		ledger->text.len = 0;
		ledger->record_line = ledger->line;
		ledger->place = HPX_LEDGER_IN_BARE;
	}
	return c == '\n' ? end_line(ledger, ret_record) : hpx_ledger_keep(ledger, c);
}

enum hpx_ledger_step hpx_ledger_json_end(struct hpx_ledger *ledger,
					 struct hpx_ledger_record *ret_record)
{
	enum hpx_ledger_step step = HPX_LEDGER_MORE;

	if (ledger->place != HPX_LEDGER_AT_START)
		step = end_line(ledger, ret_record);
	if (step != HPX_LEDGER_MORE)
		return step;
	for (size_t i = 0; i < ledger->settings.column_count; i++) {
		struct hpx_span column = ledger->settings.columns[i];
		/* A file without records says nothing of its columns. */
		if (ledger->record_count > 0 && (ledger->seen & 1u << i) == 0)
			return hpx_ledger_fail(ledger, 0,
					       "no record has \"%.*s\"; the first has: %.*s",
					       HPX_SPAN_ARG(column), HPX_SPAN_ARG(ledger->list));
	}
	return HPX_LEDGER_END;
}
