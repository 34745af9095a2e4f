/* The journal of `hapax call`: where it is, --list, --forget and --resume. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/call.h"
#include "cli/operator_command.h"

/* Makes the directories of a path, each readable by this user only. */
static int make_directories(char *path)
{
	HPX_ASSERT(path[0] == '/');
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			return hpx_cli_call_complain(HPX_EXIT_FAILED,
						     "%s: %s: nothing was sent; --journal names another "
						     "place",
						     path, strerror(errno));
		*slash = '/';
	}
	return HPX_EXIT_OK;
}

/* A home directory that is missing is a mistake of whoever set HOME (a service's user often
 * has none); a journal made there would never be found again. */
static int check_home(const char *home)
{
	struct stat about;

	if (stat(home, &about) == 0 && S_ISDIR(about.st_mode))
		return HPX_EXIT_OK;
	return hpx_cli_call_complain(HPX_EXIT_FAILED,
				     "HOME is %s, which is not a directory: nothing was sent; "
				     "name the journal with --journal FILE, or use --no-journal",
				     home);
}

/* Paths that are not absolute are ignored, as the XDG specification asks. */
static int find_default(char *out, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	int len = -1;

	if (state != NULL && state[0] == '/')
		len = snprintf(out, size, "%s/hapax/calls.db", state);
	else if (home != NULL && home[0] == '/')
		len = snprintf(out, size, "%s/.local/state/hapax/calls.db", home);
	if (len > 0 && (state == NULL || state[0] != '/') && check_home(home) != HPX_EXIT_OK)
		return HPX_EXIT_FAILED;
	if (len < 0 || (size_t)len >= size)
		return hpx_cli_call_complain(HPX_EXIT_FAILED,
					     "there is no home directory for the journal: "
					     "say where it is with --journal FILE");
	return make_directories(out);
}

int hpx_cli_call_journal_find(struct hpx_call_command *command, bool must_exist)
{
	const struct hpx_call_flags *flags = &command->flags;

	if (flags->no_journal != NULL && flags->journal != NULL)
		return hpx_cli_call_complain(HPX_EXIT_USAGE, "give --journal or --no-journal, "
							     "not both");
	if (flags->no_journal != NULL)
		return HPX_EXIT_OK;
	if (flags->journal == NULL)
		return find_default(command->journal, sizeof(command->journal));
	if (flags->journal[0] == '\0' || strlen(flags->journal) >= sizeof(command->journal))
		return hpx_cli_call_complain(HPX_EXIT_USAGE, "--journal needs the path of a file");
	if (must_exist && access(flags->journal, F_OK) != 0)
		return hpx_cli_call_complain(HPX_EXIT_FAILED, "the journal %s: %s", flags->journal,
					     strerror(errno));
	memcpy(command->journal, flags->journal, strlen(flags->journal) + 1);
	return HPX_EXIT_OK;
}

void hpx_cli_call_journal_print_flag(const struct hpx_call_command *command, FILE *out)
{
	if (command->flags.journal != NULL)
		fprintf(out, " --journal %s", command->flags.journal);
}

static const char *state_word(const struct hapax_entry *entry)
{
	static const char *const words[] = {
		[HAPAX_ENTRY_OPEN] = "open",
		[HAPAX_ENTRY_DONE] = "done",
		[HAPAX_ENTRY_STOPPED] = "stopped",
		[HAPAX_ENTRY_GAVE_UP] = "gave_up",
	};

	return entry->busy ? "sending" : words[entry->state];
}

/* Without its query, which may be a secret. */
static struct hpx_span shown_url(const struct hapax_entry *entry)
{
	struct hpx_span url = hpx_span_of(entry->url);

	return hpx_span_first(url, hpx_span_index(url, '?'));
}

static void print_row(const struct hapax_entry *entry, int64_t now_ms)
{
	char age[HPX_OPERATOR_AGE_SIZE];
	bool done = entry->state == HAPAX_ENTRY_DONE;

	hpx_operator_age(now_ms - entry->created_ms, age);
	printf("%5lld  %-7s  %-8s  %3u  ", (long long)entry->id, state_word(entry),
	       done ? "answered" : entry->doubt ? "maybe" :
						  "no",
	       entry->attempts);
	if (entry->status != 0)
		printf("%4u", entry->status);
	else
		fputs("   -", stdout);
	printf("  %4s  ", age);
	hpx_operator_print_text(hpx_span_of(entry->key), strlen(entry->key) < 36 ? 36 : 0);
	printf("  %s ", entry->method);
	hpx_operator_print_text(shown_url(entry), 0);
	putchar('\n');
}

