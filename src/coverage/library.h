/* The documents of a run: each file is read once, and `$ref` leads from one value to
 * another, in the same file or in a file of the same folder or below it. */
#ifndef HPX_COVERAGE_LIBRARY_H
#define HPX_COVERAGE_LIBRARY_H

#include "coverage/document.h"

#define HPX_LIBRARY_FILES_MAX 1000
#define HPX_LIBRARY_BYTES_MAX ((size_t)512 << 20)

/* A file that cannot be read, or a part of one. */
struct hpx_library_error {
	struct hpx_span path;
	unsigned line; /* 0: the file itself */
	struct hpx_span reason;
};

struct hpx_library {
	struct hpx_arena arena; /* paths and reasons */
	struct hpx_document *documents[HPX_LIBRARY_FILES_MAX];
	size_t count;
	size_t bytes;
	struct hpx_library_error errors[HPX_LIBRARY_FILES_MAX];
	size_t error_count;
};

void hpx_library_init(struct hpx_library *library);
void hpx_library_done(struct hpx_library *library);

/* The document of that file, read on the first call. NULL: it cannot be read, and an
 * error says why, once for each file. */
const struct hpx_document *hpx_library_open(struct hpx_library *library, struct hpx_span path);
/* The same of a text that is there already, for tests. */
const struct hpx_document *hpx_library_add(struct hpx_library *library, struct hpx_span path,
					   struct hpx_span text);
void hpx_library_error(struct hpx_library *library, struct hpx_span path, unsigned line,
		       const char *reason);

/* The whole file, at most `max` bytes, into `out`, which is set up here. */
enum hpx_status hpx_library_load(struct hpx_span path, size_t max, struct hpx_buffer *out);

/* The value itself, or what its `$ref` leads to. None where that leads nowhere: to a URL,
 * out of the folder, to a file that cannot be read, or in a circle. */
struct hpx_value_at hpx_library_resolve(struct hpx_library *library, struct hpx_value_at value);

#endif
