/* Writing JSON members; every text goes through the one escaping function. */
#include "cli/operator_json.h"

#include <inttypes.h>
#include <openssl/evp.h>

#include "base/clock.h"
#include "base/utf8.h"

static void put(struct hpx_operator_json *json, const char *text)
{
	if (json->status == HPX_OK)
		json->status = hpx_buffer_text(json->out, text);
}

void hpx_operator_json_open(struct hpx_operator_json *json, const char *bracket)
{
	put(json, bracket);
	json->first = true;
}

void hpx_operator_json_close(struct hpx_operator_json *json, const char *bracket)
{
	put(json, bracket);
	json->first = false;
}

static void put_string(struct hpx_operator_json *json, struct hpx_span text)
{
	put(json, "\"");
	if (json->status == HPX_OK)
		json->status = hpx_buffer_json(json->out, text);
	put(json, "\"");
}

void hpx_operator_json_name(struct hpx_operator_json *json, const char *name)
{
	if (!json->first)
		put(json, ",");
	json->first = false;
	if (name == NULL)
		return;
	put_string(json, hpx_span_of(name));
	put(json, ":");
}

void hpx_operator_json_text(struct hpx_operator_json *json, const char *name, struct hpx_span text)
{
	hpx_operator_json_name(json, name);
	put_string(json, text);
}

void hpx_operator_json_number(struct hpx_operator_json *json, const char *name, uint64_t number)
{
	hpx_operator_json_name(json, name);
	if (json->status == HPX_OK)
		json->status = hpx_buffer_printf(json->out, "%" PRIu64, number);
}

void hpx_operator_json_bool(struct hpx_operator_json *json, const char *name, bool value)
{
	hpx_operator_json_name(json, name);
	put(json, value ? "true" : "false");
}

void hpx_operator_json_time(struct hpx_operator_json *json, const char *name, int64_t wall_ms)
{
	char when[HPX_RFC3339_SIZE];

	hpx_operator_json_name(json, name);
	if (wall_ms == 0) {
		put(json, "null");
		return;
	}
	hpx_clock_rfc3339(wall_ms, when);
	put_string(json, hpx_span_of(when));
}

static void put_base64(struct hpx_operator_json *json, struct hpx_span bytes)
{
	struct hpx_buffer *out = json->out;
	size_t len = (bytes.len + 2) / 3 * 4;

	if (json->status == HPX_OK && bytes.len > INT32_MAX)
		json->status = HPX_TOO_LARGE;
	if (json->status == HPX_OK)
		json->status = hpx_buffer_reserve(out, len + 1);
	if (json->status != HPX_OK)
		return;
	/* It writes a terminator, which does not count. */
	EVP_EncodeBlock((unsigned char *)out->ptr + out->len, (const unsigned char *)bytes.ptr,
			(int)bytes.len);
	out->len += len;
}

void hpx_operator_json_bytes(struct hpx_operator_json *json, const char *name, struct hpx_span bytes)
{
	char coded[64];

	if (hpx_utf8_valid(bytes)) {
		hpx_operator_json_text(json, name, bytes);
		return;
	}
	snprintf(coded, sizeof(coded), "%s_base64", name);
	hpx_operator_json_name(json, coded);
	put(json, "\"");
	put_base64(json, bytes);
	put(json, "\"");
}

static void put_description(struct hpx_operator_json *json, const struct hpx_description *d)
{
	hpx_operator_json_text(json, "method", d->method);
	hpx_operator_json_text(json, "path", d->path);
	hpx_operator_json_text(json, "route", d->route);
	hpx_operator_json_text(json, "key", d->key);
	hpx_operator_json_text(json, "tenant", d->tenant);
	hpx_operator_json_text(json, "scope", d->scope);
}

void hpx_operator_json_entry(struct hpx_operator_json *json, const struct hpx_entry *entry,
			     int64_t now_ms)
{
	const struct hpx_record *record = &entry->record;
	enum hpx_state state = entry->readable ? record->state : HPX_STATE_UNKNOWN;
	char reference[HPX_REFERENCE_SIZE];

	hpx_reference_print(&record->id, &record->mark, reference);
	hpx_operator_json_text(json, "reference", hpx_span_of(reference));
	hpx_operator_json_text(json, "state", hpx_span_of(hpx_state_name(state)));
	hpx_operator_json_bool(json, "readable", entry->readable);
	hpx_operator_json_number(json, "attempt", record->attempt);
	hpx_operator_json_number(json, "status", record->status);
	hpx_operator_json_bool(json, "kept", record->kept);
	put_description(json, &entry->description);
	hpx_operator_json_time(json, "created", record->created_ms);
	hpx_operator_json_time(json, "changed", record->changed_ms);
	hpx_operator_json_time(json, "expires", record->expires_ms);
	hpx_operator_json_bool(json, "expired",
			       record->expires_ms != 0 && record->expires_ms <= now_ms);
}

int hpx_operator_json_sign(const struct hpx_operator_command *command, struct hpx_operator_json *json,
			   const struct hpx_store_op *op)
{
	hpx_operator_json_time(json, "at", hpx_clock_wall_ms());
	hpx_operator_json_text(json, "actor", op->actor);
	hpx_operator_json_text(json, "reason", op->reason);
	hpx_operator_json_close(json, "}\n");
	if (json->status == HPX_OK)
		return hpx_cli_write(hpx_buffer_span(json->out), stdout);
	return hpx_operator_complain(command, HPX_EXIT_FAILED,
				     "done, but the answer cannot be printed: %s",
				     hpx_status_text(json->status));
}
