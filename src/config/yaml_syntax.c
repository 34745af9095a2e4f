/* What is wrong with a text that is no YAML, in plain words. libyaml says where it stopped
 * and which of its own rules was broken there; a person wants to know what to write. The
 * place is moved to where the mistake is, where that is another: a quote is missing at
 * its beginning, not at the end of the file. */
#include "config/yaml_syntax.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/status.h"

/* A syntax error on its way to its words. */
struct syntax_error {
	struct hpx_span text;
	const yaml_parser_t *parser;
	yaml_mark_t *mark; /* what the message is about */
	char *words;
	size_t words_size;
};

static bool says(const char *told, const char *part)
{
	return told != NULL && strstr(told, part) != NULL;
}

static bool is_problem(const struct syntax_error *error, const char *part)
{
	return says(error->parser->problem, part);
}

static bool is_within(const struct syntax_error *error, const char *part)
{
	return says(error->parser->context, part);
}

__attribute__((format(printf, 2, 3))) static void put(struct syntax_error *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error->words, error->words_size, format, args);
	va_end(args);
}

/* The n-th line of the text, from 0 on; empty where there is none. */
static struct hpx_span line_at(struct hpx_span text, size_t n)
{
	struct hpx_span line = { "", 0 };

	for (size_t i = 0; i <= n; i++)
		if (!hpx_span_line(&text, &line))
			return HPX_SPAN("");
	return line;
}

/* The text of the line from the mark's column on; libyaml counts characters of UTF-8. */
static struct hpx_span rest_of_line(struct hpx_span text, yaml_mark_t mark)
{
	struct hpx_span line = line_at(text, mark.line);
	size_t at = 0;

	for (size_t column = 0; at < line.len && column < mark.column; column++)
		for (at++; at < line.len && ((unsigned char)line.ptr[at] & 0xc0) == 0x80;)
			at++;
	return hpx_span_skip(line, at);
}

static char char_at(struct hpx_span text, yaml_mark_t mark)
{
	struct hpx_span rest = rest_of_line(text, mark);

	return rest.len > 0 ? rest.ptr[0] : '\0';
}

static size_t count_spaces(struct hpx_span line)
{
	size_t n = 0;

	while (n < line.len && line.ptr[n] == ' ')
		n++;
	return n;
}

/* Whether the line has "name:" or "name: value". */
static bool names_option(struct hpx_span line)
{
	for (size_t i = 0; i < line.len; i++)
		if (line.ptr[i] == ':' && (i + 1 == line.len || line.ptr[i + 1] == ' '))
			return true;
	return false;
}

/* The last line before this one that has more than a comment; SIZE_MAX: none. */
static size_t line_before(struct hpx_span text, size_t line)
{
	size_t last = SIZE_MAX;
	struct hpx_span one;

	for (size_t i = 0; i < line && hpx_span_line(&text, &one); i++) {
		struct hpx_span trimmed = hpx_span_trim(one);

		if (trimmed.len > 0 && trimmed.ptr[0] != '#')
			last = i;
	}
	return last;
}

/* A line that should be "name: value" and is not. */
static void explain_colon(struct syntax_error *error, size_t line)
{
	struct hpx_span text = line_at(error->text, line);
	size_t indent = count_spaces(text);
	size_t colon = hpx_span_index(text, ':');
	/* In "listen 127.0.0.1:80" the colon is the value's. */
	bool of_name = colon < text.len &&
		       memchr(text.ptr + indent, ' ', colon > indent ? colon - indent : 0) == NULL;

	error->mark->line = line;
	error->mark->column = of_name ? colon : indent;
	if (of_name)
		put(error, "a space is missing after the colon: write name: value");
	else
		put(error, "a colon and a space are missing after the option's name: write name: value");
}

static void explain_tab(struct syntax_error *error)
{
	put(error, "a tab stands where YAML wants spaces: indent with spaces");
}

static void explain_first(struct syntax_error *error)
{
	char c = char_at(error->text, *error->mark);

	if (c == '\t')
		explain_tab(error);
	else
		put(error, "a value cannot begin with %c: put the value into quotes, '...'", c);
}

/* "a: b: c"; a line that lacks its colon, and continues in this one; or a line that is
 * indented as if it belonged to the value before it. */
static void explain_second_colon(struct syntax_error *error)
{
	yaml_mark_t *mark = error->mark;
	struct hpx_span line = line_at(error->text, mark->line);
	size_t before = line_before(error->text, mark->line);

	if (names_option(hpx_span_first(line, mark->column < line.len ? mark->column : line.len))) {
		put(error, "a second colon with a space stands in one line: put the value into quotes, '...'");
	} else if (before != SIZE_MAX && !names_option(line_at(error->text, before))) {
		explain_colon(error, before);
	} else {
		mark->column = count_spaces(line);
		put(error, "this line is indented too far: line %zu has a value already, so begin both in "
			   "the same column",
		    before + 1);
	}
}