static void json_row(struct hpx_json_writer *json, const struct hapax_entry *entry)
{
	hpx_json_begin_object(json, NULL);
	hpx_json_put_number(json, "id", (uint64_t)entry->id);
	hpx_json_put_text(json, "state", state_word(entry));
	hpx_json_put_bool(json, "in_doubt", entry->doubt);
	hpx_json_put_number(json, "attempts", entry->attempts);
	hpx_json_put_number(json, "status", entry->status);
	hpx_json_put_time(json, "created", entry->created_ms);
	hpx_json_put_time(json, "changed", entry->changed_ms);
	hpx_json_put_text(json, "key", entry->key);
	hpx_json_put_text(json, "method", entry->method);
	hpx_json_put_string(json, "url", shown_url(entry));
	hpx_json_end_object(json);
}

static int print_json(const struct hapax_entry *entries)
{
	struct hpx_buffer text;
	struct hpx_json_writer json;

	hpx_cli_json_init(&json, &text);
	hpx_json_begin_array(&json, NULL);
	for (const struct hapax_entry *entry = entries; entry != NULL; entry = entry->next)
		json_row(&json, entry);
	hpx_json_end_array(&json);
	return hpx_cli_json_print(&json, "call", "the list cannot be printed");
}

int hpx_cli_call_list(struct hpx_call_command *command)
{
	struct hapax_entry *entries;
	char problem[HAPAX_PROBLEM_SIZE];
	size_t count;
	int code = HPX_EXIT_OK;

	if (hapax_client_entries(command->client, 1, &entries, &count, problem) != HAPAX_OK)
		return hpx_cli_call_complain(HPX_EXIT_FAILED, "%s", problem);
	if (command->flags.json != NULL) {
		code = print_json(entries);
	} else if (count > 0) {
		printf("%5s  %-7s  %-8s  TRY  HTTP   AGE  %-36s  REQUEST\n", "CALL", "STATE",
		       "HAPPENED", "KEY");
		for (const struct hapax_entry *entry = entries; entry != NULL; entry = entry->next)
			print_row(entry, hpx_clock_wall_ms());
	} else if (command->terminal) {
		hpx_cli_call_complain(0, "no calls in %s", command->journal);
	}
	hapax_entries_free(entries);
	return code;
}

int hpx_cli_call_forget(struct hpx_call_command *command)
{
	char problem[HAPAX_PROBLEM_SIZE];
	uint64_t id;

	if (!hpx_span_u64(hpx_span_of(command->flags.forget), INT64_MAX, &id))
		return hpx_cli_call_complain(HPX_EXIT_USAGE,
					     "\"%s\" is not the number of a call; `hapax call "
					     "--list` lists them",
					     command->flags.forget);
	if (hapax_client_forget(command->client, (int64_t)id, problem) != HAPAX_OK)
		return hpx_cli_call_complain(HPX_EXIT_FAILED, "%s", problem);
	return HPX_EXIT_OK;
}

/* ---- resume ----
 * A call that cannot be resumed stays as it is, and so does what is known of it: the
 * exit code tells that, and not that the attempt to resume it failed. */

/* False: there is no such entry, or the journal cannot be read. The texts of the entry
 * are not kept. */
