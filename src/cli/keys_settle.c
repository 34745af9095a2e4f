/* `hapax keys resolve`, `forget` and `accept-clock`. Each is one op of the store and leaves
 * an event with the person's name and reason. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/operations.h"
#include "http/field.h"
#include "http/write.h"

#define STATUS_MIN 200
#define STATUS_MAX 599
#define FILE_MAX ((size_t)16 * 1024 * 1024)
#define HEAD_MAX ((size_t)64 * 1024)

/* ---- an answer from a file, as `curl -i` writes it ----
 * First any heads of 1xx, then the head, an empty line, and the body as it is. curl has
 * decoded chunks already: the body is all that follows, whatever the head says. */

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

/* The final head. Afterwards `*text` is the body. */
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

static struct hpx_answer *parse_answer(const struct hpx_operator_command *command,
				       struct hpx_span text, struct hpx_arena *arena)
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

static struct hpx_answer *read_answer(const struct hpx_operator_command *command, const char *path)
{
	struct hpx_answer *answer = NULL;
	struct hpx_buffer text;
	struct hpx_arena arena;

	hpx_buffer_init(&text, FILE_MAX + 65536);
	hpx_arena_init(&arena, HEAD_MAX);
	enum hpx_status status = read_file(path, &text);
	if (status == HPX_OK && text.len <= FILE_MAX)
		answer = parse_answer(command, hpx_buffer_span(&text), &arena);
	else
		hpx_operator_complain(command, HPX_EXIT_FAILED, "%s cannot be read: %s", path,
				      status == HPX_IO ? strerror(errno) :
							 "it is larger than 16 MiB");
	hpx_arena_done(&arena);
	hpx_buffer_done(&text);
	return answer;
}

/* ---- settling ---- */

/* Why the store refused the op on an operation whose job is not delivered yet. */
static const char *why_pending(struct hpx_operator_command *command, const struct hpx_entry *entry,
			       bool forget)
{
	char reference[HPX_REFERENCE_SIZE];

	HPX_ASSERT(entry->record.state == HPX_STATE_PENDING);
	hpx_reference_print(&entry->record.id, &entry->record.mark, reference);
	struct hpx_span text = hpx_arena_printf(
		&command->arena, "its delivery is %s; look with `hapax jobs ls --operation %.12s%s`%s",
		forget ? "owed and may still happen" : "still owed", reference,
		hpx_operator_where(command),
		forget ? ", discard the job, or, if it may happen again, say --force" : "");
	return text.ptr != NULL ? text.ptr : "its delivery is still owed";
}

static const char *why_unknown(struct hpx_operator_command *command, const struct hpx_entry *entry)
{
	char reference[HPX_REFERENCE_SIZE];

	HPX_ASSERT(entry->record.state == HPX_STATE_UNKNOWN);
	hpx_reference_print(&entry->record.id, &entry->record.mark, reference);
	struct hpx_span text = hpx_arena_printf(
		&command->arena, "it may have happened; `hapax keys show %.12s%s` tells how to settle it. If the "
				 "next request may execute it again, say --force",
		reference, hpx_operator_where(command));
	return text.ptr != NULL ? text.ptr : "it may have happened; settle it, or say --force";
}

/* Why the store refused the op. */
static const char *why_not(struct hpx_operator_command *command, const struct hpx_entry *entry)
{
	bool forget = strcmp(command->verb, "keys forget") == 0;

	if (!entry->readable)
		return "its record cannot be read; if you are sure, say --force";
	switch (entry->record.state) {
	case HPX_STATE_IN_PROGRESS:
		return forget ?
			       "it is in progress and may still happen; if the next request may "
			       "execute it again, say --force" :
			       "it is still in progress; wait until it is answered or becomes unknown";
	case HPX_STATE_UNKNOWN:
		return why_unknown(command, entry);
	case HPX_STATE_COMPLETED:
		return "it is completed, and nothing overrides that";
	case HPX_STATE_FAILED_RETRYABLE:
		return "it is known not to have happened; the next request executes it";
	case HPX_STATE_PENDING:
		return why_pending(command, entry, forget);
	default:
		return "its state does not allow it";
	}
}

/* Prints why the op was not done. */
static int explain(struct hpx_operator_command *command, const struct hpx_entry *entry,
		   const struct hpx_store_op *op)
{
	HPX_ASSERT(op->status != HPX_OK);
	switch (op->status) {
	case HPX_REFUSED:
	case HPX_CORRUPT:
		return hpx_operator_complain(command, HPX_EXIT_FAILED, "not done: %s",
					     why_not(command, entry));
	case HPX_STALE:
	case HPX_NOT_FOUND:
		return hpx_operator_complain(
			command, HPX_EXIT_FAILED,
			"not done: the operation has changed meanwhile; look again "
			"with `hapax keys show %s%s`",
			command->operand != NULL ? command->operand : "REFERENCE",
			hpx_operator_where(command));
	default:
		return hpx_operator_complain(command, HPX_EXIT_FAILED, "not done: %s",
					     hpx_status_text(op->status));
	}
}

