/* A person's word: resolve, forget, accept-clock. Each is one op of the store,
 * leaves an event with the person's name and reason, and works beside a
 * running server, whose own writes it waits for. */
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/keys.h"
#include "cli/keys_json.h"

#define STATUS_MIN 200
#define STATUS_MAX 599

/* Whoever became root with sudo is still themselves. */
static struct hpx_span actor(struct hpx_arena *arena)
{
	const char *name = getenv("SUDO_USER");
	char login[64];

	if (name == NULL || *name == '\0')
		name = getlogin_r(login, sizeof(login)) == 0 ? login : NULL;
	if (name == NULL) {
		struct passwd *entry = getpwuid(getuid());
		name = entry ? entry->pw_name : NULL;
	}
	struct hpx_span copy = name ? hpx_arena_dup(arena, hpx_span_of(name)) :
				      hpx_arena_printf(arena, "uid %u", (unsigned)getuid());
	return copy.ptr != NULL ? copy : HPX_SPAN("unnamed");
}

/* HPX_EXIT_OK: the store has taken it; what became of it is in op->status. */
static int run(struct hpx_keys *keys, struct hpx_store_op *op)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	struct hpx_store_op *ops[] = { op };

	op->actor = actor(&keys->arena);
	op->reason = hpx_span_of(keys->reason);
	enum hpx_status status = hpx_store_run(keys->store, ops, 1, problem);
	if (status == HPX_OK)
		return HPX_EXIT_OK;
	if (status == HPX_BUSY)
		return hpx_keys_complain(keys, HPX_EXIT_FAILED,
					 "the store is busy with other writes; try again");
	return hpx_keys_complain(keys, HPX_EXIT_FAILED,
				 "the store failed (%s); look with `hapax keys show` whether it was "
				 "written before you try again",
				 problem[0] ? problem : hpx_status_text(status));
}

static const char *why_not(const struct hpx_keys *keys, const struct hpx_entry *entry)
{
	bool forget = strcmp(keys->verb, "keys forget") == 0;

	if (!entry->readable)
		return "its record cannot be read; if you are sure, say --force";
	switch (entry->record.state) {
	case HPX_STATE_IN_PROGRESS:
		return forget ? "it is in progress and may still happen; if the next request may "
				"execute it again, say --force" :
				"it is still in progress; wait until it is answered or becomes unknown";
	case HPX_STATE_UNKNOWN:
		return "it may have happened; settle it with `hapax keys resolve`, or, if the next "
		       "request may execute it again, say --force";
	case HPX_STATE_COMPLETED:
		return "it is completed, and nothing overrides that";
	case HPX_STATE_FAILED_RETRYABLE:
		return "it is known not to have happened; the next request executes it";
	default:
		return "its state does not allow it";
	}
}

/* What the store made of it, where that is not HPX_OK. */
static int explain(const struct hpx_keys *keys, const struct hpx_entry *entry,
		   const struct hpx_store_op *op)
{
	switch (op->status) {
	case HPX_REFUSED:
	case HPX_CORRUPT:
		return hpx_keys_complain(keys, HPX_EXIT_FAILED, "not done: %s",
					 why_not(keys, entry));
	case HPX_STALE:
	case HPX_NOT_FOUND:
		return hpx_keys_complain(keys, HPX_EXIT_FAILED,
					 "not done: the operation has changed meanwhile; look again "
					 "with `hapax keys show`");
	default:
		return hpx_keys_complain(keys, HPX_EXIT_FAILED, "not done: %s",
					 hpx_status_text(op->status));
	}
}

static int print_json(const struct hpx_keys *keys, const struct hpx_entry *entry,
		      const struct hpx_store_op *op, const char *state)
{
	char reference[HPX_REFERENCE_SIZE];
	struct hpx_buffer out;
	struct hpx_keys_json json = { .out = &out };

	hpx_buffer_init(&out, 65536);
	hpx_keys_json_open(&json, "{");
	if (entry != NULL) {
		hpx_reference_print(&entry->record.id, &entry->record.first, reference);
		hpx_keys_json_text(&json, "reference", hpx_span_of(reference));
		hpx_keys_json_text(&json, "state", hpx_span_of(state));
	}
	if (op->answer != NULL)
		hpx_keys_json_number(&json, "status", op->answer->status);
	hpx_keys_json_time(&json, "at", hpx_clock_wall_ms());
	hpx_keys_json_text(&json, "actor", op->actor);
	hpx_keys_json_text(&json, "reason", op->reason);
	hpx_keys_json_close(&json, "}\n");
	int code = json.status == HPX_OK ?
			   hpx_cli_write(hpx_buffer_span(&out), stdout) :
			   hpx_keys_complain(keys, HPX_EXIT_FAILED,
					     "done, but the answer cannot be printed: %s",
					     hpx_status_text(json.status));
	hpx_buffer_done(&out);
	return code;
}

