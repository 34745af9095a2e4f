/* The answer, to standard output or to a file. It counts as handed over only when
 * it is written: what is not, the API is asked for again. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/call.h"
#include "http/problem.h"

static int print_head(const struct hapax_outcome *outcome, FILE *out)
{
	fprintf(out, "HTTP/1.1 %u %s\r\n", outcome->status, hpx_reason_phrase(outcome->status));
	return hpx_cli_write(hpx_span_of(outcome->headers), out) == HPX_EXIT_OK ?
		       hpx_cli_write(HPX_SPAN("\r\n"), out) :
		       HPX_EXIT_FAILED;
}

static int print_to(const struct hpx_call_command *command, const struct hapax_outcome *outcome,
		    FILE *out)
{
	int code = HPX_EXIT_OK;

	if (command->flags.include != NULL)
		code = print_head(outcome, out);
	if (code == HPX_EXIT_OK)
		code = hpx_cli_write(hpx_span(outcome->body, outcome->body_len), out);
	return code;
}

/* On the disk before the journal says that it is done; what is no file on a disk
 * cannot be brought there. */
static bool sync_file(FILE *out)
{
	return fsync(fileno(out)) == 0 || errno == EINVAL || errno == EROFS;
}

static int print_to_file(const struct hpx_call_command *command, const struct hapax_outcome *outcome)
{
	FILE *out = fopen(command->flags.output, "we");

	if (out == NULL)
		return hpx_call_complain(HPX_EXIT_FAILED,
					 "%s: %s", command->flags.output, strerror(errno));
	int code = print_to(command, outcome, out);
	if (code == HPX_EXIT_OK && !sync_file(out))
		code = hpx_call_complain(HPX_EXIT_FAILED,
					 "%s: %s", command->flags.output, strerror(errno));
	if (fclose(out) != 0 && code == HPX_EXIT_OK)
		code = hpx_call_complain(HPX_EXIT_FAILED,
					 "%s: %s", command->flags.output, strerror(errno));
	return code;
}

/* A mistake that is found before anything is sent costs nothing. */
int hpx_call_output_check(const struct hpx_call_command *command)
{
	const char *path = command->flags.output;
	char copy[PATH_MAX];
	struct stat info;

	if (path == NULL)
		return HPX_EXIT_OK;
	if (strlen(path) >= sizeof(copy))
		return hpx_call_complain(HPX_EXIT_USAGE,
					 "-o: the path is too long: nothing was sent");
	memcpy(copy, path, strlen(path) + 1);
	bool there = stat(path, &info) == 0;
	bool good = there ? access(path, W_OK) == 0 : access(dirname(copy), W_OK | X_OK) == 0;
	if (good && there && S_ISDIR(info.st_mode)) {
		errno = EISDIR;
		good = false;
	}
	return good ? HPX_EXIT_OK :
		      hpx_call_complain(HPX_EXIT_USAGE, "%s: %s: nothing was sent", path,
					strerror(errno));
}

int hpx_call_print_answer(const struct hpx_call_command *command, const struct hapax_outcome *outcome)
{
	if (outcome->kind != HAPAX_DONE || command->many)
		return HPX_EXIT_OK;
	if (!outcome->body_kept)
		hpx_call_complain(0, "the answer's body is too large, and was not kept");
	if (command->flags.output != NULL)
		return print_to_file(command, outcome);
	return command->flags.json != NULL ? HPX_EXIT_OK : print_to(command, outcome, stdout);
}
