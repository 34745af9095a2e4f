/* Shows which records come out of a provider's export, CSV and JSON lines, in
 * whatever pieces it arrives; and that each error says what is wrong and where. */
#include "../test.h"

#include "core/ledger.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))
#define RECORD_MAX 64

/* What came out, as one text: "<line>:[value][value] ..." and at the end
 * "end" or "! <error>". A value that is left out is "-". */
static void add(char *out, size_t size, const char *format, ...)
{
	size_t len = strlen(out);
	va_list args;

	va_start(args, format);
	vsnprintf(out + len, size - len, format, args);
	va_end(args);
}

static void add_record(char *out, size_t size, const struct hpx_ledger_record *record, size_t columns)
{
	add(out, size, "%llu:", (unsigned long long)record->line);
	for (size_t i = 0; i < columns; i++)
		if (record->values[i].ptr == NULL)
			add(out, size, "-");
		else
			add(out, size, "[%.*s]", HPX_SPAN_ARG(record->values[i]));
	add(out, size, " ");
}

/* `piece` 0: all at once. The pieces are copies, so that a look beyond one is
 * seen by the sanitizer. */
static void read_all(const struct hpx_ledger_settings *settings, struct hpx_span file, size_t piece,
		     char *out, size_t size)
{
	static struct hpx_ledger ledger;
	struct hpx_ledger_record record;
	enum hpx_ledger_step step = HPX_LEDGER_MORE;

	out[0] = '\0';
	assert_status(hpx_ledger_init(&ledger, settings), HPX_OK);
	while (step == HPX_LEDGER_MORE) {
		struct hpx_span next = piece == 0 ? file : hpx_span_first(file, piece);
		char *copy = malloc(next.len + 1);
		bool last = next.len == file.len;
		assert_non_null(copy);
		memcpy(copy, next.ptr, next.len);
		file = hpx_span_skip(file, next.len);
		next.ptr = copy;
		while ((step = hpx_ledger_next(&ledger, &next, last, &record)) == HPX_LEDGER_RECORD)
			add_record(out, size, &record, settings->column_count);
		if (step == HPX_LEDGER_FAILED)
			assert_int_equal(hpx_ledger_next(&ledger, &next, last, &record), HPX_LEDGER_FAILED);
		else
			assert_int_equal(next.len, 0);
		assert_false(last && step == HPX_LEDGER_MORE);
		free(copy);
	}
	if (step == HPX_LEDGER_END)
		add(out, size, "end");
	else
		add(out, size, "! %s", hpx_ledger_error(&ledger));
	hpx_ledger_done(&ledger);
}

static void check(const struct hpx_ledger_settings *settings, struct hpx_span file, const char *want)
{
	static const size_t pieces[] = { 0, 1, 2, 3, 7 };
	char got[2048];

	for (size_t p = 0; p < COUNT(pieces); p++) {
		read_all(settings, file, pieces[p], got, sizeof(got));
		if (strcmp(got, want) != 0)
			fail_msg("<%.*s> in pieces of %zu:\n got %s\nwant %s", HPX_SPAN_ARG(file),
				 pieces[p], got, want);
	}
}

struct row {
	struct hpx_span file;
	const char *want;
	char separator; /* 0: a comma */
};

static const struct hpx_span two_columns[] = { HPX_SPAN_INIT("id"), HPX_SPAN_INIT("amount") };

#define ROW(file, want) \
	{ \
		HPX_SPAN_INIT(file), want, 0 \
	}
#define ROW_BY(separator, file, want) \
	{ \
		HPX_SPAN_INIT(file), want, separator \
	}
#define X16 "xxxxxxxxxxxxxxxx"
#define X64 X16 X16 X16 X16

