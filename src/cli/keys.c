/* `hapax keys`: looks into the store and settles what a person must settle.
 * It works beside a running `hapax serve` and never creates a store. */
#include "cli/keys.h"

#include <stdarg.h>

#include "base/clock.h"

#define DEFAULT_STORE "sqlite:hapax.db"
/* Lists and what is shown of one operation; --limit keeps well within it. */
#define ARENA_MAX ((size_t)256 * 1024 * 1024)
#define VERB_FLAGS_MAX 12

struct verb {
	const char *name;
	const char *synopsis;
	const char *about;
	const char *flags[VERB_FLAGS_MAX];  /* besides --store and --config */
	size_t operands_max;
	bool writes;                        /* a person's word: needs --reason */
	int (*run)(struct hpx_keys *keys);
};

static const struct verb verbs[] = {
	{ .name = "ls",
	  .synopsis = "hapax keys ls [--state STATE] [--key KEY] [--limit N]",
	  .about = "Lists operations, those that changed last first.",
	  .flags = { "state", "key", "limit", "full", "json" },
	  .run = hpx_keys_ls },
	{ .name = "show",
	  .synopsis = "hapax keys show REFERENCE | --key KEY",
	  .about = "Shows all that is known of one operation: its record, its history and the\n"
		   "stored answer. REFERENCE may be cut to its first 6 or more digits.",
	  .flags = { "key", "body", "json" },
	  .operands_max = 1,
	  .run = hpx_keys_show },
	{ .name = "resolve",
	  .synopsis = "hapax keys resolve REFERENCE (--applied (--response FILE | --status N) |\n"
		      "                          --not-applied) --reason TEXT",
	  .about = "Settles an operation whose outcome is unknown, after you found out what became\n"
		   "of it. Nothing overrides a completed operation. --force is for a record that\n"
		   "cannot be read.",
	  .flags = { "key", "applied", "not-applied", "response", "status", "reason", "force",
		     "json" },
	  .operands_max = 1,
	  .writes = true,
	  .run = hpx_keys_resolve },
	{ .name = "forget",
	  .synopsis = "hapax keys forget REFERENCE --reason TEXT",
	  .about = "Removes the record of an operation: the next request with its key is executed.\n"
		   "One that is in progress, unknown or unreadable needs --force, because it may\n"
		   "have happened and would then happen twice.",
	  .flags = { "key", "reason", "force", "json" },
	  .operands_max = 1,
	  .writes = true,
	  .run = hpx_keys_forget },
	{ .name = "accept-clock",
	  .synopsis = "hapax keys accept-clock --reason TEXT",
	  .about = "Says that the clock is right as it is now. Records stop expiring when wall\n"
		   "clock and boot clock part ways; this lets them expire again.",
	  .flags = { "reason", "json" },
	  .writes = true,
	  .run = hpx_keys_accept_clock },
};

#define VERB_COUNT (sizeof(verbs) / sizeof(verbs[0]))

int hpx_keys_complain(const struct hpx_keys *keys, int code, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "hapax %s: ", keys->verb);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return code;
}

static bool takes(const struct verb *verb, const char *flag)
{
	if (strcmp(flag, "store") == 0 || strcmp(flag, "config") == 0)
		return true;
	for (size_t i = 0; i < VERB_FLAGS_MAX && verb->flags[i] != NULL; i++)
		if (strcmp(flag, verb->flags[i]) == 0)
			return true;
	return false;
}

/* True: go on. */
static bool read_arguments(const struct verb *verb, struct hpx_keys *keys, int argc,
			   char **argv, int *ret_exit)
{
	const struct hpx_cli_flag all[] = {
#define X(member, flag, value, text) { flag, value, text, &keys->member },
		HPX_KEYS_FLAG_LIST(X)
#undef X
	};
	struct hpx_cli_flag flags[sizeof(all) / sizeof(all[0])];
	struct hpx_cli_usage usage = { verb->synopsis, verb->about, flags, 0,
				       verb->operands_max };
	int rest;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (takes(verb, all[i].name))
			flags[usage.flag_count++] = all[i];
	if (!hpx_cli_read(&usage, argc, argv, &rest, ret_exit))
		return false;
	keys->operand = rest < argc ? argv[rest] : NULL;
	if (verb->writes && (keys->reason == NULL || *keys->reason == '\0')) {
		*ret_exit = hpx_keys_complain(keys, HPX_EXIT_USAGE,
					      "say why: --reason TEXT (it is kept in the history)");
		return false;
	}
	return true;
}

