/* The output of `hapax call`: its attempts, the answer, the outcome of the call (on
 * standard error or as JSON), and the exit code. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/status.h"
#include "cli/call.h"
#include "cli/operator_command.h"
#include "core/json.h"
#include "http/write.h"

#define CLEAR "\r\033[K"
/* Of a code or a number of a problem document. */
#define MEMBER_MAX 64

/* ---- attempts: as they happen, on a terminal, and at the end, with --explain ---- */

static bool is_dumb(void)
{
	const char *term = getenv("TERM");

	return term == NULL || strcmp(term, "dumb") == 0;
}

/* "0.3 s", "12 s". */
static void print_seconds(int64_t ms, FILE *out)
{
	if (ms < 9950)
		fprintf(out, "%lld.%lld s", (long long)(ms / 1000), (long long)(ms % 1000 / 100));
	else
		fprintf(out, "%lld s", (long long)((ms + 500) / 1000));
}

static void print_end(const struct hapax_attempt *attempt, FILE *out)
{
	if (attempt->end == HAPAX_ATTEMPT_ANSWERED)
		fprintf(out, "%u %s", attempt->status, hpx_reason_phrase(attempt->status));
	else
		fprintf(out, "%s: %s",
			attempt->end == HAPAX_ATTEMPT_LOST ? "sent, and no answer" : "not sent",
			attempt->trouble);
}

static void print_attempt(const struct hapax_attempt *attempt, FILE *out)
{
	fprintf(out, "attempt %u: ", attempt->number);
	print_end(attempt, out);
	fputs(" (", out);
	print_seconds(attempt->took_ms, out);
	fputc(')', out);
	if (attempt->wait_ms >= 0) {
		fputs("; again in ", out);
		print_seconds(attempt->wait_ms, out);
	}
	fputc('\n', out);
}

/* Attempts beyond the bound, or without memory for them, are counted only. */
static void keep_attempt(struct hpx_call_command *command, const struct hapax_attempt *attempt)
{
	if (command->kept_count == command->kept_cap && command->kept_cap < HPX_CALL_KEPT_MAX) {
		size_t cap = command->kept_cap > 0 ? command->kept_cap * 2 : 8;
		struct hpx_call_kept *more = reallocarray(command->kept, cap, sizeof(*more));

		if (more != NULL) {
			command->kept = more;
			command->kept_cap = cap;
		}
	}
	if (command->kept_count == command->kept_cap || command->kept_count == HPX_CALL_KEPT_MAX) {
		command->left_out++;
		return;
	}
	HPX_ASSERT(command->kept_count < command->kept_cap);
	struct hpx_call_kept *kept = &command->kept[command->kept_count++];
	kept->attempt = *attempt;
	snprintf(kept->trouble, sizeof(kept->trouble), "%s", attempt->trouble);
}

static void clear_countdown(struct hpx_call_command *command)
{
	if (command->countdown)
		fputs(CLEAR, stderr);
	command->countdown = false;
}

static void count_down(struct hpx_call_command *command, int64_t wait_ms)
{
	if (!command->terminal || is_dumb() || (wait_ms < 1000 && !command->countdown))
		return;
	fprintf(stderr, CLEAR "next attempt in %lld s", (long long)((wait_ms + 999) / 1000));
	command->countdown = true;
}

void hpx_cli_call_observe(void *user, const struct hapax_attempt *attempt)
{
	struct hpx_call_command *command = user;

	switch (attempt->event) {
	case HAPAX_ATTEMPT_BEGINS:
		clear_countdown(command);
		break;
	case HAPAX_ATTEMPT_WAITS:
		count_down(command, attempt->wait_ms);
		break;
	case HAPAX_ATTEMPT_ENDED:
		keep_attempt(command, attempt);
		if (command->terminal)
			print_attempt(attempt, stderr);
		break;
	}
}

/* On a terminal the attempts were shown already. */
static void explain(const struct hpx_call_command *command)
{
	for (size_t i = 0; i < command->kept_count && !command->terminal; i++) {
		struct hapax_attempt attempt = command->kept[i].attempt;

		attempt.trouble = command->kept[i].trouble;
		print_attempt(&attempt, stderr);
	}
	if (command->left_out > 0)
		fprintf(stderr, "and %zu more\n", command->left_out);
}

/* ---- the answer, to standard output or to a file ----
 * An answer is handed over only when it is written. One that is not, the API is asked
 * for again. */