static bool find_entry(struct hpx_call_command *command, int64_t id, struct hapax_entry *ret_entry)
{
	struct hapax_entry *entries;
	size_t count;
	bool found = false;

	if (hapax_client_entries(command->client, 1, &entries, &count, NULL) != HAPAX_OK)
		return false;
	for (const struct hapax_entry *entry = entries; entry != NULL && !found; entry = entry->next)
		if (entry->id == id) {
			*ret_entry = *entry;
			ret_entry->next = NULL;
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
	hpx_cli_call_journal_print_flag(command, stderr);
	fputs("`\n", stderr);
}

/* The exit code for a call that could not be resumed, by its entry. */
static int exit_of_entry(struct hpx_call_command *command, int64_t id)
{
	struct hapax_entry entry;

	if (!find_entry(command, id, &entry))
		return HPX_EXIT_FAILED;
	if (entry.state == HAPAX_ENTRY_DONE)
		return hpx_cli_call_is_success(entry.status) ? HPX_EXIT_OK : HPX_EXIT_FAILED;
	if (entry.busy)
		return HPX_EXIT_IN_DOUBT;
	HPX_ASSERT(entry.id == id);
	print_remedy(command, &entry);
	return entry.doubt ? HPX_EXIT_IN_DOUBT : HPX_EXIT_NOT_YET;
}

/* Whether another process has done the call, or is sending it, since it was listed. */
static bool is_taken_over(struct hpx_call_command *command, int64_t id)
{
	struct hapax_entry *entries;
	size_t count;
	bool open = false;

	/* Where the journal cannot be read, nobody can say so. */
	if (hapax_client_entries(command->client, 0, &entries, &count, NULL) != HAPAX_OK)
		return false;
	for (const struct hapax_entry *entry = entries; entry != NULL && !open; entry = entry->next)
		open = entry->id == id && !entry->busy;
	hapax_entries_free(entries);
	return !open;
}

static int resume_one(struct hpx_call_command *command, int64_t id, bool among_all)
{
	struct hapax_call *call = NULL;
	char problem[HAPAX_PROBLEM_SIZE];
	int code = HPX_CALL_NOT_BEGUN;

	if (hapax_call_resume(command->client, id, &call, problem) != HAPAX_OK) {
		if (among_all && is_taken_over(command, id))
			return HPX_EXIT_OK;
		hpx_cli_call_complain(0, "%s", problem);
	} else {
		code = hpx_cli_call_give_headers(command, call);
	}
	if (code == HPX_EXIT_OK)
		code = hpx_cli_call_send_and_report(command, call);
	else if (code == HPX_EXIT_FAILED)
		code = HPX_CALL_NOT_BEGUN;
	hapax_call_free(call);
	return code == HPX_CALL_NOT_BEGUN ? exit_of_entry(command, id) : code;
}

/* The exit code that is more urgent for a person. */
static int worse(int a, int b)
{
	static const int ranks[] = { HPX_EXIT_OK, HPX_EXIT_FAILED, HPX_EXIT_USAGE,
				     HPX_EXIT_NOT_YET, HPX_EXIT_IN_DOUBT };
	int worst = a;

	HPX_ASSERT(a >= 0 && b >= 0);
	for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
		if (ranks[i] == a || ranks[i] == b)
			worst = ranks[i];
	return worst;
}

/* Which call the attempts that follow belong to. */
static void announce(const struct hpx_call_command *command, const struct hapax_entry *entry)
{
	if (command->many && (command->terminal || command->flags.explain != NULL))
		fprintf(stderr, "call %lld:\n", (long long)entry->id);
}

/* Leaves out calls that another process is sending. After a signal the rest stays open as
 * it is. */
static int resume_all(struct hpx_call_command *command, const atomic_bool *stopped)
{
	struct hapax_entry *entries;
	char problem[HAPAX_PROBLEM_SIZE];
	const struct hapax_entry *entry;
	size_t count;
	int code = HPX_EXIT_OK;

	if (hapax_client_entries(command->client, 0, &entries, &count, problem) != HAPAX_OK)
		return hpx_cli_call_complain(HPX_EXIT_FAILED, "%s", problem);
	if (count == 0 && command->terminal)
		hpx_cli_call_complain(0, "nothing to resume in %s", command->journal);
	command->many = count > 1;
	for (entry = entries; entry != NULL && !atomic_load(stopped); entry = entry->next) {
		if (entry->busy)
			continue;
		announce(command, entry);
		code = worse(code, resume_one(command, entry->id, true));
	}
	for (; entry != NULL; entry = entry->next)
		if (!entry->busy)
			code = worse(code, entry->doubt ? HPX_EXIT_IN_DOUBT : HPX_EXIT_NOT_YET);
	hapax_entries_free(entries);
	return code;
}

int hpx_cli_call_resume(struct hpx_call_command *command, const char *operand, const atomic_bool *stopped)
{
	const struct hpx_call_flags *flags = &command->flags;
	uint64_t id;

	if (flags->data != NULL || flags->key != NULL || flags->key_header != NULL ||
	    flags->bare_key != NULL)
		return hpx_cli_call_complain(HPX_EXIT_USAGE,
					     "--resume sends the stored request: give no body "
					     "and no key");
	if (operand == NULL)
		return resume_all(command, stopped);
	if (!hpx_span_u64(hpx_span_of(operand), INT64_MAX, &id))
		return hpx_cli_call_complain(HPX_EXIT_USAGE,
					     "\"%s\" is not the number of a call; `hapax call "
					     "--list` lists them",
					     operand);
	return resume_one(command, (int64_t)id, false);
}
