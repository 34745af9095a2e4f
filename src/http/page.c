/* The page about a problem code, for people: one file, nothing loaded from
 * elsewhere. */
#include "http/problem.h"

#include <stdio.h>

/* What `executed` and `retry` mean, as sentences. */
struct meaning {
	const char *word;
	const char *sentence;
};

static const struct meaning executed_meanings[] = {
	{ "yes", "The operation was executed." },
	{ "no", "Nothing was executed by this request." },
	{ "unknown", "The operation may have been executed, or may still be." },
};

static const struct meaning retry_meanings[] = {
	{ "same_key", "Send the same request again, with the same key." },
	{ "after_fix", "Correct the request first, then send it again." },
	{ "never", "Do not send it again with this key." },
};

static const char *sentence_of(const struct meaning *meanings, size_t count,
			       const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(meanings[i].word, word) == 0)
			return meanings[i].sentence;
	return "";
}

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

static enum hpx_status escape(struct hpx_buffer *out, const char *text)
{
	enum hpx_status status = HPX_OK;

	for (; *text != '\0' && status == HPX_OK; text++) {
		const char *name = entity(*text);
		status = name != NULL ? hpx_buffer_text(out, name) : hpx_buffer_byte(out, *text);
	}
	return status;
}

/* The page as pieces: markup as it is, texts escaped between them. */
static enum hpx_status print_pieces(const char *const *pieces, size_t count,
				    struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < count && status == HPX_OK; i++)
		status = i % 2 == 0 ? hpx_buffer_text(out, pieces[i]) : escape(out, pieces[i]);
	return status;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum hpx_status hpx_problem_page(const struct hpx_problem_kind *kind,
				 struct hpx_buffer *out)
{
	char status_text[16];
	size_t begin = out->len;

	snprintf(status_text, sizeof(status_text), "%u", kind->status);
	const char *const pieces[] = {
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
		kind->title,
		"</title>\n<style>body{font:1rem/1.5 sans-serif;max-width:40em;margin:2em "
		"auto;"
		"padding:0 1em}dt{font-weight:bold}dd{margin:0 0 .8em}</style>\n</head>\n"
		"<body>\n<h1>",
		kind->title,
		"</h1>\n<p>",
		kind->page,
		"</p>\n<dl>\n<dt>code</dt>\n<dd><code>",
		kind->code,
		"</code></dd>\n<dt>status</dt>\n<dd>",
		status_text,
		" ",
		hpx_reason_phrase(kind->status),
		"</dd>\n<dt>executed: ",
		kind->executed,
		"</dt>\n<dd>",
		sentence_of(executed_meanings, COUNT(executed_meanings), kind->executed),
		"</dd>\n<dt>retry: ",
		kind->retry,
		"</dt>\n<dd>",
		sentence_of(retry_meanings, COUNT(retry_meanings), kind->retry),
		"</dd>\n</dl>\n</body>\n</html>\n",
	};
	enum hpx_status status = print_pieces(pieces, COUNT(pieces), out);
	if (status != HPX_OK)
		out->len = begin;
	return status;
}
