/* Head and body in one block. The body is JSON, filled up to its size. */
#include "request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_MAX 2048
#define BODY_BEGIN "{\"amount\":4990,\"currency\":\"EUR\",\"customer\":\"c-1001\",\"note\":\""
#define BODY_END "\"}"
#define BODY_LEAST (sizeof(BODY_BEGIN) + sizeof(BODY_END) - 2)

/* Writes the head, and says where in it the key's number is. */
static size_t write_head(char *out, const struct plan *plan, unsigned caller,
			 size_t body, size_t *ret_digits)
{
	bool get = plan->work == WORK_GET || plan->work == WORK_IDLE;
	int len = snprintf(out, HEAD_MAX,
			   "%s %s HTTP/1.1\r\nHost: bench.example\r\n"
			   "Authorization: Bearer bench-credential-%u\r\n%s%s",
			   get ? "GET" : "POST", plan->path, caller, plan->header ? plan->header : "",
			   plan->header ? "\r\n" : "");

	*ret_digits = 0;
	if (!get) {
		len += snprintf(out + len, HEAD_MAX - (size_t)len,
				"Content-Type: application/json\r\nContent-Length: %zu\r\n"
				"Idempotency-Key: %s-",
				body, plan->run);
		*ret_digits = (size_t)len;
		len += snprintf(out + len, HEAD_MAX - (size_t)len, "%0*d\r\n", KEY_DIGITS, 0);
	}
	len += snprintf(out + len, HEAD_MAX - (size_t)len, "\r\n");
	return (size_t)len;
}

/* The filling is the same each time, and no compression makes much of it: databases
 * that compress have the same to write as others. */
static void write_body(char *out, size_t len)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	uint64_t state = 1;

	memcpy(out, BODY_BEGIN, sizeof(BODY_BEGIN) - 1);
	for (size_t i = 0; i < len - BODY_LEAST; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		out[sizeof(BODY_BEGIN) - 1 + i] = letters[state >> 58];
	}
	memcpy(out + len - (sizeof(BODY_END) - 1), BODY_END, sizeof(BODY_END) - 1);
}

bool request_make(struct request *request, const struct plan *plan, unsigned caller)
{
	size_t body = plan->body_bytes < BODY_LEAST ? BODY_LEAST : plan->body_bytes;
	size_t digits;

	request->bytes = malloc(HEAD_MAX + body);
	if (request->bytes == NULL)
		return false;
	request->len = write_head(request->bytes, plan, caller, body, &digits);
	request->digits = digits != 0 ? request->bytes + digits : NULL;
	if (request->digits != NULL) {
		write_body(request->bytes + request->len, body);
		request->len += body;
	}
	return true;
}

void request_free(struct request *request)
{
	free(request->bytes);
}

void request_number(struct request *request, uint64_t number)
{
	if (request->digits == NULL)
		return;
	for (int i = KEY_DIGITS - 1; i >= 0; i--, number /= 10)
		request->digits[i] = (char)('0' + number % 10);
}
