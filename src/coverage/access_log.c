/* Access logs, line by line and so of any length: the combined format of web servers, which
 * says nothing about keys, and JSON lines, where a member may. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "coverage/traffic.h"

#define LINE_BYTES_MAX ((size_t)1 << 20)

static const struct hpx_json_limits line_limits = {
	.depth_max = 32,
	.digits_max = 1000,
	.exponent_max = 100000,
	.members_max = 10000,
};

/* ---- the combined format ---- */

/* "POST /payments HTTP/1.1" */
static bool read_request_line(struct hpx_span text, struct hpx_seen_request *seen)
{
	struct hpx_span rest = text;

	return hpx_span_split(&rest, ' ', &seen->method) && seen->method.len > 0 &&
	       hpx_span_split(&rest, ' ', &seen->target) && seen->target.len > 0 &&
	       hpx_span_starts(rest, HPX_SPAN("HTTP/"));
}

/* 10.0.0.1 - ada [18/Nov/2026:01:00:00 +0000] "POST /payments HTTP/1.1" 200 12 "-" "curl" */
static bool read_combined(struct hpx_span line, struct hpx_seen_request *seen)
{
	size_t open = hpx_span_index(line, '"');

	if (open == line.len)
		return false;
	struct hpx_span rest = hpx_span_skip(line, open + 1);
	return read_request_line(hpx_span_first(rest, hpx_span_index(rest, '"')), seen);
}

/* ---- JSON lines ---- */

/* The names under which servers and gateways write these. */
static const char *const method_names[] = { "method", "request_method", "RequestMethod", "httpMethod",
					    "http_method", "verb" };
static const char *const target_names[] = { "uri", "request_uri", "path", "RequestPath", "url",
					    "target", "http_path" };

static struct hpx_span find_text(const struct hpx_json_tree *tree, uint32_t object,
				 const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t at = hpx_json_tree_member(tree, object, hpx_span_of(names[i]));
		if (at != HPX_JSON_NONE && tree->nodes[at].kind == HPX_JSON_STRING)
			return tree->nodes[at].text;
	}
	return hpx_span(NULL, 0);
}

/* A header's value is a text, or a list of them; "-" and nothing are no key. */
static bool has_value(const struct hpx_json_tree *tree, uint32_t at)
{
	if (tree->nodes[at].kind == HPX_JSON_ARRAY)
		at = tree->nodes[at].first;
	if (at == HPX_JSON_NONE || tree->nodes[at].kind != HPX_JSON_STRING)
		return false;
	struct hpx_span text = tree->nodes[at].text;
	return text.len > 0 && !hpx_span_eq(text, HPX_SPAN("-"));
}

/* Unknown where the object has no such member. */
static enum hpx_keyed keyed_in(const struct hpx_coverage *coverage, const struct hpx_json_tree *tree,
			       uint32_t object)
{
	if (object == HPX_JSON_NONE || tree->nodes[object].kind != HPX_JSON_OBJECT)
		return HPX_KEYED_UNKNOWN;
	for (uint32_t at = tree->nodes[object].first; at != HPX_JSON_NONE; at = tree->nodes[at].next)
		if (hpx_traffic_is_key(coverage, tree->nodes[at].name))
			return has_value(tree, at) ? HPX_KEYED_YES : HPX_KEYED_NO;
	return HPX_KEYED_UNKNOWN;
}

/* A list of headers that has no key says that there was none. */
static enum hpx_keyed keyed_in_headers(const struct hpx_coverage *coverage,
				       const struct hpx_json_tree *tree, uint32_t object)
{
	static const char *const names[] = { "headers", "request_headers", "req_headers" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint32_t headers = hpx_json_tree_member(tree, object, hpx_span_of(names[i]));
		if (headers == HPX_JSON_NONE)
			continue;
		enum hpx_keyed keyed = keyed_in(coverage, tree, headers);
		return keyed == HPX_KEYED_UNKNOWN ? HPX_KEYED_NO : keyed;
	}
	return HPX_KEYED_UNKNOWN;
}

static bool read_object(const struct hpx_coverage *coverage, const struct hpx_json_tree *tree,
			struct hpx_seen_request *seen)
{
	uint32_t request = hpx_json_tree_member(tree, 0, HPX_SPAN("request"));
	/* Caddy and others have the request in an object of its own. */
	uint32_t holder = request != HPX_JSON_NONE && tree->nodes[request].kind == HPX_JSON_OBJECT ?
				  request :
				  0;

