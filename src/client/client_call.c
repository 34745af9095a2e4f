/* A call before it is sent: method, URL, body and key. The request is put together
 * once and never changed again. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "client/client.h"

#define REMEMBERED_MS ((int64_t)86400000)

/* ---- the key ---- */

/* A UUID of version 7 (RFC 9562 section 5.7), which sorts by time. */
static void key_make(char ret_key[HPX_KEY_MAX + 1])
{
	uint64_t now_ms = (uint64_t)hpx_clock_wall_ms();
	uint8_t bytes[16];
	char hex[33];

	hpx_random(bytes, sizeof(bytes));
	for (int i = 0; i < 6; i++)
		bytes[i] = (uint8_t)(now_ms >> (40 - 8 * i));
	bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x70);
	bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
	hpx_hex_encode(bytes, sizeof(bytes), hex);
	snprintf(ret_key, HPX_KEY_MAX + 1, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
		 hex + 16, hex + 20);
}

/* A String of RFC 9651 (section 4.1.6), or the bare bytes. */
void hpx_call_key_print(const struct hapax_call *call, char ret_text[HPX_KEY_TEXT_SIZE])
{
	char *out = ret_text;

	HPX_ASSERT(call->key[0] != '\0');
	if (call->key_bare) {
		snprintf(ret_text, HPX_KEY_TEXT_SIZE, "%s", call->key);
		return;
	}
	*out++ = '"';
	for (const char *c = call->key; *c != '\0'; c++) {
		if (*c == '"' || *c == '\\')
			*out++ = '\\';
		*out++ = *c;
	}
	*out++ = '"';
	*out = '\0';
	HPX_ASSERT(out < ret_text + HPX_KEY_TEXT_SIZE);
}

enum hapax_result hapax_call_key(struct hapax_call *call, const char *key, char *problem)
{
	struct hpx_key parsed;
	const char *reason = NULL;

	if (call == NULL || key == NULL || call->resumed || call->sent)
		return hpx_client_error(HAPAX_MISUSE, problem,
					"a key is given before the call is sent, and a "
					"resumed call has one");
	/* A bare key must not begin with a quote: the server would read an RFC 9651
	 * String. */
	enum hpx_status status = hpx_key_parse_bare(hpx_span_of(key), &parsed, &reason);
	if (status == HPX_OK && call->key_bare)
		status = key[0] == '"' ? HPX_INVALID :
					 hpx_key_parse(hpx_span_of(key), false, &parsed, &reason);
	if (status != HPX_OK)
		return hpx_client_error(HAPAX_INVALID, problem, "%s",
					reason != NULL ? reason : "A bare key has no quotes.");
	memcpy(call->key, parsed.bytes, parsed.len);
	call->key[parsed.len] = '\0';
	return hpx_client_ok(problem);
}

/* ---- the call ---- */

struct hapax_call *hpx_call_empty(struct hapax_client *client)
{
	struct hapax_call *call = calloc(1, sizeof(*call));

	if (call == NULL)
		return NULL;
	call->client = client;
	call->claim_fd = -1;
	call->body_kept = true;
	call->outcome.size = sizeof(call->outcome);
	call->outcome.kind = HAPAX_GAVE_UP;
	call->outcome.reason = call->reason;
	return call;
}

static void field_done(struct hpx_call_field *field)
{
	free(field->name);
	free(field->value);
	free(field->file);
}

bool hpx_call_append(struct hapax_call *call, struct hpx_call_field field)
{
	if (field.name == NULL || (field.value == NULL && !field.secret) ||
	    call->field_count == HPX_CALL_FIELDS_MAX) {
		field_done(&field);
		return false;
	}
	call->fields[call->field_count++] = field;
	return true;
}

void hapax_call_free(struct hapax_call *call)
{
	if (call == NULL)
		return;
	for (size_t i = 0; i < call->field_count; i++)
		field_done(&call->fields[i]);
	/* Ends the claim. */
	if (call->claim_fd >= 0)
		close(call->claim_fd);
	hpx_buffer_done(&call->headers_in);
	hpx_buffer_done(&call->values_in);
	hpx_buffer_done(&call->body_in);
	free(call->url);
	free(call->body);
	free(call->key_header);
	free(call);
}

/* Other methods change nothing: they need no key, and curl can send them. */
static bool is_method(const char *method)
{
	static const char *const methods[] = { "POST", "PUT", "PATCH", "DELETE" };

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strcmp(method, methods[i]) == 0)
			return true;
	return false;
}

enum hapax_result hapax_call_new(struct hapax_client *client, const char *method, const char *url,
				 struct hapax_call **ret_call, char *problem)
{
	if (client == NULL || method == NULL || url == NULL || ret_call == NULL)
		return hpx_client_error(HAPAX_MISUSE, problem,
					"a call needs a client, a method and a URL");
	if (!is_method(method))
		return hpx_client_error(HAPAX_INVALID, problem,
					"the method is POST, PUT, PATCH or DELETE: only what changes "
					"something needs a key (for the rest there is curl)");
	struct hapax_call *call = hpx_call_empty(client);
	if (call == NULL)
		return hpx_client_no_memory(problem);
	snprintf(call->method, sizeof(call->method), "%s", method);
	call->url = strdup(url);
	call->key_header = strdup(client->options.key_header);
	call->key_bare = client->options.key_bare != 0;
	call->created_ms = hpx_clock_wall_ms();
	call->remembered_ms = client->options.remembered_ms > 0 ? client->options.remembered_ms :
								  REMEMBERED_MS;
	key_make(call->key);
	enum hapax_result result = call->url == NULL || call->key_header == NULL ?
					   hpx_client_no_memory(problem) :
					   hpx_call_check(call, hpx_span("", 0), problem);
	if (result == HAPAX_OK)
		*ret_call = call;
	else
		hapax_call_free(call);
	return result;
}

enum hapax_result hapax_call_body(struct hapax_call *call, const void *body, size_t body_len,
				  char *problem)
{
	if (call == NULL || (body == NULL && body_len > 0) || call->resumed || call->sent)
		return hpx_client_error(HAPAX_MISUSE, problem,
					"a body is given before the call is sent, "
					"and a resumed call has its own");
	if (body_len > HPX_CALL_BODY_MAX)
		return hpx_client_error(HAPAX_INVALID, problem, "the body is larger than 64 MiB");
	char *copy = malloc(body_len + 1);
	if (copy == NULL)
		return hpx_client_no_memory(problem);
	if (body_len > 0)
		memcpy(copy, body, body_len);
	free(call->body);
	call->body = copy;
	call->body_len = body_len;
	return hpx_client_ok(problem);
}
