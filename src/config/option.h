/* Tables of options. The reader of the file, the flags of the command line,
 * --help, the reference page and the sample file all come from one table: an
 * option without a row does not exist. hapax's own table is hpx_config_options;
 * a program with another kind of file brings a table of its own. */
#ifndef HPX_CONFIG_OPTION_H
#define HPX_CONFIG_OPTION_H

#include "base/arena.h"
#include "base/status.h"

/* X(name, what the reference calls it, whether its value is a list). */
#define HPX_OPTION_KIND_LIST(X) \
	X(TEXT, "text", false) \
	X(TOKEN, "name", false) \
	X(NAME, "name of a target", false) \
	X(PATTERN, "pattern", false) \
	X(STORE, "store URL", false) \
	X(ADDRESS, "address", false) \
	X(UPSTREAM, "URL", false) \
	X(URL, "http or https URL", false)                /* a string, not a span */ \
	X(FILE, "path of a file", false)                  /* a string, not a span */ \
	X(FILES, "path of a file, or list of them", true) /* strings; one value is a list of one */ \
	X(VARIABLE, "name of a variable", false) \
	X(PROBE, "path and query", false) \
	X(POINTER, "JSON pointer", false) \
	X(DURATION, "duration", false) \
	X(SIZE, "size", false) \
	X(COUNT, "number", false) \
	X(RATE, "rate", false) \
	X(FRACTION, "number from 0 to 1", false) /* kept in millionths */ \
	X(BOOL, "true or false", false) \
	X(CHOICE, "choice", false) \
	X(CHOICES, "list of choices", true) /* one bit for each */ \
	X(HEADERS, "list of header names", true) \
	X(POINTERS, "list of JSON pointers", true) \
	X(FIELDS, "list of header lines", true) \
	X(NETWORKS, "list of networks", true) \
	X(ORIGINS, "list of origins", true) \
	X(MATCHES, "list of statuses and words", true) \
	X(WORDS, "list of words", true) \
	X(TEXTS, "list of texts", true) \
	X(CUSTOM, "text", false) /* read by the row's own function */ \
	X(CUSTOM_LIST, "list", true)

enum hpx_option_kind {
#define X(name, words, list) HPX_OPTION_##name,
	HPX_OPTION_KIND_LIST(X)
#undef X
};

/* Values are text in a row too: a default goes through the same reader as a
 * value of the file. */
struct hpx_option {
	const char *name; /* dotted; without the prefix of its section */
	enum hpx_option_kind kind;
	unsigned place; /* which struct `offset` counts in; the table numbers them */
	bool reloadable;
	bool off;                  /* `off` is a value too */
	bool pairs;                /* an element of the list is {name: value}; it is read as "name value" */
	size_t offset;             /* of the member */
	size_t width;              /* of the member, in bytes */
	size_t companion_offset;   /* of a list's count, or of the bool that `off` clears;
				     * MATCHES and WORDS have their counts inside */
	const char *default_value; /* NULL: none; "": the empty list */
	const char *public_value;  /* the default under limits.preset: public; NULL: the same */
	const char *sample;        /* the value in the sample file; NULL: the default, as a comment */
	const char *example;
	const char *flag;       /* --flag of the command line, or NULL */
	const char *flag_value; /* what --help calls the flag's value; NULL: a switch */
	uint64_t min;           /* DURATION in ms, SIZE in bytes, COUNT */
	uint64_t max;
	const char *const *choices; /* ends with NULL; the index is the value */
	const char *text;           /* the sentences that document the option */
	/* Reads a CUSTOM or a CUSTOM_LIST; the contract is hpx_value_read's. */
	enum hpx_status (*read)(const struct hpx_option *option, const struct hpx_span *items,
				size_t count, struct hpx_arena *arena, void *base,
				char *problem);
};

enum hpx_section_shape {
	HPX_SECTION_ROOT,  /* the file itself */
	HPX_SECTION_GROUP, /* one mapping: "defaults." */
	HPX_SECTION_LIST,  /* a list of mappings: "routes[]." */
	HPX_SECTION_MAP,   /* mappings under names of their own: "targets.NAME." */
};

/* A part of the file with options of its own. */
struct hpx_option_section {
	struct hpx_span name;   /* "targets" */
	struct hpx_span prefix; /* "targets."; of the root "" */
	enum hpx_section_shape shape;
	unsigned places; /* the places of its options, one bit each: HPX_PLACE_BIT */
};
#define HPX_PLACE_BIT(place) (1u << (place))

struct hpx_option_table {
	const struct hpx_option *rows;
	size_t count; /* at most HPX_OPTION_MAX */
	/* The root comes last. A suggestion for a misplaced option prefers the first
	 * section. */
	const struct hpx_option_section *sections;
	size_t section_count;
	const char *listed_by; /* what lists the options, for a mistaken name that is near to
				* none of them; NULL: nothing is said */
};

/* Bound on the rows of a table, for arrays with one element per option. */
#define HPX_OPTION_MAX 256

/* The options of hapax. */
enum hpx_option_place {
	HPX_PLACE_GLOBAL,   /* at the top of the file; in struct hpx_settings */
	HPX_PLACE_POLICY,   /* under `defaults` and in every route; in struct hpx_route */
	HPX_PLACE_ROUTE,    /* in a route only; in struct hpx_route */
	HPX_PLACE_LISTENER, /* in one of `listen`; in struct hpx_listener_settings */
	HPX_PLACE_TARGET,   /* in one of `targets`; in struct hpx_job_target */
	HPX_PLACE_WEBHOOK,  /* in one of `webhooks`; in struct hpx_webhook */
	HPX_PLACE_COMMAND,  /* on the command line only */
	HPX_PLACE_COUNT,
};
extern const struct hpx_option_table hpx_config_options;

size_t hpx_option_index(const struct hpx_option_table *table, const struct hpx_option *option);
/* The row for a dotted name as it stands in the file: "limits.head",
 * "defaults.lease", "routes[].lease", "targets.mailer.url" (whatever the
 * target's name). NULL: there is none. */
const struct hpx_option *hpx_option_find(const struct hpx_option_table *table,
					 struct hpx_span path);
/* Whether options lie below this path: "limits", "routes[].fingerprint",
 * "targets.mailer". Not "targets" itself, which holds names. */
bool hpx_option_is_group(const struct hpx_option_table *table, struct hpx_span path);
/* Whether the path names a list or a map of mappings: "routes", "targets". */
bool hpx_option_is_collection(const struct hpx_option_table *table, struct hpx_span path);
/* The n-th option that has a flag, in the order of the table; or NULL. */
const struct hpx_option *hpx_option_flag(const struct hpx_option_table *table, size_t n);

const char *hpx_option_kind_words(enum hpx_option_kind kind);
bool hpx_option_kind_is_list(enum hpx_option_kind kind);

/* The option or group nearest to an unknown path, as it is to be written;
 * "" where none is near. */
#define HPX_OPTION_PATH_SIZE 128
void hpx_option_suggest(const struct hpx_option_table *table, struct hpx_span path,
			char out[HPX_OPTION_PATH_SIZE]);

#endif