/* The URL: as given, by the configuration, or the default; NULL: the
 * configuration is wrong, and that was said. */
static const char *find_url(struct hpx_keys *keys)
{
	struct hpx_config_flags flags = { { NULL } };

	if (keys->store_url != NULL)
		return keys->store_url;
	if (keys->config_path == NULL)
		return DEFAULT_STORE;
	hpx_config_flags_set(&flags, "config", keys->config_path);
	struct hpx_settings *settings = hpx_cli_load(&flags);
	if (settings == NULL)
		return NULL;
	struct hpx_span url = hpx_arena_dup(&keys->arena, settings->store);
	hpx_settings_unref(settings);
	return url.ptr;
}

static int open_store(struct hpx_keys *keys)
{
	char problem[HPX_STORE_PROBLEM_SIZE] = "";
	const char *url = find_url(keys);

	if (url == NULL)
		return HPX_EXIT_FAILED;
	struct hpx_store_options options = { .url = hpx_span_of(url) };
	if (hpx_span_starts(options.url, HPX_SPAN("memory:")))
		return hpx_keys_complain(keys, HPX_EXIT_FAILED,
					 "a memory: store lives and dies with the process that "
					 "serves it; only that process can look into it");
	enum hpx_status status = hpx_store_open(&options, &keys->store, problem);
	if (status != HPX_OK)
		return hpx_keys_complain(keys, HPX_EXIT_FAILED, "%s",
					 problem[0] ? problem : hpx_status_text(status));
	status = hpx_store_reader_open(keys->store, &keys->reader);
	if (status != HPX_OK)
		return hpx_keys_complain(keys, HPX_EXIT_FAILED, "%s cannot be read: %s",
					 keys->store->description, hpx_status_text(status));
	return HPX_EXIT_OK;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct hpx_keys keys = { .now_ms = hpx_clock_wall_ms() };
	char name[32];
	int code;

	snprintf(name, sizeof(name), "keys %s", verb->name);
	keys.verb = name;
	argv[0] = name;
	if (!read_arguments(verb, &keys, argc, argv, &code))
		return code;
	hpx_arena_init(&keys.arena, ARENA_MAX);
	code = open_store(&keys);
	if (code == HPX_EXIT_OK)
		code = verb->run(&keys);
	if (keys.reader != NULL)
		hpx_store_reader_close(keys.reader);
	if (keys.store != NULL)
		hpx_store_close(keys.store);
	hpx_arena_done(&keys.arena);
	if (fflush(stdout) != 0 && code == HPX_EXIT_OK)
		code = hpx_keys_complain(&keys, HPX_EXIT_FAILED, "standard output is closed");
	return code;
}

static int print_verbs(FILE *to, int code)
{
	fputs("Usage: hapax keys VERB [ARGUMENTS]\n\n"
	      "Looks into the store, and settles what a person must settle. Works beside a\n"
	      "running hapax serve.\n\n",
	      to);
	for (size_t i = 0; i < VERB_COUNT; i++)
		fprintf(to, "  %s\n", verbs[i].synopsis);
	fputs("\n`hapax keys VERB --help` says more about each.\n", to);
	return code;
}

int hpx_cli_keys(int argc, char **argv)
{
	if (argc < 2)
		return print_verbs(stderr, HPX_EXIT_USAGE);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return print_verbs(stdout, HPX_EXIT_OK);
	for (size_t i = 0; i < VERB_COUNT; i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return run(&verbs[i], argc - 1, argv + 1);
	fprintf(stderr, "hapax keys: there is no \"%s\"; the verbs are ls, show, resolve, forget "
			"and accept-clock\n",
		argv[1]);
	return HPX_EXIT_USAGE;
}
