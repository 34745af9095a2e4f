/* See json_writer.h. Every text goes through the one escaping function. */
#include "base/json_writer.h"

#include <openssl/evp.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/span.h"
#include "base/status.h"

void hpx_json_writer_init(struct hpx_json_writer *json, struct hpx_buffer *out)
{
	*json = (struct hpx_json_writer){ .out = out, .begin = out->len };
}

static enum hpx_status put_escape(struct hpx_buffer *buffer, unsigned char c)
{
	switch (c) {
	case '"':
		return hpx_buffer_text(buffer, "\\\"");
	case '\\':
		return hpx_buffer_text(buffer, "\\\\");
	case '\n':
		return hpx_buffer_text(buffer, "\\n");
	case '\r':
		return hpx_buffer_text(buffer, "\\r");
	case '\t':
		return hpx_buffer_text(buffer, "\\t");
	default:
		if (c < 0x20 || c == 0x7f)
			return hpx_buffer_printf(buffer, "\\u%04x", c);
		return hpx_buffer_byte(buffer, (char)c);
	}
}

/* The text as the inside of a JSON string. Bytes that are not valid UTF-8 become U+FFFD,
 * so that the result is always valid JSON. */
static enum hpx_status put_escaped(struct hpx_buffer *buffer, struct hpx_span text)
{
	enum hpx_status status = HPX_OK;

	while (text.len > 0 && status == HPX_OK) {
		size_t n = hpx_utf8_sequence(text);
		if (n == 0) {
			status = hpx_buffer_text(buffer, "\xef\xbf\xbd");
			n = 1;
		} else if (n == 1) {
			status = put_escape(buffer, (unsigned char)text.ptr[0]);
		} else {
			status = hpx_buffer_append(buffer, hpx_span_first(text, n));
		}
		text = hpx_span_skip(text, n);
	}
	return status;
}

static void put(struct hpx_json_writer *json, struct hpx_span text)
{
	if (json->status == HPX_OK)
		json->status = hpx_buffer_append(json->out, text);
}

enum hpx_status hpx_json_writer_finish(struct hpx_json_writer *json)
{
	HPX_ASSERT(json->depth == 0 && json->comma);
	put(json, HPX_SPAN("\n"));
	if (json->status != HPX_OK)
		json->out->len = json->begin;
	return json->status;
}

static bool in_object(const struct hpx_json_writer *json)
{
	return json->depth > 0 && (json->arrays >> (json->depth - 1) & 1) == 0;
}

void hpx_json_break_line(struct hpx_json_writer *json)
{
	HPX_ASSERT(json->depth > 0);
	json->line = true;
}

static void begin_line(struct hpx_json_writer *json)
{
	if (json->indent == 0 && !json->line)
		return;
	put(json, HPX_SPAN("\n"));
	json->line = false;
	for (unsigned i = 0; i < json->depth * json->indent; i++)
		put(json, HPX_SPAN(" "));
}

/* What stands before a value: a comma, its name. */
static void put_name(struct hpx_json_writer *json, const char *name)
{
	HPX_ASSERT(in_object(json) == (name != NULL));
	if (json->comma)
		put(json, HPX_SPAN(","));
	if (json->depth > 0)
		begin_line(json);
	json->comma = true;
	if (name == NULL)
		return;
	put(json, HPX_SPAN("\""));
	put(json, hpx_span_of(name));
	put(json, json->indent > 0 ? HPX_SPAN("\": ") : HPX_SPAN("\":"));
}

static void begin(struct hpx_json_writer *json, const char *name, bool array)
{
	put_name(json, name);
	put(json, array ? HPX_SPAN("[") : HPX_SPAN("{"));
	HPX_ASSERT(json->depth < HPX_JSON_WRITER_DEPTH_MAX);
	json->arrays &= ~(1u << json->depth);
	json->arrays |= (uint32_t)array << json->depth;
	json->depth++;
	json->comma = false;
}

static void end(struct hpx_json_writer *json, bool array)
{
	HPX_ASSERT(json->depth > 0 && in_object(json) == !array);
	json->depth--;
	if (json->comma || json->line)
		begin_line(json);
	put(json, array ? HPX_SPAN("]") : HPX_SPAN("}"));
	json->comma = true;
}

