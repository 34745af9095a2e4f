/* The program: finds the command and runs it. A new command is one row. */
#include "cli/cli.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bytes.h"

static const struct hpx_command commands[] = {
	{ "serve", "Stands in front of an HTTP API: a retried POST happens once.",
	  hpx_cli_serve },
	{ "check", "Reads a configuration: prints its mistakes, and what it does.",
	  hpx_cli_check },
	{ "coverage", "Says which operations of an API carry no key.", hpx_cli_coverage },
	{ "observed", "Says what a gateway that only observes has seen.", hpx_cli_observed },
	{ "demo", "Shows in a minute what hapax is for.", hpx_cli_demo },
	{ "keys", "Lists operations, and settles those whose outcome is unknown.", hpx_cli_keys },
	{ "jobs", "Lists deliveries to other services; retries or discards them.",
	  hpx_cli_jobs },
	{ "history", "Says what became of finished operations, also after expiry.",
	  hpx_cli_history },
	{ "repair", "Looks for damage in a store's file, and repairs what it can.", hpx_cli_repair },
	{ "migrate", "Creates a store, or brings its schema up to date.", hpx_cli_migrate },
	{ "reconcile", "Compares a provider's export with the store.",
	  hpx_cli_reconcile },
	{ "verify", "Tests an API that claims idempotency, from outside.", hpx_cli_verify },
	{ "work", "Runs only the background work, on PostgreSQL.", hpx_cli_work },
	{ "call", "Sends a POST, and retries it with the same key.",
	  hpx_cli_call },
	{ "version", "Prints the version.", hpx_cli_version },
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *stream)
{
	fprintf(stream,
		"Usage: hapax COMMAND [ARGUMENTS]\n\n"
		"Put hapax in front of an HTTP API, and a retried POST happens once.\n\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(stream, "  %-11s%s\n", commands[i].name, commands[i].summary);
	fprintf(stream, "\n`hapax COMMAND --help` says more about each.\n");
}

static const struct hpx_command *find(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

static int complain_unknown(const char *name)
{
	struct hpx_suggestion suggestion = { 0 };

	if (name[0] == '-') {
		fprintf(stderr,
			"hapax: the command comes first: hapax serve %s\n"
			"`hapax --help` lists the commands, `hapax version` prints the version.\n",
			name);
		return HPX_EXIT_USAGE;
	}

	for (size_t i = 0; i < COMMAND_COUNT; i++)
		hpx_cli_consider(&suggestion, hpx_span_of(name), commands[i].name);
	fprintf(stderr, "hapax: there is no command \"%s\"", name);
	if (suggestion.word.ptr != NULL)
		fprintf(stderr, "; did you mean \"%.*s\"?", HPX_SPAN_ARG(suggestion.word));
	fprintf(stderr, "\n`hapax --help` lists the commands.\n");
	return HPX_EXIT_USAGE;
}

/* `hapax help X` is `hapax X --help`, and `hapax help X Y` is `hapax X Y --help`. */
static int help(int argc, char **argv)
{
	const struct hpx_command *command = argc > 1 ? find(argv[1]) : NULL;
	char flag[] = "--help";

	if (argc > 1 && command == NULL && strcmp(argv[1], "help") != 0)
		return complain_unknown(argv[1]);
	if (command == NULL) {
		print_help(stdout);
		return HPX_EXIT_OK;
	}
	char *verb = argc > 2 ? argv[2] : NULL;
	char *arguments[] = { argv[1], verb != NULL ? verb : flag, verb != NULL ? flag : NULL, NULL };
	return command->run(verb != NULL ? 3 : 2, arguments);
}

/* The number of a standard stream that was closed would be given to the next file or
 * connection, and messages would go there. The replacements cannot be read or written:
 * that is an error, not silence. */
static bool hold_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags) != fd)
			return false;
	}
	return true;
}

/* A core file has every credential, key and body that was in memory; serve and
 * work write one where core_dumps says so. 1 is less than any file, and the one
 * limit that also keeps the kernel from handing the memory to a program
 * (core_pattern with a pipe); 0 does not. */
static void forbid_core_dumps(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_max < 1)
		return;
	limit.rlim_cur = 1;
	setrlimit(RLIMIT_CORE, &limit);
}

int main(int argc, char **argv)
{
	forbid_core_dumps();
	if (!hold_standard_streams())
		return HPX_EXIT_FAILED;
	if (argc < 2) {
		print_help(stderr);
		return HPX_EXIT_USAGE;
	}
	const char *name = argv[1];
	if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 ||
	    strcmp(name, "-h") == 0)
		return help(argc - 1, argv + 1);
	if (strcmp(name, "--version") == 0)
		name = "version";
	const struct hpx_command *command = find(name);
	if (command == NULL)
		return complain_unknown(name);
	if (hpx_random_ready() != HPX_OK) {
		fputs("hapax: the system gives no random bytes; is getrandom forbidden here "
		      "(seccomp)?\n",
		      stderr);
		return HPX_EXIT_FAILED;
	}
	return command->run(argc - 1, argv + 1);
}
