/* Any export (the first byte chooses format, separator and where it is cut):
 * in pieces it reads as it does at once, and records that are written out as
 * CSV read back the same. */
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "core/ledger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORD_MAX 256
#define OUT_MAX (4u << 20)

static const struct hpx_span columns[] = { HPX_SPAN_INIT("id"), HPX_SPAN_INIT("amount"),
					   HPX_SPAN_INIT("/a/0") };
#define COLUMN_COUNT 3

static void add(struct hpx_buffer *out, struct hpx_span text)
{
	HPX_ASSERT(hpx_buffer_append(out, text) == HPX_OK);
}

static void add_quoted(struct hpx_buffer *out, struct hpx_span text)
{
	add(out, HPX_SPAN("\""));
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] == '"')
			add(out, HPX_SPAN("\""));
		add(out, hpx_span(text.ptr + i, 1));
	}
	add(out, HPX_SPAN("\""));
}

static void add_record(struct hpx_buffer *out, const struct hpx_ledger_record *record)
{
	HPX_ASSERT(record->line > 0);
	for (size_t i = 0; i < COLUMN_COUNT; i++) {
		if (i > 0)
			add(out, HPX_SPAN(";"));
		add_quoted(out, record->values[i]);
	}
	add(out, HPX_SPAN("\r\n"));
}

/* Writes the records as CSV; returns how it ended. */
static enum hpx_ledger_step read_all(const struct hpx_ledger_settings *settings,
				     struct hpx_span file, size_t piece, struct hpx_buffer *out)
{
	static struct hpx_ledger ledger;
	struct hpx_ledger_record record;
	enum hpx_ledger_step step = HPX_LEDGER_MORE;

	add(out, HPX_SPAN("id;amount;/a/0\r\n"));
	HPX_ASSERT(hpx_ledger_init(&ledger, settings) == HPX_OK);
	while (step == HPX_LEDGER_MORE) {
		struct hpx_span next = hpx_span_first(file, piece);
		bool last = next.len == file.len;
		file = hpx_span_skip(file, next.len);
		while ((step = hpx_ledger_next(&ledger, &next, last, &record)) == HPX_LEDGER_RECORD)
			add_record(out, &record);
		HPX_ASSERT(step == HPX_LEDGER_FAILED || next.len == 0);
		HPX_ASSERT(!last || step != HPX_LEDGER_MORE);
	}
	HPX_ASSERT((step == HPX_LEDGER_FAILED) == (hpx_ledger_error(&ledger)[0] != '\0'));
	hpx_ledger_done(&ledger);
	return step;
}

static void check(const struct hpx_ledger_settings *settings, struct hpx_span file, size_t piece)
{
	static const struct hpx_ledger_settings written = { HPX_LEDGER_CSV, ';', columns,
							    COLUMN_COUNT, RECORD_MAX };
	struct hpx_buffer whole, pieces, again;

	hpx_buffer_init(&whole, OUT_MAX);
	hpx_buffer_init(&pieces, OUT_MAX);
	hpx_buffer_init(&again, OUT_MAX);
	enum hpx_ledger_step end = read_all(settings, file, SIZE_MAX, &whole);
	HPX_ASSERT(read_all(settings, file, piece, &pieces) == end);
	HPX_ASSERT(hpx_span_eq(hpx_buffer_span(&whole), hpx_buffer_span(&pieces)));
	/* A value of JSON may hold a NUL, which no CSV has; written values that
	 * were short enough once are so again. */
	if (memchr(whole.ptr, '\0', whole.len) == NULL) {
		HPX_ASSERT(read_all(&written, hpx_buffer_span(&whole), 5, &again) == HPX_LEDGER_END);
		HPX_ASSERT(hpx_span_eq(hpx_buffer_span(&whole), hpx_buffer_span(&again)));
	}
	hpx_buffer_done(&whole);
	hpx_buffer_done(&pieces);
	hpx_buffer_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char separators[] = { ',', ';', '\t', ',' };
	struct hpx_span input = hpx_span(data, size);
	struct hpx_ledger_settings settings = { HPX_LEDGER_CSV, ',', columns, COLUMN_COUNT, RECORD_MAX };

	if (size == 0 || size > 65536)
		return 0;
	settings.separator = separators[data[0] & 3];
	settings.format = (data[0] & 3) == 3 ? HPX_LEDGER_JSON_LINES : HPX_LEDGER_CSV;
	check(&settings, hpx_span_skip(input, 1), 1 + (data[0] >> 2) % 17);
	return 0;
}
