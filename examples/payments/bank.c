/* One order, one call, no retry here: the caller's own retry comes back with
 * the same key. */
#include "bank.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "http.h"

static enum bank_result read_id(const struct http_message *answer, char ret_id[BANK_ID_SIZE])
{
	json_t *document = json_loadb(answer->body, answer->body_len, 0, NULL);
	const char *id = json_string_value(json_object_get(document, "id"));
	int len = id != NULL ? snprintf(ret_id, BANK_ID_SIZE, "%s", id) : BANK_ID_SIZE;

	json_decref(document);
	return len < BANK_ID_SIZE ? BANK_DONE : BANK_NO_ANSWER;
}

enum bank_result bank_ask(uint16_t port, const struct bank_order *order, char ret_id[BANK_ID_SIZE])
{
	char path[64], headers[256], body[256];
	struct http_message *answer = malloc(sizeof(*answer));
	enum bank_result result = BANK_NO_ANSWER;

	if (answer == NULL)
		return BANK_NO_ANSWER;
	snprintf(path, sizeof(path), "/%ss", order->kind);
	snprintf(headers, sizeof(headers), "Idempotency-Key: \"%s.%s\"\r\n", order->reference,
		 order->kind);
	snprintf(body, sizeof(body), "{\"about\": \"%s\", \"amount\": %s, \"currency\": \"%s\"}",
		 order->about, order->amount, order->currency);
	unsigned status = http_post(port, path, headers, body, answer);
	if (status == 201)
		result = read_id(answer, ret_id);
	else if (status == 402)
		result = BANK_DECLINED;
	free(answer);
	return result;
}
