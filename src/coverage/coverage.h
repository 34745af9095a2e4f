/* `hapax coverage`: which state-changing operations of an API carry a key. One run reads
 * descriptions, a configuration and traffic into a list of operations, and comes to
 * findings about them; reports print both. No clock and no network: what comes from
 * outside is given by the command (cli/coverage_command.c). */
#ifndef HPX_COVERAGE_COVERAGE_H
#define HPX_COVERAGE_COVERAGE_H

#include "coverage/library.h"
#include "settings/settings.h"

#define HPX_COVERAGE_OPERATIONS_MAX 100000
#define HPX_COVERAGE_FINDINGS_MAX 200000

/* How an operation can be marked as the same one again. `covers`: a gap otherwise. */
#define HPX_KEY_CLASS_LIST(X) \
	X(REQUIRED, "required", true, "a key is required") \
	X(OPTIONAL, "optional", true, "a key may be sent") \
	X(BODY, "body", true, "the key is a member of the body") \
	X(WEAK, "weak", false, "a mark that may be a key, or only a trace") \
	X(PROSE, "prose", false, "only the text speaks of it") \
	X(ABSENT, "absent", false, "no key is declared") \
	X(SAFE, "safe", true, "safe by design")

enum hpx_key_class {
#define X(name, word, covers, text) HPX_CLASS_##name,
	HPX_KEY_CLASS_LIST(X)
#undef X
};

const char *hpx_key_class_name(enum hpx_key_class class);
/* Whether an operation of this class is no gap. */
bool hpx_key_class_covers(enum hpx_key_class class);

enum hpx_key_where { HPX_WHERE_NONE,
		     HPX_WHERE_HEADER,
		     HPX_WHERE_QUERY,
		     HPX_WHERE_BODY };

const char *hpx_key_where_name(enum hpx_key_where where);

struct hpx_source_place {
	struct hpx_span file; /* ptr NULL: none */
	unsigned line;
};

/* What a description says of an operation's key. */
struct hpx_declared_key {
	enum hpx_key_class class;
	enum hpx_key_where where;
	bool required;
	struct hpx_span name; /* of the header or query parameter; a pointer into the body */
	struct hpx_source_place place;
	struct hpx_span reason; /* how it is known, as a sentence without its full stop */
	uint64_t bytes_max;     /* 0: no limit is declared */
	uint64_t bytes_min;
};

/* Requests of an operation that were seen. Of some logs it is not known whether there
 * was a key: requests = keyed + unkeyed + those. */
struct hpx_traffic_count {
	uint64_t requests;
	uint64_t keyed;
	uint64_t unkeyed;
};

struct hpx_covered_operation {
	struct hpx_span method;
	struct hpx_span path; /* a template, with the server's base path */
	struct hpx_span tag;  /* "" where there is none */
	struct hpx_source_place place;
	struct hpx_declared_key key;
	struct hpx_source_place retries; /* of SDKs, declared here or for all */
	bool declared;                   /* in a description; otherwise only seen */
	const struct hpx_route *route;   /* where there is a configuration */
	bool guarded;                    /* by that route */
	struct hpx_traffic_count traffic;
	struct hpx_span example; /* a path that was seen */
};

enum hpx_finding_level { HPX_FINDING_ERROR,
			 HPX_FINDING_WARNING,
			 HPX_FINDING_NOTE };

/* What can be wrong: name, level, title. Only errors are gaps. */
#define HPX_FINDING_LIST(X) \
	X(KEY_ABSENT, "key_absent", ERROR, "No key is declared for a state-changing operation") \
	X(KEY_IN_PROSE, "key_in_prose", ERROR, "Only the text speaks of a key; no tool can see it") \
	X(KEY_WEAK, "key_weak", ERROR, "A mark that may be a key, or only a trace") \
	X(RETRIES_WITHOUT_KEY, "retries_without_key", ERROR, \
	  "SDKs are told to retry an operation that has no key") \
	X(KEY_IGNORED, "key_ignored", ERROR, "The description has a key that the route does not use") \
	X(UNKNOWN_TRAFFIC, "unknown_traffic", ERROR, \
	  "Requests on a path that is in no description and no route") \
	X(KEY_PER_TRY, "key_per_try", ERROR, "The same body again under a new key: a client makes a key per try") \
	X(UNKEYED_TRAFFIC, "unkeyed_traffic", ERROR, "Requests without a key, and nothing declares one") \
	X(KEY_LEFT_OUT, "key_left_out", WARNING, "Requests without the key that the operation may carry") \
	X(GUARD_UNDOCUMENTED, "guard_undocumented", WARNING, \
	  "The route guards an operation, and the description does not say so") \
	X(KEY_LIMIT_DIFFERS, "key_limit_differs", WARNING, \
	  "The declared length of keys differs from the route's") \
	X(REFERENCE_LOST, "reference_lost", WARNING, "A $ref leads nowhere, so something was not read") \
	X(BODY_REPEATED, "body_repeated", NOTE, \
	  "The same body under two keys, and the first was answered")

