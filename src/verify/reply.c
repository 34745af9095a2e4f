/* See reply.h. The head's bytes stay in one buffer until they are copied,
 * because its spans point into them. */
#include "verify/reply.h"

#include "http/field.h"

#define HEAD_MAX ((size_t)64 * 1024)
/* A head, and what came with its last bytes. */
#define HEAD_BYTES_MAX (HEAD_MAX * 2)
#define FIELDS_BYTES_MAX ((size_t)256 * 1024)

static const struct hpx_http_limits limits = { .head_bytes_max = HEAD_MAX,
					       .fields_max = HPX_HTTP_FIELDS_MAX };

void hpx_response_init(struct hpx_response *answer, struct hpx_span method,
		       struct hpx_response_shared *share)
{
	*answer = (struct hpx_response){ .method = method, .share = share };
	hpx_http_reader_response(&answer->reader, &limits, method);
	hpx_arena_init(&answer->arena, FIELDS_BYTES_MAX);
	hpx_buffer_init(&answer->head_bytes, HEAD_BYTES_MAX);
	hpx_buffer_init(&answer->body, HPX_RESPONSE_BODY_MAX);
	hpx_sha256_init(&answer->hash);
}

void hpx_response_done(struct hpx_response *answer)
{
	uint8_t digest[HPX_SHA256_SIZE];

	/* Gives its context back; what it says is in the exchange by now. */
	hpx_sha256_done(&answer->hash, digest);
	answer->share->held_bytes -= answer->body.len;
	hpx_arena_done(&answer->arena);
	hpx_buffer_done(&answer->head_bytes);
	hpx_buffer_done(&answer->body);
}

static enum hpx_http_progress refuse(struct hpx_response *answer, const char *problem)
{
	answer->problem = problem;
	return HPX_HTTP_BAD;
}

/* The reader's words are about requests, which is what the gateway reads. */
static const char *head_problem(enum hpx_http_error error)
{
	return error == HPX_HTTP_ERROR_HEAD_TOO_LARGE ? "the answer's head is too large" : hpx_http_error_text(error);
}

/* How much more of the body is kept. Behind a gap nothing is. */
static size_t room_of(const struct hpx_response *answer)
{
	size_t len = answer->body.len;
	size_t held = answer->share->held_bytes;
	size_t all = held < HPX_RESPONSE_BODIES_MAX ? HPX_RESPONSE_BODIES_MAX - held : 0;
	size_t first = len < HPX_EXCHANGE_KEPT ? HPX_EXCHANGE_KEPT - len : 0;
	size_t own = HPX_RESPONSE_BODY_MAX - len;

	if (answer->body_bytes > len)
		return 0;
	all = all > first ? all : first;
	return own < all ? own : all;
}

static enum hpx_http_progress keep(struct hpx_response *answer, struct hpx_span data)
{
	struct hpx_span kept = hpx_span_first(data, room_of(answer));

	answer->body_bytes += data.len;
	hpx_sha256_add(&answer->hash, data);
	if (hpx_buffer_append(&answer->body, kept) != HPX_OK)
		return refuse(answer, "no memory for the answer's body");
	answer->share->held_bytes += kept.len;
	return HPX_HTTP_MORE;
}

static enum hpx_http_progress feed_body(struct hpx_response *answer, struct hpx_span bytes)
{
	for (;;) {
		struct hpx_span data = { NULL, 0 };
		size_t used = 0;
		enum hpx_http_progress progress =
			hpx_http_read_body(&answer->reader, bytes, &data, &used);

		if (progress == HPX_HTTP_BAD)
			return refuse(answer, hpx_http_error_text(answer->reader.error));
		if (keep(answer, data) == HPX_HTTP_BAD)
			return HPX_HTTP_BAD;
		bytes = hpx_span_skip(bytes, used);
		if (progress == HPX_HTTP_DONE || bytes.len == 0)
			return progress;
	}
}