/* Runs the op on the operation, and says what came of it. */
static int settle(struct hpx_keys *keys, struct hpx_entry *entry, struct hpx_store_op *op,
		  const char *state, const char *sentence)
{
	char reference[HPX_REFERENCE_SIZE];

	op->id = entry->record.id;
	op->token = entry->record.first;
	op->force = keys->force != NULL;
	int code = run(keys, op);
	if (code != HPX_EXIT_OK)
		return code;
	if (op->status != HPX_OK)
		return explain(keys, entry, op);
	if (keys->json != NULL)
		return print_json(keys, entry, op, state);
	hpx_reference_print(&entry->record.id, &entry->record.first, reference);
	printf("%.12s: %s\n", reference, sentence);
	return HPX_EXIT_OK;
}

static int check_verdict(const struct hpx_keys *keys)
{
	if ((keys->applied != NULL) == (keys->not_applied != NULL))
		return hpx_keys_complain(keys, HPX_EXIT_USAGE,
					 "say what became of it: --applied or --not-applied");
	if (keys->not_applied != NULL && (keys->response != NULL || keys->status != NULL))
		return hpx_keys_complain(keys, HPX_EXIT_USAGE,
					 "what was not applied has no answer: leave out --response "
					 "and --status");
	if (keys->applied != NULL && (keys->response != NULL) == (keys->status != NULL))
		return hpx_keys_complain(keys, HPX_EXIT_USAGE,
					 "--applied needs the answer that retries get: --response "
					 "FILE, or --status N where only that is known");
	return HPX_EXIT_OK;
}

/* NULL: what is wrong was said; `*ret_code` is what to exit with. */
static struct hpx_answer *make_answer(const struct hpx_keys *keys, int *ret_code)
{
	struct hpx_span none = { NULL, 0 };
	uint64_t status;

	*ret_code = HPX_EXIT_FAILED;
	if (keys->response != NULL)
		return hpx_keys_answer_read(keys, keys->response);
	if (!hpx_span_u64(hpx_span_of(keys->status), STATUS_MAX, &status) || status < STATUS_MIN) {
		*ret_code = hpx_keys_complain(keys, HPX_EXIT_USAGE,
					      "--status is an HTTP status from %d to %d", STATUS_MIN,
					      STATUS_MAX);
		return NULL;
	}
	struct hpx_answer *answer = hpx_answer_new((uint32_t)status, false, none, none);
	if (answer == NULL)
		hpx_keys_complain(keys, HPX_EXIT_FAILED, "out of memory");
	return answer;
}

static int resolve_applied(struct hpx_keys *keys, struct hpx_entry *entry)
{
	struct hpx_store_op op = { .verb = HPX_VERB_RESOLVE, .applied = true };
	int code;
	struct hpx_answer *answer = make_answer(keys, &code);

	if (answer == NULL)
		return code;
	op.answer = answer;
	code = settle(keys, entry, &op, hpx_state_name(HPX_STATE_COMPLETED),
		      answer->kept ? "completed; retries get the answer from the file" :
				     "completed; retries are told that it happened");
	hpx_answer_free(answer);
	return code;
}

static int resolve_not_applied(struct hpx_keys *keys, struct hpx_entry *entry)
{
	struct hpx_store_op op = { .verb = HPX_VERB_RESOLVE, .applied = false };

	int code = settle(keys, entry, &op, hpx_state_name(HPX_STATE_FAILED_RETRYABLE),
			  "failed_retryable; the next request with its key executes it");
	if (code == HPX_EXIT_OK)
		fputs("Warning: if the first request is still running in the service behind hapax,\n"
		      "a retry from now on may make it happen twice.\n",
		      stderr);
	return code;
}

int hpx_keys_resolve(struct hpx_keys *keys)
{
	struct hpx_entry entry;
	int code = check_verdict(keys);

	if (code == HPX_EXIT_OK)
		code = hpx_keys_find(keys, &entry);
	if (code != HPX_EXIT_OK)
		return code;
	return keys->applied ? resolve_applied(keys, &entry) : resolve_not_applied(keys, &entry);
}

int hpx_keys_forget(struct hpx_keys *keys)
{
	struct hpx_store_op op = { .verb = HPX_VERB_FORGET };
	struct hpx_entry entry;
	int code = hpx_keys_find(keys, &entry);

	if (code != HPX_EXIT_OK)
		return code;
	return settle(keys, &entry, &op, hpx_state_name(HPX_STATE_NONE),
		      "forgotten; the next request with its key is executed");
}

int hpx_keys_accept_clock(struct hpx_keys *keys)
{
	struct hpx_store_op op = { .verb = HPX_VERB_CLOCK };
	char now[HPX_RFC3339_SIZE];
	int code = run(keys, &op);

	if (code != HPX_EXIT_OK)
		return code;
	if (op.status != HPX_OK)
		return hpx_keys_complain(keys, HPX_EXIT_FAILED, "not done: %s",
					 hpx_status_text(op.status));
	if (keys->json != NULL)
		return print_json(keys, NULL, &op, NULL);
	hpx_clock_rfc3339(hpx_clock_wall_ms(), now);
	printf("the clock is accepted as it is, %s; records expire by it\n", now);
	return HPX_EXIT_OK;
}
