/* Header fields: finding, combining, and the rules of which may travel. */
#ifndef HPX_HTTP_FIELD_H
#define HPX_HTTP_FIELD_H

#include "base/buffer.h"
#include "http/message.h"

/* The first field of a name that has a number, NULL where absent; its value, ptr NULL
 * where absent; how many there are; all values joined, as hpx_field_combined does. In
 * a head that a reader made, these look into its index. */
const struct hpx_field *hpx_field_known(const struct hpx_http_head *head,
					enum hpx_field_name known);
struct hpx_span hpx_field_known_value(const struct hpx_http_head *head, enum hpx_field_name known);
size_t hpx_field_known_count(const struct hpx_http_head *head, enum hpx_field_name known);
struct hpx_span hpx_field_known_combined(const struct hpx_http_head *head,
					 enum hpx_field_name known, struct hpx_arena *arena);

/* The number of the name of a head's field. */
static inline enum hpx_field_name hpx_field_name_at(const struct hpx_http_head *head, size_t number)
{
	return head->known != NULL ? (enum hpx_field_name)head->known[number] :
				     hpx_field_name_of(head->fields[number].name);
}

/* The same for any name. The first field of that name (case does not matter), NULL
 * where absent. */
const struct hpx_field *hpx_field_find(const struct hpx_http_head *head, struct hpx_span name);
/* Its value, ptr NULL where absent. */
struct hpx_span hpx_field_value(const struct hpx_http_head *head, struct hpx_span name);
size_t hpx_field_count(const struct hpx_http_head *head, struct hpx_span name);

/* All values of that name joined by ", " (RFC 9110 §5.3), from `arena` where
 * there are several; ptr NULL where absent or out of memory. */
struct hpx_span hpx_field_combined(const struct hpx_http_head *head, struct hpx_span name,
				   struct hpx_arena *arena);

/* Whether a comma-separated list of tokens holds `token` (any case). */
bool hpx_field_list_has(struct hpx_span list, struct hpx_span token);

bool hpx_is_token(struct hpx_span s); /* RFC 9110 §5.6.2 */

/* ---- fields as text: "Name: value" lines ---- */

struct hpx_field_line {
	struct hpx_span name;  /* ptr NULL: the line has no colon */
	struct hpx_span value; /* without the blanks around it */
	struct hpx_span text;  /* the line without its end */
	struct hpx_span whole; /* the line with its end */
};

/* Takes the next line off the front of `*lines`; false when nothing is left. A line
 * ends as hpx_span_line says, and may be empty. Nothing is checked: callers that read
 * lines of others check name and value. */
bool hpx_field_line_next(struct hpx_span *lines, struct hpx_field_line *ret_line);
/* The first line of that name (in any case). */
bool hpx_field_line_find(struct hpx_span lines, struct hpx_span name,
			 struct hpx_field_line *ret_line);

/* HPX_FIELD_*: what is true of a field of this message, by its name and by what
 * Connection names. A field of an answer without any is kept by the store. */
unsigned hpx_field_traits(const struct hpx_http_head *head, const struct hpx_field *field);

/* Hop-by-hop: Connection, Keep-Alive, Proxy-Connection, Proxy-Authenticate,
 * Proxy-Authorization, TE, Trailer, Transfer-Encoding, Upgrade, and whatever
 * this message's Connection names (RFC 9110 §7.6.1). */
bool hpx_field_is_hop(const struct hpx_http_head *head, struct hpx_span name);

/* `Hapax-*` and `Hapax_*`, in any case. */
bool hpx_field_is_ours(struct hpx_span name);

/* Whether a stored answer keeps a field of this name: all but hop-by-hop,
 * Proxy-*, Content-Length, Set-Cookie, Date, Age, Via, Alt-Svc,
 * Clear-Site-Data, Authentication-Info, RateLimit-*, Server-Timing, Trailer,
 * and what hapax says itself (Hapax-*, Idempotent-Replayed,
 * Idempotency-Expires). */
bool hpx_field_name_is_kept(struct hpx_span name);
/* The same, and nothing that this message's Connection names. */
bool hpx_field_is_kept(const struct hpx_http_head *head, struct hpx_span name);

/* ---- lines that an application gives ---- */

/* What is kept of an application's header lines, at most. */
#define HPX_KEPT_BYTES_MAX 65536

/* Appends the header lines that an application gives with its answer or its job as
 * they are stored: "Name: value", each with CR LF behind it. Left out are empty lines,
 * and fields that belong to one delivery or are hapax's to say. `lines` end with CR LF
 * or LF, the last may end without. HPX_INVALID: a line that is no header, or text that
 * is not UTF-8; HPX_TOO_LARGE: past the buffer's bound. PostgreSQL does the same in SQL
 * (hapax.kept_headers); a test compares the two. */
enum hpx_status hpx_field_lines_keep(struct hpx_span lines, struct hpx_buffer *out);

#endif
