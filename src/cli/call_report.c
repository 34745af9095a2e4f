/* How a call ended: the answer on standard output, what is known on standard
 * error, and the exit code. */
#include <errno.h>

#include "base/buffer.h"
#include "cli/call.h"
#include "cli/desk_json.h"
#include "core/json_lookup.h"
#include "http/problem.h"

#define NUMBER_MAX 16
#define JSON_MAX ((size_t)256 * 1024 * 1024)

/* A 409 may say that it happened and that its answer was not kept
 * (response_not_kept): then the status that it had counts, 0 where none is said. */
static unsigned original_status(const struct hapax_call *call)
{
	const struct hapax_outcome *outcome = hapax_call_outcome(call);
	struct hpx_span type = hpx_span_of(hapax_call_answer_header(call, "Content-Type"));
	struct hpx_json_scalar scalar;
	struct hpx_arena arena;
	uint64_t status = 0;

	if (outcome->status != 409 || !hpx_span_istarts(type, HPX_SPAN("application/problem+json")))
		return 0;
	hpx_arena_init(&arena, NUMBER_MAX * 16);
	if (hpx_json_lookup(hpx_span(outcome->body, outcome->body_len), HPX_SPAN("/original_status"),
			    NUMBER_MAX, &arena, &scalar) == HPX_OK &&
	    scalar.kind == HPX_JSON_NUMBER)
		hpx_span_u64(scalar.text, 599, &status);
	hpx_arena_done(&arena);
	return (unsigned)status;
}

