/* Going on with calls that are in the journal. One that cannot be taken up stays as
 * it is, and so does what is known of it: the exit code says that, and not that the
 * attempt to resume it failed. */
#include "cli/call.h"

/* False where there is no such entry, or none can be read. Its texts are gone. */
static bool find_entry(struct hpx_call_command *command, int64_t id, struct hapax_entry *ret_entry)
{
	struct hapax_entry *entries;
	size_t count;
	bool found = false;

	if (hapax_client_entries(command->client, 1, &entries, &count, NULL) != HAPAX_OK)
		return false;
	for (size_t i = 0; i < count && !found; i++)
		if (entries[i].id == id) {
			*ret_entry = entries[i];
			ret_entry->method = ret_entry->url = ret_entry->key = NULL;
			found = true;
		}
	hapax_entries_free(entries);
	return found;
}

static void print_remedy(const struct hpx_call_command *command, const struct hapax_entry *entry)
{
	fputs(entry->doubt ? "it may have happened: give what it was sent with, or look up what "
			     "became of it, then" :
			     "nothing has happened: give what it was sent with, or begin anew after",
	      stderr);
	fprintf(stderr, " `hapax call --forget %lld", (long long)entry->id);
	hpx_call_journal_print_flag(command, stderr);
	fputs("`\n", stderr);
}

static int left_as_it_was(struct hpx_call_command *command, int64_t id)
{
	struct hapax_entry entry;

	if (!find_entry(command, id, &entry))
		return HPX_EXIT_FAILED;
	if (entry.state == HAPAX_ENTRY_DONE)
		return hpx_call_is_success(entry.status) ? HPX_EXIT_OK : HPX_EXIT_FAILED;
	if (entry.busy)
		return HPX_EXIT_IN_DOUBT;
	print_remedy(command, &entry);
	return entry.doubt ? HPX_EXIT_IN_DOUBT : HPX_EXIT_NOT_YET;
}

/* Done, or being sent, by another process since it was listed. */
static bool is_in_good_hands(struct hpx_call_command *command, int64_t id)
{
	struct hapax_entry *entries;
	size_t count;
	bool open = false;

	/* Where the journal cannot be read, nobody can say so. */
	if (hapax_client_entries(command->client, 0, &entries, &count, NULL) != HAPAX_OK)
		return false;
	for (size_t i = 0; i < count && !open; i++)
		open = entries[i].id == id && !entries[i].busy;
	hapax_entries_free(entries);
	return !open;
}

static int resume_one(struct hpx_call_command *command, int64_t id, bool among_all)
{
	struct hapax_call *call = NULL;
	char problem[HAPAX_PROBLEM_SIZE];
	int code = HPX_CALL_NOT_BEGUN;

	if (hapax_call_resume(command->client, id, &call, problem) != HAPAX_OK) {
		if (among_all && is_in_good_hands(command, id))
			return HPX_EXIT_OK;
		hpx_call_complain(0, "%s", problem);
	} else {
		code = hpx_call_give_headers(command, call);
	}
	if (code == HPX_EXIT_OK)
		code = hpx_call_send_and_report(command, call);
	else if (code == HPX_EXIT_FAILED)
		code = HPX_CALL_NOT_BEGUN;
	hapax_call_free(call);
	return code == HPX_CALL_NOT_BEGUN ? left_as_it_was(command, id) : code;
}

/* Of two exit codes the one that a person must hear of first. */
static int worse(int a, int b)
{
	static const int ranks[] = { HPX_EXIT_OK, HPX_EXIT_FAILED, HPX_EXIT_USAGE,
				     HPX_EXIT_NOT_YET, HPX_EXIT_IN_DOUBT };
	int worst = a;

	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
		if (ranks[i] == a || ranks[i] == b)
			worst = ranks[i];
	return worst;
}

/* Whose attempts those are that follow. */
static void announce(const struct hpx_call_command *command, const struct hapax_entry *entry)
{
	if (command->many && (command->terminal || command->flags.explain != NULL))
		fprintf(stderr, "call %lld:\n", (long long)entry->id);
}

/* Those that another process is at are in good hands. Once there is a signal, the
 * others stay open as they are. */
static int resume_all(struct hpx_call_command *command, const atomic_bool *stopped)
{
	struct hapax_entry *entries;
	char problem[HAPAX_PROBLEM_SIZE];
	size_t count, i;
	int code = HPX_EXIT_OK;

	if (hapax_client_entries(command->client, 0, &entries, &count, problem) != HAPAX_OK)
		return hpx_call_complain(HPX_EXIT_FAILED, "%s", problem);
	if (count == 0 && command->terminal)
		hpx_call_complain(0, "nothing to resume in %s", command->journal);
	command->many = count > 1;
	for (i = 0; i < count && !atomic_load(stopped); i++) {
		if (entries[i].busy)
			continue;
		announce(command, &entries[i]);
		code = worse(code, resume_one(command, entries[i].id, true));
	}
	for (; i < count; i++)
		if (!entries[i].busy)
			code = worse(code, entries[i].doubt ? HPX_EXIT_IN_DOUBT : HPX_EXIT_NOT_YET);
	hapax_entries_free(entries);
	return code;
}

int hpx_call_resume(struct hpx_call_command *command, const char *operand, const atomic_bool *stopped)
{
	const struct hpx_call_flags *flags = &command->flags;
	uint64_t id;

	if (flags->data != NULL || flags->key != NULL || flags->key_header != NULL ||
	    flags->bare_key != NULL)
		return hpx_call_complain(HPX_EXIT_USAGE,
					 "--resume sends what was written down: its body "
					 "and its key are there");
	if (operand == NULL)
		return resume_all(command, stopped);
	if (!hpx_span_u64(hpx_span_of(operand), INT64_MAX, &id))
		return hpx_call_complain(HPX_EXIT_USAGE,
					 "\"%s\" is not the number of a call; `hapax call "
					 "--list` lists them",
					 operand);
	return resume_one(command, (int64_t)id, false);
}