static const struct row csv_rows[] = {
	/* Columns by name, in any order, among others. */
	ROW("id,amount\na,1\nb,2\n", "2:[a][1] 3:[b][2] end"),
	ROW("amount,id\n1,a\n", "2:[a][1] end"),
	ROW("x,amount,y,id,z\n,1,,a,\n", "2:[a][1] end"),
	ROW("id,amount\n", "end"),
	ROW("id,amount", "end"),
	ROW("id,amount,amount2\na,1,2\n", "2:[a][1] end"),
	/* Line ends, and none at the end. */
	ROW("id,amount\r\na,1\r\nb,2\r\n", "2:[a][1] 3:[b][2] end"),
	ROW("id,amount\na,1\r\nb,2", "2:[a][1] 3:[b][2] end"),
	ROW("\n\nid,amount\n\na,1\n\n\n", "5:[a][1] end"),
	ROW("\r\nid,amount\r\n\r\na,1\r\n\r\n", "4:[a][1] end"),
	/* Empty values are there. */
	ROW("id,amount\n,\n", "2:[][] end"),
	ROW("id,amount\na,", "2:[a][] end"),
	ROW("id,amount\n\"\",\"\"", "2:[][] end"),
	ROW("id,amount\n \t,b\n", "2:[ \t][b] end"),
	/* Quotes: separators, line ends and quotes inside. */
	ROW("\"id\",\"amount\"\n\"a\",\"1\"\n", "2:[a][1] end"),
	ROW("id,amount\n\"a,b\",\"1\"\"2\"\n", "2:[a,b][1\"2] end"),
	ROW("id,amount\n\"\"\"\",\"\"\"\"\"\"\n", "2:[\"][\"\"] end"),
	ROW("id,amount\n\"a\nb\",1\nc,2\n", "2:[a\nb][1] 4:[c][2] end"),
	ROW("id,amount\n\"a\r\nb\r\",1\nc,2\n", "2:[a\r\nb\r][1] 4:[c][2] end"),
	ROW("\"id\",amount,\"a\nb\"\na,1,\n", "3:[a][1] end"),
	ROW("id,amount\na,\"1\"", "2:[a][1] end"),
	ROW("id,amount\r\n\"a\",\"1\"\r\n", "2:[a][1] end"),
	/* Other separators; the comma is then a byte like others. */
	ROW_BY(';', "id;amount\na;1,50\n", "2:[a][1,50] end"),
	ROW_BY('\t', "id\tamount\na;\t1,50\n", "2:[a;][1,50] end"),
	ROW_BY(';', "id;amount\n\"a;b\";1\n", "2:[a;b][1] end"),
	/* A BOM, a whole one. */
	ROW("\xef\xbb\xbfid,amount\na,1\n", "2:[a][1] end"),
	ROW("\xef\xbb\xbf\"id\",amount\na,1\n", "2:[a][1] end"),
	ROW("\xef\xbb\xbf\xef\xbb\xbfid,amount\n",
	    "! line 1: there is no column \"id\"; there are: \xef\xbb\xbfid, amount"),
	ROW("\xef\xbbid,amount\n", "! line 1: there is no column \"id\"; there are: \xef\xbbid, amount"),
	ROW("\xefid,amount\n", "! line 1: there is no column \"id\"; there are: \xefid, amount"),
	ROW("\xef\xbb\n", "! line 1: there is no column \"id\"; there are: \xef\xbb"),
	ROW("\xef\xbb", "! line 1: there is no column \"id\"; there are: \xef\xbb"),
	ROW("id,amount\n\xef\xbb\xbf,1\n", "2:[\xef\xbb\xbf][1] end"),
	/* No such column, or two. */
	ROW("ID,amount\na,1\n", "! line 1: there is no column \"id\"; there are: ID, amount"),
	ROW("id, amount\n", "! line 1: there is no column \"amount\"; there are: id,  amount"),
	ROW("id;amount\n", "! line 1: there is no column \"id\"; there are: id;amount"),
	ROW("\n\nref\n", "! line 3: there is no column \"id\"; there are: ref"),
	ROW("a\x1b[2J,\"b\nc\"\n", "! line 1: there is no column \"id\"; there are: a?[2J, b?c"),
	ROW("id,amount,id\n", "! line 1: the column \"id\" is there 2 times"),
	ROW("", "! the file is empty: no row names the columns"),
	ROW("\n\n", "! the file is empty: no row names the columns"),
	ROW("\xef\xbb\xbf", "! the file is empty: no row names the columns"),
	/* Rows of another length. */
	ROW("id,amount\na,1\nb\n", "2:[a][1] ! line 3: 1 values, but the first row names 2 columns"),
	ROW("id,amount\na,1,\n", "! line 2: 3 values, but the first row names 2 columns"),
	ROW("id,amount\n\"a\nb\",1\n\"\"\n", "2:[a\nb][1] ! line 4: 1 values, but the first row names 2 columns"),
	/* What RFC 4180 does not have. */
	ROW("id,amount\na\"b,1\n", "! line 2: a quote inside a value that does not begin with one"),
	ROW("id,amount\n \"b\",1\n", "! line 2: a quote inside a value that does not begin with one"),
	ROW("id,amount\n\"a\"b,1\n", "! line 2: text behind a closing quote"),
	ROW("id,amount\n\"a\" ,1\n", "! line 2: text behind a closing quote"),
	ROW("id,amount\na,1\nb,\"2\n3,4\n", "2:[a][1] ! line 3: the quote that is opened here is never closed"),
	ROW("id,amount\na,\"", "! line 2: the quote that is opened here is never closed"),
	ROW("id,amount\n\"a\n\n\"x", "! line 4: text behind a closing quote"),
	ROW("id,amount\na\rb,1\n", "! line 2: a carriage return without a line feed"),
	ROW("id,amount\r\ra,1\n", "! line 1: a carriage return without a line feed"),
	ROW("id,amount\na,1\r", "! line 2: a carriage return without a line feed"),
	ROW("id,amount\n\ra,1", "! line 2: a carriage return without a line feed"),
	ROW("id,amount\n\r", "! line 2: a carriage return without a line feed"),
	ROW("i\0d\0", "! line 1: a NUL byte: the file must be text in UTF-8"),
	ROW("id,amount\n\"\n\0", "! line 3: a NUL byte: the file must be text in UTF-8"),
	/* The bound holds for a record, in quotes or not. */
	ROW("id,amount\n" X64 ",\n", "2:[" X64 "][] end"),
	ROW("id,amount\n" X64 ",1\n", "! line 2: the record is longer than 64 bytes"),
	ROW("id,amount\n\"" X64 "\",\"\"\n\"\nx" X64, "2:[" X64 "][] ! line 3: the record is longer than 64 bytes"),
};

