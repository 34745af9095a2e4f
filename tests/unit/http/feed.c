/* Feeding: the head from ever longer beginnings, the body from what is new. */
#include "feed.h"

#include <stdlib.h>

#include "base/status.h"

#define ARENA_BYTES 65536
#define COLLECT_BYTES (1 << 20)

struct feed {
	struct hpx_http_reader reader;
	struct hpx_span input;
	size_t seen;
	struct feed_result *result;
};

/* A copy without a byte to spare; malloc(0) has none at all. */
static struct hpx_span copy_of(struct hpx_span input, size_t from, size_t to)
{
	char *copy = malloc(to - from);

	HPX_ASSERT(copy != NULL || to == from);
	if (to > from)
		memcpy(copy, input.ptr + from, to - from);
	return hpx_span(copy, to - from);
}

static void collect(struct hpx_buffer *buffer, struct hpx_span s)
{
	HPX_ASSERT(hpx_buffer_append(buffer, s) == HPX_OK);
}

static void note_head(struct feed_result *result, const struct hpx_http_head *head)
{
	struct hpx_buffer *text = &result->head_text;

	result->head = *head;
	collect(text, head->method);
	collect(text, HPX_SPAN("|"));
	collect(text, head->target);
	collect(text, HPX_SPAN("|"));
	collect(text, head->reason);
	for (size_t i = 0; i < head->field_count; i++) {
		collect(text, HPX_SPAN("|"));
		collect(text, head->fields[i].name);
		collect(text, HPX_SPAN("="));
		collect(text, head->fields[i].value);
	}
}

static void feed_head(struct feed *feed)
{
	struct hpx_span bytes = copy_of(feed->input, 0, feed->seen);
	struct hpx_http_head head;
	struct hpx_arena arena;

	hpx_arena_init(&arena, ARENA_BYTES);
	feed->result->progress = hpx_http_read_head(&feed->reader, bytes, &arena, &head,
						    &feed->result->used);
	if (feed->result->progress == HPX_HTTP_DONE) {
		note_head(feed->result, &head);
		feed->result->progress = HPX_HTTP_MORE;
	}
	hpx_arena_done(&arena);
	free((void *)bytes.ptr);
}

/* One call of the reader; whether there is reason for another. */
static bool feed_body_once(struct feed *feed)
{
	struct feed_result *result = feed->result;
	struct hpx_span bytes = copy_of(feed->input, result->used, feed->seen);
	struct hpx_span data;
	size_t used = 0;

	result->progress = hpx_http_read_body(&feed->reader, bytes, &data, &used);
	if (result->progress != HPX_HTTP_BAD) {
		HPX_ASSERT(used <= bytes.len && data.len <= used);
		HPX_ASSERT(used > 0 || bytes.len == 0 || result->progress == HPX_HTTP_DONE);
		collect(&result->body, data);
	}
	result->used += used;
	free((void *)bytes.ptr);
	return result->progress == HPX_HTTP_MORE && result->used < feed->seen;
}

static void feed_portion(struct feed *feed, size_t seen)
{
	feed->seen = seen;
	if (feed->result->progress == HPX_HTTP_MORE && !feed->reader.head_done)
		feed_head(feed);
	if (feed->result->progress == HPX_HTTP_MORE && feed->reader.head_done)
		while (feed_body_once(feed))
			;
}

void feed_run(const struct feed_setup *setup, struct hpx_span input, const size_t *cuts,
	      size_t cut_count, struct feed_result *ret_result)
{
	struct feed feed = { .input = input, .result = ret_result };

	*ret_result = (struct feed_result){ .progress = HPX_HTTP_MORE };
	hpx_buffer_init(&ret_result->head_text, COLLECT_BYTES);
	hpx_buffer_init(&ret_result->body, COLLECT_BYTES);
	if (setup->response)
		hpx_http_reader_response(&feed.reader, &setup->limits, setup->method);
	else
		hpx_http_reader_request(&feed.reader, &setup->limits);

	for (size_t i = 0; i < cut_count; i++)
		feed_portion(&feed, cuts[i]);
	feed_portion(&feed, input.len);
	if (setup->ends && ret_result->progress == HPX_HTTP_MORE)
		ret_result->progress = hpx_http_read_end(&feed.reader);
	ret_result->error = feed.reader.error;
}

void feed_done(struct feed_result *result)
{
	hpx_buffer_done(&result->head_text);
	hpx_buffer_done(&result->body);
}

bool feed_same(const struct feed_result *a, const struct feed_result *b)
{
	if (a->progress != b->progress || a->error != b->error)
		return false;
	if (a->progress == HPX_HTTP_DONE && a->used != b->used)
		return false;
	return a->head.framing == b->head.framing && a->head.status == b->head.status &&
	       a->head.minor == b->head.minor &&
	       a->head.content_length == b->head.content_length &&
	       a->head.has_content_length == b->head.has_content_length &&
	       a->head.keep_alive == b->head.keep_alive &&
	       a->head.expect_continue == b->head.expect_continue &&
	       a->head.upgrade == b->head.upgrade &&
	       hpx_span_eq(hpx_buffer_span(&a->head_text),
			   hpx_buffer_span(&b->head_text)) &&
	       hpx_span_eq(hpx_buffer_span(&a->body), hpx_buffer_span(&b->body));
}

const char *feed_error_name(enum hpx_http_error error)
{
	static const char *const names[] = {
#define X(name, status, text) #name,
		HPX_HTTP_ERROR_LIST(X)
#undef X
	};

	return names[error];
}
