/* JSON objects for people and scripts, member by member. The first error is
 * kept, so that callers look once, at the end. */
#ifndef HPX_CLI_OPERATOR_JSON_H
#define HPX_CLI_OPERATOR_JSON_H

#include "base/buffer.h"
#include "cli/operator_command.h"
#include "store/store.h"

struct hpx_operator_json {
	struct hpx_buffer *out;
	enum hpx_status status;
	bool first; /* no comma before the next member */
};

void hpx_operator_json_open(struct hpx_operator_json *json, const char *bracket);
void hpx_operator_json_close(struct hpx_operator_json *json, const char *bracket);
/* A member's name, or with NULL only the comma of the next element. */
void hpx_operator_json_name(struct hpx_operator_json *json, const char *name);
void hpx_operator_json_text(struct hpx_operator_json *json, const char *name, struct hpx_span text);
void hpx_operator_json_number(struct hpx_operator_json *json, const char *name, uint64_t number);
void hpx_operator_json_bool(struct hpx_operator_json *json, const char *name, bool value);
/* RFC 3339; null where it is 0. */
void hpx_operator_json_time(struct hpx_operator_json *json, const char *name, int64_t wall_ms);
/* "name" where the bytes are UTF-8, otherwise "name_base64". */
void hpx_operator_json_bytes(struct hpx_operator_json *json, const char *name, struct hpx_span bytes);

/* The members of an operation, without the brackets. */
void hpx_operator_json_entry(struct hpx_operator_json *json, const struct hpx_entry *entry,
			     int64_t now_ms);

/* Closes the document of something done, with when, by whom and why, and
 * prints it; the exit code. */
int hpx_operator_json_sign(const struct hpx_operator_command *command, struct hpx_operator_json *json,
			   const struct hpx_store_op *op);

#endif
