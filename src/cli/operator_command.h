/* Operator commands: `hapax keys`, `hapax jobs` and `hapax reconcile`, by which a person
 * looks into a store and settles operations. Shared are the arguments, the open store, a
 * person's change as one op of the store, and how things are shown. */
#ifndef HPX_CLI_OPERATOR_COMMAND_H
#define HPX_CLI_OPERATOR_COMMAND_H

#include "base/arena.h"
#include "cli/cli.h"
#include "store/store.h"

/* The configuration of the installed service; the build names the one of its prefix. */
#ifndef HPX_SERVICE_CONFIG
#define HPX_SERVICE_CONFIG "/etc/hapax/hapax.yaml"
#endif
#define HPX_OPERATOR_STORE_TEXT \
	"The store; default " HPX_STORE_DEFAULT_URL " where that is there, else the store that " HPX_SERVICE_CONFIG " names."

/* X(member, flag, what --help calls its value or NULL, sentence) */
#define HPX_OPERATOR_FLAG_LIST(X) \
	X(store_url, "store", "URL", HPX_OPERATOR_STORE_TEXT) \
	X(config_path, "config", "FILE", "Uses the store that this configuration names.") \
	X(state, "state", "STATE", "Lists only those in this state.") \
	X(needs_person, "needs-person", NULL, "Lists only jobs that wait for a person: dead jobs, unknown jobs that no probe asks about any more, and jobs whose row cannot be read (`discard --force` removes those).") \
	X(target, "target", "NAME", "Lists only the jobs for this target.") \
	X(operation, "operation", "REFERENCE", "Lists only the jobs of this operation; the first 6 or more digits are enough.") \
	X(key, "key", "KEY", "Finds operations by the client's key, of all tenants.") \
	X(tenant, "tenant", "NAME", "Only those of this tenant; its whole name, as --full and show have it: header:acme.") \
	X(method, "method", "METHOD", "With --path: the request's method; default POST.") \
	X(path, "path", "PATH", "With --key and --tenant: the operation of the request to this path, or to http://HOST/PATH if a route has a host. Its scope is that of --config, or the default one.") \
	X(route, "route", "PATTERN", "Lists only those of this route, as the configuration writes it: \"POST /payments\".") \
	X(error, "error", "NAME", "Lists only those whose last failed attempt ended with this error: upstream_reset.") \
	X(since, "since", "TIME", "Lists only those that began this long ago or later (2h), or at this time or later (2026-11-15T08:00:00Z).") \
	X(until, "until", "TIME", "When it expires: 2027-03-31, 2027-03-31T08:00:00Z, or this long from now (90d).") \
	X(watch, "watch", NULL, "Lists again every 2 seconds, until Ctrl-C. Into a pipe or a file goes only what is new or has changed.") \
	X(limit, "limit", "N", "Lists at most this many; default 50.") \
	X(full, "full", NULL, "Shows references, and tenants, whole in the table.") \
	X(json, "json", NULL, "Prints JSON instead of text.") \
	X(body, "body", NULL, "Prints only the stored body, byte for byte (on a terminal with escapes). With --json, adds it as a member.") \
	X(applied, "applied", NULL, "It happened.") \
	X(not_applied, "not-applied", NULL, "It did not happen: a retry executes it.") \
	X(response, "response", "FILE", "The answer that retries get: an HTTP response as `curl -i` writes it.") \
	X(status, "status", "N", "The answer is lost: retries learn that it happened, with this status.") \
	X(reason, "reason", "TEXT", "Why you do this. It is kept in the history, with your name.") \
	X(force, "force", NULL, "Does it even where it would be refused (see above).")

/* One run of a command. */
struct hpx_operator_command {
	const char *verb;    /* "keys show" */
	const char *operand; /* the argument that is not a flag, or NULL */
#define X(member, flag, value, text) const char *member;
	HPX_OPERATOR_FLAG_LIST(X)
#undef X
	const char *where;             /* hpx_operator_where; NULL before hpx_operator_begin */
	struct hpx_settings *settings; /* of --config; NULL: none was given */
	struct hpx_store *store;
	struct hpx_store_reader *reader;
	struct hpx_arena arena;
	int64_t now_ms;
};

#define HPX_OPERATOR_VERB_FLAGS_MAX 12
/* Lists, and what is shown of one operation. The greatest --limit keeps well below it. */
#define HPX_OPERATOR_ARENA_MAX ((size_t)256 * 1024 * 1024)

