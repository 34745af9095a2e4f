/* Where the journal is, what it holds, and forgetting an entry. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/call.h"
#include "cli/operator_json.h"

#define JSON_MAX ((size_t)256 * 1024 * 1024)

/* Every directory on the way, those that are made for nobody else to see. */
static int make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			return hpx_call_complain(HPX_EXIT_FAILED,
						 "%s: %s: nothing was sent; --journal names another "
						 "place",
						 path, strerror(errno));
		*slash = '/';
	}
	return HPX_EXIT_OK;
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
	if (len < 0 || (size_t)len >= size)
		return hpx_call_complain(HPX_EXIT_FAILED,
					 "there is no home directory for the journal: "
					 "say where it is with --journal FILE");
	return make_directories(out);
}

int hpx_call_journal_find(struct hpx_call_command *command, bool must_exist)
{
	const struct hpx_call_flags *flags = &command->flags;

	if (flags->no_journal != NULL && flags->journal != NULL)
		return hpx_call_complain(HPX_EXIT_USAGE, "either --journal or --no-journal");
	if (flags->no_journal != NULL)
		return HPX_EXIT_OK;
	if (flags->journal == NULL)
		return find_default(command->journal, sizeof(command->journal));
	if (flags->journal[0] == '\0' || strlen(flags->journal) >= sizeof(command->journal))
		return hpx_call_complain(HPX_EXIT_USAGE, "--journal needs the path of a file");
	if (must_exist && access(flags->journal, F_OK) != 0)
		return hpx_call_complain(HPX_EXIT_FAILED, "the journal %s: %s", flags->journal,
					 strerror(errno));
	memcpy(command->journal, flags->journal, strlen(flags->journal) + 1);
	return HPX_EXIT_OK;
}

void hpx_call_journal_print_flag(const struct hpx_call_command *command, FILE *out)
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

/* Without its query, which is nobody's business on a screen. */
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

static void json_row(struct hpx_operator_json *json, const struct hapax_entry *entry)
{
	hpx_operator_json_name(json, NULL);
	hpx_operator_json_open(json, "{");
	hpx_operator_json_number(json, "id", (uint64_t)entry->id);
	hpx_operator_json_text(json, "state", hpx_span_of(state_word(entry)));
	hpx_operator_json_bool(json, "in_doubt", entry->doubt);
	hpx_operator_json_number(json, "attempts", entry->attempts);
	hpx_operator_json_number(json, "status", entry->status);
	hpx_operator_json_time(json, "created", entry->created_ms);
	hpx_operator_json_time(json, "changed", entry->changed_ms);
	hpx_operator_json_text(json, "key", hpx_span_of(entry->key));
	hpx_operator_json_text(json, "method", hpx_span_of(entry->method));
	hpx_operator_json_text(json, "url", shown_url(entry));
	hpx_operator_json_close(json, "}");
}

static int print_json(const struct hapax_entry *entries, size_t count)
{
	struct hpx_buffer text;
	struct hpx_operator_json json = { .out = &text, .first = true };

	hpx_buffer_init(&text, JSON_MAX);
	hpx_operator_json_open(&json, "[");
	for (size_t i = 0; i < count; i++)
		json_row(&json, &entries[i]);
	hpx_operator_json_close(&json, "]\n");
	int code = json.status == HPX_OK ? hpx_cli_write(hpx_buffer_span(&text), stdout) :
					   hpx_call_complain(HPX_EXIT_FAILED, "the list: %s",
							     hpx_status_text(json.status));
	hpx_buffer_done(&text);
	return code;
}

int hpx_call_list(struct hpx_call_command *command)
{
	struct hapax_entry *entries;
	char problem[HAPAX_PROBLEM_SIZE];
	size_t count;
	int code = HPX_EXIT_OK;

	if (hapax_client_entries(command->client, 1, &entries, &count, problem) != HAPAX_OK)
		return hpx_call_complain(HPX_EXIT_FAILED, "%s", problem);
	if (command->flags.json != NULL) {
		code = print_json(entries, count);
	} else if (count > 0) {
		printf("%5s  %-7s  %-8s  TRY  HTTP   AGE  %-36s  REQUEST\n", "CALL", "STATE",
		       "HAPPENED", "KEY");
		for (size_t i = 0; i < count; i++)
			print_row(&entries[i], hpx_clock_wall_ms());
	} else if (command->terminal) {
		hpx_call_complain(0, "no calls in %s", command->journal);
	}
	hapax_entries_free(entries);
	return code;
}

int hpx_call_forget(struct hpx_call_command *command)
{
	char problem[HAPAX_PROBLEM_SIZE];
	uint64_t id;

	if (!hpx_span_u64(hpx_span_of(command->flags.forget), INT64_MAX, &id))
		return hpx_call_complain(HPX_EXIT_USAGE,
					 "\"%s\" is not the number of a call; `hapax call "
					 "--list` lists them",
					 command->flags.forget);
	if (hapax_client_forget(command->client, (int64_t)id, problem) != HAPAX_OK)
		return hpx_call_complain(HPX_EXIT_FAILED, "%s", problem);
	return HPX_EXIT_OK;
}
