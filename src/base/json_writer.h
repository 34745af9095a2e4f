/* The JSON writer: documents without blanks, or indented, into a bounded buffer. The first failure
 * stays, and calls after it write nothing, so callers look at the status once, at the
 * end. Reading JSON is core/json.h. */
#ifndef HPX_BASE_JSON_WRITER_H
#define HPX_BASE_JSON_WRITER_H

#include "base/buffer.h"

/* How deep arrays and objects may stand in each other. */
#define HPX_JSON_WRITER_DEPTH_MAX 32

struct hpx_json_writer {
	struct hpx_buffer *out;
	size_t begin; /* the document's place in `out` */
	enum hpx_status status;
	unsigned depth;
	uint32_t arrays; /* bit n: what is open at depth n is an array */
	bool comma;      /* something stands before the next value */
	unsigned indent; /* blanks for each level, a line for each value; 0: one line */
	bool line;       /* the next value, or the next end, begins a line */
	bool ascii;      /* characters beyond ASCII are written as \uXXXX */
};

/* Without blanks, in UTF-8. Callers that want it otherwise set `indent` and `ascii`. */
void hpx_json_writer_init(struct hpx_json_writer *json, struct hpx_buffer *out);
/* Ends the document with a newline. After a failure the buffer is as it was at init. */
enum hpx_status hpx_json_writer_finish(struct hpx_json_writer *json);

/* In an object, every value has a name, which is written as it is: names are ours.
 * In an array, and for the document itself, the name is NULL. */
void hpx_json_begin_object(struct hpx_json_writer *json, const char *name);
void hpx_json_end_object(struct hpx_json_writer *json);
void hpx_json_begin_array(struct hpx_json_writer *json, const char *name);
void hpx_json_end_array(struct hpx_json_writer *json);

/* The next value of this array or object, or its end, begins a line of its own: for long
 * lists without `indent`. */
void hpx_json_break_line(struct hpx_json_writer *json);

void hpx_json_put_string(struct hpx_json_writer *json, const char *name, struct hpx_span value);
void hpx_json_put_text(struct hpx_json_writer *json, const char *name, const char *value);
void hpx_json_put_number(struct hpx_json_writer *json, const char *name, uint64_t value);
void hpx_json_put_bool(struct hpx_json_writer *json, const char *name, bool value);
/* An RFC 3339 time; null for 0. */
void hpx_json_put_time(struct hpx_json_writer *json, const char *name, int64_t wall_ms);
/* Seconds, with a fraction where there is one. */
void hpx_json_put_seconds(struct hpx_json_writer *json, const char *name, int64_t ms);
/* Bytes of any kind: a string where they are UTF-8; otherwise base64, and
 * "_base64" is added to the name. */
void hpx_json_put_bytes(struct hpx_json_writer *json, const char *name, struct hpx_span bytes);

#endif