static void csv(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(csv_rows); i++) {
		struct hpx_ledger_settings settings = { HPX_LEDGER_CSV,
							csv_rows[i].separator ? csv_rows[i].separator : ',', two_columns, 2, RECORD_MAX };
		check(&settings, csv_rows[i].file, csv_rows[i].want);
	}
}

/* With one column, an empty line is still no record, "" is one. */
static void one_column(void **state)
{
	static const struct hpx_ledger_settings settings = { HPX_LEDGER_CSV, ',', two_columns, 1, RECORD_MAX };
	static const struct hpx_span no_name[] = { HPX_SPAN_INIT("") };
	static const struct hpx_ledger_settings nameless = { HPX_LEDGER_CSV, ',', no_name, 1, RECORD_MAX };
	(void)state;
	check(&settings, HPX_SPAN("id\na\n\n\r\n\"\"\n\"\"\r\nb"), "2:[a] 5:[] 6:[] 7:[b] end");
	check(&nameless, HPX_SPAN("\"\"\n\"\"\n"), "2:[] end");
}

static void many_columns(void **state)
{
	static const struct hpx_ledger_settings settings = { HPX_LEDGER_CSV, ',', two_columns, 1, RECORD_MAX };
	static const struct hpx_ledger_settings named = { HPX_LEDGER_CSV, ',', two_columns, 2, 4096 };
	char file[4096] = "id", want[512];
	(void)state;
	memset(file + 2, ',', HPX_LEDGER_FIELDS_MAX - 1);
	check(&settings, hpx_span(file, 2 + HPX_LEDGER_FIELDS_MAX - 1), "end");
	file[2 + HPX_LEDGER_FIELDS_MAX - 1] = ',';
	check(&settings, hpx_span(file, 2 + HPX_LEDGER_FIELDS_MAX), "! line 1: more than 1024 columns");
	/* A long list of columns is cut, and so is a long name. */
	file[0] = '\0';
	snprintf(want, sizeof(want), "! line 1: there is no column \"id\"; there are: %s, %s, %s, %s, ...",
		 X64, X64, X64, X64);
	for (int i = 0; i < 9; i++)
		add(file, sizeof(file), "%s" X64 "yz", i ? "," : "");
	check(&named, hpx_span_of(file), want);
	file[0] = '\0';
	for (int i = 0; i < 90; i++)
		add(file, sizeof(file), "%s" X16, i ? "," : "");
	snprintf(want, sizeof(want), "! line 1: there is no column \"id\"; there are: " X16);
	for (int i = 1; i < 12; i++)
		add(want, sizeof(want), ", " X16);
	add(want, sizeof(want), ", ...");
	check(&named, hpx_span_of(file), want);
}

static const struct hpx_span json_columns[] = { HPX_SPAN_INIT("id"), HPX_SPAN_INIT("/data/amount"),
						HPX_SPAN_INIT("a/b~c") };

