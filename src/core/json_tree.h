/* A JSON document as a flat array of nodes that name each other by place:
 * what json_read.c makes and json.c writes out. */
#ifndef HPX_CORE_JSON_TREE_H
#define HPX_CORE_JSON_TREE_H

#include "core/json.h"

#define HPX_JSON_NONE UINT32_MAX

enum hpx_json_kind {
	HPX_JSON_LITERAL,
	HPX_JSON_NUMBER,
	HPX_JSON_STRING,
	HPX_JSON_ARRAY,
	HPX_JSON_OBJECT,
};

struct hpx_json_node {
	struct hpx_span name; /* of a member, without escapes */
	struct hpx_span text; /* a scalar as written; a string without escapes */
	uint32_t parent;      /* of the root: HPX_JSON_NONE */
	uint32_t next;        /* the next in the same container */
	uint32_t first;       /* the first in this container */
	enum hpx_json_kind kind : 8;
	bool ignored : 1;
};

struct hpx_json_tree {
	struct hpx_json_node *nodes; /* the root is the first */
	size_t count;
	size_t cap;
	char *decoded; /* the strings that had escapes */
};

/* Reads the document. Members are in canonical order in their object; what
 * `ignore` names is marked. Spans point into `text` or the tree. */
enum hpx_status hpx_json_tree_read(struct hpx_span text, const struct hpx_json_limits *limits,
				   const struct hpx_span *ignore, size_t ignore_count,
				   struct hpx_json_tree *ret_tree);
void hpx_json_tree_done(struct hpx_json_tree *tree);

/* Sorts the members of an object by name; HPX_INVALID where two are equal. */
enum hpx_status hpx_json_tree_sort(struct hpx_json_tree *tree, uint32_t object);

#endif
