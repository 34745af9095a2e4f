/* A call before it is sent: its request, put together and never changed again. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/client.h"

#define REMEMBERED_MS ((int64_t)86400000)

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

/* The rest is read, not changed: no key is needed, and curl is at hand. */
static bool is_method(const char *method)
{
	static const char *const methods[] = { "POST", "PUT", "PATCH", "DELETE" };

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (strcmp(method, methods[i]) == 0)
			return true;
	return false;
}

static enum hapax_result check_request(const struct hapax_call *call, char *problem)
{
	struct hpx_egress_request request;

	if (hpx_attempt_check(call, hpx_span("", 0), &request) == HPX_OK)
		return hpx_client_ok(problem);
	return hpx_client_say(HAPAX_INVALID, problem, "%s", request.problem);
}

enum hapax_result hapax_call_new(struct hapax_client *client, const char *method, const char *url,
				 struct hapax_call **ret_call, char *problem)
{
	if (client == NULL || method == NULL || url == NULL || ret_call == NULL)
		return hpx_client_say(HAPAX_MISUSE, problem,
				      "a call needs a client, a method and a URL");
	if (!is_method(method))
		return hpx_client_say(HAPAX_INVALID, problem,
				      "the method is POST, PUT, PATCH or DELETE: only what changes "
				      "something needs a key (for the rest there is curl)");
	struct hapax_call *call = hpx_call_empty(client);
	if (call == NULL)
		return hpx_client_nomem(problem);
	snprintf(call->method, sizeof(call->method), "%s", method);
	call->url = strdup(url);
	call->key_header = strdup(client->options.key_header);
	call->key_bare = client->options.key_bare != 0;
	call->created_ms = hpx_clock_wall_ms();
	call->remembered_ms = client->options.remembered_ms > 0 ? client->options.remembered_ms :
								  REMEMBERED_MS;
	hpx_call_key_make(call->key);
	enum hapax_result result = call->url == NULL || call->key_header == NULL ?
					   hpx_client_nomem(problem) :
					   check_request(call, problem);
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
		return hpx_client_say(HAPAX_MISUSE, problem,
				      "a body is given before the call is sent, "
				      "and a resumed call has its own");
	if (body_len > HPX_CALL_BODY_MAX)
		return hpx_client_say(HAPAX_INVALID, problem, "the body is larger than 64 MiB");
	char *copy = malloc(body_len + 1);
	if (copy == NULL)
		return hpx_client_nomem(problem);
	if (body_len > 0)
		memcpy(copy, body, body_len);
	free(call->body);
	call->body = copy;
	call->body_len = body_len;
	return hpx_client_ok(problem);
}