struct hpx_operator_verb {
	const char *name;
	const char *synopsis;
	const char *about;
	const char *flags[HPX_OPERATOR_VERB_FLAGS_MAX]; /* besides --store and --config */
	size_t operands_max;
	bool writes;                                      /* changes the store: needs --reason */
	int (*run)(struct hpx_operator_command *command); /* returns the exit code */
};

/* The verbs of one command. */
struct hpx_operator_verbs {
	const char *name;
	const char *about;      /* whole lines */
	const char *verb_names; /* for the message about a verb that does not exist */
	const char *name_one;   /* what to do where a verb about one thing is told of none */
	const struct hpx_operator_verb *verbs;
	size_t verb_count;
};

/* Reads the arguments, opens the store, runs the verb. */
int hpx_operator_run(const struct hpx_operator_verbs *verbs, int argc, char **argv);

/* Once the flags are read: from here on there is memory, and hints can be printed. */
void hpx_operator_begin(struct hpx_operator_command *command);
/* Opens the store that the flags name, and a reader; never creates a store. Where no flag
 * names one and there is none in this folder, `config_path` becomes the service's, if that is
 * installed. HPX_EXIT_OK, or the exit code after a message. */
int hpx_operator_open(struct hpx_operator_command *command);
/* Also after an open that failed. Returns `code`, or HPX_EXIT_FAILED where standard
 * output could not be written. */
int hpx_operator_close(struct hpx_operator_command *command, int code);

/* The --store and --config that the command was given, with a space before each and
 * quoted for a shell, for the end of a command that is printed as a hint; "" where
 * neither was given. A URL with a password is not repeated, but named URL. */
const char *hpx_operator_where(const struct hpx_operator_command *command);
/* A word as a shell reads it back; ptr NULL without memory. */
struct hpx_span hpx_operator_quote(struct hpx_arena *arena, const char *word);

/* "hapax keys show: …" on standard error; returns `code`. */
int hpx_operator_complain(const struct hpx_operator_command *command, int code, const char *format,
			  ...) __attribute__((format(printf, 3, 4)));
/* The same for a read of the store that failed. */
int hpx_operator_complain_read(const struct hpx_operator_command *command, enum hpx_status status);

/* Runs the op in the person's name, with --reason. It works beside a running server and
 * waits for that server's own writes. HPX_EXIT_OK: the store ran it, and op->status has
 * the result. Otherwise the exit code after a message. */
int hpx_operator_write(struct hpx_operator_command *command, struct hpx_store_op *op);

/* The value of --limit. HPX_EXIT_OK, or HPX_EXIT_USAGE after a message. */
int hpx_operator_limit(const struct hpx_operator_command *command, unsigned *ret_limit);

/* The value of a flag that is a time: as RFC 3339 writes it, or so long before now, with
 * `ahead` after now; `text` NULL leaves it. HPX_EXIT_OK, or HPX_EXIT_USAGE after a
 * message. */
int hpx_operator_time(const struct hpx_operator_command *command, const char *flag, const char *text,
		      bool ahead, int64_t *ret_wall_ms);

/* ---- showing ---- */

#define HPX_OPERATOR_AGE_SIZE 24
/* "12s", "3m", "5h", "2d". */
void hpx_operator_age(int64_t ms, char out[HPX_OPERATOR_AGE_SIZE]);
/* Prints text with control bytes as '?': stored text comes from clients and must not steer
 * a terminal. Cut or filled to `width` columns (0: neither). */
void hpx_operator_print_text(struct hpx_span text, size_t width);
void hpx_operator_write_text(struct hpx_span text, size_t width, FILE *to);
/* A line "label      text". */
void hpx_operator_print_member(const char *label, struct hpx_span text);
void hpx_operator_print_time(const char *label, int64_t wall_ms);
/* One line of a history. */
void hpx_operator_print_event(const struct hpx_event *event);
/* Prints a stored body byte for byte into a pipe or a file, with escapes on a terminal. */
int hpx_operator_print_body(struct hpx_span body);
/* "POST /payments", cut or filled to `width` (at most 64). */
void hpx_operator_print_request(struct hpx_span method, struct hpx_span path, size_t width);
size_t hpx_operator_clamp(size_t value, size_t least, size_t most);

/* ---- JSON ---- */

/* The member "history": the moves of an operation as they were made. */
void hpx_operator_json_history(struct hpx_json_writer *json, const struct hpx_event *events,
			       size_t count);
/* Ends the document of a change with when, by whom and why, and prints it; the exit
 * code. */
int hpx_operator_json_sign(const struct hpx_operator_command *command,
			   struct hpx_json_writer *json, const struct hpx_store_op *op);

#endif