/* 1xx: dropped; the answer is still to come. */
static bool pass_over(struct hpx_response *answer, size_t used)
{
	if (answer->head.status >= 200)
		return false;
	hpx_buffer_consume(&answer->head_bytes, used);
	hpx_arena_done(&answer->arena);
	hpx_http_reader_response(&answer->reader, &limits, answer->method);
	return true;
}

static enum hpx_http_progress feed_head(struct hpx_response *answer)
{
	for (;;) {
		size_t used = 0;
		struct hpx_span bytes = hpx_buffer_span(&answer->head_bytes);
		enum hpx_http_progress progress = hpx_http_read_head(
			&answer->reader, bytes, &answer->arena, &answer->head, &used);

		if (progress == HPX_HTTP_BAD)
			return refuse(answer, head_problem(answer->reader.error));
		if (progress == HPX_HTTP_MORE)
			return progress;
		if (answer->head.framing == HPX_FRAMING_TUNNEL)
			return refuse(answer, "the answer changes to another protocol");
		if (pass_over(answer, used))
			continue;
		answer->has_head = true;
		return feed_body(answer, hpx_span_skip(bytes, used));
	}
}

enum hpx_http_progress hpx_response_feed(struct hpx_response *answer, struct hpx_span bytes)
{
	if (answer->has_head)
		return feed_body(answer, bytes);
	if (hpx_buffer_append(&answer->head_bytes, bytes) != HPX_OK)
		return refuse(answer, "the answer's head is too large");
	return feed_head(answer);
}

enum hpx_http_progress hpx_response_end(struct hpx_response *answer)
{
	if (answer->has_head && hpx_http_read_end(&answer->reader) == HPX_HTTP_DONE)
		return HPX_HTTP_DONE;
	if (answer->head_bytes.len == 0)
		return refuse(answer, "the connection was closed before an answer came");
	return refuse(answer, "the connection was closed in the middle of the answer");
}

static enum hpx_status give_fields(const struct hpx_response *answer, struct hpx_arena *arena,
				   struct hpx_verify_exchange *exchange)
{
	const struct hpx_http_head *head = &answer->head;
	struct hpx_field *fields = hpx_arena_zalloc(arena, head->field_count, sizeof(*fields));

	if (fields == NULL)
		return HPX_NOMEM;
	for (size_t i = 0; i < head->field_count; i++) {
		fields[i].name = hpx_arena_dup(arena, head->fields[i].name);
		fields[i].value = hpx_secrets_hide(&answer->share->secrets, head->fields[i].value,
						   arena);
		if (fields[i].name.ptr == NULL || fields[i].value.ptr == NULL)
			return HPX_NOMEM;
	}
	exchange->fields = fields;
	exchange->field_count = head->field_count;
	return HPX_OK;
}

enum hpx_status hpx_response_move(struct hpx_response *answer, struct hpx_arena *arena,
				  struct hpx_verify_exchange *exchange)
{
	const struct hpx_secrets *secrets = &answer->share->secrets;
	struct hpx_span body = hpx_buffer_span(&answer->body);
	enum hpx_status status = give_fields(answer, arena, exchange);

	if (status == HPX_OK)
		status = hpx_sha256_done(&answer->hash, exchange->body_hash);
	if (status != HPX_OK)
		return status;
	if (answer->body_bytes > body.len)
		body = hpx_span_first(body, HPX_EXCHANGE_KEPT);
	exchange->status = answer->head.status;
	exchange->body_bytes = answer->body_bytes;
	exchange->body = hpx_secrets_hide(secrets, body, arena);
	if (exchange->body.ptr == NULL) /* the row has kept too many */
		exchange->body = hpx_secrets_hide(secrets, hpx_span_first(body, HPX_EXCHANGE_KEPT),
						  arena);
	return exchange->body.ptr != NULL ? HPX_OK : HPX_NOMEM;
}
