/* A YAML file as a flat tree, with line and column of everything. Only what a
 * configuration needs: mappings with plain names, lists and scalars; anchors,
 * aliases, tags and a second document are mistakes. */
#ifndef HPX_CONFIG_YAML_H
#define HPX_CONFIG_YAML_H

#include "config/report.h"

/* The deepest thing in a file is an element of routes[].fingerprint.ignore. */
#define HPX_YAML_DEPTH_MAX 8
#define HPX_YAML_NODES_MAX 20000
/* Far more than any group has options. Each name is compared with all others. */
#define HPX_YAML_MEMBERS_MAX 64

enum hpx_yaml_kind { HPX_YAML_SCALAR,
		     HPX_YAML_MAPPING,
		     HPX_YAML_LIST };

/* Nodes stand in the order of the file, a node before its children: the first
 * child is the next node, the next sibling stands at `end`. */
struct hpx_yaml_node {
	enum hpx_yaml_kind kind;
	bool empty;           /* a plain scalar that says nothing: "", ~, null */
	struct hpx_span name; /* of a member; ptr NULL: the root, or an element */
	struct hpx_span text; /* of a scalar */
	unsigned line;        /* of the name where there is one, else of the value */
	unsigned column;
	unsigned value_line;
	unsigned value_column;
	size_t end;
};

struct hpx_yaml {
	struct hpx_yaml_node *nodes; /* the root first; none for an empty file */
	size_t count;
	bool whole; /* false: reading stopped at a mistake */
};

/* Nodes and strings come from `arena`. Fails for memory only: mistakes go
 * into the report, and the tree is what could be read, so that its other
 * mistakes are found too. */
enum hpx_status hpx_yaml_read(struct hpx_span text, struct hpx_arena *arena,
			      struct hpx_config_report *report, struct hpx_yaml *ret_tree);

/* The member of the root with this name; 0: there is none. */
size_t hpx_yaml_member(const struct hpx_yaml *tree, struct hpx_span name);

const char *hpx_yaml_kind_words(enum hpx_yaml_kind kind);

#endif
