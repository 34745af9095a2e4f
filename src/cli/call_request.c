/* From the arguments to a call: its headers, its body and its key. */
#include <errno.h>

#include "base/buffer.h"
#include "cli/call.h"
#include "core/json_tree.h"

/* What the library takes. */
#define BODY_MAX ((size_t)64 << 20)
#define NAME_MAX_LEN 256

/* HPX_EXIT_OK where there is nothing to complain about. */
static int judge(enum hapax_result result, const char *problem)
{
	if (result == HAPAX_OK)
		return HPX_EXIT_OK;
	return hpx_call_complain(result == HAPAX_INVALID ? HPX_EXIT_USAGE : HPX_EXIT_FAILED, "%s",
				 problem);
}

static int give_line(struct hapax_call *call, const char *line)
{
	struct hpx_span name = hpx_span_first(hpx_span_of(line),
					      hpx_span_index(hpx_span_of(line), ':'));
	char text[NAME_MAX_LEN + 1];
	char problem[HAPAX_PROBLEM_SIZE];

	if (line[name.len] != ':' || name.len > NAME_MAX_LEN)
		return hpx_call_complain(HPX_EXIT_USAGE,
					 "-H needs \"Name: value\", or @FILE with one a line");
	memcpy(text, name.ptr, name.len);
	text[name.len] = '\0';
	enum hapax_result result = hapax_call_header(call, text, line + name.len + 1, problem);
	return judge(result, problem);
}

int hpx_call_give_headers(struct hpx_call_command *command, struct hapax_call *call)
{
	const char *const *lines = command->flags.headers;
	char problem[HAPAX_PROBLEM_SIZE];
	int code = HPX_EXIT_OK;

	for (size_t i = 0; lines[i] != NULL && code == HPX_EXIT_OK; i++) {
		if (lines[i][0] != '@')
			code = give_line(call, lines[i]);
		else
			code = judge(hapax_call_header_file(call, lines[i] + 1, problem), problem);
	}
	return code;
}

static int read_stream(FILE *stream, const char *name, struct hpx_buffer *body)
{
	size_t got = 1;
	enum hpx_status status = HPX_OK;

	while (got > 0 && status == HPX_OK) {
		char piece[65536];

		got = fread(piece, 1, sizeof(piece), stream);
		status = hpx_buffer_append(body, hpx_span(piece, got));
	}
	if (status == HPX_TOO_LARGE)
		return hpx_call_complain(HPX_EXIT_USAGE, "%s is larger than 64 MiB", name);
	if (status != HPX_OK || ferror(stream))
		return hpx_call_complain(HPX_EXIT_FAILED, "%s: %s", name,
					 status != HPX_OK ? hpx_status_text(status) :
							    strerror(errno));
	return HPX_EXIT_OK;
}

static int read_body(const char *data, struct hpx_buffer *body)
{
	if (data[0] != '@')
		return hpx_buffer_text(body, data) == HPX_OK ?
			       HPX_EXIT_OK :
			       hpx_call_complain(HPX_EXIT_FAILED, "there is no memory left");
	if (strcmp(data, "@-") == 0)
		return read_stream(stdin, "standard input", body);
	FILE *stream = fopen(data + 1, "re");
	if (stream == NULL)
		return hpx_call_complain(HPX_EXIT_USAGE, "%s: %s", data + 1, strerror(errno));
	int code = read_stream(stream, data + 1, body);
	fclose(stream);
	return code;
}

static bool is_json(struct hpx_span body)
{
	struct hpx_json_tree tree;

	if (hpx_json_tree_read(body, &hpx_json_limits_default, NULL, 0, &tree) != HPX_OK)
		return false;
	hpx_json_tree_done(&tree);
	return true;
}

static bool is_type_line(struct hpx_span line)
{
	return hpx_span_istarts(line, HPX_SPAN("content-type:"));
}

/* The file was read by the library already; what cannot be read now says nothing. */
static bool file_says_type(const char *path)
{
	FILE *stream = fopen(path, "re");
	char line[256];
	bool whole = true; /* the piece begins a line */
	bool says = false;

	while (stream != NULL && !says && fgets(line, sizeof(line), stream) != NULL) {
		says = whole && is_type_line(hpx_span_of(line));
		whole = strchr(line, '\n') != NULL;
	}
	if (stream != NULL)
		fclose(stream);
	return says;
}

static bool says_type(const struct hpx_call_flags *flags)
{
	for (size_t i = 0; flags->headers[i] != NULL; i++) {
		const char *given = flags->headers[i];

		if (given[0] == '@' ? file_says_type(given + 1) : is_type_line(hpx_span_of(given)))
			return true;
	}
	return false;
}

static int give_body(struct hpx_call_command *command, struct hapax_call *call)
{
	char problem[HAPAX_PROBLEM_SIZE];
	struct hpx_buffer body;

	if (command->flags.data == NULL)
		return HPX_EXIT_OK;
	hpx_buffer_init(&body, BODY_MAX);
	int code = read_body(command->flags.data, &body);
	if (code == HPX_EXIT_OK && !says_type(&command->flags) && is_json(hpx_buffer_span(&body)))
		code = judge(hapax_call_header(call, "Content-Type", "application/json", problem),
			     problem);
	if (code == HPX_EXIT_OK)
		code = judge(hapax_call_body(call, body.ptr, body.len, problem), problem);
	hpx_buffer_done(&body);
	return code;
}

int hpx_call_make(struct hpx_call_command *command, const char *method, const char *url,
		  struct hapax_call **ret_call)
{
	char problem[HAPAX_PROBLEM_SIZE];

	enum hapax_result result = hapax_call_new(command->client, method, url, ret_call, problem);
	int code = judge(result, problem);
	if (code == HPX_EXIT_OK)
		code = hpx_call_give_headers(command, *ret_call);
	if (code == HPX_EXIT_OK)
		code = give_body(command, *ret_call);
	if (code == HPX_EXIT_OK && command->flags.key != NULL)
		code = judge(hapax_call_key(*ret_call, command->flags.key, problem), problem);
	return code;
}
