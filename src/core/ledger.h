/* The reader of a provider's export, one record at a time: CSV (RFC 4180) or JSON lines.
 * The reader takes bytes in pieces of any size and keeps one record, of a bounded size.
 * Wanted columns are given by name; the caller knows what their values mean. Errors name
 * the line, for people.
 *
 * CSV: the first row names the columns, every other has as many values; lines
 * end with CRLF or LF; a BOM and empty lines are passed over. What RFC 4180
 * does not have (a quote inside a bare value, text behind a closing quote, a
 * lone CR) is an error, because a guess could move an amount to another row.
 *
 * JSON lines: each line is an object; a column is an RFC 6901 pointer if it
 * begins with '/', else a member's name. Records may leave a column out, but a
 * column that none had is an error at the end: it is misspelled. */
#ifndef HPX_CORE_LEDGER_H
#define HPX_CORE_LEDGER_H

#include "base/buffer.h"
#include "core/json.h"
#include "core/json_tree.h"

#define HPX_LEDGER_COLUMNS_MAX 8   /* wanted */
#define HPX_LEDGER_FIELDS_MAX 1024 /* in a row of CSV */
#define HPX_LEDGER_ERROR_SIZE 512

enum hpx_ledger_format { HPX_LEDGER_CSV,
			 HPX_LEDGER_JSON_LINES };

struct hpx_ledger_settings {
	enum hpx_ledger_format format;
	char separator;                 /* CSV: ',' ';' or a tab */
	const struct hpx_span *columns; /* must outlive the ledger */
	size_t column_count;            /* at least one */
	size_t record_bytes_max;
};

struct hpx_ledger_record {
	uint64_t line;        /* where it begins, from 1 */
	struct hpx_span text; /* JSON lines: the whole of it; CSV: ptr NULL */
	/* In the order of the settings' columns. ptr NULL: left out, or null. */
	struct hpx_span values[HPX_LEDGER_COLUMNS_MAX];
};

enum hpx_ledger_step {
	HPX_LEDGER_RECORD, /* *ret_record, valid until the next call */
	HPX_LEDGER_MORE,   /* the input is used up: call again with more */
	HPX_LEDGER_END,    /* nothing is left */
	HPX_LEDGER_FAILED, /* for good; hpx_ledger_error says why */
};

/* Where the next byte stands. */
enum hpx_ledger_state {
	HPX_LEDGER_AT_START, /* of a row; of JSON lines, of a line */
	HPX_LEDGER_AT_VALUE, /* behind a separator */
	HPX_LEDGER_IN_BARE,  /* of JSON lines, in a line */
	HPX_LEDGER_IN_QUOTES,
	HPX_LEDGER_AT_QUOTE, /* behind a quote inside quotes: doubled, or the end */
	HPX_LEDGER_AT_CR,
	HPX_LEDGER_AT_EMPTY_CR, /* of a line without anything before it */
};

struct hpx_ledger {
	struct hpx_ledger_settings settings;
	struct hpx_buffer text; /* the record so far */
	uint64_t line;          /* of the next byte */
	uint64_t record_line;   /* where the record begins */
	uint64_t record_count;  /* given so far */
	size_t bom_len;         /* bytes of a BOM so far; 3: no longer asked */
	enum hpx_ledger_state state;
	bool failed;
	char error[HPX_LEDGER_ERROR_SIZE];
	struct hpx_buffer list; /* columns that there are, for an error */

	uint64_t quote_line;                /* CSV: where the open quote stands */
	size_t ends[HPX_LEDGER_FIELDS_MAX]; /* of the row's values in `text` */
	size_t field_count;
	size_t header_count;                   /* 0: the header row is yet to come */
	size_t fields[HPX_LEDGER_COLUMNS_MAX]; /* of each wanted column */

	struct hpx_buffer names; /* JSON lines: the columns as pointers */
	struct hpx_json_pointers pointers;
	struct hpx_json_tree tree; /* of the latest record */
	uint32_t seen;             /* columns that some record had, one bit each */
};

/* HPX_INVALID: a column that begins with '/' and is no pointer. HPX_MISUSE:
 * other settings than said above. */
enum hpx_status hpx_ledger_init(struct hpx_ledger *ledger,
				const struct hpx_ledger_settings *settings);
void hpx_ledger_done(struct hpx_ledger *ledger);

/* The next record. Takes what it needs off the front of `*input`; `last` says
 * that nothing follows it. */
enum hpx_ledger_step hpx_ledger_next(struct hpx_ledger *ledger, struct hpx_span *input, bool last,
				     struct hpx_ledger_record *ret_record);

/* "line 7: ...", one line without control characters. */
const char *hpx_ledger_error(const struct hpx_ledger *ledger);

#endif
