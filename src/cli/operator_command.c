/* Operator commands: from the arguments of a verb to the open store, the verb itself, and
 * the changes that a person makes. */
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/unit.h"
#include "cli/operator_command.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX 10000

int hpx_operator_complain(const struct hpx_operator_command *command, int code, const char *format,
			  ...)
{
	va_list args;

	fprintf(stderr, "hapax %s: ", command->verb);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return code;
}

int hpx_operator_complain_read(const struct hpx_operator_command *command, enum hpx_status status)
{
	return hpx_operator_complain(command, HPX_EXIT_FAILED, "the store cannot be read: %s",
				     hpx_status_text(status));
}

int hpx_operator_limit(const struct hpx_operator_command *command, unsigned *ret_limit)
{
	uint64_t limit = LIMIT_DEFAULT;

	if (command->limit != NULL &&
	    (!hpx_span_u64(hpx_span_of(command->limit), LIMIT_MAX, &limit) || limit == 0))
		return hpx_operator_complain(command, HPX_EXIT_USAGE,
					     "--limit is a number from 1 to %d", LIMIT_MAX);
	*ret_limit = (unsigned)limit;
	return HPX_EXIT_OK;
}

int hpx_operator_time(const struct hpx_operator_command *command, const char *flag, const char *text,
		      bool ahead, int64_t *ret_wall_ms)
{
	uint64_t ms = 0;

	if (text == NULL)
		return HPX_EXIT_OK;
	if (hpx_duration_parse(hpx_span_of(text), &ms) && ms <= (uint64_t)command->now_ms)
		*ret_wall_ms = ahead ? command->now_ms + (int64_t)ms : command->now_ms - (int64_t)ms;
	else if (!hpx_clock_parse_rfc3339(hpx_span_of(text), ret_wall_ms))
		return hpx_operator_complain(command, HPX_EXIT_USAGE,
					     "--%s is a duration (2h, 7d), or a time: "
					     "2026-11-15T08:00:00Z",
					     flag);
	return HPX_EXIT_OK;
}

static bool takes(const struct hpx_operator_verb *verb, const char *flag)
{
	if (strcmp(flag, "store") == 0 || strcmp(flag, "config") == 0)
		return true;
	for (size_t i = 0; i < HPX_OPERATOR_VERB_FLAGS_MAX && verb->flags[i] != NULL; i++)
		if (strcmp(flag, verb->flags[i]) == 0)
			return true;
	return false;
}

/* Every verb has --store and --config. */
static size_t count_flags(const struct hpx_operator_verb *verb)
{
	size_t count = 0;

	while (count < HPX_OPERATOR_VERB_FLAGS_MAX && verb->flags[count] != NULL)
		count++;
	return count + 2;
}

/* False: stop with `*ret_exit`. */
static bool read_arguments(const struct hpx_operator_verb *verb,
			   struct hpx_operator_command *command, int argc, char **argv,
			   int *ret_exit)
{
	const struct hpx_cli_flag all[] = {
#define X(member, flag, value, text) { flag, value, text, &command->member },
		HPX_OPERATOR_FLAG_LIST(X)
#undef X
	};
	struct hpx_cli_flag flags[sizeof(all) / sizeof(all[0])];
	struct hpx_cli_usage usage = { verb->synopsis, verb->about, flags, 0,
				       verb->operands_max };
	int rest;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (takes(verb, all[i].name))
			flags[usage.flag_count++] = all[i];
	/* Each flag that the verb names is on the list. */
	HPX_ASSERT(usage.flag_count == count_flags(verb));
	if (!hpx_cli_read(&usage, argc, argv, &rest, ret_exit))
		return false;
	command->operand = rest < argc ? argv[rest] : NULL;
	if (verb->writes && (command->reason == NULL || *command->reason == '\0')) {
		*ret_exit =
			hpx_operator_complain(command, HPX_EXIT_USAGE,
					      "say why: --reason TEXT (it is kept in the history)");
		return false;
	}
	return true;
}

/* ---- hints: commands that are printed for the reader to run ---- */

/* Whether a URL has a password: before the host, or as a parameter. */
static bool has_password(const char *url)
{
	const char *authority = strstr(url, "://");
	const char *at = authority != NULL ? strchr(authority + 3, '@') : NULL;
	const char *colon = authority != NULL ? strchr(authority + 3, ':') : NULL;

	return (at != NULL && colon != NULL && colon < at) || strstr(url, "password") != NULL;
}

