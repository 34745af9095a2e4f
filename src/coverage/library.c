/* Files, and the references between them. A URL is never fetched, and a reference that
 * climbs out of the folder of its file is not followed: a description may come from
 * somebody else. */
#include "coverage/library.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/status.h"

#define REFERENCES_MAX 32
#define ARENA_BYTES_MAX ((size_t)64 << 20)
#define READ_BYTES ((size_t)1 << 16)

void hpx_library_init(struct hpx_library *library)
{
	library->count = library->error_count = library->bytes = 0;
	hpx_arena_init(&library->arena, ARENA_BYTES_MAX);
}

void hpx_library_done(struct hpx_library *library)
{
	for (size_t i = 0; i < library->count; i++) {
		hpx_document_done(library->documents[i]);
		free(library->documents[i]);
	}
	hpx_arena_done(&library->arena);
	library->count = 0;
}

static bool has_error(const struct hpx_library *library, struct hpx_span path)
{
	for (size_t i = 0; i < library->error_count; i++)
		if (hpx_span_eq(library->errors[i].path, path))
			return true;
	return false;
}

void hpx_library_error(struct hpx_library *library, struct hpx_span path, unsigned line,
		       const char *reason)
{
	if (library->error_count == HPX_LIBRARY_FILES_MAX)
		return;
	struct hpx_span copy = hpx_arena_dup(&library->arena, path);
	struct hpx_span text = hpx_arena_dup(&library->arena, hpx_span_of(reason));
	/* Without memory for the reason, the error itself still counts. */
	library->errors[library->error_count++] = (struct hpx_library_error){
		copy.ptr != NULL ? copy : HPX_SPAN("?"), line,
		text.ptr != NULL ? text : HPX_SPAN("out of memory")
	};
}

/* ---- files ---- */

static enum hpx_status read_all(int fd, struct hpx_buffer *out)
{
	for (;;) {
		enum hpx_status status = hpx_buffer_reserve(out, READ_BYTES);
		if (status != HPX_OK)
			return status;
		ssize_t n = read(fd, out->ptr + out->len, READ_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return HPX_IO;
		if (n == 0)
			return HPX_OK;
		out->len += (size_t)n;
	}
}

enum hpx_status hpx_library_load(struct hpx_span path, size_t max, struct hpx_buffer *out)
{
	char name[4096];

	hpx_buffer_init(out, max + READ_BYTES);
	if (path.len >= sizeof(name) || memchr(path.ptr, '\0', path.len) != NULL)
		return HPX_NOT_FOUND;
	memcpy(name, path.ptr, path.len);
	name[path.len] = '\0';
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? HPX_NOT_FOUND : HPX_IO;
	enum hpx_status status = read_all(fd, out);
	close(fd);
	return status == HPX_OK && out->len > max ? HPX_TOO_LARGE : status;
}

static const struct hpx_document *find(const struct hpx_library *library, struct hpx_span path)
{
	for (size_t i = 0; i < library->count; i++)
		if (hpx_span_eq(library->documents[i]->path, path))
			return library->documents[i];
	return NULL;
}

static const char *reason_of(enum hpx_status status)
{
	switch (status) {
	case HPX_TOO_LARGE:
		return "larger than 64 MiB";
	case HPX_NOT_FOUND:
		return "there is no such file";
	case HPX_IO:
		return "cannot be opened or read";
	default:
		return hpx_status_text(status);
	}
}

/* `text` becomes the document's. */
static const struct hpx_document *keep(struct hpx_library *library, struct hpx_span path,
				       struct hpx_buffer *text)
{
	struct hpx_document_mistake mistake = { 0, "" };
	struct hpx_document *document = malloc(sizeof(*document));
	struct hpx_span copy = hpx_arena_dup(&library->arena, path);
	size_t bytes = text->len;

