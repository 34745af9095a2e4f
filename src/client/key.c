/* Keys: a UUID of version 7 (RFC 9562 §5.7), which sorts by time, and how a
 * key is written into its field. */
#include <stdio.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "client/client.h"

void hpx_call_key_make(char ret_key[HPX_KEY_MAX + 1])
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

/* RFC 9651 §4.1.6. */
void hpx_call_key_print(const struct hapax_call *call, char ret_text[HPX_KEY_TEXT_SIZE])
{
	char *out = ret_text;

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
}

enum hapax_result hapax_call_key(struct hapax_call *call, const char *key, char *problem)
{
	struct hpx_key parsed;
	const char *reason = NULL;

	if (call == NULL || key == NULL || call->resumed || call->sent)
		return hpx_client_say(HAPAX_MISUSE, problem,
				      "a key is given before the call is sent, and a "
				      "resumed call has one");
	/* Bare, the server would read a leading quote as an RFC 9651 String. */
	enum hpx_status status = hpx_key_parse_bare(hpx_span_of(key), &parsed, &reason);
	if (status == HPX_OK && call->key_bare)
		status = key[0] == '"' ? HPX_INVALID :
					 hpx_key_parse(hpx_span_of(key), false, &parsed, &reason);
	if (status != HPX_OK)
		return hpx_client_say(HAPAX_INVALID, problem, "%s", reason != NULL ? reason : "A bare key has no quotes.");
	memcpy(call->key, parsed.bytes, parsed.len);
	call->key[parsed.len] = '\0';
	return hpx_client_ok(problem);
}