static int print_head(const struct hapax_outcome *outcome, FILE *out)
{
	fprintf(out, "HTTP/1.1 %u %s\r\n", outcome->status, hpx_reason_phrase(outcome->status));
	return hpx_cli_write(hpx_span_of(outcome->headers), out) == HPX_EXIT_OK ?
		       hpx_cli_write(HPX_SPAN("\r\n"), out) :
		       HPX_EXIT_FAILED;
}

static int print_to(const struct hpx_call_command *command, const struct hapax_outcome *outcome,
		    FILE *out)
{
	int code = HPX_EXIT_OK;

	if (command->flags.include != NULL)
		code = print_head(outcome, out);
	if (code == HPX_EXIT_OK)
		code = hpx_cli_write(hpx_span(outcome->body, outcome->body_len), out);
	return code;
}

/* The answer is on the disk before the journal says that the call is done. A pipe or a
 * terminal cannot be synced. */
static bool sync_file(FILE *out)
{
	return fsync(fileno(out)) == 0 || errno == EINVAL || errno == EROFS;
}

static int print_to_file(const struct hpx_call_command *command, const struct hapax_outcome *outcome)
{
	FILE *out = fopen(command->flags.output, "we");

	if (out == NULL)
		return hpx_cli_call_complain(HPX_EXIT_FAILED,
					     "%s: %s", command->flags.output, strerror(errno));
	int code = print_to(command, outcome, out);
	if (code == HPX_EXIT_OK && !sync_file(out))
		code = hpx_cli_call_complain(HPX_EXIT_FAILED,
					     "%s: %s", command->flags.output, strerror(errno));
	if (fclose(out) != 0 && code == HPX_EXIT_OK)
		code = hpx_cli_call_complain(HPX_EXIT_FAILED,
					     "%s: %s", command->flags.output, strerror(errno));
	return code;
}

/* Before anything is sent, a mistake costs nothing. */
int hpx_cli_call_output_check(const struct hpx_call_command *command)
{
	const char *path = command->flags.output;
	char copy[PATH_MAX];
	struct stat info;

	if (path == NULL)
		return HPX_EXIT_OK;
	if (strlen(path) >= sizeof(copy))
		return hpx_cli_call_complain(HPX_EXIT_USAGE,
					     "-o: the path is too long: nothing was sent");
	memcpy(copy, path, strlen(path) + 1);
	bool there = stat(path, &info) == 0;
	bool good = there ? access(path, W_OK) == 0 : access(dirname(copy), W_OK | X_OK) == 0;
	if (good && there && S_ISDIR(info.st_mode)) {
		errno = EISDIR;
		good = false;
	}
	return good ? HPX_EXIT_OK :
		      hpx_cli_call_complain(HPX_EXIT_USAGE, "%s: %s: nothing was sent", path,
					    strerror(errno));
}

static int print_answer(const struct hpx_call_command *command, const struct hapax_outcome *outcome)
{
	HPX_ASSERT(!command->countdown);
	if (outcome->kind != HAPAX_DONE || command->many)
		return HPX_EXIT_OK;
	if (!outcome->body_kept)
		hpx_cli_call_complain(0, "the answer's body is too large, and was not kept");
	if (command->flags.output != NULL)
		return print_to_file(command, outcome);
	return command->flags.json != NULL ? HPX_EXIT_OK : print_to(command, outcome, stdout);
}

/* ---- the outcome, and the exit code ---- */

/* The scalar at a pointer of the answer's body; ptr NULL where there is none. */
static struct hpx_span member_of(const struct hapax_outcome *outcome, struct hpx_span pointer,
				 enum hpx_json_kind kind, struct hpx_arena *arena)
{
	struct hpx_json_scalar scalar;

	return hpx_json_lookup(hpx_span(outcome->body, outcome->body_len), pointer, MEMBER_MAX, arena,
			       &scalar) == HPX_OK &&
			       scalar.kind == kind ?
		       scalar.text :
		       (struct hpx_span){ NULL, 0 };
}

/* A 409 may say that the operation happened and that its answer was not kept
 * (response_not_kept). Then the status of that answer counts, 200 where nobody saw
 * it; 0: the answer says something else. */