	if (document == NULL || copy.ptr == NULL) {
		free(document);
		hpx_buffer_done(text);
		hpx_library_error(library, path, 0, "out of memory");
		return NULL;
	}
	enum hpx_status status = hpx_document_read(copy, text, document, &mistake);
	if (status != HPX_OK) {
		hpx_library_error(library, path, mistake.line,
				  status == HPX_INVALID ? mistake.reason : reason_of(status));
		free(document);
		return NULL;
	}
	library->bytes += bytes;
	library->documents[library->count++] = document;
	return document;
}

const struct hpx_document *hpx_library_open(struct hpx_library *library, struct hpx_span path)
{
	const struct hpx_document *known = find(library, path);
	struct hpx_buffer text;

	if (known != NULL || has_error(library, path))
		return known;
	if (library->count == HPX_LIBRARY_FILES_MAX || library->bytes > HPX_LIBRARY_BYTES_MAX) {
		hpx_library_error(library, path, 0, "too many files, or too large together");
		return NULL;
	}
	enum hpx_status status = hpx_library_load(path, HPX_DOCUMENT_BYTES_MAX, &text);
	if (status == HPX_OK)
		return keep(library, path, &text);
	hpx_buffer_done(&text);
	hpx_library_error(library, path, 0, reason_of(status));
	return NULL;
}

const struct hpx_document *hpx_library_add(struct hpx_library *library, struct hpx_span path,
					   struct hpx_span text)
{
	struct hpx_buffer copy;

	hpx_buffer_init(&copy, text.len + 1);
	if (library->count == HPX_LIBRARY_FILES_MAX || hpx_buffer_append(&copy, text) != HPX_OK) {
		hpx_buffer_done(&copy);
		return NULL;
	}
	return keep(library, path, &copy);
}

/* ---- references ---- */

static struct hpx_span folder_of(struct hpx_span path)
{
	size_t len = path.len;

	while (len > 0 && path.ptr[len - 1] != '/')
		len--;
	return hpx_span_first(path, len);
}

/* Whether the relative path stays in its folder. */
static bool stays_below(struct hpx_span path)
{
	struct hpx_span part;

	if (path.len == 0 || path.ptr[0] == '/' || hpx_span_index(path, ':') < path.len)
		return false;
	while (hpx_span_split(&path, '/', &part))
		if (hpx_span_eq(part, HPX_SPAN("..")))
			return false;
	return true;
}

static const struct hpx_document *other_file(struct hpx_library *library,
					     const struct hpx_document *from, struct hpx_span file)
{
	if (!stays_below(file))
		return NULL;
	if (hpx_span_starts(file, HPX_SPAN("./")))
		file = hpx_span_skip(file, 2);
	struct hpx_span parts[] = { folder_of(from->path), file };
	struct hpx_span path = hpx_arena_join(&library->arena, parts, 2);
	return path.ptr != NULL ? hpx_library_open(library, path) : NULL;
}

/* A reference is a URI: %XX in its pointer stands for a byte. Returns its length. */
static size_t decode_percent(struct hpx_span text, char *out, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < text.len && len < size; i++) {
		unsigned char byte;
		if (text.ptr[i] == '%' && text.len - i > 2 &&
		    hpx_hex_decode(hpx_span(text.ptr + i + 1, 2), &byte, 1)) {
			out[len++] = (char)byte;
			i += 2;
		} else {
			out[len++] = text.ptr[i];
		}
	}
	return len;
}

static struct hpx_value_at follow(struct hpx_library *library, struct hpx_value_at from,
				  struct hpx_span reference)
{
	struct hpx_span file = hpx_span_first(reference, hpx_span_index(reference, '#'));
	struct hpx_span pointer = hpx_span_skip(reference, file.len);
	const struct hpx_document *document = from.document;
	char decoded[1024];

	if (pointer.len > 0)
		pointer = hpx_span_skip(pointer, 1);
	if (pointer.len > sizeof(decoded))
		return hpx_value_none();
	if (file.len > 0)
		document = other_file(library, from.document, file);
	if (document == NULL)
		return hpx_value_none();
	pointer = hpx_span(decoded, decode_percent(pointer, decoded, sizeof(decoded)));
	return hpx_value_follow(hpx_document_root(document), pointer);
}

struct hpx_value_at hpx_library_resolve(struct hpx_library *library, struct hpx_value_at value)
{
	for (int hops = 0; hops < REFERENCES_MAX; hops++) {
		struct hpx_span reference = hpx_value_member_text(value, "$ref");
		if (reference.ptr == NULL)
			return value;
		value = follow(library, value, reference);
		if (!hpx_value_there(value))
			return value;
	}
	return hpx_value_none();
}