struct hpx_span hpx_operator_quote(struct hpx_arena *arena, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-./:=@,+%";
	size_t len = strlen(word), used = 0;
	char *out;

	if (len > 0 && strspn(word, plain) == len)
		return hpx_span_of(word);
	/* At most four bytes for each, two quotes and the end. */
	out = hpx_arena_zalloc(arena, 4 * len + 3, 1);
	if (out == NULL)
		return (struct hpx_span){ NULL, 0 };
	out[used++] = '\'';
	for (size_t i = 0; i < len; i++) {
		const char *piece = word[i] == '\'' ? "'\\''" : (char[]){ word[i], '\0' };
		memcpy(out + used, piece, strlen(piece));
		used += strlen(piece);
	}
	out[used++] = '\'';
	return (struct hpx_span){ out, used };
}

static const char *find_where(struct hpx_operator_command *command)
{
	struct hpx_span store = { "", 0 }, config = { "", 0 };
	const char *url = command->store_url, *path = command->config_path;

	if (url != NULL)
		store = has_password(url) ? HPX_SPAN("URL") : hpx_operator_quote(&command->arena, url);
	if (path != NULL)
		config = hpx_operator_quote(&command->arena, path);
	struct hpx_span text = hpx_arena_printf(
		&command->arena, "%s%.*s%s%.*s", url != NULL ? " --store " : "",
		HPX_SPAN_ARG(store), path != NULL ? " --config " : "", HPX_SPAN_ARG(config));
	return store.ptr != NULL && config.ptr != NULL ? text.ptr : NULL;
}

const char *hpx_operator_where(const struct hpx_operator_command *command)
{
	return command->where != NULL ? command->where : "";
}

/* ---- the open store ---- */

/* The URL of the store: as given, by the configuration, or the default. NULL, after a
 * message: the configuration is wrong. */
static const char *find_url(struct hpx_operator_command *command)
{
	struct hpx_config_flags flags = { .without_secrets = true };

	if (command->config_path == NULL)
		return command->store_url != NULL ? command->store_url : HPX_STORE_DEFAULT_URL;
	hpx_config_flags_set(&flags, "config", command->config_path);
	command->settings = hpx_cli_load(&flags);
	if (command->settings == NULL)
		return NULL;
	if (command->store_url != NULL)
		return command->store_url;
	return hpx_arena_dup(&command->arena, command->settings->store).ptr;
}

/* Whoever is woken at night need not name the only store of the machine. */
static void find_service(struct hpx_operator_command *command)
{
	static const char here[] = HPX_STORE_DEFAULT_URL;

	if (command->store_url == NULL && command->config_path == NULL &&
	    access(here + sizeof(HPX_STORE_FILE_URL) - 1, F_OK) != 0 && errno == ENOENT &&
	    access(HPX_SERVICE_CONFIG, F_OK) == 0)
		command->config_path = HPX_SERVICE_CONFIG;
}

void hpx_operator_begin(struct hpx_operator_command *command)
{
	hpx_arena_init(&command->arena, HPX_OPERATOR_ARENA_MAX);
	command->where = find_where(command);
}

int hpx_operator_open(struct hpx_operator_command *command)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";

	HPX_ASSERT(command->verb != NULL && command->store == NULL && command->reader == NULL);
	find_service(command);
	const char *url = find_url(command);
	if (url == NULL)
		return HPX_EXIT_FAILED;
	struct hpx_store_options options = { .url = hpx_span_of(url) };
	enum hpx_status status = hpx_store_open(&options, &command->store, problem);
	if (status == HPX_OK && !hpx_store_can(command->store, HPX_STORE_PERSISTS))
		return hpx_operator_complain(command, HPX_EXIT_FAILED,
					     "a memory: store lives and dies with the process that "
					     "serves it; only that process can look into it");
	if (status == HPX_NOT_FOUND && command->store_url == NULL && command->config_path == NULL)
		return hpx_operator_complain(
			command, HPX_EXIT_FAILED,
			"there is no store here (" HPX_STORE_DEFAULT_URL ") and no " HPX_SERVICE_CONFIG
			": name the store with --store URL, or the server's file with --config FILE");
	if (status != HPX_OK)
		return hpx_operator_complain(command, HPX_EXIT_FAILED, "%s",
					     problem[0] ? problem : hpx_status_text(status));
	status = hpx_store_reader_open(command->store, &command->reader);
	if (status != HPX_OK)
		return hpx_operator_complain(command, HPX_EXIT_FAILED, "%s cannot be read: %s",
					     command->store->description, hpx_status_text(status));
	return HPX_EXIT_OK;
}

int hpx_operator_close(struct hpx_operator_command *command, int code)
{
	if (command->reader != NULL)
		hpx_store_reader_close(command->reader);
	if (command->store != NULL)
		hpx_store_close(command->store);
	hpx_settings_unref(command->settings);
	hpx_arena_done(&command->arena);
	if (fflush(stdout) != 0 && code == HPX_EXIT_OK)
		code = hpx_operator_complain(command, HPX_EXIT_FAILED, "standard output is closed");
	return code;
}

