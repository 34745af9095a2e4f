/* The program's commands and what all of them share: the reader of arguments, loading the
 * configuration, and output. */
#ifndef HPX_CLI_CLI_H
#define HPX_CLI_CLI_H

#include <stddef.h>
#include <stdio.h>

#include "base/json_writer.h"
#include "config/config.h"
#include "config/suggestion.h"

/* Exit codes, the same for every command. */
#define HPX_EXIT_OK 0
#define HPX_EXIT_FAILED 1 /* it failed, or something is wrong */
#define HPX_EXIT_USAGE 2  /* it was called in a wrong way */

struct hpx_command {
	const char *name;
	const char *summary;               /* one line of `hapax --help` */
	int (*run)(int argc, char **argv); /* argv[0] is the command's name */
};

int hpx_cli_serve(int argc, char **argv);
int hpx_cli_demo(int argc, char **argv);
int hpx_cli_migrate(int argc, char **argv);
int hpx_cli_repair(int argc, char **argv);
int hpx_cli_check(int argc, char **argv);
int hpx_cli_coverage(int argc, char **argv);
int hpx_cli_keys(int argc, char **argv);
int hpx_cli_jobs(int argc, char **argv);
int hpx_cli_history(int argc, char **argv);
int hpx_cli_observed(int argc, char **argv);
int hpx_cli_reconcile(int argc, char **argv);
int hpx_cli_verify(int argc, char **argv);
int hpx_cli_work(int argc, char **argv);
int hpx_cli_call(int argc, char **argv);
int hpx_cli_version(int argc, char **argv);

/* The most values of a flag that may be repeated. */
#define HPX_CLI_REPEAT_MAX 64

/* One --flag of a command. */
struct hpx_cli_flag {
	const char *name;       /* without the dashes; "H,header": -H is the same */
	const char *value;      /* its value's name in --help: "FILE"; NULL: a switch;
				 * "LINE...": it may be repeated */
	const char *text;       /* its sentence in --help; NULL: not shown there */
	const char **ret_value; /* gets the value, or "true" of a switch; where it may be
				 * repeated, HPX_CLI_REPEAT_MAX and a NULL behind them */
};

struct hpx_cli_usage {
	const char *synopsis; /* "hapax check [--config FILE]" */
	const char *about;    /* whole lines */
	const struct hpx_cli_flag *flags;
	size_t flag_count;
	size_t operands_max; /* arguments that are not flags */
};

#define HPX_CLI_FLAGS_MAX 32

/* Reads the arguments from argv[1] on. True: `*ret_rest` is the index of the first operand.
 * False, after --help or a message: stop with `*ret_exit`. "--name value" and
 * "--name=value" are the same, and so are "-n value" and "-nvalue". Operands are moved
 * behind the flags. */
bool hpx_cli_read(const struct hpx_cli_usage *usage, int argc, char **argv, int *ret_rest,
		  int *ret_exit);
/* The flags of the option table, as rows for `usage.flags`; they fill
 * `*flags`. Returns how many were written to `rows`. */
size_t hpx_cli_config_flags(struct hpx_config_flags *flags,
			    struct hpx_cli_flag rows[HPX_CONFIG_FLAG_MAX]);

/* hpx_suggestion_consider for the name of a command, verb or flag: the name that other
 * programs use for the same thing ("list" for "ls") is as near as can be. */
void hpx_cli_consider(struct hpx_suggestion *suggestion, struct hpx_span given,
		      const char *candidate);

/* Whether a file's name has this ending. */
bool hpx_cli_ends_with(const char *text, const char *end);

/* Loads the configuration and prints every remark on standard error, as events where it asks
 * for events in JSON and has no mistake; with `without_secrets`, only where there is a
 * mistake, because nothing is started by it.
 * NULL: there were mistakes, or no memory. */
struct hpx_settings *hpx_cli_load(const struct hpx_config_flags *flags);
/* The same for a process that serves: what is wrong becomes events. */
struct hpx_settings *hpx_cli_load_again(const struct hpx_config_flags *flags);

/* Adds to the report what is wrong with the files of TLS. With a mistake, the settings are
 * let go, and HPX_INVALID is returned. */
enum hpx_status hpx_cli_check_tls(struct hpx_settings **settings, struct hpx_config_report *report);

/* Writes the buffer to a stream; HPX_EXIT_OK, or HPX_EXIT_FAILED with a
 * message where that fails. */
int hpx_cli_write(struct hpx_span text, FILE *stream);

/* Gets a page of a running gateway's admin listener: "127.0.0.1:8081", a URL, or
 * "unix:PATH". NULL, or what went wrong, for people; `page` bounds what is read. */
const char *hpx_cli_fetch(const char *admin, const char *path, struct hpx_buffer *page);

/* The width of the terminal that standard output is; 0 where it is none, or does not say. */
size_t hpx_cli_columns(void);
/* hpx_cli_write to standard output, with lines of at most `columns` columns, broken between
 * words; what a line breaks into is indented below it. 0: lines stay as they are. */
int hpx_cli_write_wrapped(struct hpx_span text, size_t columns);

/* A JSON document in `out`, for hpx_cli_json_print. */
void hpx_cli_json_init(struct hpx_json_writer *json, struct hpx_buffer *out);
/* Ends the document, writes it to standard output and frees its buffer. The exit code;
 * on failure after "hapax COMMAND: PROBLEM: …" on standard error. */
int hpx_cli_json_print(struct hpx_json_writer *json, const char *command, const char *problem);

#endif
