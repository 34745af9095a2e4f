/* Shared by the files of `hapax call`: its flags, the attempts that it saw, and its exit
 * codes. */
#ifndef HPX_CLI_CALL_H
#define HPX_CLI_CALL_H

#include <stdatomic.h>

#include "cli/cli.h"
#include "hapax/client.h"

/* Besides those of every command. Neither is definite, and the call is kept. */
#define HPX_EXIT_IN_DOUBT 3 /* it may have happened */
#define HPX_EXIT_NOT_YET 4  /* nothing has happened */

/* The flags that are given once: X(member, flag, what --help calls its value or NULL, sentence) */
#define HPX_CALL_FLAG_LIST(X) \
	X(data, "d,data", "DATA", "The body: this text, @FILE, or @- for standard input. A body that is JSON gets the Content-Type application/json, unless a header says another.") \
	X(key, "key", "KEY", "A key of your own instead of a new UUID.") \
	X(key_header, "key-header", "NAME", "The header that carries the key; default Idempotency-Key.") \
	X(bare_key, "bare-key", NULL, "Sends the key without quotes.") \
	X(budget, "budget", "TIME", "No attempt begins later than this; default 5m.") \
	X(attempts, "attempts", "N", "At most this many attempts; default as many as the budget allows.") \
	X(timeout, "timeout", "TIME", "How long one attempt may take; default 30s.") \
	X(connect_timeout, "connect-timeout", "TIME", "How long connecting may take; default 10s.") \
	X(backoff, "backoff", "TIME", "The longest first wait, which doubles with each attempt; default 200ms.") \
	X(backoff_max, "backoff-max", "TIME", "The longest wait, unless a Retry-After asks for more; default 30s.") \
	X(remembered, "remembered", "TIME", "How long the API remembers a key. After that time, a request that may have happened is not sent again; default 24h.") \
	X(ca_file, "cacert", "FILE", "The certificates to trust; default the system's.") \
	X(include, "i,include", NULL, "Prints the answer's head before its body.") \
	X(output, "o,output", "FILE", "Writes the answer to this file instead.") \
	X(explain, "v,explain", NULL, "Says at the end what happened, attempt by attempt.") \
	X(json, "json", NULL, "Prints a report as JSON. The answer's body is in it.") \
	X(journal, "journal", "FILE", "Where calls are written down; default $XDG_STATE_HOME/hapax/calls.db.") \
	X(no_journal, "no-journal", NULL, "Writes nothing down. A call that is killed is then lost.") \
	X(resume, "resume", NULL, "Continues the call with this ID, or all that are not done.") \
	X(list, "list", NULL, "Lists the calls: first those that are not done, then the last month's.") \
	X(forget, "forget", "ID", "Removes a call from the journal.")

/* As given; NULL where absent. */
struct hpx_call_flags {
	const char *headers[HPX_CLI_REPEAT_MAX + 1];
#define X(member, flag, value, text) const char *member;
	HPX_CALL_FLAG_LIST(X)
#undef X
};

/* Attempts that are kept for --explain and --json; later attempts are counted only. */
#define HPX_CALL_KEPT_MAX 1000

struct hpx_call_kept {
	struct hapax_attempt attempt;
	char trouble[160];
};

struct hpx_call_command {
	struct hpx_call_flags flags;
	struct hapax_client *client;
	char journal[4096]; /* "": none */
	bool terminal;      /* attempts are shown as they happen */
	bool countdown;     /* the line on the terminal counts down to the next attempt */
	bool many;          /* several calls are resumed: no body is printed */
	struct hpx_call_kept *kept;
	size_t kept_count;
	size_t kept_cap;
	size_t left_out; /* attempts that are not kept */
};

/* "hapax call: …" on standard error; returns `code`. */
int hpx_cli_call_complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- call_command.c ---- */

/* Gives the headers of the arguments to a call: those of a new call, or the credentials
 * of a resumed one. HPX_EXIT_OK, or the exit code after a message. */
int hpx_cli_call_give_headers(struct hpx_call_command *command, struct hapax_call *call);

/* ---- call_journal.c ---- */

/* The path of the journal into command->journal; makes the directory of the default
 * journal. With `must_exist`, a journal that was named and is absent is a mistake.
 * HPX_EXIT_OK, or the exit code after a message. */
int hpx_cli_call_journal_find(struct hpx_call_command *command, bool must_exist);
/* " --journal FILE" for a command that people are told to type; "" for the default. */
void hpx_cli_call_journal_print_flag(const struct hpx_call_command *command, FILE *out);
int hpx_cli_call_list(struct hpx_call_command *command);
int hpx_cli_call_forget(struct hpx_call_command *command);
/* The call whose number is given, or every call that is not done (NULL), until
 * `*stopped`. */
int hpx_cli_call_resume(struct hpx_call_command *command, const char *operand,
			const atomic_bool *stopped);

/* ---- call_report.c ---- */

/* For struct hapax_client_options; `user` is the command. */
void hpx_cli_call_observe(void *user, const struct hapax_attempt *attempt);
/* Whether -o can be written to: HPX_EXIT_OK, or the exit code after a message. */
int hpx_cli_call_output_check(const struct hpx_call_command *command);
/* Sends the call, prints its outcome, and then confirms it; the exit code, or
 * HPX_CALL_NOT_BEGUN after a message where nothing was sent. */
#define HPX_CALL_NOT_BEGUN (-1)
int hpx_cli_call_send_and_report(struct hpx_call_command *command, struct hapax_call *call);
/* Whether a definite answer is a success. */
bool hpx_cli_call_is_success(unsigned status);

#endif