static int print_json(const struct hpx_operator_command *command, const struct hpx_entry *entry,
		      const struct hpx_store_op *op, const char *state)
{
	char reference[HPX_REFERENCE_SIZE];
	struct hpx_buffer out;
	struct hpx_json_writer json;

	hpx_cli_json_init(&json, &out);
	hpx_json_begin_object(&json, NULL);
	if (entry != NULL) {
		hpx_reference_print(&entry->record.id, &entry->record.mark, reference);
		hpx_json_put_text(&json, "reference", reference);
		hpx_json_put_text(&json, "state", state);
	}
	if (op->verb == HPX_VERB_RESOLVE && op->resolve.answer != NULL)
		hpx_json_put_number(&json, "status", op->resolve.answer->status);
	return hpx_operator_json_sign(command, &json, op);
}

/* Runs the op on the operation and prints its result. */
static int settle(struct hpx_operator_command *command, struct hpx_entry *entry,
		  struct hpx_store_op *op, const char *state, const char *sentence)
{
	char reference[HPX_REFERENCE_SIZE];

	HPX_ASSERT(op->verb == HPX_VERB_FORGET || op->verb == HPX_VERB_RESOLVE);
	op->id = entry->record.id;
	op->mark = entry->record.mark;
	if (op->verb == HPX_VERB_FORGET)
		op->forget.force = command->force != NULL;
	else
		op->resolve.force = command->force != NULL;
	int code = hpx_operator_write(command, op);
	if (code != HPX_EXIT_OK)
		return code;
	if (op->status != HPX_OK)
		return explain(command, entry, op);
	if (command->json != NULL)
		return print_json(command, entry, op, state);
	hpx_reference_print(&entry->record.id, &entry->record.mark, reference);
	/* A removed operation is found only by its full reference. */
	printf("%.*s: %s\n", op->verb == HPX_VERB_FORGET ? -1 : 12, reference, sentence);
	return HPX_EXIT_OK;
}

/* The flags of resolve. */
static int check_flags(const struct hpx_operator_command *command)
{
	if ((command->applied != NULL) == (command->not_applied != NULL))
		return hpx_operator_complain(command, HPX_EXIT_USAGE,
					     "say what became of it: --applied or --not-applied");
	if (command->not_applied != NULL && (command->response != NULL || command->status != NULL))
		return hpx_operator_complain(
			command, HPX_EXIT_USAGE,
			"what was not applied has no answer: leave out --response "
			"and --status");
	if (command->applied != NULL && (command->response != NULL) == (command->status != NULL))
		return hpx_operator_complain(
			command, HPX_EXIT_USAGE,
			"--applied needs the answer that retries get: --response "
			"FILE, or --status N where only that is known");
	return HPX_EXIT_OK;
}

/* The answer of --response or --status. NULL, after a message: exit with `*ret_code`. */
static struct hpx_answer *make_answer(const struct hpx_operator_command *command, int *ret_code)
{
	struct hpx_span none = { NULL, 0 };
	uint64_t status;

	HPX_ASSERT((command->response != NULL) != (command->status != NULL));
	*ret_code = HPX_EXIT_FAILED;
	if (command->response != NULL)
		return read_answer(command, command->response);
	if (!hpx_span_u64(hpx_span_of(command->status), STATUS_MAX, &status) || status < STATUS_MIN) {
		*ret_code = hpx_operator_complain(command, HPX_EXIT_USAGE,
						  "--status is an HTTP status from %d to %d",
						  STATUS_MIN, STATUS_MAX);
		return NULL;
	}
	struct hpx_answer *answer = hpx_answer_new((uint32_t)status, false, none, none);
	if (answer == NULL)
		hpx_operator_complain(command, HPX_EXIT_FAILED, "out of memory");
	return answer;
}

static int resolve_applied(struct hpx_operator_command *command, struct hpx_entry *entry)
{
	struct hpx_store_op op = { .verb = HPX_VERB_RESOLVE, .resolve.applied = true };
	int code;
	struct hpx_answer *answer = make_answer(command, &code);

	if (answer == NULL)
		return code;
	op.resolve.answer = answer;
	code = settle(command, entry, &op, hpx_state_name(HPX_STATE_COMPLETED),
		      answer->kept ? "completed; retries get the answer from the file" :
				     "completed; retries are told that it happened");
	hpx_answer_free(answer);
	return code;
}

static int resolve_not_applied(struct hpx_operator_command *command, struct hpx_entry *entry)
{
	struct hpx_store_op op = { .verb = HPX_VERB_RESOLVE, .resolve.applied = false };

	int code = settle(command, entry, &op, hpx_state_name(HPX_STATE_FAILED_RETRYABLE),
			  "failed_retryable; the next request with its key executes it");
	if (code == HPX_EXIT_OK)
		fputs("Warning: if the first request is still running in the service behind hapax,\n"
		      "a retry from now on may make it happen twice.\n",
		      stderr);
	return code;
}