void hpx_json_begin_object(struct hpx_json_writer *json, const char *name)
{
	begin(json, name, false);
}

void hpx_json_end_object(struct hpx_json_writer *json)
{
	end(json, false);
}

void hpx_json_begin_array(struct hpx_json_writer *json, const char *name)
{
	begin(json, name, true);
}

void hpx_json_end_array(struct hpx_json_writer *json)
{
	end(json, true);
}

/* As UTF-16 has it: two escapes for a character beyond the basic plane. */
static enum hpx_status escape_character(struct hpx_buffer *out, uint32_t code)
{
	if (code < 0x10000)
		return hpx_buffer_printf(out, "\\u%04x", code);
	code -= 0x10000;
	return hpx_buffer_printf(out, "\\u%04x\\u%04x", 0xd800 | code >> 10, 0xdc00 | (code & 0x3ff));
}

static void put_ascii(struct hpx_json_writer *json, struct hpx_span value)
{
	while (value.len > 0 && json->status == HPX_OK) {
		size_t n = hpx_utf8_sequence(value);

		if (n == 1)
			json->status = put_escaped(json->out, hpx_span_first(value, 1));
		else
			json->status = escape_character(json->out, n > 0 ? hpx_utf8_decode(value) : 0xfffd);
		value = hpx_span_skip(value, n > 0 ? n : 1);
	}
}

void hpx_json_put_string(struct hpx_json_writer *json, const char *name, struct hpx_span value)
{
	put_name(json, name);
	put(json, HPX_SPAN("\""));
	if (json->ascii)
		put_ascii(json, value);
	else if (json->status == HPX_OK)
		json->status = put_escaped(json->out, value);
	put(json, HPX_SPAN("\""));
}

void hpx_json_put_text(struct hpx_json_writer *json, const char *name, const char *value)
{
	hpx_json_put_string(json, name, hpx_span_of(value));
}

void hpx_json_put_number(struct hpx_json_writer *json, const char *name, uint64_t value)
{
	char digits[HPX_DECIMAL_SIZE];

	put_name(json, name);
	put(json, hpx_decimal(value, digits));
}

void hpx_json_put_bool(struct hpx_json_writer *json, const char *name, bool value)
{
	put_name(json, name);
	put(json, value ? HPX_SPAN("true") : HPX_SPAN("false"));
}

void hpx_json_put_time(struct hpx_json_writer *json, const char *name, int64_t wall_ms)
{
	char text[HPX_RFC3339_SIZE];

	if (wall_ms == 0) {
		put_name(json, name);
		put(json, HPX_SPAN("null"));
		return;
	}
	hpx_clock_rfc3339(wall_ms, text);
	hpx_json_put_text(json, name, text);
}

void hpx_json_put_seconds(struct hpx_json_writer *json, const char *name, int64_t ms)
{
	put_name(json, name);
	if (json->status == HPX_OK)
		json->status = hpx_buffer_printf(json->out, "%.10g", (double)ms / 1000);
}

static void put_base64(struct hpx_json_writer *json, struct hpx_span bytes)
{
	struct hpx_buffer *out = json->out;
	size_t len = (bytes.len + 2) / 3 * 4;

	if (json->status == HPX_OK && bytes.len > INT32_MAX)
		json->status = HPX_TOO_LARGE;
	if (json->status == HPX_OK)
		json->status = hpx_buffer_reserve(out, len + 1);
	if (json->status != HPX_OK)
		return;
	/* EVP_EncodeBlock writes a NUL behind the text, which does not count. */
	EVP_EncodeBlock((unsigned char *)out->ptr + out->len, (const unsigned char *)bytes.ptr,
			(int)bytes.len);
	out->len += len;
}

void hpx_json_put_bytes(struct hpx_json_writer *json, const char *name, struct hpx_span bytes)
{
	char coded[64];

	if (hpx_utf8_valid(bytes)) {
		hpx_json_put_string(json, name, bytes);
		return;
	}
	int len = snprintf(coded, sizeof(coded), "%s_base64", name);
	HPX_ASSERT(len > 0 && (size_t)len < sizeof(coded));
	put_name(json, coded);
	put(json, HPX_SPAN("\""));
	put_base64(json, bytes);
	put(json, HPX_SPAN("\""));
}
