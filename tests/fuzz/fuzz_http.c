/* Searches for messages that are read differently when they come in other
 * portions, or that the reader takes but the writer refuses. The input begins
 * with a byte of choices, a byte with the number of cuts, and the cuts. */
#include "../unit/http/feed.h"
#include "base/status.h"
#include "http/field.h"
#include "http/target.h"
#include "http/write.h"

#define CUTS_MAX 15
#define HEAD_BYTES_MAX 4096
#define WRITTEN_BYTES_MAX (4 * HEAD_BYTES_MAX)
/* Byte by byte costs the square of the length. */
#define BYTEWISE_MAX 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct feed_setup read_setup(uint8_t choices)
{
	static const struct hpx_span methods[] = { HPX_SPAN_INIT("POST"),
						   HPX_SPAN_INIT("HEAD"),
						   HPX_SPAN_INIT("CONNECT") };

	return (struct feed_setup){
		.response = (choices & 1) != 0,
		.ends = (choices & 2) != 0,
		.method = methods[(choices >> 2) % 3],
		.limits = { .head_bytes_max = choices & 16 ? 64 : HEAD_BYTES_MAX,
			    .fields_max = choices & 32 ? 3 : 64 },
	};
}

/* Takes the cuts off the front of the input; each is a step from the last. */
static size_t read_cuts(struct hpx_span *input, size_t cuts[CUTS_MAX])
{
	size_t count = (unsigned char)input->ptr[0] % (CUTS_MAX + 1);
	size_t at = 0;

	*input = hpx_span_skip(*input, 1);
	if (count > input->len)
		count = input->len;
	struct hpx_span steps = hpx_span_first(*input, count);
	*input = hpx_span_skip(*input, count);
	for (size_t i = 0; i < count; i++) {
		at += (unsigned char)steps.ptr[i];
		cuts[i] = at < input->len ? at : input->len;
	}
	return count;
}

static void check_bytewise(const struct feed_setup *setup, struct hpx_span input,
			   const struct feed_result *whole)
{
	size_t cuts[BYTEWISE_MAX];
	struct feed_result got;

	if (input.len > BYTEWISE_MAX)
		return;
	for (size_t i = 0; i < input.len; i++)
		cuts[i] = i;
	feed_run(setup, input, cuts, input.len, &got);
	HPX_ASSERT(feed_same(whole, &got));
	feed_done(&got);
}

/* The start line as the gateway would send it on; false where it would not. */
static bool write_start(struct hpx_buffer *out, const struct feed_setup *setup,
			const struct hpx_http_head *head, struct hpx_arena *arena)
{
	struct hpx_target target;
	const char *reason;

	if (setup->response) {
		HPX_ASSERT(hpx_write_status_line(out, head->status, head->reason) ==
			   HPX_OK);
		return true;
	}
	if (hpx_target_parse(head->method, head->target, arena, &target, &reason) != HPX_OK)
		return false;
	HPX_ASSERT(hpx_write_request_line(out, head->method, target.path, target.query) ==
		   HPX_OK);
	return true;
}

static enum hpx_http_progress read_head(const struct feed_setup *setup,
					size_t head_bytes_max, struct hpx_span bytes,
					struct hpx_arena *arena,
					struct hpx_http_head *ret_head)
{
	struct hpx_http_limits limits = { head_bytes_max, HPX_HTTP_FIELDS_MAX };
	struct hpx_http_reader reader;
	size_t used;

	if (setup->response)
		hpx_http_reader_response(&reader, &limits, setup->method);
	else
		hpx_http_reader_request(&reader, &limits);
	return hpx_http_read_head(&reader, bytes, arena, ret_head, &used);
}

/* What is taken can be written, and is then read as the same message. The
 * path may have become three times as long. */
static void check_round_trip(const struct feed_setup *setup, struct hpx_span input)
{
	struct hpx_http_head head;
	struct hpx_http_head again;
	struct hpx_arena arena;
	struct hpx_buffer out;

	hpx_arena_init(&arena, 1 << 18);
	hpx_buffer_init(&out, WRITTEN_BYTES_MAX);
	if (read_head(setup, HEAD_BYTES_MAX, input, &arena, &head) != HPX_HTTP_DONE ||
	    head.minor != 1 || !write_start(&out, setup, &head, &arena))
		goto done;
	for (size_t i = 0; i < head.field_count; i++)
		HPX_ASSERT(hpx_write_field(&out, head.fields[i].name,
					   head.fields[i].value) == HPX_OK);
	HPX_ASSERT(hpx_write_head_end(&out) == HPX_OK);
	HPX_ASSERT(read_head(setup, WRITTEN_BYTES_MAX, hpx_buffer_span(&out), &arena,
			     &again) == HPX_HTTP_DONE);
	HPX_ASSERT(again.framing == head.framing && again.field_count == head.field_count &&
		   again.content_length == head.content_length &&
		   again.keep_alive == head.keep_alive && again.status == head.status);
	for (size_t i = 0; i < head.field_count; i++)
		HPX_ASSERT(hpx_span_eq(again.fields[i].value, head.fields[i].value));
done:
	hpx_buffer_done(&out);
	hpx_arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t cuts[CUTS_MAX];
	struct feed_result whole;
	struct feed_result portioned;

	if (size < 2)
		return 0;
	struct feed_setup setup = read_setup(data[0]);
	struct hpx_span input = hpx_span(data + 1, size - 1);
	size_t count = read_cuts(&input, cuts);

	feed_run(&setup, input, NULL, 0, &whole);
	feed_run(&setup, input, cuts, count, &portioned);
	HPX_ASSERT(feed_same(&whole, &portioned));
	check_bytewise(&setup, input, &whole);
	check_round_trip(&setup, input);
	feed_done(&portioned);
	feed_done(&whole);
	return 0;
}