static unsigned original_status(const struct hapax_call *call)
{
	const struct hapax_outcome *outcome = hapax_call_outcome(call);
	struct hpx_span type = hpx_span_of(hapax_call_answer_header(call, "Content-Type"));
	struct hpx_arena arena;
	uint64_t status = 0;

	if (outcome->status != 409 || !hpx_span_istarts(type, HPX_SPAN("application/problem+json")))
		return 0;
	hpx_arena_init(&arena, MEMBER_MAX * 16);
	struct hpx_span number = member_of(outcome, HPX_SPAN("/original_status"), HPX_JSON_NUMBER, &arena);
	struct hpx_span code = member_of(outcome, HPX_SPAN("/code"), HPX_JSON_STRING, &arena);
	if (number.ptr != NULL)
		hpx_span_u64(number, 599, &status);
	else if (hpx_span_eq(code, HPX_SPAN("response_not_kept")))
		status = 200;
	hpx_arena_done(&arena);
	return (unsigned)status;
}

/* 303: it happened, and the result is elsewhere. Any other redirect, such as a 301 to
 * https, says that it did not happen here. */
bool hpx_cli_call_is_success(unsigned status)
{
	return (status >= 200 && status < 300) || status == 303;
}

static int exit_of(const struct hapax_call *call)
{
	const struct hapax_outcome *outcome = hapax_call_outcome(call);
	unsigned original = original_status(call);

	if (outcome->kind != HAPAX_DONE)
		return outcome->doubt ? HPX_EXIT_IN_DOUBT : HPX_EXIT_NOT_YET;
	if (hpx_cli_call_is_success(original)) {
		hpx_cli_call_complain(0, "it happened, and its answer was not kept");
		return HPX_EXIT_OK;
	}
	return hpx_cli_call_is_success(outcome->status) ? HPX_EXIT_OK : HPX_EXIT_FAILED;
}

static const char *outcome_word(enum hapax_outcome_kind kind)
{
	static const char *const words[] = {
		[HAPAX_DONE] = "done",
		[HAPAX_STOPPED] = "stopped",
		[HAPAX_GAVE_UP] = "gave_up",
		[HAPAX_INTERRUPTED] = "interrupted",
	};

	return words[kind];
}

static void json_attempts(const struct hpx_call_command *command, struct hpx_json_writer *json)
{
	static const char *const ends[] = {
		[HAPAX_ATTEMPT_UNSENT] = "not_sent",
		[HAPAX_ATTEMPT_LOST] = "no_answer",
		[HAPAX_ATTEMPT_ANSWERED] = "answered",
	};

	hpx_json_begin_array(json, "attempts");
	for (size_t i = 0; i < command->kept_count; i++) {
		const struct hapax_attempt *attempt = &command->kept[i].attempt;

		hpx_json_begin_object(json, NULL);
		hpx_json_put_number(json, "number", attempt->number);
		hpx_json_put_text(json, "end", ends[attempt->end]);
		hpx_json_put_number(json, "status", attempt->status);
		hpx_json_put_text(json, "trouble", command->kept[i].trouble);
		hpx_json_put_number(json, "took_ms", (uint64_t)attempt->took_ms);
		hpx_json_put_bool(json, "in_doubt", attempt->doubt != 0);
		if (attempt->wait_ms >= 0)
			hpx_json_put_number(json, "wait_ms", (uint64_t)attempt->wait_ms);
		hpx_json_end_object(json);
	}
	hpx_json_end_array(json);
}

static void json_answer(struct hpx_json_writer *json, const struct hapax_outcome *outcome)
{
	struct hpx_span rest = hpx_span_of(outcome->headers);
	struct hpx_span line;

	hpx_json_put_number(json, "status", outcome->status);
	hpx_json_begin_array(json, "headers");
	while (hpx_span_line(&rest, &line))
		hpx_json_put_string(json, NULL, line);
	hpx_json_end_array(json);
	hpx_json_put_bool(json, "body_kept", outcome->body_kept);
	hpx_json_put_bytes(json, "body", hpx_span(outcome->body, outcome->body_len));
}

/* One line of JSON for each call. */
static int print_json(const struct hpx_call_command *command, const struct hapax_outcome *outcome,
		      int exit_code)
{
	struct hpx_buffer text;
	struct hpx_json_writer json;

	hpx_cli_json_init(&json, &text);
	hpx_json_begin_object(&json, NULL);
	hpx_json_put_text(&json, "outcome", outcome_word(outcome->kind));
	hpx_json_put_bool(&json, "in_doubt", outcome->doubt != 0);
	hpx_json_put_number(&json, "exit", (uint64_t)exit_code);
	hpx_json_put_text(&json, "reason", outcome->reason);
	hpx_json_put_number(&json, "id", (uint64_t)outcome->id);
	hpx_json_put_text(&json, "key", outcome->key);
	json_attempts(command, &json);
	hpx_json_put_number(&json, "left_out", command->left_out);
	json_answer(&json, outcome);
	hpx_json_end_object(&json);
	return hpx_cli_json_print(&json, "call", "the report cannot be printed");
}

