/* From text to settings: one value into its member, and a mapping of the YAML
 * tree option by option. Which options there are is said by a table (option.h). */
#ifndef HPX_CONFIG_OPTION_PARSE_H
#define HPX_CONFIG_OPTION_PARSE_H

#include "base/address.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/unit.h"
#include "config/option.h"
#include "config/profile.h"
#include "config/yaml.h"

/* ---- mappings ---- */

/* Where an option was given. On the command line it has no line. */
struct hpx_given {
	bool given;
	unsigned line;
	unsigned column;
	bool wrong; /* the value was refused: the member still has its default */
};

/* One element per row of the table. */
struct hpx_given_set {
	struct hpx_given at[HPX_OPTION_MAX];
};

struct hpx_option_parser {
	const struct hpx_option_table *table;
	const struct hpx_yaml *tree;
	struct hpx_config_report *report; /* takes every mistake */
	struct hpx_arena *scratch;        /* for paths; may die when parsing is done */
	struct hpx_arena *values;         /* for strings and lists that members point to */
	/* Options whose value in the file is not read, because the command line gives
	 * another one; NULL: none. */
	const struct hpx_given_set *overridden;
};

/* The struct that an option's member lies in, and where to mark it as given. */
struct hpx_option_sink {
	void *base;
	struct hpx_given_set *given;
};

/* Reads all options in the mapping at `index` of the tree, whose path is
 * `prefix`, each into the sink of its place (`sinks` has one per place of the
 * table). Collections (hpx_option_is_collection) are left to the caller. Fails
 * for memory only. */
enum hpx_status hpx_option_parse(const struct hpx_option_parser *parser, size_t index,
				 struct hpx_span prefix, const struct hpx_option_sink *sinks);

/* Reads the default of every row that has one into the sink of its place. */
enum hpx_status hpx_option_put_defaults(const struct hpx_option_parser *parser,
					enum hpx_profile profile,
					const struct hpx_option_sink *sinks);

/* Reads the values of one flag of the command line. Fails for memory only. */
enum hpx_status hpx_option_parse_flag(const struct hpx_option_parser *parser,
				      const struct hpx_option *option,
				      const struct hpx_span *items, size_t count,
				      const struct hpx_option_sink *sink);
/* "--flag"; of an operand, what --help calls it. */
void hpx_option_flag_name(const struct hpx_option *option, char out[HPX_OPTION_PATH_SIZE]);

/* ---- values ---- */

#define HPX_VALUE_PROBLEM_SIZE 400

/* `items` is one text, or the elements of a list. `base` is the struct that the
 * option's member lies in; it is changed on HPX_OK only. On HPX_INVALID `problem`
 * says what was given and what would be right. Strings and lists come from
 * `arena`. */
enum hpx_status hpx_value_read(const struct hpx_option *option,
			       const struct hpx_span *items, size_t count,
			       struct hpx_arena *arena, void *base,
			       char problem[HPX_VALUE_PROBLEM_SIZE]);

/* What is wrong with an http or https URL without a query; NULL: nothing. */
const char *hpx_value_url_problem(struct hpx_span text);

/* A number, a choice or a switch as it would be written in the file. */
void hpx_value_print(const struct hpx_option *option, const void *base,
		     char out[HPX_UNIT_SIZE]);

/* Whether the option has the same value in both structs. */
bool hpx_value_same(const struct hpx_option *option, const void *a, const void *b);

/* Writes the message, gives HPX_INVALID. */
enum hpx_status hpx_value_refuse(char problem[HPX_VALUE_PROBLEM_SIZE], const char *format,
				 ...) __attribute__((format(printf, 2, 3)));

/* The name of a target or a webhook: it stands in database rows, in paths and in
 * labels of metrics. */
#define HPX_VALUE_NAME_MAX 63
bool hpx_value_is_name(struct hpx_span text);
/* An RFC 6901 pointer to a member or an element; not "", the whole. */
bool hpx_value_is_pointer(struct hpx_span text);
/* The n-th {word} of a probe's path, without its braces; ptr NULL: there are
 * no more. */
struct hpx_span hpx_value_probe_word(struct hpx_span get, size_t n);

/* For the readers of values: how much of a wrong value is shown, by "%.*s". */
#define HPX_VALUE_SHOW(text) HPX_SPAN_ARG(hpx_span_first((text), 60))

/* Readers of one kind each, as hpx_value_read: values about external services. */
enum hpx_status hpx_value_read_name(const struct hpx_option *option, struct hpx_span text,
				    struct hpx_arena *arena, void *base, char *problem);
enum hpx_status hpx_value_read_url(const struct hpx_option *option, struct hpx_span text,
				   struct hpx_arena *arena, void *base, char *problem);
enum hpx_status hpx_value_read_file(const struct hpx_option *option, struct hpx_span text,
				    struct hpx_arena *arena, void *base, char *problem);
enum hpx_status hpx_value_read_files(const struct hpx_option *option, const struct hpx_span *items,
				     size_t count, struct hpx_arena *arena, void *base,
				     char *problem);
enum hpx_status hpx_value_read_variable(const struct hpx_option *option,
					struct hpx_span text, struct hpx_arena *arena,
					void *base, char *problem);
enum hpx_status hpx_value_read_probe(const struct hpx_option *option, struct hpx_span text,
				     struct hpx_arena *arena, void *base, char *problem);
enum hpx_status hpx_value_read_pointer(const struct hpx_option *option,
				       struct hpx_span text, struct hpx_arena *arena,
				       void *base, char *problem);
/* MATCHES and WORDS: the statuses and words that mean a ruling. */
enum hpx_status hpx_value_read_matches(const struct hpx_option *option,
				       const struct hpx_span *items, size_t count,
				       struct hpx_arena *arena, void *base, char *problem);

/* ---- members ---- */

static inline void *hpx_option_member(const struct hpx_option *option, void *base)
{
	return (char *)base + option->offset;
}

static inline const void *hpx_option_const_member(const struct hpx_option *option,
						  const void *base)
{
	return (const char *)base + option->offset;
}

/* Copies the text and lets the option's span point to it. */
enum hpx_status hpx_option_put_text(const struct hpx_option *option, struct hpx_span text,
				    struct hpx_arena *arena, void *base);

/* Numbers, choices and switches, whatever the width of their member. */
void hpx_option_put_number(const struct hpx_option *option, void *base, uint64_t value);
uint64_t hpx_option_get_number(const struct hpx_option *option, const void *base);

#endif
