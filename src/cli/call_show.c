/* The attempts as they happen, on a terminal, and as they were, when asked. */
#include <stdlib.h>

#include "cli/call.h"
#include "http/problem.h"

#define CLEAR "\r\033[K"

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

void hpx_call_print_end(const struct hapax_attempt *attempt, FILE *out)
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
	hpx_call_print_end(attempt, out);
	fputs(" (", out);
	print_seconds(attempt->took_ms, out);
	fputc(')', out);
	if (attempt->wait_ms >= 0) {
		fputs("; again in ", out);
		print_seconds(attempt->wait_ms, out);
	}
	fputc('\n', out);
}

/* Attempts beyond the bound, or for which there is no memory, are counted. */
static void keep(struct hpx_call_command *command, const struct hapax_attempt *attempt)
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

void hpx_call_observe(void *user, const struct hapax_attempt *attempt)
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
		keep(command, attempt);
		if (command->terminal)
			print_attempt(attempt, stderr);
		break;
	}
}

/* On a terminal they were shown already. */
void hpx_call_explain(const struct hpx_call_command *command)
{
	for (size_t i = 0; i < command->kept_count && !command->terminal; i++) {
		struct hapax_attempt attempt = command->kept[i].attempt;

		attempt.trouble = command->kept[i].trouble;
		print_attempt(&attempt, stderr);
	}
	if (command->left_out > 0)
		fprintf(stderr, "and %zu more\n", command->left_out);
}
