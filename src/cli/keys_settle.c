/* A person's word: resolve, forget, accept-clock. Each is one op of the store,
 * leaves an event with the person's name and reason, and works beside a
 * running server, whose own writes it waits for. */
#include "base/clock.h"
#include "cli/jobs.h"

#define STATUS_MIN 200
#define STATUS_MAX 599

static const char *why_not(const struct hpx_operator_command *command, const struct hpx_entry *entry)
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
		return "it may have happened; settle it with `hapax keys resolve`, or, if the next "
		       "request may execute it again, say --force";
	case HPX_STATE_COMPLETED:
		return "it is completed, and nothing overrides that";
	case HPX_STATE_FAILED_RETRYABLE:
		return "it is known not to have happened; the next request executes it";
	case HPX_STATE_PENDING:
		return forget ? "its delivery is owed and may still happen; look with `hapax jobs ls "
				"--operation`, discard the job, or, if it may happen again, say "
				"--force" :
				"its delivery is still owed; look with `hapax jobs ls --operation`";
	default:
		return "its state does not allow it";
	}
}

/* What the store made of it, where that is not HPX_OK. */
static int explain(const struct hpx_operator_command *command, const struct hpx_entry *entry,
		   const struct hpx_store_op *op)
{
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
			"with `hapax keys show`");
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
	struct hpx_operator_json json = { .out = &out };

	hpx_buffer_init(&out, 65536);
	hpx_operator_json_open(&json, "{");
	if (entry != NULL) {
		hpx_reference_print(&entry->record.id, &entry->record.mark, reference);
		hpx_operator_json_text(&json, "reference", hpx_span_of(reference));
		hpx_operator_json_text(&json, "state", hpx_span_of(state));
	}
	if (op->answer != NULL)
		hpx_operator_json_number(&json, "status", op->answer->status);
	int code = hpx_operator_json_sign(command, &json, op);
	hpx_buffer_done(&out);
	return code;
}

/* Runs the op on the operation, and says what came of it. */
static int settle(struct hpx_operator_command *command, struct hpx_entry *entry,
		  struct hpx_store_op *op, const char *state, const char *sentence)
{
	char reference[HPX_REFERENCE_SIZE];

	op->id = entry->record.id;
	op->mark = entry->record.mark;
	op->force = command->force != NULL;
	int code = hpx_operator_write(command, op);
	if (code != HPX_EXIT_OK)
		return code;
	if (op->status != HPX_OK)
		return explain(command, entry, op);
	if (command->json != NULL)
		return print_json(command, entry, op, state);
	hpx_reference_print(&entry->record.id, &entry->record.mark, reference);
	/* What is gone is found by the whole of it only. */
	printf("%.*s: %s\n", op->verb == HPX_VERB_FORGET ? -1 : 12, reference, sentence);
	return HPX_EXIT_OK;
}

static int check_verdict(const struct hpx_operator_command *command)
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

/* NULL: what is wrong was said; `*ret_code` is what to exit with. */
static struct hpx_answer *make_answer(const struct hpx_operator_command *command, int *ret_code)
{
	struct hpx_span none = { NULL, 0 };
	uint64_t status;

	*ret_code = HPX_EXIT_FAILED;
	if (command->response != NULL)
		return hpx_keys_answer_read(command, command->response);
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
	struct hpx_store_op op = { .verb = HPX_VERB_RESOLVE, .applied = true };
	int code;
	struct hpx_answer *answer = make_answer(command, &code);

	if (answer == NULL)
		return code;
	op.answer = answer;
	code = settle(command, entry, &op, hpx_state_name(HPX_STATE_COMPLETED),
		      answer->kept ? "completed; retries get the answer from the file" :
				     "completed; retries are told that it happened");
	hpx_answer_free(answer);
	return code;
}

static int resolve_not_applied(struct hpx_operator_command *command, struct hpx_entry *entry)
{
	struct hpx_store_op op = { .verb = HPX_VERB_RESOLVE, .applied = false };

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
	int code = check_verdict(command);

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
