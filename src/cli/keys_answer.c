/* An answer from a file, as `curl -i` writes it: heads of 1xx first if there
 * were any, the head, an empty line, the body as it is. curl has already taken
 * chunks apart, so the body is what follows, whatever the head says of it. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cli/operator_command.h"
#include "http/field.h"
#include "http/write.h"

#define FILE_MAX ((size_t)16 * 1024 * 1024)
#define HEAD_MAX ((size_t)64 * 1024)

static enum hpx_status read_file(const char *path, struct hpx_buffer *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	enum hpx_status status = HPX_OK;

	if (fd < 0)
		return HPX_IO;
	for (;;) {
		status = hpx_buffer_reserve(out, 65536);
		if (status != HPX_OK)
			break;
		ssize_t n = read(fd, out->ptr + out->len, 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			status = HPX_IO;
		if (n <= 0)
			break;
		out->len += (size_t)n;
	}
	int saved = errno;
	close(fd);
	errno = saved;
	return status;
}

/* The final head; `*text` is the body afterwards. */
static bool read_head(const struct hpx_operator_command *command, struct hpx_span *text,
		      struct hpx_arena *arena, struct hpx_http_head *ret_head)
{
	const struct hpx_http_limits limits = { .head_bytes_max = HEAD_MAX,
						.fields_max = HPX_HTTP_FIELDS_MAX };

	do {
		struct hpx_http_reader reader;
		size_t used = 0;

		hpx_http_reader_response(&reader, &limits, HPX_SPAN("POST"));
		enum hpx_http_progress progress =
			hpx_http_read_head(&reader, *text, arena, ret_head, &used);
		if (progress != HPX_HTTP_DONE) {
			hpx_operator_complain(command, HPX_EXIT_FAILED,
					      "the file is not an HTTP/1.1 response as `curl -i "
					      "--http1.1` writes it: %s",
					      progress == HPX_HTTP_BAD ?
						      hpx_http_error_text(reader.error) :
						      "no empty line ends its head");
			return false;
		}
		*text = hpx_span_skip(*text, used);
	} while (ret_head->status < 200);
	return true;
}

static bool check_body(const struct hpx_operator_command *command, const struct hpx_http_head *head,
		       struct hpx_span body)
{
	if (hpx_span_starts(body, HPX_SPAN("HTTP/1."))) {
		hpx_operator_complain(command, HPX_EXIT_FAILED,
				      "the file holds more than one answer; fetch it without -L");
		return false;
	}
	if (head->framing == HPX_FRAMING_LENGTH && head->content_length != body.len) {
		hpx_operator_complain(
			command, HPX_EXIT_FAILED,
			"the file has %zu bytes of body and its Content-Length says %llu; "
			"fetch it again, without --compressed",
			body.len, (unsigned long long)head->content_length);
		return false;
	}
	return true;
}

static enum hpx_status keep_fields(const struct hpx_http_head *head, struct hpx_buffer *out)
{
	enum hpx_status status = HPX_OK;

	for (size_t i = 0; i < head->field_count && status == HPX_OK; i++)
		if (hpx_field_is_kept(head, head->fields[i].name))
			status = hpx_write_field(out, head->fields[i].name, head->fields[i].value);
	return status;
}

static struct hpx_answer *make(const struct hpx_operator_command *command, struct hpx_span text,
			       struct hpx_arena *arena)
{
	struct hpx_answer *answer = NULL;
	struct hpx_http_head head;
	struct hpx_buffer fields;

	if (!read_head(command, &text, arena, &head) || !check_body(command, &head, text))
		return NULL;
	hpx_buffer_init(&fields, 2 * HEAD_MAX);
	if (keep_fields(&head, &fields) == HPX_OK)
		answer = hpx_answer_new(head.status, true, hpx_buffer_span(&fields), text);
	if (answer == NULL)
		hpx_operator_complain(command, HPX_EXIT_FAILED, "out of memory");
	hpx_buffer_done(&fields);
	return answer;
}

struct hpx_answer *hpx_keys_answer_read(const struct hpx_operator_command *command, const char *path)
{
	struct hpx_answer *answer = NULL;
	struct hpx_buffer text;
	struct hpx_arena arena;

	hpx_buffer_init(&text, FILE_MAX + 65536);
	hpx_arena_init(&arena, HEAD_MAX);
	enum hpx_status status = read_file(path, &text);
	if (status == HPX_OK && text.len <= FILE_MAX)
		answer = make(command, hpx_buffer_span(&text), &arena);
	else
		hpx_operator_complain(command, HPX_EXIT_FAILED, "%s cannot be read: %s", path,
				      status == HPX_IO ? strerror(errno) :
							 "it is larger than 16 MiB");
	hpx_arena_done(&arena);
	hpx_buffer_done(&text);
	return answer;
}