static void print_last(const struct hpx_call_command *command)
{
	if (command->kept_count == 0 || command->left_out > 0)
		return;
	struct hapax_attempt last = command->kept[command->kept_count - 1].attempt;
	last.trouble = command->kept[command->kept_count - 1].trouble;
	fputs(" (the last attempt: ", stderr);
	print_end(&last, stderr);
	fputc(')', stderr);
}

/* How the person can go on. */
static void print_next_step(const struct hpx_call_command *command, const struct hapax_outcome *outcome)
{
	if (outcome->id == 0) {
		fprintf(stderr, "it was not written down: send the same request with --key '%s'\n",
			outcome->key);
		return;
	}
	fprintf(stderr, "`hapax call --resume %lld", (long long)outcome->id);
	hpx_cli_call_journal_print_flag(command, stderr);
	fputs("` goes on with the same key\n", stderr);
}

static void print_unsettled(const struct hpx_call_command *command,
			    const struct hapax_outcome *outcome)
{
	HPX_ASSERT(outcome->kind != HAPAX_DONE);
	fprintf(stderr, "hapax call: %s: %s",
		outcome->doubt ? "it may have happened" : "nothing has happened", outcome->reason);
	print_last(command);
	fputc('\n', stderr);
	print_next_step(command, outcome);
}

static void print_words(const struct hpx_call_command *command, const struct hapax_outcome *outcome)
{
	if (command->flags.explain != NULL)
		explain(command);
	if (outcome->kind != HAPAX_DONE)
		print_unsettled(command, outcome);
	else if (command->many)
		hpx_cli_call_complain(0, "call %lld: answered with %u %s", (long long)outcome->id,
				      outcome->status, hpx_reason_phrase(outcome->status));
	else if (!hpx_cli_call_is_success(outcome->status))
		hpx_cli_call_complain(0, "answered with %u %s%s", outcome->status,
				      hpx_reason_phrase(outcome->status),
				      outcome->status < 400 ? ", which is not followed" : "");
	else if (command->flags.explain != NULL)
		fprintf(stderr, "done after %u attempt%s, with the key %s\n", outcome->attempts,
			outcome->attempts == 1 ? "" : "s", outcome->key);
}

/* A call that was refused before it was sent has no reason of its end. */
static bool has_begun(const struct hapax_outcome *outcome)
{
	return outcome->attempts > 0 && (outcome->kind == HAPAX_DONE || outcome->reason[0] != '\0');
}

/* The answer was handed over: the journal may forget the request. */
static int confirm(struct hapax_call *call, int code)
{
	char problem[HAPAX_PROBLEM_SIZE];

	if (hapax_call_confirm(call, problem) != HAPAX_OK)
		hpx_cli_call_complain(0, "%s", problem);
	return code;
}

/* The answer could not be handed over: a resume asks for it again. The exit code is not
 * 1, which would mean a refusal. */
static int keep_open(const struct hpx_call_command *command, const struct hapax_outcome *outcome)
{
	hpx_cli_call_complain(0, "it was answered with %u %s, and the answer could not be handed over",
			      outcome->status, hpx_reason_phrase(outcome->status));
	print_next_step(command, outcome);
	return HPX_EXIT_IN_DOUBT;
}

static int report(struct hpx_call_command *command, struct hapax_call *call)
{
	const struct hapax_outcome *outcome = hapax_call_outcome(call);
	int code = exit_of(call);

	print_words(command, outcome);
	int printed = print_answer(command, outcome);
	if (printed == HPX_EXIT_OK && command->flags.json != NULL)
		printed = print_json(command, outcome, code);
	if (outcome->kind != HAPAX_DONE)
		return code;
	return printed == HPX_EXIT_OK ? confirm(call, code) : keep_open(command, outcome);
}

int hpx_cli_call_send_and_report(struct hpx_call_command *command, struct hapax_call *call)
{
	char problem[HAPAX_PROBLEM_SIZE];

	command->kept_count = 0;
	command->left_out = 0;
	enum hapax_result result = hapax_call_send(call, problem);
	if (command->countdown)
		fputc('\n', stderr);
	command->countdown = false;
	if (result != HAPAX_OK)
		hpx_cli_call_complain(0, "%s", problem);
	if (result != HAPAX_OK && !has_begun(hapax_call_outcome(call)))
		return HPX_CALL_NOT_BEGUN;
	return report(command, call);
}