static int exit_of(const struct hapax_call *call)
{
	const struct hapax_outcome *outcome = hapax_call_outcome(call);
	unsigned original = original_status(call);

	if (outcome->kind != HAPAX_DONE)
		return outcome->doubt ? HPX_EXIT_IN_DOUBT : HPX_EXIT_NOT_YET;
	if (original >= 200 && original < 400) {
		hpx_call_complain(0, "it happened (%u), and its answer was not kept", original);
		return HPX_EXIT_OK;
	}
	return outcome->status < 400 ? HPX_EXIT_OK : HPX_EXIT_FAILED;
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

static int print_head(const struct hapax_outcome *outcome, FILE *out)
{
	fprintf(out, "HTTP/1.1 %u %s\r\n", outcome->status, hpx_reason_phrase(outcome->status));
	return hpx_cli_write(hpx_span_of(outcome->headers), out) == HPX_EXIT_OK ?
		       hpx_cli_write(HPX_SPAN("\r\n"), out) :
		       HPX_EXIT_FAILED;
}

static int print_to(const struct hpx_call_desk *desk, const struct hapax_outcome *outcome,
		    FILE *out)
{
	int code = HPX_EXIT_OK;

	if (desk->flags.include != NULL)
		code = print_head(outcome, out);
	if (code == HPX_EXIT_OK)
		code = hpx_cli_write(hpx_span(outcome->body, outcome->body_len), out);
	return code;
}

static int print_to_file(const struct hpx_call_desk *desk, const struct hapax_outcome *outcome)
{
	FILE *out = fopen(desk->flags.output, "we");

	if (out == NULL)
		return hpx_call_complain(HPX_EXIT_FAILED,
					 "%s: %s", desk->flags.output, strerror(errno));
	int code = print_to(desk, outcome, out);
	if (fclose(out) != 0 && code == HPX_EXIT_OK)
		code = hpx_call_complain(HPX_EXIT_FAILED,
					 "%s: %s", desk->flags.output, strerror(errno));
	return code;
}

/* Of a definite answer only: nobody shall take another one for the result. */
static int print_answer(const struct hpx_call_desk *desk, const struct hapax_outcome *outcome)
{
	if (outcome->kind != HAPAX_DONE || desk->many)
		return HPX_EXIT_OK;
	if (!outcome->body_kept)
		hpx_call_complain(0, "the answer's body is too large, and was not kept");
	if (desk->flags.output != NULL)
		return print_to_file(desk, outcome);
	return desk->flags.json != NULL ? HPX_EXIT_OK : print_to(desk, outcome, stdout);
}

static void json_attempts(const struct hpx_call_desk *desk, struct hpx_desk_json *json)
{
	static const char *const ends[] = {
		[HAPAX_ATTEMPT_UNSENT] = "not_sent",
		[HAPAX_ATTEMPT_LOST] = "no_answer",
		[HAPAX_ATTEMPT_ANSWERED] = "answered",
	};

	hpx_desk_json_name(json, "attempts");
	hpx_desk_json_open(json, "[");
	for (size_t i = 0; i < desk->kept_count; i++) {
		const struct hapax_attempt *attempt = &desk->kept[i].attempt;

		hpx_desk_json_name(json, NULL);
		hpx_desk_json_open(json, "{");
		hpx_desk_json_number(json, "number", attempt->number);
		hpx_desk_json_text(json, "end", hpx_span_of(ends[attempt->end]));
		hpx_desk_json_number(json, "status", attempt->status);
		hpx_desk_json_text(json, "trouble", hpx_span_of(desk->kept[i].trouble));
		hpx_desk_json_number(json, "took_ms", (uint64_t)attempt->took_ms);
		hpx_desk_json_bool(json, "in_doubt", attempt->doubt != 0);
		if (attempt->wait_ms >= 0)
			hpx_desk_json_number(json, "wait_ms", (uint64_t)attempt->wait_ms);
		hpx_desk_json_close(json, "}");
	}
	hpx_desk_json_close(json, "]");
}

static void json_answer(struct hpx_desk_json *json, const struct hapax_outcome *outcome)
{
	struct hpx_span rest = hpx_span_of(outcome->headers);
	struct hpx_span line;

	hpx_desk_json_number(json, "status", outcome->status);
	hpx_desk_json_name(json, "headers");
	hpx_desk_json_open(json, "[");
	while (hpx_span_split(&rest, '\n', &line) && line.len > 0)
		hpx_desk_json_text(json, NULL, hpx_span_first(line, line.len - 1));
	hpx_desk_json_close(json, "]");
	hpx_desk_json_bool(json, "body_kept", outcome->body_kept);
	hpx_desk_json_bytes(json, "body", hpx_span(outcome->body, outcome->body_len));
}

/* One line for each call. */
static int print_json(const struct hpx_call_desk *desk, const struct hapax_outcome *outcome,
		      int exit_code)
{
	struct hpx_buffer text;
	struct hpx_desk_json json = { .out = &text, .first = true };

	hpx_buffer_init(&text, JSON_MAX);
	hpx_desk_json_open(&json, "{");
	hpx_desk_json_text(&json, "outcome", hpx_span_of(outcome_word(outcome->kind)));
	hpx_desk_json_bool(&json, "in_doubt", outcome->doubt != 0);
	hpx_desk_json_number(&json, "exit", (uint64_t)exit_code);
	hpx_desk_json_text(&json, "reason", hpx_span_of(outcome->reason));
	hpx_desk_json_number(&json, "id", (uint64_t)outcome->id);
	hpx_desk_json_text(&json, "key", hpx_span_of(outcome->key));
	json_attempts(desk, &json);
	hpx_desk_json_number(&json, "left_out", desk->left_out);
	json_answer(&json, outcome);
	hpx_desk_json_close(&json, "}\n");
	int code = json.status == HPX_OK ? hpx_cli_write(hpx_buffer_span(&text), stdout)
					 : hpx_call_complain(HPX_EXIT_FAILED, "the report: %s",
							     hpx_status_text(json.status));
	hpx_buffer_done(&text);
	return code;
}

static void print_last(const struct hpx_call_desk *desk)
{
	if (desk->kept_count == 0 || desk->left_out > 0)
		return;
	struct hapax_attempt last = desk->kept[desk->kept_count - 1].attempt;
	last.trouble = desk->kept[desk->kept_count - 1].trouble;
	fputs(" (the last attempt: ", stderr);
	hpx_call_print_end(&last, stderr);
	fputc(')', stderr);
}

/* What is known, and how to go on. */
static void print_unsettled(const struct hpx_call_desk *desk, const struct hapax_outcome *outcome)
{
	const char *journal = desk->flags.journal;

	fprintf(stderr, "hapax call: %s: %s",
		outcome->doubt ? "it may have happened" : "nothing has happened", outcome->reason);
	print_last(desk);
	fputc('\n', stderr);
	if (outcome->id != 0)
		fprintf(stderr, "`hapax call --resume %lld%s%s` goes on with the same key\n",
			(long long)outcome->id, journal != NULL ? " --journal " : "",
			journal != NULL ? journal : "");
	else
		fprintf(stderr, "it was not written down: send the same request with --key '%s'\n",
			outcome->key);
}

static void print_words(const struct hpx_call_desk *desk, const struct hapax_outcome *outcome)
{
	if (desk->flags.explain != NULL)
		hpx_call_explain(desk);
	if (outcome->kind != HAPAX_DONE)
		print_unsettled(desk, outcome);
	else if (desk->many)
		hpx_call_complain(0, "call %lld: answered with %u %s", (long long)outcome->id,
				  outcome->status, hpx_reason_phrase(outcome->status));
	else if (outcome->status >= 400)
		hpx_call_complain(0, "answered with %u %s", outcome->status,
				  hpx_reason_phrase(outcome->status));
	else if (desk->flags.explain != NULL)
		fprintf(stderr, "done after %u attempt%s, with the key %s\n", outcome->attempts,
			outcome->attempts == 1 ? "" : "s", outcome->key);
}

/* A call that was refused before it was sent has no reason to have ended. */
static bool has_begun(const struct hapax_outcome *outcome)
{
	return outcome->attempts > 0 && (outcome->kind == HAPAX_DONE || outcome->reason[0] != '\0');
}

/* HAPAX_UNCERTAIN: there is an answer, and the journal does not know it. */
int hpx_call_report(struct hpx_call_desk *desk, const struct hapax_call *call,
		    enum hapax_result result, const char *problem)
{
	const struct hapax_outcome *outcome = hapax_call_outcome(call);
	int code = HPX_EXIT_FAILED;

	if (desk->countdown)
		fputc('\n', stderr);
	desk->countdown = false;
	if (result != HAPAX_OK)
		hpx_call_complain(0, "%s", problem);
	if (result != HAPAX_OK && !has_begun(outcome))
		return code;
	code = exit_of(call);
	print_words(desk, outcome);
	int printed = print_answer(desk, outcome);
	if (printed == HPX_EXIT_OK && desk->flags.json != NULL)
		printed = print_json(desk, outcome, code);
	return code == HPX_EXIT_OK ? printed : code;
}
