/* A document that people wrote, in JSON or YAML, as one tree with the line of every value.
 * Members are found by a hash, so that a large document with many references is read in
 * time that grows with its size. What the document means is openapi.c's or har.c's. */
#ifndef HPX_COVERAGE_DOCUMENT_H
#define HPX_COVERAGE_DOCUMENT_H

#include "base/arena.h"
#include "base/buffer.h"
#include "core/json_tree.h"

#define HPX_DOCUMENT_BYTES_MAX ((size_t)64 << 20)
/* The largest published description has 0.4 million values in 11 MiB. */
#define HPX_DOCUMENT_VALUES_MAX ((size_t)4 << 20)
#define HPX_DOCUMENT_DEPTH_MAX 256
/* Aliases of YAML stand for a copy each. */
#define HPX_DOCUMENT_ALIASES_MAX 10000
#define HPX_DOCUMENT_ALIAS_VALUES_MAX ((size_t)1 << 20)

struct hpx_document {
	struct hpx_span path; /* as messages show it */
	struct hpx_buffer text;
	struct hpx_json_tree tree; /* in the order of the text */
	uint32_t *lines;           /* of each node, from 1 */
	uint32_t *slots;           /* the members, by parent and name */
	size_t slot_mask;
	struct hpx_arena arena; /* strings of YAML */
};

/* Where and why a document cannot be read. */
struct hpx_document_mistake {
	unsigned line; /* 0: the file itself */
	char reason[160];
};

enum hpx_document_syntax { HPX_DOCUMENT_JSON,
			   HPX_DOCUMENT_YAML };

/* By the ending of the path, otherwise by the first byte. */
enum hpx_document_syntax hpx_document_syntax(struct hpx_span path, struct hpx_span text);

/* Reads `text`, which becomes the document's, on failure too; `path` is borrowed. HPX_INVALID:
 * `*ret_mistake` says why. */
enum hpx_status hpx_document_read(struct hpx_span path, struct hpx_buffer *text,
				  struct hpx_document *ret_document,
				  struct hpx_document_mistake *ret_mistake);
void hpx_document_done(struct hpx_document *document);

/* From libyaml's events to the tree: document_yaml.c. Fills tree, lines and arena. */
enum hpx_status hpx_document_read_yaml(struct hpx_document *document,
				       struct hpx_document_mistake *ret_mistake);

/* ---- a value of a document ---- */

struct hpx_value_at {
	const struct hpx_document *document; /* NULL: there is no value */
	uint32_t node;
};

static inline struct hpx_value_at hpx_value_none(void)
{
	return (struct hpx_value_at){ NULL, HPX_JSON_NONE };
}

static inline bool hpx_value_there(struct hpx_value_at value)
{
	return value.document != NULL;
}

struct hpx_value_at hpx_document_root(const struct hpx_document *document);
/* None where `object` is none, no object, or has no such member. */
struct hpx_value_at hpx_value_member(struct hpx_value_at object, struct hpx_span name);
/* Down an RFC 6901 pointer; an empty one is `from` itself. */
struct hpx_value_at hpx_value_follow(struct hpx_value_at from, struct hpx_span pointer);
/* The members or elements one after the other; none behind the last. */
struct hpx_value_at hpx_value_first(struct hpx_value_at container);
struct hpx_value_at hpx_value_next(struct hpx_value_at value);

struct hpx_span hpx_value_name(struct hpx_value_at value);
/* A scalar's text; ptr NULL where there is none. */
struct hpx_span hpx_value_text(struct hpx_value_at value);
struct hpx_span hpx_value_member_text(struct hpx_value_at object, const char *name);
bool hpx_value_is(struct hpx_value_at value, enum hpx_json_kind kind);
/* Whether it is the literal true. */
bool hpx_value_true(struct hpx_value_at value);
unsigned hpx_value_line(struct hpx_value_at value);

#endif
