/* What the files of `hapax keys` share: the arguments, the open store, and
 * how an operation is found and shown. */
#ifndef HPX_CLI_KEYS_H
#define HPX_CLI_KEYS_H

#include "base/arena.h"
#include "cli/cli.h"
#include "store/store.h"

/* X(member, flag, what --help calls its value or NULL, sentence) */
#define HPX_KEYS_FLAG_LIST(X)                                                 \
	X(store_url, "store", "URL", "The store; default sqlite:hapax.db.")       \
	X(config_path, "config", "FILE", "The store that this configuration names.") \
	X(state, "state", "STATE", "Only these: in_progress, failed_retryable, completed, unknown.") \
	X(key, "key", "KEY", "By the client's key, over all tenants.")        \
	X(limit, "limit", "N", "At most so many, the newest; default 50.")    \
	X(full, "full", NULL, "Whole references in the table.")               \
	X(json, "json", NULL, "JSON instead of text.")                        \
	X(body, "body", NULL, "Only the stored answer's body, byte for byte (on a terminal with escapes); with --json as one more member.") \
	X(applied, "applied", NULL, "It happened.")                           \
	X(not_applied, "not-applied", NULL, "It did not happen: a retry executes it.") \
	X(response, "response", "FILE", "The answer that retries get: an HTTP response as `curl -i` writes it.") \
	X(status, "status", "N", "The answer is lost; retries are told that it happened, with this status.") \
	X(reason, "reason", "TEXT", "Why; it is kept in the history, with your name.") \
	X(force, "force", NULL, "Also where it is refused otherwise (see above).")

struct hpx_keys {
	const char *verb;        /* "keys show" */
	const char *operand;     /* a reference or the beginning of one; or NULL */
#define X(member, flag, value, text) const char *member;
	HPX_KEYS_FLAG_LIST(X)
#undef X
	struct hpx_store *store;
	struct hpx_store_reader *reader;
	struct hpx_arena arena;
	int64_t now_ms;
};

/* The verbs; each returns the exit code. */
int hpx_keys_ls(struct hpx_keys *keys);
int hpx_keys_show(struct hpx_keys *keys);
int hpx_keys_resolve(struct hpx_keys *keys);
int hpx_keys_forget(struct hpx_keys *keys);
int hpx_keys_accept_clock(struct hpx_keys *keys);

/* "hapax keys show: …" on standard error; returns `code`. */
int hpx_keys_complain(const struct hpx_keys *keys, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The one operation that the operand or --key names. HPX_EXIT_OK, or what to
 * exit with when everything was said. */
int hpx_keys_find(struct hpx_keys *keys, struct hpx_entry *ret_entry);

/* A table for people. */
void hpx_keys_table(const struct hpx_keys *keys, const struct hpx_entry *entries, size_t count);

#define HPX_KEYS_AGE_SIZE 24
/* "12s", "3m", "5h", "2d". */
void hpx_keys_age(int64_t ms, char out[HPX_KEYS_AGE_SIZE]);
/* The state as people see it: a row that cannot be read is unknown. */
const char *hpx_keys_state(const struct hpx_entry *entry);
/* Prints text with control bytes as '?', at most `width` columns (0: all). */
void hpx_keys_print_text(struct hpx_span text, size_t width);

/* One line of a history. */
void hpx_keys_print_event(const struct hpx_event *event);

/* An answer from a file as `curl -i` writes it; NULL when said why not. */
struct hpx_answer *hpx_keys_answer_read(const struct hpx_keys *keys, const char *path);

#endif