/* A line in the wrong column, or text behind a value that ended with its quote. */
static void explain_no_option(struct syntax_error *error)
{
	const yaml_mark_t *mark = error->mark;
	size_t spaces = count_spaces(line_at(error->text, mark->line));

	if (spaces < mark->column)
		put(error, "text follows the closing quote of a value: is a quote before it not closed? A quote "
			   "inside of '...' is written twice");
	else if (char_at(error->text, *mark) == '-')
		put(error, "a list item (-) stands among options: indent it further than the list's name, or "
			   "write name: value");
	else if (spaces == error->parser->context_mark.column)
		put(error, "an option is missing here: write name: value");
	else
		put(error, "this line begins in column %zu, the options around it in column %zu (line %zu): begin "
			   "them in the same column",
		    spaces + 1, error->parser->context_mark.column + 1,
		    error->parser->context_mark.line + 1);
}

/* The first option is indented, or is none at all. */
static void explain_second_document(struct syntax_error *error)
{
	size_t before = line_before(error->text, error->mark->line);

	if (before != SIZE_MAX && !names_option(line_at(error->text, before)))
		explain_colon(error, before);
	else
		put(error, "this line begins before the first option of the file: begin all options of the "
			   "top level in the same column");
}

static void explain_open_bracket(struct syntax_error *error, char open, char close)
{
	put(error, "a comma or %c is missing here: the %c of line %zu is not closed", close, open,
	    error->parser->context_mark.line + 1);
}

static void explain_reader(struct syntax_error *error)
{
	if (is_problem(error, "control characters"))
		put(error, "a control character (0x%02x) is not allowed: remove it",
		    (unsigned)error->parser->problem_value);
	else
		put(error, "this is not UTF-8: save the file as UTF-8");
}

/* False: none of the mistakes that people make. */
static bool explain_scanner(struct syntax_error *error)
{
	if (is_problem(error, "found a tab character")) {
		explain_tab(error);
	} else if (is_problem(error, "cannot start any token")) {
		explain_first(error);
	} else if (is_within(error, "quoted scalar") && is_problem(error, "found unexpected")) {
		*error->mark = error->parser->context_mark;
		put(error, "a quote (%c) begins here and is not closed: write another at the value's end",
		    char_at(error->text, *error->mark));
	} else if (is_problem(error, "found unknown escape")) {
		put(error, "in double quotes, a backslash begins an escape, and this is none: write \\\\, or "
			   "put the value into single quotes");
	} else if (is_within(error, "simple key")) {
		explain_colon(error, error->parser->context_mark.line);
	} else if (is_problem(error, "mapping values are not allowed")) {
		explain_second_colon(error);
	} else if (is_problem(error, "block sequence entries are not allowed")) {
		put(error, "a list (-) begins on its own line: put it below the option's name, or write "
			   "[a, b]");
	} else if (is_within(error, "scanning an alias") || is_within(error, "scanning an anchor") ||
		   is_within(error, "scanning a tag")) {
		*error->mark = error->parser->context_mark;
		explain_first(error);
	} else {
		return false;
	}
	return true;
}

static bool explain_parser(struct syntax_error *error)
{
	if (is_problem(error, "expected key")) {
		explain_no_option(error);
	} else if (is_problem(error, "<document start>")) {
		explain_second_document(error);
	} else if (is_problem(error, "'-' indicator")) {
		put(error, "this line is no list item, but begins where those of line %zu do: write - before "
			   "it, or begin it in another column",
		    error->parser->context_mark.line + 1);
	} else if (is_problem(error, "',' or ']'")) {
		explain_open_bracket(error, '[', ']');
	} else if (is_problem(error, "',' or '}'")) {
		explain_open_bracket(error, '{', '}');
	} else if (is_problem(error, "node content") && char_at(error->text, *error->mark) == ':') {
		explain_first(error); /* [::1] */
	} else if (is_problem(error, "node content")) {
		put(error, "a value is missing here, or a ] or } that closes what was opened before");
	} else {
		return false;
	}
	return true;
}

void hpx_yaml_explain(struct hpx_span text, const yaml_parser_t *parser, yaml_mark_t *mark,
		      char words[HPX_YAML_WORDS_SIZE])
{
	struct syntax_error error = { .text = text, .parser = parser, .mark = mark, .words = words, .words_size = HPX_YAML_WORDS_SIZE };
	bool known = true;

	HPX_ASSERT(parser->error != YAML_NO_ERROR && parser->error != YAML_MEMORY_ERROR);
	if (parser->error == YAML_READER_ERROR)
		explain_reader(&error);
	else if (parser->error == YAML_SCANNER_ERROR)
		known = explain_scanner(&error);
	else
		known = explain_parser(&error);
	if (!known)
		put(&error, "this is not YAML: %s%s%s", parser->context ? parser->context : "",
		    parser->context ? ", " : "", parser->problem ? parser->problem : "malformed");
}