	seen->keyed = keyed_in(coverage, tree, 0);
	if (seen->keyed == HPX_KEYED_UNKNOWN)
		seen->keyed = keyed_in_headers(coverage, tree, holder);
	if (holder == 0 && request != HPX_JSON_NONE &&
	    read_request_line(tree->nodes[request].text, seen))
		return true;
	seen->method = find_text(tree, holder, method_names,
				 sizeof(method_names) / sizeof(method_names[0]));
	seen->target = find_text(tree, holder, target_names,
				 sizeof(target_names) / sizeof(target_names[0]));
	return seen->method.len > 0 && seen->target.len > 0;
}

/* ---- lines ---- */

static bool read_json_line(struct hpx_access_log *log, struct hpx_span line)
{
	struct hpx_seen_request seen = { .count = 1 };
	struct hpx_json_tree tree;

	if (hpx_json_tree_read(line, &line_limits, NULL, 0, &tree) != HPX_OK)
		return false;
	bool read = tree.nodes[0].kind == HPX_JSON_OBJECT &&
		    read_object(hpx_traffic_coverage(log->index), &tree, &seen);
	if (read)
		hpx_traffic_count(log->index, &seen);
	hpx_json_tree_done(&tree);
	return read;
}

void hpx_access_log_line(struct hpx_access_log *log, struct hpx_span line, unsigned number)
{
	struct hpx_seen_request seen = { .count = 1 };
	bool read;

	line = hpx_span_trim(line);
	if (line.len == 0)
		return;
	if (line.ptr[0] == '{') {
		read = read_json_line(log, line);
	} else {
		read = read_combined(line, &seen);
		if (read)
			hpx_traffic_count(log->index, &seen);
	}
	log->read += read;
	log->unread += !read;
	if (!read && log->unread_line == 0)
		log->unread_line = number;
}

/* A line under way; one that is too long is skipped to its end. */
struct log_line {
	struct hpx_buffer text;
	bool too_long;
	unsigned number;
};

static void end_line(struct hpx_access_log *log, struct log_line *line)
{
	line->number += line->number < UINT32_MAX;
	struct hpx_span text = hpx_buffer_span(&line->text);
	if (text.len > 0 && text.ptr[text.len - 1] == '\r')
		text.len--;
	if (!line->too_long)
		hpx_access_log_line(log, text, line->number);
	log->unread += line->too_long;
	if (line->too_long && log->unread_line == 0)
		log->unread_line = line->number;
	line->too_long = false;
	line->text.len = 0;
}

static void take_piece(struct hpx_access_log *log, struct log_line *line, struct hpx_span piece)
{
	while (piece.len > 0) {
		size_t end = hpx_span_index(piece, '\n');
		if (hpx_buffer_append(&line->text, hpx_span_first(piece, end)) != HPX_OK)
			line->too_long = true;
		if (end == piece.len)
			return;
		end_line(log, line);
		piece = hpx_span_skip(piece, end + 1);
	}
}

static void read_lines(struct hpx_access_log *log, FILE *file)
{
	struct log_line line = { .number = 0 };
	char piece[16384];
	size_t n;

	hpx_buffer_init(&line.text, LINE_BYTES_MAX);
	while ((n = fread(piece, 1, sizeof(piece), file)) > 0)
		take_piece(log, &line, hpx_span(piece, n));
	end_line(log, &line);
	hpx_buffer_done(&line.text);
}

static bool is_har(struct hpx_span path)
{
	static const struct hpx_span ending = HPX_SPAN_INIT(".har");

	return path.len >= ending.len && hpx_span_ieq(hpx_span_skip(path, path.len - ending.len), ending);
}

/* More lines that cannot be read than lines that can: the file is something else. A log
 * may well have a torn line or two. */
static void judge_log(struct hpx_library *library, struct hpx_span path,
		      const struct hpx_access_log *log, bool failed)
{
	if (failed)
		hpx_library_error(library, path, 0, "cannot be read to its end");
	else if (log->unread > log->read)
		hpx_library_error(library, path, log->unread_line,
				  "is no line of an access log: neither the combined format nor JSON "
				  "with method and path");
}

void hpx_traffic_read_file(struct hpx_traffic_index *index, struct hpx_span path)
{
	struct hpx_library *library = &hpx_traffic_coverage(index)->library;
	struct hpx_access_log log = { .index = index };

	if (is_har(path)) {
		const struct hpx_document *document = hpx_library_open(library, path);
		if (document != NULL)
			hpx_traffic_read_har(index, document);
		return;
	}
	FILE *file = fopen(path.ptr, "re");
	if (file == NULL) {
		hpx_library_error(library, path, 0,
				  errno == ENOENT ? "there is no such file" : "cannot be opened");
		return;
	}
	read_lines(&log, file);
	judge_log(library, path, &log, ferror(file) != 0);
	fclose(file);
}