int hpx_keys_resolve(struct hpx_operator_command *command)
{
	struct hpx_entry entry;
	int code = check_flags(command);

	if (code == HPX_EXIT_OK)
		code = hpx_keys_find(command, &entry);
	if (code != HPX_EXIT_OK)
		return code;
	return command->applied ? resolve_applied(command, &entry) :
				  resolve_not_applied(command, &entry);
}

int hpx_keys_forget(struct hpx_operator_command *command)
{
	struct hpx_store_op op = { .verb = HPX_VERB_FORGET };
	struct hpx_entry entry;
	int code = hpx_keys_find(command, &entry);

	if (code != HPX_EXIT_OK)
		return code;
	return settle(command, &entry, &op, hpx_state_name(HPX_STATE_NONE),
		      "forgotten; the next request with its key is executed");
}

static int refuse_to_extend(struct hpx_operator_command *command, const struct hpx_entry *entry,
			    const struct hpx_store_op *op)
{
	const struct hpx_record *record = &entry->record;

	if (op->status == HPX_MISUSE)
		return hpx_operator_complain(command, HPX_EXIT_USAGE,
					     "--until is later than any time that can be kept");
	if (op->status != HPX_REFUSED)
		return explain(command, entry, op);
	if (record->state == HPX_STATE_COMPLETED || record->state == HPX_STATE_FAILED_RETRYABLE)
		return hpx_operator_complain(command, HPX_EXIT_FAILED,
					     "not done: it has expired, and its key may be in use again "
					     "at any moment");
	return hpx_operator_complain(command, HPX_EXIT_FAILED,
				     "not done: it is %s, and only a finished operation expires",
				     hpx_keys_state(entry));
}

/* The time that was asked for, or a later one that the record had before. */
static int tell_extended(struct hpx_operator_command *command, const struct hpx_entry *entry,
			 const struct hpx_store_op *op)
{
	int64_t before_ms = entry->record.expires_ms, now_ms = op->extend.until_ms;
	char reference[HPX_REFERENCE_SIZE], when[HPX_RFC3339_SIZE];
	struct hpx_buffer out;
	struct hpx_json_writer json;

	if (before_ms > now_ms)
		now_ms = before_ms;
	hpx_reference_print(&entry->record.id, &entry->record.mark, reference);
	if (command->json != NULL) {
		hpx_cli_json_init(&json, &out);
		hpx_json_begin_object(&json, NULL);
		hpx_json_put_text(&json, "reference", reference);
		hpx_json_put_text(&json, "state", hpx_keys_state(entry));
		hpx_json_put_time(&json, "expires", now_ms);
		hpx_json_put_bool(&json, "extended", now_ms != before_ms);
		return hpx_operator_json_sign(command, &json, op);
	}
	hpx_clock_rfc3339(now_ms, when);
	printf(now_ms != before_ms ? "%.12s: expires %s\n" :
				     "%.12s: nothing was changed, because it expires later anyway: %s\n",
	       reference, when);
	return HPX_EXIT_OK;
}

int hpx_keys_extend(struct hpx_operator_command *command)
{
	struct hpx_store_op op = { .verb = HPX_VERB_EXTEND };
	struct hpx_entry entry;
	int code;

	if (command->until == NULL)
		return hpx_operator_complain(command, HPX_EXIT_USAGE,
					     "say how long the answer is kept: --until TIME");
	code = hpx_operator_time(command, "until", command->until, true, &op.extend.until_ms);
	if (code == HPX_EXIT_OK && op.extend.until_ms <= command->now_ms)
		code = hpx_operator_complain(command, HPX_EXIT_USAGE, "--until is not in the future");
	if (code == HPX_EXIT_OK)
		code = hpx_keys_find(command, &entry);
	if (code != HPX_EXIT_OK)
		return code;
	op.id = entry.record.id;
	op.mark = entry.record.mark;
	code = hpx_operator_write(command, &op);
	if (code != HPX_EXIT_OK)
		return code;
	return op.status == HPX_OK ? tell_extended(command, &entry, &op) :
				     refuse_to_extend(command, &entry, &op);
}

int hpx_keys_accept_clock(struct hpx_operator_command *command)
{
	struct hpx_store_op op = { .verb = HPX_VERB_ACCEPT_CLOCK };
	char now[HPX_RFC3339_SIZE];
	int code = hpx_operator_write(command, &op);

	if (code != HPX_EXIT_OK)
		return code;
	if (op.status != HPX_OK)
		return hpx_operator_complain(command, HPX_EXIT_FAILED, "not done: %s",
					     hpx_status_text(op.status));
	if (command->json != NULL)
		return print_json(command, NULL, &op, NULL);
	hpx_clock_rfc3339(hpx_clock_wall_ms(), now);
	printf("the clock is accepted as it is, %s; records expire by it\n", now);
	return HPX_EXIT_OK;
}
