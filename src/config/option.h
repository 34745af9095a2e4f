/* The one table of options. The reader of the file, the flags of the command
 * line, --help, the reference page and the sample file all come from it: what
 * is not a row here does not exist. */
#ifndef HPX_CONFIG_OPTION_H
#define HPX_CONFIG_OPTION_H

#include "base/span.h"

/* X(name, what it is called in the reference, whether it is a list). */
#define HPX_OPTION_KIND_LIST(X) \
	X(TEXT, "text", false) \
	X(TOKEN, "name", false) \
	X(NAME, "name of a target", false) \
	X(PATTERN, "pattern", false) \
	X(STORE, "store URL", false) \
	X(ADDRESS, "address", false) \
	X(UPSTREAM, "URL", false) \
	X(URL, "http or https URL", false) /* a string, not a span */ \
	X(FILE, "path of a file", false)   /* a string, not a span */ \
	X(VARIABLE, "name of a variable", false) \
	X(PROBE, "path and query", false) \
	X(POINTER, "JSON pointer", false) \
	X(DURATION, "duration", false) \
	X(SIZE, "size", false) \
	X(COUNT, "number", false) \
	X(BOOL, "true or false", false) \
	X(CHOICE, "choice", false) \
	X(HEADERS, "list of header names", true) \
	X(POINTERS, "list of JSON pointers", true) \
	X(NETWORKS, "list of networks", true) \
	X(ORIGINS, "list of origins", true) \
	X(MATCHES, "list of statuses and words", true) \
	X(WORDS, "list of words", true)

enum hpx_option_kind {
#define X(name, words, list) HPX_OPTION_##name,
	HPX_OPTION_KIND_LIST(X)
#undef X
};

enum hpx_option_place {
	HPX_PLACE_GLOBAL,  /* at the top of the file; in struct hpx_settings */
	HPX_PLACE_POLICY,  /* under `defaults` and in every route; in struct hpx_route */
	HPX_PLACE_ROUTE,   /* in a route only; in struct hpx_route */
	HPX_PLACE_TARGET,  /* in one of `targets`; in struct hpx_job_target */
	HPX_PLACE_WEBHOOK, /* in one of `webhooks`; in struct hpx_webhook */
	HPX_PLACE_COMMAND, /* on the command line only */
};

/* Values are written as text everywhere, also here: a default goes through
 * the same reader as what stands in a file. */
struct hpx_option {
	const char *name; /* dotted; without "routes[]." or "targets.NAME." */
	enum hpx_option_kind kind;
	enum hpx_option_place place;
	bool reloadable;
	bool off;      /* `off` is a value too; `other` is the switch */
	size_t offset; /* of the member */
	size_t width;
	size_t companion_offset;    /* of a list's count, or of the switch; SIGNS
					* and VALUES have theirs beside them */
	const char *default_value;  /* the default; NULL: none; "" : the empty list */
	const char *stripe_default; /* under `profile: stripe`, where it is another */
	const char *example;
	const char *flag;       /* --flag of the command line, or NULL */
	const char *flag_value; /* what --help calls its value; NULL: a switch */
	uint64_t min;           /* DURATION in ms, SIZE in bytes, COUNT */
	uint64_t max;
	const char *const *choices; /* ends with NULL; the index is the value */
	const char *text;           /* the sentences that document it */
};

/* Bound on the rows, for arrays with one place per option. */
#define HPX_OPTION_MAX 192

size_t hpx_option_count(void);
const struct hpx_option *hpx_option_at(size_t index);
size_t hpx_option_index(const struct hpx_option *option);
/* The row for a dotted name as it stands in the file: "limits.head",
 * "defaults.lease", "routes[].lease", "targets.mailer.url" (whatever the
 * target's name). NULL: there is none. */
const struct hpx_option *hpx_option_find(struct hpx_span path);
/* Whether options lie below this path: "limits", "routes[].fingerprint",
 * "targets.mailer". Not "targets" itself, which holds names. */
bool hpx_option_is_group(struct hpx_span path);
/* The n-th option that has a flag, in the order of the table; or NULL. */
const struct hpx_option *hpx_option_flag(size_t n);

const char *hpx_option_kind_words(enum hpx_option_kind kind);
bool hpx_option_kind_is_list(enum hpx_option_kind kind);

/* The option or group nearest to an unknown path, as it is to be written;
 * "" where nothing is near. */
#define HPX_OPTION_PATH_SIZE 128
void hpx_option_suggest(struct hpx_span path, char out[HPX_OPTION_PATH_SIZE]);

#endif