enum hpx_finding_rule {
#define X(name, word, level, title) HPX_RULE_##name,
	HPX_FINDING_LIST(X)
#undef X
		HPX_RULE_COUNT
};

const char *hpx_finding_rule_name(enum hpx_finding_rule rule);
const char *hpx_finding_rule_title(enum hpx_finding_rule rule);
enum hpx_finding_level hpx_finding_rule_level(enum hpx_finding_rule rule);
const char *hpx_finding_level_name(enum hpx_finding_level level);

struct hpx_coverage_finding {
	enum hpx_finding_rule rule;
	struct hpx_span method;
	struct hpx_span path;
	struct hpx_source_place place;
	struct hpx_span message;
	bool known;   /* listed in the baseline */
	bool ignored; /* not critical, where only critical ones count */
};

struct hpx_coverage {
	struct hpx_library library;
	struct hpx_arena arena;
	struct hpx_covered_operation *operations;
	size_t operation_count;
	size_t operation_cap;
	struct hpx_coverage_finding *findings;
	size_t finding_count;
	size_t finding_cap;
	const struct hpx_settings *settings; /* NULL: no configuration; borrowed */
	struct hpx_span config_path;
	const struct hpx_span *templates; /* a person's corrections of traffic's paths */
	size_t template_count;
	bool full; /* a bound was reached, and something is missing */
};

void hpx_coverage_init(struct hpx_coverage *coverage);
void hpx_coverage_done(struct hpx_coverage *coverage);

/* NULL, with `full` set: no more room. Filled with zeros. */
struct hpx_covered_operation *hpx_coverage_add(struct hpx_coverage *coverage);
void hpx_coverage_find(struct hpx_coverage *coverage, enum hpx_finding_rule rule,
		       const struct hpx_covered_operation *operation,
		       struct hpx_source_place place, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Reads the operations of one description; what is wrong with the file is an error of the
 * library. */
void hpx_coverage_read_api(struct hpx_coverage *coverage, const struct hpx_document *document);

/* The key among the properties of a body's schema: body_schema.c. `parts`: a multipart body,
 * of which a member inside a part is no key that anything in between can see. Leaves
 * `*key` as it is where there is none that is better. */
void hpx_schema_find_key(struct hpx_coverage *coverage, struct hpx_value_at schema, bool parts,
			 struct hpx_declared_key *key);
/* `given` is better known than `known`: the one of the better class, and of two equals the
 * required one. */
bool hpx_declared_key_better(const struct hpx_declared_key *given,
			     const struct hpx_declared_key *known);
/* The bounds on a key's length that a schema has. */
void hpx_schema_read_limits(struct hpx_coverage *coverage, struct hpx_value_at schema,
			    struct hpx_declared_key *key);
/* Whether a schema says something else than a text: a switch is no key. */
bool hpx_schema_is_switch(struct hpx_coverage *coverage, struct hpx_value_at schema);

/* Compares and comes to the findings; after everything was read. */
void hpx_coverage_judge(struct hpx_coverage *coverage);

/* Whether it has a key, in the description or by a route. */
bool hpx_coverage_is_covered(const struct hpx_covered_operation *operation);
/* Whether it needs one at all: a PUT without a key does not. */
bool hpx_coverage_needs_key(const struct hpx_covered_operation *operation);

/* ---- what fails ---- */

/* Marks errors that do not match one of the patterns: "POST /payments*", "/v1/refunds",
 * `*` for anything. Without patterns nothing is marked. */
void hpx_coverage_mark_critical(struct hpx_coverage *coverage, const char *const *patterns);
/* Marks the errors that the baseline lists. Entries that nothing matches are counted, and
 * written to `stale`, one a line. HPX_INVALID: a line is no entry; it is in `*ret_line`. */
enum hpx_status hpx_coverage_mark_known(struct hpx_coverage *coverage, struct hpx_span baseline,
					struct hpx_buffer *stale, size_t *ret_stale,
					unsigned *ret_line);
/* Errors that are neither known nor ignored. */
size_t hpx_coverage_gaps(const struct hpx_coverage *coverage);

/* ---- reports ---- */

enum hpx_status hpx_coverage_print_text(const struct hpx_coverage *coverage, struct hpx_buffer *out);
enum hpx_status hpx_coverage_print_json(const struct hpx_coverage *coverage, size_t stale,
					struct hpx_buffer *out);
enum hpx_status hpx_coverage_print_sarif(const struct hpx_coverage *coverage,
					 struct hpx_buffer *out);
enum hpx_status hpx_coverage_print_routes(const struct hpx_coverage *coverage,
					  struct hpx_buffer *out);
enum hpx_status hpx_coverage_print_baseline(const struct hpx_coverage *coverage,
					    struct hpx_buffer *out);

#endif