/* The name that the history gets: the login name, also of somebody who became root by
 * sudo; else the number of the user. */
static struct hpx_span actor_of(struct hpx_operator_command *command)
{
	const char *name = getenv("SUDO_USER");
	char login[64];

	if (name == NULL || *name == '\0')
		name = getlogin_r(login, sizeof(login)) == 0 ? login : NULL;
	if (name == NULL) {
		struct passwd *entry = getpwuid(getuid());
		name = entry ? entry->pw_name : NULL;
	}
	struct hpx_span copy = name ? hpx_arena_dup(&command->arena, hpx_span_of(name)) :
				      hpx_arena_printf(&command->arena, "uid %u", (unsigned)getuid());
	return copy.ptr != NULL ? copy : HPX_SPAN("unnamed");
}

int hpx_operator_write(struct hpx_operator_command *command, struct hpx_store_op *op)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	struct hpx_store_op *ops[] = { op };

	HPX_ASSERT(command->store != NULL && command->reason != NULL);
	op->actor = actor_of(command);
	if (op->reason.ptr == NULL)
		op->reason = hpx_span_of(command->reason);
	enum hpx_status status = hpx_store_run(command->store, ops, 1, problem);
	if (status == HPX_OK)
		return HPX_EXIT_OK;
	if (status == HPX_BUSY)
		return hpx_operator_complain(command, HPX_EXIT_FAILED,
					     "the store is busy with other writes; try again");
	return hpx_operator_complain(command, HPX_EXIT_FAILED,
				     "the store failed (%s); look whether it was written before you "
				     "try again",
				     problem[0] ? problem : hpx_status_text(status));
}

static int run_verb(const struct hpx_operator_verbs *verbs, const struct hpx_operator_verb *verb,
		    int argc, char **argv)
{
	struct hpx_operator_command command = { .now_ms = hpx_clock_wall_ms() };
	char name[32];
	int code;

	int len = snprintf(name, sizeof(name), "%s %s", verbs->name, verb->name);
	HPX_ASSERT(len > 0 && (size_t)len < sizeof(name));
	command.verb = name;
	argv[0] = name;
	if (!read_arguments(verb, &command, argc, argv, &code))
		return code;
	hpx_operator_begin(&command);
	if (verb->operands_max > 0 && command.operand == NULL && command.key == NULL)
		code = hpx_operator_complain(&command, HPX_EXIT_USAGE, "%s", verbs->name_one);
	else
		code = hpx_operator_open(&command);
	if (code == HPX_EXIT_OK)
		code = verb->run(&command);
	return hpx_operator_close(&command, code);
}

static int print_verbs(const struct hpx_operator_verbs *verbs, FILE *to, int code)
{
	fprintf(to, "Usage: hapax %s VERB [ARGUMENTS]\n\n%s\n\n", verbs->name,
		verbs->about);
	for (size_t i = 0; i < verbs->verb_count; i++)
		fprintf(to, "  %s\n", verbs->verbs[i].synopsis);
	fprintf(to, "\n`hapax %s VERB --help` says more about each.\n", verbs->name);
	return code;
}

int hpx_operator_run(const struct hpx_operator_verbs *verbs, int argc, char **argv)
{
	if (argc < 2)
		return print_verbs(verbs, stderr, HPX_EXIT_USAGE);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return print_verbs(verbs, stdout, HPX_EXIT_OK);
	for (size_t i = 0; i < verbs->verb_count; i++)
		if (strcmp(argv[1], verbs->verbs[i].name) == 0)
			return run_verb(verbs, &verbs->verbs[i], argc - 1, argv + 1);
	if (argv[1][0] == '-') {
		fprintf(stderr, "hapax %s: the verb comes first: hapax %s ls %s\n", verbs->name,
			verbs->name, argv[1]);
		return HPX_EXIT_USAGE;
	}
	struct hpx_suggestion suggestion = { 0 };
	for (size_t i = 0; i < verbs->verb_count; i++)
		hpx_cli_consider(&suggestion, hpx_span_of(argv[1]), verbs->verbs[i].name);
	fprintf(stderr, "hapax %s: there is no \"%s\"", verbs->name, argv[1]);
	if (suggestion.word.ptr != NULL)
		fprintf(stderr, "; did you mean \"%.*s\"?\n", HPX_SPAN_ARG(suggestion.word));
	else
		fprintf(stderr, "; the verbs are %s\n", verbs->verb_names);
	return HPX_EXIT_USAGE;
}