static const struct row json_rows[] = {
	ROW("{\"id\":\"a\",\"data\":{\"amount\":1.50},\"a/b~c\":true}\n{\"id\":7}\n", "1:[a][1.50][true] 2:[7]-- end"),
	ROW("{\"id\":\"a\"}\n\n \t\r\n{\"data\":{\"amount\":2}}\r\n{\"a/b~c\":\"\"}", "1:[a]-- 4:-[2]- 5:--[] end"),
	ROW("{\"id\":\"\\u00e9\\n\",\"data\":{\"amount\":-0.0},\"a/b~c\":null}", "1:[\xc3\xa9\n][-0.0]- end"),
	ROW("\xef\xbb\xbf{\"id\":1,\"data\":{\"amount\":2},\"a/b~c\":3}\n", "1:[1][2][3] end"),
	ROW("{\"id\":\"null\",\"data\":{\"amount\":\"\"},\"a/b~c\":false}", "1:[null][][false] end"),
	ROW("", "end"),
	ROW("\n \n", "end"),
	/* A column that no record has. */
	ROW("{\"id\":1,\"data\":{\"Amount\":2},\"a/b~c\":3}\n{\"id\":2}\n",
	    "1:[1]-[3] 2:[2]-- ! no record has \"/data/amount\"; the first has: a/b~c, data, id"),
	ROW("{}\n", "1:--- ! no record has \"id\"; the first has: "),
	/* Not records. */
	ROW("{\"id\":1}\n{\"id\":\n", "1:[1]-- ! line 2: not one JSON object"),
	ROW("{\"id\":1} {\"id\":2}\n", "! line 1: not one JSON object"),
	ROW("\n[1]\n", "! line 2: not one JSON object"),
	ROW("id,amount\n", "! line 1: not one JSON object"),
	ROW("{\"id\":1,\"id\":2}", "! line 1: not one JSON object"),
	ROW("{\"id\":[1]}\n", "! line 1: the column \"id\" is an array or an object, not a value"),
	ROW("{\"data\":{\"amount\":{}}}", "! line 1: the column \"/data/amount\" is an array or an object, not a value"),
	ROW("{\"id\":\"\xff\"}", "! line 1: not one JSON object"),
	ROW("{}\n\xef\xbb\xbf{}", "1:--- ! line 2: not one JSON object"),
	ROW("{\"id\":1}\n\0", "1:[1]-- ! line 2: a NUL byte: the file must be text in UTF-8"),
	ROW("{\"id\":\"" X16 X16 X16 "1234567\"}\n", "1:[" X16 X16 X16 "1234567]-- ! no record has \"/data/amount\"; the first has: id"),
	ROW("{\"id\":\"" X64 "\"}\n", "! line 1: the record is longer than 64 bytes"),
	ROW("{\"id\":1}\n" X64 "x", "1:[1]-- ! line 2: the record is longer than 64 bytes"),
};

static void json_lines(void **state)
{
	static const struct hpx_ledger_settings settings = { HPX_LEDGER_JSON_LINES, 0, json_columns, 3, RECORD_MAX };
	(void)state;
	for (size_t i = 0; i < COUNT(json_rows); i++)
		check(&settings, json_rows[i].file, json_rows[i].want);
}

static void settings_that_cannot_be(void **state)
{
	static const struct hpx_span bad[] = { HPX_SPAN_INIT("/a~2") };
	static const struct {
		struct hpx_ledger_settings settings;
		enum hpx_status want;
	} rows[] = {
		{ { HPX_LEDGER_CSV, ',', two_columns, 0, 64 }, HPX_MISUSE },
		{ { HPX_LEDGER_CSV, ',', two_columns, HPX_LEDGER_COLUMNS_MAX + 1, 64 }, HPX_MISUSE },
		{ { HPX_LEDGER_CSV, '\0', two_columns, 2, 64 }, HPX_MISUSE },
		{ { HPX_LEDGER_CSV, '"', two_columns, 2, 64 }, HPX_MISUSE },
		{ { HPX_LEDGER_CSV, '\n', two_columns, 2, 64 }, HPX_MISUSE },
		{ { HPX_LEDGER_JSON_LINES, 0, bad, 1, 64 }, HPX_INVALID },
	};
	static struct hpx_ledger ledger;
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_status(hpx_ledger_init(&ledger, &rows[i].settings), rows[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(csv),
		cmocka_unit_test(one_column),
		cmocka_unit_test(many_columns),
		cmocka_unit_test(json_lines),
		cmocka_unit_test(settings_that_cannot_be),
	};
	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
