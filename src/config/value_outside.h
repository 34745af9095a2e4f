/* Values that say how a service outside is reached, and what its words mean. */
#ifndef HPX_CONFIG_VALUE_OUTSIDE_H
#define HPX_CONFIG_VALUE_OUTSIDE_H

#include "config/value.h"

/* The name of a target or a webhook: it stands in rows, in paths and in
 * labels of metrics. */
#define HPX_VALUE_NAME_MAX 63
bool hpx_value_is_name(struct hpx_span text);

/* Readers of one kind each, as hpx_value_read. */
enum hpx_status hpx_value_read_name(const struct hpx_option *option, struct hpx_span text,
				    struct hpx_arena *arena, void *base, char *problem);
enum hpx_status hpx_value_read_url(const struct hpx_option *option, struct hpx_span text,
				   struct hpx_arena *arena, void *base, char *problem);
enum hpx_status hpx_value_read_file(const struct hpx_option *option, struct hpx_span text,
				    struct hpx_arena *arena, void *base, char *problem);
enum hpx_status hpx_value_read_variable(const struct hpx_option *option,
					struct hpx_span text, struct hpx_arena *arena,
					void *base, char *problem);
enum hpx_status hpx_value_read_probe(const struct hpx_option *option, struct hpx_span text,
				     struct hpx_arena *arena, void *base, char *problem);
enum hpx_status hpx_value_read_pointer(const struct hpx_option *option,
				       struct hpx_span text, struct hpx_arena *arena,
				       void *base, char *problem);
/* SIGNS and VALUES. */
enum hpx_status hpx_value_read_matches(const struct hpx_option *option,
				       const struct hpx_span *items, size_t count,
				       struct hpx_arena *arena, void *base, char *problem);

/* The n-th {word} of a probe's path, without its braces; ptr NULL: there are
 * no more. */
struct hpx_span hpx_probe_word(struct hpx_span get, size_t n);

#endif
